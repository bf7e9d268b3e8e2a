# SPDX-License-Identifier: GPL-2.0
"""perf annotate --tui in a terminal: what is on the screen for a BPF subprogram.

tmux is the terminal: it types the key and reads the screen.
"""
from __future__ import annotations

import shlex
import subprocess
import time
import uuid
from dataclasses import replace
from pathlib import Path
from typing import Iterator, Optional

import pytest

from perfdata import SAMPLE_DEFAULT, SAMPLE_IDENTIFIER, PerfData
from subject import perf_binary, run_perf
from test_annotate import DISASSEMBLERS, config, recording, symbol

SCREEN_SECONDS = 20


class Terminal:
    """A tmux session of one window, 160 columns by 50 lines, with its own server."""

    def __init__(self, work: Path, command: str, env: dict[str, str]) -> None:
        # a server that is ending takes no new session, so each has its own socket;
        # its path has to be shorter than pytest's directories are
        self.socket = f"perf-bpf-{uuid.uuid4().hex[:12]}"
        self.tmux("-f", "/dev/null", "new-session", "-d", "-s", "tui", "-x", "160", "-y", "50",
                  "-c", str(work), *[f"-e{k}={v}" for k, v in env.items()], command)

    def tmux(self, *args: str) -> str:
        """Run a tmux command; its output (CalledProcessError: tmux refused)."""
        return subprocess.run(["tmux", "-L", self.socket, *args], check=True, timeout=20,
                              capture_output=True, text=True).stdout

    def screen(self) -> str:
        """Return what is on the screen now."""
        return self.tmux("capture-pane", "-p", "-t", "tui")

    def wait_for(self, text: str) -> str:
        """Return the screen as soon as it has the text; fail the test if it never has."""
        end = time.monotonic() + SCREEN_SECONDS
        screen = ""
        while time.monotonic() < end:
            screen = self.screen()
            if text in screen:
                return screen
            time.sleep(0.1)     # the screen tells no one when it changes
        raise AssertionError(f"no {text!r} on the screen in {SCREEN_SECONDS} s:\n{screen}")

    def close(self) -> None:
        """End the session and whatever runs in it."""
        subprocess.run(["tmux", "-L", self.socket, "kill-server"], check=False,
                       capture_output=True, timeout=20)


def start(work: Path, disassembler: str, *args: str,
          data: Optional[PerfData] = None) -> Terminal:
    """Start perf with the arguments in a terminal, on the recording."""
    (data or recording()).write(work / "perf.data")
    (work / "perfconfig").write_text(
        config(disassembler).replace("hide_src_code = false", "hide_src_code = true"))
    command = shlex.join([str(perf_binary()), *args, "--tui", "-i", "perf.data"])
    return Terminal(work, command + "; echo the TUI has ended; cat", {
        "HOME": str(work), "PERF_CONFIG": str(work / "perfconfig"), "LC_ALL": "C.UTF-8"})


@pytest.fixture(name="tui", params=DISASSEMBLERS)
def tui_fixture(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Terminal]:
    """The TUI of perf annotate, opened on sub_a."""
    terminal = start(tmp_path, request.param, "annotate", "-s", symbol("sub_a"))
    yield terminal
    terminal.close()


@pytest.fixture(name="report")
def report_fixture(tmp_path: Path) -> Iterator[Terminal]:
    """The TUI of perf report."""
    terminal = start(tmp_path, DISASSEMBLERS[0], "report", "--sort", "dso,sym")
    yield terminal
    terminal.close()


def test_tui_toggles_source(tui: Terminal) -> None:
    """The code is there at once, the C source when 's' asks for it, and gone again."""
    screen = tui.wait_for("0x2223")
    assert "sub_b(a);" not in screen, screen
    tui.tmux("send-keys", "-t", "tui", "s")
    tui.wait_for("a = 0x2223 + sub_b(a);")
    tui.tmux("send-keys", "-t", "tui", "-N", "30", "Up")    # the hottest line was on top
    screen = tui.wait_for("src/prog.c:201")
    for text in ("int a = 0x2222;", "src/inline.h:33", "0x2224"):
        assert text in screen, f"no {text!r}:\n{screen}"
    assert "0x3333" not in screen and "0x1111" not in screen, screen
    tui.tmux("send-keys", "-t", "tui", "s")
    end = time.monotonic() + SCREEN_SECONDS
    while "sub_b(a);" in tui.screen():
        assert time.monotonic() < end, f"the source does not go:\n{tui.screen()}"
        time.sleep(0.1)


def test_tui_names_the_call(tui: Terminal) -> None:
    """The call of another subprogram has its name, as in --stdio."""
    screen = tui.wait_for("0x2223")
    assert any("call" in line and "_sub_b" in line for line in screen.splitlines()), screen


def test_tui_enters_the_callee(tui: Terminal) -> None:
    """Enter on the call shows the other subprogram, its own code."""
    tui.wait_for("0x2223")
    tui.tmux("send-keys", "-t", "tui", "Down")      # to the hottest line
    tui.tmux("send-keys", "-t", "tui", "Down")      # to the call
    tui.tmux("send-keys", "-t", "tui", "Enter")
    screen = tui.wait_for("0x3334")
    assert symbol("sub_b") in screen and "0x2223" not in screen, screen


def test_report_zooms_into_the_kernel(report: Terminal) -> None:
    """'k' keeps BPF functions: they run in the kernel."""
    report.wait_for("sub_a")
    report.tmux("send-keys", "-t", "tui", "k")
    screen = report.wait_for(", the whole kernel")
    for name in ("main_prog", "sub_a", "sub_b"):
        assert symbol(name) in screen, screen


def test_tab_stays_with_one_event(tmp_path: Path) -> None:
    """TAB goes to the next event. Dummies, which track tasks and kernel text, are none."""
    data = replace(recording(), sample_type=SAMPLE_DEFAULT | SAMPLE_IDENTIFIER, ids=(1, 2, 3),
                   dummies=2)
    terminal = start(tmp_path, DISASSEMBLERS[0], "report", "--sort", "dso,sym", data=data)
    try:
        terminal.wait_for("sub_a")
        terminal.tmux("send-keys", "-t", "tui", "Tab")
        terminal.tmux("send-keys", "-t", "tui", "h")
        terminal.wait_for("Show this window")
    finally:
        terminal.close()


def test_diff_has_no_table_for_dummies(tmp_path: Path) -> None:
    """perf diff compares the events, and not the dummies behind them, which have no samples."""
    data = replace(recording(), sample_type=SAMPLE_DEFAULT | SAMPLE_IDENTIFIER, ids=(1, 2, 3),
                   dummies=2)
    for name in ("old", "new"):
        data.write(tmp_path / name)
    result = run_perf(tmp_path, ["diff", "old", "new"])
    assert result.status == 0 and symbol("sub_a") in result.out, str(result)
    assert "dummy" not in result.out, str(result)

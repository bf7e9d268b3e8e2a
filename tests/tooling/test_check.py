# SPDX-License-Identifier: GPL-2.0
"""stack/check: runs the builds and tests of all lanes, and passes when all of them do,
within the budget of time."""
from __future__ import annotations

import time
from pathlib import Path

import pytest

from toy import Toy, copy_tooling

# What it runs before pytest; none of that is tested here.
BUILDS = ("base", "tree", "lint", "perf", "selftests", "samples", "kernel", "bpf-selftests")
LANES = {"debug": ("test_debug_guest",),
         "guests": ("test_guest", "test_its", "test_demo", "test_qemu", "test_guest_failures"),
         "others": ("test_more",)}
PASSES, FAILS = "def test_it(): pass\n", "def test_it(): assert not 'true'\n"


@pytest.fixture(name="toy")
def fixture_toy(tmp_path: Path) -> Toy:
    """A repository in which all builds are quick, and a test in each file that
    stack/check names passes."""
    toy = copy_tooling(tmp_path / "repo")
    for script in BUILDS:
        (toy.top / "stack" / script).write_text("#!/bin/sh\n")
    for modules in LANES.values():
        for module in modules:
            (toy.top / "tests" / f"{module}.py").write_text(PASSES)
    return toy


def counts(lane: str, failed: int = 0) -> str:
    """The line that the end of `make check` has for a lane."""
    passed = len(LANES[lane]) - failed
    return f"{lane}: " + ", ".join(word for nr, word in [(failed, f"{failed} failure"),
                                                         (passed, f"{passed} passed")] if nr)


def test_passes(toy: Toy) -> None:
    """Every test runs in its lane, and the status is 0."""
    done = toy.run("stack/check")
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines()[-3:] == [counts(lane) for lane in LANES]


@pytest.mark.parametrize("failing", LANES)
def test_test_fails(failing: str, toy: Toy) -> None:
    """A test that fails in any lane fails `make check`; the other lanes end."""
    (toy.top / "tests" / f"{LANES[failing][0]}.py").write_text(FAILS)
    done = toy.run("stack/check")
    assert done.returncode == 1, done.stdout + done.stderr
    for lane in LANES:
        assert counts(lane, failed=int(lane == failing)) in done.stdout.splitlines()


@pytest.mark.parametrize("failing, kernel", [("debug", "debug"), ("guests", "series")])
def test_kernel_fails(failing: str, kernel: str, toy: Toy) -> None:
    """A kernel that does not build fails `make check`; the other lanes end."""
    (toy.top / "stack/kernel").write_text(
        f'#!/bin/sh\n[ "$*" != {kernel} ] || {{ echo cc1 died; exit 2; }}\n')
    done = toy.run("stack/check")
    assert done.returncode == 2, done.stdout + done.stderr
    assert "cc1 died" in done.stdout
    for lane in LANES:
        assert (counts(lane) in done.stdout.splitlines()) == (lane != failing)
    assert f"{failing}: ended without results" in done.stdout


def test_lint_fails(toy: Toy) -> None:
    """What fails before the tests ends `make check` at once, with its other lanes."""
    (toy.top / "stack/lint").write_text("#!/bin/sh\nexit 1\n")
    (toy.top / "stack/kernel").write_text(f"#!/bin/sh\nsleep 100; touch {toy.top}/went-on\n")
    start = time.monotonic()
    done = toy.run("stack/check")
    assert done.returncode == 1 and "lint failed" in done.stderr
    assert time.monotonic() - start < 60
    while running := lanes_of(toy):
        assert time.monotonic() - start < 60, running
        time.sleep(0.1)     # they have been signalled, but may not have run since


def lanes_of(toy: Toy) -> list[Path]:
    """The processes of the lanes of `make check` that build a kernel."""
    return [path for path in Path("/proc").glob("[0-9]*/cmdline")
            if f"{toy.top}/stack/kernel".encode() in read_bytes(path)]


def read_bytes(path: Path) -> bytes:
    """A file of /proc, empty when the process has ended."""
    try:
        return path.read_bytes()
    except OSError:
        return b""


@pytest.mark.parametrize("what, environment, status", [
    ("total", {}, 1), ("lint", {}, 1), ("total", {"PERF_BPF_BUDGET": "0"}, 0),
    ("total", {"PERF_BPF_BUDGET": "1000"}, 0)])
def test_budget(what: str, environment: dict[str, str], status: int, toy: Toy) -> None:
    """More time than stack/budget allows fails `make check`, and the message says what
    took too long and how to allow more."""
    (toy.top / "stack/lint").write_text("#!/bin/sh\ni=0\nwhile [ $i -lt 2000000 ]; do "
                                        "i=$((i + 1)); done\n")
    (toy.top / "stack/budget").write_text(f"{what} 0 1\n")
    done = toy.run("stack/check", **environment)
    assert done.returncode == status, done.stdout + done.stderr
    assert (f"*** TOO SLOW: {what} took " in done.stdout) == bool(status)
    assert (f"*** SLOW: {what} took " in done.stdout) == (not status)
    assert status == 0 or "set PERF_BPF_BUDGET=2" in done.stdout
    log = (toy.top / "build/results/check-series/durations.tsv").read_text()
    assert "stage\tlint\t" in log and "test\ttest_guest.test_it\t" in log

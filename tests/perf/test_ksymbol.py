# SPDX-License-Identifier: GPL-2.0
"""What perf makes of KSYMBOL records whose ranges overlap.

Mainline kernels, and perf when it reads /proc/kallsyms, say that a trampoline
is a page long. Others begin in that page: each has to keep its own name, in
whatever order the records come.
"""
from __future__ import annotations

import itertools
import re
from pathlib import Path
from typing import Sequence

import pytest

import perfdata as pd
from perfdata import Function, Program, Sample
from test_annotate import movs_in, perf
from x86 import RET, mov

PAGE = 4096
BASE = 0xffffffffc0010000
TRAMPOLINES = {"bpf_trampoline_1": BASE, "bpf_trampoline_2": BASE + 0x80,
               "bpf__tcp_congestion_ops_ssthresh": BASE + 0x100}
PROGRAM = Program(7, "late", [Function("late", BASE + 0x180, mov(0x7171) + RET)])


def shares(report: str) -> dict[str, str]:
    """Return the overhead of each kernel symbol in a report."""
    return {name: share for share, name in
            re.findall(r"^\s+([0-9.]+%)\s+\[k\] (\S+)", report, re.MULTILINE)}


def records(order: Sequence[str]) -> list[pd.Record]:
    """Return the page-long KSYMBOLs in this order."""
    return [pd.ksymbol(name, TRAMPOLINES[name], PAGE) for name in order]


@pytest.mark.parametrize("order", list(itertools.permutations(TRAMPOLINES)),
                         ids=lambda order: "-".join(name[-1] for name in order))
def test_images_in_one_page(order: Sequence[str], tmp_path: Path) -> None:
    """Three images and, behind them, a program that is loaded later."""
    samples = [Sample(addr + 8) for addr in TRAMPOLINES.values()]
    file = pd.recording([PROGRAM], samples + [Sample(BASE + 0x180 + 5)],
                        before=records(order))
    report = perf(tmp_path, file, "report", "--stdio", "--sort", "sym")
    expected = dict.fromkeys([*TRAMPOLINES, PROGRAM.symbol(0)], "25.00%")
    assert shares(report.out) == expected, str(report)
    shown = perf(tmp_path, file, "annotate", "--stdio", "-s", PROGRAM.symbol(0))
    assert movs_in(shown.out) == [0x7171], str(shown)


def test_unregister_takes_its_own_only(tmp_path: Path) -> None:
    """The end of one image leaves the other its name."""
    first, second = list(TRAMPOLINES.items())[:2]
    file = pd.recording([], [Sample(first[1] + 8)] * 3, before=[
        *records([first[0], second[0]]),
        pd.ksymbol(second[0], second[1], PAGE, flags=pd.KSYMBOL_UNREGISTER)])
    report = perf(tmp_path, file, "report", "--stdio", "--sort", "sym")
    assert shares(report.out) == {first[0]: "100.00%"}, str(report)


def test_text_behind_the_recorded_kernel(tmp_path: Path) -> None:
    """perf inject --aslr puts dynamic text right behind the kernel's text, where symbols of the
    kernel's data are: text that begins after they were loaded has its name all the same."""
    symbols = {pd.KERNEL_START: "T _text", pd.KERNEL_START + 0x100: "T kernel_func",
               pd.KERNEL_START + pd.KERNEL_LEN + 0x2000000: "D end_of_data"}
    (tmp_path / "kallsyms").write_text("".join(
        f"{addr:016x} {name}\n" for addr, name in symbols.items()))
    places = {f"bpf_trampoline_{i}": pd.KERNEL_START + pd.KERNEL_LEN + i * PAGE for i in (0, 1, 7)}
    file = pd.recording([], [Sample(pd.KERNEL_START + 0x108)])
    for name, addr in places.items():
        file.records = [*file.records, pd.ksymbol(name, addr, 64), Sample(addr + 8)]
    report = perf(tmp_path, file, "report", "--stdio", "--sort", "sym", "--kallsyms", "kallsyms")
    assert shares(report.out) == dict.fromkeys([*places, "kernel_func"], "25.00%"), str(report)

# SPDX-License-Identifier: GPL-2.0
"""BPF programs of which a pipe tells in parts, after their first samples."""
from __future__ import annotations

from pathlib import Path
from typing import Union

import perfdata as pd
from perfdata import Branch, Function, Line, PerfData, Program, Record, Sample
from subject import run_perf
from x86 import NOP, RET, mov

MAIN = 0xffffffffc0123450
CODE = mov(0x1111) + NOP + RET
PROGRAM = Program(42, "main_prog", [
    Function("main_prog", MAIN, CODE, [Line(0, "prog.c", 7, 1, "\tint x = 0x1111;")])])
# After two of them all that came before has been dealt with.
ROUNDS = [Record(pd.RECORD_FINISHED_ROUND, 0, b"", trailer=False)] * 2
INFO = pd.feature_parts(pd.FEAT_BPF_PROG_INFO, pd.feat_prog_info([PROGRAM]))
BTF = pd.feature_parts(pd.FEAT_BPF_BTF, pd.feat_btf([PROGRAM]))


def script(tmp_path: Path, fields: str, *records: Union[Record, Sample],
           sample_type: int = pd.SAMPLE_DEFAULT) -> list[str]:
    """What perf script prints of a recording in which the program was loaded, its lines."""
    told = [pd.mmap_kernel(), pd.comm("perf-bpf"), *pd.load_records(PROGRAM)]
    PerfData([], [*told, *records], sample_type).write(tmp_path / "perf.data")
    done = run_perf(tmp_path, ["script", "-i", "perf.data", "-F", fields])
    assert done.status == 0, done
    return [line.strip() for line in done.out.splitlines() if line.strip()]


def test_lines_when_btf_comes_last(tmp_path: Path) -> None:
    """A program has lines from then on, though one was looked for before."""
    sample = Sample(MAIN + 1)
    lines = script(tmp_path, "ip,srcline", *INFO, sample, *ROUNDS, *BTF, sample, *ROUNDS)
    assert lines[-1] == "prog.c:7", lines
    assert lines.count("prog.c:7") == 1, lines


def test_code_when_info_comes_late(tmp_path: Path) -> None:
    """A program's code is read from then on, though it was tried before."""
    sample = Sample(MAIN + 1, branches=[Branch(MAIN + len(CODE) - 1, pd.KERNEL_START),
                                        Branch(pd.KERNEL_START, MAIN)])
    lines = script(tmp_path, "brstackinsn", sample, *ROUNDS, *BTF, *INFO, sample, *ROUNDS,
                   sample_type=pd.SAMPLE_DEFAULT | pd.SAMPLE_BRANCH_STACK)
    code = [line for line in lines if "insn:" in line and CODE[:5].hex(" ") in line]
    assert len(code) == 1, lines

# SPDX-License-Identifier: GPL-2.0
"""Kernel code is disassembled for the machine recorded on, whatever ran it and where.

perf runs here, on x86-64, with no objdump in PATH. The files are from machines of
both byte orders. BPF code has its source lines, which are in structures of the
recorded machine's byte order.
"""
from __future__ import annotations

import os
import re
import struct
from pathlib import Path
from typing import Iterator

import pytest

import perfdata as pd
from machines import AARCH64, PPC64, PPC64LE, RISCV64, S390X, X86_64, Target, loads_in
from perfdata import Function, Line, Machine, PerfData, Program, Record, Sample
from subject import Result, run_perf

EM_386, EM_ARM = 3, 40
FEAT_E_MACHINE = 33             # HEADER_E_MACHINE: of one of the recorded tasks
SAMPLE_REGS_INTR = 1 << 18
MISC_USER = 2
DISASSEMBLERS = ("llvm", "capstone")
TARGETS = (X86_64, AARCH64, PPC64, PPC64LE, RISCV64, S390X)
# capstone knows RISC-V from version 5 on
DECODED = [pytest.param(target, disassembler, id=f"{target}-{disassembler}")
           for target in TARGETS for disassembler in DISASSEMBLERS
           if (target, disassembler) != (RISCV64, "capstone")]


@pytest.fixture(autouse=True)
def no_objdump(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """An empty PATH, so that there is no objdump of any machine."""
    (tmp_path / "bin").mkdir()
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.delenv("CROSS_COMPILE", raising=False)
    yield


def program(target: Target) -> Program:
    """A program of two functions, the main one behind the other."""
    main = target.load(0x111) + target.nop + target.load(0x112) + target.ret
    sub = target.load(0x222) + target.ret
    return Program(42, "main_prog", [
        Function("main_prog", target.text + 0x1000, main, [
            Line(0, "prog.c", 11, 6, "int x = 0x111;"),
            Line(hot(target), "prog.c", 12, 2, "return 0x112;")]),
        Function("sub", target.text, sub, [Line(0, "sub.c", 21, 6, "int y = 0x222;")])])


def hot(target: Target) -> int:
    """Return the offset of the sampled instruction, the second load of main_prog."""
    return len(target.load(0)) + len(target.nop)


def recording(target: Target, **more: object) -> PerfData:
    """The program, sampled in both functions."""
    main, sub = program(target).functions
    return pd.recording([program(target)], [Sample(main.at(hot(target)))] * 3 + [Sample(sub.addr)],
                        **{"machine": target.machine, **more})  # type: ignore[arg-type]


def perf(work: Path, file: PerfData, *args: str, disassembler: str = "llvm") -> Result:
    """Run perf on the file with one disassembler; anything but success fails the test."""
    file.write(work / "perf.data")
    result = run_perf(work, [*args, "-i", "perf.data"],
                      f"[annotate]\n\tdisassemblers = {disassembler}\n")
    assert result.status == 0 and not result.timed_out, str(result)
    return result


def annotate(work: Path, file: PerfData, sub_id: int = 0, disassembler: str = "llvm") -> Result:
    """Annotate a function of the file's program."""
    return perf(work, file, "annotate", "--stdio", "-s", file.programs[0].symbol(sub_id),
                disassembler=disassembler)


def code_of(result: Result) -> list[str]:
    """Return the lines with instructions: percent, address, text."""
    return [line for line in result.out.splitlines() if re.match(r" *\d+\.\d+ : +\w+:", line)]


def check_main(result: Result) -> None:
    """main_prog is all there, its source at the right places, the samples too."""
    code = code_of(result)
    assert loads_in("\n".join(code)) == [0x111, 0x112], str(result)
    assert [loads_in(line) for line in code if "100.00" in line] == [[0x112]], str(result)
    places = [result.out.find(text) for text in
              ("int x = 0x111;", code[0], "return 0x112;", code[-2])]
    assert -1 not in places and places == sorted(places), str(result)


# -- a file from another machine ----------------------------------------------

@pytest.mark.parametrize("target,disassembler", DECODED)
def test_code_and_source(target: Target, disassembler: str, tmp_path: Path) -> None:
    """Each function has its own instructions and source lines, without any objdump."""
    file = recording(target)
    check_main(annotate(tmp_path, file, 0, disassembler))
    sub = annotate(tmp_path, file, 1, disassembler)
    assert loads_in("\n".join(code_of(sub))) == [0x222] and "int y = 0x222;" in sub.out, str(sub)


@pytest.mark.parametrize("target", TARGETS, ids=str)
def test_report_by_source_line(target: Target, tmp_path: Path) -> None:
    """The source lines of the samples are found in either byte order."""
    result = perf(tmp_path, recording(target), "report", "--stdio", "--sort", "srcline")
    for where, overhead in (("prog.c:12", "75.00%"), ("sub.c:21", "25.00%")):
        assert any(where in line and overhead in line for line in result.out.splitlines()), \
            str(result)


@pytest.mark.parametrize("target", [PPC64, S390X], ids=str)
def test_program_info_in_big_endian(target: Target, tmp_path: Path) -> None:
    """report --header-only -I prints the id, name and functions of the program."""
    result = perf(tmp_path, recording(target), "report", "--header-only", "-I", "--stdio")
    for piece in ("bpf_prog_info 42:", program(target).symbol(0),
                  f"{target.text + 0x1000:x}", "btf info of id 42"):
        assert piece in result.out, str(result)
    assert "not yet supported" not in result.err, str(result)


@pytest.mark.parametrize("target", [PPC64, S390X], ids=str)
def test_program_in_parts_in_big_endian(target: Target, tmp_path: Path) -> None:
    """The parts in which a pipe has a program are read in either byte order."""
    order = target.machine.order
    parts = [*pd.feature_parts(pd.FEAT_BPF_PROG_INFO, pd.feat_prog_info([program(target)],
                                                                        order=order)),
             *pd.feature_parts(pd.FEAT_BPF_BTF, pd.feat_btf([program(target)], order=order))]
    check_main(annotate(tmp_path, recording(target, before=parts, features={
        pd.FEAT_BPF_PROG_INFO: None, pd.FEAT_BPF_BTF: None})))


# A disassembler here has all of these; script's is capstone.
@pytest.mark.parametrize("target", [AARCH64, PPC64, PPC64LE, S390X], ids=str)
def test_script_prints_instructions(target: Target, tmp_path: Path) -> None:
    """perf script finds kernel code below the kernel, and in a space of its own."""
    result = perf(tmp_path, recording(target), "script", "-F", "ip,sym,insn,disasm")
    expected = target.load(0x112).hex(" ")
    lines = [line for line in result.out.splitlines() if "main_prog" in line]
    assert len(lines) == 3, str(result)
    for line in lines:
        assert expected in line and loads_in(line) == [0x112], str(result)


# -- the task does not decide -------------------------------------------------

def task_of(e_machine: int) -> dict:
    """Return a recording's options: a task of this ELF machine was recorded."""
    return {"features": {FEAT_E_MACHINE: struct.pack("<II", e_machine, 0)}}


@pytest.mark.parametrize("disassembler", DISASSEMBLERS)
@pytest.mark.parametrize("target,e_machine", [(X86_64, EM_386), (AARCH64, EM_ARM)],
                         ids=["x86", "arm"])
def test_32bit_task(target: Target, e_machine: int, disassembler: str, tmp_path: Path) -> None:
    """Kernel code that a 32-bit task ran is 64-bit code."""
    check_main(annotate(tmp_path, recording(target, **task_of(e_machine)), 0, disassembler))


def test_script_32bit_task(tmp_path: Path) -> None:
    """perf script -F +disasm as well."""
    result = perf(tmp_path, recording(AARCH64, **task_of(EM_ARM)), "script", "-F", "ip,disasm")
    assert loads_in(result.out) == [0x112] * 3 + [0x222], str(result)


@pytest.mark.parametrize("disassembler", DISASSEMBLERS)
@pytest.mark.parametrize("target,arch", [
    pytest.param(X86_64, "i686", id="x86", marks=pytest.mark.both),
    pytest.param(AARCH64, "armv8l", id="arm")])
def test_32bit_personality(target: Target, arch: str, disassembler: str, tmp_path: Path) -> None:
    """perf record ran under setarch: the file has the name of a 32-bit machine."""
    machine = Machine(arch, "<", target.machine.kernel_start)
    file = recording(target, machine=machine)
    if target is X86_64:
        code = b"\x48\xff\xc0"          # inc %rax; on i686, dec %eax and inc %eax
        file = pd.recording([Program(42, "p", [Function("p", target.text, code + target.ret)])],
                            [Sample(target.text)], machine=machine)
        result = annotate(tmp_path, file, 0, disassembler)
        assert "incq" in result.out and "dec" not in result.out, str(result)
    else:
        check_main(annotate(tmp_path, file, 0, disassembler))


def registers(target: Target, tid: int) -> PerfData:
    """A file with a sample of the first two registers of a task."""
    sample = Record(pd.RECORD_SAMPLE, MISC_USER, pd.packed(
        "QIIQIIQQQQ", 0x1000, tid, tid, 1000001000, 0, 0, 1, 2, 0x1234, 0x5678), trailer=False)
    return PerfData([], [pd.mmap_kernel(target.machine), pd.comm("task", tid), sample],
                    sample_type=pd.SAMPLE_DEFAULT | SAMPLE_REGS_INTR, machine=target.machine,
                    regs_intr=3)


def test_registers_of_the_recorded_machine(tmp_path: Path) -> None:
    """A process here with the PID of the recorded one does not give the registers names."""
    for tid in (os.getpid(), 0x3fffff):
        result = perf(tmp_path, registers(AARCH64, tid), "script", "-F", "ip,iregs")
        assert "x0:0x1234" in result.out and "AX:" not in result.out, str(result)


# -- what cannot be shown, and why --------------------------------------------

def undecodable(target: Target) -> PerfData:
    """A program that begins with what is no instruction of the machine."""
    return pd.recording([Program(42, "p", [Function("p", target.text, b"\xff" * 8)])],
                        [Sample(target.text)], machine=target.machine)


def test_failure_names_machine_and_disassemblers(tmp_path: Path) -> None:
    """Each disassembler that was tried is named, with the reason why it failed."""
    result = annotate(tmp_path, undecodable(AARCH64), 0, "llvm,capstone,objdump")
    said = result.out + result.err
    where = f"unknown instruction at {AARCH64.text:#x}"
    for piece in ("the aarch64 code of", f"llvm: {where}", f"capstone: {where}",
                  "objdump: BPF code is in no file"):
        assert piece in said, str(result)


def test_unknown_machine_is_named(tmp_path: Path) -> None:
    """perf knows no such machine: the message has the name from the file."""
    target = Target(Machine("mystery64", "<", AARCH64.machine.kernel_start), AARCH64.text,
                    AARCH64.load, AARCH64.nop, AARCH64.ret)
    result = annotate(tmp_path, recording(target))
    assert "mystery64" in result.out + result.err, str(result)


def test_no_target_in_the_disassembler(tmp_path: Path) -> None:
    """The linked LLVM or capstone does not know the machine, and says so."""
    machine = Machine("loongarch64", "<", 0x9000000000200000)
    file = pd.recording([Program(42, "p", [Function("p", 0xffff800002001000, bytes(8))])],
                        [Sample(0xffff800002001000)], machine=machine)
    result = annotate(tmp_path, file, 0, "capstone")
    assert "capstone: the capstone that perf is linked with has no loongarch" in result.err, \
        str(result)

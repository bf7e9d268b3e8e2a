# SPDX-License-Identifier: GPL-2.0
"""perf annotate --bpf-xlated: BPF instructions above the machine code made of them.

main_prog has a line without machine code, calls of its subprogram, of a helper and of a
kfunc, and constants that take two slots. What is asked of the text is the place and the
words of each instruction, which are those of `bpftool prog dump xlated`.
"""
from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Optional, Sequence

import pytest

import perfdata as pd
from machines import S390X
from test_kernel_symbols import FEAT_BUILD_ID, build_id_feature
from perfdata import Function, Insn, Line, PerfData, Program, Sample
from subject import Result, run_perf
from x86 import NOP, RET, call, mov

MAIN, SUB = 0xffffffffc0002000, 0xffffffffc0001000
CALL_BASE, HELPER = pd.KERNEL_START + 0x1000, pd.KERNEL_START + 0x2000
BUILD_ID = b"\xcd" * 20
MOV_IMM, MOV_REG, CALL, EXIT, LD_IMM64 = 0xb7, 0xbf, 0x85, 0x95, 0x18
PSEUDO_CALL, PSEUDO_KFUNC, PSEUDO_MAP = 1, 2, 1     # src of CALL; of LD_IMM64
NOT_RECORDED = "No BPF instructions of this program in perf.data"
NO_LINES = "No line info"

LINES = [Line(0, "p.c", 11, 1, "int x = 0x111;", [Insn(MOV_IMM, 0, imm=0x111)]),
         # no code: it begins where the next line does
         Line(5, "p.c", 12, 1, "barrier();", [Insn(MOV_REG, 3, 3)]),
         Line(5, "p.c", 13, 1, "x += sub(&map);", [
             Insn(LD_IMM64, 1, PSEUDO_MAP, imm=77), Insn(0),
             Insn(CALL, src=PSEUDO_CALL, off=6, imm=1)]),
         Line(10, "p.c", 14, 1, "helper(0x100000002);", [
             Insn(LD_IMM64, 1, imm=2), Insn(0, imm=1), Insn(CALL, imm=HELPER - CALL_BASE),
             Insn(CALL, src=PSEUDO_KFUNC, imm=HELPER - CALL_BASE)]),
         Line(15, "p.c", 15, 1, "return 0x112;", [Insn(MOV_IMM, 0, imm=0x112), Insn(EXIT)])]
SUB_LINES = [Line(0, "p.c", 3, 1, "return 0x222;", [Insn(MOV_IMM, 0, imm=0x222), Insn(EXIT)])]
PROGRAM = Program(42, "main_prog", [
    Function("main_prog", MAIN, mov(0x111) + call(MAIN + 5, SUB) + call(MAIN + 10, HELPER)
             + mov(0x112) + RET, LINES),
    Function("sub", SUB, mov(0x222) + RET, SUB_LINES)])
# What each line of the source has below it, in order
EXPECTED = [("int x = 0x111;", "0: (b7) r0 = 273", "$0x111,"),
            ("barrier();", "1: (bf) r3 = r3"),
            ("x += sub(&map);", "2: (18) r1 = map[id:77]",
             f"4: (85) call pc+6#{PROGRAM.symbol(1)}", "call"),
            ("helper(0x100000002);", "5: (18) r1 = 0x100000002",
             f"7: (85) call bpf_helper#{HELPER - CALL_BASE}",
             f"8: (85) call bpf_helper#{HELPER - CALL_BASE}", "call"),
            ("return 0x112;", "9: (b7) r0 = 274", "10: (95) exit", "$0x112,")]


def recording(program: Program = PROGRAM, **more: object) -> PerfData:
    """The program, sampled in each function, by a kernel of BUILD_ID."""
    return pd.recording([program], [Sample(f.addr) for f in program.functions], **{
        "features": {FEAT_BUILD_ID: build_id_feature(BUILD_ID)},
        **more})  # type: ignore[arg-type]


def keep_kallsyms(work: Path, start: int = pd.KERNEL_START) -> None:
    """Put the kernel's symbols into the cache of build IDs."""
    symbols = {start: "_stext", start + 0x1000: "__bpf_call_base", start + 0x2000: "bpf_helper",
               start + 0x3000: "_etext"}
    path = work / ".debug/[kernel.kallsyms]" / BUILD_ID.hex() / "kallsyms"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{addr:x} T {name}\n" for addr, name in symbols.items()))


def without_lines(program: Program = PROGRAM, functions: Optional[int] = None) -> Program:
    """The program with its instructions, and no line info."""
    return replace(program, functions=program.functions[:functions],
                   arrays=pd.array_bit("jited_prog_insns") | pd.array_bit("xlated_prog_insns")
                   | pd.array_bit("jited_ksyms") | pd.array_bit("jited_func_lens")
                   | pd.array_bit("prog_tags") | pd.array_bit("func_info"),
                   fields={"nr_line_info": 0, "nr_jited_line_info": 0})


def annotate(work: Path, file: PerfData, *args: str, config: str = "",
             disassembler: str = "llvm", function: int = 0) -> Result:
    """Annotate a function of the file's program; anything but success fails the test."""
    file.write(work / "perf.data")
    keep_kallsyms(work, file.machine.kernel_start)
    result = run_perf(work, ["annotate", *args, "-i", "perf.data", "-s",
                             file.programs[0].symbol(function)],
                      f"[annotate]\n\tdisassemblers = {disassembler}\n{config}")
    assert result.status == 0 and not result.timed_out, str(result)
    return result


def check_order(result: Result, pieces: Sequence[str]) -> None:
    """The pieces are in lines that follow one another, in this order."""
    at = 0
    lines = result.out.splitlines()
    for piece in pieces:
        found = [i for i, line in enumerate(lines) if i >= at and piece in line]
        assert found, f"no {piece!r} after line {at} of\n{result}"
        at = found[0] + 1


def xlated_in(result: Result) -> list[int]:
    """Return the numbers of the BPF instructions, in order."""
    return [int(n) for n in re.findall(r"\s(\d+): \([0-9a-f]{2}\) ", result.out)]


# -- the view -----------------------------------------------------------------

@pytest.mark.parametrize("disassembler", ("llvm", "capstone"))
@pytest.mark.parametrize("mode", ("--stdio", "--stdio2"))
def test_instructions_stand_above_their_code(mode: str, disassembler: str,
                                             tmp_path: Path) -> None:
    """Each source line, its BPF instructions and its machine code follow one another."""
    result = annotate(tmp_path, recording(), mode, "--bpf-xlated", "--source",
                      disassembler=disassembler)
    check_order(result, [piece for line in EXPECTED for piece in line])
    assert xlated_in(result) == [0, 1, 2, 4, 5, 7, 8, 9, 10], str(result)


def test_each_function_has_its_own(tmp_path: Path) -> None:
    """The instructions of a subprogram are numbered as in the whole program."""
    result = annotate(tmp_path, recording(), "--stdio", "--bpf-xlated", function=1)
    check_order(result, ["return 0x222;", "11: (b7) r0 = 546", "12: (95) exit", "$0x222"])
    assert xlated_in(result) == [11, 12], str(result)


@pytest.mark.parametrize("args", (("--stdio", "--no-source"), ("--stdio2",)), ids=str)
def test_without_source(args: Sequence[str], tmp_path: Path) -> None:
    """The BPF instructions are shown where the source is not asked for, or is hidden."""
    result = annotate(tmp_path, recording(), *args, "--bpf-xlated")
    assert len(xlated_in(result)) == 9 and "int x" not in result.out, str(result)


def test_only_on_request(tmp_path: Path) -> None:
    """Source lines without an instruction of their own are not shown, as before."""
    result = annotate(tmp_path, recording(), "--stdio")
    assert "int x = 0x111;" in result.out, str(result)
    assert not xlated_in(result) and "barrier" not in result.out, str(result)


def test_by_configuration(tmp_path: Path) -> None:
    """annotate.bpf_xlated does as the option."""
    result = annotate(tmp_path, recording(), "--stdio", config="\tbpf_xlated = true\n")
    assert len(xlated_in(result)) == 9, str(result)


def test_another_byte_order(tmp_path: Path) -> None:
    """Instructions are converted, their registers too; far kfuncs are BTF ids, not addresses."""
    insns = [Insn(MOV_REG, 6, 1), Insn(MOV_IMM, 7, imm=-2), Insn(0x79, 2, 6, -8),
             Insn(CALL, src=PSEUDO_KFUNC, imm=0x1000)]
    program = Program(42, "main_prog", [Function(
        "main_prog", S390X.text, S390X.load(0x111) + S390X.ret,
        [Line(0, "p.c", 11, 1, "int x = 0x111;", insns)])])
    result = annotate(tmp_path, recording(program, machine=S390X.machine, features={}),
                      "--stdio", "--bpf-xlated")
    check_order(result, ["0: (bf) r6 = r1", "1: (b7) r7 = -2", "2: (79) r2 = *(u64 *)(r6 -8)",
                         "3: (85) call kernel-function#4096", "273"])


# -- what is not there --------------------------------------------------------

def test_not_recorded(tmp_path: Path) -> None:
    """It says so and how to record them, and shows the rest."""
    bits = sum(pd.array_bit(name) for name, _, _ in pd.ARRAYS if name not in
               ("xlated_prog_insns", "map_ids"))
    result = annotate(tmp_path, recording(replace(PROGRAM, arrays=bits)),
                      "--stdio", "--bpf-xlated")
    check_order(result, [NOT_RECORDED, "int x = 0x111;", "$0x111"])
    assert not xlated_in(result), str(result)


@pytest.mark.parametrize("functions", (1, 2))
def test_no_line_info(functions: int, tmp_path: Path) -> None:
    """One function has all instructions at its top; of two, nobody knows whose they are."""
    result = annotate(tmp_path, recording(without_lines(functions=functions)),
                      "--stdio", "--bpf-xlated")
    check_order(result, [NO_LINES, "$0x111"])
    assert len(xlated_in(result)) == (9 if functions == 1 else 0), str(result)


def test_hidden_addresses(tmp_path: Path) -> None:
    """A call whose distance the kernel hides has no name."""
    line = Line(0, "p.c", 11, 1, "helper();", [Insn(CALL, imm=0)])
    program = Program(42, "main_prog", [Function("main_prog", MAIN, mov(0x111) + RET, [line])])
    result = annotate(tmp_path, recording(program), "--stdio", "--bpf-xlated")
    check_order(result, ["helper();", "(85) call", "$0x111"])
    assert "bpf_call_base" not in result.out and "bpf_helper" not in result.out, str(result)


def test_crafted_instructions(tmp_path: Path) -> None:
    """Half an instruction at the end, names of no function, lines in any order."""
    lines = [Line(0, "p.c", 11, 1, "a();", [Insn(CALL, src=PSEUDO_CALL, off=9, imm=-1),
                                           Insn(CALL, imm=HELPER - CALL_BASE + 1)]),
             Line(5, "p.c", 12, 1, "b();", [Insn(0xff, 15, 15, -1, -1), Insn(LD_IMM64)])]
    program = Program(42, "main_prog", [
        Function("main_prog", MAIN, mov(0x111) + NOP + RET, lines)])
    result = annotate(tmp_path, recording(program), "--stdio", "--bpf-xlated")
    check_order(result, ["call pc+9", f"call unknown#{HELPER - CALL_BASE + 1}", "3: (18) cut off"])
    assert "bpf_helper" not in result.out, str(result)

    info = pd.program_arrays(program)["line_info"]
    swapped = replace(program, blobs={"line_info": info[16:] + info[:16]})
    result = annotate(tmp_path, recording(swapped), "--stdio", "--bpf-xlated")
    assert sorted(set(xlated_in(result))) == sorted(xlated_in(result)), str(result)


# -- what the verifier adds, and what has no line -----------------------------

def test_hidden_function(tmp_path: Path) -> None:
    """Instructions of a function that the verifier added are not those of the last line."""
    line = Line(0, "p.c", 11, 1, "return 0;", [Insn(MOV_IMM, 0), Insn(EXIT), Insn(MOV_REG),
                                               Insn(EXIT)])
    for hidden, shown in ((1, [0, 1]), (0, [0, 1, 2, 3])):
        program = Program(42, "main_prog", [Function("main_prog", MAIN, mov(0x111) + RET, [line])],
                          fields={"nr_hidden_funcs": hidden})
        result = annotate(tmp_path, recording(program), "--stdio", "--bpf-xlated")
        assert xlated_in(result) == shown, str(result)


def test_line_zero(tmp_path: Path) -> None:
    """Instructions of no source line are below the line before them."""
    lines = [Line(0, "p.c", 11, 1, "a();", [Insn(MOV_IMM, 0, imm=1)]),
             Line(5, "p.c", 0, 0, "", [Insn(MOV_IMM, 0, imm=2)]),
             Line(10, "p.c", 11, 1, "a();", [Insn(MOV_IMM, 0, imm=3), Insn(EXIT)])]
    program = Program(42, "main_prog", [
        Function("main_prog", MAIN, mov(0x111) + mov(0x112) + mov(0x113) + RET, lines)])
    result = annotate(tmp_path, recording(program), "--stdio", "--bpf-xlated")
    check_order(result, ["a();", "0: (b7)", "$0x111", "1: (b7)", "$0x112", "2: (b7)", "3: (95)",
                         "$0x113"])
    assert result.out.count("a();") == 1, str(result)


def test_no_btf(tmp_path: Path) -> None:
    """A program whose BTF is damaged has its instructions, if no source."""
    result = annotate(tmp_path, recording(replace(PROGRAM, btf=b"\0" * 24)), "--stdio",
                      "--bpf-xlated")
    assert len(xlated_in(result)) == 9 and "int x" not in result.out, str(result)


def test_other_code_has_no_note(tmp_path: Path) -> None:
    """A trampoline has no BPF instructions to be missed."""
    pd.recording([], [Sample(MAIN)], before=[
        pd.ksymbol("bpf_trampoline_1", MAIN, 6),
        pd.text_poke(MAIN, b"", mov(0x111) + RET)]).write(tmp_path / "perf.data")
    result = run_perf(tmp_path, ["annotate", "--stdio", "--bpf-xlated", "-i", "perf.data",
                                 "-s", "bpf_trampoline_1"])
    assert result.status == 0 and "$0x111" in result.out, str(result)
    assert NOT_RECORDED not in result.out, str(result)

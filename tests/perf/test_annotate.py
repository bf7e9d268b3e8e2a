# SPDX-License-Identifier: GPL-2.0
"""What perf shows of a BPF program's code and source, from a perf.data alone.

The program has three functions, the main one at the highest address, so that
neither the order of addresses nor the start of the code leads to the right bytes.
Each instruction `mov $N, %eax` is in one place only. The same is asked of LLVM
and of capstone; objdump cannot read BPF code, since it is in no file.
"""
from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Optional, Sequence

import pytest

import perfdata as pd
from perfdata import Branch, Function, Line, PerfData, Program, Sample
from subject import Result, run_perf
from x86 import NOP, RET, TEST_EAX, call, je, jmp, mov

MAIN, SUB_A, SUB_B = 0xffffffffc0003000, 0xffffffffc0001000, 0xffffffffc0002000
TRAMPOLINE = 0xffffffffc0010000
HELPER = 0xffffffffc0020000
UNKNOWN = 0xffffffffc0900000     # no text is known there
SUB_A_END = 20      # offset in sub_a of its last line, which its jump goes to

DISASSEMBLERS = ("llvm", "capstone")
MODES = ("--stdio", "--stdio2")


def program() -> Program:
    """main_prog calls sub_a, a helper and, by way of sub_a, sub_b."""
    main = (mov(0x1111) + call(MAIN + 5, SUB_A) + call(MAIN + 10, HELPER)
            + mov(0x1112) + RET)
    sub_a = (mov(0x2222) + TEST_EAX + je(11) + mov(0x2223) + call(SUB_A + 14, SUB_B)
             + NOP + mov(0x2224) + RET)
    sub_b = mov(0x3333) + NOP + mov(0x3334) + RET
    return Program(42, "main_prog", [
        Function("main_prog", MAIN, main, [
            Line(0, "src/prog.c", 101, 6, "\tint x = 0x1111;"),
            Line(5, "src/prog.c", 102, 9, "\tx += sub_a(x);"),
            Line(15, "src/prog.c", 104, 2, "\treturn 0x1112;")]),
        Function("sub_a", SUB_A, sub_a, [
            Line(0, "src/prog.c", 201, 6, "\tint a = 0x2222;"),
            Line(9, "src/inline.h", 33, 3, "\t\ta = 0x2223 + sub_b(a);"),
            Line(SUB_A_END, "src/prog.c", 204, 2, "\treturn 0x2224;")]),
        Function("sub_b", SUB_B, sub_b, [
            Line(0, "src/prog.c", 301, 6, "\tint b = 0x3333;"),
            Line(6, "src/prog.c", 303, 2, "\treturn 0x3334;")]),
    ])


@dataclass
class Expected:
    """What is true of one function: its own instructions, and where its samples are."""
    function: str
    movs: Sequence[int]
    overhead: str               # percent of all samples
    hot: str                    # a piece of the instruction that all samples are at


EXPECTED = [
    Expected("main_prog", (0x1111, 0x1112), "30.00%", "0x1112"),
    Expected("sub_a", (0x2222, 0x2223, 0x2224), "50.00%", "0x2223"),
    Expected("sub_b", (0x3333, 0x3334), "20.00%", "0x3334"),
]
SAMPLES = [Sample(MAIN + 15)] * 3 + [Sample(SUB_A + 9)] * 5 + [Sample(SUB_B + 6)] * 2


def symbol(function: str) -> str:
    """Return the kernel's name of a function of program()."""
    names = [f.name for f in program().functions]
    return program().symbol(names.index(function))


def recording() -> PerfData:
    """The program and a helper's text, sampled in each function."""
    return pd.recording([program()], SAMPLES, before=[
        pd.ksymbol("bpf_helper_of_tests", HELPER, 64, ksym_type=pd.KSYMBOL_OOL)])


def config(disassembler: str) -> str:
    """Return a perfconfig that allows one disassembler only, and source in --stdio2."""
    return f"[annotate]\n\tdisassemblers = {disassembler}\n\thide_src_code = false\n"


def perf(work: Path, file: PerfData, *args: str, disassembler: str = "llvm") -> Result:
    """Run perf on the file; anything but success fails the test."""
    file.write(work / "perf.data")
    result = run_perf(work, [*args, "-i", "perf.data"], config(disassembler))
    assert result.status == 0 and not result.timed_out, str(result)
    return result


def annotate(work: Path, function: str, *args: str, disassembler: str = "llvm",
             file: Optional[PerfData] = None) -> Result:
    """Annotate one function of the recording."""
    return perf(work, file or recording(), "annotate", *args, "-s", symbol(function),
                disassembler=disassembler)


def movs_in(text: str) -> list[int]:
    """Return the N of each `mov $N, %eax`, in order."""
    return [int(n, 16) for n in re.findall(r"\bmovl?\s+\$(0x[0-9a-f]+),\s*%eax", text)]


def line_with(result: Result, *pieces: str) -> str:
    """Return the one line that has all the pieces."""
    lines = [ln for ln in result.out.splitlines() if all(p in ln for p in pieces)]
    assert len(lines) == 1, f"{len(lines)} lines with {pieces}:\n{result}"
    return lines[0]


def by_function() -> list[object]:
    """EXPECTED for parametrize; the main function's bytes come first: base has them."""
    return [pytest.param(e, id=e.function,
                         marks=[pytest.mark.both] if e.function == "main_prog" else [])
            for e in EXPECTED]


# -- which bytes --------------------------------------------------------------

@pytest.mark.both
def test_report_names_every_function(tmp_path: Path) -> None:
    """Each function has its own samples under its own name."""
    result = perf(tmp_path, recording(), "report", "--stdio", "--sort", "sym")
    for expected in EXPECTED:
        assert expected.overhead in line_with(result, symbol(expected.function))


@pytest.mark.parametrize("disassembler", DISASSEMBLERS)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("expected", by_function())
def test_annotate_shows_its_own_code(expected: Expected, mode: str, disassembler: str,
                                     tmp_path: Path) -> None:
    """All the function's instructions, no other function's, percentages where they belong."""
    result = annotate(tmp_path, expected.function, mode, disassembler=disassembler)
    assert movs_in(result.out) == list(expected.movs), str(result)
    assert re.search(r"\bret", result.out), f"not to the end:\n{result}"
    assert "100.00" in line_with(result, f"${expected.hot},"), str(result)


@pytest.mark.parametrize("expected", by_function())
def test_script_prints_the_sampled_instruction(expected: Expected, tmp_path: Path) -> None:
    """`script -F +insn` prints the bytes at the sample's address."""
    result = perf(tmp_path, recording(), "script", "-F", "ip,sym,insn")
    value = int(expected.hot, 16).to_bytes(4, "little").hex(" ")
    lines = [ln for ln in result.out.splitlines() if symbol(expected.function) in ln]
    assert lines and all(f"insn: b8 {value}" in ln for ln in lines), str(result)


@pytest.mark.parametrize("expected", by_function())
def test_script_disassembles_the_sampled_instruction(expected: Expected,
                                                     tmp_path: Path) -> None:
    """`script -F +disasm` decodes the bytes at the sample's address."""
    result = perf(tmp_path, recording(), "script", "-F", "ip,sym,disasm")
    lines = [ln for ln in result.out.splitlines() if symbol(expected.function) in ln]
    assert lines and all(movs_in(ln) == [int(expected.hot, 16)] for ln in lines), str(result)


def test_brstackinsn_follows_branches_between_functions(tmp_path: Path) -> None:
    """`script -F +brstackinsn` prints each function's bytes between two branches."""
    end = SUB_B + len(program().functions[2].code) - 1
    sample = Sample(SUB_A + 19, branches=[Branch(end, SUB_A + 19), Branch(SUB_A + 14, SUB_B),
                                          Branch(MAIN + 5, SUB_A)])
    file = pd.recording([program()], [sample],
                        sample_type=pd.SAMPLE_DEFAULT | pd.SAMPLE_BRANCH_STACK)
    result = perf(tmp_path, file, "script", "-F", "ip,brstackinsn")
    bytes_of = [value.to_bytes(4, "little").hex(" ") for value in
                (0x2222, 0x2223, 0x3333, 0x3334)]
    found = re.findall(r"\bb8 ((?:[0-9a-f]{2} ){3}[0-9a-f]{2})", result.out)
    assert found[:4] == bytes_of, str(result)


@pytest.mark.parametrize("disassembler", DISASSEMBLERS)
def test_a_program_in_the_place_of_another(disassembler: str, tmp_path: Path) -> None:
    """After an unload the same address is another program's: each shows its own code."""
    first = Program(1, "first", [Function("first", SUB_A, mov(0xaaaa) + RET)], tag=b"1" * 8)
    second = Program(2, "second", [
        Function("second", MAIN, mov(0xbbbb) + RET),
        Function("late", SUB_A, mov(0xcccc) + RET)], tag=b"2" * 8)
    file = pd.recording([first], [Sample(SUB_A)])
    file.records = [*file.records,
                    pd.bpf_event(1, first.tag, pd.BPF_PROG_UNLOAD),
                    pd.ksymbol(first.symbol(0), SUB_A, 6, pd.KSYMBOL_UNREGISTER),
                    *pd.load_records(second), Sample(MAIN), Sample(SUB_A)]
    file.programs = [first, second]
    for prog, sub_id, value in ((first, 0, 0xaaaa), (second, 0, 0xbbbb), (second, 1, 0xcccc)):
        result = perf(tmp_path, file, "annotate", "--stdio", "-s", prog.symbol(sub_id),
                      disassembler=disassembler)
        assert movs_in(result.out) == [value], str(result)


# -- where branches go --------------------------------------------------------

@pytest.mark.parametrize("disassembler", DISASSEMBLERS)
@pytest.mark.parametrize("caller,target,callee", [
    ("main_prog", SUB_A, "sub_a"), ("sub_a", SUB_B, "sub_b")], ids=["main", "sub"])
@pytest.mark.parametrize("only", [True, False], ids=["one-symbol", "all-symbols"])
def test_calls_name_the_subprogram(only: bool, caller: str, target: int, callee: str,
                                   disassembler: str, tmp_path: Path) -> None:
    """A call shows where it goes, also when the user asked for the caller alone."""
    if only:
        result = annotate(tmp_path, caller, "--stdio", disassembler=disassembler)
    else:
        result = perf(tmp_path, recording(), "annotate", "--stdio", disassembler=disassembler)
    line = line_with(result, "call", f"<{symbol(callee)}>")
    assert f"{target:x}" in line, str(result)


@pytest.mark.parametrize("disassembler", DISASSEMBLERS)
def test_calls_name_kernel_functions(disassembler: str, tmp_path: Path) -> None:
    """A call out of the program has the name of the kernel's symbol there."""
    result = annotate(tmp_path, "main_prog", "--stdio", disassembler=disassembler)
    assert f"{HELPER:x}" in line_with(result, "call", "<bpf_helper_of_tests>")


@pytest.mark.parametrize("disassembler", DISASSEMBLERS)
def test_stdio2_names_targets(disassembler: str, tmp_path: Path) -> None:
    """stdio2 has the same names, and that of the thunk that replaces the return."""
    tail = Program(43, "tail", [Function("tail", MAIN, mov(1) + call(MAIN + 5, SUB_A)
                                         + call(MAIN + 10, SUB_A + 8) + jmp(MAIN + 15, HELPER)),
                                Function("sub", SUB_A, mov(2) + jmp(SUB_A + 5, UNKNOWN))])
    file = pd.recording([tail], [Sample(MAIN), Sample(SUB_A)], before=[
        pd.ksymbol("return_thunk_of_tests", HELPER, 64, ksym_type=pd.KSYMBOL_OOL)])
    result = perf(tmp_path, file, "annotate", "--stdio2", "-s", tail.symbol(0),
                  disassembler=disassembler)
    for target in (tail.symbol(1), tail.symbol(1) + r"\+0x8"):
        assert re.search(rf"call\S*\s+{target}\s*$", result.out, re.M), str(result)
    assert re.search(r"jmp\S*\s+return_thunk_of_tests\s*$", result.out, re.M), str(result)
    result = perf(tmp_path, file, "annotate", "--stdio2", "-s", tail.symbol(1),
                  disassembler=disassembler)
    assert re.search(rf"jmp\S*\s+(0x)?{UNKNOWN:x}\s*$", result.out, re.M), str(result)


@pytest.mark.parametrize("disassembler", DISASSEMBLERS)
def test_jumps_within_a_function_are_absolute(disassembler: str, tmp_path: Path) -> None:
    """A jump's target and the instructions' addresses are of the same kind."""
    result = annotate(tmp_path, "sub_a", "--stdio", disassembler=disassembler)
    assert f"{SUB_A + SUB_A_END:x}" in line_with(result, "je "), str(result)
    assert re.search(rf"\b{SUB_A + SUB_A_END:x}:\s+movl?\s+\$0x2224", result.out), str(result)


@pytest.mark.parametrize("disassembler", DISASSEMBLERS)
def test_jumps_within_a_function_resolve(disassembler: str, tmp_path: Path) -> None:
    """--stdio2 knows the target as a place in the function: an offset and a label."""
    result = annotate(tmp_path, "sub_a", "--stdio2", disassembler=disassembler)
    assert re.search(r"\bje\s+14\b", line_with(result, "je "))
    assert re.search(r"\b14:\s+movl?\s+\$0x2224", result.out), str(result)


# -- source lines -------------------------------------------------------------

def order_of(result: Result, *pieces: str) -> list[int]:
    """Return where each piece first is in the output; the test fails when one is missing."""
    places = [result.out.find(piece) for piece in pieces]
    missing = [piece for piece, place in zip(pieces, places) if place < 0]
    assert not missing, f"without {missing}:\n{result}"
    return places


SOURCES = {
    "main_prog": ("int x = 0x1111;", "$0x1111,", "x += sub_a(x);", "call",
                  "return 0x1112;", "$0x1112,"),
    "sub_a": ("int a = 0x2222;", "$0x2222,", "a = 0x2223 + sub_b(a);", "$0x2223,",
              "return 0x2224;", "$0x2224,"),
    "sub_b": ("int b = 0x3333;", "$0x3333,", "return 0x3334;", "$0x3334,"),
}


@pytest.mark.parametrize("disassembler", DISASSEMBLERS)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("function", sorted(SOURCES))
def test_source_lines_stand_before_their_code(function: str, mode: str, disassembler: str,
                                              tmp_path: Path) -> None:
    """The C source is shown, each line before the first instruction made from it."""
    result = annotate(tmp_path, function, mode, disassembler=disassembler)
    places = order_of(result, *SOURCES[function])
    assert places == sorted(places), str(result)


@pytest.mark.parametrize("disassembler", DISASSEMBLERS)
def test_no_source_on_request(disassembler: str, tmp_path: Path) -> None:
    """--no-source leaves the source out, and all of the code in."""
    result = annotate(tmp_path, "sub_a", "--stdio", "--no-source", disassembler=disassembler)
    assert "int a" not in result.out, str(result)
    assert movs_in(result.out) == [0x2222, 0x2223, 0x2224], str(result)


@pytest.mark.parametrize("disassembler", DISASSEMBLERS)
def test_annotate_l_names_file_and_line(disassembler: str, tmp_path: Path) -> None:
    """`annotate -l` sums the samples by file:line, in a table before the code."""
    result = annotate(tmp_path, "sub_a", "--stdio", "-l", disassembler=disassembler)
    head = result.out.split("Percent |", maxsplit=1)[0]
    assert re.search(r"100\.00\s+\S*inline\.h:33\b", head), str(result)


def test_report_by_source_line(tmp_path: Path) -> None:
    """`report --sort srcline` attributes samples to BPF source lines."""
    result = perf(tmp_path, recording(), "report", "--stdio", "--sort", "srcline")
    for where, overhead in (("prog.c:104", "30.00%"), ("inline.h:33", "50.00%"),
                            ("prog.c:303", "20.00%")):
        assert overhead in line_with(result, where), str(result)


def test_script_srcline(tmp_path: Path) -> None:
    """`script -F +srcline` prints the line of each sample."""
    result = perf(tmp_path, recording(), "script", "-F", "ip,sym,srcline")
    for where, count in (("prog.c:104", 3), ("inline.h:33", 5), ("prog.c:303", 2)):
        assert len(re.findall(rf"\b{re.escape(where)}\b", result.out)) == count, str(result)


def test_callchain_srcline(tmp_path: Path) -> None:
    """Callers in a callchain have the line of the code that they return to."""
    chain = [SUB_A + 19, MAIN + 10]
    file = pd.recording([program()], [Sample(SUB_B + 6, chain=chain)],
                        sample_type=pd.SAMPLE_DEFAULT | pd.SAMPLE_CALLCHAIN)
    result = perf(tmp_path, file, "script", "-F", "ip,sym,srcline")
    places = order_of(result, "prog.c:303", "inline.h:33", "prog.c:102")
    assert places == sorted(places), str(result)


# -- what cannot be shown, and why --------------------------------------------

def trampoline(*more: object) -> PerfData:
    """A sampled trampoline, of which a recording has no program info."""
    records = [pd.mmap_kernel(), pd.comm("workload"),
               pd.ksymbol("bpf_trampoline_123", TRAMPOLINE, 16), *more,
               Sample(TRAMPOLINE + 5)]
    return PerfData([], records)  # type: ignore[arg-type]


def test_trampoline_without_bytes_says_why(tmp_path: Path) -> None:
    """No bytes: the message names the trampoline, the reason and the remedy."""
    result = perf(tmp_path, trampoline(), "annotate", "--stdio")
    assert "to be implemented" not in result.out + result.err, str(result)
    for piece in ("bpf_trampoline_123", "no machine code", "--kcore"):
        assert piece in result.out + result.err, str(result)


@pytest.mark.parametrize("disassembler", DISASSEMBLERS)
def test_trampoline_with_bytes_is_disassembled(disassembler: str, tmp_path: Path) -> None:
    """TEXT_POKE brings the bytes that the kernel wrote."""
    code = mov(0x7777) + mov(0x7778) + RET + NOP * 5
    file = trampoline(pd.text_poke(TRAMPOLINE, b"", code))
    result = perf(tmp_path, file, "annotate", "--stdio", disassembler=disassembler)
    assert movs_in(result.out) == [0x7777, 0x7778], str(result)
    assert "100.00" in line_with(result, "$0x7778,")


def test_no_program_info_says_so(tmp_path: Path) -> None:
    """The info of the sampled program is not in the file: its name, and what to do."""
    file = recording()
    file.features = {pd.FEAT_BPF_PROG_INFO: None, pd.FEAT_BPF_BTF: None}
    result = perf(tmp_path, file, "annotate", "--stdio", "-s", symbol("sub_a"))
    said = result.out + result.err
    assert symbol("sub_a") in said and "program info" in said.lower(), str(result)
    assert "libopcode" not in said and "vmlinux" not in said, str(result)


@pytest.mark.parametrize("disassembler", DISASSEMBLERS)
def test_no_machine_code_says_so(disassembler: str, tmp_path: Path) -> None:
    """The kernel did not give the code (kptr_restrict): the name, the reason, the remedy."""
    blank = Program(42, "main_prog", program().functions, fields={
        "jited_prog_len": 0, "jited_prog_insns": 0})
    file = pd.recording([blank], SAMPLES)
    result = annotate(tmp_path, "sub_a", "--stdio", disassembler=disassembler, file=file)
    said = result.out + result.err
    for piece in (symbol("sub_a"), "no machine code", "kptr_restrict"):
        assert piece in said, str(result)


HIDDEN = ("jited_prog_insns", "jited_ksyms", "jited_func_lens", "jited_line_info")
COUNTS = ("jited_prog_len", "nr_jited_ksyms", "nr_jited_func_lens", "nr_jited_line_info")


def hidden() -> PerfData:
    """What perf record writes where the kernel hides addresses and code from it."""
    bits = sum(pd.array_bit(name) for name in ("func_info", "line_info", "prog_tags"))
    blank = Program(42, "main_prog", program().functions, arrays=bits,
                    fields=dict.fromkeys(HIDDEN + COUNTS, 0))
    return pd.recording([blank], SAMPLES)


def test_hidden_code_says_so(tmp_path: Path) -> None:
    """The info is there, but for code and addresses: what hid them, and the remedy."""
    result = annotate(tmp_path, "sub_a", "--stdio", file=hidden())
    said = result.out + result.err
    for piece in (symbol("sub_a"), "no machine code", "kptr_restrict", "CAP_SYSLOG"):
        assert piece in said, str(result)
    assert "--no-bpf-event" not in said and "unloaded" not in said, str(result)


def test_hidden_program_is_listed(tmp_path: Path) -> None:
    """The header has the names of all functions of a program without addresses."""
    result = perf(tmp_path, hidden(), "report", "--header-only", "-I")
    for function in ("main_prog", "sub_a", "sub_b"):
        assert f"{symbol(function)} addr hidden by the kernel" in result.out, str(result)


def test_info_of_other_programs_only(tmp_path: Path) -> None:
    """perf was allowed to read program info, but not of this program: no advice on privileges."""
    other = Program(43, "other", [Function("other", HELPER + 0x1000, RET * 8)])
    file = recording()
    file.features = {pd.FEAT_BPF_PROG_INFO: pd.feat_prog_info([other]),
                     pd.FEAT_BPF_BTF: pd.feat_btf([other])}
    result = perf(tmp_path, file, "annotate", "--stdio", "-s", symbol("sub_a"))
    said = result.out + result.err
    assert symbol("sub_a") in said and "unloaded before" in said, str(result)
    assert "--no-bpf-event" not in said and "as root" not in said, str(result)


def test_objdump_alone_says_what_is_needed(tmp_path: Path) -> None:
    """Only objdump is allowed, which cannot read BPF code: LLVM and capstone are named."""
    result = annotate(tmp_path, "sub_a", "--stdio", disassembler="objdump")
    said = result.out + result.err
    assert "LLVM" in said and "capstone" in said, str(result)
    assert "libopcode" not in said, str(result)


@pytest.mark.parametrize("args", [("sub_a",), ("-s", "sub_a"), (symbol("sub_a"),)])
def test_names_without_tag(args: Sequence[str], tmp_path: Path) -> None:
    """A BPF function is found by the name in its source, with the samples of report."""
    result = perf(tmp_path, recording(), "annotate", "--stdio", "-n", *args)
    assert movs_in(result.out) == list(EXPECTED[1].movs), str(result)
    assert line_with(result, "$0x2223,").split()[0] == "5", str(result)


def test_one_name_in_two_programs(tmp_path: Path) -> None:
    """If two programs have a function of the name, both are shown, each with its tag."""
    other = Program(43, "main_prog", [Function("main_prog", HELPER + 0x1000, mov(7) + RET)],
                    tag=b"\x99" * 8)
    file = pd.recording([program(), other], [*SAMPLES, Sample(HELPER + 0x1000)])
    result = perf(tmp_path, file, "annotate", "--stdio", "main_prog")
    assert movs_in(result.out) == [*EXPECTED[0].movs, 7], str(result)
    for name in (symbol("main_prog"), other.symbol(0)):
        line_with(result, "Disassembly of", name)


@pytest.mark.parametrize("name,message", [
    ("sub_b", "No sample of perf.data is in sub_b, 8 are elsewhere."),
    (symbol("sub_b"), f"No sample of perf.data is in {symbol('sub_b')}, 8 are elsewhere."),
    ("nothing", "There is no symbol nothing in what perf.data has samples of."),
])
def test_no_samples_or_no_symbol(name: str, message: str, tmp_path: Path) -> None:
    """These are two messages, and neither says that the file is empty."""
    file = pd.recording([program()], SAMPLES[:8])
    result = perf(tmp_path, file, "annotate", "--stdio", name)
    assert message in result.err and "has no samples" not in result.err, str(result)


@pytest.mark.parametrize("disassembler", DISASSEMBLERS)
def test_asm_raw(disassembler: str, tmp_path: Path) -> None:
    """--asm-raw shows the bytes of each instruction, of no other function."""
    result = annotate(tmp_path, "sub_b", "--stdio", "--asm-raw", disassembler=disassembler)
    assert "b8 33 33 00 00 " in line_with(result, "$0x3333,"), str(result)
    assert re.search(r":\s+90 \s+nop", result.out), str(result)
    assert "b8 33 33 00 00 " not in annotate(tmp_path, "sub_b", "--stdio",
                                             disassembler=disassembler).out

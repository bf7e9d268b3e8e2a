# SPDX-License-Identifier: GPL-2.0
"""One BPF program, loaded many times: one function in every sum, unless its code differs.

Every file here has loads of one program, with the same tag and names, at addresses of
their own, and samples in each of them.
"""
import random
import re
from dataclasses import replace
from pathlib import Path
from typing import Sequence, Union

import pytest

import perfdata as pd
from subject import Result, run_perf
from perfdata import Function, Line, PerfData, Program, Record, Sample
from x86 import NOP, RET, call, mov

FIRST = 0xffffffffc1000000
STEP = 0x1000                   # between loads
SUB = 0x800                     # of the subprogram, from the main one
HELPER = 0xffffffffc0020000
HOT = 5                         # offset in hot_sub of the instruction with all samples
KERNEL_FUNC = 0xffffffff81000100


def load(number: int, lines: Sequence[int] = (0, HOT), nops: int = 0) -> Program:
    """Return load number of the program; other lines or nops make its code another."""
    main, sub = FIRST + number * STEP, FIRST + number * STEP + SUB
    return Program(100 + number, "hot_main", [
        Function("hot_main", main, mov(1) + call(main + 5, sub) + RET,
                 [Line(0, "src/hot.c", 11, 2, "\tint x = 1;")]),
        Function("hot_sub", sub, mov(2) + mov(3) + call(sub + 10, HELPER) + NOP * nops + RET,
                 [Line(at, "src/hot.c", 21 + i, 2, f"\tline{i} = {i};")
                  for i, at in enumerate(lines)]),
    ], btf_id=1)


def samples(program: Program, count: int) -> list[Sample]:
    """Return count samples of the hot instruction, with the callers above it."""
    main, sub = program.functions
    chain = [pd.CONTEXT_KERNEL, sub.at(HOT), main.at(10), KERNEL_FUNC]
    return [Sample(sub.at(HOT), chain=chain)] * count


def recording(loads: Sequence[Program], counts: Sequence[int]) -> PerfData:
    """Return a file in which each program is loaded, sampled, then the next one is."""
    records: list[Union[Record, Sample]] = [pd.mmap_kernel(), pd.comm("workload")]
    for program, count in zip(loads, counts):
        records += [*pd.load_records(program), *samples(program, count)]
    return PerfData(loads, records, pd.SAMPLE_DEFAULT | pd.SAMPLE_CALLCHAIN)


def perf(work: Path, data: PerfData, *args: str, status: int = 0) -> Result:
    """Run perf on the file."""
    data.write(work / "perf.data")
    result = run_perf(work, [*args, "-i", "perf.data"], "[annotate]\n\tdisassemblers = llvm\n")
    assert result.status == status and not result.timed_out, str(result)
    return result


def rows(result: Result) -> list[str]:
    """Return the lines of a report that have a figure."""
    return [ln.strip() for ln in result.out.splitlines() if re.match(r"\s*[0-9.]+%?\s", ln)]


SYMBOL = load(0).symbol(1)
REPORT = ("report", "--stdio", "--no-children", "-g", "none", "-F", "sample,sym")


@pytest.mark.parametrize("number", [20, 200])
@pytest.mark.parametrize("mode", ["--stdio", "--stdio2"])
def test_annotate_adds_up_all_loads(tmp_path: Path, number: int, mode: str) -> None:
    """The samples of annotate are those of report."""
    data = recording([load(i) for i in range(number)], [3] * number)
    assert rows(perf(tmp_path, data, *REPORT)) == [f"{3 * number}  [k] {SYMBOL}"]
    result = perf(tmp_path, data, "annotate", mode, "-n", "-s", SYMBOL)
    hot = [ln for ln in result.out.splitlines() if re.search(r"\$0x3\b", ln)]
    assert len(hot) == 1 and hot[0].split()[0] == str(3 * number), str(result)


def test_one_branch_in_call_chains(tmp_path: Path) -> None:
    """A kernel function that calls 20 loads has one callee."""
    data = recording([load(i) for i in range(20)], [2] * 20)
    result = perf(tmp_path, data, "report", "--stdio", "--no-children", "-g", "caller,count")
    assert len(re.findall(r"hot_main", result.out)) == 1, str(result)
    children = perf(tmp_path, data, "report", "--stdio", "--children", "-F", "sample,sym",
                    "-g", "none")
    assert sum("hot_main" in ln for ln in rows(children)) == 1, str(children)


def test_chains_by_address(tmp_path: Path) -> None:
    """So has one that asks for addresses."""
    data = recording([load(i) for i in range(20)], [2] * 20)
    result = perf(tmp_path, data, "report", "--stdio", "--no-children",
                  "-g", "caller,address,count")
    assert len(re.findall(r"hot_main", result.out)) == 1, str(result)


def test_many_callees(tmp_path: Path) -> None:
    """Programs of many functions, loaded again and again in any order: each is one callee."""
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    rng = random.Random(seed)
    names = [f"callee_{i}" for i in range(rng.randrange(3, 12))]
    programs = []
    for number in rng.sample(range(40), rng.randrange(4, 12)):
        text = [FIRST + number * 40 * SUB + i * SUB for i in range(len(names) + 1)]
        programs.append(Program(100 + number, "caller_of_many", [
            Function("caller_of_many", text[0], mov(1) * len(names) + RET),
            *(Function(name, at, mov(2) + RET) for name, at in zip(names, text[1:]))], btf_id=1))
    records: list[Union[Record, Sample]] = [pd.mmap_kernel(), pd.comm("workload")]
    for program in programs:
        records += pd.load_records(program)
    chosen = [(program, callee) for program in programs for callee in program.functions[1:]]
    rng.shuffle(chosen)
    for program, callee in chosen:
        records.append(Sample(callee.addr, chain=[
            pd.CONTEXT_KERNEL, callee.addr, program.functions[0].at(5), KERNEL_FUNC]))
    data = PerfData(programs, records, pd.SAMPLE_DEFAULT | pd.SAMPLE_CALLCHAIN)
    for key in ("function", "address"):
        result = perf(tmp_path, data, "report", "--stdio", "--no-children", "-s", "comm",
                      "-g", f"graph,0,caller,{key},count")
        assert len(re.findall(r"_caller_of_many\b", result.out)) == 1, str(result)
        for name in names:
            branches = re.findall(rf"--(\d+)--bpf_prog_[0-9a-f]*_{name}\b", result.out)
            assert branches == [str(len(programs))], f"{name}: {result}"


def test_bpf_id_keeps_loads_apart(tmp_path: Path) -> None:
    """--sort bpf_id: a row for each load."""
    data = recording([load(i) for i in range(3)], [5, 4, 3])
    result = perf(tmp_path, data, "report", "--stdio", "--no-children", "-g", "none",
                  "-F", "sample,bpf_id,sym")
    assert rows(result) == [f"{5 - i} {100 + i:>7}  [k] {SYMBOL}" for i in range(3)], str(result)


@pytest.mark.parametrize("other", [load(1, lines=(0, 10)), load(1, nops=3)],
                         ids=["same-size", "other-size"])
def test_other_code_is_told(tmp_path: Path, other: Program) -> None:
    """A load with other machine code has a row of its own, and annotate says so."""
    data = recording([load(0), other, load(2)], [5, 3, 1])
    assert rows(perf(tmp_path, data, *REPORT)) == [f"6  [k] {SYMBOL}", f"3  [k] {SYMBOL}"]
    result = perf(tmp_path, data, "annotate", "--stdio", "-n", "-s", SYMBOL)
    hot = [ln.split()[0] for ln in result.out.splitlines() if re.search(r"\$0x3\b", ln)]
    assert hot == ["6", "3"], str(result)
    assert "6 of 9 samples: 1 other load has other code" in result.out, str(result)
    assert "3 of 9 samples: 2 other loads have other code" in result.out, str(result)


@pytest.mark.parametrize("known", range(3))
def test_code_of_any_load(tmp_path: Path, known: int) -> None:
    """If only one of the loads has program info, its code is annotated, for all."""
    data = recording([load(i) for i in range(3)], [2, 2, 2])
    data.programs = [data.programs[known]]
    result = perf(tmp_path, data, "annotate", "--stdio", "-n", "-s", SYMBOL)
    hot = [ln for ln in result.out.splitlines() if re.search(r"\$0x3\b", ln)]
    assert len(hot) == 1 and hot[0].split()[0] == "6", str(result)
    assert "line1 = 1;" in result.out, str(result)


def parts(programs: Sequence[Program]) -> list[Record]:
    """Return the info of the programs as a pipe has it, among the other records."""
    return (pd.feature_parts(pd.FEAT_BPF_PROG_INFO, pd.feat_prog_info(programs))
            + pd.feature_parts(pd.FEAT_BPF_BTF, pd.feat_btf(programs)))


def in_this_order(loads: Sequence[Program], counts: Sequence[int],
                  *then: Union[Record, Sample]) -> PerfData:
    """recording() without times and infos: a record is processed when it is read."""
    data = recording(loads, counts)
    return PerfData([], [*data.records, *then], data.sample_type & ~pd.SAMPLE_TIME)


@pytest.mark.parametrize("known", range(3))
def test_code_of_any_load_is_late(tmp_path: Path, known: int) -> None:
    """Also if it comes after the samples, and after the next loads."""
    loads = [load(i) for i in range(3)]
    data = in_this_order(loads, [2, 2, 2], *parts([loads[known]]))
    result = perf(tmp_path, data, "annotate", "--stdio", "-n", "-s", SYMBOL)
    hot = [ln for ln in result.out.splitlines() if re.search(r"\$0x3\b", ln)]
    assert len(hot) == 1 and hot[0].split()[0] == "6", str(result)
    assert "line1 = 1;" in result.out, str(result)


@pytest.mark.parametrize("first", [True, False], ids=["first", "second"])
def test_other_code_is_told_late(tmp_path: Path, first: bool) -> None:
    """Samples before it is known stay where they were counted, those after have a row."""
    loads = [load(0), load(1, lines=(0, 10))]
    infos = parts(loads if first else loads[::-1])
    data = in_this_order(loads, [5, 3], *infos, *samples(loads[0], 1), *samples(loads[1], 2))
    expected = ["9", "2"] if first else ["10", "1"]
    assert [row.split()[0] for row in rows(perf(tmp_path, data, *REPORT))] == expected
    result = perf(tmp_path, data, "annotate", "--stdio", "-n", "-s", SYMBOL)
    hot = [ln.split()[0] for ln in result.out.splitlines() if re.search(r"\$0x3\b", ln)]
    assert hot == expected, str(result)
    assert f"{expected[0]} of 11 samples: 1 other load has other code" in result.out, str(result)


def test_loads_that_are_gone(tmp_path: Path) -> None:
    """Functions that come and go without a sample take no memory."""
    def peak(number: int) -> int:
        programs = [replace(load(0), tag=i.to_bytes(8, "big")) for i in range(number)]
        ends = [pd.ksymbol(SYMBOL, f.addr, len(f.code), pd.KSYMBOL_UNREGISTER)
                for f in load(0).functions]
        records = [r for program in programs for r in (*pd.load_records(program), *ends)]
        data = PerfData([], [*records, *samples(load(0), 1)],
                        pd.SAMPLE_DEFAULT & ~pd.SAMPLE_TIME)
        return perf(tmp_path, data, "report", "--stdio").max_rss

    few, many = peak(30), peak(3000)
    assert many < few + 5e6, f"{few} bytes, {many} bytes with 100 times the functions"


@pytest.mark.both
def test_script_keeps_addresses(tmp_path: Path) -> None:
    """perf script prints the address and the offset of each load."""
    data = recording([load(i) for i in range(3)], [1, 1, 1])
    data.sample_type = pd.SAMPLE_DEFAULT
    result = perf(tmp_path, data, "script", "-F", "ip,sym,symoff")
    assert [ln.split() for ln in result.out.splitlines()] == [
        [f"{load(i).functions[1].at(HOT):x}", f"{SYMBOL}+{HOT:#x}"] for i in range(3)]


@pytest.mark.both
def test_same_tag_other_name(tmp_path: Path) -> None:
    """Functions of one tag with other names are other functions."""
    other = load(1)
    other.functions = [other.functions[0], replace(other.functions[1], name="cold_sub")]
    result = perf(tmp_path, recording([load(0), other], [2, 1]), *REPORT)
    assert rows(result) == [f"2  [k] {SYMBOL}", f"1  [k] {other.symbol(1)}"], str(result)


def test_chains_are_in_the_kernel(tmp_path: Path) -> None:
    """Callers in the kernel are the kernel's, [k], in the chain of a task as well."""
    result = perf(tmp_path, recording([load(0)], [2]), "report", "--stdio", "--children",
                  "-g", "none", "-F", "overhead_children,sym")
    assert len(rows(result)) == 3 and all("[k]" in ln for ln in rows(result)), str(result)

# SPDX-License-Identifier: GPL-2.0
"""Which BPF program is a sample in? Sort keys by program, and what is folded under one."""
import collections
import json
import random
import re
import unicodedata
from dataclasses import replace
from pathlib import Path
from typing import Any, Sequence, Union

import pytest

import perfdata as pd
from perfdata import Function, Line, PerfData, Program, Record, Sample
from subject import Result, run_perf, subject_name
from x86 import RET, call, mov

FIRST = 0xffffffffc1000000
STEP = 0x1000                           # between pieces of text
KERNEL_FUNC = 0xffffffff81000100
XDP, TRACING = 6, 26                    # enum bpf_prog_type
IN_KERNEL = 1 << 31                     # in the key of a trampoline


def program(number: int, name: str, kind: int, tag: bytes = b"",
            functions: Sequence[str] = ()) -> Program:
    """A program of a type, with more functions."""
    base = FIRST + number * 16 * STEP
    texts = [Function(text, base + i * STEP, mov(i + 1) + mov(2) + RET,
                      [Line(0, "src/prog.c", 10 * i + 1, 2, f"\treturn {i};")])
             for i, text in enumerate((name, *functions))]
    return Program(number, name, texts, tag or bytes([number]) * 8, fields={"type": kind})


def image(name: str, number: int) -> tuple[Record, int]:
    """The record of a trampoline or another image, and its address."""
    addr = FIRST + (4096 + number) * STEP
    return pd.ksymbol(name, addr, 64), addr


def trampoline(number: int) -> tuple[Record, int]:
    """That of a function of vmlinux."""
    return image(f"bpf_trampoline_{IN_KERNEL | 1 << 32 | number}", number)


def sampled(programs: Sequence[Program], images: Sequence[tuple[Record, int]],
            counts: dict[int, int]) -> PerfData:
    """A file with so many samples at each address."""
    records: list[Union[Record, Sample]] = [record for record, _ in images]
    return pd.recording(programs, [Sample(addr) for addr, n in counts.items() for _ in range(n)],
                        before=records)  # type: ignore[arg-type]


def perf(work: Path, *args: str) -> Result:
    """Run perf in a directory."""
    result = run_perf(work, [*args])
    assert result.status == 0 and not result.timed_out, str(result)
    return result


def rows(result: Result) -> list[list[str]]:
    """The words of the lines of a report that begin with a figure."""
    return [line.split() for line in result.out.splitlines()
            if re.match(r"\s*[0-9.]+%?\s", line)]


def report(work: Path, data: PerfData, keys: str) -> list[list[str]]:
    """The rows of perf report, by samples and these keys."""
    data.write(work / "perf.data")
    return rows(perf(work, "report", "-i", "perf.data", "--stdio", "-F", f"sample,{keys}"))


TRACER = program(11, "a_tracer_with_a_long_name", TRACING, functions=("sub", "callback"))
FILTER = program(12, "filter", XDP)


TRAMPOLINE = f"bpf_trampoline_{IN_KERNEL | 1 << 32}"


def recording() -> PerfData:
    """A program with everything that is folded under it, another one, and other code."""
    between = trampoline(0)
    dispatcher = image("bpf_dispatcher_xdp", 1)
    lost = image("bpf_prog_1212121212121212_lost", 2)
    return sampled([TRACER, FILTER], [between, dispatcher, lost], {
        TRACER.functions[0].addr: 6, TRACER.functions[1].addr: 5, TRACER.functions[2].addr: 3,
        between[1]: 2, FILTER.functions[0].addr: 10, dispatcher[1]: 1, lost[1]: 7, KERNEL_FUNC: 9})


@pytest.mark.parametrize("key, expected", [
    ("bpf_prog", ["14 a_tracer_with_a_long_name", "10 filter", "9 -",
                  "7 bpf_prog_1212121212121212_lost", f"2 {TRAMPOLINE}", "1 bpf_dispatcher_xdp"]),
    ("bpf_id", ["14 11", "12 -", "10 12", "7 ?"]),
    ("bpf_tag", ["14 0b0b0b0b0b0b0b0b", "12 -", "10 0c0c0c0c0c0c0c0c", "7 ?"]),
    ("bpf_type", ["14 tracing", "10 xdp", "9 -", "7 ?", "2 trampoline", "1 dispatcher"]),
])
@pytest.mark.parametrize("late", [False, True])
def test_sort_keys(tmp_path: Path, key: str, expected: list[str], late: bool) -> None:
    """Subprograms and callbacks are one with their program. A trampoline is not: nothing tells
    all of the programs that it serves. The info may come after the samples, as in a pipe."""
    data = recording()
    if late:
        data = PerfData([], [*data.records, *info_parts([TRACER, FILTER])])
    assert report(tmp_path, data, key) == [row.split() for row in expected]


def test_keys_together(tmp_path: Path) -> None:
    """With other keys, a program has a row for each of theirs; also as a hierarchy."""
    got = report(tmp_path, recording(), "bpf_prog,bpf_type,sym")
    assert [row[:3] for row in got if "tracer" in row[1]] == [
        [str(n), "a_tracer_with_a_long_name", "tracing"] for n in (6, 5, 3)], got
    tree = perf(tmp_path, "report", "-i", "perf.data", "--stdio", "--hierarchy",
                "-F", "sample,bpf_prog,sym")
    assert re.search(r"^ +14 +a_tracer_with_a_long_name *$", tree.out, re.M), str(tree)


def test_field_separator(tmp_path: Path) -> None:
    """For scripts."""
    recording().write(tmp_path / "perf.data")
    result = perf(tmp_path, "report", "-i", "perf.data", "--stdio", "-t", ";",
                  "-F", "sample,bpf_prog,bpf_tag")
    fields = [[word.strip() for word in line.split(";")] for line in result.out.splitlines()]
    assert ["14", "a_tracer_with_a_long_name", "0b" * 8] in fields, str(result)


def loaded_again(seed: int) -> tuple[list[Program], PerfData]:
    """Loads of a program and of one with its name, and of a third with its tag and a name that
    is the same in the 15 characters that bpf_prog_info has; sampled in turn."""
    rng = random.Random(seed)
    names = ["again", "again", "a_long_name_that_reads", "a_long_name_that_writes"]
    tags = [bytes([0x55, 1] * 4), bytes([0x55, 2] * 4), b"\x66" * 8, b"\x66" * 8]
    kinds = [rng.randrange(len(names)) for _ in range(20)]
    loads = [replace(program(50 + i, names[kind], XDP, tag=tags[kind], functions=["sub"] * (i % 2)),
                     btf_id=50 + i) for i, kind in enumerate(kinds)]
    counts = {f.addr: rng.randrange(1, 4) for load in loads for f in load.functions}
    return loads, sampled(loads, [], counts)


@pytest.mark.parametrize("late", [False, True])
def test_loads(tmp_path: Path, late: bool) -> None:
    """A program that was loaded several times is one row. What has another tag or name is
    another program, and bpf_id tells the loads apart. The info may come after the samples."""
    seed = random.randrange(1 << 32)
    print("seed", seed)
    loads, data = loaded_again(seed)
    if late:
        data = PerfData([], [*data.records, *info_parts(loads)])
    hits = collections.Counter(r.ip for r in data.records if isinstance(r, Sample))
    expected: collections.Counter[str] = collections.Counter()
    by_id: collections.Counter[str] = collections.Counter()
    for load in loads:
        count = sum(hits[f.addr] for f in load.functions)
        expected[f"{load.name} {load.tag.hex()}"] += count
        by_id[f"{load.name} {load.id}"] += count
    for keys, counts in (("bpf_prog,bpf_tag", expected), ("bpf_prog,bpf_id", by_id)):
        got = report(tmp_path, data, keys)
        assert {" ".join(row[1:]): int(row[0]) for row in got} == counts, got
        assert len(got) == len(counts), got
    rows_of = [row for row in table(tmp_path, data)]
    assert {f"{row[2]} {row[3]}": int(row[5]) for row in rows_of} == collections.Counter(
        f"{load.name} {load.tag.hex()}" for load in loads), rows_of
    assert len(rows_of) == len(expected)


def info_parts(programs: Sequence[Program]) -> list[Record]:
    """The info of programs in a pipe."""
    return [*pd.feature_parts(pd.FEAT_BPF_PROG_INFO, pd.feat_prog_info(programs)),
            *pd.feature_parts(pd.FEAT_BPF_BTF, pd.feat_btf(programs))]


def test_info_after_the_samples(tmp_path: Path) -> None:
    """In a pipe it may come then. A program is one entry all the same."""
    pipe = PerfData([], [*recording().records, *info_parts([TRACER, FILTER])])
    got = report(tmp_path, pipe, "bpf_prog")
    assert got[:2] == [["14", "a_tracer_with_a_long_name"], ["10", "filter"]], got


def test_diff_goes_by_tag(tmp_path: Path) -> None:
    """After a reload a program has another id, and is the same in perf diff. One of the
    same name and other instructions is another."""
    def write(name: str, ids: tuple[int, int], tag: bytes, counts: tuple[int, int]) -> None:
        same = program(ids[0], "same", XDP, tag=b"\x77" * 8)
        changed = program(ids[1], "changed", XDP, tag=tag)
        sampled([same, changed], [], {same.functions[0].addr: counts[0],
                                      changed.functions[0].addr: counts[1]}).write(tmp_path / name)

    write("old", (61, 62), b"\x01" * 8, (3, 1))
    write("new", (71, 72), b"\x02" * 8, (1, 1))
    for keys, tags in (("bpf_prog", ("", "", "")),
                       ("bpf_prog,bpf_tag", ("01" * 8, "02" * 8, "77" * 8))):
        result = perf(tmp_path, "diff", "-s", keys, "old", "new")
        lines = sorted(line.split() for line in result.out.splitlines() if "%" in line)
        first, second, third = [[tag] if tag else [] for tag in tags]
        assert lines == [["+50.00%", "changed", *second], ["25.00%", "changed", *first],
                         ["75.00%", "-25.00%", "same", *third]], str(result)


def test_hostile_names(tmp_path: Path) -> None:
    """A name of control characters, or without an end, is printed without them."""
    bad = Program(81, "x\x1b[31m\n", [Function("f\x1b[31m\n", FIRST, mov(1) + RET)],
                  fields={"type": 9999, "name": b"\x1b" * 16}, btf=b"")
    got = report(tmp_path, sampled([bad], [], {FIRST: 1}), "bpf_prog,bpf_type")
    assert len(got) == 1 and "\x1b" not in " ".join(got[0]) and got[0][-1] == "?", got


def test_script_fields(tmp_path: Path) -> None:
    """The same for each sample in perf script."""
    recording().write(tmp_path / "perf.data")
    result = perf(tmp_path, "script", "-i", "perf.data", "-F", "bpf_prog,bpf_id,bpf_tag,bpf_type")
    expected = [f"{TRACER.name} 11 {'0b' * 8} tracing"] * 14
    expected += ["bpf_prog_1212121212121212_lost ? ? ?"] * 7 + ["- - - -"] * 9
    expected += [f"filter 12 {'0c' * 8} xdp"] * 10 + ["bpf_dispatcher_xdp - - dispatcher"]
    expected += [f"{TRAMPOLINE} - - trampoline"] * 2
    assert sorted(line.strip() for line in result.out.splitlines()) == sorted(expected)


def test_other_images(tmp_path: Path) -> None:
    """A classic filter is BPF text of no program, a thunk is none."""
    at = FIRST + 4096 * STEP
    data = pd.recording([], [Sample(at)] * 2 + [Sample(at + STEP)], before=[
        pd.ksymbol("cbpf_prog_1234", at, 64, ksym_type=pd.KSYMBOL_CBPF),
        pd.ksymbol("its_thunk", at + STEP, 64, ksym_type=pd.KSYMBOL_THUNK)])
    assert report(tmp_path, data, "bpf_prog,bpf_id,bpf_type") == [
        ["2", "cbpf_prog_1234", "-", "classic"], ["1", "-", "-", "-"]]
    assert report(tmp_path, data, "dso,sym") == [
        ["2", "cbpf_prog_1234", "[k]", "cbpf_prog_1234"], ["1", "its_thunk", "[k]", "its_thunk"]]


@pytest.mark.both
def test_shared_object(tmp_path: Path) -> None:
    """That of BPF text is the function's, whatever else is shown and whatever is read."""
    recording().write(tmp_path / "perf.data")
    name = TRACER.symbol(0)
    for keys, shown in (("dso", name), ("dso,sym", f"{name} [k] {name}"),
                        ("sym,dso", f"[k] {name} {name}")):
        got = report(tmp_path, recording(), keys)
        assert f"6 {shown}".split() in got and len(got) == 8, got
    result = perf(tmp_path, "script", "-i", "perf.data", "-F", "ip,sym,dso")
    assert result.out.count(f"{name} ({name})") == 6, str(result)
    result = perf(tmp_path, "report", "-i", "perf.data", "--stdio", "-F", "sample,sym",
                  "--dsos", name)
    assert [row[0] for row in rows(result)] == ["6"], str(result)


@pytest.mark.parametrize("keys", ["sym", "dso,sym", "sym,dso"])
@pytest.mark.parametrize("verbose", [pytest.param(False, marks=pytest.mark.both), True])
def test_many_images(tmp_path: Path, keys: str, verbose: bool) -> None:
    """Each trampoline and each thunk has one row, in whatever order its keys are: they have the
    same offsets in their dsos, and no long name."""
    images = [trampoline(100 + i) for i in range(30)]
    for number in range(30):
        addr = FIRST + (5000 + number) * STEP
        images.append((pd.ksymbol(f"thunk_{number}", addr, 64, ksym_type=pd.KSYMBOL_THUNK), addr))
    counts = {addr: 10 + i for i, (_, addr) in enumerate(images)}
    mixed = [Sample(addr) for turn in range(70) for addr, n in counts.items() if turn < n]
    pd.recording([], mixed, before=[record for record, _ in images]).write(tmp_path / "perf.data")
    got = rows(perf(tmp_path, "report", "-i", "perf.data", "--stdio", "-F", f"sample,{keys}",
                    *["-v"] * verbose))
    assert sorted(int(row[0]) for row in got) == sorted(counts.values()), got


def test_header(tmp_path: Path) -> None:
    """The header tells the type of each program, when it was loaded and how often it ran."""
    ran = replace(FILTER, fields={"type": XDP, "load_time": 5000001234, "run_cnt": 1000,
                                  "run_time_ns": 2500000})
    pd.recording([TRACER, ran], []).write(tmp_path / "perf.data")
    shown = perf(tmp_path, "report", "-i", "perf.data", "--header-only", "-I").out
    assert re.search(r"^# bpf_prog_info 11: type tracing$",
                     shown, re.M), shown
    assert re.search(rf"^# \tsub_prog 1: {TRACER.symbol(1)} addr 0x[0-9a-f]+ size 11$",
                     shown, re.M), shown
    assert re.search(rf"^# bpf_prog_info 12: {FILTER.symbol(0)} addr 0x[0-9a-f]+ size 11 "
                     r"type xdp loaded 5\.000001 s after boot ran 1000 times for 2500000 ns$",
                     shown, re.M), shown


def test_header_without_functions(tmp_path: Path) -> None:
    """A program without any function has no line, and does not spoil that of the next one."""
    none = replace(TRACER, id=9, fields={"nr_prog_tags": 0, "nr_jited_ksyms": 0,
                                         "nr_jited_func_lens": 0})
    pd.recording([none, FILTER], []).write(tmp_path / "perf.data")
    shown = perf(tmp_path, "report", "-i", "perf.data", "--header-only", "-I").out
    assert "bpf_prog_info 9" not in shown, shown
    assert re.search(rf"^# bpf_prog_info 12: {FILTER.symbol(0)} .* type xdp$", shown, re.M), shown


def test_convert_names(tmp_path: Path) -> None:
    """perf data convert --to-json writes JSON whatever a task is called: the kernel cuts names
    to 15 bytes, in the middle of a character if need be."""
    cut = "caf\u00e9_14_bytes\u00e9".encode()[:15]
    data = pd.recording([FILTER], [Sample(KERNEL_FUNC)], before=[pd.comm(cut)])
    data.write(tmp_path / "perf.data")
    perf(tmp_path, "data", "convert", "-i", "perf.data", "--to-json", "out.json")
    raw = (tmp_path / "out.json").read_bytes()
    assert raw.decode("utf-8", "replace").encode() == raw, raw
    out = json.loads(raw)
    assert out["samples"][0]["comm"] == "caf\u00e9_14_bytes\ufffd"


def with_chain() -> tuple[Program, PerfData]:
    """A program whose subprogram is sampled. The caller's address is that behind the call, where
    the next line begins."""
    sub = FIRST + STEP
    prog = Program(7, "main", [
        Function("main", FIRST, mov(1) + call(FIRST + 5, sub) + RET,
                 [Line(0, "src/prog.c", 11, 2, "x = sub();"),
                  Line(10, "src/prog.c", 12, 2, "return x;")]),
        Function("sub", sub, mov(2) + mov(3) + RET,
                 [Line(0, "src/prog.c", 21, 2, "int y;"), Line(5, "src/prog.c", 22, 2, "y = 3;")]),
    ], fields={"type": XDP})
    chain = [FIRST + 10, KERNEL_FUNC]       # the sample itself comes first
    return prog, pd.recording([prog], [Sample(sub + 5, chain=chain)],
                              sample_type=pd.SAMPLE_DEFAULT | pd.SAMPLE_CALLCHAIN)


@pytest.mark.parametrize("chain", [True, False])
def test_convert(tmp_path: Path, chain: bool) -> None:
    """perf data convert --to-json tells the program and the source of each BPF frame."""
    if chain:
        prog, data = with_chain()
    else:
        prog, data = FILTER, recording()
    data.write(tmp_path / "perf.data")
    perf(tmp_path, "data", "convert", "-i", "perf.data", "--to-json", "out.json")
    out = json.loads((tmp_path / "out.json").read_bytes())
    frames = {frame.get("symbol"): frame for sample in out["samples"]
              for frame in sample["callchain"]}
    told = {"name": prog.name, "tag": prog.tag.hex(), "type": "xdp"}
    expected = [22, 11] if chain else [1]
    for number, line in zip([1, 0] if chain else [0], expected):
        frame = frames[prog.symbol(number)]
        assert frame.get("bpf-program") == told, frame
        assert (frame["source-file"], frame["source-line"]) == ("src/prog.c", line), frame
    if not chain:
        assert not {"bpf-program", "source-file"} & frames[TRAMPOLINE].keys()


# -- perf report --bpf-programs

def table(work: Path, data: PerfData, *args: str) -> list[list[str]]:
    """The cells of its rows; fields have no tabulator in them."""
    data.write(work / "perf.data")
    result = perf(work, "report", "-i", "perf.data", "--stdio", "--bpf-programs", "-t", "\t", *args)
    return [[cell.strip() for cell in line.split("\t")] for line in result.out.splitlines()
            if line and not line.startswith("#")]


def as_json(work: Path, data: PerfData, *args: str) -> dict[str, Any]:
    """The first event of its JSON."""
    data.write(work / "perf.data")
    result = perf(work, "report", "-i", "perf.data", "--bpf-programs=json", *args)
    return json.loads(result.out.encode("latin-1"))["events"][0]


def test_table(tmp_path: Path) -> None:
    """A row for each program, with the line that is hottest in all of its functions."""
    got = table(tmp_path, recording())
    line = "prog.c:1  return 0;"
    assert got == [
        ["32.56%", "14", TRACER.name, "0b" * 8, "tracing", "1", "before", "-", line],
        ["23.26%", "10", "filter", "0c" * 8, "xdp", "1", "before", "-", line],
        ["16.28%", "7", "bpf_prog_1212121212121212_lost", "?", "?", "-", "-", "-", "-"],
        ["4.65%", "2", TRAMPOLINE, "-", "trampoline", "-", "-", "-", "-"],
        ["2.33%", "1", "bpf_dispatcher_xdp", "-", "dispatcher", "-", "-", "-", "-"]]
    result = perf(tmp_path, "report", "-i", "perf.data", "--stdio", "--bpf-programs")
    assert "# In BPF code: 79.07%" in result.out
    assert re.search(r"^ +32\.56% +14  a_tracer_with_a_long_name +0b0b", result.out, re.M)


def test_json(tmp_path: Path) -> None:
    """The same as JSON, for scripts: periods are not rounded."""
    event = as_json(tmp_path, recording())
    assert (event["event"], event["samples"], event["period"]) == ("cpu-clock", 43, 43000000)
    first, *_, last = event["programs"]
    assert first == {
        "name": TRACER.name, "type": "tracing", "tag": "0b" * 8, "loads": 1,
        "loaded-ns": None, "ended-ns": None, "run-count": None, "run-time-ns": None,
        "samples": 14, "period": 14000000, "share": pytest.approx(14 / 43, abs=1e-6),
        "hottest-line": {"file": "src/prog.c", "line": 1, "text": "\treturn 0;",
                         "period": 6000000}}
    assert last == {"name": "bpf_dispatcher_xdp", "type": "dispatcher", "samples": 1,
                    "period": 1000000, "share": pytest.approx(1 / 43, abs=1e-6)}


def test_percent_limit(tmp_path: Path) -> None:
    """--percent-limit leaves the same programs out of the table and of JSON."""
    shares = [p["share"] * 100 for p in as_json(tmp_path, recording())["programs"]]
    assert len(shares) == 5
    for limit in (1, 2, 3, 10, 20, 30, 40):
        left = [share for share in shares if share >= limit]
        args = ["--percent-limit", str(limit)]
        assert len(table(tmp_path, recording(), *args)) == len(left)
        programs = as_json(tmp_path, recording(), *args)["programs"]
        assert [p["share"] * 100 for p in programs] == left


@pytest.mark.parametrize("late", [False, True])
def test_self_and_total(tmp_path: Path, late: bool) -> None:
    """With call chains, a sample in what a program called is in its total. A program that is
    several times in a chain counts once there."""
    base = TRACER.functions[0].addr
    chains = [(KERNEL_FUNC, [base + 5, KERNEL_FUNC + 64]), (KERNEL_FUNC, [KERNEL_FUNC + 64]),
              (TRACER.functions[1].addr, [base + 5, KERNEL_FUNC]),
              (KERNEL_FUNC, [TRACER.functions[2].addr + 5, TRACER.functions[1].addr + 5, base + 5,
                             FILTER.functions[0].addr + 5])]
    samples = [Sample(ip, chain=chain) for ip, chain in chains]
    data = pd.recording([TRACER, FILTER], samples,
                        sample_type=pd.SAMPLE_DEFAULT | pd.SAMPLE_CALLCHAIN)
    if late:
        first = len(data.records) - len(samples)
        data = replace(data, programs=[], records=[
            *data.records[:first], *info_parts([TRACER, FILTER]), *data.records[first:]])
    assert [row[:4] for row in table(tmp_path, data)] == [
        ["75.00%", "25.00%", "1", TRACER.name], ["25.00%", "0.00%", "0", "filter"]]
    event = as_json(tmp_path, data)
    assert event["samples"] == 4
    assert [[p[key] for key in ("name", "samples", "period", "total-period", "total-share")]
            for p in event["programs"]] == [
        [TRACER.name, 1, 1000000, 3000000, 0.75], ["filter", 0, 0, 1000000, 0.25]]
    assert [row[1:4] for row in table(tmp_path, data, "--no-children")] == [
        ["1", TRACER.name, TRACER.tag.hex()]]


def test_counters(tmp_path: Path) -> None:
    """A column for each event of a group, and instructions per cycle if it counts both."""
    def counted(prog: Program, cycles: int, insns: int) -> list[Sample]:
        ip = prog.functions[0].addr
        return [Sample(ip, period=cycles), Sample(ip, period=insns, event=1)]

    samples = [*counted(TRACER, 3000, 6000), *counted(FILTER, 1000, 500)]
    data = pd.recording([TRACER, FILTER], samples,
                        sample_type=pd.SAMPLE_DEFAULT | pd.SAMPLE_IDENTIFIER, ids=[101, 102],
                        events=[(pd.HW_CYCLES, pd.TYPE_HARDWARE),
                                (pd.HW_INSTRUCTIONS, pd.TYPE_HARDWARE)])
    assert table(tmp_path, data)[0][:3] == ["75.00%", "1", TRACER.name]
    data = replace(data, features={pd.FEAT_GROUP_DESC: pd.feat_group(0, 2)})
    got = [" ".join([*row[:3], row[-2]]) for row in table(tmp_path, data)]
    assert got == [f"75.00% 92.31% 1 1 {TRACER.name} 2.00", "25.00% 7.69% 1 1 filter 0.50"], got
    events = json.loads(perf(tmp_path, "report", "-i", "perf.data", "--bpf-programs=json").out)
    assert [(event["event"], [p["period"] for p in event["programs"]])
            for event in events["events"]] == [
        ("cycles", [3000, 1000]), ("instructions", [6000, 500])]


def test_keys_of_the_table(tmp_path: Path) -> None:
    """--bpf-programs shows BPF code only, by other keys too, and its columns are sort keys."""
    recording().write(tmp_path / "perf.data")
    result = perf(tmp_path, "report", "-i", "perf.data", "--stdio", "--bpf-programs",
                  "-F", "sample,comm,bpf_prog")
    assert [" ".join(row) for row in rows(result)] == [
        f"{n} workload {name}" for n, name in (
            (14, TRACER.name), (10, "filter"), (7, "bpf_prog_1212121212121212_lost"),
            (2, TRAMPOLINE), (1, "bpf_dispatcher_xdp"))]
    got = report(tmp_path, recording(), "bpf_prog,bpf_loads")
    assert got[:3] == [["14", TRACER.name, "1"], ["10", "filter", "1"], ["9", "-", "-"]], got


def test_hottest_line_is_of_all_its_places(tmp_path: Path) -> None:
    """Three places of one line, each with fewer samples than another line has."""
    lines = [Line(0, "a.c", 7, 1, "seven"), Line(5, "a.c", 8, 1, "eight"),
             Line(10, "a.c", 7, 1, "seven")]
    code = mov(1) + mov(2) + mov(3) + RET
    base = FIRST
    prog = Program(1, "main", [Function("main", base, code, lines),
                               Function("sub", base + STEP, code, lines[:1])])
    data = sampled([prog], [], {base: 2, base + 5: 4, base + 10: 2, base + STEP: 1})
    event = as_json(tmp_path, data)
    assert event["programs"][0]["hottest-line"] == {
        "file": "a.c", "line": 7, "text": "seven", "period": 5000000}


def test_times_and_runs(tmp_path: Path) -> None:
    """When a program was loaded and ended, in the clock of the samples, and its statistics."""
    early = program(91, "early", XDP)
    late = replace(program(92, "late", XDP), fields={
        "type": XDP, "load_time": 5, "run_cnt": 1000, "run_time_ns": 2500000})
    end = pd.bpf_event(92, late.tag, pd.BPF_PROG_UNLOAD)
    first: list[Union[Record, Sample]] = [
        pd.mmap_kernel(), pd.comm("workload"), *pd.load_records(early),
        Sample(early.functions[0].addr)]
    data = PerfData([early, late], [*first, *pd.load_records(late),
                                    Sample(late.functions[0].addr), end,
                                    Sample(early.functions[0].addr)])
    start = 1000000000 + 1000 * len(first)      # of the first sample, in nanoseconds
    loaded, ended = start + 2000, start + 4000
    assert table(tmp_path, data) == [
        ["66.67%", "2", "early", "5b" * 8, "xdp", "1", "before", "-", "-", "-",
         "prog.c:1  return 0;"],
        ["33.33%", "1", "late", "5c" * 8, "xdp", "1", f"1.{loaded // 1000 % 1000000:06}",
         f"1.{ended // 1000 % 1000000:06}", "1000", "2.500", "prog.c:1  return 0;"]]
    shown = as_json(tmp_path, data)["programs"][1]
    assert (shown["loaded-ns"], shown["ended-ns"], shown["run-count"],
            shown["run-time-ns"]) == (loaded, ended, 1000, 2500000)


def test_filters(tmp_path: Path) -> None:
    """Options that select samples do so here too, and shares are those of --percentage: of all
    samples, or of all that are left, in BPF code or not."""
    data = recording()
    data.records = [replace(r, tid=1001) if isinstance(r, Sample) and r.ip == KERNEL_FUNC and i % 3
                    else r for i, r in enumerate(data.records)]
    others = sum(r.tid == 1001 for r in data.records if isinstance(r, Sample))
    assert as_json(tmp_path, data, "--tid", "1001")["programs"] == []
    for percentage, samples in (("absolute", 43), ("relative", 43 - others)):
        args = ["--tid", "1000", "--percentage", percentage]
        event = as_json(tmp_path, data, *args)
        assert (event["samples"], event["period"]) == (samples, samples * 1000000)
        assert event["programs"][0]["samples"] == 14
        assert event["programs"][0]["share"] == pytest.approx(14 / samples, abs=1e-6)
        assert table(tmp_path, data, *args)[0][0] == f"{1400 / samples:.2f}%"
        shown = perf(tmp_path, "report", "-i", "perf.data", "--stdio", "--bpf-programs", *args)
        assert f"# In BPF code: {3400 / samples:.2f}%" in shown.out, str(shown)


def test_runs_that_are_not_known(tmp_path: Path) -> None:
    """perf record cannot read how often a program ran that has ended: no sum of the others."""
    loads = [replace(program(50 + i, "again", XDP, tag=b"\x55" * 8),
                     fields={"type": XDP, "run_cnt": 0 if i == 1 else 70, "run_time_ns": 1000000})
             for i in range(3)]
    counts = {load.functions[0].addr: 1 for load in loads}
    for programs, runs in ((loads, None), (loads[::2], 140)):
        first, = as_json(tmp_path, sampled(programs, [], counts))["programs"]
        assert first["run-count"] == runs, first
    assert table(tmp_path, sampled(loads[::2], [], counts))[0][8:10] == ["140", "2.000"]
    assert report(tmp_path, sampled(loads, [], counts), "bpf_prog,bpf_runs") == [
        ["3", "again", "-"]]


@pytest.mark.parametrize("key", ["bpf_prog", "bpf_loads", "bpf_runs", "bpf_run_time"])
def test_order_by_key(tmp_path: Path, key: str) -> None:
    """As a first field, the name sorts by name, and a number by its value, not by its digits."""
    rng = random.Random(3)
    programs = [replace(program(60 + i, f"p{i:02}", XDP, tag=rng.randbytes(8)),
                        fields={"type": XDP, "run_cnt": n, "run_time_ns": n * 1000000})
                for i, n in enumerate(rng.sample(range(1, 2000), 12))]
    data = sampled(programs, [], {p.functions[0].addr: 1 for p in programs})
    data.write(tmp_path / "perf.data")
    fields = [key] if key == "bpf_prog" else [key, "bpf_prog"]
    result = perf(tmp_path, "report", "-i", "perf.data", "--stdio", "-F", ",".join(fields))
    got = [line.split()[0] for line in result.out.splitlines()
           if line.strip() and not line.startswith("#")]
    assert len(got) == 12, got
    assert got == (sorted(got) if key == "bpf_prog" else
                   sorted(got, key=float, reverse=True)), got


@pytest.mark.both
def test_guests(tmp_path: Path) -> None:
    """Samples in the kernel of a guest: there is no BPF program that perf could know."""
    records: list[Union[Record, Sample]] = [
        replace(pd.mmap_kernel(), misc=pd.MISC_GUEST_KERNEL), pd.comm("workload"),
        Sample(KERNEL_FUNC, misc=pd.MISC_GUEST_KERNEL), Sample(KERNEL_FUNC)]
    PerfData([], records).write(tmp_path / "perf.data")
    result = run_perf(tmp_path, ["kvm", "--host", "--guest", "--guestkallsyms=/dev/null", "report",
                                 "-i", "perf.data", "--stdio", "--sort", "sym"])
    assert result.status == 0, str(result)
    if subject_name() == "series":
        result = run_perf(tmp_path, ["kvm", "--host", "--guest", "--guestkallsyms=/dev/null",
                                     "report", "-i", "perf.data", "--stdio", "--sort",
                                     "bpf_prog,bpf_hot_line"])
        assert result.status == 0, str(result)


def test_without_times(tmp_path: Path) -> None:
    """A recording with --no-timestamp does not tell when a program was loaded and ended."""
    end = pd.bpf_event(FILTER.id, FILTER.tag, pd.BPF_PROG_UNLOAD)
    data = PerfData([FILTER], [pd.mmap_kernel(), pd.comm("workload"), *pd.load_records(FILTER),
                               Sample(FILTER.functions[0].addr), end],
                    pd.SAMPLE_DEFAULT & ~pd.SAMPLE_TIME)
    assert table(tmp_path, data)[0][6:8] == ["-", "-"]
    shown = as_json(tmp_path, data)["programs"][0]
    assert shown["loaded-ns"] is None and shown["ended-ns"] is None


def test_table_from_a_pipe(tmp_path: Path) -> None:
    """The info comes after the samples, and has the lines."""
    data = recording()
    late = PerfData([], [*data.records, *info_parts([TRACER, FILTER])])
    assert table(tmp_path, late) == table(tmp_path, data)


def test_refused(tmp_path: Path) -> None:
    """A format that does not exist, and what shows something else."""
    recording().write(tmp_path / "perf.data")
    for args in (["--bpf-programs=xml"], ["--bpf-programs", "--tasks"],
                 ["--bpf-programs", "--hierarchy"], ["--bpf-programs", "--sort", "comm,bpf_type"],
                 ["--bpf-programs=json", "--sort", "bpf_prog,comm"],
                 ["--bpf-programs=json", "--header"]):
        result = run_perf(tmp_path, ["report", "-i", "perf.data", *args])
        assert result.status != 0 and "--bpf-programs" in result.err, str(result)


def test_hostile_strings(tmp_path: Path) -> None:
    """Names and lines of any bytes: neither the table nor JSON has control characters, and JSON
    is valid UTF-8."""
    seed = random.randrange(1 << 32)
    print("seed", seed)
    rng = random.Random(seed)
    names = [b"caf\xc3\xa9", b"\xff\xfe", b"\xc0\x80", b"\xed\xa0\x80", b"\xe2\x82", b"\x1b[31m",
             b"\xc2\x9b31m\x7f"]
    bytes_of = [1, 9, 10, 27, 31, 0x41, 0x7f, 0x80, 0x9b, 0x9f, 0xa0, 0xc2, 0xc3, 0xe2, 0xf0, 0xff]
    names += [bytes(rng.choices(bytes_of, k=rng.randrange(1, 12))) for _ in range(40)]
    progs = [Program(100 + i, "n", [Function("f", FIRST + i * STEP, mov(1) + RET,
                                             [Line(0, name, 1, 1, b"\t" + name + b'"\\')])],
                     bytes([i]) * 8, fields={"name": name.ljust(16, b"\0")}, btf_id=100 + i)
             for i, name in enumerate(names)]
    data = sampled(progs, [], {p.functions[0].addr: 99 - i for i, p in enumerate(progs)})
    shown = [p["hottest-line"]["text"] for p in as_json(tmp_path, data)["programs"]]
    assert shown[0] == '\tcaf\u00e9"\\' and all("\ufffd" in text for text in shown[1:5]), shown
    assert [text.encode() for text, name in zip(shown, names)
            if "\ufffd" not in text] == [b"\t" + name + b'"\\' for name in names if is_utf8(name)]
    for args in (["--bpf-programs"], ["--bpf-programs", "-t", ";"], ["--bpf-programs=json"]):
        result = perf(tmp_path, "report", "-i", "perf.data", "--stdio", *args)
        printed = result.out.encode("latin-1").decode(errors="replace")
        controls = {c for c in printed if unicodedata.category(c) == "Cc"} - {"\n", "\t"}
        assert not controls, (args, controls)


def is_utf8(raw: bytes) -> bool:
    """Can it be decoded?"""
    return raw.decode(errors="replace").encode() == raw

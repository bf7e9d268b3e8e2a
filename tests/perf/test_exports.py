# SPDX-License-Identifier: GPL-2.0
"""BPF frames in what perf writes for other viewers: names, programs, source lines.

Read by the viewers' own code where it can be had, see viewers.py.
"""
from __future__ import annotations

import importlib.util
import json
import os
import random
import re
import struct
from dataclasses import replace
from pathlib import Path
from typing import Any, Callable, Mapping, Optional
from unittest import mock

import pytest

import perfdata as pd
from exports import (EXPORTS, PERF_DIR, SCRIPTS, Frame, Pprof, gecko, gecko_frames, perf, pprof,
                     script)
from perfdata import Function, Line, Program, Sample
from subject import perf_binary, run_perf
from carriers import mmap2
from viewers import FirefoxProfiler, pprof_top, read_pprof, read_speedscope
from x86 import RET, mov

CODE = mov(1) + mov(2) + mov(3) + RET
KERNEL_IP, TRAMPOLINE_IP, USER_IP = 0xffffffff81000100, 0xffffffffc0300010, 0x401000
CONTEXT_USER = (1 << 64) - 512
CHAINS = pd.SAMPLE_DEFAULT | pd.SAMPLE_CALLCHAIN


def program(number: int, addr: int) -> Program:
    """A program: meter() calls hash(), into which a function of a header is inlined."""
    return Program(number, "meter", [
        Function("meter", addr, CODE, [Line(0, "src/flow.c", 30, 1, "int meter(void)"),
                                       Line(5, "src/flow.c", 33, 2, "\thash();"),
                                       Line(10, "src/flow.c", 34, 2, "\treturn 0;")]),
        Function("hash", addr + 0x100, CODE, [Line(0, "src/flow.c", 20, 1, "int hash(void)"),
                                              Line(5, "src/flow.c", 22, 2, "\tx ^= y;"),
                                              Line(10, "src/mix.h", 7, 2, "\treturn x;")]),
    ], tag=bytes([0x11 * number]) * 8)


PROGRAMS = [program(1, 0xffffffffc0100000), program(2, 0xffffffffc0200000)]
METER, HASH = ([[p.functions[i].addr for p in PROGRAMS] for i in (0, 1)])
# As the symbols have them: each function of a program has its own.
TAGS = {(name, p.id): p.tag_of(number).hex() for p in PROGRAMS
        for number, name in enumerate(("meter", "hash"))}
# Each program three times at hash()'s line 22, the first also in mix.h; and the kernel alone.
IPS = [HASH[0] + 5, HASH[1] + 5] * 3 + [HASH[0] + 10]


@pytest.fixture(name="data")
def fixture_data(tmp_path: Path) -> Path:
    """A recording: from user space through the kernel and a trampoline into a program.

    meter()'s call returns to its line 34, and is in line 33.
    """
    samples = [Sample(ip, chain=(METER[ip > HASH[1]] + 10, TRAMPOLINE_IP, KERNEL_IP,
                                 CONTEXT_USER, USER_IP)) for ip in IPS]
    samples.append(Sample(KERNEL_IP))
    path = tmp_path / "perf.data"
    pd.recording(PROGRAMS, samples,
                 before=[pd.ksymbol("bpf_trampoline_1", TRAMPOLINE_IP - 0x10, 0x100)],
                 sample_type=CHAINS).write(path)
    return path


# -- gecko --------------------------------------------------------------------

def test_gecko_lines(data: Path) -> None:
    """A BPF function has its source file, and the frame its line. A function is one, whichever
    line the sample is in, and no frame is at a line of another file."""
    found = {frame for frame in gecko_frames(gecko(data)) if " [bpf " in frame[0]}
    expected = {(f"{name} [bpf {TAGS[name, p.id]}] (src/flow.c:{first})", "BPF", line)
                for p in PROGRAMS
                for name, first, line in (("hash", 20, 22), ("meter", 30, 33))}
    assert found == expected | {(f"hash [bpf {TAGS['hash', 1]}] (src/flow.c:20)", "BPF", None)}


def columns(*names: str) -> dict[str, int]:
    """The schema of a table."""
    return {name: place for place, name in enumerate(names)}


# What the viewer declares in src/types/gecko-profile.ts and src/types/profile.ts of
# github.com/firefox-devtools/profiler: each table's columns with the types of their cells, null
# allowed or not. Version 24, which perf writes, has "optimizations", which 27 took away, and
# "responsiveness" (docs-developer/CHANGELOG-formats.md, src/profile-logic/gecko-profile-
# versioning.ts); the viewer takes older versions.
NUMBER, NONE = (int, float), (type(None),)
TABLES: dict[str, dict[str, tuple[type, ...]]] = {
    "markers": {"name": NUMBER, "startTime": NUMBER + NONE, "endTime": NUMBER + NONE,
                "phase": NUMBER, "category": NUMBER, "data": (dict,) + NONE},
    "samples": {"stack": NUMBER + NONE, "time": NUMBER, "responsiveness": NUMBER},
    "frameTable": {"location": NUMBER, "relevantForJS": (bool,), "innerWindowID": NUMBER + NONE,
                   "implementation": NUMBER + NONE, "optimizations": NONE, "line": NUMBER + NONE,
                   "column": NUMBER + NONE, "category": NUMBER + NONE,
                   "subcategory": NUMBER + NONE},
    "stackTable": {"prefix": NUMBER + NONE, "frame": NUMBER},
}
THREAD = {"name": (str,), "registerTime": NUMBER, "processType": (str,),
          "unregisterTime": NUMBER + NONE, "tid": (int,), "pid": (int,),
          "stringTable": (list,), **{table: (dict,) for table in TABLES}}
META = {"version": (int,), "startTime": NUMBER, "shutdownTime": NUMBER + NONE,
        "categories": (list,), "markerSchema": (list,), "interval": NUMBER, "stackwalk": (int,),
        "debug": (int,), "gcpoison": (int,), "asyncstack": (int,), "processType": (int,),
        "product": (str,), "presymbolicated": (bool,)}
PROFILE = {"meta": (dict,), "libs": (list,), "threads": (list,), "pausedRanges": (list,),
           "processes": (list,)}
COLORS = {"transparent", "purple", "green", "orange", "yellow", "lightblue", "blue", "brown",
          "magenta", "red", "lightred", "darkgrey", "grey"}


def check_fields(what: str, thing: dict[str, Any],
                 types: Mapping[str, tuple[type, ...]]) -> None:
    """A dictionary has these fields, all of them and no other, of these types."""
    assert set(thing) == set(types), what
    for name, kinds in types.items():
        assert isinstance(thing[name], kinds), f"{what}.{name}: {thing[name]!r}"


def check_thread(thread: dict[str, Any]) -> None:
    """A GeckoThread, with no index out of its table."""
    check_fields("thread", thread, THREAD)
    for table, types in TABLES.items():
        assert thread[table]["schema"] == columns(*types), table
        for row in thread[table]["data"]:
            check_fields(table, dict(zip(types, row)), types)
    strings, frames, stacks = (len(thread["stringTable"]), len(thread["frameTable"]["data"]),
                               len(thread["stackTable"]["data"]))
    assert all(0 <= row[0] < strings for row in thread["frameTable"]["data"])
    assert all(0 <= row[1] < frames for row in thread["stackTable"]["data"])
    # a prefix comes before what it is the prefix of
    assert all(row[0] is None or 0 <= row[0] < place
               for place, row in enumerate(thread["stackTable"]["data"]))
    assert all(0 <= row[0] < stacks for row in thread["samples"]["data"])


def test_gecko_schema(data: Path) -> None:
    """The fields are those of the published types; a frame with a category has a subcategory,
    and a category is grey, for what has none."""
    profile = gecko(data)
    check_fields("profile", profile, PROFILE)
    check_fields("meta", profile["meta"], META)
    categories = profile["meta"]["categories"]
    for category in categories:
        check_fields("category", category, {"name": (str,), "color": (str,),
                                            "subcategories": (list,)})
        assert category["color"] in COLORS and category["subcategories"][0] == "Other"
    assert "grey" in {category["color"] for category in categories}
    for thread in profile["threads"]:
        check_thread(thread)
        for frame in thread["frameTable"]["data"]:
            assert 0 <= frame[8] < len(categories[frame[7]]["subcategories"])


def test_firefox_profiler_lines(data: Path) -> None:
    """The Firefox Profiler counts the samples of BPF functions by source line, those in a header
    at the line where the function begins."""
    gecko(data)
    with FirefoxProfiler(data.parent / "gecko.json") as profiler:
        found = {name: (file, lines) for name, file, lines in profiler.lines()}
    # of the file, whichever function is asked for
    lines = {20: 1, 22: 6, 33: 7}
    assert found == {f"{name} [bpf {tag}]": ("src/flow.c", lines)
                     for (name, _), tag in TAGS.items()}


# -- pprof --------------------------------------------------------------------

def test_pprof_frames(data: Path) -> None:
    """BPF functions have their name, symbol, file, line and first line, and no address: it is
    another one for each load."""
    found = {frame for frames, _, _ in pprof(data).samples() for frame in frames
             if frame.system_name.startswith("bpf_prog_")}
    expected = {Frame(f"{name} [bpf {TAGS[name, p.id]}]", p.symbol(number), file, line, first,
                      "[bpf]", 0)
                for p in PROGRAMS for name, number, file, line, first in (
                    ("meter", 0, "src/flow.c", 33, 30), ("hash", 1, "src/flow.c", 22, 20),
                    ("hash", 1, "src/mix.h", 7, 0)) if p.id == 1 or file != "src/mix.h"}
    assert found == expected


def test_pprof_samples(data: Path) -> None:
    """The sum of a stack's samples, in order, with the program's labels if there is one."""
    profile = pprof(data)
    assert profile.types == [("samples", "count"), ("cpu-clock", "nanoseconds")]
    own = {"comm": "workload", "pid": 1000, "tid": 1000}
    found = {}
    for frames, values, labels in profile.samples():
        assert {key: labels.pop(key) for key in own} == own
        found[tuple(frame.name for frame in frames[:3]), frames[0].line] = values, labels
    for sampled in PROGRAMS:
        names = tuple(f"{name} [bpf {TAGS[name, sampled.id]}]" for name in ("hash", "meter"))
        values, labels = found[(*names, "bpf_trampoline_1"), 22]
        assert values == [3, 3000000]
        assert labels == {"bpf_prog": "meter", "bpf_tag": sampled.tag.hex()}
    assert len(found) == 4
    assert [labels for frames, _, labels in profile.samples() if len(frames) == 1] == [own]


@pytest.mark.parametrize("args", ["-i perf.data --output F", "--output=F -i perf.data",
                                  "-i perf.data -- --output F", "-i perf.data -- -o F",
                                  "-i perf.data --event cpu-clock --output F"])
def test_pprof_command(data: Path, args: str) -> None:
    """perf script report pprof takes its options and those of perf script in any order."""
    with mock.patch.dict(os.environ, PERF_EXEC_PATH=str(PERF_DIR),
                         PATH=f"{perf_binary().parent}:{os.environ['PATH']}"):
        result = run_perf(data.parent, ["script", "report", "pprof", *args.split()])
    assert result.status == 0, str(result)
    assert len(list(Pprof(read_pprof(data.parent / "F")).samples())) == 4


@pytest.mark.parametrize("args, told", [("--event nope --output F", "no samples of nope"),
                                        ("--output", "--output needs"), ("--nope", "`nope'")])
def test_pprof_refuses(data: Path, args: str, told: str) -> None:
    """What it cannot do is an error that says what, and no file."""
    with mock.patch.dict(os.environ, PERF_EXEC_PATH=str(PERF_DIR),
                         PATH=f"{perf_binary().parent}:{os.environ['PATH']}"):
        result = run_perf(data.parent, ["script", "report", "pprof", "-i", "perf.data",
                                        *args.split()])
    assert result.status != 0 and told in result.err + result.out, str(result)
    assert not (data.parent / "F").exists()


def test_google_pprof(data: Path) -> None:
    """pprof itself has the samples of each function and line: in it, and in what it called."""
    script(data, "pprof.py", "--output", "perf.pb.gz")
    file = data.parent / "perf.pb.gz"
    first, second = ((f"hash [bpf {TAGS['hash', p.id]}]", f"meter [bpf {TAGS['meter', p.id]}]")
                     for p in PROGRAMS)
    top = pprof_top(file)
    assert [top[name] for name in (*first, *second)] == [(4, 4), (0, 4), (3, 3), (0, 3)], top
    assert top["bpf_trampoline_1"] == (0, 7), top
    lines = pprof_top(file, options=["-lines"])
    assert lines[f"{first[0]} src/flow.c:22"] == lines[f"{second[0]} src/flow.c:22"] == (3, 3)
    assert lines[f"{first[0]} src/mix.h:7"] == (1, 1), lines
    assert lines[f"{first[1]} src/flow.c:33"] == (0, 4), lines
    only = pprof_top(file, options=[f"-tagfocus=bpf_tag={PROGRAMS[1].tag.hex()}$"])
    assert only[second[0]] == (3, 3) and first[0] not in only, only


def test_two_machines(tmp_path: Path) -> None:
    """A program has another id and other addresses on another machine. It is one row when pprof
    adds up the profiles of both, and when perf compares the recordings."""
    seed = random.randrange(1 << 32)
    print("seed", seed)
    rng, files, counts = random.Random(seed), [], [0] * len(PROGRAMS)
    for name in ("machine1", "machine2"):
        there = [replace(p, id=rng.randrange(1, 1000) * len(PROGRAMS) + place, functions=[
            replace(f, addr=f.addr + 0x1000000 * rng.randrange(1, 8)) for f in p.functions])
            for place, p in enumerate(PROGRAMS)]
        samples = []
        for place, p in enumerate(there):
            number = rng.randrange(1, 9)
            counts[place] += number
            samples += [Sample(p.functions[1].addr + 5,
                               chain=[p.functions[0].addr + 10, KERNEL_IP])] * number
        path = tmp_path / name
        pd.recording(there, samples, sample_type=CHAINS).write(path)
        script(path, "pprof.py", "--output", f"{name}.pb.gz")
        files.append(tmp_path / f"{name}.pb.gz")
    top = pprof_top(*files, options=["-addresses"])
    assert {name: n for name, (n, _) in top.items() if n} == {
        f"hash [bpf {TAGS['hash', p.id]}] src/flow.c:22": n for p, n in zip(PROGRAMS, counts)}
    assert len(top) == 2 * len(PROGRAMS) + 1, top
    shown = run_perf(tmp_path, ["diff", "-s", "bpf_prog,bpf_tag", "machine1", "machine2"]).out
    for program in PROGRAMS:
        assert len(re.findall(program.tag.hex(), shown)) == 1, shown


def test_pprof_is_whole(data: Path) -> None:
    """What pprof checks when it reads a profile: all that is referred to is there. Duration
    and period are set."""
    profile = pprof(data)
    raw = profile.raw
    assert profile.string(0) == "" and len(list(profile.samples())) == len(raw["sample"])
    assert int(raw["durationNanos"]) == 1000 * len(IPS)
    assert int(raw["period"]) == 1000000


def test_no_chain(tmp_path: Path) -> None:
    """Without call chains, pprof and the Firefox Profiler have what was sampled."""
    path = tmp_path / "perf.data"
    pd.recording(PROGRAMS, [Sample(ip) for ip in IPS]).write(path)
    values = {frames[0].line: values[0] for frames, values, labels in pprof(path).samples()
              if labels["bpf_tag"] == PROGRAMS[0].tag.hex()}
    assert values == {22: 3, 7: 1}
    lines = {line for name, _, line in gecko_frames(gecko(path)) if name.startswith("hash")}
    assert lines == {22, None}


def test_no_chain_in_user(tmp_path: Path) -> None:
    """So it is if that is code of a file, which has a mapping and no symbol."""
    path = tmp_path / "perf.data"
    user = Sample(USER_IP, misc=2)
    pd.recording([], [user], before=[mmap2(USER_IP & ~0xfff, "/nonexistent")]).write(path)
    profile = pprof(path)
    mapping, = profile.raw["mapping"]
    location, = profile.raw["location"]
    assert profile.string(mapping["filename"]) == "/nonexistent"
    assert (location["mappingId"], int(location["address"])) == (mapping["id"], USER_IP)


def converted(*samples: dict[str, Any]) -> Any:
    """The tables of pprof.py after these samples, as perf script passes them."""
    path = SCRIPTS / "pprof.py"
    assert path.is_file(), "perf has no script pprof.py"
    spec = importlib.util.spec_from_file_location("perf_pprof", path)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    profile = module.Profile()
    for sample in samples:
        profile.add_sample(sample)
    return profile


def sample_of(name: str, attr: tuple[int, int, int, int], chain: list[dict[str, Any]],
              period: int = 1) -> dict[str, Any]:
    """A sample of an event of this type, config, period or frequency, and flags."""
    kind, config, rate, flags = attr
    sample = {"pid": 7, "tid": 8, "time": 100, "period": period, "ip": chain[0]["ip"]}
    return {"ev_name": name, "attr": struct.pack("=IIQQQQQ", kind, 128, config, rate, 0, 0, flags),
            "comm": "task", "sample": sample, "callchain": chain}


def test_pprof_inlined() -> None:
    """What is inlined at an address is one location with it; a recursion is not, though its
    entries have the same address as well."""
    inner = {"ip": 0x10, "sym": {"name": "inner", "inlined": True},
             "sym_srcline": "in.c:5 (discriminator 2)"}
    outer = {"ip": 0x10, "sym": {"name": "outer"}}
    again = {"ip": 0x20, "sym": {"name": "rec"}}
    profile = converted(sample_of("e", (0, 0, 1, 0), [inner, outer, again, again, inner]))
    functions = {number: function.name for function, number in profile.functions.items()}
    lines = {number: [(functions[function], line) for function, line in location.lines]
             for location, number in profile.locations.items()}
    (locations, _), = profile.samples
    assert [lines[number] for number in locations] == [
        [("inner", 5), ("outer", 0)], [("rec", 0)], [("rec", 0)], [("inner", 5)]]


def test_pprof_events() -> None:
    """Each event has values of its own, those of clocks in nanoseconds."""
    chain = [{"ip": 0x10, "sym": {"name": "f"}}]
    profile = converted(*(sample_of(name, attr, chain, period) for name, attr, period in (
        ("cpu-clock", (1, 0, 1000, 1 << 10), 1001), ("cpu-clock", (1, 0, 1000, 1 << 10), 999),
        ("cycles", (0, 0, 5000, 0), 5000), ("faults", (1, 2, 1, 0), 1))))
    assert [tuple(each) for each, _ in profile.events.items()] == [
        ("cpu-clock", "nanoseconds", 1000000), ("cycles", "count", 5000), ("faults", "count", 1)]
    (sums,) = profile.samples.values()
    assert sums == {0: [2, 2000], 1: [1, 5000], 2: [1, 1]}


def test_two_loads(tmp_path: Path) -> None:
    """A program that is loaded twice is one, with the samples of both."""
    first = PROGRAMS[0]
    second = replace(first, id=3, functions=[replace(function, addr=function.addr + 0x50000)
                                             for function in first.functions])
    path = tmp_path / "perf.data"
    pd.recording([first, second], [Sample(p.functions[1].addr + 5) for p in (first, second)]
                 ).write(path)
    found = [(values[0], frames[0].line, frames[0].start_line, labels["bpf_tag"])
             for frames, values, labels in pprof(path).samples()]
    assert found == [(2, 22, 20, first.tag.hex())]


# -- one rule for the address of a caller -------------------------------------

LINES = 8               # of each function, one an instruction of 5 bytes


def long_program(number: int, rng: random.Random) -> Program:
    """A program of several functions. The compiler gave some of their instructions no line."""
    functions = []
    for place in range(3):
        lines = [Line(5 * i, f"src/f{place}.c",
                      0 if i and rng.random() < .3 else 10 * place + i + 1, 1, f"line_{i}();")
                 for i in range(LINES)]
        addr = 0xffffffffc1000000 + 0x10000 * number + 0x1000 * place
        functions.append(Function(f"f{place}", addr, mov(1) * LINES + RET, lines))
    return Program(number, "f0", functions, tag=bytes([number] * 8))


def line_at(prog: Program, addr: int) -> Optional[int]:
    """The line of an instruction, or of the one before it that has one."""
    for function in prog.functions:
        if function.addr <= addr < function.addr + len(function.code):
            before = [line.line for line in function.lines
                      if line.line and line.offset <= addr - function.addr]
            return before[-1]
    return None


def random_sample(prog: Program, rng: random.Random) -> tuple[Sample, list[int]]:
    """A sample, and the addresses of the instructions of its frames.

    That of a precise event is not where its chain begins, and a function may call itself.
    """
    def anywhere() -> int:
        return rng.choice(prog.functions).addr + 5 * rng.randrange(LINES)

    ip, callers = anywhere(), [anywhere() + 5 for _ in range(rng.randrange(4))]
    top = anywhere() if rng.random() < .5 else ip
    if rng.random() < .3:
        callers.insert(0, top)
    callers = [addr for addr in callers if line_at(prog, addr - 1)]
    return (Sample(ip, chain=[*callers, KERNEL_IP], top=top),
            [top, *(addr - 1 for addr in callers)])


def lines_of_script(path: Path) -> list[list[int]]:
    """What perf script shows of each sample."""
    shown = perf(path, "script", "-F", "ip,sym,srcline").out
    return [[int(line) for line in re.findall(r"^  f\d\.c:(\d+)$", sample, re.M)]
            for sample in shown.strip("\n").split("\n\n")]


def lines_of_json(path: Path) -> list[list[int]]:
    """What perf data convert --to-json writes."""
    out = path.with_suffix(".json")
    out.unlink(missing_ok=True)
    perf(path, "data", "convert", "--to-json", str(out))
    return [[frame["source-line"] for frame in sample["callchain"] if "source-line" in frame]
            for sample in json.loads(out.read_text())["samples"]]


def lines_of_python(path: Path) -> list[list[int]]:
    """What Python scripts get."""
    (path.parent / "lines.py").write_text(
        "import json\n"
        "def process_event(event):\n"
        "    print(json.dumps([frame['source']['line'] for frame in event['callchain']\n"
        "                      if 'source' in frame]))\n")
    shown = perf(path, "script", "--no-inline", "-s", str(path.parent / "lines.py")).out
    return [json.loads(line) for line in shown.splitlines() if line.startswith("[")]


def lines_of_report(path: Path) -> list[list[int]]:
    """What perf report shows as call graph of a file with one sample."""
    shown = perf(path, "report", "--stdio", "--no-children", "-g", "srcline,0,callee").out
    return [[int(line) for line in re.findall(r"bpf_prog_\w+ f\d\.c:(\d+)$", shown, re.M)]]


@pytest.mark.parametrize("lines_of", [lines_of_script, lines_of_json, lines_of_python,
                                      lines_of_report])
def test_lines_of_callers(tmp_path: Path, lines_of: Callable[[Path], list[list[int]]]) -> None:
    """The line of a caller is that of its call, that of the first frame its own, wherever the
    sample is; and an instruction without a line belongs to the one before it."""
    seed = random.randrange(1 << 32)
    print("seed", seed)
    rng = random.Random(seed)
    prog = long_program(1, rng)
    samples = [random_sample(prog, rng) for _ in range(40)]
    path, step = tmp_path / "perf.data", 8 if lines_of is lines_of_report else 40
    for part in ([samples[:40]] if step == 40 else [[sample] for sample in samples[::step]]):
        pd.recording([prog], [sample for sample, _ in part],
                     sample_type=CHAINS).write(path)
        assert lines_of(path) == [[line_at(prog, addr) for addr in addrs] for _, addrs in part]


def test_lines_of_entries(tmp_path: Path) -> None:
    """perf report --children by line has the sampled line once, and callers at their calls."""
    prog = long_program(1, random.Random(1))
    first, second = (function.addr for function in prog.functions[:2])
    pd.recording([prog], [Sample(second + 5, chain=[first + 10, KERNEL_IP])],
                 sample_type=CHAINS).write(tmp_path / "perf.data")
    shown = perf(tmp_path / "perf.data", "report", "--stdio", "--children", "-g", "none",
                 "-F", "overhead_children,overhead,srcline").out
    found = re.findall(r"^ +100\.00% +(\S+)% +f(\d)\.c:(\d+) *$", shown, re.M)
    assert sorted(found) == [
        ("0.00", "0", str(line_at(prog, first + 9))),
        ("100.00", "1", str(line_at(prog, second + 5)))], shown
    assert shown.count("100.00%") == 4, shown


@pytest.mark.parametrize("key", ["srcfile", "bpf_prog", "bpf_tag",
                                 *(pytest.param(key, marks=pytest.mark.both)
                                   for key in ("comm", "dso"))])
def test_children_once(tmp_path: Path, key: str) -> None:
    """A sample counts once in an entry, however often that is in its call chain, and whichever
    lines and functions of it are."""
    prog = long_program(1, random.Random(1))
    for function in prog.functions:
        function.lines = [replace(line, file="src/one.c") for line in function.lines]
    first, second, third = (function.addr for function in prog.functions)
    pd.recording([prog], [Sample(first + 5, chain=[second + 10, third + 20, second + 25])],
                 sample_type=CHAINS).write(tmp_path / "perf.data")
    shown = perf(tmp_path / "perf.data", "report", "--stdio", "--children", "-g", "none",
                 "-F", f"overhead_children,overhead,{key}").out
    rows = re.findall(r"^ +(\S+)% +(\S+)% ", shown, re.M)
    assert len(rows) == (3 if key == "dso" else 1) and {row[0] for row in rows} == {"100.00"}, shown


# -- graphs -------------------------------------------------------------------

def test_flat_graphs(tmp_path: Path) -> None:
    """Flame graphs of a recording without call chains have what was sampled."""
    path = tmp_path / "perf.data"
    pd.recording(PROGRAMS, [Sample(ip) for ip in IPS]).write(path)
    assert script(path, "stackcollapse.py", "--kernel").out.splitlines() == [
        f"workload;{p.symbol(1)}_[k] {count}" for p, count in zip(PROGRAMS, (4, 3))]
    script(path, "flamegraph.py", "--format", "json", "--output", "stacks.json")
    task, = json.loads((tmp_path / "stacks.json").read_text())["c"]
    assert [(node["n"], node["v"]) for node in task["c"]] == [
        (f"hash [bpf {TAGS['hash', p.id]}]", count) for p, count in zip(PROGRAMS, (4, 3))]


@pytest.mark.parametrize("name", ["pprof.py", "gecko.py", "flamegraph.py"])
def test_names_not_utf8(tmp_path: Path, name: str) -> None:
    """Tasks and source files may have any name; perf script got a segmentation fault of one."""
    program_of = replace(PROGRAMS[0], functions=[Function(
        "f", HASH[0], CODE, [Line(0, b"a\xe9\x1b.c", 5, 1, "")])])
    data = pd.recording([program_of], [Sample(HASH[0])])
    data.records = [pd.comm(b"caf\xe9"), *data.records[2:]]
    data.write(tmp_path / "perf.data")
    options = {"gecko.py": ["--save-only", "out"], "pprof.py": ["--output", "out"],
               "flamegraph.py": ["--format", "json", "--output", "out"]}
    script(tmp_path / "perf.data", name, *options[name])
    if name == "pprof.py":
        (frames, _, labels), = Pprof(read_pprof(tmp_path / "out")).samples()
        assert labels["comm"] == "caf\ufffd" and frames[0].file == "a\ufffd?.c"


# -- speedscope ---------------------------------------------------------------

@pytest.mark.both
def test_speedscope_text(data: Path) -> None:
    """speedscope reads perf script's text, the names of BPF functions included."""
    (data.parent / "perf.txt").write_text(perf(data, "script").out)
    profile, = read_speedscope(data.parent / "perf.txt")
    names = [[frame["name"] for frame in stack] for stack in profile["stacks"]]
    for sampled in PROGRAMS:
        wanted = [sampled.symbol(0), sampled.symbol(1)]
        assert wanted in [stack[-2:] for stack in names], names


def test_speedscope_pprof(data: Path) -> None:
    """And the profile for pprof, in which BPF functions have their lines."""
    script(data, "pprof.py", "--output", "perf.pb.gz")
    profile, = read_speedscope(data.parent / "perf.pb.gz")
    leaves = {(stack[-1]["name"], stack[-1].get("file")) for stack in profile["stacks"]}
    assert (f"hash [bpf {TAGS['hash', 1]}]", "src/flow.c") in leaves, leaves


# -- all ----------------------------------------------------------------------

@pytest.mark.parametrize("name", EXPORTS)
def test_no_bpf_in_user(data: Path, name: str) -> None:
    """No BPF function or trampoline is shown as user code."""
    assert not [each for each in EXPORTS[name](data) if re.search(r"bpf|hash|meter", each)]

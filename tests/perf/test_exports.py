# SPDX-License-Identifier: GPL-2.0
"""BPF frames in what perf writes for other viewers: names, programs, source lines.

Read by the viewers' own code where it can be had, see viewers.py.
"""
from __future__ import annotations

import importlib.util
import json
import re
import shutil
import struct
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any, Mapping

import pytest

import perfdata as pd
from exports import EXPORTS, SCRIPTS, Frame, Pprof, gecko, gecko_frames, perf, pprof, script
from perfdata import Function, Line, Program, Sample
from subject import run_perf
from viewers import FirefoxProfiler, read_pprof, read_speedscope
from x86 import RET, mov

CODE = mov(1) + mov(2) + mov(3) + RET
KERNEL_IP, TRAMPOLINE_IP, USER_IP = 0xffffffff81000100, 0xffffffffc0300010, 0x401000
CONTEXT_USER = (1 << 64) - 512


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
                 sample_type=pd.SAMPLE_DEFAULT | pd.SAMPLE_CALLCHAIN).write(path)
    return path


# -- gecko --------------------------------------------------------------------

def test_gecko_lines(data: Path) -> None:
    """A BPF function has its source file, and the frame its line. A function is one, whichever
    line the sample is in, and no frame is at a line of another file."""
    found = {frame for frame in gecko_frames(gecko(data)) if frame[1] == "BPF"}
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
    """BPF functions have their name, symbol, file, line, first line and address, which is in the
    call instruction if they are callers."""
    found = {frame for frames, _, _ in pprof(data).samples() for frame in frames
             if frame.system_name.startswith("bpf_prog_")}
    expected = {Frame(f"{name} [bpf {TAGS[name, p.id]}]", p.symbol(number), file, line, first,
                      "[bpf]", p.functions[number].addr + offset)
                for p in PROGRAMS for name, number, file, line, first, offset in (
                    ("meter", 0, "src/flow.c", 33, 30, 9), ("hash", 1, "src/flow.c", 22, 20, 5),
                    ("hash", 1, "src/mix.h", 7, 0, 10)) if p.id == 1 or file != "src/mix.h"}
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
        assert labels == {"bpf_prog": "meter", "bpf_prog_id": sampled.id,
                          "bpf_tag": sampled.tag.hex()}
    assert len(found) == 4
    assert [labels for frames, _, labels in profile.samples() if len(frames) == 1] == [own]


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
              if labels["bpf_prog_id"] == 1}
    assert values == {22: 3, 7: 1}
    lines = {line for name, _, line in gecko_frames(gecko(path)) if name.startswith("hash")}
    assert lines == {22, None}


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
    """A program that is loaded twice: both have the lines, each sample has the id of its own."""
    first = PROGRAMS[0]
    second = replace(first, id=3, functions=[replace(function, addr=function.addr + 0x50000)
                                             for function in first.functions])
    path = tmp_path / "perf.data"
    pd.recording([first, second], [Sample(p.functions[1].addr + 5) for p in (first, second)]
                 ).write(path)
    found = [(labels["bpf_prog_id"], frames[0].line, frames[0].start_line)
             for frames, _, labels in pprof(path).samples()]
    assert sorted(found) == [(1, 22, 20), (3, 22, 20)]


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


# -- CTF ----------------------------------------------------------------------

def to_ctf(data: Path) -> None:
    """Convert a recording to a directory beside it."""
    result = run_perf(data.parent, ["data", "convert", "-i", str(data), "--to-ctf", "ctf"])
    assert result.status == 0, str(result)


def test_ctf(data: Path) -> None:
    """babeltrace2 shows the program, tag, function and line of a sample and of its callers."""
    if run_perf(data.parent, ["check", "feature", "-q", "babeltrace2-ctf-writer"]).status:
        pytest.skip("perf is built without babeltrace2-ctf-writer")
    if not shutil.which("babeltrace2"):
        pytest.skip("babeltrace2 is not installed")
    to_ctf(data)
    done = subprocess.run(["babeltrace2", str(data.parent / "ctf")], capture_output=True,
                          text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    events = done.stdout.splitlines()
    assert len(events) == len(IPS) + 1

    def frame(recorded: Program, number: int, line: str) -> str:
        return (f'prog_id = {recorded.id}, prog = "meter", tag = "{recorded.tag.hex()}", '
                f'func = "{recorded.symbol(number)}", srcline = "{line}" }}')

    for recorded, text in zip(PROGRAMS, events):
        leaf, caller = frame(recorded, 1, "src/flow.c:22"), frame(recorded, 0, "src/flow.c:33")
        assert f"perf_bpf = {{ {leaf}" in text, text
        # behind the context
        assert (f"perf_bpf_callchain = [ [0] = {{ index = 1, {leaf}, "
                f"[1] = {{ index = 2, {caller} ]") in text, text
    none = 'prog_id = 0, prog = "", tag = "", func = "", srcline = ""'
    assert f"perf_bpf = {{ {none} }}" in events[-1], events[-1]
    assert "perf_bpf_callchain_size = 0" in events[-1]


@pytest.mark.both
def test_ctf_without_bpf(tmp_path: Path) -> None:
    """Without BPF programs there are no such fields."""
    if run_perf(tmp_path, ["check", "feature", "-q", "babeltrace2-ctf-writer"]).status:
        pytest.skip("perf is built without babeltrace2-ctf-writer")
    path = tmp_path / "perf.data"
    pd.recording([], [Sample(KERNEL_IP)]).write(path)
    to_ctf(path)
    assert b"perf_bpf" not in (tmp_path / "ctf/metadata").read_bytes()


# -- all ----------------------------------------------------------------------

@pytest.mark.parametrize("name", EXPORTS)
def test_no_bpf_in_user(data: Path, name: str) -> None:
    """No BPF function or trampoline is shown as user code."""
    assert not [each for each in EXPORTS[name](data) if re.search(r"bpf|hash|meter", each)]

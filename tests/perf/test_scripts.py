# SPDX-License-Identifier: GPL-2.0
"""Flame graphs and Firefox profiles show BPF frames as the kernel's, by their names.

The chain of each sample goes from vmlinux through a trampoline into a BPF program and its
subprogram. Two programs have functions of the same names, and other tags.
"""
from __future__ import annotations

import json
from pathlib import Path
from typing import Dict, Iterator, Tuple

import pytest

import perfdata as pd
from perfbpf.paths import BASE, LINUX
from perfdata import Function, Program, Sample
from subject import run_perf, subject_name
from x86 import RET, mov

PERF_DIR = (BASE if subject_name() == "base" else LINUX) / "tools/perf"
SCRIPTS = PERF_DIR / "scripts/python"
CODE = mov(1) + RET
KERNEL_IP, TRAMPOLINE_IP = 0xffffffff81000100, 0xffffffffc0300010
PROGRAMS = [Program(number, "meter", [Function("meter", addr, CODE),
                                      Function("hash", addr + 0x100, CODE)], tag=tag)
            for number, addr, tag in ((1, 0xffffffffc0100000, b"\x11" * 8),
                                      (2, 0xffffffffc0200000, b"\x22" * 8))]


@pytest.fixture(name="data")
def fixture_data(tmp_path: Path) -> Path:
    """A recording with call chains."""
    samples = [Sample(p.functions[1].addr, chain=(
        pd.CONTEXT_KERNEL, p.functions[1].addr, p.functions[0].addr, TRAMPOLINE_IP, KERNEL_IP))
               for p in PROGRAMS]
    path = tmp_path / "perf.data"
    pd.recording(PROGRAMS, samples,
                 before=[pd.ksymbol("bpf_trampoline_1", TRAMPOLINE_IP - 0x10, 0x100)],
                 sample_type=pd.SAMPLE_DEFAULT | pd.SAMPLE_CALLCHAIN).write(path)
    return path


def frames(node: Dict, above: Tuple[str, ...] = ()) -> Iterator[Tuple[Tuple[str, ...], str]]:
    """Each frame of a flame graph as the names down to it, and its library type."""
    path = above + (node["n"],)
    yield path, node["l"]
    for child in node["c"]:
        yield from frames(child, path)


def test_flamegraph(data: Path) -> None:
    """BPF functions and trampolines are kernel code. The first has its name in front; two
    programs stay two."""
    result = run_perf(data.parent, ["script", "-i", str(data), "--no-inline", "-s",
                                    str(SCRIPTS / "flamegraph.py"), "--", "--format", "json",
                                    "--output", "stacks.json"])
    assert result.status == 0, str(result)
    found = list(frames(json.loads((data.parent / "stacks.json").read_text())))
    for program in PROGRAMS:
        names = tuple(f"{function.name} [bpf {program.tag_of(number).hex()}]"
                      for number, function in enumerate(program.functions))
        assert [libtype for path, libtype in found if path[-2:] == names] == ["kernel"], found
    assert {libtype for path, libtype in found if "trampoline" in path[-1]} == {"kernel"}
    assert not [path for path, _ in found if "bpf_prog_" in path[-1]]


def test_gecko(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """BPF functions and trampolines have a category of their own, names in front and tags
    behind."""
    monkeypatch.setenv("PERF_EXEC_PATH", str(PERF_DIR))
    result = run_perf(data.parent, ["script", "-i", str(data), "--no-inline", "-s",
                                    str(SCRIPTS / "gecko.py"), "--", "--save-only", "gecko.json"])
    assert result.status == 0, str(result)
    profile = json.loads((data.parent / "gecko.json").read_text())
    names = [category["name"] for category in profile["meta"]["categories"]]
    found = {}
    for thread in profile["threads"]:
        for frame in thread["frameTable"]["data"]:
            found[thread["stringTable"][frame[0]]] = names[frame[7]]
    for program in PROGRAMS:
        label = f"hash [bpf {program.tag_of(1).hex()}]"
        assert found.get(f"{label} (in {program.symbol(1)})") == "BPF", found
    assert [category for name, category in found.items() if "trampoline" in name] == ["BPF"]
    assert "Kernel" in found.values()

# SPDX-License-Identifier: GPL-2.0
"""BTF of inlined functions, as the build has written it into vmlinux and modules.

What it says is compared with the debug information that it is from, as btf_func and as perf
probe read it, and with what programs say of themselves while they run.
"""
from __future__ import annotations

import bisect
import os
import random
import re
import shutil
import subprocess
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from btf_args import DWARF_REGISTERS, Type, Types
from btf_tool import (BPFTOOL, OUT, VMLINUX, built_tool, modules, section_file, sections,
                      verify)
from inline_program import NOT_CALLED, Program, run, sites_of
from subject import perf_binary

# What the section may take in vmlinux, in bytes for each place: upstream's has 22
# (Documentation/bpf/btf_func.rst of the kernel's tree).
MAX_BYTES = 22


def seed() -> int:
    """The seed of what is drawn, which is printed."""
    number = int(os.environ.get("PERF_BPF_SEED") or random.randrange(1 << 32))
    print(f"PERF_BPF_SEED={number}")
    return number


def counts(text: str) -> dict[str, int]:
    """The numbers that btf_func --inline prints."""
    match = re.search(r"(?P<places>\d+) places .* known: (?P<all>\d+), none: (?P<none>\d+); "
                      r"parameters: (?P<params>\d+), known: (?P<known>\d+);", text)
    assert match, text
    return {name: int(number) for name, number in match.groupdict().items()}


def test_vmlinux() -> None:
    """The section is what the debug information of the linked vmlinux says, and that is much."""
    done = verify(VMLINUX, "--inline")
    assert done.returncode == 0, done.stderr
    print(done.stdout.strip(), sections(VMLINUX)[".BTF.inline"][1], "bytes")
    found = counts(done.stdout)
    assert found["places"] > 100_000
    assert found["all"] > 0.65 * found["places"]
    assert found["known"] > 0.7 * found["params"]
    assert sections(VMLINUX)[".BTF.inline"][1] < MAX_BYTES * found["places"]


def test_modules() -> None:
    """So is that of each module."""
    size = 0
    for module in modules():
        if ".BTF.inline" not in sections(module):
            continue
        done = verify(module, "--inline")
        assert done.returncode == 0, done.stderr
        size += sections(module)[".BTF.inline"][1]
    print(f"{size} bytes in {len(modules())} modules")
    assert size


def test_verify_finds_damage(tmp_path: Path) -> None:
    """One byte of the section is another one."""
    path = tmp_path / "module.ko"
    with_section = [module for module in modules() if ".BTF.inline" in sections(module)]
    assert with_section, "no module was built with CONFIG_DEBUG_INFO_BTF_INLINE"
    shutil.copy(with_section[0], path)
    offset, size = sections(path)[".BTF.inline"]
    draw = random.Random(seed())
    with path.open("r+b") as file:
        file.seek(offset + draw.randrange(size))
        byte = file.read(1)[0]
        file.seek(-1, os.SEEK_CUR)
        file.write(bytes([byte ^ 1 << draw.randrange(8)]))
    done = verify(path, "--inline")
    assert done.returncode == 1 and ".BTF.inline is not what" in done.stderr


COMPILERS = [["gcc", "-O1"], ["gcc", "-O2"], ["gcc", "-Os"],
             ["gcc", "-O2", "-fno-omit-frame-pointer"], ["clang", "-O2"]]
PROGRAMS = int(os.environ.get("PERF_BPF_INLINE_PROGRAMS", "3"))


@pytest.mark.parametrize("compiler", COMPILERS, ids="".join)
def test_programs(tmp_path: Path, compiler: list[str]) -> None:
    """Programs drawn at random: where an inlined function begins, its parameters have what it
    was passed."""
    first, right, wrong = seed(), 0, []
    for number in range(first, first + PROGRAMS):
        folder = tmp_path / str(number)
        folder.mkdir()
        errors, values = run(Program(random.Random(number)), folder, compiler,
                             built_tool(), BPFTOOL)
        right += values
        wrong += [f"{folder}: {error}" for error in errors]
    early = [error for error in wrong if error.endswith(NOT_CALLED)]
    print(f"{right} values; {len(wrong)} errors, of which reached but not called: {len(early)}")
    # The compiler may have put the first instruction before a condition, and Clang tells
    # constants that are right on one way to the place only. Of 17,000 values, one was wrong.
    assert len(wrong) <= right // 50, "\n".join(wrong)
    assert right >= PROGRAMS


INTEGERS = {"unsigned char": 1, "signed char": 1, "unsigned short": 2, "short": 2,
            "unsigned int": 4, "int": 4, "unsigned long": 8, "long": 8}


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_constants(tmp_path: Path, compiler: str) -> None:
    """Numbers of each type and length, which forms of several lengths tell, with a sign or not."""
    draw = random.Random(seed())
    text = "extern void use(long);\n"
    numbers: dict[str, tuple[int, str]] = {}
    for kind, size in INTEGERS.items():
        for bits in (7, 8, 15, 16, 31, 32, 63, 64):
            if bits > 8 * size:
                continue
            for sign in (1, -1):
                name = f"f{len(numbers)}"
                numbers[name] = sign * (draw.getrandbits(bits) | 1 << bits - 1), kind
                text += ("static inline __attribute__((always_inline)) "
                         f"void {name}({kind} c) {{ use(c); }}\n"
                         f"void g{name}(void) {{ {name}(({kind})({numbers[name][0]}ull)); }}\n")
    (tmp_path / "constants.c").write_text(text)
    subprocess.run([compiler, "-O2", "-g", "-w", "-c", "constants.c"], cwd=tmp_path, check=True)
    told = {site["func"]: site["places"][0][0]
            for site in sites_of(tmp_path / "constants.o", built_tool(), BPFTOOL)}
    constants = {name: int(place, 16) for name, place in told.items() if place.startswith("0x")}
    assert len(constants) > len(numbers) / 2
    for name, value in constants.items():
        number, kind = numbers[name]
        assert value == number & (1 << 8 * INTEGERS[kind]) - 1, (kind, number)


# How many functions are drawn; each parameter takes perf probe most of a second.
DRAWN = int(os.environ.get("PERF_BPF_INLINED_FUNCTIONS", "40"))
# What perf probe says of a parameter that is not at a place: tools/perf/util/probe-event.h
GONE = r"\0xdeade12d"


def text_symbols() -> dict[str, int]:
    """The addresses of those symbols of vmlinux that have only one."""
    found = defaultdict(set)
    for line in subprocess.run(["nm", VMLINUX], check=True, text=True,
                               stdout=subprocess.PIPE).stdout.splitlines():
        addr, kind, name = line.split(maxsplit=2)
        if kind in "tTwW":
            found[name].add(int(addr, 16))
    return {name: min(addrs) for name, addrs in found.items() if len(addrs) == 1}


def perf_places(func: str, param: str, symbols: dict[str, int]) -> dict[int, str]:
    """Where perf probe finds a parameter where its function was inlined, by the address."""
    done = subprocess.run([perf_binary(), "probe", "-k", OUT / "vmlinux.unstripped", "-D",
                           f"{func} x={param}"], text=True, check=False, timeout=120,
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    return {symbols[symbol] + int(offset): place for symbol, offset, place in
            re.findall(r"^p:\S+ (\S+?)\+(\d+) x=([^:\s]+)", done.stdout, re.M)
            if symbol in symbols and place != GONE}


def as_perf(value: str, size: int) -> str:
    """A place as perf probe writes it."""
    match = re.fullmatch(r"reg(\d+)", value)
    if match:
        return DWARF_REGISTERS[int(match[1])]
    match = re.fullmatch(r"\*\(reg(\d+) ([+-]) 0x(\w+)\)", value)
    if match:
        return f"{match[2]}{int(match[3], 16)}({DWARF_REGISTERS[int(match[1])]})"
    return constant(value, size) if value.startswith("0x") else value


def constant(text: str, size: int) -> str:
    """A constant, of as many bytes as its type has."""
    return "\\" + hex(int(text.lstrip("\\"), 0) & (1 << 8 * size) - 1)


def test_no_own_part(tmp_path: Path) -> None:
    """A function that the compiler split, and put together again, is no place of itself. What is
    left are functions that call themselves."""
    types = Types(str(BPFTOOL), str(VMLINUX), str(section_file(VMLINUX, ".BTF.inline", tmp_path)))
    symbols = sorted((addr, name) for name, addr in text_symbols().items())
    start = dict((name, addr) for addr, name in symbols)["_stext"]
    own = set()
    for entry in types.entries():
        at = bisect.bisect(symbols, (start + entry["offset"], "\x7f")) - 1
        if symbols[at][1].partition(".")[0] == types.by_id[entry["func_type_id"]]["name"]:
            own.add(symbols[at][1])
    print(len(own), sorted(own))
    # 1,316 of the small kernel, with those parts
    assert len(own) < 50


def test_like_perf_probe(tmp_path: Path) -> None:
    """Functions drawn at random: where perf probe finds a parameter too, which reads the debug
    information by itself, it is the same place. It does not tell what is true at one address
    only, nor of each kind of place."""
    draw = random.Random(seed())
    types = Types(str(BPFTOOL), str(VMLINUX), str(section_file(VMLINUX, ".BTF.inline", tmp_path)))
    symbols, by_name = text_symbols(), defaultdict(list)
    for entry in types.entries():
        by_name[types.by_id[entry["func_type_id"]]["name"]].append(entry)

    def compare(name: str) -> list[str]:
        """Each place of a function where both find a parameter: "" if it is the same."""
        params = sorted({p["name"] for e in by_name[name] for p in
                         types.params(types.by_id[e["func_type_id"]]) if p["type_id"]})
        found = []
        for param in draw.sample(params, min(2, len(params))):
            perf = perf_places(name, param, symbols)
            for entry in by_name[name]:
                found += compare_place(entry, param, perf)
        return found

    def compare_place(entry: Type, param: str, perf: dict[int, str]) -> list[str]:
        place = perf.get(symbols["_stext"] + entry["offset"], "")
        locs = types.by_id[entry["loc_proto_type_id"]]["params"]
        for p, loc in zip(types.params(types.by_id[entry["func_type_id"]]), locs):
            if p["name"] != param or not place or not loc["type_id"]:
                continue
            size = types.by_id[loc["type_id"]]["size"]
            ours = as_perf(loc["value"], size)
            theirs = constant(place, size) if place.startswith("\\") else place
            return ["" if ours == theirs else f"{entry['name']}() at _stext+{entry['offset']:#x}: "
                    f"{param} in {ours}, perf probe: {theirs}"]
        return []

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        found = [line for lines in pool.map(compare, draw.sample(sorted(by_name), DRAWN))
                 for line in lines]
    print(f"{len(found)} parameters that both find, of {DRAWN} functions")
    assert not [line for line in found if line], "\n".join(filter(None, found))
    assert len(found) > DRAWN / 2

# SPDX-License-Identifier: GPL-2.0
"""BTF of functions by address, as the build has written it into vmlinux and modules.

scripts/btf_func/btf_func --verify searches each symbol as the kernel does, and compares what
it finds with the debug information. The build does that too; here it is also shown that
it finds what is wrong, and what a kernel without the index gets wrong.
"""
from __future__ import annotations

import os
import random
import re
import resource
import shutil
import struct
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Iterator

import pytest

from btf_args import Type, Types
from btf_tool import (BPFTOOL, OUT, VMLINUX, built_tool, modules, section_file, sections,
                      verify)
from perfbpf.paths import BASE
from subject import perf_binary

# What the section may take in vmlinux, in bytes, of which 43,000 are source files; what a
# run may, in seconds and KB.
MAX_SIZE = 180 << 10
MAX_SECONDS = 30
MAX_KB = 1 << 20


def mismatches(done: subprocess.CompletedProcess[str]) -> tuple[int, int]:
    """How many symbols were searched, and for how many the result was wrong."""
    match = re.search(r"(\d+) symbols, (\d+) mismatches", done.stdout)
    assert match, done.stdout + done.stderr
    return int(match[1]), int(match[2])


def test_vmlinux() -> None:
    """Each function of vmlinux is found with its own arguments, at little cost."""
    # of all children: guests of other tests are among them
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    done = verify(VMLINUX)
    symbols, wrong = mismatches(done)
    assert (wrong, done.returncode) == (0, 0), done.stderr[-2000:]
    assert symbols > 10_000
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert usage.ru_maxrss < MAX_KB
    assert usage.ru_utime - before < MAX_SECONDS
    size = sum(size for name, (_, size) in sections(VMLINUX).items()
               if name.startswith(".BTF.func"))
    assert 10_000 < size < MAX_SIZE
    print(f"{done.stdout.strip()}, {size} bytes, {usage.ru_maxrss} KB")


def test_paths() -> None:
    """Source files are named by their path in the tree, wherever that is."""
    assert ".BTF.func" in sections(VMLINUX), "this kernel has no CONFIG_DEBUG_INFO_BTF_FUNC"
    offset, size = sections(VMLINUX)[".BTF.func"]
    strings = VMLINUX.read_bytes()[offset:offset + size]
    paths = re.findall(rb"\0file:([^\0]*)", strings)
    assert b"kernel/events/core.c" in paths
    # those of all functions
    assert len(set(paths)) > 500 and b"fs/read_write.c" in paths
    assert not [path for path in paths if path.startswith((b"/", b".."))]


def test_modules() -> None:
    """So is each function of each module."""
    assert modules()
    for module in modules():
        done = verify(module)
        assert mismatches(done)[1] == 0 and done.returncode == 0, done.stderr[-2000:]
        assert ".BTF.func" in sections(module), module


def test_without_index() -> None:
    """By name alone, hundreds are wrong or missing."""
    done = verify(VMLINUX, "--without-index")
    assert mismatches(done)[1] > 500
    print(done.stdout.strip())


def sample(tmp_path: Path) -> Path:
    """A copy of the sample module that has functions of one name and clones."""
    path = tmp_path / "probe-sample-c.ko"
    source = OUT / "samples/probe_events/probe-sample-c.ko"
    assert source.exists(), "this kernel has no such sample"
    shutil.copy(source, path)
    return path


def overwrite(path: Path, offset: int, data: bytes) -> None:
    """Write into .BTF.func of a module."""
    with path.open("r+b") as file:
        file.seek(sections(path)[".BTF.func"][0] + offset)
        file.write(data)


# Bytes behind the 12 of each type, of one thing and of each of vlen things: tools/lib/bpf/btf.c
LAYOUT = {1: (4, 0), 3: (12, 0), 4: (0, 12), 5: (0, 12), 6: (0, 8), 13: (0, 8), 14: (4, 0),
          15: (0, 12), 17: (4, 0), 19: (0, 12), 20: (4, 4), 21: (0, 4), 22: (0, 12)}
FUNC, LOCSEC = 12, 22


def own_types(path: Path) -> Iterator[tuple[int, int, int]]:
    """Kind of each type of .BTF.func, where it begins in the section, and its vlen."""
    start, size = sections(path)[".BTF.func"]
    data = path.read_bytes()[start:start + size]
    header_size, types, types_size = struct.unpack_from("<III", data, 4)
    offset = header_size + types
    while offset < header_size + types + types_size:
        info = struct.unpack_from("<I", data, offset + 4)[0]
        kind, vlen = info >> 24 & 0x7f, info & 0xffffff
        yield kind, offset, vlen
        one, each = LAYOUT.get(kind, (0, 0))
        offset += 12 + one + vlen * each


Entry = tuple[int, ...]     # ids of a FUNC and of a LOC_PROTO, offset in the section


def entries(path: Path) -> list[tuple[int, Entry]]:
    """Where each entry of a LOCSEC is in .BTF.func, and what it says."""
    data = path.read_bytes()[sections(path)[".BTF.func"][0]:]
    return [(at, struct.unpack_from("<III", data, at))
            for kind, offset, vlen in own_types(path) if kind == LOCSEC
            for at in range(offset + 12, offset + 12 + 12 * vlen, 12)]


def damaged(path: Path, changes: dict[int, int]) -> int:
    """How many symbols are wrong with some words of .BTF.func replaced, by their offset."""
    before = path.read_bytes()
    for offset, word in changes.items():
        overwrite(path, offset, struct.pack("<I", word))
    done = verify(path)
    path.write_bytes(before)
    wrong = mismatches(done)[1]
    assert done.returncode == (1 if wrong else 0)
    assert wrong == 0 or "sample_" in done.stderr
    return wrong


def test_wrong_prototype(tmp_path: Path) -> None:
    """Two functions of one name, with each other's prototypes, are found out."""
    path = sample(tmp_path)
    assert verify(path).returncode == 0
    data = path.read_bytes()[sections(path)[".BTF.func"][0]:]
    funcs = [(offset + 8, struct.unpack_from("<I", data, offset + 8)[0])
             for kind, offset, _ in own_types(path) if kind == FUNC]
    wrong = [damaged(path, {a: type_b, b: type_a}) for a, type_a in funcs for b, type_b in funcs
             if a < b and type_a != type_b]
    assert 2 in wrong


def test_missing_entry(tmp_path: Path) -> None:
    """A function without its entry is found out, unless pahole took just this one of
    those of its name; the two clones always are."""
    path = sample(tmp_path)
    wrong = [damaged(path, {at + 8: offset + 1}) for at, (_, _, offset) in entries(path)]
    assert len([nr for nr in wrong if nr]) >= 2


@pytest.mark.parametrize("word, value, error", [
    (0, 0x3fffffff, ".BTF.func: "),
    (0, 1, "wrong id"),             # an INT
    (0, None, "wrong id"),          # the one of the entry before
    (1, 1, "wrong id"),
    (2, 0xffffffff, "wrong offset"),
    (2, 0, "wrong offset"),         # before that of the entry before
], ids=["no type", "no function", "not sorted", "no location", "offset", "offset not sorted"])
def test_damaged_entry(tmp_path: Path, word: int, value: int | None, error: str) -> None:
    """A damaged entry is refused with a message."""
    path = sample(tmp_path)
    _, (_, (before, _, lower)), (at, (_, _, offset)) = entries(path)[:3]
    assert 0 < lower <= offset
    overwrite(path, at + 4 * word, struct.pack("<I", before if value is None else value))
    done = verify(path)
    assert done.returncode == 1
    assert error in done.stderr


@pytest.mark.parametrize("offset", [0, 4, 12], ids=["magic", "header", "types"])
def test_damaged(tmp_path: Path, offset: int) -> None:
    """So is a damaged header, and a module without the section."""
    path = sample(tmp_path)
    overwrite(path, offset, b"\x7f\x7f")
    done = verify(path)
    assert done.returncode == 1 and ".BTF.func: " in done.stderr
    subprocess.run(["objcopy", "-R", ".BTF.func", path], check=True)
    done = verify(path)
    assert done.returncode == 1 and "no section .BTF.func" in done.stderr


def test_without_the_kinds(tmp_path: Path) -> None:
    """The base's bpftool, which does not know the kinds for locations, prints the rest."""
    out = tmp_path / "bpftool"
    out.mkdir()
    subprocess.run(["make", "-s", "-C", BASE / "tools/bpf/bpftool", f"OUTPUT={out}/", "-j2",
                    "bootstrap"], check=True, timeout=300)
    tool = out / "bootstrap/bpftool"
    section = section_file(VMLINUX, ".BTF.func", tmp_path)
    old, new = (subprocess.run([path, "btf", "dump", "file", section, "-B", VMLINUX], check=True,
                               text=True, stdout=subprocess.PIPE).stdout
                for path in (tool, BPFTOOL))
    assert " LOCSEC 'func.text' vlen=" in new and "LOCSEC" not in old
    assert re.findall(r"^\[.* FUNC .*", old, re.M) == re.findall(r"^\[.* FUNC .*", new, re.M)


COLD_CLONE = """
extern void __attribute__((cold)) report(int);
extern int sink;
static __attribute__((noinline)) int cloned(int unused, long *value, int count)
{
	if (count < 0) {
		report(count);
		return -1;
	}
	sink += count;
	return *value * count;
}
int caller(long *value) { return cloned(1, value, sink) + cloned(1, value, 2 * sink); }
"""

STACK_ARGUMENTS = """
extern int sink;
static __attribute__((noinline)) int many(int unused, int a, int b, int c, int d, int e,
					  int f, int g, int h)
{
	sink += a + 2 * b + 3 * c + 4 * d + 5 * e + 6 * f;
	return g * 7 + h;
}
int caller(int x)
{
	return many(0, x, sink, x * 2, x, sink * 3, x, x * 5, sink) +
	       many(0, sink, x, x, x, x, x, sink, x);
}
"""


def compile_described(tmp_path: Path, source: str, *compiler: str,
                      prefix: str = "") -> dict[str, list[str]]:
    """What btf_func writes of an object: by function, the names of its arguments. The
    symbols get a prefix, as those of arch/x86/boot/startup do."""
    (tmp_path / "test.c").write_text(source)
    path = tmp_path / "test.o"
    subprocess.run([*compiler, "-O2", "-g", "-c", tmp_path / "test.c", "-o", path], check=True)
    subprocess.run(["objcopy", f"--prefix-symbols={prefix}", path], check=True)
    subprocess.run(["pahole", "-J", path], check=True)
    done = subprocess.run([built_tool(), "--verbose", path], text=True, check=True,
                          stdout=subprocess.PIPE)
    assert "0 mismatches" in done.stdout and "clones among these: 0" in done.stdout
    types = Types(str(BPFTOOL), str(path), f"{path}.BTF.func")
    return {func["name"]: [param["name"] for param in types.params(func)]
            for func in types.own if func["kind"] == "FUNC"}


@pytest.mark.parametrize("prefix", ["", "__pi_"], ids=["none", "__pi_"])
def test_cold_clone(tmp_path: Path, prefix: str) -> None:
    """GCC's clone that has a .cold part, and so a list of ranges instead of an address;
    and the same of a function whose symbol is not called as in the source."""
    found = compile_described(tmp_path, COLD_CLONE, "gcc", prefix=prefix)
    clones = [args for name, args in found.items() if name.startswith(f"{prefix}cloned.")]
    assert clones and clones[0][:2] == ["value", "count"], found


@pytest.mark.parametrize("option, stack", [("-fno-omit-frame-pointer", ["g", "h"]),
                                           ("-fomit-frame-pointer", [])])
def test_clang_stack(tmp_path: Path, option: str, stack: list[str]) -> None:
    """Clang removes the first parameter without a suffix. It has stack arguments by
    the frame pointer; by the stack pointer, they cannot be told at the entry."""
    clang = shutil.which("clang-19") or "clang"
    version = subprocess.run([clang, "-dumpversion"], text=True, check=True,
                             stdout=subprocess.PIPE).stdout
    if int(version.split(".")[0]) < 19:
        pytest.skip(f"{clang} {version.strip()}: the kernel needs 19 for this option")
    found = compile_described(tmp_path, STACK_ARGUMENTS, clang, option)
    assert found.get("many") == [*"abcdef", *stack], found


def compile_in(tmp_path: Path, source: str, language: int, name: str = "unit.o") -> Path:
    """An object whose unit says that it is in a language, by its number in DWARF."""
    text = subprocess.run(["gcc", "-O2", "-g", "-dA", "-S", "-x", "c", "-", "-o", "-"], text=True,
                          check=True, input=source, stdout=subprocess.PIPE).stdout
    text, nr = re.subn(r"\.byte\s+0x\w+(\s.*DW_AT_language)", rf".byte {language:#x}\1", text)
    assert nr == 1
    path = tmp_path / name
    subprocess.run(["gcc", "-c", "-x", "assembler", "-", "-o", path], text=True, check=True,
                   input=text)
    return path


def only_described(btf: Path, path: Path) -> list[str]:
    """The functions that .BTF.func describes and .BTF does not."""
    types = Types(str(BPFTOOL), str(btf), f"{path}.BTF.func")
    known = {func["name"] for func in types.base if func["kind"] == "FUNC"}
    return [func["name"] for func in types.own
            if func["kind"] == "FUNC" and func["name"] not in known
            and not types.is_unknown(func)]


ONE = "__attribute__((noinline)) int one(int first) { return first; }\n"
OTHER = "__attribute__((noinline)) int other(long second) { return second; }\n"


@pytest.mark.parametrize("language, error", [
    (0x1d, ""), (0x2c, ""), (0x3e, ""),             # C11, C17, C23
    (0x04, "language 0x4 "), (0x3f, "language 0x3f "),
])
def test_languages(tmp_path: Path, language: int, error: str) -> None:
    """Functions in any C are described, and another language is said."""
    btf = compile_in(tmp_path, ONE, 0x1d, "btf.o")
    subprocess.run(["pahole", "-J", btf], check=True)
    path = compile_in(tmp_path, ONE + OTHER, language)
    done = subprocess.run([built_tool(), "--verbose", "--btf", btf, path], text=True, check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if error:
        assert done.returncode == 1 and error in done.stderr, done.stderr
        return
    assert done.returncode == 0 and "not described: 0" in done.stdout, done.stderr
    assert only_described(btf, path) == ["other"]


def test_nothing_described(tmp_path: Path) -> None:
    """A vmlinux of which less than half is described is an error; a module may be all assembly."""
    btf = compile_in(tmp_path, ONE, 0x1d, "btf.o")
    subprocess.run(["pahole", "-J", btf], check=True)
    path = compile_in(tmp_path, ONE + OTHER, 0x31)
    subprocess.run([built_tool(), "--btf", btf, path], check=True)
    linked = tmp_path / "linked"
    subprocess.run(["ld", "-e", "one", "-o", linked, path], check=True)
    done = subprocess.run([built_tool(), "--btf", btf, linked], text=True, check=False,
                          stderr=subprocess.PIPE)
    assert done.returncode == 1 and "describes 0 of 2 functions" in done.stderr, done.stderr


@pytest.mark.parametrize("name, described", [("other", []), ("othe", ["other"]),
                                             ("other__1", ["other"])])
def test_sets(tmp_path: Path, name: str, described: list[str]) -> None:
    """A function of a set of the kernel's has no FUNC of its own if .BTF lacks it."""
    btf = compile_in(tmp_path, ONE, 0x1d, "btf.o")
    subprocess.run(["pahole", "-J", btf], check=True)
    path = compile_in(tmp_path, ONE + OTHER + f"int __BTF_ID__func__{name}__27;\n", 0x1d)
    subprocess.run([built_tool(), "--btf", btf, path], check=True)
    assert only_described(btf, path) == described


def vmlinux_types(tmp_path: Path) -> Types:
    """BTF of vmlinux and .BTF.func."""
    return Types(str(BPFTOOL), str(VMLINUX), str(section_file(VMLINUX, ".BTF.func", tmp_path)))


def test_pieces(tmp_path: Path) -> None:
    """What is in pieces may be in any register, also if the name says more: of
    foo.constprop.0.isra.0() all six are arguments."""
    types = vmlinux_types(tmp_path)
    clones = [func for func in types.own if func["kind"] == "FUNC" and ".isra." in func["name"]]
    assert [func for func in clones if re.search(r"\.(constprop|part)\.", func["name"])]
    few = [func["name"] for func in clones
           if sum(types.words(param["type_id"]) for param in types.params(func)) < 6]
    assert not few


def test_locations(tmp_path: Path) -> None:
    """The locations of a clone's arguments are those that the ABI has for its prototype."""
    types = vmlinux_types(tmp_path)
    moved = [entry for entry in types.entries() if entry["loc_proto_type_id"]]
    assert len(moved) > 100
    for entry in moved:
        func = types.by_id[entry["func_type_id"]]
        assert types.locations(entry) == types.places(func), func


def test_cached(tmp_path: Path) -> None:
    """A compiler cache gives objects that were compiled in another tree, which may still
    be there: their functions are named by the files of this one."""
    for tree in ("theirs", "ours"):
        for name, kind in (("a", "int"), ("b", "long")):
            source = tmp_path / tree / "src/dir" / f"{name}.c"
            source.parent.mkdir(parents=True, exist_ok=True)
            source.write_text("static __attribute__((noinline, noipa)) int same"
                              f"({kind} *x) {{ return *x; }}\n"
                              f"int {name}({kind} *x) {{ return same(x); }}\n")
        (tmp_path / tree / "out").mkdir()
    theirs, ours = tmp_path / "theirs/out", tmp_path / "ours/out"
    subprocess.run(["gcc", "-O2", "-g", "-c", "../src/dir/a.c", "../src/dir/b.c"],
                   cwd=theirs, check=True)
    path = ours / "both.o"
    subprocess.run(["ld", "-r", "-o", path, theirs / "a.o", theirs / "b.o"], check=True)
    subprocess.run(["pahole", "-J", path], check=True)
    subprocess.run([built_tool(), "--source_dir", "../src", "both.o"], cwd=ours, check=True)
    types = Types(str(BPFTOOL), str(path), f"{path}.BTF.func")
    files = [types.tags(func, "file:") for func in types.own if func["kind"] == "FUNC"]
    assert sorted(files) == [["dir/a.c"], ["dir/b.c"]]


# How many functions are drawn; each takes perf probe most of a second.
DRAWN = int(os.environ.get("PERF_BPF_BTF_FUNCTIONS", "60"))


def perf_places(symbol: str, file: str) -> list[dict[str, str]]:
    """Where perf probe finds the parameters at the entry of a function. It lists weak
    functions of the name, too, which are not in the kernel."""
    name = symbol.split(".")[0] + (f"@{file}" if file else "")
    done = subprocess.run([perf_binary(), "probe", "-k", OUT / "vmlinux.unstripped", "-D",
                           f"{name} $params"], text=True, check=False, timeout=60,
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    return [dict(re.findall(r"(\w+)=(%\w+|\+\d+\(%sp\)):", line))
            for line in done.stdout.splitlines()
            if line.split()[1:2] in ([symbol], [f"{symbol}+0"])]


def differences(func: Type, types: Types, perf: list[dict[str, str]]) -> list[str]:
    """What perf probe finds elsewhere, in the one of its answers that is most alike.

    That a parameter is removed, perf probe may not see: in igmp_mcf_get_next.isra.0() psf
    is assigned from a register, in which psf->sf_next is passed, before the first instruction.
    """
    places, removed = types.places(func), types.tags(func, "removed:")
    return min(([f"{func['name']}(): {name}: {places.get(name)}, perf probe: {place}"
                 for name, place in answer.items()
                 if places.get(name) != place and (name in places or name not in removed)]
                for answer in perf), key=len, default=[])


def test_like_perf_probe(tmp_path: Path) -> None:
    """Functions drawn at random: parameters are where perf probe finds them, which
    reads the debug information by itself."""
    seed = int(os.environ.get("PERF_BPF_SEED") or random.randrange(1 << 32))
    print(f"PERF_BPF_SEED={seed}")
    types = vmlinux_types(tmp_path)
    funcs = sorted((t for t in types.own if t["kind"] == "FUNC" and not types.is_unknown(t)),
                   key=lambda t: int(t["id"]))
    drawn = random.Random(seed).sample(funcs, min(DRAWN, len(funcs)))
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        found = list(pool.map(
            lambda func: perf_places(func["name"], "".join(types.tags(func, "file:"))), drawn))
    answers = len([perf for perf in found if perf])
    print(f"{sum(len(perf[0]) for perf in found if perf)} parameters of {answers} functions; "
          f"no answer for {len(drawn) - answers}")
    wrong = [difference for func, perf in zip(drawn, found)
             for difference in differences(func, types, perf)]
    assert not wrong, "\n".join(wrong)
    assert answers >= len(drawn) / 2

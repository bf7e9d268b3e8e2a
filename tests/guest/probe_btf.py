#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""Does perf find by BTF what it finds in debug information?

  probe_btf.py [SEED]

Once perf sees the debug information of the guest's kernel, and once all the places where it
looks for it are hidden. The probes are those of the examples of the man page and of README, which
are recorded, and of patterns that are drawn at random, with all parameters, which are compared
point by point.
"""

import os
import pathlib
import random
import re
import subprocess
import sys
import tempfile
from typing import Dict, List, NamedTuple, Set

TESTS = pathlib.Path(__file__).resolve().parent.parent
sys.path += [str(TESTS), str(TESTS.parent / "stack")]
sys.dont_write_bytecode = True

from bpf_examples import PROGRAM, Example, examples

PATTERNS, FEW, MANY, CLONES = 2, 40, 250, 12
HIDE = """for dir in /boot /usr/lib/debug /lib/modules; do
	[ ! -d $dir ] || mount -t tmpfs none $dir || exit 1
done
exec "$@\""""
HIDDEN = ["unshare", "--mount", "sh", "-c", HIDE, "sh"]
# What the examples' points are hit by, with a file that stays
WORK = ("dd if=kept of=/dev/null bs=4096 2> /dev/null; touch kept; mv kept moved; mv moved kept;"
        " ./store")


class Point(NamedTuple):
    """Of a probe: the function of the source, and the address from _text."""
    name: str
    offset: int


Points = Dict[Point, Dict[str, str]]


def perf(*args: str, hidden: bool) -> "subprocess.CompletedProcess[str]":
    """Run perf, with debug information or without."""
    return subprocess.run([*(HIDDEN if hidden else []), "perf", *args], text=True, check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def find(pattern: str, hidden: bool) -> Points:
    """The points of all functions of a pattern, with the places of their parameters."""
    done = perf("probe", "--max-probes", "20000", "-D", f"{pattern} $params", hidden=hidden)
    points: Points = {}
    for line in done.stdout.splitlines():
        match = re.match(r"p:probe/(\w+?)(?:_\d+)? _text\+(\d+)(.*)", line)
        if match:
            points[Point(match[1], int(match[2]))] = dict(
                arg.split("=", 1) for arg in match[3].split())
    return points


def number(value: str) -> str:
    """A constant of 8 to 64 bits: a debug format may not tell its sign."""
    match = re.fullmatch(r"\\(-?\d+):[usx](\d+)", value)
    return f"{int(match[1]) % (1 << int(match[2])):#x}" if match else value


class Counts:
    """What is compared: arguments that both have, only one, and those that differ."""

    def __init__(self) -> None:
        self.points = self.same = self.only_btf = self.only_debug = 0
        self.places: List[str] = []     # that differ, of inlined functions
        self.entries: List[str] = []    # and where a function begins

    def add(self, btf: Points, debug: Points, begins: Set[int]) -> None:
        """Compare the points that both have."""
        for point in btf.keys() & debug.keys():
            self.points += 1
            one, other = btf[point], debug[point]
            self.only_btf += len(one.keys() - other.keys())
            self.only_debug += len(other.keys() - one.keys())
            for arg in one.keys() & other.keys():
                if number(one[arg]) == number(other[arg]):
                    self.same += 1
                else:
                    (self.entries if point.offset in begins else self.places).append(
                        f"{point}: {arg} {one[arg]}, debug information: {other[arg]}")


def read_symbols() -> Dict[str, int]:
    """The addresses of the functions of vmlinux."""
    with open("/proc/kallsyms", encoding="ascii") as lines:
        return {line.split()[2]: int(line.split()[0], 16) for line in lines
                if "[" not in line and line.split()[1] in "tT"}


def compare_patterns(rand: random.Random, symbols: Dict[str, int]) -> None:
    """Patterns of names, with as many points as take a minute in debug information."""
    begins = {address - symbols["_text"] for address in symbols.values()}
    names = sorted(name for name in symbols if re.fullmatch(r"[a-z]\w{5,}", name))
    counts, done = Counts(), 0
    while done < PATTERNS:
        pattern = rand.choice(names)[:4] + "*"
        btf = find(pattern, hidden=True)
        if FEW <= len(btf) <= MANY:
            counts.add(btf, find(pattern, hidden=False), begins)
            done += 1
            print(f"{pattern}: {len(btf)} points")
    print(f"points of both: {counts.points}; arguments that are the same: {counts.same}, only in"
          f" BTF: {counts.only_btf}, only in debug information: {counts.only_debug}, other ones"
          f" where a function begins: {len(counts.entries)}, in places: {len(counts.places)}")
    print("\n".join(counts.entries[:20]))
    # Debug information has no place for some before the first instructions, and perf takes the
    # next one that it has.
    if counts.places or len(counts.entries) > counts.same / 50:
        sys.exit("FAIL: " + "\n".join(counts.places[:20]))
    if counts.points < FEW or counts.same < FEW:
        sys.exit("FAIL: too few to tell anything")


def check_clones(rand: random.Random, names: List[str]) -> None:
    """Clones by the name of their function: a register without a parameter has no name."""
    clones = [name for name in names if re.fullmatch(r"[a-z]\w+\.(isra|constprop)\.0", name)]
    found = 0
    for name in rand.sample(clones, CLONES):
        points = find(name.partition(".")[0], hidden=True)
        found += bool(points)
        if any(arg.startswith("__arg") for args in points.values() for arg in args):
            sys.exit(f"FAIL: {name}: {points}")
    print(f"clones: {found} of {CLONES}")
    if found < CLONES / 2:
        sys.exit("FAIL: too few clones are found")


def find_points(hidden: bool) -> Set[str]:
    """The points of the program: "_text+OFFSET", or of a user program."""
    done = perf("probe", "--bpf", "prog.bpf.o", hidden=hidden)
    return set(re.findall(r"^p:\S+ (\S+)", done.stdout, re.MULTILINE))


def record(example: Example, hidden: bool) -> Set[str]:
    """The samples of the work: "(ADDRESS) ARG=VALUE ...". FAIL if perf cannot."""
    done = perf("record", "-q", "-o", "data", "-e", "prog.bpf.o", "--", "sh", "-c", WORK,
                hidden=hidden)
    if done.returncode:
        sys.exit(f"FAIL: perf record, {example.section}, hidden: {hidden}: {done.stderr}")
    said = perf("script", "-i", "data", "-F", "trace", hidden=hidden).stdout
    return set(re.findall(r"\([0-9a-f]+\).*", said))


def of_points(records: Set[str], points: Set[str], text: int) -> Set[str]:
    """Those of these points. User programs are at another address each time."""
    # The kernel moves one from ENDBR, where a function begins, to the next instruction.
    addresses = {f"({text + int(point[6:]) + moved:x})" for point in points
                 if point.startswith("_text+") for moved in (0, 4)}
    if not addresses:
        return {record.partition(" ")[2] for record in records}
    return {record for record in records if record.split()[0] in addresses}


def compare_example(example: Example, text: int) -> None:
    """By BTF are all points of debug information, or more, and all have the same records."""
    pathlib.Path("prog.bpf.c").write_text(
        example.source().replace('SEC("func=my_func', 'SEC("exec=./store;func=my_func'),
        encoding="ascii")
    subprocess.run(["clang", "-O2", "-g", "--target=bpf", "-c", "-o", "prog.bpf.o", "prog.bpf.c"],
                   check=True)
    btf, debug = find_points(True), find_points(False)
    by_btf, by_debug = (of_points(record(example, hidden), debug, text)
                        for hidden in (True, False))
    print(f"{example.page}, {example.section}: points {len(btf)}, in debug information"
          f" {len(debug)}; records {len(by_btf)} and {len(by_debug)}")
    if not debug or not btf >= debug or by_btf != by_debug:
        sys.exit(f"FAIL: {sorted(debug - btf)}\nonly by BTF: {sorted(by_btf - by_debug)}\n"
                 f"only by debug information: {sorted(by_debug - by_btf)}")
    if not by_btf and "func=my_func" not in example.section:
        sys.exit("FAIL: no record")


def main() -> None:
    """Both."""
    seed = int(sys.argv[1]) if len(sys.argv) > 1 else random.randrange(1 << 32)
    print(f"seed {seed}")
    symbols = read_symbols()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        os.environ.update(HOME=folder, DEBUGINFOD_URLS="")
        if perf("probe", "-D", "vfs_read@fs/read_write.c", hidden=True).returncode == 0:
            sys.exit("FAIL: debug information is found though it is hidden")
        if perf("probe", "-D", "vfs_read@fs/read_write.c", hidden=False).returncode:
            sys.exit("FAIL: debug information is not found")
        pathlib.Path("store.c").write_text(PROGRAM, encoding="ascii")
        subprocess.run(["gcc", "-O2", "-g", "-o", "store", "store.c"], check=True)
        pathlib.Path("kept").write_bytes(bytes(40960))
        for example in {example.section: example for example in examples()}.values():
            compare_example(example, symbols["_text"])
        compare_patterns(random.Random(seed), symbols)
        check_clones(random.Random(seed), sorted(symbols))
        os.chdir("/")


main()

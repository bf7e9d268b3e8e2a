#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""Do events on inlined functions have the arguments of each place, functions drawn at random?

  probe_inline_random.py [SEED]

Functions of the core kernel of which there is only inlined code. Each gets an event FUNC%inline
that prints its parameters by name, and for each place one that reads them where .BTF.inline has
them, as bpftool shows it. Both have to be the same each time, and what is not there is gone.
(tests/kernel/test_btf_inline.py compares these places with those that perf probe finds in the
debug information.)
"""

import collections
import os
import pathlib
import random
import re
import sys
from typing import Dict, List, Optional, Tuple

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent))
sys.dont_write_bytecode = True

from btf_args import DWARF_REGISTERS, Type, Types
from probe_work import TRACEFS, call_functions, define

FUNCTIONS, MAX_PLACES, HIT = 250, 40, 200
MAX_ARGS = 6
BPFTOOL = str(pathlib.Path(os.environ["SELFTESTS"]).parent / "out-samples/bpftool/bpftool")
BTF = "/sys/kernel/btf/vmlinux"
# The values of each record, by function, address and task
Records = Dict[Tuple[int, int, str], List[List[str]]]


def fetch(value: str) -> Optional[str]:
    """A place as a fetch argument: "" if it is none, None if that cannot be written."""
    match = re.fullmatch(r"\*\(reg(\d+) ([+-]) 0x(\w+)\)", value)
    if match:
        return f"{match[2]}{int(match[3], 16)}({DWARF_REGISTERS[int(match[1])]})"
    match = re.fullmatch(r"reg(\d+)", value)
    if match:
        return DWARF_REGISTERS[int(match[1])]
    if value.startswith("0x"):
        return f"\\{value}"
    return "" if value == "(none)" else None


class Function:
    """An inlined function: the names of its parameters, and for each address its places."""

    def __init__(self, types: Types, entries: List[Type], start: int) -> None:
        func = types.by_id[entries[0]["func_type_id"]]
        self.name = str(func["name"])
        self.params = {number: param["name"] for number, param in enumerate(types.params(func))
                       if types.words(param["type_id"]) == 1
                       and not re.match(r"\(anon|$", param["name"])}
        self.params = dict(list(self.params.items())[:MAX_ARGS])
        self.places = {start + entry["offset"]: [
            fetch(types.by_id[entry["loc_proto_type_id"]]["params"][number]["value"])
            for number in self.params] for entry in entries}
        # Of several places at one address only one could be read.
        self.unique = len(self.places) == len(entries)

    def define(self, number: int) -> str:
        """Define its events. The error, or nothing."""
        args = " ".join(f"a{i}={name}:x64" for i, name in enumerate(self.params.values()))
        error = define(f"p:inlined/i{number} {self.name}%inline {args}")
        for addr, places in [] if error else self.places.items():
            args = " ".join(f"a{i}={place or '%ip'}:x64" for i, place in enumerate(places))
            define(f"p:read/r{number} {addr:#x} {args}")    # refused where the other one is
        return error

    def wrong(self, addr: int, shown: List[List[str]], read: List[List[str]]) -> bool:
        """Do the records of both events of a task at an address differ?"""
        return len(shown) != len(read) or any(
            value != ("(gone)" if place == "" else expected)
            for one, other in zip(shown, read)
            for value, expected, place in zip(one, other, self.places[addr])
            if place is not None)


def candidates() -> List[Function]:
    """The functions of which there is only inlined code, with parameters."""
    types = Types(BPFTOOL, BTF, BTF + ".inline")
    with open("/proc/kallsyms", encoding="ascii") as lines:
        symbols = {line.split()[2]: int(line.split()[0], 16) for line in lines}
    by_name = collections.defaultdict(list)
    for entry in types.entries():
        by_name[entry["name"]].append(entry)
    compiled = {re.sub(r"\..*", "", name) for name in symbols}
    found = [Function(types, entries, symbols["_stext"]) for name, entries in by_name.items()
             if name not in compiled and len(entries) <= MAX_PLACES
             and len({entry["func_type_id"] for entry in entries}) == 1]
    return sorted((func for func in found if func.params and func.unique),
                  key=lambda func: func.name)


def records() -> Tuple[Records, Records]:
    """What both kinds of events have recorded, by function, address and task."""
    shown: Records = collections.defaultdict(list)
    read: Records = collections.defaultdict(list)
    with open(TRACEFS / "trace", encoding="ascii", errors="replace") as lines:
        for line in lines:
            match = re.match(r" *(\S+-\d+) .*? ([ir])(\d+): \(.* <(\w+)>\)(.*)", line)
            if match:
                values = re.findall(r" a\d+=(\S+)", match[5])
                (shown if match[2] == "i" else read)[
                    int(match[3]), int(match[4], 16), match[1]].append(values)
    return shown, read


def define_all(drawn: List[Function]) -> List[str]:
    """Define the events. The errors."""
    errors = [func.define(number) for number, func in enumerate(drawn)]
    if not any(error == "" for error in errors):
        sys.exit(f"FAIL: no event could be defined: {set(errors)}")
    # Some may not be probed, and of those all places.
    return [error for error in errors if error and "Failed to register" not in error]


def main() -> None:
    """Draw, define, run, compare."""
    if not pathlib.Path(BTF + ".inline").exists():
        sys.exit(f"FAIL: no {BTF}.inline: the kernel is without CONFIG_DEBUG_INFO_BTF_INLINE")
    seed = int(sys.argv[1]) if len(sys.argv) > 1 else random.randrange(1 << 32)
    print(f"seed {seed}")
    all_funcs = candidates()
    drawn = random.Random(seed).sample(all_funcs, FUNCTIONS)
    (TRACEFS / "buffer_size_kb").write_text("40000", encoding="ascii")
    (TRACEFS / "options/sym-addr").write_text("1", encoding="ascii")
    errors = define_all(drawn)
    # Both events of a place see it from the same time on.
    (TRACEFS / "tracing_on").write_text("0", encoding="ascii")
    (TRACEFS / "events/enable").write_text("0", encoding="ascii")
    for group in ("read", "inlined"):
        (TRACEFS / f"events/{group}/enable").write_text("1", encoding="ascii")
    (TRACEFS / "tracing_on").write_text("1", encoding="ascii")
    call_functions()
    (TRACEFS / "tracing_on").write_text("0", encoding="ascii")
    for group in ("inlined", "read"):
        (TRACEFS / f"events/{group}/enable").write_text("0", encoding="ascii")
    shown, read = records()
    (TRACEFS / "dynamic_events").write_text("", encoding="ascii")
    (TRACEFS / "options/sym-addr").write_text("0", encoding="ascii")
    (TRACEFS / "tracing_on").write_text("1", encoding="ascii")

    wrong = [f"{drawn[number].name}() at {addr:#x}, {task}: {values[:3]}, read: "
             f"{read.get((number, addr, task), [])[:3]}"
             for (number, addr, task), values in shown.items()
             if drawn[number].wrong(addr, values, read.get((number, addr, task), []))]
    places = {(number, addr) for number, addr, _ in shown}
    gone = sum(value == "(gone)" for values in shown.values() for one in values for value in one)
    print(f"drawn of {len(all_funcs)} functions: {FUNCTIONS}, with "
          f"{sum(len(func.places) for func in drawn)} places; hit: {len(places)} places, "
          f"{sum(map(len, shown.values()))} times; gone: {gone} values; wrong: {len(wrong)}")
    if wrong or errors:
        sys.exit("FAIL: " + "\n".join(wrong[:20] + errors[:20]))
    if len(places) < HIT / 4 or not gone:
        sys.exit("FAIL: too few places were hit to tell anything")


main()

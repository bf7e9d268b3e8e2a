#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""Do probe events fetch the arguments of functions that are hard to find, drawn at random?

  probe_random.py [SEED]

Two hundred functions of the core kernel: some whose name is not unique, clones of the compiler,
and some with structures passed by value. Each gets a kprobe event that prints its arguments by
name, which the kernel finds in BTF by the function's address, and once more from the registers
and the stack words that the ABI has for them. Both have to be the same each time.
(tests/kernel/test_btf_func.py compares these places with those that perf probe finds.)
"""

import collections
import os
import pathlib
import random
import re
import sys
from typing import Dict, Iterator, NamedTuple

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent))
sys.dont_write_bytecode = True

from btf_args import Type, Types
from probe_work import TRACEFS, call_functions, define

FUNCTIONS = 200
MAX_ARGS = 8
BPFTOOL = str(pathlib.Path(os.environ["SELFTESTS"]).parent / "out-samples/bpftool/bpftool")
BTF = "/sys/kernel/btf/vmlinux"


class Function(NamedTuple):
    """How an event names a function, and where the ABI has each of its arguments."""

    group: str
    target: str
    args: Dict[str, str]


def named_words(types: Types, func: Type) -> Dict[str, str]:
    """Where each argument is that has a name, which "..." has not, and is one word long."""
    places = types.places(func)
    names = [param["name"] for param in types.params(func)
             if types.words(param["type_id"]) == 1
             and not re.match(r"__arg\d|\(anon|$", param["name"])]
    return {name: places[name] for name in names[:MAX_ARGS]}


def by_value(types: Types, func: Type) -> bool:
    """Does a function get a structure of several words?"""
    return any(types.words(param["type_id"]) > 1 for param in types.params(func))


def candidates() -> Iterator[Function]:
    """All functions of the three groups that have arguments."""
    types = Types(BPFTOOL, BTF, BTF + ".func")
    with open("/proc/kallsyms", encoding="ascii") as lines:
        names = collections.Counter(line.split()[2] for line in lines
                                    if len(line.split()) == 3)
    for func in types.own:
        if func["kind"] != "FUNC":
            continue
        args = named_words(types, func)
        file = "".join(types.tags(func, "file:"))
        # The symbol of what runs before the kernel is mapped begins with __pi_.
        if file and names[func["name"]]:
            yield Function("same name", f"{func['name']}@{file}", args)
        elif "." in func["name"]:
            yield Function("clone", func["name"], args)
    for func in types.base:
        if func["kind"] == "FUNC" and names[func["name"]] == 1 and by_value(types, func):
            yield Function("by value", func["name"], named_words(types, func))


def add_event(number: int, func: Function) -> str:
    """Define the event of a function. The error, or nothing."""
    args = " ".join(f"a{i}={name}:x64 r{i}={place}:x64"
                    for i, (name, place) in enumerate(func.args.items()))
    error = define(f"p:random/f{number} {func.target} {args}")
    if error and "Failed to register" not in error:
        print(f"{func.target}: {error}")
    return error


def main() -> None:
    """Draw, define, run, compare."""
    if not pathlib.Path(BTF + ".func").exists():
        sys.exit(f"FAIL: no {BTF}.func: the kernel is without CONFIG_DEBUG_INFO_BTF_FUNC")
    seed = int(sys.argv[1]) if len(sys.argv) > 1 else random.randrange(1 << 32)
    print(f"seed {seed}")
    all_funcs = [func for func in candidates() if func.args]
    drawn = random.Random(seed).sample(all_funcs, FUNCTIONS)
    (TRACEFS / "buffer_size_kb").write_text("20000", encoding="ascii")
    refused = collections.Counter(error for number, func in enumerate(drawn)
                                  if (error := add_event(number, func)))
    if sum(refused.values()) == FUNCTIONS:
        sys.exit(f"FAIL: no event could be defined: {dict(refused)}")
    (TRACEFS / "events/random/enable").write_text("1", encoding="ascii")
    call_functions()
    (TRACEFS / "events/random/enable").write_text("0", encoding="ascii")

    hits: Dict[int, int] = collections.Counter()
    wrong = []
    with open(TRACEFS / "trace", encoding="ascii", errors="replace") as lines:
        for line in lines:
            match = re.search(r" f(\d+): \(\S+", line)
            if line.startswith("#") or not match:
                continue
            hits[int(match[1])] += 1
            values = dict(re.findall(r"([ar]\d+)=(0x[0-9a-f]+)", line))
            if any(values[f"r{name[1:]}"] != value for name, value in values.items()):
                wrong.append(f"{drawn[int(match[1])]}: {line.strip()}")
    (TRACEFS / "dynamic_events").write_text("", encoding="ascii")

    groups = collections.Counter(func.group for func in drawn)
    hit = collections.Counter(drawn[number].group for number in hits)
    print(f"drawn of {len(all_funcs)}: {dict(groups)}; hit: {dict(hit)}, "
          f"{sum(hits.values())} times; refused: {dict(refused)}")
    # __init functions are gone, and some may not be probed.
    unexpected = [error for error in refused if "Failed to register" not in error and
                  "Invalid probed address" not in error]
    if wrong or unexpected:
        sys.exit("FAIL: " + "\n".join(wrong[:20] + unexpected))
    if len(hits) < 5 or sum(refused.values()) > FUNCTIONS / 2:
        sys.exit("FAIL: too few functions were probed or hit to tell anything")


main()

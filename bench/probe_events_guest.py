#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""Runs in the guest for bench/probe-events: prints "NAME NUMBER" lines, the instructions
of the definition of a probe event, on average over EVENTS of them on FUNCTIONS
functions."""

import os
import re
import subprocess
import time
from typing import List

EVENTS = 1000
FUNCTIONS = 100
TRACEFS = "/sys/kernel/tracing"
KINDS = {
    "kprobe_raw": "p:bench/e{} {} x=%di",
    "kprobe_argn": "p:bench/e{} {} $arg1",
    "kprobe_typed": "p:bench/e{} {} $arg*",
    "kretprobe_typed": "r:bench/e{} {} $arg* $retval",
    "fprobe_raw": "f:bench/e{} {}",
    "fprobe_typed": "f:bench/e{} {} $arg*",
}


def define(lines: List[str]) -> int:
    """Define events and remove them; return the nanoseconds that it took to define them.
    OSError: the kernel refuses one."""
    with open(f"{TRACEFS}/dynamic_events", "wb", buffering=0) as events:
        begun = time.monotonic_ns()
        for line in lines:
            events.write(f"{line}\n".encode())
        took = time.monotonic_ns() - begun
    with open(f"{TRACEFS}/dynamic_events", "wb"):
        pass
    return took


def fits(function: str) -> bool:
    """Does the kernel accept events of all kinds on a function?"""
    try:
        define([kind.format(number, function) for number, kind in enumerate(KINDS.values())])
    except OSError:
        return False
    return True


def choose() -> List[str]:
    """Functions from all over the kernel: where a name is in the order of all names decides
    how long it takes to find it."""
    with open(f"{TRACEFS}/available_filter_functions", encoding="ascii") as lines:
        names = sorted(line.strip() for line in lines if re.fullmatch("[a-z_]+", line.strip()))
    rest = iter(names[::len(names) // (FUNCTIONS * 4)])
    return [name for name in rest if fits(name)][:FUNCTIONS]


def main() -> None:
    """Define EVENTS of each kind."""
    if not os.path.exists(f"{TRACEFS}/dynamic_events"):
        subprocess.run(["mount", "-t", "tracefs", "nodev", TRACEFS], check=True)
    functions = choose()
    for name, kind in KINDS.items():
        lines = [kind.format(number, functions[number % len(functions)])
                 for number in range(EVENTS)]
        print(name, define(lines) // EVENTS, flush=True)


if __name__ == "__main__":
    main()

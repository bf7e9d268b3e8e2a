#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""Does perf report --bpf-programs give each BPF program its share?

PROGRAMS programs run one after the other, in ROUNDS, the first for FIRST_MS in all, each
other one for STEP_MS more than the one before it. The kernel counts how long each runs
(kernel.bpf_stats_enabled), and perf takes samples. The share of each in all samples
within them has to be that of its run time, within three standard errors of so many
samples. The table also has the run time and the run count of the kernel, and the second event of
the group has its own shares, which are those of the run time too.

A virtual CPU that its host does not run takes no samples, but its clock goes on: a round
that took a program much longer than its others counts as one of those.
"""

import ctypes
import json
import math
import os
import signal
import statistics
import struct
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Dict, Iterator, List

from bpf_syscalls import SYS_BPF, fdinfo, load_program, program_info, syscall

PROGRAMS, FIRST_MS, STEP_MS = 50, 40, 8
ROUNDS, MUCH_LONGER = 20, 1.5
# From linux/bpf.h
BPF_PROG_TEST_RUN = 10
LDX_W, MUL, EXIT = 0x61, 0x27, 0x95
INSNS = 3000
STATS = Path("/proc/sys/kernel/bpf_stats_enabled")
FREQUENCY = 999


def code(number: int) -> bytes:
    """r0 = *(u32 *)(r1 + 0), the length of the packet; many times r0 *= an odd number; exit. With
    a value that is not known beforehand qemu has to do all of them."""
    insn = struct.Struct("<BBhi")
    return (insn.pack(LDX_W, 0x10, 0, 0) + insn.pack(MUL, 0, 0, 2 * number + 3) * INSNS +
            insn.pack(EXIT, 0, 0, 0))


def run(program: int, repeat: int) -> int:
    """Run a program; return how long it took on average, in nanoseconds."""
    packet = ctypes.create_string_buffer(64)
    attr = ctypes.create_string_buffer(struct.pack(
        "<IIIIQQII", program, 0, len(packet), 0, ctypes.addressof(packet), 0, repeat, 0))
    syscall(SYS_BPF, BPF_PROG_TEST_RUN, ctypes.addressof(attr), len(attr) - 1)
    return max(1, struct.unpack_from("<I", attr, 36)[0])


def record(data: Path, programs: List[int]) -> List[List[int]]:
    """Run each program for its time, while perf records this CPU; how long each took in each
    round, in nanoseconds."""
    rounds: List[List[int]] = [[] for _ in programs]
    run(programs[0], 100)       # qemu translates it
    repeat_of_ms = 1e6 / run(programs[0], 2000)
    with subprocess.Popen(["perf", "record", "-q", "-a", "-e", "{cpu-clock,task-clock}:S", "-F",
                           str(FREQUENCY), "-o", str(data)], stdin=subprocess.DEVNULL) as perf:
        while not data.exists():
            time.sleep(0.1)
        time.sleep(2)
        for number, program in list(enumerate(programs)) * ROUNDS:
            before = fdinfo(program, "run_time_ns")
            run(program, int((FIRST_MS + STEP_MS * number) * repeat_of_ms / ROUNDS))
            rounds[number].append(fdinfo(program, "run_time_ns") - before)
        perf.send_signal(2)
    return rounds


@contextmanager
def stats_enabled() -> Iterator[None]:
    """kernel.bpf_stats_enabled is 1 meanwhile, and then what it was."""
    before = STATS.read_text(encoding="ascii")
    STATS.write_text("1\n", encoding="ascii")
    try:
        yield
    finally:
        STATS.write_text(before, encoding="ascii")


def undisturbed(rounds: List[int]) -> float:
    """How long a program took in all, without what the host took of its rounds."""
    usual = statistics.median(rounds)
    return sum(took if took < MUCH_LONGER * usual else usual for took in rounds)


def report(data: Path) -> List[Dict[str, Dict[str, Any]]]:
    """The rows of perf report for each event, by the name of the program."""
    done = subprocess.run(["perf", "report", "-i", str(data), "--bpf-programs=json"], check=True,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
    return [{row["name"]: row for row in event["programs"]}
            for event in json.loads(done.stdout)["events"]]


def worst_share(rows: Dict[str, Dict[str, Any]], took: Dict[str, float], samples: int) -> float:
    """The most standard errors between the shares in the periods and those in the run time."""
    total, periods = sum(took.values()), sum(rows[name]["period"] for name in took if name in rows)
    worst = 0.0
    for name, ran in took.items():
        share = ran / total
        seen = rows[name]["period"] / periods if name in rows else 0.0
        errors = abs(seen - share) / math.sqrt(share * (1 - share) / samples)
        worst = max(worst, errors)
        if errors > 3:
            print(f"{name}: {share:.4f} of the run time, {seen:.4f} of the samples")
    return worst


def measure(programs: List[int]) -> bool:
    """Record once, and print how far the shares are apart. Return: whether they are right."""
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder) / "perf.data"
        with stats_enabled():
            rounds = record(data, programs)
        clock, group = report(data)
    names = [program_info(file).name for file in programs]
    told = all((clock[name]["run-time-ns"], clock[name]["run-count"]) ==
               (fdinfo(file, "run_time_ns"), fdinfo(file, "run_cnt"))
               for name, file in zip(names, programs) if name in clock)
    took = {name: undisturbed(ran) for name, ran in zip(names, rounds)}
    samples = sum(clock[name]["samples"] for name in names if name in clock)
    worst = [worst_share(rows, took, samples) for rows in (clock, group)]
    print(f"{len(names)} programs ran {sum(took.values()) / 1e9:.1f} s and have {samples} samples:"
          f" at most {worst[0]:.2f} standard errors between the shares in both, {worst[1]:.2f} in"
          " those of the other event of the group")
    print("the table has how often and how long each ran" if told else
          "run counts or times in the table are not those of the kernel")
    return max(worst) <= 3 and told


def main() -> int:
    """0 if all shares are right. One in some hundred shares is more than 3 standard errors away
    by chance: then it is recorded once more."""
    signal.signal(signal.SIGTERM, lambda number, _frame: sys.exit(128 + number))
    os.sched_setaffinity(0, [(os.cpu_count() or 1) - 1])
    programs = [load_program(f"share_{n}", code=code(n)) for n in range(PROGRAMS)]
    return int(not measure(programs) and not measure(programs))


if __name__ == "__main__":
    sys.exit(main())

# SPDX-License-Identifier: GPL-2.0
"""Are the shares that perf annotate gives to the lines of a BPF program the true ones?

A program runs on this machine's kernel whose lines have known numbers of instructions. Each of
these multiplies what the one before it left, the first one what the last run left: a processor
that could begin the next run early would show less of its first line. So all of them take the
same time, and the share of a line in the samples is that of its instructions.
"""
from __future__ import annotations

import ctypes
import math
import os
import random
import re
import struct
import subprocess
import time
from pathlib import Path
from typing import Iterator

import pytest

import bpf_syscalls
from perfdata import Function, Line, Program, program_btf
from subject import perf_binary, run_perf

LINES, INSNS = 10, 3000
FREQUENCY, SECONDS = 4000, 2
LDX_W, STX_W, MUL, EXIT = 0x61, 0x63, 0x27, 0x95
CB = 48  # offsetof(struct __sk_buff, cb)
BPF_PROG_TEST_RUN = 10
INSN = struct.Struct("<BBhi")
# one of so many lines is that far off in 27 of 1,000 runs, by chance
ERRORS, RUNS = 3, 3


def lines_of(rng: random.Random) -> list[int]:
    """How many instructions each line has: all of them INSNS, none less than a quarter of its part,
    so that what enters and leaves the function does not count."""
    cuts = sorted(rng.sample(range(1, INSNS * 3 // 4), LINES - 1))
    return [INSNS // (4 * LINES) + end - start
            for start, end in zip([0, *cuts], [*cuts, INSNS * 3 // 4])]


def load(name: str, counts: list[int]) -> int:
    """Load a program: cb[0] of the packet is multiplied by odd numbers, line by line."""
    lines = [Line(0, "truth.c", number + 1, 1, f"\tline_{number}();") for number in range(LINES)]
    btf, functions = program_btf(Program(1, name, [Function(name, 0, b"", lines)]))
    starts = [0, *(1 + sum(counts[:number]) for number in range(1, LINES))]
    records = b"".join(struct.pack("<IIII", start, btf.string(line.file), btf.string(line.text),
                                   line.line << 10 | 1) for start, line in zip(starts, lines))
    code = INSN.pack(LDX_W, 0x10, CB, 0)
    code += b"".join(INSN.pack(MUL, 0, 0, 2 * i + 3) for i in range(sum(counts)))
    code += INSN.pack(STX_W, 0x01, CB, 0) + INSN.pack(EXIT, 0, 0, 0)
    return bpf_syscalls.load_program(name, code=code, btf=btf.blob(),
                                     funcs=struct.pack("<II", 0, functions[0]), lines=records)


def run(program: int, repeat: int) -> None:
    """Run a program."""
    packet = ctypes.create_string_buffer(64)
    bpf_syscalls.bpf(BPF_PROG_TEST_RUN, struct.pack(
        "<IIIIQQII", program, 0, len(packet), 0, ctypes.addressof(packet), 0, repeat, 0))


def record(work: Path, event: str, program: int) -> None:
    """Record this CPU while the program runs on it."""
    with subprocess.Popen([str(perf_binary()), "record", "-q", "-e", event, "-F", str(FREQUENCY),
                           "-p", str(os.getpid()), "-o", str(work / "perf.data")],
                          stdin=subprocess.DEVNULL, env={**os.environ, "HOME": str(work)}) as perf:
        while not (work / "perf.data").exists() and perf.poll() is None:
            time.sleep(0.01)
        end = time.monotonic() + SECONDS
        while time.monotonic() < end and perf.poll() is None:
            run(program, 2000)
        perf.send_signal(2)
    assert perf.returncode in (0, -2), f"perf record -e {event} failed"


def samples_by_line(work: Path, symbol: str) -> list[float]:
    """How many samples perf annotate has in each line."""
    shown = run_perf(work, ["annotate", "--stdio", "-i", "perf.data", "--show-nr-samples", "-s",
                            symbol])
    counts, line = [0.0] * LINES, 0
    for words in map(str.split, shown.out.splitlines()):
        if len(words) > 1 and words[0] == ":" and words[1].isdigit():
            line = int(words[1])
        elif line and len(words) > 1 and words[1] == ":" and re.fullmatch(r"[\d.]+", words[0]):
            counts[line - 1] += float(words[0])
    assert sum(counts), str(shown)
    return counts


def worst_error(found: list[float], expected: list[int]) -> float:
    """The most standard errors between the share of a line in the samples and in the code."""
    total, insns = sum(found), sum(expected)
    shares = [count / insns for count in expected]
    return max(abs(seen / total - share) / math.sqrt(share * (1 - share) / total)
               for seen, share in zip(found, shares))


@pytest.fixture(name="event", params=["cpu-clock", "cycles"])
def fixture_event(request: pytest.FixtureRequest) -> Iterator[str]:
    """An event that this machine has."""
    done = subprocess.run([str(perf_binary()), "stat", "-e", f"{request.param}:k", "true"],
                          capture_output=True, check=False, text=True)
    if done.returncode or "<not " in done.stderr:
        pytest.skip(f"this machine has no event {request.param}")
    yield request.param


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root: BPF programs and their code")
def test_shares_of_lines(tmp_path: Path, event: str) -> None:
    """Those of perf annotate are within three standard errors of the true ones."""
    seed = random.randrange(1 << 32)
    counts = lines_of(random.Random(seed))
    print("seed", seed, "instructions", counts)
    program = load(f"truth_{os.getpid()}", counts)
    try:
        for _ in range(RUNS):
            record(tmp_path, event, program)
            name = re.search(rf"bpf_prog_\w+_truth_{os.getpid()}",
                             run_perf(tmp_path, ["report", "-i", "perf.data", "--stdio"]).out)
            assert name, "the program has no sample"
            found = samples_by_line(tmp_path, name.group())
            error = worst_error(found, counts)
            print(f"{sum(found):.0f} samples, {error:.2f} standard errors at most: {found}")
            if error < ERRORS:
                break
    finally:
        os.close(program)
    assert error < ERRORS, f"{found} samples in lines of {counts} instructions"

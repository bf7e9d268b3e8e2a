# SPDX-License-Identifier: GPL-2.0
"""Which loads from the context of a perf event a 32-bit kernel accepts.

C for BPF has a long of 8 bytes, and so has its struct pt_regs. So a program has
other offsets than a 32-bit kernel, and the kernel must not take those of its fields
for others. The kernel's check is compiled for i386 and runs here, under qemu-user
where the kernel runs no 32-bit programs. It takes a minute, so that it is left out
when it has passed with all as it is now (tests/passed), unless asked for by name.
"""
from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Set, Tuple

import pytest

from once import Once
from perfbpf.paths import BUILD
from subject import subject_name

TESTS = Path(__file__).resolve().parent
OPTIONS = ("BPF_SYSCALL", "PERF_EVENTS")
OBJECT = "kernel/trace/bpf_perf_sample.o"
REGS = 68       # sizeof(struct pt_regs) of i386
PERIOD = REGS
ADDR = PERIOD + 8
DATA = ADDR + 8


def run(*command: str, cwd: Path) -> bytes:
    """What a command prints; pytest fails with its errors."""
    done = subprocess.run(command, cwd=cwd, capture_output=True, check=False)
    if done.returncode:
        pytest.fail(f"{' '.join(command)}: {done.stderr.decode(errors='replace')[-2000:]}")
    return done.stdout


def accepted(out: Path) -> Set[Tuple[int, int]]:
    """(offset, size) of each load that is accepted: compile the kernel's check, run it."""
    linux = BUILD / "linux"
    make = ("make", "-s", f"-j{os.cpu_count()}", "ARCH=i386", f"O={out}")
    run(*make, "tinyconfig", cwd=linux)
    run("scripts/config", "--file", str(out / ".config"),
        *(word for option in OPTIONS for word in ("-e", option)), cwd=linux)
    run(*make, "olddefconfig", cwd=linux)
    run(*make, OBJECT, cwd=linux)
    program = out / "sample_ctx_32"
    run("gcc", "-m32", "-mregparm=3", "-O2", "-ffreestanding", "-fno-pie", "-no-pie",
        "-fno-stack-protector", "-nostdlib", "-static", "-o", str(program),
        str(TESTS / "sample_ctx_32.c"), str(out / OBJECT), cwd=linux)
    try:
        valid = run(str(program), cwd=out)
    except OSError:     # this kernel does not run 32-bit programs
        valid = run("qemu-i386", str(program), cwd=out)
    return {(i // 4, 1 << i % 4) for i, byte in enumerate(valid) if byte}


def test_loads(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    """What mainline accepts is accepted, and nothing else that a 64-bit program could mean."""
    if subject_name() == "base":
        pytest.skip("the base has its check in a static function of bpf_trace.c")
    once = Once("sample-ctx-32", request)
    once.skip()
    loads = accepted(tmp_path)
    assert {(off, 4) for off in range(0, REGS, 4)} <= loads
    assert {(PERIOD, 8), (ADDR, 8), (PERIOD, 4), (ADDR + 2, 2)} <= loads
    # Loads of the second 4 bytes of sample_period and addr would read behind the registers:
    # the verifier makes them loads at an offset that is no field's.
    assert not {(off, size) for off, size in loads if size < 8 and off >= PERIOD
                and (off - PERIOD) % 8 >= 4}
    # A 64-bit program's sample_period is at 144, and its addr at 152: mainline refuses these
    # as they are beyond the end.
    assert not {load for load in loads if load[0] >= DATA}
    once.passed()

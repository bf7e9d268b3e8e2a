# SPDX-License-Identifier: GPL-2.0
"""Counts of instructions in a guest, for bench/ksymbol, bpf-event, sample-data,
probe-events and instances.

Under qemu's -icount shift=0 time is a count of instructions: an instruction
takes a nanosecond, and whatever else the machine does makes no difference.
"""

import os
import subprocess
from pathlib import Path
from typing import Dict, Sequence

TOP = Path(__file__).resolve().parent.parent
BUILD = Path(os.environ.get("PERF_BPF_BUILD", TOP / "build")).absolute()
TOOLS = BUILD / "linux/tools"
LIBRARY = TOOLS / "testing/selftests/perf_events/lib"
LIBBPF = BUILD / "out-selftests/perf_events/libbpf/libbpf.a"
# One CPU, since -icount runs them one after the other; time that is slept is
# left out. virtme-ng names the number of CPUs itself: the last one counts.
QEMU = """#!/bin/bash
args=()
while (($#)); do
	case $1 in
	-smp) args+=(-smp 1); shift ;;
	*) args+=("$1") ;;
	esac
	shift
done
exec qemu-system-x86_64 "${args[@]}" -icount shift=0,sleep=off
"""
SECONDS = 1500


def compile_guest(source: Path, out: Path) -> None:
    """A program for the guest, with the library of the selftests
    (CalledProcessError: the compiler says why)."""
    subprocess.run(
        ["gcc", "-O2", "-Wall", "-D_GNU_SOURCE=", f"-I{LIBRARY}", f"-I{LIBRARY.parent.parent}",
         f"-I{TOOLS}/include", f"-I{TOOLS}/lib", "-isystem",
         str(BUILD / "out-headers/usr/include"), "-o", str(out), str(source),
         *(str(part) for part in sorted(LIBRARY.glob("*.c"))), str(LIBBPF), "-lelf", "-lz"],
        check=True)


def measure(kernel: str, program: Path, work: Path, icount: bool = True,
            arguments: Sequence[str] = ()) -> Dict[str, int]:
    """What the program printed in a guest of kernel base or series, as "NAME
    NUMBER" lines (RuntimeError: the guest failed). Without icount the guest has two
    CPUs, and time is that of the machine."""
    results = work / kernel
    environment = dict(os.environ)
    if icount:
        qemu = work / "qemu-icount"
        qemu.write_text(QEMU)
        qemu.chmod(0o755)
        environment["QEMU"] = str(qemu)     # KVM refuses -icount, so this is TCG
    done = subprocess.run(
        [str(TOP / "stack/guest"), "--kernel", kernel, "--timeout", str(SECONDS),
         "--results", str(results), "--", str(program), *arguments],
        env=environment,
        capture_output=True, text=True, errors="replace", check=False)
    if done.returncode:
        raise RuntimeError(f"kernel {kernel}: {done.stdout[-300:]}{done.stderr[-700:]}")
    rows: Dict[str, int] = {}
    for line in done.stdout.splitlines():
        words = line.split()
        if len(words) == 2 and words[1].isdigit():
            rows[words[0]] = int(words[1])
    return rows

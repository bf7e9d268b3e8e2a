#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""Runs in the guest for bench/many-programs: prints "NAME NUMBER" lines, what perf takes
while so many BPF programs are loaded, in milliseconds and KiB.

    many_programs_guest.py PROGRAMS NAME=PERF...

Each perf records for a moment and reports what it recorded, and shows a table as perf
top, while the programs are loaded; and perf top goes on while as many come and go.
"""

import ctypes
import os
import resource
import struct
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Iterator, List

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "tests/guest"))
sys.dont_write_bytecode = True

from bpf_syscalls import BPF_PROG_LOAD, BPF_PROG_TYPE_SOCKET_FILTER, PROGRAM, bpf

# From linux/bpf.h and linux/btf.h
BPF_BTF_LOAD = 18
BTF_MAGIC, BTF_KIND_INT, BTF_KIND_FUNC, BTF_KIND_FUNC_PROTO = 0xeb9f, 1, 12, 13
WAIT_S = 600
TICKS = os.sysconf("SC_CLK_TCK")
WORK = Path("/tmp/many-programs")


def load_btf() -> int:
    """The file of a BTF with one function, whose type is 3; raises OSError."""
    strings = b"\0int\0function\0bench.bpf.c\0return 0;\0"
    types = (struct.pack("<IIII", 1, BTF_KIND_INT << 24, 4, 1 << 24 | 32) +
             struct.pack("<III", 0, BTF_KIND_FUNC_PROTO << 24, 1) +
             struct.pack("<III", strings.index(b"function"), BTF_KIND_FUNC << 24 | 1, 2))
    data = ctypes.create_string_buffer(
        struct.pack("<HBBIIIII", BTF_MAGIC, 1, 0, 24, 0, len(types), len(types), len(strings)) +
        types + strings)
    return bpf(BPF_BTF_LOAD, struct.pack("<QQII", ctypes.addressof(data), 0, len(data) - 1, 0))


class Loader:
    """Loads programs that differ in name, each with a function and a source line."""

    def __init__(self) -> None:
        self.btf = load_btf()
        self.code = ctypes.create_string_buffer(PROGRAM)
        self.license = ctypes.create_string_buffer(b"GPL")
        self.function = ctypes.create_string_buffer(struct.pack("<II", 0, 3))
        self.line = ctypes.create_string_buffer(struct.pack("<IIII", 0, 14, 26, 1 << 10 | 1))

    def load(self, number: int) -> int:
        """The file of a program; raises OSError."""
        return bpf(BPF_PROG_LOAD, struct.pack(
            "<IIQQIIQII16sIIIIQIIQI", BPF_PROG_TYPE_SOCKET_FILTER, len(PROGRAM) // 8,
            ctypes.addressof(self.code), ctypes.addressof(self.license), 0, 0, 0, 0, 0,
            f"many_{number}".encode(), 0, 0, self.btf,
            8, ctypes.addressof(self.function), 1,
            16, ctypes.addressof(self.line), 1))


def run(name: str, words: List[str]) -> None:
    """Run perf; print its user and system time and its memory (RuntimeError: it failed)."""
    begun = time.monotonic()
    with open(WORK / "said", "wb") as said, \
            subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=said, stderr=said,
                             cwd=WORK) as process:
        status, usage = os.wait4(process.pid, 0)[1:]
        process.returncode = status
    if status:
        raise RuntimeError(f"{words}: status {status}: " + (WORK / "said").read_text()[-500:])
    print(f"{name}_user", int(usage.ru_utime * 1000))
    print(f"{name}_system", int(usage.ru_stime * 1000))
    print(f"{name}_elapsed", int((time.monotonic() - begun) * 1000))
    print(f"{name}_memory", usage.ru_maxrss, flush=True)


def print_top(name: str, pid: int) -> None:
    """Print what perf top has taken until now."""
    words = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    print(f"{name}_user", int(words[11]) * 1000 // TICKS)
    print(f"{name}_system", int(words[12]) * 1000 // TICKS)
    for line in Path(f"/proc/{pid}/status").read_text(encoding="ascii").splitlines():
        if line.startswith("VmRSS:"):
            print(f"{name}_memory", line.split()[1], flush=True)


def wait_for_table(shown: IO[bytes], tables: int) -> None:
    """Wait until perf top has printed more tables (TimeoutError: it does not)."""
    end, seen = time.monotonic() + WAIT_S, 0
    while seen < tables:
        if time.monotonic() > end:
            raise TimeoutError(f"perf top printed {seen} tables of {tables} in {WAIT_S} s")
        time.sleep(0.1)
        seen += shown.read().count(b"PerfTop:")


@contextmanager
def perf_top(perf: str) -> Iterator[subprocess.Popen]:
    """perf top, which prints tables into the file "shown"."""
    with open(WORK / "shown", "wb") as out, \
            subprocess.Popen(["stdbuf", "-oL", perf, "top", "--stdio", "-d", "1", "-z", "-a",
                              "-F", "99", "-e", "cpu-clock"], stdin=subprocess.PIPE, stdout=out,
                             stderr=out) as top:
        try:
            yield top
        finally:
            top.kill()


def top_come_and_go(name: str, perf: str, loader: Loader, programs: int) -> None:
    """What perf top takes until its first table, and after as many programs more."""
    begun = time.monotonic()
    with perf_top(perf) as top, open(WORK / "shown", "rb") as shown:
        wait_for_table(shown, 1)
        print(f"{name}_top_elapsed", int((time.monotonic() - begun) * 1000))
        print_top(f"{name}_top", top.pid)
        for number in range(programs):
            os.close(loader.load(number))
        wait_for_table(shown, 5)
        print_top(f"{name}_gone", top.pid)


def main() -> None:
    """Load, and measure each perf; raises OSError, RuntimeError, TimeoutError."""
    programs = int(sys.argv[1])
    resource.setrlimit(resource.RLIMIT_NOFILE, (programs + 1000, programs + 1000))
    WORK.mkdir(exist_ok=True)
    loader, begun = Loader(), time.monotonic()
    files = [loader.load(number) for number in range(programs)]
    print("load_elapsed", int((time.monotonic() - begun) * 1000), flush=True)
    perfs = [word.split("=", 1) for word in sys.argv[2:]]
    for name, perf in perfs:
        run(f"{name}_record", [perf, "record", "-a", "-e", "cpu-clock", "-o", "perf.data",
                               "--", "true"])
        print(f"{name}_file_bytes", (WORK / "perf.data").stat().st_size)
        run(f"{name}_report", [perf, "report", "--stdio", "-i", "perf.data"])
        (WORK / "perf.data").unlink()
    for file in files[programs // 10:]:
        os.close(file)
    for name, perf in perfs:
        top_come_and_go(name, perf, loader, programs)


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Mutated perf.data files: no crash, no hang, whatever is in them.

There are two kinds of mutations. The one lies in what a BPF program's arrays, its
BTF and its records hold, and the file is laid out honestly after that. The other
(--bytes) takes a finished file of carriers.py, or recordings given by name, and
changes bytes, words, sizes and offsets in it, cuts it short, or moves its pieces.

As a test it runs the same FILES and BYTE_FILES mutations every time. By hand it runs
for as long as asked, best with a perf built with -fsanitize=address,undefined:

    PERF=/path/to/perf /usr/bin/python3 tests/perf/test_fuzz.py --seconds 3600 --seed 1
    PERF=/path/to/perf /usr/bin/python3 tests/perf/test_fuzz.py --bytes --files 10000 --jobs 2

A file that breaks perf is kept, under build/results/fuzz/ when run by hand; its
number alone makes it again (--seed N --files 1), for those of a recording with the
recording.
"""
from __future__ import annotations

import argparse
import random
import struct
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Callable, Optional, Sequence

import perfdata as pd
from carriers import CARRIERS, carrier
from perfdata import PerfData
from subject import BUILD, Result, run_perf
from test_hostile import SAMPLED, bystander, victim

FILES = 60          # 30 s
BYTE_FILES = 60     # 30 s: two commands for each
TIMEOUT = 20        # seconds for a command on a file of a few KB
COMMANDS: Sequence[Sequence[str]] = (
    ("report", "--header-only", "-I"),
    ("annotate", "--stdio"),
    ("report", "--stdio", "--sort", "sym,srcline"),
    ("script", "-F", "ip,sym,insn,srcline"),
    ("inject", "-o", "out.data"),
)
BYTE_COMMANDS: Sequence[Sequence[str]] = (
    ("report", "--stdio"),
    ("inject", "-o", "out.data"),
    ("script", "--kallsyms", "empty"),
    ("annotate", "--stdio"),
    ("script", "--header", "-D", "--kallsyms", "empty"),
    ("report", "--header-only", "-I"),
)
EDGES = (0, 1, 2, 3, 4, 7, 8, 16, 0xff, 0x100, 0x7fff, 0xffff, 0x10000, 0x7fffffff,
         0x80000000, 0xfffffff8, 0xffffffff)

Rng = random.Random


def edge(rng: Rng, bits: int) -> int:
    """Return a number that is on some edge, or any at all, of so many bits."""
    value = rng.choice((*EDGES, 1 << (bits - 1), (1 << bits) - 8, rng.getrandbits(bits),
                        rng.randrange(4096)))
    return value & ((1 << bits) - 1)


def lie_in_info(rng: Rng) -> PerfData:
    """Fields of bpf_prog_info, and the bits of its arrays, are something else."""
    fields = {}
    for name, code in rng.sample(pd.INFO_FIELDS, rng.randint(1, 4)):
        if not code.endswith("s"):
            fields[name] = edge(rng, 64 if code == "Q" else 32)
    arrays = rng.choice((None, rng.getrandbits(9), 0x1ff))
    return recorded(victim(fields=fields, arrays=arrays))


def lie_in_array(rng: Rng) -> PerfData:
    """Words in the arrays are something else."""
    honest = pd.program_arrays(victim())
    blobs = {}
    for name in rng.sample(sorted(honest), rng.randint(1, 3)):
        blobs[name] = words(rng, honest[name])
    return recorded(victim(blobs=blobs))


def lie_in_btf(rng: Rng) -> PerfData:
    """Words of the BTF, its header included, are something else."""
    return recorded(victim(btf=words(rng, pd.program_btf(victim())[0].blob())))


def lie_in_records(rng: Rng) -> PerfData:
    """KSYMBOL, BPF_EVENT and TEXT_POKE records with any numbers in them."""
    base = rng.choice([f.addr for f in victim().functions] + [pd.KERNEL_START, 0, (1 << 64) - 1])
    addr = (base + rng.randint(-64, 64)) & ((1 << 64) - 1)
    made = [
        pd.ksymbol(rng.choice(("", "x", "bpf_trampoline_1", "n" * 600)), addr, edge(rng, 32),
                   flags=rng.randint(0, 3), ksym_type=edge(rng, 16)),
        pd.bpf_event(rng.choice((7, 9, 8)), rng.randbytes(8), rng.randint(0, 3)),
        pd.text_poke(addr, rng.randbytes(rng.randrange(32)), rng.randbytes(rng.randrange(200))),
    ]
    file = recorded(victim())
    at = rng.randrange(2, len(file.records))
    chosen = rng.choices(made, k=rng.randint(1, 5))
    file.records = [*file.records[:at], *chosen, *file.records[at:]]
    return file


def words(rng: Rng, raw: bytes) -> bytes:
    """Return raw with a few of its 32-bit words changed, or cut short."""
    out = bytearray(raw)
    for _ in range(rng.randint(1, 6)):
        at = rng.randrange(max(1, len(out) // 4)) * 4
        struct.pack_into("<I", out, min(at, len(out) - 4), edge(rng, 32))
    return bytes(out[:rng.randrange(len(out))] if rng.random() < 0.2 else out)


def recorded(program: pd.Program) -> PerfData:
    """The program, an honest one, and samples in both."""
    return pd.recording([program, bystander()], SAMPLED)


def scribble(rng: Rng, raw: bytes) -> bytes:
    """Return a file with bytes changed behind its attr, or its end cut off."""
    out = bytearray(raw)
    for _ in range(rng.randint(1, 8)):
        out[rng.randrange(104 + pd.ATTR_SIZE + 16, len(out))] = rng.choice((0, 1, 0x7f, 0x80, 0xff,
                                                                          rng.randrange(256)))
    return bytes(out[:rng.randrange(248, len(out))] if rng.random() < 0.1 else out)


MAKERS: Sequence[Callable[[Rng], PerfData]] = (
    lie_in_info, lie_in_array, lie_in_btf, lie_in_records)


def mutation(number: int) -> bytes:
    """Return the file of that number: the same for ever."""
    rng = Rng(number)
    maker = rng.choice((*MAKERS, None))
    if maker is None:
        return scribble(rng, recorded(victim()).to_bytes())
    raw = maker(rng).to_bytes()
    return scribble(rng, raw) if rng.random() < 0.1 else raw


# -- bytes of a finished file ---------------------------------------------------

def sections(raw: bytes) -> tuple[int, int]:
    """Return where the records begin and end, as an honest file says."""
    offset, size = struct.unpack_from("<QQ", raw, 40)
    return offset, offset + size


def headers(raw: bytes) -> list[int]:
    """Return where the records of an honest file are."""
    at, end = sections(raw)
    places = []
    while at + 16 <= min(end, len(raw)):
        kind, _, size = struct.unpack_from("<IHH", raw, at)
        places.append(at)
        at += max(size, 8) + (struct.unpack_from("<Q", raw, at + 8)[0] if kind == 71 else 0)
    return places


def far(rng: Rng, raw: bytes, bits: int) -> int:
    """Return a number on an edge, some way off the file's length, or any at all."""
    near = len(raw) + rng.choice((-4096, -8, -1, 0, 1, 8, 4096)) - rng.choice(
        (0, sections(raw)[0], rng.randrange(len(raw))))
    return rng.choice((edge(rng, bits), near & ((1 << bits) - 1), rng.randrange(len(raw))))


def change_byte(rng: Rng, raw: bytearray) -> None:
    """Some byte is something else."""
    raw[rng.randrange(8, len(raw))] = rng.choice((0, 1, 0x7f, 0x80, 0xff, rng.randrange(256)))


def flip_bit(rng: Rng, raw: bytearray) -> None:
    """Some bit is the other one."""
    raw[rng.randrange(8, len(raw))] ^= 1 << rng.randrange(8)


def change_word(rng: Rng, raw: bytearray) -> None:
    """Some aligned word of 2, 4 or 8 bytes is something else."""
    size, code = rng.choice(((2, "<H"), (4, "<I"), (8, "<Q")))
    at = rng.randrange(1, len(raw) // size) * size
    struct.pack_into(code, raw, at, far(rng, raw, size * 8) & ((1 << size * 8) - 1))


def change_size(rng: Rng, raw: bytearray) -> None:
    """Some record says another size: often one near the end."""
    at = rng.choice(headers(raw)[rng.choice((0, -40)):] or [8])
    size = rng.choice((edge(rng, 16), edge(rng, 16) & ~7, rng.randrange(0x2000) * 8))
    struct.pack_into("<H", raw, at + 6, size & 0xffff)


def change_record(rng: Rng, raw: bytearray) -> None:
    """Some word at the start of a record, or the record's type, is something else."""
    at = rng.choice(headers(raw) or [8])
    if rng.random() < 0.3:
        struct.pack_into("<I", raw, at, rng.choice((rng.randrange(24), 64 + rng.randrange(24))))
    elif at + 32 <= len(raw):
        struct.pack_into("<Q", raw, at + rng.choice((8, 16, 24)), far(rng, raw, 64))


def change_header(rng: Rng, raw: bytearray) -> None:
    """Some offset or size of the file's header, or of its features, is something else."""
    end = sections(raw)[1]
    table = range(end, min(end + 256, len(raw) - 8), 8)
    at = rng.choice((*range(8, 104, 8), *table, 104 + pd.ATTR_SIZE, 112 + pd.ATTR_SIZE))
    struct.pack_into("<Q", raw, at, far(rng, raw, 64) & ((1 << 64) - 1))


def move_piece(rng: Rng, raw: bytearray) -> None:
    """Some piece is gone, or is there twice."""
    at = rng.randrange(104, len(raw)) & ~7
    piece = raw[at:at + rng.choice((8, 16, 64, 4096))]
    if rng.random() < 0.5:
        raw[at:at] = piece
    else:
        del raw[at:at + len(piece)]


def cut(rng: Rng, raw: bytearray) -> None:
    """The end is missing."""
    del raw[rng.randrange(16, len(raw)):]


CHANGES: Sequence[Callable[[Rng, bytearray], None]] = (
    change_byte, change_byte, flip_bit, change_word, change_size, change_size,
    change_record, change_header, move_piece)


def byte_mutation(number: int, recordings: Sequence[bytes] = ()) -> bytes:
    """Return the file of that number made of a carrier or a recording."""
    rng = Rng(number)
    honest = rng.choice(recordings or [carrier(i) for i in range(len(CARRIERS))])
    raw = bytearray(honest)
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        try:
            rng.choice(CHANGES)(rng, raw)
        except (struct.error, IndexError, ValueError, OverflowError):
            continue    # an earlier change took away what this one looks for
    if rng.random() < 0.1:
        cut(rng, raw)
    return bytes(raw)


def byte_commands(number: int) -> Sequence[Sequence[str]]:
    """Return two of BYTE_COMMANDS for the file of that number."""
    first = number % (len(BYTE_COMMANDS) // 2) * 2
    return BYTE_COMMANDS[first:first + 2]


# -- running perf ---------------------------------------------------------------

def check(work: Path, raw: bytes, commands: Sequence[Sequence[str]]) -> Optional[Result]:
    """Run perf on a file; return the run that crashed or did not end, if one did."""
    (work / "in.data").write_bytes(raw)
    (work / "empty").touch()
    for args in commands:
        result = run_perf(work, [*args, "-i", "in.data"], timeout=TIMEOUT)
        if result.crashed or result.timed_out:
            return result
    return None


def test_mutations(tmp_path: Path) -> None:
    """None of the first FILES mutations crashes perf or keeps it busy."""
    for number in range(FILES):
        broken = check(tmp_path, mutation(number), COMMANDS)
        assert broken is None, f"mutation {number}, {tmp_path / 'in.data'}:\n{broken}"


def test_byte_mutations(tmp_path: Path) -> None:
    """None of the first BYTE_FILES files with changed bytes crashes perf or keeps it busy."""
    for number in range(BYTE_FILES):
        broken = check(tmp_path, byte_mutation(number), byte_commands(number))
        assert broken is None, f"mutation {number}, {tmp_path / 'in.data'}:\n{broken}"


class Fuzzer:
    """Runs perf by hand on mutations, in a few threads, and keeps what breaks it."""

    def __init__(self, args: argparse.Namespace) -> None:
        self.args = args
        self.end = time.monotonic() + args.seconds
        self.recordings = [path.read_bytes() for path in args.recordings]
        self.numbers = iter(range(args.seed, args.seed + args.files))
        self.last = args.seed
        self.broken: Counter[str] = Counter()
        self.lock = threading.Lock()

    def make(self, number: int) -> bytes:
        """Return the file of that number."""
        return byte_mutation(number, self.recordings) if self.args.bytes else mutation(number)

    def next(self) -> Optional[int]:
        """Return the number of the next file, None at the end."""
        with self.lock:
            number = next(self.numbers, None) if time.monotonic() < self.end else None
            self.last = self.last if number is None else number + 1
            return number

    def report(self, number: int, raw: bytes, result: Result) -> None:
        """Keep a file that broke perf, and print how."""
        end = "timed out" if result.timed_out else f"status {result.status}"
        with self.lock:
            self.broken[end] += 1
            self.args.keep.mkdir(parents=True, exist_ok=True)
            (self.args.keep / f"{number}.data").write_bytes(raw)
            print(f"mutation {number}, kept in {self.args.keep}:\n{result}\n", flush=True)

    def work(self) -> None:
        """Fuzz until the end."""
        with tempfile.TemporaryDirectory() as work:
            for number in iter(self.next, None):
                raw = self.make(number)
                commands = byte_commands(number) if self.args.bytes else COMMANDS
                result = check(Path(work), raw, commands)
                if result:
                    self.report(number, raw, result)

    def run(self) -> int:
        """Fuzz in all threads; return how many files broke perf."""
        threads = [threading.Thread(target=self.work) for _ in range(self.args.jobs)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return self.broken.total()


def main() -> int:
    """Fuzz by hand; status 1 when some file broke perf."""
    parser = argparse.ArgumentParser(description="fuzz perf with mutated perf.data files")
    parser.add_argument("--seconds", type=float, default=60, help="how long (default: 60)")
    parser.add_argument("--files", type=int, default=1 << 62, help="at most so many files")
    parser.add_argument("--seed", type=int, default=0, help="number of the first file")
    parser.add_argument("--jobs", type=int, default=1, help="files at the same time (default: 1)")
    parser.add_argument("--bytes", action="store_true", help="change bytes of finished files")
    parser.add_argument("--keep", type=Path, default=BUILD / "results/fuzz",
                        help="where files that break perf are kept")
    parser.add_argument("recordings", type=Path, nargs="*",
                        help="with --bytes: change these files")
    args = parser.parse_args()

    fuzzer = Fuzzer(args)
    broken = fuzzer.run()
    print(f"{fuzzer.last - args.seed} files (seeds {args.seed} to {fuzzer.last - 1}), "
          f"{broken} broke perf {dict(fuzzer.broken)}")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Mutated perf.data files: no crash, no hang, whatever is in them.

As a test it runs the same FILES mutations every time. By hand it runs for as long
as asked, best with a perf built with -fsanitize=address,undefined:

    PERF=/path/to/perf /usr/bin/python3 tests/test_fuzz.py --seconds 3600 --seed 1

A file that breaks perf is kept, under build/results/fuzz/ when run by hand; its
number alone makes it again (--seed N --files 1).
"""
from __future__ import annotations

import argparse
import random
import struct
import sys
import tempfile
import time
from pathlib import Path
from typing import Callable, Optional, Sequence

import perfdata as pd
from perfdata import PerfData
from subject import BUILD, Result, run_perf
from test_hostile import SAMPLED, bystander, victim

FILES = 60          # 30 s
TIMEOUT = 20        # seconds for a command on a file of a few KB
COMMANDS: Sequence[Sequence[str]] = (
    ("report", "--header-only", "-I"),
    ("annotate", "--stdio"),
    ("report", "--stdio", "--sort", "sym,srcline"),
    ("script", "-F", "ip,sym,insn,srcline"),
    ("inject", "-o", "out.data"),
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


def check(work: Path, number: int) -> Optional[Result]:
    """Run perf on a mutation; return the run that crashed or did not end, if one did."""
    (work / "in.data").write_bytes(mutation(number))
    for args in COMMANDS:
        result = run_perf(work, [*args, "-i", "in.data"], timeout=TIMEOUT)
        if result.crashed or result.timed_out:
            return result
    return None


def test_mutations(tmp_path: Path) -> None:
    """None of the first FILES mutations crashes perf or keeps it busy."""
    for number in range(FILES):
        broken = check(tmp_path, number)
        assert broken is None, f"mutation {number}, {tmp_path / 'in.data'}:\n{broken}"


def main() -> int:
    """Fuzz by hand; status 1 when some file broke perf."""
    parser = argparse.ArgumentParser(description="fuzz perf with mutated perf.data files")
    parser.add_argument("--seconds", type=float, default=60, help="how long (default: 60)")
    parser.add_argument("--files", type=int, default=1 << 62, help="at most so many files")
    parser.add_argument("--seed", type=int, default=0, help="number of the first file")
    parser.add_argument("--keep", type=Path, default=BUILD / "results/fuzz",
                        help="where files that break perf are kept")
    args = parser.parse_args()

    end, number, broken = time.monotonic() + args.seconds, args.seed, 0
    with tempfile.TemporaryDirectory() as work:
        while time.monotonic() < end and number < args.seed + args.files:
            result = check(Path(work), number)
            if result:
                broken += 1
                args.keep.mkdir(parents=True, exist_ok=True)
                (args.keep / f"{number}.data").write_bytes(mutation(number))
                print(f"mutation {number}, kept in {args.keep}:\n{result}\n", flush=True)
            number += 1
    print(f"{number - args.seed} files (seeds {args.seed} to {number - 1}), {broken} broke perf")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())

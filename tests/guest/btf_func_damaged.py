#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""Does the kernel survive a module whose .BTF.func is damaged, or was made for another kernel?

  btf_func_damaged.py [SEED]

Writes random words over the section, and gives it ids that are all off by one, as after a
change of the base. Each module has to load; the kernel uses the section, or says that it
cannot. Lines of probe events look functions up there.
"""

import os
import pathlib
import random
import re
import struct
import subprocess
import sys
from typing import List

TRACEFS = pathlib.Path("/sys/kernel/tracing")
MODULE = "probe_sample_c"
ROUNDS = 40
LINES = ["f sample_twice $arg*", "f sample_twice@probe-sample-c-main.c $arg*",
         "p sample_twice@c-other.c $arg*", "f sample_cl* $arg*", "p sample_pieces.isra.0 $arg*",
         "f sample_run@probe-sample-c-main.c", "p sample_twice_other x=$arg1"]
SAID = re.compile(r"BTF: \.BTF\.func of module probe_sample_c cannot be used|trace_[kf]?probe: |"
                  r"probe_sample_c: ")


def run(*command: object) -> bytes:
    """Run a command that has to succeed; what it prints."""
    return subprocess.run([str(word) for word in command], check=True,
                          stdout=subprocess.PIPE).stdout


def messages() -> List[str]:
    """The lines of the kernel's log. A damaged name may have what else str.splitlines() takes for
    the end of a line."""
    return run("dmesg").decode(errors="replace").split("\n")


def write(text: str, mode: str = "a") -> None:
    """Write a line; whether it is accepted makes no difference."""
    try:
        with (TRACEFS / "dynamic_events").open(mode, encoding="ascii") as file:
            file.write(text)
    except OSError:
        pass


def damaged(rng: random.Random, section: bytes, number: int) -> bytes:
    """The section with some other words behind its header, or other ids."""
    words = list(struct.unpack(f"<{len(section) // 4}I", section[:len(section) // 4 * 4]))
    if number % 4 == 0:
        shift = rng.choice([-1, 1, 2, 1000])
        words = [word + shift if word > 50_000 and word < 1 << 20 else word for word in words]
    else:
        for _ in range(rng.choice([1, 1, 2, 20])):
            at = rng.randrange(10, len(words))
            words[at] = rng.choice([0, 1, words[at] ^ 1 << rng.randrange(32), words[at] + 1,
                                    rng.randrange(1 << 17), rng.randrange(1 << 32)]) % (1 << 32)
    return struct.pack(f"<{len(words)}I", *words) + section[len(words) * 4:]


def main() -> None:
    """Damage, load, look up, unload."""
    seed = int(sys.argv[1]) if len(sys.argv) > 1 else random.randrange(1 << 32)
    print(f"seed {seed}", flush=True)
    rng = random.Random(seed)
    tmp = pathlib.Path(os.environ["TMPDIR"])
    module = run("modinfo", "-n", MODULE).decode().strip()
    run("objcopy", "--dump-section", f".BTF.func={tmp}/section", module, tmp / "whole.ko")
    section = (tmp / "section").read_bytes()
    before = messages()
    for number in range(ROUNDS):
        (tmp / "damaged").write_bytes(damaged(rng, section, number))
        run("objcopy", "--update-section", f".BTF.func={tmp}/damaged", module, tmp / "bad.ko")
        run("insmod", tmp / "bad.ko")
        for line in LINES:
            write(line + "\n")
        pathlib.Path(f"/sys/module/{MODULE}/parameters/run").write_text("run", encoding="ascii")
        write("", "w")
        run("rmmod", MODULE)
    said = [line for line in messages()
            if line not in before]
    refused = sum("cannot be used" in line for line in said)
    print(f"{ROUNDS} sections, {refused} refused")
    other = [line for line in said if not SAID.search(line) and "BPF:" not in line]
    print("\n".join(other[:20]))
    if not 0 < refused < ROUNDS or other:
        sys.exit("FAIL")


main()

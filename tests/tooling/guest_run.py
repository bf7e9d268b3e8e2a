# SPDX-License-Identifier: GPL-2.0
"""Run stack/guest as its users do, on a real QEMU or on a fake one."""
from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path
from typing import NamedTuple

from perfbpf import paths
from perfbpf.outcome import Outcome

GUEST = paths.TOP / "stack/guest"
KERNEL = os.environ.get("PERF_BPF_SUBJECT", "series")
# Boots under TCG on a busy machine took 13 to 64 s.
BOOT_SECONDS = 180


class Ended(NamedTuple):
    """A run of stack/guest that ended."""
    status: Outcome
    output: str
    errors: str
    seconds: float


def processes_naming(text: str) -> list[str]:
    """Command lines of the running processes that contain `text`, other than this one."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            line = path.read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        if text in line and path.parent.name != str(os.getpid()):
            found.append(line)
    return found


def guest_command(results: Path, *words: str, timeout: float = BOOT_SECONDS) -> list[str]:
    """The words of a stack/guest call on the kernel under test."""
    return [str(GUEST), "--kernel", KERNEL, "--timeout", str(timeout), "--results", str(results),
            "--", *words]


def run(results: Path, *words: str, timeout: float = BOOT_SECONDS, **environment: str) -> Ended:
    """Run a command in the guest; fails when a process of the guest is left."""
    start = time.monotonic()
    ended = subprocess.run(guest_command(results, *words, timeout=timeout),
                           env={**os.environ, **environment}, text=True,
                           stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                           stderr=subprocess.PIPE, errors="replace", check=False,
                           timeout=timeout + 60)
    left = processes_naming(str(results))
    assert not left, f"left running: {left}"
    return Ended(Outcome(ended.returncode), ended.stdout, ended.stderr, time.monotonic() - start)

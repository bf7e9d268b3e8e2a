# SPDX-License-Identifier: GPL-2.0
"""Processes that a command starts: none of them outlives it."""
from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import time

KILL_SECONDS = 5
PR_SET_CHILD_SUBREAPER = 36


def note(text: str) -> None:
    """Print one line about the guest itself, apart from the command's output."""
    print(f"guest: {text}", file=sys.stderr, flush=True)


def adopt_orphans(adopt: bool = True) -> None:
    """Become the parent of every orphaned descendant, to be able to wait for a
    QEMU whose virtme-ng is gone; or do so no longer."""
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, int(adopt), 0, 0, 0)


def kill_group(process: subprocess.Popen[bytes]) -> None:
    """Kill a process group and wait until none of it is left.

    A QEMU that is stuck in /dev/kvm may survive SIGKILL for as long as the
    kernel holds it; after KILL_SECONDS a note says so and the wait ends.
    """
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    deadline = time.monotonic() + KILL_SECONDS
    while time.monotonic() < deadline:
        try:
            pid, _ = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if pid == 0:
            time.sleep(0.02)
    note(f"process group {process.pid} is still there {KILL_SECONDS} s after SIGKILL:"
         " stuck in the kernel, see `ps -o pid,stat,wchan,cmd`")


def run_limited(command: list[str], seconds: float) -> tuple[int | None, str]:
    """Run a command in a process group that is gone afterwards; return its exit status
    (None: it was killed after `seconds`) and its output, standard error included."""
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, start_new_session=True) as process:
        status: int | None = None
        try:
            output, _ = process.communicate(timeout=seconds)
            status = process.returncode
        except subprocess.TimeoutExpired as late:
            output = late.output or b""
        finally:
            kill_group(process)
    return status, output.decode(errors="replace").replace("\r", "")

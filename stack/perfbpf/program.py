# SPDX-License-Identifier: GPL-2.0
"""One test program in the guest: run it for a limited time, with what the kernel
logs meanwhile."""
from __future__ import annotations

import os
import signal
import subprocess
import tempfile
from pathlib import Path
from typing import Mapping

# The exit status of a program that was killed at its time limit.
LATE = 124


def run_program(command: list[str], cwd: Path, env: Mapping[str, str], seconds: float
                ) -> tuple[int, list[str]]:
    """Run a command in a process group that is gone afterwards; return its exit status
    (LATE: killed after `seconds`) and its output's lines.

    A process that it leaves in another group may hold its output open, so the output
    goes to a file: nothing waits for its end.
    """
    with tempfile.TemporaryFile() as output:
        with subprocess.Popen(command, cwd=cwd, env=env, stdin=subprocess.DEVNULL,
                              stdout=output, stderr=subprocess.STDOUT,
                              start_new_session=True) as process:
            killed: list[str] = []
            try:
                status = process.wait(seconds)
            except subprocess.TimeoutExpired:
                status, killed = LATE, [f"killed after {seconds:.0f} s"]
            try:
                os.killpg(process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        output.seek(0)
        return status, output.read().decode(errors="replace").splitlines() + killed


class KernelLog:
    """Reads /dev/kmsg from the first message that is still there on."""

    def __init__(self) -> None:
        self.descriptor = os.open("/dev/kmsg", os.O_RDONLY | os.O_NONBLOCK)

    def close(self) -> None:
        """Stop reading."""
        os.close(self.descriptor)

    def new_lines(self) -> list[str]:
        """Return what was logged since the last call."""
        lines: list[str] = []
        while True:
            try:
                record = os.read(self.descriptor, 16384)
            except BlockingIOError:
                return lines
            except BrokenPipeError:
                lines.append("(messages are lost)")
                continue
            text = record.decode(errors="replace").partition(";")[2]
            lines.append(text.splitlines()[0] if text else "")

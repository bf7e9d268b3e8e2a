# SPDX-License-Identifier: GPL-2.0
"""A guest that reached its time limit is asked where it hangs, before it is killed.

    guest.py --QMP--> QEMU --break, key on the serial console--> SysRq --> console.log

Over QMP, QEMU's console gets an input (virtme-ng gives it an output only); then a
break and one of KEYS make the kernel print its blocked tasks, its locks and what
each CPU executes. That needs a CPU that still takes interrupts. Where none does, the
registers of all CPUs, which QEMU knows, are in the file `registers`.

Everything here is bounded by LIMIT, and a failure is only reported: the run has
failed already.
"""
from __future__ import annotations

import json
import os
import re
import socket
import time
from pathlib import Path
from typing import Any, Callable

# SysRq keys, in the order of how much they print: blocked tasks, locks held,
# backtraces of all CPUs, all tasks.
KEYS = "wdlt"
LIMIT = 15.0            # seconds for all of it
REPLY_SECONDS = 3.0     # for QEMU's answer to one command
QUIET_SECONDS = 0.7     # no more output for this long: the kernel has said all
# A break and its key arrive as two events: the key must not overtake.
BREAK_SECONDS = 0.1
# sockaddr_un.sun_path
SOCKET_PATH_MAX = 107
# What QEMU takes in an option without quoting.
PLAIN = re.compile(r"[a-zA-Z0-9_+/.-]+")
CONSOLE = "console"     # the id that virtme-ng gives the character device

# Copies the guest's output until it was quiet for a while, or until a deadline.
Pump = Callable[[float, float], object]


class MonitorError(Exception):
    """QEMU cannot be asked; the text says why."""


class Monitor:
    """QEMU's QMP socket in a directory, and the FIFO that becomes the console's input."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "qmp"
        self.keys = folder / "keys"

    def qemu_options(self) -> str:
        """The options that make QEMU listen, none where the path does not allow it."""
        if len(str(self.path)) > SOCKET_PATH_MAX or not PLAIN.fullmatch(str(self.path)):
            return ""
        return f"-qmp unix:{self.path},server=on,wait=off"

    def connect(self) -> Session:
        """Connect and negotiate (MonitorError: nobody answers)."""
        return Session(self.path)


class Session:
    """A connection to QMP: a command, then its reply; events between them are skipped."""

    def __init__(self, path: Path) -> None:
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(REPLY_SECONDS)
        try:
            self.socket.connect(str(path))
        except OSError as error:
            self.socket.close()
            raise MonitorError(f"{path}: {error.strerror or error}") from error
        self.stream = self.socket.makefile("r", encoding="utf-8")
        self.receive()      # the greeting
        self.command("qmp_capabilities")

    def close(self) -> None:
        """Hang up."""
        self.socket.close()

    def receive(self) -> dict[str, Any]:
        """Return the next message (MonitorError: none comes)."""
        try:
            line = self.stream.readline()
            message = json.loads(line)
        except (OSError, ValueError) as error:
            raise MonitorError(f"QEMU does not answer: {error}") from error
        return dict(message)

    def command(self, name: str, **arguments: Any) -> Any:
        """Execute a command and return its result (MonitorError: it was refused)."""
        text = json.dumps({"execute": name, "arguments": arguments})
        try:
            self.socket.sendall(text.encode() + b"\n")
        except OSError as error:
            raise MonitorError(f"QEMU does not listen: {error}") from error
        deadline = time.monotonic() + REPLY_SECONDS
        while time.monotonic() < deadline:
            message = self.receive()
            if "return" in message:
                return message["return"]
            if "error" in message:
                raise MonitorError(f"QEMU refused {name}: {message['error'].get('desc')}")
        raise MonitorError(f"QEMU did not answer {name} within {REPLY_SECONDS:.0f} s")


def press_keys(session: Session, fifo: Path, pump: Pump, deadline: float) -> None:
    """Give the console an input, and press KEYS on it until `deadline`.

    A kernel without lockdep answers "d" with the list of keys that it knows.
    """
    os.mkfifo(fifo)
    keys = os.open(fifo, os.O_RDWR)     # both ends, so that neither open waits
    try:
        # The output stays what it is: QEMU opens it anew.
        session.command("chardev-change", id=CONSOLE, backend={
            "type": "file", "data": {"out": "/proc/self/fd/2", "in": str(fifo)}})
        for key in KEYS:
            if time.monotonic() >= deadline:
                return
            session.command("chardev-send-break", id=CONSOLE)
            time.sleep(BREAK_SECONDS)
            os.write(keys, key.encode())
            pump(deadline, QUIET_SECONDS)
    finally:
        os.close(keys)


def ask(monitor: Monitor, registers: Path, pump: Pump) -> str:
    """Make a hanging guest print where it hangs; takes at most about LIMIT seconds.

    Returns "" or why something of it could not be had.
    """
    deadline = time.monotonic() + LIMIT
    try:
        session = monitor.connect()
    except MonitorError as error:
        return str(error)
    try:
        found = session.command("human-monitor-command", **{"command-line": "info registers -a"})
        registers.write_text(str(found).replace("\r", ""), encoding="utf-8")
        press_keys(session, monitor.keys, pump, deadline)
    except (MonitorError, OSError) as error:
        return str(error)
    finally:
        session.close()
    return ""

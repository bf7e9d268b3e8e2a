# SPDX-License-Identifier: GPL-2.0
"""What tests of probe events that are drawn at random share: defining them, and work."""

import os
import pathlib
import re
import socket
import tempfile

TRACEFS = pathlib.Path("/sys/kernel/tracing")


def define(line: str) -> str:
    """Define an event. The error, or nothing."""
    (TRACEFS / "error_log").write_text("", encoding="ascii")
    # not open("a"), which seeks
    fd = os.open(TRACEFS / "dynamic_events", os.O_WRONLY | os.O_APPEND)
    try:
        os.write(fd, f"{line}\n".encode())
    except OSError:
        error = (TRACEFS / "error_log").read_text(encoding="ascii")
        return re.sub(r"^\[.*?\] ", "", error.splitlines()[0] if error else "no reason")
    finally:
        os.close(fd)
    return ""


def call_functions() -> None:
    """What makes the kernel work: files of sysfs and procfs, tasks, sockets, files."""
    for root in ("/sys/devices", "/sys/kernel", "/sys/module", "/sys/class", "/proc/self",
                 "/proc/sys", "/proc/net"):
        for path in pathlib.Path(root).glob("*/*" if root.startswith("/sys") else "*"):
            if path.is_file() and "trac" not in str(path) and "kmsg" not in str(path):
                try:
                    with open(path, "rb", buffering=0) as file:
                        file.read(4096)
                except OSError:
                    pass
    for name in ("meminfo", "interrupts", "vmstat", "schedstat", "cpuinfo", "iomem", "mounts",
                 "stat"):
        if pathlib.Path("/proc", name).exists():
            pathlib.Path("/proc", name).read_bytes()
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "file")
        path.write_bytes(b"x" * 300000)
        path.rename(path.with_name("moved"))
        os.listdir(folder)
    for _ in range(5):
        child = os.fork()
        if not child:
            os._exit(0)
        os.waitpid(child, 0)
    with socket.socket() as server, socket.socket() as client:
        server.bind(("127.0.0.1", 0))
        server.listen()
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        client.connect(server.getsockname())
        client.send(b"x" * 10000)

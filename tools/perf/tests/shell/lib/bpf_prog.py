#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""Read and attach a pinned BPF program with the bpf() system call, for shell tests.

  bpf_prog.py jited PIN             its machine code, from bpf_prog_info, to stdout
  bpf_prog.py attached PIN COMMAND… run COMMAND while it is attached (fentry, fexit)

bpftool cannot do this everywhere: it dumps code only if it was built with a
disassembler, and older versions cannot attach programs.
"""

import ctypes
import os
import platform
import struct
import subprocess
import sys

SYS_BPF = {"x86_64": 321, "aarch64": 280, "riscv64": 280, "s390x": 351,
           "ppc64le": 361, "loongarch64": 280}
OBJ_GET, OBJ_GET_INFO_BY_FD, RAW_TRACEPOINT_OPEN = 7, 15, 17
INFO_SIZE = 232
libc = ctypes.CDLL(None, use_errno=True)


def bpf(cmd, attr):
    """Call bpf() and return its result; exit with the reason if it fails."""
    ret = libc.syscall(SYS_BPF[platform.machine()], cmd, attr, len(attr))
    if ret < 0:
        sys.exit(f"bpf({cmd}): {os.strerror(ctypes.get_errno())}")
    return ret


def obj_get(pin):
    """Return a file descriptor for the object pinned there."""
    path = ctypes.create_string_buffer(pin.encode())
    return bpf(OBJ_GET, struct.pack("=QII", ctypes.addressof(path), 0, 0))


def jited_len(fd, buf=None):
    """Return the length of the code in bytes, and copy the code to buf.

    struct bpf_prog_info has jited_prog_len at 16 and jited_prog_insns at 24.
    """
    info = ctypes.create_string_buffer(INFO_SIZE)
    if buf:
        struct.pack_into("=I", info, 16, len(buf))
        struct.pack_into("=Q", info, 24, ctypes.addressof(buf))
    bpf(OBJ_GET_INFO_BY_FD, struct.pack("=IIQ", fd, INFO_SIZE, ctypes.addressof(info)))
    return struct.unpack_from("=I", info, 16)[0]


def main(command, pin, *rest):
    """Return the exit status: of COMMAND, or 0; 1 if the kernel refused."""
    fd = obj_get(pin)
    if command == "jited":
        code = ctypes.create_string_buffer(jited_len(fd))
        jited_len(fd, code)
        sys.stdout.buffer.write(code.raw)
        return 0
    if command == "attached":
        bpf(RAW_TRACEPOINT_OPEN, struct.pack("=QII", 0, fd, 0))
        return subprocess.run(rest, check=False).returncode
    return f"unknown command {command}"


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))

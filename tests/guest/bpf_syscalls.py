# SPDX-License-Identifier: GPL-2.0
"""The system calls that tests of BPF programs and perf events need, without a library."""

import ctypes
import errno
import fcntl
import os
import re
import struct
import time
from pathlib import Path
from typing import NamedTuple, Optional

# From linux/perf_event.h, linux/bpf.h and x86-64's table of system calls
SYS_PERF_EVENT_OPEN, SYS_BPF = 298, 321
PERF_TYPE_SOFTWARE, PERF_COUNT_SW_DUMMY = 1, 9
PERF_ATTR_SIZE = 144
BPF_EVENT, BPF_RETAIN = 1 << 30, 1 << 42
BPF_FIELDS, PERF_BPF_F_ATTACH = "<IIQ", 1 << 0      # bpf_fd, bpf_flags, bpf_cookie
PERF_COUNT_SW_CONTEXT_SWITCHES = 3
PERF_EVENT_IOC_SET_BPF, PERF_EVENT_IOC_BPF_PROG_FD = 0x40042408, 0x4004240d
BPF_PROG_LOAD, BPF_PROG_GET_FD_BY_ID, BPF_OBJ_GET_INFO_BY_FD, BPF_BTF_LOAD = 5, 13, 15, 18
BPF_FUNC_INFO_SIZE, BPF_LINE_INFO_SIZE = 8, 16
BPF_PROG_TYPE_SOCKET_FILTER, BPF_PROG_TYPE_PERF_EVENT = 1, 7
# r0 = 0; exit
PROGRAM = struct.pack("<BBhiBBhi", 0xb7, 0, 0, 0, 0x95, 0, 0, 0)
WAIT_S = 30


class Info(NamedTuple):
    """Of bpf_prog_info."""
    id: int
    name: str


libc = ctypes.CDLL(None, use_errno=True)


def syscall(number: int, *args: int) -> int:
    """A system call's result; raises OSError."""
    result = libc.syscall(number, *(ctypes.c_long(arg) for arg in args))
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return result


def bpf(command: int, attr: bytes) -> int:
    """bpf(2) with an attribute of the length that it has."""
    buffer = ctypes.create_string_buffer(attr, len(attr))
    return syscall(SYS_BPF, command, ctypes.addressof(buffer), len(attr))


def open_event() -> int:
    """An event for which the kernel keeps what it can tell of programs; raises OSError."""
    attr = struct.pack("<IIQQQQQ", PERF_TYPE_SOFTWARE, PERF_ATTR_SIZE, PERF_COUNT_SW_DUMMY,
                       0, 0, 0, BPF_EVENT | BPF_RETAIN).ljust(PERF_ATTR_SIZE, b"\0")
    buffer = ctypes.create_string_buffer(attr, len(attr))
    return syscall(SYS_PERF_EVENT_OPEN, ctypes.addressof(buffer), -1, 0, -1, 0)


def attr_size_with_bpf() -> int:
    """The bytes of perf_event_attr up to bpf_cookie: another series may put fields of its own
    before it."""
    header = Path(os.environ["SELFTESTS"]).parent / "out-headers/usr/include/linux/perf_event.h"
    found = re.search(r"#define PERF_ATTR_SIZE_VER\d+\s+(\d+)\s*/\* add: bpf_fd",
                      header.read_text())
    assert found, f"{header} has no size with bpf_fd"
    return int(found[1])


def open_sampling(program: Optional[int] = None, cookie: int = 0) -> int:
    """An event that samples this task's context switches, with a BPF program and its cookie
    attached at open unless program is None; raises OSError."""
    attr = bytearray(attr_size_with_bpf())
    struct.pack_into("<IIQQQQQ", attr, 0, PERF_TYPE_SOFTWARE, len(attr),
                     PERF_COUNT_SW_CONTEXT_SWITCHES, 1, 0, 0, 0)
    struct.pack_into(BPF_FIELDS, attr, len(attr) - struct.calcsize(BPF_FIELDS), program or 0,
                     0 if program is None else PERF_BPF_F_ATTACH, cookie)
    buffer = ctypes.create_string_buffer(bytes(attr), len(attr))
    return syscall(SYS_PERF_EVENT_OPEN, ctypes.addressof(buffer), 0, -1, -1, 0)


def set_bpf(event: int, program: int) -> None:
    """Attach a BPF program to an event that is open; raises OSError."""
    fcntl.ioctl(event, PERF_EVENT_IOC_SET_BPF, program)


def load_program(name: str = "", kind: int = BPF_PROG_TYPE_SOCKET_FILTER,
                 code: bytes = PROGRAM, btf: bytes = b"", funcs: bytes = b"",
                 lines: bytes = b"") -> int:
    """The file of a new program with this bytecode, and of struct bpf_func_info and
    bpf_line_info if it has BTF; raises OSError."""
    insns, license_name = ctypes.create_string_buffer(code), ctypes.create_string_buffer(b"GPL")
    attr = struct.pack("<IIQQIIQII16s", kind, len(code) // 8, ctypes.addressof(insns),
                       ctypes.addressof(license_name), 0, 0, 0, 0, 0, name.encode())
    if not btf:
        return bpf(BPF_PROG_LOAD, attr)
    types, func_info, line_info = map(ctypes.create_string_buffer, (btf, funcs, lines))
    types_file = bpf(BPF_BTF_LOAD, struct.pack(
        "<QQIII", ctypes.addressof(types), 0, len(btf), 0, 0))
    try:
        return bpf(BPF_PROG_LOAD, attr + struct.pack(
            "<IIIIQIIQI", 0, 0, types_file, BPF_FUNC_INFO_SIZE, ctypes.addressof(func_info),
            len(funcs) // BPF_FUNC_INFO_SIZE, BPF_LINE_INFO_SIZE, ctypes.addressof(line_info),
            len(lines) // BPF_LINE_INFO_SIZE))
    finally:
        os.close(types_file)


def program_info(file: int) -> Info:
    """What bpf_prog_info tells, also of a program that has ended; raises OSError."""
    info = ctypes.create_string_buffer(80)
    bpf(BPF_OBJ_GET_INFO_BY_FD, struct.pack("<IIQ", file, len(info), ctypes.addressof(info)))
    return Info(struct.unpack_from("<I", info, 4)[0],
                struct.unpack_from("16s", info, 64)[0].rstrip(b"\0").decode())


def program_of_id(number: int) -> int:
    """The file of the living program that has the id; raises OSError."""
    return bpf(BPF_PROG_GET_FD_BY_ID, struct.pack("<III", number, 0, 0))


def fdinfo(file: int, key: str) -> int:
    """A number in the fdinfo of a file; raises KeyError."""
    found = re.search(rf"^{key}:\s*(\d+)$", Path(f"/proc/self/fdinfo/{file}").read_text(), re.M)
    if not found:
        raise KeyError(key)
    return int(found.group(1))


def retained(event: int, number: int) -> int:
    """The file that tells of a program that is about to end, by its id; raises OSError,
    and TimeoutError after WAIT_S."""
    for _ in range(WAIT_S * 100):
        try:
            return fcntl.ioctl(event, PERF_EVENT_IOC_BPF_PROG_FD, number)
        except OSError as error:
            # it has not quite ended
            if error.errno not in (errno.EAGAIN, errno.ENOENT):
                raise
        time.sleep(0.01)
    raise TimeoutError(f"program {number} has not ended in {WAIT_S} s, or is not kept")

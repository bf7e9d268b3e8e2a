#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""Does SELinux keep what is kept of a BPF program from whom it keeps the program?

A policy has two domains: base_t may do everything, refused_t all but run BPF
programs.  The file of a program, and the one that tells of it when it has ended,
are sent to a process of either through a socket.

Needs SELinux without a policy, as after the boot of the debug guest, and leaves
it enforcing this one.
"""

import array
import ctypes
import errno
import fcntl
import os
import pathlib
import re
import socket
import struct
import subprocess
import sys
import time
import traceback
from typing import List, Optional

SELINUX = pathlib.Path("/sys/fs/selinux")
BUILD = pathlib.Path(os.environ["SELFTESTS"]).parent
MDP = BUILD / "out-debug/scripts/selinux/mdp/mdp"
SKIP = 2
# From linux/perf_event.h, linux/bpf.h and x86-64's table of system calls
SYS_PERF_EVENT_OPEN, SYS_BPF = 298, 321
PERF_TYPE_SOFTWARE, PERF_COUNT_SW_DUMMY = 1, 9
PERF_ATTR_SIZE = 144
BPF_EVENT, BPF_RETAIN = 1 << 30, 1 << 41
PERF_EVENT_IOC_BPF_PROG_FD = 0x4004240c
BPF_PROG_LOAD, BPF_OBJ_GET_INFO_BY_FD = 5, 15
BPF_PROG_TYPE_SOCKET_FILTER = 1
# r0 = 0; exit
PROGRAM = struct.pack("<BBhiBBhi", 0xb7, 0, 0, 0, 0x95, 0, 0, 0)
WAIT_S = 30

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


def write(path: pathlib.Path, data: bytes) -> None:
    """Write at once, and without O_TRUNC, which selinuxfs refuses."""
    file = os.open(path, os.O_WRONLY)
    try:
        if os.write(file, data) != len(data):
            raise OSError(f"{path} took less than {len(data)} bytes")
    finally:
        os.close(file)


def open_event() -> int:
    """An event for which the kernel keeps what it can tell of programs."""
    attr = struct.pack("<IIQQQQQ", PERF_TYPE_SOFTWARE, PERF_ATTR_SIZE, PERF_COUNT_SW_DUMMY,
                       0, 0, 0, BPF_EVENT | BPF_RETAIN).ljust(PERF_ATTR_SIZE, b"\0")
    buffer = ctypes.create_string_buffer(attr, len(attr))
    return syscall(SYS_PERF_EVENT_OPEN, ctypes.addressof(buffer), -1, 0, -1, 0)


def load_program() -> int:
    """The file of a new program."""
    code, license_name = ctypes.create_string_buffer(PROGRAM), ctypes.create_string_buffer(b"GPL")
    return bpf(BPF_PROG_LOAD, struct.pack("<IIQQ", BPF_PROG_TYPE_SOCKET_FILTER, len(PROGRAM) // 8,
                                          ctypes.addressof(code), ctypes.addressof(license_name)))


def program_id(file: int) -> int:
    """bpf_prog_info.id, also of a program that has ended."""
    info = ctypes.create_string_buffer(8)
    bpf(BPF_OBJ_GET_INFO_BY_FD, struct.pack("<IIQ", file, len(info), ctypes.addressof(info)))
    return struct.unpack("<II", info.raw)[1]


def retained(event: int, number: int) -> int:
    """The file that tells of a program that is about to end."""
    for _ in range(WAIT_S * 100):
        try:
            return fcntl.ioctl(event, PERF_EVENT_IOC_BPF_PROG_FD, number)
        except OSError as error:
            # it has not quite ended
            if error.errno not in (errno.EAGAIN, errno.ENOENT):
                raise
        time.sleep(0.01)
    raise TimeoutError(f"program {number} has not ended in {WAIT_S} s, or is not kept")


def receive(sock: socket.socket, number: Optional[int]) -> None:
    """In the child: exit with 0 if the file came and, unless number is None, tells of
    the program, with 1 if the kernel kept it back, and else with 3."""
    _, control, flags, _ = sock.recvmsg(1, socket.CMSG_SPACE(4))
    if not control:
        os._exit(1 if flags & socket.MSG_CTRUNC else 3)
    files = array.array("i", control[0][2][:4])
    os._exit(0 if number is None or program_id(files[0]) == number else 3)


def is_passed(file: int, number: Optional[int], domain: str) -> bool:
    """Does a process of this domain get the file?"""
    ours, theirs = socket.socketpair()
    child = os.fork()
    if not child:
        try:
            write(pathlib.Path("/proc/self/attr/current"), f"user_u:base_r:{domain}".encode())
            receive(theirs, number)
        except BaseException:  # pylint: disable=broad-except
            traceback.print_exc()
        finally:
            os._exit(3)
    ours.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [file]))])
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if status not in (0, 1):
        sys.exit(f"the process in {domain} ended with {status}")
    return status == 0


def policy_text(made: str) -> str:
    """mdp's policy, which allows base_t everything, with refused_t in it."""
    rules: List[str] = ["type refused_t;", "role base_r types { refused_t };"]
    for name in re.findall(r"^allow base_t base_t:(\w+) \*;$", made, re.M):
        allowed = "{ map_create map_read map_write prog_load }" if name == "bpf" else "*"
        rules += [f"allow base_t refused_t:{name} *;"]
        rules += [f"allow refused_t {target}:{name} {allowed};"
                  for target in ("base_t", "refused_t")]
    # Which of them there are depends on the version of the compiler
    made = re.sub(r"^policycap .*\n", "", made, flags=re.M)
    return made.replace("role base_r types { base_t };\n",
                        "\n".join(["role base_r types { base_t };"] + rules) + "\n")


def load_policy() -> None:
    """Compile the policy for this kernel, load it and enforce it."""
    subprocess.run([MDP, "made.conf", "contexts"], check=True)
    pathlib.Path("policy.conf").write_text(policy_text(pathlib.Path("made.conf").read_text()))
    newest = int(re.search(r"\d+", subprocess.run(
        ["checkpolicy", "-V"], check=True, capture_output=True, text=True).stdout).group())
    version = min(newest, int((SELINUX / "policyvers").read_text()))
    subprocess.run(["checkpolicy", "-U", "allow", "-c", str(version), "-o", "policy",
                    "policy.conf"], check=True)
    write(SELINUX / "load", pathlib.Path("policy").read_bytes())
    # the only mode there is without CONFIG_SECURITY_SELINUX_DEVELOP
    if (SELINUX / "enforce").read_text().strip() != "1":
        write(SELINUX / "enforce", b"1")


def main() -> int:
    """0 if both files of the program go where either may."""
    if not SELINUX.is_dir():
        print("SKIP: this kernel has no SELinux: use the debug kernel")
        return SKIP
    os.chdir(os.environ["TMPDIR"])
    subprocess.run(["mount", "-t", "selinuxfs", "selinuxfs", SELINUX], check=True)
    load_policy()
    event, file = open_event(), load_program()
    number = program_id(file)
    passed = {("living", domain): is_passed(file, number, domain)
              for domain in ("base_t", "refused_t")}
    os.close(file)
    file = retained(event, number)
    passed.update({("ended", domain): is_passed(file, number, domain)
                   for domain in ("base_t", "refused_t")})
    # refused is the program's file, and not any
    ordinary = os.memfd_create("ordinary")
    if not is_passed(ordinary, None, "refused_t"):
        sys.exit("refused_t does not even get an ordinary file")
    for (state, domain), is_there in passed.items():
        print(f"the file of the {state} program, to {domain}: "
              f"{'passed' if is_there else 'refused'}")
    return int(any(is_there != (domain == "base_t") for (_, domain), is_there in passed.items()))


if __name__ == "__main__":
    sys.exit(main())

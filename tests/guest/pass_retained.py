#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""Does SELinux refuse the file of a retained BPF program to those who may not have the
file of the program?

The file of a program, and that of its retained information when it has been unloaded,
are sent through a socket to a process in base_t, and to one in refused_t, which may not
run BPF programs (selinux_policy.py).
"""

import array
import os
import socket
import sys
import traceback
from typing import Optional

from bpf_syscalls import load_program, open_event, program_info, retained
from selinux_policy import enter, load_policy


def receive(sock: socket.socket, number: Optional[int]) -> None:
    """In the child: exit with 0 if the file came and, unless number is None, tells of
    the program, with 1 if the kernel kept it back, and else with 3."""
    _, control, flags, _ = sock.recvmsg(1, socket.CMSG_SPACE(4))
    if not control:
        os._exit(1 if flags & socket.MSG_CTRUNC else 3)
    files = array.array("i", control[0][2][:4])
    os._exit(0 if number is None or program_info(files[0]).id == number else 3)


def is_passed(file: int, number: Optional[int], domain: str) -> bool:
    """Does a process of this domain get the file?"""
    ours, theirs = socket.socketpair()
    child = os.fork()
    if not child:
        try:
            enter(domain)
            receive(theirs, number)
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(3)
    ours.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [file]))])
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if status not in (0, 1):
        sys.exit(f"the process in {domain} ended with {status}")
    return status == 0


def main() -> int:
    """0 if both files of the program go where either may."""
    load_policy()
    event, file = open_event(), load_program()
    number = program_info(file).id
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

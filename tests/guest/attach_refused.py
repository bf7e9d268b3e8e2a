#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""Does an LSM decide who attaches a BPF program when a perf event is opened?

PERF_EVENT_IOC_SET_BPF is a write to the event, which SELinux may refuse. attr.bpf_fd
must be no way around that: a process in readonly_t, which may open events and not write
to them (selinux_policy.py), can attach a program neither way, and one in base_t both
ways.
"""

import errno
import os
import sys
import traceback
from typing import Callable

from bpf_syscalls import BPF_PROG_TYPE_PERF_EVENT, load_program, open_sampling, set_bpf
from selinux_policy import enter, load_policy


def result(function: Callable[..., object], *args: int) -> int:
    """0, or the errno of a call that failed."""
    try:
        function(*args)
    except OSError as error:
        return error.errno or errno.EIO
    return 0


def attach(domain: str, program: int) -> list[int]:
    """The errno of SET_BPF and of bpf_fd in a process of a domain, 0 for success."""
    read_end, write_end = os.pipe()
    child = os.fork()
    if not child:
        try:
            enter(domain)
            os.write(write_end, bytes([result(set_bpf, open_sampling(), program),
                                       result(open_sampling, program)]))
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(0)
    os.close(write_end)
    os.waitpid(child, 0)
    with os.fdopen(read_end, "rb") as results:
        return list(results.read())


def main() -> int:
    """0 if both ways are open to base_t and closed to readonly_t."""
    load_policy()
    program = load_program(kind=BPF_PROG_TYPE_PERF_EVENT)
    expected = {"base_t": [0, 0], "readonly_t": [errno.EACCES, errno.EACCES]}
    seen = {domain: attach(domain, program) for domain in expected}
    for domain, errors in seen.items():
        words = [errno.errorcode.get(error, "attached") for error in errors]
        print(f"{domain}: SET_BPF {words[0:1]}, bpf_fd {words[1:2]}")
    return int(seen != expected)


if __name__ == "__main__":
    sys.exit(main())

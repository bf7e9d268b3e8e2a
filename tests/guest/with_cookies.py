#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""Run a command while one BPF program is on three perf events: with two BPF cookies, and
without."""
import subprocess
import sys

from bpf_syscalls import BPF_PROG_TYPE_PERF_EVENT, load_program, open_sampling

COOKIES = (43981, 43982, 0)


def main() -> int:
    """Returns the status of the command."""
    program = load_program("cookies", BPF_PROG_TYPE_PERF_EVENT)
    for cookie in COOKIES:
        open_sampling(program, cookie)      # open until this process ends
    return subprocess.run(sys.argv[1:], check=False).returncode


if __name__ == "__main__":
    sys.exit(main())

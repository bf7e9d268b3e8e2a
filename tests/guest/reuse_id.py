#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""Is what is kept of two BPF programs told apart when both had the same id?

The first one ends and is kept, and its id is given to the second one, with the
module of set_prog_id/ (SET_PROG_ID names it).  While the second one lives the id is
its own, and the event still has the first one; then the event has the second one.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

from bpf_syscalls import fdinfo, load_program, open_event, program_info, program_of_id, retained


def set_next_id(number: int) -> None:
    """The next program gets this id, unless another one has it."""
    found = re.search(r"^([0-9a-f]+) [dDbB] prog_idr$", Path("/proc/kallsyms").read_text(), re.M)
    if not found:
        sys.exit("/proc/kallsyms has no prog_idr: needs CONFIG_KALLSYMS_ALL")
    subprocess.run(["insmod", os.environ["SET_PROG_ID"], f"idr=0x{found.group(1)}",
                    f"id={number}"], check=True)
    subprocess.run(["rmmod", "set_prog_id"], check=True)


def check(what: str, name: str, file: int, number: int) -> bool:
    """Say what a file tells, and close it; is it of this name and id?"""
    info = program_info(file)
    os.close(file)
    print(f"{what}: {info.name}, id {info.id}")
    return info == (number, name)


def main() -> int:
    """0 if each was told of as itself."""
    event, first = open_event(), load_program("first")
    number = program_info(first).id
    os.close(first)
    passed = [check("kept", "first", retained(event, number), number)]

    set_next_id(number)
    second = load_program("second")
    passed.append(check("loaded", "second", os.dup(second), number))
    passed.append(check("by its id", "second", program_of_id(number), number))
    passed.append(check("kept", "first", retained(event, number), number))

    # What has not quite ended is already what is found, and waited for
    os.close(second)
    passed.append(check("kept", "second", retained(event, number), number))
    print(f"{fdinfo(event, 'bpf_retained')} are kept")
    passed.append(fdinfo(event, "bpf_retained") == 2)
    return 0 if all(passed) else 1


if __name__ == "__main__":
    sys.exit(main())

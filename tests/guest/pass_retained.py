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
import os
import pathlib
import re
import socket
import subprocess
import sys
import traceback
from typing import List, Optional

from bpf_syscalls import load_program, open_event, program_info, retained

SELINUX = pathlib.Path("/sys/fs/selinux")
BUILD = pathlib.Path(os.environ["SELFTESTS"]).parent
MDP = BUILD / "out-debug/scripts/selinux/mdp/mdp"
SKIP = 2


def write(path: pathlib.Path, data: bytes) -> None:
    """Write at once, and without O_TRUNC, which selinuxfs refuses."""
    file = os.open(path, os.O_WRONLY)
    try:
        if os.write(file, data) != len(data):
            raise OSError(f"{path} took less than {len(data)} bytes")
    finally:
        os.close(file)


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
    newest = int(re.findall(r"\d+", subprocess.run(
        ["checkpolicy", "-V"], check=True, capture_output=True, text=True).stdout)[0])
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

# SPDX-License-Identifier: GPL-2.0
"""A SELinux policy of three domains for tests in the debug guest.

base_t may do everything, refused_t all but run BPF programs, and readonly_t all but
write to perf events. Needs SELinux, which the debug guest boots without a policy, and
leaves it enforcing this one.
"""

import os
import pathlib
import re
import subprocess
import sys
from typing import List

SELINUX = pathlib.Path("/sys/fs/selinux")
BUILD = pathlib.Path(os.environ["SELFTESTS"]).parent
MDP = BUILD / "out-debug/scripts/selinux/mdp/mdp"
SKIP = 2
# What a domain may do with the objects of a class, where that is not everything
DOMAINS = {
    "refused_t": {"bpf": "{ map_create map_read map_write prog_load }"},
    "readonly_t": {"perf_event": "{ open cpu kernel tracepoint read }"},
}


def write(path: pathlib.Path, data: bytes) -> None:
    """Write at once, and without O_TRUNC, which selinuxfs refuses."""
    file = os.open(path, os.O_WRONLY)
    try:
        if os.write(file, data) != len(data):
            raise OSError(f"{path} took less than {len(data)} bytes")
    finally:
        os.close(file)


def enter(domain: str) -> None:
    """Make this process one of a domain; raises OSError."""
    write(pathlib.Path("/proc/self/attr/current"), f"user_u:base_r:{domain}".encode())


def policy_text(made: str) -> str:
    """mdp's policy, which allows base_t everything, with DOMAINS in it."""
    names = " ".join(DOMAINS)
    rules: List[str] = [*(f"type {domain};" for domain in DOMAINS),
                        f"role base_r types {{ {names} }};"]
    for name in re.findall(r"^allow base_t base_t:(\w+) \*;$", made, re.M):
        for domain, limits in DOMAINS.items():
            rules += [f"allow base_t {domain}:{name} *;"]
            rules += [f"allow {domain} {target}:{name} {limits.get(name, '*')};"
                      for target in ("base_t", domain)]
    # Which of them exist depends on the version of the compiler
    made = re.sub(r"^policycap .*\n", "", made, flags=re.M)
    return made.replace("role base_r types { base_t };\n",
                        "\n".join(["role base_r types { base_t };"] + rules) + "\n")


def load_policy() -> None:
    """Compile the policy for this kernel, load it and enforce it. Exits with SKIP if the
    kernel has no SELinux."""
    if not SELINUX.is_dir():
        print("SKIP: this kernel has no SELinux: use the debug kernel")
        sys.exit(SKIP)
    os.chdir(os.environ["TMPDIR"])
    if not (SELINUX / "load").exists():
        subprocess.run(["mount", "-t", "selinuxfs", "selinuxfs", SELINUX], check=True)
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

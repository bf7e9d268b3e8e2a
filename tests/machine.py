# SPDX-License-Identifier: GPL-2.0
"""Which tests of tests/guest/plan run on this machine's own kernel: those that are of perf
alone, if it has what they need. Others, and these elsewhere, run in the guest."""
from __future__ import annotations

import functools
import os
import subprocess
from pathlib import Path

import bpf_syscalls
from perfbpf.plan import Entry

# In front of a command: it has these file systems, and nothing of them stays.
MOUNTED = ["unshare", "--mount", "sh", "-c", """
for mount in debugfs:/sys/kernel/debug tracefs:/sys/kernel/tracing bpf:/sys/fs/bpf; do
	case $(stat -f -c %T ${mount#*:}) in
	${mount%:*}*) ;;
	*) mount -t ${mount%:*} ${mount%:*} ${mount#*:} || exit 1
	esac
done
exec "$@"
""", "sh"]


NEEDED = ("uprobe_events", "events/raw_syscalls")     # in tracefs


@functools.cache
def lacks() -> str:
    """Why tests of perf alone do not run on this machine's kernel; "" if they do."""
    def sysctl(name: str) -> str:
        path = Path("/proc/sys") / name
        return path.read_text(encoding="ascii").strip() if path.exists() else ""

    if os.environ.get("PERF_BPF_STRESS") == "1":
        return "`make stress` runs all tests there"
    if os.geteuid():
        return "only root loads BPF programs and records all CPUs"
    if not Path("/sys/kernel/btf/vmlinux").exists():
        return "this kernel has no BTF"
    if sysctl("kernel/kptr_restrict") == "2" or sysctl("net/core/bpf_jit_enable") == "0":
        return "kernel.kptr_restrict=2 or net.core.bpf_jit_enable=0: BPF programs have no symbols"
    if not {0, 1} <= os.sched_getaffinity(0):
        return "CPUs 0 and 1 are not there"
    try:
        os.close(bpf_syscalls.load_program())
    except OSError as error:
        return f"this kernel loads no BPF program: {error}"
    test = " && ".join(f"test -e /sys/kernel/tracing/{name}" for name in NEEDED)
    done = subprocess.run([*MOUNTED, "sh", "-c", test], capture_output=True, text=True, check=False)
    return f"tracefs, or {' or '.join(NEEDED)} in it, is not there: {done.stderr.strip()}" \
        if done.returncode else ""


def runs_here(entry: Entry) -> bool:
    """Does an entry of the plan run on this machine's kernel?"""
    return entry.machine and not lacks()

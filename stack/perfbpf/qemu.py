# SPDX-License-Identifier: GPL-2.0
"""QEMU and virtme-ng: where they are, and the command line that boots a guest."""
from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
from pathlib import Path
from typing import NamedTuple

from perfbpf.outcome import Infra, tail
from perfbpf.paths import BUILD, TOP, Output
from perfbpf.process import note, run_limited

# stack/setup unpacks QEMU here if the system's is older than QEMU_SINCE, and
# says there why that one will not do.
QEMU_UNPACKED = BUILD / "tools/qemu/qemu-system-x86_64"
QEMU_SINCE = (8, 1)
VERSION_SECONDS = 10
# The guest's root is this machine's and does not change below the guest, so its
# pages may be cached: a boot under TCG took 12 to 18 s of CPU time with the cache
# and 18 to 29 s without (3 boots each).
#
# The clocksource watchdog waits for another CPU with interrupts off, until the
# current clock shows that some time has passed. Half a second into a boot that
# clock may still be jiffies, which only this CPU's interrupts advance: if the
# other CPU does not answer, the boot stands still. On a busy machine 1 boot in
# 280 did.
#
# At boot, the kernel waits for five interrupts of the timer while the TSC counts 160
# million cycles (timer_irq_works()), and panics without them. An emulator's TSC counts on
# while its timer thread waits for a processor. On a busy machine 1 boot in some
# hundreds panicked: "IO-APIC + timer doesn't work!".
KERNEL_OPTIONS = ("printk.time=1 tsc=nowatchdog no_timer_check sysrq_always_enabled "
                  "rootflags=version=9p2000.L,trans=virtio,"
                  "access=any,cache=loose,msize=512000")
# identify_cpu() clears the boot CPU's capabilities with interrupts on. KASAN
# derives the number of page table levels from them: an interrupt at that moment
# takes a good address for a wild one where there are five levels.
OPTIONS_OF = {"debug": "no5lvl"}


class Accel(NamedTuple):
    """What executes the guest's instructions, "kvm" or "tcg", and why."""
    name: str
    why: str

    def qemu_options(self) -> str:
        """The options for QEMU, one string."""
        return "-accel kvm -cpu host" if self.name == "kvm" else "-accel tcg -cpu max"


class Machine(NamedTuple):
    """What a guest is started with, apart from its kernel."""
    accel: Accel
    results: Path           # the one directory that the guest may write to
    cpus: int = 2
    append: str = ""        # more options for the kernel
    qemu_options: str = ""  # more options for QEMU


def find_qemu() -> str:
    """Return the path of the emulator: $QEMU, the one that stack/setup unpacked,
    or the system's (Infra: there is none)."""
    name = os.environ.get("QEMU", "qemu-system-x86_64")
    if "QEMU" not in os.environ and QEMU_UNPACKED.exists():
        name = str(QEMU_UNPACKED)
    path = shutil.which(name)
    if not path:
        raise Infra(f"qemu: {name} not found; run stack/setup (it installs qemu-system-x86), or"
                    " set QEMU=/path/of/qemu")
    return path


def qemu_version(qemu: str) -> tuple[int, int]:
    """Return QEMU's version, (0, 0) when it prints none (Infra: it cannot even do that)."""
    status, output = run_limited([qemu, "--version"], VERSION_SECONDS)
    if status is None:
        raise Infra(f"{qemu} did not start: `{qemu} --version` hung for {VERSION_SECONDS} s")
    if status:
        raise Infra(f"{qemu} did not start: `{qemu} --version` ended with status {status}\n"
                    f"{tail(output)}")
    version = re.search(r"version (\d+)\.(\d+)", output)
    return (int(version[1]), int(version[2])) if version else (0, 0)


def warn_of_old(version: tuple[int, int]) -> None:
    """Print a note when QEMU is too old for TCG; stack/setup says why."""
    if (0, 0) < version < QEMU_SINCE:
        note(f"QEMU {version[0]}.{version[1]} under TCG may run a breakpoint that the kernel has"
             f" removed (int3: 0000, or a hang): use {QEMU_SINCE[0]}.{QEMU_SINCE[1]} or later,"
             " see stack/setup")


def find_vng() -> list[str]:
    """Return the words that call virtme-ng, from the shell library that knows
    where stack/setup put it (Infra: it is nowhere)."""
    library = shlex.quote(str(TOP / "stack/lib.sh"))
    script = f'. {library} && vng_cmd && printf "%s\\0" "${{VNG[@]}}"'
    found = subprocess.run(["bash", "-c", script], stdout=subprocess.PIPE,
                           stderr=subprocess.PIPE, text=True, check=False)
    if found.returncode:
        raise Infra(found.stderr.strip().removeprefix("bash: "))
    return found.stdout.split("\0")[:-1]


def kernel_options(kernel: Output) -> list[str]:
    """Return virtme-ng's options for a kernel: the O= directory of one built here,
    with its modules if there are any, or a package's image with the modules
    beside it."""
    if kernel.kind == "package":
        return ["--run", str(kernel.image)]
    modules = [] if (kernel.path / "modules.order").exists() else ["--skip-modules"]
    return ["--run", str(kernel.path), *modules]


def vng_command(kernel: list[str], name: str, machine: Machine) -> list[str]:
    """Return the virtme-ng command line for a kernel, without a command for the guest.

    --disable-kvm also keeps virtme-ng from choosing another machine than q35;
    the accelerator is among QEMU's own options.
    """
    append = " ".join((KERNEL_OPTIONS, OPTIONS_OF.get(name, ""), machine.append)).strip()
    options = f"{machine.accel.qemu_options()} {machine.qemu_options}".strip()
    return find_vng() + kernel + [
        "--name", f"guest-{name}", "--user", "root", "--cpus", str(machine.cpus),
        "--memory", "2G", "--force-9p", "--disable-kvm", "--disable-microvm", "--cwd", str(TOP),
        "--append", append, f"--rwdir={machine.results}={machine.results}",
        f"--qemu={find_qemu()}", f"--qemu-opts={options}"]

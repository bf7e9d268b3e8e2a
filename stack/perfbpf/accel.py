# SPDX-License-Identifier: GPL-2.0
"""KVM or TCG: found out by booting boot_stub.S, which takes a second where it works.

The stub is started like any guest, by virtme-ng with the same machine and
devices, so it also finds a QEMU or a virtme-ng that does not work at all,
before minutes are spent on a kernel for it.
"""
from __future__ import annotations

import os
import subprocess
import tempfile
from pathlib import Path

from perfbpf.outcome import Infra, tail
from perfbpf.paths import BUILD
from perfbpf.process import note, run_limited
from perfbpf.qemu import Accel, Machine, find_qemu, qemu_version, vng_command, warn_of_old

STUB_SOURCE = Path(__file__).with_name("boot_stub.S")
STUB_SAYS = "boot stub: done"
KVM_SECONDS = 20
TCG_SECONDS = 60
KEPT = BUILD / "accel"


def build_stub(folder: Path) -> Path:
    """Build the stub in a directory (Infra: gcc cannot)."""
    stub = folder / "boot-stub"
    command = ["gcc", "-m32", "-nostdlib", "-static", "-no-pie", "-Wl,-Ttext=0x100000",
               "-Wl,--build-id=none", "-Wl,-z,noexecstack", "-o", str(stub), str(STUB_SOURCE)]
    try:
        built = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                               text=True, check=False)
    except FileNotFoundError as error:
        raise Infra("gcc: not found; run stack/setup") from error
    if built.returncode:
        raise Infra(f"gcc cannot build {STUB_SOURCE}:\n{tail(built.stdout)}")
    return stub


def boot_stub(accel: Accel, seconds: float) -> str:
    """Boot the stub for at most `seconds`: "" when it ran to its end, otherwise a line
    with the reason, and lines of output."""
    BUILD.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="stub-", dir=BUILD) as folder:
        stub = build_stub(Path(folder))
        command = vng_command(["--run", str(stub), "--skip-modules"], "stub",
                              Machine(accel, Path(folder)))
        status, output = run_limited(command + ["--verbose", "--exec", "true"], seconds)
    # of virtme-ng, as the stub is no Linux
    output = "\n".join(line for line in output.splitlines()
                       if "retrieve kernel version" not in line)
    ended = f"it hung for {seconds:.0f} s" if status is None else f"it ended with status {status}"
    if STUB_SAYS not in output:
        return f"{ended}\n{tail(output, 8) or '    no output'}"
    if status is None:
        return f"{ended} instead of powering off\n{tail(output, 8)}"
    return ""


def decide(device: str) -> Accel:
    """Find out by a boot whether KVM works."""
    if not os.path.exists(device):
        return Accel("tcg", f"{device} does not exist")
    if not os.access(device, os.R_OK | os.W_OK):
        return Accel("tcg", f"{device}: no permission (join the group that owns it to use KVM)")
    seconds = float(os.environ.get("GUEST_KVM_PROBE_SECONDS", KVM_SECONDS))
    trouble = boot_stub(Accel("kvm", "to be tried"), seconds).splitlines()
    if trouble:
        return Accel("tcg", f"{device} is there but does not work: a boot stub was started, and"
                            f" {trouble[0]} ({trouble[-1].strip()})")
    return Accel("kvm", f"a boot stub ran on {device}")


def recall(key: str) -> Accel | None:
    """Return the decision that build/accel keeps, if it was taken for this key."""
    try:
        kept, name, why = KEPT.read_text(encoding="utf-8").splitlines()
    except (OSError, ValueError):
        return None
    return Accel(name, why) if kept == key and name in ("kvm", "tcg") else None


def keep(key: str, accel: Accel) -> None:
    """Write a decision to build/accel; a reader never sees half of it."""
    draft = KEPT.with_name(f"accel.{os.getpid()}")
    why = " ".join(accel.why.split())   # one line of the file
    draft.write_text(f"{key}\n{accel.name}\n{why}\n", encoding="utf-8")
    draft.replace(KEPT)


def choose(retry_kvm: bool = False) -> Accel:
    """Return what build/accel says if this boot of the host has tried it with this
    QEMU, otherwise find out and keep that.

    With retry_kvm, a kept "kvm" is tried again, which takes a second. A decision for
    another device or emulator than the default is not kept.
    """
    if "GUEST_KVM_DEVICE" in os.environ or "QEMU" in os.environ:
        return decide(os.environ.get("GUEST_KVM_DEVICE", "/dev/kvm"))
    boot_id = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    key = f"{boot_id} {find_qemu()}"
    accel = recall(key)
    if accel and not (retry_kvm and accel.name == "kvm"):
        return accel
    accel = decide("/dev/kvm")
    keep(key, accel)
    return accel


def probe() -> Accel:
    """Decide, and make sure that a guest boots at all (Infra: none does)."""
    qemu = find_qemu()
    version = qemu_version(qemu)
    accel = choose(retry_kvm=True)
    note(f"{accel.name.upper()}: {accel.why}")
    if accel.name == "tcg":
        warn_of_old(version)
        trouble = boot_stub(accel, TCG_SECONDS)
        if trouble:
            raise Infra(f"{qemu}: no guest boots, with KVM or without; a boot stub was started,"
                        f" and {trouble}\n  Repair QEMU or virtme-ng, or name another QEMU with"
                        " QEMU=/path/of/qemu-system-x86_64.")
    return accel

# SPDX-License-Identifier: GPL-2.0
"""What stack/guest does before a guest's kernel runs, and when it is interrupted: it
chooses KVM or TCG, and what is missing or broken on the host is no result of the
command's.

The emulator is a shell script that behaves as a test needs, and the kernel an empty
file, so no test here takes a kernel or the time of a boot.
"""
from __future__ import annotations

import errno
import fcntl
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Iterator

import pytest

from guest_run import BOOT_SECONDS, KERNEL, Ended, guest_command, processes_naming, run
from perfbpf import guest, paths
from perfbpf.outcome import Outcome

# Takes part in the boot as far as stack/guest sees it. A test adds what this one does
# when it is asked for its version, to boot the stub that decides about KVM ("stub"), and
# to boot a kernel ("kernel").
FAKE_QEMU = r"""#!/bin/sh
version() { echo "QEMU emulator version 9.0.0"; }
stub() { echo "boot stub: done" >&2; }
kernel()
{
	echo "[    0.000000] Linux version 7.3.4" >&2
	cd "$FAKE_RESULTS" || exit 1
	echo fake >booted
	: >dmesg
	echo 0 >status
}
@more@
case "$*" in
--version) version "$@" ;;
*boot-stub*) printf '%s\n' "$*" >>"$FAKE_LOG"; stub "$@" ;;
*) printf '%s\n' "$*" >>"$FAKE_LOG"; kernel "$@" ;;
esac
"""


class Fake:
    """A build directory with an empty kernel and a fake QEMU, and what was run there."""

    def __init__(self, folder: Path) -> None:
        self.results = folder / "results"
        self.build = folder / "build"
        self.log = folder / "log"       # the options of each boot
        self.qemu = folder / "qemu"
        image = self.build / paths.KERNELS[KERNEL].image.relative_to(paths.BUILD)
        image.parent.mkdir(parents=True)
        image.touch()
        self.log.touch()
        (self.build / "tools").symlink_to(paths.BUILD / "tools")
        self.behave("")

    def behave(self, more: str) -> None:
        """Replace functions of the fake QEMU by others."""
        self.qemu.write_text(FAKE_QEMU.replace("@more@", more), encoding="ascii")
        self.qemu.chmod(0o755)

    def environment(self, **more: str) -> dict[str, str]:
        """The variables that stack/guest is run with. Any device will do that can be
        opened: QEMU is not a real one."""
        return {"PERF_BPF_BUILD": str(self.build), "QEMU": str(self.qemu),
                "FAKE_LOG": str(self.log), "FAKE_RESULTS": str(self.results),
                "GUEST_KVM_DEVICE": "/dev/null", "GUEST_KVM_PROBE_SECONDS": "3", **more}

    def run(self, **environment: str) -> Ended:
        """Run a command in a guest of the fake QEMU."""
        return run(self.results, "true", timeout=BOOT_SECONDS, **self.environment(**environment))

    def boots(self) -> list[str]:
        """The options of each boot of a kernel."""
        return [line for line in self.log.read_text().splitlines() if "boot-stub" not in line]


@pytest.fixture(name="fake")
def fixture_fake(tmp_path: Path) -> Fake:
    """A fake QEMU that boots whatever it is asked to."""
    return Fake(tmp_path)


# KVM or TCG

def test_no_kvm(fake: Fake) -> None:
    """Without /dev/kvm the guest runs under TCG and says why."""
    ended = fake.run(GUEST_KVM_DEVICE="/nonexistent")
    assert ended.status == Outcome.PASSED, ended.errors
    assert "TCG: /nonexistent does not exist" in ended.errors
    assert ["-accel tcg" in options for options in fake.boots()] == [True]


def test_kvm_works(fake: Fake) -> None:
    """Where the boot stub runs under KVM, so does the guest."""
    ended = fake.run()
    assert ended.status == Outcome.PASSED, ended.errors
    assert "KVM: a boot stub ran on /dev/null" in ended.errors
    assert ["-accel kvm" in options for options in fake.boots()] == [True]


@pytest.mark.parametrize("stub, why", [
    ("sleep 1000", "hung for 3 s"),
    ("echo kvm run failed >&2; kill -ABRT $$", "kvm run failed"),
], ids=["hangs", "aborts"])
def test_kvm_does_not_work(fake: Fake, stub: str, why: str) -> None:
    """A KVM that hangs or aborts is reported with its own words; TCG takes over."""
    fake.behave(f'stub() {{ case "$*" in *"-accel kvm"*) {stub} ;; esac; }}')
    ended = fake.run()
    assert ended.status == Outcome.PASSED, ended.errors
    assert "TCG: /dev/null is there but does not work" in ended.errors and why in ended.errors
    assert ["-accel tcg" in options for options in fake.boots()] == [True]


@pytest.mark.parametrize("version, old", [("7.2.22", True), ("8.1.0", False)])
def test_old_qemu(fake: Fake, version: str, old: bool) -> None:
    """A note warns of a QEMU that may run stale code under TCG; the guest runs."""
    fake.behave(f"version() {{ echo version {version}; }}")
    ended = fake.run(GUEST_KVM_DEVICE="/nonexistent")
    assert ended.status == Outcome.PASSED, ended.errors
    assert ("QEMU 7.2 under TCG may run a breakpoint" in ended.errors) == old


# An emulator that does not work

def test_no_qemu(fake: Fake) -> None:
    """A missing emulator is named."""
    ended = fake.run(QEMU="/nonexistent/qemu")
    assert ended.status == Outcome.INFRA
    assert "/nonexistent/qemu" in ended.errors


def test_qemu_fails(fake: Fake) -> None:
    """An emulator that refuses to start is not the guest's failure."""
    fake.behave("kernel() { echo no such machine >&2; exit 1; }")
    ended = fake.run(GUEST_KVM_DEVICE="/nonexistent")
    assert ended.status == Outcome.INFRA
    assert "did not start" in ended.errors and "no such machine" in ended.errors


@pytest.mark.parametrize("times, status", [(1, Outcome.PASSED), (2, Outcome.INFRA)])
def test_qemu_breaks(fake: Fake, times: int, status: Outcome) -> None:
    """An emulator that breaks before the command began gets a second chance, which is
    reported, and no third one."""
    fake.behave(f"""
if [ "$1" != --version ] && [ "$(wc -l <"$FAKE_LOG")" -lt {times} ]; then
	kernel()
	{{
		echo "qemu-system-x86_64: hw/pci/msix.c:1: f: Assertion \\`a' failed." >&2
		kill -ABRT $$
	}}
fi""")
    ended = fake.run(GUEST_KVM_DEVICE="/nonexistent")
    assert ended.status == status, ended.errors
    assert "booting once more: qemu-system-x86_64: hw/pci/msix.c:1" in ended.errors
    assert len(fake.boots()) == 2


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupted(fake: Fake, number: signal.Signals) -> None:
    """Ctrl-C and kill end the guest too."""
    fake.behave('kernel() { echo "Linux version 7.3.4" >&2; echo >"$FAKE_RESULTS/booted"; '
                "sleep 1000; }")
    command = guest_command(fake.results, "true")
    with subprocess.Popen(command, env={**os.environ, **fake.environment()},
                          stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                          stderr=subprocess.PIPE, text=True) as process:
        try:
            deadline = time.monotonic() + 60
            while not (fake.results / "booted").exists():
                assert process.poll() is None and time.monotonic() < deadline
                time.sleep(0.1)
            process.send_signal(number)
            _, errors = process.communicate(timeout=15)
        finally:
            process.terminate()
    assert process.returncode == 128 + signal.SIGINT
    assert "interrupted" in errors
    assert not processes_naming(str(fake.results))


# What is missing on the host

def test_no_kernel(fake: Fake, tmp_path: Path) -> None:
    """A missing kernel image is reported with the command that builds it."""
    ended = fake.run(PERF_BPF_BUILD=str(tmp_path / "empty"))
    assert ended.status == Outcome.INFRA
    assert "no image" in ended.errors and paths.KERNELS[KERNEL].command in ended.errors


@pytest.fixture(name="small_disk")
def fixture_small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 1 MiB."""
    if os.geteuid() != 0:
        pytest.skip("mounting a small tmpfs takes root")
    disk = tmp_path / "disk"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(disk)], check=True)
    yield disk
    subprocess.run(["umount", str(disk)], check=True)


def test_disk_is_full(fake: Fake, small_disk: Path) -> None:
    """A disk without room for logs stops the run before the boot."""
    fake.results = small_disk / "results"
    ended = fake.run()
    assert ended.status == Outcome.INFRA
    assert "disk full" in ended.errors
    assert not fake.boots()


def test_results_in_use(fake: Fake) -> None:
    """A second guest does not overwrite what the first one is writing."""
    fake.results.mkdir()
    held = os.open(fake.results, os.O_RDONLY)
    fcntl.flock(held, fcntl.LOCK_EX)
    (fake.results / "ktap.log").write_text("the first one's\n")
    ended = fake.run()
    os.close(held)
    assert ended.status == Outcome.INFRA and "another guest" in ended.errors
    assert (fake.results / "ktap.log").read_text() == "the first one's\n"
    assert not fake.boots()


def test_results_not_a_directory(fake: Fake, tmp_path: Path) -> None:
    """A results directory that cannot be made is named."""
    (tmp_path / "file").write_text("")
    fake.results = tmp_path / "file/results"
    ended = fake.run()
    assert ended.status == Outcome.INFRA
    assert str(fake.results) in ended.errors


def test_trouble_of_this_machine(monkeypatch: pytest.MonkeyPatch,
                                 capsys: pytest.CaptureFixture[str]) -> None:
    """What the machine refuses is named, and is no result of the command's."""
    def refuse(_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "/some/file")

    monkeypatch.setattr(guest, "run_command", refuse)
    monkeypatch.setattr(sys, "argv", ["guest", "--", "true"])
    handlers = {number: signal.getsignal(number) for number in
                (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1)}
    try:
        assert guest.main() == Outcome.INFRA
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
    assert "/some/file: No space left" in capsys.readouterr().err

# SPDX-License-Identifier: GPL-2.0
"""QEMU, KVM and a guest that hangs: `stack/guest --probe` finds a QEMU that cannot
boot anything, the decision about KVM is kept, the QEMU that stack/setup unpacked does
not load another build's modules, and a hang is explained in console.log."""
from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import threading
import time
from pathlib import Path
from typing import Iterator

import pytest

from perfbpf import accel, guest, hang, paths, qemu
from perfbpf.outcome import Infra, Outcome
from perfbpf.process import adopt_orphans

GUEST = paths.TOP / "stack/guest"
SUBJECT = os.environ.get("PERF_BPF_SUBJECT", "series")
NO_KVM = {"GUEST_KVM_DEVICE": "/nonexistent"}
# A probe boot takes a second or two on an idle machine.
PROBE_SECONDS = 60
BOOT_SECONDS = 180


def probe(*prefix: str, **environment: str) -> tuple[int, str, float]:
    """Run `stack/guest --probe`: its exit status, what it printed, and its seconds."""
    start = time.monotonic()
    ended = subprocess.run([*prefix, str(GUEST), "--probe"], env={**os.environ, **environment},
                           stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                           stderr=subprocess.STDOUT, text=True, check=False, timeout=300)
    return ended.returncode, ended.stdout, time.monotonic() - start


def fake_qemu(path: Path, script: str) -> dict[str, str]:
    """Make an emulator out of a shell script; the environment that selects it."""
    path.write_text(f"#!/bin/sh\n{script}\n", encoding="ascii")
    path.chmod(0o755)
    return {"QEMU": str(path)}


@pytest.fixture(name="children")
def fixture_children() -> Iterator[Path]:
    """A file with this process's children, those among them whose parents are gone."""
    adopt_orphans()
    yield Path(f"/proc/self/task/{os.getpid()}/children")
    adopt_orphans(False)


# The probe

def test_probe() -> None:
    """Without a kernel, a guest boots here, under TCG at least."""
    status, output, seconds = probe(**NO_KVM)
    assert status == Outcome.PASSED, output
    assert "TCG: /nonexistent does not exist" in output
    assert seconds < PROBE_SECONDS


VERSION = '[ "$1" != --version ] || exec echo "QEMU emulator version 10.0.2"; '


@pytest.mark.parametrize("script, message, reason", [
    ("echo no such library >&2; exit 1", "did not start", "no such library"),
    (VERSION + "echo module_load_dso: Assertion failed >&2; kill -ABRT $$", "no guest boots",
     "module_load_dso"),
    (VERSION + "exit 0", "no guest boots", "no output"),
])
def test_broken_qemu(tmp_path: Path, script: str, message: str, reason: str) -> None:
    """An emulator that cannot boot is found before any build, and its output shown."""
    status, output, seconds = probe(**fake_qemu(tmp_path / "qemu", script), **NO_KVM)
    assert status == Outcome.INFRA, output
    assert message in output and reason in output
    assert str(tmp_path / "qemu") in output
    assert seconds < PROBE_SECONDS


@pytest.mark.parametrize("script", ["sleep 1000", VERSION + "sleep 1000"])
def test_hanging_qemu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, children: Path,
                      script: str) -> None:
    """So is one that hangs, in bounded time, and nothing of it is left running."""
    for name, value in {**fake_qemu(tmp_path / "qemu", script), **NO_KVM}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(accel, "TCG_SECONDS", 3)
    monkeypatch.setattr(qemu, "VERSION_SECONDS", 3)
    with pytest.raises(Infra, match="hung for 3 s"):
        accel.probe()
    assert not children.read_text(encoding="ascii"), "something of it is left running"


def test_slow_kvm(tmp_path: Path) -> None:
    """A KVM that runs the firmware, and then emulates each instruction, is not used."""
    system = qemu.find_qemu()
    script = ('case "$*" in *"-accel kvm"*)\n'
              'echo "boot stub: 64-bit mode and interrupts work, executing instructions" >&2\n'
              f'sleep 1000 ;; esac\nexec {system} "$@"')
    status, output, _ = probe(**fake_qemu(tmp_path / "qemu", script),
                              GUEST_KVM_DEVICE="/dev/null", GUEST_KVM_PROBE_SECONDS="3")
    assert status == Outcome.PASSED, output
    assert re.search("TCG: /dev/null .*does not work.*hung for 3 s .*executing instructions",
                     output), output


def test_stub_counts(tmp_path: Path) -> None:
    """The stub executes as many instructions as it says."""
    text = accel.STUB_SOURCE.read_text(encoding="ascii")
    loops = re.search(r"#define LOOPS\s+(\d+)", text)
    assert loops and int(loops[1]) * 5 == 100_000_000
    assert accel.build_stub(tmp_path).stat().st_size < 16384


# The decision about KVM

@pytest.fixture(name="decisions")
def fixture_decisions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """The devices that were tried; KVM works, and the decision is kept in tmp_path."""
    tried: list[str] = []

    def decide(device: str) -> qemu.Accel:
        tried.append(device)
        return qemu.Accel("kvm", "two lines\nof output")

    monkeypatch.setattr(accel, "decide", decide)
    monkeypatch.setattr(accel, "KEPT", tmp_path / "accel")
    for name in ("QEMU", "GUEST_KVM_DEVICE"):
        monkeypatch.delenv(name, raising=False)
    yield tried


def test_decision_is_kept(decisions: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Once decided, nothing is tried again; another QEMU is another decision."""
    assert accel.choose() == ("kvm", "two lines\nof output")
    assert accel.choose() == ("kvm", "two lines of output")
    assert decisions == ["/dev/kvm"]
    accel.choose(retry_kvm=True)
    assert decisions == ["/dev/kvm"] * 2
    monkeypatch.setattr(accel, "find_qemu", lambda: "/another/qemu")
    accel.choose()
    assert decisions == ["/dev/kvm"] * 3


@pytest.mark.parametrize("text", ["", "key\nkvm\n", "key\nxen\nwhy\n", "other\nkvm\nwhy\n"])
def test_bad_decision(decisions: list[str], text: str) -> None:
    """A damaged file, or one of another boot of the host, is not believed."""
    accel.KEPT.write_text(text, encoding="ascii")
    assert accel.recall("key") is None
    assert accel.choose().name == "kvm" and decisions == ["/dev/kvm"]


# Modules of another build

MODULE = """
void register_dso_module_init(void (*init)(void), int type);
static void init(void) { }
void qemu_module_dummy(void) { }
__attribute__((constructor)) static void load(void) { register_dso_module_init(init, 3); }
"""
# Those that QEMU 10 tries to load without being asked for audio or a display.
MODULES = ("audio-alsa", "audio-jack", "audio-oss", "audio-pa", "audio-pipewire", "audio-sdl",
           "ui-opengl")


def module_directory(binary: Path) -> Path:
    """Where a QEMU looks for its modules."""
    found = re.search(rb"/usr/lib/[\w-]+/qemu(?=\0)", binary.read_bytes())
    assert found, f"{binary} names no directory of modules"
    return Path(found[0].decode())


@pytest.mark.skipif(os.geteuid() != 0, reason="a mount takes root")
def test_modules_of_another_build(tmp_path: Path) -> None:
    """The unpacked QEMU boots where the system has modules of another version, as
    qemu-system-gui brings them: it aborted."""
    if not qemu.QEMU_UNPACKED.exists():
        pytest.skip(f"{qemu.QEMU_UNPACKED} is not there: the system's QEMU is new enough")
    place = module_directory(qemu.QEMU_UNPACKED.parent / "usr/bin/qemu-system-x86_64")
    if not place.is_dir():
        pytest.skip(f"there is no {place} to mount modules on")
    (tmp_path / "module.c").write_text(MODULE, encoding="ascii")
    modules = tmp_path / "modules"
    modules.mkdir()
    for name in MODULES:
        subprocess.run(["gcc", "-shared", "-fPIC", "-o", str(modules / f"{name}.so"),
                        str(tmp_path / "module.c")], check=True)
    mount = f'mount --bind {modules} {place} && exec "$@"'
    status, output, _ = probe("unshare", "--mount", "sh", "-c", mount, "sh", **NO_KVM,
                              QEMU=str(qemu.QEMU_UNPACKED), QEMU_MODULE_DIR=str(modules))
    assert status == Outcome.PASSED, output


# The command in the guest

def test_guest_knows_the_build_directory(tmp_path: Path) -> None:
    """A command in the guest, which has nothing of our environment, finds what is built."""
    def output(*command: str) -> str:
        guest.write_command(command, tmp_path)
        return subprocess.run(["env", "-i", "bash", str(tmp_path / "cmd")], check=True,
                              text=True, stdout=subprocess.PIPE).stdout

    assert output("echo $PERF_BPF_BUILD") == f"{paths.BUILD}\n"
    assert output("echo", "$PERF_BPF_BUILD") == "$PERF_BPF_BUILD\n"


# A guest that hangs

BLOCKED = """
#include <unistd.h>

/* The parent waits for its child's end, uninterruptibly. */
int main(void)
{
	if (!vfork()) {
		write(1, "blocked\\n", 8);
		for (;;)
			pause();
	}
	return 0;
}
"""


def wait_for(path: Path, text: str, running: subprocess.Popen[str]) -> None:
    """Wait until a log of the guest has a text; fails when the guest ends first."""
    deadline = time.monotonic() + BOOT_SECONDS
    while not path.exists() or text not in path.read_text(encoding="utf-8", errors="replace"):
        assert running.poll() is None and time.monotonic() < deadline
        time.sleep(0.1)


def test_hang_is_explained(tmp_path: Path) -> None:
    """At the time limit, here by SIGUSR1, the blocked tasks, each CPU's backtrace and
    registers are kept."""
    results = tmp_path / "results"
    (tmp_path / "blocked.c").write_text(BLOCKED, encoding="ascii")
    program = tmp_path / "blocked_parent"
    subprocess.run(["gcc", "-static", "-o", str(program), str(tmp_path / "blocked.c")], check=True)
    command = [str(GUEST), "--kernel", SUBJECT, "--results", str(results), "--", str(program)]
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                          stderr=subprocess.PIPE, text=True) as running:
        try:
            wait_for(results / "output.log", "blocked\n", running)
            start = time.monotonic()
            running.send_signal(signal.SIGUSR1)
            _, said = running.communicate(timeout=hang.LIMIT + 20)
        finally:
            running.terminate()
    assert running.returncode == Outcome.TIMEOUT, said
    assert time.monotonic() - start < hang.LIMIT + 10
    console = (results / "console.log").read_text(encoding="utf-8", errors="replace")
    _, _, blocked = console.partition("sysrq: Show Blocked State")
    blocked, _, backtraces = blocked.partition("sysrq: Show backtrace of all active CPUs")
    assert re.search(r"task:blocked_parent +state:D", blocked), console[-4000:]
    assert "Call Trace" in backtraces and "sysrq: Show State" in backtraces, console[-4000:]
    assert (results / "registers").read_text(encoding="ascii").count("RIP=") == 2


def test_deaf_qemu(tmp_path: Path) -> None:
    """A QEMU that does not answer is given up."""
    monitor = hang.Monitor(tmp_path)
    start = time.monotonic()
    assert "qmp" in hang.ask(monitor, tmp_path / "registers", lambda *_: None)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(monitor.path))
        listener.listen()
        said = hang.ask(monitor, tmp_path / "registers", lambda *_: None)
    assert "does not answer" in said
    assert time.monotonic() - start < 2 * hang.REPLY_SECONDS


def test_refusing_qemu(tmp_path: Path) -> None:
    """A QEMU that refuses a command is quoted; one that hangs up is no exception."""
    monitor = hang.Monitor(tmp_path)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(monitor.path))
        listener.listen()

        def serve() -> None:
            client, _ = listener.accept()
            with client, client.makefile("rw") as stream:
                stream.write('{"QMP": {}}\n{"return": {}}\n{"event": "STOP"}\n'
                             '{"error": {"desc": "no monitor here"}}\n')
                stream.flush()
                stream.readline()   # qmp_capabilities
                stream.readline()   # what is refused

        server = threading.Thread(target=serve)
        server.start()
        said = hang.ask(monitor, tmp_path / "registers", lambda *_: None)
        server.join()
    assert said == "QEMU refused human-monitor-command: no monitor here"


def test_long_path(tmp_path: Path) -> None:
    """Where the path is too long for a socket, or needs quoting, QEMU gets no option."""
    assert "-qmp" in hang.Monitor(Path("/tmp/short")).qemu_options()
    assert hang.Monitor(tmp_path / ("long" * 30)).qemu_options() == ""
    assert hang.Monitor(Path("/tmp/a,b")).qemu_options() == ""

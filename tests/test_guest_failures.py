# SPDX-License-Identifier: GPL-2.0
"""Whatever goes wrong in or around the guest ends in the right class of
failure, within its time limit, with nothing left running."""

import errno
import fcntl
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time
from typing import Dict, Iterator, List, NamedTuple, Type

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "guest"))
import guest_host as host  # noqa: E402  pylint: disable=wrong-import-position
from perfbpf import guest, ktap  # noqa: E402  pylint: disable=wrong-import-position
from perfbpf.outcome import Run, judge  # noqa: E402  pylint: disable=wrong-import-position
from perfbpf.plan import Entry, read_plan  # noqa: E402  pylint: disable=wrong-import-position
from perfbpf.splats import find_splats  # noqa: E402  pylint: disable=wrong-import-position

GUEST = host.TOP / "stack/guest"
# Boots under TCG on a busy machine took 13 to 64 s.
BOOT_SECONDS = 180
PASSED, FAILED, INFRA, SPLAT, DIED, TIMEOUT = 0, 1, 3, 4, 5, 6


class Ended(NamedTuple):
    """A run of stack/guest: exit status, output, standard error, seconds."""
    status: int
    output: str
    said: str
    seconds: float


def processes_naming(text: str) -> List[str]:
    """Command lines of the running processes that contain `text`, other than
    this one."""
    found = []
    for path in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
        try:
            line = path.read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        if text in line and path.parent.name != str(os.getpid()):
            found.append(line)
    return found


def guest_command(results: pathlib.Path, *words: str, timeout: float
                  ) -> List[str]:
    """The words of a stack/guest call on the kernel under test."""
    return [str(GUEST), "--kernel", host.SUBJECT, "--timeout", str(timeout),
            "--results", str(results), "--", *words]


def run(results: pathlib.Path, *words: str, timeout: float = BOOT_SECONDS,
        **environment: str) -> Ended:
    """Run a command in the guest; fails when a process of it is left."""
    start = time.monotonic()
    ended = subprocess.run(guest_command(results, *words, timeout=timeout),
                           env=dict(os.environ, **environment), text=True,
                           stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                           stderr=subprocess.PIPE, errors="replace",
                           check=False, timeout=timeout + 60)
    left = processes_naming(str(results))
    assert not left, f"left running: {left}"
    return Ended(ended.returncode, ended.stdout, ended.stderr,
                 time.monotonic() - start)


@pytest.fixture(name="results")
def fixture_results(tmp_path: pathlib.Path) -> pathlib.Path:
    """A results directory of the test's own."""
    return tmp_path / "results"


@pytest.fixture(name="small_disk")
def fixture_small_disk(tmp_path: pathlib.Path, request: pytest.FixtureRequest
                       ) -> Iterator[pathlib.Path]:
    """A file system with as many MiB as the test's parameter says."""
    if os.geteuid() != 0:
        pytest.skip("mounting a small tmpfs takes root")
    disk = tmp_path / "disk"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={request.param}m",
                    "tmpfs", str(disk)], check=True)
    yield disk
    subprocess.run(["umount", str(disk)], check=True)


# The command's own end

def test_command_passes(results: pathlib.Path) -> None:
    """Output, configuration and logs of a command that passes are kept."""
    ended = run(results, "id -u; pwd; ls /dev/virtio-ports")
    assert ended.status == PASSED, ended.said
    assert ended.output.split()[:2] == ["0", str(host.TOP)]
    for name in ("console.log", "dmesg", "config", "output.log"):
        assert (results / name).stat().st_size > 0


def test_command_fails(results: pathlib.Path) -> None:
    """A command's failure is a failure, and its status is told."""
    ended = run(results, "exit 7")
    assert ended.status == FAILED
    assert "status 7" in ended.said


def test_host_is_read_only(results: pathlib.Path) -> None:
    """The guest cannot write to the repository, only to its results."""
    mark = host.TOP / "guest-was-here"
    ended = run(results, f"touch {mark}; touch $GUEST_RESULTS/mine")
    assert ended.status == PASSED, ended.said
    assert not mark.exists()
    assert (results / "mine").exists()


# Splats

def test_splat(results: pathlib.Path) -> None:
    """A warning in the kernel's log outweighs a command that passed."""
    ended = run(results, "echo 'WARNING: CPU: 0 PID: 1 at kernel/x.c:1' "
                         "> /dev/kmsg")
    assert ended.status == SPLAT
    assert "kernel/x.c:1" in ended.said
    assert "kernel/x.c:1" in (results / "splats").read_text()


@pytest.mark.parametrize("line", [
    "[    1.5] WARNING: kernel/events/core.c:1 at f+0x1/0x2, CPU#0: perf/1",
    "[    1.5][  T12] WARNING: CPU: 1 PID: 12 at kernel/events/core.c:1",
    "[    1.5] BUG: KASAN: slab-out-of-bounds in f+0x1/0x2",
    "[    1.5] BUG: kernel NULL pointer dereference, address: 0000000000000000",
    "[    1.5] BUG: sleeping function called from invalid context at a.c:1",
    "[    1.5] Oops: Oops: 0000 [#1] SMP KASAN NOPTI",
    "[    1.5] Oops: general protection fault, probably for non-canonical",
    "[    1.5] kernel BUG at mm/slub.c:1!",
    "[    1.5] WARNING: possible circular locking dependency detected",
    "[    1.5] WARNING: inconsistent lock state",
    "[    1.5] WARNING: suspicious RCU usage",
    "[    1.5] watchdog: BUG: soft lockup - CPU#0 stuck for 22s! [a:1]",
    "[    1.5] rcu: INFO: rcu_preempt detected stalls on CPUs/tasks:",
    "[    1.5] rcu: INFO: rcu_sched self-detected stall on CPU",
    "[    1.5] INFO: task a:1 blocked for more than 120 seconds.",
    "[    1.5] kmemleak: Kernel memory leak detector disabled",
    "[    1.5] UBSAN: array-index-out-of-bounds in a.c:1:2",
])
def test_splat_is_found(line: str) -> None:
    """Each kind of complaint is one."""
    assert find_splats(f"[    1.0] fine\n{line}\n") == [line]


@pytest.mark.parametrize("line", [
    "[    0.1] Linux version 7.3.4 (a@b) (gcc 12.2.0) #1 SMP",
    "[    0.2] kmemleak: Kernel memory leak detector initialized",
    "[    0.2] Spectre V2 : WARNING: Unprivileged eBPF is enabled",
    "[    0.3] rcu: RCU debug extended QS entry/exit.",
    "[    0.3] Lock dependency validator: Copyright (c) 2006 Red Hat, Inc.",
    "[    0.4] perf: interrupt took too long (2503 > 2500)",
    "[    0.5] kasan: KernelAddressSanitizer initialized",
])
def test_no_splat_is_found(line: str) -> None:
    """What a healthy kernel says is not a complaint."""
    assert find_splats(line) == []


def judged(results: pathlib.Path, **files: str) -> int:
    """Class of a run that left these files (a name's "_" stands for ".")."""
    for name, text in files.items():
        (results / name.replace("_", ".")).write_text(text)
    return judge(Run(False, 1.0), results)[0]


def test_leak(tmp_path: pathlib.Path) -> None:
    """A leak is a complaint; a leak detector that found none is fine."""
    ended = {"status": "0\n", "dmesg": "[    0.0] Linux version 7.3.4\n"}
    assert judged(tmp_path, kmemleak="", **ended) == PASSED
    leak = "unreferenced object 0xffff888004 (size 64):\n  comm \"a\", pid 1\n"
    assert judged(tmp_path, kmemleak=leak, **ended) == SPLAT


def test_panic_after_the_command(tmp_path: pathlib.Path) -> None:
    """A guest that panics on its way down has died all the same."""
    console = "Linux version 7.3.4\r\n[    9.9] Kernel panic - not syncing: x\r\n"
    assert judged(tmp_path, status="0\n", dmesg="",
                  console_log=console) == DIED


# The guest's death

def test_panic(results: pathlib.Path) -> None:
    """A panic is a death of the guest, at once and not at the time limit."""
    ended = run(results, "echo c > /proc/sysrq-trigger; sleep 1000")
    assert ended.status == DIED
    assert "panicked" in ended.said
    assert ended.seconds < BOOT_SECONDS


def test_early_exit(results: pathlib.Path) -> None:
    """A guest that powers off below the command has died."""
    ended = run(results, "echo o > /proc/sysrq-trigger; sleep 1000")
    assert ended.status == DIED
    assert "went away" in ended.said


def test_never_ends(results: pathlib.Path) -> None:
    """A command that never ends is killed with the guest at the limit."""
    ended = run(results, "sleep 1000", timeout=40)
    assert ended.status == TIMEOUT
    assert 40 <= ended.seconds < 60


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupted(results: pathlib.Path, number: int) -> None:
    """Ctrl-C and kill take the guest along."""
    command = guest_command(results, "sleep 1000", timeout=BOOT_SECONDS)
    with subprocess.Popen(command, stdin=subprocess.DEVNULL,
                          stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                          text=True) as process:
        try:
            deadline = time.monotonic() + BOOT_SECONDS
            while not (results / "booted").exists():
                assert process.poll() is None and time.monotonic() < deadline
                time.sleep(0.1)
            process.send_signal(number)
            _, said = process.communicate(timeout=15)
        finally:
            process.terminate()
    assert process.returncode == 130
    assert "interrupted" in said
    assert not processes_naming(str(results))


# KVM

def fake_qemu(path: pathlib.Path, kvm: str) -> Dict[str, str]:
    """Environment with an emulator that does `kvm` when asked for KVM."""
    path.write_text("#!/bin/sh\n"
                    f'case "$*" in *"-accel kvm"*) {kvm} ;; esac\n'
                    f'exec {shutil.which("qemu-system-x86_64")} "$@"\n')
    path.chmod(0o755)
    # Any device will do that can be opened: the emulator is not the real one.
    return {"QEMU": str(path), "GUEST_KVM_DEVICE": "/dev/null",
            "GUEST_KVM_PROBE_SECONDS": "3"}


def test_no_kvm(results: pathlib.Path) -> None:
    """Without /dev/kvm the guest runs under TCG and says why."""
    ended = run(results, "true", GUEST_KVM_DEVICE="/nonexistent")
    assert ended.status == PASSED, ended.said
    assert "TCG: /nonexistent does not exist" in ended.said


def test_kvm_hangs(results: pathlib.Path, tmp_path: pathlib.Path) -> None:
    """A KVM that hangs costs the probe's limit, then TCG takes over."""
    fake = fake_qemu(tmp_path / "qemu", "sleep 1000; exit 1")
    ended = run(results, "true", **fake)
    assert ended.status == PASSED, ended.said
    assert "TCG: /dev/null is there but does not work" in ended.said
    assert "hung for 3 s" in ended.said


def test_kvm_aborts(results: pathlib.Path, tmp_path: pathlib.Path) -> None:
    """A KVM that aborts is told with what it said; TCG takes over."""
    fake = fake_qemu(tmp_path / "qemu", "echo kvm run failed; kill -ABRT $$")
    ended = run(results, "true", **fake)
    assert ended.status == PASSED, ended.said
    assert "TCG" in ended.said and "kvm run failed" in ended.said


@pytest.mark.parametrize("version, old", [("7.2.22", True), ("8.1.0", False)])
def test_old_qemu(results: pathlib.Path, tmp_path: pathlib.Path, version: str, old: bool) -> None:
    """Under TCG, a QEMU that may run stale code is told; the guest runs."""
    fake = tmp_path / "qemu"
    fake.write_text(f'#!/bin/sh\n[ "$1" = --version ] && exec echo "version {version}"\n'
                    f'exec {shutil.which("qemu-system-x86_64")} "$@"\n')
    fake.chmod(0o755)
    ended = run(results, "true", QEMU=str(fake), GUEST_KVM_DEVICE="/nonexistent")
    assert ended.status == PASSED, ended.said
    assert ("QEMU 7.2 under TCG may run a breakpoint" in ended.said) == old


# Infrastructure

def test_no_qemu(results: pathlib.Path) -> None:
    """A missing emulator is told by name."""
    ended = run(results, "true", QEMU="/nonexistent/qemu")
    assert ended.status == INFRA
    assert "/nonexistent/qemu" in ended.said


def test_qemu_fails(results: pathlib.Path, tmp_path: pathlib.Path) -> None:
    """An emulator that refuses to start is not the guest's failure."""
    fake = tmp_path / "qemu"
    fake.write_text("#!/bin/sh\necho no such machine >&2\nexit 1\n")
    fake.chmod(0o755)
    ended = run(results, "true", QEMU=str(fake),
                GUEST_KVM_DEVICE="/nonexistent")
    assert ended.status == INFRA
    assert "did not start" in ended.said


@pytest.mark.parametrize("times, status", [(1, PASSED), (2, INFRA)])
def test_qemu_breaks(results: pathlib.Path, tmp_path: pathlib.Path, times: int,
                     status: int) -> None:
    """An emulator that breaks before the command began gets a second chance, which is
    told, and no third one."""
    fake = tmp_path / "qemu"
    fake.write_text(f"""#!/bin/sh
[ "$1" = --version ] || echo >>{tmp_path}/boots
if [ "$1" != --version ] && [ "$(wc -l <{tmp_path}/boots)" -le {times} ]; then
	echo "qemu-system-x86_64: hw/pci/msix.c:1: f: Assertion \\`a' failed." >&2
	kill -ABRT $$
fi
exec {shutil.which("qemu-system-x86_64")} "$@"
""")
    fake.chmod(0o755)
    ended = run(results, "true", QEMU=str(fake), GUEST_KVM_DEVICE="/nonexistent")
    assert ended.status == status, ended.said
    assert "booting once more: qemu-system-x86_64: hw/pci/msix.c:1" in ended.said
    assert len((tmp_path / "boots").read_text()) == 2


def test_no_kernel(results: pathlib.Path, tmp_path: pathlib.Path) -> None:
    """A missing kernel image is told with what builds it."""
    ended = run(results, "true", PERF_BPF_BUILD=str(tmp_path))
    assert ended.status == INFRA
    assert "no image" in ended.said and "kernel" in ended.said
    assert ended.seconds < 10


@pytest.mark.parametrize("small_disk", [1], indirect=True)
def test_disk_is_full(small_disk: pathlib.Path) -> None:
    """A disk without room for logs stops the run before the boot."""
    ended = run(small_disk / "results", "true")
    assert ended.status == INFRA
    assert "disk full" in ended.said
    assert ended.seconds < 10


@pytest.mark.parametrize("small_disk", [16], indirect=True)
def test_disk_fills_up(small_disk: pathlib.Path) -> None:
    """A disk that fills up below the guest is no result of the command's."""
    ended = run(small_disk / "results",
                "cat /dev/zero > $GUEST_RESULTS/fill; true")
    assert ended.status == INFRA
    assert "write" in ended.said


def test_results_in_use(results: pathlib.Path) -> None:
    """A second guest does not write over what the first one is writing."""
    results.mkdir()
    held = os.open(results, os.O_RDONLY)
    fcntl.flock(held, fcntl.LOCK_EX)
    (results / "ktap.log").write_text("the first one's\n")
    ended = run(results, "true")
    os.close(held)
    assert ended.status == INFRA and "another guest" in ended.said
    assert (results / "ktap.log").read_text() == "the first one's\n"


def test_trouble_of_this_machine(monkeypatch: pytest.MonkeyPatch,
                                 capsys: pytest.CaptureFixture[str]) -> None:
    """What the machine refuses is told by name, and is no result of the command's."""
    def refuse(_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "/some/file")

    monkeypatch.setattr(guest, "run_command", refuse)
    monkeypatch.setattr(sys, "argv", ["guest", "--", "true"])
    handlers = {number: signal.getsignal(number)
                for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    try:
        assert guest.main() == INFRA
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
    assert "/some/file: No space left" in capsys.readouterr().err


def test_results_not_a_directory(tmp_path: pathlib.Path) -> None:
    """A results directory that cannot be made is told by name."""
    (tmp_path / "file").write_text("")
    ended = run(tmp_path / "file/results", "true")
    assert ended.status == INFRA
    assert str(tmp_path / "file/results") in ended.said


# KTAP

PLAN = [Entry("kselftest", "a/one", False), Entry("perf-shell", "two.sh", False)]
KTAP = """KTAP version 1
1..2
  TAP version 13
  # Subtest: kselftest:a/one
  1..2
  ok 1 first
  ok 2 second # SKIP no PMU
ok 1 kselftest:a/one
  # some words
ok 2 perf-shell:two.sh
# 2 of 2 did not fail
"""


def parsed(tmp_path: pathlib.Path, text: str) -> host.Session:
    """A session whose guest passed and whose KTAP is `text`."""
    (tmp_path / "ktap.log").write_text(text)
    tests, errors = ktap.parse_log(tmp_path / "ktap.log", PLAN)
    return host.Session(0, "", tmp_path, tests, errors)


def test_whole_log_passes(tmp_path: pathlib.Path) -> None:
    """A log with every planned result passes."""
    session = parsed(tmp_path, KTAP)
    host.judge_session(session)
    for entry in PLAN:
        host.judge_entry(session, entry)


@pytest.mark.parametrize("lines", range(len(KTAP.splitlines()) - 1))
def test_truncated_log_fails(tmp_path: pathlib.Path, lines: int) -> None:
    """A log that stops before its last result fails, wherever it stops."""
    text = "".join(KTAP.splitlines(True)[:lines])
    with pytest.raises(pytest.fail.Exception):
        host.judge_session(parsed(tmp_path, text))


def test_missing_log_fails(tmp_path: pathlib.Path) -> None:
    """A guest that wrote no log at all fails."""
    tests, errors = ktap.parse_log(tmp_path / "ktap.log", PLAN)
    with pytest.raises(pytest.fail.Exception, match="wrote no KTAP"):
        host.judge_session(host.Session(0, "", tmp_path, tests, errors))


@pytest.mark.parametrize("good,bad", [
    ("  ok 2 second # SKIP no PMU", "  not ok 2 second"),
    ("  ok 2 second # SKIP no PMU\n", ""),
    ("ok 1 kselftest", "not ok 1 kselftest"),
])
def test_failure_inside_fails(tmp_path: pathlib.Path, good: str, bad: str
                              ) -> None:
    """A subtest that fails or is missing fails its test, whatever the
    program's exit status said."""
    session = parsed(tmp_path, KTAP.replace(good, bad))
    with pytest.raises(pytest.fail.Exception):
        host.judge_entry(session, PLAN[0])


def test_no_result_is_an_error(tmp_path: pathlib.Path) -> None:
    """A test without a result did not fail, nor did one that was never built:
    on the base, where failures are wanted, neither may count as one."""
    with pytest.raises(RuntimeError, match="no result"):
        host.judge_entry(parsed(tmp_path, "KTAP version 1\n1..2\n"), PLAN[0])
    with pytest.raises(FileNotFoundError, match="a/one"):
        host.check_programs(PLAN, tmp_path / "perf")


@pytest.mark.parametrize("subject,outcome", [("base", pytest.skip.Exception),
                                             ("series", pytest.fail.Exception)])
def test_skip_has_a_reason(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch,
                           subject: str, outcome: Type[BaseException]) -> None:
    """A test that is skipped whole says the reason that the guest gave, and is a
    failure where all there is to test is there."""
    monkeypatch.setattr(host, "SUBJECT", subject)
    session = parsed(tmp_path, KTAP.replace(
        "ok 2 perf-shell:two.sh", "ok 2 perf-shell:two.sh # SKIP no PMU"))
    with pytest.raises(outcome, match="no PMU"):
        host.judge_entry(session, PLAN[1])


@pytest.mark.parametrize("text", [
    "", "# nothing\n", "kselftest\n", "kernel a/b\n", "kselftest a/b never\n",
    "kselftest a/b both both\n", "kselftest a/b\nkselftest a/b\n"])
def test_bad_plan(tmp_path: pathlib.Path, text: str) -> None:
    """A plan that says nothing, or what nobody understands, is refused."""
    plan = tmp_path / "plan"
    plan.write_text(text)
    with pytest.raises(ValueError):
        read_plan(plan)


def test_plan_of_the_debug_kernel(tmp_path: pathlib.Path) -> None:
    """It leaves out what is of perf alone, and nothing else."""
    plan = tmp_path / "plan"
    plan.write_text("kselftest a/b both perf\nscript c perf\nkunit d both\nscript e\n")
    assert [entry.name for entry in read_plan(plan, debug=True)] == ["kunit:d", "script:e"]
    assert [entry.both for entry in read_plan(plan)] == [True, False, True, False]

# SPDX-License-Identifier: GPL-2.0
"""Whatever goes wrong in the guest ends in the right class of failure, within its
time limit, with nothing left running. What goes wrong before its kernel runs is in
test_guest_start.py."""

import os
import pathlib
import subprocess
from typing import Iterator, Type

import pytest

import guest_host as host
from guest_run import BOOT_SECONDS, run
from perfbpf import ktap
from perfbpf.outcome import Outcome, Run, judge
from perfbpf.plan import Entry, read_plan
from perfbpf.splats import find_splats

PASSED, FAILED, INFRA, SPLAT, DIED, TIMEOUT = (
    Outcome(status) for status in (0, 1, 3, 4, 5, 6))


@pytest.fixture(name="results")
def fixture_results(tmp_path: pathlib.Path) -> pathlib.Path:
    """A results directory of the test's own."""
    return tmp_path / "results"


# The command's own end

def test_command_passes(results: pathlib.Path) -> None:
    """Output, configuration and logs of a command that passes are kept. The guest
    cannot write to the repository, only to its results."""
    mark = host.TOP / "guest-was-here"
    ended = run(results, f"id -u; pwd; ls /dev/virtio-ports; touch {mark}; "
                         "touch $GUEST_RESULTS/mine")
    assert ended.status == PASSED, ended.errors
    assert ended.output.split()[:2] == ["0", str(host.TOP)]
    for name in ("console.log", "dmesg", "config", "output.log"):
        assert (results / name).stat().st_size > 0
    assert not mark.exists()
    assert (results / "mine").exists()


def test_command_fails(results: pathlib.Path) -> None:
    """A command's failure is a failure, and its status is reported."""
    ended = run(results, "exit 7")
    assert ended.status == FAILED
    assert "status 7" in ended.errors


# Splats

def test_splat(results: pathlib.Path) -> None:
    """A warning in the kernel's log outweighs a command that passed."""
    ended = run(results, "echo 'WARNING: CPU: 0 PID: 1 at kernel/x.c:1' "
                         "> /dev/kmsg")
    assert ended.status == SPLAT
    assert "kernel/x.c:1" in ended.errors
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
    assert "panicked" in ended.errors
    assert ended.seconds < BOOT_SECONDS


def test_early_exit(results: pathlib.Path) -> None:
    """A guest that powers off below the command has died."""
    ended = run(results, "echo o > /proc/sysrq-trigger; sleep 1000")
    assert ended.status == DIED
    assert "went away" in ended.errors


def test_never_ends(results: pathlib.Path) -> None:
    """A command that never ends is killed with the guest at the limit."""
    ended = run(results, "sleep 1000", timeout=40)
    assert ended.status == TIMEOUT
    assert 40 <= ended.seconds < 60


# Infrastructure

@pytest.fixture(name="small_disk")
def fixture_small_disk(tmp_path: pathlib.Path) -> Iterator[pathlib.Path]:
    """A file system of 16 MiB."""
    if os.geteuid() != 0:
        pytest.skip("mounting a small tmpfs takes root")
    disk = tmp_path / "disk"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16m", "tmpfs", str(disk)], check=True)
    yield disk
    subprocess.run(["umount", str(disk)], check=True)


def test_disk_fills_up(small_disk: pathlib.Path) -> None:
    """A disk that fills up below the guest is no result of the command's."""
    ended = run(small_disk / "results",
                "cat /dev/zero > $GUEST_RESULTS/fill; true")
    assert ended.status == INFRA
    assert "write" in ended.errors


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

# SPDX-License-Identifier: GPL-2.0
"""stack/guest with a fake QEMU and a fake virtme-ng; stack/session."""
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

import guest_host
import ktap
import machine
import test_plan
from perfbpf import git, session
from perfbpf.guest import Outcome, find_splats, judge
from perfbpf.paths import TOP
from perfbpf.plan import Entry, read_plan
from toy import Toy, gone

WARN = "WARNING: CPU: 0 PID: 1 at kernel/x.c:1\n"
SPLATS = ("[   T12] WARNING: CPU: 1 PID: 12 at kernel/x.c:1", "UBSAN: array-index-out-of-bounds",
          "BUG: KASAN: slab-out-of-bounds in f+0x1/0x2", "int3: 0000 [#1] Oops: 0000 [#1] SMP",
          "WARNING: possible circular locking dependency", "Oops: general protection fault, prob",
          "watchdog: BUG: soft lockup - CPU#0 stuck for 22s!", "kernel BUG at mm/slub.c:1!",
          "rcu: INFO: rcu_preempt detected stalls on CPUs", "kmemleak: Memory pool empty")
HEALTHY = ("rcu: RCU debug extended QS entry/exit.", "Spectre V2 : WARNING: Unprivileged eBPF",
           "kmemleak: Kernel memory leak detector initialized", "perf: interrupt took too long")
JUDGED: list[tuple[str, bool, dict[str, str]]] = [
    ("PASSED", True, {"status": "0\n", "kmemleak": ""}), ("FAILED", True, {"status": "7\n"}),
    ("SPLAT", True, {"status": "0\n", "dmesg": WARN}), ("DIED", True, {}), ("TIMEOUT", False, {}),
    ("SPLAT", True, {"status": "0\n", "kmemleak": "unreferenced object 0xff (size 64):\n"}),
    ("DIED", True, {"status": "0\n", "console.log": "[ 9.9] Kernel panic - not syncing: x\r\n"}),
    ("INFRA", False, {"console.log": "qemu: no such machine\n"}),
    ("INFRA", True, {"status": "0\n", "output.log": "guest-init: cannot write\n"})]
SCRIPTS = {"ktap": "echo noise; echo TAP version 13; echo 1..2; echo ok 1 a; echo not ok 2 b",
           "fail": "echo why; exit 3", "skip": "echo SKIP: no PMU; exit 4", "mute": "exit 4",
           "late": "setsid sleep 60 & (echo $BASHPID >pid; sleep 300; :) & wait"}
RESULTS = ("ok 1 kselftest:ktap", "not ok 2 kselftest:fail # exit status 3", "  # why",
           "not ok 4 kselftest:mute # skipped without a reason", "  # killed after 2 s",
           "ok 3 kselftest:skip # SKIP no PMU", "not ok 5 kselftest:late # exit status 124")


def test_judge(tmp_path: Path) -> None:
    """The files of a run tell how it ended; each kind of complaint is a splat, and no other."""
    for number, (outcome, ended, files) in enumerate(JUDGED):
        (results := tmp_path / f"{number}").mkdir()
        for name, text in {"console.log": "[    0.0] Linux version 7.3.4\r\n", **files}.items():
            (results / name).write_text(text)
        assert judge(ended, results)[0] == Outcome[outcome], files
    log = [f"[    1.5] {line}" for line in [*HEALTHY, *SPLATS]]
    assert find_splats("\n".join(log)) == log[len(HEALTHY):]


def guest(top: Path, outcome: str, *words: str, vng: str = "", qemu: str = "exit 33",
          number: int = 0) -> str:
    """Run stack/guest with fakes to such an end, or until the guest sleeps and a signal comes."""
    (image := top / "build/out-kernel/arch/x86/boot/bzImage").parent.mkdir(parents=True,
                                                                           exist_ok=True)
    image.touch()
    (toy := Toy(top)).fake("vng", f"cd {top}; R=results; echo x >>runs\n" + (
        vng or "echo Linux version >&2; bash $R/cmd; echo $? >$R/status"))
    command = [f"{TOP}/stack/guest", "--results", f"{top}/results", *words]
    env = {"PATH": toy.fake("qemu", qemu), "QEMU": f"{top}/../fakes/qemu",
           "PERF_BPF_BUILD": f"{top}/build"}
    if not number:
        return toy.run(*command, status=Outcome[outcome], **env)
    assert toy.stop_at("sleep", "555", number, *command, **env) == 128 + number
    return ""


def test_guest(tmp_path: Path) -> None:
    """What is broken is named. Limits and signals end all of a guest; an early end is repeated."""
    said = guest(tmp_path / "a", "INFRA", "--probe", qemu="echo no such library >&2; exit 1")
    assert "no such library" in said and "fakes/qemu starts no machine" in said
    said = guest(tmp_path / "a", "INFRA", "--kernel=debug", "--", "true")
    assert "run `make debug-kernel`" in said and not (tmp_path / "a/runs").exists()
    for _ in range(2):      # the second finds build/accel
        said = guest(tmp_path / "b", "PASSED", "--", "echo $PERF_BPF_BUILD",
                     qemu=f"echo $2 >>{tmp_path}/tried; [ $2 = tcg ] || exit 9; exit 33")
        assert f"\n{tmp_path}/b/build" in said and "TCG: KVM does not work (status 9: )" in said
    assert (tmp_path / "tried").read_text() == "kvm\ntcg\n"
    for number in (0, signal.SIGINT, signal.SIGTERM):
        guest(top := tmp_path / f"{number}/top", "TIMEOUT", "--timeout", "99" if number else "2",
              "--", "true", number=number,
              vng="echo Linux version >&2; (echo $BASHPID >pid; sleep 555; true) & "
              + ("wait" if number else "kill -9 $$"))
        assert gone(top / "pid")
    for first, outcome, runs in (
            ("echo qemu: failed assertion", "PASSED", 2), ("echo Linux version", "PASSED", 2),
            (f"echo '{WARN}'", "INFRA", 1), ("echo 1 >$R/status; echo Linux", "FAILED", 1)):
        guest(top := tmp_path / f"{len(first)}/top", outcome, "--again", "--", "true",
              vng=f"exec >&2; [ -e once ] || {{ touch once; {first}; exit; }}; echo Linux version;"
              " echo 0 >$R/status")
        assert (top / "runs").read_text() == "x\n" * runs
        assert (top / "results/first/console.log").exists() == (runs == 2)


def test_session(tmp_path: Path) -> None:
    """Each program has its result, in a log that is whole, and each line of a plan is an entry."""
    for name, script in SCRIPTS.items():
        (tmp_path / name).write_text(f"#!/bin/bash\n{script}\n")
        (tmp_path / name).chmod(0o755)
    plan, log = [Entry("kselftest", name) for name in (*SCRIPTS, "missing")], tmp_path / "log"
    with open(log, "w") as file:
        assert not session.run_plan(file, plan, session.Place(*[tmp_path] * 4), 2)
    text = log.read_text()
    assert not [line for line in RESULTS if f"\n{line}\n" not in text], text
    tests, errors = ktap.parse_log(log, plan)
    assert gone(tmp_path / "pid") and not errors and "missing or cannot be executed" in text
    assert [one.name for one in tests["kselftest:ktap"].subtests] == ["a", "b"]
    assert not [name for name, test in tests.items() if ktap.is_whole_success(test)]
    log.write_text(text.partition("not ok 6")[0])
    assert "without result: kselftest:missing" in ktap.parse_log(log, plan)[1][0]
    for text in ("kselftest\n", "kernel a/b\n", "script a never\n", "script a\nscript a\n"):
        log.write_text(text)
        with pytest.raises(git.ToolError, match="log:[12]: "):
            read_plan(log)


def test_machine_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where nothing ran on this machine's kernel, an earlier run's results do not count; a signal
    ends a test so that it can undo what it did."""
    monkeypatch.setattr(guest_host, "BUILD", tmp_path)
    monkeypatch.setattr(machine, "MOUNTED", ["false"])
    (log := tmp_path / "results/machine/ktap.log").parent.mkdir(parents=True)
    log.write_text("KTAP version 1\n1..1\nok 1 script:x\n")
    ended = test_plan.MachineRuns("", name="machine").run([Entry("script", "x")])
    assert ended.errors and not ended.tests
    for name, text in (("plan", "kselftest x\n"), ("x", f"#!/bin/bash\ntrap 'echo >{tmp_path}/"
                       f"undone; exit' TERM\necho >{tmp_path}/begun\nsleep 99 & wait\n")):
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    with subprocess.Popen([TOP / "stack/session", "--plan", tmp_path / "plan", "--selftests",
                           tmp_path], env={**os.environ, "GUEST_RESULTS": str(tmp_path)}) as run:
        while not (tmp_path / "begun").exists() and run.poll() is None:
            time.sleep(0.1)
        run.terminate()
    assert (tmp_path / "undone").exists()

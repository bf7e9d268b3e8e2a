# SPDX-License-Identifier: GPL-2.0
"""A test of a guest's plan that fails, or that the guest's end cuts short, runs once
more; a complaint of the kernel is never repeated."""
from __future__ import annotations

import shutil
from pathlib import Path
from typing import Callable

import pytest

import guest_host as host
from perfbpf.outcome import Outcome
from perfbpf.plan import read_plan

PASSES = "exit 0"
ONCE = '[ -e "$GUEST_RESULTS/$0.ran" ] && exit 0; mkdir -p "$GUEST_RESULTS/${0%/*}"' \
       '; touch "$GUEST_RESULTS/$0.ran"; '
FAILS_ONCE, FAILS = ONCE + "exit 1", "exit 1"
# the machine is switched off at once
GOES_ONCE = ONCE + "echo 1 > /proc/sys/kernel/sysrq; echo o > /proc/sysrq-trigger; sleep 100"
WARNS_ONCE = ONCE + "echo 'WARNING: CPU: 0 PID: 1 at kernel/x.c:1' > /dev/kmsg; exit 1"
Sessions = Callable[..., host.Session]


@pytest.fixture(name="session")
def fixture_session(tmp_path: Path) -> Sessions:
    """What runs a plan of scripts with these contents, one.sh, two.sh and so on."""
    def run(*contents: str) -> host.Session:
        plan = tmp_path / "plan"
        for name, content in zip(("one", "two", "three"), contents):
            script = tmp_path / f"{name}.sh"
            script.write_text(f"#!/bin/bash\n{content}\n")
            script.chmod(0o755)
            with open(plan, "a") as file:
                file.write(f"script {script}\n")
        runs = host.Runs("series", 60, 300, plan_file=plan, name="guest-repeat")
        shutil.rmtree(runs.results, ignore_errors=True)
        return host.run_session(runs)
    return run


def passed(session: host.Session, tmp_path: Path) -> list[str]:
    """Which scripts passed."""
    return [Path(entry.path).stem for entry in read_plan(tmp_path / "plan")
            if session.passed(entry)]


def flaky(session: host.Session) -> list[str]:
    """Which scripts are flaky."""
    return sorted(Path(name).stem for name in session.flaky)


def test_fails_once(session: Sessions, tmp_path: Path) -> None:
    """It passed, is flaky, and both logs are there."""
    ended = session(PASSES, FAILS_ONCE)
    assert ended.status == Outcome.PASSED and not ended.errors, ended
    assert passed(ended, tmp_path) == ["one", "two"] and flaky(ended) == ["two"]
    (logs,) = ended.flaky.values()
    first, again = (Path(word) / "ktap.log" for word in logs.split(" and "))
    assert "not ok 2 script:" in first.read_text() and "\nok 1 script:" in again.read_text()


def test_fails_twice(session: Sessions, tmp_path: Path) -> None:
    """It failed."""
    ended = session(FAILS, PASSES)
    assert passed(ended, tmp_path) == ["two"] and not ended.flaky, ended


def test_guest_goes_once(session: Sessions, tmp_path: Path) -> None:
    """What ran when the guest ended runs alone, what did not run follows; the guest is
    flaky."""
    ended = session(PASSES, GOES_ONCE, PASSES)
    assert ended.status == Outcome.PASSED and not ended.errors, ended
    assert passed(ended, tmp_path) == ["one", "two", "three"]
    assert flaky(ended) == [host.GUEST, "two"]


def test_splat_is_not_repeated(session: Sessions, tmp_path: Path) -> None:
    """A test that would pass the second time fails when the kernel complained."""
    ended = session(PASSES, WARNS_ONCE)
    assert ended.status == Outcome.SPLAT and not ended.flaky, ended
    assert passed(ended, tmp_path) == ["one"]

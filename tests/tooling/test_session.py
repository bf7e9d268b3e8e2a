# SPDX-License-Identifier: GPL-2.0
"""stack/session: programs of a plan run one after the other, or beside each other, and
each has its result in the plan's order."""
from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from perfbpf import ktap, paths
from perfbpf.plan import read_plan, slots

PROGRAM = """#!/bin/sh
echo TAP version 13
echo 1..1
{0}
echo ok 1 inner
"""


class Guest:
    """What stack/session finds in a guest: a plan, and programs to run."""

    def __init__(self, top: Path) -> None:
        self.top = top
        self.plan = top / "plan"
        (top / "selftests").mkdir()

    def program(self, name: str, body: str) -> None:
        """Add a program that runs `body`."""
        path = self.top / "selftests" / name
        path.write_text(PROGRAM.format(body), encoding="ascii")
        path.chmod(0o755)

    def run(self, plan: str, seconds: float = 20) -> str:
        """Run a plan; return the log, which has the plan's results in its order."""
        self.plan.write_text(plan, encoding="ascii")
        done = subprocess.run(
            [str(paths.TOP / "stack/session"), "plan", "--plan", str(self.plan), "--perf",
             "/bin/true", "--selftests", str(self.top / "selftests"), "--shell-tests",
             str(self.top), "--seconds", str(seconds)],
            env={**os.environ, "GUEST_RESULTS": str(self.top)}, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, text=True, check=False, timeout=120)
        plan_read = read_plan(self.plan)
        tests, _ = ktap.parse_log(self.top / "ktap.log", plan_read)
        assert list(tests) == [entry.name for entry in plan_read], done.stdout
        failed = [name for name, test in tests.items() if test.status.name != "SUCCESS"]
        assert done.returncode == int(bool(failed))
        return (self.top / "ktap.log").read_text(encoding="ascii")


@pytest.fixture(name="guest")
def fixture_guest(tmp_path: Path) -> Guest:
    """A guest with programs `one`, `two` and `three`. The first two wait for each other."""
    for name in ("one", "two"):
        os.mkfifo(tmp_path / name)
    guest = Guest(tmp_path)
    guest.program("one", f"echo >{tmp_path}/two; read x <{tmp_path}/one")
    guest.program("two", f"read x <{tmp_path}/two; echo >{tmp_path}/one")
    guest.program("three", "true")
    return guest


def results(log: str) -> list[str]:
    """The results of the plan's entries, in their order."""
    return re.findall(r"^((?:not )?ok \d+ \S+)", log, re.MULTILINE)


def test_beside(guest: Guest) -> None:
    """Entries beside each other run at the same time; the next one follows them."""
    log = guest.run("kselftest one\nkselftest two beside\nkselftest three\n")
    assert results(log) == ["ok 1 kselftest:one", "ok 2 kselftest:two", "ok 3 kselftest:three"]
    assert len(re.findall(r"# took \d+ s", log)) == 3
    assert len(re.findall(r"s of CPU time", log)) == 2


def test_after(guest: Guest) -> None:
    """Without that word the second one does not begin before the first one has ended."""
    log = guest.run("kselftest one\nkselftest two\nkselftest three\n", seconds=2)
    assert results(log) == ["not ok 1 kselftest:one", "not ok 2 kselftest:two",
                            "ok 3 kselftest:three"]


def test_one_of_two_fails(guest: Guest) -> None:
    """Each of two has its own result."""
    guest.program("two", f"read x <{guest.top}/two; echo >{guest.top}/one; exit 1")
    log = guest.run("kselftest one\nkselftest two beside\n")
    assert results(log) == ["ok 1 kselftest:one", "not ok 2 kselftest:two"]


def test_missing_beside(guest: Guest) -> None:
    """Where one of two is missing neither runs, and both fail: alone is another test."""
    log = guest.run("kselftest one\nkselftest missing beside\nkselftest three\n")
    assert results(log) == ["not ok 1 kselftest:one", "not ok 2 kselftest:missing",
                            "ok 3 kselftest:three"]
    assert f"{guest.top}/selftests/missing is missing" in log


@pytest.mark.parametrize("text", [
    "kselftest a beside\n", "kunit a\nkselftest b beside\n", "kselftest a\nkunit b beside\n",
    "kselftest a perf\nkselftest b beside\n", "kselftest a\nkselftest b debug beside\n"])
def test_bad_beside(tmp_path: Path, text: str) -> None:
    """An entry needs a program beside it that runs on the same kernels."""
    plan = tmp_path / "plan"
    plan.write_text(text, encoding="ascii")
    with pytest.raises(ValueError, match="beside the entry before it"):
        read_plan(plan)


def test_slots(tmp_path: Path) -> None:
    """Several entries may be beside one, on every kernel that runs it."""
    plan = tmp_path / "plan"
    plan.write_text("script a perf\nscript b\nscript c beside\nscript d beside\nscript e\n",
                    encoding="ascii")
    assert [[entry.path for entry in slot] for slot in slots(read_plan(plan, debug=True))] == [
        ["b", "c", "d"], ["e"]]

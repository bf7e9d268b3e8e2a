# SPDX-License-Identifier: GPL-2.0
"""perfbpf/durations.py: what took how long, and whether that is within the budget."""
from __future__ import annotations

import os
from pathlib import Path

import pytest

from perfbpf import durations
from perfbpf.durations import Budget, Duration
from perfbpf.paths import TOP

KTAP = """KTAP version 1
1..3
  # some words
ok 1 kunit:first
  TAP version 13
  # Subtest: kselftest:a/one
  1..1
  ok 1 inner
  # took 75 s, 60 s of CPU time
ok 2 kselftest:a/one
  # took 4 s
not ok 3 script:two.sh # exit status 1
# 2 of 3 did not fail
"""
BUDGET = [Budget("total", 100, 200), Budget("kernel", 10, 20)]


def test_guest_tests(tmp_path: Path) -> None:
    """Each test of a guest with what it took, whether it passed or not; those of a guest
    that ran before are not of this run."""
    log = tmp_path / "guest-debug/ktap.log"
    log.parent.mkdir()
    log.write_text(KTAP)
    assert list(durations.read_guests(tmp_path, 0)) == [
        Duration("guest", "guest-debug: kselftest:a/one", 75, 60),
        Duration("guest", "guest-debug: script:two.sh", 4)]
    os.utime(log, (1000, 1000))
    assert not list(durations.read_guests(tmp_path, 1001))


def test_file_is_read_again(tmp_path: Path) -> None:
    """The stages of a file that was completed are read as they were."""
    log = tmp_path / "durations.tsv"
    written = [Duration("stage", "perf-series", 190, 377), Duration("test", "test_a.test_b", 7, 3),
               Duration("guest", "guest-series: kunit:a", 9), Duration("total", "total", 3000)]
    log.write_text("".join(one.line() + "\n" for one in written))
    assert list(durations.read_stages(log)) == written[:1]


def test_slowest_are_shown() -> None:
    """All stages, and of the tests the slowest first."""
    stages = [Duration("stage", name, 1, 2) for name in ("lint", "perf-series")]
    tests = [Duration("test", f"test_a.test_{nr}", nr, nr) for nr in range(40)]
    lines = list(durations.describe(tests + stages))
    assert [line.split()[-1] for line in lines[1:3]] == ["lint", "perf-series"]
    assert "the 25 slowest of 40 tests" in lines[3]
    assert [line.split()[-1] for line in lines[4:]] == [
        f"test_a.test_{nr}" for nr in range(39, 14, -1)]


@pytest.mark.parametrize("total, cpu, factor, over, slow", [
    (100, 10, 1, [], []),
    (101, 11, 1, [], ["total", "kernel"]),
    (201, 10, 1, ["total"], []),
    (100, 21, 1, ["kernel"], []),
    (201, 21, 2, [], ["total", "kernel"]),
    (401, 41, 2, ["total", "kernel"], []),
    (9999, 9999, 0, [], ["total", "kernel"])])
def test_judge(total: float, cpu: float, factor: float, over: list[str], slow: list[str]) -> None:
    """The whole by its time, a stage by its CPU time; the factor raises limits, and 0
    removes them, but a goal that was missed is told all the same."""
    found = durations.judge(total, [Duration("stage", "kernel", 5000, cpu)], BUDGET, factor, 2)
    assert [[line.split()[0] for line in lines] for lines in found] == [over, slow]


def test_one_cpu() -> None:
    """The limit of the whole is for two CPUs: with one it does not count."""
    assert durations.judge(9999, [], BUDGET, 1, 1) == ([], [])


def test_budget_of_this_repository() -> None:
    """It can be read, has the whole in it, and each limit leaves room above the goal."""
    budget = durations.read_budget(TOP / "stack/budget")
    assert "total" in {item.name for item in budget}
    assert all(0 < item.goal < item.limit for item in budget)

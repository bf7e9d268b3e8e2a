# SPDX-License-Identifier: GPL-2.0
"""stack/check: runs the stages of all lanes, ends what takes too long, and says what
failed, what was left and what was flaky."""
from __future__ import annotations

from pathlib import Path

import pytest

from toy import Toy, copy_tooling

BUILDS = ("base", "tree", "lint", "perf", "selftests", "samples", "fuzz", "kernel",
          "bpf-selftests")
FOLDERS = ("kernel", "perf", "series")
PASSES, FAILS = "def test_it(): pass\n", "def test_it(): assert not 'true'\n"
FLAKY = "def test_it(record_property): record_property('flaky', 'a.log and b.log')\n"


@pytest.fixture(name="toy")
def fixture_toy(tmp_path: Path) -> Toy:
    """A repository in which all builds are quick, and a test in each folder passes."""
    toy = copy_tooling(tmp_path / "repo")
    for script in BUILDS:
        (toy.top / "stack" / script).write_text("#!/bin/sh\n")
    for folder in FOLDERS:
        (toy.top / "tests" / folder).mkdir()
        (toy.top / "tests" / folder / f"test_{folder}.py").write_text(PASSES)
    (toy.top / "tests/flaky").write_text("test_perf a cause that is known\n")
    return toy


def test_passes(toy: Toy) -> None:
    """Every stage runs, its end is told, and the status is 0."""
    done = toy.run("stack/check")
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines()[-1] == "3 passed, 0 failed, 0 skipped"
    for stage in ("tree", "lint", "kernel", "tests-kernel", "topics"):
        assert f"] {stage}: passed in " in done.stdout


@pytest.mark.parametrize("failing", FOLDERS)
def test_test_fails(failing: str, toy: Toy) -> None:
    """A test that fails in any folder fails `make check`, and the others run."""
    (toy.top / f"tests/{failing}/test_{failing}.py").write_text(FAILS)
    done = toy.run("stack/check")
    assert done.returncode == 1, done.stdout + done.stderr
    assert f"failure: {failing}.test_{failing}.test_it" in done.stdout
    assert done.stdout.splitlines()[-1] == "2 passed, 1 failed, 0 skipped"


def test_build_fails(toy: Toy) -> None:
    """What needs a build that failed does not run, all else does, and both are told."""
    (toy.top / "stack/kernel").write_text("#!/bin/sh\necho cc1 died\nexit 2\n")
    done = toy.run("stack/check")
    assert done.returncode == 1, done.stdout + done.stderr
    assert "kernel: failed (status 2)" in done.stdout and "    cc1 died" in done.stdout
    assert "tests-kernel (not run, as kernel did not pass)" in done.stdout
    assert done.stdout.splitlines()[-1] == "1 passed, 0 failed, 0 skipped"


def test_stage_that_never_ends(toy: Toy) -> None:
    """At the time limit of the whole it is ended and named, and so is what was left."""
    (toy.top / "stack/kernel").write_text("#!/bin/sh\necho still here\nsleep 1000\n")
    done = toy.run("stack/check", PERF_BPF_MINUTES="0.1")
    assert done.returncode == 1, done.stdout + done.stderr
    assert "kernel: ended at its limit of 0:06 for all" in done.stdout
    assert "    still here" in done.stdout
    assert "tests-kernel (left)" in done.stdout


def test_flaky_is_told(toy: Toy) -> None:
    """A test that passed when it was run once more is listed, with what is known of it."""
    (toy.top / "tests/kernel/test_kernel.py").write_text(FLAKY)
    (toy.top / "tests/perf/test_perf.py").write_text(FLAKY)
    done = toy.run("stack/check")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "FLAKY: kernel.test_kernel.test_it failed" in done.stdout
    assert "cause: a cause that is known" in done.stdout
    assert "not known: find the cause" in done.stdout and "a.log and b.log" in done.stdout


def test_only(toy: Toy) -> None:
    """With --only nothing is built, and only tests of that name run."""
    (toy.top / "stack/kernel").write_text("#!/bin/sh\nexit 2\n")
    done = toy.run("stack/check", "--only", "test_perf")
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines()[-1] == "1 passed, 0 failed, 0 skipped"

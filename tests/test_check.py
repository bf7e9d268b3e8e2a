# SPDX-License-Identifier: GPL-2.0
"""stack/check: passes when both of its runs of pytest do, and fails otherwise."""

from pathlib import Path

import pytest

from toy import copy_tooling

# What it runs before pytest; none of that is tested here.
BUILDS = ("base", "tree", "lint", "perf", "selftests", "samples", "kernel")
PASSES, FAILS = "def test_it(): pass\n", "def test_it(): assert not 'true'\n"


@pytest.mark.parametrize("beside, others, status", [
    (PASSES, PASSES, 0), (FAILS, PASSES, 1), (PASSES, FAILS, 1)],
    ids=("both-pass", "beside-fails", "others-fail"))
def test_status(beside: str, others: str, status: int, tmp_path: Path) -> None:
    """It ran both to their end, and its status is that of CI."""
    toy = copy_tooling(tmp_path / "repo")
    for script in BUILDS:
        (toy.top / "stack" / script).write_text("#!/bin/sh\n")
    (toy.top / "tests/test_debug_guest.py").write_text(beside)
    (toy.top / "tests/test_guest_failures.py").write_text(PASSES)
    (toy.top / "tests/test_others.py").write_text(others)
    done = toy.run("stack/check")
    assert done.returncode == status, done.stdout + done.stderr
    assert f"beside: {'2 passed' if beside is PASSES else '1 failure, 1 passed'}" in done.stdout
    assert f"all-others: 1 {'passed' if others is PASSES else 'failure'}" in done.stdout

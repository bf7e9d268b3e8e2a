# SPDX-License-Identifier: GPL-2.0
"""perfbpf/failures.py: the end of `make check` tells what failed."""

import os
import subprocess
import sys
from pathlib import Path

STACK = Path(__file__).resolve().parent.parent / "stack"


def told(*results: Path) -> str:
    """What the script prints about directories of results."""
    return subprocess.run([sys.executable, "-B", "-m", "perfbpf.failures", *map(str, results)],
                          check=True, env={**os.environ, "PYTHONPATH": str(STACK)},
                          stdout=subprocess.PIPE, text=True, timeout=60).stdout


def test_failed_test_is_told(tmp_path: Path) -> None:
    """The counts of a run, and the end of what each failed test said."""
    (tmp_path / "test_it.py").write_text(
        "import pytest\n"
        "def test_good(): pass\n"
        "def test_bad():\n"
        "    for line in range(40): print(line)\n"
        "    pytest.fail('\\n'.join(f'line {i}' for i in range(40)), pytrace=False)\n"
        "@pytest.fixture\n"
        "def broken(): raise OSError('no disk')\n"
        "def test_error(broken): pass\n")
    ended = subprocess.run([sys.executable, "-B", "-m", "pytest", "-p", "no:cacheprovider", "-q",
                            "--junitxml", "junit.xml", "test_it.py"], cwd=tmp_path, check=False,
                           stdout=subprocess.DEVNULL, timeout=60)
    assert ended.returncode == 1
    lines = told(tmp_path).splitlines()
    assert lines[0] == f"{tmp_path.name}: 1 error, 1 failure, 1 passed"
    assert any(line.startswith("  failure: test_it.test_bad (") for line in lines)
    assert "    line 39" in lines and "    line 10" not in lines
    assert any(line.startswith("  error: test_it.test_error (") for line in lines)
    assert any("no disk" in line for line in lines)


def test_run_without_results_is_told(tmp_path: Path) -> None:
    """A run that never wrote its results: the end of its log."""
    (tmp_path / "pytest.log").write_text("collecting\nKilled\n")
    lines = told(tmp_path).splitlines()
    assert "ended without results" in lines[0] and lines[-1] == "    Killed"

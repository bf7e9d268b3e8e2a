# SPDX-License-Identifier: GPL-2.0
"""perf's own unit tests, those of the series and those of what it touches.

They need no root and record nothing, so that they run on this machine. A suite
that perf does not have fails: `perf test` says nothing of it.
"""
from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from subject import BUILD, perf_binary, run_perf, subject_name


@dataclass(frozen=True)
class Suite:
    """A suite of perf test by its title; both: the base has it, and it passes there."""
    title: str
    both: bool = True

    def __str__(self) -> str:
        return self.title


SUITES = [
    Suite("Code of BPF functions", both=False),
    Suite("BPF prologues of probe points", both=False),
    Suite("Dynamic kernel text", both=False),
    Suite("Log of kernel text", both=False),
    Suite("Fields of perf_event_attr for BPF programs", both=False),
    Suite("DSO data tests"),
    Suite("Maps - per process mmaps abstraction"),
    Suite("Symbols"),
    Suite("split kallsyms"),
    Suite("util"),
    Suite("Match and link multiple hists"),
]


@pytest.mark.parametrize("suite", SUITES, ids=str)
def test_unit(suite: Suite, tmp_path: Path) -> None:
    """Every test of the suite is there and none has failed."""
    result = run_perf(tmp_path, ["test", "-v", suite.title], timeout=120)
    ended = re.findall(r": (Ok|FAILED!|Skip)\b", result.out + result.err)
    assert result.status == 0 and not result.timed_out, str(result)
    assert "Ok" in ended and "FAILED!" not in ended, str(result)


@pytest.mark.skipif(os.geteuid() != 0, reason="recording all CPUs needs root")
@pytest.mark.parametrize("name", ("test-record-dummy-C0", "test-record-C0",
                                  "test-record-basic"))
def test_attributes(name: str, tmp_path: Path) -> None:
    """perf test's own cases of what perf record asks for, whose script hides what fails."""
    tree = BUILD / ("base" if subject_name() == "base" else "linux")
    shell = tree / "tools/perf/tests/shell"
    done = subprocess.run([sys.executable, "-B", str(shell / "lib/attr.py"), "-d",
                           str(shell / "attr"), "-t", name, "-p", str(perf_binary())],
                          cwd=tmp_path, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0 and "FAILED" not in done.stdout + done.stderr, done

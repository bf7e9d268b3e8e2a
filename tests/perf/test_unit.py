# SPDX-License-Identifier: GPL-2.0
"""perf's own unit tests, those of the series and those of what it touches.

They need no root and record nothing, so that they run on this machine. A suite
that perf does not have fails: `perf test` says nothing of it.
"""
from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import pytest

from subject import run_perf


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

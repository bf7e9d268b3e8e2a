# SPDX-License-Identifier: GPL-2.0
"""Tests that take long and are left out when they have passed with all as it is now."""
from __future__ import annotations

import os

import pytest

from perfbpf import passed
from subject import subject_name

# `make topics` and `make stress`
AGAIN = bool(os.environ.get("PERF_BPF_AGAIN"))


class Once:
    """One of the names of perfbpf/passed.py, at the beginning of its test. A test that is asked
    for by name (TEST=) runs, on what happens to be built, so that its passing is not noted."""

    def __init__(self, name: str, request: pytest.FixtureRequest) -> None:
        self.name = name
        by_name = bool(request.config.option.keyword) or subject_name() == "base"
        self.number = "" if by_name else passed.begin(name)
        day = "" if by_name or AGAIN else passed.day(name)
        # why it is left out; "": it is not
        self.why_not = f"passed on {day} with all as it is now (tests/passed)" if day else ""

    def skip(self) -> None:
        """Skip the test if it is left out."""
        if self.why_not:
            pytest.skip(self.why_not)

    def passed(self) -> None:
        """Note that it has passed."""
        passed.write(self.name, self.number)

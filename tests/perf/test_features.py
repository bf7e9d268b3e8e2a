# SPDX-License-Identifier: GPL-2.0
"""perf was built with everything this series is about: a missing -dev package
is a failure and not a silently smaller perf."""

import subprocess
from pathlib import Path

import pytest

from perfbpf import paths


@pytest.mark.both
@pytest.mark.parametrize("feature", paths.PERF_FEATURES)
def test_feature(perf: Path, feature: str) -> None:
    """`perf check feature` has it."""
    done = subprocess.run([str(perf), "check", "feature", feature], capture_output=True,
                          text=True, check=False, timeout=60)
    assert done.returncode == 0 and "[ on" in done.stdout, done.stdout + done.stderr


@pytest.mark.both
def test_no_libbfd(perf: Path) -> None:
    """What is shown here needs no libbfd, so it must not be there to help."""
    done = subprocess.run([str(perf), "check", "feature", "libbfd"], capture_output=True,
                          text=True, check=False, timeout=60)
    assert "OFF" in done.stdout, done.stdout + done.stderr

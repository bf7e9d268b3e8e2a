# SPDX-License-Identifier: GPL-2.0
"""perf was built with everything this series is about: a missing -dev package
is a failure and not a silently smaller perf."""

import os
import subprocess
from pathlib import Path

import pytest

from perfbpf import paths
from toy import make_toy


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


# Makes a perf that has all features but one.
MAKE = """\
#!/bin/bash
for word; do
	case $word in O=*) out=${word#O=} ;; esac
done
printf '#!/bin/sh\\n[ "$4" != libLLVM ]\\n' >"$out/perf"
chmod +x "$out/perf"
"""


@pytest.mark.both
def test_smaller_perf_is_no_build(tmp_path: Path) -> None:
    """stack/perf fails, says which feature is missing and what to do, and is run again."""
    toy = make_toy(tmp_path)
    fakes = tmp_path / "fakes"
    fakes.mkdir()
    (fakes / "make").write_text(MAKE)
    (fakes / "make").chmod(0o755)
    for _ in range(2):
        done = toy.run("stack/perf", "series", PATH=f"{fakes}:{os.environ['PATH']}")
        assert done.returncode == 1, done.stdout
        assert "built without libLLVM: install the -dev packages" in done.stderr, done.stderr

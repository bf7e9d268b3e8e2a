# SPDX-License-Identifier: GPL-2.0
"""The corpus of the libFuzzer target (tests/fuzz): no crash, no leak, no undefined behaviour.

`make fuzz` runs the target on mutations of these files, for as long as asked; here it reads
each of them once. What it does with a file is in tests/fuzz/read_perf_data.c.
"""
from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from perfbpf.paths import TESTS, TOP
from subject import subject_name

TARGET = TESTS["fuzz"].path / "read_perf_data"
FILES = sorted((TOP / "tests/fuzz/corpus").iterdir())


@pytest.mark.skipif(subject_name() == "base", reason="the target is built of the series alone")
def test_corpus(tmp_path: Path) -> None:
    """Every file is read to its end; the head of a sanitizer's report otherwise."""
    env = {**os.environ, "LLVM_PROFILE_FILE": "/dev/null", "UBSAN_OPTIONS": "print_stacktrace=1"}
    done = subprocess.run([str(TARGET), "-close_fd_mask=3", "-timeout=20", "-malloc_limit_mb=1000",
                           f"-artifact_prefix={tmp_path}/", *map(str, FILES)], env=env,
                          capture_output=True, text=True, errors="replace", check=False,
                          timeout=300)
    report = re.search(r"[^\n]*(ERROR: |runtime error: ).*", done.stderr, re.DOTALL)
    last = re.findall(r"Running: (\S+)", done.stderr)[-1:]
    assert done.returncode == 0, f"{last}\n{(report[0] if report else done.stderr)[:3000]}"
    assert done.stderr.count("Executed ") == len(FILES) > 0, done.stderr[-1000:]

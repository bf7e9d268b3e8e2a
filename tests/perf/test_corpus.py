# SPDX-License-Identifier: GPL-2.0
"""The corpus of the libFuzzer target (tests/fuzz): perf reads each of its files to the end.

Here with the perf that is there; `make fuzz` reads them with sanitizers, and goes on to
mutations of them.
"""
from __future__ import annotations

from pathlib import Path

import pytest

from perfbpf.paths import TOP
from subject import run_perf, subject_name

FILES = sorted((TOP / "tests/fuzz/corpus").iterdir())
TIMEOUT = 60
COMMANDS = (("report", "--stdio"), ("script", "--header", "--kallsyms", "empty"),
            ("annotate", "--stdio"), ("report", "--header-only", "-I"))


@pytest.mark.skipif(subject_name() == "base", reason="what the base does with damaged files is not"
                    " a question of the series")
@pytest.mark.parametrize("file", FILES, ids=lambda path: path.name)
def test_corpus(tmp_path: Path, file: Path) -> None:
    """No signal, no hang."""
    (tmp_path / "empty").touch()
    for command in COMMANDS:
        result = run_perf(tmp_path, [*command, "-i", str(file)], timeout=TIMEOUT)
        assert not result.crashed and not result.timed_out, str(result)

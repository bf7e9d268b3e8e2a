# SPDX-License-Identifier: GPL-2.0
"""perf probe and perf trace are given what does not exist, or is no definition: an error, and no
crash."""
from __future__ import annotations

import os
import random
import shutil
import subprocess
from pathlib import Path

import pytest

from subject import Result, run_perf

PIECES = ("x", "main", "g:", "=", ":", "@", "+", "%", ";", "3", "0x10", "*", "true.c", "return",
          "%return", " ", "$params", "a=1", "-", "\\")
# each has neither function nor file, and crashed
INCOMPLETE = ("exec=", ":", "g:e=", "x=%return", "x=:3")


def define(work: Path, definition: str) -> Result:
    """Run perf probe --definition, for a program that is there."""
    return run_perf(work, ["probe", "-x", "/bin/true", "--definition", definition])


@pytest.mark.parametrize("definition", INCOMPLETE)
def test_incomplete(tmp_path: Path, definition: str) -> None:
    """A definition without function and file says so."""
    result = define(tmp_path, definition)
    assert result.status > 0 and "Semantic error" in result.err, str(result)


def test_any_definition(tmp_path: Path) -> None:
    """Whatever is written there."""
    seed = random.randrange(1 << 32)
    print("seed", seed)
    rand = random.Random(seed)
    for _ in range(150):
        definition = "".join(rand.choices(PIECES, k=rand.randrange(7)))
        result = define(tmp_path, definition)
        assert not result.crashed, str(result)


@pytest.mark.skipif(os.geteuid() != 0, reason="perf trace needs tracefs")
@pytest.mark.both
def test_trace_of_no_task(tmp_path: Path) -> None:
    """perf trace -p of a process that is not there."""
    result = run_perf(tmp_path, ["trace", "-p", "4194305"])
    assert result.status > 0 and "Problems parsing the target" in result.err, str(result)


def test_no_vmlinux(tmp_path: Path) -> None:
    """Without the kernel's debug information it is said which file is missing, though a file of
    that name is something else."""
    (tmp_path / "vmlinux").write_text("not the kernel\n")
    result = run_perf(tmp_path, ["probe", "-L", "vfs_read"])
    if result.status == 0:
        pytest.skip("the running kernel's debug information is installed")
    assert "No vmlinux of the running kernel is found" in result.err, str(result)


@pytest.mark.skipif(not shutil.which("gcc"), reason="no compiler")
def test_short_names(tmp_path: Path) -> None:
    """Functions of C whose names are those of types of C++ to a demangler."""
    functions = "".join(f"void {name}(void) {{ __asm__ volatile (\"\"); }}\n" for name in "fgdx")
    (tmp_path / "short.c").write_text(f"{functions}int main(void) {{ return 0; }}\n")
    subprocess.run(["gcc", "-g", "-o", "short", "short.c"], cwd=tmp_path, check=True)
    result = run_perf(tmp_path, ["probe", "-x", "./short", "-F"])
    assert {"d", "f", "g", "x", "main"} <= set(result.out.split()), str(result)
    assert not {"float", "double"} & set(result.out.split()), str(result)

# SPDX-License-Identifier: GPL-2.0
"""scripts/btf_func on what Debian ships: its cloud kernel of the same version or a newer
one, with the debug information of vmlinux and of a thousand modules. That has what the
guest's kernel does not: functions in Rust, padding with names of its own, symbols
with a prefix, and another compiler and pahole than this machine's."""
from __future__ import annotations

import os
import re
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Iterator

import pytest

from perfbpf.paths import KERNELS, TOP

TOOL = KERNELS["series"].path / "scripts/btf_func/btf_func"
SUITE = "trixie-backports"
META = "linux-image-cloud-amd64-dbg"
SECTION = ".BTF.func"


def fetch(package: str, into: Path) -> Path:
    """Download a package of the suite."""
    subprocess.run([TOP / "stack/debfetch", SUITE, package, into], check=True)
    return next(into.glob(f"{package}_*.deb"))


@pytest.fixture(scope="module", name="modules_dir")
def fixture_modules_dir(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """lib/modules/VERSION of the package with the debug information: 2 GB, which go again."""
    into = tmp_path_factory.mktemp("debian")
    depends = subprocess.run(["dpkg-deb", "-f", fetch(META, into), "Depends"], text=True,
                             check=True, stdout=subprocess.PIPE).stdout
    package = fetch(re.findall(r"linux-image-\S+-dbg", depends)[0], into)
    print(package.name)
    subprocess.run(["dpkg-deb", "-x", package, into], check=True)
    package.unlink()
    yield from into.glob("usr/lib/debug/lib/modules/*")
    shutil.rmtree(into)


def run(*args: str | Path) -> str:
    """Run btf_func; its output with its messages."""
    assert TOOL.exists(), f"{TOOL} is not there: run `make kernel`"
    done = subprocess.run([TOOL, *args], text=True, check=False, timeout=300,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert done.returncode == 0 or "mismatches" in done.stdout, done.stdout[-2000:]
    return done.stdout


def counts(text: str) -> tuple[int, int, int]:
    """Symbols, mismatches and clones that are not described."""
    match = re.search(r"(\d+) symbols, (\d+) mismatches.*clones among these: (\d+)", text)
    assert match, text
    return int(match[1]), int(match[2]), int(match[3])


def judge(path: Path, scratch: Path, base: Path | None) -> tuple[int, int, int, int]:
    """Write the section of a copy, and verify it: symbols, mismatches with the index,
    mismatches without, size of the section in bytes."""
    copy = scratch / path.name
    shutil.copy(path, copy)
    options = ["--btf_base", str(base)] if base else []
    run(*options, copy)
    _, without, _ = counts(run("--verify", "--without-index", *options, copy))
    data = Path(f"{copy}{SECTION}")
    size = data.stat().st_size
    subprocess.run(["objcopy", "--add-section", f"{SECTION}={data}", copy], check=True,
                   stderr=subprocess.DEVNULL)
    data.unlink()
    symbols, wrong, clones = counts(run("--verify", *options, copy))
    copy.unlink()
    assert clones == 0, path
    return symbols, wrong, without, size


def test_vmlinux(modules_dir: Path, tmp_path: Path) -> None:
    """Each function of vmlinux is found with its own arguments; by name, thousands are not."""
    symbols, wrong, without, size = judge(modules_dir / "vmlinux", tmp_path, None)
    print(f"{symbols} symbols, {wrong} wrong, without the index {without}, {size} bytes")
    assert wrong == 0
    assert symbols > 50_000 and without > 1000


def test_modules(modules_dir: Path, tmp_path: Path) -> None:
    """So is each function of each module."""
    base = modules_dir / "vmlinux"
    paths = sorted(modules_dir.rglob("*.ko"))
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        results = list(pool.map(lambda path: judge(path, tmp_path, base), paths))
    symbols, wrong, without, size = (sum(column) for column in zip(*results))
    print(f"{len(paths)} modules: {symbols} symbols, {wrong} wrong, without the index "
          f"{without}, {size} bytes")
    assert wrong == 0
    assert len(paths) > 500 and without > 1000

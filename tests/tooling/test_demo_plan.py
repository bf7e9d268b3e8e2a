# SPDX-License-Identifier: GPL-2.0
"""`make demo` begins with what it will install and build, and how long that takes."""
from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from toy import TOP, Toy, copy_tooling

STEPS = {"base": "the kernel's source", "linux": "the series as commits",
         "out-perf/.perf-bpf-stamp": "perf", "out-kernel/.perf-bpf-stamp": "the kernel"}


@pytest.fixture(name="toy")
def fixture_toy(tmp_path: Path) -> Toy:
    """The tooling, with nothing built."""
    toy = copy_tooling(tmp_path / "repo")
    shutil.copy(TOP / "stack/demo", toy.top / "stack/demo")
    return toy


def packages(tmp_path: Path, *lines: str) -> str:
    """A list of packages, as stack/setup reads it."""
    path = tmp_path / "packages"
    path.write_text("".join(f"{line} testing\n" for line in lines), encoding="ascii")
    return str(path)


def minutes(text: str) -> int:
    """The time that a plan names; its parts add up to it."""
    total = re.search(r"takes about (\d+) min", text)
    assert total, text
    assert sum(map(int, re.findall(r"\((\d+) min\)", text))) == int(total[1])
    return int(total[1])


def test_from_nothing(toy: Toy, tmp_path: Path) -> None:
    """Nothing is there: each step is named, and each package that is missing."""
    needs = packages(tmp_path, "coreutils cmd:ls", "no-such-pkg cmd:no-such-cmd")
    text = toy.must("stack/demo", "--plan", PERF_BPF_PACKAGES=needs)
    assert "installs 1 packages: no-such-pkg" in text and "coreutils" not in text
    for name in ("packages", *STEPS.values(), "recording and reports"):
        assert f"{name} (" in text
    assert minutes(text) >= 6
    assert not (toy.top / "build/logs").exists(), "a plan builds nothing"


@pytest.mark.parametrize("path", STEPS)
def test_what_is_there_is_left_out(toy: Toy, tmp_path: Path, path: str) -> None:
    """What is built is not counted again."""
    needs = packages(tmp_path, "coreutils cmd:ls")
    before = minutes(toy.must("stack/demo", "--plan", PERF_BPF_PACKAGES=needs))
    (toy.top / "build" / path).parent.mkdir(parents=True, exist_ok=True)
    (toy.top / "build" / path).touch()
    text = toy.must("stack/demo", "--plan", PERF_BPF_PACKAGES=needs)
    assert f"{STEPS[path]} (" not in text and "installs" not in text
    assert minutes(text) < before


def test_all_built(toy: Toy, tmp_path: Path) -> None:
    """With all built, a minute is left."""
    for path in STEPS:
        (toy.top / "build" / path).parent.mkdir(parents=True, exist_ok=True)
        (toy.top / "build" / path).touch()
    text = toy.must("stack/demo", "--plan",
                    PERF_BPF_PACKAGES=packages(tmp_path, "coreutils cmd:ls"))
    assert minutes(text) == 1 and "all is built" in text


def test_comes_first(toy: Toy) -> None:
    """`make demo` prints the plan before it installs, and probes before it builds;
    `make check` probes before it builds, too."""
    for target, commands in {
            "demo": ["stack/demo --plan", "stack/setup", "stack/guest --probe", "stack/demo"],
            "check": ["stack/setup", "stack/guest --probe", "stack/check"]}.items():
        lines = toy.must("make", "-n", target).splitlines()
        assert [line for line in lines if line.startswith("stack/")] == commands

# SPDX-License-Identifier: GPL-2.0
"""Every prefix of the series builds: after each patch, what it touches.

Of the kernel the objects; after a patch to a header the objects of every source
of the series, as far as it has come. Of perf and libbpf all that depends on the
change. Of the selftests the directory. The tree is a clone of its own, without
the sources the guest's config never compiles. What was built once is remembered by the tree's
id, so that only prefixes that changed are built again.
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Dict, List, NamedTuple, Set

import pytest

TOP = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(TOP / "stack"))
import series  # noqa: E402  pylint: disable=wrong-import-position

BUILD = series.build_dir(TOP)
PREFIX = BUILD / "prefix"
TREE = PREFIX / "linux"
# Named as in build/, for the relative paths that ccache sees to be the same.
OUT = PREFIX / "out-kernel"
OUT_PERF = PREFIX / "out-perf"
CONFIG = BUILD / "out-kernel" / ".config"
PERF = "tools/perf/"
# Never compiled for the guest; Kconfig files and makefiles of these stay.
SPARSE = """/*
!/Documentation/**/*.rst
!/Documentation/**/*.yaml
!/arch/*/boot/dts/
!/drivers/**/*.[ch]
!/sound/**/*.[ch]
"""


class Step(NamedTuple):
    """A patch and the kernel paths it touches."""
    patch: Path
    paths: List[str]


def steps() -> List[Step]:
    """The series, in order."""
    return [Step(TOP / "patches" / name, series.touched(TOP / "patches" / name))
            for name in series.patch_names(TOP) if (TOP / "patches" / name).exists()]


STEPS = steps()
TOUCHED: Set[str] = {path for step in STEPS for path in step.paths}


def make(*args: str, timeout: float = 1200) -> None:
    """Run make, with ccache; fail the test with the end of its output."""
    script = f'source "{TOP}/stack/lib.sh"; with_ccache; exec make "$@"'
    done = subprocess.run(["bash", "-c", script, "make", f"-j{os.cpu_count()}", *args],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          stdin=subprocess.DEVNULL, check=False, timeout=timeout)
    if done.returncode:
        pytest.fail(f"make {' '.join(args)}:\n{done.stdout[-4000:]}", pytrace=False)


def make_tree() -> None:
    """PREFIX/linux, with the base's files as far as they are needed."""
    if TREE.exists() and not (PREFIX / "ready").exists():
        shutil.rmtree(TREE)
    if not TREE.exists():
        PREFIX.mkdir(parents=True, exist_ok=True)
        series.git(PREFIX, "clone", "-q", "--shared", "--no-checkout", str(BUILD / "base"),
                   str(TREE))
        series.git(TREE, "config", "core.sparseCheckout", "true")
    info = TREE / ".git" / "info"
    info.mkdir(exist_ok=True)
    (info / "sparse-checkout").write_text(SPARSE + "".join(f"/{path}\n" for path in sorted(TOUCHED)))
    if (TREE / ".git" / "rebase-apply").exists():
        series.git(TREE, "am", "--abort")
    series.git(TREE, "checkout", "-q", "-f", "--detach", "base")
    series.git(TREE, "sparse-checkout", "reapply")
    (PREFIX / "ready").touch()


@pytest.fixture(scope="module", name="commits")
def fixture_commits() -> Dict[str, str]:
    """Patch name -> the commit it gives."""
    make_tree()
    commits = {}
    for step in STEPS:
        series.git(TREE, "am", "-q", "--keep-non-patch", "--committer-date-is-author-date",
                   str(step.patch))
        commits[step.patch.name] = series.git(TREE, "rev-parse", "HEAD").decode().strip()
    return commits


def sources(step: Step) -> List[str]:
    """The .c files to build after a patch, of those that exist by then."""
    headers = any(path.endswith(".h") for path in step.paths)
    chosen = TOUCHED if headers else step.paths
    return sorted(path for path in chosen if path.endswith(".c") and (TREE / path).exists())


def config_has(path: str) -> bool:
    """Is a kernel source one that an x86 kernel could be made of?"""
    match = re.match(r"arch/([^/]+)/", path)
    return not path.startswith(("tools/", "samples/")) and (not match or match[1] == "x86")


def build_kernel(paths: List[str]) -> None:
    """Build the objects of kernel sources, with the guest's config."""
    objects = [path[:-2] + ".o" for path in paths if config_has(path)]
    if not objects:
        return
    OUT.mkdir(exist_ok=True)
    if not (OUT / ".config").exists() or (OUT / ".config").read_text() != CONFIG.read_text():
        shutil.copy(CONFIG, OUT / ".config")
    make("-C", str(TREE), f"O={OUT}", "olddefconfig")
    make("-C", str(TREE), f"O={OUT}", *objects)


def build_perf(step: Step) -> None:
    """Bring perf and the tree's libbpf up to date: perf's makefile has no
    target for single objects that also makes the headers these include."""
    if not any(path.startswith((PERF, "tools/lib/", "tools/include/")) for path in step.paths):
        return
    OUT_PERF.mkdir(exist_ok=True)
    make("-C", str(TREE / PERF), f"O={OUT_PERF}", "NO_RUST=1", "PYTHON=/usr/bin/python3",
         f"{OUT_PERF}/perf")


def build_selftests(step: Step) -> None:
    """Build the selftests' directories a patch touches, against its headers."""
    names = {path.split("/")[3] for path in step.paths
             if path.startswith(series.SELFTESTS) and path.count("/") > 3}
    names = {name for name in names if (TREE / series.SELFTESTS / name / "Makefile").exists()}
    if not names:
        return
    headers = PREFIX / "out-headers"
    headers.mkdir(exist_ok=True)
    make("-C", str(TREE), f"O={headers}", "headers")
    for name in sorted(names):
        output = PREFIX / "out-selftests" / name
        shutil.rmtree(output, ignore_errors=True)
        output.mkdir(parents=True)
        make("-C", str(TREE / series.SELFTESTS / name), f"OUTPUT={output}",
             f"KHDR_INCLUDES=-isystem {headers}/usr/include", "all")


@pytest.mark.parametrize("step", STEPS, ids=lambda step: step.patch.name)
def test_prefix_builds(step: Step, commits: Dict[str, str]) -> None:
    """With the series up to this patch, what the patch touches compiles."""
    commit = commits[step.patch.name]
    tree = series.git(TREE, "rev-parse", commit + "^{tree}").decode().strip()
    built = PREFIX / "built" / tree
    if built.exists():
        print(f"built before, as the tree {tree}")
        return
    series.git(TREE, "checkout", "-q", "-f", "--detach", commit)
    build_kernel(sources(step))
    build_perf(step)
    build_selftests(step)
    built.parent.mkdir(exist_ok=True)
    built.touch()

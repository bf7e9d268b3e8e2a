# SPDX-License-Identifier: GPL-2.0
"""Compile a part of the series: topics on each other, up to some patch.

What the patches touch is compiled: of the kernel and of perf the objects of the
sources, and the libraries that perf links; bpftool; of the selftests the directory.
With PERF_BPF_PREFIX=dependents also what depends on the change: of the kernel, after
a patch to a header, the objects of every source that the patches so far have touched,
and all of perf, linked. What was built is remembered by the tree's id and what says how, so
that only what changed is built again; `make topics` builds all.

The tree is a clone of its own, without the sources that the guest's config never
compiles.
"""
from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sysconfig
from pathlib import Path
from typing import Iterable, NamedTuple

import pytest

from perfbpf import series as series_file
from perfbpf.git import git, touched
from once import AGAIN
from perfbpf.passed import CONFIGS
from perfbpf.paths import BUILD, KERNELS, PERFS, TOP
from perfbpf.refresh import SELFTESTS
from perfbpf.stage import with_ccache
from perfbpf.stacks import Stacks

PREFIX = BUILD / "prefix"
TREE = PREFIX / "linux"
# Named as in build/, for the relative paths that ccache sees to be the same.
OUT = PREFIX / KERNELS["series"].path.name
OUT_PERF = PREFIX / PERFS["series"].path.name
CONFIG = KERNELS["series"].path / ".config"
PERF = "tools/perf/"
BPFTOOL = "tools/bpf/bpftool/"
# Compiled by perf with BUILD_NONDISTRO=1 only, and with binutils' headers.
NOT_IN_PERF = {PERF + "util/libbfd.c"}
DEPENDENTS = os.environ.get("PERF_BPF_PREFIX") == "dependents"
BUILT = PREFIX / ("built-dependents" if DEPENDENTS else "built")
HOW = hashlib.sha256(b"".join(path.read_bytes() for path in (
    Path(__file__), *(TOP / name for name in CONFIGS)))).hexdigest()[:12]
# Only the debug kernel's config has these: compiled there, with the whole series.
DEBUG_ONLY = ("security/selinux/",)
# Compiled with the BTF of a kernel that is linked: by `make bpf-selftests`, with the
# whole series.
NEED_BTF = {"bpf"}
# Never compiled for the guest; Kconfig files and makefiles of these stay.
SPARSE = """/*
!/Documentation/**/*.rst
!/Documentation/**/*.yaml
!/arch/*/boot/dts/
!/drivers/**/*.[ch]
!/sound/**/*.[ch]
"""


class Step(NamedTuple):
    """A tree to build: topics on the base, up to a patch of the last one.

    number: the patch's place among all those of the topics.
    paths: what is built, of what the patches so far have touched (so_far).
    """
    name: str
    topics: tuple[str, ...]
    number: int
    paths: frozenset[str]
    so_far: frozenset[str]


SERIES = series_file.read()
PATHS = {path: touched(path) for path in SERIES.paths()}
TOUCHED = {path for paths in PATHS.values() for path in paths}


def patches_of(topics: Iterable[str]) -> list[str]:
    """The patches of some topics, in order."""
    return [patch for topic in topics for patch in SERIES.topic(topic).patches]


def steps_of(topics: tuple[str, ...]) -> list[Step]:
    """The trees that the last of these topics makes of the others, patch by patch."""
    steps = []
    so_far: set[str] = set()
    patches = patches_of(topics)
    first = len(patches) - len(SERIES.topic(topics[-1]).patches)
    for number, patch in enumerate(patches):
        paths = PATHS[series_file.PATCHES / patch]
        so_far.update(paths)
        if number >= first:
            steps.append(Step(patch, topics, number, frozenset(paths), frozenset(so_far)))
    return steps


def last_step(topics: tuple[str, ...]) -> Step:
    """The tree of some topics, with all that the last one touches to be built."""
    steps = steps_of(topics)
    return steps[-1]._replace(name=topics[-1], paths=frozenset().union(*(s.paths for s in steps)))


def make(*args: str, timeout: float = 2400) -> None:
    """Run make, with ccache; fail the test with the end of its output.

    It takes what others leave of the machine: the guest, which may run beside this,
    emulates two CPUs, and its tests have limits of time.
    """
    done = subprocess.run(["nice", "-n", "19", "make", f"-j{os.cpu_count()}", *args],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          stdin=subprocess.DEVNULL, check=False, timeout=timeout,
                          env=with_ccache())
    if done.returncode:
        # the jobs that ran beside the one that failed may have printed a lot after it
        errors = "".join(f"{line[:300]}\n" for line in done.stdout.splitlines()
                         if re.search(r"\*\*\* |\berror: ", line))
        pytest.fail(f"make {' '.join(args)}:\n{errors[:4000]}...\n{done.stdout[-4000:]}",
                    pytrace=False)


def make_tree() -> None:
    """PREFIX/linux, with the base's files as far as they are needed."""
    if TREE.exists() and not (PREFIX / "ready").exists():
        shutil.rmtree(TREE)
    if not TREE.exists():
        PREFIX.mkdir(parents=True, exist_ok=True)
        git(PREFIX, "clone", "-q", "--shared", "--no-checkout", str(BUILD / "base"), str(TREE))
        git(TREE, "config", "core.sparseCheckout", "true")
    info = TREE / ".git" / "info"
    info.mkdir(exist_ok=True)
    (info / "sparse-checkout").write_text(
        SPARSE + "".join(f"/{path}\n" for path in sorted(TOUCHED)))
    if (TREE / ".git" / "rebase-apply").exists():
        git(TREE, "am", "--abort")
    git(TREE, "checkout", "-q", "-f", "--detach", "base")
    git(TREE, "sparse-checkout", "reapply")
    (PREFIX / "ready").touch()


def make_stacks() -> Stacks:
    """The commits of topics on each other."""
    make_tree()
    return Stacks(TREE, SERIES)


def exist(paths: Iterable[str]) -> list[str]:
    """The .c files among these that the tree has now, in order."""
    return sorted(path for path in paths if path.endswith(".c") and (TREE / path).exists())


def sources(step: Step) -> list[str]:
    """The .c files to build after a patch, of those that exist by then: what it
    touches; after a patch to headers alone what the series has touched."""
    headers = any(path.endswith(".h") for path in step.paths)
    chosen = exist(step.paths)
    return exist(step.so_far) if headers and (DEPENDENTS or not chosen) else chosen


def config_has(path: str) -> bool:
    """Is a kernel source one that the guest's kernel could be made of?"""
    match = re.match(r"arch/([^/]+)/", path)
    return (not path.startswith(("tools/", "samples/", "scripts/", *DEBUG_ONLY))
            and (not match or match[1] == "x86"))


def configure() -> None:
    """The guest's config, for the Kconfig files as they are now. Most patches leave
    those alone, and it takes a fifth of the time of a prefix."""
    made_of = [CONFIG, *(TREE / path for path in sorted(TOUCHED)
                         if path.rpartition("/")[2].startswith("Kconfig"))]
    text = "".join(path.read_text() for path in made_of if path.exists())
    configured = OUT / "configured"
    if configured.exists() and configured.read_text() == text:
        return
    shutil.copy(CONFIG, OUT / ".config")
    make("-C", str(TREE), f"O={OUT}", "olddefconfig")
    configured.write_text(text)


def build_kernel(paths: list[str]) -> None:
    """Build the objects of kernel sources, with the guest's config; without
    debug information, a quarter of the compiler's time."""
    objects = [path[:-2] + ".o" for path in paths if config_has(path)]
    if any(path.startswith("scripts/") for path in paths):
        objects.append("scripts")       # programs of the build machine
    if not objects:
        return
    OUT.mkdir(exist_ok=True)
    configure()
    make("-C", str(TREE), f"O={OUT}", "KCFLAGS=-g0", *objects)


def perf_goal(path: str) -> str:
    """What perf's makefile makes of a source; its Python module is made by setup.py."""
    if path == PERF + "util/python.c":
        return f"{OUT_PERF}/python/perf{sysconfig.get_config_var('EXT_SUFFIX')}"
    return f"{OUT_PERF}/{path[len(PERF):-2]}.o"


def build_perf(step: Step) -> None:
    """Build perf's objects, or all of perf, and the tree's libraries.

    Makefile.perf, as the Makefile above it runs itself once for each object;
    what an object includes of libsymbol is made for the archive alone."""
    if not any(path.startswith((PERF, "tools/lib/", "tools/include/")) for path in step.paths):
        return
    OUT_PERF.mkdir(exist_ok=True)
    goals = [f"{OUT_PERF}/perf"] if DEPENDENTS else [
        f"{OUT_PERF}/libsymbol/libsymbol.a", "prepare",
        *(perf_goal(path) for path in sources(step)
          if path.startswith(PERF) and path not in NOT_IN_PERF
          and not path.endswith(".bpf.c"))]     # for clang, and made with what loads it
    make("-C", str(TREE / PERF), "-f", "Makefile.perf", f"O={OUT_PERF}", "NO_RUST=1",
         "PYTHON=/usr/bin/python3", *goals)


def build_bpftool(step: Step) -> None:
    """Build bpftool, if the patch touches it."""
    if any(path.startswith(BPFTOOL) and path.endswith((".c", ".h")) for path in step.paths):
        # its makefile does not find the headers that another libbpf has put there
        shutil.rmtree(PREFIX / "out-bpftool", ignore_errors=True)
        (PREFIX / "out-bpftool").mkdir()
        make("-C", str(TREE / BPFTOOL), f"OUTPUT={PREFIX}/out-bpftool/", "V=1")


def build_selftests(step: Step) -> None:
    """Build the selftests' directories a patch touches, against its headers."""
    names = {path.split("/")[3] for path in step.paths
             if path.startswith(SELFTESTS) and path.count("/") > 3}
    names = {name for name in names - NEED_BTF
             if (TREE / SELFTESTS / name / "Makefile").exists()}
    if not names:
        return
    headers = PREFIX / "out-headers"
    headers.mkdir(exist_ok=True)
    make("-C", str(TREE), f"O={headers}", "headers")
    for name in sorted(names):
        output = PREFIX / "out-selftests" / name
        shutil.rmtree(output, ignore_errors=True)
        output.mkdir(parents=True)
        make("-C", str(TREE / SELFTESTS / name), f"OUTPUT={output}",
             f"KHDR_INCLUDES=-isystem {headers}/usr/include", "all")


def build(step: Step, stacks: Stacks) -> None:
    """Build what a step asks for, unless its tree was built before."""
    commit = stacks.commits(step.topics)[step.number]
    tree = f"{git(TREE, 'rev-parse', commit + '^{tree}').decode().strip()}-{HOW}"
    if not AGAIN and any((built / tree).exists()
                         for built in (BUILT, PREFIX / "built-dependents")):
        print(f"built before, as the tree {tree}")
        return
    git(TREE, "checkout", "-q", "-f", "--detach", commit)
    build_kernel(sources(step))
    build_perf(step)
    build_bpftool(step)
    build_selftests(step)
    BUILT.mkdir(exist_ok=True)
    (BUILT / tree).touch()

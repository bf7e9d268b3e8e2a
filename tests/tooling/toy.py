# SPDX-License-Identifier: GPL-2.0
"""A toy of this repository: its own tooling, a kernel of a few files, a series
of three patches in two topics. It tests the tooling in seconds, without 90000
files."""
from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import NamedTuple

from perfbpf.git import git, git_text
from perfbpf.mirror import SELFTESTS
from perfbpf.paths import TOP, build_dir
from perfbpf.series import HEAD

MAKEFILE = """\
# SPDX-License-Identifier: GPL-2.0
VERSION = {0}
PATCHLEVEL = {1}
SUBLEVEL = {2}
EXTRAVERSION =
NAME = Toy
"""
SUM = """\
// SPDX-License-Identifier: GPL-2.0
int sum(int a, int b)
{
	/* line 1 */
	/* line 2 */
	return a - b;
	/* line 3 */
}

int other;
"""
NEW = """\
// SPDX-License-Identifier: GPL-2.0
/* A file that the toy series creates. */
int toy(void)
{
	return 0;
}
"""
MAINTAINERS = """\
SUMS
M:	Sum Maintainer <sum@toy.example>
L:	sums@lists.toy.example
S:	Maintained
F:	kernel/
"""
# What checkpatch and get_maintainer are, and read, of a kernel tree.
SCRIPTS = ["scripts/checkpatch.pl", "scripts/get_maintainer.pl", "scripts/spelling.txt",
           "scripts/const_structs.checkpatch",
           "Documentation/dev-tools/checkpatch.rst"]
ALLOW = """\
# SPDX-License-Identifier: GPL-2.0
FILE_PATH_CHANGES * # the toy's snippet for MAINTAINERS covers its files
"""
# Written by hand, before the first refresh: subjects for names.
SERIES = """
# topic: sum
# needs: none
# upstream: toy
# state: not sent
toy-mend-the-sum

# topic: file
# needs: none
# upstream: toy
# state: v1 sent 2026-12-01
toy-add-a-new-file
toy-add-a-selftest
"""
COVER = """\
From: Toy <toy@localhost>
Subject: [PATCH] toy: {0}

What {0} is about.

--- diffstat, written by `make refresh`
--- end of diffstat
"""
# Tooling that no test runs in a toy, and that lint there need not look at.
NOT_IN_A_TOY = ["__pycache__", "guest", "guest-init", "mainline", "mainline.d", "demo", "demo.d",
                "configurations"]
MARKERS = ["COPYING", "CREDITS", "Kbuild", "MAINTAINERS", "README"]
DIRS = ["Documentation", "arch", "include", "drivers", "fs", "init", "ipc", "kernel", "lib",
        "scripts"]


class Toy(NamedTuple):
    """A toy repository at `top`, with build/ in it."""
    top: Path

    def run(self, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
        """Run a command in the toy, apart from this repository's build/."""
        env = {k: v for k, v in os.environ.items()
               if k not in ("KERNEL", "PERF_BPF_BUILD", "PERF_BPF_T0", "PERF_BPF_TOPIC",
                            "MAKEFLAGS")}
        env.update(environment)
        return subprocess.run(words, cwd=self.top, env=env, stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, check=False, timeout=300)

    def must(self, *words: str, **environment: str) -> str:
        """Run a command that has to succeed; its stdout."""
        done = self.run(*words, **environment)
        assert done.returncode == 0, f"{words}:\n{done.stdout}{done.stderr}"
        return done.stdout

    def git(self, *words: str) -> str:
        """Run git on the toy's kernel tree, build/linux."""
        return git(self.top / "build/linux", *words).decode()

    def edit(self, name: str, old: str, new: str) -> None:
        """Replace the first `old` in a file, which must be there."""
        path = self.top / name
        text = path.read_text()
        assert old in text, f"{path} has no {old!r}"
        path.write_text(text.replace(old, new, 1))

    def commit(self, subject: str, body: str) -> None:
        """Commit all of build/linux, by an author that stays the same."""
        self.git("add", "-f", "-A")
        self.git("commit", "-q", "-m", f"{subject}\n\n{body}\n\n"
                 "Signed-off-by: perf-bpf <perf-bpf@localhost>")


def base_version() -> str:
    """The version in BASE, as 7.3.4."""
    return (TOP / "BASE").read_text().strip().lstrip("v")


def toy_kernel(path: Path, version: str = "") -> Path:
    """A kernel tree of a few files, with the scripts that lint runs.

    The scripts are the real base's. Raises ToolError without build/base.
    """
    base = build_dir() / "base"
    for name in DIRS:
        (path / name).mkdir(parents=True, exist_ok=True)
        (path / name / "Kconfig").write_text("# SPDX-License-Identifier: GPL-2.0\n")
    for name in MARKERS:
        (path / name).write_text(f"{name}\n")
    for name in SCRIPTS:
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_bytes(git(base, "show", f"base:{name}"))
        (path / name).chmod(0o755 if name.endswith(".pl") else 0o644)
    (path / "MAINTAINERS").write_text(MAINTAINERS)
    # b4 takes a tree with this for a kernel's.
    (path / "Kconfig").write_text("# SPDX-License-Identifier: GPL-2.0\n")
    (path / "Makefile").write_text(MAKEFILE.format(*(version or base_version()).split(".")))
    (path / "kernel/sum.c").write_text(SUM)
    return path


def copy_tooling(top: Path) -> Toy:
    """A repository with this one's tooling and nothing of its series."""
    top.mkdir(parents=True, exist_ok=True)
    for name in ("BASE", "Makefile", ".gitignore", ".gitattributes", "pyproject.toml"):
        shutil.copy(TOP / name, top / name)
    shutil.copytree(TOP / "stack", top / "stack", ignore=shutil.ignore_patterns(*NOT_IN_A_TOY))
    # the exceptions are those of the real series
    (top / "stack/checkpatch.allow").write_text(ALLOW)
    (top / "tests").mkdir()
    (top / "patches").mkdir()
    (top / "build").mkdir()
    (top / "series").write_text(HEAD)
    return Toy(top)


def add_series(toy: Toy) -> None:
    """Three commits in build/linux: a fix, a new file, an executable selftest."""
    linux = toy.top / "build/linux"
    (linux / "kernel/sum.c").write_text(SUM.replace("a - b", "a + b"))
    toy.commit("toy: mend the sum", "A sum of two numbers was their difference.")
    (linux / "kernel/toy.c").write_text(NEW)
    toy.commit("toy: add a new file", "It holds what the toy is about.")
    script = linux / SELFTESTS / "toy/toy.sh"
    script.parent.mkdir(parents=True)
    script.write_text("#!/bin/sh\n# SPDX-License-Identifier: GPL-2.0\ntrue\n")
    script.chmod(0o755)
    toy.commit("toy: add a selftest", "It shows that the toy is true.")
    (toy.top / "series").write_text(HEAD + SERIES)
    add_cover(toy, "01-sum")
    add_cover(toy, "02-file")


def add_cover(toy: Toy, directory: str) -> None:
    """The cover letter of a topic."""
    path = toy.top / "patches" / directory / "cover.txt"
    path.parent.mkdir()
    path.write_text(COVER.format(directory.partition("-")[2]))


def make_toy(top: Path) -> Toy:
    """A whole toy: base, tree, a refreshed series, a snippet for MAINTAINERS."""
    toy = copy_tooling(top / "repo")
    kernel = toy_kernel(top / "kernel")
    toy.must("stack/tree", KERNEL=str(kernel))
    add_series(toy)
    (toy.top / "MAINTAINERS.snippet").write_text(
        "TOY\nM:\tToy <toy@localhost>\nS:\tMaintained\nF:\tkernel/toy.c\n"
        "F:\ttools/testing/selftests/toy/\n")
    tree = git_text(toy.top / "build/base", "rev-parse", "base^{tree}")
    (toy.top / "stack/debian-hunks.txt").write_text(
        f"# SPDX-License-Identifier: GPL-2.0\n# tree {tree}\n")
    toy.must("stack/refresh")
    return toy

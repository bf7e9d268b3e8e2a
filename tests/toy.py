# SPDX-License-Identifier: GPL-2.0
"""A toy of this repository: its own tooling, a kernel of a few files, a series
of three patches. It tests the tooling in seconds, without 90000 files."""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

TOP = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(TOP / "stack"))
import series  # noqa: E402  pylint: disable=wrong-import-position

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
# What checkpatch and get_maintainer are, and read, of a kernel tree.
SCRIPTS = ["scripts/checkpatch.pl", "scripts/get_maintainer.pl", "scripts/spelling.txt",
           "scripts/const_structs.checkpatch",
           "Documentation/dev-tools/checkpatch.rst"]
ALLOW = """\
# SPDX-License-Identifier: GPL-2.0
FILE_PATH_CHANGES * # the toy's snippet for MAINTAINERS covers its files
"""
MARKERS = ["COPYING", "CREDITS", "Kbuild", "MAINTAINERS", "README"]
DIRS = ["Documentation", "arch", "include", "drivers", "fs", "init", "ipc", "kernel", "lib",
        "scripts"]


class Toy(NamedTuple):
    """A toy repository at `top`, with build/ in it."""
    top: Path

    def run(self, *words: str, **environment: str) -> "subprocess.CompletedProcess[str]":
        """Run a command in the toy, apart from this repository's build/."""
        env = {k: v for k, v in os.environ.items()
               if k not in ("KERNEL", "PERF_BPF_BUILD", "PERF_BPF_T0", "MAKEFLAGS")}
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
        return series.git(self.top / "build/linux", *words).decode()

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

    The scripts are the real base's. Raises SeriesError without build/base.
    """
    base = series.build_dir(TOP) / "base"
    for name in DIRS:
        (path / name).mkdir(parents=True, exist_ok=True)
        (path / name / "Kconfig").write_text("# SPDX-License-Identifier: GPL-2.0\n")
    for name in MARKERS:
        (path / name).write_text(f"{name}\n")
    for name in SCRIPTS:
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_bytes(series.git(base, "show", f"base:{name}"))
    (path / "Makefile").write_text(MAKEFILE.format(*(version or base_version()).split(".")))
    (path / "kernel/sum.c").write_text(SUM)
    return path


def copy_tooling(top: Path) -> Toy:
    """A repository with this one's tooling and nothing of its series."""
    top.mkdir(parents=True, exist_ok=True)
    for name in ("BASE", "Makefile", ".gitignore"):
        shutil.copy(TOP / name, top / name)
    shutil.copytree(TOP / "stack", top / "stack", ignore=shutil.ignore_patterns("__pycache__"))
    # the exceptions are those of the real series
    (top / "stack/checkpatch.allow").write_text(ALLOW)
    (top / "tests").mkdir()
    (top / "patches").mkdir()
    (top / "build").mkdir()
    (top / "series").write_text(series.series_text([]))
    return Toy(top)


def add_series(toy: Toy) -> None:
    """Three commits in build/linux: a fix, a new file, an executable selftest."""
    linux = toy.top / "build/linux"
    (linux / "kernel/sum.c").write_text(SUM.replace("a - b", "a + b"))
    toy.commit("toy: mend the sum", "A sum of two numbers was their difference.")
    (linux / "kernel/toy.c").write_text(NEW)
    toy.commit("toy: add a new file", "It holds what the toy is about.")
    script = linux / series.SELFTESTS / "toy/toy.sh"
    script.parent.mkdir(parents=True)
    script.write_text("#!/bin/sh\n# SPDX-License-Identifier: GPL-2.0\ntrue\n")
    script.chmod(0o755)
    toy.commit("toy: add a selftest", "It shows that the toy is true.")


def make_toy(top: Path) -> Toy:
    """A whole toy: base, tree, a refreshed series, a snippet for MAINTAINERS."""
    toy = copy_tooling(top / "repo")
    kernel = toy_kernel(top / "kernel")
    toy.must("stack/tree", KERNEL=str(kernel))
    add_series(toy)
    (toy.top / "MAINTAINERS.snippet").write_text(
        "TOY\nM:\tToy <toy@localhost>\nS:\tMaintained\nF:\tkernel/toy.c\n"
        "F:\ttools/testing/selftests/toy/\n")
    tree = series.git(toy.top / "build/base", "rev-parse", "base^{tree}").decode().strip()
    (toy.top / "stack/debian-hunks.txt").write_text(
        f"# SPDX-License-Identifier: GPL-2.0\n# tree {tree}\n")
    toy.must("stack/refresh")
    return toy

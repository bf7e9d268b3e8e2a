# SPDX-License-Identifier: GPL-2.0
"""What patches do to a tree, without a tree of 90000 files.

A patch depends only on the files that it touches. So a repository of the few
files that the series touches tells whether a patch applies, and what it makes,
in a hundredth of the time.
"""
from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Iterable

from perfbpf.git import am, git, git_text
from perfbpf.series import PATCHES, Series


def make_reduced(repo: Path, base: Path, paths: Iterable[str]) -> None:
    """Make a repository of only some paths, as the base has them, with the tag `base`."""
    git(repo.parent, "init", "-q", str(repo))
    listing = git(base, "ls-tree", "-z", "--name-only", "base", "--", *paths).decode()
    present = [path for path in listing.split("\0") if path]
    archive = git(base, "archive", "base", "--", *present)
    subprocess.run(["tar", "-x", "-C", repo], input=archive, check=True)
    commit(repo, "base")


def commit(repo: Path, tag: str) -> None:
    """Commit whatever a repository's directory holds, and tag it."""
    git(repo, "add", "-f", "-A")
    git(repo, "commit", "-q", "--allow-empty", "-m", tag)
    git(repo, "tag", "-f", tag)


def apply(repo: Path, rev: str, patches: list[Path]) -> str:
    """Apply patches on rev; the commit (AmError: one is refused)."""
    git(repo, "checkout", "-q", "-f", "--detach", rev)
    git(repo, "clean", "-q", "-fdx")
    am(repo, patches)
    return git_text(repo, "rev-parse", "HEAD")


class Stacks:
    """The commits that topics make on each other in a repository with a tag `base`; each stack
    is built once."""

    def __init__(self, repo: Path, series: Series) -> None:
        self.repo = repo
        self._series = series
        self._commits: dict[tuple[str, ...], str] = {(): git_text(repo, "rev-parse", "base")}

    def commit(self, names: tuple[str, ...]) -> str:
        """The commit of these topics, in this order (AmError: a patch does not apply)."""
        if names not in self._commits:
            patches = [PATCHES / patch for patch in self._series.topic(names[-1]).patches]
            self._commits[names] = apply(self.repo, self.commit(names[:-1]), patches)
        return self._commits[names]

    def commits(self, names: tuple[str, ...]) -> list[str]:
        """The commit of each patch of these topics, in order."""
        return git_text(self.repo, "rev-list", "--reverse", f"base..{self.commit(names)}").split()

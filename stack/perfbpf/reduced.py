# SPDX-License-Identifier: GPL-2.0
"""What patches do to a tree, without a tree of 90000 files.

A patch depends only on the files that it touches. So a repository of the few
files that the series touches tells whether a patch applies, and what it makes,
in a hundredth of the time.
"""
from __future__ import annotations

import tarfile
from pathlib import Path
from typing import Iterable

from perfbpf.git import AmError, am, git, git_text
from perfbpf.series import Series


def touched(patch: Path) -> list[str]:
    """Return the kernel paths a patch touches. Raises ToolError if it is damaged.

    From a place outside any repository: inside one, git apply would leave out
    the paths that are not under the directory it runs in.
    """
    out = git(Path("/"), "apply", "--numstat", "-z", str(patch))
    return [entry.split("\t", 2)[2] for entry in out.decode().split("\0") if entry]


def diffstat(repo: Path, old: str, new: str) -> str:
    """Return the diffstat of a cover letter."""
    return git(repo, "diff", "--no-renames", "--stat=76", old, new).decode()


class Repository:
    """A repository with a tag `base` to apply patches on."""

    def __init__(self, repo: Path) -> None:
        self.repo = repo

    def checkout(self, rev: str) -> None:
        """Make the directory exactly what rev holds."""
        git(self.repo, "checkout", "-q", "-f", "--detach", rev)
        git(self.repo, "clean", "-q", "-fdx")

    def apply(self, rev: str, patches: list[Path]) -> str:
        """Apply patches on rev and return the commit. Raises AmError if one is refused."""
        self.checkout(rev)
        am(self.repo, patches)
        return git_text(self.repo, "rev-parse", "HEAD")

    def tree(self, rev: str = "HEAD") -> str:
        """Return the tree id of rev."""
        return git_text(self.repo, "rev-parse", rev + "^{tree}")


class Reduced(Repository):
    """A repository of only some paths, as the base has them.

    repo: an empty directory to make it in; the commit is tagged `base`.
    """

    def __init__(self, repo: Path, base: Path, paths: Iterable[str]) -> None:
        super().__init__(repo)
        repo.mkdir(parents=True, exist_ok=True)
        git(repo, "init", "-q")
        self._extract(base, sorted(paths))
        self.commit("base")

    def _extract(self, base: Path, paths: list[str]) -> None:
        if not paths:
            return      # git would take that for all paths
        listing = git(base, "ls-tree", "-z", "--name-only", "base", "--", *paths).decode()
        present = [path for path in listing.split("\0") if path]
        if not present:
            return
        archive = self.repo / ".git" / "base.tar"
        archive.write_bytes(git(base, "archive", "base", "--", *present))
        with tarfile.open(archive) as tar:
            for member in tar:
                tar.extract(member, self.repo)
        archive.unlink()

    def commit(self, tag: str) -> None:
        """Commit whatever the directory holds, and tag it."""
        git(self.repo, "add", "-f", "-A")
        git(self.repo, "commit", "-q", "--allow-empty", "-m", tag)
        git(self.repo, "tag", "-f", tag)


class Stacks:
    """The commits that topics make on each other; each stack is built once."""

    def __init__(self, repository: Repository, top: Path, series: Series) -> None:
        self._repository = repository
        self._top = top
        self._series = series
        self._commits: dict[tuple[str, ...], str] = {
            (): git_text(repository.repo, "rev-parse", "base")}

    def commit(self, names: tuple[str, ...]) -> str:
        """Return the commit of these topics on the base, in this order.

        Raises AmError when a patch does not apply.
        """
        if names not in self._commits:
            below = self.commit(names[:-1])
            patches = [self._top / "patches" / patch
                       for patch in self._series.topic(names[-1]).patches]
            self._commits[names] = self._repository.apply(below, patches)
        return self._commits[names]

    def commits(self, names: tuple[str, ...]) -> list[str]:
        """Return the commit of each patch of these topics, in order."""
        return git_text(self._repository.repo, "rev-list", "--reverse",
                        f"base..{self.commit(names)}").split()

    def applies(self, names: tuple[str, ...]) -> bool:
        """Tell whether these topics apply on the base, in this order."""
        try:
            self.commit(names)
        except AmError:
            return False
        return True

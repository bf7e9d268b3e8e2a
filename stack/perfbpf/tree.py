# SPDX-License-Identifier: GPL-2.0
"""build/linux, the work tree: the branch `series` is the base with patches/ applied.

A developer's commits there are never dropped. What was applied is noted last, in
.git/perf-bpf-applied: the number of patches/, the commit that they gave, and each patch's
content and slug. If only patches/ are others now, the branch is a mere copy, and they are applied
anew; if the branch is another, somebody works there, and nothing is touched.
"""
from __future__ import annotations

import shutil
from pathlib import Path

from perfbpf import series
from perfbpf.git import ToolError, am, git, git_text
from perfbpf.paths import BASE, BUILD, LINUX
from perfbpf.stage import Run, locked, need_space, say, stage

TOPICS = BUILD / "linux-topic"      # see stack/topic
BUILT = ("out-*", "logs", "results", "prefix", "demo", "configurations", "bare", "ended")
NOTE = LINUX / ".git/perf-bpf-applied"
APPLYING = LINUX / ".git/perf-bpf-applying"     # left by a run that was interrupted


def note(linux: Path = LINUX) -> None:
    """Note that build/linux and patches/ agree."""
    patches = series.read()
    (linux / ".git" / NOTE.name).write_text(
        f"{patches.sha()} {git_text(linux, 'rev-parse', 'series')}\n" + "".join(
            f"{series.content(path)} {series.slug(path.name)}\n" for path in patches.paths()),
        encoding="utf-8")


def noted() -> list[str]:
    """The words of the note; [] in a tree made by hand."""
    return NOTE.read_text(encoding="utf-8").split() if NOTE.exists() else []


def apply(linux: Path) -> None:
    """Apply patches/ on the base; the branch moves only at the end (AmError: at one that does
    not apply: on another 7.3.y, one that is there already, or that has to be ported)."""
    if (linux / ".git/rebase-apply").exists():      # a run that was interrupted
        git(linux, "am", "--abort")
    patches = series.read().paths()
    applying = linux / ".git" / APPLYING.name
    applying.touch()
    git(linux, "checkout", "-q", "-f", "--detach", "base")
    am(linux, patches)
    git(linux, "checkout", "-q", "-B", "series")
    note(linux)
    applying.unlink()


def make(_run: Run) -> None:
    """Make build/linux, whole or not at all."""
    draft = LINUX.with_name("linux.tmp")
    shutil.rmtree(draft, ignore_errors=True)
    git(BUILD, "clone", "-q", "--shared", "--no-checkout", str(BASE), str(draft))
    git(draft, "config", "gc.auto", "0")
    apply(draft)
    draft.rename(LINUX)


def edited() -> str:
    """What a branch with somebody's work has that patches/ have not, "" without any."""
    was = noted()
    if was and git_text(LINUX, "rev-parse", "series") != was[1]:
        return "the branch series has commits that did not come from patches/"
    # after a run that was interrupted these are of its making
    if not APPLYING.exists() and (
            git(LINUX, "status", "--porcelain", "--untracked-files=no")
            or list((LINUX / ".git").glob("rebase-*"))):
        return "it has changes that are not committed, or a rebase is under way"
    return ""


def is_as_patches_say() -> bool:
    """Is build/linux what patches/ make of the base, or is it still to be made?"""
    return not LINUX.exists() or (noted()[:1] == [series.read().sha()] and not edited())


def ensure() -> None:
    """Make build/linux what patches/ say (ToolError: work would be lost)."""
    with locked("tree"):
        if not LINUX.exists():
            need_space(2500, "the work tree")
            stage("tree", make)
        elif not noted():
            say("tree: build/linux was made by hand and is taken as it is")
        elif series.read().sha() != noted()[0] or APPLYING.exists():
            why = edited()
            if why:
                raise ToolError(f"build/linux: patches/ have changed, and {why}. Nothing was"
                                " touched. Either keep that work (`git stash` patches/, `make"
                                " refresh`), or give it up (`rm -r build/linux`), and run `make"
                                " tree` again")
            stage("tree", lambda _run: apply(LINUX))


def unsaved() -> str:
    """What build/linux has that patches/ would not give back."""
    if not LINUX.exists():
        return ""
    if not noted() or series.read().sha() != noted()[0]:
        return "it was made by hand, or patches/ have changed since"
    left = edited() or git_text(LINUX, "log", "-1", "--format=%s", "HEAD", "--branches", "--not",
                                "series") or git_text(LINUX, "stash", "list")
    # Debian's own .gitignore has all that is new; nothing is built in the tree.
    return left or git_text(LINUX, "status", "--porcelain", "--untracked-files=all", "--ignored")


def clean() -> None:
    """Remove what was built."""
    for pattern in BUILT:
        for path in BUILD.glob(pattern):
            shutil.rmtree(path)


def distclean() -> None:
    """Remove build/ (ToolError: there is work in it)."""
    work = unsaved()
    if work:
        raise ToolError(f"build/linux has work that is not in patches/ ({work.splitlines()[0]}):"
                        " `make refresh` to keep what is on the branch series, or `rm -r"
                        " build/linux` to give it up, then again")
    if TOPICS.exists():
        raise ToolError(f"{TOPICS} may have cover letters and versions that were sent: `rm -r"
                        f" {TOPICS}` to give them up, then again")
    shutil.rmtree(BUILD, ignore_errors=True)

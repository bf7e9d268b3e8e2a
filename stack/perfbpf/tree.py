# SPDX-License-Identifier: GPL-2.0
"""build/linux, the work tree: the branch `series` is the base with patches/ applied.

A developer's commits there are never dropped. What was applied is noted last
(applied.py). Hence:

    both as noted                   nothing to do
    patches/ changed, the branch    the branch is a mere copy: apply anew
      did not
    the branch changed              somebody works there: say so, touch nothing

    python3 -m perfbpf.tree sha      one number for series and patches/
                            state    "missing", "stale", "current" or "by-hand"
                            make     make build/linux
                            remake   apply patches/ anew in build/linux
                            work     what patches/ would not give back, one a line
"""
from __future__ import annotations

import shutil
import sys
from pathlib import Path

from perfbpf import applied, series
from perfbpf.git import AmError, ToolError, am, git, git_text
from perfbpf.paths import TOP, build_dir


def refusal(linux: Path, patch: Path) -> str:
    """Return why git am refuses a patch on the HEAD of linux."""
    try:
        git(linux, "apply", "--check", "--reverse", str(patch))
    except ToolError:
        return "conflicts"
    return "already there"


def refusals(linux: Path, patches: list[Path]) -> list[str]:
    """Apply one patch after the other on the base, and return a line for each that does
    not apply: on another 7.3.y, one that a maintainer took, or that has to be ported.
    A patch that stands on one of these may be among them for that reason only."""
    lines = []
    git(linux, "checkout", "-q", "-f", "--detach", "base")
    for patch in patches:
        try:
            am(linux, [patch])
        except AmError:
            lines.append(f"{refusal(linux, patch)}: {patch.parent.name}/{patch.name}")
    git(linux, "checkout", "-q", "-f", "--detach", "base")
    return lines


def apply(top: Path, linux: Path) -> None:
    """Apply patches/ on the base in linux; the branch moves only at the end. Raises
    ToolError with all patches that do not apply."""
    patches = series.patch_paths(top, series.read(top))
    applying = linux / ".git" / "perf-bpf-applying"
    # An interrupted run leaves it; then what is not committed is of our making.
    applying.touch()
    git(linux, "checkout", "-q", "-f", "--detach", "base")
    try:
        am(linux, patches)
    except AmError as error:
        lines = refusals(linux, patches)
        raise ToolError("\n".join([str(error), *lines,
                                   f"{len(lines)} of {len(patches)} patches do not apply to"
                                   " this base, all others do. Take those out of `series` that"
                                   " are already there, and port the others"])) from error
    git(linux, "checkout", "-q", "-B", "series")
    applied.write(top, linux)
    applying.unlink()


def make(top: Path, linux: Path) -> None:
    """Make build/linux, whole or not at all."""
    draft = linux.with_name(linux.name + ".tmp")
    shutil.rmtree(draft, ignore_errors=True)
    try:
        git(linux.parent, "clone", "-q", "--shared", "--no-checkout",
            str(linux.with_name("base")), str(draft))
        git(draft, "config", "gc.auto", "0")
        apply(top, draft)
        draft.rename(linux)
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def remake(top: Path, linux: Path) -> None:
    """Apply patches/ anew, also after a run that was interrupted in the middle."""
    if (linux / ".git" / "rebase-apply").exists():
        git(linux, "am", "--abort")
    apply(top, linux)


def refuse(why: str) -> ToolError:
    """Return the error that says what prevents applying patches/, and what to do."""
    return ToolError(f"build/linux: {why}. Nothing was touched. Either keep that work (`make"
                     " refresh` writes it to patches/), or give it up (`rm -r build/linux`), and"
                     " run `make tree` again")


def state(top: Path, linux: Path) -> str:
    """Return "missing", "stale", "current" or, of a tree with a tag `base` and no
    note, "by-hand". Raises ToolError when work would be lost."""
    sha = series.sha(top)
    if not linux.exists():
        return "missing"
    try:
        git(linux, "rev-parse", "-q", "--verify", "base^{commit}")
    except ToolError:
        raise refuse("it is no tree of this stack (there is no tag `base`)") from None
    was = applied.read(linux)
    if was is None:
        return "by-hand"
    if applied.head(linux) != was.head:
        raise refuse("the branch series has commits that did not come from patches/")
    interrupted = (linux / ".git" / "perf-bpf-applying").exists()
    if sha == was.sha and not interrupted:
        return "current"
    if not interrupted and git(linux, "status", "--porcelain", "--untracked-files=no"):
        raise refuse("patches/ have changed, and it has changes that are not committed")
    return "stale"


def work(top: Path, linux: Path) -> list[str]:
    """Return what build/linux has that patches/ would not give back."""
    if not linux.exists():
        return []
    was = applied.read(linux)
    if was is None:
        return ["it was made by hand"]
    left = []
    if applied.head(linux) != was.head:
        left.append("the branch series")
    if series.sha(top) != was.sha:
        left.append("patches/ have changed since")
    left += git_text(linux, "for-each-ref", "--format=%(refname:short)", "--no-merged",
                     "series").splitlines()
    left += git_text(linux, "stash", "list").splitlines()
    # Debian's own .gitignore has all that is new; nothing is built in the tree.
    left += git_text(linux, "status", "--porcelain", "--untracked-files=all",
                     "--ignored").splitlines()
    return left


def main(arguments: list[str]) -> int:
    """Run one of the commands that the top of the file lists."""
    linux = build_dir() / "linux"
    try:
        if arguments == ["sha"]:
            print(series.sha(TOP))
        elif arguments == ["state"]:
            print(state(TOP, linux))
        elif arguments == ["make"]:
            make(TOP, linux)
        elif arguments == ["remake"]:
            remake(TOP, linux)
        elif arguments == ["work"]:
            print("".join(f"{line}\n" for line in work(TOP, linux)), end="")
        else:
            print(__doc__, file=sys.stderr)
            return 2
    except ToolError as error:
        print(f"tree: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

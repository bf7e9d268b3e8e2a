# SPDX-License-Identifier: GPL-2.0
"""The note in build/linux/.git of what its branch `series` was made from.

    sha of series and patches/, the commit they gave
    content id, slug            one line a patch

`make tree` and `make refresh` write it last; each of them reads from it which
side has changed since.
"""
from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from perfbpf import series
from perfbpf.git import ToolError, git_text

NAME = "perf-bpf-applied"


class Applied(NamedTuple):
    """What the note says. `patches`: (content id, slug), in order."""
    sha: str
    head: str
    patches: list[tuple[str, str]]


def read(linux: Path) -> Applied | None:
    """Return the note; None when there is none, as in a tree made by hand."""
    path = linux / ".git" / NAME
    if not path.exists():
        return None
    lines = [line.split() for line in path.read_text(encoding="utf-8").splitlines()]
    return Applied(lines[0][0], lines[0][1], [(line[0], line[1]) for line in lines[1:]])


def write(top: Path, linux: Path) -> None:
    """Note that build/linux and patches/ agree."""
    paths = series.patch_paths(top, series.read(top))
    lines = [f"{series.sha(top)} {head(linux)}"]
    lines += [f"{series.content_id(path)} {series.slug(path.name)}" for path in paths]
    (linux / ".git" / NAME).write_text("\n".join(lines) + "\n", encoding="utf-8")


def head(linux: Path) -> str:
    """Return the commit of the branch `series`."""
    return git_text(linux, "rev-parse", "series")


def check(top: Path, linux: Path, now: list[str]) -> None:
    """Raise ToolError if a refresh would write over patches that came from elsewhere.

    now: the slugs of the commits in build/linux. Writing them loses something if
    a patch in patches/ is not one that the tree was made from, if one of those
    has gone from patches/ and is still a commit, or if `series` has an order
    that neither the commits have nor they had.
    """
    was = read(linux)
    if was is None or not was.patches:
        return
    noted = {content for content, _ in was.patches}
    disk = {series.content_id(path): path for path in (top / "patches").rglob("*.patch")}
    new = [path for content, path in disk.items() if content not in noted]
    gone = [slug for content, slug in was.patches if content not in disk and slug in now]
    listed = [series.slug(name) for name in series.read(top).patches()]
    if new:
        changed = f"patches/{min(new).relative_to(top / 'patches')} has"
    elif gone:
        changed = f"the patch {gone[0]} has gone from patches/, which have"
    elif _ordered(listed, now) or _ordered(listed, [slug for _, slug in was.patches]):
        return
    else:
        changed = "the order in series has"
    if head(linux) == was.head:
        raise ToolError(f"{changed} changed since build/linux was made from them, and build/linux"
                        " has nothing new: run `make tree`, or put them back"
                        " (`git checkout patches series`)")
    raise ToolError(f"{changed} changed since build/linux was made from them, and so has"
                    " build/linux: put them back (`git stash`, or `git checkout COMMIT patches"
                    " series`), run `make refresh`, and merge the two here")


def _ordered(one: list[str], other: list[str]) -> bool:
    """Tell whether two lists have what is in both in the same order."""
    both = set(one) & set(other)
    return [slug for slug in one if slug in both] == [slug for slug in other if slug in both]

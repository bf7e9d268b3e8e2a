# SPDX-License-Identifier: GPL-2.0
"""make refresh: write what build/linux holds back into this repository.

patches/, series, the mirrors, the diffstats of the cover letters and the links to
patches in Markdown files, all from the commits base..series. Files that would not
change are not written, so a refresh without a change is an empty diff. Patches that
came from elsewhere since build/linux was made from them are not written over
(applied.py).

A patch keeps the topic that `series` has its slug in. One that `series` does not
know is looked for by its diff, as the subject may be all that changed; a new one
joins the topic of the patch before it. To move a patch to another topic, move
the commit to those of that topic and the line in `series` to that block.
"""
from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

from perfbpf import applied, links, mirror
from perfbpf import series as series_file
from perfbpf.git import ToolError, git, git_text
from perfbpf.paths import TOP, build_dir
from perfbpf.reduced import diffstat
from perfbpf.series import COVER, STAT_BEGIN, STAT_END, Series, slug


class Patch(NamedTuple):
    """A commit of build/linux, written by git format-patch outside the repository."""
    commit: str
    path: Path


def check_branch(linux: Path) -> None:
    """Raise ToolError unless base..series is a line of finished commits."""
    if not (linux / ".git").is_dir():
        raise ToolError("there is no build/linux to refresh from: run `make tree`")
    for sign in ("rebase-apply", "rebase-merge"):
        if (linux / ".git" / sign).exists():
            raise ToolError(
                "a rebase or `git am` is under way in build/linux: finish or abort it first")
    if git_text(linux, "rev-parse", "--symbolic-full-name", "HEAD") != "refs/heads/series":
        raise ToolError(
            "build/linux is not on the branch series, which is what is written: go there with"
            " `git checkout series`, or make the branch what you have, `git checkout -B series`")
    for subject in git_text(linux, "log", "--format=%s", "base..series").splitlines():
        if subject.startswith(("fixup!", "squash!", "amend!")):
            raise ToolError(f"build/linux still has the commit \"{subject}\":"
                            " run `git rebase --autosquash -i base` there first")
    if git(linux, "rev-list", "--merges", "base..series"):
        raise ToolError("build/linux has a merge commit in base..series:"
                        " make it a line with `git rebase base`")


def format_patches(linux: Path, out: Path) -> list[Patch]:
    """Write a patch for each commit into out."""
    text = git_text(
        linux, "format-patch", "-o", str(out), "--zero-commit", "--no-signature",
        "--full-index", "--no-numbered", "--no-renames", "--no-thread", "base..series")
    commits = git_text(linux, "rev-list", "--reverse", "base..series").split()
    return [Patch(commit, Path(line)) for commit, line in zip(commits, text.splitlines())]


# Which topic each patch is of

def diff_id(path: Path) -> str:
    """Return git's number for what a patch changes, whatever its message says."""
    words = git(path.parent, "patch-id", "--stable", stdin=path.read_bytes()).decode().split()
    return words[0] if words else ""


def place(top: Path, series: Series, patches: list[Patch]) -> list[int]:
    """Return the index of each patch's topic. Raises ToolError if topics would mix."""
    if patches and not series.topics:
        raise ToolError("series has no topic: write a block for each topic of the commits in"
                        " build/linux, with \"# topic:\", \"# needs:\", \"# upstream:\","
                        " \"# state:\" and the subjects of its patches (`git log --format=%f`)")
    by_slug: dict[str, list[int]] = {}
    for index, topic in enumerate(series.topics):
        for name in topic.patches:
            by_slug.setdefault(slug(name), []).append(index)
    by_diff = _renamed(top, series, {slug(patch.path.name) for patch in patches})
    placed: list[int] = []
    for patch in patches:
        before = placed[-1] if placed else 0
        name = slug(patch.path.name)
        # Patches of several topics may share a slug: each takes one of its lines.
        known = by_slug.get(name) or by_diff.get(diff_id(patch.path) if by_diff else "")
        if known:
            index = min([one for one in known if one >= before] or known)
            known.remove(index)
        else:
            index = before
            print(f"refresh: {name} is new: it joins the topic {series.topics[index].name}")
        if index < before:
            raise ToolError(
                f"build/linux: the commit {patch.commit[:12]} ({name}) is of the topic"
                f" {series.topics[index].name}, but follows commits of"
                f" {series.topics[before].name}: move the commit (`git rebase -i base`), or its"
                " line in series, or the topic's whole block if all of it has moved")
        placed.append(index)
    return placed


def _renamed(top: Path, series: Series, slugs: set[str]) -> dict[str, list[int]]:
    """Return, by diff, the topics of the patches in `series` that are no commit's any more."""
    found: dict[str, list[int]] = {}
    for index, topic in enumerate(series.topics):
        for name in topic.patches:
            path = top / "patches" / name
            if slug(name) not in slugs and path.is_file():
                found.setdefault(diff_id(path), []).append(index)
    return found


def new_series(series: Series, patches: list[Patch], placed: list[int]) -> Series:
    """Return `series` with the patches in their topics. Raises ToolError for an empty topic."""
    topics = []
    for index, topic in enumerate(series.topics):
        names = tuple(patch.path.name for patch, at in zip(patches, placed) if at == index)
        if not names:
            raise ToolError(
                f"no commit in build/linux is of the topic {topic.name} (series:{topic.line}):"
                " if it is dropped, take its block out of series and its name out of the"
                " others' needs; else put the subjects of its commits (`git log --format=%f`)"
                " into the block")
        topics.append(topic._replace(patches=names))
    series = Series(tuple(topics))
    return Series(tuple(topic._replace(patches=tuple(series.expected(topic)))
                        for topic in series.topics))


# What is written

def write(path: Path, data: bytes, executable: bool = False) -> bool:
    """Write a file if it differs, and report it; True if it did."""
    mode = 0o755 if executable else 0o644
    if path.is_file() and not path.is_symlink() and path.read_bytes() == data:
        if bool(path.stat().st_mode & 0o100) == executable:
            return False
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    path.write_bytes(data)
    path.chmod(mode)
    print(f"refresh: wrote {path}")
    return True


def covers(top: Path, series: Series) -> dict[str, Path]:
    """Return each topic's cover letter, wherever it is now. Raises ToolError for a
    topic without one, or with two directories."""
    found = {}
    for topic in series.topics:
        directories = [path for path in sorted((top / "patches").glob(f"*-{topic.name}"))
                       if path.is_dir() and path.name.partition("-")[0].isdigit()
                       and path.name.partition("-")[2] == topic.name]
        if len(directories) > 1:
            raise ToolError(f"the topic {topic.name} has two directories,"
                            f" {' and '.join(f'patches/{path.name}' for path in directories)}:"
                            " remove one")
        directory = directories[0] if directories else top / "patches" / \
            series.directory(topic.name)
        series_file.split_cover(directory / COVER)
        found[topic.name] = directory / COVER
    return found


def refresh_patches(top: Path, series: Series, patches: list[Patch]) -> None:
    """patches/*/*.patch and series; what is in no topic any more goes."""
    known = covers(top, series)
    # In this order, so that a number that is taken has become free.
    moves = [(cover.parent, top / "patches" / series.directory(name))
             for name, cover in known.items()]
    for old, new in moves:
        if old != new:
            old.rename(new)
            print(f"refresh: moved {old} to {new}")
    for name, patch in zip(series.patches(), patches):
        write(top / "patches" / name, patch.path.read_bytes())
    for stale in sorted(set((top / "patches").rglob("*.patch"))
                        - {top / "patches" / name for name in series.patches()}):
        stale.unlink()
        print(f"refresh: removed {stale}")
    remove_topics(top, {series.directory(topic.name) for topic in series.topics})
    write(top / "series", series_file.text_of(series).encode())


def remove_topics(top: Path, directories: set[str]) -> None:
    """Remove the directories of topics that are gone. A cover letter goes with
    them only if git has it as it is."""
    for directory in sorted((top / "patches").iterdir()):
        if not directory.is_dir() or directory.name in directories:
            continue
        cover = directory / COVER
        if cover.exists() and is_committed(top, cover):
            cover.unlink()
            print(f"refresh: removed {cover}")
        if any(directory.iterdir()):
            print(f"refresh: left {directory} alone: series has no such topic, but git does not"
                  " have all of it; commit or remove it")
        else:
            directory.rmdir()


def is_committed(top: Path, path: Path) -> bool:
    """Tell whether HEAD of this repository has a file with these very bytes."""
    try:
        return git(top, "show", f"HEAD:{path.relative_to(top)}") == path.read_bytes()
    except ToolError:
        return False


def tracked(top: Path) -> set[str]:
    """Return what git knows of in this repository; nothing when it is no git repository."""
    try:
        return set(git(top, "ls-files", "-z").decode().split("\0"))
    except ToolError:
        return set()


def refresh_mirror(top: Path, linux: Path) -> None:
    """The full text of every file the series creates; stale ones go."""
    files = mirror.expected(linux, "base", "series")
    for name, blob in files.items():
        write(top / name, blob.data, blob.executable)
    known = tracked(top)
    for name in sorted(mirror.mirror_files(top) - set(files)):
        if name not in known:
            print(f"refresh: left {name} alone: the series does not create it and git does"
                  " not know it; commit it in build/linux, or remove it")
            continue
        (top / name).unlink()
        print(f"refresh: removed {top / name}")
        for parent in (top / name).parents:
            if parent == top or any(parent.iterdir()):
                break
            parent.rmdir()


def refresh_covers(top: Path, linux: Path, series: Series, patches: list[Patch]) -> None:
    """The diffstat of each topic's commits, in its cover letter, which is hand-written."""
    start, done = "base", 0
    for topic in series.topics:
        done += len(topic.patches)
        end = patches[done - 1].commit
        cover = top / "patches" / series.directory(topic.name) / COVER
        head, _, tail = series_file.split_cover(cover)
        text = head + STAT_BEGIN + diffstat(linux, start, end) + STAT_END + tail
        write(cover, text.encode())
        start = end


def refresh_links(top: Path, series: Series) -> None:
    """The numbers in links to patches, in Markdown files at the top and in patches/."""
    for path in sorted([*top.glob("*.md"), *(top / "patches").rglob("*.md")]):
        write(path, links.renumber(path.read_text(encoding="utf-8"), series).encode())


def refresh(top: Path, linux: Path) -> None:
    """Do it all. Raises ToolError, before anything is written, when it cannot."""
    check_branch(linux)
    series = series_file.read(top)
    with tempfile.TemporaryDirectory() as tmp:
        patches = format_patches(linux, Path(tmp))
        placed = place(top, series, patches)
        applied.check(top, linux, [slug(patch.path.name) for patch in patches])
        series = new_series(series, patches, placed)
        covers(top, series)
        if git(linux, "status", "--porcelain", "--untracked-files=no"):
            print("refresh: build/linux has changes that are not committed: they are in no patch")
        refresh_patches(top, series, patches)
        refresh_mirror(top, linux)
        refresh_covers(top, linux, series, patches)
        refresh_links(top, series)
        applied.write(top, linux)


def main() -> int:
    """Exit status: 0 refreshed, 1 could not, with one line why."""
    try:
        refresh(TOP, build_dir() / "linux")
    except ToolError as error:
        print(f"refresh: {error}", file=sys.stderr)
        return 1
    except OSError as error:
        print(f"refresh: {error.filename or TOP}: {error.strerror}: what was written so far is"
              " half of it; mend that, `git checkout patches series`, and run `make refresh` again",
              file=sys.stderr)
        return 1
    return 0

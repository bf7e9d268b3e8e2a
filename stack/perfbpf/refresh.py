# SPDX-License-Identifier: GPL-2.0
"""make refresh: write what build/linux holds back into this repository: patches/, series, the
mirrors (the full text of every file that the series creates, at its path), the diffstats of the
cover letters and the links to patches in Markdown files, all from the commits base..series.

A patch keeps the topic that `series` has its slug in. One that `series` does not know is looked
for by its diff, as the subject may be all that changed; a new one joins the topic of the patch
before it. To move a patch to another topic, move the commit to those of that topic and the line
in `series` to that block.
"""
from __future__ import annotations

import re
import tempfile
from collections import Counter
from pathlib import Path
from typing import Iterator, NamedTuple

from perfbpf import series as series_file
from perfbpf import tree
from perfbpf.git import ToolError, diffstat, git, git_text
from perfbpf.paths import LINUX, TOP
from perfbpf.series import COVER, PATCHES, STAT_BEGIN, STAT_END, Series, slug

SELFTESTS = "tools/testing/selftests/"
# Directories at the top that hold no kernel files.
OWN_DIRS = {".ci", ".git", ".github", "bench", "build", "patches", "stack", "tests"}
MIRROR_NOTE = """\
<!-- SPDX-License-Identifier: GPL-2.0 -->

# Generated: do not edit

Every file that [`patches/`](../patches) create below `{kernel}` of the kernel tree, to be read
and searched; not those that they only change. `make refresh` writes it from the commits in
`build/linux`; to change a file, change the commit that creates it: [how](../CONTRIBUTING.md).
"""
# A link to a patch; the slug tells which when the numbers have changed.
PATCH_LINK = re.compile(r"\[(\d\d/\d{4})\]\(([^)\s]*?)(\d\d-[a-z0-9-]+/\d{4}-[^)\s/]+\.patch)\)")


class File(NamedTuple):
    """A file as it has to be."""
    executable: bool
    data: bytes

    def same(self, path: Path) -> bool:
        """Is it so?"""
        return path.is_file() and path.read_bytes() == self.data \
            and bool(path.stat().st_mode & 0o100) == self.executable


def write(path: Path, file: File) -> None:
    """Write a file unless it is so already, and say so."""
    if not file.same(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
        path.write_bytes(file.data)
        path.chmod(0o755 if file.executable else 0o644)
        print(f"refresh: wrote {path}")


def remove(path: Path) -> None:
    """Remove a file, and the directories that are empty without it. What is no patch goes only
    if git has it as it is."""
    if path.suffix != ".patch" and git(TOP, "status", "--porcelain", "--ignored", str(path)):
        print(f"refresh: left {path}: no commit in build/linux has it, and neither has git: commit"
              " it there, or remove it")
        return
    path.unlink()
    print(f"refresh: removed {path}")
    for parent in path.parents:
        if parent in (TOP, PATCHES) or any(parent.iterdir()):
            break
        parent.rmdir()


# The mirrors

def mirror_path(path: str) -> str:
    """Where this repository keeps the full text of a file that the series creates."""
    return "selftests/" + path[len(SELFTESTS):] if path.startswith(SELFTESTS) else path


def mirrors(repo: Path, new: str) -> dict[str, File]:
    """The mirrors of what is created from `base` to `new`, by their paths here."""
    fields = git(repo, "diff-tree", "-r", "-z", "--no-renames", "--diff-filter=A", "base",
                 new).decode().split("\0")
    files = {}
    for meta, path in zip(fields[0::2], fields[1::2]):
        _, mode, _, blob, _ = meta.split(" ")
        files[mirror_path(path)] = File(mode == "100755", git(repo, "cat-file", "blob", blob))
    for directory in {name.partition("/")[0] for name in files}:
        kernel = SELFTESTS if directory == "selftests" else f"{directory}/"
        files[f"{directory}/README.md"] = File(False, MIRROR_NOTE.format(kernel=kernel).encode())
    return files


def is_mirror(path: Path) -> bool:
    """Is a path of this repository below a kernel's directory?"""
    parts = path.relative_to(TOP).parts
    return len(parts) > 1 and parts[0] not in OWN_DIRS and parts[0][0] != "."


def own_files() -> list[Path]:
    """Every file of the repository that is not ignored, mirrors included."""
    names = git(TOP, "ls-files", "-z", "-c", "-o", "--exclude-standard").decode().split("\0")
    return [TOP / name for name in sorted(set(names)) if name and (TOP / name).is_file()]


# Which topic each patch is of

def diff_id(path: Path) -> str:
    """git's number for what a patch changes, whatever its message says."""
    words = git(path.parent, "patch-id", "--stable", stdin=path.read_bytes()).decode().split()
    return words[0] if words else path.name


def topics_of(series: Series, patches: list[Path]) -> Iterator[int]:
    """The index of each patch's topic (ToolError: topics would mix)."""
    slugs = {slug(patch.name) for patch in patches}
    known: dict[str, list[int]] = {}
    for index, topic in enumerate(series.topics):
        for name in topic.patches:
            renamed = slug(name) not in slugs and (PATCHES / name).is_file()
            known.setdefault(diff_id(PATCHES / name) if renamed else slug(name), []).append(index)
    before = 0
    for patch in patches:
        # Patches of several topics may share a slug: each takes one of its lines.
        places = known.get(slug(patch.name)) or []
        if not places and (places := known.get(diff_id(patch), [])):
            print(f"refresh: {slug(patch.name)} was called otherwise: `make lint` says where its"
                  " old name is left")
        index = min([one for one in places if one >= before] or places or [before])
        if places:
            places.remove(index)
        else:
            print(f"refresh: {slug(patch.name)} is new: it joins {series.topics[index].name}")
        if index < before:
            raise ToolError(
                f"build/linux: the commit \"{slug(patch.name)}\" is of the topic"
                f" {series.topics[index].name}, but follows commits of"
                f" {series.topics[before].name}: move the commit (`git rebase -i base`), or its"
                " line in series, or that of the one before it, or the topic's whole block")
        yield (before := index)


def new_series(series: Series, patches: list[Path]) -> Series:
    """`series` with these patches (ToolError: a topic would have none)."""
    placed = list(topics_of(series, patches))
    topics = [topic._replace(patches=tuple(patch.name for patch, at in zip(patches, placed)
                                           if at == index))
              for index, topic in enumerate(series.topics)]
    for topic in topics:
        if not topic.patches:
            raise ToolError(f"no commit in build/linux is of the topic {topic.name}: if it is"
                            " dropped, take its block out of series and its name out of the"
                            " others' needs; else put the subjects of its commits (`git log"
                            " --format=%f`) into the block")
    return Series(tuple(topics)).numbered()


# The refresh

def check() -> None:
    """Raise ToolError unless base..series is a line of finished commits, and patches/ are what
    it was made from."""
    git_dir = LINUX / ".git"
    if not git_dir.is_dir():
        raise ToolError("there is no build/linux to refresh from: run `make tree`")
    if (git_dir / "rebase-apply").exists() or (git_dir / "rebase-merge").exists():
        raise ToolError("a rebase or `git am` is under way in build/linux: end it first")
    if git_text(LINUX, "rev-parse", "--abbrev-ref", "HEAD") != "series":
        raise ToolError("build/linux is not on the branch series, which is what is written: `git"
                        " checkout series`, or make it what you have, `git checkout -B series`")
    if re.search("^(fixup|squash|amend)!", git_text(LINUX, "log", "--format=%s", "base..series"),
                 re.MULTILINE):
        raise ToolError("build/linux has fixups: run `git rebase --autosquash -i base` there")
    if git(LINUX, "rev-list", "--merges", "base..series"):
        raise ToolError("build/linux has a merge: make it a line with `git rebase base`")
    # `series` may have been edited since, to move, add or drop a topic; what a patch that is no
    # commit any more had is meant to go
    was = tree.noted()
    made_of = dict(zip(was[2::2], was[3::2]))
    there = {series_file.content(path) for path in PATCHES.glob("*/*.patch")}
    gone = {name for content, name in made_of.items() if content not in there}
    now = git_text(LINUX, "log", "--format=%f", "base..series").split()
    if was and (there - set(made_of) or gone.intersection(map(slug, now))):
        raise ToolError("patches/ have changed since build/linux was made from them: put them back"
                        " (`git stash`, or `git checkout patches`), refresh, and merge the two;"
                        " or `make tree`, if build/linux has nothing new")
    if git(LINUX, "status", "--porcelain", "--untracked-files=all", "--ignored"):
        print("refresh: build/linux has changes or files that are not committed: they are in no"
              " patch (`git status --ignored` there; new files need `git add -f`)")


def refresh_patches(old: Series, new: Series, patches: list[Path]) -> None:
    """patches/, with the cover letters, and series; what is in no topic any more goes."""
    for topic in new.topics:
        # where the cover is now; the topic may have moved in the file
        found = [path for path in PATCHES.glob(f"[0-9][0-9]-{topic.name}/{COVER}")]
        series_file.split_cover(found[0] if found else new.cover(topic.name))
    covers = {new.cover(topic.name): File(False, next(
        PATCHES.glob(f"[0-9][0-9]-{topic.name}/{COVER}")).read_bytes()) for topic in new.topics}
    files = {PATCHES / name: File(False, patch.read_bytes())
             for name, patch in zip(new.patches(), patches)}
    for path, file in {**files, **covers}.items():
        write(path, file)
    for path in PATCHES.glob("*/*"):
        if path not in files and path not in covers and path.suffix in (".patch", ".txt"):
            remove(path)
    if old.text() != new.text():
        write(TOP / "series", File(False, new.text().encode()))


def refresh_mirrors() -> None:
    """The full text of every file that the series creates; stale ones go."""
    files = mirrors(LINUX, "series")
    for name, file in files.items():
        write(TOP / name, file)
    for path in own_files():
        if is_mirror(path) and str(path.relative_to(TOP)) not in files:
            remove(path)


def refresh_texts(old: Series, series: Series) -> None:
    """The diffstats in the cover letters, and the links to patches in Markdown files: to those
    whose slug is no other's, nor was, and whose topic is still there."""
    commits = ["base", *git_text(LINUX, "rev-list", "--reverse", "base..series").split()]
    done = 0
    for topic in series.topics:
        head, _, tail = series_file.split_cover(series.cover(topic.name))
        stat = diffstat(LINUX, commits[done], commits[done + len(topic.patches)])
        write(series.cover(topic.name),
              File(False, (head + STAT_BEGIN + stat + STAT_END + tail).encode()))
        done += len(topic.patches)
    places: dict[str, list[str]] = {}
    for name in series.patches():
        places.setdefault(slug(name), []).append(name)
    were = Counter(map(slug, old.patches()))

    def moved(match: re.Match[str]) -> str:
        known, topic = places.get(slug(match[3]), []), match[3].partition("/")[0][3:]
        if match[3] in known or len(known) != 1 or were[slug(match[3])] > 1 \
                or topic not in series.names():
            return match[0]
        topic, _, patch = known[0].partition("/")
        return f"[{topic[:2]}/{patch[:4]}]({match[2]}{known[0]})"

    for path in [*TOP.glob("*.md"), *PATCHES.rglob("*.md")]:
        write(path, File(False, PATCH_LINK.sub(moved, path.read_text(encoding="utf-8")).encode()))


def main() -> int:
    """Exit status: 0 refreshed (ToolError: it cannot be, and nothing was written)."""
    old = series_file.read() if (TOP / "series").exists() else Series(())
    check()
    with tempfile.TemporaryDirectory() as folder:
        listed = git_text(
            LINUX, "format-patch", "-o", folder, "--zero-commit", "--no-signature",
            "--full-index", "--no-numbered", "--no-renames", "--no-thread", "base..series")
        patches = [Path(line) for line in listed.splitlines()]
        new = new_series(old, patches)
        refresh_patches(old, new, patches)
    refresh_mirrors()
    refresh_texts(old, new)
    tree.note()
    return 0

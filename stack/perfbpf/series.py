# SPDX-License-Identifier: GPL-2.0
"""The file `series`: the topics, what each needs, and the order of their patches.

quilt reads the file names and takes the rest for comments. CONTRIBUTING.md has the fields of a
block. The number of a topic's directory is its place in the file; patches are numbered from 1 in
each topic, beside its cover letter, cover.txt.

A patch is known by its slug, its file name without the number: numbers change as patches come
and go. `make refresh` also accepts a bare slug, or a name in another topic's directory.
"""
from __future__ import annotations

import hashlib
import re
from pathlib import Path
from typing import NamedTuple

from perfbpf.git import ToolError
from perfbpf.paths import TOP

HEAD = """\
# SPDX-License-Identifier: GPL-2.0
# The order of the patches in patches/, for quilt, by topic; CONTRIBUTING.md
# explains the fields. `make refresh` writes the file names and keeps the fields;
# a new patch joins the topic of the patch before it.
"""
FIELDS = ("topic", "needs", "upstream", "state")
# git format-patch cuts a file name off there: 64, less the number and ".patch".
SLUG_LENGTH = 52
PATCHES = TOP / "patches"
COVER = "cover.txt"
STAT_BEGIN = "--- diffstat, written by `make refresh`\n"
STAT_END = "--- end of diffstat\n"


class Topic(NamedTuple):
    """A block of `series`. `patches` are the names as they are in the file."""
    name: str
    needs: tuple[str, ...]
    upstream: str
    state: str
    patches: tuple[str, ...]

    def text(self) -> str:
        """The block."""
        return (f"\n# topic: {self.name}\n# needs: {', '.join(self.needs) or 'none'}\n"
                f"# upstream: {self.upstream}\n# state: {self.state}\n"
                + "".join(f"{patch}\n" for patch in self.patches))


class Series(NamedTuple):
    """The whole file, in order."""
    topics: tuple[Topic, ...]

    def names(self) -> tuple[str, ...]:
        """The topics' names, in order."""
        return tuple(topic.name for topic in self.topics)

    def patches(self) -> list[str]:
        """Every patch as its path below patches/, in order."""
        return [patch for topic in self.topics for patch in topic.patches]

    def paths(self) -> list[Path]:
        """The file of each patch (ToolError: one is missing)."""
        for name in self.patches():
            if not (PATCHES / name).is_file():
                raise ToolError(f"series names {name}, which is not in patches/: restore it"
                                " (`git checkout patches`), or take the line out")
        return [PATCHES / name for name in self.patches()]

    def topic(self, name: str) -> Topic:
        """A topic by its name (ToolError: there is none)."""
        for topic in self.topics:
            if topic.name == name:
                return topic
        raise ToolError(f"series has no topic \"{name}\": it has {', '.join(self.names())}")

    def directory(self, name: str) -> str:
        """The directory of a topic below patches/, as 07-ksymbol."""
        return f"{self.names().index(name) + 1:02}-{name}"

    def cover(self, name: str) -> Path:
        """A topic's cover letter."""
        return PATCHES / self.directory(name) / COVER

    def closure(self, name: str) -> list[str]:
        """All topics that a topic needs, directly or not, in order."""
        wanted = set(self.topic(name).needs)
        for topic in reversed(self.topics):     # a topic needs only earlier ones
            if topic.name in wanted:
                wanted.update(topic.needs)
        return [topic.name for topic in self.topics if topic.name in wanted]

    def numbered(self) -> Series:
        """The same with each patch named by its place."""
        return Series(tuple(topic._replace(patches=tuple(
            f"{self.directory(topic.name)}/{number:04}-{slug(patch)}.patch"
            for number, patch in enumerate(topic.patches, 1))) for topic in self.topics))

    def text(self) -> str:
        """The file."""
        return HEAD + "".join(topic.text() for topic in self.topics)

    def sha(self) -> str:
        """One number for the bytes of all patches, in order. Their names are left out: a topic
        that gets another number makes no other tree."""
        return hashlib.sha256("\n".join(map(content, self.paths())).encode()).hexdigest()


def content(patch: Path) -> str:
    """One number for the bytes of a patch."""
    return hashlib.sha256(patch.read_bytes()).hexdigest()


def slug(name: str) -> str:
    """A patch's name without directory, number and suffix."""
    return re.sub(r"^\d{4}-|\.patch$", "", name.rpartition("/")[2])[:SLUG_LENGTH]


def parse_block(number: int, lines: list[str], before: list[Topic]) -> Topic:
    """Read a topic, whose first line has this number (ToolError: what is wrong with it)."""
    fields = dict(re.findall(r"^# ([a-z]+): *(.+)$", "\n".join(lines), re.MULTILINE))
    comments = [line for line in lines if line.startswith("#")]
    where = f"series:{number}: topic {fields.get('topic', '')}"
    if tuple(fields) != FIELDS or len(comments) != len(FIELDS):
        raise ToolError(f"{where} must have the lines # {':, # '.join(FIELDS)}: and no other"
                        " comment, which `make refresh` would lose")
    needs = [] if fields["needs"] == "none" else re.split(" *, *", fields["needs"])
    names = [topic.name for topic in before]
    for need in needs:
        if need not in names:
            raise ToolError(f"{where} needs {need}, which is no earlier topic: use some of"
                            f" {', '.join(names)}, or none, or move blocks and commits")
    if fields["topic"] in names or not re.fullmatch("[a-z0-9][a-z0-9-]*", fields["topic"]):
        raise ToolError(f"{where}: the name is there twice, or has more than a-z, 0-9 and -")
    patches = tuple(line.strip() for line in lines if line.strip() and line not in comments)
    for patch in patches:
        if len(patch.split()) > 1:
            raise ToolError(f"{where}: \"{patch}\" is more than a file name")
    return Topic(fields["topic"], tuple(needs), fields["upstream"], fields["state"], patches)


def parse(text: str) -> Series:
    """Read the text of `series` (ToolError: the first thing that is wrong)."""
    topics: list[Topic] = []
    lines = text.splitlines()
    starts = [number for number, line in enumerate(lines) if line.startswith("# topic:")]
    if [line for line in lines[:starts[0] if starts else None] if line.strip() and line[0] != "#"]:
        raise ToolError("series: a patch stands before the first \"# topic: NAME\"")
    for start, end in zip(starts, [*starts[1:], len(lines)]):
        topics.append(parse_block(start + 1, lines[start:end], topics))
    return Series(tuple(topics))


def read() -> Series:
    """Read the repository's `series` (ToolError: it cannot be parsed)."""
    return parse((TOP / "series").read_text(encoding="utf-8"))


def split_cover(path: Path) -> tuple[str, str, str]:
    """What a cover letter has before, in and after its diffstat (ToolError: it has none)."""
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    head, begin, rest = text.partition(STAT_BEGIN)
    stat, end, tail = rest.partition(STAT_END)
    if not re.match(r"From: .+ <.+@.+>\nSubject: \[PATCH\] \S.*\n\n\S", head) or not end:
        raise ToolError(f"patches/{path.parent.name}/{path.name}: write \"From: NAME <EMAIL>\","
                        " \"Subject: [PATCH] ...\", an empty line, the text, and the two lines"
                        f" \"{STAT_BEGIN.strip()}\" and \"{STAT_END.strip()}\"")
    return head, begin and stat, tail

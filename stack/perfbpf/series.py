# SPDX-License-Identifier: GPL-2.0
"""The file `series`: the topics, what each needs, and the order of their patches.

quilt reads the file names and takes the rest for comments. A topic is a block:

    # topic: ksymbol
    # needs: bpf-symbols, perf-core      names of earlier topics, or "none"
    # upstream: tip perf/core            the tree that it is for
    # state: not sent                    free text
    07-ksymbol/0001-kallsyms-Add-a-registry.patch
    ...

The directory's number is the topic's place in the file; patches are numbered
from 1 in each topic. Beside them is the topic's cover letter, cover.txt.

A patch is known by its slug, which is its file name without the number: numbers
change as patches come and go. `make refresh` also accepts a bare slug, or a
name in a directory that is not the block's, and writes the right name.
"""
from __future__ import annotations

import hashlib
import re
from pathlib import Path
from typing import Iterable, Iterator, NamedTuple

from perfbpf.git import ToolError

HEAD = """\
# SPDX-License-Identifier: GPL-2.0
# The order of the patches in patches/, for quilt, by topic; CONTRIBUTING.md
# explains the fields. `make refresh` writes the file names and keeps the fields;
# a new patch joins the topic of the patch before it.
"""
FIELDS = ("needs", "upstream", "state")
FIELD = re.compile(r"# ([a-z]+): *(.*)$")
TOPIC_NAME = re.compile(r"[a-z0-9][a-z0-9-]*")
# git format-patch cuts a file name off there: 64, less the number and ".patch".
SLUG_LENGTH = 52
COVER = "cover.txt"
README = "README.md"


class Topic(NamedTuple):
    """A block of `series`. `patches` are the names as they are in the file."""
    name: str
    needs: tuple[str, ...]
    upstream: str
    state: str
    patches: tuple[str, ...] = ()
    line: int = 0               # of its "# topic:" in the file


class Series(NamedTuple):
    """The whole file, in order."""
    topics: tuple[Topic, ...]

    def names(self) -> tuple[str, ...]:
        """Return the topics' names, in order."""
        return tuple(topic.name for topic in self.topics)

    def patches(self) -> list[str]:
        """Return every patch as its path below patches/, in order."""
        return [patch for topic in self.topics for patch in topic.patches]

    def topic(self, name: str) -> Topic:
        """Return a topic by its name. Raises ToolError, listing the names, without one."""
        for topic in self.topics:
            if topic.name == name:
                return topic
        names = ", ".join(topic.name for topic in self.topics) or "none yet"
        raise ToolError(f"series has no topic \"{name}\": it has {names}")

    def directory(self, name: str) -> str:
        """Return the directory of a topic below patches/, as 07-ksymbol."""
        for number, topic in enumerate(self.topics, 1):
            if topic.name == name:
                return f"{number:02}-{name}"
        raise ToolError(f"series has no topic \"{name}\"")

    def closure(self, name: str) -> list[str]:
        """Return all topics that a topic needs, directly or not, in order."""
        wanted = set(self.topic(name).needs)
        # A topic needs only earlier ones, so one pass backwards finds them all.
        for topic in reversed(self.topics):
            if topic.name in wanted:
                wanted.update(topic.needs)
        return [topic.name for topic in self.topics if topic.name in wanted]

    def expected(self, topic: Topic) -> list[str]:
        """Return the path below patches/ that each patch of a topic must have."""
        directory = self.directory(topic.name)
        return [f"{directory}/{number:04}-{slug(patch)}.patch"
                for number, patch in enumerate(topic.patches, 1)]


def slug(name: str) -> str:
    """Return a patch's name without directory, number and suffix."""
    return re.sub(r"^\d{4}-|\.patch$", "", name.rpartition("/")[2])[:SLUG_LENGTH]


class _Block:
    """A topic while it is read."""

    def __init__(self, name: str, line: int) -> None:
        self.name = name
        self.line = line
        self.fields: dict[str, str] = {}
        self.patches: list[str] = []

    def topic(self) -> Topic:
        """Return the finished topic. Raises ToolError when a field is missing."""
        for field in FIELDS:
            if not self.fields.get(field):
                raise ToolError(f"series:{self.line}: topic {self.name} has no \"# {field}:\":"
                                f" add that line below it ({_MEANING[field]})")
        needs = self.fields["needs"]
        names = [] if needs == "none" else [need.strip() for need in needs.split(",")]
        return Topic(self.name, tuple(names), self.fields["upstream"], self.fields["state"],
                     tuple(self.patches), self.line)


_MEANING = {"needs": "names of earlier topics, separated by commas, or none",
            "upstream": "the tree that it is for, as bpf-next",
            "state": "what upstream knows of it, as not sent"}


def parse(text: str) -> Series:
    """Read the text of `series`. Raises ToolError with the first line that is wrong."""
    blocks: list[_Block] = []
    for number, line in enumerate(text.splitlines(), 1):
        line = line.rstrip()
        field = FIELD.match(line)
        if field and field[1] == "topic":
            blocks.append(_new_block(field[2], number, blocks))
        elif line.startswith("#") and blocks:
            _add_field(blocks[-1], line, number, field)
        elif line and not line.startswith("#"):
            _add_patch(blocks, line.strip(), number)
    return Series(tuple(block.topic() for block in blocks))


def _new_block(name: str, number: int, blocks: Iterable[_Block]) -> _Block:
    if not TOPIC_NAME.fullmatch(name):
        raise ToolError(f"series:{number}: \"{name}\" is no name for a topic: use lower-case"
                        " letters, digits and -")
    for block in blocks:
        if block.name == name:
            raise ToolError(f"series:{number}: the topic {name} begins again, its first block is"
                            f" at line {block.line}: put its patches into one block")
    return _Block(name, number)


def _add_field(block: _Block, line: str, number: int, field: re.Match[str] | None) -> None:
    if not field or field[1] not in FIELDS:
        raise ToolError(f"series:{number}: \"{line}\" is no field of a topic, and `make refresh`"
                        f" would lose it: use {', '.join(FIELDS)}, or put it into {COVER}")
    if field[1] in block.fields:
        raise ToolError(f"series:{number}: topic {block.name} has \"# {field[1]}:\" twice:"
                        " take one out")
    block.fields[field[1]] = field[2].strip()


def _add_patch(blocks: list[_Block], name: str, number: int) -> None:
    if not blocks:
        raise ToolError(f"series:{number}: {name} is in no topic: put it below a line"
                        " \"# topic: NAME\" with its \"# needs:\", \"# upstream:\" and"
                        " \"# state:\"")
    if len(name.split()) > 1:
        raise ToolError(f"series:{number}: \"{name}\" is more than a file name: the patches take"
                        " no options of quilt's, and comments have lines of their own")
    blocks[-1].patches.append(name)


def needs_problems(series: Series) -> Iterator[str]:
    """Yield what is wrong with the needs of the topics, one line each."""
    place = {topic.name: number for number, topic in enumerate(series.topics)}
    needs = {topic.name: topic.needs for topic in series.topics}
    for topic in series.topics:
        for need in topic.needs:
            where = f"series:{topic.line}: topic {topic.name} needs {need}"
            if need not in place:
                yield f"{where}, which is no topic: use one of" \
                      f" {', '.join(place)}, or none"
            elif place[need] < place[topic.name]:
                continue
            elif topic.name in _reachable(need, needs):
                yield f"{where}, which needs {topic.name} in turn: break the cycle, for example" \
                      " by moving what both use into a topic before them"
            else:
                yield f"{where}, which comes later: move the block of {need}, and its commits in" \
                      f" build/linux, before {topic.name}"


def _reachable(name: str, needs: dict[str, tuple[str, ...]]) -> set[str]:
    """Return the topic and all that it needs, whatever their order."""
    found: set[str] = set()
    left = [name]
    while left:
        one = left.pop()
        if one not in found:
            found.add(one)
            left.extend(needs.get(one, ()))
    return found


def read(top: Path) -> Series:
    """Read a repository's `series`; no file is an empty one.

    Raises ToolError when it cannot be parsed, or the needs are not right.
    """
    path = top / "series"
    series = parse(path.read_text(encoding="utf-8") if path.exists() else "")
    for problem in needs_problems(series):
        raise ToolError(problem)
    return series


def text_of(series: Series) -> str:
    """Return the text of the file `series`."""
    text = HEAD
    for topic in series.topics:
        text += (f"\n# topic: {topic.name}\n# needs: {', '.join(topic.needs) or 'none'}\n"
                 f"# upstream: {topic.upstream}\n# state: {topic.state}\n")
        text += "".join(f"{patch}\n" for patch in topic.patches)
    return text


def patch_paths(top: Path, series: Series) -> list[Path]:
    """Return the file of each patch. Raises ToolError when one is missing."""
    paths = [top / "patches" / name for name in series.patches()]
    for path in paths:
        if not path.is_file():
            raise ToolError(f"series names {path.relative_to(top / 'patches')}, which is not in"
                            " patches/: restore it (`git checkout patches`), or take the line out")
    return paths


def content_id(path: Path) -> str:
    """Return the number of a patch's bytes."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def sha(top: Path) -> str:
    """Return one number for the bytes of all patches, in order.

    Their names are left out: a topic that gets another number, or a patch that
    joins another topic, makes no other tree.
    """
    ids = [content_id(path) for path in patch_paths(top, read(top))]
    return hashlib.sha256("\n".join(ids).encode()).hexdigest()


class Cover(NamedTuple):
    """A topic's cover letter, without the diffstat."""
    sender: str
    subject: str        # without [PATCH]
    body: str


STAT_BEGIN = "--- diffstat, written by `make refresh`\n"
STAT_END = "--- end of diffstat\n"
_COVER = re.compile(r"From: (?P<sender>.+ <.+@.+>)\nSubject: \[PATCH\] (?P<subject>\S.*)\n\n"
                    r"(?P<body>\S[^\0]*)")


def split_cover(path: Path) -> tuple[str, str, str]:
    """Return what a cover letter has before, in and after its diffstat block.

    Raises ToolError when the file or the block is missing.
    """
    name = f"patches/{path.parent.name}/{path.name}"
    if not path.is_file():
        raise ToolError(f"{name} is missing: write the topic's cover letter, with \"From: NAME"
                        " <EMAIL>\", \"Subject: [PATCH] ...\", an empty line, the text, and the two"
                        f" lines \"{STAT_BEGIN.strip()}\" and \"{STAT_END.strip()}\"")
    head, begin, rest = path.read_text(encoding="utf-8").partition(STAT_BEGIN)
    stat, end, tail = rest.partition(STAT_END)
    if not begin or not end:
        raise ToolError(f"{name} has no diffstat block: put the lines \"{STAT_BEGIN.strip()}\" and"
                        f" \"{STAT_END.strip()}\" where it belongs")
    return head, stat, tail


def read_cover(path: Path) -> Cover:
    """Read a topic's cover letter. Raises ToolError when it is not as it must be."""
    head, _, tail = split_cover(path)
    match = _COVER.match(head + tail)
    if not match:
        raise ToolError(f"patches/{path.parent.name}/{path.name} does not begin with"
                        " \"From: NAME <EMAIL>\", \"Subject: [PATCH] ...\", an empty line"
                        " and the text: write them")
    return Cover(match["sender"], match["subject"], match["body"].strip() + "\n")

# SPDX-License-Identifier: GPL-2.0
"""The plan of a guest session, read by the guest and by the host."""

import pathlib
from typing import List, NamedTuple

KINDS = ("kselftest", "perf-shell", "kunit", "script")
WORDS = ("both", "perf", "debug")


class Entry(NamedTuple):
    """One planned test: its kind, its path, whether it is meant to pass on the
    unpatched base too, whether it is of perf alone, and whether it is for the debug
    kernel alone."""
    kind: str
    path: str
    both: bool
    perf: bool = False
    debug: bool = False

    @property
    def name(self) -> str:
        """The test's name in KTAP and in pytest."""
        return f"{self.kind}:{self.path}"


def parse_line(line: str, where: str) -> Entry:
    """One line of a plan; raises ValueError that says what is wrong."""
    kind, *rest = line.split()
    words = rest[1:]
    if (kind not in KINDS or not rest or len(set(words)) < len(words)
            or not set(words) <= set(WORDS)):
        raise ValueError(f"{where}: {line.strip()!r} is no entry of a plan; "
                         f"write `{'|'.join(KINDS)} PATH [{'] ['.join(WORDS)}]`")
    return Entry(kind, rest[0], *(word in words for word in WORDS))


def read_plan(path: pathlib.Path, debug: bool = False) -> List[Entry]:
    """The entries of a plan in order, for the debug kernel without those of perf
    alone, and for others without those for it; raises ValueError for a line that is no
    entry, for an entry that occurs twice, and for a plan without any."""
    entries: List[Entry] = []
    for number, line in enumerate(path.read_text().splitlines(), 1):
        line = line.split("#")[0]
        if not line.strip():
            continue
        entry = parse_line(line, f"{path}:{number}")
        if entry.name in (other.name for other in entries):
            raise ValueError(f"{path}:{number}: {entry.name} is there twice")
        entries.append(entry)
    if not entries:
        raise ValueError(f"{path}: an empty plan tests nothing")
    return [entry for entry in entries if not (entry.perf if debug else entry.debug)]

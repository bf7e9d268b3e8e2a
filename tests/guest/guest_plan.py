# SPDX-License-Identifier: GPL-2.0
"""The plan of a guest session, read by the guest and by the host."""

import pathlib
from typing import List, NamedTuple

KINDS = ("kselftest", "perf-shell")


class Entry(NamedTuple):
    """One planned test: its kind, its path, and whether it is meant to pass
    on the unpatched base too."""
    kind: str
    path: str
    both: bool

    @property
    def name(self) -> str:
        """The test's name in KTAP and in pytest."""
        return f"{self.kind}:{self.path}"


def parse_line(line: str, where: str) -> Entry:
    """One line of a plan; raises ValueError that says what is wrong."""
    words = line.split()
    if (len(words) not in (2, 3) or words[0] not in KINDS
            or words[2:] not in ([], ["both"])):
        raise ValueError(f"{where}: {line.strip()!r} is no entry of a plan; "
                         f"write `{'|'.join(KINDS)} PATH [both]`")
    return Entry(words[0], words[1], len(words) == 3)


def read_plan(path: pathlib.Path) -> List[Entry]:
    """The entries of a plan in order; raises ValueError for a line that is
    no entry, for an entry that occurs twice, and for a plan without any."""
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
    return entries

# SPDX-License-Identifier: GPL-2.0
"""The plan of a guest session, read by the guest and by the host."""
from __future__ import annotations

from pathlib import Path
from typing import Collection, NamedTuple

KINDS = ("kselftest", "perf-shell", "ftrace", "kunit", "script")
WORDS = ("both", "perf", "debug", "beside")


class Entry(NamedTuple):
    """One planned test."""
    kind: str
    path: str
    both: bool              # passes on the unpatched base too
    perf: bool = False      # tests perf alone: not run on the debug kernel
    debug: bool = False     # run on the debug kernel only
    beside: bool = False    # run at the same time as the entry before it

    @property
    def name(self) -> str:
        """The test's name in KTAP and in pytest."""
        return f"{self.kind}:{self.path}"


def parse_line(line: str, where: str) -> Entry:
    """Parse one line of a plan (ValueError: it is no entry)."""
    kind, *rest = line.split()
    words = rest[1:]
    if (kind not in KINDS or not rest or len(set(words)) < len(words)
            or not set(words) <= set(WORDS)):
        raise ValueError(f"{where}: {line.strip()!r} is no entry of a plan; "
                         f"write `{'|'.join(KINDS)} PATH [{'] ['.join(WORDS)}]`")
    return Entry(kind, rest[0], *(word in words for word in WORDS))


def may_run_beside(first: Entry, second: Entry) -> bool:
    """Are both programs, and run on the same kernels?"""
    return ("kunit" not in (first.kind, second.kind)
            and (first.perf, first.debug) == (second.perf, second.debug))


def slots(entries: list[Entry]) -> list[list[Entry]]:
    """Return the entries in lists of those that run at the same time."""
    found: list[list[Entry]] = []
    for entry in entries:
        if entry.beside:
            found[-1].append(entry)
        else:
            found.append([entry])
    return found


def select(entries: list[Entry], names: Collection[str]) -> list[Entry]:
    """Return the entries of these names, in order. One that runs beside an entry which is
    not among them runs alone."""
    chosen: list[Entry] = []
    for before, entry in zip([None, *entries], entries):
        if entry.name in names:
            alone = not chosen or before is None or before.name != chosen[-1].name
            chosen.append(entry._replace(beside=entry.beside and not alone))
    return chosen


def read_plan(path: Path, debug: bool = False) -> list[Entry]:
    """Return the entries of a plan in order: for the debug kernel all that do not test
    perf alone, for other kernels all that are not for the debug kernel.

    Raises ValueError for a line that is no entry, an entry that occurs twice, an entry
    beside one that is not always run when it is, and a plan without entries.
    """
    entries: list[Entry] = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        line = line.split("#")[0]
        if not line.strip():
            continue
        entry = parse_line(line, f"{path}:{number}")
        if entry.name in (other.name for other in entries):
            raise ValueError(f"{path}:{number}: {entry.name} is there twice")
        if entry.beside and not (entries and may_run_beside(entries[-1], entry)):
            raise ValueError(f"{path}:{number}: {entry.name} runs beside the entry before it,"
                             " which must be a program of the same kernels")
        entries.append(entry)
    if not entries:
        raise ValueError(f"{path}: an empty plan tests nothing")
    return [entry for entry in entries if not (entry.perf if debug else entry.debug)]

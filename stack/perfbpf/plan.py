# SPDX-License-Identifier: GPL-2.0
"""The plan of a guest session, tests/guest/plan, read by the guest and by the host."""
from __future__ import annotations

from pathlib import Path
from typing import Collection, NamedTuple

from perfbpf.git import ToolError

KINDS = ("kselftest", "perf-shell", "ftrace", "kunit", "script")
WORDS = ("both", "perf", "debug", "machine")


class Entry(NamedTuple):
    """One planned test."""
    kind: str
    path: str
    both: bool = False      # passes on the unpatched base too
    perf: bool = False      # tests perf alone: not run on the debug kernel
    debug: bool = False     # run on the debug kernel only
    machine: bool = False   # tests perf alone, and on any kernel: run on this machine's if it can

    @property
    def name(self) -> str:
        """The test's name in KTAP and in pytest."""
        return f"{self.kind}:{self.path}"


def read_plan(path: Path, debug: bool = False, only: Collection[str] | None = None
              ) -> list[Entry]:
    """The entries of a plan in order, or those of these names: for the debug kernel all that do
    not test perf alone, for other kernels all that are not for the debug kernel.

    Raises ToolError for a line that is no entry, and an entry that occurs twice.
    """
    entries: list[Entry] = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        kind, *rest = line.split("#")[0].split() or [""]
        if not kind:
            continue
        if kind not in KINDS or not rest or not set(rest[1:]) <= set(WORDS):
            raise ToolError(f"{path}:{number}: {line!r} is no entry of a plan; write"
                             f" `{'|'.join(KINDS)} PATH [{'] ['.join(WORDS)}]`")
        entry = Entry(kind, rest[0], *(word in rest[1:] for word in WORDS))
        if entry.name in (other.name for other in entries):
            raise ToolError(f"{path}:{number}: {entry.name} is there twice")
        entries.append(entry)
    return [entry for entry in entries
            if not (entry.perf or entry.machine if debug else entry.debug)
            and (only is None or entry.name in only)]

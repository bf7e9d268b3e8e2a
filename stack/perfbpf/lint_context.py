# SPDX-License-Identifier: GPL-2.0
"""What the checks of `make lint` have in common."""
from __future__ import annotations

from pathlib import Path
from typing import Callable, Iterator, NamedTuple

from perfbpf.git import ToolError, git
from perfbpf.reduced import Reduced, Stacks
from perfbpf.series import Series

Findings = Iterator[str]


class Context(NamedTuple):
    """What the checks work on."""
    top: Path
    base: Path          # build/base: a whole kernel tree, with git
    cache: Path         # build/lint: findings by content
    tmp: Path
    series: Series
    patches: list[Path]         # those of `series` that exist, in order
    touched: dict[Path, list[str]]
    reduced: Reduced
    stacks: Stacks

    def own_files(self) -> list[Path]:
        """Return every file of the repository that is not ignored, mirrors included."""
        try:
            names = git(self.top, "ls-files", "-z", "-c", "-o", "--exclude-standard").decode()
            return [self.top / name for name in names.split("\0")
                    if name and (self.top / name).is_file()]
        except ToolError:
            left_out = {".git", "build", "__pycache__", ".pytest_cache"}
            return [path for path in self.top.rglob("*") if path.is_file()
                    and not left_out & set(path.relative_to(self.top).parts)]

    def name(self, patch: Path) -> str:
        """Return a patch's path in the repository."""
        return str(patch.relative_to(self.top))


Check = Callable[[Context], Findings]

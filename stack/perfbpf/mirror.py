# SPDX-License-Identifier: GPL-2.0
"""The mirrors: the full text of every file that the series creates.

They stand at their paths in the kernel tree, for readers of this repository.
Each directory at the top has a README.md, which says that it is generated.
"""
from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from perfbpf.git import git

SELFTESTS = "tools/testing/selftests/"
# Directories at the top that hold no kernel files.
OWN_DIRS = {".ci", ".git", ".github", "bench", "build", "patches", "stack", "tests"}
NOTE = """\
<!-- SPDX-License-Identifier: GPL-2.0 -->

# Generated: do not edit

This directory holds, for reading and searching, every file that the patches in
[`patches/`](../patches) create below `{kernel}` of the kernel tree. Files that
they only change are not here.

`make refresh` writes it from the commits in `build/linux`, and `make lint`
fails when it differs from what the patches create. To change a file, change
the commit that creates it; [`CONTRIBUTING.md`](../CONTRIBUTING.md) describes how.
"""


class Blob(NamedTuple):
    """A file as the series creates it."""
    executable: bool
    data: bytes


def mirror_path(path: str) -> str:
    """Return where this repository keeps the full text of a file the series creates."""
    return "selftests/" + path[len(SELFTESTS):] if path.startswith(SELFTESTS) else path


def created(repo: Path, old: str, new: str) -> dict[str, Blob]:
    """Return, by mirror path, each file that is in `new` and not in `old`."""
    raw = git(repo, "diff-tree", "-r", "-z", "--no-renames", "--diff-filter=A", old, new)
    fields = raw.decode().split("\0")
    files = {}
    for meta, path in zip(fields[0::2], fields[1::2]):
        _, mode, _, blob, _ = meta.split(" ")
        files[mirror_path(path)] = Blob(mode == "100755", git(repo, "cat-file", "blob", blob))
    return files


def expected(repo: Path, old: str, new: str) -> dict[str, Blob]:
    """Return the mirrors: the created files, and the note in each directory at the top."""
    files = created(repo, old, new)
    for directory in directories(files):
        kernel = SELFTESTS if directory == "selftests" else f"{directory}/"
        files.setdefault(f"{directory}/README.md", Blob(False, NOTE.format(kernel=kernel).encode()))
    return files


def directories(files: dict[str, Blob]) -> list[str]:
    """Return the directories at the top that hold these files."""
    return sorted({name.split("/")[0] for name in files})


def mirror_files(top: Path) -> set[str]:
    """Return every file under the kernel's directories in this repository."""
    found = set()
    for directory in top.iterdir():
        if not directory.is_dir() or directory.name in OWN_DIRS or directory.name[0] == ".":
            continue
        for path in directory.rglob("*"):
            if "__pycache__" not in path.parts and not path.is_dir():
                found.add(str(path.relative_to(top)))
    return found


def is_mirror(top: Path, path: Path) -> bool:
    """Tell whether a path of this repository is at a kernel path."""
    parts = path.relative_to(top).parts
    return len(parts) > 1 and parts[0] not in OWN_DIRS and parts[0][0] != "."

# SPDX-License-Identifier: GPL-2.0
"""With which patches did `make check-debug` pass last?

It takes three quarters of an hour and so is no part of `make check`. When it has
passed, a hash of the patches to the kernel's code is written to the repository, to be
committed, and `make lint` says when they are others.
"""
from __future__ import annotations

import hashlib
import time
from pathlib import Path

from perfbpf import series as series_file
from perfbpf.reduced import touched

STAMP = "tests/full/debug.passed"
CODE = (".c", ".h", ".S")
NOT_KERNEL = ("tools/", "samples/")


def kernel_code(top: Path) -> str:
    """Return one number for all patches to the kernel's code. Raises ToolError."""
    digest = hashlib.sha256()
    for path in series_file.patch_paths(top, series_file.read(top)):
        if any(name.endswith(CODE) and not name.startswith(NOT_KERNEL) for name in touched(path)):
            # without the mail's text
            digest.update(path.read_bytes().partition(b"\ndiff --git ")[2])
    return digest.hexdigest()


def write(top: Path) -> None:
    """Note that it has passed now."""
    (top / STAMP).write_text(
        "# SPDX-License-Identifier: GPL-2.0\n"
        "# A hash of the patches to the kernel's code with which `make check-debug` passed last\n"
        "# (stack/perfbpf/debug_stamp.py), and the day.\n"
        f"{kernel_code(top)} {time.strftime('%Y-%m-%d')}\n", encoding="utf-8")


def outdated(top: Path) -> str:
    """Return "", or a line that says that the patches are not those of the stamp."""
    stamp = top / STAMP
    words = stamp.read_text(encoding="utf-8").split()[-2:] if stamp.exists() else ["", ""]
    if words[0] == kernel_code(top):
        return ""
    when = f"passed last on {words[1]}, with other patches" if words[0] else "never passed"
    return f"{STAMP}: `make check-debug` {when}: run it before patches to the kernel are sent"

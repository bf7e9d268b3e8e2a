# SPDX-License-Identifier: GPL-2.0
"""With which patches to the kernel's code did `make check-debug` pass last? It takes too long for
`make check`, so it writes a hash of them to the repository, and `make lint` tells of others."""
from __future__ import annotations

import hashlib
import time

from perfbpf import series
from perfbpf.git import touched
from perfbpf.paths import TOP

STAMP = TOP / "tests/full/debug.passed"


def kernel_code() -> str:
    """One number for all patches to the kernel's code, without their mails' texts."""
    digest = hashlib.sha256()
    for path in series.read().paths():
        if any(name.endswith((".c", ".h", ".S")) and not name.startswith(("tools/", "samples/"))
               for name in touched(path)):
            digest.update(path.read_bytes().partition(b"\ndiff --git ")[2])
    return digest.hexdigest()


def write(code: str) -> None:
    """Note that it has passed now, with what kernel_code() was when it began."""
    STAMP.write_text("# SPDX-License-Identifier: GPL-2.0\n# See stack/perfbpf/debug_stamp.py.\n"
                     f"{code} {time.strftime('%Y-%m-%d')}\n", encoding="utf-8")


def outdated() -> str:
    """"", or a line that says that the patches are not those of the stamp."""
    number, day = STAMP.read_text(encoding="utf-8").split()[-2:]
    return "" if number == kernel_code() else \
        f"{STAMP.relative_to(TOP)}: `make check-debug` passed last on {day}, with other patches:" \
        " run it before patches to the kernel are sent"

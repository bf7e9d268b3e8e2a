# SPDX-License-Identifier: GPL-2.0
"""Where everything is: the repository, the build directory, each output.

The outputs are listed once, in stack/outputs, and the features that perf must
have in stack/perf-features, because shell scripts read both as well (lib.sh).
"""
from __future__ import annotations

import os
from pathlib import Path
from typing import Iterator, NamedTuple

TOP = Path(__file__).resolve().parent.parent.parent


def build_dir(top: Path = TOP) -> Path:
    """Return the build directory of a repository; PERF_BPF_BUILD overrides it."""
    return Path(os.environ.get("PERF_BPF_BUILD") or top / "build").absolute()


BUILD = build_dir()
BASE = BUILD / "base"       # the kernel tree without the series; tag `base`
LINUX = BUILD / "linux"     # the work tree; branch `series`


class Output(NamedTuple):
    """A line of stack/outputs."""
    kind: str
    name: str
    path: Path          # the directory, under build/
    command: str        # what builds it

    @property
    def image(self) -> Path:
        """The bootable image of a kernel or of Debian's kernel package."""
        return self.path / ("boot/vmlinuz" if self.kind == "package" else "arch/x86/boot/bzImage")


def table(path: Path) -> Iterator[str]:
    """Yield the lines of a list that are neither empty nor a comment."""
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.strip() and not line.startswith("#"):
            yield line


def read_outputs(top: Path = TOP) -> list[Output]:
    """Read stack/outputs."""
    outputs = []
    for line in table(top / "stack" / "outputs"):
        kind, name, directory, command = line.split(None, 3)
        outputs.append(Output(kind, name, build_dir(top) / directory, command))
    return outputs


OUTPUTS = read_outputs()
# By the name that `stack/guest --kernel` takes, Debian's among them.
KERNELS = {out.name: out for out in OUTPUTS if out.kind in ("kernel", "package")}
PERFS = {out.name: out for out in OUTPUTS if out.kind == "perf"}
TESTS = {out.name: out for out in OUTPUTS if out.kind == "tests"}
MAINLINE = {out.name: out for out in OUTPUTS if out.kind == "mainline"}
PERF_FEATURES = list(table(TOP / "stack" / "perf-features"))

# SPDX-License-Identifier: GPL-2.0
"""Where everything is: the repository, the build directory, and the table of what is built."""
from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

TOP = Path(__file__).resolve().parent.parent.parent
# Another build directory is for another disk, and for the stack's own tests.
BUILD = Path(os.environ.get("PERF_BPF_BUILD") or TOP / "build").absolute()
BASE = BUILD / "base"       # the kernel tree without the series; tag `base`
LINUX = BUILD / "linux"     # the work tree; branch `series`
PYTHON = "/usr/bin/python3"     # the one that has the distribution's modules


class Output(NamedTuple):
    """Something that is built."""
    name: str
    path: Path          # the directory, under build/
    command: str        # what builds it
    kind: str = ""

    @property
    def image(self) -> Path:
        """The bootable image of a kernel or of Debian's kernel package."""
        return self.path / ("boot/vmlinuz" if self.kind == "package" else "arch/x86/boot/bzImage")


def table(*rows: tuple[str, str, str], kind: str = "") -> dict[str, Output]:
    """Outputs by their names."""
    return {name: Output(name, BUILD / folder, command, kind) for name, folder, command in rows}


# By the name that `stack/guest --kernel` takes. A kernel is an output directory of kbuild, a
# package an unpacked Debian package.
KERNELS = {
    **table(("series", "out-kernel", "make kernel"),
            ("debug", "out-debug", "make debug-kernel"),
            ("base", "out-base", "make base-kernel"),
            ("mainline", "out-mainline-series", "stack/build kernel mainline"),
            ("mainline-base", "out-mainline-base", "stack/build kernel mainline-base"),
            kind="kernel"),
    **table(("bookworm", "debian-bookworm", "tests/full/prepare bookworm"),
            ("trixie", "debian-trixie", "tests/full/prepare trixie"), kind="package")}
PERFS = table(("series", "out-perf", "make perf"),
              ("base", "out-perf-base", "make base-perf"))
TESTS = table(("selftests", "out-selftests", "make selftests"),
              ("headers", "out-headers", "make selftests"),
              ("samples", "out-samples", "make samples"),
              ("bpf-selftests", "out-bpf-selftests", "make bpf-selftests"),
              ("fuzz", "out-fuzz", "make fuzz"),
              ("modules", "out-modules", "make check"),
              ("mainline-tests", "out-mainline-tests", "tests/full/prepare mainline-tests"),
              ("mainline-test_progs", "out-mainline-test_progs",
               "tests/full/prepare mainline-test_progs"))
# The features that a perf built here must have, by the names of `perf check feature`: perf builds
# without what it does not find, and reports that only in passing.
PERF_FEATURES = ("bpf", "bpf_skeletons", "dwarf", "libdw-dwarf-unwind", "libelf", "libcapstone",
                 "libLLVM", "libpython", "libslang", "libtraceevent", "lzma", "zlib", "zstd")

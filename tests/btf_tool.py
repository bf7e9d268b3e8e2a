# SPDX-License-Identifier: GPL-2.0
"""scripts/btf_func of the kernel's tree, and the sections that it has written into the kernel
that tests run on: BTF of functions by address (.BTF.func) and of inlined ones (.BTF.inline)."""
from __future__ import annotations

import re
import subprocess
from pathlib import Path

from conftest import SUBJECT
from perfbpf.paths import BUILD, KERNELS

OUT = KERNELS[SUBJECT].path
TOOL = OUT / "scripts/btf_func/btf_func"
VMLINUX = OUT / "vmlinux"
BPFTOOL = BUILD / "out-samples/bpftool/bpftool"


def modules() -> list[Path]:
    """The modules of the guest's kernel."""
    return sorted(path for path in OUT.rglob("*.ko") if ".virtme_mods" not in path.parts)


def built_tool() -> Path:
    """btf_func, as the build of the kernel has left it."""
    assert TOOL.exists(), f"{TOOL}: this kernel has no CONFIG_DEBUG_INFO_BTF_FUNC"
    return TOOL


def verify(path: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """Run btf_func --verify on vmlinux or a module."""
    if path.suffix == ".ko":
        options += ("--btf_base", str(VMLINUX))
    return subprocess.run([built_tool(), "--verify", *options, path], text=True, check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=300)


def sections(path: Path) -> dict[str, tuple[int, int]]:
    """Offset in the file and size in bytes of the sections .BTF*."""
    text = subprocess.run(["readelf", "-SW", path], text=True, check=True,
                          stdout=subprocess.PIPE).stdout
    return {name: (int(offset, 16), int(size, 16)) for name, offset, size in
            re.findall(r"(\.BTF\S*)\s+PROGBITS\s+\S+\s+(\S+)\s+(\S+)", text)}


def section_file(path: Path, name: str, folder: Path) -> Path:
    """A file in a folder with a section of vmlinux or of a module."""
    assert name in sections(path), f"{path} was built without {name}"
    offset, size = sections(path)[name]
    file = folder / f"{path.name}{name}"
    with path.open("rb") as elf:
        elf.seek(offset)
        file.write_bytes(elf.read(size))
    return file

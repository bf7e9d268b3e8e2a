# SPDX-License-Identifier: GPL-2.0
"""A recording of another kernel, by its build-id, gets no name of this machine's kernel."""
from __future__ import annotations

import struct
from pathlib import Path

import pytest

import perfdata as pd
from perfdata import Sample
from subject import run_perf

FEAT_BUILD_ID = 2
MISC_BUILD_ID_SIZE = 1 << 15


def running_kernel() -> tuple[int, set[str]]:
    """Return an address in this machine's kernel, and all its function names."""
    names, address = set(), 0
    for line in Path("/proc/kallsyms").read_text(encoding="ascii").splitlines():
        value, kind, name = line.split()[:3]
        if kind in "tT":
            names.add(name)
            if pd.KERNEL_START + 0x1000 < int(value, 16) < pd.KERNEL_START + pd.KERNEL_LEN:
                address = address or int(value, 16)
    return address, names


def build_id_feature(build_id: bytes) -> bytes:
    """Return the header feature that gives the kernel this build-id of 20 bytes."""
    name = b"[kernel.kallsyms]\0".ljust(64, b"\0")
    body = struct.pack("<i20sB3x", -1, build_id, len(build_id)) + name
    return struct.pack("<IHH", 0, pd.MISC_KERNEL | MISC_BUILD_ID_SIZE, 8 + len(body)) + body


def test_another_kernel_gets_no_names(tmp_path: Path) -> None:
    """Its samples stay addresses, and perf says which kernel is missing."""
    address, names = running_kernel()
    if not address:
        pytest.skip("/proc/kallsyms of this machine shows no address that the file could have")
    file = pd.recording([], [Sample(address + 4)] * 3,
                        features={FEAT_BUILD_ID: build_id_feature(b"\xab" * 20)})
    file.write(tmp_path / "perf.data")
    result = run_perf(tmp_path, ["report", "--stdio", "--sort", "sym", "-i", "perf.data"])
    shown = {line.split()[-1] for line in result.out.splitlines() if "[k]" in line}
    assert result.status == 0 and shown, str(result)
    assert not shown & names, f"{shown & names} are this machine's: {result}"
    assert "ab" * 20 in result.err and "--vmlinux" in result.err, str(result)

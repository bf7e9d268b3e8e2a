# SPDX-License-Identifier: GPL-2.0
"""What perf inject keeps of BPF programs in a file, and what it must not."""
from __future__ import annotations

from pathlib import Path

import pytest

import perfdata as pd
from perfdata import Function, Line, Program, Sample
from subject import run_perf
from x86 import NOP, RET, mov

MAIN, SUB = 0xffffffffc0123450, 0xffffffffc0567890
CODE = mov(0x1111) + NOP + RET


def program() -> Program:
    """A program of two functions, with source lines."""
    return Program(42, "main_prog", [
        Function(name, addr, CODE, [Line(0, "prog.c", 7, 1, "\tint x = 0x1111;")])
        for name, addr in (("main_prog", MAIN), ("sub", SUB))])


def injected(tmp_path: Path, *options: str) -> Path:
    """Return what perf inject makes of a recording of the program."""
    pd.recording([program()], [Sample(MAIN), Sample(SUB)]).write(tmp_path / "perf.data")
    done = run_perf(tmp_path, ["inject", "-i", "perf.data", "-o", "injected.data", *options])
    assert done.status == 0, done
    return tmp_path / "injected.data"


def samples(tmp_path: Path, path: Path) -> list[list[str]]:
    """Return address and symbol of each sample."""
    script = run_perf(tmp_path, ["script", "-i", path.name, "-F", "ip,sym"])
    assert script.status == 0, script
    return [line.split() for line in script.out.splitlines()]


def test_aslr_hides_programs(tmp_path: Path) -> None:
    """No address of a program is left in the file, and their names still are."""
    path = injected(tmp_path, "--aslr")
    blob = path.read_bytes()
    leaks = [hex(addr) for addr in (MAIN, SUB) if addr.to_bytes(8, "little") in blob]
    assert not leaks
    assert CODE not in blob
    names = [symbol for _, symbol in samples(tmp_path, path)]
    assert names == [program().symbol(0), program().symbol(1)]


@pytest.mark.both
def test_programs_are_kept(tmp_path: Path) -> None:
    """Without --aslr everything is as it was recorded."""
    path = injected(tmp_path)
    assert samples(tmp_path, path) == [
        [f"{addr:x}", program().symbol(i)] for i, addr in enumerate((MAIN, SUB))]
    blob = path.read_bytes()
    assert all(addr.to_bytes(8, "little") in blob for addr in (MAIN, SUB))


def test_aslr_leaves_kcore_out(tmp_path: Path) -> None:
    """The copy of kcore and kallsyms that perf record --kcore makes tells all addresses."""
    directory = tmp_path / "perf.data"
    (directory / "kcore_dir").mkdir(parents=True)
    for name in ("kcore", "kallsyms", "modules"):
        (directory / "kcore_dir" / name).write_text("")
    pd.recording([program()], [Sample(MAIN)]).write(directory / "data")
    done = run_perf(tmp_path, ["inject", "--aslr", "-i", "perf.data", "-o", "injected.data"])
    assert done.status == 0, done
    assert not (tmp_path / "injected.data/kcore_dir").exists()
    assert "left out" in done.err, done
    assert [name for _, name in samples(tmp_path, tmp_path / "injected.data")] == [
        program().symbol(0)]


def test_guest_attrs_do_not_overwrite_data(tmp_path: Path) -> None:
    """perf inject --guest-data leaves room for the attrs of the guest's events.

    They are written in another size than they have in the guest's file, that of the
    first attr (64 bytes, PERF_ATTR_SIZE_VER0) at worst.
    """
    sample_type = pd.SAMPLE_DEFAULT | pd.SAMPLE_IDENTIFIER
    host_ids, guest_ids, nr_tasks = [1], list(range(10, 310)), 500
    pd.PerfData((), [pd.comm("qemu"), pd.comm("CPU 0/KVM", 1001, 1000),
                     pd.Record(pd.RECORD_FINISHED_INIT, 0, b"", trailer=False),
                     pd.comm("last")], sample_type, ids=host_ids).write(tmp_path / "perf.data")
    pd.PerfData((), [pd.id_index(guest_ids),
                     *(pd.comm(f"guest{i}", 5000 + i) for i in range(nr_tasks))],
                sample_type, ids=guest_ids, attr_size=64).write(tmp_path / "guest.data")
    done = run_perf(tmp_path, ["inject", "-i", "perf.data", "-o", "injected.data",
                               "--guest-data=guest.data,1000"])
    assert done.status == 0, done
    script = run_perf(tmp_path, ["script", "-i", "injected.data", "--show-task-events"])
    assert script.status == 0, script
    for task in range(nr_tasks):
        assert f"PERF_RECORD_COMM: guest{task}:" in script.out, script

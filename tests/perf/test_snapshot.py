# SPDX-License-Identifier: GPL-2.0
"""What perf makes of the KSYMBOLs of all dynamic text, told once or replayed.

A KSYMBOL begins and ends the map at its own address, whatever else is known of
that address, and the type of a record is that of the text it ends. A snapshot
tells again what is known already, and what only a snapshot can tell.
"""
from __future__ import annotations

import re
import shutil
import struct
from dataclasses import replace
from pathlib import Path
from typing import Sequence, Union

import pytest

import perfdata as pd
from perfdata import Function, PerfData, Program, Record, Sample
from subject import run_perf
from test_annotate import movs_in, perf
from test_kernel_symbols import FEAT_BUILD_ID, build_id_feature
from test_ksymbol import shares
from x86 import RET, mov

MISC_KSYMBOL_SNAPSHOT = 1 << 13      # PERF_RECORD_MISC_KSYMBOL_SNAPSHOT
BASE = 0xffffffffc0010000
LENGTH = 0x40
CODE = mov(0x7171) + RET


def program(prog_id: int, name: str, addr: int = BASE, tag: bytes = b"\x11" * 8) -> Program:
    """A program of one function."""
    return Program(prog_id, name, [Function(name, addr, CODE)], tag=tag)


def module(name: str, addr: int, length: int) -> Record:
    """The map of a kernel module."""
    return Record(pd.RECORD_MMAP, pd.MISC_KERNEL,
                  struct.pack("<iIQQQ", -1, 0, addr, length, 0) + pd.padded_name(f"[{name}]"))


def replayed(name: str, addr: int, length: int, ksym_type: int = pd.KSYMBOL_BPF) -> pd.Record:
    """A KSYMBOL of text that existed before, as the kernel replays it."""
    return replace(pd.ksymbol(name, addr, length, ksym_type=ksym_type),
                   misc=MISC_KSYMBOL_SNAPSHOT)


def file_of(records: Sequence[Union[Record, Sample]], programs: Sequence[Program] = ()) -> PerfData:
    """A recording with these records behind the kernel's own map."""
    return PerfData(programs, [pd.mmap_kernel(), pd.comm("workload"), *records])


def symbols(tmp_path: Path, file: PerfData) -> dict[str, str]:
    """Return the share of each symbol of the kernel's; an address where there is none."""
    return shares(perf(tmp_path, file, "report", "--stdio", "--sort", "sym").out)


@pytest.mark.parametrize("name, gone", [
    ("text", True), ("te\x1b[1mxt", True), ("\x9b1mtext", True), ("other", False)])
def test_ends_by_its_name(name: str, gone: bool, tmp_path: Path) -> None:
    """Text ends also if its name has control characters that are not shown, and no other."""
    begins = "text" if name == "other" else name
    file = file_of([pd.ksymbol(begins.encode("latin-1"), BASE, LENGTH), Sample(BASE + 8),
                    pd.ksymbol(name.encode("latin-1"), BASE, LENGTH, pd.KSYMBOL_UNREGISTER),
                    Sample(BASE + 8)])
    shown = set(symbols(tmp_path, file).values())
    assert shown == ({"50.00%"} if gone else {"100.00%"}), shown


def test_begins_inside_other_text(tmp_path: Path) -> None:
    """A module was there and went, and nobody said so: the newer text has its name."""
    addr = BASE + 0x1000
    file = file_of([module("old", BASE, 0x4000), pd.ksymbol("young", addr, LENGTH),
                    Sample(addr + 8)])
    assert symbols(tmp_path, file) == {"young": "100.00%"}


@pytest.mark.both
def test_takes_an_address_again(tmp_path: Path) -> None:
    """The end of the older text was lost."""
    file = file_of([pd.ksymbol("bpf_prog_1_old", BASE, 2 * LENGTH), Sample(BASE + 8),
                    pd.ksymbol("bpf_prog_2_new", BASE, LENGTH), Sample(BASE + 8)])
    assert symbols(tmp_path, file) == {"bpf_prog_1_old": "50.00%", "bpf_prog_2_new": "50.00%"}


@pytest.mark.parametrize("addr,ksym_type", [
    (BASE + 0x10, pd.KSYMBOL_BPF), (BASE, pd.KSYMBOL_OOL)], ids=("address", "type"))
def test_ends_its_own_only(addr: int, ksym_type: int, tmp_path: Path) -> None:
    """An end at another address, or of another type, ends nothing."""
    file = file_of([pd.ksymbol("bpf_prog_1_a", BASE, LENGTH),
                    pd.ksymbol("other", addr, LENGTH, pd.KSYMBOL_UNREGISTER, ksym_type),
                    Sample(BASE + 8)])
    assert symbols(tmp_path, file) == {"bpf_prog_1_a": "100.00%"}


def test_module_outlives_a_ksymbol(tmp_path: Path) -> None:
    """The end of a KSYMBOL that nobody told the beginning of does not end a module."""
    file = file_of([module("dummy", BASE, 0x4000),
                    pd.ksymbol("gone", BASE + 0x1000, LENGTH, pd.KSYMBOL_UNREGISTER),
                    Sample(BASE + 8)])
    shown = perf(tmp_path, file, "report", "--stdio", "--sort", "dso")
    assert "[dummy]" in shown.out, str(shown)


def test_map_of_all_addresses(tmp_path: Path) -> None:
    """Where the kernel's map has no end, its symbols keep their own addresses."""
    kernel = Record(pd.RECORD_MMAP, pd.MISC_KERNEL, struct.pack("<iIQQQ", -1, 0, 0, 0, 0)
                    + pd.padded_name("[kernel.kallsyms]_text"))
    file = PerfData((), [kernel, pd.comm("workload"), pd.ksymbol("one", BASE, LENGTH),
                         pd.ksymbol("two", BASE + 0x100, LENGTH),
                         Sample(BASE + 8), Sample(BASE + 0x108),
                         pd.ksymbol("two", BASE + 0x108, LENGTH, pd.KSYMBOL_UNREGISTER),
                         Sample(BASE + 8)])
    assert set(symbols(tmp_path, file)) >= {"one", "two"}


def test_kernel_without_an_end(tmp_path: Path) -> None:
    """It ends where dynamic text begins, which is not the kernel's and comes and goes."""
    kernel = Record(pd.RECORD_MMAP, pd.MISC_KERNEL,
                    struct.pack("<iIQQQ", -1, 0, pd.KERNEL_START,
                                   (1 << 64) - 1 - pd.KERNEL_START, pd.KERNEL_START)
                    + pd.padded_name("[kernel.kallsyms]_text"))
    file = PerfData((), [kernel, pd.comm("workload"), module("dummy", BASE + 0x10000, 0x4000),
                         pd.ksymbol("bpf_prog_1_a", BASE, LENGTH),
                         Sample(pd.KERNEL_START + 8), Sample(BASE + 8), Sample(BASE + 0x10008),
                         pd.ksymbol("bpf_prog_1_a", BASE, LENGTH, pd.KSYMBOL_UNREGISTER),
                         Sample(pd.KERNEL_START + 8)])
    shown = perf(tmp_path, file, "report", "--stdio", "--sort", "dso")
    rows = dict(line.split()[::-1] for line in shown.out.splitlines()
                if line.strip() and line[0] != "#")
    assert rows == {"[kernel.kallsyms]": "50.00%", "bpf_prog_1_a": "25.00%",
                    "[dummy]": "25.00%"}, str(shown)


def test_kernel_keeps_its_symbols(tmp_path: Path) -> None:
    """No KSYMBOL ends a function of the kernel's own, or gives it another name."""
    first, sample = Sample(pd.KERNEL_START + 8), Sample(pd.KERNEL_START + 0x1008)
    file = file_of([
        sample, pd.ksymbol("other", pd.KERNEL_START + 0x1000, LENGTH), sample,
        pd.ksymbol("schedule", pd.KERNEL_START + 0x1000, LENGTH, pd.KSYMBOL_UNREGISTER),
        sample, first])
    shown = with_kcore(tmp_path, file)
    assert shown.pop("schedule") == "75.00%" and set(shown) <= {"_text", "_stext"} and shown, shown


def test_event_of_another_program(tmp_path: Path) -> None:
    """The id is that of an info in the file, the tag is not: that code is not shown."""
    known, other = program(7, "known"), program(7, "other", tag=b"\x22" * 8)
    file = file_of([*pd.load_records(other), Sample(BASE + 5)], [known])
    result = perf(tmp_path, file, "report", "--stdio", "--sort", "sym")
    assert shares(result.out) == {other.symbol(0): "100.00%"}, str(result)
    result = perf(tmp_path, file, "annotate", "--stdio", "-s", other.symbol(0))
    assert movs_in(result.out) == [], str(result)


@pytest.mark.both
def test_snapshot_after_synthesis(tmp_path: Path) -> None:
    """What is told again is what it was: its program info is not lost."""
    known = program(7, "known")
    again = replayed(known.symbol(0), BASE, len(CODE))
    file = file_of([*pd.load_records(known), again, Sample(BASE + 5)], [known])
    result = perf(tmp_path, file, "annotate", "--stdio", "-s", known.symbol(0))
    assert movs_in(result.out) == [0x7171], str(result)


@pytest.mark.parametrize("ksym_type", [pd.KSYMBOL_CBPF, pd.KSYMBOL_THUNK], ids=("cbpf", "thunk"))
def test_new_types(ksym_type: int, tmp_path: Path) -> None:
    """Classic BPF and thunks have a name for as long as they live."""
    file = file_of([replayed("its_thunks", BASE, LENGTH, ksym_type),
                    Sample(BASE + 8),
                    pd.ksymbol("its_thunks", BASE, LENGTH, pd.KSYMBOL_UNREGISTER, ksym_type),
                    pd.ksymbol("bpf_prog_1_next", BASE, LENGTH), Sample(BASE + 8)])
    assert symbols(tmp_path, file) == {"its_thunks": "50.00%", "bpf_prog_1_next": "50.00%"}
    shown = perf(tmp_path, file, "annotate", "--stdio", "-s", "its_thunks")
    assert "no machine code" in shown.out + shown.err, str(shown)


def test_dump_names_types(tmp_path: Path) -> None:
    """perf script -D says what the numbers mean."""
    file = file_of([replayed("a", BASE, LENGTH, pd.KSYMBOL_CBPF),
                    pd.ksymbol("b", BASE, LENGTH, pd.KSYMBOL_UNREGISTER, 3)])
    shown = perf(tmp_path, file, "script", "-D")
    assert "type 4 flags 0x0 name a (cbpf, snapshot)" in shown.out, str(shown)
    assert "type 3 flags 0x1 name b (module, unregister)" in shown.out, str(shown)


def write_kcore(work: Path, file: PerfData) -> None:
    """Write what `perf record --kcore` writes: a directory, with a copy of the kernel's code."""
    loads = [(pd.KERNEL_START, pd.KERNEL_LEN), (0xffffffffc0000000, 0x1000000)]
    header = b"\x7fELF\x02\x01\x01" + bytes(9) + struct.pack(
        "<HHIQQQIHHHHHH", 4, 62, 1, 0, 64, 0, 0, 64, 56, len(loads), 0, 0, 0)
    offset = 0x1000
    for start, length in loads:
        header += struct.pack("<IIQQQQQQ", 1, 7, offset, start, 0, length, length, 0x1000)
        offset += length
    kcore_dir = work / "perf.data" / "kcore_dir"
    kcore_dir.mkdir(parents=True)
    file.write(work / "perf.data" / "data")
    with (kcore_dir / "kcore").open("wb") as kcore:
        kcore.write(header)
        kcore.truncate(offset)
    (kcore_dir / "kallsyms").write_text(
        f"{pd.KERNEL_START:x} T _text\n{pd.KERNEL_START:x} T _stext\n"
        f"{pd.KERNEL_START + 0x1000:x} T schedule\n{pd.KERNEL_START + 0x2000:x} T _etext\n"
        f"{BASE + 0x4000:x} t before\t[__builtin__ftrace]\n"
        f"{BASE + 0x4040:x} t next\t[__builtin__ftrace]\n")
    (kcore_dir / "modules").write_text("")


def with_kcore(work: Path, file: PerfData) -> dict[str, str]:
    """Return the share of each symbol, with the recording's own kcore."""
    write_kcore(work, file)
    result = run_perf(work, ["report", "-i", "perf.data", "--stdio", "--sort", "sym"])
    assert result.status == 0, str(result)
    return shares(result.out)


@pytest.mark.parametrize("loaded,ksym_type", [
    pytest.param(False, pd.KSYMBOL_BPF, id="before-bpf", marks=pytest.mark.both),
    pytest.param(False, pd.KSYMBOL_CBPF, id="before-cbpf", marks=pytest.mark.both),
    pytest.param(False, pd.KSYMBOL_OOL, id="before-ool"),
    pytest.param(True, pd.KSYMBOL_BPF, id="after-bpf"),
    pytest.param(True, pd.KSYMBOL_CBPF, id="after-cbpf"),
    pytest.param(True, pd.KSYMBOL_OOL, id="after-ool")])
def test_survives_kcore(loaded: bool, ksym_type: int, tmp_path: Path) -> None:
    """The first sample in the kernel's text makes perf load the maps of kcore."""
    kernel = Sample(pd.KERNEL_START + 0x1008)
    file = file_of([*[kernel] * loaded, pd.ksymbol("dynamic", BASE, LENGTH, ksym_type=ksym_type),
                    *[kernel] * (not loaded), Sample(BASE + 8)])
    assert with_kcore(tmp_path, file) == {"schedule": "50.00%", "dynamic": "50.00%"}


@pytest.mark.both
@pytest.mark.parametrize("loaded", [False, True], ids=("before", "after"))
def test_out_of_line_code_of_kcore(loaded: bool, tmp_path: Path) -> None:
    """What a snapshot says was there before: the copy has its name and its bytes."""
    kernel = Sample(pd.KERNEL_START + 0x1008)
    again = replayed("replayed", BASE + 0x4000, LENGTH, pd.KSYMBOL_OOL)
    file = file_of([*[kernel] * loaded, again, *[kernel] * (not loaded), Sample(BASE + 0x4008)])
    assert with_kcore(tmp_path, file) == {"schedule": "50.00%", "before": "50.00%"}


TEXT_OF_KCORE = 0xffffffffc0000000


def write_text(kcore_dir: Path, addr: int, code: bytes) -> None:
    """Write code to a copy of the kernel's code."""
    with (kcore_dir / "kcore").open("r+b") as kcore:
        kcore.seek(0x1000 + pd.KERNEL_LEN + addr - TEXT_OF_KCORE)
        kcore.write(code)


def write_cached_kcore(work: Path, file: PerfData) -> Path:
    """Write perf.data, and what `perf buildid-cache --kcore` made of its kernel some time."""
    build_id = b"\xcc" * 20
    file.features = {FEAT_BUILD_ID: build_id_feature(build_id)}
    write_kcore(work, file)
    copy = work / ".debug/[kernel.kcore]" / build_id.hex() / "2026010100000000"
    copy.parent.mkdir(parents=True)
    return Path(shutil.move(work / "perf.data/kcore_dir", copy))


@pytest.mark.parametrize("own", [True, False], ids=("own", "cached"))
def test_image_has_the_code_of_its_recording(own: bool, tmp_path: Path) -> None:
    """A copy of another time may have other code there, as /proc/kcore has: none is better."""
    file = file_of([replayed("bpf_trampoline_1", BASE, LENGTH),
                    Sample(pd.KERNEL_START + 0x1008), Sample(BASE + 5)])
    copy = write_cached_kcore(tmp_path, file)
    write_text(copy, BASE, CODE)
    if own:
        shutil.move(copy, tmp_path / "perf.data/kcore_dir")
    result = run_perf(tmp_path, ["annotate", "-v", "-i", "perf.data" + "/data" * (not own),
                                 "--stdio", "-s", "bpf_trampoline_1"])
    said = result.out + result.err
    assert movs_in(result.out) == ([0x7171] if own else []), str(result)
    assert ("no machine code" in said) is not own and "/kcore for kernel" in said, str(result)


@pytest.mark.parametrize("loaded", [False, True], ids=("before", "after"))
def test_out_of_line_code_of_another_time(loaded: bool, tmp_path: Path) -> None:
    """A snapshot does not say what was there when that copy was made, nor its name."""
    kernel = Sample(pd.KERNEL_START + 0x1008)
    again = replayed("replayed", BASE + 0x4000, LENGTH, pd.KSYMBOL_OOL)
    write_cached_kcore(tmp_path, file_of([
        *[kernel] * loaded, again, *[kernel] * (not loaded), Sample(BASE + 0x4008)]))
    result = run_perf(tmp_path, ["report", "-i", "perf.data/data", "--stdio", "--sort", "sym"])
    assert shares(result.out) == {"schedule": "50.00%", "replayed": "50.00%"}, str(result)


@pytest.mark.parametrize("known", [
    pytest.param(True, id="known", marks=pytest.mark.both), pytest.param(False, id="later")])
def test_modules_of_the_copy_in_use(known: bool, tmp_path: Path) -> None:
    """Which modules it has is in the list beside it, whatever this machine's /proc/modules has."""
    addr = BASE + 0x8000
    copy = write_cached_kcore(tmp_path, file_of([
        Sample(pd.KERNEL_START + 0x1008), module("dummy", addr, 0x2000), Sample(addr + 8)]))
    if known:
        (copy / "modules").write_text(f"dummy 8192 0 - Live {addr:#x}\n")
    result = run_perf(tmp_path, ["script", "-i", "perf.data/data", "-F", "ip,sym,dso"])
    assert "schedule" in result.out, str(result)
    assert ("[dummy]" in result.out) is not known, str(result)


def test_poked_bytes_only(tmp_path: Path) -> None:
    """Of out of line code that was there before, what is poked is known; the rest is not zeros."""
    page = replayed("kprobe_insn_page", BASE, 0x1000, pd.KSYMBOL_OOL)
    poked, end = BASE + 0x10, BASE + 0x15
    file = file_of([page, Sample(poked), pd.text_poke(poked, b"", mov(0x7171)), Sample(poked),
                    Sample(poked - 1), Sample(end), Sample(BASE + 0x100)])
    shown = perf(tmp_path, file, "script", "-F", "ip,insn").out
    insns = [line.partition("insn:")[2].strip() for line in shown.splitlines() if line.strip()]
    assert insns == ["", mov(0x7171).hex(" "), "", "", ""], shown


def test_image_ends_with_its_map(tmp_path: Path) -> None:
    """Other text takes its end: samples of what is gone are not those of the last line."""
    end = BASE + len(CODE)
    file = file_of([replayed("its_thunks", BASE, 0xffffffff, pd.KSYMBOL_THUNK),
                    Sample(BASE), Sample(end + 8), pd.ksymbol("bpf_prog_1_next", end, LENGTH)])
    write_kcore(tmp_path, file)
    write_text(tmp_path / "perf.data/kcore_dir", BASE, CODE)
    result = run_perf(tmp_path, ["annotate", "-i", "perf.data", "--stdio", "-s", "its_thunks"])
    shown = re.findall(r"^ *([\d.]+) : +[0-9a-f]+: +(mov|ret)", result.out, re.MULTILINE)
    assert shown == [("50.00", "mov"), ("0.00", "ret")], str(result)


def test_show_bpf_events(tmp_path: Path) -> None:
    """A BPF_EVENT that is printed is not taken for a KSYMBOL, at an address made of its id."""
    known = program(7, "known")
    file = file_of([*pd.load_records(known), pd.bpf_event(0x50, b"\x40\0\0\0\x01\0\0\0"),
                    Sample(0x5000000010)], [known])
    shown = perf(tmp_path, file, "script", "--show-bpf-events", "-F", "ip,sym,dso")
    assert "[unknown]" in shown.out and "5000000010" in shown.out, str(shown)
    assert "PERF_RECORD_BPF_EVENT" in shown.out, str(shown)

# SPDX-License-Identifier: GPL-2.0
"""Kernel modules that come and go while perf records, from a perf.data alone.

The kernel tells of a module's core and init text with a map each, "[name]" and
"[name].init.text", and of their end with a KSYMBOL. It knows no path: the file is
looked for by name, and taken only if it has the build ID of what was loaded.
"""
from __future__ import annotations

import struct
import subprocess
from pathlib import Path
from typing import Optional, Sequence, Union

import pytest

import perfdata as pd
from perfdata import PerfData, Record, Sample
from subject import Result, run_perf
from test_ksymbol import shares
from test_snapshot import write_kcore

RECORD_MMAP2 = 10
MISC_BUILD_ID = 1 << 14
KSYMBOL_MODULE = 3
BASE, AGAIN, INIT = 0xffffffffc0100000, 0xffffffffc0200000, 0xffffffffc0300000
LENGTH = 0x2000
FUNCTION = 0x20         # where the second function of a module's text begins
RELEASE = "7.3.4-synthetic"
KERNEL_SAMPLE = Sample(pd.KERNEL_START + 0x1008)
# Of a recording, in order.
Records = list[Union[Record, Sample]]
ID_A, ID_B = b"\xaa" * 20, b"\xbb" * 20

FUNCTION_SOURCE = """
	.type {0}, @function
{0}:
	.fill 0x20, 1, 0x90
	.size {0}, 0x20
"""


SECTION = '\t.section {0}, "ax", @progbits'


def module_source(name: str, sections: Sequence[str] = (".init.text",)) -> str:
    """Assembly of a module: two functions in its text, two in each other section."""
    functions = {".init.text": ("setup", "init"), ".exit.text": ("stop", "exit"),
                 ".text.unlikely": ("warn", "panic")}
    source = "\t.text" + "".join(FUNCTION_SOURCE.format(f"{name}_{function}")
                                 for function in ("first", "work"))
    for section in sections:
        source += SECTION.format(section) + "".join(
            FUNCTION_SOURCE.format(f"{name}_{function}") for function in functions[section])
    return source


def install(work: Path, name: str, build_id: bytes, functions: str = "",
            where: str = "kernel/drivers", sections: Sequence[str] = (".init.text",)) -> Path:
    """Build a module with this build ID, under work as the root of its file system."""
    path = work / "root/lib/modules" / RELEASE / where / f"{name}.ko"
    path.parent.mkdir(parents=True, exist_ok=True)
    source, built = work / f"{name}.s", work / f"{name}.o"
    source.write_text(module_source(functions or name, sections))
    subprocess.run(["gcc", "-c", "-o", str(built), str(source)], check=True)
    subprocess.run(["ld", "-r", f"--build-id=0x{build_id.hex()}", "-o", str(path), str(built)],
                   check=True)
    return path


def mmap2(name: str, addr: int, build_id: Optional[bytes] = None, length: int = LENGTH) -> Record:
    """A module's text comes to be."""
    if build_id is None:
        misc, ident = pd.MISC_KERNEL, bytes(24)
    else:
        misc = pd.MISC_KERNEL | MISC_BUILD_ID
        ident = struct.pack("<BBH20s", len(build_id), 0, 0, build_id)
    raw = struct.pack("<iiQQQ", -1, -1, addr, length, 0) + ident + struct.pack("<II", 5, 2)
    return Record(RECORD_MMAP2, misc, raw + name.encode() + bytes(8 - len(name) % 8))


def init_text(name: str, addr: int, build_id: Optional[bytes] = None,
              length: int = 0x1000) -> Record:
    """A module's init text comes to be."""
    return mmap2(f"[{name}].init.text", addr, build_id, length)


def synthesized(record: Record) -> Record:
    """The same, told by perf: at time 0, so that it comes before all others."""
    return Record(record.type, record.misc,
                  record.body() + struct.pack("<IIQII", 0, 0, 0, 0, 0), trailer=False)


def gone(name: str, addr: int, length: int = LENGTH) -> Record:
    """A module's text ceases to be."""
    return pd.ksymbol(name, addr, length, pd.KSYMBOL_UNREGISTER, KSYMBOL_MODULE)


def file_of(records: Records) -> PerfData:
    """A recording with these records behind the kernel's own map."""
    return PerfData((), [pd.mmap_kernel(), pd.comm("workload"), *records])


def report(work: Path, records: Records, sort: str = "sym") -> Result:
    """Report what was sampled, with the modules that install() made."""
    file_of(records).write(work / "perf.data")
    (work / "root").mkdir(exist_ok=True)
    result = run_perf(work, ["report", "-i", "perf.data", "--stdio", "--sort", sort,
                             "--symfs", "root"])
    assert result.status == 0 and not result.timed_out, str(result)
    return result


def symbols(work: Path, records: Records) -> dict[str, str]:
    """Return the share of each symbol."""
    return shares(report(work, records).out)


def test_file_is_found(tmp_path: Path) -> None:
    """By its name, wherever it is below /lib/modules."""
    install(tmp_path, "dummy", ID_A, where="updates/dkms")
    assert symbols(tmp_path, [mmap2("[dummy]", BASE, ID_A), Sample(BASE + FUNCTION + 4)]) == {
        "dummy_work": "100.00%"}


def test_dash_in_name(tmp_path: Path) -> None:
    """The kernel's name of my-mod.ko is my_mod."""
    install(tmp_path, "my-mod", ID_A, "my_mod")
    assert symbols(tmp_path, [mmap2("[my_mod]", BASE, ID_A), Sample(BASE + 4)]) == {
        "my_mod_first": "100.00%"}


def test_compressed(tmp_path: Path) -> None:
    """A file that is compressed is decompressed for its build ID and its symbols."""
    path = install(tmp_path, "dummy", ID_A)
    subprocess.run(["xz", "--check=crc32", str(path)], check=True)
    assert symbols(tmp_path, [mmap2("[dummy]", BASE, ID_A), Sample(BASE + FUNCTION + 4)]) == {
        "dummy_work": "100.00%"}


@pytest.mark.both
def test_other_build_id(tmp_path: Path) -> None:
    """A file of another build has other offsets: no symbol is better than a wrong one."""
    install(tmp_path, "dummy", ID_B)
    records: Records = [mmap2("[dummy]", BASE, ID_A), Sample(BASE + FUNCTION + 4)]
    assert "dummy_work" not in symbols(tmp_path, records)
    assert "[dummy]" in report(tmp_path, records, "dso").out


def test_right_one_of_two(tmp_path: Path) -> None:
    """Two files have the name, one has the build ID."""
    install(tmp_path, "dummy", ID_B, "old", where="kernel/drivers")
    install(tmp_path, "dummy", ID_A, "new", where="updates")
    assert symbols(tmp_path, [mmap2("[dummy]", BASE, ID_A), Sample(BASE + 4)]) == {
        "new_first": "100.00%"}


@pytest.mark.parametrize("build_id", [ID_A, None], ids=("build-id", "name"))
def test_loaded_again(build_id: Optional[bytes], tmp_path: Path) -> None:
    """At another address, and then where it was: each load has its symbols."""
    install(tmp_path, "dummy", ID_A)
    here, there = Sample(BASE + FUNCTION + 4), Sample(AGAIN + 4)
    records: Records = [
        mmap2("[dummy]", BASE, build_id), here, gone("dummy", BASE),
        mmap2("[dummy]", AGAIN, build_id), there, gone("dummy", AGAIN),
        mmap2("[dummy]", BASE, build_id), here, here]
    assert symbols(tmp_path, records) == {"dummy_work": "75.00%", "dummy_first": "25.00%"}


def test_build_id_changes(tmp_path: Path) -> None:
    """A module is built anew and loaded again: both are known."""
    install(tmp_path, "dummy", ID_A, "old", where="kernel/drivers")
    install(tmp_path, "dummy", ID_B, "new", where="updates")
    file_of([mmap2("[dummy]", BASE, ID_A), Sample(BASE + 4), gone("dummy", BASE),
             mmap2("[dummy]", BASE, ID_B), Sample(BASE + 4)]).write(tmp_path / "perf.data")
    result = run_perf(tmp_path, ["script", "-i", "perf.data", "-F", "ip,sym",
                                 "--symfs", "root"])
    assert result.out.split()[1::2] == ["old_first", "new_first"], str(result)


def test_unload(tmp_path: Path) -> None:
    """What is sampled there afterwards is not the module's."""
    install(tmp_path, "dummy", ID_A)
    work = Sample(BASE + FUNCTION + 4)
    records: Records = [
        mmap2("[dummy]", BASE, ID_A), work, gone("dummy", BASE), work,
        pd.ksymbol("bpf_prog_1_next", BASE, 0x100), work, work]
    found = symbols(tmp_path, records)
    assert found.pop("dummy_work", None) == "25.00%"
    assert found.pop("bpf_prog_1_next", None) == "50.00%"
    assert len(found) == 1 and next(iter(found)).startswith("0x"), found


def test_another_module_takes_the_place(tmp_path: Path) -> None:
    """Even when the end of the first was lost."""
    install(tmp_path, "one", ID_A)
    install(tmp_path, "two", ID_B)
    records: Records = [
        mmap2("[one]", BASE, ID_A), Sample(BASE + 4),
        mmap2("[two]", BASE - 0x1000, ID_B), Sample(BASE - 0x1000 + FUNCTION)]
    assert symbols(tmp_path, records) == {"one_first": "50.00%", "two_work": "50.00%"}


def test_exit_text(tmp_path: Path) -> None:
    """It follows the module's other text, in the file as in memory."""
    install(tmp_path, "dummy", ID_A, sections=(".text.unlikely", ".exit.text", ".init.text"))
    exit_text = BASE + 4 * FUNCTION
    assert symbols(tmp_path, [mmap2("[dummy]", BASE, ID_A), Sample(BASE + FUNCTION + 4),
                              Sample(exit_text + 4), Sample(exit_text + FUNCTION + 4),
                              Sample(exit_text + FUNCTION + 8)]) == {
        "dummy_exit": "50.00%", "dummy_work": "25.00%", "dummy_stop": "25.00%"}


def test_exit_text_elsewhere_in_the_file(tmp_path: Path) -> None:
    """Init text is between it and the other text, but not in memory: for each load."""
    install(tmp_path, "dummy", ID_A, sections=(".text.unlikely", ".init.text", ".exit.text"))
    offset = 4 * FUNCTION
    records: Records = []
    for base in (BASE, AGAIN):
        records += [mmap2("[dummy]", base, ID_A), Sample(base + offset + 4),
                    Sample(base + offset + FUNCTION + 4), Sample(base + 3 * FUNCTION),
                    gone("dummy", base), Sample(base + offset + 4)]
    file_of(records).write(tmp_path / "perf.data")
    result = run_perf(tmp_path, ["script", "-i", "perf.data", "-F", "ip,sym", "--symfs", "root"])
    assert result.out.split()[1::2] == 2 * ["dummy_stop", "dummy_exit", "dummy_panic",
                                            "[unknown]"], str(result)


def test_exit_text_of_a_piece(tmp_path: Path) -> None:
    """Other text took the place of the module's first, and then of its last."""
    install(tmp_path, "dummy", ID_A, sections=(".init.text", ".exit.text"))
    exit_text = BASE + 2 * FUNCTION
    records: Records = [
        mmap2("[dummy]", BASE, ID_A), pd.ksymbol("bpf_prog_1_other", BASE, 8),
        Sample(exit_text + 4), Sample(BASE + FUNCTION),
        pd.ksymbol("bpf_prog_2_other", exit_text, 8), Sample(exit_text + 4),
        Sample(exit_text + FUNCTION + 4)]
    assert symbols(tmp_path, records) == {"dummy_stop": "25.00%", "dummy_work": "25.00%",
                                          "dummy_exit": "25.00%", "bpf_prog_2_other": "25.00%"}


@pytest.mark.parametrize("init_first", [False, True], ids=("core", "init"))
def test_init_text(init_first: bool, tmp_path: Path) -> None:
    """It is elsewhere, has symbols of its own and goes first."""
    install(tmp_path, "dummy", ID_A)
    core, init = Sample(BASE + FUNCTION + 4), Sample(INIT + FUNCTION + 4)
    records: Records = [
        mmap2("[dummy]", BASE, ID_A), init_text("dummy", INIT, ID_A),
        *([init, core] if init_first else [core, init]),
        gone("dummy", INIT, 0x1000), pd.ksymbol("bpf_prog_1_next", INIT, 0x100), init, core]
    assert symbols(tmp_path, records) == {
        "dummy_work": "50.00%", "dummy_init": "25.00%", "bpf_prog_1_next": "25.00%"}


def test_init_text_loaded_again(tmp_path: Path) -> None:
    """The symbols of the core text, which are known by then, are not in its way."""
    install(tmp_path, "dummy", ID_A)
    records: Records = [
        mmap2("[dummy]", BASE, ID_A), Sample(BASE + FUNCTION + 4), gone("dummy", BASE),
        mmap2("[dummy]", BASE, ID_A), init_text("dummy", INIT, ID_A),
        Sample(INIT + FUNCTION + 4), gone("dummy", INIT, 0x1000),
        Sample(INIT + FUNCTION + 4), Sample(BASE + 4)]
    found = symbols(tmp_path, records)
    for name in ("dummy_work", "dummy_init", "dummy_first"):
        assert found.pop(name, None) == "25.00%", name
    assert len(found) == 1 and next(iter(found)).startswith("0x"), found


@pytest.mark.parametrize("build_id", [ID_A, ID_B], ids=("same", "other"))
def test_unload_was_lost(build_id: bytes, tmp_path: Path) -> None:
    """Core text that is told elsewhere is core text, and is there no more."""
    install(tmp_path, "dummy", ID_A, where="kernel/drivers")
    if build_id != ID_A:
        install(tmp_path, "dummy", build_id, where="updates")
    records: Records = [
        mmap2("[dummy]", BASE, ID_A), Sample(BASE + FUNCTION + 4),
        mmap2("[dummy]", AGAIN, build_id), Sample(AGAIN + FUNCTION + 4),
        Sample(AGAIN + FUNCTION + 4), Sample(BASE + FUNCTION + 4)]
    found = symbols(tmp_path, records)
    assert found.pop("dummy_work", None) == "75.00%"
    assert len(found) == 1 and next(iter(found)).startswith("0x"), found


def test_tail_synthesize(tmp_path: Path) -> None:
    """Where perf found it in the end is not where it was in the beginning."""
    install(tmp_path, "dummy", ID_A)
    records: Records = [
        mmap2("[dummy]", BASE, ID_A), Sample(BASE + 4), Sample(BASE + FUNCTION + 4),
        gone("dummy", BASE), mmap2("[dummy]", AGAIN, ID_A), Sample(AGAIN + FUNCTION + 4),
        Sample(AGAIN + FUNCTION + 4), synthesized(mmap2("[dummy]", AGAIN, ID_A, 0x8000))]
    assert symbols(tmp_path, records) == {"dummy_first": "25.00%", "dummy_work": "75.00%"}


def test_init_text_alone(tmp_path: Path) -> None:
    """The record of the core text was lost: the other one says what it is."""
    install(tmp_path, "dummy", ID_A)
    records: Records = [init_text("dummy", INIT, ID_A), Sample(INIT + FUNCTION + 4)]
    assert symbols(tmp_path, records) == {"dummy_init": "100.00%"}


def test_lengths_that_wrap(tmp_path: Path) -> None:
    """Modules that end before they begin are none: perf hung and filled the disk."""
    install(tmp_path, "dummy", ID_A)
    behind, start, end = pd.KERNEL_START + pd.KERNEL_LEN + 0x400, 0xffffffffc0000000, (1 << 64) - 1
    records: Records = [
        pd.ksymbol("bpf_prog_1_a", behind, 0xffffffff, ksym_type=4),
        mmap2("[dummy]", (1 << 64) - 0x1000, ID_B, 0x4000),
        mmap2("[dummy]", start, ID_A, end), mmap2("[dummy]", start + 0xb000, ID_A, end),
        pd.ksymbol("bpf_prog_1_a", behind, 1), mmap2("[two]", 0, ID_B, 0x4000),
        gone("dummy", start), mmap2("[dummy]", AGAIN, ID_A), Sample(AGAIN + 4)]
    file_of(records).write(tmp_path / "perf.data")
    result = run_perf(tmp_path, ["report", "-i", "perf.data", "--stdio", "--sort", "sym",
                                 "--symfs", "root"], timeout=5)
    assert result.status == 0 and "missing" not in result.err, str(result)
    assert shares(result.out) == {"dummy_first": "100.00%"}, str(result)


@pytest.mark.parametrize("offset", (-0x800, 0x800, pd.KERNEL_LEN - 0x800),
                         ids=("start", "middle", "end"))
def test_module_in_the_kernel(offset: int, tmp_path: Path) -> None:
    """There is none: what is sampled in the kernel's own text is the kernel's."""
    records: Records = [
        mmap2("[dummy]", pd.KERNEL_START + offset, ID_A),
        pd.ksymbol("bpf_prog_1_a", BASE, 0x100),
        Sample(pd.KERNEL_START + 0x10), Sample(pd.KERNEL_START + offset + 0x7f0 & ~0xf),
        Sample(pd.KERNEL_START + 0x1008), Sample(pd.KERNEL_START + pd.KERNEL_LEN - 8)]
    result = report(tmp_path, records, "dso")
    assert "[dummy]" not in result.out and "missing" not in result.err, str(result)


def test_length_was_a_guess(tmp_path: Path) -> None:
    """perf takes /proc/modules' sizes, which are not those of the text."""
    path = install(tmp_path, "dummy", ID_A)
    name = "/" + str(path.relative_to(tmp_path / "root"))
    records: Records = [
        mmap2(name, BASE, ID_A, 0x8000),
        pd.ksymbol("bpf_prog_1_behind", BASE + 0x3000, 0x100),
        mmap2("[dummy]", BASE, ID_A), init_text("dummy", INIT, ID_A),
        Sample(BASE + FUNCTION + 4), Sample(BASE + 0x3004), Sample(BASE + 0x4000),
        Sample(INIT + 4)]
    found = symbols(tmp_path, records)
    assert found.pop("dummy_work", None) == "25.00%"
    assert found.pop("bpf_prog_1_behind", None) == "25.00%"
    assert found.pop("dummy_setup", None) == "25.00%"
    assert len(found) == 1 and next(iter(found)).startswith("0x"), found


@pytest.mark.parametrize("sampled", [False, True], ids=("before", "after"))
def test_kcore_is_older(sampled: bool, tmp_path: Path) -> None:
    """The copy of the kernel's code has no module that came later."""
    install(tmp_path, "dummy", ID_A)
    write_kcore(tmp_path, file_of([
        *[KERNEL_SAMPLE] * sampled, mmap2("[dummy]", BASE, ID_A), *[KERNEL_SAMPLE] * (not sampled),
        Sample(BASE + FUNCTION + 4), gone("dummy", BASE)]))
    result = run_perf(tmp_path, ["report", "-i", "perf.data", "--stdio", "--sort", "sym",
                                 "--symfs", "root"])
    assert shares(result.out) == {"schedule": "50.00%", "dummy_work": "50.00%"}, str(result)

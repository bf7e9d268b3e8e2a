# SPDX-License-Identifier: GPL-2.0
"""BPF programs of which a pipe tells in parts, after their first samples."""
from __future__ import annotations

import os
import re
import struct
import subprocess
from pathlib import Path
from typing import Optional, Sequence, Union

import pytest

import perfdata as pd
from perfdata import Branch, Function, Line, PerfData, Program, Record, Sample
from subject import perf_binary, run_perf
from x86 import NOP, RET, mov

MAIN = 0xffffffffc0123450
CODE = mov(0x1111) + NOP + RET
PROGRAM = Program(42, "main_prog", [
    Function("main_prog", MAIN, CODE, [Line(0, "prog.c", 7, 1, "\tint x = 0x1111;")])])
OTHER = Program(43, "other", [Function("other", MAIN + 0x1000, CODE)], tag=b"\x77" * 8)
# After two of them all that came before has been dealt with.
ROUNDS = [Record(pd.RECORD_FINISHED_ROUND, 0, b"", trailer=False)] * 2
INFO = pd.feature_parts(pd.FEAT_BPF_PROG_INFO, pd.feat_prog_info([PROGRAM]))
BTF = pd.feature_parts(pd.FEAT_BPF_BTF, pd.feat_btf([PROGRAM]))


def script(tmp_path: Path, fields: str, *records: Union[Record, Sample],
           sample_type: int = pd.SAMPLE_DEFAULT) -> list[str]:
    """What perf script prints of a recording in which the program was loaded, its lines."""
    told = [pd.mmap_kernel(), pd.comm("perf-bpf"), *pd.load_records(PROGRAM)]
    PerfData([], [*told, *records], sample_type).write(tmp_path / "perf.data")
    done = run_perf(tmp_path, ["script", "-i", "perf.data", "-F", fields])
    assert done.status == 0, done
    return [line.strip() for line in done.out.splitlines() if line.strip()]


def test_lines_when_btf_comes_last(tmp_path: Path) -> None:
    """A program has lines from then on, though one was looked for before."""
    sample = Sample(MAIN + 1)
    lines = script(tmp_path, "ip,srcline", *INFO, sample, *ROUNDS, *BTF, sample, *ROUNDS)
    assert lines[-1] == "prog.c:7", lines
    assert lines.count("prog.c:7") == 1, lines


def test_code_when_info_comes_late(tmp_path: Path) -> None:
    """A program's code is read from then on, though it was tried before."""
    sample = Sample(MAIN + 1, branches=[Branch(MAIN + len(CODE) - 1, pd.KERNEL_START),
                                        Branch(pd.KERNEL_START, MAIN)])
    lines = script(tmp_path, "brstackinsn", sample, *ROUNDS, *BTF, *INFO, sample, *ROUNDS,
                   sample_type=pd.SAMPLE_DEFAULT | pd.SAMPLE_BRANCH_STACK)
    code = [line for line in lines if "insn:" in line and CODE[:5].hex(" ") in line]
    assert len(code) == 1, lines


def compressed(frame: bytes) -> list[Record]:
    """The info of the program, as perf record writes it to the data of a file."""
    return pd.feature_parts(pd.FEAT_BPF_PROG_INFO, frame, kind=pd.UPDATE_ZSTD_FEATURE_PART)


def test_compressed_info(tmp_path: Path) -> None:
    """A program has lines if its info is compressed, and its BTF is not."""
    frame = pd.zstd_frame(pd.feat_prog_info([PROGRAM]))
    lines = script(tmp_path, "ip,srcline", *BTF, *compressed(frame), Sample(MAIN + 1), *ROUNDS)
    assert lines[-1] == "prog.c:7", lines


@pytest.mark.parametrize("frame", [
    b"\xff" * 200, pd.zstd_frame(b"")[:-1], pd.zstd_frame(bytes(100))[:50],
    struct.pack("<IBIQ", 0xfd2fb528, 0xa0, 0xffffffff, 0)],
    ids=["noise", "empty", "cut", "huge"])
def test_damaged_compression(frame: bytes, tmp_path: Path) -> None:
    """It is told, and what follows is read."""
    PerfData([], [pd.mmap_kernel(), pd.comm("perf-bpf"), *pd.load_records(PROGRAM),
                  *compressed(frame), *INFO, *BTF, Sample(MAIN + 1)]).write(tmp_path / "perf.data")
    done = run_perf(tmp_path, ["script", "-i", "perf.data", "-F", "ip,srcline"])
    assert done.status == 0 and "prog.c:7" in done.out, done
    assert "Cannot decompress BPF_PROG_INFO" in done.err, done


def test_data_that_ends_within_a_feature(tmp_path: Path) -> None:
    """It is told, and how much of the feature there is."""
    PerfData([], [pd.mmap_kernel(), pd.comm("perf-bpf"), *pd.load_records(PROGRAM), *INFO[:2],
                  Sample(MAIN + 1)]).write(tmp_path / "perf.data")
    done = run_perf(tmp_path, ["script", "-i", "perf.data", "-F", "ip,sym"])
    size = len(pd.feat_prog_info([PROGRAM]))
    assert done.status == 0 and "main_prog" in done.out, done
    assert f"ends within a list of BPF programs, after 128 of {size} bytes" in done.err, done


# enum bpf_count: loaded, described, hidden, gone, denied, evicted, unready,
# failed, lost, unfollowed
COUNTS = (34, 21, 1, 5, 0, 3, 2, 2, 0, 1)


def counts(*values: int, nr: Optional[int] = None) -> Record:
    """How many programs have no info, and why."""
    return pd.bpf_counts(len(values) if nr is None else nr,
                         struct.pack(f"<{len(values)}Q", *values))


def unknown_program(record: Record, programs: Sequence[Program] = ()) -> PerfData:
    """A program whose info is lost, three samples of it, and the counts at the end."""
    return PerfData(programs, [pd.mmap_kernel(), pd.comm("perf-bpf"), *pd.load_records(PROGRAM),
                               *[Sample(MAIN + 1)] * 3, record])


@pytest.mark.parametrize("programs", ((), (OTHER,)), ids=("none", "another"))
def test_reasons_are_told(programs: Sequence[Program], tmp_path: Path) -> None:
    """annotate says why a function has no code."""
    unknown_program(counts(*COUNTS), programs).write(tmp_path / "perf.data")
    why = ["Of 34 BPF programs, 13 have no info:",
           "  1 have hidden code: reading it requires CAP_SYSLOG and kernel.kptr_restrict below 2",
           "  5 were unloaded too early: the kernel has no attr.bpf_retain",
           "  3 were not retained: raise kernel.perf_bpf_retain_kb",
           "  2 were still being unloaded when perf record ended",
           "  2 could not be read: perf record -v prints why",
           "  programs loaded during the recording have none and are not counted: "
           "perf could not follow them"]
    annotated = run_perf(tmp_path, ["annotate", "--stdio", "-i", "perf.data"])
    assert all(line in annotated.err for line in why), annotated


@pytest.mark.parametrize("record", [
    counts(*COUNTS, 77), counts(*COUNTS[:2]), counts(*COUNTS, nr=1 << 60), counts(*COUNTS, nr=0),
    counts(1, 2)], ids=["more", "fewer", "huge", "none", "nonsense"])
def test_counts_of_other_versions(record: Record, tmp_path: Path) -> None:
    """More counts than this perf knows, or fewer, or nonsense: what is known is used."""
    unknown_program(record).write(tmp_path / "perf.data")
    report = run_perf(tmp_path, ["report", "--stdio", "-n", "-i", "perf.data"])
    assert report.status == 0 and re.search(r" 3 .*main_prog", report.out), report
    annotated = run_perf(tmp_path, ["annotate", "--stdio", "-i", "perf.data"])
    assert not annotated.crashed, annotated
    assert "The recording has no program info for bpf_prog_" in annotated.err, annotated


@pytest.mark.both
def test_nothing_is_told_of_programs_with_code(tmp_path: Path) -> None:
    """If all sampled programs have code, there is no line about it."""
    unknown_program(counts(*COUNTS), [PROGRAM]).write(tmp_path / "perf.data")
    report = run_perf(tmp_path, ["report", "--stdio", "-i", "perf.data"])
    assert report.status == 0 and "no info" not in report.out + report.err, report


def updates(raw: bytes) -> list[int]:
    """Return the types of the PERF_RECORD_EVENT_UPDATE in a pipe."""
    found, at = [], 16
    while at < len(raw):
        kind, _, size = struct.unpack_from("<IHH", raw, at)
        if kind == pd.RECORD_EVENT_UPDATE:
            found.append(struct.unpack_from("<Q", raw, at + 8)[0])
        at += size
    return found


@pytest.mark.parametrize("killed", (False, True), ids=("whole", "killed"))
def test_inject_of_parts_to_a_pipe(killed: bool, tmp_path: Path) -> None:
    """A pipe has each program once: from the header of the file, or what the data has."""
    frame = pd.zstd_frame(pd.feat_prog_info([PROGRAM]))
    PerfData([] if killed else [PROGRAM],
             [pd.mmap_kernel(), pd.comm("perf-bpf"), *pd.load_records(PROGRAM), *BTF,
              *compressed(frame), Sample(MAIN + 1)]).write(tmp_path / "perf.data")
    done = run_perf(tmp_path, ["inject", "-i", "perf.data", "-o", "-"])
    assert done.status == 0, done
    with open(tmp_path / "pipe.data", "wb") as out:
        subprocess.run([str(perf_binary()), "inject", "-i", "perf.data", "-o", "-"], cwd=tmp_path,
                       stdout=out, check=True, env={**os.environ, "HOME": str(tmp_path)})
    types = updates((tmp_path / "pipe.data").read_bytes())
    assert (pd.UPDATE_ZSTD_FEATURE_PART in types) == killed and types, types
    with open(tmp_path / "pipe.data", "rb") as pipe:
        shown = subprocess.run([str(perf_binary()), "script", "-i", "-", "-F", "ip,srcline"],
                               cwd=tmp_path, stdin=pipe, capture_output=True, text=True,
                               check=True, env={**os.environ, "HOME": str(tmp_path)})
    assert "prog.c:7" in shown.stdout, shown


def test_unknown_updates_are_ignored(tmp_path: Path) -> None:
    """What a newer perf tells between the parts of a feature, and behind it, costs nothing."""
    newer = [Record(pd.RECORD_EVENT_UPDATE, 0, pd.packed("QQQQQ", kind, 0, 25, 64, 0,
                                                            tail=bytes(64)), trailer=False)
             for kind in (4, pd.UPDATE_BPF_COUNTS + 1, (1 << 64) - 1)]
    records = [record for part in [*BTF, *INFO] for record in (part, *newer)]
    lines = script(tmp_path, "ip,srcline", *records, Sample(MAIN + 1), *ROUNDS)
    assert lines[-1] == "prog.c:7", lines
    done = run_perf(tmp_path, ["report", "--stdio", "-i", "perf.data"])
    assert done.status == 0 and "WARNING" not in done.err and "out of order" not in done.err, done


@pytest.mark.both
@pytest.mark.parametrize("pipe", (False, True), ids=("file", "pipe"))
def test_older_perf_prints_nothing_of_parts(pipe: bool, tmp_path: Path) -> None:
    """perf of years ago reads a recording with parts, and prints with --header what it prints
    of one without."""
    perf = Path("/usr/bin/perf")
    if not perf.exists():
        pytest.skip("no perf of the distribution: install linux-perf")
    printed = []
    told: list[Record] = [*INFO, *BTF, counts(*COUNTS)]
    for times in (0, 3):
        file = unknown_program(pd.comm("end"), [PROGRAM])
        file.records = [*file.records[:4], *told * times, *file.records[4:]]
        file.write(tmp_path / "perf.data")
        if pipe:
            (tmp_path / "perf.data").write_bytes(as_pipe(file))
        with open(tmp_path / "perf.data", "rb") as data:
            done = subprocess.run(
                [perf, "report", "--stdio", "--header", "-i", "-" if pipe else "perf.data"],
                cwd=tmp_path, stdin=data, capture_output=True, text=True, check=False,
                env={**os.environ, "HOME": str(tmp_path), "PERF_CONFIG": "/dev/null"})
        assert done.returncode == 0, done
        # the tip at the end is drawn at random
        printed.append([line for line in done.stdout.splitlines()
                        if not re.search(r"captured on|data size|feat offset|\(Tip: ", line)])
    assert printed[0] == printed[1], f"{printed[0]}\n{printed[1]}"
    assert any("main_prog" in line for line in printed[0]), printed


def as_pipe(file: PerfData) -> bytes:
    """Return what perf record writes to a pipe of the recording: its attr, then the records."""
    attr = Record(64, 0, file.attr_bytes(pd.SW_CPU_CLOCK) + struct.pack("<Q", 1), trailer=False)
    return (struct.pack("<8sQ", b"PERFILE2", 16)
            + PerfData(records=[attr]).record_bytes() + file.record_bytes())


@pytest.mark.parametrize("args", [["script", "-F", "ip"],
                                  ["data", "convert", "--to-json", "out.json"]])
def test_pipe_from_stdin(tmp_path: Path, args: list[str]) -> None:
    """Without -i, a pipe that is the stdin of perf is read."""
    records: list[Union[Record, Sample]] = [pd.mmap_kernel(), pd.comm("workload"),
                                            Sample(pd.KERNEL_START + 64)]
    stream = as_pipe(PerfData([], records))
    done = subprocess.run([str(perf_binary()), *args], cwd=tmp_path, input=stream,
                          capture_output=True, check=False, timeout=60,
                          env={**os.environ, "HOME": str(tmp_path)})
    assert done.returncode == 0, done.stderr

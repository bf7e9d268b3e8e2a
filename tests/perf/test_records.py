# SPDX-License-Identifier: GPL-2.0
"""A record that cannot be parsed costs itself, whatever its type, and is counted.

Two events listen, whose sample ids differ in size. Kernels up to v6.18 write KSYMBOL,
BPF_EVENT and TEXT_POKE too long then: behind the id is what was in the ring buffer
before. What perf shows of such a recording is what it shows of one without.
"""
from __future__ import annotations

import random
import re
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Callable, Mapping, Sequence

import pytest

import carriers
import perfdata as pd
from carriers import compressed, mmap2, user
from perfdata import PerfData, Record
from subject import Result, run_perf

TEXT = 0xffffffffc0003000
SAMPLES = 10
WIDE = pd.SAMPLE_DEFAULT | pd.SAMPLE_IDENTIFIER
NARROW = pd.SAMPLE_IP | pd.SAMPLE_TID | pd.SAMPLE_TIME | pd.SAMPLE_IDENTIFIER
IDS = (11, 12)          # of the event that samples, and of the one that only listens
UNKNOWN_ID = 4711
KERNEL_TYPES_END = 64   # PERF_RECORD_USER_TYPE_START
SHOW = ("script", "--kallsyms", "empty", "--show-bpf-events", "--show-text-poke-events",
        "--show-task-events", "--show-mmap-events")

TOO_LONG = (pd.RECORD_KSYMBOL, pd.RECORD_BPF_EVENT, pd.RECORD_TEXT_POKE)


def payload(record: Record) -> bytes:
    """Return what is in a record before its id."""
    return record.body("<")


def contents() -> Mapping[int, tuple[int, bytes]]:
    """Return of each record of the kernel but samples: misc, and what is before its id."""
    zeroes = struct.pack("<QQ", 0, 0)
    task = struct.pack("<IIIIQ", 1001, 1000, 1001, 1000, 5)
    return {
        pd.RECORD_MMAP: (2, struct.pack("<IIQQQ", 1000, 1000, 0x600000, 0x1000, 0)
                         + pd.padded_name("/nonexistent/c")),
        carriers.RECORD_LOST: (0, struct.pack("<QQ", IDS[0], 1)),
        pd.RECORD_COMM: (0, payload(pd.comm("renamed"))),
        carriers.RECORD_EXIT: (0, task),
        carriers.RECORD_THROTTLE: (0, struct.pack("<QQQ", 5, *IDS)),
        6: (0, struct.pack("<QQQ", 5, *IDS)),                       # UNTHROTTLE
        carriers.RECORD_FORK: (0, task),
        carriers.RECORD_READ: (0, struct.pack("<IIQ", 1000, 1000, 1)),
        carriers.RECORD_MMAP2: (2, payload(mmap2(0x500000, "/nonexistent/b"))),
        carriers.RECORD_AUX: (0, struct.pack("<QQQ", 0, 0, 0)),
        carriers.RECORD_ITRACE_START: (0, struct.pack("<II", 1000, 1000)),
        carriers.RECORD_LOST_SAMPLES: (0, struct.pack("<Q", 1)),
        carriers.RECORD_SWITCH: (0, b""),
        carriers.RECORD_SWITCH_CPU_WIDE: (0, struct.pack("<II", 1000, 1000)),
        carriers.RECORD_NAMESPACES: (0, struct.pack("<IIQ", 1000, 1000, 2) + zeroes * 2),
        pd.RECORD_KSYMBOL: (0, payload(pd.ksymbol("bpf_prog_1122334455667788_x", TEXT, 64))),
        pd.RECORD_BPF_EVENT: (0, payload(pd.bpf_event(7, bytes(8)))),
        carriers.RECORD_CGROUP: (0, struct.pack("<Q", 1) + pd.padded_name("/a")),
        pd.RECORD_TEXT_POKE: (1, payload(pd.text_poke(pd.KERNEL_START, b"\x90" * 5,
                                                      b"\xe8" * 5))),
        21: (0, struct.pack("<Q", 1)),                              # AUX_OUTPUT_HW_ID
        22: (2, struct.pack("<QQ", 1, 0)),                          # CALLCHAIN_DEFERRED
    }


@dataclass
class Stream:
    """Records of two events, or of the first alone, as the kernel writes them."""
    events: int = 2
    time: int = 1000000000
    data: bytes = b""

    def sample_type(self, event: int) -> int:
        """Return what samples and ids of the event have."""
        return (WIDE, NARROW)[event] & ~(pd.SAMPLE_IDENTIFIER if self.events == 1 else 0)

    def id(self, event: int, number: int) -> bytes:
        """Return the sample id of a record now."""
        kind, self.time = self.sample_type(event), self.time + 1000
        return (struct.pack("<IIQ", 1000, 1000, self.time)
                + (bytes(8) if kind & pd.SAMPLE_CPU else b"")
                + (struct.pack("<Q", number) if kind & pd.SAMPLE_IDENTIFIER else b""))

    def add(self, kind: int, misc: int, body: bytes) -> None:
        """Add a record of which body is all but the header."""
        self.data += struct.pack("<IHH", kind, misc, 8 + len(body)) + body

    def samples(self) -> Stream:
        """Add the samples; the stream."""
        for _ in range(SAMPLES):
            self.time += 1000
            raw = struct.pack("<Q", IDS[0]) if self.events > 1 else b""
            self.add(pd.RECORD_SAMPLE, pd.MISC_KERNEL, raw + struct.pack(
                "<QIIQIIQ", TEXT + 8, 1000, 1000, self.time, 0, 0, 1000000))
        return self

    def begin(self) -> Stream:
        """Add what is in each recording; the stream."""
        for record in (pd.mmap_kernel(), pd.comm("workload")):
            self.add(record.type, record.misc, payload(record) + self.id(0, IDS[0]))
        return self

    def attrs(self) -> list[bytes]:
        """Return the attr of each event."""
        return [PerfData(sample_type=self.sample_type(event)).attr_bytes(
            pd.SW_DUMMY if event else pd.SW_CPU_CLOCK) for event in range(self.events)]

    def file(self) -> bytes:
        """Return a file of it."""
        return self._file(self.data)

    def compressed(self) -> bytes:
        """Return a file with compressed records."""
        pieces = compressed(self.data)
        return self._file(PerfData(records=pieces).record_bytes(), {
            carriers.FEAT_COMPRESSED: struct.pack("<IIIII", 1, 1, 1, 2, 1 << 16)})

    def pipe(self) -> bytes:
        """Return what perf record writes to a pipe."""
        head = [user(64, attr + struct.pack("<Q", IDS[event]))
                for event, attr in enumerate(self.attrs())]
        return (struct.pack("<8sQ", b"PERFILE2", 16)
                + PerfData(records=head).record_bytes() + self.data)

    def _file(self, data: bytes, features: Mapping[int, bytes] = {}) -> bytes:
        whole = PerfData(ids=IDS[:self.events], features=dict(features),
                         records=[Record(0, 0, b"", trailer=False)])
        raw = whole.to_bytes()
        at, size = struct.unpack_from("<QQ", raw, 40)
        table = bytearray(raw[at + size:])
        grown = len(data) - size
        count = bin(struct.unpack_from("<Q", raw, 72)[0]).count("1")
        for place in range(0, 16 * count, 16):
            struct.pack_into("<Q", table, place,
                             struct.unpack_from("<Q", table, place)[0] + grown)
        out = bytearray(raw[:at] + data + table)
        struct.pack_into("<Q", out, 48, len(data))
        attrs = struct.unpack_from("<Q", raw, 24)[0]
        for place, attr in enumerate(self.attrs()):
            start = attrs + place * (pd.ATTR_SIZE + 16)
            out[start:start + pd.ATTR_SIZE] = attr
        return bytes(out)


CARRIERS: Mapping[str, Callable[[Stream], bytes]] = {
    "file": Stream.file, "pipe": Stream.pipe, "compressed": Stream.compressed}
carrier = pytest.mark.parametrize("carried", CARRIERS)


def show(work: Path, raw: bytes, *args: str) -> Result:
    """Run perf on these bytes."""
    (work / "in.data").write_bytes(raw)
    (work / "empty").touch()
    return run_perf(work, [*(args or SHOW), "-i", "in.data"])


def skipped(result: Result) -> int:
    """Return how many records perf says that it skipped."""
    found = re.search(r"(\d+) records could not be parsed", result.err)
    return int(found[1]) if found else 0


def listeners(events: int, junk: Callable[[], bytes]) -> Stream:
    """Text that comes and goes between samples, told to each event, junk behind each id."""
    out, texts = Stream(events).begin(), contents()
    for number in range(4):
        name = pd.ksymbol(f"bpf_prog_112233445566778{number}_f{'o' * number}", TEXT, 64)
        gone = pd.ksymbol(f"bpf_prog_112233445566778{number}_f{'o' * number}", TEXT, 64,
                          flags=pd.KSYMBOL_UNREGISTER)
        for event in range(events):
            out.add(name.type, 0, payload(name) + out.id(event, IDS[event]) + junk())
            for kind in TOO_LONG[1:]:
                misc, body = texts[kind]
                out.add(kind, misc, body + out.id(event, IDS[event]) + junk())
        out.samples()
        for event in range(events):
            out.add(gone.type, 0, payload(gone) + out.id(event, IDS[event]) + junk())
    return out


def old_memory(seed: int) -> Callable[[], bytes]:
    """What other records left: zeroes, anything, or ids; as long as ids of listeners are.

    The difference of the two ids, 8 bytes, is left out: an id behind the smaller is the end
    of the larger then.
    """
    rng = random.Random(seed)

    def junk() -> bytes:
        size = rng.choice((0, 16, 24, 32, 40, 56, 120))
        return rng.choice((bytes(size), rng.randbytes(size),
                           b"".join(struct.pack("<Q", rng.choice(IDS))
                                    for _ in range(size // 8))))
    return junk


@carrier
@pytest.mark.parametrize("events", (1, 2))
def test_too_long(events: int, carried: str, tmp_path: Path) -> None:
    """What listeners of older kernels get is shown as if it had the right length."""
    seed = random.randrange(1 << 32)
    build = CARRIERS[carried]
    good = show(tmp_path, build(listeners(events, lambda: b"")))
    result = show(tmp_path, build(listeners(events, old_memory(seed))))
    assert result.status == 0 and result.out == good.out, f"seed {seed}: {good}\n{result}"
    for number in range(4):
        name = f"f{'o' * number}+0x8 "
        assert result.out.count(name) == SAMPLES, f"seed {seed}: {result}"
    assert not skipped(result), f"seed {seed}: {result}"


@pytest.mark.parametrize("args", ((), ("--aslr",)), ids=("plain", "aslr"))
def test_too_long_injected(args: Sequence[str], tmp_path: Path) -> None:
    """perf inject passes names and times on, and with --aslr no address of other samples."""
    seed = random.randrange(1 << 32)
    secret, junk = struct.pack("<QQ", TEXT + 0x1234, TEXT + 0x5678), old_memory(seed)
    results = []
    for behind in (lambda: b"", lambda: junk() + secret):
        inject = show(tmp_path, listeners(2, behind).file(), "inject", "-o", "out.data", *args)
        assert inject.status == 0, inject
        results.append(show(tmp_path, (tmp_path / "out.data").read_bytes()))
    assert results[0].out == results[1].out, f"seed {seed}: {results[0]}\n{results[1]}"
    assert results[0].out.count("_fooo+0x8 ") == SAMPLES, results[0]
    assert (secret in (tmp_path / "out.data").read_bytes()) == (not args)


def cut_id(out: Stream, kind: int, misc: int, body: bytes) -> int:
    """The id lacks its last word."""
    out.add(kind, misc, body + out.id(0, IDS[0])[:-8])
    return 1


def cut_content(out: Stream, kind: int, misc: int, body: bytes) -> int:
    """There is no id, and what is before it lacks its last word."""
    if not body:
        return 0
    out.add(kind, misc, body[:-8])
    return 1


def no_event(out: Stream, kind: int, misc: int, body: bytes) -> int:
    """The id is of no event, or was not written: old memory."""
    out.add(kind, misc, body + out.id(0, UNKNOWN_ID))
    return 1


def odd_size(out: Stream, kind: int, misc: int, body: bytes) -> int:
    """The size is not of whole words: the next record begins within the last one."""
    out.add(kind, misc, body + out.id(0, IDS[0]) + b"\0\0\0\0")
    return 1


@carrier
@pytest.mark.parametrize("damage, events", (
    *((damage, events) for damage in (cut_id, cut_content, odd_size) for events in (1, 2)),
    (no_event, 2)),     # an event alone has no id
                         ids=lambda value: getattr(value, "__name__", str(value)))
def test_costs_itself(damage: Callable[[Stream, int, int, bytes], int], events: int,
                      carried: str, tmp_path: Path) -> None:
    """One record of each type is damaged: the samples are shown, and the number is told."""
    out, number = Stream(events).begin(), 0
    for kind, (misc, body) in contents().items():
        number += damage(out, kind, misc, body)
    out.samples()
    raw = CARRIERS[carried](out)
    result = show(tmp_path, raw)
    assert result.status == 0 and result.out.count("cpu-clock:") == SAMPLES, result
    assert skipped(result) == number, f"{number}: {result}"
    dump = show(tmp_path, raw, "script", "-D")
    assert dump.status == 0 and dump.out.count("PERF_RECORD_KSYMBOL") == 1, dump
    report = show(tmp_path, raw, "report", "--stdio")
    assert report.status == 0 and f"Samples: {SAMPLES}" in report.out, report
    assert skipped(report) == number, report


@carrier
def test_sample_costs_itself(carried: str, tmp_path: Path) -> None:
    """A sample that is too short, or of an unknown event, leaves the others."""
    out = Stream().begin()
    out.add(pd.RECORD_SAMPLE, 1, struct.pack("<QQ", IDS[0], TEXT))
    out.add(pd.RECORD_SAMPLE, 1, struct.pack("<QQIIQIIQ", UNKNOWN_ID, TEXT, 1, 1, 1, 0, 0, 1))
    result = show(tmp_path, CARRIERS[carried](out.samples()))
    assert result.status == 0 and result.out.count("cpu-clock:") == SAMPLES, result
    assert skipped(result) == 2, result


@carrier
def test_without_ids(carried: str, tmp_path: Path) -> None:
    """A record whose id is missing, as other tools write it, is used as it comes."""
    out = Stream().begin()
    for kind in (carriers.RECORD_FORK, pd.RECORD_KSYMBOL):
        out.add(kind, *contents()[kind])
    result = show(tmp_path, CARRIERS[carried](out.samples()))
    assert result.status == 0 and result.out.count("_x+0x8 ") == SAMPLES, result
    assert "PERF_RECORD_FORK(1001:1001)" in result.out and not skipped(result), result


@carrier
def test_unknown_types(carried: str, tmp_path: Path) -> None:
    """Records of a newer kernel and a newer perf are counted, once."""
    out, types = Stream().begin(), (23, 40, KERNEL_TYPES_END - 1, 99, 1000)
    for kind in types:
        out.add(kind, 0, bytes(16) + out.id(0, IDS[0]))
    result = show(tmp_path, CARRIERS[carried](out.samples()))
    assert result.status == 0 and result.out.count("cpu-clock:") == SAMPLES, result
    assert f"Found {len(types)} unknown events" in result.err, result


@pytest.mark.parametrize("record", (
    Record(carriers.RECORD_CPU_MAP, 0, struct.pack("<HH4H", 0, 4, 0, 1, 2, 3), trailer=False),
    Record(carriers.RECORD_BUILD_ID, 0, struct.pack("<i24s", -1, bytes(range(24)))
           + b"[kernel.kallsyms]".ljust(64, b"\0"), trailer=False)),
    ids=("cpu-map", "build-id"))
@carrier
def test_older_perf(carried: str, record: Record, tmp_path: Path) -> None:
    """Records that older perfs did not pad to whole words are read."""
    out = Stream().begin()
    out.add(record.type, record.misc, payload(record))
    raw = CARRIERS[carried](out.samples())
    result = show(tmp_path, raw)
    assert result.status == 0 and result.out.count("cpu-clock:") == SAMPLES, result
    assert not skipped(result) and "WARNING" not in result.err, result


def test_broken_chunk(tmp_path: Path) -> None:
    """A compressed record that cannot be decompressed leaves what was before it."""
    out = Stream().begin()
    for _ in range(20):
        out.samples()
    raw = bytearray(out.compressed())
    frames = [match.start() for match in re.finditer(
        re.escape(struct.pack("<I", carriers.ZSTD_MAGIC)), raw)]
    raw[frames[5]:frames[5] + 4] = bytes(4)
    result = show(tmp_path, bytes(raw))
    assert result.status == 0 and skipped(result) >= 1, result
    assert result.out.count("cpu-clock:") > 5 * 1024 // 100 - 2, result


def test_pipe_that_is_no_longer_one(tmp_path: Path) -> None:
    """Where a pipe has a record without a size, what was before is shown."""
    out = Stream().begin().samples()
    out.add(pd.RECORD_COMM, 0, b"")
    out.data = out.data[:-2] + bytes(2)
    result = show(tmp_path, out.samples().pipe())
    assert result.status == 0 and result.out.count("cpu-clock:") == SAMPLES, result
    assert "what follows is not read" in result.err, result


@pytest.mark.parametrize("command", ("report", "script", "annotate", "data"))
@carrier
def test_no_sample_can_be_parsed(carried: str, command: str, tmp_path: Path) -> None:
    """A reader that skips all samples fails; one of a recording that has none does not."""
    out = Stream().begin()
    args = {"script": ["script"], "data": ["data", "convert", "--force", "--to-json", "out.json"]
            }.get(command, [command, "--stdio"])
    empty = show(tmp_path, CARRIERS[carried](out), *args)
    assert not empty.crashed and "could be parsed" not in empty.err, empty
    for _ in range(SAMPLES):
        out.add(pd.RECORD_SAMPLE, 1, struct.pack("<QQIIQIIQ", UNKNOWN_ID, TEXT, 1, 1, 1, 0, 0, 1))
    result = show(tmp_path, CARRIERS[carried](out), *args)
    assert result.status and not result.crashed, result
    assert "none of the samples could be parsed" in result.err, result


def test_pipe_with_its_events_last(tmp_path: Path) -> None:
    """Nothing of such a pipe can be shown, and that is an error."""
    out = Stream().begin().samples()
    raw = out.pipe()
    head = len(raw) - len(out.data)
    result = show(tmp_path, raw[:16] + raw[head:] + raw[16:head], "report", "--stdio")
    assert result.status and not result.crashed, result
    assert "none of the samples could be parsed" in result.err, result


def test_nothing_can_be_decompressed(tmp_path: Path) -> None:
    """If all samples are in chunks that cannot be decompressed, that is an error."""
    raw = bytearray(Stream().begin().samples().compressed())
    frames = [match.start() for match in re.finditer(
        re.escape(struct.pack("<I", carriers.ZSTD_MAGIC)), raw)]
    for frame in frames:
        raw[frame:frame + 4] = bytes(4)
    for command in (["script"], ["report", "--stdio"], ["annotate", "--stdio"]):
        result = show(tmp_path, bytes(raw), *command)
        assert result.status and not result.crashed and skipped(result), result
        assert "none of the samples could be parsed" in result.err, result

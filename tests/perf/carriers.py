# SPDX-License-Identifier: GPL-2.0
"""perf.data files whose bytes are to be changed: small, and with much in them.

Each function returns an honest file, the same every time. Together they have every
header feature and every record that a file, rather than a pipe, may have, a data
section of many pages, compressed records, AUX data and offsets in all of these.
"""
from __future__ import annotations

import functools
import struct
from typing import Callable, Optional, Sequence

import perfdata as pd
from perfdata import PerfData, Record, Sample
from test_hostile import MAIN, OTHER, SAMPLED, bystander, victim

# enum perf_event_type and perf_user_event_type
(RECORD_LOST, RECORD_EXIT, RECORD_THROTTLE, RECORD_FORK, RECORD_READ) = (2, 4, 5, 7, 8)
(RECORD_MMAP2, RECORD_AUX, RECORD_ITRACE_START, RECORD_LOST_SAMPLES) = (10, 11, 12, 13)
(RECORD_SWITCH, RECORD_SWITCH_CPU_WIDE, RECORD_NAMESPACES, RECORD_CGROUP) = (14, 15, 16, 19)
(RECORD_BUILD_ID, RECORD_ID_INDEX, RECORD_AUXTRACE_INFO) = (67, 69, 70)
(RECORD_AUXTRACE, RECORD_AUXTRACE_ERROR, RECORD_THREAD_MAP, RECORD_CPU_MAP) = (71, 72, 73, 74)
(RECORD_STAT_CONFIG, RECORD_STAT, RECORD_STAT_ROUND, RECORD_EVENT_UPDATE) = (75, 76, 77, 78)
(RECORD_TIME_CONV, RECORD_COMPRESSED, RECORD_FINISHED_INIT) = (79, 81, 82)
(RECORD_COMPRESSED2, RECORD_BPF_METADATA) = (83, 84)

# header features that perfdata does not know
(FEAT_BUILD_ID, FEAT_CPUDESC, FEAT_CPUID, FEAT_TOTAL_MEM) = (2, 8, 9, 10)
(FEAT_CMDLINE, FEAT_EVENT_DESC, FEAT_CPU_TOPOLOGY, FEAT_NUMA_TOPOLOGY) = (11, 12, 13, 14)
(FEAT_BRANCH_STACK, FEAT_PMU_MAPPINGS, FEAT_GROUP_DESC, FEAT_AUXTRACE) = (15, 16, 17, 18)
(FEAT_CACHE, FEAT_SAMPLE_TIME, FEAT_MEM_TOPOLOGY, FEAT_CLOCKID) = (20, 21, 22, 23)
(FEAT_COMPRESSED, FEAT_CPU_PMU_CAPS, FEAT_CLOCK_DATA) = (27, 28, 29)
(FEAT_HYBRID_TOPOLOGY, FEAT_PMU_CAPS, FEAT_CPU_DOMAIN_INFO) = (30, 31, 32)

AUXTRACE_INTEL_BTS = 2
WIDE = 104 << 10        # bytes of records in the file of many pages
ZSTD_MAGIC = 0xfd2fb528
KSYM_NAME_LEN = 512

text = pd.feat_string


def strings(*names: str) -> bytes:
    """A count and so many strings."""
    return struct.pack("<I", len(names)) + b"".join(text(name) for name in names)


def user(kind: int, payload: bytes) -> Record:
    """A record that perf wrote, not the kernel: no trailer."""
    return Record(kind, 0, payload + bytes(-len(payload) % 8), trailer=False)


def kernel(kind: int, payload: bytes, misc: int = 0) -> Record:
    """A record of the kernel."""
    return Record(kind, misc, payload + bytes(-len(payload) % 8))


def mmap2(addr: int, name: str, build_id: bool = False) -> Record:
    """A mapping of a file, with its inode or its build ID."""
    which = (struct.pack("<BBH20s", 20, 0, 0, bytes(range(20))) if build_id
             else struct.pack("<IIQQ", 8, 1, 4711, 0))
    raw = struct.pack("<IIQQQ", 1000, 1000, addr, 0x1000, 0) + which + struct.pack("<II", 5, 2)
    return kernel(RECORD_MMAP2, raw + pd.padded_name(name), 2 | (1 << 14 if build_id else 0))


# -- features -----------------------------------------------------------------

def attr(ids: Sequence[int] = ()) -> bytes:
    """The attr of these files' event, and ids."""
    return PerfData().attr_bytes(pd.SW_CPU_CLOCK) + b"".join(struct.pack("<Q", i) for i in ids)


def many_features() -> dict[int, Optional[bytes]]:
    """All that recordings on different machines have in their headers."""
    caps = strings("branches", "32")[4:]
    event = struct.pack("<II", 1, pd.ATTR_SIZE) + attr()
    build_id = struct.pack("<IHHi20s4x", 1, 1, 8 + 28 + 24, -1, bytes(range(20)))
    memory = struct.pack("<QQQ", 1, 1 << 27, 1) + struct.pack("<QQ", 0, 1 << 30) \
        + struct.pack("<QQ", 64, (1 << 64) - 1)
    domain = struct.pack("<III", 0, 1, 0) + text("MC") + text("1") + text("0")
    return {
        FEAT_BUILD_ID: build_id + b"[kernel.kallsyms]".ljust(24, b"\0"),
        FEAT_CPUDESC: text("A CPU"),
        FEAT_CPUID: text("GenuineIntel,6,85,7"),
        FEAT_TOTAL_MEM: struct.pack("<Q", 1 << 24),
        FEAT_CMDLINE: strings("perf", "record", "-a"),
        FEAT_EVENT_DESC: event + struct.pack("<I", 2) + text("cpu-clock")
        + struct.pack("<QQ", 11, 12),
        FEAT_CPU_TOPOLOGY: strings("0") + strings("0") + struct.pack("<II", 0, 0)
        + strings("0") + struct.pack("<I", 0),
        FEAT_NUMA_TOPOLOGY: struct.pack("<IIQQ", 1, 0, 1 << 24, 1 << 20) + text("0"),
        FEAT_PMU_MAPPINGS: struct.pack("<II", 2, 1) + text("software")
        + struct.pack("<I", 4) + text("cpu"),
        FEAT_GROUP_DESC: struct.pack("<I", 1) + text("group") + struct.pack("<II", 0, 1),
        FEAT_CACHE: struct.pack("<IIIIII", 1, 1, 1, 64, 64, 8) + text("Data") + text("32K")
        + text("0"),
        FEAT_SAMPLE_TIME: struct.pack("<QQ", 1000001000, 1000900000),
        FEAT_MEM_TOPOLOGY: memory,
        FEAT_CLOCKID: struct.pack("<Q", 1),
        FEAT_CPU_PMU_CAPS: struct.pack("<I", 1) + caps,
        FEAT_CLOCK_DATA: struct.pack("<IIQQ", 1, 1, 1 << 40, 1 << 30),
        FEAT_HYBRID_TOPOLOGY: struct.pack("<I", 1) + text("cpu_core") + text("0"),
        FEAT_PMU_CAPS: struct.pack("<II", 1, 1) + caps + text("cpu"),
        FEAT_CPU_DOMAIN_INFO: struct.pack("<II", 17, 1) + domain,
    }


# -- compressed records -------------------------------------------------------

def zstd_frame(raw: bytes) -> bytes:
    """A zstd frame that holds raw as it is: what a compressor makes of noise."""
    # no single segment, window of 1 MiB; then one last block, not compressed
    return (struct.pack("<IBB", ZSTD_MAGIC, 0, 10 << 3)
            + (1 | 0 << 1 | len(raw) << 3).to_bytes(3, "little") + raw)


def compressed(records: bytes) -> list[Record]:
    """The records in pieces, in both kinds of compressed records."""
    pieces = [records[at:at + 1024] for at in range(0, len(records), 1024)]
    out = []
    for number, piece in enumerate(pieces):
        frame = zstd_frame(piece)
        if number % 2:
            out.append(Record(RECORD_COMPRESSED, 0, frame, trailer=False))
        else:
            out.append(user(RECORD_COMPRESSED2, struct.pack("<Q", len(frame)) + frame))
    return out


# -- files --------------------------------------------------------------------

def small() -> bytes:
    """A few records, two programs."""
    return pd.recording([victim(), bystander()], SAMPLED).to_bytes()


def noise(bytes_of_records: int) -> list[Record]:
    """All the records that the kernel writes, and pieces of text, again and again."""
    records: list[Record] = []
    at, size = 0xffffffffc1000000, 0
    while size < bytes_of_records:
        at += 0x1000
        more = [pd.comm(f"task-{at & 0xffff:x}", at & 0xffff),
                mmap2(at & 0xffffffffff, f"/nonexistent/lib{at:x}.so"),
                mmap2(at & 0xfffffffff, f"/nonexistent/bin{at:x}", build_id=True),
                pd.ksymbol(f"bpf_prog_{at:016x}_noise", at, 64),
                pd.text_poke(at, b"", b"\x90" * 63 + b"\xc3"),
                pd.ksymbol(f"bpf_trampoline_{at:x}", at + 64, 64, ksym_type=pd.KSYMBOL_OOL),
                kernel(RECORD_FORK, struct.pack("<IIIIQ", at & 0xffff, 1000, at & 0xffff,
                                                1000, 5)),
                kernel(RECORD_EXIT, struct.pack("<IIIIQ", at & 0xffff, 1000, at & 0xffff,
                                                1000, 5)),
                user(pd.RECORD_FINISHED_ROUND, b"")]
        records += more
        size += sum(len(record.body("<")) + 32 for record in more)
    return records


def wide() -> bytes:
    """Records of more pages than one, and ten samples of BPF programs at the end."""
    return pd.recording([victim(), bystander()], SAMPLED, before=noise(WIDE)).to_bytes()


def sampled_wide() -> PerfData:
    """Samples with call chains, in a data section of a few pages."""
    samples = [Sample(MAIN + 5, chain=[OTHER, MAIN])] * 3 + [Sample(OTHER)] * 7
    return pd.recording([victim(), bystander()], samples, before=noise(12 << 10),
                        sample_type=pd.SAMPLE_DEFAULT | pd.SAMPLE_CALLCHAIN)


def branches() -> bytes:
    """Samples with branch stacks."""
    sample = Sample(MAIN + 5, branches=[pd.Branch(MAIN, OTHER), pd.Branch(OTHER, MAIN)])
    return pd.recording([victim(), bystander()], [sample] * 4,
                        sample_type=pd.SAMPLE_DEFAULT | pd.SAMPLE_BRANCH_STACK).to_bytes()


def all_features() -> bytes:
    """All header features."""
    file = sampled_wide()
    file.features = many_features()
    return file.to_bytes()


def all_records() -> bytes:
    """All records."""
    file = pd.recording([victim(), bystander()], SAMPLED)
    zeroes = struct.pack("<QQ", 0, 0)
    file.records = [
        *file.records[:2],
        user(RECORD_FINISHED_INIT, b""),
        user(RECORD_BUILD_ID, struct.pack("<i20s4x", -1, bytes(20)) + pd.padded_name("/x")),
        user(RECORD_THREAD_MAP, struct.pack("<QQ16s", 1, 1000, b"workload")),
        user(RECORD_CPU_MAP, struct.pack("<HBxHH", 2, 0, 0, 1)),
        user(RECORD_EVENT_UPDATE, struct.pack("<QQ", 2, 11) + pd.padded_name("renamed")),
        user(RECORD_TIME_CONV, struct.pack("<QQQQQII", 10, 1 << 20, 0, 0, 0, 1, 1)),
        user(RECORD_BPF_METADATA, b"main_prog".ljust(KSYM_NAME_LEN, b"\0")
             + struct.pack("<Q", 1) + b"key".ljust(64, b"\0") + b"value".ljust(256, b"\0")),
        kernel(RECORD_LOST, struct.pack("<QQ", 11, 1)),
        kernel(RECORD_THROTTLE, struct.pack("<QQQ", 5, 11, 11)),
        kernel(RECORD_READ, struct.pack("<IIQ", 1000, 1000, 1)),
        kernel(RECORD_LOST_SAMPLES, struct.pack("<Q", 1)),
        kernel(RECORD_SWITCH, b""),
        kernel(RECORD_SWITCH_CPU_WIDE, struct.pack("<II", 1000, 1000)),
        kernel(RECORD_NAMESPACES, struct.pack("<IIQ", 1000, 1000, 2) + zeroes * 2),
        kernel(RECORD_CGROUP, struct.pack("<Q", 1) + pd.padded_name("/a")),
        mmap2(0x400000, "/nonexistent/a"), mmap2(0x500000, "/nonexistent/b", build_id=True),
        *file.records[2:]]
    return file.to_bytes()


def counted() -> bytes:
    """What perf stat record writes."""
    file = pd.recording([victim(), bystander()], SAMPLED)
    file.records = [
        user(RECORD_THREAD_MAP, struct.pack("<QQ16s", 1, 1000, b"workload")),
        user(RECORD_CPU_MAP, struct.pack("<HHHH", 0, 2, 0, 1)),
        user(RECORD_CPU_MAP, struct.pack("<HHHxxI", 1, 1, 4, 3)),
        user(RECORD_CPU_MAP, struct.pack("<HHHxxxxxxQ", 1, 1, 8, 3)),
        user(RECORD_STAT_CONFIG, struct.pack("<QQQ", 1, 0, 1)),
        user(RECORD_STAT, struct.pack("<QIIQQQ", 11, 0, 0, 1, 1, 1)),
        user(RECORD_STAT_ROUND, struct.pack("<QQ", 0, 1000)),
        *file.records]
    return file.to_bytes()


def packed() -> bytes:
    """Compressed records."""
    inner = PerfData(records=sampled_wide().records,
                     sample_type=pd.SAMPLE_DEFAULT | pd.SAMPLE_CALLCHAIN)
    return PerfData([victim(), bystander()], compressed(inner.record_bytes()),
                    sample_type=inner.sample_type,
                    features={FEAT_COMPRESSED: struct.pack("<IIIII", 1, 1, 1, 2, 1 << 16)}
                    ).to_bytes()


def traced() -> bytes:
    """AUX data of two pages, in an index."""
    file = pd.recording([victim(), bystander()], SAMPLED)
    data = bytes(8192)
    info = struct.pack("<II", AUXTRACE_INTEL_BTS, 0) + struct.pack(
        "<QQQQQQQQQ", 1, 0, 1 << 20, 0, 0, 0, 0, 0, 0)
    # whatever follows AUXTRACE is raw
    trace = Record(RECORD_AUXTRACE, 0, struct.pack("<QQQIIII", len(data), 0, 0, 0, 1000, 0, 0)
                   + data, trailer=False, size=48)
    error = user(RECORD_AUXTRACE_ERROR, struct.pack("<IIIIIIQQ", 1, 1, 0, 1000, 1000, 0, 0, 0)
                 + bytes(64 + 16))
    file.records = [*file.records[:2], user(RECORD_AUXTRACE_INFO, info),
                    kernel(RECORD_ITRACE_START, struct.pack("<II", 1000, 1000)),
                    kernel(RECORD_AUX, struct.pack("<QQQ", 0, len(data), 0)),
                    *file.records[2:], trace, error]
    at = file.data_offset() + file.record_bytes().index(trace.body("<")) - 8
    file.features = {FEAT_AUXTRACE: struct.pack("<QQQ", 1, at, 48)}
    return file.to_bytes()


def at_page(file: bytes) -> bytes:
    """The file with its data section a page and more further on."""
    gap = 4096 + 512
    attrs, table = 104 + pd.ATTR_SIZE + 16, struct.unpack_from("<Q", file, 48)[0]
    out = bytearray(file[:attrs] + bytes(gap) + file[attrs:])
    struct.pack_into("<Q", out, 40, attrs + gap)
    count = sum(bin(word).count("1") for word in struct.unpack_from("<QQQQ", file, 72))
    for number in range(count):
        at = attrs + gap + table + number * 16
        struct.pack_into("<Q", out, at, struct.unpack_from("<Q", out, at)[0] + gap)
    return bytes(out)


# -- the other byte order -------------------------------------------------------

# sizes of the fields of records, but for names and trailers
FIELDS = {pd.RECORD_MMAP: (4, 4, 8, 8, 8), pd.RECORD_COMM: (4, 4),
          pd.RECORD_SAMPLE: (8, 4, 4, 8, 4, 4, 8), pd.RECORD_KSYMBOL: (8, 4, 2, 2),
          pd.RECORD_BPF_EVENT: (2, 2, 4)}
TRAILER = (4, 4, 8, 4, 4)


def turn(raw: bytearray, at: int, *sizes: int) -> None:
    """Give fields of these sizes, from at on, the other byte order."""
    for size in sizes:
        raw[at:at + size] = raw[at:at + size][::-1]
        at += size


def swapped() -> bytes:
    """The small file of a machine with the other byte order, without programs' features."""
    file = pd.recording([victim(), bystander()], SAMPLED)
    file.programs = ()
    raw = bytearray(file.to_bytes())
    data, size = struct.unpack_from("<QQ", raw, 40)
    at, end = data, data + size
    while at < end:
        kind, _, length = struct.unpack_from("<IHH", raw, at)
        turn(raw, at, 4, 2, 2, *FIELDS[kind])
        if kind != pd.RECORD_SAMPLE:
            turn(raw, at + length - sum(TRAILER), *TRAILER)
        at += length
    for number in range(bin(struct.unpack_from("<Q", raw, 72)[0]).count("1")):
        entry = end + number * 16
        section, length = struct.unpack_from("<QQ", raw, entry)
        turn(raw, section, *((4, 4) if length == 8 else (4,)))
        turn(raw, entry, 8, 8)
    turn(raw, 0, *[8] * 13)
    turn(raw, 104, 4, 4, *[8] * 4)
    raw[144:152] = bytes(int(f"{byte:08b}"[::-1], 2) for byte in raw[144:152])
    turn(raw, 104 + pd.ATTR_SIZE, 8, 8)
    return bytes(raw)


CARRIERS: Sequence[tuple[str, Callable[[], bytes]]] = (
    ("small", small), ("wide", wide), ("features", all_features), ("records", all_records),
    ("stat", counted), ("compressed", packed), ("aux", traced), ("branches", branches),
    ("at-page", lambda: at_page(wide())), ("swapped", swapped),
)


@functools.lru_cache(maxsize=None)
def carrier(number: int) -> bytes:
    """Return the file of that place in CARRIERS."""
    return CARRIERS[number][1]()

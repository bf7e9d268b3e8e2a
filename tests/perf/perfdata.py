# SPDX-License-Identifier: GPL-2.0
"""Write perf.data files by hand, with BPF programs in them, honest or hostile.

A test says what was recorded (programs of several functions, their code, their
source lines, where samples fell) and gets a file that perf can read: no kernel,
no privileges, the same bytes on every machine. A hostile test changes one thing
after the layout is done: any field of bpf_prog_info, any array, any length.

The file, as tools/perf/util/header.c reads it, in the byte order of the machine
recorded on (class Machine):

    file header | attr + its (empty) ids | records | table of features | features

    BPF_PROG_INFO   u32 count, then per program
                    u32 info_len, u32 data_len, u64 arrays, info, data
    BPF_BTF         u32 count, then per object  u32 id, u32 size, data

The pointers in info are offsets into data, where each array begins on a
multiple of 8 (tools/perf/util/bpf-utils.c).
"""
from __future__ import annotations

import struct
from dataclasses import dataclass, field
from pathlib import Path
from typing import Callable, Mapping, NamedTuple, Optional, Sequence, Union

# enum perf_event_type (include/uapi/linux/perf_event.h)
RECORD_MMAP = 1
RECORD_COMM = 3
RECORD_SAMPLE = 9
RECORD_KSYMBOL = 17
RECORD_BPF_EVENT = 18
RECORD_TEXT_POKE = 20
RECORD_FINISHED_ROUND = 68
RECORD_ID_INDEX = 69
RECORD_EVENT_UPDATE = 78
RECORD_FINISHED_INIT = 82

# PERF_EVENT_UPDATE__*: of BPF programs
UPDATE_FEATURE_PART, UPDATE_ZSTD_FEATURE_PART, UPDATE_BPF_COUNTS = range(0x4250, 0x4253)

MISC_KERNEL, MISC_GUEST_KERNEL = 1, 4
KSYMBOL_BPF = 1
KSYMBOL_OOL = 2
KSYMBOL_CBPF = 4
KSYMBOL_THUNK = 5
KSYMBOL_UNREGISTER = 1
BPF_PROG_LOAD = 1
BPF_PROG_UNLOAD = 2

SAMPLE_IP = 1 << 0
SAMPLE_TID = 1 << 1
SAMPLE_TIME = 1 << 2
SAMPLE_CALLCHAIN = 1 << 5
SAMPLE_CPU = 1 << 7
SAMPLE_PERIOD = 1 << 8
SAMPLE_BRANCH_STACK = 1 << 11
SAMPLE_IDENTIFIER = 1 << 16
SAMPLE_DEFAULT = SAMPLE_IP | SAMPLE_TID | SAMPLE_TIME | SAMPLE_CPU | SAMPLE_PERIOD

# enum perf_type_id, perf_hw_id, perf_sw_ids
TYPE_HARDWARE, TYPE_SOFTWARE = 0, 1
HW_CYCLES, HW_INSTRUCTIONS = 0, 1
SW_CPU_CLOCK = 0
SW_DUMMY = 9

# of a callchain entry: what follows is kernel text (PERF_CONTEXT_KERNEL)
CONTEXT_KERNEL = (1 << 64) - 128

# header features (tools/perf/util/header.h)
FEAT_HOSTNAME = 3
FEAT_OSRELEASE = 4
FEAT_VERSION = 5
FEAT_ARCH = 6
FEAT_NRCPUS = 7
FEAT_GROUP_DESC = 17
FEAT_BPF_PROG_INFO = 25
FEAT_BPF_BTF = 26

ATTR_SIZE = 128                 # PERF_ATTR_SIZE_VER7: all that a sampling clock needs
KERNEL_START = 0xffffffff81000000
KERNEL_LEN = 0x1000000


@dataclass(frozen=True)
class Machine:
    """The machine recorded on: as uname -m names it, the byte order as of struct,
    and where its kernel's text is."""
    arch: str = "x86_64"
    order: str = "<"
    kernel_start: int = KERNEL_START


X86_64 = Machine()

# struct bpf_prog_info, in order: "4x" pads are part of the field before them
INFO_FIELDS: Sequence[tuple[str, str]] = (
    ("type", "I"), ("id", "I"), ("tag", "8s"),
    ("jited_prog_len", "I"), ("xlated_prog_len", "I"),
    ("jited_prog_insns", "Q"), ("xlated_prog_insns", "Q"), ("load_time", "Q"),
    ("created_by_uid", "I"), ("nr_map_ids", "I"), ("map_ids", "Q"),
    ("name", "16s"), ("ifindex", "I"), ("flags", "I"),
    ("netns_dev", "Q"), ("netns_ino", "Q"),
    ("nr_jited_ksyms", "I"), ("nr_jited_func_lens", "I"),
    ("jited_ksyms", "Q"), ("jited_func_lens", "Q"),
    ("btf_id", "I"), ("func_info_rec_size", "I"), ("func_info", "Q"),
    ("nr_func_info", "I"), ("nr_line_info", "I"),
    ("line_info", "Q"), ("jited_line_info", "Q"),
    ("nr_jited_line_info", "I"), ("line_info_rec_size", "I"),
    ("jited_line_info_rec_size", "I"), ("nr_prog_tags", "I"), ("prog_tags", "Q"),
    ("run_time_ns", "Q"), ("run_cnt", "Q"), ("recursion_misses", "Q"),
    ("verified_insns", "I"), ("attach_btf_obj_id", "I"), ("attach_btf_id", "I"),
    ("nr_hidden_funcs", "I"),
)

# The arrays of struct perf_bpil: bit number = place in this list. The second
# name is the field with the count, of records of the third (bytes).
ARRAYS: Sequence[tuple[str, str, int]] = (
    ("jited_prog_insns", "jited_prog_len", 1),
    ("xlated_prog_insns", "xlated_prog_len", 1),
    ("map_ids", "nr_map_ids", 4),
    ("jited_ksyms", "nr_jited_ksyms", 8),
    ("jited_func_lens", "nr_jited_func_lens", 4),
    ("func_info", "nr_func_info", 8),
    ("line_info", "nr_line_info", 16),
    ("jited_line_info", "nr_jited_line_info", 8),
    ("prog_tags", "nr_prog_tags", 8),
)


def array_bit(name: str) -> int:
    """Return the bit in perf_bpil.arrays of the array called name (KeyError: none is)."""
    return 1 << {array: i for i, (array, _, _) in enumerate(ARRAYS)}[name]


class Insn(NamedTuple):
    """struct bpf_insn."""
    code: int
    dst: int = 0
    src: int = 0
    off: int = 0
    imm: int = 0

    def pack(self, order: str = "<") -> bytes:
        """Return the 8 bytes; the registers are bit fields, in the machine's order."""
        low, high = (self.dst, self.src) if order == "<" else (self.src, self.dst)
        return struct.pack(order + "BBhi", self.code, high << 4 | low, self.off, self.imm)


@dataclass
class Line:
    """Where a source line's code begins: offset is in bytes from its function's start.

    A source file's name, its line's number and column (both from 1) and its text; and the
    BPF instructions of the line. A line without has one that is not recorded.
    """
    offset: int
    file: Union[str, bytes]
    line: int
    col: int
    text: Union[str, bytes]
    insns: Sequence[Insn] = ()


@dataclass
class Function:
    """A function of a program: its machine code and the address where it was."""
    name: str
    addr: int
    code: bytes
    lines: Sequence[Line] = ()

    def at(self, offset: int) -> int:
        """Return the address of the byte at offset."""
        return self.addr + offset


@dataclass
class Program:
    """A BPF program; functions[0] is the main one.

    What follows functions is for hostile tests, applied when all else is laid out:
    blobs replaces the bytes of an array (its count stays that of the honest one),
    fields replaces fields of bpf_prog_info, arrays the bits of the arrays present,
    info_tail is what a newer kernel has behind the fields known here, info_len cuts
    or lies about the length of info (the bytes are cut only when it is shorter),
    data_len lies about the length of data, and btf replaces the BTF object.
    """
    id: int
    name: str
    functions: Sequence[Function]
    tag: bytes = b"\x11\x22\x33\x44\x55\x66\x77\x88"
    btf_id: int = 0                             # 0: as the program's id
    blobs: Mapping[str, bytes] = field(default_factory=dict)
    fields: Mapping[str, Union[int, bytes]] = field(default_factory=dict)
    arrays: Optional[int] = None
    info_tail: bytes = b""
    info_len: Optional[int] = None
    data_len: Optional[int] = None
    btf: Optional[bytes] = None

    def tag_of(self, sub_id: int) -> bytes:
        """Return the tag of a function: the program's, but for its first byte."""
        return bytes([(self.tag[0] + sub_id) & 0xff]) + self.tag[1:]

    def symbol(self, sub_id: int) -> str:
        """Return the name that the kernel gives a function in kallsyms."""
        return f"bpf_prog_{self.tag_of(sub_id).hex()}_{self.functions[sub_id].name}"


# -- BTF ----------------------------------------------------------------------

BTF_INT = 1
BTF_FUNC = 12
BTF_FUNC_PROTO = 13
BTF_FUNC_GLOBAL = 1


def _bytes(text: Union[str, bytes]) -> bytes:
    return text.encode() if isinstance(text, str) else text


class Btf:
    """Builds a BTF object; add_*() return the id of the type added."""

    def __init__(self, order: str = "<") -> None:
        self._order = order
        self._types = bytearray()
        self._nr_types = 0
        self._strings = b"\0"
        self._offsets: dict[bytes, int] = {b"": 0}

    def string(self, text: Union[str, bytes]) -> int:
        """Add a string, once, and return its offset."""
        raw = _bytes(text)
        if raw not in self._offsets:
            self._offsets[raw] = len(self._strings)
            self._strings += raw + b"\0"
        return self._offsets[raw]

    def add(self, name: str, kind: int, vlen: int, type_or_size: int,
            extra: bytes = b"") -> int:
        """Add a type of any kind, well-formed or not."""
        self._types += struct.pack(self._order + "III", self.string(name),
                                   kind << 24 | vlen, type_or_size) + extra
        self._nr_types += 1
        return self._nr_types

    def add_int(self) -> int:
        """Add the signed 32-bit int."""
        return self.add("int", BTF_INT, 0, 4, struct.pack(self._order + "I", 1 << 24 | 32))

    def add_func(self, name: str, proto: int) -> int:
        """Add a global function of the prototype with that id."""
        return self.add(name, BTF_FUNC, BTF_FUNC_GLOBAL, proto)

    def blob(self, **header: int) -> bytes:
        """Return the object; header replaces fields of struct btf_header."""
        fields = {"magic": 0xeb9f, "version": 1, "flags": 0, "hdr_len": 24,
                  "type_off": 0, "type_len": len(self._types),
                  "str_off": len(self._types), "str_len": len(self._strings)}
        unknown = set(header) - set(fields)
        if unknown:
            raise KeyError(f"no such field of struct btf_header: {unknown}")
        fields.update(header)
        return (struct.pack(self._order + "HBBIIIII", *fields.values())
                + bytes(self._types) + self._strings)


def program_btf(program: Program, order: str = "<") -> tuple[Btf, list[int]]:
    """Return the BTF of a program and the type id of each of its functions.

    The strings of its source lines are in there too, for line_info to refer to.
    """
    btf = Btf(order)
    proto = btf.add("", BTF_FUNC_PROTO, 0, btf.add_int())
    type_ids = [btf.add_func(function.name, proto) for function in program.functions]
    for function in program.functions:
        for line in function.lines:
            btf.string(line.file)
            btf.string(line.text)
    return btf, type_ids


# -- bpf_prog_info ------------------------------------------------------------

def _line_arrays(program: Program, btf: Btf, order: str) -> tuple[bytes, bytes]:
    """Return line_info and jited_line_info: sorted by function, then by offset."""
    records, addrs, insn = b"", b"", 0
    for function in program.functions:
        for line in function.lines:
            records += struct.pack(order + "IIII", insn, btf.string(line.file),
                                   btf.string(line.text), line.line << 10 | line.col)
            addrs += struct.pack(order + "Q", function.at(line.offset))
            insn += len(line.insns) or 1
    return records, addrs


def program_arrays(program: Program, order: str = "<") -> dict[str, bytes]:
    """Return the arrays of an honest program, by name."""
    functions = program.functions
    btf, type_ids = program_btf(program, order)
    line_info, jited_line_info = _line_arrays(program, btf, order)
    arrays = {
        "jited_prog_insns": b"".join(f.code for f in functions),
        "xlated_prog_insns": b"".join(insn.pack(order) for f in functions
                                      for line in f.lines for insn in line.insns),
        "jited_ksyms": b"".join(struct.pack(order + "Q", f.addr) for f in functions),
        "jited_func_lens": b"".join(struct.pack(order + "I", len(f.code)) for f in functions),
        "func_info": b"".join(struct.pack(order + "II", i, t) for i, t in enumerate(type_ids)),
        "line_info": line_info,
        "jited_line_info": jited_line_info,
        "prog_tags": b"".join(program.tag_of(i) for i in range(len(functions))),
    }
    if not arrays["xlated_prog_insns"]:
        del arrays["xlated_prog_insns"]
    return arrays


def _lay_out(program: Program, arrays: Mapping[str, bytes]) -> tuple[dict, int, bytes]:
    """Return the fields of bpf_prog_info, the bits of the arrays, and data."""
    info: dict[str, Union[int, bytes]] = {name: 0 for name, _ in INFO_FIELDS}
    info.update(type=6, id=program.id, tag=program.tag, name=program.name.encode(),
                btf_id=program.btf_id or program.id, func_info_rec_size=8,
                line_info_rec_size=16, jited_line_info_rec_size=8)
    bits, data = 0, b""
    for name, count, size in ARRAYS:
        honest = arrays.get(name, b"")
        if not honest:
            continue
        raw = program.blobs.get(name, honest)
        bits |= array_bit(name)
        info[name], info[count] = len(data), len(honest) // size
        data += raw + bytes(-len(raw) % 8)
    return info, bits, data


def pack_info(fields: Mapping[str, Union[int, bytes]], order: str = "<") -> bytes:
    """Pack struct bpf_prog_info; fields must hold each of INFO_FIELDS."""
    return b"".join(struct.pack(order + code, fields[name]) for name, code in INFO_FIELDS)


def program_bpil(program: Program, order: str = "<") -> bytes:
    """Return what the feature BPF_PROG_INFO holds for one program.

    KeyError: the program overrides a field that struct bpf_prog_info has not.
    """
    info, bits, data = _lay_out(program, program_arrays(program, order))
    unknown = set(program.fields) - set(info)
    if unknown:
        raise KeyError(f"no such field of struct bpf_prog_info: {unknown}")
    info.update(program.fields)
    raw = pack_info(info, order) + program.info_tail
    info_len = len(raw) if program.info_len is None else program.info_len
    data_len = len(data) if program.data_len is None else program.data_len
    bits = bits if program.arrays is None else program.arrays
    return struct.pack(order + "IIQ", info_len, data_len, bits) + raw[:info_len] + data


# -- records ------------------------------------------------------------------

@dataclass
class Branch:
    """A taken branch, the newest of a sample first."""
    source: int
    target: int


@dataclass
class Record:
    """A record but for its header's size and its trailer, which the file adds.

    payload is bytes, or what returns them for a byte order.
    """
    type: int
    misc: int
    payload: Union[bytes, Callable[[str], bytes]]
    trailer: bool = True        # sample_id_all: tid, time and cpu follow
    size: Optional[int] = None  # hostile: the header's size says this

    def body(self, order: str = "<") -> bytes:
        """Return the bytes of the payload."""
        return self.payload(order) if callable(self.payload) else self.payload


def packed(code: str, *values: object, tail: bytes = b"") -> Callable[[str], bytes]:
    """Return a payload: values as struct packs them, then tail."""
    return lambda order: struct.pack(order + code, *values) + tail


def padded_name(text: Union[str, bytes]) -> bytes:
    """Return a name as records have it: with a zero, and filled up to 8 bytes."""
    raw = _bytes(text) + b"\0"
    return raw + bytes(-len(raw) % 8)


def mmap_kernel(machine: Machine = X86_64) -> Record:
    """The map of the kernel's own text, below all that these files put in BPF."""
    start = machine.kernel_start
    return Record(RECORD_MMAP, MISC_KERNEL,
                  packed("iIQQQ", -1, 0, start, KERNEL_LEN, start,
                         tail=padded_name("[kernel.kallsyms]_text")))


def comm(text: Union[str, bytes], tid: int = 1000, pid: int = 0) -> Record:
    """A task's name; pid: of its process, if it is not the main task."""
    return Record(RECORD_COMM, 0, packed("II", pid or tid, tid, tail=padded_name(text)))


def ksymbol(name: Union[str, bytes], addr: int, length: int, flags: int = 0,
            ksym_type: int = KSYMBOL_BPF) -> Record:
    """Dynamic kernel text comes to be, or goes (flags: KSYMBOL_UNREGISTER)."""
    return Record(RECORD_KSYMBOL, 0,
                  packed("QIHH", addr, length, ksym_type, flags, tail=padded_name(name)))


def bpf_event(prog_id: int, tag: bytes, event: int = BPF_PROG_LOAD) -> Record:
    """A program was loaded, or unloaded."""
    return Record(RECORD_BPF_EVENT, 0, packed("HHI8s", event, 0, prog_id, tag))


def text_poke(addr: int, old: bytes, new: bytes) -> Record:
    """Kernel text was changed; no old bytes: it was written for the first time."""
    tail = old + new + bytes(-(12 + len(old) + len(new)) % 8)
    return Record(RECORD_TEXT_POKE, MISC_KERNEL,
                  packed("QHH", addr, len(old), len(new), tail=tail))


def feature_part(feat: int, size: int, offset: int, data: bytes,
                 kind: int = UPDATE_FEATURE_PART) -> Record:
    """A part of a feature of size bytes, padded as the last one is."""
    return Record(RECORD_EVENT_UPDATE, 0,
                  packed("QQQQQ", kind, 0, feat, size, offset,
                         tail=data + bytes(-len(data) % 8)),
                  trailer=False)


def id_index(ids: Sequence[int], tid: int = -1) -> Record:
    """Which event's id is of which CPU (all: 0) and task."""
    entries = [value for place, event_id in enumerate(ids)
               for value in (event_id, place, 0, tid & (1 << 64) - 1)]
    return Record(RECORD_ID_INDEX, 0, packed(f"Q{len(entries)}Q", len(ids), *entries),
                  trailer=False)


def bpf_counts(nr: int, counts: bytes) -> Record:
    """How many BPF programs have no info, and why: nr numbers of 8 bytes each."""
    return Record(RECORD_EVENT_UPDATE, 0, packed("QQQ", UPDATE_BPF_COUNTS, 0, nr, tail=counts),
                  trailer=False)


def feature_parts(feat: int, blob: bytes, step: int = 64,
                  kind: int = UPDATE_FEATURE_PART) -> list[Record]:
    """All parts of a feature, of step bytes each (a multiple of 8)."""
    return [feature_part(feat, len(blob), at, blob[at:at + step], kind)
            for at in range(0, len(blob), step)]


def zstd_frame(content: bytes) -> bytes:
    """A zstd frame (RFC 8878) that says how long its content is, and has it in one raw block."""
    assert len(content) < 1 << 17
    return (struct.pack("<IBI", 0xfd2fb528, 0xa0, len(content)) +
            (len(content) << 3 | 1).to_bytes(3, "little") + content)


@dataclass
class Sample:
    """A sample at ip, in the kernel but for misc, of task tid; chain and branches if recorded.

    The chain begins at ip, or at top, as that of a precise event may. event is its number.
    """
    ip: int
    tid: int = 1000
    period: int = 1000000
    chain: Sequence[int] = ()
    branches: Sequence[Branch] = ()
    top: Optional[int] = None
    event: int = 0
    misc: int = MISC_KERNEL


def load_records(program: Program) -> list[Record]:
    """What the kernel says when a program is loaded."""
    symbols = [ksymbol(program.symbol(i), f.addr, len(f.code))
               for i, f in enumerate(program.functions)]
    return symbols + [bpf_event(program.id, program.tag)]


# -- the file -----------------------------------------------------------------

@dataclass
class PerfData:
    """A perf.data file of one cpu-clock event, or one for each of ids, on one CPU.

    records holds what happened, in order, Sample objects among it; one of them is a
    microsecond after the other. features replaces or adds the bytes of a header
    feature, None leaves it out; feature_sizes lies about a feature's size in the
    table (bytes). sample_type is SAMPLE_DEFAULT, plus SAMPLE_CALLCHAIN or
    SAMPLE_BRANCH_STACK. machine is the one recorded on, regs_intr the mask of the
    registers in samples of another sample_type. attr_size is that of an attr (bytes),
    as an older perf writes it. With ids, records but samples are of the first event, and
    the last ones, as many as dummies says, are of dummy events; events are config and type
    of the others, if they are no clocks.
    """
    programs: Sequence[Program] = ()
    records: Sequence[Union[Record, Sample]] = ()
    sample_type: int = SAMPLE_DEFAULT
    features: Mapping[int, Optional[bytes]] = field(default_factory=dict)
    feature_sizes: Mapping[int, int] = field(default_factory=dict)
    machine: Machine = X86_64
    regs_intr: int = 0
    attr_size: int = ATTR_SIZE
    ids: Sequence[int] = ()
    dummies: int = 0
    events: Sequence[tuple[int, int]] = ()

    def to_bytes(self) -> bytes:
        """Return the file."""
        header_size, nr_events = 104, len(self.ids) or 1
        events = [*self.events] or [(SW_CPU_CLOCK, TYPE_SOFTWARE)] * (nr_events - self.dummies)
        events += [(SW_DUMMY, TYPE_SOFTWARE)] * self.dummies
        attrs = b"".join(
            self.attr_bytes(*events[place])
            + self._pack("QQ", header_size + 8 * place, 8 if self.ids else 0)
            for place in range(nr_events))
        ids = self._pack(f"{len(self.ids)}Q", *self.ids)
        data = self.record_bytes()
        data_offset = self.data_offset()
        table, features, bitmap = self._features(data_offset + len(data))
        magic = int.from_bytes(b"PERFILE2", "little")
        header = self._pack("13Q", magic, header_size, self.attr_size + 16,
                            header_size + len(ids), len(attrs), data_offset, len(data),
                            0, 0, bitmap, 0, 0, 0)
        return header + ids + attrs + data + table + features

    def data_offset(self) -> int:
        """Return where the records begin in the file (bytes)."""
        return 104 + 8 * len(self.ids) + (len(self.ids) or 1) * (self.attr_size + 16)

    def write(self, path: Path) -> Path:
        """Write the file to path, and return path (OSError as write_bytes())."""
        path.write_bytes(self.to_bytes())
        return path

    def _pack(self, code: str, *values: object) -> bytes:
        return struct.pack(self.machine.order + code, *values)

    def attr_bytes(self, config: int, kind: int = TYPE_SOFTWARE) -> bytes:
        """Return the attr of an event of a type."""
        # mmap, comm, task; sample_id_all; ksymbol, bpf_event; text_poke
        flags = 1 << 8 | 1 << 9 | 1 << 13 | 1 << 18 | 1 << 29 | 1 << 30 | 1 << 33
        if self.machine.order == ">":
            flags = int(f"{flags:064b}"[::-1], 2)   # bit fields begin at the highest bit
        raw = self._pack("IIQQQQQ", kind, self.attr_size, config, 1000000, self.sample_type, 0,
                         flags)
        # branch_sample_type: any, in the kernel
        branches = 1 << 1 | 1 << 3 if self.sample_type & SAMPLE_BRANCH_STACK else 0
        raw += self._pack("IIQQQQIIQ", 0, 0, 0, 0, branches, 0, 0, 0, self.regs_intr)
        return raw[:self.attr_size].ljust(self.attr_size, b"\0")

    def _time(self, time: int) -> bytes:
        return self._pack("Q", time) if self.sample_type & SAMPLE_TIME else b""

    def _sample(self, sample: Sample, time: int) -> bytes:
        identifier = self.sample_type & SAMPLE_IDENTIFIER
        raw = self._pack("Q", self.ids[sample.event]) if identifier else b""
        raw += self._pack("QII", sample.ip, sample.tid, sample.tid) + self._time(time)
        raw += self._pack("IIQ", 0, 0, sample.period)
        if self.sample_type & SAMPLE_CALLCHAIN:
            chain = [CONTEXT_KERNEL, sample.top or sample.ip, *sample.chain]
            raw += self._pack(f"Q{len(chain)}Q", len(chain), *chain)
        if self.sample_type & SAMPLE_BRANCH_STACK:
            raw += self._pack("Q", len(sample.branches))
            for branch in sample.branches:
                raw += self._pack("QQQ", branch.source, branch.target, 0)
        return raw

    def record_bytes(self) -> bytes:
        """Return the data section."""
        out, time = bytearray(), 1000000000
        for record in self.records:
            time += 1000
            if isinstance(record, Sample):
                record = Record(RECORD_SAMPLE, record.misc, self._sample(record, time),
                                trailer=False)
            raw = record.body(self.machine.order)
            if record.trailer:
                raw += self._pack("II", 1000, 1000) + self._time(time) + self._pack("II", 0, 0)
                if self.sample_type & SAMPLE_IDENTIFIER:
                    raw += self._pack("Q", self.ids[0])
            size = 8 + len(raw) if record.size is None else record.size
            out += self._pack("IHH", record.type, record.misc, size) + raw
        return bytes(out)

    def _features(self, offset: int) -> tuple[bytes, bytes, int]:
        """Return the table of the features, the features, and the bits of those there."""
        order = self.machine.order
        feats: dict[int, Optional[bytes]] = {
            FEAT_HOSTNAME: feat_string("synthetic", order),
            FEAT_OSRELEASE: feat_string("7.3.4-synthetic", order),
            FEAT_VERSION: feat_string("7.3.4", order),
            FEAT_ARCH: feat_string(self.machine.arch, order),
            FEAT_NRCPUS: self._pack("II", 1, 1),
        }
        if self.programs:
            feats[FEAT_BPF_PROG_INFO] = feat_prog_info(self.programs, order=order)
            feats[FEAT_BPF_BTF] = feat_btf(self.programs, order=order)
        feats.update(self.features)

        table, blob, bitmap = b"", b"", 0
        there = sorted(k for k, v in feats.items() if v is not None)
        offset += 16 * len(there)
        for feat in there:
            raw = feats[feat] or b""
            size = self.feature_sizes.get(feat, len(raw))
            table += self._pack("QQ", offset + len(blob), size)
            blob += raw
            bitmap |= 1 << feat
        return table, blob, bitmap


def feat_string(text: str, order: str = "<") -> bytes:
    """Return the feature of a string: its length, padded to 64 bytes, and it."""
    raw = text.encode() + b"\0"
    raw += bytes(-len(raw) % 64)
    return struct.pack(order + "I", len(raw)) + raw


def feat_group(leader: int, members: int, order: str = "<") -> bytes:
    """Return the content of FEAT_GROUP_DESC: one group, of so many events from the leader on."""
    return struct.pack(order + "I", 1) + feat_string("", order) + struct.pack(
        order + "II", leader, members)


def feat_prog_info(programs: Sequence[Program], count: Optional[int] = None,
                   order: str = "<") -> bytes:
    """Return the feature BPF_PROG_INFO; count lies about how many there are."""
    return (struct.pack(order + "I", len(programs) if count is None else count)
            + b"".join(program_bpil(p, order) for p in programs))


def feat_btf(programs: Sequence[Program], count: Optional[int] = None,
             order: str = "<") -> bytes:
    """Return the feature BPF_BTF; count lies about how many there are."""
    out = bytearray(struct.pack(order + "I", len(programs) if count is None else count))
    for program in programs:
        blob = program_btf(program, order)[0].blob() if program.btf is None else program.btf
        out += struct.pack(order + "II", program.btf_id or program.id, len(blob)) + blob
    return bytes(out)


def recording(programs: Sequence[Program], samples: Sequence[Sample],
              before: Sequence[Record] = (), machine: Machine = X86_64,
              **more: object) -> PerfData:
    """Return a file in which programs are loaded, then sampled.

    before is what else the kernel said first; more goes to PerfData.
    """
    records: list[Union[Record, Sample]] = [mmap_kernel(machine), comm("workload"), *before]
    for program in programs:
        records += load_records(program)
    records += samples
    return PerfData(programs, records, machine=machine, **more)  # type: ignore[arg-type]

# SPDX-License-Identifier: GPL-2.0
# pprof.py - convert perf samples to a profile of pprof
"""Write a profile that pprof reads, and other viewers that take its format.

Usage:

    perf record -a -g -F 99 sleep 60
    perf script report pprof
    pprof -http : perf.pb.gz

Options of perf script and of this script:

    perf script report pprof -i perf.data --output FILE.pb.gz

Each frame has its function, its source line, its mapping and its address, which BPF code
does not have: each time that a program is loaded it has another one. The lines of BPF
programs come from the recording, those of other code from its DWARF, which perf script
--no-inline does not read. The address and the line of a caller are those of its call
instruction.

Each sample has labels for pprof's -tagfocus and -tagroot: comm, pid and tid, and
bpf_prog and bpf_tag of the BPF program of the frame that is nearest to the leaf: also
for samples in what the program called, which perf report has in "Children", not in
"Self". They are the same on each machine, so that pprof merges profiles of several.

The format is a message of Protocol Buffers, compressed by gzip. It is described in
https://github.com/google/pprof/blob/main/proto/profile.proto, whose names and numbers
of fields are in the comments below. A message is a sequence of fields, each a number
and a value. Two kinds of values are all that it takes: integers, and strings of bytes
with their length, which may be messages themselves.
"""
import argparse
import gzip
import struct
import sys
from typing import Any, Dict, Hashable, Iterable, List, NamedTuple, Optional, Tuple, Union

# Each BPF function, trampoline and dispatcher has a dso of its own: they are one mapping.
BPF_MAPPING = "[bpf]"
KERNEL_MAPPING = "[kernel.kallsyms]"

# enum perf_type_id and enum perf_sw_ids of include/uapi/linux/perf_event.h
PERF_TYPE_SOFTWARE = 1
CLOCKS = (0, 1)                                 # cpu-clock, task-clock
NSEC_PER_SEC = 1000000000

# of a sample: keys and values
Labels = Tuple[Tuple[str, Union[str, int]], ...]

# The wire types of Protocol Buffers
VARINT = 0
BYTES = 2


def varint(value: int) -> bytes:
    """An integer: 7 bits a byte, the lowest first; all but the last have bit 7 set."""
    value &= (1 << 64) - 1
    out = bytearray()
    while value > 0x7f:
        out.append(value & 0x7f | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def number(field: int, value: int) -> bytes:
    """A field that is an integer; 0 is what it is without the field."""
    return varint(field << 3 | VARINT) + varint(value) if value else b""


def blob(field: int, data: bytes) -> bytes:
    """A field that is a string or a message."""
    return varint(field << 3 | BYTES) + varint(len(data)) + data


def packed(field: int, values: Iterable[int]) -> bytes:
    """A field that is an array of integers."""
    return blob(field, b"".join(varint(value) for value in values))


class Table:
    """Things that are referred to by number: the same thing has one number."""

    def __init__(self, first: int) -> None:
        self.first = first
        self.numbers: Dict[Hashable, int] = {}

    def intern(self, thing: Hashable) -> int:
        """The number of a thing."""
        return self.numbers.setdefault(thing, self.first + len(self.numbers))

    def items(self) -> Iterable[Tuple[Any, int]]:
        """All things in the order of their numbers, and these."""
        return self.numbers.items()


class Mapping(NamedTuple):
    """A range of addresses in which a file is mapped."""
    filename: str
    build_id: str = ""
    start: int = 0
    limit: int = 0
    offset: int = 0
    in_kernel: bool = False


class Function(NamedTuple):
    """A function: its name for the reader, that of its symbol, and where its source is."""
    name: str
    system_name: str
    filename: str = ""
    start_line: int = 0


class Location(NamedTuple):
    """An address and its lines, which are several if functions are inlined there.

    lines are numbers of functions and of source lines, the innermost first.
    """
    mapping: int
    address: int
    lines: Tuple[Tuple[int, int], ...]


class Event(NamedTuple):
    """What is sampled, and how much of it is between two samples (0: it varies)."""
    name: str
    unit: str
    period: int


def make_event(name: str, attr: bytes) -> Event:
    """An event of struct perf_event_attr."""
    kind, _, config, period, _, _, flags = struct.unpack_from("=IIQQQQQ", attr)
    # a bit field: its first bit is the highest on big-endian machines
    by_frequency = flags >> (10 if sys.byteorder == "little" else 53) & 1
    if kind != PERF_TYPE_SOFTWARE or config not in CLOCKS:
        return Event(name, "count", 0 if by_frequency else period)
    if by_frequency:
        period = NSEC_PER_SEC // period if period else 0
    return Event(name, "nanoseconds", period)


def split_srcline(srcline: Optional[str]) -> Tuple[str, int]:
    """The file and the line of FILE:LINE, as perf writes it if it knows them."""
    name, _, line = (srcline or "").rpartition(":")
    line = line.partition(" ")[0]               # " (discriminator 1)"
    return (name, int(line)) if name and line.isdigit() else ("", 0)


class Profile:
    """Collects samples and writes the profile.

    Samples with the same frames and labels are one, with the sums of their values.
    """

    def __init__(self) -> None:
        self.strings = Table(0)
        self.strings.intern("")
        self.mappings = Table(1)
        self.functions = Table(1)
        self.locations = Table(1)
        self.known: Dict[Hashable, int] = {}    # of what tells frames apart: the location
        self.events = Table(0)
        # of locations and labels, by event: how many samples, and the sum of their periods
        self.samples: Dict[Tuple[Tuple[int, ...], Labels], Dict[int, List[int]]] = {}
        self.first_time: Optional[int] = None
        self.last_time = 0

    def add_sample(self, event: Dict[str, Any]) -> None:
        """Add a sample as perf script passes it."""
        sample = event["sample"]
        frames = event["callchain"] or [leaf_frame(event)]
        key = (self.add_locations(frames), make_labels(event["comm"], sample, frames))
        number_of = self.events.intern(make_event(event["ev_name"], event["attr"]))
        sums = self.samples.setdefault(key, {}).setdefault(number_of, [0, 0])
        sums[0] += 1
        sums[1] += sample["period"]
        if self.first_time is None:
            self.first_time = sample["time"]
        self.first_time = min(self.first_time, sample["time"])
        self.last_time = max(self.last_time, sample["time"])

    def add_locations(self, frames: List[Dict[str, Any]]) -> Tuple[int, ...]:
        """The numbers of the locations of a call chain, the leaf first.

        Inlined functions come before the function that they are in, with its address.
        """
        numbers = []
        first = 0
        for place, frame in enumerate(frames):
            symbol = frame.get("sym", {})
            if symbol.get("inlined") and place + 1 < len(frames):
                continue
            names = tuple(inlined["sym"]["name"] for inlined in frames[first:place])
            address = location_address(frame)
            source = frame.get("source", {})
            key = (address, symbol.get("name"), frame.get("dso"), names,
                   frame.get("dso_map_start"), source.get("file"), source.get("line"))
            if key not in self.known:
                self.known[key] = self.add_location(frames[first:place + 1], address)
            numbers.append(self.known[key])
            first = place + 1
        return tuple(numbers)

    def add_location(self, frames: List[Dict[str, Any]], address: int) -> int:
        """The number of the location of a frame, which is the last, and what is inlined."""
        lines = tuple(self.add_line(frame) for frame in frames if "sym" in frame)
        frame = frames[-1]
        mapping = self.mappings.intern(make_mapping(frame)) if "dso" in frame else 0
        return self.locations.intern(Location(mapping, address, lines))

    def add_line(self, frame: Dict[str, Any]) -> Tuple[int, int]:
        """The number of the function of a frame, and the line that it is at."""
        symbol = frame["sym"]["name"]
        name = frame.get("bpf_func", symbol)
        source = frame.get("source")
        if source:
            start = source["func_line"] if source["func_file"] == source["file"] else 0
            function = Function(name, symbol, source["file"], start)
            return self.functions.intern(function), source["line"]
        filename, line = split_srcline(frame.get("sym_srcline"))
        return self.functions.intern(Function(name, symbol, filename)), line

    def value_type(self, field: int, name: str, unit: str) -> bytes:
        """A field that is a ValueType."""
        string = self.strings.intern
        return blob(field, number(1, string(name)) + number(2, string(unit)))

    def encode_samples(self) -> Iterable[bytes]:
        """Sample: location_id = 1, value = 2, label = 3; Label: key = 1, str = 2, num = 3.

        The values are how many samples, and the sum of their periods by event.
        """
        string = self.strings.intern
        for (locations, labels), sums in self.samples.items():
            values = [sum(count for count, _ in sums.values())]
            values += [sums.get(event, (0, 0))[1] for _, event in self.events.items()]
            data = packed(1, locations) + packed(2, values)
            for key, value in labels:
                label = number(1, string(key))
                label += number(2, string(value)) if isinstance(value, str) else number(3, value)
                data += blob(3, label)
            yield blob(2, data)

    def main_mapping(self) -> int:
        """The number of the program that most samples are of, or else the kernel's, or 0."""
        mapping_of = {ident: location.mapping for location, ident in self.locations.items()}
        weights: Dict[int, int] = {}
        for (locations, _), sums in self.samples.items():
            count = sum(count for count, _ in sums.values())
            for ident in {mapping_of[location] for location in locations}:
                weights[ident] = weights.get(ident, 0) + count
        programs = [ident for mapping, ident in self.mappings.items()
                    if not mapping.in_kernel and not mapping.filename.startswith("[")
                    and ".so" not in mapping.filename]
        kernel = (ident for mapping, ident in self.mappings.items()
                  if mapping.filename == KERNEL_MAPPING)
        return max(programs, key=lambda ident: weights.get(ident, 0), default=next(kernel, 0))

    def encode_mappings(self) -> Iterable[bytes]:
        """Mapping: id = 1, memory_start = 2, memory_limit = 3, file_offset = 4, filename = 5,
        build_id = 6, has_functions = 7: pprof need not look for symbols in it."""
        string = self.strings.intern
        unknown = {location.mapping for location, _ in self.locations.items()
                   if not location.lines}
        # pprof takes the first for the program that was profiled
        main = self.main_mapping()
        for mapping, ident in sorted(self.mappings.items(), key=lambda item: item[1] != main):
            yield blob(3, number(1, ident) + number(2, mapping.start) + number(3, mapping.limit)
                       + number(4, mapping.offset) + number(5, string(mapping.filename))
                       + number(6, string(mapping.build_id))
                       + number(7, ident not in unknown))

    def encode_locations(self) -> Iterable[bytes]:
        """Location: id = 1, mapping_id = 2, address = 3, line = 4;
        Line: function_id = 1, line = 2."""
        for location, ident in self.locations.items():
            lines = b"".join(blob(4, number(1, function) + number(2, line))
                             for function, line in location.lines)
            yield blob(4, number(1, ident) + number(2, location.mapping)
                       + number(3, location.address) + lines)

    def encode_functions(self) -> Iterable[bytes]:
        """Function: id = 1, name = 2, system_name = 3, filename = 4, start_line = 5."""
        string = self.strings.intern
        for function, ident in self.functions.items():
            yield blob(5, number(1, ident) + number(2, string(function.name))
                       + number(3, string(function.system_name))
                       + number(4, string(function.filename)) + number(5, function.start_line))

    def encode(self) -> bytes:
        """Profile: sample_type = 1, sample = 2, mapping = 3, location = 4, function = 5,
        string_table = 6, duration_nanos = 10, period_type = 11, period = 12.

        There is no time_nanos: perf's times are since boot. The strings come last, when
        all are known.
        """
        events = [event for event, _ in self.events.items()]
        out = [self.value_type(1, "samples", "count")]
        out += [self.value_type(1, event.name, event.unit) for event in events]
        for part in (self.encode_samples(), self.encode_mappings(), self.encode_locations(),
                     self.encode_functions()):
            out += part
        out.append(number(10, self.last_time - (self.first_time or 0)))
        if len(events) == 1:
            out += [self.value_type(11, events[0].name, events[0].unit),
                    number(12, events[0].period)]
        out += [blob(6, text.encode(errors="replace")) for text, _ in self.strings.items()]
        return b"".join(out)


def leaf_frame(event: Dict[str, Any]) -> Dict[str, Any]:
    """The only frame of a sample without a call chain."""
    names = ("dso", "dso_bid", "dso_map_start", "dso_map_end", "map_pgoff", "in_kernel", "source",
             "bpf_prog", "bpf_func", "bpf_type")
    frame = {name: event[name] for name in names if name in event}
    if "symbol" in event:
        frame["sym"] = {"name": event["symbol"]}
    frame["ip"] = event["sample"]["ip"]
    return frame


def location_address(frame: Dict[str, Any]) -> int:
    """The address of a frame's instruction, 0 in BPF: another load, or machine, has another one.

    The chain has return addresses, which may be those of the next line or function.
    """
    return 0 if "bpf_type" in frame else frame["ip"] - frame.get("caller", False)


def make_mapping(frame: Dict[str, Any]) -> Mapping:
    """Where the code of a frame is mapped."""
    dso = frame["dso"]
    if "bpf_type" in frame:
        return Mapping(BPF_MAPPING)
    if dso == KERNEL_MAPPING:
        return Mapping(KERNEL_MAPPING)
    return Mapping(dso, frame["dso_bid"], frame["dso_map_start"], frame["dso_map_end"],
                   frame["map_pgoff"], frame["in_kernel"])


def make_labels(comm: str, sample: Dict[str, Any], frames: List[Dict[str, Any]]) -> Labels:
    """The labels of a sample."""
    labels = [("comm", comm), ("pid", sample["pid"]), ("tid", sample["tid"])]
    program = next((frame["bpf_prog"] for frame in frames if "bpf_prog" in frame), None)
    if program:
        labels += [("bpf_prog", program["name"]), ("bpf_tag", program["tag"])]
    return tuple(labels)


def write_profile(profile: Profile, output: str) -> None:
    """Write a profile to a file, or to stdout if that is -."""
    data = gzip.compress(profile.encode(), mtime=0)
    if output == "-":
        sys.stdout.buffer.write(data)
        return
    try:
        with open(output, "wb") as out:
            out.write(data)
    except OSError as error:
        sys.exit(f"pprof.py: {output}: {error.strerror}")
    print(f"wrote {output}")


def parse_args() -> argparse.Namespace:
    """What the user asks for."""
    parser = argparse.ArgumentParser(description="Convert perf samples to a profile of pprof.")
    parser.add_argument("-o", "--output", default="perf.pb.gz",
                        help="output file, - for stdout (default: %(default)s)")
    parser.add_argument("-e", "--event", help="only samples of this event")
    return parser.parse_args()


if __name__ == "__main__":
    ARGS = parse_args()
    PROFILE = Profile()

    def process_event(event: Dict[str, Any]) -> None:
        """Called by perf script for each sample, but those of tracepoints."""
        if not ARGS.event or event["ev_name"] == ARGS.event:
            PROFILE.add_sample(event)

    def trace_unhandled(_name: str, _context: Any, _fields: Dict[str, Any],
                        event: Dict[str, Any]) -> None:
        """Called for each sample of a tracepoint."""
        process_event(event)

    def trace_end() -> None:
        """Called at the end."""
        if not PROFILE.samples:
            sys.exit("pprof.py: no samples" + (f" of {ARGS.event}" if ARGS.event else ""))
        write_profile(PROFILE, ARGS.output)

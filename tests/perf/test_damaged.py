# SPDX-License-Identifier: GPL-2.0
"""A damaged or incomplete perf.data costs what is damaged: no signal, the rest is shown.

Each case is a file whose sizes or offsets lead past its end, or that ends too soon.
"""
from __future__ import annotations

import re
import struct
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Callable, Sequence

import pytest

import carriers
import perfdata as pd
from carriers import noise, user
from perfdata import Record, Sample
from subject import Result, run_perf
from test_fuzz import headers
from test_hostile import MAIN, bystander, victim

SCRIPT = ("script", "--kallsyms", "empty")
PAGE = 4096
# enum perf_event_header features behind all that perf knows, as in header.h
UNKNOWN_FEATURE = 64


def sampled(before: Sequence[Record] = (), after: Sequence[Record] = ()) -> bytes:
    """Ten samples of the main program, records around them."""
    file = pd.recording([victim(), bystander()], [Sample(MAIN + 5)] * 10, before=before)
    file.records = [*file.records, *after]
    return file.to_bytes()


def put(raw: bytes, code: str, at: int, value: int) -> bytes:
    """Return raw with one number changed."""
    out = bytearray(raw)
    struct.pack_into(code, out, at, value)
    return bytes(out)


def nth_sample(raw: bytes, number: int) -> int:
    """Return where the sample of that number (from 0) is."""
    return [at for at in headers(raw)
            if struct.unpack_from("<I", raw, at)[0] == pd.RECORD_SAMPLE][number]


def long_record() -> bytes:
    """The seventh sample is longer than the rest of the file, but not than the file."""
    raw = sampled(before=noise(104 << 10))
    return put(raw, "<H", nth_sample(raw, 6) + 6, 0xfff8)


def long_name() -> bytes:
    """A task's name that has no end before the end of the file, and is longer."""
    raw = sampled(before=noise(104 << 10), after=[pd.comm("x" * 15)])
    at = headers(raw)[-1]
    return put(raw[:at + 16] + b"x" * (len(raw) - at - 16), "<H", at + 6, 0xfff8)


def empty_record() -> bytes:
    """From the seventh sample on there are zeroes, as after a power failure."""
    raw = sampled(before=noise(8 << 10))
    at = nth_sample(raw, 6)
    return raw[:at] + bytes(len(raw) - at)


def long_data() -> bytes:
    """The header says that there is a megabyte more than the file has."""
    raw = sampled(before=noise(8 << 10))
    return put(raw, "<Q", 48, struct.unpack_from("<Q", raw, 48)[0] + (1 << 20))


def cut_in_data() -> bytes:
    """The file ends within its records."""
    raw = sampled(after=noise(16 << 10))
    return raw[:len(raw) // 2]


def cut_in_features() -> bytes:
    """The file ends within its last feature."""
    raw = sampled()
    return raw[:-16]


def killed() -> bytes:
    """perf record wrote neither the size of the data nor a feature, and half a record."""
    raw = sampled(before=[*pd.feature_parts(pd.FEAT_BPF_BTF, pd.feat_btf([victim()])),
                          *pd.feature_parts(pd.FEAT_BPF_PROG_INFO,
                                            pd.feat_prog_info([victim()]))],
                  after=noise(100))
    data, size = struct.unpack_from("<QQ", raw, 40)
    return put(raw[:data + size - 20], "<Q", 48, 0)


def killed_at_once() -> bytes:
    """perf record was killed before it wrote any data."""
    raw = sampled()
    return put(raw[:struct.unpack_from("<Q", raw, 40)[0]], "<Q", 48, 0)


def far_feature() -> bytes:
    """The first feature, the host's name, is said to be behind the end of the file."""
    raw = sampled()
    data, size = struct.unpack_from("<QQ", raw, 40)
    return put(raw, "<Q", data + size, len(raw) + PAGE)


def long_aux() -> bytes:
    """A record of AUX data has a megabyte more than the file."""
    raw = carriers.traced()
    at = [at for at in headers(raw)
          if struct.unpack_from("<I", raw, at)[0] == carriers.RECORD_AUXTRACE][0]
    return put(raw, "<Q", at + 8, 1 << 20)


def lbr_call_stack() -> bytes:
    """The attr says that samples have a call stack of branches, but they have none."""
    samples = [Sample(MAIN + 5, chain=[(1 << 64) - 512, 0x400000])] * 10
    raw = pd.recording([victim(), bystander()], samples,
                       sample_type=pd.SAMPLE_DEFAULT | pd.SAMPLE_CALLCHAIN).to_bytes()
    return put(raw, "<Q", 104 + 72, 1 << 11)


def stat_round() -> bytes:
    """A record of perf stat, in a file that has neither CPUs nor threads for it."""
    return sampled(before=[user(carriers.RECORD_STAT_ROUND, struct.pack("<QQ", 0, 1000))])


@dataclass
class Case:
    """A damaged file, how many of its ten samples are left, and what perf says of it."""
    build: Callable[[], bytes]
    samples: int
    says: str
    both: bool = False


CASES: Sequence[Case] = (
    Case(long_record, 6, "extends past the end of the data"),
    Case(long_name, 10, "extends past the end of the data"),
    Case(empty_record, 6, "is invalid, or extends past the end"),
    Case(long_data, 10, "The file is damaged or incomplete"),
    Case(cut_in_data, 10, "The file is damaged or incomplete"),
    Case(cut_in_features, 10, "Feature BPF_BTF (26) is ignored"),
    Case(killed, 10, "Was the 'perf record' command properly terminated?"),
    Case(far_feature, 10, "Feature HOSTNAME (3) is ignored"),
    Case(long_aux, 10, "The file is damaged or incomplete"),
    Case(lbr_call_stack, 10, ""),
    Case(stat_round, 10, "Ignoring a STAT_ROUND record"),
)


def run(work: Path, raw: bytes, *args: str) -> Result:
    """Run perf on a file."""
    (work / "in.data").write_bytes(raw)
    (work / "empty").touch()
    return run_perf(work, [*args, "-i", "in.data"])


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.build.__name__)
def test_what_is_left(case: Case, tmp_path: Path) -> None:
    """The samples before the damage are shown, and perf says what is damaged."""
    result = run(tmp_path, case.build(), *SCRIPT)
    assert result.status == 0, result
    assert result.out.count("cpu-clock:") == case.samples, result
    assert case.says in result.err, result


@pytest.mark.parametrize("args", (("report", "--stdio"), ("annotate", "--stdio"),
                                  ("inject", "-o", "out.data"), (*SCRIPT, "-D")),
                         ids=lambda args: "-".join(args[:1] + args[-1:]))
@pytest.mark.parametrize("build", (long_record, long_name, long_aux),
                         ids=lambda build: build.__name__)
def test_no_signal(build: Callable[[], bytes], args: Sequence[str], tmp_path: Path) -> None:
    """A record that is longer than the rest of the file ends no command with a signal."""
    result = run(tmp_path, build(), *args)
    assert result.status == 0, result
    assert "extends past the end of the data" in result.err, result


def test_inject_drops_unknown_features(tmp_path: Path) -> None:
    """perf inject reads a file of a newer perf, and leaves out what it does not know."""
    raw = sampled()
    at = 72 + UNKNOWN_FEATURE // 64 * 8
    bits = struct.unpack_from("<Q", raw, at)[0] | 1 << UNKNOWN_FEATURE % 64
    # the table has room for one section more, and that is of no bytes
    data, size = struct.unpack_from("<QQ", raw, 40)
    count = sum(bin(word).count("1") for word in struct.unpack_from("<QQQQ", raw, 72))
    table, rest = raw[data + size:data + size + 16 * count], raw[data + size + 16 * count:]
    table = b"".join(struct.pack("<QQ", offset + 16, length)
                     for offset, length in struct.iter_unpack("<QQ", table))
    raw = raw[:data + size] + table + struct.pack("<QQ", len(raw) + 16, 0) + rest

    result = run(tmp_path, put(raw, "<Q", at, bits), "inject", "-o", "out.data")
    assert result.status == 0, result
    assert "Ignoring 1 unknown feature(s)" in result.err, result
    shown = run(tmp_path, (tmp_path / "out.data").read_bytes(), *SCRIPT)
    assert shown.out.count("main_prog+0x5") == 10, shown


def test_killed_recording(tmp_path: Path) -> None:
    """BPF programs are annotated with source, from the records that tell of them."""
    result = run(tmp_path, killed(), "annotate", "--stdio", victim().symbol(0))
    assert result.status == 0 and "10 samples" in result.out, result
    assert "int main_prog(void)" in result.out, result
    said = run(tmp_path, killed(), "report", "--stdio")
    assert said.status == 0 and "All features are missing" in said.err, said
    assert re.search(r"Using \d+ bytes of data, up to the end of in.data", said.err), said
    assert re.search(r"The last \d+ bytes of data are not used", said.err), said


@pytest.mark.parametrize("command", (
    "report", pytest.param("annotate", marks=pytest.mark.both)))
def test_nothing_to_show(command: str, tmp_path: Path) -> None:
    """If nothing is left, the exit status says so."""
    result = run(tmp_path, killed_at_once(), command, "--stdio")
    assert result.status not in (0, None) and not result.crashed, result


def test_complete_file_ignores_parts(tmp_path: Path) -> None:
    """If the header has the programs, records that tell of others change nothing."""
    other = replace(victim(), functions=[replace(f, lines=()) for f in victim().functions])
    parts = pd.feature_parts(pd.FEAT_BPF_PROG_INFO, pd.feat_prog_info([other]))
    result = run(tmp_path, sampled(before=parts), "annotate", "--stdio", victim().symbol(0))
    assert "int main_prog(void)" in result.out, result

# SPDX-License-Identifier: GPL-2.0
"""A perf.data file is hostile: what it does to perf when it lies.

Each case is a file with one lie in it, about the program "victim", beside which
the program "bystander" tells the truth. No command may crash or hang, and what is
not damaged has to be shown: a case says how much that is (class Level).

Most of these lies mainline perf survives too; these cases are marked `both`.
"""
from __future__ import annotations

import enum
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Callable, Optional, Sequence

import pytest

import perfdata as pd
from perfdata import Function, Line, PerfData, Program, Record, Sample
from subject import Result, run_perf
from x86 import RET, TEST_EAX, call, je, mov

TIMEOUT = 20        # seconds: a file of 2 KB that takes longer hangs perf
MAIN, SUB_A, SUB_B, OTHER = (0xffffffffc0003000, 0xffffffffc0001000,
                             0xffffffffc0002000, 0xffffffffc0008000)
WILD = 0x4141414141414140
SAMPLES = 10
BTF_TYPEDEF = 8
# victim's functions, and instructions that only they have
VICTIM_CODE = {"main_prog": ("$0x1111", "$0x1112"), "sub_a": ("$0x2222", "$0x2223"),
               "sub_b": ("$0x3333", "$0x3334")}


class Level(enum.IntEnum):
    """How much of a file perf must still show."""
    SURVIVES = 0    # the file itself is broken: an error is fine, a crash is not
    READABLE = 1    # all samples; the bystander's have its name
    ANNOTATED = 2   # and the bystander's code is shown
    FULL = 3        # and all of the victim's code


def victim(**lies: object) -> Program:
    """The program that lies: three functions, main at the highest address."""
    functions = [
        Function("main_prog", MAIN, mov(0x1111) + call(MAIN + 5, SUB_A) + mov(0x1112) + RET,
                 [Line(0, "victim.c", 10, 2, "int main_prog(void)"),
                  Line(5, "victim.c", 11, 9, "sub_a();")]),
        Function("sub_a", SUB_A, mov(0x2222) + TEST_EAX + je(5) + mov(0x2223) + RET,
                 [Line(0, "victim.c", 20, 2, "int sub_a(void)"),
                  Line(9, "victim.c", 22, 3, "x = 0x2223;")]),
        Function("sub_b", SUB_B, mov(0x3333) + mov(0x3334) + RET,
                 [Line(0, "victim.c", 30, 2, "int sub_b(void)")]),
    ]
    return Program(7, "main_prog", functions, **lies)  # type: ignore[arg-type]


def bystander() -> Program:
    """The program that tells the truth: of one function, so that the base shows it."""
    return Program(9, "bystander", [Function("bystander", OTHER, mov(0x9999) + RET)],
                   tag=bytes(range(1, 9)))


SAMPLED = ([Sample(MAIN + 5)] * 3 + [Sample(SUB_A + 5)] * 2 + [Sample(SUB_B + 5)]
           + [Sample(OTHER)] * 4)


def lying(**lies: object) -> PerfData:
    """A file whose victim lies."""
    return pd.recording([victim(**lies), bystander()], SAMPLED)


def saying(*records: Record) -> PerfData:
    """A file of honest programs, with these records between the loads and the samples."""
    file = pd.recording([victim(), bystander()], [])
    return PerfData(file.programs, [*file.records, *records, *SAMPLED])


# -- the cases ----------------------------------------------------------------

@dataclass
class Case:
    """One hostile file: how it is made, and what must be left of it."""
    name: str
    build: Callable[[], PerfData]
    level: Level
    both: bool


CASES: list[Case] = []


def add(name: str, level: Level, build: Callable[[], PerfData], both: bool = False) -> None:
    """Add a case; both: the base is expected to pass it as well."""
    CASES.append(Case(name, build, level, both))


def honest_arrays() -> dict[str, bytes]:
    """The victim's arrays before it lies, for those who change a part of one."""
    return pd.program_arrays(victim())


ALL_BITS = sum(pd.array_bit(name) for name in honest_arrays())
NAMES = [name for name, _, _ in pd.ARRAYS]
COUNTS = [count for _, count, _ in pd.ARRAYS]


def array_cases() -> None:
    """An array is not in the file, but its pointer is there."""
    for name, count, _ in pd.ARRAYS:
        add(f"bit-clear-pointer-wild-{name}", Level.ANNOTATED,
            lambda name=name, count=count: lying(arrays=ALL_BITS & ~pd.array_bit(name),
                                                 fields={name: WILD, count: 3}),
            both=name != "func_info")
    add("bits-clear-pointers-set", Level.ANNOTATED, lambda: lying(arrays=0), both=True)
    add("bits-of-arrays-not-yet-known", Level.ANNOTATED,
        lambda: lying(arrays=ALL_BITS | 0xffffffffffff0000), both=True)
    add("bits-set-pointers-null", Level.ANNOTATED,
        lambda: lying(arrays=0x1ff, fields=dict.fromkeys(NAMES, 0)), both=True)
    for what, offset in (("data-len", 1 << 12), ("minus-8", (1 << 64) - 8),
                         ("4g", 1 << 32), ("wraps", (1 << 64) - 1)):
        add(f"offsets-{what}", Level.ANNOTATED,
            lambda offset=offset: lying(arrays=0x1ff, fields=dict.fromkeys(NAMES, offset)),
            both=True)
    add("offsets-misaligned", Level.ANNOTATED,
        lambda: lying(fields={"jited_ksyms": 1, "jited_func_lens": 3, "func_info": 5,
                              "line_info": 7, "jited_line_info": 9}), both=True)
    add("arrays-overlap", Level.ANNOTATED,
        lambda: lying(arrays=0x1ff, fields=dict.fromkeys(NAMES, 0)), both=True)


def count_cases() -> None:
    """There are more records, or larger ones, than the file has; or too few."""
    for what, count in (("max", 0xffffffff), ("overflows-u32", 0x20000001), ("some", 1000)):
        add(f"counts-{what}", Level.ANNOTATED,
            lambda count=count: lying(fields=dict.fromkeys(COUNTS, count)), both=True)
    add("counts-zero", Level.ANNOTATED,
        lambda: lying(fields=dict.fromkeys(COUNTS, 0)), both=True)
    for field in ("func_info_rec_size", "line_info_rec_size", "jited_line_info_rec_size"):
        for size in (0, 1, 4, 7, 0xffffffff):
            add(f"{field}-{size:#x}", Level.ANNOTATED,
                lambda field=field, size=size: lying(fields={field: size}), both=True)
    for field, count in (("nr_jited_ksyms", 1), ("nr_jited_ksyms", 2), ("nr_jited_func_lens", 2),
                         ("nr_prog_tags", 1), ("nr_func_info", 1), ("nr_line_info", 1),
                         ("nr_jited_line_info", 1), ("nr_jited_line_info", 4)):
        add(f"{field}-only-{count}", Level.ANNOTATED,
            lambda field=field, count=count: lying(fields={field: count}), both=True)


def length_cases() -> None:
    """The functions' lengths are not those of the code."""
    honest = struct.unpack("<III", honest_arrays()["jited_func_lens"])
    for what, lens in (("short", (honest[0] - 1, *honest[1:])),
                       ("long", (honest[0] + 1, *honest[1:])),
                       ("huge", (0xffffffff, *honest[1:])),
                       ("wrap", (0xfffffff0, 0x10, sum(honest))),
                       ("zero", (0, honest[0] + honest[1], honest[2])),
                       ("moved", (honest[0] + 4, honest[1] - 4, honest[2]))):
        add(f"func-lens-{what}", Level.ANNOTATED,
            lambda lens=lens: lying(blobs={"jited_func_lens": struct.pack("<III", *lens)}),
            both=True)
    # whatever is done once per function must not be done for each function again
    add("functions-1000000", Level.READABLE, lambda: crowded(1000000), both=True)


def crowded(count: int) -> PerfData:
    """A file whose victim has, after its functions, so many of no length.

    Its main function calls the kernel: an address to look for among them all.
    """
    code = honest_arrays()["jited_prog_insns"]
    code = code[:5] + call(MAIN + 5, pd.KERNEL_START) + code[10:]
    ksyms = honest_arrays()["jited_ksyms"] + struct.pack("<Q", OTHER) * count
    lens = honest_arrays()["jited_func_lens"] + bytes(4 * count)
    return lying(blobs={"jited_ksyms": ksyms, "jited_func_lens": lens,
                        "jited_prog_insns": code},
                 fields=dict.fromkeys(("nr_jited_ksyms", "nr_jited_func_lens"), count + 3))


def info_cases() -> None:
    """Another kernel's bpf_prog_info, or none that any kernel has."""
    for tail in (8, 24, 4096):
        add(f"info-longer-by-{tail}", Level.FULL,
            lambda tail=tail: lying(info_tail=b"\xa5" * tail))
    add("info-length-max", Level.READABLE, lambda: lying(info_len=0xffffffff))
    add("info-length-1g", Level.READABLE, lambda: lying(info_len=1 << 30))
    for size in (0, 1, 104, 128, 200):
        add(f"info-shorter-{size}", Level.ANNOTATED,
            lambda size=size: lying(info_len=size), both=True)
    for size in (0, 8, 0x0fffffff, 0x10000001, 0xffffffff):
        add(f"data-len-{size:#x}", Level.READABLE, lambda size=size: lying(data_len=size))
    for nr in (0, 1):
        add(f"programs-fewer-{nr}", Level.READABLE, lambda nr=nr: prog_feature(count=nr),
            both=True)
    for nr in (3, 131072, 0xffffffff):
        add(f"programs-more-{nr}", Level.READABLE, lambda nr=nr: prog_feature(count=nr))
    for size in (0, 2, 4, 10, 100, 300):
        add(f"section-cut-at-{size}", Level.READABLE, lambda size=size: cut_section(size))
    add("section-past-the-end", Level.SURVIVES, lambda: cut_section(1 << 40), both=True)
    add("same-id-twice", Level.READABLE, lambda: pd.recording(
        [victim(), Program(7, "double", bystander().functions), bystander()], SAMPLED),
        both=True)
    add("program-name-without-end", Level.ANNOTATED, lambda: lying(
        fields={"name": b"x" * 16, "btf_id": 0, "nr_jited_ksyms": 1,
                "nr_jited_func_lens": 1, "nr_prog_tags": 1}), both=True)


def prog_feature(count: int) -> PerfData:
    """A file whose BPF_PROG_INFO lies about the number of programs."""
    file = lying()
    file.features = {pd.FEAT_BPF_PROG_INFO: pd.feat_prog_info(file.programs, count)}
    return file


def cut_section(size: int) -> PerfData:
    """A file whose table gives BPF_PROG_INFO this size, in bytes."""
    file = lying()
    file.feature_sizes = {pd.FEAT_BPF_PROG_INFO: size}
    return file


def sound_btf() -> pd.Btf:
    """The victim's BTF as it should be."""
    return pd.program_btf(victim())[0]


def looping_btf() -> bytes:
    """Typedefs that refer to each other in a ring."""
    btf = pd.Btf()
    for target in (2, 3, 1):
        btf.add("ring", BTF_TYPEDEF, 0, target)
    return btf.blob()


def deep_btf() -> bytes:
    """A chain of 50000 typedefs."""
    btf = pd.Btf()
    btf.add_int()
    for target in range(1, 50000):
        btf.add("deep", BTF_TYPEDEF, 0, target)
    return btf.blob()


def btf_cases() -> None:
    """Damaged BTF costs names and lines, and no more."""
    whole = sound_btf().blob()
    headers = {"magic": 0x1234, "version": 9, "hdr_len": 0xffffffff, "type_off": 0xffffff00,
               "type_len": 0xffffffff, "str_off": 0x7fffffff, "str_len": 0}
    for name, value in headers.items():
        add(f"btf-{name}", Level.FULL,
            lambda name=name, value=value: lying(btf=sound_btf().blob(**{name: value})))
    for size in (0, 1, 4, 24, 60, len(whole) - 1):
        add(f"btf-cut-at-{size}", Level.FULL, lambda size=size: lying(btf=whole[:size]))
    add("btf-strings-without-end", Level.FULL, lambda: lying(btf=whole[:-1] + b"x"))
    add("btf-ring", Level.FULL, lambda: lying(btf=looping_btf()))
    add("btf-deep", Level.FULL, lambda: lying(btf=deep_btf()))
    add("btf-none", Level.FULL, without_btf)
    for what, count in (("more", 3), ("max", 0xffffffff)):
        add(f"btf-objects-{what}", Level.READABLE, lambda count=count: btf_feature(count))
    for type_id in (0, 1, 2, 0x7fffffff, 0xffffffff):
        add(f"func-info-type-{type_id:#x}", Level.FULL, lambda type_id=type_id: lying(
            blobs={"func_info": struct.pack("<II", 0, type_id) * 3}))


def without_btf() -> PerfData:
    """A file that has no BTF at all."""
    file = lying()
    file.features = {pd.FEAT_BPF_BTF: None}
    return file


def btf_feature(count: int) -> PerfData:
    """A file whose BPF_BTF lies about the number of objects."""
    file = lying()
    file.features = {pd.FEAT_BPF_BTF: pd.feat_btf(file.programs, count)}
    return file


def line_cases() -> None:
    """Lines that are nowhere: the code is shown all the same."""
    arrays = honest_arrays()
    addrs = [a for (a,) in struct.iter_unpack("<Q", arrays["jited_line_info"])]
    records = arrays["line_info"]
    for what, changed in (("reversed", addrs[::-1]), ("equal", [addrs[0]] * len(addrs)),
                          ("zero", [0] * len(addrs)), ("max", [(1 << 64) - 1] * len(addrs)),
                          ("past-the-end", [a + 0x100000 for a in addrs]),
                          ("of-others", [OTHER] * len(addrs))):
        add(f"line-addresses-{what}", Level.FULL, lambda changed=changed: lying(
            blobs={"jited_line_info": struct.pack(f"<{len(changed)}Q", *changed)}))
    for what, value in (("max", 0xffffffff), ("2g", 0x80000000), ("1m", 1 << 20)):
        add(f"line-strings-{what}", Level.FULL, lambda value=value: lying(
            blobs={"line_info": struct.pack("<IIII", 0, value, value, 10 << 10)
                   * (len(records) // 16)}))
    add("line-insn-max", Level.FULL, lambda: lying(
        blobs={"line_info": b"".join(b"\xff" * 4 + records[i + 4:i + 16]
                                     for i in range(0, len(records), 16))}))
    for name in ("line_info", "jited_line_info"):
        add(f"line-without-{name}", Level.FULL, lambda name=name: lying(
            arrays=ALL_BITS & ~pd.array_bit(name)))


def symbol_cases() -> None:
    """KSYMBOL and BPF_EVENT records that cannot be."""
    tag = victim().tag
    end = (1 << 64) - 1
    for what, record in (
            ("length-0", pd.ksymbol("zero", 0xffffffffc0100000, 0)),
            ("length-max", pd.ksymbol("max", 0xffffffffd0000000, 0xffffffff)),
            ("last-byte", pd.ksymbol("last", end, 1)),
            ("wraps", pd.ksymbol("wraps", end - 0x10, 0x1000)),
            ("address-0", pd.ksymbol("zero", 0, 0x1000)),
            ("in-kernel-text", pd.ksymbol("in_text", pd.KERNEL_START + 0x1000, 0x100)),
            ("name-empty", pd.ksymbol("", 0xffffffffc0100000, 0x100)),
            ("type-unknown", pd.ksymbol("odd", 0xffffffffc0100000, 0x100, ksym_type=0xffff)),
            ("unregister-unknown", pd.ksymbol("odd", 0xffffffffc0100000, 8, flags=1)),
            ("name-long", pd.ksymbol("n" * 2000, 0xffffffffc0100000, 0x100)),
            ("event-unknown-id", pd.bpf_event(12345, tag)),
            ("event-unknown-type", pd.bpf_event(7, tag, event=77)),
            ("event-again", pd.bpf_event(7, tag)),
            ("text-poke-nowhere", pd.text_poke(0x1000, b"", RET)),
            ("text-poke-past-the-end", pd.text_poke(SUB_A, b"", RET * 2000)),
            ("text-poke-in-kernel", pd.text_poke(pd.KERNEL_START + 8, b"", RET * 16))):
        add(f"record-{what}", Level.ANNOTATED, lambda record=record: saying(record), both=True)
    add("ksymbol-across-kernel-start", Level.ANNOTATED, lambda: saying(
        pd.ksymbol("across", pd.KERNEL_START - 0x100, 0x1000)))
    add("ksymbol-across-kernel-end", Level.ANNOTATED, lambda: saying(
        pd.ksymbol("across", pd.KERNEL_START + pd.KERNEL_LEN - 0x100, 0x1000)), both=True)
    # the newest text at an address is what is there: the samples are its
    add("ksymbol-overlaps-all", Level.SURVIVES, lambda: saying(
        pd.ksymbol("over", SUB_A - 0x100, 0x100000)), both=True)
    add("ksymbol-longer-than-code", Level.ANNOTATED, longer_symbol, both=True)
    add("ksyms-in-kernel-text", Level.ANNOTATED, lambda: lying(blobs={
        "jited_ksyms": struct.pack("<QQQ", *[pd.KERNEL_START + 0x100] * 3)}), both=True)
    add("ksyms-of-the-bystander", Level.READABLE, lambda: lying(blobs={
        "jited_ksyms": struct.pack("<QQQ", OTHER, OTHER, OTHER)}), both=True)


def longer_symbol() -> PerfData:
    """The kernel said that a function is longer than the code in the info."""
    file = lying()
    file.records = [pd.mmap_kernel(), pd.comm("workload"),
                    *[pd.ksymbol(victim().symbol(i), f.addr, 0x800)
                      for i, f in enumerate(victim().functions)],
                    pd.bpf_event(7, victim().tag), *pd.load_records(bystander()), *SAMPLED]
    return file


def record_cases() -> None:
    """Records whose size is not theirs: the file ends there."""
    raw_name = struct.pack("<QIHH", 0xffffffffc0100000, 64, 1, 0) + b"y" * 64
    add("ksymbol-name-without-end", Level.SURVIVES, lambda: saying(
        Record(pd.RECORD_KSYMBOL, 0, raw_name, trailer=False)), both=True)
    for kind in (pd.RECORD_KSYMBOL, pd.RECORD_BPF_EVENT, pd.RECORD_TEXT_POKE):
        for size in (0, 4, 8, 16, 0xffff):
            add(f"record-{kind}-size-{size}", Level.SURVIVES, lambda kind=kind, size=size: saying(
                Record(kind, pd.MISC_KERNEL, b"\xff" * 32, size=size)), both=True)
    add("text-poke-lengths-max", Level.SURVIVES, lambda: saying(
        Record(pd.RECORD_TEXT_POKE, pd.MISC_KERNEL,
               struct.pack("<QHH", SUB_A, 0xffff, 0xffff) + b"\x90" * 12)), both=True)


def parts_of(*programs: Program) -> list[Record]:
    """What perf record tells the reader of a pipe of these programs."""
    return (pd.feature_parts(pd.FEAT_BPF_BTF, pd.feat_btf(programs))
            + pd.feature_parts(pd.FEAT_BPF_PROG_INFO, pd.feat_prog_info(programs)))


def in_parts(*records: Record, honest: Sequence[Program] = ()) -> PerfData:
    """A file whose header has no programs: these records tell, and then honest ones."""
    file = pd.recording([victim(), bystander()], [])
    return PerfData([], [*file.records, *records, *parts_of(*honest), *SAMPLED])


def part_cases() -> None:
    """Parts of features that do not fit together cost what they tell, and no more."""
    info = pd.feat_prog_info([victim()])
    victims, size = parts_of(victim()), len(info)
    both = [victim(), bystander()]
    add("parts", Level.FULL, lambda: in_parts(honest=both))
    add("parts-again", Level.FULL, lambda: in_parts(*victims, honest=both))
    # two rounds end: the programs' loads have been dealt with when the parts come
    add("parts-late", Level.FULL, lambda: in_parts(*[Record(
        pd.RECORD_FINISHED_ROUND, 0, b"", trailer=False)] * 2, honest=both))
    broken = {
        "no-first": victims[1:],
        "no-last": victims[:-1],
        "gap": victims[:-2] + victims[-1:],
        "each-twice": [part for part in victims for _ in range(2)],
        "backwards": victims[::-1],
        "interleaved": [part for pair in zip(victims, victims[::-1]) for part in pair],
        "size-0": [pd.feature_part(pd.FEAT_BPF_PROG_INFO, 0, 0, info[:64])],
        "size-max": [pd.feature_part(pd.FEAT_BPF_PROG_INFO, 2**64 - 1, 0, info[:64])] * 3,
        "size-short": [pd.feature_part(pd.FEAT_BPF_PROG_INFO, 40, 0, info)],
        "size-changes": [pd.feature_part(pd.FEAT_BPF_PROG_INFO, size, 0, info[:64]),
                         pd.feature_part(pd.FEAT_BPF_PROG_INFO, size + 8, 64, info[64:])],
        "offset-max": [pd.feature_part(pd.FEAT_BPF_PROG_INFO, size, 2**64 - 64, info[:64])],
        "empty": [pd.feature_part(pd.FEAT_BPF_PROG_INFO, size, 0, b"")],
        "garbage": pd.feature_parts(pd.FEAT_BPF_PROG_INFO, b"\xff" * 600),
        "garbage-btf": pd.feature_parts(pd.FEAT_BPF_BTF, b"\xff" * 600),
        "too-small": [Record(pd.RECORD_EVENT_UPDATE, 0, struct.pack(
            "<QQQQ", pd.UPDATE_FEATURE_PART, 0, pd.FEAT_BPF_PROG_INFO, 64), trailer=False)],
    }
    for name, records in broken.items():
        add(f"parts-{name}", Level.ANNOTATED,
            lambda records=records: in_parts(*records, honest=[bystander()]))
    for feat in (23, 40):
        add(f"parts-of-feature-{feat}", Level.FULL, lambda feat=feat: in_parts(
            pd.feature_part(feat, 64, 0, bytes(64)), honest=both))


for group in (array_cases, count_cases, length_cases, info_cases, btf_cases, line_cases,
              symbol_cases, record_cases, part_cases):
    group()


# -- what is asked of perf ----------------------------------------------------

COMMANDS: dict[str, Sequence[str]] = {
    "header": ("report", "--header-only", "-I", "-i", "in.data"),
    "report": ("report", "--stdio", "--sort", "sym", "-i", "in.data"),
    "annotate": ("annotate", "--stdio", "-i", "in.data"),
    "script": ("script", "-F", "ip,sym,insn", "-i", "in.data"),
    "inject": ("inject", "-i", "in.data", "-o", "out.data"),
    "again": ("report", "--stdio", "--sort", "sym", "-i", "out.data"),
    "build-ids": ("buildid-list", "-i", "in.data"),
}


def run_all(work: Path, file: PerfData) -> dict[str, Result]:
    """Run every command on the file, fail on a crash or a hang, return what they said."""
    file.write(work / "in.data")
    results = {}
    for name, args in COMMANDS.items():
        if name == "again" and not (work / "out.data").exists():
            continue
        result = results[name] = run_perf(work, args, timeout=TIMEOUT)
        assert not result.timed_out, f"perf hangs:\n{result}"
        assert not result.crashed, f"perf crashed:\n{result}"
    return results


def check_readable(results: dict[str, Result]) -> None:
    """All samples are there, and the bystander has its name, in the file and its copy."""
    symbol = bystander().symbol(0)
    for name in ("header", "report", "script", "inject"):
        assert results[name].status == 0, f"the file cannot be read:\n{results[name]}"
    for name in ("report", "again"):
        assert f"# Samples: {SAMPLES} " in results[name].out, str(results[name])
        assert any(line.split()[:1] == ["40.00%"] and symbol in line
                   for line in results[name].out.splitlines()), str(results[name])
    assert len(results["script"].out.splitlines()) == SAMPLES, str(results["script"])


def annotation_of(out: str, function: str) -> Optional[str]:
    """Return the part of annotate's output that is the function's, None if there is none."""
    for part in out.split(" Percent |")[1:]:
        head = part.splitlines()[0]
        if f"_{function} for " in head:
            return part
    return None


def check_code(result: Result, function: str, *insns: str) -> None:
    """The function is annotated, with these instructions, and none of other functions."""
    part = annotation_of(result.out, function)
    assert part is not None, f"{function} is not annotated:\n{result}"
    for insn in insns:
        assert f"{insn}, %eax" in part, f"{function} without {insn}:\n{result}"
    for other, theirs in VICTIM_CODE.items():
        if other != function:
            assert not any(f"{insn}, %eax" in part for insn in theirs), (
                f"{function} with code of {other}:\n{result}")


def params() -> list[object]:
    """The cases as pytest wants them."""
    return [pytest.param(case, id=case.name, marks=[pytest.mark.both] if case.both else [])
            for case in CASES]


@pytest.mark.parametrize("case", params())
def test_hostile(case: Case, tmp_path: Path) -> None:
    """No crash, no hang, and what the file's lie does not concern is shown."""
    results = run_all(tmp_path, case.build())
    if case.level >= Level.READABLE:
        check_readable(results)
    if case.level >= Level.ANNOTATED:
        check_code(results["annotate"], "bystander", "$0x9999")
    if case.level >= Level.FULL:
        for function, insns in VICTIM_CODE.items():
            check_code(results["annotate"], function, *insns)


# -- memory -------------------------------------------------------------------

def test_memory_is_bounded(tmp_path: Path) -> None:
    """Many lines that share one long text: a file of 1 MB does not cost gigabytes."""
    nr, text = 10000, "x" * 500000
    functions = [Function("big", MAIN, mov(0x1111) * nr + RET,
                          [Line(5 * i, "big.c", i + 1, 1, text) for i in range(nr)])]
    pd.recording([Program(7, "big", functions)], [Sample(MAIN)]).write(tmp_path / "in.data")
    result = run_perf(tmp_path, ["report", "--stdio", "--sort", "srcline", "-i", "in.data"])
    assert not result.crashed and not result.timed_out, str(result)
    assert "big.c:1" in result.out, str(result)
    assert result.max_rss < 1 << 30, f"{result.max_rss} bytes of memory:\n{result}"


# -- control characters -------------------------------------------------------

ESCAPE = b"\x1b]0;own\x07\r\x9b"


def escaping() -> dict[str, PerfData]:
    """Files with terminal escapes, by the place where these are."""
    functions = victim().functions
    text = [Function(f.name, f.addr, f.code,
                     [Line(0, "victim.c", 1, 1, b"evil" + ESCAPE + b"text")]) for f in functions]
    path = [Function(f.name, f.addr, f.code,
                     [Line(0, b"evil" + ESCAPE + b".c", 1, 1, "text")]) for f in functions]
    name = "evil" + ESCAPE.decode("latin-1")
    nameless = Program(7, "p", functions[:1],
                       fields={"btf_id": 0, "name": b"e" + ESCAPE})
    return {
        "line-text": pd.recording([Program(7, "p", text), bystander()], SAMPLED),
        "file-name": pd.recording([Program(7, "p", path), bystander()], SAMPLED),
        "ksymbol-name": saying(pd.ksymbol(b"evil" + ESCAPE, 0xffffffffc0100000, 64)),
        "btf-name": lying(btf=renamed_btf(name)),
        "program-name": pd.recording([nameless, bystander()], SAMPLED),
    }


def renamed_btf(name: str) -> bytes:
    """The victim's BTF with another name for each function."""
    functions = [Function(name, f.addr, f.code) for f in victim().functions]
    return pd.program_btf(Program(7, "p", functions))[0].blob()


@pytest.mark.parametrize("place", sorted(escaping()))
def test_control_characters(place: str, tmp_path: Path) -> None:
    """Strings of a file cannot write to the terminal; what is printable of them is shown."""
    file = escaping()[place]
    if place == "ksymbol-name":
        file.records = [*file.records, *[Sample(0xffffffffc0100000)] * 5]
    results = run_all(tmp_path, file)
    for name, result in results.items():
        for raw in ("\x1b", "\x07", "\r", "\x9b"):
            assert raw not in result.out + result.err, f"{name} prints {raw!r}:\n{result}"
    assert any("]0;own" in result.out for result in results.values()), (
        "\n".join(map(str, results.values())))

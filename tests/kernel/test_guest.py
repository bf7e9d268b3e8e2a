# SPDX-License-Identifier: GPL-2.0
"""The plan of tests/guest/plan in one boot of the guest; one test each.

PERF_BPF_SUBJECT=base runs the same on the unpatched kernel and perf.
"""

import pathlib
import random
import re
import shutil
import struct
import subprocess

import pytest

import guest_host as host
import machine
from once import Once
from perfbpf.plan import Entry, read_plan

# What scripts of the plan leave there is judged here, where perf is not emulated.
KEPT = host.BUILD / "results" / f"guest-{host.SUBJECT}" / "kept"
ANNOTATED = 100
CYCLES, SECONDS_EACH, SECONDS = ("100000", 1800, 5400) if host.STRESS else ("4000", 900, 3300)
# What this machine's own kernel can run is in tests/perf/test_plan.py.
ENTRIES = [entry for entry in read_plan(host.PLAN) if not machine.runs_here(entry)]
# What the series adds to selftests/bpf takes minutes to build: stack/check leaves that out
# when it has passed with all as it is now.
BPF_PROGS = "script:bpf_progs.sh"
OLD_PERF = pathlib.Path("/usr/bin/perf")
RECORD_KSYMBOL, KSYMBOL_BPF = 17, 1     # PERF_RECORD_KSYMBOL, PERF_RECORD_KSYMBOL_TYPE_BPF


@pytest.fixture(scope="module", name="bpf_progs")
def fixture_bpf_progs(request: pytest.FixtureRequest) -> Once:
    """Is BPF_PROGS left out?"""
    return Once("bpf-selftests", request)


@pytest.fixture(scope="module", name="session")
def fixture_session(request: pytest.FixtureRequest, bpf_progs: Once) -> host.Session:
    """The guest's results; boots it once, for all tests that were chosen."""
    shutil.rmtree(KEPT, ignore_errors=True)
    KEPT.mkdir(parents=True)
    runs = host.Runs(host.SUBJECT, SECONDS_EACH, SECONDS,
                     {"KEEP": str(KEPT), "BPF_CYCLES": CYCLES})
    left_out = {BPF_PROGS} if bpf_progs.why_not else set()
    return host.run_session(runs, [name for name in host.chosen(request) or
                                   [entry.name for entry in ENTRIES] if name not in left_out])


def kept(session: host.Session, name: str, work: pathlib.Path) -> pathlib.Path:
    """A copy of a file that the guest left, in a directory that has nothing else
    (RuntimeError: it left none)."""
    if not (KEPT / name).exists():
        raise RuntimeError(f"no {KEPT / name}; the guest's end: {session.end()}")
    return pathlib.Path(shutil.copy(KEPT / name, work / "perf.data"))


def require(session: host.Session, script: str) -> None:
    """Fail as the script of the plan did that left the files to judge."""
    host.judge_entry(session, next(entry for entry in read_plan(host.PLAN)
                                   if entry.name == f"script:{script}"))


@pytest.mark.both
def test_session_is_whole(session: host.Session, record_property: host.Note) -> None:
    """The guest ran to its end and its log has every planned result."""
    if host.GUEST in session.flaky:
        record_property(host.FLAKY, session.flaky[host.GUEST])
    host.judge_session(session)


@pytest.mark.both
def test_no_splat(session: host.Session) -> None:
    """The guest's kernel did not complain."""
    host.judge_splats(session)


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda e: e.name)
def test_entry(request: pytest.FixtureRequest, bpf_progs: Once, entry: Entry,
               record_property: host.Note) -> None:
    """One planned test passed."""
    if entry.name == BPF_PROGS:
        bpf_progs.skip()
    session = request.getfixturevalue("session")
    if entry.machine:
        record_property(host.LACKS, machine.lacks())
    host.note_entry(session, entry, record_property)
    host.judge_entry(session, entry)
    if entry.name == BPF_PROGS:
        bpf_progs.passed()


# record_bpf_cycles.sh

def test_cycles_have_info(session: host.Session, tmp_path: pathlib.Path) -> None:
    """Each program that was loaded while perf recorded is in a LOAD record, and has its
    info in the header; if records were lost, perf record said so."""
    data = kept(session, "cycles.data", tmp_path)
    loaded, described = host.loaded_ids(data), host.described_ids(data)
    assert len(loaded) >= int(CYCLES)
    assert not loaded - described, f"{len(loaded - described)} of {len(loaded)} without info"
    if "PERF_RECORD_LOST" in host.perf_on_copy(data, "script", "--show-lost-events"):
        assert re.search("lost .* BPF records", (KEPT / "cycles.said").read_text())


def test_copy_annotates(session: host.Session, tmp_path: pathlib.Path) -> None:
    """With the guest gone, from a copy of perf.data, programs that had ended
    while perf recorded annotate with their own source: a random hundred."""
    data = kept(session, "cycles.data", tmp_path)
    symbols = host.sampled_cycles(data)
    assert len(symbols) >= ANNOTATED, f"samples in {len(symbols)} programs only"
    missing = host.without_source(data, random.sample(symbols, ANNOTATED))
    assert not missing, f"{len(missing)} of {ANNOTATED} of {len(symbols)} without source: {missing}"


# record_bpf_told.sh

@pytest.mark.parametrize("budget", [64, 0])
def test_missing_are_counted(session: host.Session, tmp_path: pathlib.Path, budget: int) -> None:
    """perf record says of how many programs the file has no info, with any budget."""
    require(session, "record_bpf_told.sh")
    data = kept(session, f"told.{budget}.data", tmp_path)
    messages = (KEPT / f"told.{budget}.said").read_text()
    counted = re.search(r"^\[ perf record: (\d+)/.* BPF programs without code \]", messages, re.M)
    missing = host.loaded_ids(data) - host.described_ids(data)
    assert len(host.loaded_ids(data)) >= 300
    assert int(counted[1] if counted else 0) == len(missing), messages


# record_old_perf.sh

def samples(perf: pathlib.Path, data: pathlib.Path, pipe: bool) -> tuple[int, int]:
    """How many samples a perf finds, and how many of them in BPF programs."""
    with open(data, "rb") as file:
        done = subprocess.run(
            [str(perf), "script", "-i", "-" if pipe else str(data), "-F", "ip,sym"],
            env=host.perf_environment(data.parent), stdin=file, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 0, f"{perf} script: {done.stderr[-2000:]}"
    lines = re.findall("^ *[0-9a-f].*", done.stdout, re.M)
    return len(lines), sum("bpf_prog_" in line for line in lines)


def names_of_other_readers(data: pathlib.Path) -> list[str]:
    """The names of BPF functions in a file, as google/perf_data_converter takes them: of
    KSYMBOL records without any flag."""
    raw = data.read_bytes()
    at, size = struct.unpack_from("<QQ", raw, 40)
    end, names = at + size, []
    while at < end:
        kind, _, length = struct.unpack_from("<IHH", raw, at)
        if kind == RECORD_KSYMBOL:
            ksym_type, flags = struct.unpack_from("<HH", raw, at + 20)
            if ksym_type == KSYMBOL_BPF and not flags:
                names.append(raw[at + 24:at + length].split(b"\0")[0].decode())
        at += length
    return names


def test_other_readers(session: host.Session, tmp_path: pathlib.Path) -> None:
    """A program that was loaded before perf started has a name for readers that know the flags
    of mainline only."""
    require(session, "record_old_perf.sh")
    names = names_of_other_readers(kept(session, "new.data", tmp_path))
    assert any(name.endswith("_existed") for name in names), names


def test_old_perf(session: host.Session, tmp_path: pathlib.Path) -> None:
    """The distribution's perf and this one find the same samples in what either of them
    recorded, some in BPF programs."""
    require(session, "record_old_perf.sh")
    for name in ("old", "new", "pipe"):
        data = kept(session, f"{name}.data", tmp_path)
        pipe = name == "pipe"
        theirs, ours = (samples(perf, data, pipe) for perf in (OLD_PERF, host.PERF[host.SUBJECT]))
        assert ours[0] == theirs[0] and theirs[1], f"{name}.data: {theirs}, by this perf {ours}"

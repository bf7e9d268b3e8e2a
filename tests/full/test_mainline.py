# SPDX-License-Identifier: GPL-2.0
"""Mainline's own tests on the base and on the series, compared: `make mainline`, or some of
the groups below with `make mainline GROUP="ftrace livepatch"`.

Two kernels with the same options (stack/configs/mainline.config on top of the guest's) run
the same tests, those of the base's tree, both at once. A test that the series loses runs
again, up to twice, on both kernels: it is lost if it passes on the base and not on the
series, or fails on the series alone, each time. tests/full/mainline.changed has those that
the series changes on purpose. What each test said on the base and on the series is in
build/results/mainline/GROUP.list.
"""
from __future__ import annotations

import os
import shlex
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import pytest

import guest_host as host
import ktap
from perfbpf import guest
from perfbpf.paths import BASE, BUILD, TESTS, TOP
from perfbpf.plan import Entry

KERNELS = {"base": "mainline-base", "series": "mainline"}
RESULTS = BUILD / "results/mainline"
FTRACE = BASE / "tools/testing/selftests/ftrace"
REPEATS = 2
BOOTS_IN_VAIN = 2
MISSING, LOG = "-", "the kernel's log"
BAD = ("FAIL", "CRASH")
Outcomes = dict[str, str]       # a test's result, by its name: UNIT[: TEST...]


class Group(NamedTuple):
    """A group of tests: time limits of each and of a guest, and the guest's processors. One,
    where ftrace changes all functions: below a second one TCG panics, on either kernel."""
    seconds_each: float
    seconds: float
    cpus: int = 1


GROUPS = {
    # KUnit, kallsyms_selftest and ftrace's startup tests
    "boot": Group(600, 1200),
    "perf_events": Group(240, 2400, 2),
    "livepatch": Group(300, 3000),
    # lib/test_bpf.ko, the tests of the JIT
    "test_bpf": Group(900, 3600),
    # test_verifier, test_tag, test_lru_map, test_sockmap
    "bpf": Group(1800, 7200),
    "ftrace": Group(150, 10800),
    # only if asked for: its build and its run each take as long as all others together
    "test_progs": Group(120, 14400),
}
CHOSEN = os.environ.get("PERF_BPF_GROUP", "").split() or list(GROUPS)[:-1]
BOOT = "until dmesg | grep -q 'kallsyms_selftest: [fa]'; do sleep 2; done;" \
    " cat /sys/kernel/debug/kunit/*/results; dmesg"
TEST_BPF = "n=$(dmesg | wc -l); modprobe test_bpf test_suite={} && rmmod test_bpf; s=$?;" \
    " dmesg | tail -n +$n; exit $s"


def commands(side: str, name: str) -> dict[str, str]:
    """The command of each unit of a group but ftrace (FileNotFoundError: it is not built)."""
    if name == "boot":
        return {"boot": BOOT}
    if name == "test_bpf":
        return {suite: TEST_BPF.format(suite)
                for suite in ("test_bpf", "test_tail_calls", "test_skb_segment")}
    out = TESTS["mainline-test_progs" if name == "test_progs" else "mainline-tests"]
    folder = out.path / side / name
    if not folder.is_dir():
        raise FileNotFoundError(f"no {folder}: run `{out.command}`")
    if name == "test_progs":
        tests = os.popen(f"cd {shlex.quote(str(folder))} && ./test_progs -l").read().split()
        return {test: f"cd {folder} && exec ./test_progs -a {test}" for test in tests}
    pattern = {"livepatch": "test-*.sh", "bpf": "test_*"}.get(name, "*")
    return {path.name: f"cd {folder} && exec ./{path.name}"
            for path in sorted(folder.glob(pattern)) if path.is_file() and os.access(path, os.X_OK)}


def entries_of(side: str, name: str) -> list[Entry]:
    """The units of a group as entries of a plan. But for ftrace each is a script in
    RESULTS/SIDE/units that runs it."""
    if name == "ftrace":
        return [Entry("ftrace", str(path.relative_to(FTRACE / "test.d")))
                for path in sorted(FTRACE.glob("test.d/**/*.tc"))]
    folder = RESULTS / side / "units" / name
    folder.mkdir(parents=True, exist_ok=True)
    entries = []
    for unit, command in commands(side, name).items():
        script = folder / unit.replace("/", "_")
        tap = "" if name == "perf_events" else \
            f"exec {TOP}/tests/full/mainline_tap.py {name} sh -c {shlex.quote(command)}"
        script.write_text(f"#!/bin/sh\n{tap or command}\n")
        script.chmod(0o755)
        entries.append(Entry("kselftest", f"{name}/{script.name}"))
    return entries


def run(side: str, name: str, entries: list[Entry], number: int) -> Outcomes:
    """Run units on one kernel. One that the guest does not survive is a CRASH, and the next
    guest goes on after it (RuntimeError: no guest runs anything)."""
    group, outcomes, left, in_vain = GROUPS[name], {LOG: "PASS"}, entries, 0
    plan = RESULTS / side / f"{name}.plan"
    plan.write_text("".join(f"{entry.kind} {entry.path}\n" for entry in entries))
    runs = host.Runs(KERNELS[side], group.seconds_each, group.seconds, plan_file=plan,
                     append="log_buf_len=16M", name=f"mainline/{side}/{name}.{number}",
                     selftests=RESULTS / side / "units", ftrace=FTRACE, cpus=group.cpus)
    while left:
        session = runs.run(left)
        if session.status == guest.Outcome.INFRA or in_vain == BOOTS_IN_VAIN:
            raise RuntimeError(f"{name} on the {side}: {session.said}")
        log = session.results / "ktap.log"
        lines = log.read_text(errors="replace").splitlines() if log.exists() else []
        for word, test in ktap.results(lines):
            if outcomes.get(test, "PASS") == "PASS":
                outcomes[test] = word
        if session.status == guest.Outcome.SPLAT:
            outcomes[LOG] = "FAIL"
        unfinished = [entry for entry in left if entry.name not in session.tests]
        in_vain = in_vain + 1 if len(unfinished) == len(left) else 0
        if unfinished and not in_vain:
            outcomes[unfinished[0].name] = "CRASH"
        left = unfinished[0 if in_vain else 1:]
    return outcomes


def run_both(name: str, entries: list[Entry], number: int) -> dict[str, Outcomes]:
    """Run units on both kernels at once."""
    with ThreadPoolExecutor(2) as pool:
        runs = {side: pool.submit(run, side, name, entries, number) for side in KERNELS}
        return {side: one.result() for side, one in runs.items()}


def lost(both: dict[str, Outcomes]) -> list[str]:
    """The tests whose result on the series is worse."""
    words = {test: tuple(both[side].get(test, MISSING) for side in KERNELS)
             for test in {**both["base"], **both["series"]}}
    return sorted(test for test, (base, series) in words.items()
                  if (base == "PASS" != series) or (series in BAD and base not in BAD))


@pytest.mark.parametrize("name", CHOSEN)
def test_group(name: str, record_property: host.Note) -> None:
    """The series loses no test of the group, but those that it changes."""
    for side in KERNELS:
        (RESULTS / side).mkdir(parents=True, exist_ok=True)
    entries = [entries_of(side, name) for side in KERNELS][0]
    first = run_both(name, entries, 1)
    worse = lost(first)
    (RESULTS / f"{name}.list").write_text("".join(
        f"{first['base'].get(test, MISSING):11} {first['series'].get(test, MISSING):11} {test}\n"
        for test in sorted({**first["base"], **first["series"]})))
    for side in KERNELS:
        counts = dict(Counter(first[side].values()))
        print(f"{name} on the {side}: {counts}")
        record_property(side, counts)
    for number in range(2, 2 + REPEATS):
        units = {test.partition(": ")[0] for test in worse}
        if units:
            print(f"worse on the series, so these run again: {' '.join(sorted(units))}")
            again = [entry for entry in entries if entry.name in units or LOG in units]
            worse = sorted(set(worse) & set(lost(run_both(name, again, number))))
    changed = dict(line.split("\t") for line in (TOP / "tests/full/mainline.changed").read_text(
        ).splitlines() if line and not line.startswith("#"))
    worse = [test for test in worse if not any(test.endswith(f": {one}") for one in changed)]
    assert not worse, f"see {RESULTS}/{name}.list"

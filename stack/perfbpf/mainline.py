# SPDX-License-Identifier: GPL-2.0
"""Run mainline's own tests on the base and on the series, and compare.

  stack/mainline [GROUP...]

Two kernels with the same options (stack/configs/mainline.config on top of the
guest's) run the same tests, those of the base's tree, under the same
conditions: a group at a time, both kernels at once, each with one CPU, as TCG
of QEMU before 8.1 panics, on either kernel, where ftrace changes all functions
below a second one.  A group is
  boot         KUnit, kallsyms_selftest and ftrace's startup tests
  perf_events  the kselftests, on two CPUs
  ftrace       all test cases of ftracetest, kprobes, fprobe and uprobes with them
  livepatch    the kselftests
  test_bpf     lib/test_bpf.ko, the tests of the JIT
  bpf          test_verifier, test_tag, test_lru_map, test_sockmap
  test_progs   BPF's main tests, as far as the compiler builds them (see
               stack/mainline.d/build); only when asked for, as its build and
               its run each take as long as all the others together

Every unit, such as a program or a test case, has a time limit, and one that
kills its guest loses only itself: the next boot goes on after it.  The lists
are in build/results/mainline/{base,series}/GROUP.list, a line "RESULT name"
each, side by side in build/results/mainline/GROUP.list; the output of a unit that
did not pass is in {base,series}/GROUP.1/logs.

A test whose results differ is run again, up to twice, on both kernels.  It is flaky
if it then has the same result on both, or another difference.  The exit status is 1
if a test, each time, passes on the base and not on the series, or fails on the series
and neither fails nor exists on the base, unless stack/mainline.changed names it with
the reason, and 2 if something around the tests is broken.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import itertools
import os
import shlex
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Callable, Iterable, NamedTuple, Sequence

from perfbpf import paths
from perfbpf import outcome as ends
from perfbpf.paths import BUILD, TOP

TESTS = paths.MAINLINE["tests"].path
TEST_PROGS = paths.MAINLINE["test_progs"].path
RESULTS = BUILD / "results/mainline"
# As in stack/lib.sh, and for the scripts called from here
START = int(os.environ.setdefault("PERF_BPF_T0", str(int(time.time()))))
KERNELS = {"base": "mainline-base", "series": "mainline"}
# Set when one of the two guests has failed: the other one is of no use then.
STOP = threading.Event()
BOOT_SECONDS = 500      # a boot, with kallsyms_selftest, on a slow machine
BOOTS_IN_VAIN = 2
POLL_SECONDS = 2
REPEATS = 2
GROUPS = ("boot", "perf_events", "livepatch", "test_bpf", "bpf", "ftrace",
          "test_progs")
GOOD = ("PASS", "XFAIL")
BAD = ("FAIL", "TIMEOUT", "SPLAT", "CRASH")
MISSING = "-"


class MainlineError(Exception):
    """Something around the tests is broken; the text says what."""


class Group(NamedTuple):
    """A group of tests."""
    units: list[str]
    seconds: int            # the longest time of a unit: its limit in units.py and a margin
    tests: dict[str, Path]  # where its tests are for each kernel
    cpus: int = 1


class Outcome(NamedTuple):
    """A test's result, and the unit that contains the test."""
    result: str
    unit: str


class Difference(NamedTuple):
    """A test whose results differ: (base, series) of each run, and the verdict: lost,
    changed (lost on purpose), differs or flaky."""
    name: str
    pairs: list[tuple[str, str]]
    verdict: str


Outcomes = dict[str, Outcome]


def say(text: str) -> None:
    """One line of progress, with the time since the start."""
    since = int(time.time()) - START
    print(f"==> [{since // 60}:{since % 60:02}] {text}", flush=True)


# The groups

def for_both(path: Path) -> dict[str, Path]:
    """Return the path of tests that both kernels share, for each kernel."""
    return {side: path for side in KERNELS}


def for_each(path: Path) -> dict[str, Path]:
    """Return the path of tests that are built for each kernel, as they have modules."""
    return {side: path.with_name(f"{path.name}-{side}") for side in KERNELS}


def programs(folder: Path, pattern: str) -> list[str]:
    """Return the names of the programs in a folder."""
    return sorted(path.name for path in folder.glob(pattern)
                  if path.is_file() and os.access(path, os.X_OK))


def ftrace_units() -> list[str]:
    """Return every test case, as ftracetest would find them."""
    top = TESTS / "ftrace/test.d"
    return sorted(str(path.relative_to(top)) for path in top.glob("**/*.tc"))


def test_progs_units() -> list[str]:
    """Return the tests that test_progs lists."""
    folder = for_each(TEST_PROGS / "test_progs")["base"]
    listed = subprocess.run([str(folder / "test_progs"), "-l"], cwd=folder, text=True,
                          stdout=subprocess.PIPE, check=True).stdout
    return listed.split()


def make_group(name: str) -> Group:
    """Return one of GROUPS, with the units that are built."""
    top = TEST_PROGS if name == "test_progs" else TESTS
    places = (for_each if name in ("livepatch", "bpf", "test_progs") else for_both)(top / name)
    in_kernel = for_both(TESTS)
    groups: dict[str, Callable[[], Group]] = {
        "boot": lambda: Group(["boot", "kunit", "kallsyms_selftest", "ftrace-startup"], 60,
                              in_kernel),
        "perf_events": lambda: Group(programs(places["base"], "*"), 300, places, cpus=2),
        "livepatch": lambda: Group(programs(places["base"], "test-*.sh"), 360, places),
        "test_bpf": lambda: Group(["test_bpf", "test_tail_calls", "test_skb_segment"], 960,
                                  in_kernel),
        "bpf": lambda: Group(programs(places["base"], "test_*"), 1860, places),
        "test_progs": lambda: Group(test_progs_units(), 180, places),
        "ftrace": lambda: Group(ftrace_units(), 200, places),
    }
    return groups[name]()


# One side

def read_progress(path: Path) -> tuple[Outcomes, list[str], str]:
    """Read a guest's progress (see units.py): the outcomes, the units that ended, and
    the unit that was running, if any."""
    outcomes: Outcomes = {}
    ended: list[str] = []
    running = ""
    of_unit: Outcomes = {}
    text = path.read_text(encoding="utf-8", errors="replace") if path.exists() else ""
    for line in text.splitlines():
        word, _, rest = line.partition(" ")
        if word == "START":
            running, of_unit = rest, {}
        elif word == "END":
            outcomes.update(of_unit)
            ended.append(rest)
            running = ""
        else:
            unit, _, name = rest.partition("\t")
            of_unit[name] = Outcome(word, unit)
    return outcomes, ended, running


def wait_while_it_moves(guest: subprocess.Popen[bytes], progress: Path, seconds: float) -> bool:
    """Wait for a guest's end: True; or end it as its time limit would when nothing is added
    to `progress` for `seconds`, or for a boot's time before the first: False."""
    size, since = -1, time.monotonic()
    while guest.poll() is None:
        if STOP.is_set():
            raise MainlineError("stopped")
        now = progress.stat().st_size if progress.exists() else -1
        if now != size:
            size, since = now, time.monotonic()
        limit = seconds + (BOOT_SECONDS if size < 0 else 0)
        if time.monotonic() - since > limit:
            guest.send_signal(signal.SIGUSR1)
            guest.wait()
            return False
        time.sleep(POLL_SECONDS)
    return True


def boot(side: str, name: str, group: Group, units: list[str], results: Path) -> str:
    """Run units in one guest, as far as it gets: "" when it came to the end, otherwise
    the result of the unit that it did not survive."""
    shutil.rmtree(results, ignore_errors=True)
    results.mkdir(parents=True)
    (results / "units").write_text("".join(f"{unit}\n" for unit in units), encoding="utf-8")
    command = shlex.join([str(TOP / "stack/session"), "units", name, str(group.tests[side]),
                          str(results / "units")])
    limit = BOOT_SECONDS + group.seconds * len(units)
    with open(results / "guest.log", "wb") as log, subprocess.Popen(
            [str(TOP / "stack/guest"), "--kernel", KERNELS[side], "--cpus", str(group.cpus),
             "--append", "log_buf_len=16M", "--timeout", str(limit), "--results", str(results),
             "--", command], stdin=subprocess.DEVNULL, stdout=log,
            stderr=subprocess.STDOUT) as guest:
        try:
            moved = wait_while_it_moves(guest, results / "progress", group.seconds)
        finally:
            guest.terminate()
            status = guest.wait()
    if not moved or status == ends.Outcome.TIMEOUT:
        return "TIMEOUT"
    if status == ends.Outcome.DIED:
        return "CRASH"
    if status in ends.ENDED:
        return ""
    raise MainlineError(f"{name} on the {side}: {ends.meaning(status)}, see"
                        f" {results}/guest.log")


def run_side(side: str, name: str, group: Group, units: list[str], number: int
             ) -> Outcomes:
    """Run units on one kernel, in as many guests as it needs."""
    outcomes: Outcomes = {}
    left, in_vain = list(units), 0
    for boots in itertools.count(1):
        results = RESULTS / side / (f"{name}.{number}" + f"-{boots}" * (boots > 1))
        end = boot(side, name, group, left, results)
        found, ended, running = read_progress(results / "progress")
        outcomes.update(found)
        if running:
            outcomes[running] = Outcome(end or "CRASH", running)
            ended.append(running)
        elif end and ended:
            outcomes[f"{ended[-1]}: the guest after it"] = Outcome(end, ended[-1])
        in_vain = 0 if ended else in_vain + 1
        if in_vain == BOOTS_IN_VAIN:
            raise MainlineError(f"{name} on the {side}: no unit was run, see"
                                f" {results}/guest.log")
        left = [unit for unit in left if unit not in ended]
        if not left:
            break
        say(f"{name}: the guest of the {side} ended in {running or 'its boot'}"
            f" ({end}), {len(left)} units are left")
    return outcomes


def run_both(name: str, group: Group, units: list[str], number: int
             ) -> tuple[Outcomes, Outcomes]:
    """Run units on both kernels at once."""
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        runs = [pool.submit(run_side, side, name, group, units, number)
                for side in KERNELS]
        try:
            done, _ = concurrent.futures.wait(runs, return_when="FIRST_EXCEPTION")
            for run in done:    # the other one may only have been stopped
                run.result()
            return runs[0].result(), runs[1].result()
        except BaseException:
            STOP.set()
            raise


# Comparing

def result_of(outcomes: Outcomes, name: str) -> str:
    """A test's result."""
    return outcomes[name].result if name in outcomes else MISSING


def is_loss(base: str, series: str) -> bool:
    """Is this result of the series worse than the base's?"""
    return ((base in GOOD and series not in GOOD)
            or (series in BAD and base not in BAD))


def differing(base: Outcomes, series: Outcomes, names: Iterable[str]
              ) -> list[str]:
    """Return those of the names whose results differ."""
    return sorted(name for name in names
                  if result_of(base, name) != result_of(series, name))


def changed_tests() -> dict[str, str]:
    """Return the reason for each test in stack/mainline.changed."""
    lines = (TOP / "stack/mainline.changed").read_text(encoding="utf-8").splitlines()
    return dict(line.split("\t", 1) for line in lines if line and not line.startswith("#"))


def verdict(test: str, pairs: list[tuple[str, str]]) -> str:
    """Return the verdict on several runs of a test, each (base, series)."""
    if all(is_loss(base, series) for base, series in pairs):
        return "changed" if test in changed_tests() else "lost"
    return "differs" if len(set(pairs)) == 1 else "flaky"


def worth_repeating(base: Outcomes, series: Outcomes, names: list[str]
                    ) -> list[str]:
    """Return the names without the tests that only the series has and that pass."""
    return [name for name in names
            if name in base or result_of(series, name) not in GOOD]


def compare(name: str, group: Group, first: tuple[Outcomes, Outcomes]
            ) -> list[Difference]:
    """Return the differences of a group, after running its tests that differ again."""
    pairs = {test: [(result_of(first[0], test), result_of(first[1], test))]
             for test in differing(*first, set(first[0]) | set(first[1]))}
    left = worth_repeating(*first, list(pairs))
    last = first
    for number in range(2, 2 + REPEATS):
        units = sorted({side[test].unit for test in left for side in last + first
                        if test in side})
        if not units:
            break
        say(f"{name}: {len(left)} tests differ, so these run again:"
            f" {' '.join(units)}")
        last = run_both(name, group, [unit for unit in group.units if unit in units],
                        number)
        for test in left:
            pairs[test].append((result_of(last[0], test), result_of(last[1], test)))
        left = differing(*last, left)
    return [Difference(test, runs, verdict(test, runs)) for test, runs in pairs.items()]


# Reports

def write_lists(name: str, base: Outcomes, series: Outcomes) -> None:
    """Write the list of a group for each side, and both side by side."""
    for side, outcomes in (("base", base), ("series", series)):
        (RESULTS / side / f"{name}.list").write_text("".join(
            f"{outcomes[test].result} {test}\n" for test in sorted(outcomes)))
    (RESULTS / f"{name}.list").write_text("".join(
        f"{result_of(base, test):11} {result_of(series, test):11} {test}\n"
        for test in sorted({*base, *series})))


def counts(base: Outcomes, series: Outcomes) -> str:
    """Return the number of tests with each result, for both sides."""
    numbers = [Counter(outcome.result for outcome in side.values())
               for side in (base, series)]
    words = sorted(set(numbers[0]) | set(numbers[1]),
                   key=lambda word: (word not in GOOD, word in BAD, word))
    return ", ".join(f"{word} {numbers[0][word]} | {numbers[1][word]}"
                     for word in words)


def report(name: str, seconds: float, first: tuple[Outcomes, Outcomes],
           found: list[Difference]) -> list[str]:
    """Return the lines about a group."""
    lines = [f"{name} (base | series, {seconds:.0f} s): {counts(*first)}"]
    for word in ("lost", "changed", "differs", "flaky"):
        for test in found:
            if test.verdict == word:
                runs = ", ".join(f"{base} | {series}" for base, series in test.pairs)
                why = f" ({changed_tests()[test.name]})" if word == "changed" else ""
                lines.append(f"  {word}: {test.name}: {runs}{why}")
    return lines


def raise_interrupt(_signal: int, _frame: object) -> None:
    """Turn a signal into the unwinding that takes the guests along."""
    raise KeyboardInterrupt


def build(names: Iterable[str]) -> None:
    """Build both kernels, and the tests of the groups."""
    commands = [["stack/kernel", "mainline-base"], ["stack/kernel", "mainline"],
                ["stack/mainline.d/build"]]
    if "test_progs" in names:
        commands.append(["stack/mainline.d/build", "test_progs"])
    for command in commands:
        if subprocess.run([str(TOP / command[0]), *command[1:]], check=False).returncode:
            raise MainlineError(f"{' '.join(command)} failed, see above")


def run_group(name: str, group: Group) -> tuple[list[str], bool]:
    """Run and compare a group; return the lines about it, and whether it has a lost test."""
    start = time.monotonic()
    say(f"{name}: {len(group.units)} units")
    if not group.units:
        raise MainlineError(f"{name}: nothing in {group.tests['base']}; remove it and"
                            " run this again")
    first = run_both(name, group, group.units, 1)
    write_lists(name, *first)
    found = compare(name, group, first)
    lines = report(name, time.monotonic() - start, first, found)
    print("\n".join(lines), flush=True)
    return lines, any(test.verdict == "lost" for test in found)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; the exit status is as at the top of this file."""
    parser = argparse.ArgumentParser(
        prog="stack/mainline", description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("groups", nargs="*", metavar="GROUP",
                        help="default: all but test_progs")
    names = parser.parse_args(arguments).groups or [
        name for name in GROUPS if name != "test_progs"]
    for name in names:
        if name not in GROUPS:
            parser.error(f"no group {name}: the groups are {', '.join(GROUPS)}")
    signal.signal(signal.SIGTERM, raise_interrupt)
    lost = False
    lines: list[str] = []
    try:
        build(names)
        for name in names:
            about, has_lost = run_group(name, make_group(name))
            lines += about
            lost = lost or has_lost
    except (MainlineError, OSError, subprocess.CalledProcessError) as error:
        print(f"mainline: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("mainline: interrupted", file=sys.stderr)
        return 128 + signal.SIGINT
    (RESULTS / "summary").write_text("\n".join(lines) + "\n")
    say("tests that are worse on the series than on the base: "
        + ("see \"lost\"" if lost else "none"))
    print("\n".join(lines))
    return 1 if lost else 0


if __name__ == "__main__":
    sys.exit(main())

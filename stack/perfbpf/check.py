# SPDX-License-Identifier: GPL-2.0
"""stack/check [KIND] [--only NAME]: build what a kind of check needs, run its tests, say how long
that will take, and what took how long.

KIND is one of:
{kinds}

--only NAME runs those tests of `check` or `base` whose name has NAME in it, on what is built:
`make check TEST=NAME`.

A kind has stages in lanes, which run at the same time, so that no core is idle while something
waits. A stage begins when all that it needs have passed, and is left out when one of them failed.
Its output is in build/logs/check-STAGE.log. A stage that reaches its limit of time is ended; limits
follow the machine's speed. PERF_BPF_MINUTES=N ends the whole after N minutes and says so, where CI
would end it without a word.
"""
from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import NamedTuple, Sequence

from perfbpf import passed
from perfbpf.git import ToolError
from perfbpf.paths import BUILD, KERNELS, LINUX, PERFS, TESTS, TOP, Output
from perfbpf.series import read
from perfbpf.stage import STAMP, T0, clock, say, slowness

GRACE_SECONDS = 15
# A limit is this many times what a stage takes from nothing, alone, and never less than LEAST:
# other work runs beside it, and machines differ in more than what slowness() measures.
MARGIN, LEAST = 5, 900
LOG_LINES, COLUMNS = 20, 160
# Where the part of pytest's output begins that is printed here too; see tests/conftest.py.
SUMMARY = "what took longest:\n"


class Stage(NamedTuple):
    """A command that is run: it takes about `seconds` from nothing where slowness() is 1, `needs`
    are the stages that have to pass before, `made` is there when it has run. With `tests` it is
    pytest on these. One that is in tests/passed by the name `passed`, with all as it is now, is
    left out."""
    name: str
    seconds: float
    command: str = ""
    needs: tuple[str, ...] = ()
    tests: str = ""
    made: Path | None = None
    passed: str = ""

    def expected(self) -> float:
        """About how many seconds it takes here and now, on what is built."""
        names = [f"topic:{name}" for name in read().names()] if self.passed == "topic" \
            else [self.passed] if self.passed else []
        left = sum(not passed.day(name) for name in names) / len(names) if names else 1
        there = self.made and self.made.exists()
        return self.seconds * left * slowness() * (0.1 if there else 1)


def building(name: str, seconds: float, command: str, out: Output, need: str = "tree") -> Stage:
    """A stage that builds an output."""
    return Stage(name, seconds, command, (need,), made=out.path / STAMP)


def kernel(name: str, stage: str, seconds: float = 600) -> Stage:
    """The stage that builds a kernel."""
    return building(stage, seconds, f"stack/build kernel {name}", KERNELS[name])


TREE = Stage("tree", 80, "stack/build tree", made=LINUX)
KERNEL, KERNEL_BASE = kernel("series", "kernel"), kernel("base", "kernel-base")
KERNEL_DEBUG = kernel("debug", "kernel-debug", 900)
PERF = building("perf", 80, "stack/build perf series", PERFS["series"])
PERF_BASE = building("perf-base", 80, "stack/build perf base", PERFS["base"])
SELFTESTS = building("selftests", 20, "stack/build selftests", TESTS["selftests"])
SAMPLES = building("samples", 50, "tests/guest/build_programs samples", TESTS["samples"], "perf")
BPF_SELFTESTS = building("bpf-selftests", 45, "tests/guest/build_programs bpf-selftests",
                         TESTS["bpf-selftests"], "kernel")
LINT = Stage("lint", 60, "stack/lint", ("tree",))
# without modules and BTF, which the guest's kernels have; `make configurations` compiles more
OTHER = Stage("configuration", 80, f"tests/full/configurations {LINUX} {BUILD}/configurations"
              " x86_64-no-modules", ("tree",), passed="configuration")
TOPICS = Stage("topics", 600, needs=("kernel", "perf"), tests="tests/series", passed="topic")
TESTS_PERF = Stage("tests-perf", 250, needs=("perf", "selftests", "samples"), tests="tests/perf")
IN_GUEST = ("kernel", "perf", "selftests", "samples", "bpf-selftests")
GUEST_LANE = (PERF, SELFTESTS, SAMPLES)


class Kind(NamedTuple):
    """A kind of check: its lanes, what is tested, and variables for what it runs."""
    what: str
    lanes: Sequence[Sequence[Stage]]
    subject: str = "series"
    environment: tuple[tuple[str, str], ...] = ()


KINDS = {
    "check": Kind("what CI runs: the product", (
        (TREE, KERNEL, BPF_SELFTESTS._replace(passed="bpf-selftests"),
         Stage("tests-kernel", 900, needs=IN_GUEST, tests="tests/kernel")),
        (LINT, *GUEST_LANE, TESTS_PERF, OTHER, TOPICS))),
    "base": Kind("the same tests without the series, where they have to fail", (
        (TREE, KERNEL_BASE, KERNEL, BPF_SELFTESTS,
         Stage("tests-kernel", 900, needs=(*IN_GUEST, "kernel-base", "perf-base"),
               tests="tests/kernel")),
        (PERF, PERF_BASE, SELFTESTS, SAMPLES,
         TESTS_PERF._replace(needs=(*TESTS_PERF.needs, "perf-base")))), "base"),
    "topics": Kind("each topic compiles on what it needs, also those that did as they are now", (
        (TREE, KERNEL, TOPICS._replace(passed="")), (PERF,)),
        environment=(("PERF_BPF_AGAIN", "1"),)),
    "debug": Kind("the guest's tests with KASAN, lockdep, kmemleak and SELinux", (
        (TREE, KERNEL, BPF_SELFTESTS, KERNEL_DEBUG,
         Stage("tests-debug", 1800, needs=(*IN_GUEST, "kernel-debug"),
               tests="tests/full/test_debug.py")), GUEST_LANE)),
    "prefixes": Kind("each prefix of the series is built, and all that depends on its last patch", (
        (TREE, Stage("kernel-config", 60, "stack/build kernel series:config", ("tree",)),
         Stage("prefixes", 4000, needs=("kernel-config",),
               tests="tests/full/test_prefixes.py")),),
        environment=(("PERF_BPF_PREFIX", "dependents"),)),
    "tooling": Kind("the tests of stack/", (
        (TREE, KERNEL, Stage("tests-tooling", 60, needs=("kernel", "perf"),
                             tests="tests/tooling")), (PERF,))),
    "debian": Kind("the series' perf on Debian's kernels 6.1 and 6.12, btf_func on its 7.3", (
        (TREE, KERNEL, *GUEST_LANE,
         Stage("tests-debian-functions", 300, needs=("kernel",),
               tests="tests/full/test_debian_functions.py"),
         Stage("debian-bookworm", 60, "tests/full/prepare bookworm"),
         Stage("debian-trixie", 60, "tests/full/prepare trixie"),
         Stage("tests-debian", 600, needs=("perf", "selftests", "debian-bookworm",
                                            "debian-trixie"),
               tests="tests/full/test_debian.py")),)),
    "mainline": Kind("mainline's own tests on the base and on the series, compared", (
        (TREE, kernel("mainline-base", "kernel-mainline-base", 400),
         kernel("mainline", "kernel-mainline", 400),
         Stage("mainline-tests", 300, "tests/full/prepare mainline-tests",
               ("kernel-mainline-base", "kernel-mainline")),
         Stage("tests-mainline", 6000, needs=("mainline-tests", "perf"),
               tests="tests/full/test_mainline.py")), (PERF,))),
    "stress": Kind("both guests for hours: 100,000 programs, half an hour of each churn", (
        (TREE, KERNEL, KERNEL_DEBUG, *GUEST_LANE, BPF_SELFTESTS,
         Stage("stress", 6000, needs=(*IN_GUEST, "kernel-debug"),
               tests="tests/kernel/test_guest.py tests/full/test_debug.py")),),
        environment=(("PERF_BPF_STRESS", "1"), ("PERF_BPF_AGAIN", "1"))),
}


def expected(kind: Kind) -> float:
    """About how many seconds a kind of check takes here and now."""
    ends: dict[str, float] = {}
    lanes = [list(lane) for lane in kind.lanes]
    while any(lanes):
        for number, lane in enumerate(lanes):
            while lane and all(need in ends for need in lane[0].needs):
                stage = lane.pop(0)
                before = kind.lanes[number][:-len(lane) - 1]
                ends[stage.name] = stage.expected() + max(
                    [ends[need] for need in (*stage.needs, *(one.name for one in before))],
                    default=0)
    return max(ends.values())


class Runner:
    """Runs the stages of a kind of check; `ended` says how each of them ended, after how long."""

    def __init__(self, kind: Kind, only: str) -> None:
        self.environment = {**os.environ, **dict(kind.environment),
                            "PERF_BPF_SUBJECT": kind.subject}
        self.only, self.lanes = only, kind.lanes
        self.stages = [stage for lane in kind.lanes for stage in lane]
        self.ended: dict[str, tuple[str, float]] = {}
        self.tails: dict[str, list[str]] = {}       # of the logs of pytest, and of what failed
        self.over = {stage.name: threading.Event() for stage in self.stages}
        self.deadline = T0 + 60 * float(os.environ.get("PERF_BPF_MINUTES") or "inf")
        self.stop = ""      # why all of it ends, once it does

    def run(self) -> None:
        """Run all stages; returns when each has ended."""
        threads = [threading.Thread(target=self.run_lane, args=(lane,)) for lane in self.lanes]
        for thread in threads:
            thread.start()
        for thread in threads:
            while thread.is_alive():    # a signal's handler runs between joins
                thread.join(0.2)

    def run_lane(self, lane: Sequence[Stage]) -> None:
        """Run stages one after the other, each when what it needs has passed."""
        for stage in lane:
            begun = time.time()
            for need in stage.needs:
                self.over[need].wait()
            missing = [need for need in stage.needs if self.ended[need][0] != "passed"]
            if self.stop or missing:
                how = f"not run, as {self.stop or f'{missing[0]} did not pass'}"
            else:
                begun = time.time()
                try:
                    how = self.run_stage(stage)
                except (OSError, ToolError) as error:   # others wait for its end, whatever it is
                    how = f"failed ({error})"
            self.ended[stage.name] = how, time.time() - begun
            self.over[stage.name].set()

    def run_stage(self, stage: Stage) -> str:
        """Run a stage; how it ended."""
        log = BUILD / "logs" / f"check-{stage.name}.log"
        recorded = stage.passed if stage.command else ""    # tests look for themselves
        if day := passed.day(recorded) if recorded else "":
            say(f"{stage.name}: passed on {day} with all as it is now (tests/passed)")
            return "passed"
        number = passed.begin(recorded) if recorded and not stage.made else ""
        command = stage.command.split()
        if stage.tests:
            command = [sys.executable, "-B", "-m", "pytest", "-p", "no:cacheprovider", "-v",
                       "-rfEs", *(["-k", self.only] if self.only else []), *stage.tests.split()]
        say(f"{stage.name} (log: {os.path.relpath(log, TOP)})")
        begun = time.time()
        with open(log, "wb") as output, subprocess.Popen(
                command, cwd=TOP, env=self.environment, stdin=subprocess.DEVNULL, stdout=output,
                stderr=subprocess.STDOUT, start_new_session=True) as process:
            how = self.wait(process, begun + max(LEAST, MARGIN * stage.seconds
                                                 * max(1, slowness())))
        if number and how == "passed":
            passed.write(recorded, number)
        say(f"{stage.name}: {how} in {clock(time.time() - begun)}")
        summary = log.read_text(errors="replace").rpartition(SUMMARY)
        if summary[1] or how != "passed":
            lines = summary[2].splitlines()
            self.tails[stage.name] = lines if summary[1] else lines[-LOG_LINES:]
        return how

    def wait(self, process: subprocess.Popen[bytes], limit: float) -> str:
        """Wait for a stage's end, or end it; how it ended."""
        while process.poll() is None and not self.stop and time.time() < limit:
            if time.time() > self.deadline:
                self.stop = "all took too long"
            time.sleep(0.2)
        if process.returncode is not None:
            return "passed" if not process.returncode else f"failed ({process.returncode})"
        os.killpg(process.pid, signal.SIGTERM)
        try:
            process.wait(GRACE_SECONDS)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
        return self.stop or "ended at its limit"


def report(runner: Runner) -> bool:
    """Print how the stages ended, and what pytest said of its tests; was all of it well?"""
    print(f"what took how long ({clock(time.time() - T0)} in all):")
    for name, (how, seconds) in runner.ended.items():
        print(f"  {clock(seconds):>8}  {name}{'' if how == 'passed' else f': {how}'}")
    for name, lines in runner.tails.items():
        print("\n".join([f"{name}:", *(f"  {line[:COLUMNS]}" for line in lines)]), flush=True)
    return all(how == "passed" for how, _ in runner.ended.values())


def main() -> int:
    """Exit status: 0 if all stages passed, 1 otherwise, 130 after Ctrl-C."""
    listed = "\n".join(f"  {name:9} {kind.what}" for name, kind in KINDS.items())
    parser = argparse.ArgumentParser(
        prog="stack/check", formatter_class=argparse.RawDescriptionHelpFormatter,
        description=(__doc__ or "").format(kinds=listed))
    parser.add_argument("kind", nargs="?", choices=KINDS, default="check", metavar="KIND")
    parser.add_argument("--only", default="", metavar="NAME")
    options = parser.parse_args()
    kind = KINDS[options.kind]
    if options.only:
        tests = [stage for lane in kind.lanes for stage in lane if stage.tests]
        one = Stage("tests", sum(stage.seconds for stage in tests),
                    tests=" ".join(stage.tests for stage in tests))
        kind = kind._replace(lanes=[[one]])
    slowness()      # before other work begins, and for all that runs
    runner = Runner(kind, options.only)

    def interrupt(_number: int, _frame: object) -> None:
        runner.stop = "interrupted"

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, interrupt)
    (BUILD / "logs").mkdir(parents=True, exist_ok=True)
    say(f"{options.kind}: {', '.join(stage.name for stage in runner.stages)}")
    if not options.only:
        say(f"about {max(1, round(expected(kind) / 60))} minutes on this machine, whose bash takes"
            f" {slowness():.1f} s for 900,000 turns of a loop")
    code = passed.begin("debug") if options.kind == "debug" else ""
    runner.run()
    well = report(runner)
    if well and code and not options.only:
        passed.write("debug", code)
    return 128 + signal.SIGINT if runner.stop == "interrupted" else int(not well)

# SPDX-License-Identifier: GPL-2.0
"""Run the checks: build what a kind of check needs, run its tests, say what took how long.

  stack/check [KIND] [--only NAME]

KIND is one of:
{kinds}

--only NAME runs those tests of `check` or `base` whose name has NAME in it, on what is
built: `make check T=NAME`.

A kind has stages in lanes. Lanes run at the same time, so that no core is idle while
something waits, is linked, or is executed by one emulated CPU. A stage begins when all
that it needs have passed, and is left out when one of them failed. Its output is in
build/logs/check-STAGE.log, and its end is told when it comes. A stage that reaches its
limit of time is ended, and so is the whole at {minutes} minutes, or as many as
PERF_BPF_MINUTES says: CI would end it at 90, without a word.

The exit status is 0 if all stages passed, 1 otherwise, 130 after Ctrl-C.
"""
from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import threading
import time
import xml.etree.ElementTree as ET
from collections import Counter
from pathlib import Path
from typing import Iterator, NamedTuple, Sequence

from perfbpf import debug_stamp
from perfbpf.junit import Case, read_cases
from perfbpf.paths import BUILD, TOP, table
from perfbpf.process import adopt_orphans

MINUTES = 80
# stack/guest takes 5 s to kill a QEMU that is stuck.
TERM_SECONDS = 15
POLL_SECONDS = 0.2
LOG_LINES = 20
MESSAGE_LINES = 12
COLUMNS = 160
SLOWEST = 12
KNOWN_FLAKY = TOP / "tests/flaky"
# What a run prints of a stage that did not pass.
LATE, LEFT, SKIPPED = "ended at its limit", "left", "not run"


class Stage(NamedTuple):
    """Something that is run: a script of stack/ or pytest.

    limit: seconds. They are for one slow core.
    needs: stages that have to pass before this one begins.
    tests: what pytest is given, if it is pytest.
    """
    name: str
    command: tuple[str, ...]
    limit: int
    needs: tuple[str, ...] = ()
    tests: tuple[str, ...] = ()


class Ended(NamedTuple):
    """How a stage ended: "passed", "failed", or one of the above with a reason."""
    how: str
    seconds: float = 0
    cpu: float = 0

    @property
    def passed(self) -> bool:
        """Did it pass?"""
        return self.how == "passed"


Lanes = Sequence[Sequence[Stage]]


def script(name: str, command: str, limit: int, *needs: str) -> Stage:
    """A script of stack/, with its arguments."""
    program, *arguments = command.split()
    return Stage(name, (str(TOP / "stack" / program), *arguments), limit, needs)


def pytest(name: str, tests: str, limit: int, *needs: str) -> Stage:
    """A run of pytest, with its arguments."""
    return Stage(name, (), limit, needs, tuple(tests.split()))


TREE = script("tree", "tree", 1200)
KERNEL = script("kernel", "kernel series", 3000, "tree")
PERF = script("perf", "perf series", 1200, "tree")
FUZZ = script("fuzz", "fuzz build", 1200, "tree")
SELFTESTS = script("selftests", "selftests", 600, "tree")
SAMPLES = script("samples", "samples", 600, "perf")
BPF_SELFTESTS = script("bpf-selftests", "bpf-selftests", 900, "kernel")
IN_GUEST = ("kernel", "perf", "selftests", "samples", "bpf-selftests")


class Kind(NamedTuple):
    """A kind of check, which ends after whole_minutes."""
    what: str
    lanes: Lanes
    subject: str = "series"
    whole_minutes: int = MINUTES
    environment: tuple[tuple[str, str], ...] = ()


KINDS = {
    "check": Kind("what CI runs: the product", (
        (TREE, KERNEL, BPF_SELFTESTS, pytest("tests-kernel", "tests/kernel", 3900, *IN_GUEST)),
        (script("lint", "lint", 900, "tree"), PERF, SELFTESTS, SAMPLES, FUZZ,
         pytest("tests-perf", "tests/perf", 1200, "perf"),
         pytest("topics", "tests/series", 3000, "kernel", "perf")))),
    "base": Kind("the same tests without the series, where they have to fail", (
        (TREE, script("kernel-base", "kernel base", 3000, "tree"), KERNEL, BPF_SELFTESTS,
         pytest("tests-kernel", "tests/kernel", 3900, *IN_GUEST, "kernel-base", "perf-base")),
        (PERF, script("perf-base", "perf base", 1200, "tree"), SELFTESTS, SAMPLES,
         pytest("tests-perf", "tests/perf", 1200, "perf-base"))), "base", 120),
    "debug": Kind("the guest's tests with KASAN, lockdep, kmemleak and SELinux", (
        (TREE, KERNEL, BPF_SELFTESTS, script("kernel-debug", "kernel debug", 3600, "tree"),
         pytest("tests-debug", "tests/full/test_debug.py", 7800, *IN_GUEST, "kernel-debug")),
        (PERF, SELFTESTS, SAMPLES)), whole_minutes=180),
    "prefixes": Kind("each prefix of the series is built, and all that depends on its last"
                     " patch", (
        (TREE, script("kernel-config", "kernel series config", 600, "tree"),
         pytest("prefixes", "tests/full/test_prefixes.py", 4 * 3600, "kernel-config")),),
        whole_minutes=240, environment=(("PERF_BPF_PREFIX", "dependents"),)),
    "tooling": Kind("the tests of stack/", (
        (TREE, KERNEL, pytest("tests-tooling", "tests/tooling", 3600, "kernel", "perf")),
        (PERF,)), whole_minutes=120),
    "debian": Kind("the series' perf on Debian's kernels 6.1 and 6.12, btf_func on its 7.3", (
        (TREE, KERNEL, PERF, SELFTESTS,
         pytest("tests-debian-functions", "tests/full/test_debian_functions.py", 1800, "kernel"),
         script("debian-bookworm", "debian-kernel bookworm", 900),
         script("debian-trixie", "debian-kernel trixie", 900),
         pytest("tests-debian", "tests/full/test_debian.py", 3600, "perf", "selftests",
                "debian-bookworm", "debian-trixie")),), whole_minutes=120),
    "stress": Kind("both guests for hours: 100,000 programs, half an hour of each churn", (
        (TREE, KERNEL, script("kernel-debug", "kernel debug", 3600, "tree"), PERF, SELFTESTS,
         SAMPLES, BPF_SELFTESTS,
         pytest("stress", "tests/kernel/test_guest.py tests/full/test_debug.py", 6 * 3600,
                *IN_GUEST, "kernel-debug")),), whole_minutes=480,
        environment=(("PERF_BPF_STRESS", "1"),)),
}


def clock(seconds: float) -> str:
    """Return minutes:seconds."""
    whole = int(seconds + 0.5)
    return f"{whole // 60}:{whole % 60:02}"


class Runner:
    """Runs the stages of a kind of check; `ended` says how each of them ended."""

    def __init__(self, name: str, kind: Kind, only: str = "") -> None:
        self.results = BUILD / "results" / f"check-{name}"
        self.environment = {**os.environ, **dict(kind.environment),
                            "PERF_BPF_SUBJECT": kind.subject}
        self.only = only
        self.lanes = kind.lanes
        self.stages = [stage for lane in kind.lanes for stage in lane]
        self.ended: dict[str, Ended] = {}
        self.over = {stage.name: threading.Event() for stage in self.stages}
        self.begun = float(os.environ.get("PERF_BPF_T0") or time.time())
        minutes = float(os.environ.get("PERF_BPF_MINUTES") or kind.whole_minutes)
        self.deadline = self.begun + 60 * minutes
        self.stop = ""      # why all of it ends, once it does
        self.lock = threading.Lock()

    def say(self, text: str) -> None:
        """Print a line of progress, with the time since the outermost command began."""
        with self.lock:
            print(f"==> [{clock(time.time() - self.begun)}] {text}", flush=True)

    def log(self, stage: Stage) -> Path:
        """Where a stage's output goes."""
        return BUILD / "logs" / f"check-{stage.name}.log"

    def command(self, stage: Stage) -> list[str]:
        """The words that run a stage."""
        if not stage.tests:
            return list(stage.command)
        results = self.results / stage.name
        results.mkdir(parents=True, exist_ok=True)
        (results / "junit.xml").unlink(missing_ok=True)
        return [sys.executable, "-B", "-m", "pytest", "-p", "no:cacheprovider", "-v", "-ra",
                "--junitxml", str(results / "junit.xml"), *(["-k", self.only] if self.only else []),
                *stage.tests]

    def run(self) -> None:
        """Run all stages; returns when each has ended."""
        threads = [threading.Thread(target=self.run_lane, args=(lane,)) for lane in self.lanes]
        for thread in threads:
            thread.start()
        for thread in threads:
            while thread.is_alive():    # a signal's handler runs between joins
                thread.join(POLL_SECONDS)

    def run_lane(self, lane: Sequence[Stage]) -> None:
        """Run stages one after the other."""
        for stage in lane:
            try:
                self.ended[stage.name] = self.run_stage(stage)
            except OSError as error:
                self.ended[stage.name] = Ended(f"failed: {error}")
                self.say(f"{stage.name}: failed: {error}")
            finally:
                self.over[stage.name].set()

    def run_stage(self, stage: Stage) -> Ended:
        """Run a stage when what it needs has passed."""
        for need in stage.needs:
            self.over[need].wait()
        missing = [need for need in stage.needs if not self.ended[need].passed]
        if self.stop or missing:
            return Ended(LEFT if self.stop else f"{SKIPPED}, as {missing[0]} did not pass")
        log = self.log(stage)
        self.say(f"{stage.name} (log: {os.path.relpath(log, TOP)})")
        with open(log, "wb") as output:
            ended = self.wait(stage, subprocess.Popen(
                self.command(stage), cwd=TOP, env=self.environment, stdin=subprocess.DEVNULL,
                stdout=output, stderr=subprocess.STDOUT, start_new_session=True))
        self.say(f"{stage.name}: {ended.how} in {clock(ended.seconds)}")
        if not ended.passed:
            lines = log.read_text(errors="replace").splitlines()[-LOG_LINES:]
            print("\n".join(f"    {line[:COLUMNS]}" for line in lines), flush=True)
        return ended

    def wait(self, stage: Stage, process: subprocess.Popen[bytes]) -> Ended:
        """Wait for a stage's end, or end it."""
        begun = time.time()
        limit = min(begun + stage.limit, self.deadline)
        how = ""
        while True:
            pid, status, usage = os.wait4(process.pid, os.WNOHANG)
            if pid:
                break
            if not how and (self.stop or time.time() > limit):
                how = self.stop or LATE
                if time.time() > self.deadline and not self.stop:
                    self.stop = how = f"{LATE} of {clock(self.deadline - self.begun)} for all"
                elif not self.stop:
                    how += f" of {clock(stage.limit)}"
                os.killpg(process.pid, signal.SIGTERM)
                limit = time.time() + TERM_SECONDS
            elif how and time.time() > limit:
                os.killpg(process.pid, signal.SIGKILL)
            time.sleep(POLL_SECONDS)
        process.returncode = os.waitstatus_to_exitcode(status)
        if not how:
            how = "passed" if process.returncode == 0 else f"failed (status {process.returncode})"
        return Ended(how, time.time() - begun, usage.ru_utime + usage.ru_stime)

    def cases(self) -> tuple[list[Case], list[str]]:
        """Return the tests that ran, and what kept a run of pytest from telling."""
        cases, trouble = [], []
        for stage in self.stages:
            if stage.tests and self.ended[stage.name].seconds:
                try:
                    cases += read_cases(self.results / stage.name)
                except (OSError, ET.ParseError) as error:
                    trouble.append(f"{stage.name} left no results: {error}")
        return cases, trouble


def times(runner: Runner, cases: list[Case]) -> Iterator[str]:
    """Yield what took how long."""
    yield f"what took how long ({clock(time.time() - runner.begun)} in all):"
    yield "      wall      CPU"
    for stage in runner.stages:
        ended = runner.ended[stage.name]
        how = "" if ended.passed else f": {ended.how}"
        yield f"  {clock(ended.seconds):>8} {clock(ended.cpu):>8}  {stage.name}{how}"
    slowest = sorted(cases, key=lambda case: case.seconds, reverse=True)[:SLOWEST]
    if slowest:
        yield f"the {len(slowest)} slowest of {len(cases)} tests:"
        yield from (f"  {clock(case.seconds):>8}           {case.name}" for case in slowest)


def known_flaky() -> dict[str, str]:
    """Return the tests that are known to be flaky, and what is known of the cause."""
    pairs = (line.split(None, 1) for line in table(KNOWN_FLAKY))
    return {pair[0]: pair[-1] for pair in pairs}


def flaky(cases: list[Case]) -> Iterator[str]:
    """Yield what is told of tests that failed and then passed."""
    known = known_flaky()
    for case in cases:
        if case.flaky:
            why = next((text for name, text in known.items() if name in case.name),
                       "not known: find the cause, or add it to tests/flaky")
            yield f"FLAKY: {case.name} failed, and passed when it ran once more; cause: {why}"
            yield f"    both logs: {case.flaky}"


def failures(cases: list[Case]) -> Iterator[str]:
    """Yield the tests that failed, with the end of what each said."""
    for case in cases:
        if case.outcome in ("error", "failure"):
            yield f"{case.outcome}: {case.name} ({case.seconds:.1f} s)"
            lines = case.text.rstrip().splitlines()[-MESSAGE_LINES:]
            yield from (f"    {line[:COLUMNS]}" for line in lines)


def report(runner: Runner) -> bool:
    """Print how the stages ended, what failed last; was all of it well?"""
    cases, trouble = runner.cases()
    counts = Counter(case.outcome for case in cases)
    bad = [name for name, ended in runner.ended.items() if not ended.passed]
    print("\n".join([*times(runner, cases), *flaky(cases), *failures(cases), *trouble]))
    if bad:
        print("did not pass: " + "; ".join(f"{name} ({runner.ended[name].how})" for name in bad))
    print(f"{counts['passed']} passed, {counts['failure'] + counts['error']} failed,"
          f" {counts['skipped']} skipped", flush=True)
    return not bad and not trouble


def selected(kind: Kind) -> Kind:
    """Return a kind with its tests alone: what --only runs on what is built."""
    stages = tuple(stage._replace(needs=()) for lane in kind.lanes for stage in lane if stage.tests)
    merged = Stage("tests", (), sum(stage.limit for stage in stages), (),
                   tuple(test for stage in stages for test in stage.tests))
    return kind._replace(lanes=((merged,),))


def parse_options() -> argparse.Namespace:
    """The command line; exits with status 2 when it is wrong."""
    listed = "\n".join(f"  {name:9} {kind.what}" for name, kind in KINDS.items())
    parser = argparse.ArgumentParser(
        prog="stack/check", formatter_class=argparse.RawDescriptionHelpFormatter,
        description=(__doc__ or "").format(kinds=listed, minutes=MINUTES))
    parser.add_argument("kind", nargs="?", choices=KINDS, default="check", metavar="KIND")
    parser.add_argument("--only", default="", metavar="NAME")
    options = parser.parse_args()
    if options.only and options.kind not in ("check", "base"):
        parser.error(f"--only is for check and base, not for {options.kind}")
    return options


def main() -> int:
    """Run the command line; returns the exit status."""
    options = parse_options()
    kind = KINDS[options.kind]
    runner = Runner(options.kind, selected(kind) if options.only else kind, options.only)
    interrupted = []

    def interrupt(_number: int, _frame: object) -> None:
        interrupted.append(True)
        runner.stop = "interrupted"

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, interrupt)
    adopt_orphans()
    (BUILD / "logs").mkdir(parents=True, exist_ok=True)
    runner.say(f"{options.kind}: {', '.join(stage.name for stage in runner.stages)}")
    runner.run()
    well = report(runner)
    if interrupted:
        return 128 + signal.SIGINT
    if well and options.kind == "debug":
        debug_stamp.write(TOP)
    return 0 if well else 1


if __name__ == "__main__":
    sys.exit(main())

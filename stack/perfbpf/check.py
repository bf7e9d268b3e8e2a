# SPDX-License-Identifier: GPL-2.0
"""stack/check [KIND] [--only NAME]: build what a kind of check needs, run its tests, say what
took how long.

KIND is one of:
{kinds}

--only NAME runs those tests of `check` or `base` whose name has NAME in it, on what is built:
`make check T=NAME`.

A kind has stages in lanes, which run at the same time, so that no core is idle while something
waits. A stage begins when all that it needs have passed, and is left out when one of them failed.
Its output is in build/logs/check-STAGE.log. A stage that reaches its limit of time is ended, and
so is the whole, as CI would end it at 90 minutes, without a word.
"""
from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import threading
import time
from typing import NamedTuple, Sequence

from perfbpf import debug_stamp
from perfbpf.paths import BUILD, LINUX, TOP
from perfbpf.stage import T0, clock, say

MINUTES, GRACE_SECONDS = 80, 15
LOG_LINES, COLUMNS = 20, 160
# Where the part of pytest's output begins that is printed here too; see tests/conftest.py.
SUMMARY = "what took longest:\n"


class Stage(NamedTuple):
    """A command that is run: `limit` in seconds on one slow core, `needs` the stages that have to
    pass before. With `tests` it is pytest on these."""
    name: str
    limit: float
    command: str = ""
    needs: tuple[str, ...] = ()
    tests: str = ""


TREE = Stage("tree", 1200, "stack/build tree")
KERNEL = Stage("kernel", 3000, "stack/build kernel series", ("tree",))
KERNEL_BASE = Stage("kernel-base", 3000, "stack/build kernel base", ("tree",))
KERNEL_DEBUG = Stage("kernel-debug", 3600, "stack/build kernel debug", ("tree",))
PERF = Stage("perf", 1200, "stack/build perf series", ("tree",))
PERF_BASE = Stage("perf-base", 1200, "stack/build perf base", ("tree",))
FUZZ = Stage("fuzz", 1200, "tests/fuzz/fuzz build", ("tree",))
SELFTESTS = Stage("selftests", 600, "stack/build selftests", ("tree",))
SAMPLES = Stage("samples", 600, "tests/guest/build_programs samples", ("perf",))
BPF_SELFTESTS = Stage("bpf-selftests", 900, "tests/guest/build_programs bpf-selftests", ("kernel",))
LINT = Stage("lint", 900, "stack/lint", ("tree",))
# without modules and BTF, which the guest's kernels have; `make configurations` compiles more
OTHER = Stage("configuration", 900, f"tests/full/configurations {LINUX} {BUILD}/configurations"
              " x86_64-no-modules", ("tree",))
IN_GUEST = ("kernel", "perf", "selftests", "samples", "bpf-selftests")
GUEST_LANE = (PERF, SELFTESTS, SAMPLES)


class Kind(NamedTuple):
    """A kind of check: its lanes, what is tested, and a limit for the whole."""
    what: str
    lanes: Sequence[Sequence[Stage]]
    subject: str = "series"
    minutes: int = MINUTES
    environment: tuple[tuple[str, str], ...] = ()


KINDS = {
    "check": Kind("what CI runs: the product", (
        (TREE, KERNEL, BPF_SELFTESTS,
         Stage("tests-kernel", 3900, needs=IN_GUEST, tests="tests/kernel")),
        (LINT, *GUEST_LANE, FUZZ, OTHER,
         Stage("tests-perf", 1200, needs=("perf",), tests="tests/perf"),
         Stage("topics", 3000, needs=("kernel", "perf"), tests="tests/series")))),
    "base": Kind("the same tests without the series, where they have to fail", (
        (TREE, KERNEL_BASE, KERNEL, BPF_SELFTESTS,
         Stage("tests-kernel", 3900, needs=(*IN_GUEST, "kernel-base", "perf-base"),
               tests="tests/kernel")),
        (PERF, PERF_BASE, SELFTESTS, SAMPLES,
         Stage("tests-perf", 1200, needs=("perf-base",), tests="tests/perf"))), "base", 120),
    "debug": Kind("the guest's tests with KASAN, lockdep, kmemleak and SELinux", (
        (TREE, KERNEL, BPF_SELFTESTS, KERNEL_DEBUG,
         Stage("tests-debug", 7800, needs=(*IN_GUEST, "kernel-debug"),
               tests="tests/full/test_debug.py")), GUEST_LANE), minutes=180),
    "prefixes": Kind("each prefix of the series is built, and all that depends on its last patch", (
        (TREE, Stage("kernel-config", 600, "stack/build kernel series:config", ("tree",)),
         Stage("prefixes", 4 * 3600, needs=("kernel-config",),
               tests="tests/full/test_prefixes.py")),),
        minutes=240, environment=(("PERF_BPF_PREFIX", "dependents"),)),
    "tooling": Kind("the tests of stack/", (
        (TREE, KERNEL, Stage("tests-tooling", 3600, needs=("kernel", "perf"),
                             tests="tests/tooling")), (PERF,)), minutes=120),
    "debian": Kind("the series' perf on Debian's kernels 6.1 and 6.12, btf_func on its 7.3", (
        (TREE, KERNEL, *GUEST_LANE,
         Stage("tests-debian-functions", 1800, needs=("kernel",),
               tests="tests/full/test_debian_functions.py"),
         Stage("debian-bookworm", 900, "tests/full/prepare bookworm"),
         Stage("debian-trixie", 900, "tests/full/prepare trixie"),
         Stage("tests-debian", 3600, needs=("perf", "selftests", "debian-bookworm",
                                            "debian-trixie"),
               tests="tests/full/test_debian.py")),), minutes=120),
    "mainline": Kind("mainline's own tests on the base and on the series, compared", (
        (TREE, Stage("kernel-mainline-base", 3600, "stack/build kernel mainline-base", ("tree",)),
         Stage("kernel-mainline", 3600, "stack/build kernel mainline", ("tree",)),
         Stage("mainline-tests", 2400, "tests/full/prepare mainline-tests",
               ("kernel-mainline-base", "kernel-mainline")),
         Stage("tests-mainline", 8 * 3600, needs=("mainline-tests", "perf"),
               tests="tests/full/test_mainline.py")), (PERF,)), minutes=600),
    "stress": Kind("both guests for hours: 100,000 programs, half an hour of each churn", (
        (TREE, KERNEL, KERNEL_DEBUG, *GUEST_LANE, BPF_SELFTESTS,
         Stage("stress", 6 * 3600, needs=(*IN_GUEST, "kernel-debug"),
               tests="tests/kernel/test_guest.py tests/full/test_debug.py")),), minutes=480,
        environment=(("PERF_BPF_STRESS", "1"),)),
}


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
        self.deadline = T0 + 60 * kind.minutes
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
                except OSError as error:    # others wait for its end, whatever it is
                    how = f"failed ({error})"
            self.ended[stage.name] = how, time.time() - begun
            self.over[stage.name].set()

    def run_stage(self, stage: Stage) -> str:
        """Run a stage; how it ended."""
        log = BUILD / "logs" / f"check-{stage.name}.log"
        command = stage.command.split()
        if stage.tests:
            command = [sys.executable, "-B", "-m", "pytest", "-p", "no:cacheprovider", "-v",
                       "-rfEs", *(["-k", self.only] if self.only else []), *stage.tests.split()]
        say(f"{stage.name} (log: {os.path.relpath(log, TOP)})")
        begun = time.time()
        with open(log, "wb") as output, subprocess.Popen(
                command, cwd=TOP, env=self.environment, stdin=subprocess.DEVNULL, stdout=output,
                stderr=subprocess.STDOUT, start_new_session=True) as process:
            how = self.wait(process, begun + stage.limit)
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
        one = Stage("tests", sum(stage.limit for stage in tests),
                    tests=" ".join(stage.tests for stage in tests))
        kind = kind._replace(lanes=[[one]])
    runner = Runner(kind, options.only)

    def interrupt(_number: int, _frame: object) -> None:
        runner.stop = "interrupted"

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, interrupt)
    (BUILD / "logs").mkdir(parents=True, exist_ok=True)
    say(f"{options.kind}: {', '.join(stage.name for stage in runner.stages)}")
    code = debug_stamp.kernel_code() if options.kind == "debug" else ""
    runner.run()
    well = report(runner)
    if well and options.kind == "debug" and not options.only:
        debug_stamp.write(code)
    return 128 + signal.SIGINT if runner.stop == "interrupted" else int(not well)

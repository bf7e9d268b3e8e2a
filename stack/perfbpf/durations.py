# SPDX-License-Identifier: GPL-2.0
"""How long `make check` took, stage by stage and test by test, and was that too long?

`python3 -m perfbpf.durations RESULTS SECONDS` is called at the end of `make check`.
RESULTS/durations.tsv has a line for each stage by then (lib.sh writes them); each
directory in RESULTS has the junit.xml of one run of pytest, and the guests left what
each of their tests took in ktap.log. All of that goes into durations.tsv, a line
each: kind, name, seconds, CPU seconds (- if not known). The stages and the slowest
tests are printed.

SECONDS, the time of the whole, and the CPU time of each stage are held against
stack/budget. The exit status is 1 if a limit is exceeded. PERF_BPF_BUDGET is a factor
for all limits: more than 1 on a slow machine, 0 for no limits.
"""
from __future__ import annotations

import os
import re
import sys
import time
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Iterator, NamedTuple

from perfbpf.junit import read_cases
from perfbpf.paths import BUILD, TOP, table

SLOWEST = 25
FACTOR = "PERF_BPF_BUDGET"
# The limit of the whole is for this many CPUs.
CPUS = 2
GUEST_TEST = re.compile(r"^  # took (\d+) s(?:, (\d+) s of CPU time)?\n(?:not )?ok \d+ (\S+)", re.M)


class Duration(NamedTuple):
    """What something took: `stage`, `test` of pytest or `guest` test."""
    kind: str
    name: str
    seconds: float
    cpu: float | None = None

    def line(self) -> str:
        """Return the line of durations.tsv."""
        cpu = "-" if self.cpu is None else f"{self.cpu:.0f}"
        return f"{self.kind}\t{self.name}\t{self.seconds:.0f}\t{cpu}"

    def show(self) -> str:
        """Return the line for the terminal."""
        cpu = "" if self.cpu is None else clock(self.cpu)
        return f"  {clock(self.seconds):>8} {cpu:>8}  {self.name}"


class Budget(NamedTuple):
    """A line of stack/budget, in seconds."""
    name: str
    goal: float
    limit: float


def clock(seconds: float) -> str:
    """Return minutes:seconds."""
    whole = int(seconds + 0.5)
    return f"{whole // 60}:{whole % 60:02}"


def read_stages(log: Path) -> Iterator[Duration]:
    """Yield what lib.sh wrote; a stage that ran twice is there twice."""
    if log.exists():
        for line in log.read_text(encoding="utf-8").splitlines():
            kind, name, seconds, cpu = line.split("\t")
            if kind == "stage":
                yield Duration(kind, name, float(seconds), float(cpu))


def read_tests(results: Path) -> Iterator[Duration]:
    """Yield the tests of every run of pytest in `results` that left its results."""
    for run in sorted(results.glob("*/junit.xml")):
        try:
            cases = read_cases(run.parent)
        except ET.ParseError:
            continue    # perfbpf.failures says so
        yield from (Duration("test", case.name, case.seconds, case.cpu) for case in cases)


def read_guest(log: Path) -> Iterator[Duration]:
    """Yield the tests of a guest's ktap.log: the time of each stands before its result."""
    for took, cpu, name in GUEST_TEST.findall(log.read_text(errors="replace")):
        yield Duration("guest", f"{log.parent.name}: {name}", float(took),
                       float(cpu) if cpu else None)


def read_guests(results: Path, since: float) -> Iterator[Duration]:
    """Yield the tests of all guests whose log is not from before `since`."""
    for log in sorted(results.glob("guest-*/ktap.log")):
        if log.stat().st_mtime >= since:
            yield from read_guest(log)


def collect(results: Path, since: float) -> list[Duration]:
    """Return all durations of one `make check`, as durations.tsv has them."""
    return [*read_stages(results / "durations.tsv"), *read_tests(results),
            *read_guests(BUILD / "results", since)]


def describe(durations: list[Duration]) -> Iterator[str]:
    """Yield the stages, and the slowest tests."""
    yield "      wall      CPU"
    yield from (one.show() for one in durations if one.kind == "stage")
    tests = sorted((one for one in durations if one.kind != "stage"),
                   key=lambda one: one.seconds, reverse=True)
    yield f"the {min(SLOWEST, len(tests))} slowest of {len(tests)} tests:"
    yield from (one.show() for one in tests[:SLOWEST])


def read_budget(path: Path) -> list[Budget]:
    """Read stack/budget."""
    words = (line.split() for line in table(path))
    return [Budget(name, float(goal), float(limit)) for name, goal, limit in words]


def judge(total: float, durations: list[Duration], budget: list[Budget], factor: float,
          cpus: int) -> tuple[list[str], list[str]]:
    """Return what is over its limit, and what is over its goal, a line each."""
    took = {one.name: one.cpu or 0 for one in durations if one.kind == "stage"}
    if cpus >= CPUS:
        took["total"] = total
    over, slow = [], []
    for item in budget:
        kind = "" if item.name == "total" else " of CPU time"
        words = f"{item.name} took {clock(took.get(item.name, 0))}{kind}, more than "
        if 0 < factor * item.limit < took.get(item.name, 0):
            over.append(f"{words}the limit of {clock(factor * item.limit)}")
        elif took.get(item.name, 0) > item.goal:
            slow.append(f"{words}the goal of {clock(item.goal)}")
    return over, slow


def main() -> int:
    """Run the command line; returns the exit status."""
    results, total = Path(sys.argv[1]), float(sys.argv[2])
    factor = float(os.environ.get(FACTOR) or 1)
    log = results / "durations.tsv"
    durations = collect(results, time.time() - total)
    log.write_text("".join(f"{one.line()}\n" for one in durations)
                   + Duration("total", "total", total).line() + "\n", encoding="utf-8")
    print(f"what took how long ({clock(total)} in all; kept in {log}):")
    print("\n".join(describe(durations)))
    over, slow = judge(total, durations, read_budget(TOP / "stack/budget"), factor,
                       os.cpu_count() or 1)
    for line in slow:
        print(f"*** SLOW: {line} (stack/budget)")
    for line in over:
        print(f"*** TOO SLOW: {line} (stack/budget): see above what took long; on a machine that"
              f" is slow or busy set {FACTOR}=2, a factor for the limits, or 0 for none")
    return 1 if over else 0


if __name__ == "__main__":
    sys.exit(main())

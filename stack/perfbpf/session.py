# SPDX-License-Identifier: GPL-2.0
"""Run tests in the guest.

  session plan --plan FILE --perf PROGRAM --selftests DIR --shell-tests DIR
               --ftrace DIR [--debug] [--seconds N] [--only NAME]...
  session units GROUP TESTS UNITS

`plan` runs the series' own tests, as FILE lists them or those of them that are named,
and writes KTAP to standard output and to $GUEST_RESULTS/ktap.log, the plan first.  The
exit status is 0 when nothing failed, 1 otherwise.  Time limits follow the speed of the
guest, which a loop shows.

`units` runs units of a group of mainline's tests, see units.py.
"""
from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from perfbpf import units
from perfbpf.ktap import Writer
from perfbpf.paths import TOP
from perfbpf.plan import Entry, read_plan, select, slots
from perfbpf.program import run_program

SCRIPTS = TOP / "tests/guest"
SKIP_STATUS = {"kselftest": 4, "perf-shell": 2, "script": 2}
# A case that the kernel lacks something for has to fail.
FTRACE_OPTIONS = ("--fail-unsupported", "--fail-unresolved")
KEPT_LINES = 400
# How often measure_speed() adds, and the seconds that took in a guest of two CPUs under
# TCG, on an EPYC machine that did nothing else: the machine that time limits are for.
ADDITIONS = 2_000_000
ADDITIONS_SECONDS = 1.0


class Place(NamedTuple):
    """Where the programs under test are."""
    perf: Path
    selftests: Path
    shell_tests: Path
    ftrace: Path            # the directory of ftracetest

    def program(self, entry: Entry) -> Path:
        """The file that an entry of the plan runs."""
        folders = {"kselftest": self.selftests, "perf-shell": self.shell_tests,
                   "script": SCRIPTS, "ftrace": self.ftrace / "test.d"}
        return folders[entry.kind] / entry.path

    def command(self, entry: Entry) -> list[str]:
        """The command that runs it."""
        if entry.kind == "ftrace":
            return units.ftrace_command(self.ftrace, entry.path, *FTRACE_OPTIONS)
        return [str(self.program(entry))]

    def has(self, entry: Entry) -> bool:
        """Can it be run? ftracetest reads its cases."""
        return os.access(self.program(entry), os.R_OK if entry.kind == "ftrace" else os.X_OK)


def environment(place: Place, home: str) -> dict[str, str]:
    """Return a test's environment: the subject's perf first in PATH, and neither the
    configuration nor the build-id cache of the host's user."""
    return dict(os.environ, HOME=home, TMPDIR=home, PERF_CONFIG="/dev/null",
                PERF_BUILDID_DIR=f"{home}/debug", LC_ALL="C",
                SELFTESTS=str(place.selftests),
                PATH=f"{place.perf.parent}:{os.environ['PATH']}")


def nested_output(entry: Entry, lines: list[str]) -> list[str]:
    """Return a test's output as it stands inside its parent: KTAP of its own as nested
    subtests, anything else as diagnostics."""
    if entry.kind in ("kselftest", "kunit"):
        starts = (number for number, line in enumerate(lines)
                  if line.startswith(("TAP version", "KTAP version")))
        first = next(starts, len(lines))
        nested = [f"  {line}" for line in lines[first:]]
        return [f"  # {line}" for line in lines[:first]] + \
            nested[:1] + [f"  # Subtest: {entry.name}"] * bool(nested) + nested[1:]
    left_out = len(lines) - KEPT_LINES
    return [f"  # ({left_out} lines left out)"] * (left_out > 0) + \
        [f"  # {line}" for line in lines[-KEPT_LINES:]]


def skip_reason(lines: list[str]) -> str:
    """Return why a test skipped itself: its last line with SKIP, else its last."""
    for line in reversed(lines):
        _, found, reason = line.partition("SKIP")
        if found and reason.strip(" :-"):
            return reason.strip(" :-")
    return lines[-1].strip() if lines else ""


def result_line(entry: Entry, number: int, status: int, lines: list[str]) -> str:
    """Return the KTAP line for an exit status; a skip without a reason fails."""
    if status == 0:
        return f"ok {number} {entry.name}"
    if status == SKIP_STATUS.get(entry.kind):
        reason = skip_reason(lines)
        if reason:
            return f"ok {number} {entry.name} # SKIP {reason}"
        return f"not ok {number} {entry.name} # skipped without a reason"
    return f"not ok {number} {entry.name} # exit status {status}"


def run_kunit(ktap: Writer, number: int, entry: Entry) -> bool:
    """Pass on the results of a suite that ran at boot; False when a test of it failed,
    or when there is no such suite."""
    path = units.KUNIT / entry.path / "results"
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else [f"no {path}"]
    ktap.lines(nested_output(entry, lines))
    passed = lines[-1].startswith("ok ")
    ktap.line(f"{'ok' if passed else 'not ok'} {number} {entry.name}")
    return passed


def busy_seconds() -> float:
    """Return the CPU time that all of the guest has used since its boot."""
    words = Path("/proc/stat").read_text(encoding="ascii").splitlines()[0].split()
    user, nice, system, _, _, irq, softirq = map(int, words[1:8])
    return (user + nice + system + irq + softirq) / os.sysconf("SC_CLK_TCK")


class Ended(NamedTuple):
    """A program of the plan that ended. LATE is a status too."""
    status: int
    lines: list[str]
    seconds: float


def run_entry(entry: Entry, place: Place, seconds: float) -> Ended:
    """Run the program of an entry, which the plan has checked, for at most `seconds`."""
    program = place.program(entry)
    begun = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="guest-test-") as home:
        status, lines = run_program(place.command(entry), program.parent,
                                    environment(place, home), seconds)
    return Ended(status, lines, time.monotonic() - begun)


def write_entry(ktap: Writer, number: int, entry: Entry, ended: Ended, busy: str) -> bool:
    """Write the output and the result of an entry; False when it failed."""
    ktap.lines(nested_output(entry, ended.lines))
    ktap.line(f"  # took {ended.seconds:.0f} s{busy}")
    line = result_line(entry, number, ended.status, ended.lines)
    ktap.line(line)
    return line.startswith("ok ")


def run_slot(ktap: Writer, first: int, slot: list[Entry], place: Place, seconds: float) -> int:
    """Run entries at the same time, the first with this number; return how many failed.

    Their results follow in the plan's order when all have ended. The CPU time is that of
    the whole guest, so it is shown once.
    """
    if slot[0].kind == "kunit":
        return int(not run_kunit(ktap, first, slot[0]))
    missing = [place.program(entry) for entry in slot if not place.has(entry)]
    if missing:
        for program in missing:
            ktap.line(f"# {program} is missing or cannot be executed; run `make selftests`"
                      " (kselftest) or `make tree` (perf-shell, ftrace)")
        for number, entry in enumerate(slot, first):
            ktap.line(f"not ok {number} {entry.name} # no such program, or none beside it")
        return len(slot)
    busy = busy_seconds()
    with ThreadPoolExecutor(len(slot)) as pool:
        ended = list(pool.map(lambda entry: run_entry(entry, place, seconds), slot))
    words = [f", {busy_seconds() - busy:.0f} s of CPU time"] + [""] * (len(slot) - 1)
    return sum(not write_entry(ktap, number, *rest)
               for number, rest in enumerate(zip(slot, ended, words), first))


def measure_speed() -> float:
    """Return how many times longer than on the machine that time limits are for this
    guest takes, 1 at least."""
    begun = time.monotonic()
    total = 0
    for number in range(ADDITIONS):
        total += number
    return max(1.0, (time.monotonic() - begun) / ADDITIONS_SECONDS)


def run_plan(ktap: Writer, entries: list[Entry], place: Place, seconds: float) -> bool:
    """Print the plan, then run it; False when an entry failed."""
    ktap.line("KTAP version 1")
    ktap.line(f"1..{len(entries)}")
    slower = measure_speed()
    seconds *= slower
    ktap.line(f"# guest {slower:.1f} times slower than planned for: limit of a test"
              f" {seconds:.0f} s")
    failed = 0
    number = 1
    for slot in slots(entries):
        failed += run_slot(ktap, number, slot, place, seconds)
        number += len(slot)
    ktap.line(f"# {len(entries) - failed} of {len(entries)} did not fail")
    return not failed


def parse_options() -> argparse.Namespace:
    """The command line; exits with status 2 when it is wrong."""
    parser = argparse.ArgumentParser(prog="stack/session", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    kinds = parser.add_subparsers(dest="kind", required=True)
    plan = kinds.add_parser("plan")
    for name in ("--plan", "--perf", "--selftests", "--shell-tests", "--ftrace"):
        plan.add_argument(name, type=Path, required=True)
    plan.add_argument("--debug", action="store_true", help="the kernel is the debug kernel")
    plan.add_argument("--seconds", type=float, default=300,
                      help="time limit of each test (default: 300)")
    plan.add_argument("--only", action="append", metavar="NAME",
                      help="an entry to run, as KIND:PATH; all of them without this")
    mainline = kinds.add_parser("units")
    mainline.add_argument("group", choices=sorted(units.GROUPS))
    mainline.add_argument("tests", type=Path, help="what stack/mainline.d/build built for it")
    mainline.add_argument("units", type=Path, help="a file with a unit a line")
    return parser.parse_args()


def main() -> int:
    """Run the command line; returns the exit status."""
    options = parse_options()
    results = Path(os.environ["GUEST_RESULTS"])
    if options.kind == "units":
        names = options.units.read_text(encoding="utf-8").splitlines()
        units.run(options.group, options.tests, names, results)
        return 0
    place = Place(options.perf.resolve(), options.selftests.resolve(),
                  options.shell_tests.resolve(), options.ftrace.resolve())
    entries = read_plan(options.plan, options.debug)
    if options.only:
        entries = select(entries, options.only)
    with open(results / "ktap.log", "w", encoding="utf-8") as log:
        passed = run_plan(Writer(log), entries, place, options.seconds)
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())

# SPDX-License-Identifier: GPL-2.0
"""stack/session, in the guest, or on this machine's kernel for tests that are of perf alone: run
tests of a plan, KTAP to stdout and $GUEST_RESULTS/ktap.log.
The exit status is 0 when nothing failed, 1 otherwise. In the shell of `make shell`,
`stack/session --only NAME` runs one test as `make check` does."""
from __future__ import annotations

import argparse
import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Iterable, NamedTuple, TextIO

from perfbpf.paths import LINUX, PERFS, TESTS, TOP
from perfbpf.plan import Entry, read_plan

KUNIT = Path("/sys/kernel/debug/kunit")
SKIP_STATUS = {"kselftest": 4, "perf-shell": 2, "script": 2}
GRACE_SECONDS = 5
LATE = 124              # the status of a program that was killed at its time limit
KEPT_LINES = 400


class Place(NamedTuple):
    """Where the programs under test are."""
    perf: Path
    selftests: Path
    shell_tests: Path
    ftrace: Path            # the directory of ftracetest

    def command(self, entry: Entry) -> list[str]:
        """The command that runs an entry; its last word is the file. A case of ftracetest that
        the kernel lacks something for has to fail."""
        if entry.kind == "ftrace":
            return [str(self.ftrace / "ftracetest"), "-v", "--fail-unsupported",
                    "--fail-unresolved", "--logdir", tempfile.mkdtemp(prefix="ftrace-log-"),
                    str(self.ftrace / "test.d" / entry.path)]
        folder = {"kselftest": self.selftests, "perf-shell": self.shell_tests,
                  "script": TOP / "tests/guest"}[entry.kind]
        return [str(folder / entry.path)]

    def environment(self, home: str) -> dict[str, str]:
        """A test's environment: the subject's perf first in PATH, and neither the configuration
        nor the build-id cache of the host's user."""
        return dict(os.environ, HOME=home, TMPDIR=home, PERF_CONFIG="/dev/null",
                    PERF_BUILDID_DIR=f"{home}/debug", LC_ALL="C", SELFTESTS=str(self.selftests),
                    PATH=f"{self.perf.parent}:{os.environ['PATH']}")


def run_program(command: list[str], cwd: Path, env: dict[str, str], seconds: float
                ) -> tuple[int, list[str]]:
    """Run a command in a process group that is gone afterwards; its exit status (LATE: killed
    after `seconds`) and its output's lines.

    A process that it leaves in another group may hold its output open, so the output
    goes to a file: nothing waits for its end.
    """
    with tempfile.TemporaryFile() as output:
        with subprocess.Popen(command, cwd=cwd, env=env, stdin=subprocess.DEVNULL, stdout=output,
                              stderr=subprocess.STDOUT, start_new_session=True) as process:
            killed: list[str] = []
            try:
                status = process.wait(seconds)
            except subprocess.TimeoutExpired:
                status, killed = LATE, [f"killed after {seconds:.0f} s"]
            except (SystemExit, KeyboardInterrupt):     # so the test undoes what it did
                os.killpg(process.pid, signal.SIGTERM)
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(GRACE_SECONDS)
                raise
            finally:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
        output.seek(0)
        return status, output.read().decode(errors="replace").splitlines() + killed


def run_entry(entry: Entry, place: Place, seconds: float) -> tuple[int, list[str]]:
    """Run an entry; its exit status and its output's lines."""
    if entry.kind == "kunit":       # ran at boot
        path = KUNIT / entry.path / "results"
        lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else [f"no {path}"]
        return int(not lines or not lines[-1].startswith("ok ")), lines
    command = place.command(entry)
    program = Path(command[-1])
    if not os.access(program, os.R_OK if entry.kind == "ftrace" else os.X_OK):
        return 1, [f"{program} is missing or cannot be executed; run `make selftests` (kselftest)"
                   " or `make tree` (perf-shell, ftrace)"]
    with tempfile.TemporaryDirectory(prefix="guest-test-") as home:
        return run_program(command, program.parent, place.environment(home), seconds)


def nested_output(entry: Entry, lines: list[str]) -> list[str]:
    """A test's output as it stands inside its parent: KTAP of its own as nested subtests,
    anything else as diagnostics."""
    starts = [number for number, line in enumerate(lines)
              if line.startswith(("TAP version", "KTAP version"))]
    if entry.kind in ("kselftest", "kunit") and starts:
        return [*(f"  # {line}" for line in lines[:starts[0]]), f"  {lines[starts[0]]}",
                f"  # Subtest: {entry.name}", *(f"  {line}" for line in lines[starts[0] + 1:])]
    left_out = len(lines) - KEPT_LINES
    return [f"  # ({left_out} lines left out)"] * (left_out > 0) + \
        [f"  # {line}" for line in lines[-KEPT_LINES:]]


def result_line(entry: Entry, number: int, status: int, lines: list[str]) -> str:
    """The KTAP line for an exit status; a skip without a reason fails."""
    if status == 0:
        return f"ok {number} {entry.name}"
    if status == SKIP_STATUS.get(entry.kind):
        words = [line.partition("SKIP")[2].strip(" :-") for line in reversed(lines)]
        reason = next(filter(None, [*words, *lines[-1:]]), "")
        return f"ok {number} {entry.name} # SKIP {reason}" if reason else \
            f"not ok {number} {entry.name} # skipped without a reason"
    return f"not ok {number} {entry.name} # exit status {status}"


def run_plan(log: TextIO, entries: list[Entry], place: Place, seconds: float) -> bool:
    """Print the plan, then run it; False when an entry failed."""
    def write(lines: Iterable[str]) -> None:    # at once: the guest may die of the next test
        for stream in (sys.stdout, log):
            print(*lines, sep="\n", file=stream, flush=True)

    failed = 0
    write(["KTAP version 1", f"1..{len(entries)}"])
    for number, entry in enumerate(entries, 1):
        begun = time.monotonic()
        status, lines = run_entry(entry, place, seconds)
        result = result_line(entry, number, status, lines)
        failed += not result.startswith("ok ")
        write([*nested_output(entry, lines), f"  # took {time.monotonic() - begun:.0f} s", result])
    write([f"# {len(entries) - failed} of {len(entries)} did not fail"])
    return not failed


def main() -> int:
    """Run the command line; returns the exit status."""
    parser = argparse.ArgumentParser(prog="stack/session", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, default in (("--plan", TOP / "tests/guest/plan"),
                          ("--perf", PERFS["series"].path / "perf"),
                          ("--selftests", TESTS["selftests"].path),
                          ("--shell-tests", LINUX / "tools/perf/tests/shell"),
                          ("--ftrace", LINUX / "tools/testing/selftests/ftrace")):
        parser.add_argument(name, type=lambda word: Path(word).resolve(), default=default)
    parser.add_argument("--debug", action="store_true", help="the kernel is the debug kernel")
    parser.add_argument("--seconds", type=float, default=900,
                        help="time limit of each test (default: %(default)s)")
    parser.add_argument("--only", action="append", metavar="NAME",
                        help="an entry to run, as KIND:PATH; all of them without this")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda number, _frame: sys.exit(128 + number))
    place = Place(options.perf, options.selftests, options.shell_tests, options.ftrace)
    entries = read_plan(options.plan, options.debug, options.only)
    with open(Path(os.environ["GUEST_RESULTS"]) / "ktap.log", "w", encoding="utf-8") as log:
        return int(not run_plan(log, entries, place, options.seconds))

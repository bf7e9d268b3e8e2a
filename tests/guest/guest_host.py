# SPDX-License-Identifier: GPL-2.0
"""The host's side of a guest session: boot it, read its KTAP, judge.

KTAP is read by the kernel's own parser (tools/testing/kunit of the base).
"""

import os
import pathlib
import re
import shlex
import subprocess
import sys
from itertools import chain
from types import MappingProxyType
from typing import Dict, List, Mapping, NamedTuple, Tuple

import pytest

from guest_plan import Entry, read_plan

TOP = pathlib.Path(__file__).resolve().parent.parent.parent
BUILD = pathlib.Path(os.environ.get("PERF_BPF_BUILD", TOP / "build")).absolute()
SUBJECT = os.environ.get("PERF_BPF_SUBJECT", "series")
PERF = {"series": BUILD / "out-perf/perf", "base": BUILD / "out-perf-base/perf"}
PLAN = TOP / "tests/guest/plan"
# What a kernel was built in, of those with a module of the plan's.
KERNEL_OUT = {"series": BUILD / "out-kernel", "base": BUILD / "out-base",
              "debug": BUILD / "out-debug"}
SELFTESTS = BUILD / "out-selftests"
SHELL_TESTS = BUILD / "linux/tools/perf/tests/shell"
ENDS = {0: "passed", 1: "a test failed", 3: "infrastructure broke",
        4: "the kernel complained", 5: "the guest died", 6: "timed out"}
# For hours, by hand: `make stress`
STRESS = os.environ.get("PERF_BPF_STRESS") == "1"
# Shown of a failed test's own log.
LOG_LINES = 60


class Session(NamedTuple):
    """A guest session that ended: exit status of stack/guest, what it said,
    where its files are, and the result of each planned test by name."""
    status: int
    said: str
    results: pathlib.Path
    tests: Dict[str, object]
    errors: List[str]

    def end(self) -> str:
        """How the guest ended, in words."""
        return f"{ENDS.get(self.status, 'unknown end')} (status {self.status})"


def kunit_parser() -> object:
    """The kernel's KTAP parser, from the base or the patched tree; raises
    FileNotFoundError when neither is there."""
    for tree in ("base", "linux"):
        folder = BUILD / tree / "tools/testing/kunit"
        if (folder / "kunit_parser.py").exists():
            sys.path.insert(0, str(folder))
            import kunit_parser as parser  # pylint: disable=import-error
            return parser
    raise FileNotFoundError(f"no kunit_parser.py under {BUILD}/base nor "
                            f"{BUILD}/linux; run `make tree`")


def parse_ktap(log: pathlib.Path, plan: List[Entry]
               ) -> Tuple[Dict[str, object], List[str]]:
    """Results by name, and what is wrong with the log as a whole: no log,
    no plan, another plan than ours, fewer results than planned."""
    parser = kunit_parser()
    from kunit_printer import null_printer  # pylint: disable=import-error
    if not log.exists():
        return {}, [f"{log}: the guest wrote no KTAP"]
    lines = log.read_text(errors="replace").splitlines()
    main = parser.parse_run_tests(lines, null_printer)
    tests = {test.name: test for test in main.subtests if test.name}
    errors = []
    if main.expected_count != len(plan):
        errors.append(f"{log}: plan of {main.expected_count} tests, "
                      f"{len(plan)} expected")
    missing = [entry.name for entry in plan if entry.name not in tests]
    if missing or len(main.subtests) != len(plan):
        errors.append(f"{log}: truncated, {len(tests)} results of {len(plan)}; "
                      f"without result: {', '.join(missing)}")
    if main.counts.errors and not errors:
        errors.append(f"{log}: {main.counts.errors} errors of form")
    return tests, errors


def programs(entry: Entry) -> List[pathlib.Path]:
    """The file that an entry of the plan runs, if there is one on the host."""
    folders = {"kselftest": SELFTESTS, "perf-shell": SHELL_TESTS, "script": PLAN.parent}
    return [folders[entry.kind] / entry.path] if entry.kind in folders else []


def check_programs(plan: List[Entry], perf: pathlib.Path) -> None:
    """Raise FileNotFoundError when something that is to run does not exist.

    Not a test's failure: on the base a failure is what is wanted, and a
    program that was never built must not count as one.
    """
    missing = [str(path) for path in [perf, *chain.from_iterable(map(programs, plan))]
               if not os.access(path, os.X_OK)]
    if missing:
        raise FileNotFoundError(f"not there or not executable: "
                                f"{', '.join(missing)}; run `make perf` "
                                "(base: `make base-perf`), `make selftests` "
                                "or `make tree`")


def build_module(kernel: str) -> pathlib.Path:
    """The module of set_prog_id/ for a kernel; raises RuntimeError with what make said."""
    out = BUILD / "out-modules" / kernel
    out.mkdir(parents=True, exist_ok=True)
    made = subprocess.run(
        ["make", "-C", str(KERNEL_OUT[kernel]), f"M={PLAN.parent}/set_prog_id", f"MO={out}",
         "modules"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        text=True, errors="replace", check=False)
    module = out / "set_prog_id.ko"
    if made.returncode or not module.exists():
        raise RuntimeError(f"{module} was not made:\n{made.stdout[-2000:]}")
    return module


def run_session(kernel: str, seconds_each: float, seconds: float,
                environment: Mapping[str, str] = MappingProxyType({}),
                plan_file: pathlib.Path = PLAN) -> Session:
    """Boot once, run the plan of `plan_file`.  `seconds` limits the whole, boot
    included; the tests find `environment` in theirs."""
    results = BUILD / "results" / f"guest-{kernel}"
    perf = PERF[SUBJECT]
    debug = kernel == "debug"
    plan = read_plan(plan_file, debug)
    check_programs(plan, perf)
    if kernel in KERNEL_OUT:
        environment = {**environment, "SET_PROG_ID": str(build_module(kernel))}
    print(f"{len(plan)} tests planned on kernel {kernel}:",
          *(entry.name for entry in plan), sep="\n  ")
    command = ["env", *(f"{name}={value}" for name, value in environment.items()),
               str(TOP / "tests/guest/session"), "--plan", str(plan_file),
               "--perf", str(perf), "--selftests", str(SELFTESTS),
               "--shell-tests", str(SHELL_TESTS),
               "--seconds", str(seconds_each), *(["--debug"] if debug else [])]
    ended = subprocess.run(
        [str(TOP / "stack/guest"), "--kernel", kernel, "--timeout",
         str(seconds), "--results", str(results), "--", shlex.join(command)],
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE, text=True, check=False)
    print(ended.stderr)
    tests, errors = parse_ktap(results / "ktap.log", plan)
    return Session(ended.returncode, ended.stderr, results, tests, errors)


def render(test: object, depth: int = 0) -> List[str]:
    """A test's result, its log's end, and those of its subtests, as lines."""
    indent = "  " * depth
    reason = f" ({test.skip_reason})" if test.skip_reason else ""
    lines = [f"{indent}{test.status.name} {test.name}{reason}"]
    lines += [f"{indent}    {line.strip()}" for line in test.log[-LOG_LINES:]]
    for subtest in test.subtests:
        lines += render(subtest, depth + 1)
    return lines


def is_whole_success(test: object) -> bool:
    """Passed, and so did its subtests: the parser takes a test's result line
    for its status even when a subtest failed."""
    counts = test.counts
    return (test.status.name == "SUCCESS"
            and not (counts.errors or counts.failed or counts.crashed))


def judge_entry(session: Session, entry: Entry) -> None:
    """Pass, or fail with what it printed. One that was skipped whole fails too on the
    series' own kernels, which have what every entry needs; others say why.

    Raises RuntimeError when there is no result: an error, not a failure, for
    the same reason as in check_programs().
    """
    test = session.tests.get(entry.name)
    if test is None:
        raise RuntimeError(f"{entry.name}: no result; the guest's end: "
                           f"{session.end()}; see {session.results}")
    if test.status.name == "SKIPPED" and not test.counts.errors:
        if SUBJECT == "series":
            pytest.fail(f"skipped, where it has to run: {test.skip_reason}", pytrace=False)
        pytest.skip(test.skip_reason)
    if not is_whole_success(test):
        pytest.fail("\n".join(render(test)), pytrace=False)


def judge_session(session: Session) -> None:
    """Fail unless the guest came to its end and its log is whole."""
    problems = list(session.errors)
    if session.status not in (0, 1, 4):
        problems.append(session.said)
    if problems:
        pytest.fail("\n".join(problems + [f"the guest's end: {session.end()}"]),
                    pytrace=False)


def judge_splats(session: Session) -> None:
    """Fail when the guest's kernel complained."""
    if session.status == 4:
        pytest.fail((session.results / "splats").read_text()
                    + f"whole log: {session.results}/dmesg", pytrace=False)


def perf_on_copy(data: pathlib.Path, *args: str) -> str:
    """What perf prints of a file in a directory that has nothing else."""
    environment = {**os.environ, "HOME": str(data.parent), "PERF_CONFIG": "/dev/null",
                   "PERF_BUILDID_DIR": str(data.parent / "debug"), "PAGER": "cat"}
    return subprocess.run([str(PERF[SUBJECT]), *args, "-i", str(data)], env=environment,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, text=True, check=False).stdout


def sampled_cycles(data: pathlib.Path) -> List[str]:
    """The numbered programs of bpf_load_cycles that have samples."""
    report = perf_on_copy(data, "report", "--stdio", "-g", "none", "--sort", "sym")
    return sorted(set(re.findall(r"bpf_prog_[0-9a-f]{16}_cycle_\d+", report)))


def without_source(data: pathlib.Path, symbols: List[str]) -> List[str]:
    """Those that perf annotates without the line that is theirs alone."""
    return [symbol for symbol in symbols
            if not re.search(rf"return {symbol.rsplit('_', 1)[1]};",
                             perf_on_copy(data, "annotate", "--stdio", symbol))]

# SPDX-License-Identifier: GPL-2.0
"""The host's side of a guest session: boot it, read its KTAP, judge.

KTAP is read by the kernel's own parser (tools/testing/kunit of the base).
"""

import os
import pathlib
import re
import shlex
import subprocess
from itertools import chain
from types import MappingProxyType
from typing import Any, Dict, List, Mapping, NamedTuple, Set

import pytest

from perfbpf import ktap, outcome, paths
from perfbpf.plan import Entry, read_plan

TOP, BUILD = paths.TOP, paths.BUILD
SUBJECT = os.environ.get("PERF_BPF_SUBJECT", "series")
PERF = {name: out.path / "perf" for name, out in paths.PERFS.items()}
PLAN = TOP / "tests/guest/plan"
# The kernels that the plan's module is built for.
MODULE_KERNELS = ("series", "base", "debug")
SELFTESTS = paths.TESTS["selftests"].path
SHELL_TESTS = paths.LINUX / "tools/perf/tests/shell"
# For hours, by hand: `make stress`
STRESS = os.environ.get("PERF_BPF_STRESS") == "1"


class Session(NamedTuple):
    """A guest session that ended: exit status of stack/guest, what it said,
    where its files are, and the result of each planned test by name."""
    status: int
    said: str
    results: pathlib.Path
    tests: Dict[str, Any]
    errors: List[str]

    def end(self) -> str:
        """How the guest ended, in words."""
        return f"{outcome.meaning(self.status)} (status {self.status})"


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
    """Build the module of set_prog_id/ for a kernel (RuntimeError: make failed)."""
    out = paths.TESTS["modules"].path / kernel
    out.mkdir(parents=True, exist_ok=True)
    made = subprocess.run(
        ["make", "-C", str(paths.KERNELS[kernel].path), f"M={PLAN.parent}/set_prog_id", f"MO={out}",
         "modules"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        text=True, errors="replace", check=False)
    module = out / "set_prog_id.ko"
    if made.returncode or not module.exists():
        raise RuntimeError(f"{module} was not made:\n{made.stdout[-2000:]}")
    return module


def run_session(kernel: str, seconds_each: float, seconds: float,
                environment: Mapping[str, str] = MappingProxyType({}),
                plan_file: pathlib.Path = PLAN, append: str = "") -> Session:
    """Boot once, run the plan of `plan_file`.  `seconds` limits the whole, boot
    included; the tests find `environment` in theirs, and `append` on the kernel's
    command line."""
    results = BUILD / "results" / f"guest-{kernel}"
    perf = PERF[SUBJECT]
    debug = kernel == "debug"
    plan = read_plan(plan_file, debug)
    check_programs(plan, perf)
    if kernel in MODULE_KERNELS:
        environment = {**environment, "SET_PROG_ID": str(build_module(kernel))}
    print(f"{len(plan)} tests planned on kernel {kernel}:",
          *(entry.name for entry in plan), sep="\n  ")
    command = ["env", *(f"{name}={value}" for name, value in environment.items()),
               str(TOP / "stack/session"), "plan", "--plan", str(plan_file),
               "--perf", str(perf), "--selftests", str(SELFTESTS),
               "--shell-tests", str(SHELL_TESTS),
               "--seconds", str(seconds_each), *(["--debug"] if debug else [])]
    ended = subprocess.run(
        [str(TOP / "stack/guest"), "--kernel", kernel, "--timeout",
         str(seconds), "--append", append, "--results", str(results),
         "--", shlex.join(command)],
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE, text=True, check=False)
    print(ended.stderr)
    tests, errors = ktap.parse_log(results / "ktap.log", plan)
    return Session(ended.returncode, ended.stderr, results, tests, errors)


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
    if not ktap.is_whole_success(test):
        pytest.fail("\n".join(ktap.render(test)), pytrace=False)


def judge_session(session: Session) -> None:
    """Fail unless the guest came to its end and its log is whole."""
    problems = list(session.errors)
    if session.status not in outcome.ENDED:
        problems.append(session.said)
    if problems:
        pytest.fail("\n".join(problems + [f"the guest's end: {session.end()}"]),
                    pytrace=False)


def judge_splats(session: Session) -> None:
    """Fail when the guest's kernel complained."""
    if session.status == outcome.Outcome.SPLAT:
        pytest.fail((session.results / "splats").read_text()
                    + f"whole log: {session.results}/dmesg", pytrace=False)


def perf_environment(home: pathlib.Path) -> Dict[str, str]:
    """An environment in which perf finds nothing but what is in `home`."""
    return {**os.environ, "HOME": str(home), "PERF_CONFIG": "/dev/null",
            "PERF_BUILDID_DIR": str(home / "debug"), "PAGER": "cat"}


def perf_on_copy(data: pathlib.Path, *args: str) -> str:
    """What perf prints of a file in a directory that has nothing else."""
    return subprocess.run([str(PERF[SUBJECT]), *args, "-i", str(data)],
                          env=perf_environment(data.parent), stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                          check=False).stdout


def loaded_ids(data: pathlib.Path) -> Set[str]:
    """The ids of the programs that BPF_EVENT records say were loaded."""
    return set(re.findall(r"PERF_RECORD_BPF_EVENT.* type 1, .* id (\d+)",
                          perf_on_copy(data, "script", "--show-bpf-events")))


def described_ids(data: pathlib.Path) -> Set[str]:
    """The ids of the programs whose info is in the header."""
    return set(re.findall(r"^# bpf_prog_info (\d+):",
                          perf_on_copy(data, "report", "--header-only", "-I"), re.M))


def sampled_cycles(data: pathlib.Path) -> List[str]:
    """The numbered programs of bpf_load_cycles that have samples."""
    report = perf_on_copy(data, "report", "--stdio", "-g", "none", "--sort", "sym")
    return sorted(set(re.findall(r"bpf_prog_[0-9a-f]{16}_cycle_\d+", report)))


def without_source(data: pathlib.Path, symbols: List[str]) -> List[str]:
    """Those that perf annotates without the line that is theirs alone."""
    return [symbol for symbol in symbols
            if not re.search(rf"return {symbol.rsplit('_', 1)[1]};",
                             perf_on_copy(data, "annotate", "--stdio", symbol))]

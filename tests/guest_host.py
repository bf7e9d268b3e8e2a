# SPDX-License-Identifier: GPL-2.0
"""The host's side of a guest session: boot it, read its KTAP, judge.

KTAP is read by the kernel's own parser (tools/testing/kunit of the base).
"""

import os
import pathlib
import re
import shlex
import shutil
import subprocess
from itertools import chain
from types import MappingProxyType
from typing import (Any, Callable, Collection, Dict, List, Mapping, NamedTuple, Optional,
                    Set, Tuple)

import pytest

import ktap
from perfbpf import guest, paths
from perfbpf.guest import FIRST, keep_logs
from perfbpf.plan import Entry, read_plan
from perfbpf.stage import slowness

TOP, BUILD = paths.TOP, paths.BUILD
SUBJECT = os.environ.get("PERF_BPF_SUBJECT", "series")
PERF = {name: out.path / "perf" for name, out in paths.PERFS.items()}
PLAN = TOP / "tests/guest/plan"
# The kernels that the plan's module is built for.
MODULE_KERNELS = ("series", "base", "debug")
SELFTESTS = paths.TESTS["selftests"].path
SHELL_TESTS = paths.LINUX / "tools/perf/tests/shell"
FTRACE = paths.LINUX / "tools/testing/selftests/ftrace"
# More failures than these are no accident, and are not repeated.
MAX_REPEATED = 4
# Properties of a test that conftest.py prints at the end.
FLAKY, SECONDS, LACKS = "flaky", "seconds", "lacks"
# pytest's record_property
Note = Callable[[str, object], None]
# In Session.flaky: the guest itself.
GUEST = "(guest)"
# For hours, by hand: `make stress`
STRESS = os.environ.get("PERF_BPF_STRESS") == "1"


class Session(NamedTuple):
    """A guest session that ended: exit status of stack/guest, what it said,
    where its files are, and the result of each planned test by name.

    flaky: of the tests that failed first and passed when they were run once more, by
    name, where the logs of both are. GUEST stands for the guest as a whole, when it did
    not come to its end.
    """
    status: int
    said: str
    results: pathlib.Path
    tests: Dict[str, Any]
    errors: List[str]
    flaky: Dict[str, str] = {}
    again: str = ""     # see Runs.again()

    def end(self) -> str:
        """How the guest ended, in words."""
        return f"{guest.MEANING.get(self.status, '')} (status {self.status})"

    def passed(self, entry: Entry) -> bool:
        """Did a test pass?"""
        return entry.name in self.tests and ktap.is_whole_success(self.tests[entry.name])


def programs(entry: Entry) -> List[pathlib.Path]:
    """The file that an entry of the plan runs, if there is one on the host."""
    folders = {"kselftest": SELFTESTS, "perf-shell": SHELL_TESTS, "script": PLAN.parent,
               "ftrace": FTRACE / "test.d"}
    return [folders[entry.kind] / entry.path] if entry.kind in folders else []


def check_programs(plan: List[Entry], perf: pathlib.Path) -> None:
    """Raise FileNotFoundError when something that is to run does not exist.

    Not a test's failure: on the base a failure is what is wanted, and a
    program that was never built must not count as one.
    """
    missing = [str(path) for path in [perf, *chain.from_iterable(map(programs, plan))]
               if not os.access(path, os.R_OK if path.suffix == ".tc" else os.X_OK)]
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


class Runs(NamedTuple):
    """What the runs of one plan have in common: the kernel, the time limits of a test and
    of a guest with its boot on a machine three times as slow as a fast one, what the tests
    find in their environment, and what is appended to the kernel's command line."""
    kernel: str
    seconds_each: float = 900
    seconds: float = 3300
    environment: Mapping[str, str] = MappingProxyType({})
    plan_file: pathlib.Path = PLAN
    append: str = ""
    name: str = ""      # of the directory of results, if it is not guest-KERNEL
    selftests: pathlib.Path = SELFTESTS
    ftrace: pathlib.Path = FTRACE
    cpus: int = 2

    @property
    def results(self) -> pathlib.Path:
        """Where the guest's files are."""
        return BUILD / "results" / (self.name or f"guest-{self.kernel}")

    def again(self) -> str:
        """How a test is run once more by hand, with its PATH and NAME to be filled in."""
        shell = f"stack/guest --kernel {self.kernel} --shell"
        debug = " --debug" if self.kernel == "debug" else ""
        make = {"series": "make check TEST={path}, or ", "base": "make check-base TEST={path}, or "}
        return f"{make.get(self.kernel, '')}`{shell}`, and there:" \
            f" stack/session{debug} --only {{name}}"

    def limit(self, seconds: float) -> str:
        """A limit of time as it is on this machine, in seconds."""
        return f"{seconds * max(1, slowness() / 3):.0f}"

    def session(self, entries: List[Entry]) -> List[str]:
        """The command that runs these entries of the plan."""
        return ["env", *(f"{name}={value}" for name, value in self.environment.items()),
                str(TOP / "stack/session"), "--plan", str(self.plan_file),
                "--perf", str(PERF[SUBJECT]), "--selftests", str(self.selftests),
                "--shell-tests", str(SHELL_TESTS), "--ftrace", str(self.ftrace),
                "--seconds", self.limit(self.seconds_each),
                *(["--debug"] if self.kernel == "debug" else []),
                *(word for entry in entries for word in ("--only", entry.name))]

    def command(self, entries: List[Entry]) -> List[str]:
        """The command that boots the guest for them."""
        return [str(TOP / "stack/guest"), "--kernel", self.kernel, "--timeout",
                self.limit(self.seconds), "--append", self.append, "--cpus", str(self.cpus),
                "--results", str(self.results), "--", shlex.join(self.session(entries))]

    def run(self, entries: List[Entry]) -> Session:
        """Boot once, run these entries of the plan."""
        print(f"{len(entries)} tests planned in {self.results.name}:",
              *(entry.name for entry in entries), sep="\n  ")
        ended = subprocess.run(
            self.command(entries), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE, text=True, check=False,
            env={**os.environ, "GUEST_RESULTS": str(self.results)})
        print(ended.stderr)
        tests, errors = ktap.parse_log(self.results / "ktap.log", entries)
        return Session(ended.returncode, ended.stderr, self.results, tests, errors, {},
                       self.again())


def to_repeat(session: Session, plan: List[Entry]) -> Tuple[List[Entry], List[Entry]]:
    """The entries to run once more: each alone, and those that can share a guest.

    Those that failed run alone, and the one that ran when the guest ended. Those behind
    it did not run at all. On the base tests have to fail.
    """
    unfinished = [entry for entry in plan if entry.name not in session.tests]
    failed = [entry for entry in plan if entry not in unfinished and not session.passed(entry)
              and session.tests[entry.name].status.name != "SKIPPED"]
    if SUBJECT == "base" or len(failed) > MAX_REPEATED:
        failed = []
    return failed + unfinished[:1], unfinished[1:]


def run_again(runs: Runs, session: Session, group: List[Entry], name: str) -> Session:
    """Run some entries once more; return the session with their new results."""
    again = runs.run(group)
    kept = keep_logs(again.results, name)
    tests = {name: test for name, test in session.tests.items()
             if name not in (entry.name for entry in group)}
    worse = again.status >= session.status
    return session._replace(status=max(session.status, again.status), said=again.said,
                            results=kept if worse else session.results,
                            tests={**tests, **again.tests}, errors=session.errors + again.errors)


def repeat(runs: Runs, plan: List[Entry], first: Session) -> Session:
    """Run once more what a session has no good result of; a splat is never repeated."""
    alone, others = to_repeat(first, plan)
    if first.status == guest.Outcome.SPLAT or guest.complained(first.results) or not alone:
        return first
    logs = keep_logs(first.results, FIRST)
    session = first._replace(status=0, errors=[], flaky={})
    for number, entry in enumerate(alone, 1):
        kept = f"{FIRST}-again-{number}"
        session = run_again(runs, session, [entry], kept)
        if session.passed(entry) and session.status in guest.ENDED:
            session.flaky[entry.name] = f"{logs} and {first.results / kept}"
    if others:
        session = run_again(runs, session, others, f"{FIRST}-again-others")
    if first.status not in guest.ENDED and not session.errors:
        session.flaky[GUEST] = f"{logs} ({first.end()})"
    return session


def run_session(runs: Runs, only: Optional[Collection[str]] = None) -> Session:
    """Boot once, run the plan, or its entries of the names `only`; then, in fresh guests,
    those that failed or had no result."""
    plan = read_plan(runs.plan_file, runs.kernel == "debug", only)
    check_programs(plan, PERF[SUBJECT])
    if runs.kernel in MODULE_KERNELS:
        runs = runs._replace(environment={**runs.environment,
                                          "SET_PROG_ID": str(build_module(runs.kernel))})
    for kept in runs.results.glob(f"{FIRST}*"):
        shutil.rmtree(kept)
    return repeat(runs, plan, runs.run(plan))


def chosen(request: pytest.FixtureRequest) -> List[str]:
    """The names of the plan's entries that this run of pytest has a test for (-k), in a
    module's fixture."""
    return [item.callspec.params["entry"].name for item in request.session.items
            if item.fspath == request.node.fspath and hasattr(item, "callspec")
            and "entry" in item.callspec.params]


def note_guest(results: pathlib.Path, note: Note) -> None:
    """Note that a guest was started twice (stack/guest --again)."""
    if (results / FIRST).exists():
        note(FLAKY, f"{results / FIRST} and {results}")


def note_entry(session: Session, entry: Entry, note: Note) -> None:
    """Note how long a test took, and that it failed first."""
    took = re.search(r"# took (\d+) s", "\n".join(
        session.tests[entry.name].log if entry.name in session.tests else []))
    if took:
        note(SECONDS, took[1])
    if entry.name in session.flaky:
        note(FLAKY, session.flaky[entry.name])


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
        again = session.again.format(path=entry.path, name=entry.name)
        pytest.fail("\n".join([*ktap.render(test), f"once more: {again}"]), pytrace=False)


def judge_session(session: Session) -> None:
    """Fail unless the guest came to its end and its log is whole."""
    problems = list(session.errors)
    if session.status not in guest.ENDED:
        problems.append(session.said)
    if problems:
        pytest.fail("\n".join(problems + [f"the guest's end: {session.end()}"]),
                    pytrace=False)


def judge_splats(session: Session) -> None:
    """Fail when the guest's kernel complained."""
    if session.status == guest.Outcome.SPLAT:
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

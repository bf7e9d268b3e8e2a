# SPDX-License-Identifier: GPL-2.0
"""What all tests share. The folder of a test says what it is about and when it runs:

  kernel/   the guest, or the kernel's code              make check
  perf/     perf, on this machine                        make check
  series/   each topic compiles on what it needs         make check
  tooling/  what is in stack/                            make check-tooling
  full/     debug kernel, Debian's kernels, prefixes,    make check-debug, debian, prefixes,
            mainline's own tests                         mainline

PERF_BPF_SUBJECT=series (the default) or base says whose perf and kernel are
tested. On the base a test has to fail, or it tests nothing: there its failure
is reported as xfailed, and its passing as a failure, except
  - @pytest.mark.both, or a parameter whose attribute `both` is true: is meant
    to pass on either;
  - anything but a failed assertion or pytest.fail(), such as a missing file:
    that is an error on either.
"""

import os
import signal
from collections import Counter
from pathlib import Path
from typing import Any, Generator, List

import pytest

from subject import perf_binary

SUBJECT = os.environ.get("PERF_BPF_SUBJECT", "series")
SLOWEST = 12


def is_both(item: pytest.Item) -> bool:
    """Is this test meant to pass on the base too?"""
    callspec = getattr(item, "callspec", None)
    return item.get_closest_marker("both") is not None or (
        callspec is not None and any(getattr(value, "both", False) is True
                                     for value in callspec.params.values()))


def pytest_configure(config: pytest.Config) -> None:
    """Announce the marker; refuse a subject that does not exist.

    What a background job ignores its children ignore, and some tests are about
    Ctrl-C."""
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    config.addinivalue_line("markers", "both: meant to pass on the base as well")
    if SUBJECT not in ("series", "base"):
        raise pytest.UsageError(f"PERF_BPF_SUBJECT={SUBJECT}: say series or base")
    config.pluginmanager.register(Plan(config), "perf-bpf-plan")


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item,
                              call: pytest.CallInfo) -> Generator[None, Any, None]:
    """On the base, turn a test's outcome round; see the top of the file."""
    outcome = yield
    report = outcome.get_result()
    if SUBJECT != "base" or is_both(item):
        return
    if report.failed and call.excinfo and \
            call.excinfo.errisinstance((AssertionError, pytest.fail.Exception)):
        report.outcome = "skipped"
        report.wasxfail = "fails on the base, as it has to"
    elif report.passed and report.when == "call":
        report.outcome = "failed"
        report.longrepr = (f"{item.nodeid} passes on the unpatched base: it tests nothing of the"
                           " series. Sharpen it, or mark it `both` if that is meant.")


class Plan:
    """Prints how many tests are going to run, and whether all of them did."""

    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        self.planned: List[str] = []
        self.done: Counter = Counter()
        self.reports: List[pytest.TestReport] = []

    def say(self, text: str) -> None:
        """A line of its own on the terminal."""
        self.config.get_terminal_writer().line("\n" + text)

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """The plan: how many tests of each folder."""
        self.planned = [item.nodeid for item in session.items]
        counts = Counter(Path(str(item.fspath)).parent.name for item in session.items)
        self.say(f"plan ({SUBJECT}): {len(self.planned)} tests: "
                 + ", ".join(f"{count} {folder}" for folder, count in sorted(counts.items())))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """A part of a test ended."""
        if report.when == "call" or not report.passed:
            self.reports.append(report)

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """What stack/check prints too: the slowest tests, in the guest if they ran there, those
        that passed only when they ran once more, and the ends of what failed."""
        seconds = {report.nodeid: float(str(
            dict(report.user_properties).get("seconds", report.duration)))
            for report in self.reports}
        terminalreporter.write_line("what took longest:")
        lacks = Counter(dict(report.user_properties).get("lacks") for report in self.reports)
        for why in filter(None, lacks):
            terminalreporter.write_line(f"{lacks[why]} tests of perf alone ran in the guest: {why}")
        for nodeid in sorted(seconds, key=lambda one: -seconds[one])[:SLOWEST]:
            terminalreporter.write_line(f"{seconds[nodeid]:6.0f} s  {nodeid}")
        lines = (Path(__file__).parent / "flaky").read_text().splitlines()
        known = dict(line.split(None, 1) for line in lines if line and not line.startswith("#"))
        for report in self.reports:
            logs = dict(report.user_properties).get("flaky")
            if logs:
                why = next((text for name, text in known.items() if name in report.nodeid),
                           "not known: find the cause, or add it to tests/flaky")
                terminalreporter.write_line(f"FLAKY: {report.nodeid} failed, and passed when it ran"
                                            f" once more; cause: {why}\n  both logs: {logs}")
            if report.failed:
                terminalreporter.write_line("\n    ".join(
                    [f"FAILED: {report.nodeid}", *report.longreprtext.splitlines()[-12:]]))

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        """A test ended, one way or another."""
        self.done[nodeid] += 1

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Fewer results than planned is a failure, whatever those were."""
        if self.config.option.collectonly:
            return
        missing = [nodeid for nodeid in self.planned if not self.done[nodeid]]
        if missing:
            self.say(f"{len(missing)} of {len(self.planned)} planned tests gave no result,"
                     f" the first is {missing[0]}")
            session.exitstatus = pytest.ExitCode.TESTS_FAILED


@pytest.fixture(scope="session", name="perf")
def fixture_perf() -> Path:
    """The perf binary of the subject."""
    return perf_binary()

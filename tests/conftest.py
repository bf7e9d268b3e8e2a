# SPDX-License-Identifier: GPL-2.0
"""What all tests share: the subject, the order of the layers, the plan.

PERF_BPF_SUBJECT=series (the default) or base says whose perf and kernel are
tested. On the base a test has to fail, or it tests nothing: there its failure
is reported as xfailed, and its passing as a failure, except
  - @pytest.mark.both, or a parameter whose attribute `both` is true: is meant
    to pass on either;
  - the modules in STACK, which test this repository's tooling: not run there;
  - anything but a failed assertion or pytest.fail(), such as a missing file:
    that is an error on either.
"""

import os
import resource
import signal
import time
from collections import Counter
from pathlib import Path
from typing import Generator, List

import pytest

from perfbpf.junit import CPU_PROPERTY
from subject import perf_binary

TOP = Path(__file__).resolve().parent.parent
BUILD = Path(os.environ.get("PERF_BPF_BUILD") or TOP / "build").absolute()
SUBJECT = os.environ.get("PERF_BPF_SUBJECT", "series")
LAYERS = ("lint", "host", "prefix", "guest", "debug")
# A module that is not listed tests on the host.
LAYER_OF = {"test_lint": "lint", "test_base": "lint", "test_tree": "lint",
            "test_setup": "lint", "test_kernel": "lint", "test_mainline": "lint",
            "test_failures": "lint", "test_check": "lint", "test_durations": "lint",
            "test_topic": "lint", "test_demo_plan": "lint",
            "test_guest_start": "lint", "test_session": "lint",
            "test_prefix": "prefix",
            "test_guest": "guest", "test_guest_failures": "guest", "test_demo": "guest",
            "test_its": "guest", "test_qemu": "guest",
            "test_debian_kernels": "guest",
            "test_debug_guest": "debug"}
STACK = {"test_lint", "test_base", "test_tree", "test_setup", "test_kernel", "test_prefix",
         "test_guest_failures", "test_qemu", "test_mainline", "test_failures", "test_check",
         "test_durations", "test_topic", "test_demo_plan", "test_guest_start", "test_session"}
CPU_BEFORE = pytest.StashKey[float]()
# These tell how the guest's session went, not what the series does.
BOTH = {("test_guest", "test_session_is_whole"), ("test_guest", "test_no_splat")}


def module_of(item: pytest.Item) -> str:
    """The name of the module a test is in."""
    return Path(str(item.fspath)).stem


def layer_of(item: pytest.Item) -> str:
    """The layer a test belongs to."""
    return LAYER_OF.get(module_of(item), "host")


def is_both(item: pytest.Item) -> bool:
    """Is this test meant to pass on the base too?"""
    if item.get_closest_marker("both") or (module_of(item), item.name) in BOTH:
        return True
    callspec = getattr(item, "callspec", None)
    return callspec is not None and any(getattr(value, "both", False) is True
                                        for value in callspec.params.values())


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


def pytest_collection_modifyitems(config: pytest.Config, items: List[pytest.Item]) -> None:
    """Layer by layer; on the base without the tests of the tooling."""
    items.sort(key=lambda item: LAYERS.index(layer_of(item)))
    if SUBJECT == "base":
        left_out = [item for item in items if module_of(item) in STACK]
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if module_of(item) not in STACK]


def cpu_seconds() -> float:
    """CPU time of this process and of all it has waited for."""
    return sum(usage.ru_utime + usage.ru_stime for usage in
               map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)))


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_setup(item: pytest.Item) -> Generator:
    """Note the CPU time at a test's beginning, that of its fixtures included."""
    item.stash[CPU_BEFORE] = cpu_seconds()
    yield


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_teardown(item: pytest.Item) -> Generator:
    """Put a test's CPU time into junit.xml, for perfbpf/durations.py."""
    yield
    item.user_properties.append((CPU_PROPERTY, f"{cpu_seconds() - item.stash[CPU_BEFORE]:.1f}"))


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo) -> Generator:
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
    """Prints what is going to run, where it is, and whether all of it did."""

    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        self.start = time.monotonic()
        self.planned: List[str] = []
        self.layers: dict = {}
        self.done: Counter = Counter()
        self.layer = ""

    def say(self, text: str) -> None:
        """A line of its own on the terminal."""
        self.config.get_terminal_writer().line("\n" + text)

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """The plan: how many tests of each layer."""
        self.planned = [item.nodeid for item in session.items]
        self.layers = {item.nodeid: layer_of(item) for item in session.items}
        counts = Counter(self.layers.values())
        self.say(f"plan ({SUBJECT}): {len(self.planned)} tests: "
                 + ", ".join(f"{counts[layer]} {layer}" for layer in LAYERS))

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        """A heading where a layer begins."""
        layer = self.layers.get(nodeid, "")
        if layer != self.layer:
            self.layer = layer
            since = int(time.monotonic() - self.start)
            self.say(f"==> [{since // 60}:{since % 60:02}] {layer}")

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

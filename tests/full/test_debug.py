# SPDX-License-Identifier: GPL-2.0
"""The plan of tests/guest/plan on the debug kernel: KASAN, lockdep,
PROVE_RCU, DEBUG_ATOMIC_SLEEP, kmemleak."""

import pytest

import guest_host as host
from perfbpf.plan import Entry, read_plan

# Of all sources at once, a round after the other (ksymbol_churn.c), and of
# bpf_retain_churn.c
CHURN_SECONDS = "1800" if host.STRESS else "300"
# Of bpf_attach_churn.c, which shares the CPUs with bpf_retain_churn.c
BPF_ATTACH_CHURN_SECONDS = "1200" if host.STRESS else "120"
SECONDS_EACH, SECONDS = (2700, 9000) if host.STRESS else (1800, 7200)
# For ftrace_at_boot.sh. It switches the tracer off, and there is little to trace.
FTRACE_AT_BOOT = "ftrace=function ftrace_filter=kernel_restart"
CHECKERS = ("KASAN", "PROVE_LOCKING", "PROVE_RCU", "DEBUG_ATOMIC_SLEEP",
            "DEBUG_KMEMLEAK", "INIT_STACK_ALL_PATTERN")


@pytest.fixture(scope="module", name="session")
def fixture_session() -> host.Session:
    """The debug guest's results; boots it once.  There is one for the series
    only."""
    if host.SUBJECT != "series":
        pytest.skip("there is no debug kernel of the base")
    environment = {"KSYM_CHURN_SECONDS": CHURN_SECONDS, "BPF_CHURN_SECONDS": CHURN_SECONDS,
                   "BPF_ATTACH_CHURN_SECONDS": BPF_ATTACH_CHURN_SECONDS}
    return host.run_session(host.Runs("debug", SECONDS_EACH, SECONDS, environment,
                                      append=FTRACE_AT_BOOT))


def test_session_is_whole(session: host.Session) -> None:
    """The guest ran to its end and its log has every planned result."""
    host.judge_session(session)


@pytest.mark.parametrize("checker", CHECKERS)
def test_checker_is_on(session: host.Session, checker: str) -> None:
    """The kernel that ran was built with this checker."""
    config = (session.results / "config").read_text()
    assert f"CONFIG_{checker}=y" in config.splitlines()


def test_kmemleak_was_read(session: host.Session) -> None:
    """Its list of lost memory was there, with a scan done at the end."""
    assert (session.results / "kmemleak").exists(), f"see {session.results}/console.log"


def test_no_splat(session: host.Session) -> None:
    """No checker complained."""
    host.judge_splats(session)


@pytest.mark.parametrize("entry", read_plan(host.PLAN, debug=True), ids=lambda e: e.name)
def test_entry(session: host.Session, entry: Entry) -> None:
    """One planned test passed."""
    host.judge_entry(session, entry)

# SPDX-License-Identifier: GPL-2.0
"""The series' perf on Debian's own kernels, which have nothing of the series: it
has to be no worse there than Debian's perf. The plan is tests/guest/plan.debian."""

import pathlib
import re
import shutil

import pytest

import guest_host as host
from perfbpf.plan import Entry, read_plan

PLAN = host.PLAN.with_name("plan.debian")
# Each has the kernel of its Debian: 6.1 and 6.12.
SUITES = ("bookworm", "trixie")
DATA = "debian.data"


def kept_data(suite: str) -> pathlib.Path:
    """What record_debian_kernel.sh recorded."""
    return host.BUILD / "results" / f"guest-{suite}" / DATA


@pytest.fixture(scope="module", params=SUITES, name="session")
def fixture_session(request: pytest.FixtureRequest) -> host.Session:
    """The results on one of the kernels; boots it once."""
    kept_data(request.param).unlink(missing_ok=True)
    return host.run_session(host.Runs(request.param, 900, 1500,
                                      {"KEEP_DATA": str(kept_data(request.param))}, PLAN))


def test_session_is_whole(session: host.Session) -> None:
    """The guest ran to its end and its log has every planned result."""
    host.judge_session(session)


@pytest.mark.parametrize("entry", read_plan(PLAN), ids=lambda e: e.name)
def test_entry(session: host.Session, entry: Entry) -> None:
    """One planned test passed."""
    host.judge_entry(session, entry)


def test_copy_annotates(session: host.Session, tmp_path: pathlib.Path) -> None:
    """On this machine, from a copy of perf.data, the programs that have code
    annotate with their own source."""
    kept = session.results / DATA
    if not kept.exists():
        raise RuntimeError(f"no {kept}; the guest's end: {session.end()}")
    data = tmp_path / "perf.data"
    shutil.copy(kept, data)
    header = host.perf_on_copy(data, "report", "--header-only", "-I")
    described = set(re.findall(r"bpf_prog_[0-9a-f]{16}_cycle_\d+", header))
    symbols = [symbol for symbol in host.sampled_cycles(data) if symbol in described]
    assert symbols, f"{len(described)} programs with code, none of them has samples"
    missing = host.without_source(data, symbols)
    assert not missing, f"{len(missing)} of {len(symbols)} without source: {missing}"

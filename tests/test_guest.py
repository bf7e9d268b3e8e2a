# SPDX-License-Identifier: GPL-2.0
"""The plan of tests/guest/plan in one boot of the guest; one test each.

PERF_BPF_SUBJECT=base runs the same on the unpatched kernel and perf.
"""

import pathlib
import random
import shutil
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "guest"))
import guest_host as host  # noqa: E402  pylint: disable=wrong-import-position
from perfbpf.plan import Entry, read_plan  # noqa: E402  pylint: disable=wrong-import-position

# What record_bpf_cycles.sh recorded, for after the guest's end.
CYCLES_DATA = host.BUILD / "results" / f"guest-{host.SUBJECT}" / "cycles.data"
ANNOTATED = 100
CYCLES, SECONDS_EACH, SECONDS = ("100000", 1800, 5400) if host.STRESS else ("10000", 900, 3600)


@pytest.fixture(scope="module", name="session")
def fixture_session() -> host.Session:
    """The guest's results; boots it once."""
    CYCLES_DATA.unlink(missing_ok=True)
    return host.run_session(host.SUBJECT, SECONDS_EACH, SECONDS,
                            {"KEEP_DATA": str(CYCLES_DATA), "BPF_CYCLES": CYCLES})


def test_session_is_whole(session: host.Session) -> None:
    """The guest ran to its end and its log has every planned result."""
    host.judge_session(session)


def test_no_splat(session: host.Session) -> None:
    """The guest's kernel did not complain."""
    host.judge_splats(session)


@pytest.mark.parametrize("entry", read_plan(host.PLAN), ids=lambda e: e.name)
def test_entry(session: host.Session, entry: Entry) -> None:
    """One planned test passed."""
    host.judge_entry(session, entry)


def test_copy_annotates(session: host.Session, tmp_path: pathlib.Path) -> None:
    """With the guest gone, from a copy of perf.data, programs that had ended
    while perf recorded annotate with their own source: a random hundred."""
    if not CYCLES_DATA.exists():
        raise RuntimeError(f"no {CYCLES_DATA}; the guest's end: {session.end()}")
    data = tmp_path / "perf.data"
    shutil.copy(CYCLES_DATA, data)
    symbols = host.sampled_cycles(data)
    assert len(symbols) >= ANNOTATED, f"samples in {len(symbols)} programs only"
    missing = host.without_source(data, random.sample(symbols, ANNOTATED))
    assert not missing, f"{len(missing)} of {ANNOTATED} of {len(symbols)} without source: {missing}"

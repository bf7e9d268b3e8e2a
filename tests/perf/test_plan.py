# SPDX-License-Identifier: GPL-2.0
"""Those tests of tests/guest/plan that are of perf alone, on this machine's own kernel.

Under emulation they take minutes, here seconds. What this kernel cannot run the guest
does (tests/kernel/test_guest.py).
"""
from __future__ import annotations

import pytest

import guest_host as host
import machine
from perfbpf.plan import Entry, read_plan

ENTRIES = [entry for entry in read_plan(host.PLAN) if machine.runs_here(entry)]


class MachineRuns(host.Runs):
    """Runs of a plan without a guest."""

    def again(self) -> str:
        """How a test is run once more by hand."""
        return f"make check{'' if host.SUBJECT == 'series' else '-base'} TEST={{path}}"

    def command(self, entries: list[Entry]) -> list[str]:
        """The command that runs these entries here."""
        self.results.mkdir(parents=True, exist_ok=True)
        (self.results / "ktap.log").unlink(missing_ok=True)
        return [*machine.MOUNTED, *self.session(entries)]


@pytest.fixture(scope="module", name="session")
def fixture_session(request: pytest.FixtureRequest) -> host.Session:
    """The results of all tests that were chosen."""
    return host.run_session(MachineRuns("", name="machine"), host.chosen(request))


@pytest.mark.both
@pytest.mark.skipif(not ENTRIES, reason=f"these run in the guest: {machine.lacks()}")
def test_session_is_whole(session: host.Session) -> None:
    """The log has every planned result."""
    host.judge_session(session)


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.name)
def test_entry(session: host.Session, entry: Entry, record_property: host.Note) -> None:
    """One of them passed."""
    host.note_entry(session, entry, record_property)
    host.judge_entry(session, entry)

# SPDX-License-Identifier: GPL-2.0
"""perf list beside those who make and delete events: others do so all the time."""
from __future__ import annotations

import os
import shutil
import threading
from pathlib import Path
from typing import Callable

import pytest

from subject import run_perf

SYSTEMS = ("one", "two", "three", "four", "five")
EVENTS = ("first", "second", "third")


def make_tracefs(top: Path, change: Callable[[Path], None]) -> Path:
    """Make a directory like tracefs, whose systems have these events; return that of the
    systems. When perf reads the number of an event for the first time, another system, which
    it knows and has not opened, is changed."""
    systems = top / "events"
    reads = iter([True])
    for system in SYSTEMS:
        for event in EVENTS:
            (systems / system / event).mkdir(parents=True)
        os.mkfifo(systems / system / "first/id")

    def answer(system: str) -> None:
        try:
            with open(systems / system / "first/id", "w", encoding="ascii") as file:
                if next(reads, False):
                    change(systems / next(other for other in SYSTEMS if other != system))
                file.write("7\n")
        except FileNotFoundError:
            pass    # the system that went

    for system in SYSTEMS:
        threading.Thread(target=answer, args=(system,), daemon=True).start()
    return systems


def come(system: Path) -> None:
    """An event comes."""
    (system / "fourth").mkdir()


@pytest.mark.parametrize("change", [shutil.rmtree, come], ids=("go", "come"))
def test_events_change(change: Callable[[Path], None], tmp_path: Path,
                       monkeypatch: pytest.MonkeyPatch) -> None:
    """Events that go while perf lists them are not listed, those that come are, and all
    others too."""
    systems = make_tracefs(tmp_path, change)
    monkeypatch.setenv("TRACEFS_PATH", str(tmp_path))
    listed = run_perf(tmp_path, ["list", "--raw-dump", "tracepoint"])
    left = [f"{event.parent.name}:{event.name}" for event in systems.glob("*/*")]
    assert listed.status == 0 and len(left) != len(SYSTEMS) * len(EVENTS), listed
    assert sorted(listed.out.split()) == sorted(left), listed

# SPDX-License-Identifier: GPL-2.0
"""The results of a run of pytest, as its junit.xml has them."""
from __future__ import annotations

import xml.etree.ElementTree as ET
from pathlib import Path
from typing import NamedTuple

# The property of a test that failed and passed when it was run once more; its value
# says where both logs are (tests/guest_host.py).
FLAKY = "flaky"
# How long a test took in the guest, which its own time does not show.
SECONDS = "seconds"


class Case(NamedTuple):
    """A test that ran."""
    name: str       # folder.module.test[parameter]
    outcome: str    # passed, or the element that says otherwise: error, failure, skipped
    text: str       # what it printed as its failure
    seconds: float
    flaky: str      # see FLAKY


def read_case(case: ET.Element) -> Case:
    """Read a <testcase>."""
    outcome = next((tag for tag in ("error", "failure", "skipped") if case.find(tag) is not None),
                   "passed")
    noted = {one.get("name"): one.get("value", "") for one in case.iter("property")}
    name = f"{case.get('classname', '')}.{case.get('name', '')}".removeprefix("tests.")
    return Case(name, outcome, case.findtext(outcome) or "",
                float(noted.get(SECONDS) or case.get("time") or 0), noted.get(FLAKY, ""))


def read_cases(results: Path) -> list[Case]:
    """Read the tests of a run (OSError, ParseError: it left no whole junit.xml)."""
    return [read_case(case) for case in ET.parse(results / "junit.xml").iter("testcase")]

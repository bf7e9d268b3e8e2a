# SPDX-License-Identifier: GPL-2.0
"""The results of a run of pytest, as its junit.xml has them."""
from __future__ import annotations

import xml.etree.ElementTree as ET
from pathlib import Path
from typing import NamedTuple

# The property that tests/conftest.py gives each test.
CPU_PROPERTY = "cpu_s"


class Case(NamedTuple):
    """A test that ran."""
    name: str       # module.test[parameter]
    outcome: str    # passed, or the element that says otherwise: error, failure, skipped
    text: str       # what it printed as its failure
    seconds: float
    cpu: float      # CPU seconds of it and of the processes it waited for


def read_case(case: ET.Element) -> Case:
    """Read a <testcase>."""
    outcome = next((tag for tag in ("error", "failure", "skipped") if case.find(tag) is not None),
                   "passed")
    cpu = case.find(f"properties/property[@name='{CPU_PROPERTY}']")
    name = f"{case.get('classname', '')}.{case.get('name', '')}".removeprefix("tests.")
    return Case(name, outcome, case.findtext(outcome) or "", float(case.get("time", 0)),
                0.0 if cpu is None else float(cpu.get("value", 0)))


def read_cases(results: Path) -> list[Case]:
    """Read the tests of a run (OSError, ParseError: it left no whole junit.xml)."""
    return [read_case(case) for case in ET.parse(results / "junit.xml").iter("testcase")]

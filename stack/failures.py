# SPDX-License-Identifier: GPL-2.0
"""What failed in runs of pytest, short, for the end of a long log.

`failures.py RESULTS...`: for each directory, of its junit.xml, the counts, and
of each test that failed the name and the end of what it said. Who sees only the
end of `make check`, as in CI, sees why it failed.
"""

import sys
import xml.etree.ElementTree as ET
from collections import Counter
from pathlib import Path
from typing import Iterator

LINES = 12
COLUMNS = 160


def outcome_of(case: ET.Element) -> str:
    """A <testcase>'s outcome: the element that says it, or "passed"."""
    return next((tag for tag in ("error", "failure", "skipped") if case.find(tag) is not None),
                "passed")


def tell(results: Path) -> Iterator[str]:
    """The lines about one run; a run that left no results gets the end of its log."""
    try:
        cases = list(ET.parse(results / "junit.xml").iter("testcase"))
    except (OSError, ET.ParseError) as error:
        log = results / "pytest.log"
        said = log.read_text(errors="replace").splitlines() if log.exists() else ["no log either"]
        yield f"{results.name}: ended without results ({error}); the end of its log:"
        yield from ("    " + line[:COLUMNS] for line in said[-LINES:])
        return
    counts = Counter(outcome_of(case) for case in cases)
    yield f"{results.name}: " + ", ".join(f"{counts[name]} {name}" for name in sorted(counts))
    for case in cases:
        outcome = outcome_of(case)
        if outcome not in ("error", "failure"):
            continue
        said = (case.findtext(outcome) or "").rstrip().splitlines()
        yield f"  {outcome}: {case.get('classname')}.{case.get('name')} ({case.get('time')} s)"
        yield from ("    " + line[:COLUMNS] for line in said[-LINES:])


if __name__ == "__main__":
    for directory in sys.argv[1:]:
        print("\n".join(tell(Path(directory))))

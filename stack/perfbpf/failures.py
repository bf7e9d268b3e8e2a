# SPDX-License-Identifier: GPL-2.0
"""What failed in runs of pytest, short, for the end of a long log.

`python3 -m perfbpf.failures RESULTS...` prints, for each directory of results, the
counts of its junit.xml, and for each test that failed its name and the end of its
message. So the end of `make check` says why it failed, which may be all of its
output that a reader of CI's log gets to see.
"""
from __future__ import annotations

import sys
import xml.etree.ElementTree as ET
from collections import Counter
from pathlib import Path
from typing import Iterator

from perfbpf.junit import read_cases

LINES = 12
COLUMNS = 160


def describe(results: Path) -> Iterator[str]:
    """Yield the lines about one run; of a run without results the end of its log."""
    try:
        cases = read_cases(results)
    except (OSError, ET.ParseError) as error:
        log = results / "pytest.log"
        lines = log.read_text(errors="replace").splitlines() if log.exists() else ["no log either"]
        yield f"{results.name}: ended without results ({error}); the end of its log:"
        yield from ("    " + line[:COLUMNS] for line in lines[-LINES:])
        return
    counts = Counter(case.outcome for case in cases)
    yield f"{results.name}: " + ", ".join(f"{counts[name]} {name}" for name in sorted(counts))
    for case in cases:
        if case.outcome in ("error", "failure"):
            yield f"  {case.outcome}: {case.name} ({case.seconds:.3f} s)"
            lines = case.text.rstrip().splitlines()[-LINES:]
            yield from ("    " + line[:COLUMNS] for line in lines)


if __name__ == "__main__":
    for directory in sys.argv[1:]:
        print("\n".join(describe(Path(directory))))

# SPDX-License-Identifier: GPL-2.0
"""KTAP, read by the kernel's own parser.

The parser is tools/testing/kunit/kunit_parser.py of the base tree, or of the
patched one.  Its Test objects have a name, a status, subtests, counts and a log.
"""
from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType
from typing import Any, Iterable, Iterator

from perfbpf.paths import BASE, LINUX
from perfbpf.plan import Entry

# Of the parser's TestStatus, in the words of kselftests.
WORD_OF = {"SUCCESS": "PASS", "FAILURE": "FAIL", "SKIPPED": "SKIP", "TEST_CRASHED": "CRASH",
           "NO_TESTS": "UNRESOLVED", "FAILURE_TO_PARSE_TESTS": "UNRESOLVED"}
# Lines of a failed test's own log that are shown.
LOG_LINES = 60


def kunit_parser() -> tuple[ModuleType, Any]:
    """Return the kernel's KTAP parser and a printer that prints nothing
    (FileNotFoundError: there is no tree to take it from)."""
    for tree in (BASE, LINUX):
        folder = str(tree / "tools/testing/kunit")
        if (Path(folder) / "kunit_parser.py").exists():
            if folder not in sys.path:
                sys.path.append(folder)
            import kunit_parser as parser
            from kunit_printer import null_printer
            return parser, null_printer
    raise FileNotFoundError(f"no kunit_parser.py under {BASE} nor {LINUX}; run `make tree`")


def parse(lines: Iterable[str]) -> Any:
    """Parse KTAP or TAP; the tests are the subtests of what is returned."""
    parser, printer = kunit_parser()
    return parser.parse_run_tests(lines, printer)


def parse_log(log: Path, plan: list[Entry]) -> tuple[dict[str, Any], list[str]]:
    """Return the tests of a session's log by name, and what is wrong with the log as
    a whole: no log, no plan, another plan than ours, fewer results than planned."""
    if not log.exists():
        return {}, [f"{log}: the guest wrote no KTAP"]
    main = parse(log.read_text(encoding="utf-8", errors="replace").splitlines())
    tests = {test.name: test for test in main.subtests if test.name}
    errors = []
    if main.expected_count != len(plan):
        errors.append(f"{log}: plan of {main.expected_count} tests, {len(plan)} expected")
    missing = [entry.name for entry in plan if entry.name not in tests]
    if missing or len(main.subtests) != len(plan):
        errors.append(f"{log}: truncated, {len(tests)} results of {len(plan)}; without result:"
                      f" {', '.join(missing)}")
    if main.counts.errors and not errors:
        errors.append(f"{log}: {main.counts.errors} errors of form")
    return tests, errors


def results(lines: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield the result of each test and subtest, with its name; a subtest's has its
    parents' in front."""
    def walk(tests: list[Any], above: str) -> Iterator[tuple[str, str]]:
        for test in tests:
            yield WORD_OF[test.status.name], above + test.name
            yield from walk(test.subtests, f"{above}{test.name}: ")
    yield from walk(parse(lines).subtests, "")


def render(test: Any, depth: int = 0) -> list[str]:
    """Return a test's result and those of its subtests, as lines.  What failed comes last
    and with the end of its log: of a long text, a reader often sees no more than the end."""
    indent = "  " * depth
    reason = f" ({test.skip_reason})" if test.skip_reason else ""
    lines = [f"{indent}{test.status.name} {test.name}{reason}"]
    if not is_whole_success(test):
        lines += [f"{indent}    {line.strip()}" for line in test.log[-LOG_LINES:]]
    for subtest in sorted(test.subtests, key=lambda t: not is_whole_success(t)):
        lines += render(subtest, depth + 1)
    return lines


def is_whole_success(test: Any) -> bool:
    """Did a test pass, and all its subtests?  The parser takes a test's result line for
    its status even when a subtest failed."""
    counts = test.counts
    return (test.status.name == "SUCCESS"
            and not (counts.errors or counts.failed or counts.crashed))

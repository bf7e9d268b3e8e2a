# SPDX-License-Identifier: GPL-2.0
"""stack/mainline: the comparison of two lists, a guest that stops, the readers of
results."""
from __future__ import annotations

from pathlib import Path
from typing import Dict, List, Tuple

import pytest

from perfbpf import mainline, units


def outcomes(**results: str) -> Dict[str, mainline.Outcome]:
    """A list: each test is a unit of its own."""
    return {name: mainline.Outcome(result, name) for name, result in results.items()}


def compared(monkeypatch: pytest.MonkeyPatch,
             *runs: Tuple[Dict[str, str], Dict[str, str]]
             ) -> Tuple[Dict[str, str], List[List[str]]]:
    """The verdicts on runs (base, series), and the units that each repetition
    ran."""
    sides = [(outcomes(**base), outcomes(**series)) for base, series in runs]
    repeated: List[List[str]] = []

    def run_both(_name: str, _group: object, again: List[str], number: int) -> object:
        repeated.append(again)
        return sides[number - 1]

    monkeypatch.setattr(mainline, "run_both", run_both)
    group = mainline.Group(sorted(set(runs[0][0]) | set(runs[0][1])), 1, {})
    found = mainline.compare("group", group, sides[0])
    return {test.name: test.verdict for test in found}, repeated


def test_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two lists that are alike have no difference, failures included."""
    side = {"a": "PASS", "b": "FAIL"}
    assert compared(monkeypatch, (side, side)) == ({}, [])


@pytest.mark.parametrize("result", ["FAIL", "TIMEOUT", "CRASH", "UNRESOLVED", "SKIP"])
def test_lost(monkeypatch: pytest.MonkeyPatch, result: str) -> None:
    """A test that passes on the base and, three times, not on the series is lost;
    the others do not run again."""
    run = {"a": "PASS", "b": "PASS"}, {"a": "PASS", "b": result}
    assert compared(monkeypatch, run, run, run) == ({"b": "lost"}, [["b"]] * 2)


def test_new_failure_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    """So is one that the base does not have, or skips, and that fails; a
    complaint in the log is such a one."""
    run = {"b": "SKIP"}, {"a": "SPLAT", "b": "FAIL"}
    verdicts, _ = compared(monkeypatch, run, run, run)
    assert verdicts == {"a": "lost", "b": "lost"}


def test_gained(monkeypatch: pytest.MonkeyPatch) -> None:
    """A test that only passes on the series, or is the series' own, differs
    and is not lost; the series' own does not run again."""
    run = {"a": "FAIL"}, {"a": "PASS", "own": "PASS"}
    assert compared(monkeypatch, run, run, run) == (
        {"a": "differs", "own": "differs"}, [["a"]] * 2)


@pytest.mark.parametrize("again", [("PASS", "PASS"), ("FAIL", "FAIL")])
def test_flaky(monkeypatch: pytest.MonkeyPatch,
               again: Tuple[str, str]) -> None:
    """A test that is alike the second time is flaky, and left alone."""
    verdicts, repeated = compared(monkeypatch, ({"a": "PASS"}, {"a": "FAIL"}),
                                  ({"a": again[0]}, {"a": again[1]}))
    assert verdicts == {"a": "flaky"} and repeated == [["a"]]


def test_never_well(monkeypatch: pytest.MonkeyPatch) -> None:
    """A test that fails in another way each time is lost all the same."""
    verdicts, _ = compared(monkeypatch, ({"a": "PASS"}, {"a": "FAIL"}),
                           ({"a": "PASS"}, {"a": "TIMEOUT"}), ({"a": "PASS"}, {}))
    assert verdicts == {"a": "lost"}


def test_changed_on_purpose(monkeypatch: pytest.MonkeyPatch) -> None:
    """A test in stack/mainline.changed is not lost, and is shown with the reason."""
    name, reason = next(iter(mainline.changed_tests().items()))
    run = ({name: "PASS"}, {name: "FAIL"})
    verdicts, _ = compared(monkeypatch, run, run, run)
    assert verdicts == {name: "changed"}
    lines = mainline.report("bpf", 1, ({}, {}), [
        mainline.Difference(name, [("PASS", "FAIL")], "changed")])
    assert any(reason in line for line in lines)


def test_progress(tmp_path: Path) -> None:
    """A guest that dies in a unit loses that unit's results only."""
    path = tmp_path / "progress"
    path.write_text("START a b\nPASS a b\ta b\nSKIP a b\ta b: one\nEND a b\n"
                    "START c\nPASS c\tc: one\n")
    found, ended, running = mainline.read_progress(path)
    assert found == {"a b": ("PASS", "a b"), "a b: one": ("SKIP", "a b")}
    assert ended == ["a b"] and running == "c"


def test_crash_goes_on(tmp_path: Path,
                       monkeypatch: pytest.MonkeyPatch) -> None:
    """The next boot runs what is left, and the unit that ended the first is
    named."""
    boots: List[List[str]] = []

    def boot(_side: str, _name: str, _group: object, left: List[str],
             results: Path) -> str:
        boots.append(left)
        results.mkdir(parents=True)
        (results / "progress").write_text("".join(
            f"START {unit}\nPASS {unit}\t{unit}\nEND {unit}\n" if unit != "bad"
            else "START bad\n" for unit in left[:2]))
        return "CRASH" if "bad" in left else ""

    monkeypatch.setattr(mainline, "boot", boot)
    monkeypatch.setattr(mainline, "RESULTS", tmp_path)
    names = ["a", "bad", "c"]
    found = mainline.run_side("base", "group", mainline.Group(names, 1, {}), names, 1)
    assert boots == [["a", "bad", "c"], ["c"]]
    assert {name: outcome.result for name, outcome in found.items()} == \
        {"a": "PASS", "bad": "CRASH", "c": "PASS"}


# The readers of results

def said(reader: str, unit: str, output: str, status: int = 0,
         log: Tuple[str, ...] = ()) -> Dict[str, str]:
    """Results by name that a reader finds."""
    ended = units.Ended(unit, status, output, list(log), list(log))
    return {name: result for result, name in getattr(units, reader)(ended)}


def test_ftrace_output() -> None:
    """A test case and its run in an instance; one that was killed."""
    text = "=== Ftrace unit tests ===\n[1] Words\t[PASS]\n[2] (instance)  Words\t[UNRESOLVED]\n"
    assert said("of_ftrace", "a/b.tc", text) == \
        {"a/b.tc": "PASS", "a/b.tc (instance)": "UNRESOLVED"}
    assert said("of_ftrace", "a/b.tc", "[1] Words", 124) == {"a/b.tc": "TIMEOUT"}


def test_ktap_output() -> None:
    """A program's tests; a skip is not a pass."""
    text = "TAP version 13\n1..3\nok 1 one\nnot ok 2 two\nok 3 three # SKIP no PMU\n"
    assert said("of_ktap", "p", text, 1) == \
        {"p": "FAIL", "p: one": "PASS", "p: two": "FAIL", "p: three": "SKIP"}


def test_livepatch_output() -> None:
    """A script stops at the first test that fails."""
    text = "TEST: one ... ok\nTEST: two ... not ok\n\n--- expected\nERROR: failed\n"
    assert said("of_livepatch", "t.sh", text, 1) == \
        {"t.sh": "FAIL", "t.sh: one": "PASS", "t.sh: two": "FAIL"}


def test_jit_log() -> None:
    """Another message may stand in the middle of a test's line."""
    log = ("test_bpf: #0 TAX jited:1 31 32 PASS", "test_bpf: #1 TXA ", "other words",
           "jited:1 ret 1 != 2 FAIL (1 times)",
           "test_bpf: Summary: 1 PASSED, 1 FAILED, [2/2 JIT'ed]")
    assert said("of_test_bpf", "test_bpf", "", 1, log) == \
        {"test_bpf": "FAIL", "test_bpf: #0 TAX": "PASS", "test_bpf: #1 TXA": "FAIL"}


def test_boot_log() -> None:
    """The startup tests say PASSED; kallsyms_selftest only says what went wrong."""
    log = ("Testing tracer function: PASSED", "Testing dynamic ftrace ops #1: ", "(1 0) PASSED",
           "kallsyms_selftest: start",
           "kallsyms_selftest: kallsyms_lookup_name() looked up 123 symbols",
           "kallsyms_selftest: foo: Never found", "kallsyms_selftest: finish")
    assert said("of_boot", "ftrace-startup", "", 0, log) == \
        {"ftrace-startup: tracer function": "PASS", "ftrace-startup: dynamic ftrace ops #1": "PASS"}
    assert said("of_boot", "kallsyms_selftest", "", 0, log) == {
        "kallsyms_selftest: start": "PASS",
        "kallsyms_selftest: kallsyms_lookup_name() looked up N symbols": "PASS",
        "kallsyms_selftest: foo: Never found": "FAIL", "kallsyms_selftest: finish": "PASS"}

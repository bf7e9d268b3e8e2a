# SPDX-License-Identifier: GPL-2.0
"""Units of one group of mainline's tests, run in the guest (`session units`).

A unit is what is run, and repeated, as one: a program, a test case, a module.
For each, $GUEST_RESULTS/progress gets

  START unit
  RESULT unit<tab>name      one for each test in it
  END unit

at once, as the guest may die of the next one.  RESULT is PASS, FAIL, TIMEOUT,
SPLAT (the kernel complained meanwhile), SKIP or another word of ftracetest's.
$GUEST_RESULTS/logs keeps the output of a unit that did not pass.
"""
from __future__ import annotations

import os
import re
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Callable, Iterator, NamedTuple

from perfbpf import ktap
from perfbpf.program import LATE, KernelLog, run_program
from perfbpf.splats import find_splats

KUNIT = Path("/sys/kernel/debug/kunit")
SELFTEST_SECONDS = 300
KSELFTEST = {0: "PASS", 4: "SKIP", LATE: "TIMEOUT"}
Result = tuple[str, str]    # the result, and the test's name


class Ended(NamedTuple):
    """A unit that ended: its exit status and output, the kernel's log meanwhile, and
    the log up to the first unit."""
    unit: str
    status: int
    output: str
    log: list[str]
    boot: list[str]


class Group(NamedTuple):
    """How a group is run: the command of a unit, the time limit of each, and the
    function that reads the results out of a unit's output and the kernel's log."""
    command: Callable[[Path, str], list[str]]
    seconds: int
    results: Callable[[Ended], Iterator[Result]]


def wait_for_kallsyms_selftest() -> None:
    """Wait until kallsyms_selftest, which boot starts in the background, has ended."""
    deadline = time.monotonic() + SELFTEST_SECONDS
    while time.monotonic() < deadline:
        log = subprocess.run(["dmesg"], stdout=subprocess.PIPE, text=True,
                             errors="replace", check=True).stdout
        if "kallsyms_selftest: start" not in log:
            return
        if re.search("kallsyms_selftest: (finish|abort)", log):
            return
        time.sleep(1)


# The results of a unit

def with_numbers_gone(text: str) -> str:
    """Return a message without its numbers and runs of spaces, which differ each time."""
    return re.sub(r"\s+", " ", re.sub(r"(0x)?\b\d[\da-f.]*\b", "N", text)).strip()


def by_status(ended: Ended) -> Iterator[Result]:
    """The unit itself, by its exit status."""
    yield KSELFTEST.get(ended.status, "FAIL"), ended.unit


def of_ktap(ended: Ended) -> Iterator[Result]:
    """The program, and each test of its TAP."""
    yield from by_status(ended)
    for result, name in ktap.results(ended.output.splitlines()):
        yield result, f"{ended.unit}: {name}"


def of_ftrace(ended: Ended) -> Iterator[Result]:
    """The test case, and the same in an instance, where it is run there."""
    found = re.findall(r"^\[\d+\](.*)\n?\t\[([A-Z]+)\]$", ended.output, re.MULTILINE)
    for words, result in found:
        instance = " (instance)" if words.startswith(" (instance)") else ""
        yield result, ended.unit + instance
    if ended.status == LATE or not found:
        yield ("TIMEOUT" if ended.status == LATE else "FAIL"), ended.unit


def of_livepatch(ended: Ended) -> Iterator[Result]:
    """The script, and each test that it announces."""
    yield from by_status(ended)
    for name, words in re.findall(r"^TEST: (.*?) \.\.\. ?(.*)$", ended.output,
                                  re.MULTILINE):
        result = {"ok": "PASS"}.get(words, "SKIP" if "SKIP" in words else "FAIL")
        yield result, f"{ended.unit}: {name}"


def of_bpf(ended: Ended) -> Iterator[Result]:
    """The program, and what test_verifier, test_lru_map and test_sockmap
    count one by one."""
    yield from by_status(ended)
    words = {"OK": "PASS", "Pass": "PASS", "FAIL": "FAIL", "SKIP": "SKIP"}
    for line in ended.output.splitlines():
        found = (re.match(r"#(\d+/[up] .*) (OK|FAIL|SKIP)\b", line)
                 or re.match(r"(test_\w+ \(.*\)): (Pass)$", line)
                 or re.match(r"#\s*\d+/\s*\d+\s+(.*):(OK|FAIL|SKIP)$", line))
        if found:
            yield words[found[2]], f"{ended.unit}: {found[1]}"


def of_test_progs(ended: Ended) -> Iterator[Result]:
    """The test and its subtests, by their full names."""
    yield from by_status(ended)
    words = {"OK": "PASS", "FAIL": "FAIL", "SKIP": "SKIP"}
    for name, word in re.findall(r"^#\d+(?:/\d+)? +(\S.*):(OK|FAIL|SKIP)\b",
                                 ended.output, re.MULTILINE):
        yield words[word], name


def of_test_bpf(ended: Ended) -> Iterator[Result]:
    """The suite by its summary, and each test.  A test's line may be cut in
    two by another message."""
    text = "\n".join(line.replace("test_bpf: ", "") for line in ended.log)
    parts = re.split(r"^#(\d+ .*?) (?=jited:|PASS|FAIL|$)", text, flags=re.MULTILINE)
    for name, words in zip(parts[1::2], parts[2::2]):
        words = words.partition("\n#")[0].partition("Summary")[0]
        result = "FAIL" if "FAIL" in words else "PASS" if "PASS" in words else "UNRESOLVED"
        yield result, f"{ended.unit}: #{name}"
    summary = re.search(r"Summary: (\d+) PASSED, (\d+) FAILED", text)
    yield ("PASS" if summary and summary[2] == "0" and ended.status == 0 else
           "TIMEOUT" if ended.status == LATE else "FAIL"), ended.unit


def of_boot(ended: Ended) -> Iterator[Result]:
    """The tests that ran during the boot."""
    yield from {"kunit": of_kunit, "kallsyms_selftest": of_kallsyms,
                "ftrace-startup": of_startup, "boot": of_log}[ended.unit](ended)


def of_log(ended: Ended) -> Iterator[Result]:
    """Whether the kernel complained during the boot."""
    yield ("SPLAT" if find_splats("\n".join(ended.boot)) else "PASS"), "boot: the kernel's log"


def of_kunit(_ended: Ended) -> Iterator[Result]:
    """Each suite, and each test of it."""
    for path in sorted(KUNIT.glob("*/results")):
        for result, name in ktap.results(path.read_text(encoding="utf-8").splitlines()):
            yield result, f"kunit: {name}"


def of_kallsyms(ended: Ended) -> Iterator[Result]:
    """Each message; kallsyms_selftest reports failures, and no success."""
    messages = [line for line in ended.boot if line.startswith("kallsyms_selftest: ")]
    bad = re.compile(r"failed|mismatch|abort|Never found|NULL lookup_addr|!=|\?!")
    for line in messages:
        if not re.search(r"[-|]{3}|^\S+ \|", line):
            yield "FAIL" if bad.search(line) else "PASS", with_numbers_gone(line)
    if not any(line.endswith(": finish") for line in messages):
        yield "FAIL", "kallsyms_selftest: finish"


def of_startup(ended: Ended) -> Iterator[Result]:
    """Each "Testing ...: PASSED"; the word may come some messages later."""
    text = "\n".join(ended.boot)
    parts = re.split(r"^(?:\S+ )?Testing ([^:\n]+): ?", text, flags=re.MULTILINE)
    for name, words in zip(parts[1::2], parts[2::2]):
        result = re.search(r"PASSED|FAILED|\bOK\b", words)
        if result:
            yield "FAIL" if result[0] == "FAILED" else "PASS", f"ftrace-startup: {name}"


# How a unit is run

def ftrace_command(tests: Path, unit: str, *options: str) -> list[str]:
    """ftracetest for one test case; its log goes where the guest may write."""
    return [str(tests / "ftracetest"), "-v", *options, "--logdir",
            tempfile.mkdtemp(prefix="ftrace-log-"), str(tests / "test.d" / unit)]


def test_bpf_command(_tests: Path, unit: str) -> list[str]:
    """Load the module, which runs one suite; a failure of it is in the log."""
    return ["sh", "-c", f"modprobe test_bpf test_suite={unit} && rmmod test_bpf"]


GROUPS: dict[str, Group] = {
    "boot": Group(lambda tests, unit: ["true"], 30, of_boot),
    "perf_events": Group(lambda tests, unit: [str(tests / unit)], 240, of_ktap),
    "ftrace": Group(ftrace_command, 150, of_ftrace),
    "livepatch": Group(lambda tests, unit: [str(tests / unit)], 300, of_livepatch),
    "bpf": Group(lambda tests, unit: [str(tests / unit)], 1800, of_bpf),
    "test_bpf": Group(test_bpf_command, 900, of_test_bpf),
    "test_progs": Group(lambda tests, unit: [str(tests / "test_progs"), "-a", unit],
                        120, of_test_progs),
}


def run_unit(group: Group, tests: Path, unit: str, log: KernelLog, boot: list[str]
             ) -> tuple[Ended, list[Result]]:
    """Run one unit; return its results, each name once."""
    status, lines = run_program(group.command(tests, unit), tests,
                                dict(os.environ, KDIR="/tmp"), group.seconds)
    ended = Ended(unit, status, "\n".join(lines), log.new_lines(), boot)
    results: dict[str, str] = {}
    for result, name in group.results(ended):
        # of several results for one name, the first bad one stays
        if results.get(name, "PASS") == "PASS":
            results[name] = result
    if find_splats("\n".join(ended.log)):
        results[f"{unit}: the kernel's log"] = "SPLAT"
    results = results or {unit: "UNRESOLVED"}
    return ended, [(result, name) for name, result in results.items()]


def keep_log(ended: Ended, results: list[Result], folder: Path) -> None:
    """Keep a unit's output on the host, unless all of it passed."""
    if all(result == "PASS" for result, _ in results):
        return
    folder.mkdir(exist_ok=True)
    text = "\n".join([f"exit status {ended.status}", ended.output, "--- the kernel's log",
                      *ended.log, ""])
    (folder / ended.unit.replace("/", "_")).write_text(text, encoding="utf-8")


def prepare_guest() -> None:
    """Set up what the tests expect: the loopback device, and BPF for every user."""
    subprocess.run(["ip", "link", "set", "lo", "up"], check=False)
    Path("/proc/sys/kernel/unprivileged_bpf_disabled").write_text("0", encoding="ascii")


def run(name: str, tests: Path, units: list[str], folder: Path) -> None:
    """Run units of a group; `folder` gets their progress and logs."""
    group = GROUPS[name]
    log = KernelLog()
    wait_for_kallsyms_selftest()
    prepare_guest()
    boot = log.new_lines()
    with open(folder / "progress", "w", encoding="utf-8", buffering=1) as progress:
        for unit in units:
            print(f"START {unit}", file=progress)
            start = time.monotonic()
            ended, results = run_unit(group, tests, unit, log, boot)
            keep_log(ended, results, folder / "logs")
            for result, test in results:
                print(f"{result} {unit}\t{test}", file=progress)
            print(f"END {unit}", file=progress)
            print(f"{unit}: {time.monotonic() - start:.0f} s", flush=True)
    log.close()

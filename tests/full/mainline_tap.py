#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""mainline_tap.py GROUP COMMAND...: run a program of mainline's tests, in the guest. What it
prints, then the tests that this has as TAP; the exit status is the program's."""
from __future__ import annotations

import re
import subprocess
import sys
from typing import Iterator

GOOD = ("ok", "OK", "PASS", "PASSED", "Pass", "finish")
# How the programs of a group print a test: its name and a word, in any order
PATTERNS: dict[str, list[str]] = {
    "boot": [r"\s*(?P<word>ok|not ok) \d+ (?P<name>\S+)(?: # (?P<skip>SKIP).*)?$",
             r".*\bkallsyms_selftest: (?P<word>finish|.*(?:failed|mismatch|abort|Never found).*)",
             r".*\bTesting (?P<name>[^:]+): (?:.* )?(?P<word>PASSED|FAILED|OK)\b"],
    "livepatch": [r"TEST: (?P<name>.*?) \.\.\. ?(?P<word>.*)$"],
    "bpf": [r"#(?P<name>\d+/[up] .*) (?P<word>OK|FAIL|SKIP)\b",
            r"(?P<name>test_\w+ \(.*\)): (?P<word>Pass)$",
            r"#\s*\d+/\s*\d+\s+(?P<name>.*):(?P<word>OK|FAIL|SKIP)$"],
    "test_progs": [r"#\d+(?:/\d+)? +(?P<name>\S.*):(?P<word>OK|FAIL|SKIP)\b"],
    "test_bpf": [r".*test_bpf: #(?P<name>\d+ .*?) (?:jited:.*)?(?P<word>PASS|FAIL)"]}


def results(group: str, lines: list[str]) -> Iterator[tuple[str, str]]:
    """The name of each test, with that of a suite of KUnit in front, and ok, not ok or SKIP."""
    suite = ""
    for line in lines:
        begun = re.match(r"\s*# Subtest: (\S+)", line)
        suite = f"{begun[1]} " if begun else suite
        for found in filter(None, (re.match(pattern, line) for pattern in PATTERNS[group])):
            parts = {key: text or "" for key, text in found.groupdict().items()}
            name = re.sub(r"\s*#\s*", " ", parts.get("name") or "kallsyms_selftest").strip()
            word = parts.get("skip") or ("SKIP" if "SKIP" in parts["word"] else parts["word"])
            yield (suite if group == "boot" else "") + name, \
                word if word == "SKIP" else "ok" if word in GOOD else "not ok"
            break


def main(group: str, command: list[str]) -> int:
    """Run the command; its exit status."""
    done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, errors="replace", check=False)
    found: dict[str, str] = {}
    for name, word in results(group, done.stdout.splitlines()):
        if found.get(name, "ok") == "ok":   # of several of one name, the first bad one stays
            found[name] = word
    print(re.sub("^", "# ", done.stdout, flags=re.MULTILINE))
    print(f"TAP version 13\n1..{len(found)}")
    for number, (name, word) in enumerate(found.items(), 1):
        print(f"ok {number} {name} # SKIP" if word == "SKIP" else f"{word} {number} {name}")
    if done.returncode == 4:
        print("SKIP: see above")
    return done.returncode if done.returncode >= 0 else 128 - done.returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))

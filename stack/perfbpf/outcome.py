# SPDX-License-Identifier: GPL-2.0
"""How a run of the guest ends: the exit statuses, and the rule that picks one."""
from __future__ import annotations

import enum
import re
from pathlib import Path
from typing import NamedTuple

from perfbpf.splats import DEATH, find_leaks, find_splats


class Outcome(enum.IntEnum):
    """What ended a run; the value is the exit status of stack/guest."""
    PASSED = 0
    FAILED = 1
    INFRA = 3
    SPLAT = 4
    DIED = 5
    TIMEOUT = 6


MEANING = {
    Outcome.PASSED: "the command passed",
    Outcome.FAILED: "the command failed",
    Outcome.INFRA: "the infrastructure broke",
    Outcome.SPLAT: "the kernel complained (WARN, BUG, KASAN, ...)",
    Outcome.DIED: "the guest died (panic, early exit)",
    Outcome.TIMEOUT: "the time limit was reached",
}
# The command came to its end, whatever its result.
ENDED = (Outcome.PASSED, Outcome.FAILED, Outcome.SPLAT)


class Infra(Exception):
    """The machine around the guest is broken; the text names the fault and the remedy."""


class Run(NamedTuple):
    """A run that ended: whether it was killed for time, and how long it took."""
    timed_out: bool
    seconds: float


def meaning(status: int) -> str:
    """An exit status of stack/guest in words."""
    return MEANING[Outcome(status)] if status in list(Outcome) else f"unknown status {status}"


def status_table() -> str:
    """All exit statuses, one a line, for a help text."""
    return "\n".join(f"  {outcome.value} {words}" for outcome, words in MEANING.items())


def read_text(path: Path) -> str:
    """Return a log without carriage returns; "" when it does not exist."""
    try:
        return path.read_bytes().decode(errors="replace").replace("\r", "")
    except FileNotFoundError:
        return ""


def tail(text: str, count: int = 15) -> str:
    """Return the last lines of a text, indented for the terminal."""
    return "\n".join("    " + line for line in text.splitlines()[-count:])


def complained(results: Path) -> bool:
    """Did the kernel of a run print a splat or panic, as far as its files tell?"""
    logs = [read_text(results / name) for name in ("console.log", "dmesg")]
    return any(find_splats(log) or DEATH.search(log) for log in logs)


def judge_unfinished(run: Run, results: Path, console: str) -> tuple[Outcome, str]:
    """Judge a run whose command did not come to its end."""
    if "Linux version" not in console:
        return (Outcome.INFRA, "the guest did not start: QEMU or virtme-ng failed before the"
                " kernel's first line")
    if DEATH.search(console):
        return Outcome.DIED, "the guest's kernel panicked"
    if run.timed_out:
        return (Outcome.TIMEOUT, f"time limit reached after {run.seconds:.0f} s, the guest was"
                " killed; --timeout SECONDS sets a longer limit")
    if not (results / "booted").exists():
        return Outcome.INFRA, "the guest's kernel started but its init did not reach the command"
    return Outcome.DIED, "the guest went away before the command ended"


def judge(run: Run, results: Path) -> tuple[Outcome, str]:
    """Return the outcome of a run, by the files that it left, and one line with the reason."""
    console = read_text(results / "console.log")
    output = read_text(results / "output.log")
    broken = re.search(r"^guest-init: cannot .*", output, re.MULTILINE)
    if broken:
        return Outcome.INFRA, broken.group(0)
    status = read_text(results / "status").strip()
    if not status.isdigit():
        return judge_unfinished(run, results, console)
    if DEATH.search(console):
        return Outcome.DIED, "the guest's kernel panicked after the command"
    splats = find_splats(read_text(results / "dmesg")) or find_splats(console)
    splats += find_leaks(read_text(results / "kmemleak"))
    if splats:
        listed = "\n".join(splats)
        (results / "splats").write_text(listed + "\n", encoding="utf-8")
        return (Outcome.SPLAT, f"the kernel complained {len(splats)} times"
                f" (status of the command: {status}):\n{tail(listed)}")
    if status != "0":
        return Outcome.FAILED, f"the command failed with status {status}"
    return Outcome.PASSED, MEANING[Outcome.PASSED]

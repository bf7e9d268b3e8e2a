# SPDX-License-Identifier: GPL-2.0
"""Lint: each patch for itself, its message and its style."""
from __future__ import annotations

import email
import fnmatch
import hashlib
import os
import re
import subprocess
from concurrent.futures import ThreadPoolExecutor
from email.header import decode_header, make_header
from pathlib import Path

from perfbpf.git import ToolError
from perfbpf.lint_context import Check, Context, Findings
from perfbpf.series import slug

# Documentation/process/submitting-patches.rst: "no more than 70-75 characters".
SUBJECT_LENGTH = 75
PREFIX = re.compile(r"^(\S[^:]*: )+")
CHECKPATCH_LINE = re.compile(
    r"(?P<where>[^:]*):(?P<line>\d*):\s*(?:ERROR|WARNING|CHECK):(?P<type>\w+):\s*(?P<text>.*)")


def subject_of(patch: Path) -> str:
    """Return a patch's subject, unfolded, with its [PATCH]."""
    subject = email.message_from_bytes(patch.read_bytes())["Subject"]
    return re.sub(r"\s*\n\s*", " ", str(make_header(decode_header(str(subject)))))


def check_subjects(ctx: Context) -> Findings:
    """No commit waits to be squashed, and a subject says what the patch does."""
    for patch in ctx.patches:
        subject = subject_of(patch).removeprefix("[PATCH] ")
        if re.match(r"(fixup|squash|amend)!", subject):
            yield f"{ctx.name(patch)}: is a fixup: `git rebase --autosquash -i base` in" \
                  " build/linux, then `make refresh`"
        elif PREFIX.sub("", subject).startswith("Let "):
            yield f"{ctx.name(patch)}: the subject begins with \"Let\": name what the patch" \
                  " does (Fix, Add, Keep, Report, ...), then `make refresh`"
        elif len(subject) > SUBJECT_LENGTH:
            yield f"{ctx.name(patch)}: the subject has {len(subject)} characters, over" \
                  f" {SUBJECT_LENGTH}: shorten it in build/linux, then `make refresh`"


def check_messages(ctx: Context) -> Findings:
    """A message ends with a sign-off: anything behind it was an editor's."""
    for patch in ctx.patches:
        message = patch.read_text(errors="replace").split("\n---\n")[0].rstrip()
        if not re.search(r"\nSigned-off-by: .+ <.+>$", message):
            yield f"{ctx.name(patch)}: the last line of its message is no Signed-off-by" \
                  f" ({message.splitlines()[-1][:60]}): reword it in build/linux, then" \
                  " `make refresh`"


class Allowed:
    """stack/checkpatch.allow: TYPE PATTERN # reason, one a line."""

    def __init__(self, path: Path) -> None:
        self.rules: list[tuple[str, str, int]] = []
        self.bad: list[str] = []
        self.used: set[int] = set()
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            rule, _, reason = line.partition("#")
            fields = rule.split()
            if not fields:
                continue
            if len(fields) != 2 or not reason.strip():
                self.bad.append(f"stack/checkpatch.allow:{number}: is not \"TYPE PATTERN"
                                " # reason\": write it so")
            else:
                self.rules.append((fields[0], fields[1], number))

    def allows(self, kind: str, *names: str) -> bool:
        """Tell whether a finding of this kind, in a patch or file of these names, is false."""
        for rule, pattern, number in self.rules:
            if rule == kind and any(fnmatch.fnmatchcase(name, pattern) for name in names):
                self.used.add(number)
                return True
        return False

    def unused(self) -> Findings:
        """Yield the rules that allowed nothing."""
        for kind, pattern, number in self.rules:
            if number not in self.used:
                yield f"stack/checkpatch.allow:{number}: {kind} {pattern} is of no use any more:" \
                      " remove it"


def run_checkpatch(ctx: Context, patch: Path) -> str:
    """Return checkpatch's findings on a patch, one a line.

    They depend on the patch and on checkpatch.pl only, so they are kept by the
    sum of both: a patch that did not change costs nothing. The directory holds
    no git repository, so checkpatch does not look for commits that the
    one-commit base does not have; it keeps a list of names of its own there.
    """
    script = ctx.base / "scripts" / "checkpatch.pl"
    cwd = ctx.cache / "checkpatch"
    cwd.mkdir(exist_ok=True)
    kept = cwd / hashlib.sha256(script.read_bytes() + patch.read_bytes()).hexdigest()
    if kept.exists():
        return kept.read_text(encoding="utf-8")
    done = subprocess.run(
        ["perl", str(script), f"--root={ctx.base}", "--strict", "--terse", "--show-types",
         "--showfile", "--no-summary", "--color=never", str(patch)],
        cwd=cwd, env=dict(os.environ, GIT_DIR="none"), capture_output=True, text=True,
        errors="replace", check=False)
    if done.returncode not in (0, 1) or done.stderr.strip():
        raise ToolError(f"checkpatch.pl on {patch.name}: {done.stderr.strip()[:300]}")
    partial = kept.with_suffix(f".{os.getpid()}")
    partial.write_text(done.stdout, encoding="utf-8")
    partial.rename(kept)
    return done.stdout


def check_checkpatch(ctx: Context) -> Findings:
    """checkpatch --strict finds nothing that is not listed with its reason."""
    allowed = Allowed(ctx.top / "stack" / "checkpatch.allow")
    yield from allowed.bad
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        outputs = list(pool.map(lambda patch: run_checkpatch(ctx, patch), ctx.patches))
    for patch, output in zip(ctx.patches, outputs):
        for line in output.splitlines():
            match = CHECKPATCH_LINE.match(line)
            if match and not allowed.allows(match["type"], slug(patch.name), match["where"]):
                yield f"{ctx.name(patch)}: checkpatch: {match['where']}:{match['line']}:" \
                      f" {match['type']}: {match['text']}: mend it in build/linux, or list it" \
                      " with the reason in stack/checkpatch.allow"
    if ctx.patches:
        yield from allowed.unused()


CHECKS: list[Check] = [check_subjects, check_messages, check_checkpatch]

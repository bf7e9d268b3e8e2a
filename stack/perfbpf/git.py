# SPDX-License-Identifier: GPL-2.0
"""git without the user's configuration, so that its output is the same everywhere."""
from __future__ import annotations

import os
import subprocess
from pathlib import Path


class ToolError(Exception):
    """The tooling cannot go on. One line: what failed, where, why, what to do."""


def environment() -> dict[str, str]:
    """Return an environment in which no git setting of the user's has effect."""
    env = {k: v for k, v in os.environ.items() if not k.startswith("GIT_")}
    env.update(GIT_CONFIG_NOSYSTEM="1", GIT_CONFIG_GLOBAL="/dev/null",
               GIT_COMMITTER_NAME="perf-bpf", GIT_COMMITTER_EMAIL="perf-bpf@localhost",
               GIT_AUTHOR_NAME="perf-bpf", GIT_AUTHOR_EMAIL="perf-bpf@localhost",
               LC_ALL="C")
    return env


def git(cwd: Path, *args: str, stdin: bytes | None = None) -> bytes:
    """Run git in cwd and return its stdout.

    Raises ToolError with the command and git's message when it fails.
    """
    done = subprocess.run(
        ["git", "-c", "safe.directory=*", "-c", "gc.auto=0", "-c", "core.hooksPath=/dev/null",
         "-c", "core.quotePath=false", *args],
        cwd=cwd, env=environment(), input=stdin, capture_output=True, check=False)
    if done.returncode:
        words = " ".join((done.stdout + done.stderr).decode(errors="replace").split())
        raise ToolError(f"git {args[0]} in {cwd}: {words[:600]}")
    return done.stdout


def git_text(cwd: Path, *args: str) -> str:
    """Run git in cwd and return its stdout as text, without the last newline."""
    return git(cwd, *args).decode(errors="replace").rstrip("\n")


class AmError(ToolError):
    """git am refused `patch`; None when it did not get as far as a patch."""

    def __init__(self, patch: Path | None, words: str) -> None:
        super().__init__(words)
        self.patch = patch


def am(repo: Path, patches: list[Path]) -> None:
    """Apply patches as commits that are the same on every machine.

    The committer is fixed, and the committer's date is the author's. Raises
    AmError, and leaves the branch as it was, when one does not apply.
    """
    if not patches:
        return
    try:
        git(repo, "am", "-q", "--keep-non-patch", "--committer-date-is-author-date",
            *map(str, patches))
    except ToolError as error:
        state = repo / ".git" / "rebase-apply"
        if not state.exists():
            raise AmError(None, str(error)) from error
        number = int((state / "next").read_text(encoding="ascii"))
        git(repo, "am", "--abort")
        raise AmError(patches[number - 1], str(error)) from error

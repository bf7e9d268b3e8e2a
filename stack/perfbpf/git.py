# SPDX-License-Identifier: GPL-2.0
"""git without the user's configuration."""
from __future__ import annotations

import os
import subprocess
from pathlib import Path


class ToolError(Exception):
    """The tooling cannot go on. One line: what failed, where, why, what to do."""


class AmError(ToolError):
    """git am refused `patch`; None when it did not get as far as a patch."""

    def __init__(self, patch: Path | None, words: str) -> None:
        super().__init__(words)
        self.patch = patch


def git(cwd: Path, *args: str, stdin: bytes | None = None) -> bytes:
    """Run git in cwd and return its stdout (ToolError: the command, and git's message)."""
    env = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    who = {f"GIT_{role}_{key}": value for role in ("AUTHOR", "COMMITTER")
           for key, value in (("NAME", "perf-bpf"), ("EMAIL", "perf-bpf@localhost"))}
    env.update(who, GIT_CONFIG_NOSYSTEM="1", GIT_CONFIG_GLOBAL="/dev/null", LC_ALL="C")
    done = subprocess.run(
        ["git", "-c", "safe.directory=*", "-c", "gc.auto=0", "-c", "core.hooksPath=/dev/null",
         "-c", "core.quotePath=false", *args],
        cwd=cwd, env=env, input=stdin, capture_output=True, check=False)
    if done.returncode:
        words = " ".join((done.stdout + done.stderr).decode(errors="replace").split())
        raise ToolError(f"git {args[0]} in {cwd}: {words[:600]}")
    return done.stdout


def git_text(cwd: Path, *args: str) -> str:
    """Run git in cwd and return its stdout as text, without the last newline."""
    return git(cwd, *args).decode(errors="replace").rstrip("\n")


def am(repo: Path, patches: list[Path]) -> None:
    """Apply patches as commits that are the same on every machine. Raises AmError, and leaves
    the branch as it was, when one does not apply."""
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
        patch = patches[number - 1]
        raise AmError(patch, f"{patch.parent.name}/{patch.name}: {error}") from error


def touched(patch: Path) -> list[str]:
    """The kernel paths a patch touches (ToolError: it is damaged). From a place outside any
    repository: inside one, git apply would leave out what is not under its directory."""
    out = git(Path("/"), "apply", "--numstat", "-z", str(patch))
    return [entry.split("\t", 2)[2] for entry in out.decode().split("\0") if entry]


def diffstat(repo: Path, old: str, new: str) -> str:
    """The diffstat of a cover letter."""
    return git(repo, "diff", "--no-renames", "--stat=76", old, new).decode()

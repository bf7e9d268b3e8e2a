# SPDX-License-Identifier: GPL-2.0
"""Lint: this repository's own scripts and texts.

pylint, mypy and shellcheck take longer than all else together, so a file that
they had nothing to say about is remembered, by its content and that of all
that it imports from this repository (Passed).
"""
from __future__ import annotations

import ast
import hashlib
import importlib.metadata
import os
import re
import subprocess
import sys
from pathlib import Path

from perfbpf import links
from perfbpf.git import ToolError
from perfbpf.lint_context import Check, Context, Findings
from perfbpf.mirror import is_mirror
from perfbpf.paths import build_dir

SPDX = "SPDX-License-Identifier: GPL-2.0"
# No comment can stand in these, or they are text of others.
NO_SPDX = {"BASE", "COPYING", "MAINTAINERS.snippet"}
# A repository may live in these without their names telling of a machine.
COMMON_PARENTS = {"/", "/tmp", "/root", "/home", "/opt", "/srv", "/mnt", "/usr/src"}
# As in pyproject.toml: where modules are imported from.
MODULE_DIRS = ("stack", "tests", "tests/guest", "tests/kernel", "tests/perf", "tests/series",
               "tests/tooling", "tests/full", "bench")


def text_of(path: Path) -> str | None:
    """Return a file's text, None if it is binary."""
    data = path.read_bytes()
    return None if b"\0" in data else data.decode(errors="replace")


def scripts(ctx: Context, pattern: str) -> list[Path]:
    """Return the repository's own files that match a pattern in their first lines."""
    found = []
    for path in ctx.own_files():
        if is_mirror(ctx.top, path) or path.suffix == ".patch":
            continue
        if re.search(pattern, path.read_bytes()[:200].decode(errors="replace")):
            found.append(path)
    return found


def python_files(ctx: Context) -> list[Path]:
    """Return the repository's own Python, commands without a suffix included."""
    found = set(scripts(ctx, r"\A#!.*python"))
    found |= {path for path in ctx.own_files()
              if path.suffix == ".py" and not is_mirror(ctx.top, path)}
    return sorted(found)


class Passed:
    """Which keys a tool had nothing to say about, as empty files of their names."""

    def __init__(self, ctx: Context, tool: str) -> None:
        self._folder = ctx.cache / tool
        self._folder.mkdir(exist_ok=True)

    def __contains__(self, key: str) -> bool:
        return (self._folder / key).exists()

    def add(self, key: str) -> None:
        """Remember a key."""
        (self._folder / key).touch()


def check_shell(ctx: Context) -> Findings:
    """shellcheck finds nothing in the repository's own scripts."""
    passed = Passed(ctx, "shellcheck")
    tool = subprocess.run(["shellcheck", "--version"], stdout=subprocess.PIPE, check=False).stdout
    todo = {}
    for path in scripts(ctx, r"\A#!.*\b(ba|da)?sh\b|# shellcheck shell="):
        text = path.read_bytes()
        sourced = re.findall(rb"^# shellcheck source=(\S+)$", text, re.M)
        more = [(ctx.top / name.decode()).read_bytes() for name in sourced]
        key = hashlib.sha256(b"\0".join([tool, text, *more])).hexdigest()
        if key not in passed:
            todo[str(path.relative_to(ctx.top))] = key
    if not todo:
        return
    done = subprocess.run(["shellcheck", "-x", "-P", ".", "-f", "gcc", *todo], cwd=ctx.top,
                          capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1):
        raise ToolError(f"shellcheck: {done.stderr.strip()[:300]}")
    for line in done.stdout.splitlines():
        todo.pop(line.partition(":")[0], None)
        yield f"{line}: mend it (shellcheck.net/wiki explains)"
    for key in todo.values():
        passed.add(key)


def check_python(ctx: Context) -> Findings:
    """The repository's own Python compiles."""
    for path in python_files(ctx):
        try:
            compile(path.read_bytes(), str(path), "exec")
        except SyntaxError as error:
            yield f"{path.relative_to(ctx.top)}:{error.lineno}: {error.msg}: mend it"


def check_text(ctx: Context) -> Findings:
    """Every file has its licence, and none has a path of this machine."""
    places = {f"{ctx.top}/", f"{build_dir(ctx.top)}/"}
    if str(ctx.top.parent) not in COMMON_PARENTS:
        places.add(f"{ctx.top.parent}/")
    for path in ctx.own_files():
        name = str(path.relative_to(ctx.top))
        text = text_of(path)
        if text is None:
            continue
        for place in places:
            if place in text:
                line = text[:text.index(place)].count("\n") + 1
                yield f"{name}:{line}: holds this machine's path {place}: make it relative"
        if name in NO_SPDX or is_mirror(ctx.top, path) or name.startswith("patches/"):
            continue
        if SPDX not in "\n".join(text.splitlines()[:10]):
            yield f"{name}: has no \"{SPDX}\" in its first lines: add it"


def check_links(ctx: Context) -> Findings:
    """Each relative link of a Markdown file leads to a file."""
    for path in ctx.own_files():
        if path.suffix == ".md" and not is_mirror(ctx.top, path):
            for line, target in links.broken(path):
                yield f"{path.relative_to(ctx.top)}:{line}: links to {target}, which is not" \
                      " there: mend the link"


# pylint and mypy

def imports(path: Path) -> set[str]:
    """Return the modules that a file imports, as they are written; none of a broken one."""
    found: set[str] = set()
    try:
        tree = ast.parse(path.read_bytes())
    except SyntaxError:
        return set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module)
            found.update(f"{node.module}.{alias.name}" for alias in node.names)
    return found


def dependencies(ctx: Context, files: list[Path]) -> dict[Path, set[Path]]:
    """Return the files of the repository that each file imports, directly or not."""
    modules = {}
    for path in files:
        for directory in MODULE_DIRS:
            folder = ctx.top / directory
            if path.suffix == ".py" and path.is_relative_to(folder):
                modules[".".join(path.relative_to(folder).with_suffix("").parts)] = path
    direct = {path: {modules[name] for name in imports(path) if name in modules}
              for path in files}
    found = {}
    for path in files:
        reached: set[Path] = set()
        left = [path]
        while left:
            one = left.pop()
            if one not in reached:
                reached.add(one)
                left.extend(direct[one])
        found[path] = reached
    return found


def content_keys(ctx: Context, files: list[Path], more: bytes) -> dict[Path, str]:
    """Return, for each file, one number for it, what it imports, and `more`."""
    sums = {path: hashlib.sha256(path.read_bytes()).hexdigest() for path in files}
    keys = {}
    for path, reached in dependencies(ctx, files).items():
        text = "\n".join([str(path.relative_to(ctx.top)), sums[path],
                          *sorted(sums[one] for one in reached)])
        keys[path] = hashlib.sha256(more + text.encode()).hexdigest()
    return keys


def run_tool(ctx: Context, *words: str) -> subprocess.CompletedProcess[str]:
    """Run a Python tool on the repository, without any other configuration of it."""
    path = ":".join(str(ctx.top / directory) for directory in MODULE_DIRS)
    env = {**os.environ, "PYTHONPATH": path, "MYPYPATH": path, "PYLINTHOME": str(ctx.cache),
           "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run([sys.executable, "-m", *words], cwd=ctx.top, env=env, capture_output=True,
                          text=True, check=False)


def version(tool: str) -> bytes:
    """Return a tool's version. Raises ToolError when it is not there."""
    try:
        return importlib.metadata.version(tool).encode()
    except importlib.metadata.PackageNotFoundError:
        raise ToolError(f"there is no {tool}: run `make setup`") from None


def check_pylint(ctx: Context) -> Findings:
    """pylint finds nothing in the repository's own Python."""
    config = ctx.top / "pyproject.toml"
    files = python_files(ctx)
    keys = content_keys(ctx, files, version("pylint") + config.read_bytes())
    passed = Passed(ctx, "pylint")
    todo = [path for path in files if keys[path] not in passed]
    if todo:
        done = run_tool(ctx, "pylint", f"--rcfile={config}", "--score=n", f"-j{os.cpu_count()}",
                        "--msg-template={path}:{line}: {symbol}: {msg}",
                        *(str(path.relative_to(ctx.top)) for path in todo))
        if done.returncode & 32 or done.returncode < 0:
            raise ToolError(f"pylint: {done.stderr.strip()[-300:]}")
        found = [line for line in done.stdout.splitlines() if not line.startswith("*****")]
        for line in found:
            yield f"{line}: mend it"
        bad = {line.partition(":")[0] for line in found}
        for path in todo:
            if str(path.relative_to(ctx.top)) not in bad:
                passed.add(keys[path])


def batches(files: list[Path]) -> list[list[Path]]:
    """Return the files in lists without two commands of one name, which mypy refuses."""
    lists: list[list[Path]] = []
    for path in files:
        for batch in lists:
            if path.suffix or path.name not in {other.name for other in batch}:
                batch.append(path)
                break
        else:
            lists.append([path])
    return lists


def check_types(ctx: Context) -> Findings:
    """mypy finds nothing in the repository's own Python."""
    config = ctx.top / "pyproject.toml"
    files = python_files(ctx)
    keys = content_keys(ctx, files, version("mypy") + config.read_bytes())
    whole = hashlib.sha256("\n".join(sorted(keys.values())).encode()).hexdigest()
    passed = Passed(ctx, "mypy-passed")
    if whole in passed:
        return
    found: set[str] = set()
    for batch in batches(files):
        done = run_tool(ctx, "mypy", "--config-file", str(config), "--cache-dir",
                        str(ctx.cache / "mypy"), "--scripts-are-modules", "--no-error-summary",
                        *(str(path.relative_to(ctx.top)) for path in batch))
        if done.returncode not in (0, 1):
            raise ToolError(f"mypy: {(done.stdout + done.stderr).strip()[-300:]}")
        found.update(line for line in done.stdout.splitlines() if ": note: " not in line)
    for line in sorted(found):
        yield f"{line}: mend it"
    if not found:
        passed.add(whole)


CHECKS: list[Check] = [check_shell, check_python, check_text, check_links]
# They run beside all other checks.
SLOW_CHECKS: list[Check] = [check_types, check_pylint]

# SPDX-License-Identifier: GPL-2.0
"""Lint: what is made from the patches, or lists what they create."""
from __future__ import annotations

import fnmatch
import re
import shutil
import subprocess

from perfbpf import mirror
from perfbpf.git import ToolError, git, git_text
from perfbpf.lint_context import Check, Context, Findings


def check_mirror(ctx: Context) -> Findings:
    """The full-text copies are what the patches create, no more and no less."""
    files = mirror.expected(ctx.reduced.repo, "base", ctx.stacks.commit(ctx.series.names()))
    for name, blob in sorted(files.items()):
        path = ctx.top / name
        if not path.is_file():
            yield f"{name}: is missing, but `make refresh` writes it: run that"
        elif path.read_bytes() != blob.data:
            yield f"{name}: differs from what patches/ create: put the change into a commit in" \
                  " build/linux; `make refresh` writes this file"
        elif bool(path.stat().st_mode & 0o100) != blob.executable:
            yield f"{name}: its executable bit differs from what patches/ create: `make refresh`"
    for name in sorted(mirror.mirror_files(ctx.top) - set(files)):
        yield f"{name}: no patch creates it: commit it in build/linux and `make refresh`," \
              " or remove it"
    attributes = (ctx.top / ".gitattributes").read_text(encoding="utf-8").splitlines()
    for directory in mirror.directories(files):
        line = f"/{directory}/** linguist-generated"
        if line not in attributes:
            yield f".gitattributes: does not mark {directory}/ as generated: add the line" \
                  f" \"{line}\""


def owns(entry: str, name: str) -> bool:
    """Tell whether an F: entry has a file: a directory all below it, a pattern one level."""
    if entry.endswith("/"):
        return name.startswith(entry)
    return name.count("/") == entry.count("/") and fnmatch.fnmatchcase(name, entry)


def check_maintainers(ctx: Context) -> Findings:
    """MAINTAINERS.snippet names only files that the patched tree has, and every
    file that the series creates.

    get_maintainer.pl wants the names of a whole tree from git, and a few files
    that say this is one. An index gives the names without a checkout.
    """
    snippet = ctx.top / "MAINTAINERS.snippet"
    if not snippet.exists():
        yield "MAINTAINERS.snippet: is missing: write it"
        return
    tree = ctx.tmp / "names"
    git(ctx.tmp, "init", "-q", str(tree))
    (tree / ".git/objects/info/alternates").write_text(f"{ctx.base}/.git/objects\n",
                                                       encoding="utf-8")
    git(tree, "read-tree", git_text(ctx.base, "rev-parse", "base^{tree}"))
    if ctx.patches:
        git(tree, "apply", "--cached", *map(str, ctx.patches))
    for name in ("COPYING", "CREDITS", "Kbuild", "Makefile", "README"):
        (tree / name).touch()
    for name in ("Documentation", "arch", "include", "drivers", "fs", "init", "ipc", "kernel",
                 "lib", "scripts"):
        (tree / name).mkdir()
    shutil.copy(snippet, tree / "MAINTAINERS")
    done = subprocess.run(["perl", str(ctx.base / "scripts" / "get_maintainer.pl"),
                           "--self-test=sections,patterns"], cwd=tree, capture_output=True,
                          text=True, check=False)
    if done.returncode:
        raise ToolError(f"get_maintainer.pl: {done.stderr.strip()[:300]}")
    for line in (done.stdout + done.stderr).splitlines():
        yield f"MAINTAINERS.snippet: {line.replace('./MAINTAINERS:', 'line ')}: mend the entry"
    owned = [mirror.mirror_path(entry) for entry in
             re.findall(r"^F:\s+(\S+)$", snippet.read_text(encoding="utf-8"), re.M)]
    whole = ctx.stacks.commit(ctx.series.names())
    for name in sorted(mirror.created(ctx.reduced.repo, "base", whole)):
        if not any(owns(entry, name) for entry in owned):
            yield f"MAINTAINERS.snippet: no F: entry has {name}, which the series creates: add one"


CHECKS: list[Check] = [check_mirror, check_maintainers]

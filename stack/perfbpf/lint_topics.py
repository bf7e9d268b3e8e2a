# SPDX-License-Identifier: GPL-2.0
"""Lint: are series and patches/ one thing, and does each topic apply, on what it
needs and in the whole?"""
from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

from perfbpf import series as series_file
from perfbpf.git import AmError, ToolError, git, git_text
from perfbpf.lint_context import Check, Context, Findings
from perfbpf.reduced import diffstat
from perfbpf.series import COVER, README, STAT_BEGIN, STAT_END


def check_files(ctx: Context) -> Findings:
    """Every file in patches/ is where series has it, and the other way round."""
    names = ctx.series.patches()
    listed = set(names)
    for name in sorted({name for name in names if names.count(name) > 1}):
        yield f"series: names {name} twice: take one out"
    for topic in ctx.series.topics:
        if not topic.patches:
            yield f"series:{topic.line}: the topic {topic.name} has no patch: add one, or take" \
                  " its block out"
        for name, expected in zip(topic.patches, ctx.series.expected(topic)):
            if not (ctx.top / "patches" / name).is_file():
                yield f"series: names {name}, which is not in patches/: restore it, or take the" \
                      " line out"
            elif name != expected:
                yield f"series: {name} has the wrong directory or number for its place in the" \
                      f" topic {topic.name}: it must be {expected}; `make refresh` renames it"
        yield from _check_cover(ctx.top / "patches" / ctx.series.directory(topic.name) / COVER)
        listed.add(f"{ctx.series.directory(topic.name)}/{COVER}")
    for path in sorted((ctx.top / "patches").rglob("*")):
        name = str(path.relative_to(ctx.top / "patches"))
        if path.is_file() and name not in listed and name != README:
            yield f"patches/{name}: is not in series: add it to its topic there, or remove it"


def _check_cover(cover: Path) -> Findings:
    try:
        series_file.read_cover(cover)
    except ToolError as error:
        yield str(error)


def check_am(ctx: Context) -> Findings:
    """git am takes every patch, in order, on the base."""
    try:
        ctx.stacks.commit(ctx.series.names())
    except AmError as error:
        name = ctx.name(error.patch) if error.patch else "series"
        yield f"{name}: git am refuses it ({error}): mend it in build/linux and `make refresh`"


def check_topics(ctx: Context) -> Findings:
    """Each topic applies on nothing but what it needs."""
    for topic in ctx.series.topics:
        closure = ctx.series.closure(topic.name)
        try:
            ctx.stacks.commit((*closure, topic.name))
        except AmError as error:
            missing = _missing(ctx, topic.name)
            name = ctx.name(error.patch) if error.patch else "series"
            yield f"{name}: does not apply on what the topic {topic.name} needs" \
                  f" ({', '.join(closure) or 'none'}) alone: it also builds on" \
                  f" {', '.join(missing) or 'nothing that could be found'}: add that to the" \
                  " \"# needs:\" in series, or move the change" \
                  f" ({' '.join(str(error).split())[-160:]})"


def _missing(ctx: Context, name: str) -> list[str]:
    """Return earlier topics without which a topic does not apply, besides its needs.

    All earlier topics do, as the series applies; take out one after the other
    as long as the topic still applies without it.
    """
    order = ctx.series.names()
    needed = set(ctx.series.closure(name))
    extra = [other for other in order[:order.index(name)] if other not in needed]
    for candidate in list(extra):
        fewer = [other for other in extra if other != candidate]
        wanted = needed | set(fewer)
        for other in fewer:
            wanted |= set(ctx.series.closure(other))
        if candidate not in wanted and \
                ctx.stacks.applies((*[other for other in order if other in wanted], name)):
            extra = fewer
    return extra


def check_quilt(ctx: Context) -> Findings:
    """quilt takes them too, without fuzz, and makes the same tree."""
    if not ctx.patches:
        return
    work = ctx.tmp / "quilt"
    git(ctx.tmp, "clone", "-q", str(ctx.reduced.repo), str(work))
    git(work, "checkout", "-q", "--detach", "base")
    env = dict(os.environ, QUILT_PATCHES=str(ctx.top / "patches"),
               QUILT_SERIES=str(ctx.top / "series"), LC_ALL="C")
    done = subprocess.run(["quilt", "--quiltrc", "-", "push", "-a", "-q", "--fuzz=0"], cwd=work,
                          env=env, capture_output=True, text=True, errors="replace", check=False)
    if done.returncode:
        names = re.findall(r"[Aa]pplying patch \S*?([^/\s]+/[^/\s]+\.patch)", done.stdout)
        words = " ".join((done.stdout + done.stderr).split())[-400:]
        yield f"patches/{names[-1] if names else '?'}: quilt push refuses it without fuzz" \
              f" ({words}): mend it in build/linux and `make refresh`"
        return
    shutil.rmtree(work / ".pc")
    git(work, "add", "-f", "-A")
    whole = ctx.stacks.commit(ctx.series.names())
    if git_text(work, "write-tree") != ctx.reduced.tree(whole):
        differ = git_text(work, "diff", "--cached", "--name-only", whole).split()
        yield f"series: git am and quilt push give different trees (in {', '.join(differ[:5])}):" \
              " see that the patch has no rename, mode change or binary file"


def check_diffstats(ctx: Context) -> Findings:
    """The diffstat of each cover letter is that of its topic's patches."""
    names = ctx.series.names()
    for number, topic in enumerate(ctx.series.topics):
        cover = ctx.top / "patches" / ctx.series.directory(topic.name) / COVER
        stat = diffstat(ctx.reduced.repo, ctx.stacks.commit(names[:number]),
                        ctx.stacks.commit(names[:number + 1]))
        if series_file.split_cover(cover)[1] != stat:
            yield f"{ctx.name(cover)}: what is between \"{STAT_BEGIN.strip()}\" and" \
                  f" \"{STAT_END.strip()}\" is not the diffstat of the patches: `make refresh`"


def debian_hunks(path: Path) -> tuple[str, dict[str, list[tuple[int, int]]]]:
    """Return the tree id, and by file the (first line, lines), of stack/debian-hunks.txt."""
    tree = ""
    hunks: dict[str, list[tuple[int, int]]] = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.startswith("# tree "):
            tree = line.split()[2]
        elif line and not line.startswith("#"):
            name, numbers = line.rsplit(":", 1)
            first, count = map(int, numbers.split(","))
            hunks.setdefault(name, []).append((first, count))
    return tree, hunks


def scramble(path: Path, hunks: list[tuple[int, int]]) -> None:
    """Replace the given line ranges by lines that no patch can know."""
    lines = path.read_text(encoding="utf-8", errors="surrogateescape").splitlines(keepends=True)
    for first, count in sorted(hunks, reverse=True):
        # diff's ranges: with no lines, the place is after `first`.
        start = first - 1 if count else first
        lines[start:start + count] = [f"other text {first}.{n}\n" for n in range(count + 2)]
    path.write_text("".join(lines), encoding="utf-8", errors="surrogateescape")


def check_debian(ctx: Context) -> Findings:
    """The series applies to pristine trees too: it needs no line Debian's patches touch."""
    tree, hunks = debian_hunks(ctx.top / "stack" / "debian-hunks.txt")
    base_tree = git_text(ctx.base, "rev-parse", "base^{tree}")
    if tree != base_tree:
        print(f"lint: note: not held against Debian's hunks: they are of tree {tree[:12]},"
              f" and build/base is {base_tree[:12]}")
        return
    repo = ctx.reduced.repo
    ctx.reduced.checkout("base")
    common = [name for name in hunks if (repo / name).is_file()]
    if not common:
        return
    for name in common:
        scramble(repo / name, hunks[name])
    ctx.reduced.commit("scrambled")
    try:
        ctx.reduced.apply("scrambled", ctx.patches)
    except AmError as error:
        files = [name for name in common if error.patch and name in ctx.touched[error.patch]]
        yield f"{ctx.name(error.patch) if error.patch else 'series'}: a hunk or its context" \
              f" reaches into lines of {', '.join(files)} that Debian's own patches change" \
              " (stack/debian-hunks.txt), so it cannot apply to pristine sources too: move the" \
              f" change away from them ({str(error)[-120:]})"


# The first one makes what the others work on.
CHECKS: list[Check] = [check_am, check_topics, check_diffstats, check_quilt, check_debian]

# SPDX-License-Identifier: GPL-2.0
"""make lint: what must hold of this repository, in a minute or two.

Each finding is one line: the file, what is wrong, how to mend it. Exit status
0 without findings, 1 with, 2 when lint itself could not work. No kernel tree
is checked out (reduced.py), and what a patch or a file was found to be is kept
by its content under build/lint.

The checks are in lint_patches.py (each patch for itself), lint_topics.py (do
they apply, in which order, on what), lint_mirrors.py (what is generated from
them) and lint_scripts.py (this repository's own files).
"""
from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

from perfbpf import debug_stamp, lint_mirrors, lint_patches, lint_scripts, lint_topics
from perfbpf import series as series_file
from perfbpf.git import ToolError
from perfbpf.lint_context import Check, Context, Findings
from perfbpf.paths import TOP, build_dir
from perfbpf.reduced import Reduced, Stacks, touched
from perfbpf.series import Series


def read_series(top: Path) -> tuple[Series, list[str]]:
    """Return `series` and what is wrong with it; an empty one if it cannot be parsed."""
    path = top / "series"
    try:
        series = series_file.parse(path.read_text(encoding="utf-8") if path.exists() else "")
    except ToolError as error:
        return Series(()), [str(error)]
    return series, list(series_file.needs_problems(series))


def make_context(top: Path, tmp: Path, series: Series) -> Context:
    """Parse the patches and make the reduced repository. Raises ToolError."""
    base = build_dir(top) / "base"
    if not base.is_dir():
        if subprocess.run([str(top / "stack" / "base")], check=False).returncode:
            raise ToolError("there is no base to hold the series against (see above)")
    cache = build_dir(top) / "lint"
    cache.mkdir(parents=True, exist_ok=True)
    patches = [top / "patches" / name for name in series.patches()]
    patches = [patch for patch in patches if patch.is_file()]
    paths = {patch: touched(patch) for patch in patches}
    reduced = Reduced(tmp / "reduced", base, {path for names in paths.values() for path in names})
    stacks = Stacks(reduced, top, series)
    return Context(top, base, cache, tmp, series, patches, paths, reduced, stacks)


def all_findings(top: Path, tmp: Path) -> Findings:
    """Yield every check's findings."""
    series, problems = read_series(top)
    yield from problems
    ctx = make_context(top, tmp, series)
    with ThreadPoolExecutor(1) as pool:
        # The slow ones run programs of their own, so they go beside the rest.
        slow = [_begin(pool, check, ctx)
                for check in lint_scripts.SLOW_CHECKS]
        for check in (*lint_patches.CHECKS, *lint_scripts.CHECKS):
            yield from check(ctx)
        structure = [*problems, *lint_topics.check_files(ctx)]
        yield from structure[len(problems):]
        if structure:
            print("lint: note: whether the series applies was not looked at, as series and"
                  " patches/ do not agree")
        else:
            yield from _applied(ctx, lint_topics.CHECKS, lint_mirrors.CHECKS)
        for future in slow:
            yield from future.result()


def _begin(pool: ThreadPoolExecutor, check: Check, ctx: Context) -> Future[list[str]]:
    return pool.submit(lambda: list(check(ctx)))


def _applied(ctx: Context, topics: list[Check], mirrors: list[Check]) -> Findings:
    """Yield the findings of the checks that need a series that applies."""
    first, *others = topics
    refused = list(first(ctx))
    yield from refused
    if refused:
        print("lint: note: topics, quilt, generated files, MAINTAINERS.snippet and Debian's hunks"
              " were not looked at, as the series does not apply")
        return
    for check in (*others, *mirrors):
        yield from check(ctx)


def main() -> int:
    """The command line: no arguments."""
    start = time.monotonic()
    count = 0
    try:
        with tempfile.TemporaryDirectory(prefix="perf-bpf-lint.") as tmp:
            for finding in all_findings(TOP, Path(tmp)):
                count += 1
                print(f"lint: {finding}", flush=True)
    except (ToolError, OSError) as error:
        print(f"lint: cannot work: {error}", file=sys.stderr)
        return 2
    try:
        stale = debug_stamp.outdated(TOP)
    except ToolError:
        stale = ""      # the findings say what is wrong with the series
    if stale:
        print(f"lint: warning: {stale}")
    patches = sum(1 for _ in (TOP / "patches").rglob("*.patch"))
    print(f"lint: {patches} patches, {count} findings, {time.monotonic() - start:.0f} s")
    return 1 if count else 0

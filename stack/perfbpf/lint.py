# SPDX-License-Identifier: GPL-2.0
"""make lint: what must hold of this repository; half a minute to two, ten the first time.

Each finding is one line: the file, what is wrong, how to mend it. What checkpatch said of a
patch is kept by the patch's content under build/lint.
"""
from __future__ import annotations

import email.policy
import fnmatch
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Iterator

from perfbpf import passed, refresh
from perfbpf import series as series_file
from perfbpf.build import source
from perfbpf.git import AmError, ToolError, diffstat, git, git_text, touched
from perfbpf.paths import BASE, BUILD, TOP
from perfbpf.plan import read_plan
from perfbpf.series import COVER, PATCHES, Series, slug
from perfbpf.stacks import Stacks, apply, commit, make_reduced

Findings = Iterator[str]
CACHE = BUILD / "lint"
CHECKPATCH = BASE / "scripts/checkpatch.pl"
ALLOWED = PATCHES / "checkpatch.allow"
DEBIAN = PATCHES / "debian-hunks.txt"
SNIPPET = TOP / "MAINTAINERS.snippet"
PLAN = TOP / "tests/guest/plan"
SHELL_TESTS = "tools/perf/tests/shell"
PLANNED = {"kselftest": refresh.SELFTESTS, "perf-shell": f"{SHELL_TESTS}/",
           "ftrace": f"{refresh.SELFTESTS}ftrace/test.d/"}
MEND = "mend it in build/linux, then `make refresh`"
# Documentation/process/submitting-patches.rst: "no more than 70-75 characters".
SUBJECT_LENGTH = 75
SPDX = "SPDX-License-Identifier: GPL-2.0"
NO_SPDX = {"BASE", "COPYING", "MAINTAINERS.snippet"}    # they take no comment, or are others'


def name_of(path: Path) -> str:
    """A file's name in findings."""
    return str(path.relative_to(TOP))


# Each patch for itself

def check_message(patch: Path) -> Findings:
    """A subject that says what the patch does, and a sign-off at the end."""
    text = patch.read_bytes()
    mail = email.message_from_bytes(text, policy=email.policy.default)
    subject = str(mail["Subject"]).removeprefix("[PATCH] ")
    if re.match("(fixup|squash|amend)!", subject) or len(subject) > SUBJECT_LENGTH \
            or re.match(r"(\S[^:]*: )+Let ", subject):
        yield f"{name_of(patch)}: the subject is a fixup's, has over {SUBJECT_LENGTH} characters," \
              f" or does not name what the patch does: {MEND}"
    message = text.decode(errors="replace").partition("\n---\n")[0].rstrip()
    if not re.search(r"\nSigned-off-by: .+ <.+>$", message):
        yield f"{name_of(patch)}: the last line of its message is no Signed-off-by: {MEND}"


def run_checkpatch(patch: Path) -> list[str]:
    """checkpatch's findings on a patch. Without a git repository, so that it does not look for
    commits that the one-commit base does not have."""
    kept = CACHE / hashlib.sha256(CHECKPATCH.read_bytes() + patch.read_bytes()).hexdigest()
    if not kept.exists():
        done = subprocess.run(
            ["perl", CHECKPATCH, f"--root={BASE}", "--strict", "--terse", "--show-types",
             "--showfile", "--no-summary", "--color=never", patch], cwd=CACHE,
            env=dict(os.environ, GIT_DIR="none"), capture_output=True, text=True, errors="replace",
            check=False)
        if done.returncode not in (0, 1) or done.stderr.strip():
            raise ToolError(f"checkpatch.pl on {patch.name}: {done.stderr.strip()[:300]}")
        (made := kept.with_suffix(f".{os.getpid()}")).write_text(done.stdout, encoding="utf-8")
        made.rename(kept)
    return kept.read_text(encoding="utf-8").splitlines()


def check_checkpatch(patches: list[Path]) -> Findings:
    """checkpatch --strict finds nothing that is not listed with its reason: TYPE PATTERN # why."""
    rules = [line.partition("#")[0].split() for line in ALLOWED.read_text().splitlines()
             if line.partition("#")[0].strip()]
    used = set()
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        outputs = list(pool.map(run_checkpatch, patches))
    for patch, output in zip(patches, outputs):
        for line in output:
            match = re.match(r"([^:]*):\d*:\s*(?:ERROR|WARNING|CHECK):(\w+):", line)
            if not match:
                continue
            allowed = [number for number, (kind, pattern) in enumerate(rules) if kind == match[2]
                       and any(fnmatch.fnmatchcase(name, pattern)
                               for name in (slug(patch.name), match[1]))]
            used.update(allowed)
            if not allowed:
                yield f"{name_of(patch)}: checkpatch: {line}: {MEND}, or list it with the reason" \
                      f" in {name_of(ALLOWED)}"
    for number, rule in enumerate(rules):
        if number not in used:
            yield f"{name_of(ALLOWED)}: {' '.join(rule)} is of no use any more: remove it, or" \
                  " mend the name, if a subject has changed"


# The series

def check_files(series: Series) -> Findings:
    """Every file in patches/ is where series has it, and the other way round."""
    expected = series.numbered()
    known = {"README.md", ALLOWED.name, DEBIAN.name}
    for topic, right in zip(series.topics, expected.topics):
        for name, other in zip(topic.patches, right.patches):
            if name != other or not (PATCHES / name).is_file():
                yield f"series: {name} is not in patches/, or it should be {other}: `make refresh`"
        known |= {*topic.patches, f"{series.directory(topic.name)}/{COVER}"}
        if not topic.patches:
            yield f"series: the topic {topic.name} has no patch: add one, or take its block out"
    for path in PATCHES.rglob("*"):
        if path.is_file() and str(path.relative_to(PATCHES)) not in known:
            yield f"{name_of(path)}: is not in series: add it to its topic there, or remove it"


def check_topics(series: Series, stacks: Stacks) -> Findings:
    """Each topic applies on nothing but what it needs, and has its diffstat."""
    names = series.names()
    for number, topic in enumerate(names):
        needs = series.closure(topic)
        try:
            stacks.commit((*needs, topic))
        except AmError as error:
            yield f"{error}: it does not apply on what the topic {topic} needs" \
                  f" ({', '.join(needs)}) alone: add to its \"# needs:\" in series, or move it"
        stat = diffstat(stacks.repo, stacks.commit(names[:number]),
                        stacks.commit(names[:number + 1]))
        if series_file.split_cover(series.cover(topic))[1] != stat:
            yield f"{name_of(series.cover(topic))}: has not the diffstat of its patches: `make" \
                  " refresh`"


def check_quilt(whole: str, repo: Path) -> Findings:
    """quilt takes them too, without fuzz, and makes the same tree."""
    git(repo, "checkout", "-q", "-f", "--detach", "base")
    env = dict(os.environ, QUILT_PATCHES=str(PATCHES), QUILT_SERIES=str(TOP / "series"),
               LC_ALL="C")
    done = subprocess.run(["quilt", "--quiltrc", "-", "push", "-a", "-q", "--fuzz=0"], cwd=repo,
                          env=env, capture_output=True, text=True, errors="replace", check=False)
    shutil.rmtree(repo / ".pc", ignore_errors=True)
    if done.returncode:
        yield "series: quilt push refuses a patch without fuzz" \
              f" ({' '.join((done.stdout + done.stderr).split())[-400:]}): {MEND}"
        return
    git(repo, "add", "-f", "-A")
    differ = git_text(repo, "diff", "--cached", "--name-only", whole).split()
    if differ:
        yield f"series: git am and quilt push give different trees (in {', '.join(differ[:5])}):" \
              " see that the patch has no rename, mode change or binary file"


def check_debian(series: Series, repo: Path) -> Findings:
    """The series applies to pristine trees too: it needs no line that Debian's patches touch, so
    that these may be any others. debian-hunks.txt has them as FILE:FIRST,LINES."""
    text = DEBIAN.read_text(encoding="utf-8")
    tree = git_text(BASE, "rev-parse", "base^{tree}")
    if f"# tree {tree}" not in text:
        print(f"lint: note: not held against Debian's hunks, which are not of tree {tree[:12]}")
        return
    git(repo, "checkout", "-q", "-f", "--detach", "base")
    git(repo, "clean", "-q", "-fdx")
    for name, first, count in sorted(
            ((name, int(first), int(count)) for name, first, count in
             re.findall(r"^(\S+):(\d+),(\d+)$", text, re.MULTILINE)), reverse=True):
        path = repo / name
        if path.is_file():
            lines = path.read_bytes().splitlines(keepends=True)
            start = first - 1 if count else first   # without lines, the place is behind `first`
            lines[start:start + count] = [b"other text %d.%d\n" % (first, number)
                                          for number in range(count + 2)]
            path.write_bytes(b"".join(lines))
    commit(repo, "scrambled")
    try:
        apply(repo, "scrambled", series.paths())
    except AmError as error:
        yield f"{error}: a hunk or its context reaches into lines that Debian's own patches" \
              f" change ({name_of(DEBIAN)}), so it cannot apply to pristine sources too"


# What is made from the patches, or lists what they create

def check_mirrors(files: dict[str, refresh.File]) -> Findings:
    """The full-text copies are what the patches create, no more and no less."""
    for name, file in files.items():
        if not file.same(TOP / name):
            yield f"{name}: is not what patches/ create: put the change into a commit in" \
                  " build/linux; `make refresh` writes this file"
    for path in refresh.own_files():
        if refresh.is_mirror(path) and name_of(path) not in files:
            yield f"{name_of(path)}: no patch creates it: commit it in build/linux and `make" \
                  " refresh`, or remove it"
    for line in {f"/{name.partition('/')[0]}/** linguist-generated" for name in files}:
        if line not in (TOP / ".gitattributes").read_text(encoding="utf-8").splitlines():
            yield f".gitattributes: add the line \"{line}\""


def check_lists(patches: list[Path], files: dict[str, refresh.File]) -> Findings:
    """MAINTAINERS.snippet and tests/guest/plan name only files of the patched tree, the first every
    one that is created. An entry of it that ends in / has all below, any other no directories."""
    names = {*git_text(BASE, "ls-tree", "-r", "--name-only", "base").splitlines(),
             *(path for patch in patches for path in touched(patch))}

    def has(entry: str, name: str) -> bool:
        return name.startswith(entry) if entry.endswith("/") else \
            name.count("/") == entry.count("/") and fnmatch.fnmatchcase(name, entry)

    entries = re.findall(r"^F:\s+(\S+)$", SNIPPET.read_text(encoding="utf-8"), re.MULTILINE)
    for entry in entries:
        if not any(has(entry, name) for name in names):
            yield f"{name_of(SNIPPET)}: no file of the tree is {entry}: mend the entry"
    for name in sorted(files):
        if (name.count("/") > 1 or not name.endswith("/README.md")) and not any(
                has(refresh.mirror_path(entry), name) for entry in entries):
            yield f"{name_of(SNIPPET)}: no F: entry has {name}, which the series creates: add one"
    for test in sorted({*read_plan(PLAN), *read_plan(PLAN, debug=True)}):
        path = f"{PLANNED.get(test.kind, '')}{test.path}"
        if test.kind in PLANNED and not names & {path, f"{path}.c"}:
            yield f"{name_of(PLAN)}: {test.name} is not in the tree: take it out, or mend it"


def check_shell_tests(repo: Path, patches: list[Path]) -> Findings:
    """shellcheck finds nothing in the tests of perf that the series touches, as perf's build
    calls it (tools/perf/tests/Build)."""
    paths = sorted({path for patch in patches for path in touched(patch)
                    if path.startswith(f"{SHELL_TESTS}/") and (repo / path).suffix == ".sh"
                    and (repo / path).exists()})
    yield from [] if not paths else subprocess.run(
        ["shellcheck", "-s", "bash", "-a", "-S", "warning", "-f", "gcc", *paths], cwd=repo,
        stdout=subprocess.PIPE, text=True, check=False).stdout.splitlines()


# This repository's own files

def check_texts(own: list[Path]) -> Findings:
    """Every file has its licence, none a path of this machine; links lead to files."""
    for path in own:
        data = path.read_bytes()
        text = data.decode(errors="replace")
        for place in {f"{TOP}/", f"{BUILD}/"}:
            if place in text:
                yield f"{name_of(path)}: holds this machine's path {place}: make it relative"
        if name_of(path) not in NO_SPDX and PATCHES not in path.parents and b"\0" not in data \
                and SPDX not in "\n".join(text.splitlines()[:10]):
            yield f"{name_of(path)}: has no \"{SPDX}\" in its first lines: add it"
        targets = re.findall(r"\]\(([^)#\s]+)", text) if path.suffix == ".md" else []
        for target in targets:
            if not re.match("[a-z]+:|/", target) and not (path.parent / target).exists():
                yield f"{name_of(path)}: links to {target}, which is not there: mend the link"


def check_scripts(own: list[Path]) -> Findings:
    """shellcheck, flake8 and mypy find nothing. mypy takes one command without a suffix of a
    name at a time."""
    starts = {path: path.read_bytes()[:200].decode(errors="replace") for path in own}
    shell = [path for path, text in starts.items() if path.suffix != ".patch" and re.search(
        r"\A#!.*\b(ba|da)?sh\b|# shellcheck shell=", text)]
    python = [path for path, text in starts.items()
              if path.suffix == ".py" or re.match("#!.*python", text)]
    commands: tuple[list[str | Path], ...] = (
        ["shellcheck", "-x", "-P", ".", "-f", "gcc", *shell],
        [sys.executable, "-m", "flake8", *python],
        [sys.executable, "-m", "mypy", "--scripts-are-modules", "--no-error-summary",
         "--cache-dir", CACHE / "mypy", *python])
    for command in commands:
        done = subprocess.run(command, cwd=TOP, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              text=True, check=False)
        if done.returncode:
            yield from done.stdout.splitlines() or [f"{command[0]} ended with {done.returncode}"]


def all_findings(tmp: Path) -> Findings:
    """Every check's findings."""
    series = series_file.read()
    own = [path for path in refresh.own_files() if not refresh.is_mirror(path)]
    yield from check_texts(own)
    scripts = ThreadPoolExecutor(1).submit(lambda: list(check_scripts(own)))
    misplaced = list(check_files(series))
    yield from misplaced
    if misplaced:
        return
    patches = series.paths()
    for patch in patches:
        yield from check_message(patch)
    yield from check_checkpatch(patches)
    # with what the tests of perf source
    make_reduced(tmp / "reduced", BASE, {SHELL_TESTS, *(path for patch in patches
                                                        for path in touched(patch))})
    stacks = Stacks(tmp / "reduced", series)
    try:
        whole = stacks.commit(series.names())
    except AmError as error:
        yield f"{error}: {MEND}"
    else:
        files = refresh.mirrors(stacks.repo, whole)
        git(stacks.repo, "checkout", "-q", "-f", "--detach", whole)
        yield from check_shell_tests(stacks.repo, patches)
        yield from check_topics(series, stacks)
        yield from check_mirrors(files)
        yield from check_lists(patches, files)
        yield from check_quilt(whole, stacks.repo)
        yield from check_debian(series, stacks.repo)
    yield from scripts.result()


def main() -> int:
    """Exit status: 0 without findings, 1 with (ToolError, OSError: lint could not work)."""
    begun, count = time.monotonic(), 0
    CACHE.mkdir(parents=True, exist_ok=True)
    source("base")
    with tempfile.TemporaryDirectory(prefix="perf-bpf-lint.") as tmp:
        for finding in all_findings(Path(tmp)):
            count += 1
            print(f"lint: {finding}", flush=True)
    stale = "" if count else passed.outdated()
    if stale:
        print(f"lint: warning: {stale}")
    print(f"lint: {count} findings, {time.monotonic() - begun:.0f} s")
    return int(count > 0)

# SPDX-License-Identifier: GPL-2.0
"""Stages: work that says what it does, one run at a time, with its output in a log; and outputs
that know what they were built from."""
from __future__ import annotations

import contextlib
import fcntl
import functools
import hashlib
import inspect
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Callable, Iterator, NoReturn, Sequence

from perfbpf.git import ToolError, git
from perfbpf.paths import BUILD, LINUX, TOP

# Runs a command, with its output in the stage's log (CalledProcessError: it failed).
Run = Callable[..., Any]
T0 = float(os.environ.setdefault("PERF_BPF_T0", str(int(time.time()))))
JOBS = f"-j{os.cpu_count()}"
STAMP = ".perf-bpf-stamp"     # in an output: what it was built from


@functools.cache
def slowness() -> float:
    """How many times as long this machine takes as one whose bash goes through a loop of 900,000
    turns in a second. The outermost command measures it, and what it runs inherits that."""
    if "PERF_BPF_SLOWNESS" not in os.environ:
        begun = time.monotonic()
        subprocess.run(["bash", "-c", "for ((i = 0; i < 900000; i++)); do :; done"], check=True)
        os.environ["PERF_BPF_SLOWNESS"] = f"{time.monotonic() - begun:.2f}"
    return float(os.environ["PERF_BPF_SLOWNESS"])


def run_command(name: str, main: Callable[[], int]) -> NoReturn:
    """End with what main() returns, 130 after Ctrl-C, or 1 and one line that says why."""
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        print(f"{name}: interrupted", file=sys.stderr)
        sys.exit(130)
    except (ToolError, OSError, subprocess.CalledProcessError) as error:
        print(f"{name}: {error}", file=sys.stderr)
        sys.exit(1)


def clock(seconds: float) -> str:
    """Minutes:seconds."""
    return f"{int(seconds) // 60}:{int(seconds) % 60:02}"


def say(text: str) -> None:
    """Print a line of progress, with the time since the outermost command began."""
    print(f"==> [{clock(time.time() - T0)}] {text}", flush=True)


def with_ccache() -> dict[str, str]:
    """An environment that compiles through ccache, if there is one. Times, users and build
    directories stay out of the objects, so that a clean build of the same sources hits."""
    return {**os.environ, "PATH": f"/usr/lib/ccache:/usr/lib64/ccache:{os.environ['PATH']}",
            "CCACHE_BASEDIR": str(TOP if TOP in BUILD.parents else BUILD), "CCACHE_NOHASHDIR": "1",
            # the tree's absolute path, which this option takes out of the objects
            "CCACHE_IGNOREOPTIONS": "-fmacro-prefix-map=*",
            "CCACHE_SLOPPINESS": "time_macros,include_file_ctime,include_file_mtime",
            "KBUILD_BUILD_TIMESTAMP": "2000-01-01", "KBUILD_BUILD_USER": "perf-bpf",
            "KBUILD_BUILD_HOST": "perf-bpf"}


@contextlib.contextmanager
def locked(name: str) -> Iterator[None]:
    """One run at a time for what `name` protects."""
    folder = BUILD / "locks"
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / name, "w", encoding="ascii") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say(f"waiting for another run that holds {file.name}")
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def need_space(megabytes: int, what: str) -> None:
    """Stop early, with one line, when the disk of build/ is too full (ToolError)."""
    BUILD.mkdir(parents=True, exist_ok=True)
    free = shutil.disk_usage(BUILD).free >> 20
    if free < megabytes:
        raise ToolError(f"{what} needs {megabytes} MB in {BUILD}, which has {free} MB free: make"
                        " room, or put build/ on another disk (PERF_BPF_BUILD=DIR)")


def stage(name: str, action: Callable[[Run], object]) -> None:
    """Run an action with what it prints in build/logs/NAME.log (ToolError: it failed)."""
    log = BUILD / "logs" / f"{name}.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    begun = time.monotonic()
    say(f"{name} (log: {os.path.relpath(log, TOP)})")
    with open(log, "w", encoding="utf-8") as output:
        run = functools.partial(subprocess.run, check=True, stdin=subprocess.DEVNULL, stdout=output,
                      stderr=subprocess.STDOUT, env=with_ccache())
        try:
            action(run)
        except (subprocess.CalledProcessError, OSError, ToolError) as error:
            print(f"{error}", file=output, flush=True)
            lines = log.read_text(encoding="utf-8", errors="replace").splitlines()[-20:]
            raise ToolError("\n".join([f"the last lines of {log}:", *lines,
                                       f"{name} failed; whole log: {log}"])) from error
    print(f"    {name}: done in {time.monotonic() - begun:.0f} s", flush=True)


def sources_key(tree: Path, files: Sequence[Path]) -> str:
    """One number for what a build depends on: a git tree's commit, what is not committed there
    (Debian's .gitignore has every new file) but what editors leave, the compiler, some files."""
    digest = hashlib.sha256(git(tree, "rev-parse", "HEAD^{tree}") + git(tree, "diff", "HEAD"))
    new = git(tree, "ls-files", "-z", "-o", "-x.*", "-x*~").decode().split("\0")
    for path in [*(tree / name for name in new if name), *files]:
        digest.update(path.read_bytes() if path.is_file() else b"")
    digest.update(subprocess.run(["gcc", "--version"], stdout=subprocess.PIPE, check=True).stdout)
    return digest.hexdigest()


def build(name: str, out: Path, megabytes: int, action: Callable[[Run], object],
          tree: Path = LINUX, files: Sequence[Path] = ()) -> None:
    """Build an output from a tree and some files, unless it is as these are."""
    files = [*files, Path(inspect.getfile(action))]
    stamp = out / STAMP

    def whole(run: Run) -> None:
        stamp.unlink(missing_ok=True)
        out.mkdir(parents=True, exist_ok=True)
        action(run)
        if sources_key(tree, files) == key:     # and was not edited meanwhile
            stamp.write_text(key, encoding="ascii")

    with locked(name):
        key = sources_key(tree, files)
        if stamp.exists() and stamp.read_text(encoding="ascii") == key:
            say(f"{name}: {os.path.relpath(out, TOP)} is up to date")
            return
        need_space(0 if any(out.glob("*")) else megabytes, name)
        stage(name, whole)


def needed(path: Path, command: str) -> Path:
    """A file that something else builds (ToolError: it is not there)."""
    if not path.exists():
        raise ToolError(f"there is no {path}: run `{command}`")
    return path

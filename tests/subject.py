# SPDX-License-Identifier: GPL-2.0
"""Which perf do the host tests run, and how: with nothing of the user's in its way.

PERF_BPF_SUBJECT=series (default) or base chooses build/out-perf/perf or
build/out-perf-base/perf, PERF_BPF_BUILD another place than build/; PERF=/path/to/perf
overrides them.
"""
from __future__ import annotations

import os
import signal
import subprocess
import tempfile
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Sequence

TOP = Path(__file__).resolve().parent.parent
BUILD = Path(os.environ.get("PERF_BPF_BUILD") or TOP / "build").absolute()
BINARIES = {"series": BUILD / "out-perf/perf", "base": BUILD / "out-perf-base/perf"}
# What AddressSanitizer and UBSan exit with when they are built in, see run_perf()
SANITIZER_STATUS = 99


def subject_name() -> str:
    """Return "series" or "base" (ValueError: PERF_BPF_SUBJECT is neither)."""
    name = os.environ.get("PERF_BPF_SUBJECT", "series")
    if name not in BINARIES:
        raise ValueError(f"PERF_BPF_SUBJECT={name}: it must be one of {', '.join(BINARIES)}")
    return name


def perf_binary() -> Path:
    """Return the perf under test (FileNotFoundError: it is not built)."""
    path = Path(os.environ.get("PERF") or BINARIES[subject_name()])
    if not path.is_file():
        raise FileNotFoundError(f"{path}: no perf there; build it with `make perf` "
                                "(for the base: `make base-perf`), or set PERF=")
    return path


@dataclass
class Result:
    """How a run of perf ended: status as of subprocess (negative: the signal).

    max_rss is the most memory it had, in bytes.
    """
    command: str
    status: int
    out: str
    err: str
    timed_out: bool = False
    max_rss: int = 0

    def __str__(self) -> str:
        end = "timed out" if self.timed_out else f"status {self.status}"
        return (f"$ {self.command}\n{end}\n--- out\n{_visible(self.out[-6000:])}\n"
                f"--- err\n{_visible(self.err[-4000:])}")

    @property
    def crashed(self) -> bool:
        """A signal, or a sanitizer's report."""
        return (self.status < 0 or self.status in (SANITIZER_STATUS, 128 + 6, 128 + 11)
                or "Sanitizer" in self.err or "runtime error:" in self.err
                or "Segmentation fault" in self.err)


def run_perf(work: Path, args: Sequence[str], config: str = "", timeout: float = 60) -> Result:
    """Run perf in the directory work, which is also its home, with this perfconfig.

    config is the text of the perfconfig file; timeout is in seconds, after which perf
    is killed and the result says so.
    """
    perfconfig = work / "perfconfig"
    perfconfig.write_text(config)
    env = {**os.environ, "HOME": str(work), "PERF_CONFIG": str(perfconfig),
           "PERF_PAGER": "cat", "PAGER": "cat", "TERM": "dumb", "LC_ALL": "C",
           "DEBUGINFOD_URLS": "",
           "ASAN_OPTIONS": f"exitcode={SANITIZER_STATUS}:detect_leaks=0",
           "UBSAN_OPTIONS": f"exitcode={SANITIZER_STATUS}:halt_on_error=1"}
    command = [str(perf_binary()), "--no-pager", *args]
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        # a session of its own, so that nothing perf started outlives the timeout
        child = subprocess.Popen(command, cwd=work, env=env, stdin=subprocess.DEVNULL,
                                 stdout=out, stderr=err, start_new_session=True)
        status, max_rss, late = _wait(child, timeout)
        return Result(" ".join(command), status, _read(out), _read(err), late, max_rss)


def _wait(child: subprocess.Popen[bytes], timeout: float) -> tuple[int, int, bool]:
    """Return the child's status, its peak memory in bytes, and whether it took too long."""
    late = threading.Event()

    def kill() -> None:
        late.set()
        os.killpg(child.pid, signal.SIGKILL)

    timer = threading.Timer(timeout, kill)
    timer.start()
    try:
        _, raw, usage = os.wait4(child.pid, 0)
    finally:
        timer.cancel()
    child.returncode = os.waitstatus_to_exitcode(raw)
    return child.returncode, usage.ru_maxrss * 1024, late.is_set()


def _read(file: IO[bytes]) -> str:
    """Return what was written; latin-1 keeps each byte: a control character must be seen."""
    file.seek(0)
    return file.read().decode("latin-1")


def _visible(text: str) -> str:
    # a failed test must not do to the terminal what perf should not have done
    return "".join(c if c in "\n\t" or " " <= c <= "~" else f"\\x{ord(c):02x}" for c in text)

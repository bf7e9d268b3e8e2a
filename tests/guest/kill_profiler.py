#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""Does a profiler that is killed, at whatever moment, leave nothing behind?

perf record asks for BPF programs that have ended, while others load some without
end, and is killed: as it starts, as it records.  Then the kernel keeps none.

The moments follow perf, not the clock, as an emulated machine can be ten times
slower than another: how long perf needs until a program is kept for it is seen
once, and the others are killed at parts of that.
"""

import os
import re
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from typing import Iterator

from bpf_syscalls import fdinfo, open_event

LOAD = Path(os.environ["SELFTESTS"]) / "perf_events/bpf_load_cycles"
# Parts of what perf needs until a program is kept for it
WHILE_IT_STARTS, WHILE_IT_RECORDS = (0.1, 0.3, 0.5, 0.7, 0.9), (0, 0.1, 0.25, 0.5, 1)
WAIT_S = 120


def kept_now() -> int:
    """How many programs the kernel keeps; raises OSError where it keeps none."""
    event = open_event()
    kept = fdinfo(event, "bpf_retained")
    os.close(event)
    return kept


def kept_for(profiler: int) -> int:
    """How many are kept while an event of the process asks for it; 0 if none does."""
    for file in Path(f"/proc/{profiler}/fdinfo").iterdir():
        try:
            text = file.read_text()
        except OSError:     # closed meanwhile
            continue
        if found := re.search(r"^bpf_retained:\s+(\d+)$", text, re.M):
            return int(found[1])
    return 0


@contextmanager
def recording() -> Iterator[int]:
    """perf record's process number, while programs come and go; both are killed at the end."""
    loader = subprocess.Popen([LOAD, "100000000", "2"], start_new_session=True,
                              stdout=subprocess.DEVNULL)
    profiler = subprocess.Popen(["perf", "record", "-q", "-a", "-e", "cpu-clock", "-F", "99",
                                 "-o", os.path.join(os.environ["TMPDIR"], "perf.data")],
                                stderr=subprocess.DEVNULL)
    try:
        yield profiler.pid
    finally:
        profiler.kill()
        profiler.wait()
        os.killpg(loader.pid, signal.SIGKILL)
        loader.wait()


def wait_until_kept(profiler: int) -> float:
    """Seconds until a program was kept for it; raises TimeoutError."""
    start = time.monotonic()
    while not kept_for(profiler):
        if time.monotonic() > start + WAIT_S:
            raise TimeoutError(f"nothing was kept for perf record in {WAIT_S} s")
        time.sleep(0.01)
    return time.monotonic() - start


def kept_at_last() -> int:
    """How many are kept when the last event is gone; what is on the way is waited for."""
    end = time.monotonic() + WAIT_S
    while (kept := kept_now()) and time.monotonic() < end:
        time.sleep(0.1)
    return kept


def killed(seconds: float, recorded: bool) -> int:
    """Kill one so long after its start, or after a program was kept for it.

    How many the kernel keeps at last; raises TimeoutError.
    """
    with recording() as profiler:
        if recorded:
            wait_until_kept(profiler)
        time.sleep(seconds)
        kept = kept_for(profiler)
    left = kept_at_last()
    print(f"killed {seconds:.2f} s after {'the first was kept' if recorded else 'its start'}: "
          f"{kept} programs were kept for it, then {left}")
    return left


def main() -> int:
    """0 if none was left; raises TimeoutError if there was none to leave."""
    kept_now()
    with recording() as profiler:
        seconds = wait_until_kept(profiler)
    print(f"the first program was kept for perf record after {seconds:.2f} s")
    left = sum(killed(part * seconds, False) for part in WHILE_IT_STARTS)
    left += sum(killed(part * seconds, True) for part in WHILE_IT_RECORDS)
    return 1 if left or kept_at_last() else 0


if __name__ == "__main__":
    sys.exit(main())

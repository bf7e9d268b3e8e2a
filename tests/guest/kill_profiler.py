#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""Does a profiler that is killed, at whatever moment, leave nothing behind?

perf record asks for BPF programs that have ended, while others load some without
end, and is killed: as it starts, as it records.  Then the kernel keeps none.
"""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from bpf_syscalls import fdinfo, open_event

LOAD = Path(os.environ["SELFTESTS"]) / "perf_events/bpf_load_cycles"
ROUNDS, STEP_S, WAIT_S = 10, 0.25, 60


def kept_now() -> int:
    """How many programs the kernel keeps; raises OSError where it keeps none."""
    event = open_event()
    kept = fdinfo(event, "bpf_retained")
    os.close(event)
    return kept


def kill_after(seconds: float) -> int:
    """Kill perf record then; how many programs it had the kernel keep."""
    # pylint: disable=consider-using-with
    loader = subprocess.Popen([LOAD, "100000000", "2"], start_new_session=True,
                              stdout=subprocess.DEVNULL)
    profiler = subprocess.Popen(["perf", "record", "-q", "-a", "-e", "cpu-clock", "-F", "99",
                                 "-o", os.path.join(os.environ["TMPDIR"], "perf.data")],
                                stderr=subprocess.DEVNULL)
    try:
        time.sleep(seconds)
        return kept_now()
    finally:
        profiler.kill()
        profiler.wait()
        os.killpg(loader.pid, signal.SIGKILL)
        loader.wait()


def kept_at_last() -> int:
    """How many are kept when the last event is gone; what is on the way is waited for."""
    end = time.monotonic() + WAIT_S
    while (kept := kept_now()) and time.monotonic() < end:
        time.sleep(0.1)
    return kept


def main() -> int:
    """0 if none was left, and there were some to leave."""
    kept_now()
    there, left = 0, 0
    for number in range(1, ROUNDS + 1):
        kept, later = kill_after(number * STEP_S), kept_at_last()
        print(f"killed after {number * STEP_S:.2f} s: {kept} programs were kept, then {later}")
        there, left = there + kept, left + later
    return 0 if there and not left else 1


if __name__ == "__main__":
    sys.exit(main())

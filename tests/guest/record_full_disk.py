#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""Can all that perf record wrote before the disk was full be read, with the code of BPF?

The disk is a tmpfs of some MB, chosen at random (its size is printed), and perf records
until it is full, while PROGRAMS programs are loaded and one of them is hot. perf has to say
once that it is full, and to end with an error; each file, compressed or one of many, has to
have samples of the hot program, its name, and its instructions. A pipe whose reader ends
does not leave perf running either.
"""

import os
import random
import re
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Dict, List

PROGRAMS = 200
RECORD = ["perf", "record", "-a", "-g", "-F", "9999", "-e", "cpu-clock"]
WAYS: Dict[str, List[str]] = {
    "plain": [], "compressed": ["-z"], "by size": ["--switch-output=1M"],
    "by time": ["--switch-output=1s"], "threads": ["--threads"]}
LIMIT = 120                     # seconds for a recording that nobody else ends
SECONDS = 3600                  # how long the load runs, if perf does not end

# Load many programs, and run the first one.
LOAD = f"""
import ctypes, struct, sys, time
sys.path.insert(0, {str(Path(__file__).parent)!r})
import hot_text
programs = [hot_text.load_program() for _ in range({PROGRAMS})]
packet = ctypes.create_string_buffer(64)
end = time.monotonic() + {SECONDS}
while time.monotonic() < end:
    hot_text.bpf(hot_text.BPF_PROG_TEST_RUN, struct.pack(
        "<IIIIQQII", programs[0], 0, 64, 0, ctypes.addressof(packet), 0, 100000, 0))
"""


def perf(*args: str) -> "subprocess.CompletedProcess[str]":
    """Run perf; what it printed."""
    return subprocess.run(["perf", *args], capture_output=True, text=True, check=False)


def check_file(path: Path, short: bool) -> List[str]:
    """Return what is wrong with a file; a short one may have a few samples, or none."""
    name = "bpf_prog_[0-9a-f]{16}_F"
    report = perf("report", "-i", str(path), "--stdio", "--no-children", "-g", "none",
                  "--sort", "sym")
    found = re.search(rf"^ +([0-9.]+)% +\[k\] ({name})", report.stdout, re.M)
    if short and "data has no samples" in report.stderr:
        print(f"{path.name}: no samples")
        return []
    nameless = re.findall(r"^.*% +\[k\] 0x[0-9a-f]+", report.stdout, re.M)
    if short and not report.returncode and not found and not nameless:
        print(f"{path.name}: the hot program did not run")
        return []
    if report.returncode or not found or float(found[1]) < 1:
        return [f"{path.name}: no share of the hot program: status {report.returncode}\n"
                f"{report.stdout[:800]}{report.stderr[:800]}{nameless[:5]}"]
    code = perf("annotate", "-i", str(path), "--stdio", "-s", found[2])
    if code.returncode or "imul" not in code.stdout:
        return [f"{path.name}: no code of {found[2]}: status {code.returncode}\n"
                f"{code.stdout[:400]}{code.stderr[:800]}"]
    print(f"{path.name}: {found[1]}% in {found[2]}, {code.stdout.count('imul')} instructions")
    return []


def check_way(disk: Path, way: str) -> List[str]:
    """Record until the disk is full; return what is wrong."""
    load = subprocess.Popen([sys.executable, "-c", LOAD])
    try:
        done = subprocess.run([*RECORD, *WAYS[way], "-o", str(disk / "perf.data")],
                              stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              timeout=LIMIT, check=False)
    finally:
        load.kill()
        load.wait()
    wrong = []
    said = done.stderr.count("No space left on device")
    if done.returncode <= 0 or said != 1:
        wrong.append(f"status {done.returncode}, told {said} times:\n{done.stderr[:2000]}")
    # the disk may be full when the next file begins
    files = [path for path in sorted(disk.glob("perf.data*")) if path.stat().st_size]
    if not files:
        wrong.append("no file")
    for path in files:
        wrong += check_file(path, "switch" in str(WAYS[way]) and path.name == "perf.data")
    return [f"{way}: {text}" for text in wrong]


def on_full_disk(way: str) -> List[str]:
    """Make the disk, record, and unmount it; return what is wrong."""
    with tempfile.TemporaryDirectory() as name:
        size = random.randint(2500, 6000)
        print(f"{way}: {size} KB")
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}k", "none", name], check=True)
        try:
            return check_way(Path(name), way)
        finally:
            subprocess.run(["umount", name], check=True)


def reader_ends() -> List[str]:
    """perf that writes to a pipe ends with its reader, by the signal or with an error."""
    with subprocess.Popen([*RECORD, "-o", "-"], stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as writer:
        assert writer.stdout
        writer.stdout.read(100000)
        writer.stdout.close()
        try:
            status = writer.wait(LIMIT)
        except subprocess.TimeoutExpired:
            writer.kill()
            return ["the reader of the pipe ended, and perf record did not"]
    return [] if status in (-signal.SIGPIPE, 128 + signal.SIGPIPE) or status > 0 else [
        f"the reader of the pipe ended: status {status}"]


def main() -> int:
    """0 if all can be read."""
    wrong = reader_ends()
    for way in WAYS:
        wrong += on_full_disk(way)
    print("\n".join(wrong))
    return 1 if wrong else 0


if __name__ == "__main__":
    # what is mounted here is nobody else's
    if not os.environ.get("FULL_DISK_NS"):
        os.environ["FULL_DISK_NS"] = "1"
        os.execvp("unshare", ["unshare", "--mount", sys.executable, *sys.argv])
    sys.exit(main())

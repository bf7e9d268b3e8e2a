# SPDX-License-Identifier: GPL-2.0
"""Run a command as root in a guest that boots one of the kernels built here.

The guest is virtme-ng: this machine's own root over 9p, read-only, with a
directory for results that the guest may write.  KVM is used when a short
probe boot shows that it works, TCG (emulation) when it does not.  A guest that
reaches the time limit is asked by SysRq for its blocked tasks, its locks and
what its CPUs execute, which is then at the end of console.log.

The exit status says what ended the run:
{statuses}
SIGUSR1 ends the run as the time limit does.
"""
from __future__ import annotations

import argparse
import fcntl
import os
import re
import selectors
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import BinaryIO, Sequence

from perfbpf import accel, hang
from perfbpf.outcome import (ENDED, Infra, Outcome, Run, complained, judge, read_text,
                             status_table, tail)
from perfbpf.paths import BUILD, KERNELS, TOP, Output
from perfbpf.process import adopt_orphans, kill_group, note
from perfbpf.qemu import (Machine, find_qemu, kernel_options, qemu_version, vng_command,
                          warn_of_old)
from perfbpf.splats import QEMU_ASSERTION

RESULTS_MIN_BYTES = 8 << 20
# What virtme-ng accepts in the path of a directory to share.
SHAREABLE = re.compile(r"[a-zA-Z0-9_+/.-]+")
GUEST_FILES = ("cmd", "booted", "status", "config", "dmesg", "kmemleak", "ktap.log")
HOST_FILES = ("console.log", "output.log", "splats", "registers")
# Of a run that was repeated (--again).
FIRST = "first"
# How long a SIGUSR1 may go unnoticed.
POLL_SECONDS = 1.0


def catch_time_up() -> list[int]:
    """Catch SIGUSR1; it is in the list once it has come."""
    caught: list[int] = []
    signal.signal(signal.SIGUSR1, lambda number, _frame: caught.append(number))
    return caught


def raise_interrupt(_signal: int, _frame: object) -> None:
    """Turn a signal into the unwinding that takes the guest along."""
    raise KeyboardInterrupt


# What a run needs

def kernel_of(name: str) -> Output:
    """Return a kernel that is built (Infra: it has no image)."""
    kernel = KERNELS[name]
    if not kernel.image.is_file():
        raise Infra(f"kernel {name}: no image {kernel.image}; run `{kernel.command}`")
    return kernel


def lock_results(results: Path) -> None:
    """Make a directory for a run's files, and lock it until this process ends
    (Infra: it cannot)."""
    if not SHAREABLE.fullmatch(str(results)):
        raise Infra(f"results directory {results}: virtme-ng can only share paths of letters,"
                    " digits and _ + / . -; move the repository or use --results")
    try:
        results.mkdir(parents=True, exist_ok=True)
        lock = os.open(results, os.O_RDONLY | os.O_DIRECTORY)
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise Infra(f"results directory {results}: another guest writes there; wait for its end,"
                    " or name another one with --results") from error
    except OSError as error:
        raise Infra(f"results directory {results}: {error.strerror}; free or name another one"
                    " with --results") from error


def prepare_results(results: Path) -> None:
    """Remove the files of an earlier run (Infra: there is no room for new ones)."""
    try:
        for name in GUEST_FILES + HOST_FILES:
            (results / name).unlink(missing_ok=True)
        free = shutil.disk_usage(results).free
    except OSError as error:
        raise Infra(f"results directory {results}: {error.strerror}; free or name another one"
                    " with --results") from error
    if free < RESULTS_MIN_BYTES:
        raise Infra(f"results directory {results}: disk full, {free >> 10} KiB left and"
                    f" {RESULTS_MIN_BYTES >> 10} KiB needed; free some space or name another one"
                    " with --results")


def write_command(command: Sequence[str], results: Path) -> None:
    """Leave the command in a file for the guest: the kernel's command line, which
    virtme-ng would use, ends at 2048 characters.  The guest has nothing of this
    environment; our own tools need to know where the build directory is."""
    text = command[0] if len(command) == 1 else shlex.join(command)
    build = shlex.quote(str(BUILD))
    (results / "cmd").write_text(f"#!/bin/bash\nexport PERF_BPF_BUILD={build}\n{text}\n",
                                 encoding="utf-8")


def keep_logs(results: Path, name: str) -> Path:
    """Move a run's files into a directory of this name beside them: the next run's are
    others."""
    kept = results / name
    shutil.rmtree(kept, ignore_errors=True)
    kept.mkdir(parents=True)
    for file in (*GUEST_FILES, *HOST_FILES):
        if (results / file).exists():
            shutil.move(results / file, kept / file)
    return kept


# The run itself

class Streams:
    """Copies the guest's output and console to their files; the output also goes to
    our standard output."""

    def __init__(self, process: subprocess.Popen[bytes], output: BinaryIO, console: BinaryIO,
                 time_up: list[int]) -> None:
        self.selector = selectors.DefaultSelector()
        assert process.stdout and process.stderr
        self.selector.register(process.stdout, selectors.EVENT_READ, output)
        self.selector.register(process.stderr, selectors.EVENT_READ, console)
        self.output = output
        self.time_up = time_up

    def close(self) -> None:
        """Stop watching; the files are the caller's."""
        self.selector.close()

    def copy(self, timeout: float) -> bool:
        """Copy what comes within `timeout` seconds; False when nothing did."""
        ready = self.selector.select(max(timeout, 0))
        for key, _ in ready:
            data = os.read(key.fd, 65536)
            if not data:
                self.selector.unregister(key.fileobj)
                continue
            key.data.write(data)
            if key.data is self.output:
                sys.stdout.buffer.write(data)
                sys.stdout.buffer.flush()
        return bool(ready)

    def pump(self, deadline: float, quiet: float | None = None) -> bool:
        """Copy until the guest's end: True; or until `deadline` (monotonic seconds),
        or nothing came for `quiet` seconds: False.

        SIGUSR1 counts as the deadline, except while waiting for quiet.
        """
        last = time.monotonic()
        while self.selector.get_map():
            now = time.monotonic()
            left = deadline - now
            if quiet is not None:
                left = min(left, last + quiet - now)
            elif self.time_up:
                return False
            if left <= 0:
                return False
            if self.copy(min(left, POLL_SECONDS)):
                last = time.monotonic()
        return True


def watch(process: subprocess.Popen[bytes], options: argparse.Namespace,
          monitor: hang.Monitor, deadline: float) -> bool:
    """Copy the guest's output until its end: True; or until the time limit: False,
    after asking it where it hangs.  Raises OSError when a log cannot be written."""
    results = options.results
    with open(results / "output.log", "wb", buffering=0) as output, \
            open(results / "console.log", "wb", buffering=0) as console:
        streams = Streams(process, output, console, options.time_up)
        try:
            if streams.pump(deadline):
                return True
            note("time limit reached: asking the guest where it hangs"
                 f" (SysRq {', '.join(hang.KEYS)})")
            trouble = hang.ask(monitor, results / "registers", streams.pump)
            if trouble:
                note(f"the guest could not be asked: {trouble}")
            return False
        finally:
            streams.close()


def boot(options: argparse.Namespace, machine: Machine, image: list[str]) -> Run:
    """Run the guest to its end or to the time limit; nothing is left running
    (Infra: results cannot be written)."""
    prepare_results(options.results)
    write_command(options.command, options.results)
    init = shlex.join([str(TOP / "stack/guest-init"), str(TOP), str(options.results)])
    start = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="guest-") as scratch:
        monitor = hang.Monitor(Path(scratch))
        command = vng_command(image, options.kernel,
                              machine._replace(qemu_options=monitor.qemu_options()))
        with subprocess.Popen(command + ["--verbose", "--exec", init], cwd=TOP,
                              env=dict(os.environ, TMPDIR=scratch), stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              start_new_session=True) as process:
            try:
                ended = watch(process, options, monitor, start + options.timeout)
            except OSError as error:
                raise Infra(f"results directory {options.results}: cannot write the guest's logs:"
                            f" {error.strerror}; free some space and run it again") from error
            finally:
                kill_group(process)
    return Run(not ended, time.monotonic() - start)


def qemu_assertion(results: Path) -> str:
    """Return what QEMU printed when it broke before the command began, or ""."""
    found = QEMU_ASSERTION.search(read_text(results / "console.log"))
    return found[0] if found and not (results / "booted").exists() else ""


def report(outcome: Outcome, why: str, run: Run, results: Path) -> None:
    """Print how the run ended, and where its files are."""
    note(f"{outcome.name}: {why} [{run.seconds:.1f} s]")
    if outcome in (Outcome.INFRA, Outcome.DIED, Outcome.TIMEOUT):
        console = read_text(results / "console.log")
        print(f"  end of the console:\n{tail(console)}", file=sys.stderr)
    note(f"console.log, dmesg, output.log, config in {results}")


def run_command(options: argparse.Namespace) -> Outcome:
    """Boot, run the command (or become the shell), judge.  Raises Infra."""
    if options.probe:
        accel.probe()
        return Outcome.PASSED
    kernel = kernel_of(options.kernel)
    lock_results(options.results)
    prepare_results(options.results)
    if options.again:
        shutil.rmtree(options.results / FIRST, ignore_errors=True)
    version = qemu_version(find_qemu())
    chosen = accel.choose()
    note(f"kernel {options.kernel}, {chosen.name.upper()}: {chosen.why}")
    if chosen.name == "tcg":
        warn_of_old(version)
    machine = Machine(chosen, options.results, options.cpus, options.append)
    image = kernel_options(kernel)
    if options.shell:
        command = vng_command(image, options.kernel, machine)
        os.execvp(command[0], command)
    run = boot(options, machine, image)
    broken = qemu_assertion(options.results)
    if broken:
        note(f"QEMU broke before the command began, booting once more: {broken}")
        run = boot(options, machine, image)
    outcome, why = judge(run, options.results)
    if options.again and outcome not in ENDED and not complained(options.results):
        report(outcome, why, run, options.results)
        note(f"booting once more; the first run's files: {keep_logs(options.results, FIRST)}")
        run = boot(options, machine, image)
        outcome, why = judge(run, options.results)
    report(outcome, why, run, options.results)
    return outcome


def parse_options(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """The command line; exits with a message and status 2 when it is wrong."""
    parser = argparse.ArgumentParser(
        prog="stack/guest", description=(__doc__ or "").format(statuses=status_table()),
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kernel", choices=sorted(KERNELS), default="series")
    parser.add_argument("--timeout", type=float, default=600, metavar="SECONDS",
                        help="boot included (default: 600)")
    parser.add_argument("--results", type=Path, metavar="DIR",
                        help="default: build/results/guest-KERNEL")
    parser.add_argument("--cpus", type=int, default=2, metavar="N",
                        help="default: 2; with TCG, what patches all functions at once needs 1,"
                             " as a CPU may go on with code that another one has changed")
    parser.add_argument("--append", default="", metavar="OPTIONS",
                        help="more options for the guest's kernel")
    parser.add_argument("--again", action="store_true",
                        help="a guest that did not come to the command's end, without a word of"
                             f" its kernel, runs once more; DIR/{FIRST} has what it left")
    parser.add_argument("--shell", action="store_true",
                        help="an interactive shell in place of a command")
    parser.add_argument("--probe", action="store_true",
                        help="no kernel and no command: see that a guest can boot here, and"
                             " whether with KVM")
    parser.add_argument("command", nargs="*", metavar="CMD",
                        help="one word is a shell command line; more are the words of a command")
    options = parser.parse_args(arguments)
    if options.shell + options.probe + bool(options.command) != 1:
        parser.error("give either a command after --, or --shell, or --probe")
    default = BUILD / "results" / f"guest-{options.kernel}"
    options.results = (options.results or default).absolute()
    return options


def main() -> int:
    """Run the command line; returns the exit status."""
    options = parse_options()
    adopt_orphans()
    # SIGINT too: a shell starts background commands with SIGINT ignored.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, raise_interrupt)
    options.time_up = catch_time_up()
    try:
        return run_command(options)
    except Infra as error:
        note(f"INFRA: {error}")
        return Outcome.INFRA
    except OSError as error:
        note(f"INFRA: {error.filename or 'this machine'}: {error.strerror}; see that the disks of"
             f" {BUILD} and {tempfile.gettempdir()} have room, and run it again")
        return Outcome.INFRA
    except KeyboardInterrupt:
        note("interrupted, the guest was killed")
        return 128 + signal.SIGINT

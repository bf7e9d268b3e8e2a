# SPDX-License-Identifier: GPL-2.0
"""Run a command as root in a guest that boots one of the kernels built here.

The guest is virtme-ng: this machine's own root over 9p, read-only, with a
directory for results that the guest may write. KVM is used where it works
and does not emulate itself, TCG otherwise; --probe tries it anew.

The exit status says what ended the run:
{statuses}
"""
from __future__ import annotations

import argparse
import contextlib
import enum
import fcntl
import os
import re
import select
import shlex
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from perfbpf.git import ToolError
from perfbpf.paths import BUILD, KERNELS, PERFS, TESTS, TOP, Output

# What virtme-ng accepts in the path of a directory to share.
SHAREABLE = re.compile(r"[a-zA-Z0-9_+/.-]+")
FILES = ("cmd", "booted", "status", "config", "dmesg", "kmemleak", "ktap.log", "console.log",
         "output.log", "splats")
FIRST = "first"         # directory for the files of a run that was repeated (--again)
# A kernel for QEMU's multiboot loader: a header with addresses, `mov $TURNS, %ecx`, `dec %ecx` and
# `jnz` to it, `mov $0x10, %al`, `out %al, $0xf4`, so that QEMU ends with the status SPUN, `hlt`.
TURNS, AT, SPUN = 200_000_000, 0x100000, 0x21
SPIN = struct.pack("<8IBI8s8144x", 0x1badb002, 0x10000, 2**32 - 0x1badb002 - 0x10000, AT, AT, 0, 0,
                   AT + 32, 0xb9, TURNS, bytes.fromhex("49 75fd b010 e6f4 f4"))
# stack/setup unpacks one if the system's is too old, and says there why that is needed.
QEMU_UNPACKED = BUILD / "tools/qemu/qemu-system-x86_64"
VNG_UNPACKED = BUILD / "tools/virtme-ng"
# - cache=loose: the root does not change below the guest; a boot under TCG takes two thirds
#   of the time.
# - tsc=nowatchdog: the clocksource watchdog waits for another CPU with interrupts off, until
#   jiffies have moved, which early in the boot only this CPU's interrupts do. 1 boot in 280
#   stood still.
# - no_timer_check: timer_irq_works() counts interrupts while an emulator's TSC counts on
#   although its timer thread waits for a processor. 1 boot in some hundreds panicked.
# - softlockup_panic: in the debug kernel, a CPU that hangs ends the guest, with a backtrace.
KERNEL_OPTIONS = ("printk.time=1 tsc=nowatchdog no_timer_check softlockup_panic=1 "
                  "rootflags=version=9p2000.L,trans=virtio,access=any,cache=loose,msize=512000")
# identify_cpu() clears the boot CPU's capabilities with interrupts on. KASAN derives the number
# of page table levels from them: an interrupt at that moment takes a good address for a wild one.
OPTIONS_OF = {"debug": "no5lvl"}
# Start of a kernel message, behind "[   12.345678]" and a caller id if any.
SPLAT = re.compile(r"""^(?:\[[^\]]*\]\s*)*(?:
      WARNING: | (?:watchdog:\s)?BUG: | (?:\w+:\s)*kernel\ BUG\ at
    | Oops\b | .*\bOops:\ [0-9a-f]{4} | (?:traps:\s)?general\ protection\ fault
    | Kernel\ panic | ={3,}\ WARNING
    | .*(?:possible\ circular\ locking|inconsistent\ lock\ state|possible\ recursive\ locking
        |suspicious\ RCU\ usage|DEBUG_LOCKS_WARN_ON)
    | (?:.*\s)?KASAN: | UBSAN: | KCSAN: | KFENCE:
    | (?:rcu:\s)?INFO:.*(?:stall|blocked\ for\ more\ than) | (?:rcu:\s)?.*detected\ stalls?\ on
    | kmemleak:\ (?:Memory\ pool\ empty|Kernel\ memory\ leak\ detector\ disabled)
    )""", re.VERBOSE)


class Outcome(enum.IntEnum):
    """What ended a run; the value is the exit status of stack/guest."""
    PASSED, FAILED, INFRA, SPLAT, DIED, TIMEOUT = 0, 1, 3, 4, 5, 6


MEANING: dict[int, str] = dict(zip(Outcome, (
    "the command passed", "the command failed", "the machine around the guest is broken",
    "the kernel complained (WARN, BUG, KASAN, ...)", "the guest died (panic, lockup, early exit)",
    "the time limit was reached")))
ENDED = (Outcome.PASSED, Outcome.FAILED, Outcome.SPLAT)     # so did the command, well or not


def note(text: str) -> None:
    """Print one line about the guest itself, apart from the command's output."""
    print(f"guest: {text}", file=sys.stderr, flush=True)


def read_text(path: Path) -> str:
    """A log without carriage returns; "" when it does not exist."""
    return path.read_bytes().decode(errors="replace").replace("\r", "") if path.exists() else ""


def tail(text: str) -> str:
    """The last lines of a text, indented."""
    return "\n".join("    " + line for line in text.splitlines()[-15:])


def find_splats(log: str) -> list[str]:
    """The lines of a kernel's log that are complaints."""
    return [line for line in log.splitlines() if SPLAT.match(line)]


def complained(results: Path) -> bool:
    """Did the kernel of a run complain or panic, as far as its files tell?"""
    return any(find_splats(read_text(results / name)) for name in ("console.log", "dmesg"))


# What a run needs

def find_qemu() -> str:
    """QEMU: $QEMU, the one that stack/setup unpacked, or the system's (ToolError: none)."""
    name = os.environ.get("QEMU") or (
        str(QEMU_UNPACKED) if QEMU_UNPACKED.exists() else "qemu-system-x86_64")
    qemu = shutil.which(name)
    if not qemu:
        raise ToolError(f"qemu: {name} not found; run stack/setup, or set"
                        " QEMU=/path/of/qemu-system-x86_64")
    return qemu


def accelerator(qemu: str, anew: bool) -> tuple[str, str]:
    """QEMU's options for what executes the guest, and why (ToolError: nothing does). Each is tried,
    as /dev/kvm may be there and fail, or emulate: one was seen to execute five million instructions
    a second. build/accel keeps the choice until this machine boots."""
    kvm, trouble = os.access("/dev/kvm", os.R_OK | os.W_OK), ""
    key = f"{Path('/proc/sys/kernel/random/boot_id').read_text().strip()} {qemu} {kvm}"
    kept = read_text(BUILD / "accel").splitlines()
    if kept[:1] == [key] and not anew:
        return kept[1], kept[2]
    for name, options, limit in (("KVM", "kvm -cpu host", 10), ("TCG", "tcg -cpu max", 60)):
        with tempfile.NamedTemporaryFile("wb", buffering=0, prefix="spin-") as image:
            image.write(SPIN)
            command = f"-accel {options} -machine q35 -nodefaults -display none -kernel" \
                f" {image.name} -device isa-debug-exit,iobase=0xf4,iosize=1"
            try:
                done = subprocess.run([qemu, *command.split()], stdin=subprocess.DEVNULL,
                                      capture_output=True, check=False, timeout=limit)
                why = f"status {done.returncode}: {' '.join(done.stderr.decode('latin1').split())}"
            except subprocess.TimeoutExpired:
                done, why = None, f"over {limit} s for {2 * TURNS} instructions"
        if done and done.returncode == SPUN:
            with contextlib.suppress(OSError):
                (BUILD / "accel").write_text(f"{key}\n-accel {options}\n{name}{trouble}\n")
            return f"-accel {options}", f"{name}{trouble}"
        trouble = f": {name} does not work ({why})" + trouble
    raise ToolError(f"{qemu} starts no machine{trouble}\n  Repair it, or name another one with"
                    " QEMU=/path/of/qemu-system-x86_64")


def find_vng() -> tuple[list[str], dict[str, str]]:
    """The words that call virtme-ng, and its environment (ToolError: it is nowhere)."""
    root = VNG_UNPACKED / "usr"
    if shutil.which("vng"):
        return ["vng"], dict(os.environ)
    if not (root / "bin/vng").exists():
        raise ToolError(f"virtme-ng: no `vng` on PATH, nothing in {VNG_UNPACKED}; run stack/setup")
    return ["/usr/bin/python3", str(root / "bin/vng")], {
        **os.environ, "PYTHONPATH": str(root / "lib/python3/dist-packages"),
        "PATH": f"{root}/bin:{os.environ['PATH']}"}


def image_options(kernel: Output) -> list[str]:
    """virtme-ng's options for a kernel's image and modules (ToolError: it is not built)."""
    if not kernel.image.is_file():
        raise ToolError(f"kernel {kernel.name}: no image {kernel.image}; run `{kernel.command}`")
    if kernel.kind == "package":
        return ["--run", str(kernel.image)]
    modules = [] if (kernel.path / "modules.order").exists() else ["--skip-modules"]
    return ["--run", str(kernel.path), *modules]


def prepare_results(results: Path) -> None:
    """Make a directory for a run's files, lock it, remove an earlier run's (ToolError: why not)."""
    if not SHAREABLE.fullmatch(str(results)):
        raise ToolError(f"results directory {results}: virtme-ng can only share paths of letters,"
                        " digits and _ + / . -; move the repository or use --results")
    try:
        results.mkdir(parents=True, exist_ok=True)
        lock = os.open(results, os.O_RDONLY | os.O_DIRECTORY)
        os.set_inheritable(lock, True)      # by --shell
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        for name in FILES:
            (results / name).unlink(missing_ok=True)
        shutil.rmtree(results / FIRST, ignore_errors=True)
    except OSError as error:
        why = "another guest writes there" if isinstance(error, BlockingIOError) else error.strerror
        raise ToolError(f"results directory {results}: {why}; free it, or name another one with"
                        " --results") from error


def keep_logs(results: Path, name: str) -> Path:
    """Move a run's files into a directory of this name beside them: the next run's are others."""
    kept = results / name
    shutil.rmtree(kept, ignore_errors=True)
    kept.mkdir(parents=True)
    for file in FILES:
        if (results / file).exists():
            shutil.move(results / file, kept / file)
    return kept


# The run itself

def boot(command: list[str], env: dict[str, str], results: Path, seconds: float) -> bool:
    """Run the guest to its end, its output to stdout too, or kill it: False."""
    end = time.monotonic() + seconds
    with tempfile.TemporaryDirectory(prefix="guest-") as scratch, \
            open(results / "console.log", "wb") as console, \
            open(results / "output.log", "wb") as log, \
            subprocess.Popen(command, cwd=TOP, env={**env, "TMPDIR": scratch},
                             stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=console,
                             start_new_session=True) as process:
        assert process.stdout
        try:
            while (left := end - time.monotonic()) > 0 \
                    and select.select([process.stdout], [], [], left)[0] \
                    and (data := os.read(process.stdout.fileno(), 65536)):
                log.write(data)
                log.flush()
                sys.stdout.buffer.write(data)
                sys.stdout.buffer.flush()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(max(0, end - time.monotonic()))
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)     # a QEMU that virtme-ng left behind
    return time.monotonic() < end


def judge(ended: bool, results: Path) -> tuple[Outcome, str]:
    """How a run ended, by the files that it left."""
    console, output = (read_text(results / name) for name in ("console.log", "output.log"))
    status = read_text(results / "status").strip()
    broken = re.search(r"^guest-init: cannot .*", output, re.MULTILINE)
    splats = find_splats(read_text(results / "dmesg")) or find_splats(console)
    splats += re.findall("^unreferenced object.*", read_text(results / "kmemleak"), re.MULTILINE)
    (results / "splats").write_text("".join(f"{line}\n" for line in splats), encoding="utf-8")
    if broken:
        return Outcome.INFRA, broken[0]
    if "Kernel panic - not syncing" in console:
        return Outcome.DIED, f"the guest's kernel panicked:\n{tail(chr(10).join(splats))}"
    if not status.isdigit() and "Linux version" not in console:
        return Outcome.INFRA, "QEMU or virtme-ng failed before the kernel's first line"
    if not ended:
        return Outcome.TIMEOUT, "the guest was killed; --timeout SECONDS sets a longer limit"
    if not status.isdigit():
        return Outcome.DIED, "the guest went away before the command ended"
    if splats:
        return Outcome.SPLAT, f"the kernel complained {len(splats)} times (status of the command:" \
            f" {status}):\n{tail(chr(10).join(splats))}"
    if status != "0":
        return Outcome.FAILED, f"the command failed with status {status}"
    return Outcome.PASSED, MEANING[Outcome.PASSED]


def run_once(options: argparse.Namespace, command: list[str], env: dict[str, str]) -> Outcome:
    """Boot, judge, tell."""
    results = options.results
    text = options.command[0] if len(options.command) == 1 else shlex.join(options.command)
    (results / "cmd").write_text(
        f"export PERF_BPF_BUILD={shlex.quote(str(BUILD))}\n{text}\n", encoding="utf-8")
    begun = time.monotonic()
    outcome, why = judge(boot(command, env, results, options.timeout), results)
    note(f"{outcome.name}: {why} [{time.monotonic() - begun:.1f} s]")
    if outcome not in ENDED:
        note(f"the end of the console:\n{tail(read_text(results / 'console.log'))}")
    note(f"console.log, dmesg, output.log, config in {results}")
    return outcome


def write_rc(options: argparse.Namespace) -> Path:
    """What the guest's shell reads at first: it has the environment of a test."""
    perf = PERFS["base" if options.kernel.endswith("base") else "series"].path
    module = TESTS["modules"].path / options.kernel / "set_prog_id.ko"
    rc: Path = options.results / "shell.rc"
    rc.write_text(f"unset PROMPT_COMMAND\nsource {TOP}/stack/guest-env\ncd {TOP}\n"
                  f"export PATH={perf}:$PATH SELFTESTS={TESTS['selftests'].path}"
                  f" TMPDIR=/tmp PERF_BUILDID_DIR=$HOME/debug GUEST_RESULTS={options.results}"
                  f" KEEP=$HOME/kept BPF_CYCLES=4000 SET_PROG_ID={module}"
                  f" PERF_BPF_BUILD={BUILD}\nmkdir -p $KEEP\n", encoding="utf-8")
    return rc


def run(options: argparse.Namespace) -> Outcome:
    """Boot, run the command or become the shell (ToolError: the machine around is broken)."""
    qemu = find_qemu()
    accel, why = accelerator(qemu, options.probe)
    note(why)
    vng, env = find_vng()
    if options.probe:
        return Outcome.PASSED
    image = image_options(KERNELS[options.kernel])
    prepare_results(options.results)
    append = f"{KERNEL_OPTIONS} {OPTIONS_OF.get(options.kernel, '')} {options.append}"
    # --disable-kvm also keeps virtme-ng from choosing another machine than q35
    command = [*vng, *image, "--name", f"guest-{options.kernel}", "--user", "root",
               "--cpus", str(options.cpus), "--memory", options.memory, "--force-9p",
               "--disable-kvm", "--disable-microvm", "--cwd", str(TOP), "--append", append,
               f"--rwdir={options.results}={options.results}", f"--qemu={qemu}",
               f"--qemu-opts={accel}"]
    if options.shell:
        rc = write_rc(options)
        command[command.index("--append") + 1] += f' PROMPT_COMMAND="source {rc}"'
        os.execvpe(command[0], command, env)
    init = shlex.join([str(TOP / "stack/guest-init"), str(TOP), str(options.results)])
    command += ["--verbose", "--exec", init]
    outcome = run_once(options, command, env)
    if options.again and outcome not in ENDED and not complained(options.results):
        note(f"booting once more; the first run's files: {keep_logs(options.results, FIRST)}")
        outcome = run_once(options, command, env)
    return outcome


def parse_options() -> argparse.Namespace:
    """The command line; exits with a message and status 2 when it is wrong."""
    statuses = "\n".join(f"  {int(outcome)} {words}" for outcome, words in MEANING.items())
    parser = argparse.ArgumentParser(
        prog="stack/guest", description=(__doc__ or "").format(statuses=statuses),
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kernel", choices=sorted(KERNELS), default="series")
    parser.add_argument("--timeout", type=float, default=600, metavar="SECONDS",
                        help="boot included (default: %(default)s)")
    parser.add_argument("--results", type=Path, help="default: build/results/guest-KERNEL")
    parser.add_argument("--cpus", type=int, default=2, metavar="N",
                        help="default: %(default)s; with TCG, what patches all functions at once"
                             " needs 1, as a CPU may go on with code that another one has changed")
    parser.add_argument("--memory", default="2G", metavar="SIZE", help="default: %(default)s")
    parser.add_argument("--append", default="", help="more options for the guest's kernel")
    parser.add_argument("--again", action="store_true",
                        help="a guest that did not come to the command's end, without a word of"
                             f" its kernel, runs once more; DIR/{FIRST} has what it left")
    parser.add_argument("--shell", action="store_true",
                        help="a shell in place of a command, with the environment of a test")
    parser.add_argument("--probe", action="store_true", help="only see if QEMU and KVM work here")
    parser.add_argument("command", nargs="*", metavar="CMD",
                        help="one word is a shell command line; more are the words of a command")
    options = parser.parse_args()
    if options.shell + options.probe + bool(options.command) != 1:
        parser.error("give either a command after --, or --shell, or --probe")
    if options.timeout <= 0:
        parser.error("--timeout has to be above 0")
    options.results = (options.results or BUILD / f"results/guest-{options.kernel}").absolute()
    return options


def main() -> int:
    """Run the command line; returns the exit status."""
    options = parse_options()
    # Unwind, which takes the guest along. SIGINT too: a shell starts background commands with
    # SIGINT ignored.
    for signum in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(signum, lambda number, _frame: sys.exit(128 + number))
    try:
        return run(options)
    except ToolError as error:
        note(f"INFRA: {error}")
    except OSError as error:
        note(f"INFRA: {error}: have the disks of {BUILD} and {tempfile.gettempdir()} room?")
    return Outcome.INFRA

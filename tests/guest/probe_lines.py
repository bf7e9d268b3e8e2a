#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""Does the kernel survive lines of dynamic_events of every form, drawn at random?

  probe_lines.py [SEED]

Writes lines made by the grammar of probe events, right and wrong ones, while the modules of
samples/probe_events come and go. Each has to be accepted, or refused with a reason in
error_log. What was accepted is listed, and each listed line has to be accepted again. Some
events are enabled for a moment. The kernel's log has to stay silent.

PERF_BPF_LINES says how many lines, 1,500 if it is not set; 10,000 take about 15 minutes with
the debug kernel.
"""

import collections
import os
import pathlib
import random
import re
import subprocess
import sys
import threading
import time
from typing import Counter, Dict, List, Optional

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent))
sys.dont_write_bytecode = True

from btf_args import Type, Types

TRACEFS = pathlib.Path("/sys/kernel/tracing")
LINES = int(os.environ.get("PERF_BPF_LINES", "1500"))
BPFTOOL = str(pathlib.Path(os.environ["SELFTESTS"]).parent / "out-samples/bpftool/bpftool")
BTF = "/sys/kernel/btf/vmlinux"
MODULES = ["probe_sample_a", "probe_sample_b", "probe_sample_c"]
# Functions that may be enabled: not those that the tracer, the timer or an oops need.
CALM = re.compile(r"(vfs|ksys|sock|tcp|proc|kernfs|sysfs|sample|type|name|size|dev|seq)_\w+$")
# Not worth a report: the kernel says so of a line that it refuses, or leaves something out.
EXPECTED = re.compile(r"trace_[kf]?probe: |trace_probe: |kprobes: |Could not probe notrace|"
                      r"This probe might be able to register|Could not insert probe|"
                      r"probe_sample_\w: |the arguments do not fit|Failed to re-register|"
                      r"event trace: Could not enable event")


class Kernel:
    """What lines can name."""

    def __init__(self, rng: random.Random) -> None:
        types = Types(BPFTOOL, BTF, BTF + ".func")
        self.types = types
        self.structs = [t for t in types.base if t["kind"] == "STRUCT" and t["name"] != "(anon)"]
        self.task = next(t for t in self.structs if t["name"] == "task_struct")
        funcs = [t for t in types.base if t["kind"] == "FUNC"]
        self.params = {t["name"]: types.params(t) for t in funcs}
        self.own = [t for t in types.own if t["kind"] == "FUNC"]
        self.files = {t["name"]: types.tags(t, "file:") for t in rng.sample(self.own, 100)}
        text = (TRACEFS / "available_filter_functions").read_text(encoding="ascii")
        self.traced = [line.split()[0] for line in text.splitlines()]
        self.calm = [name for name in self.traced if CALM.match(name)]
        with open("/proc/kallsyms", encoding="ascii") as lines:
            self.addresses = rng.sample([line.split()[0] for line in lines], 2000)


class Grammar:
    """Lines of probe events."""

    def __init__(self, kernel: Kernel, rng: random.Random) -> None:
        self.kernel, self.rng = kernel, rng

    def symbol(self) -> str:
        """A function of the core kernel or of a sample, mostly."""
        kernel, rng = self.kernel, self.rng
        return rng.choice([
            *[lambda: rng.choice(kernel.calm)] * 8,
            lambda: rng.choice(kernel.traced), lambda: rng.choice(kernel.own)["name"],
            lambda: rng.choice(["sample_shared", "sample_same", "sample_twice", "sample_float",
                                "sample_packed", "sample_pair", "sample_big", "sample_only_a",
                                "sample_twice_other", "proc_self_get_link", "type_show"]),
            lambda: rng.choice(["vfs_*", "sample_*", "type_sh?w", "vfs_rea[dk]", "no_such*", "*"]),
            lambda: rng.choice(["_text", "jiffies", "no_such_function", "", "0", "vfs.isra.0"]),
        ])()

    def target(self) -> str:
        """What a probe is on."""
        rng, symbol = self.rng, self.symbol()
        module = rng.choice([""] * 12 + ["vmlinux:", "no_such_module:"] +
                            [f"{name}:" for name in MODULES])
        if symbol.startswith("sample_") and rng.random() < 0.5:
            module = rng.choice(MODULES) + ":"
        offset = rng.choice([""] * 15 + ["+0", f"+{rng.randrange(1 << rng.randrange(24))}", "+x"])
        files = self.kernel.files.get(symbol) or ["fs/read_write.c", "probe-sample-c-other.c",
                                                  "probe_events/probe-sample-a.c", "c-main.c", ""]
        file = rng.choice([""] * (1 if symbol in self.kernel.files else 9) +
                          [f"@{rng.choice(files)}"])
        if rng.random() < 0.15:
            shift = rng.choice([0, 0, 4, -4, rng.randrange(1 << 16)])
            return hex(int(rng.choice(self.kernel.addresses), 16) + shift)
        return module + symbol + offset + file

    def name(self, symbol: str) -> str:
        """An argument, mostly one that the function has."""
        params = [param["name"] for param in self.kernel.params.get(symbol, [])]
        other = ["count", "point", "name", "value", "bits", "pair", "inode", "file", "dev", "1"]
        return self.rng.choice(params if params and self.rng.random() < 0.95 else other)

    def pointed_to(self, type_id: int) -> Optional[Type]:
        """The structure that is behind a pointer."""
        kind = self.kernel.types.by_id.get(type_id, {"kind": "VOID"})
        while kind["kind"] in ("TYPEDEF", "CONST", "VOLATILE", "PTR", "TYPE_TAG"):
            kind = self.kernel.types.by_id.get(kind["type_id"], {"kind": "VOID"})
        return kind if kind["kind"] in ("STRUCT", "UNION") else None

    def chain(self, symbol: str) -> str:
        """An argument of the function, and members of what it points to."""
        params = self.kernel.params.get(symbol)
        if not params:
            return f"{self.name(symbol)}->{self.rng.choice(['x', 'y', 'i_ino', 'first'])}"
        param = self.rng.choice(params)
        struct = self.pointed_to(param["type_id"])
        return param["name"] + (f"->{self.members(struct)}" if struct else "")

    def members(self, struct: Optional[Type]) -> str:
        """A chain of members of a structure."""
        chain, rng = "", self.rng
        while struct and struct.get("members") and rng.random() < 0.8 and len(chain) < 90:
            member = rng.choice(struct["members"])
            name = member["name"] if member["name"] != "(anon)" else "none"
            kind = self.kernel.types.by_id.get(member["type_id"], {"kind": "VOID"})
            pointer = False
            while kind["kind"] in ("TYPEDEF", "CONST", "VOLATILE", "PTR", "TYPE_TAG"):
                pointer |= kind["kind"] == "PTR"
                kind = self.kernel.types.by_id.get(kind["type_id"], {"kind": "VOID"})
            chain += name + rng.choice(["", "", "[1]", "[0]", "[-1]", "[9999999999]"]) * (
                rng.random() < 0.2)
            struct = kind if kind["kind"] in ("STRUCT", "UNION") else None
            if struct or rng.random() < 0.1:
                chain += "->" if pointer == (rng.random() < 0.9) else "."
        return chain.rstrip("->.") if rng.random() < 0.9 else chain

    def value(self, symbol: str, depth: int = 0) -> str:
        """A fetch argument without its type; half of them are right, if the target is."""
        if self.rng.random() < 0.5:
            return self.rng.choice([f"$arg{self.rng.choice([1, 1, 2, 3])}", "$stack0", "$comm",
                                    "$current->pid", self.name(symbol), self.chain(symbol),
                                    self.chain(symbol), "+0($stack)", "@jiffies"])
        rng, structs = self.rng, self.kernel.structs

        def inner() -> str:
            return self.value(symbol, depth + 1) if depth < 6 else "$arg1"

        def cast(struct: Type) -> str:
            field = rng.choice(["", f",{self.members(struct)}"])
            return f"({struct['name']}{field}){inner()}->{self.members(struct)}"

        def container(struct: Type) -> str:
            return (f"container_of({inner()},{struct['name']},{self.members(struct)})"
                    f"->{self.members(struct)}")

        return rng.choice([
            lambda: f"$arg{rng.choice([0, 1, 2, 3, 4, 6, 7, 12, 999])}",
            lambda: rng.choice(["$arg*", "$retval", "$stack", "$comm", "$current", "%di", "%nope"]),
            lambda: f"$stack{rng.randrange(1 << rng.randrange(20))}",
            lambda: self.name(symbol), lambda: self.name(symbol), lambda: self.name(symbol),
            lambda: f"{self.name(symbol)}->{self.members(rng.choice(structs))}",
            lambda: f"{self.name(symbol)}.f_mode",
            lambda: f"$current->{self.members(self.kernel.task)}",
            lambda: cast(rng.choice(structs)),
            lambda: container(rng.choice(structs)),
            lambda: rng.choice(["@jiffies", "@linux_banner", "@no_such_data",
                                f"@0x{rng.choice(self.kernel.addresses)}"]),
            lambda: f"+{rng.randrange(1 << rng.randrange(34))}({inner()})",
            lambda: f"-{rng.randrange(4096)}({inner()})",
            lambda: f"+u{rng.randrange(64)}({inner()})",
            lambda: f"\\{rng.randrange(-9, 99)}", lambda: '\\"a string\\"',
            lambda: f"{inner()}[{rng.randrange(-2, 300)}]",
        ])()

    def argument(self, symbol: str) -> str:
        """A fetch argument, with or without name and type."""
        rng = self.rng
        kind = rng.choice([""] * 20 + [":u8", ":s16", ":u32", ":x64", ":s64", ":string", ":ustring",
                           ":symbol", ":symstr", ":char", ":%pd", ":%pD", ":b3@5/32", ":b64@0/64",
                           ":b9@7/8", ":x8[4]", ":u64[999]", ":string[3]", ":void", ":", ":u128"])
        name = rng.choice([f"a{rng.randrange(99)}="] * 20 + ["", "", "", "same=", "1=", "="])
        return name + self.value(symbol) + kind

    def line(self) -> str:
        """A line, of which few are damaged."""
        rng, target = self.rng, self.target()
        symbol = re.sub(r"^\w+:|[+@%].*$", "", target)
        head = rng.choice(["f", "p", "r"] * 9 + ["r9", "t", "f9", "x"])
        if rng.random() < 0.6:
            head += rng.choice([f":lines/e{rng.randrange(40)}", ":lines/"] * 9 +
                               [":1/2", f":e{rng.randrange(9)}", ":lines/" + "n" * 70, ":"])
        if head[0] == "t":
            target = rng.choice(["sched_switch", "kfree", "no_such_tracepoint", symbol])
        arguments = range(rng.choice([0, 1, 1, 1, 2, 3] * 9 + [130]))
        words = [head, target + rng.choice([""] * 20 + ["%return"] * 4 + ["%ret"]),
                 *(self.argument(symbol) for _ in arguments)]
        text = " ".join(words)
        for _ in range(rng.choice([0] * 12 + [1, 2])):
            place = rng.randrange(len(text))
            text = text[:place] + rng.choice(["", *"()[]{}@:%+->.,$*\\\" 0"]) + text[place + 1:]
        return text[:4000]


def write(text: str, file: str = "dynamic_events") -> bool:
    """Append to a file of tracefs; whether the kernel takes it."""
    # not open("a"), which seeks
    fd = os.open(TRACEFS / file, os.O_WRONLY | os.O_APPEND)
    try:
        return os.write(fd, text.encode() + b"\n") > 0
    except OSError:
        return False
    finally:
        os.close(fd)


def clear() -> List[str]:
    """Remove all events, also those that were enabled. Returns what is in the buffer then: the
    next event would print these entries as its own."""
    write("0", "events/enable")
    for _ in range(3):
        fd = os.open(TRACEFS / "dynamic_events", os.O_WRONLY | os.O_TRUNC)
        os.close(fd)
        if not events():
            break
    trace = (TRACEFS / "trace").read_text(encoding="ascii", errors="replace")
    return [line for line in trace.splitlines() if not line.startswith("#")]


def events() -> List[str]:
    """The lines that the kernel lists."""
    return (TRACEFS / "dynamic_events").read_text(encoding="ascii", errors="replace").splitlines()


class ModulesComeAndGo(threading.Thread):
    """Loads and unloads modules at random, and calls their functions."""

    def __init__(self, rng: random.Random) -> None:
        super().__init__()
        self.rng, self.stop = rng, threading.Event()

    def run(self) -> None:
        while not self.stop.wait(self.rng.random()):
            module = self.rng.choice(MODULES)
            run = pathlib.Path("/sys/module", module, "parameters/run")
            if not run.exists():
                subprocess.run(["modprobe", module], check=False, stderr=subprocess.DEVNULL)
            elif self.rng.random() < 0.5:
                subprocess.run(["rmmod", module], check=False, stderr=subprocess.DEVNULL)
            try:
                run.write_text("run", encoding="ascii")
            except OSError:
                pass


def list_again(refused: List[str], left: List[str]) -> int:
    """Each line that is listed makes its event again. How many there were."""
    lines = events()
    stale = clear()
    if stale:
        left += [f"{len(stale)} entries, the first one {stale[0]}, of one of", *lines]
    for line in lines:
        # What a module lacks, or does not have as such, is not known before it is loaded.
        if not write(line) and not re.search(r" (no_such_module|probe_sample_\w):|sample_", line):
            refused.append(line)
    return len(lines)


def use_events() -> None:
    """Enable what may be enabled, do something, look."""
    for line in events():
        match = re.match(r"[a-z0-9]+:(\S+)/(\S+) (?:\w+:)?(\w+)", line)
        if match and CALM.match(match[3]):
            write("1", f"events/{match[1]}/{match[2]}/enable")
    for path in ("/proc/self/stat", "/proc/self/mounts", "/sys/kernel/notes"):
        pathlib.Path(path).read_bytes()
    time.sleep(0.05)
    write("0", "events/enable")
    (TRACEFS / "trace").read_bytes()
    write("", "trace")


def kernel_log() -> List[str]:
    """What the kernel has to say, but for what is expected."""
    text = subprocess.run(["dmesg"], check=True, stdout=subprocess.PIPE).stdout
    return [line for line in text.decode(errors="replace").splitlines()
            if not EXPECTED.search(line)]


def main() -> None:
    """Draw, write, count."""
    seed = int(sys.argv[1]) if len(sys.argv) > 1 else random.randrange(1 << 32)
    print(f"seed {seed}", flush=True)
    rng = random.Random(seed)
    for module in MODULES:
        subprocess.run(["modprobe", module], check=True)
    kernel = Kernel(rng)
    grammar = Grammar(kernel, rng)
    before = kernel_log()
    modules = ModulesComeAndGo(random.Random(seed + 1))
    modules.start()
    start = time.monotonic()

    accepted, listed = 0, 0
    errors: Counter[str] = collections.Counter()
    silent: List[str] = []
    refused: Dict[str, List[str]] = {"again": [], "left": []}
    for number in range(LINES):
        line = grammar.line()
        write("", "error_log")
        if write(line):
            accepted += 1
        else:
            error = re.search(r"error: (.*)", (TRACEFS / "error_log").read_text(
                encoding="ascii", errors="replace"))
            errors[re.sub(r": .*", "", error[1]) if error else "none"] += 1
            if not error:
                silent.append(line)
        if number % 50 == 49:
            use_events()
            listed += list_again(refused["again"], refused["left"])
            clear()
        if number % 1000 == 999:
            print(f"{number + 1} lines after {time.monotonic() - start:.0f} s", flush=True)
    modules.stop.set()
    modules.join()
    clear()

    print(f"{LINES} lines: {accepted} accepted, {listed} listed; " +
          ", ".join(f"{count} {error}" for error, count in errors.most_common()))
    said = [line for line in kernel_log() if line not in before]
    for title, lines in (("kernel log", said), ("no reason", silent),
                         ("not accepted again", refused["again"]),
                         ("left in the buffer", refused["left"])):
        if lines:
            print(f"{title}: {len(lines)}\n  " + "\n  ".join(lines[:25]))
    if said or silent or refused["again"] or refused["left"] or accepted < LINES / 20:
        sys.exit("FAIL")


main()

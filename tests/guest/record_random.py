#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""Are BPF programs given what their probe events print, at functions drawn at random?

  record_random.py [SEED]

Fifty kernel functions that a task of this script calls, each with up to three parameters.
A program at each sums up its arguments in that task alone, so that nothing is missed while
the recording begins and ends. The sums have to be those of what perf script prints. Samples
that are lost are told; then it is recorded again, three times at most.
"""

import collections
import json
import os
import pathlib
import random
import re
import subprocess
import sys
import tempfile
import time
from typing import Dict, List, NamedTuple

TRACEFS = pathlib.Path("/sys/kernel/tracing")
FUNCTIONS = 50
MAX_ARGS = 3
MAX_HITS = 5000  # of a function in one run of the task, for the time that it takes
TRIES = 3
ALL_BITS = (1 << 64) - 1
COMM = "random_calls"
OBJECT = "random.bpf.o"
INTEGERS = ("INT", "ENUM", "ENUM64")
MODIFIERS = ("TYPEDEF", "CONST", "VOLATILE", "RESTRICT", "TYPE_TAG")
BPFTOOL = str(pathlib.Path(os.environ["SELFTESTS"]).parent / "out-samples/bpftool/bpftool")

START = f"""
typedef unsigned long long u64;
typedef unsigned int u32;
#define SEC(name) __attribute__((section(name), used))

char _license[] SEC("license") = "GPL";

struct sums {{
	u64 hits, failed, args[{MAX_ARGS}];
}};

struct {{
	u32 (*type)[2];			/* BPF_MAP_TYPE_ARRAY */
	u32 *key;
	struct sums *value;
	u32 (*max_entries)[{FUNCTIONS}];
}} sums SEC(".maps");

static void *(*lookup)(void *map, const void *key) = (void *)1;
static long (*get_comm)(void *buf, u32 size) = (void *)16;

static __attribute__((always_inline)) int add(u32 which, int err, u64 a, u64 b, u64 c)
{{
	static const char expected[16] = "{COMM}";
	char comm[16] = {{}};
	struct sums *s;

	get_comm(comm, sizeof(comm));
	for (int i = 0; i < sizeof("{COMM}"); i++)
		if (comm[i] != expected[i])
			return 0;
	s = lookup(&sums, &which);
	if (!s)
		return 0;
	__sync_fetch_and_add(&s->hits, 1);
	__sync_fetch_and_add(&s->failed, err);
	__sync_fetch_and_add(&s->args[0], a);
	__sync_fetch_and_add(&s->args[1], b);
	__sync_fetch_and_add(&s->args[2], c);
	return 1;
}}
"""


class Function(NamedTuple):
    """A function, the file that has it, and its parameters."""

    name: str
    file: str
    params: List[str]


class Sums(NamedTuple):
    """How often, how often without arguments, and the sums of each, modulo 2^64."""

    hits: int
    failed: int
    args: List[int]


NOTHING = Sums(0, 0, [0] * MAX_ARGS)


def run(*command: str) -> str:
    """What the command printed, to stderr as well; a failure ends the script."""
    done = subprocess.run(command, text=True, errors="replace", stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, check=False)
    if done.returncode:
        sys.exit(f"FAIL: {' '.join(command)}: status {done.returncode}\n{done.stdout}")
    return done.stdout


def write(path: pathlib.Path, text: str) -> None:
    """To a file of tracefs or /proc."""
    path.write_text(text, encoding="ascii")


def call_functions(trace: bool) -> None:
    """What makes the kernel work, under the name that is recorded, or while it is traced."""
    comm, tracing_on = pathlib.Path("/proc/self/comm"), TRACEFS / "tracing_on"
    time.sleep(1)
    write(*((tracing_on, "1") if trace else (comm, COMM)))
    for file in ("/proc/self/maps", "/proc/self/stat", "/proc/meminfo", "/proc/interrupts",
                 "/proc/vmstat"):
        pathlib.Path(file).read_bytes()
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "file")
        path.write_bytes(b"x" * 100000)
        path.rename(path.with_name("moved"))
        os.listdir(folder)
    for _ in range(3):
        child = os.fork()
        if not child:
            os._exit(0)
        os.waitpid(child, 0)
    ends = os.pipe()
    os.write(ends[1], b"x")
    os.read(ends[0], 1)
    write(*((tracing_on, "0") if trace else (comm, "ending")))
    time.sleep(1)


def trace_calls() -> Dict[str, int]:
    """How often call_functions() called each function."""
    write(TRACEFS / "tracing_on", "0")
    write(TRACEFS / "buffer_size_kb", "40000")
    with subprocess.Popen([sys.executable, __file__, "trace"]) as task:
        write(TRACEFS / "set_ftrace_pid", str(task.pid))
        write(TRACEFS / "options/function-fork", "1")
        write(TRACEFS / "current_tracer", "function")
    hits: Dict[str, int] = collections.Counter()
    with open(TRACEFS / "trace", encoding="ascii") as lines:
        for line in lines:
            if not line.startswith("#"):
                hits[line.rsplit(": ", 1)[1].split(" <-")[0]] += 1
    write(TRACEFS / "current_tracer", "nop")
    write(TRACEFS / "set_ftrace_pid", "")
    write(TRACEFS / "tracing_on", "1")
    return hits


def text_symbols() -> Dict[str, int]:
    """The addresses of all names that one function alone has."""
    found: Dict[str, List[int]] = collections.defaultdict(list)
    with open("/proc/kallsyms", encoding="ascii") as lines:
        for line in lines:
            address, kind, name = line.split()[:3]
            if kind in "tT":
                found[name].append(int(address, 16))
    return {name: where[0] for name, where in found.items() if len(where) == 1}


def parameters() -> Dict[str, List[str]]:
    """The names of the parameters that fit in an argument, of each function in BTF."""
    types = {one["id"]: one for one in json.loads(run(
        BPFTOOL, "-j", "btf", "dump", "file", "/sys/kernel/btf/vmlinux"))["types"]}

    def fits(number: int) -> bool:
        while types.get(number, {}).get("kind") in MODIFIERS:
            number = types[number]["type_id"]
        one = types.get(number, {"kind": "VOID"})
        return one["kind"] == "PTR" or one["kind"] in INTEGERS and one["size"] <= 8

    return {one["name"]: [param["name"] for param in types[one["type_id"]]["params"]
                          if param["name"] != "(anon)" and fits(param["type_id"])][:MAX_ARGS]
            for one in types.values() if one["kind"] == "FUNC"}


def kernel_offset(vmlinux: str) -> int:
    """How far from its address in vmlinux the kernel was loaded (CONFIG_RANDOMIZE_BASE)."""
    linked = re.search(r" \.text +PROGBITS +([0-9a-f]+)", run("readelf", "-SW", vmlinux))
    if not linked:
        sys.exit(f"FAIL: {vmlinux} has no section .text")
    with open("/proc/kallsyms", encoding="ascii") as lines:
        loaded = next(int(line.split()[0], 16) for line in lines if line.split()[2] == "_text")
    return loaded - int(linked[1], 16)


def draw(seed: int) -> List[Function]:
    """Functions in a random order, more than are needed."""
    vmlinux = f"/lib/modules/{os.uname().release}/build/vmlinux"
    hits, addresses, params = trace_calls(), text_symbols(), parameters()
    names = sorted(name for name, times in hits.items() if times <= MAX_HITS
                   and name in addresses and params.get(name))
    print(f"the task calls {len(hits)} functions, of which {len(names)} can be drawn")
    drawn = random.Random(seed).sample(names, min(len(names), 2 * FUNCTIONS))
    # perf finds a function of a named file without reading about all others
    offset = kernel_offset(vmlinux)
    files = run("addr2line", "-e", vmlinux, *[hex(addresses[name] - offset) for name in drawn])
    return [Function(name, file.rsplit(":", 1)[0], params[name])
            for name, file in zip(drawn, files.splitlines()) if not file.startswith("?")]


def build(functions: List[Function]) -> None:
    """OBJECT, with a program for each of the functions."""
    source = START
    for number, function in enumerate(functions):
        names = "abc"[:len(function.params)]
        params = "".join(f", u64 {name}" for name in names)
        args = ", ".join([*names, "0", "0", "0"][:MAX_ARGS])
        point = f"{function.name}@{function.file} {' '.join(function.params)}"
        source += (f"\nSEC(\"inlines=no;f{number}={point}\")\n"
                   f"int f{number}(void *ctx, int err{params})\n"
                   f"{{\n\treturn add({number}, err, {args});\n}}\n")
    pathlib.Path("random.bpf.c").write_text(source, encoding="ascii")
    run("clang", "-O2", "-g", "--target=bpf", "-c", "random.bpf.c", "-o", OBJECT)


def record(drawn: List[Function]) -> str:
    """What perf record says; functions of which it cannot fetch an argument leave `drawn`."""
    while len(drawn) >= FUNCTIONS:
        build(drawn[:FUNCTIONS])
        done = subprocess.run(["perf", "record", "-o", "perf.data", "-a", "-m", "16M",
                               "-e", OBJECT, "--bpf-prog-maps", "--",
                               sys.executable, __file__, "call"],
                              text=True, errors="replace", stderr=subprocess.PIPE, check=False)
        if not done.returncode:
            return done.stderr
        refused = re.search(rf"^{OBJECT}: f([0-9]+), SEC.*", done.stderr, re.M)
        if not refused:
            sys.exit(f"FAIL: perf record: status {done.returncode}\n{done.stderr}")
        print(f"left out: {refused.group(0)}")
        del drawn[int(refused.group(1))]
    sys.exit("FAIL: too few functions are left")


def printed_sums() -> List[Sums]:
    """Of the samples in perf.data, by function."""
    found = [NOTHING] * FUNCTIONS
    for line in run("perf", "script", "-F", "event,trace").splitlines():
        match = re.search(r"perf_bpf_probe:f([0-9]+): *\([0-9a-f]+\)(.*)", line)
        if not match:
            continue
        number = int(match.group(1))
        values = [int(value, 0) for value in re.findall(r"=(-?[0-9a-fx]+)", match.group(2))]
        values += [0] * (MAX_ARGS - len(values))
        found[number] = Sums(found[number].hits + 1, 0, [
            (a + b) & ALL_BITS for a, b in zip(found[number].args, values)])
    return found


def given_sums(text: str) -> List[Sums]:
    """Of the programs, by function, as perf record --bpf-prog-maps prints them."""
    number = r"\(u64\)(\d+)"
    found = [NOTHING] * FUNCTIONS
    for key, hits, failed, args in re.findall(
            rf"^sums\[\(u32\)(\d+)\] = \(struct sums\)\{{\.hits = {number},"
            rf"\.failed = {number},\.args = \(u64\[{MAX_ARGS}\]\)\[([0-9,]+),\]", text, re.M):
        found[int(key)] = Sums(int(hits), int(failed), [int(arg) for arg in args.split(",")])
    return found


def record_and_compare(drawn: List[Function]) -> bool:
    """False if samples were lost; differences without that end the script."""
    said = record(drawn)
    if re.search(r"lost|LOST", said):
        print(f"samples were lost: {said}")
        return False
    printed, given = printed_sums(), given_sums(said)
    wrong = [f"{drawn[i]}: printed {printed[i]}, given {given[i]}"
             for i in range(FUNCTIONS) if printed[i] != given[i]]
    total = sum(sums.hits for sums in given)
    hit = sum(sums.hits > 0 for sums in given)
    print(f"{FUNCTIONS} functions, {hit} of them hit, {total} times in all")
    if wrong or hit < FUNCTIONS * 3 // 4:
        sys.exit("FAIL: " + "\n".join(wrong or ["too few are hit"]))
    return True


def main() -> int:
    """Exit status: 0 passed, 1 failed."""
    if sys.argv[1:] in (["call"], ["trace"]):
        call_functions(sys.argv[1] == "trace")
        return 0
    seed = int(sys.argv[1]) if sys.argv[1:] else random.SystemRandom().randrange(1 << 32)
    print(f"seed {seed}")
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        drawn = draw(seed)
        for _ in range(TRIES):
            if record_and_compare(drawn):
                return 0
        os.chdir("/")
    print("FAIL: samples are lost each time")
    return 1


if __name__ == "__main__":
    sys.exit(main())

# SPDX-License-Identifier: GPL-2.0
"""A program of functions that are inlined, drawn at random, which tells what each was passed;
and what .BTF.inline says of it, read by gdb where each one was inlined.

The program is the truth: the first that an inlined function does is to print some of its
parameters. So when a place of it is reached, what the place tells is in the next line of
this function. A place is not reached for each call: the compiler may have moved its first
instruction out of a loop, or made one of two places that end alike.
"""
from __future__ import annotations

import json
import random
import re
import subprocess
from pathlib import Path
from typing import Any, Dict, List, Tuple

from btf_args import Types

MAIN = """
#include <stdarg.h>
#include <stdio.h>

struct pair { long a, b; };
long words[64];

void record(const char *name, int nr, ...)
{
	va_list args;

	va_start(args, nr);
	printf("%s", name);
	while (nr--)
		printf(" %lx", va_arg(args, unsigned long));
	printf("\\n");
	va_end(args);
}

extern long entry(long a, long b);
int main(void)
{
	for (int i = 0; i < 64; i++)
		words[i] = 0x1122334455667788UL * (i + 1);
	return entry(words[1], words[2]) & 1;
}
"""
HEAD = """
#define INLINED static inline __attribute__((always_inline))
struct pair { long a, b; };
struct big { long a, b, c; };
extern long words[64];
extern void record(const char *name, int nr, ...);
"""
TYPES = ["int", "long", "unsigned char", "short", "unsigned long long", "_Bool", "long *",
         "struct pair", "struct big", "signed char"]
NOT_CALLED = ": reached, but not called"
STRUCTS = {"struct pair": ["a", "b"], "struct big": ["a", "b", "c"]}


class Program:
    """Functions f0(), f1(), ..., each of which calls some of those before it."""

    def __init__(self, draw: random.Random, functions: int = 12) -> None:
        self.draw = draw
        self.params = [[draw.choice(TYPES) for _ in range(draw.randrange(6))]
                       for _ in range(functions)]
        self.recorded = [[p for p in range(len(params)) if draw.random() < 0.8]
                         for params in self.params]
        # The whole of these is their call of record(), so constants are so in all of it.
        self.leaves = {number for number in range(functions) if draw.random() < 0.4}

    def value(self, kind: str, words: List[str]) -> str:
        """An expression of a type, of some variables."""
        draw = self.draw
        if kind == "long *":
            return f"&words[{draw.randrange(64)}]"
        if kind in STRUCTS:
            return f"({kind}){{ {', '.join(self.value('long', words) for _ in STRUCTS[kind])} }}"
        word = draw.choice([*words, f"words[{draw.randrange(64)}]"])
        bits = draw.choice([3, 7, 8, 15, 16, 31, 32, 60])   # forms of 1, 2, 4 and 8 bytes
        number = draw.getrandbits(bits) | 1 << bits - 1
        text = draw.choice([str(number), f"-{number}", word, word,
                            f"{word} + {draw.randrange(1000)}", f"{word} * {draw.choice(words)}"])
        return f"({kind})({text})"

    def call(self, function: int, words: List[str]) -> str:
        """A call with other arguments each time."""
        args = ", ".join(self.value(kind, words) for kind in self.params[function])
        return f"{'' if function in self.leaves else 'sum += '}f{function}({args})"

    def calls(self, functions: List[int], words: List[str]) -> List[str]:
        """Statements, some in a loop or behind a condition."""
        before = ["", "", f"if ({self.draw.choice(words)} & 1) ",
                  f"for (int i = 0; i < {self.draw.randrange(1, 4)}; i++) "]
        return [f"{self.draw.choice(before)}{self.call(function, words)};"
                for function in functions]

    def source(self) -> str:
        """The program, but for main()."""
        text = HEAD
        for number, params in enumerate(self.params):
            args = [f"(unsigned long)p{p}" + (f".{member}" if member else "")
                    for p in self.recorded[number]
                    for member in STRUCTS.get(params[p], [""])]
            words = ["sum", *(f"(long)p{p}" for p, kind in enumerate(params)
                              if kind not in STRUCTS)]
            called = [self.draw.randrange(number) for _ in range(self.draw.randrange(3))
                      ] if number else []
            names = ", ".join(f"{kind} p{p}" for p, kind in enumerate(params)) or "void"
            told = f'record("f{number}", {", ".join([str(len(args)), *args])});'
            if number in self.leaves:
                text += f"INLINED void f{number}({names})\n{{\n\t{told}\n}}\n"
                continue
            body = [f"long sum = {number};\n", told, *self.calls(called, words), "return sum;"]
            text += f"INLINED long f{number}({names})\n{{\n\t" + "\n\t".join(body) + "\n}\n"
        body = self.calls(list(range(len(self.params))) * 2, ["a", "b", "sum"])
        return text + ("long entry(long a, long b)\n{\n\tlong sum = 0;\n\n\t" + "\n\t".join(body)
                       + "\n\treturn sum;\n}\n")


GDB = r"""
import gdb, json, re
NAMES = ["rax", "rdx", "rcx", "rbx", "rsi", "rdi", "rbp", "rsp"] + ["r%d" % n for n in range(8, 16)]
MASK = (1 << 64) - 1

def register(text):
    return int(gdb.parse_and_eval("(unsigned long)$" + NAMES[int(text)])) & MASK

def content(place, size):
    # of a parameter in bytes, None: not there
    match = re.match(r"(\*?)\(?reg(\d+)(?:, reg(\d+))?(?: ([+-]) 0x(\w+))?\)?$", place)
    if not match:
        value = int(place, 16) if place != "(none)" else None
        return None if value is None else (value & MASK).to_bytes(8, "little")[:size]
    value = register(match[2])
    if match[5]:
        value += int(match[5], 16) * (1 if match[4] == "+" else -1)
    if match[1]:
        return bytes(gdb.selected_inferior().read_memory(value & MASK, size))
    data = (value & MASK).to_bytes(8, "little")
    if match[3]:
        data += register(match[3]).to_bytes(8, "little")
    return data[:size]

with open("sites.json") as file:
    sites = json.load(file)
gdb.execute("set pagination off")
gdb.execute("set confirm off")
for addr in {site["addr"] for site in sites}:
    gdb.Breakpoint("*%d" % addr).silent = True
record = gdb.Breakpoint("*record")
record.silent = True
lines = 0
hits = []
gdb.execute("run > records.txt")
while gdb.selected_inferior().pid:
    pc = int(gdb.parse_and_eval("(unsigned long)$pc"))
    lines += pc == int(gdb.parse_and_eval("(unsigned long)&record"))
    for site in sites:
        if site["addr"] == pc:
            values = [content(*place) for place in site["places"]]
            hits.append([lines, site["func"], pc, [v if v is None else v.hex() for v in values]])
    gdb.execute("continue")
with open("hits.json", "w") as file:
    json.dump(hits, file)
"""


def sites_of(program: Path, tool: Path, bpftool: Path) -> List[Dict[str, Any]]:
    """What btf_func writes of a program: for each place its address, the function and for each
    parameter the place and the size in bytes."""
    subprocess.run(["pahole", "-J", program], check=True)
    subprocess.run([tool, "--inline", program], check=True)
    types = Types(str(bpftool), str(program), f"{program}.BTF.inline")
    text = subprocess.run(["readelf", "-SW", program], text=True, check=True,
                          stdout=subprocess.PIPE).stdout
    starts = {name: int(addr, 16) for name, addr in
              re.findall(r"(\.text\S*)\s+PROGBITS\s+(\w+)", text)}
    found = []
    for section in [t for t in types.own if t["kind"] == "LOCSEC"]:
        for entry in section["locs"]:
            locs = types.by_id[entry["loc_proto_type_id"]].get("params", [])
            sizes = [types.by_id.get(loc["type_id"], {}).get("size", 0) for loc in locs]
            found.append({"func": types.by_id[entry["func_type_id"]]["name"],
                          "addr": starts[section["name"][len("inline"):]] + entry["offset"],
                          "places": [(loc["value"], size) for loc, size in zip(locs, sizes)]})
    return found


def places(sites: List[Dict[str, Any]]) -> List[Tuple[str, List[Any]]]:
    """All but the addresses, which an object file, as a module is one, does not have."""
    return sorted((site["func"], site["places"]) for site in sites)


def run(program: Program, folder: Path, compiler: List[str], tool: Path,
        bpftool: Path) -> Tuple[List[str], int]:
    """Compile and run a program: what is wrong, and how many values were right."""
    (folder / "main.c").write_text(MAIN)
    (folder / "program.c").write_text(program.source())
    (folder / "script.py").write_text(GDB)
    compiler = [*compiler, "-g", "-fno-pie"]
    subprocess.run([*compiler, "-c", "program.c"], cwd=folder, check=True)
    subprocess.run([*compiler, "-no-pie", "-o", "program", "main.c", "program.o"], cwd=folder,
                   check=True)
    sites = sites_of(folder / "program", tool, bpftool)
    assert places(sites_of(folder / "program.o", tool, bpftool)) == places(sites)
    (folder / "sites.json").write_text(json.dumps(sites))
    subprocess.run(["gdb", "-nx", "-batch", "-x", "script.py", "program"], cwd=folder, check=True,
                   stdout=subprocess.DEVNULL, timeout=120)
    return compare(program, (folder / "records.txt").read_text().splitlines(),
                   json.loads((folder / "hits.json").read_text()))


def compare(program: Program, records: List[str], hits: List[Any]) -> Tuple[List[str], int]:
    """What was read each time that a place was reached, with the function's next line."""
    wrong: List[str] = []
    right = 0
    for before, func, pc, values in hits:
        params = program.params[int(func[1:])]
        words = next((line.split()[1:] for line in records[before:] if line.split()[0] == func),
                     None)
        if words is None:
            wrong.append(f"{func}() at {pc:#x}{NOT_CALLED}")
            continue
        for p in program.recorded[int(func[1:])]:
            nr = len(STRUCTS.get(params[p], [""]))
            told, words = words[:nr], words[nr:]
            if values[p] is None:
                continue
            data = bytes.fromhex(values[p])
            want = b"".join(int(word, 16).to_bytes(8, "little") for word in told)[:len(data)]
            right += data == want
            if data != want:
                wrong.append(f"{func}() at {pc:#x}, line {before}: {params[p]} p{p} is "
                             f"{data.hex()}, passed was {want.hex()}")
    return wrong, right

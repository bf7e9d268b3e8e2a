# SPDX-License-Identifier: GPL-2.0
"""The examples of BPF programs at probe points, in README, covers and man pages."""
from __future__ import annotations

import re
from typing import Iterator, NamedTuple

from perfbpf.paths import LINUX, TOP
from perfbpf.series import PATCHES

PAGES = ("README.md", "patches/README.md", *(str(path.relative_to(TOP))
                                             for path in sorted(PATCHES.glob("*/cover.txt"))))
MAN_PAGES = ("perf-probe.txt", "perf-record.txt")
# of libbpf, and the grammar itself
NO_POINT = re.compile(r'^(\?|tp/|fentry|fexit|kprobe|uprobe|perf_event|license|\.|\[KEY)')
# What examples name that is no function of the kernel
PROGRAM = """
struct item { unsigned int size; const char *name; };
#define probed __attribute__((noinline, noclone, used))
probed void item_add(struct item *item) { asm volatile("" :: "r" (item) : "memory"); }
probed void my_func_a_abcd(long arg1) { asm volatile("" :: "r" (arg1) : "memory"); }
probed void my_func_b_abcd(int a, long arg1) { asm volatile("" :: "r" (arg1), "r" (a)); }
int main(void) { struct item item = { 1, "fig" }; item_add(&item); return 0; }
"""
START = """
typedef unsigned long long u64;
#define SEC(name) __attribute__((section(name), used))
char _license[] SEC("license") = "GPL";
"""


class Example(NamedTuple):
    """A section, and the C code of the program if the text has it."""
    page: str
    section: str
    code: str

    def source(self) -> str:
        """A program that is compiled as it stands in the text."""
        if self.code.rstrip().endswith("}"):
            return START + self.code
        if self.code:
            return f"{START}{self.code.rstrip()} {{ return 1; }}\n"
        names = ", ".join(f"u64 a{i}" for i in range(len(self.section.split()) - 1))
        return (f'{START}SEC("{self.section}")\n'
                f"int prog(void *ctx, int err{names and ', '}{names}) {{ return 1; }}\n")


def examples() -> Iterator[Example]:
    """Those of all texts."""
    texts = {page: (TOP / page).read_text(encoding="utf-8") for page in PAGES}
    texts.update((page, (LINUX / "tools/perf/Documentation" / page).read_text(encoding="utf-8"))
                 for page in MAN_PAGES)
    for page, text in texts.items():
        for match in re.finditer(r'SEC\("([^"]+)"\)(\n\s+int [^{;]*?\)(?:\n\s+\{.*?\n\s+\})?)?',
                                 text, re.DOTALL):
            if not NO_POINT.match(match[1]):
                yield Example(page, match[1], f"{match[0]}\n" if match[2] else "")

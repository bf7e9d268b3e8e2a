# SPDX-License-Identifier: GPL-2.0
"""The examples of BPF programs at probe points, in README, covers and man pages, are compiled, and
perf probe finds their points: in the kernel that was built, or in a program of the test."""
from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from bpf_examples import PROGRAM, Example, examples
from perfbpf.paths import LINUX
from subject import BUILD, run_perf

VMLINUX = BUILD / "out-kernel/vmlinux"
EXAMPLES = list(examples())


@pytest.mark.both
def test_examples_are_found() -> None:
    """README, a cover and the man page have some."""
    assert {"README.md", "perf-probe.txt"} <= {example.page for example in EXAMPLES}
    assert any("cover" in example.page for example in EXAMPLES)
    assert sum(example.code.rstrip().endswith("}") for example in EXAMPLES) >= 3


@pytest.mark.skipif(not shutil.which("clang") or not shutil.which("gcc"), reason="no compiler")
@pytest.mark.skipif(not VMLINUX.exists(), reason="the kernel is not built")
@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: f"{example.page}-{example[1]}")
def test_example(tmp_path: Path, example: Example) -> None:
    """perf probe --bpf finds the points of the example."""
    (tmp_path / "store.c").write_text(PROGRAM)
    subprocess.run(["gcc", "-O2", "-g", "-o", "store", "store.c"], cwd=tmp_path, check=True)
    source = example.source().replace('SEC("func=my_func', 'SEC("exec=./store;func=my_func')
    (tmp_path / "prog.bpf.c").write_text(source)
    subprocess.run(["clang", "-O2", "-g", "--target=bpf", "-c", "-o", "prog.bpf.o", "prog.bpf.c"],
                   cwd=tmp_path, check=True)
    result = run_perf(tmp_path, ["probe", "--vmlinux", str(VMLINUX), "--bpf", "prog.bpf.o"])
    assert result.status == 0 and re.search(r"^[pr]:perf_bpf_probe/", result.out, re.MULTILINE), \
        f"{result}\n{source}"


def excerpt(begin: str, end: str) -> str:
    """C code of perf-record.txt, from @begin up to the line @end."""
    text = (LINUX / "tools/perf/Documentation/perf-record.txt").read_text(encoding="utf-8")
    lines = text[text.index(begin):].split("\n")
    stop = next(i for i, line in enumerate(lines) if line.strip() == end and
                not line.startswith("\t\t"))
    return "\n".join(lines[:stop + 1])


@pytest.mark.skipif(not shutil.which("clang"), reason="no compiler")
@pytest.mark.skipif(platform.machine() != "x86_64", reason="registers of x86_64")
@pytest.mark.skipif(os.geteuid() != 0, reason="BPF programs take root")
def test_program_for_samples(tmp_path: Path) -> None:
    """The program of --bpf-prog, with its variable, and the histogram of --bpf-prog-maps."""
    program = excerpt("const volatile unsigned long distance", "}").replace(
        "return", "__sync_fetch_and_add(&size_hist[log2(ctx->addr)], 1); return")
    histogram = excerpt("__u64 size_hist[32];", "}")
    (tmp_path / "faults.bpf.c").write_text(
        "#include <linux/ptrace.h>\n#include <linux/bpf.h>\n#include <linux/bpf_perf_event.h>\n"
        "#include <bpf/bpf_helpers.h>\n#include <bpf/bpf_tracing.h>\n"
        f"{histogram}\n{program}\n"
        'char _license[] SEC("license") = "GPL";\n')
    subprocess.run(["clang", "-O2", "-g", "--target=bpf", "-D__TARGET_ARCH_x86", "-D__x86_64__",
                    "-I", str(BUILD / "out-perf/libbpf/include"),
                    "-I", "/usr/include/x86_64-linux-gnu",
                    "-c", "-o", "faults.bpf.o", "faults.bpf.c"], cwd=tmp_path, check=True)
    kept = []
    for distance in (0, (1 << 64) - 1):
        result = run_perf(tmp_path, ["record", "-e", "page-faults", "-c", "1", "-d", "--bpf-prog",
                                     f"faults.bpf.o,distance={distance}", "--bpf-prog-maps", "--",
                                     "true"])
        assert result.status == 0, str(result)
        slots = re.findall(r"^  \[\S+, \S+\) +(\d+) \|[@ ]{40}\|$", result.err, re.MULTILINE)
        assert sum(map(int, slots)) > 0, str(result)
        events = run_perf(tmp_path, ["script", "-F", "event"])
        kept.append(len(events.out.splitlines()))
    assert kept[0] == 0 < kept[1], kept

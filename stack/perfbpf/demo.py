# SPDX-License-Identifier: GPL-2.0
"""stack/demo [--plan]: record BPF programs at work in the guest; then, with the guest gone,
report and annotate them from the perf.data alone.

--plan prints what is left to install and to build, and how long that takes, and stops.

PERF_BPF_SUBJECT=base takes the unpatched kernel and perf, to compare.
D3_FLAMEGRAPH_TEMPLATE=FILE names the flame graph's HTML template.
DEMO_SECONDS=N records for N seconds, 8 unless it is set.
"""
from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from perfbpf import build
from perfbpf.stage import STAMP, Run, say, stage
from perfbpf.git import ToolError
from perfbpf.paths import BASE, BUILD, KERNELS, LINUX, PERFS, PYTHON, TOP

SUBJECT = os.environ.get("PERF_BPF_SUBJECT") or "series"
TREE = BASE if SUBJECT == "base" else LINUX
SOURCE = TOP / "stack/demo.d"
OBJECTS = BUILD / "demo"
RESULTS = BUILD / "results/demo"
DATA, REPORT, HOME = RESULTS / "perf.data", RESULTS / "report.txt", RESULTS / "home"
D3_VERSION, D3_PAGE = "4.1.3", "d3-flamegraph-base.html"
TEMPLATE = Path(os.environ.get("D3_FLAMEGRAPH_TEMPLATE")
                or BUILD / f"tools/d3-flame-graph/{D3_PAGE}").absolute()
SHOWN_LINES = 5


def plan() -> None:
    """Print what is left to do. The minutes were seen on two cores and with a near mirror."""
    cores = os.cpu_count() or 1
    missing = subprocess.run([TOP / "stack/setup", "--list"], stdout=subprocess.PIPE, text=True,
                             check=True).stdout.splitlines()
    todo = [(minutes, what) for minutes, what, there in (
        (1, f"{len(missing)} packages", not missing), (1, "the kernel's source", BASE.exists()),
        (1, "the series as commits", LINUX.exists()),
        (max(1, 8 // cores), "perf", (PERFS[SUBJECT].path / STAMP).exists()),
        (max(1, 18 // cores), "the kernel", (KERNELS[SUBJECT].path / STAMP).exists()),
        (1, "recording and reports", False)) if not there]
    say(f"demo: takes about {sum(minutes for minutes, _ in todo)} min on {cores} cores: "
        + ", ".join(f"{what} ({minutes} min)" for minutes, what in todo))


def fetch_template(run: Run) -> None:
    """Get the template alone out of the npm package: nothing of it is run (ToolError)."""
    if TEMPLATE.exists():
        return
    TEMPLATE.parent.mkdir(parents=True, exist_ok=True)
    member = f"package/dist/templates/{D3_PAGE}"
    with tempfile.TemporaryDirectory(dir=BUILD) as scratch:
        try:
            run(["npm", "pack", "--silent", f"d3-flame-graph@{D3_VERSION}"], cwd=scratch)
            run(["tar", "-xzf", next(Path(scratch).glob("*.tgz")), member], cwd=scratch)
        except (OSError, subprocess.CalledProcessError, StopIteration) as error:
            raise ToolError(f"cannot fetch the npm package d3-flame-graph@{D3_VERSION}, whose"
                            f" template the flame graph needs: name a copy of {D3_PAGE} in"
                            " D3_FLAMEGRAPH_TEMPLATE") from error
        shutil.move(f"{scratch}/{member}", TEMPLATE)


def build_workload(run: Run) -> None:
    """Compile the BPF programs and what loads them; from the top, which is cut off, so that the
    names in BTF are short."""
    libbpf = PERFS[SUBJECT].path / "libbpf"
    includes = ["-I", libbpf / "include", "-I", TREE / "tools/include/uapi",
                "-I", f"/usr/include/{os.uname().machine}-linux-gnu"]
    OBJECTS.mkdir(parents=True, exist_ok=True)
    run(["clang", "-g", "-O2", "-Wall", "-Werror", "-target", "bpf", *includes,
         f"-fdebug-prefix-map={TOP}=.", "-c", "stack/demo.d/flow.bpf.c", "-o",
         OBJECTS / "flow.bpf.o"], cwd=TOP)
    run(["gcc", "-g", "-O2", "-Wall", "-Wextra", "-Werror", *includes, "-o", OBJECTS / "load",
         SOURCE / "load.c", libbpf / "libbpf.a", "-lelf", "-lz", "-lzstd"])


def record(run: Run) -> None:
    """Record in the guest. perf.data goes to the guest's memory first: 9p cannot take a write
    out of perf's ring buffer (EFAULT)."""
    words = [PERFS[SUBJECT].path / "perf", "record", "-N", "-a", "-g", "-e", "cpu-clock",
             "-F", "999", "-o", "/tmp/perf.data", "--", OBJECTS / "load", OBJECTS / "flow.bpf.o",
             os.environ.get("DEMO_SECONDS") or "8"]
    shutil.rmtree(RESULTS, ignore_errors=True)
    RESULTS.mkdir(parents=True)
    run([TOP / "stack/guest", "--kernel", SUBJECT, "--timeout", "300", "--again", "--results",
         RESULTS, "--", f"{shlex.join(map(str, words))} && cp /tmp/perf.data {DATA}"])


def host_perf(*args: str) -> str:
    """What perf prints on this machine, with the guest's vmlinux for the kernel's symbols and
    nothing of this machine's configuration and caches."""
    out = PERFS[SUBJECT].path
    HOME.mkdir(parents=True, exist_ok=True)
    return subprocess.run(
        [out / "perf", args[0], "-i", DATA, "-k", KERNELS[SUBJECT].path / "vmlinux", *args[1:]],
        env={**os.environ, "PATH": f"{out}:{os.environ['PATH']}", "PERF_CONFIG": "/dev/null",
             "HOME": str(HOME), "PERF_BUILDID_DIR": f"{HOME}/debug", "PAGER": "cat"},
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, check=True).stdout


def report(_run: Run) -> None:
    """report.txt: the functions, by their shares."""
    REPORT.write_text(host_perf("report", "--stdio", "--no-children", "-g", "none", "--sort",
                                "sym,dso"))
    if "bpf_prog_" not in REPORT.read_text():
        raise ToolError(f"no sample in a BPF program: {REPORT} has no bpf_prog_* symbol; did the"
                        f" workload run? See {RESULTS}/output.log")


def shares_of_lines(share: float, annotated: str) -> dict[int, float]:
    """What a function's source lines have of all samples, in percent. perf puts ": NUMBER TEXT"
    above a line's instructions."""
    number = 0
    shares: dict[int, float] = {}
    for words in map(str.split, annotated.splitlines()):
        if len(words) > 1 and words[0] == ":" and re.fullmatch(r"[1-9]\d*", words[1]):
            number = int(words[1])
        elif number and len(words) > 1 and words[1] == ":" and re.fullmatch(r"[\d.]+", words[0]):
            shares[number] = shares.get(number, 0) + float(words[0]) * share / 100
    return {line: value for line, value in shares.items() if value}


def annotate(_run: Run) -> None:
    """annotate/: each BPF function with samples; annotate.txt: the hottest static one, whose
    symbol is in hottest.txt; lines.txt: all source lines with their shares."""
    symbols = subprocess.run(["readelf", "-Ws", OBJECTS / "flow.bpf.o"], text=True, check=True,
                             stdout=subprocess.PIPE).stdout
    static = re.findall(r" FUNC +LOCAL .* (\w+)$", symbols, re.MULTILINE)
    lines, hottest = [], ""
    (RESULTS / "annotate").mkdir()
    for share, symbol, name in re.findall(
            r"^ +([\d.]+)% +\[k\] (bpf_prog_[\da-f]{16}_([a-z_]+)) ", REPORT.read_text(),
            re.MULTILINE):
        text = host_perf("annotate", "--stdio", symbol)
        if f"Disassembly of {symbol} " not in text:     # perf's status is 0 all the same
            raise ToolError(f"perf annotate shows nothing for {symbol}")
        (RESULTS / f"annotate/{name}.txt").write_text(text)
        lines += [(value, number, name)
                  for number, value in shares_of_lines(float(share), text).items()]
        if name in static and not hottest:
            hottest = symbol
            (RESULTS / "annotate.txt").write_text(text)
            (RESULTS / "hottest.txt").write_text(f"{symbol}\n")
    if not hottest or not lines:
        raise ToolError("no sample in a BPF subprogram, or no source line in its annotation: see"
                        f" {REPORT} and {RESULTS}/annotate")
    (RESULTS / "lines.txt").write_text("".join(
        f"{value:.2f} {number} {name}\n" for value, number, name in sorted(lines, reverse=True)))


def flame_graph(_run: Run) -> None:
    """flamegraph.html. An inlined callee is often not where the return address says, so these
    are left out: no guesses."""
    page = RESULTS / "flamegraph.html"
    host_perf("script", "--no-inline", "-s", f"{TREE}/tools/perf/scripts/python/flamegraph.py",
              "--", "--template", str(TEMPLATE), "--input", str(DATA), "--output", str(page))
    if not re.search(r"flow_hash \[bpf |bpf_prog_[0-9a-f]*_flow_hash", page.read_text()):
        raise ToolError(f"{page} does not name the BPF function flow_hash")


def pictures(run: Run) -> None:
    """What two commands print, as SVG."""
    symbol = (RESULTS / "hottest.txt").read_text().strip()
    for name, args in (("programs", ["report", "--bpf-programs"]),
                       ("annotate", ["annotate", "--stdio", "--stdio-color", "always", symbol])):
        run([PYTHON, SOURCE / "picture.py", f"perf {args[0]} {args[-1]}", RESULTS / f"{name}.svg"],
            stdin=None, input=host_perf(*args), text=True)


def summary() -> None:
    """The hottest source lines, and where everything is."""
    source = (SOURCE / "flow.bpf.c").read_text().splitlines()
    print("\nThe hottest source lines of the BPF programs, as parts of all samples:")
    for line in (RESULTS / "lines.txt").read_text().splitlines()[:SHOWN_LINES]:
        share, number, name = line.split()
        print(f"  {share:>6}%  flow.bpf.c:{number:4} {name:12} |{source[int(number) - 1]}")
    print(f"\n{(RESULTS / 'output.log').read_text().splitlines()[0]}")
    for what, where in (("report", REPORT), ("annotated", RESULTS / "annotate.txt"),
                        ("all of them", f"{RESULTS}/annotate/"),
                        ("flame graph", RESULTS / "flamegraph.html"),
                        ("pictures", f"{RESULTS}/programs.svg, {RESULTS}/annotate.svg"),
                        ("recording", DATA)):
        print(f"{what:12} {where}")


def main() -> int:
    """Exit status: 0 all was shown, 2 the command line is wrong (ToolError: something failed)."""
    if sys.argv[1:] not in ([], ["--plan"]) or SUBJECT not in PERFS:
        print(f"{__doc__}\nPERF_BPF_SUBJECT is {' or '.join(PERFS)}", file=sys.stderr)
        return 2
    if os.environ.get("D3_FLAMEGRAPH_TEMPLATE") and not TEMPLATE.is_file():
        raise ToolError(f"D3_FLAMEGRAPH_TEMPLATE={TEMPLATE}: no such file: name a copy of"
                        f" {D3_PAGE}, or unset it to have one fetched")
    if sys.argv[1:]:
        plan()
        return 0
    build.perf(SUBJECT)
    build.kernel(SUBJECT)
    for name, action in (("template", fetch_template), ("workload", build_workload),
                         ("record", record), ("report", report), ("annotate", annotate),
                         ("flamegraph", flame_graph), ("pictures", pictures)):
        stage(f"demo-{name}", action)
    summary()
    return 0

# SPDX-License-Identifier: GPL-2.0
"""stack/demo [perf] [--plan]: two acts. The first records BPF programs at work on this machine's
own kernel with the perf of the series, and reports and annotates them from the perf.data alone.
The second builds the kernel of the series, and records in the guest what no other kernel tells.

perf is the first act alone. Where this machine's kernel refuses the programs, or the user is not
root, the guest's kernel runs them. --plan prints what is left to do and how long that takes, and
stops.

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
from functools import partial
from pathlib import Path
from typing import Callable

from perfbpf import build
from perfbpf.stage import STAMP, Run, say, slowness, stage
from perfbpf.git import ToolError
from perfbpf.paths import BASE, BUILD, KERNELS, LINUX, PERFS, PYTHON, TOP

SUBJECT = os.environ.get("PERF_BPF_SUBJECT") or "series"
TREE = BASE if SUBJECT == "base" else LINUX
SOURCE = TOP / "stack/demo.d"
OBJECTS = BUILD / "demo"
RESULTS, IN_GUEST = BUILD / "results/demo", BUILD / "results/demo-guest"
DATA, REPORT, HOME = RESULTS / "perf.data", RESULTS / "report.txt", RESULTS / "home"
D3_VERSION, D3_PAGE = "4.1.3", "d3-flamegraph-base.html"
TEMPLATE = Path(os.environ.get("D3_FLAMEGRAPH_TEMPLATE")
                or BUILD / f"tools/d3-flame-graph/{D3_PAGE}").absolute()
SECONDS = os.environ.get("DEMO_SECONDS") or "8"
SHOWN_LINES = 5
PERF = PERFS[SUBJECT].path / "perf"
VMLINUX = KERNELS[SUBJECT].path / "vmlinux"
WORKLOAD: list[str | Path] = [OBJECTS / "load", OBJECTS / "flow.bpf.o", SECONDS]
RECORD: list[str | Path] = [PERF, "record", "-N", "-g", "-e", "cpu-clock", "-F", "999"]
# The network of the workload is its own: no packet of this machine passes its programs of XDP and
# tc. Those of fentry and fexit run for each UDP packet that is sent meanwhile.
OWN_NETWORK = ["unshare", "--net", "sh", "-c", 'ip link set lo up && exec "$@"', "sh"]


def plan() -> None:
    """Print what is left to do, and about how long it takes here with a near mirror."""
    missing = subprocess.run([TOP / "stack/setup", "--list"], stdout=subprocess.PIPE, text=True,
                             check=True).stdout.splitlines()
    perf, kernel = PERFS[SUBJECT].path / STAMP, KERNELS[SUBJECT].path / STAMP
    first = [(seconds, what) for seconds, what, there in (
        (25, f"{len(missing)} packages", not missing), (40, "the kernel's source", BASE.exists()),
        (30, "the series as commits", LINUX.exists()), (70, "perf", perf.exists()),
        (10, "recording and reports", False)) if not there]
    second = [(seconds, what) for seconds, what, there in (
        (400, "the kernel", kernel.exists()), (20, "the guest", False)) if not there]
    for act, todo in (("this machine's kernel", first), ("the kernel of the series", second))[
            :1 if "perf" in sys.argv else 2]:
        total = sum(seconds for seconds, _ in todo) * slowness()
        say(f"demo, on {act}: about {max(1, round(total / 60))} min: "
            + ", ".join(what for _, what in todo))


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
    includes: list[str | Path] = ["-I", libbpf / "include", "-I", TREE / "tools/include/uapi",
                "-idirafter", TREE / "tools/include",
                "-I", f"/usr/include/{os.uname().machine}-linux-gnu"]
    OBJECTS.mkdir(parents=True, exist_ok=True)
    for name in ("flow", "sample")[:1 if SUBJECT == "base" else 2]:
        run(["clang", "-g", "-O2", "-Wall", "-Werror", "-target", "bpf", *includes,
             f"-fdebug-prefix-map={TOP}=.", "-c", f"stack/demo.d/{name}.bpf.c", "-o",
             OBJECTS / f"{name}.bpf.o"], cwd=TOP)
    run(["gcc", "-g", "-O2", "-Wall", "-Wextra", "-Werror", *includes, "-o", OBJECTS / "load",
         SOURCE / "load.c", libbpf / "libbpf.a", "-lelf", "-lz", "-lzstd"])


def record(run: Run) -> None:
    """Record two CPUs of this machine, all that the workload needs (CalledProcessError)."""
    shutil.rmtree(RESULTS, ignore_errors=True)
    RESULTS.mkdir(parents=True)
    cpus = ",".join(map(str, sorted(os.sched_getaffinity(0))[:2]))
    with open(RESULTS / "output.log", "w", encoding="utf-8") as log:
        run([*OWN_NETWORK, "taskset", "-c", cpus, *RECORD, "-C", cpus, "-o", DATA, "--", *WORKLOAD],
            stdout=log, stderr=log, timeout=120 + int(SECONDS))


def refusal() -> str:
    """Record this machine's kernel, and look for names and code of BPF programs: "", or what is
    missing."""
    if os.geteuid():
        return "only root records it and loads BPF programs"
    say(f"demo: this machine's kernel is {os.uname().release}, recorded for {SECONDS} s")
    try:
        stage("demo-record", record)
        look(False)
    except (ToolError, subprocess.TimeoutExpired) as error:
        log = RESULTS / "output.log"
        said = re.findall("^(?:load|unshare|ip): .*", log.read_text(errors="replace"), re.MULTILINE)
        words = str(error).splitlines()[-2:-1] if (RESULTS / "report.txt").exists() else said[-1:]
        return f"{' '.join(words or [str(error)])} (see {log})"
    return ""


def look(kernel: bool) -> None:
    """Report and annotate the first act's recording, in the guest if `kernel` (ToolError)."""
    perf = partial(host_perf, DATA, kernel=kernel)
    stage("demo-report", partial(report, perf))
    stage("demo-annotate", partial(annotate, perf))


def guest(results: Path, command: str, run: Run) -> None:
    """Run a command in the guest. perf.data goes to the guest's memory first: 9p cannot take a
    write out of perf's ring buffer (EFAULT)."""
    shutil.rmtree(results, ignore_errors=True)
    results.mkdir(parents=True)
    run([TOP / "stack/guest", "--kernel", SUBJECT, "--timeout", "600", "--again", "--results",
         results, "--", command])


def host_perf(data: Path, *args: str | Path, kernel: bool = False) -> str:
    """What perf prints on this machine, of a recording in the guest with the guest's vmlinux for
    the kernel's symbols, and with nothing of this machine's configuration and caches."""
    HOME.mkdir(parents=True, exist_ok=True)
    symbols: list[str | Path] = ["-k", VMLINUX] if kernel else []
    return subprocess.run(
        [PERF, args[0], "-i", data, *symbols, *args[1:]],
        env={**os.environ, "PATH": f"{PERF.parent}:{os.environ['PATH']}", "HOME": str(HOME),
             "PERF_CONFIG": "/dev/null", "PERF_BUILDID_DIR": f"{HOME}/debug", "PAGER": "cat"},
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, check=True).stdout


# The first act

Perf = Callable[..., str]


def report(perf: Perf, _run: Run) -> None:
    """report.txt: the functions, by their shares."""
    REPORT.write_text(perf("report", "--stdio", "--no-children", "-g", "none", "--sort", "sym,dso"))
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


def annotate(perf: Perf, _run: Run) -> None:
    """annotate/: each BPF function with samples; annotate.txt: the hottest static one, whose
    symbol is in hottest.txt; lines.txt: all source lines with their shares."""
    symbols = subprocess.run(["readelf", "-Ws", OBJECTS / "flow.bpf.o"], text=True, check=True,
                             stdout=subprocess.PIPE).stdout
    functions = re.findall(r" FUNC +(LOCAL|GLOBAL) .* (\w+)$", symbols, re.MULTILINE)
    lines, hottest = [], ""
    (RESULTS / "annotate").mkdir()
    for share, symbol, name in re.findall(
            r"^ +([\d.]+)% +\[k\] (bpf_prog_[\da-f]{16}_([a-z_]+)) ", REPORT.read_text(),
            re.MULTILINE):
        if name not in (function for _, function in functions):
            continue        # a program of somebody else's
        text = perf("annotate", "--stdio", symbol)
        if f"Disassembly of {symbol} " not in text:     # perf's status is 0 all the same
            raise ToolError(f"perf annotate shows nothing for {symbol}")
        (RESULTS / f"annotate/{name}.txt").write_text(text)
        lines += [(value, number, name)
                  for number, value in shares_of_lines(float(share), text).items()]
        if ("LOCAL", name) in functions and not hottest:
            hottest = symbol
            (RESULTS / "annotate.txt").write_text(text)
            (RESULTS / "hottest.txt").write_text(f"{symbol}\n")
    if not hottest or not lines:
        raise ToolError("no sample in a BPF subprogram, or no source line in its annotation: see"
                        f" {REPORT} and {RESULTS}/annotate")
    (RESULTS / "lines.txt").write_text("".join(
        f"{value:.2f} {number} {name}\n" for value, number, name in sorted(lines, reverse=True)))


def flame_graph(perf: Perf, run: Run) -> None:
    """flamegraph.html. An inlined callee is often not where the return address says, so these
    are left out: no guesses."""
    page = RESULTS / "flamegraph.html"
    fetch_template(run)
    perf("script", "--no-inline", "-s", f"{TREE}/tools/perf/scripts/python/flamegraph.py",
         "--", "--template", str(TEMPLATE), "--input", str(DATA), "--output", str(page))
    if not re.search(r"flow_hash \[bpf |bpf_prog_[0-9a-f]*_flow_hash", page.read_text()):
        raise ToolError(f"{page} does not name the BPF function flow_hash")


def pictures(perf: Perf, run: Run) -> None:
    """What two commands print, as SVG."""
    symbol = (RESULTS / "hottest.txt").read_text().strip()
    for name, args in (("programs", ["report", "--bpf-programs"]),
                       ("annotate", ["annotate", "--stdio", "--stdio-color", "always", symbol])):
        shown = "\n".join(line.rstrip() for line in perf(*args).splitlines() if line != "#" and
                          not line.startswith(("# To display", "# Total Lost", "# (Cannot load")))
        run([PYTHON, SOURCE / "picture.py", f"perf {args[0]} {args[-1]}", RESULTS / f"{name}.svg"],
            stdin=None, input=f"{shown.strip()}\n", text=True)


def print_lines() -> None:
    """The hottest source lines."""
    source = (SOURCE / "flow.bpf.c").read_text().splitlines()
    print("\nThe hottest source lines of the BPF programs, as parts of all samples:")
    for line in (RESULTS / "lines.txt").read_text().splitlines()[:SHOWN_LINES]:
        share, number, name = line.split()
        print(f"  {share:>6}%  flow.bpf.c:{number:4} {name:12} |{source[int(number) - 1]}")
    flows = re.search(r"^\d+ flows, .*", (RESULTS / "output.log").read_text(), re.MULTILINE)
    print(f"\n{flows[0] if flows else ''}", flush=True)


def print_places() -> None:
    """Where everything is."""
    for what, where in (("report", REPORT), ("annotated", RESULTS / "annotate.txt"),
                        ("all of them", f"{RESULTS}/annotate/"),
                        ("flame graph", RESULTS / "flamegraph.html"),
                        ("pictures", f"{RESULTS}/programs.svg, {RESULTS}/annotate.svg"),
                        ("recording", DATA)):
        print(f"{what:12} {where}", flush=True)


def show(kernel: bool) -> None:
    """Show what the first act found."""
    perf = partial(host_perf, DATA, kernel=kernel)
    print_lines()
    if SUBJECT == "series":
        print(perf("report", "--bpf-programs"))
    stage("demo-flamegraph", partial(flame_graph, perf))
    stage("demo-pictures", partial(pictures, perf))
    print_places()


# The second act

def second_act() -> None:
    """Record in the guest what comes and goes, and show what only this kernel tells of it."""
    command = shlex.join(["bash", f"{SOURCE}/second.sh", *map(str, (PERF, OBJECTS, IN_GUEST))])
    stage("demo-guest", partial(guest, IN_GUEST, command))
    perf = partial(host_perf, IN_GUEST / "perf.data", kernel=True)
    # of the module perf has the name here, but not the file
    samples = re.findall(r"^ *ffff[0-9a-f]{12} (.*) \((.*)\)$",
                         perf("script", "-G", "-F", "ip,sym,dso"), re.M)
    nameless = sum(name == "[unknown]" and "dummy" not in dso for name, dso in samples)
    header = perf("report", "--header-only", "-I")
    events = perf("script", "--show-bpf-events", "-F", "time,event")
    loaded, ended = (set(re.findall(rf"BPF_EVENT.* type {kind}, .* id (\d+)$", events, re.M))
                     for kind in "12")
    described = set(re.findall(r"^# bpf_prog_info (\d+):", header, re.M))
    gone = loaded & ended
    print("\nWhat only the kernel of the series tells, recorded in the guest while programs,"
          " seccomp filters,\nkprobes, tracers and a module came and went:\n"
          f"  {len(samples)} samples in the kernel, {nameless} of them without a name\n"
          f"  {len(gone)} BPF programs were loaded and gone before the end, {len(gone & described)}"
          " have their code")
    report_text = perf("report", "--stdio", "--no-children", "-g", "none", "--sort", "sym")
    for what, pattern, instruction in (
            ("classic BPF, a seccomp filter", "cbpf_prog_[0-9a-f]+", "cmp.*0x7fffffff"),
            ("a BPF trampoline", "bpf_trampoline_[0-9]+", "call.*<udp_sendmsg")):
        print_code(perf, what, pattern, instruction, report_text)
    print((IN_GUEST / "said.txt").read_text())


def print_code(perf: Perf, what: str, pattern: str, instruction: str, text: str) -> None:
    """The share of a text and one of its instructions (ToolError: none has such)."""
    for share, symbol in re.findall(rf"^ +([\d.]+)% +\[k\] ({pattern})$", text, re.M):
        code = perf("annotate", "--stdio", "-s", symbol)
        found = re.search(rf"^.*\b{instruction}.*$", code, re.MULTILINE)
        if found:
            line = " ".join(found[0].partition(":")[2].split())
            print(f"  {what}: {share}% {symbol}\n    {line}")
            return
    raise ToolError(f"{what}: no sample, or no code of it, in {IN_GUEST}/perf.data")


def main() -> int:
    """Exit status: 0 all was shown, 2 the command line is wrong (ToolError: something failed)."""
    only_first = sys.argv[1:2] == ["perf"]
    if sys.argv[1 + only_first:] not in ([], ["--plan"]) or SUBJECT not in PERFS:
        print(f"{__doc__}\nPERF_BPF_SUBJECT is {' or '.join(PERFS)}", file=sys.stderr)
        return 2
    if os.environ.get("D3_FLAMEGRAPH_TEMPLATE") and not TEMPLATE.is_file():
        raise ToolError(f"D3_FLAMEGRAPH_TEMPLATE={TEMPLATE}: no such file: name a copy of"
                        f" {D3_PAGE}, or unset it to have one fetched")
    if only_first and os.geteuid():
        raise ToolError("only root records this machine's kernel and loads BPF programs; `make"
                        " demo` does it in a guest")
    if "--plan" in sys.argv:
        plan()
        return 0
    build.perf(SUBJECT)
    stage("demo-workload", build_workload)
    why = refusal()
    if not why:
        show(False)
    elif only_first:
        raise ToolError(f"this machine's kernel cannot be recorded: {why}. `make demo` does it in a"
                        " guest")
    else:
        say(f"demo: this machine's kernel cannot be recorded, the guest's is: {why}")
    say(f"demo: {'`make demo` goes on with' if only_first else 'next,'} what only the kernel of the"
        " series tells: programs that are gone, seccomp filters, trampolines, ctx->data, a probe"
        " with the arguments of one of several functions of a name")
    if only_first:
        return 0
    build.kernel(SUBJECT)
    if why:
        command = shlex.join(map(str, [*RECORD, "-a", "-o", "/tmp/perf.data", "--", *WORKLOAD]))
        stage("demo-record", partial(guest, RESULTS, f"{command} && cp /tmp/perf.data {DATA}"))
        look(True)
        show(True)
    second_act()
    return 0

# SPDX-License-Identifier: GPL-2.0
"""The demo: BPF programs recorded on this machine's kernel, or in the guest where that cannot
run them; then in the guest what only the series' kernel tells.

The unpatched perf cannot annotate a subprogram, so stack/demo stops there and
all of these fail.  Only the annotation and the summary show what the series
does: report and flame graph, taken alone, have the names on the base too.
"""

import json
import os
import re
import shutil
import subprocess
import xml.etree.ElementTree
from pathlib import Path
from typing import Dict, Iterator, List, Tuple

import pytest

import guest_host as host
from exports import EXPORTS
from subject import perf_binary
from perfbpf.demo import shares_of_lines
from perfbpf.paths import BUILD, TOP
from perfbpf.stage import slowness

RESULTS, IN_GUEST = BUILD / "results/demo", BUILD / "results/demo-guest"
SOURCE = TOP / "stack/demo.d/flow.bpf.c"
# Programs and subprograms whose work is in every packet.
FUNCTIONS = ["flow_meter", "parse_packet", "find_flow", "classify", "take_tokens", "flow_hash",
             "word_meter", "count_word"]
# Those that some kernels refuse
TRACING = ["send_begin", "send_end"]
# As perf prints an annotated function
ANNOTATED = "0.00 : 7 int x;\n : 12 x = y;\n 30.00 : 1a: mov\n 20.00 : 1d: add\n : 13 }\n 50.00 :" \
    " 20: ret\n 0.00 : 21: nop\n : 12 x = y;\n 10.00 : 24: add\n : 0 none\n"


@pytest.mark.both
def test_shares_of_lines() -> None:
    """The lines above a line's instructions have their shares, of all samples."""
    assert shares_of_lines(50, ANNOTATED) == pytest.approx({12: 30, 13: 25})


@pytest.fixture(scope="module", name="said")
def fixture_said() -> str:
    """What the demo prints; runs it once, recording included.

    Raises RuntimeError when it did not get as far as looking at the recording:
    on the base, where failures are wanted, that must not count as one.
    """
    ended = subprocess.run([str(TOP / "stack/demo")], stdin=subprocess.DEVNULL,
                           stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                           text=True, check=False, timeout=900 * max(1, slowness() / 3))
    if ended.returncode and "demo-report: done" not in ended.stdout:
        raise RuntimeError(f"nothing to look at:\n{ended.stdout}")
    assert ended.returncode == 0, ended.stdout
    return ended.stdout


def functions() -> List[str]:
    """Those that ran."""
    said = (RESULTS / "output.log").read_text(errors="replace")
    return FUNCTIONS + ([] if "trying without fentry" in said else TRACING)


def named(text: str, function: str) -> bool:
    """Does a text have this function's BPF symbol?"""
    return bool(re.search(rf"bpf_prog_[0-9a-f]{{16}}_{function}\b", text))


@pytest.mark.usefixtures("said")
def test_report_names_functions(record_property: host.Note) -> None:
    """Most functions got samples, and each under its own name."""
    host.note_guest(RESULTS, record_property)
    report = (RESULTS / "report.txt").read_text()
    seen = [name for name in functions() if named(report, name)]
    assert len(seen) >= len(functions()) - 2, f"only {seen} in {RESULTS}/report.txt"
    assert "[kernel.kallsyms]" in report and "udp_sendmsg" in report


@pytest.mark.usefixtures("said")
def test_annotation_has_source() -> None:
    """The hottest subprogram shows its C source and where the time went."""
    text = (RESULTS / "annotate.txt").read_text()
    assert named(text, "(flow_hash|count_word)")
    percents = [float(found) for found
                in re.findall(r"^ +(\d+\.\d+) .*:", text, re.MULTILINE)]
    assert max(percents) > 1
    source = {line.strip() for line in SOURCE.read_text().splitlines()
              if len(line.strip()) > 12}
    shown = [line for line in source if line in text]
    assert len(shown) >= 3, f"C source in {RESULTS}/annotate.txt: {shown}"


def stacks_of(node: Dict, above: Tuple[str, ...] = ()) -> Iterator[Tuple[str, ...]]:
    """Every stack of a flame graph, outermost function first."""
    stack = above + (node["n"],)
    if not node["c"]:
        yield stack
    for child in node["c"]:
        yield from stacks_of(child, stack)


def nodes_of(node: Dict) -> Iterator[Dict]:
    """Every frame of a flame graph."""
    yield node
    for child in node["c"]:
        yield from nodes_of(child)


@pytest.mark.usefixtures("said")
def test_flame_graph_names_functions() -> None:
    """A BPF subprogram stands on its program, and that on the kernel; both are shown as its."""
    html = (RESULTS / "flamegraph.html").read_text()
    stacks = re.search(r"const stacks = \[(.*)\];", html)
    assert stacks, f"{RESULTS}/flamegraph.html has no stacks"
    root = json.loads(stacks.group(1))
    joined = [";".join(stack) for stack in stacks_of(root)]
    wanted = re.compile(r"bpf_prog_run_generic_xdp;(?:.*;)?flow_meter \[bpf \w+\];"
                        r"flow_hash \[bpf \w+\]")
    assert any(wanted.search(stack) for stack in joined), joined[:20]
    assert {node["l"] for node in nodes_of(root) if " [bpf " in node["n"]} == {"kernel"}


def shared_objects(program: Path) -> List[Path]:
    """The loader and the libraries of a program."""
    said = subprocess.run(["ldd", str(program)], capture_output=True, text=True, check=True)
    return [Path(found) for found in re.findall(r"(/\S+) \(0x", said.stdout)]


@pytest.mark.usefixtures("said")
def test_recording_is_enough(tmp_path: Path) -> None:
    """In a chroot with perf and perf.data only, BPF functions have names, source and shares."""
    perf = perf_binary()
    for path in shared_objects(perf):
        target = tmp_path / path.relative_to("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, target)
    shutil.copy(perf, tmp_path / "perf")
    shutil.copy(RESULTS / "perf.data", tmp_path)

    def run(*args: str) -> str:
        done = subprocess.run(
            ["unshare", "--map-root-user", "chroot", str(tmp_path), "/perf", "--no-pager", *args],
            stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace",
            check=False, timeout=120)
        assert done.returncode == 0, done.stderr
        return done.stdout

    report = run("report", "--stdio", "--sort", "sym", "-g", "none", "--no-children")
    seen = [name for name in functions() if named(report, name)]
    assert len(seen) >= len(functions()) - 2, report
    annotated = run("annotate", "--stdio", "-s", "flow_hash")
    source = SOURCE.read_text().splitlines()
    shown = [line.strip() for line in source if len(line) > 12 and line.strip() in annotated]
    assert len(shown) >= 3 and re.search(r"^ +\d\d?\.\d+ +:", annotated, re.M), annotated
    assert not [path for path in ("proc", "sys", "boot") if (tmp_path / path).exists()]


def test_summary_shows_lines(said: str) -> None:
    """It ends with five source lines, percentages, and existing files."""
    lines = re.findall(r"^ +(\d+\.\d+)% +flow\.bpf\.c:(\d+) [^|]*\|(.*)$", said,
                       re.MULTILINE)
    assert len(lines) == 5, said
    source = SOURCE.read_text().splitlines()
    for percent, number, text in lines:
        assert float(percent) > 0
        assert source[int(number) - 1] == text
    paths = re.findall(r"^(?:report|annotated|flame graph|recording) +(/.*)$", said, re.MULTILINE)
    assert len(paths) == 4, said
    for path in paths:
        assert os.path.getsize(path) > 0


def test_stages_are_timed(said: str) -> None:
    """Each stage is told with the elapsed time and its log."""
    stages = re.findall(r"^==> \[\d+:\d\d\] (\S+) \(log: (\S+)\)", said,
                        re.MULTILINE)
    assert [name for name, _ in stages][-1] == "demo-guest"
    assert all((TOP / log).exists() for _, log in stages)


def test_second_act(said: str, record_property: host.Note) -> None:
    """The guest's kernel names every sample, and tells the code of programs that have ended, of
    classic BPF and of a trampoline; a program reads ctx->data; one of nine functions of a name
    is probed with its own arguments."""
    host.note_guest(IN_GUEST, record_property)
    nameless = re.search(r"(\d+) samples in the kernel, (\d+) of them without a name", said)
    assert nameless and int(nameless[1]) > 1000 and nameless[2] == "0", said
    ended = re.search(r"(\d+) BPF programs were loaded and gone before the end, (\d+) have", said)
    assert ended and int(ended[1]) > 5 and ended[1] == ended[2], said
    assert re.search(r"filter: [\d.]+% cbpf_prog_[0-9a-f]+\n +.*0x7fffffff", said), said
    assert re.search(r"trampoline: [\d.]+% bpf_trampoline_\d+\n +.*call.*<udp_sendmsg", said), said
    seen = dict(re.findall(r"^    (\w+) = \(\w+\)(\d+)", said, re.M))
    assert int(seen["samples"]) >= int(seen["in_kernel"]) > 100, said
    assert int(seen["deepest_call_chain"]) > 5, said
    arguments = " ".join(f"{name}=0x[0-9a-f]+" for name in ("kobj", "attr", "buf"))
    assert re.search(rf"type_show: \(.*\) {arguments}$", said, re.M), said


@pytest.mark.usefixtures("said")
@pytest.mark.parametrize("name", EXPORTS)
def test_no_bpf_in_user(tmp_path: Path, name: str) -> None:
    """No export for a viewer shows a BPF function, trampoline or dispatcher as user code."""
    data = tmp_path / "perf.data"
    data.symlink_to(RESULTS / "perf.data")
    shown = set(EXPORTS[name](data))
    assert shown
    # not libbpf's bpf_prog_load()
    bpf = re.compile(r"c?bpf_prog_[0-9a-f]{16}|bpf_(trampoline|dispatcher)_|\[c?bpf\b")
    assert not [each for each in shown if bpf.search(each)]


@pytest.mark.usefixtures("said")
def test_pictures() -> None:
    """They are SVG, fetch nothing, and have the program, its source and percentages."""
    for name, wanted in (("programs", ("flow_meter", "xdp", "Self")),
                         ("annotate", ("Percent", "flow.bpf.c"))):
        svg = (RESULTS / f"{name}.svg").read_text()
        text = "".join(xml.etree.ElementTree.fromstring(svg).itertext()).replace("\u00a0", " ")
        assert not [each for each in wanted if each not in text], text
        assert "url(\"http" not in svg

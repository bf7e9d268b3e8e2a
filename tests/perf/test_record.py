# SPDX-License-Identifier: GPL-2.0
"""perf record on this machine, for what needs no kernel of the series."""
from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Iterator

import pytest

import bpf_syscalls
from subject import BINARIES, perf_binary, run_perf


@pytest.mark.both
@pytest.mark.parametrize("options", [[], ["--no-bpf-event"]], ids=("bpf", "no-bpf"))
def test_event_that_cannot_be_opened(options: list[str], tmp_path: Path) -> None:
    """It is told, and the side-band thread, which was not started, is not stopped."""
    # a breakpoint that is no address: no machine has it
    result = run_perf(tmp_path, ["record", *options, "-o", "perf.data", "--switch-output-event",
                                 "dummy", "-e", "mem:0xfffffffffffffff0:x", "true"])
    assert not result.crashed and not result.timed_out, str(result)
    assert result.status > 0 and "Failure to open" in result.err, str(result)


def test_command_line(tmp_path: Path) -> None:
    """The header has all of it, in the order in which it was given."""
    words = ["record", "-o", "perf.data", "-e", "cpu-clock", "-F", "99", "--", "sh", "-c", "exit 0"]
    assert run_perf(tmp_path, words).status == 0
    header = run_perf(tmp_path, ["report", "--header-only", "-i", "perf.data"])
    assert re.search(rf"^# cmdline : \S+ {' '.join(words)} *$", header.out, re.M), str(header)


@pytest.mark.skipif(Path("/proc/schedstat").exists(), reason="this kernel has /proc/schedstat")
def test_kernel_without_schedstat(tmp_path: Path) -> None:
    """A recording that lacks nothing but sched domains ends without an error."""
    result = run_perf(tmp_path, ["record", "-o", "perf.data", "-e", "cpu-clock", "true"])
    assert result.status == 0 and "schedstat" not in result.err, str(result)


def test_event_without_call_chains(tmp_path: Path) -> None:
    """Its samples get no callers, those of another event."""
    result = run_perf(tmp_path, [
        "record", "-o", "perf.data", "-e", "cpu-clock/call-graph=fp/u,task-clock/call-graph=no/u",
        str(perf_binary()), "test", "-w", "noploop", "1"])
    assert result.status == 0, str(result)
    report = run_perf(tmp_path, ["report", "--stdio", "--children", "-g", "none", "--sort", "sym",
                                 "-i", "perf.data"])
    of_event = report.out.split("# Samples: ")
    entries = [re.findall(r"^ +([\d.]+)% +([\d.]+)% ", text, re.M) for text in of_event
               if "'task-clock" in text.partition("\n")[0]]
    assert len(entries) == 1 and entries[0], str(report)
    assert not [1 for total, own in entries[0] if total != own], str(report)


NR_PROGRAMS = 5


def lacks(capability: str) -> bool:
    """Is there a reason why a program of ours cannot run without just this capability?"""
    return os.geteuid() != 0 or not shutil.which("setpriv") or subprocess.run(
        ["setpriv", "--bounding-set", f"-{capability}", "true"], check=False,
        stderr=subprocess.DEVNULL).returncode != 0


@pytest.fixture(name="programs")
def _programs() -> Iterator[list[str]]:
    """Names of programs that are loaded while the test runs."""
    names = [f"kptr_test_{i}" for i in range(NR_PROGRAMS)]
    fds: list[int] = []
    try:
        for name in names:
            fds.append(bpf_syscalls.load_program(name))
    except OSError as error:
        pytest.skip(f"cannot load a BPF program here: {error}")
    else:
        yield names
    finally:
        for fd in fds:
            os.close(fd)


def record_under(command: list[str], work: Path) -> str:
    """What perf record -v prints when command runs it; it must succeed."""
    record = [*command, str(perf_binary()), "record", "-v", "-e", "cpu-clock",
              "-o", "perf.data", "true"]
    done = subprocess.run(record, cwd=work, capture_output=True, text=True, check=False,
                          timeout=60, env={**os.environ, "HOME": str(work)})
    assert done.returncode == 0, done.stderr
    return done.stderr


@pytest.mark.skipif(lacks("syslog"), reason="needs root and setpriv, to drop CAP_SYSLOG")
def test_hidden_addresses(programs: list[str], tmp_path: Path) -> None:
    """Without CAP_SYSLOG: names are kept, the reason is given once, nothing is retried."""
    if Path("/proc/sys/kernel/perf_event_paranoid").read_text(encoding="ascii").strip() < "2":
        pytest.skip("with kernel.perf_event_paranoid below 2, this kernel hides nothing")
    said = record_under(["setpriv", "--bounding-set", "-syslog", "--inh-caps", "-syslog"],
                        tmp_path)
    assert "mismatch" not in said, said
    assert said.count("kernel.kptr_restrict") == 1 and "CAP_SYSLOG" in said, said
    assert re.search(r"(\d+)/\1 BPF programs without code", said), said

    header = run_perf(tmp_path, ["report", "--header-only", "-I", "-i", "perf.data"])
    for name in programs:
        assert re.search(f"bpf_prog_[0-9a-f]{{16}}_{name} addr hidden", header.out), str(header)
    events = run_perf(tmp_path, ["script", "--show-bpf-events", "-i", "perf.data"])
    assert events.out.count("PERF_RECORD_BPF_EVENT") >= NR_PROGRAMS, str(events)


# bpf(2) calls for the first program: get its id, open it, query it
@pytest.mark.skipif(lacks("syslog") or not shutil.which("strace"), reason="needs root and strace")
@pytest.mark.parametrize("call, failed", [(2, "open"), (3, "read")])
@pytest.mark.usefixtures("programs")
def test_reason_for_a_program_without_code(call: int, failed: str, tmp_path: Path) -> None:
    """A program that cannot be opened or read is counted, and -v names it and the errno."""
    said = record_under(["strace", "-f", "-o", "/dev/null", "-e", "trace=bpf",
                         "-e", f"inject=bpf:error=EACCES:when={call}"], tmp_path)
    assert re.search(rf"Cannot {failed} BPF program \d+: Permission denied", said), said
    assert re.search(r" 1/\d+ BPF programs without code", said), said
    assert "1 could not be read: perf record -v prints why" in said, said


OPEN, QUERY = "BPF_PROG_GET_FD_BY_ID", "BPF_OBJ_GET_INFO_BY_FD"


def calls_for_bpf(work: Path, *options: str) -> tuple[int, int, int]:
    """What perf record does in 1.5 seconds: files, BPF programs opened, BPF objects queried."""
    work.mkdir()
    record = ["strace", "-f", "-o", "calls", "-e", "trace=bpf", str(perf_binary()), "record",
              "-e", "cpu-clock", "-o", "perf.data", *options, "sleep", "1.5"]
    done = subprocess.run(record, cwd=work, capture_output=True, text=True, check=False,
                          timeout=60, env={**os.environ, "HOME": str(work)})
    assert done.returncode == 0, done.stderr
    calls = (work / "calls").read_text(encoding="utf-8")
    return len(list(work.glob("perf.data*"))), calls.count(OPEN), calls.count(QUERY)


@pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("strace"), reason="needs root and strace")
def test_later_files_read_no_program_again(programs: list[str], tmp_path: Path) -> None:
    """--switch-output: no program is opened again for a later file, and none queried."""
    one, opened, queried = calls_for_bpf(tmp_path / "one")
    several, opened_again, more = calls_for_bpf(tmp_path / "several", "--switch-output=1s")
    assert one == 1 and several > 1 and opened >= len(programs), (one, several, opened)
    assert (opened_again, more) == (opened, queried), (opened, opened_again, queried, more)


@pytest.mark.skipif(lacks("syslog") or not shutil.which("strace"), reason="needs root and strace")
def test_program_loaded_while_perf_starts(programs: list[str], tmp_path: Path) -> None:
    """It is counted once, though perf reads it as one that exists and is told of it as well."""
    # perf's first call for BPF waits until the program is there; nobody hears of code that
    # is hidden, so that all programs are in the count which perf prints
    record = ["strace", "-f", "-o", "calls", "-e", "trace=bpf",
              "-e", "inject=bpf:delay_enter=3000000:when=1", "setpriv", "--bounding-set", "-syslog",
              "--inh-caps", "-syslog", str(perf_binary()), "record", "-e", "cpu-clock", "-o",
              "perf.data", "sleep", "1"]
    with subprocess.Popen(record, cwd=tmp_path, stderr=subprocess.PIPE, text=True,
                          env={**os.environ, "HOME": str(tmp_path)}) as recorder:
        time.sleep(1.5)
        new = bpf_syscalls.load_program("while_it_starts")
        said = recorder.communicate(timeout=60)[1]
    os.close(new)
    header = run_perf(tmp_path, ["report", "--header-only", "-I", "-i", "perf.data"])
    ids = set(re.findall("bpf_prog_info ([0-9]+)", header.out))
    count = re.search(r"(\d+)/(\d+) BPF programs without code", said)
    assert "while_it_starts" in header.out and len(ids) > len(programs), (str(header), said)
    assert count and count[1] == count[2] == str(len(ids)), (said, ids)


@pytest.mark.skipif(lacks("ipc_lock"), reason="needs root and setpriv")
@pytest.mark.parametrize("options, lost", [(["-a"], "code"), ([], "symbol and no code")],
                         ids=["-a", "command"])
@pytest.mark.usefixtures("programs")
def test_programs_that_cannot_be_followed(options: list[str], lost: str, tmp_path: Path) -> None:
    """With too few file descriptors for the side band: told, and why."""
    for limit in range(8, 64):
        done = subprocess.run(
            ["prlimit", f"--nofile={limit}", str(perf_binary()), "record", *options, "-e",
             "cpu-clock", "-o", "perf.data", "true"], cwd=tmp_path, capture_output=True, text=True,
            check=False, timeout=60, env={**os.environ, "HOME": str(tmp_path)})
        if done.returncode == 0:
            break
    assert done.returncode == 0, done.stderr
    assert re.search(f"BPF programs that are loaded from now on will have no {lost}: .*"
                     "Too many open files. .*ulimit -n", done.stderr), (limit, done.stderr)
    assert "perf could not follow them" in done.stderr, done.stderr


PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
RING_PAGES = 1024
SMALL_BYTES = 1 << 20       # more than any ring that has no samples
# The workload: write down how long perf's ring buffers are.
MAPS = """
import os
with open(f"/proc/{os.getppid()}/maps") as maps, open("lengths", "w") as lengths:
    for line in maps:
        if "perf_event" in line:
            start, end = line.split()[0].split("-")
            print(int(end, 16) - int(start, 16), file=lengths)
"""


@pytest.mark.both
@pytest.mark.skipif(lacks("ipc_lock"), reason="needs root, which may lock any memory")
def test_ring_buffers_of_one_thread(tmp_path: Path) -> None:
    """--per-thread has one ring buffer of the size of -m, and no CPU has another one."""
    result = run_perf(tmp_path, ["record", "--per-thread", "-m", str(RING_PAGES), "-o",
                                 "perf.data", "-e", "cpu-clock", sys.executable, "-c", MAPS])
    assert result.status == 0, str(result)
    lengths = [int(line) for line in (tmp_path / "lengths").read_text().splitlines()]
    assert [length for length in lengths if length > SMALL_BYTES] == [
        (RING_PAGES + 1) * PAGE_BYTES], lengths


SLOW = ("-a", "-e", "cpu-clock", "-F", "10")
BYTES_OF_SAMPLES = 8 << 10      # no 10 samples a second make as many in two seconds
TASKS = 300


@pytest.mark.skipif(os.geteuid() != 0, reason="recording all tasks needs root")
def test_files_smaller_than_their_beginning(tmp_path: Path) -> None:
    """--switch-output=SIZE: what each file begins with, such as maps, does not end it.

    There are many tasks, so that what others on the machine do meanwhile is less than that. If
    it is not, as many tasks begin and end, the recording is made again, twice at most.
    """
    tasks = [subprocess.Popen(["sleep", "60"]) for _ in range(TASKS)]
    files: list[int] = []
    try:
        assert run_perf(tmp_path, ["record", *SLOW, "-o", "perf.data", "--", "true"]).status == 0
        size = (tmp_path / "perf.data").stat().st_size
        assert size > 2 * BYTES_OF_SAMPLES, size
        while len(files) < 3 and 2 not in files and 1 not in files:
            name = f"many{len(files)}"
            result = run_perf(tmp_path, ["record", *SLOW, f"--switch-output={size // 2}B", "-o",
                                         name, "--", "sleep", "2"])
            assert result.status == 0, str(result)
            # the last one is begun at the end
            files.append(len(list(tmp_path.glob(f"{name}.*"))))
    finally:
        for task in tasks:
            task.kill()
            task.wait()
    print(f"files of each recording: {files}")
    assert files[-1] <= 2, (files, str(result))


@pytest.fixture(name="busy")
def _busy() -> Iterator[str]:
    """The pid of a process that does nothing, all the time."""
    with subprocess.Popen([sys.executable, "-c", "while True: pass"]) as process:
        yield str(process.pid)
        process.kill()


# what identifies a sample, and of several events an id: IP, TID, TIME, PERIOD, IDENTIFIER
WITHOUT_TIME, ONE_EVENT, TWO_EVENTS = 32, 40, 48
CPUS = len(os.sched_getaffinity(0))


@pytest.mark.both
@pytest.mark.skipif(os.geteuid() != 0, reason="the side-band event of a command needs root")
@pytest.mark.skipif(CPUS != os.cpu_count(), reason="some CPUs may not be used")
@pytest.mark.parametrize("events, options, opened, size", [
    (["cpu-clock"], ["-p"], 2 * CPUS, ONE_EVENT), (["cpu-clock"], ["-t"], 2 * CPUS, ONE_EVENT),
    (["cpu-clock"], ["--no-inherit", "-p"], 2 * CPUS, ONE_EVENT),
    (["cpu-clock"], [], 2 * CPUS, ONE_EVENT),
    (["cpu-clock", "task-clock"], ["-p"], 3 * CPUS, TWO_EVENTS),
    (["cpu-clock"], ["--per-thread", "-p"], 2, WITHOUT_TIME),
    (["cpu-clock"], ["--per-thread"], 2, WITHOUT_TIME)],
    ids=["-p", "-t", "no-inherit", "command", "two", "per-thread-p", "per-thread"])
def test_recording_of_tasks_costs_no_more(events: list[str], options: list[str], opened: int,
                                          size: int, busy: str, tmp_path: Path) -> None:
    """No event and no byte of a sample is for the text that other tasks may load: there are as
    many as in the base, those of -e and one for the side band."""
    words = [word for event in events for word in ("-e", event)]
    target = [*options, busy, "sleep", "0.3"] if "-p" in options or "-t" in options else [
        *options, str(perf_binary()), "test", "-w", "noploop", "0.3"]
    recorded = run_perf(tmp_path, ["record", "-vv", "-o", "perf.data", *words, *target])
    calls = re.findall(r"^sys_perf_event_open: pid .* = \d+$", recorded.err, re.M)
    # the base cannot open its side band for the command of --per-thread
    assert recorded.status == 0 and opened - 1 <= len(calls) <= opened, str(recorded)
    assert len(calls) == opened or options == ["--per-thread"], str(recorded)
    listed = run_perf(tmp_path, ["evlist", "-i", "perf.data"])
    assert listed.out.split() == events, str(listed)
    dump = run_perf(tmp_path, ["script", "-D", "-i", "perf.data"])
    sizes = re.findall(r"\[(0x[0-9a-f]+)\]: PERF_RECORD_SAMPLE", dump.out)
    assert sizes and {int(text, 16) for text in sizes} == {size}, set(sizes)


BASE = BINARIES["base"]


@pytest.mark.both
@pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("strace"), reason="needs root and strace")
@pytest.mark.skipif(not BASE.is_file(), reason=f"needs {BASE}")
def test_probes_for_a_recording_of_tasks(tmp_path: Path) -> None:
    """perf asks the kernel what it can do three times more than the base at most."""
    def opened(perf: Path) -> int:
        done = subprocess.run(
            ["strace", "-f", "-o", "calls", "-e", "trace=perf_event_open", str(perf), "record",
             "-e", "cpu-clock", "-o", "perf.data", "true"], cwd=tmp_path, capture_output=True,
            text=True, check=False, timeout=60, env={**os.environ, "HOME": str(tmp_path)})
        assert done.returncode == 0, done.stderr
        calls = (tmp_path / "calls").read_text(encoding="utf-8")
        return len(re.findall(r"perf_event_open\(.* = \d+$", calls, re.M))

    assert opened(perf_binary()) <= opened(BASE) + 3


@pytest.mark.skipif(os.geteuid() != 0, reason="addresses in /proc/kallsyms need root")
def test_kallsyms_knows_bpf(programs: list[str], tmp_path: Path) -> None:
    """perf kallsyms prints the address of a BPF program, by its name with and without tag."""
    wanted = programs[0]
    found = [ln.split() for ln in Path("/proc/kallsyms").read_text(encoding="ascii").splitlines()
             if ln.endswith(f"_{wanted}\t[bpf]")]
    assert len(found) == 1, found
    address, _, name, _ = found[0]
    for asked in (wanted, name):
        result = run_perf(tmp_path, ["kallsyms", asked])
        line = rf"{name}: \[bpf\] \S+ 0x{address}(-0x[0-9a-f]+)?$"
        assert re.match(line, result.out), str(result)


@pytest.mark.skipif(os.geteuid() != 0, reason="recording all tasks needs root")
def test_list_of_programs(programs: list[str], tmp_path: Path) -> None:
    """--header has a line about BPF programs, and -I each of them."""
    assert run_perf(tmp_path, ["record", "-o", "perf.data", "-a", "--", "true"]).status == 0
    short = run_perf(tmp_path, ["report", "--header-only", "-i", "perf.data"])
    assert "# BPF_PROG_INFO info available, use -I to display" in short.out, str(short)
    assert not any(name in short.out for name in programs), str(short)
    full = run_perf(tmp_path, ["report", "--header-only", "-I", "-i", "perf.data"])
    assert all(name in full.out for name in programs), str(full)


@pytest.mark.skipif(os.geteuid() != 0, reason="loading a program without pinned ones needs root")
def test_program_of_a_filter_is_soon_verified(tmp_path: Path) -> None:
    """The verifier follows fewer than 1,000 instructions for each of the 64 terms."""
    # the workload's parent is perf, which may close a file meanwhile
    result = run_perf(tmp_path, ["record", "-o", "perf.data", "-e", "task-clock", "--filter",
                                 "ip > 0 || period > 0", "--", "sh", "-c",
                                 "cat /proc/$PPID/fdinfo/* || true"])
    programs = re.findall(r"^prog_type:\t7$(?:.|\n)*?^verified_insns:\t(\d+)$", result.out, re.M)
    assert result.status == 0 and programs, str(result)
    assert max(map(int, programs)) < 64_000, programs


def test_stat_record(tmp_path: Path) -> None:
    """What perf stat records, perf stat and perf script read."""
    result = run_perf(tmp_path, ["stat", "record", "-o", "stat.data", "-e", "page-faults", "--",
                                 "true"])
    assert result.status == 0, str(result)
    result = run_perf(tmp_path, ["stat", "report", "-i", "stat.data"])
    assert result.status == 0 and "page-faults" in result.err + result.out, str(result)
    result = run_perf(tmp_path, ["script", "-i", "stat.data"])
    assert result.status == 0 and "Invalid" not in result.err, str(result)


@pytest.mark.skipif(os.geteuid() != 0, reason="recording all tasks needs root")
def test_filter_that_fails(tmp_path: Path) -> None:
    """A filter of users is not for tracepoints: nothing is recorded, instead of all tasks."""
    result = run_perf(tmp_path, ["record", "-a", "-e", "sched:sched_switch", "-u", "daemon", "--",
                                 "true"])
    if "unknown tracepoint" in result.err or "can't access trace events" in result.err:
        pytest.skip(f"no tracepoints: {result.err}")
    assert result.status > 0 and "Failed to attach perf sample-filter program" in result.err, \
        str(result)

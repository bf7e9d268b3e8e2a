# SPDX-License-Identifier: GPL-2.0
"""What perf record writes can be read: by threads, overwritten, to pipes, to a file that others
write, with few file descriptors. Needs no kernel of the series."""
from __future__ import annotations

import os
import random
import re
import shutil
import signal
import subprocess
import threading
import time
from collections import Counter
from pathlib import Path

import pytest

import bpf_syscalls
from subject import Result, perf_binary, run_perf

CPUS = sorted(os.sched_getaffinity(0))
EVENT = ("-e", "cpu-clock", "-F", "999")
ENOUGH = 50                 # samples of what is busy for half a second
pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="recording all CPUs needs root")
STDIO = ("report", "--stdio", "--sort", "comm", "-F", "sample,comm", "-i")


def busy(cpus: list[int], seconds: float = 0.5) -> list[str]:
    """A command that keeps these CPUs busy."""
    loops = "".join(f"taskset -c {cpu} {perf_binary()} test -w noploop {seconds} & "
                    for cpu in cpus)
    return ["sh", "-c", f"{loops}wait"]


def samples_by_cpu(work: Path) -> Counter[tuple[str, str]]:
    """How many samples perf.data has of each event on each CPU."""
    result = run_perf(work, ["script", "-F", "cpu,event", "-i", "perf.data"])
    assert result.status == 0, str(result)
    return Counter(re.findall(r"\[0*(\d+)\]\s+(\S+):", result.out))


def samples_of_perf(report: str) -> int:
    """How many samples a report has of the workload, whose name is perf or begins so."""
    return sum(int(count) for count in re.findall(r"^ +(\d+) +perf", report, re.M))


def record_pipe(work: Path, *args: str) -> Result:
    """Record into a pipe that is read later, as it is."""
    with open(work / "pipe.data", "wb") as out:
        done = subprocess.run([str(perf_binary()), "record", *args], cwd=work, stdout=out,
                              stderr=subprocess.PIPE, text=True, check=False, timeout=60,
                              env={**os.environ, "HOME": str(work)})
    return Result(" ".join(args), done.returncode, "", done.stderr, False, 0)


def read_pipe(work: Path, *args: str) -> subprocess.CompletedProcess[str]:
    """Give the pipe's bytes to perf."""
    with open(work / "pipe.data", "rb") as pipe:
        return subprocess.run([str(perf_binary()), *args, "-i", "-"], cwd=work, stdin=pipe,
                              capture_output=True, text=True, check=False, timeout=60,
                              env={**os.environ, "HOME": str(work)})


@pytest.mark.skipif(not shutil.which("taskset"), reason="needs taskset")
@pytest.mark.parametrize("threads", (
    "--threads", "--threads=core", pytest.param("--threads=package", marks=pytest.mark.both)))
@pytest.mark.parametrize("events, options", (
    (("-e", "cpu-clock"), ("--overwrite",)), (("-e", "cpu-clock"), ("--overwrite", "-z")),
    (("-e", "cpu-clock/overwrite/", "-e", "task-clock"), ())), ids=("all", "zstd", "one-of-two"))
def test_threads_overwrite(threads: str, events: tuple[str, ...], options: tuple[str, ...],
                           tmp_path: Path) -> None:
    """Each event has its samples of each CPU."""
    result = run_perf(tmp_path, ["record", threads, *options, "-a", *events, "-F", "999", "-o",
                                 "perf.data", "--", *busy(CPUS)])
    assert result.status == 0, str(result)
    found = samples_by_cpu(tmp_path)
    for event in events[1::2]:
        for cpu in CPUS:
            assert found[str(cpu), event] > ENOUGH, (found, str(result))


@pytest.mark.parametrize("threads", (
    pytest.param((), id="one", marks=pytest.mark.both), pytest.param(("--threads",), id="threads")))
def test_threads_overwrite_task(threads: tuple[str, ...], tmp_path: Path) -> None:
    """A task that ends before the recording does, too."""
    result = run_perf(tmp_path, ["record", *threads, "--overwrite", *EVENT, "-o", "perf.data",
                                 "--", str(perf_binary()), "test", "-w", "noploop", "0.5"])
    report = run_perf(tmp_path, [*STDIO, "perf.data"])
    assert samples_of_perf(report.out) > ENOUGH, f"{result}{report}"


@pytest.mark.parametrize("options", (("--overwrite",), ("--tail-synthesize",),
                                     ("--overwrite", "-z"), ("--overwrite", "--no-bpf-event")),
                         ids=("overwrite", "tail", "zstd", "no-bpf"))
def test_pipe_of_what_comes_last(options: tuple[str, ...], tmp_path: Path) -> None:
    """A pipe whose synthesized records come after the samples has the events before them."""
    written = record_pipe(tmp_path, *options, *EVENT, "-o", "-", "--", *busy(CPUS[:1]))
    assert written.status == 0, str(written)
    done = read_pipe(tmp_path, *STDIO[:-1])
    assert done.returncode == 0 and samples_of_perf(done.stdout) > ENOUGH, done
    assert "skipped" not in done.stderr and "invalid" not in done.stderr, done.stderr


@pytest.mark.parametrize("when", ("=signal", "=20K", "=1s", ""))
def test_pipe_is_not_switched(when: str, tmp_path: Path) -> None:
    """--switch-output into a pipe: told, and the pipe has all samples."""
    with open(tmp_path / "pipe.data", "wb") as out, subprocess.Popen(
            [str(perf_binary()), "record", f"--switch-output{when}", *EVENT, "-o", "-", "--",
             *busy(CPUS[:1], 1.5)], cwd=tmp_path, stdout=out, stderr=subprocess.PIPE,
            text=True, env={**os.environ, "HOME": str(tmp_path)}) as recorder:
        time.sleep(1)
        recorder.send_signal(signal.SIGUSR2)
        said = recorder.communicate(timeout=60)[1]
    assert recorder.returncode == 0, said
    assert "--switch-output option is not available in pipe mode" in said, said
    done = read_pipe(tmp_path, *STDIO[:-1])
    assert done.returncode == 0 and samples_of_perf(done.stdout) > 2 * ENOUGH, (done, said)
    assert not list(tmp_path.glob("-*")), said


@pytest.mark.parametrize("options", ((), ("--threads",), ("--switch-output",)),
                         ids=("file", "directory", "switched"))
def test_file_of_two(options: tuple[str, ...], tmp_path: Path) -> None:
    """The perf whose file another one has replaced tells where it is; the other one does not."""
    command = [str(perf_binary()), "record", *options, "-a", *EVENT, "-o", "perf.data", "--"]
    with subprocess.Popen([*command, "sleep", "60"], cwd=tmp_path, stderr=subprocess.PIPE,
                          text=True, env={**os.environ, "HOME": str(tmp_path)}) as first:
        deadline = time.monotonic() + 30
        data = tmp_path / ("perf.data/data" if "--threads" in options else "perf.data")
        while not (data.exists() and data.stat().st_size) and time.monotonic() < deadline:
            time.sleep(0.05)
        second = subprocess.run([*command, "true"], cwd=tmp_path, capture_output=True, text=True,
                                check=False, timeout=60,
                                env={**os.environ, "HOME": str(tmp_path)})
        first.send_signal(signal.SIGINT)
        said = first.communicate(timeout=60)[1]
    assert second.returncode == 0 and "no longer the file" not in second.stderr, second.stderr
    assert "perf.data is no longer the file of this recording" in said, said
    assert "perf.data.old" in said, said


@pytest.mark.both
def test_each_file_has_its_size(tmp_path: Path) -> None:
    """--switch-output=SIZE while programs come and go: what is written to complete a file is no
    reason to end the next one. All but the last have SIZE bytes besides those of an empty one."""
    size, done = 200 << 10, threading.Event()
    options = ["record", "-a", "-e", "cpu-clock", "-F", "1000", "-o", "perf.data"]

    def load() -> None:
        while not done.is_set():
            program = bpf_syscalls.load_program("comes_and_goes")
            time.sleep(0.0005)
            os.close(program)

    try:
        os.close(bpf_syscalls.load_program("first"))
    except OSError as error:
        pytest.skip(f"cannot load a BPF program here: {error}")
    assert run_perf(tmp_path, [*options, "true"]).status == 0
    empty = (tmp_path / "perf.data").stat().st_size
    loaders = [threading.Thread(target=load) for _ in range(2)]
    for loader in loaders:
        loader.start()
    try:
        result = run_perf(tmp_path, [*options, f"--switch-output={size}B", "sleep", "4"])
    finally:
        done.set()
        for loader in loaders:
            loader.join()
    sizes = [path.stat().st_size for path in sorted(tmp_path.glob("perf.data.2*"))]
    assert result.status == 0 and len(sizes) > 2, (sizes, str(result))
    assert min(sizes[:-1]) >= size + empty * 0.9, (empty, sizes, str(result))


@pytest.mark.parametrize("target", (["-a"], []), ids=("all", "task"))
def test_tasks_that_cannot_be_read(target: list[str], tmp_path: Path) -> None:
    """With too few file descriptors: a recording that fails says so, whatever it lacks."""
    failed = 0
    for limit in range(6, 26):
        done = subprocess.run(
            ["prlimit", f"--nofile={limit}", str(perf_binary()), "record", *target, *EVENT, "-o",
             "perf.data", "true"], cwd=tmp_path, capture_output=True, text=True, check=False,
            timeout=60, env={**os.environ, "HOME": str(tmp_path)})
        # the dynamic loader, too, needs some
        if done.returncode == 127:
            continue
        failed += done.returncode != 0
        assert done.returncode == 0 or re.search(
            r"(pipe|eventfd|tasks|failed to open).*Too many open files|'ulimit -n <limit>'",
            done.stderr), (limit, done.stderr)
    assert failed, "no limit was too small"


@pytest.mark.parametrize("options", (
    pytest.param([], marks=pytest.mark.both), ["--threads"],
    pytest.param(["--threads=core"], marks=pytest.mark.both),
    pytest.param(["--overwrite"], marks=pytest.mark.both),
    pytest.param(["-z", "--switch-output=1s"], marks=pytest.mark.both)), ids=" ".join)
def test_no_such_cpu(options: list[str], tmp_path: Path) -> None:
    """A CPU that the machine does not have is told."""
    cpu = (os.cpu_count() or 1) + 5
    result = run_perf(tmp_path, ["record", *options, "-C", str(cpu), *EVENT, "-o", "perf.data",
                                 "true"])
    assert not result.crashed and not result.timed_out, str(result)
    assert f"CPU in '{cpu}' is not supported" in result.err, str(result)


@pytest.mark.parametrize("target", (["-a"], []), ids=("all", "task"))
def test_names_at_the_tail(target: list[str], tmp_path: Path) -> None:
    """--tail-synthesize: each sample of the kernel has a symbol, however often perf wakes up."""
    copy = ["dd", "if=/dev/zero", "of=/dev/null", "bs=64k", "count=60000"]
    result = run_perf(tmp_path, ["record", *target, "--tail-synthesize", "-m", "8", "-e",
                                 "cpu-clock", "-F", "9999", "-o", "perf.data", "--", *copy])
    assert result.status == 0, str(result)
    script = run_perf(tmp_path, ["script", "-F", "ip,sym", "-i", "perf.data"])
    kernel = re.findall(r"^\s*ffffffff[0-9a-f]+ (.*)", script.out, re.M)
    unknown = [name for name in kernel if "[unknown]" in name]
    assert len(kernel) > ENOUGH and len(unknown) * 50 < len(kernel), (len(unknown), len(kernel))


@pytest.mark.parametrize("events", (
    pytest.param(["-e", "cpu-clock", "--overwrite"], id="all"),
    pytest.param(["-e", "cpu-clock/overwrite/", "-e", "task-clock"], id="one-of-two",
                 marks=pytest.mark.both)))
def test_aio_overwrite(events: list[str], tmp_path: Path) -> None:
    """What is overwritten is written with --aio, too."""
    result = run_perf(tmp_path, ["record", "--aio", *events, "-F", "999", "-o", "perf.data", "--",
                                 *busy(CPUS[:1])])
    assert result.status == 0, str(result)
    found = run_perf(tmp_path, ["script", "-F", "event", "-i", "perf.data"]).out.split()
    for event in [word for before, word in zip(events, events[1:]) if before == "-e"]:
        assert found.count(f"{event}:") > ENOUGH, (Counter(found), str(result))


@pytest.mark.parametrize("options", ([], ["--overwrite"]), ids=("plain", "overwrite"))
def test_compressed_files(options: list[str], tmp_path: Path) -> None:
    """Each file of --switch-output -z can be read without the others."""
    result = run_perf(tmp_path, ["record", "-a", "-z", *options, *EVENT, "--switch-output=1s",
                                 "-o", "perf.data", "--", *busy(CPUS[:1], 2.5)])
    files = sorted(tmp_path.glob("perf.data.2*"))
    assert result.status == 0 and len(files) > 1, str(result)
    for number, path in enumerate(files):
        script = run_perf(tmp_path, ["script", "-F", "comm", "-i", path.name])
        assert script.status == 0 and "skipped" not in script.err, (path, str(script))
        assert script.out.count("\n") > ENOUGH or number == len(files) - 1, (path, str(script))


def test_same_file_at_once(tmp_path: Path) -> None:
    """Of perfs that begin to write one file at the same moment, each writes a file that can be
    read, or says that it does not."""
    seed = random.randrange(1 << 32)
    pauses = random.Random(seed)
    for _ in range(8):
        for old in tmp_path.glob("perf.data*"):
            old.unlink()
        recorders = []
        for _ in range(2):
            recorders.append(subprocess.Popen(
                [str(perf_binary()), "record", "-a", *EVENT, "-o", "perf.data", "sleep", "0.3"],
                cwd=tmp_path, stderr=subprocess.PIPE, text=True,
                env={**os.environ, "HOME": str(tmp_path)}))
            time.sleep(pauses.choice((0, 0, 0.01, 0.1)))
        said = [recorder.communicate(timeout=60)[1] for recorder in recorders]
        written = [text for recorder, text in zip(recorders, said) if recorder.returncode == 0]
        assert all("is written by another perf" in text for text in said if text not in written)
        files = sorted(path.name for path in tmp_path.glob("perf.data*"))
        assert len(files) == len(written) > 0, (seed, files, said)
        for name in files:
            script = run_perf(tmp_path, ["script", "-F", "comm", "-i", name])
            assert script.status == 0 and script.out, (seed, name, str(script), said)


def test_pipe_with_a_name(tmp_path: Path) -> None:
    """-o with the name of a pipe is refused, as a file cannot be written there."""
    os.mkfifo(tmp_path / "fifo")
    result = run_perf(tmp_path, ["record", *EVENT, "-o", "fifo", "true"])
    assert result.status and not result.crashed and not result.timed_out, str(result)
    assert "fifo is a pipe: write to it with -o - >" in result.err, str(result)

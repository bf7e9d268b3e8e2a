# SPDX-License-Identifier: GPL-2.0
"""The viewers' own readers: what they make of perf's exports.

Out of npm packages, each fetched once, into build/tools; its version and its contents are
those named here, since code of it is run. And pprof, of the distribution's sources.
"""
from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import tarfile
import tempfile
import time
from pathlib import Path
from typing import Any, Iterator, Sequence

import pytest

from perfbpf.paths import BUILD

HERE = Path(__file__).resolve().parent
# version, SHA-256 of the tarball
PACKAGES = {
    "pprof-format": ("2.3.2", "209b123f810b084accdcdbba2e2304469a7161250f28974d194c226aeb94026c"),
    "@firefox-devtools/profiler-cli": (
        "0.10.0", "41a25d3ef0c1131f5286eb098489f2868d7b9a627424023fc6e7aff9a33f85e2"),
    "speedscope": ("1.25.0", "2831f1e0d26df914b477e522d78b8485511495a6af81a0b88158f8b48f9e0d03"),
}


def npm_package(name: str) -> Path:
    """Return where a package is; the test is skipped if it cannot be fetched."""
    version, digest = PACKAGES[name]
    place = BUILD / "tools/npm" / f"{name.replace('/', '+')}-{version}"
    if place.is_dir():
        return place / "package"
    place.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=place.parent) as scratch:
        done = subprocess.run(["npm", "pack", "--silent", f"{name}@{version}"], cwd=scratch,
                              capture_output=True, text=True, check=False, timeout=120)
        if done.returncode:
            pytest.skip(f"cannot fetch the npm package {name}@{version}: {done.stderr[-300:]}")
        tarball, = Path(scratch).glob("*.tgz")
        found = hashlib.sha256(tarball.read_bytes()).hexdigest()
        if found != digest:
            raise RuntimeError(f"{name}@{version}: SHA-256 is {found}, not {digest}")
        unpacked = Path(scratch) / "unpacked"
        with tarfile.open(tarball) as tar:
            tar.extractall(unpacked)
        unpacked.rename(place)
    return place / "package"


def _node(script: str, name: str, file: Path) -> Any:
    done = subprocess.run(["node", str(HERE / script), str(npm_package(name)), str(file)],
                          capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, f"{file}: {done.stderr[-2000:]}"
    return json.loads(done.stdout)


def read_pprof(file: Path) -> dict[str, Any]:
    """Return a profile of pprof as its messages are; integers are strings."""
    return _node("read_pprof.js", "pprof-format", file)


def pprof_top(*files: Path, options: Sequence[str] = ()) -> dict[str, tuple[int, int]]:
    """Return what google/pprof shows of the sum of profiles: samples of each function (with
    -lines of each line), in it and also in what it called. The test is skipped without Go."""
    program, sources = BUILD / "tools/pprof", Path("/usr/share/gocode")
    if not program.is_file():
        if not shutil.which("go") or not (sources / "src/github.com/google/pprof").is_dir():
            pytest.skip("no golang-go, or no golang-github-google-pprof-dev")
        env = {**os.environ, "GO111MODULE": "off", "GOPATH": str(sources), "GOFLAGS": "",
               "GOCACHE": str(BUILD / "tools/go")}
        subprocess.run(["go", "build", "-o", str(program), "github.com/google/pprof"], env=env,
                       check=True, timeout=600)
    with tempfile.TemporaryDirectory() as home:
        done = subprocess.run([str(program), "-top", "-sample_index=samples", "-symbolize=none",
                               "-nodecount=1000000", "-nodefraction=0", *options,
                               *map(str, files)], env={**os.environ, "HOME": home}, text=True,
                              capture_output=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    rows = re.findall(r"^ *(\d+) +\S+% +\S+% +(\d+) +\S+%  (.*)$", done.stdout, re.M)
    assert rows, done.stdout
    return {name: (int(flat), int(total)) for flat, total, name in rows}


def read_speedscope(file: Path) -> list[dict[str, Any]]:
    """Return what speedscope imports from a file of any format: profiles with stacks."""
    return _node("read_speedscope.js", "speedscope", file)


class FirefoxProfiler:
    """The Firefox Profiler's command line, which loads a profile as its page does.

    It leaves a server running that the commands ask, for which `with` is: that ends it.
    """

    def __init__(self, file: Path) -> None:
        self._file = file
        self._program = npm_package("@firefox-devtools/profiler-cli") / "dist/profiler-cli.js"
        # its socket is there, so the path has to be short
        self._place = tempfile.TemporaryDirectory(prefix="fp")

    def _run(self, *args: str) -> subprocess.CompletedProcess[str]:
        env = {**os.environ, "HOME": self._place.name, "PROFILER_CLI_SESSION_DIR": self._place.name,
               "PROFILER_CLI_NO_SYMBOLICATE": "1"}
        return subprocess.run(["node", str(self._program), *args], env=env, text=True,
                              stdin=subprocess.DEVNULL, capture_output=True, check=False,
                              timeout=60)

    def __enter__(self) -> FirefoxProfiler:
        # it gives the server half a second, which may be too short
        loaded = self._run("load", str(self._file), "--session", "test")
        end = time.monotonic() + 30
        while self._run("status", "--session", "test").returncode:
            if time.monotonic() > end:
                self.__exit__()
                pytest.fail(f"the Firefox Profiler does not load {self._file}: {loaded.stderr}")
        return self

    def __exit__(self, *_: object) -> None:
        self._run("stop", "test")
        self._place.cleanup()

    def ask(self, *command: str) -> dict[str, Any]:
        """Return what a command says."""
        done = self._run(*command, "--json", "--session", "test")
        assert done.returncode == 0, f"{command}: {done.stderr}"
        return json.loads(done.stdout)

    def lines(self) -> Iterator[tuple[str, str, dict[int, int]]]:
        """Yield the functions that have a source file: name, file, samples by line."""
        for function in self.ask("thread", "functions", "--limit", "0")["functions"]:
            source = self.ask("function", "annotate", function["functionHandle"],
                              "--context", "file")["srcAnnotation"]
            if source:
                yield function["name"], source["filename"], {
                    line["lineNumber"]: line["totalSamples"] for line in source["lines"]
                    if line["totalSamples"]}

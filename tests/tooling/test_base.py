# SPDX-License-Identifier: GPL-2.0
"""stack/base takes a good tree from where it finds one, and says in one line
why a bad one is bad, leaving nothing half-made.

Kernels of a few files (toy.py) go through the same code as whole ones.
"""

import hashlib
import os
import signal
import subprocess
from pathlib import Path
from typing import Iterator, List

import pytest

from perfbpf.git import git
from toy import Toy, base_version, copy_tooling, toy_kernel

# No mirror and no network: sources that cannot work.
NOWHERE = {"PERF_BPF_SOURCES_LIST": "/dev/null", "PERF_BPF_SOURCES_PARTS": "/dev/null",
           "PERF_BPF_STABLE_URL": "/nowhere/linux.git"}


@pytest.fixture(name="toy")
def fixture_toy(tmp_path: Path) -> Toy:
    """The tooling, with nothing under build/."""
    return copy_tooling(tmp_path / "repo")


@pytest.fixture(name="kernel")
def fixture_kernel(tmp_path: Path) -> Path:
    """An unpacked kernel of a few files and the right version."""
    return toy_kernel(tmp_path / "kernel")


@pytest.fixture(name="small_disk")
def fixture_small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 2 MB."""
    if os.geteuid():
        pytest.skip("mounting a small tmpfs takes root")
    path = tmp_path / "small"
    path.mkdir()
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(path)],
                          capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"cannot mount a tmpfs here: {done.stderr.strip()}")
    yield path
    subprocess.run(["umount", str(path)], check=True)


def git_tree(path: Path) -> Path:
    """Make a directory a git repository of one commit."""
    git(path, "init", "-q", "-b", "main")
    git(path, "add", "-f", "-A")
    git(path, "commit", "-q", "-m", "Linux")
    return path


def files_of(path: Path) -> List[str]:
    """Every file under a path with its sum, in order."""
    return [f"{file} {hashlib.sha256(file.read_bytes()).hexdigest()}"
            for file in sorted(path.rglob("*")) if file.is_file()]


def tarball(kernel: Path, path: Path) -> Path:
    """A kernel.org-like tarball of an unpacked tree, in one leading directory."""
    subprocess.run(["tar", "-caf", str(path), "-C", str(kernel.parent), kernel.name], check=True)
    return path


def is_made(toy: Toy) -> bool:
    """build/base is there, whole: clean, with its tag."""
    base = toy.top / "build/base"
    return base.is_dir() and not git(base, "status", "--porcelain") \
        and bool(git(base, "rev-parse", "base"))


def refused(toy: Toy, *words: str, **environment: str) -> None:
    """stack/base fails with one line that has all these words, and leaves nothing."""
    done = toy.run("stack/base", **environment)
    assert done.returncode == 1, done.stdout + done.stderr
    lines = [line for line in done.stderr.splitlines() if line.startswith("base: ")]
    assert len(lines) == 1, done.stderr
    for word in words:
        assert word in lines[0], lines[0]
    assert not list((toy.top / "build").glob("base*")), "something half-made was left"


def test_directory(toy: Toy, kernel: Path) -> None:
    """KERNEL= an unpacked tarball."""
    toy.must("stack/base", KERNEL=str(kernel))
    assert is_made(toy)


@pytest.mark.parametrize("suffix", ["tar", "tar.xz", "tar.gz", "tar.zst"])
def test_tarball(toy: Toy, kernel: Path, tmp_path: Path, suffix: str) -> None:
    """KERNEL= a tarball."""
    toy.must("stack/base", KERNEL=str(tarball(kernel, tmp_path / f"linux.{suffix}")))
    assert is_made(toy)


def test_same_commit(toy: Toy, kernel: Path, tmp_path: Path) -> None:
    """The same files give the same commit, from wherever."""
    other = copy_tooling(tmp_path / "other")
    toy.must("stack/base", KERNEL=str(kernel))
    other.must("stack/base", KERNEL=str(tarball(kernel, tmp_path / "linux.tar")))
    commits = {git(t.top / "build/base", "rev-parse", "base") for t in (toy, other)}
    assert len(commits) == 1


def test_tarball_under_build(toy: Toy, kernel: Path) -> None:
    """A tarball that lies under build/ is taken before anything is fetched."""
    tarball(kernel, toy.top / f"build/linux-{base_version()}.tar.xz")
    toy.must("stack/base", **NOWHERE)
    assert is_made(toy)


def test_debian_package_under_build(toy: Toy, kernel: Path, tmp_path: Path) -> None:
    """So is Debian's source package, a tarball in a .deb."""
    name = "linux-source-" + base_version().rsplit(".", 1)[0]
    root = tmp_path / "root"
    (root / "usr/src").mkdir(parents=True)
    (root / "DEBIAN").mkdir()
    (root / "DEBIAN/control").write_text(
        f"Package: {name}\nVersion: {base_version()}-1\nArchitecture: all\n"
        "Maintainer: Toy <toy@localhost>\nDescription: toy\n")
    tarball(kernel, root / f"usr/src/{name}.tar.xz")
    subprocess.run(["dpkg-deb", "--build", str(root),
                    str(toy.top / f"build/{name}_{base_version()}-1_all.deb")],
                   check=True, capture_output=True)
    toy.must("stack/base", **NOWHERE)
    assert is_made(toy)


def test_stable_clone(toy: Toy, kernel: Path) -> None:
    """The last resort, the tag of the stable tree."""
    git(git_tree(kernel), "tag", (toy.top / "BASE").read_text().strip())
    toy.must("stack/base", **{**NOWHERE, "PERF_BPF_STABLE_URL": f"file://{kernel}"})
    assert is_made(toy)


def test_git_tree_is_not_written_to(toy: Toy, kernel: Path) -> None:
    """KERNEL= a git tree: committed files are taken, no byte of it changes."""
    git_tree(kernel)
    (kernel / "kernel/uncommitted.c").write_text("int x;\n")
    before = files_of(kernel)
    toy.must("stack/base", KERNEL=str(kernel))
    assert files_of(kernel) == before
    assert is_made(toy)
    assert not (toy.top / "build/base/kernel/uncommitted.c").exists()


def test_git_tree_at_another_version(toy: Toy, kernel: Path) -> None:
    """KERNEL= a git tree that has moved on: the base's tag is taken."""
    git(git_tree(kernel), "tag", (toy.top / "BASE").read_text().strip())
    toy_kernel(kernel, "9.9.0")
    git(kernel, "commit", "-q", "-a", "-m", "later")
    toy.must("stack/base", KERNEL=str(kernel))
    assert is_made(toy)


def test_later_stable_release(toy: Toy, tmp_path: Path) -> None:
    """A later 7.3.y is good."""
    series_, patch = base_version().rsplit(".", 1)
    toy.must("stack/base", KERNEL=str(toy_kernel(tmp_path / "k", f"{series_}.{int(patch) + 7}")))
    assert is_made(toy)


@pytest.mark.parametrize("kind", ["directory", "git", "tarball"])
@pytest.mark.parametrize("version", ["7.3.3", "7.2.40", "7.30.4", "6.3.9", "8.3.4"])
def test_wrong_version(toy: Toy, tmp_path: Path, version: str, kind: str) -> None:
    """Another version is refused, with what was found and what to do."""
    kernel = toy_kernel(tmp_path / "k", version)
    if kind == "git":
        git_tree(kernel)
    elif kind == "tarball":
        kernel = tarball(kernel, tmp_path / "linux.tar.gz")
    refused(toy, version, "KERNEL=", KERNEL=str(kernel))


@pytest.mark.parametrize("suffix", ["tar", "tar.xz", "tar.gz"])
def test_truncated_archive(toy: Toy, kernel: Path, tmp_path: Path, suffix: str) -> None:
    """Half a tarball, as an interrupted download leaves it."""
    path = tarball(kernel, tmp_path / f"linux.{suffix}")
    path.write_bytes(path.read_bytes()[:path.stat().st_size // 2])
    refused(toy, str(path), "is it whole?", KERNEL=str(path))


def test_empty_archive(toy: Toy, tmp_path: Path) -> None:
    """A tarball of no bytes."""
    path = tmp_path / "linux.tar.xz"
    path.touch()
    refused(toy, str(path), "is empty", KERNEL=str(path))


def test_no_such_path(toy: Toy) -> None:
    """KERNEL= nothing."""
    refused(toy, "/nowhere/linux", "does not exist", KERNEL="/nowhere/linux")


def test_not_a_kernel(toy: Toy, tmp_path: Path) -> None:
    """KERNEL= some directory."""
    (tmp_path / "k").mkdir()
    refused(toy, "no kernel tree", KERNEL=str(tmp_path / "k"))


def test_built_in(toy: Toy, kernel: Path) -> None:
    """KERNEL= a directory in which a kernel was configured: objects are no sources."""
    (kernel / ".config").touch()
    refused(toy, "mrproper", KERNEL=str(kernel))


def test_no_source_at_all(toy: Toy) -> None:
    """Nothing under build/, no mirror, no network."""
    refused(toy, "no kernel source", "KERNEL=/path", KERNEL="", **NOWHERE)


def test_no_space_before(toy: Toy, kernel: Path, small_disk: Path) -> None:
    """A disk that is known to be too small is not begun on."""
    refused(toy, "needs", "MB free", KERNEL=str(kernel), PERF_BPF_BUILD=str(small_disk))
    assert not list(small_disk.glob("base*"))


@pytest.mark.parametrize("kind", ["directory", "git", "tarball"])
def test_no_space_during(toy: Toy, kernel: Path, small_disk: Path, tmp_path: Path,
                         kind: str) -> None:
    """A disk that fills while the base is made."""
    (kernel / "kernel/big").write_bytes(os.urandom(4 << 20))
    if kind == "git":
        git_tree(kernel)
    elif kind == "tarball":
        kernel = tarball(kernel, tmp_path / "linux.tar")
    refused(toy, "is full", "make room", KERNEL=str(kernel), PERF_BPF_BUILD=str(small_disk),
            PERF_BPF_NEED_MB="1")
    assert not list(small_disk.glob("base*"))


def test_interrupted_is_redone(toy: Toy, kernel: Path) -> None:
    """What an earlier run left half-made is neither trusted nor kept."""
    left = toy.top / "build/base.tmp.1"
    left.mkdir()
    (left / "Makefile").write_text("half\n")
    toy.must("stack/base", KERNEL=str(kernel))
    assert is_made(toy)
    assert not left.exists()


def test_killed_is_redone(toy: Toy, kernel: Path, tmp_path: Path) -> None:
    """Killed in the middle of unpacking: no build/base; the next run makes it."""
    # A make of the real thing would be too quick to hit: this tar waits for ever.
    fakes = tmp_path / "fakes"
    fakes.mkdir()
    os.mkfifo(fakes / "reached")
    (fakes / "tar").write_text(f"#!/bin/sh\necho >{fakes}/reached\nsleep 1000\n")
    (fakes / "tar").chmod(0o755)
    path = tarball(kernel, tmp_path / "linux.tar.gz")
    env = {**os.environ, "KERNEL": str(path), "TMPDIR": str(tmp_path),
           "PATH": f"{fakes}:{os.environ['PATH']}"}
    with subprocess.Popen(["stack/base"], cwd=toy.top, env=env, stdin=subprocess.DEVNULL,
                          stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                          start_new_session=True) as child:
        (fakes / "reached").read_text()
        os.killpg(child.pid, signal.SIGKILL)
    assert list((toy.top / "build").glob("base.tmp.*"))
    assert not (toy.top / "build/base").exists()
    toy.must("stack/base", KERNEL=str(path))
    assert is_made(toy)
    assert not list((toy.top / "build").glob("base.tmp.*"))


def test_nothing_to_do(toy: Toy, kernel: Path) -> None:
    """A second run does nothing, and needs no source."""
    toy.must("stack/base", KERNEL=str(kernel))
    assert toy.must("stack/base", KERNEL="", **NOWHERE) == ""


def test_other_kernel_is_not_ignored(toy: Toy, kernel: Path) -> None:
    """KERNEL= another tree than build/base was made from is not passed over."""
    toy.must("stack/base", KERNEL=str(kernel))
    done = toy.run("stack/base", KERNEL="/elsewhere")
    assert done.returncode == 1 and "was not made from KERNEL=/elsewhere" in done.stderr


@pytest.mark.parametrize("form", ["one-line", "deb822"])
def test_mirror_is_the_machines_own(toy: Toy, tmp_path: Path, form: str) -> None:
    """The mirror is read from both forms of apt's sources; security and CDs are none."""
    parts = tmp_path / "parts"
    parts.mkdir()
    listed = tmp_path / "sources.list"
    if form == "one-line":
        listed.write_text("# a comment\n"
                          "deb cdrom:[Debian]/ bookworm main\n"
                          "deb [arch=amd64] http://mirror.example/debian/ bookworm main contrib\n"
                          "deb-src http://mirror.example/debian/ bookworm main\n"
                          "deb http://security.example/ bookworm-security main\n")
    else:
        listed.touch()
        (parts / "debian.sources").write_text(
            "Types: deb deb-src\nURIs: http://mirror.example/debian/\n"
            "Suites: trixie trixie-updates\nComponents: main contrib\n\n"
            "Enabled: no\nTypes: deb\nURIs: http://off.example/\nSuites: trixie\n"
            "Components: main\n\nTypes: deb\nURIs: http://security.example/\n"
            "Suites: trixie-security\nComponents: main\n")
    out = toy.must("stack/debfetch", "--mirrors", PERF_BPF_SOURCES_LIST=str(listed),
                   PERF_BPF_SOURCES_PARTS=str(parts))
    assert out.split() == ["http://mirror.example/debian/"]

# SPDX-License-Identifier: GPL-2.0
"""stack/setup: quick when nothing is missing; without root or apt it says what
is missing, how to get it, and stops. Nothing is installed here: where it would
be, apt-get is a program that only tells what it was asked."""

import os
import time
from pathlib import Path
from typing import List

import pytest

from toy import Toy, copy_tooling

PACKAGES = """\
# SPDX-License-Identifier: GPL-2.0
coreutils    cmd:ls             is everywhere
no-such-pkg  cmd:no-such-cmd    testing
no-such-lib  file:/no/such.h    testing too
"""


@pytest.fixture(name="toy")
def fixture_toy(tmp_path: Path) -> Toy:
    """The tooling, with a virtme-ng and a QEMU that need no fetching."""
    toy = copy_tooling(tmp_path / "repo")
    for program in ("virtme-ng/usr/bin/vng", "qemu/qemu-system-x86_64"):
        path = toy.top / "build/tools" / program
        path.parent.mkdir(parents=True)
        path.touch()
    return toy


@pytest.fixture(name="packages")
def fixture_packages(tmp_path: Path) -> Path:
    """A list of which two lines are not fulfilled."""
    path = tmp_path / "packages"
    path.write_text(PACKAGES)
    return path


def bare_path(tmp_path: Path, without: List[str]) -> str:
    """A PATH with this machine's programs but for some."""
    links = tmp_path / "bin"
    links.mkdir()
    for directory in ("/usr/bin", "/bin", "/usr/sbin", "/sbin"):
        for program in Path(directory).iterdir() if Path(directory).is_dir() else ():
            link = links / program.name
            if program.name not in without and not link.is_symlink():
                link.symlink_to(program)
    return str(links)


def write_program(path: Path, script: str) -> None:
    """A shell script that can be run."""
    path.write_text(f"#!/bin/bash\n{script}")
    path.chmod(0o755)


def path_with_qemu(toy: Toy, tmp_path: Path, version: str) -> str:
    """A PATH on which QEMU is of this version, and nothing is unpacked."""
    (toy.top / "build/tools/qemu/qemu-system-x86_64").unlink()
    path = bare_path(tmp_path, ["qemu-system-x86_64"])
    write_program(tmp_path / "bin/qemu-system-x86_64",
                  f'echo "QEMU emulator version {version} (Debian 1:{version}+dfsg-7)"\n')
    return path


def told(toy: Toy, **environment: str) -> str:
    """Setup fails, and names what is missing and how to get it; its words."""
    done = toy.run("stack/setup", **environment)
    assert done.returncode == 1, done.stdout + done.stderr
    for word in ("no-such-pkg\ttesting", "no-such-lib", "apt-get install"):
        assert word in done.stderr, done.stderr
    assert "coreutils" not in done.stderr
    return done.stderr


def test_nothing_missing(toy: Toy, tmp_path: Path) -> None:
    """Says nothing, and takes no time (five seconds are for a busy machine)."""
    packages = tmp_path / "packages"
    packages.write_text("coreutils cmd:ls is everywhere\n")
    start = time.monotonic()
    assert toy.must("stack/setup", PERF_BPF_PACKAGES=str(packages)) == ""
    assert time.monotonic() - start < 5


def test_without_apt(toy: Toy, packages: Path, tmp_path: Path) -> None:
    """A system without apt and dpkg: found out by the tests in the list."""
    path = bare_path(tmp_path, ["apt-get", "dpkg-query"])
    assert "no apt-get" in told(toy, PERF_BPF_PACKAGES=str(packages), PATH=path)


@pytest.mark.skipif(os.geteuid() != 0, reason="becoming nobody takes root")
def test_without_root(toy: Toy, packages: Path, tmp_path: Path) -> None:
    """Anybody but root."""
    # Those that pytest made, for us alone
    for parent in [toy.top, *toy.top.parents]:
        if not parent.name.startswith(("repo", "test_", "pytest-")):
            break
        parent.chmod(0o755)
    build = tmp_path / "build"
    build.mkdir(mode=0o777)
    build.chmod(0o777)
    done = toy.run("setpriv", "--reuid=65534", "--clear-groups", "stack/setup",
                   PERF_BPF_PACKAGES=str(packages), PERF_BPF_BUILD=str(build))
    assert done.returncode == 1 and "takes root" in done.stderr, done.stderr
    assert "no-such-pkg" in done.stderr


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gets as far as installing")
def test_installs_by_name(toy: Toy, packages: Path, tmp_path: Path) -> None:
    """Root with apt: an update, then one install of exactly what is missing."""
    asked = tmp_path / "asked"
    path = bare_path(tmp_path, ["apt-get"])
    (tmp_path / "bin/apt-get").write_text(f'#!/bin/sh\necho "$@" >>{asked}\n')
    (tmp_path / "bin/apt-get").chmod(0o755)
    done = toy.run("stack/setup", PERF_BPF_PACKAGES=str(packages), PATH=path)
    assert asked.read_text().splitlines() == [
        "update", "install -y --no-install-recommends no-such-pkg no-such-lib"]
    # The stand-in installed nothing, which is noticed.
    assert done.returncode == 1 and "yet they are not found" in done.stderr


def test_every_line_has_a_test(toy: Toy) -> None:
    """The real lists can be read on a system without dpkg: no unknown test in it."""
    lines = [line for packages in (toy.top / "stack").glob("packages*")
             for line in packages.read_text().splitlines() if line and not line.startswith("#")]
    assert len(lines) > 30
    for line in lines:
        assert line.split()[1].split(":")[0] in ("cmd", "file", "pc", "py"), line
        assert len(line.split()) > 2, line


def test_list_of_one_command(toy: Toy, packages: Path, tmp_path: Path) -> None:
    """What one command needs is a list of its own; a name without a list is told."""
    (toy.top / "stack/packages.testing").write_text(packages.read_text())
    path = bare_path(tmp_path, ["apt-get", "dpkg-query"])
    done = toy.run("stack/setup", "testing", PATH=path)
    assert done.returncode == 1 and "no-such-pkg\ttesting" in done.stderr, done.stderr
    done = toy.run("stack/setup", "nonsense")
    assert done.returncode == 1 and "testing" in done.stderr, done.stderr


# What downloads: a package whose emulator says how it was called.
DEBFETCH = r"""
echo "$1 $2" >>"${0%/*}/asked"
root=$(mktemp -d) && mkdir -p "$root/DEBIAN" "$root/usr/bin"
printf 'Package: %s\nVersion: 1\nArchitecture: all\nMaintainer: none\nDescription: toy\n' "$2" \
    >"$root/DEBIAN/control"
printf '#!/bin/sh\necho "called: $*"\n' >"$root/usr/bin/qemu-system-x86_64"
chmod +x "$root/usr/bin/qemu-system-x86_64"
dpkg-deb -b "$root" "$3/$2_1_all.deb"
"""


@pytest.fixture(name="nothing_else")
def fixture_nothing_else(tmp_path: Path) -> str:
    """A list of packages that are all there."""
    path = tmp_path / "nothing-else"
    path.write_text("coreutils cmd:ls is everywhere\n")
    return str(path)


def test_qemu_too_old(toy: Toy, nothing_else: str, tmp_path: Path) -> None:
    """An old QEMU: a newer one is unpacked, once, and runs from where it is."""
    path = path_with_qemu(toy, tmp_path, "7.2.22")
    write_program(toy.top / "stack/debfetch", DEBFETCH)
    for _ in range(2):
        toy.must("stack/setup", PERF_BPF_PACKAGES=nothing_else, PATH=path)
    suites, packages = zip(*(line.split() for line in
                             (toy.top / "stack/asked").read_text().splitlines()))
    assert packages == ("qemu-system-x86", "qemu-system-data", "seabios")
    assert all(suite.endswith("-backports") for suite in suites)
    root = toy.top / "build/tools/qemu"
    said = toy.must(str(root / "qemu-system-x86_64"), "-m", "1 G")
    assert said.startswith(f"called: -L {root}/usr/share/qemu") and said.endswith("-m 1 G\n")
    assert not list(root.parent.glob("*.tmp"))


@pytest.mark.parametrize("version", ["8.1", "10.0.2"])
def test_qemu_new_enough(toy: Toy, nothing_else: str, tmp_path: Path, version: str) -> None:
    """A QEMU that is not old is left alone."""
    path = path_with_qemu(toy, tmp_path, version)
    write_program(toy.top / "stack/debfetch", "exit 1\n")
    assert toy.must("stack/setup", PERF_BPF_PACKAGES=nothing_else, PATH=path) == ""


def test_no_newer_qemu(toy: Toy, nothing_else: str, tmp_path: Path) -> None:
    """A mirror without a newer one: told, nothing half-made, and it goes on."""
    path = path_with_qemu(toy, tmp_path, "8.0.4")
    write_program(toy.top / "stack/debfetch", "echo no such suite >&2; exit 1\n")
    done = toy.run("stack/setup", PERF_BPF_PACKAGES=nothing_else, PATH=path)
    assert done.returncode == 0, done.stderr
    assert "no such suite" in done.stderr and "going on without" in done.stdout
    assert not list((toy.top / "build/tools/qemu").iterdir())

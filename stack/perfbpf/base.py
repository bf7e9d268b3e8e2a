# SPDX-License-Identifier: GPL-2.0
"""build/base: the tree the series stands on, as a git repository of one commit with the tag
`base`. It comes from the first of these that works:
  1. KERNEL=/path: a git tree (only read), a tarball, or an unpacked tarball;
  2. a tarball or linux-source package already under build/;
  3. Debian's linux-source package, see stack/debfetch;
  4. the stable tree's tag, by git clone.
It is made under another name and renamed when complete.
"""
from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
from pathlib import Path

from perfbpf.stage import locked, need_space, say
from perfbpf.git import ToolError, git, git_text
from perfbpf.paths import BASE, BUILD, TOP

VERSION = (TOP / "BASE").read_text(encoding="ascii").strip()
RELEASE, _, PATCH = VERSION.removeprefix("v").rpartition(".")
STABLE = os.environ.get("PERF_BPF_STABLE_URL") \
    or "https://git.kernel.org/pub/scm/linux/kernel/git/stable/linux.git"
SUITE, PACKAGE = "trixie-backports", f"linux-source-{RELEASE}"
DRAFT = BASE.with_name("base.tmp")
TAR = "tar -x --no-same-owner --strip-components="


def version_of(makefile: str) -> str:
    """The version that a kernel's top Makefile gives, as 7.3.4; "" if it is none."""
    fields = re.findall("^(?:VERSION|PATCHLEVEL|SUBLEVEL|EXTRAVERSION) *= *(.*)$", makefile, re.M)
    return ".".join(fields[:3]) + fields[3] if len(fields) == 4 else ""


def good(version: str) -> bool:
    """Is it the same release of the series, or a later one?"""
    match = re.match(rf"{re.escape(RELEASE)}\.(\d+)", version)
    return bool(match and "-rc" not in version and int(match[1]) >= int(PATCH))


def refuse(what: str, version: str) -> ToolError:
    """The error for a tree of another version."""
    return ToolError(f"{what} is {version or 'no kernel tree'}, but the series stands on"
                     f" {RELEASE}.y, {VERSION} or later: give one with KERNEL=/path, or remove"
                     " this one")


def take(script: str, what: str) -> None:
    """Unpack with a line of shell (ToolError: what is unpacked is damaged)."""
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", script], cwd=DRAFT, stdin=subprocess.DEVNULL,
        env={**os.environ, "XZ_DEFAULTS": "-T0"}, stderr=subprocess.PIPE, text=True,
        errors="replace", check=False)
    if done.returncode:
        raise ToolError(f"{what}: {done.stderr.strip()[-300:]}: is it a tarball, is it whole, and"
                        f" has the disk of {BUILD} 3 GB free? Remove or replace it, and run again")


def from_tarball(path: Path) -> str:
    """Unpack a tarball, or Debian's package of one; what it is (ToolError)."""
    file = shlex.quote(str(path))
    take(f"dpkg-deb --fsys-tarfile {file} | tar -xO --wildcards '*/linux-source-*.tar.xz' | {TAR}1"
         " -J" if path.suffix == ".deb" else f"{TAR}1 -f {file}", str(path))
    return str(path)


def from_git(repo: Path) -> None:
    """Take the committed files of the user's repository, which is only read: of HEAD, or of the
    base's tag when HEAD is no match."""
    versions = {}
    for rev in ("HEAD", VERSION):
        try:
            versions[rev] = version_of(git(repo, "show", f"{rev}:Makefile").decode())
        except ToolError:
            continue
        if good(versions[rev]):
            say(f"base: committed files of {repo} ({rev})")
            take(f"git -c safe.directory='*' -C {shlex.quote(str(repo))} archive {rev} | {TAR}0",
                 str(repo))
            return
    raise refuse(f"KERNEL={repo} (its HEAD)", versions.get("HEAD", ""))


def from_kernel(path: Path) -> str:
    """Take what KERNEL= names; what it is (ToolError: it is none of the three)."""
    if path.is_file():
        from_tarball(path)
    elif (path / ".git").exists():
        from_git(path)
    elif not (path / "Makefile").is_file():
        raise ToolError(f"KERNEL={path}: give a kernel git tree, a tarball or an unpacked one")
    elif (path / ".config").exists() or (path / "include/config").exists():
        raise ToolError(f"KERNEL={path} has been configured or built in: run `make mrproper`"
                        " there, or give a git tree or a tarball")
    else:
        take(f"tar -c -C {shlex.quote(str(path))} . | {TAR}1", str(path))
    return f"KERNEL={path}"


def local_tarball() -> Path | None:
    """The newest tarball of the right series under build/, if any."""
    found = [path for path in BUILD.glob(f"linux-*{RELEASE}*")
             if re.search(r"\.(tar|tgz|deb)(\.\w{2,3})?$", path.name)]
    found.sort(key=lambda path: [int(word) for word in re.findall(r"\d+", path.name)])
    return found[-1] if found else None


def download() -> str:
    """Get the sources from Debian or from the stable tree; what they are (ToolError)."""
    say(f"base: Debian's {PACKAGE} from {SUITE} (170 MB)")
    log = BUILD / "logs/debfetch.log"
    log.parent.mkdir(exist_ok=True)
    with open(log, "wb") as output:
        done = subprocess.run([TOP / "stack/debfetch", SUITE, PACKAGE, BUILD], stdout=output,
                              stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, check=False)
    tarball = local_tarball()
    if not done.returncode and tarball:
        return from_tarball(tarball)
    say(f"base: the tag {VERSION} of {STABLE}")
    try:
        git(BUILD, "clone", "-q", "--depth", "1", "--branch", VERSION, STABLE, str(DRAFT))
    except ToolError as error:
        raise ToolError(f"no kernel source: nothing under {BUILD}, not from Debian's {SUITE} (see"
                        f" {log}), not from {STABLE} ({error}); give {RELEASE}.{PATCH} or later"
                        " with KERNEL=/path (git tree, tarball or directory)") from error
    return f"{STABLE} {VERSION}"


def unpack() -> str:
    """Get the sources; where from."""
    kernel, tarball = os.environ.get("KERNEL"), local_tarball()
    if kernel:
        return from_kernel(Path(kernel).absolute())
    if tarball:
        say(f"base: {tarball}")
        return from_tarball(tarball)
    return download()


def commit(version: str) -> None:
    """The same files give the same commit, whoever makes it and when. Every file passes for a
    big one, as those go straight to one pack: 90000 loose objects take minutes to write."""
    shutil.rmtree(DRAFT / ".git", ignore_errors=True)
    git(DRAFT, "init", "-q", "-b", "base-tree")
    git(DRAFT, "-c", "core.bigFileThreshold=1", "-c", "core.autocrlf=false", "add", "-f", "-A")
    tree = git_text(DRAFT, "write-tree")
    text = "".join(f"{role} perf-bpf <perf-bpf@localhost> 946684800 +0000\n"
                   for role in ("author", "committer"))
    raw = f"tree {tree}\n{text}\nLinux v{version}\n".encode()
    made = git(DRAFT, "hash-object", "-t", "commit", "-w", "--stdin", stdin=raw).decode().strip()
    git(DRAFT, "reset", "-q", made)
    git(DRAFT, "tag", "base")
    (DRAFT / ".git/perf-bpf-kernel").write_text(os.environ.get("KERNEL", ""), encoding="utf-8")


def ensure() -> None:
    """Make build/base if it is not there (ToolError: it cannot, or is of another KERNEL=)."""
    with locked("base"):
        kernel = os.environ.get("KERNEL")
        if BASE.exists():
            if kernel and kernel != (BASE / ".git/perf-bpf-kernel").read_text(encoding="utf-8"):
                raise ToolError(f"{BASE} was not made from KERNEL={kernel}: `make distclean` to"
                                " start from that tree, or unset KERNEL")
            version = version_of((BASE / "Makefile").read_text(errors="replace"))
            if not good(version):
                raise ToolError(f"{BASE} is {version}, and BASE says {VERSION}: `make refresh`, if"
                                " build/linux has new work, then remove both and the sources in"
                                f" {BUILD} they came from; see CONTRIBUTING.md for the rebase")
            return
        need_space(3000, "the base tree")
        shutil.rmtree(DRAFT, ignore_errors=True)
        DRAFT.mkdir()
        what = unpack()
        makefile = DRAFT / "Makefile"
        version = version_of(makefile.read_text(errors="replace")) if makefile.exists() else ""
        if not good(version):
            raise refuse(what, version)
        commit(version)
        DRAFT.rename(BASE)
        say(f"base: build/base is v{version}")

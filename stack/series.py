#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""What the series is: its patches, their sections, the files they create.

Shared by stack/refresh, stack/lint, stack/tree and tests/. Nothing here needs
a checked-out kernel tree: a patch can only depend on the files the series
touches, so a repository of these few files alone (Reduced) decides whether it
applies, and to what, in a hundredth of the time.

    stack/series.py sha             one number for series and patches/
"""

import fnmatch
import hashlib
import os
import re
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Dict, Iterator, List, NamedTuple, Optional, Set, Tuple

SELFTESTS = "tools/testing/selftests/"
# Directories at the top that hold no kernel files.
OWN_DIRS = {".ci", ".git", ".github", "bench", "build", "patches", "stack", "tests"}
SECTIONS = ("fixes", "ksymbol", "bpf-event", "sample-data", "probe-btf",
            "libbpf", "perf", "selftests-and-docs")
HEADING = re.compile(r"# ([a-z-]+)$")
SERIES_HEAD = """\
# SPDX-License-Identifier: GPL-2.0
# The order of patches/; `make refresh` writes this file and keeps each patch
# under the heading it finds it under (a new one joins the patch before it).
"""


class SeriesError(Exception):
    """The series, or what it stands on, is not as it must be; one line."""


def git(cwd: Path, *args: str, stdin: Optional[bytes] = None) -> bytes:
    """Run git in cwd without the user's configuration; its stdout.

    Raises SeriesError with the command and git's own words when it fails.
    """
    env = {k: v for k, v in os.environ.items() if not k.startswith("GIT_")}
    env.update(GIT_CONFIG_NOSYSTEM="1", GIT_CONFIG_GLOBAL="/dev/null",
               GIT_COMMITTER_NAME="perf-bpf", GIT_COMMITTER_EMAIL="perf-bpf@localhost",
               GIT_AUTHOR_NAME="perf-bpf", GIT_AUTHOR_EMAIL="perf-bpf@localhost",
               LC_ALL="C")
    done = subprocess.run(
        ["git", "-c", "safe.directory=*", "-c", "gc.auto=0", "-c", "core.hooksPath=/dev/null",
         "-c", "core.quotePath=false", *args],
        cwd=cwd, env=env, input=stdin, capture_output=True, check=False)
    if done.returncode:
        words = " ".join((done.stdout + done.stderr).decode(errors="replace").split())
        raise SeriesError(f"git {args[0]} in {cwd}: {words[:600]}")
    return done.stdout


def top_dir() -> Path:
    """The repository this file is in."""
    return Path(__file__).resolve().parent.parent


def build_dir(top: Path) -> Path:
    """The build directory, which PERF_BPF_BUILD can move, as in lib.sh."""
    return Path(os.environ.get("PERF_BPF_BUILD") or top / "build").absolute()


def series_lines(top: Path) -> Iterator[Tuple[str, str]]:
    """(section, patch file name) for each patch in `series`; "" before a heading."""
    section = ""
    path = top / "series"
    for line in path.read_text().splitlines() if path.exists() else ():
        heading = HEADING.match(line)
        if heading:
            section = heading.group(1)
        name = line.split("#")[0].strip()
        if name:
            yield section, name


def patch_names(top: Path) -> List[str]:
    """The patch file names in `series`, in order."""
    return [name for _, name in series_lines(top)]


def slug(name: str) -> str:
    """A patch's name without its number, which changes as others come and go."""
    return re.sub(r"^\d+-|\.patch$", "", name)


def sha(top: Path) -> str:
    """One number for the order of the series and every patch's bytes."""
    digest = hashlib.sha256()
    for name in patch_names(top):
        path = top / "patches" / name
        if not path.exists():
            raise SeriesError(f"series names {name}, which is not in patches/:"
                              " restore it, or take the line out")
        digest.update(name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()


def touched(patch: Path) -> List[str]:
    """The kernel paths a patch file touches. Raises SeriesError if it is damaged.

    From a place outside any repository: inside one, git apply would leave out
    the paths that are not under the directory it runs in.
    """
    out = git(Path("/"), "apply", "--numstat", "-z", str(patch))
    return [entry.split("\t", 2)[2] for entry in out.decode().split("\0") if entry]


def mirror_path(path: str) -> str:
    """Where this repository keeps the full text of a file the series creates."""
    return "selftests/" + path[len(SELFTESTS):] if path.startswith(SELFTESTS) else path


class Blob(NamedTuple):
    """A file as the series creates it."""
    executable: bool
    data: bytes


def created(repo: Path, old: str, new: str) -> Dict[str, Blob]:
    """Mirror path -> content of each file that is in `new` and not in `old`."""
    raw = git(repo, "diff-tree", "-r", "-z", "--no-renames", "--diff-filter=A", old, new)
    fields = raw.decode().split("\0")
    files = {}
    for meta, path in zip(fields[0::2], fields[1::2]):
        _, mode, _, blob, _ = meta.split(" ")
        files[mirror_path(path)] = Blob(mode == "100755", git(repo, "cat-file", "blob", blob))
    return files


def mirror_files(top: Path) -> Set[str]:
    """Every file under the kernel's directories in this repository."""
    found = set()
    for directory in top.iterdir():
        if not directory.is_dir() or directory.name in OWN_DIRS:
            continue
        for path in directory.rglob("*"):
            if "__pycache__" not in path.parts and not path.is_dir():
                found.add(str(path.relative_to(top)))
    return found


class Reduced:
    """A repository of only the files that the series touches, as the base has them.

    repo: an empty directory to make it in; the commit is tagged `base`.
    """

    def __init__(self, repo: Path, base: Path, paths: Set[str]) -> None:
        self.repo = repo
        repo.mkdir(parents=True, exist_ok=True)
        git(repo, "init", "-q")
        self._extract(base, sorted(paths))
        self.commit("base")

    def _extract(self, base: Path, paths: List[str]) -> None:
        if not paths:
            return      # git would take that for all paths
        listing = git(base, "ls-tree", "-z", "--name-only", "base", "--", *paths).decode()
        present = [path for path in listing.split("\0") if path]
        if not present:
            return
        archive = self.repo / ".git" / "base.tar"
        archive.write_bytes(git(base, "archive", "base", "--", *present))
        with tarfile.open(archive) as tar:
            for member in tar:
                tar.extract(member, self.repo)
        archive.unlink()

    def commit(self, tag: str) -> None:
        """Commit whatever the directory holds, and tag it."""
        git(self.repo, "add", "-f", "-A")
        git(self.repo, "commit", "-q", "--allow-empty", "-m", tag)
        git(self.repo, "tag", "-f", tag)

    def checkout(self, rev: str) -> None:
        """Make the directory exactly what rev holds."""
        git(self.repo, "checkout", "-q", "-f", "--detach", rev)
        git(self.repo, "clean", "-q", "-fdx")

    def am(self, patch: Path) -> None:
        """Apply a patch as a commit. Raises SeriesError, and leaves no trace, if it fails."""
        try:
            git(self.repo, "am", "-q", "--keep-non-patch", "--committer-date-is-author-date",
                str(patch))
        except SeriesError:
            git(self.repo, "am", "--abort")
            raise

    def tree(self, rev: str = "HEAD") -> str:
        """The tree id of rev."""
        return git(self.repo, "rev-parse", rev + "^{tree}").decode().strip()


def sections_of(names: List[str], old: Dict[str, str]) -> List[Tuple[str, str]]:
    """(section, name) for a new order of patches: where it was, else with its predecessor."""
    placed = []
    section = SECTIONS[0]
    for name in names:
        section = old.get(slug(name), section)
        placed.append((section, name))
    return placed


def series_text(placed: List[Tuple[str, str]]) -> str:
    """The text of the file `series`."""
    text = SERIES_HEAD
    last = None
    for section, name in placed:
        if section != last:
            text += f"\n# {section}\n"
            last = section
        text += name + "\n"
    return text


def matches(pattern: str, *names: str) -> bool:
    """Does a shell pattern match one of the names?"""
    return any(fnmatch.fnmatchcase(name, pattern) for name in names)


def main(argv: List[str]) -> int:
    """The command line: see the top of the file."""
    if argv[1:] == ["sha"]:
        print(sha(top_dir()))
    else:
        print(__doc__, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv))
    except SeriesError as error:
        sys.exit(f"series: {error}")

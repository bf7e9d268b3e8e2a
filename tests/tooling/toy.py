# SPDX-License-Identifier: GPL-2.0
"""A toy of this repository: its tooling, a kernel of a few files, four patches in three topics."""
import os
import shutil
import subprocess
import time
from pathlib import Path
from typing import NamedTuple

import pytest

from perfbpf.git import git, git_text
from perfbpf.paths import BASE, TOP
from perfbpf.series import HEAD

VERSION = (TOP / "BASE").read_text().strip().lstrip("v")
SPDX = "# SPDX-License-Identifier: GPL-2.0\n"
SUM = "// SPDX-License-Identifier: GPL-2.0\nint sum(int a, int b)\n{\n\t/* line 1 */\n" \
    "\t/* line 2 */\n\treturn a - b;\n\t/* line 3 */\n}\n\nint other;\n"
# Of the real base: what checkpatch is and reads.
SCRIPTS = ("scripts/checkpatch.pl", "scripts/spelling.txt", "scripts/const_structs.checkpatch",
           "Documentation/dev-tools/checkpatch.rst")
EMPTY = "COPYING CREDITS Kbuild Kconfig README arch/x drivers/x fs/x include/x init/x ipc/x lib/x"
# Written by hand, before the first refresh: subjects for names.
TOPICS = {"01-sum": ("none", "toy-mend-the-sum"), "02-file": (
    "none", "toy-add-a-new-file\ntoy-add-a-selftest"), "03-more": ("sum", "toy-spell-a-number")}
TOPIC = "\n# topic: {}\n# needs: {}\n# upstream: toy\n# state: not sent\n{}\n"
BODY = "\n\nIt says why.\n\nSigned-off-by: perf-bpf <perf-bpf@localhost>"
COVER = "From: Toy <toy@localhost>\nSubject: [PATCH] toy: {0}\n\nWhat {0} is about.\n\n" \
    "--- diffstat, written by `make refresh`\n--- end of diffstat\n"


def gone(note: Path) -> bool:
    """Has the process that noted its number there ended?"""
    stat = Path("/proc", note.read_text().strip(), "stat")
    return not stat.exists() or stat.read_text().split()[2] in "ZX"


class Toy(NamedTuple):
    """A toy repository at `top`, with build/ in it."""
    top: Path

    def run(self, *words: str, status: int = 0, says: str = "", **more: str) -> str:
        """Run a command in the toy, which has to end and to say so; all that it prints."""
        env = {name: value for name, value in os.environ.items() if name not in (
            "KERNEL", "MAKEFLAGS", "PYTHONPATH") and not name.startswith("PERF_BPF")}
        done = subprocess.run(words, cwd=self.top, env={**env, **more}, text=True, check=False,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT)
        assert done.returncode == status and says in done.stdout, done.stdout
        assert "Traceback" not in done.stdout, done.stdout
        return done.stdout

    def shell(self, script: str) -> str:
        """Run a line of shell in build/linux; all that it prints."""
        return self.run("sh", "-ec", f"cd build/linux; {script}")

    def fake(self, name: str, script: str) -> str:
        """Put a program in front of this machine's; the PATH with it."""
        (path := self.top.parent / "fakes" / name).parent.mkdir(exist_ok=True)
        path.write_text(f"#!/bin/bash\n{script}\n")
        path.chmod(0o755)
        return f"{path.parent}:{os.environ['PATH']}"

    def stop_at(self, name: str, arguments: str, number: int, *words: str, **more: str) -> int:
        """Run a command, and send it a signal when it calls a program so; its exit status."""
        (reached := self.top.parent / "reached").unlink(missing_ok=True)
        path = self.fake(name, f'[[ " $* " != *"{arguments}"* ]] || {{ touch {reached};'
                         f' /bin/sleep 987; }}\nexec {shutil.which(name)} "$@"')
        with subprocess.Popen(words, cwd=self.top, env={**os.environ, "PATH": path, **more},
                              stdout=subprocess.DEVNULL, start_new_session=True) as child:
            while child.poll() is None and not reached.exists():
                time.sleep(0.05)
            assert child.poll() is None, f"it ended without calling {name} {arguments}"
            os.killpg(child.pid, number)
        return child.returncode

    def edit(self, name: str, old: str, new: str) -> None:
        """Replace the first `old` in a file, which must be there; "" stands for the file's end."""
        text = path.read_text() if (path := self.top / name).exists() or old else ""
        assert old in text, f"{name} has no {old!r}"
        path.write_text(text.replace(old, new, 1) if old else text + new)

    def commit(self, subject: str, path: str, text: str) -> None:
        """A commit of one file in build/linux."""
        (file := self.top / "build/linux" / path).parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        self.shell(f"chmod 0{'755' if text[:1] == '#' else '644'} {path}; git add -f {path};"
                   f" git commit -qm '{subject}{BODY}'")


def toy_kernel(path: Path, version: str = VERSION) -> Path:
    """A kernel tree of a few files, with the real base's scripts that lint runs."""
    for name, text in {**dict.fromkeys([*EMPTY.split(), "MAINTAINERS"], ""), "kernel/sum.c": SUM,
                       **{name: git_text(BASE, "show", f"base:{name}") for name in SCRIPTS},
                       "Makefile": "VERSION = {}\nPATCHLEVEL = {}\nSUBLEVEL = {}\nEXTRAVERSION =\n"
                       .format(*version.split("."))}.items():
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_text(text)
    return path


def copy_tooling(top: Path) -> Toy:
    """A repository with this one's tooling, which lint does not see, and no series."""
    for name in ("patches", "build", "tests/full", "tests/guest"):
        (top / name).mkdir(parents=True)
    shutil.copytree(TOP / "stack", top / "stack", ignore=shutil.ignore_patterns("__pycache__"))
    for name, text in {"series": HEAD, "tests/flaky": SPDX, "tests/fine.py": SPDX,
                       "tests/fine": "#!/bin/sh\n" + SPDX, ".gitignore": f"{SPDX}/build\n/stack/\n",
                       "tests/guest/plan": f"{SPDX}kselftest toy/toy.sh debug\nkunit toy\n",
                       "patches/checkpatch.allow": f"{SPDX}FILE_PATH_CHANGES *\n",
                       **{name: (TOP / name).read_text() for name in (
                           "BASE", ".gitattributes", ".flake8", "pyproject.toml")}}.items():
        (top / name).write_text(text)
    git(top, "init", "-q")
    return Toy(top)


@pytest.fixture(scope="session", name="whole")
def fixture_whole(tmp_path_factory: pytest.TempPathFactory) -> Toy:
    """A whole toy, which stays as it is: base, tree, a refreshed series; all is committed."""
    toy = copy_tooling((top := tmp_path_factory.mktemp("toy")) / "repo")
    toy.run("stack/build", "tree", KERNEL=str(toy_kernel(top / "kernel")))
    for name in ("user.name perf-bpf", "user.email perf-bpf@localhost"):
        toy.shell(f"git config {name}; cd ../..; git config {name}")
    mended = SUM.replace("a - b", "a + b")
    toy.commit("toy: mend the sum", "kernel/sum.c", mended)
    toy.commit("toy: add a new file", "kernel/toy.c", SUM.replace("sum", "toy"))
    toy.commit("toy: add a selftest", "tools/testing/selftests/toy/toy.sh", "#!/bin/sh\n" + SPDX)
    toy.commit("toy: spell a number", "kernel/sum.c", mended.replace("line 3", "line three"))
    for name, rest in TOPICS.items():
        toy.edit("series", "", TOPIC.format(name[3:], *rest))
        (toy.top / "patches" / name).mkdir()
        toy.edit(f"patches/{name}/cover.txt", "", COVER.format(name[3:]))
    toy.edit("MAINTAINERS.snippet", "", "TOY\nM:\tToy <toy@localhost>\nS:\tMaintained\n"
             "F:\tkernel/toy.c\nF:\ttools/testing/selftests/toy/\n")
    # with alternates that are relative, a copy of the toy is whole
    toy.shell("echo '# tree' $(git rev-parse base^{tree}) >../../patches/debian-hunks.txt;"
              " cd ../..; stack/refresh; PYTHONPATH=stack python3 -B -c 'from perfbpf import"
              " passed as p; p.write(\"debug\", p.begin(\"debug\"))'; git add -A;"
              " git commit -qm toy; echo"
              " ../../../base/.git/objects >build/linux/.git/objects/info/alternates")
    return toy


@pytest.fixture(name="toy")
def fixture_toy(whole: Toy, tmp_path: Path) -> Toy:
    """A copy of it, to be changed."""
    return Toy(Path(shutil.copytree(whole.top, tmp_path / "repo", symlinks=True)))

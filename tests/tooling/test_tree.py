# SPDX-License-Identifier: GPL-2.0
"""build/base, build/linux, make refresh, make distclean: whole or not there; no work is lost."""
import subprocess
from pathlib import Path

import pytest

from perfbpf.git import git
from toy import TOPIC, VERSION, Toy, copy_tooling, toy_kernel
from toy import fixture_toy, fixture_whole  # noqa: F401

RELEASE, _, PATCH = VERSION.rpartition(".")
TREE, REFRESH, BASE = ("stack/build", "tree"), ("stack/refresh",), ("stack/build", "base")
SELFTEST = "02-file/0002-toy-add-a-selftest.patch"
COMMIT = "git commit -q --allow-empty -m"
DROP = "cd ../..; rm patches/*/*selftest.patch; sed -i /selftest/d series"
REFUSED = [("a.tar.gz", f"{RELEASE}.{int(PATCH) - 1}", "the series stands on"),
           ("a", f"{RELEASE}0.{PATCH}", "the series stands on"), ("half.tar", VERSION, "it whole"),
           ("half.tar.xz", VERSION, "is it whole"), (".config", VERSION, "make mrproper"),
           ("nothing", VERSION, "source: nothing"), ("full-disk", VERSION, "no space left")]


def kernel_as(form: str, folder: Path, version: str = VERSION) -> Path:
    """A kernel of a few files as a directory, a git tree that went on, or a tarball."""
    kernel = toy_kernel(folder / form / "linux", version)
    script = {"git": f"git init -q; git config user.name x; git config user.email x; git add -fA;"
              f" {COMMIT} x; git tag v{VERSION}; git rm -q Makefile; {COMMIT} x",
              ".config": "touch .config"}.get(
                  form, f"tar -caf ../{form} ../linux" if "tar" in form else "true")
    subprocess.run(["sh", "-ec", script], cwd=kernel, check=True)
    if form.startswith("half"):
        (file := kernel.parent / form).write_bytes(file.read_bytes()[:file.stat().st_size // 2])
    return kernel.parent / form if "tar" in form else kernel


def state(folder: Path) -> dict[str, bytes]:
    """Every file of a folder but build/ and .git."""
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()
            and not {"build", ".git"} & set(path.relative_to(folder).parts)}


def patches(toy: Toy) -> list[str]:
    """What `series` names, which is what patches/ have."""
    names = [line for line in (toy.top / "series").read_text().splitlines() if line[:1].isdigit()]
    assert sorted(names) == sorted(toy.shell("cd ../../patches; ls */*.patch").split())
    return names


def reorder(toy: Toy, *subjects: str) -> None:
    """Put the commits of build/linux in this order; those that are not named go."""
    commits = " ".join(f"$(git log -1 --format=%H --grep='{one}' series)" for one in subjects)
    toy.shell(f"set -- {commits}; git reset -q --hard base; git cherry-pick $*")


def test_base(tmp_path: Path) -> None:
    """Each form of a kernel gives the same commit, and what is none is refused in a line."""
    toy, commits = copy_tooling(tmp_path / "repo"), set()
    base, path = toy.top / "build/base", toy.fake("apt-get", "exit 1")
    for form in ("a", "git", "a.tar", "a.tar.xz", "a.tar.gz", "a.tar.zst", "clone", "b.tar"):
        kernel = kernel_as(form.replace("clone", "git"), tmp_path / form)
        if form == "b.tar":
            kernel.rename(toy.top / f"build/linux-{VERSION}.tar")
        before, name = state(tmp_path / form), f"../{kernel.relative_to(tmp_path)}"
        toy.run(*BASE, PATH=path, KERNEL="" if form in ("clone", "b.tar") else name,
                PERF_BPF_STABLE_URL=f"file://{kernel}" if form == "clone" else "")
        assert state(tmp_path / form) == before and git(base, "status", "--porcelain") == b""
        commits.add(git(base, "rev-parse", "base"))
        toy.run("sh", "-c", "rm -r build/*")
    assert len(commits) == 1
    for form, version, says in REFUSED:
        if form == "full-disk":
            toy.fake("tar", "echo no space left >&2; exit 1")
        kernel = kernel_as(form, tmp_path / version, version)
        toy.run(*BASE, PATH=path, status=1, says=says, PERF_BPF_STABLE_URL="/nowhere",
                KERNEL=str(kernel) if form != "nothing" else "")
        assert not base.exists()
    toy.run(*BASE, KERNEL=str(kernel_as("a.tar", tmp_path / "x", f"{RELEASE}.{int(PATCH) + 7}")))
    toy.run(*BASE, KERNEL="/elsewhere", status=1, says="was not made from KERNEL=/elsewhere")


@pytest.mark.parametrize("what, program, arguments", [
    ("base", "tar", " -f "), ("base", "git", " tag base"), ("linux", "git", " am -q ")])
def test_killed(toy: Toy, tmp_path: Path, what: str, program: str, arguments: str) -> None:
    """What a killed run left is neither trusted nor in the way."""
    kernel = str(kernel_as("a.tar", tmp_path)) if what == "base" else ""
    toy.shell(f"cd ..; rm -rf linux {what}")
    toy.stop_at(program, arguments, 9, *TREE, KERNEL=kernel)
    (toy.top / f"build/{what}.tmp/stray").touch()
    assert not (toy.top / "build" / what).exists()
    toy.run(*TREE, KERNEL=kernel)
    assert toy.shell("git rev-list --count base..series; git status --porcelain; ls stray"
                     " ../base/stray 2>&1 | grep -c No") == "4\n2\n"


def test_round_trip(toy: Toy, tmp_path: Path) -> None:
    """patches -> tree -> patches changes nothing; a mere copy follows patches/, also if killed."""
    before, head = state(toy.top), toy.shell("git rev-parse series")
    (tmp_path / "config").write_text("[diff]\nnoprefix = true\ncontext = 9\n[format]\nsignOff=1")
    for words in (REFRESH, ("rm", "-r", "build/linux"), TREE, REFRESH, TREE):
        assert "wrote" not in toy.run(*words, GIT_CONFIG_GLOBAL=str(tmp_path / "config"))
    assert state(toy.top) == before and toy.shell("git rev-parse series") == head
    for number, script in (("4", "cd ../..; git checkout -q patches series"), ("3", "true")):
        toy.shell(DROP)
        toy.stop_at("git", " am -q ", 9, *TREE)
        toy.shell(f"echo half >kernel/sum.c; {script}")
        toy.run(*TREE)
        assert toy.shell("git rev-list --count base..HEAD; git status --porcelain") == f"{number}\n"
    toy.run("stack/build", "distclean")
    assert not (toy.top / "build").exists()


@pytest.mark.parametrize("stops, work", [
    (1, f"{COMMIT} x"), (1, "echo x >kernel/sum.c"), (0, "echo x >kernel/sum.c; git stash -q"),
    (1, "git checkout -q --detach base; echo x >kernel/sum.c"),
    (1, "git checkout -q --detach base; mkdir .git/rebase-merge"),
    (0, f"git checkout -q -b x; {COMMIT} x; git checkout -q series"),
    (0, "echo '/*' >.git/info/exclude; touch new.c"), (0, f"git checkout -q --detach; {COMMIT} x")])
def test_work_is_kept(toy: Toy, stops: int, work: str) -> None:
    """No work goes with distclean, or when build/linux has to follow patches/."""
    toy.shell(work)
    before = toy.shell("git rev-parse HEAD --all; git diff")
    toy.run("stack/build", "distclean", status=1, says="not in patches/")
    toy.run(*TREE)
    if stops:
        toy.shell(DROP)
        toy.run(*TREE, status=1, says="Nothing was touched")
    assert toy.shell("git rev-parse HEAD --all; git diff") == before


def test_refresh(toy: Toy) -> None:
    """New, reworded, moved and dropped commits keep or change topics; what names them follows."""
    toy.edit("N.md", "", f"[02/0002](patches/{SELFTEST})\n")
    toy.shell("git commit -q --amend -m 'toy: write it out'")
    toy.commit("toy: add more", "kernel/more.c", "int more;\n")
    reorder(toy, "mend the sum", "a new file", "add more", "selftest", "write it out")
    toy.shell("echo x >kernel/toy.c")
    said = toy.run(*REFRESH, says="toy-add-more is new: it joins file")
    assert said.count("is new") == 1 and "not committed" in said
    moved, last = SELFTEST.replace("2-toy", "3-toy"), "03-more/0001-toy-write-it-out.patch"
    assert patches(toy)[2:] == ["02-file/0002-toy-add-more.patch", moved, last]
    assert (toy.top / "N.md").read_text() == f"[02/0003](patches/{moved})\n"
    assert "kernel/more.c" in (toy.top / "patches/02-file/cover.txt").read_text()
    assert (toy.top / "kernel/more.c").read_text() == "int more;\n"
    toy.run(*TREE)
    toy.shell("cd ../..; git add -A; git commit -qm x")
    reorder(toy, "mend the sum", "write it out", "selftest")
    toy.run(*REFRESH, status=1, says="toy-add-a-selftest\" is of the topic file, but follows")
    toy.shell(f"cd ../..; sed -i '\\,{moved},d' series; echo {moved} >>series")
    toy.run(*REFRESH, status=1, says="the topic file: if it is dropped, take its block out")
    toy.edit("series", TOPIC.format("file", "none", "\n".join(patches(toy)[1:3])), "")
    toy.edit("kernel/mine.c", "", "int mine;\n")
    toy.run(*REFRESH, says="left " + str(toy.top / "kernel/mine.c"))
    assert patches(toy)[1:] == [last.replace("03", "02"), "02-more/0002-toy-add-a-selftest.patch"]
    assert "What more is" in (toy.top / "patches/02-more/cover.txt").read_text()
    assert not {"02-file", "03-more"} & {path.name for path in toy.top.glob("patches/*")}
    assert not (toy.top / "kernel/toy.c").exists() and (toy.top / "kernel/mine.c").exists()


@pytest.mark.parametrize("says, script", [
    ("autosquash", f"{COMMIT} 'fixup! x'"), ("checkout -B series", "git checkout -q --detach"),
    ("has a merge", f"git checkout -qb x base; {COMMIT} x; git checkout -q series; git merge -q x"),
    ("under way", "mkdir .git/rebase-merge"), ("patches/ have changed", DROP),
    ("patches/ have changed", "echo >>../../patches/02-file/x.patch"),
    ("patches/ have changed", "sed -i 's/It says/It said/' ../../patches/01-sum/*.patch"),
    ("write \"From: NAME <EMAIL>\"", "rm ../../patches/02-file/cover.txt"),
    ("needs more, which is no earlier", "sed -i 's/needs: none/needs: more/' ../../series"),
    ("topic sum must have the lines", "sed -i s/upstream/down/ ../../series"),
    ("there twice", "sed -i 's/topic: file/topic: sum/' ../../series"),
    ("a patch stands before the first", "sed -i 's/^$/x.patch/' ../../series")])
def test_refresh_refuses(toy: Toy, says: str, script: str) -> None:
    """One line says what is wrong, and nothing has changed."""
    toy.shell(script)
    before = state(toy.top)
    toy.run(*REFRESH, status=1, says=says)
    assert state(toy.top) == before

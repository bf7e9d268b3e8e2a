# SPDX-License-Identifier: GPL-2.0
"""make tree and make refresh: patches to commits and back, losing nothing.

On a toy kernel and a toy series of three patches (toy.py).
"""

import shutil
from pathlib import Path
from typing import Dict

import pytest

from toy import Toy, make_toy, series


@pytest.fixture(name="toy")
def fixture_toy(tmp_path: Path) -> Toy:
    """A toy with its series refreshed."""
    return make_toy(tmp_path)


def state(toy: Toy) -> Dict[str, bytes]:
    """Every file of the repository outside build/."""
    return {str(path): path.read_bytes() for path in toy.top.rglob("*")
            if path.is_file() and "build" not in path.relative_to(toy.top).parts
            and "__pycache__" not in path.parts}


def sections(toy: Toy) -> Dict[str, str]:
    """Patch slug -> its section."""
    return {series.slug(name): section for section, name in series.series_lines(toy.top)}


def test_refresh_without_change(toy: Toy) -> None:
    """A refresh without a change changes nothing."""
    before = state(toy)
    assert "wrote" not in toy.must("stack/refresh")
    assert state(toy) == before


def test_round_trip(toy: Toy) -> None:
    """patches -> a new tree -> patches is an empty diff too, and the same commits
    come out of every `make tree`."""
    before = state(toy)
    heads = []
    for _ in range(2):
        shutil.rmtree(toy.top / "build/linux")
        toy.must("stack/tree")
        heads.append(toy.git("rev-parse", "series"))
    toy.must("stack/refresh")
    assert state(toy) == before
    assert heads[0] == heads[1]


def test_tree_twice(toy: Toy) -> None:
    """A tree that is up to date is left alone, quickly."""
    assert toy.must("stack/tree") == ""


def test_users_git_config_has_no_say(toy: Toy, tmp_path: Path) -> None:
    """Whatever the user's git is set to, patches come out the same."""
    config = tmp_path / "config"
    config.write_text("[diff]\n\tnoprefix = true\n\talgorithm = histogram\n\tcontext = 9\n"
                      "[format]\n\tsignOff = true\n\tattach = true\n\tnumbered = true\n")
    before = state(toy)
    toy.must("stack/refresh", GIT_CONFIG_GLOBAL=str(config))
    assert state(toy) == before


def test_new_commit(toy: Toy) -> None:
    """A commit becomes a patch, its new file a mirror, in its predecessor's section."""
    (toy.top / "series").write_text(
        (toy.top / "series").read_text().replace("0003-", "\n# selftests-and-docs\n0003-"))
    (toy.top / "build/linux/kernel/more.c").write_text("int more;\n")
    toy.commit("toy: add more", "More is needed.")
    toy.must("stack/refresh")
    assert (toy.top / "kernel/more.c").read_text() == "int more;\n"
    assert sections(toy) == {"toy-mend-the-sum": "fixes", "toy-add-a-new-file": "fixes",
                             "toy-add-a-selftest": "selftests-and-docs",
                             "toy-add-more": "selftests-and-docs"}


def test_dropped_commit(toy: Toy) -> None:
    """A commit that went takes its patch with it, and its file if git knows it."""
    series.git(toy.top, "init", "-q")
    series.git(toy.top, "add", "-A")
    toy.git("reset", "-q", "--hard", "HEAD~1")
    toy.must("stack/refresh")
    assert not (toy.top / "selftests").exists()
    assert not list((toy.top / "patches").glob("0003-*"))


def test_refresh_keeps_files_git_does_not_know(toy: Toy) -> None:
    """A file somebody wrote at a kernel path is told of, not removed."""
    (toy.top / "kernel/mine.c").write_text("int mine;\n")
    assert "kernel/mine.c" in toy.must("stack/refresh")
    assert (toy.top / "kernel/mine.c").exists()


def test_cover_letter(toy: Toy) -> None:
    """Only the lines between the markers of the cover letter are written."""
    cover = toy.top / "patches/cover-letter.txt"
    cover.write_text("above\n--- diffstat, written by `make refresh`\nold\n"
                     "--- end of diffstat\nbelow\n")
    toy.must("stack/refresh")
    text = cover.read_text()
    assert text.startswith("above\n") and text.endswith("below\n")
    assert "kernel/toy.c" in text and "old" not in text


def refused(toy: Toy, word: str) -> None:
    """Refresh fails, says the word, and has changed nothing."""
    before = state(toy)
    done = toy.run("stack/refresh")
    assert done.returncode == 1 and word in done.stderr, done.stderr
    assert state(toy) == before


@pytest.mark.parametrize("subject", ["fixup! toy: mend the sum", "squash! toy: mend the sum"])
def test_unsquashed_fixup(toy: Toy, subject: str) -> None:
    """A fixup is squashed before it can become a patch."""
    (toy.top / "build/linux/kernel/sum.c").write_text("int other;\n")
    toy.commit(subject, "A forgotten line.")
    refused(toy, "autosquash")


def test_work_in_the_tree_is_kept(toy: Toy) -> None:
    """Commits that are not in patches/ stop `make tree`, even when patches/ moved."""
    (toy.top / "build/linux/kernel/work.c").write_text("int work;\n")
    toy.commit("toy: work", "Not refreshed yet.")
    head = toy.git("rev-parse", "series")
    done = toy.run("stack/tree")
    assert done.returncode == 1 and "make refresh" in done.stderr
    assert toy.git("rev-parse", "series") == head
    assert toy.run("stack/clean", "--all").returncode == 1
    assert toy.git("rev-parse", "series") == head


def drop_last_patch(toy: Toy) -> None:
    """Somebody else's repository has a shorter series."""
    name = series.patch_names(toy.top)[-1]
    (toy.top / "patches" / name).unlink()
    text = (toy.top / "series").read_text()
    (toy.top / "series").write_text(text.replace(name + "\n", ""))


@pytest.mark.parametrize("work", [False, True])
def test_newer_patches_are_not_written_over(toy: Toy, work: bool) -> None:
    """After a pull, refresh would write the old series back."""
    drop_last_patch(toy)
    if work:
        (toy.top / "build/linux/kernel/work.c").write_text("int work;\n")
        toy.commit("toy: work", "Not refreshed yet.")
    refused(toy, "merge the two" if work else "make tree")


def test_refresh_from_another_branch(toy: Toy) -> None:
    """What `git am --continue` leaves is not on the branch that is written."""
    toy.git("checkout", "-q", "--detach")
    (toy.top / "build/linux/kernel/more.c").write_text("int more;\n")
    toy.commit("toy: add more", "More is needed.")
    refused(toy, "git checkout -B series")


def test_refresh_tells_what_it_leaves(toy: Toy) -> None:
    """An edit that is not committed is in no patch, which is said."""
    (toy.top / "build/linux/kernel/toy.c").write_text("int edited;\n")
    assert "not committed" in toy.must("stack/refresh")


@pytest.mark.parametrize("work", ["branch", "ignored", "stash"])
def test_distclean_keeps_all_work(toy: Toy, work: str) -> None:
    """Another branch, a file that .gitignore hides (Debian's has all new ones), a stash."""
    linux = toy.top / "build/linux"
    if work == "branch":
        toy.git("checkout", "-q", "-b", "next")
        (linux / "kernel/more.c").write_text("int more;\n")
        toy.commit("toy: add more", "More is needed.")
        toy.git("checkout", "-q", "series")
    elif work == "ignored":
        (linux / ".git/info/exclude").write_text("/*\n")
        (linux / "kernel/more.c").write_text("int more;\n")
    else:
        (linux / "kernel/toy.c").write_text("int edited;\n")
        toy.git("stash", "-q")
    done = toy.run("stack/clean", "--all")
    assert done.returncode == 1 and "not in patches/" in done.stderr
    toy.git("rev-parse", "series")


def test_distclean_without_work(toy: Toy) -> None:
    """A tree that patches/ give back goes with the rest."""
    toy.must("stack/clean", "--all")
    assert not (toy.top / "build").exists()


def test_patches_moved_on(toy: Toy) -> None:
    """A tree that is a mere copy follows patches/."""
    drop_last_patch(toy)
    toy.must("stack/tree")
    assert toy.git("rev-list", "--count", "base..series").strip() == "2"
    assert toy.git("status", "--porcelain") == ""


def test_uncommitted_work_is_kept(toy: Toy) -> None:
    """An edit that is not committed stops a tree from following patches/."""
    drop_last_patch(toy)
    (toy.top / "build/linux/kernel/toy.c").write_text("int edited;\n")
    done = toy.run("stack/tree")
    assert done.returncode == 1 and "not committed" in done.stderr
    assert (toy.top / "build/linux/kernel/toy.c").read_text() == "int edited;\n"


def test_interrupted_apply_is_redone(toy: Toy) -> None:
    """A run that died between two patches is neither trusted nor called work."""
    drop_last_patch(toy)
    git_dir = toy.top / "build/linux/.git"
    (git_dir / "perf-bpf-applying").touch()
    toy.git("checkout", "-q", "--detach", "base")
    (toy.top / "build/linux/kernel/sum.c").write_text("half\n")
    toy.must("stack/tree")
    assert toy.git("rev-list", "--count", "base..HEAD").strip() == "2"
    assert toy.git("status", "--porcelain") == ""


def test_patch_that_does_not_apply(toy: Toy) -> None:
    """The failure names the patch, and a tree that was not there is not half there."""
    shutil.rmtree(toy.top / "build/linux")
    patch = toy.top / "patches/0001-toy-mend-the-sum.patch"
    patch.write_text(patch.read_text().replace("line 2", "line two"))
    done = toy.run("stack/tree")
    assert done.returncode != 0 and "toy: mend the sum" in done.stderr
    assert not list((toy.top / "build").glob("linux*"))


def test_series_names_no_patch(toy: Toy) -> None:
    """A line of series without a file stops before anything is done."""
    shutil.rmtree(toy.top / "build/linux")
    (toy.top / "patches/0002-toy-add-a-new-file.patch").unlink()
    done = toy.run("stack/tree")
    assert done.returncode != 0 and "0002-toy-add-a-new-file.patch" in done.stderr
    assert not (toy.top / "build/linux").exists()


def test_tree_made_by_hand(toy: Toy) -> None:
    """A tree with a tag `base` and no note of ours is taken as it is."""
    (toy.top / "build/linux/.git/perf-bpf-applied").unlink()
    head = toy.git("rev-parse", "series")
    assert "made by hand" in toy.must("stack/tree")
    assert toy.git("rev-parse", "series") == head

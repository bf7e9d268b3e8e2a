# SPDX-License-Identifier: GPL-2.0
"""make tree and make refresh: patches to commits and back, losing nothing.

On a toy kernel and a toy series of three patches in two topics (toy.py).
"""

import shutil
from pathlib import Path
from typing import Dict, List, Tuple

import pytest

from perfbpf import series
from perfbpf.git import git
from toy import SUM, Toy, add_cover, make_toy, toy_kernel


@pytest.fixture(name="toy")
def fixture_toy(tmp_path: Path) -> Toy:
    """A toy with its series refreshed."""
    return make_toy(tmp_path)


def state(toy: Toy) -> Dict[str, bytes]:
    """Every file of the repository outside build/."""
    return {str(path): path.read_bytes() for path in toy.top.rglob("*")
            if path.is_file() and "build" not in path.relative_to(toy.top).parts
            and "__pycache__" not in path.parts}


def topics(toy: Toy) -> Dict[str, Tuple[str, ...]]:
    """The topics of `series` with their patches."""
    return {topic.name: topic.patches for topic in series.read(toy.top).topics}


def files(toy: Toy) -> List[str]:
    """What is in patches/."""
    return sorted(str(path.relative_to(toy.top / "patches"))
                  for path in (toy.top / "patches").rglob("*") if path.is_file())


def add_commit(toy: Toy, name: str = "more") -> None:
    """A commit that creates a file."""
    (toy.top / f"build/linux/kernel/{name}.c").write_text(f"int {name};\n")
    toy.commit(f"toy: add {name}", f"It adds {name}.")


def reorder(toy: Toy, *subjects: str) -> None:
    """Put the commits of build/linux in this order."""
    commits = {line.partition(" ")[2]: line.partition(" ")[0] for line in
               toy.git("log", "--format=%H %s", "base..series").splitlines()}
    toy.git("reset", "-q", "--hard", "base")
    for subject in subjects:
        toy.git("cherry-pick", commits[subject])


# series and patches/, from the commits

def test_first_refresh(toy: Toy) -> None:
    """A `series` written by hand, with subjects for names, becomes topics."""
    assert files(toy) == ["01-sum/0001-toy-mend-the-sum.patch", "01-sum/cover.txt",
                          "02-file/0001-toy-add-a-new-file.patch",
                          "02-file/0002-toy-add-a-selftest.patch", "02-file/cover.txt"]
    assert topics(toy) == {"sum": ("01-sum/0001-toy-mend-the-sum.patch",),
                           "file": ("02-file/0001-toy-add-a-new-file.patch",
                                    "02-file/0002-toy-add-a-selftest.patch")}
    assert series.read(toy.top).topic("file").state == "v1 sent 2026-12-01"


def test_first_refresh_of_flat_patches(toy: Toy) -> None:
    """patches/ without topics, as a series had before, are taken over and removed."""
    flat = [path.rename(toy.top / "patches" / f"{number:04}-{series.slug(path.name)}.patch")
            for number, path in enumerate(sorted((toy.top / "patches").glob("*/*.patch")), 1)]
    toy.edit("series", "02-file/0002-toy-add-a-selftest.patch", "toy-add-a-selftest")
    toy.must("stack/refresh")
    assert len(flat) == 3 and not any(path.exists() for path in flat)
    assert files(toy)[0] == "01-sum/0001-toy-mend-the-sum.patch"


def test_long_subjects_are_cut(toy: Toy) -> None:
    """`git log --format=%f` gives names for `series`, longer than those of files."""
    subject = "toy: add what has a subject that no file name can hold in whole"
    (toy.top / "build/linux/kernel/long.c").write_text("int x;\n")
    toy.commit(subject, "It is long.")
    slug = toy.git("log", "-1", "--format=%f").strip()
    with (toy.top / "series").open("a") as file:
        file.write(f"\n# topic: long\n# needs: sum\n# upstream: x\n# state: not sent\n{slug}\n")
    add_cover(toy, "03-long")
    toy.must("stack/refresh")
    (name,) = topics(toy)["long"]
    assert slug.startswith(series.slug(name)) and len(slug) > len(series.slug(name))


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


def test_git_am_takes_them_all(toy: Toy) -> None:
    """`git am patches/*/*.patch` gives the tree of the series."""
    tree = toy.git("rev-parse", "series^{tree}")
    toy.git("checkout", "-q", "--detach", "base")
    toy.must("sh", "-c", "git -C build/linux -c user.name=t -c user.email=t@localhost"
             " am -q \"$PWD\"/patches/*/*.patch")
    assert toy.git("rev-parse", "HEAD^{tree}") == tree


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
    """A commit becomes a patch, its new file a mirror, in its predecessor's topic."""
    add_commit(toy)
    assert "toy-add-more is new: it joins the topic file" in toy.must("stack/refresh")
    assert (toy.top / "kernel/more.c").read_text() == "int more;\n"
    assert topics(toy)["file"][-1] == "02-file/0003-toy-add-more.patch"


def test_new_commit_in_the_middle(toy: Toy) -> None:
    """A commit behind the first topic's joins that, and the numbers of the second stay."""
    add_commit(toy)
    reorder(toy, "toy: mend the sum", "toy: add more", "toy: add a new file",
            "toy: add a selftest")
    toy.must("stack/refresh")
    assert topics(toy) == {"sum": ("01-sum/0001-toy-mend-the-sum.patch",
                                   "01-sum/0002-toy-add-more.patch"),
                           "file": ("02-file/0001-toy-add-a-new-file.patch",
                                    "02-file/0002-toy-add-a-selftest.patch")}


def test_reworded_commit_keeps_its_topic(toy: Toy) -> None:
    """The first patch of a topic with another subject does not join the topic before."""
    last = toy.git("rev-parse", "series").strip()
    toy.git("reset", "-q", "--hard", "HEAD~1")
    toy.git("commit", "-q", "--amend", "-m", "toy: create a file\n\nIt is new.")
    toy.git("cherry-pick", last)
    assert "is new" not in toy.must("stack/refresh")
    assert topics(toy)["file"][0] == "02-file/0001-toy-create-a-file.patch"
    assert len(files(toy)) == 5


def test_links_to_patches_follow(toy: Toy) -> None:
    """A link in a Markdown file leads to the same patch when that gets another number."""
    notes = toy.top / "patches/NOTES.md"
    notes.write_text("[02/0002](02-file/0002-toy-add-a-selftest.patch)\n")
    add_commit(toy)
    reorder(toy, "toy: mend the sum", "toy: add a new file", "toy: add more",
            "toy: add a selftest")
    toy.must("stack/refresh")
    assert notes.read_text() == "[02/0003](02-file/0003-toy-add-a-selftest.patch)\n"


def test_patches_that_share_a_subject(toy: Toy) -> None:
    """Two topics may have a patch of one name; each keeps its own."""
    for name in ("sync", "again"):
        (toy.top / f"build/linux/kernel/{name}.c").write_text("int x;\n")
        toy.commit("toy: sync headers", f"It adds {name}.")
    with (toy.top / "series").open("a") as file:
        file.write("toy-sync-headers\n\n# topic: again\n# needs: file\n# upstream: x\n"
                   "# state: not sent\ntoy-sync-headers\n")
    add_cover(toy, "03-again")
    for _ in range(2):
        toy.must("stack/refresh")
        assert topics(toy)["file"][-1] == "02-file/0003-toy-sync-headers.patch"
        assert topics(toy)["again"] == ("03-again/0001-toy-sync-headers.patch",)


def test_moved_to_another_topic(toy: Toy) -> None:
    """A line of `series` below another heading is all it takes, where commits agree."""
    line = "02-file/0001-toy-add-a-new-file.patch\n"
    toy.edit("series", line, "")
    toy.edit("series", "01-sum/0001-toy-mend-the-sum.patch\n",
             "01-sum/0001-toy-mend-the-sum.patch\n" + line)
    toy.must("stack/refresh")
    assert topics(toy) == {"sum": ("01-sum/0001-toy-mend-the-sum.patch",
                                   "01-sum/0002-toy-add-a-new-file.patch"),
                           "file": ("02-file/0001-toy-add-a-selftest.patch",)}
    assert len(files(toy)) == 5


def test_topic_in_front(toy: Toy) -> None:
    """Topics that change places take their cover letters along."""
    cover = toy.top / "patches/02-file/cover.txt"
    cover.write_text(cover.read_text().replace("What file", "All that file"))
    reorder(toy, "toy: add a new file", "toy: add a selftest", "toy: mend the sum")
    text = (toy.top / "series").read_text()
    head, one, other = text.split("\n# topic")
    (toy.top / "series").write_text(f"{head}\n# topic{other}\n# topic{one}")
    toy.must("stack/refresh")
    assert files(toy) == ["01-file/0001-toy-add-a-new-file.patch",
                          "01-file/0002-toy-add-a-selftest.patch", "01-file/cover.txt",
                          "02-sum/0001-toy-mend-the-sum.patch", "02-sum/cover.txt"]
    assert "All that file" in (toy.top / "patches/01-file/cover.txt").read_text()


@pytest.mark.parametrize("committed", [True, False])
def test_dropped_topic(toy: Toy, committed: bool) -> None:
    """A topic that upstream has goes with its patches. Its cover letter goes if git has it."""
    git(toy.top, "init", "-q")
    git(toy.top, "add", "-A")
    if committed:
        git(toy.top, "commit", "-q", "-m", "toy")
    toy.git("reset", "-q", "--hard", "HEAD~2")
    text = (toy.top / "series").read_text()
    (toy.top / "series").write_text(text[:text.index("\n# topic: file")])
    told = toy.must("stack/refresh")
    left = ["01-sum/0001-toy-mend-the-sum.patch", "01-sum/cover.txt"]
    assert files(toy) == left + ([] if committed else ["02-file/cover.txt"])
    assert committed or "02-file alone" in told
    assert not (toy.top / "selftests").exists()


def test_dropped_commit(toy: Toy) -> None:
    """A commit that went takes its patch with it, and its file if git knows it."""
    git(toy.top, "init", "-q")
    git(toy.top, "add", "-A")
    toy.git("reset", "-q", "--hard", "HEAD~1")
    toy.must("stack/refresh")
    assert not (toy.top / "selftests").exists()
    assert not list((toy.top / "patches").glob("*/0002-*"))


def test_refresh_keeps_files_git_does_not_know(toy: Toy) -> None:
    """A file somebody wrote at a kernel path is reported, not removed."""
    (toy.top / "kernel/mine.c").write_text("int mine;\n")
    assert "kernel/mine.c" in toy.must("stack/refresh")
    assert (toy.top / "kernel/mine.c").exists()


def test_cover_letter(toy: Toy) -> None:
    """Only the lines between the markers of a topic's cover letter are written."""
    cover = toy.top / "patches/02-file/cover.txt"
    cover.write_text("above\n--- diffstat, written by `make refresh`\nold\n"
                     "--- end of diffstat\nbelow\n")
    toy.must("stack/refresh")
    text = cover.read_text()
    assert text.startswith("above\n") and text.endswith("below\n")
    assert "kernel/toy.c" in text and "old" not in text
    assert "kernel/sum.c" not in text, "that is the other topic's"


def test_mirrors_say_that_they_are_generated(toy: Toy) -> None:
    """Each directory at the top has a note, which refresh writes again."""
    note = toy.top / "selftests/README.md"
    assert "tools/testing/selftests/" in note.read_text() and "do not edit" in note.read_text()
    note.unlink()
    toy.must("stack/refresh")
    assert note.exists() and (toy.top / "kernel/README.md").exists()


# What refresh refuses

def refused(toy: Toy, *words: str) -> None:
    """Refresh fails with one line that has the words, and has changed nothing."""
    before = state(toy)
    done = toy.run("stack/refresh")
    assert done.returncode == 1, done.stdout
    assert len(done.stderr.splitlines()) == 1, done.stderr
    for word in words:
        assert word in done.stderr, done.stderr
    assert state(toy) == before


@pytest.mark.parametrize("subject", ["fixup! toy: mend the sum", "squash! toy: mend the sum"])
def test_unsquashed_fixup(toy: Toy, subject: str) -> None:
    """A fixup is squashed before it can become a patch."""
    (toy.top / "build/linux/kernel/sum.c").write_text("int other;\n")
    toy.commit(subject, "A forgotten line.")
    refused(toy, "autosquash")


def test_no_cover_letter(toy: Toy) -> None:
    """A topic's cover letter is written by hand: refresh makes none up."""
    (toy.top / "patches/02-file/cover.txt").unlink()
    refused(toy, "patches/02-file/cover.txt is missing", "From:", "diffstat")


def test_cover_letter_without_diffstat(toy: Toy) -> None:
    """The place of the diffstat is marked."""
    toy.edit("patches/02-file/cover.txt", "--- end of diffstat\n", "")
    refused(toy, "patches/02-file/cover.txt has no diffstat block")


def test_topic_without_commits(toy: Toy) -> None:
    """A topic whose commits all went: its block goes by hand."""
    toy.git("reset", "-q", "--hard", "HEAD~2")
    refused(toy, "the topic file", "take its block out")


def test_topics_that_mix(toy: Toy) -> None:
    """A commit of the first topic behind those of the second."""
    reorder(toy, "toy: add a new file", "toy: mend the sum", "toy: add a selftest")
    refused(toy, "toy-mend-the-sum", "is of the topic sum, but follows commits of file")


def test_commits_without_topics(toy: Toy) -> None:
    """An empty `series` says what a block has."""
    (toy.top / "series").write_text(series.HEAD)
    refused(toy, "series has no topic", "# needs:")


def test_two_directories_of_a_topic(toy: Toy) -> None:
    """Which cover letter is the topic's is not guessed."""
    shutil.copytree(toy.top / "patches/02-file", toy.top / "patches/05-file")
    (toy.top / "patches/05-file/0001-toy-add-a-new-file.patch").unlink()
    (toy.top / "patches/05-file/0002-toy-add-a-selftest.patch").unlink()
    refused(toy, "patches/02-file and patches/05-file", "remove one")


@pytest.mark.parametrize("old, new, words", [
    ("# needs: none\n# upstream: toy\n# state: v1", "# needs: nosuch\n# upstream: toy\n# state: v1",
     ("topic file needs nosuch", "no topic", "sum")),
    ("# topic: sum\n# needs: none", "# topic: sum\n# needs: file",
     ("topic sum needs file", "comes later")),
    ("# upstream: toy\n", "", ("topic sum has no \"# upstream:\"", "add that line")),
    ("# state: not sent", "# status: not sent", ("series:9", "no field")),
    ("# topic: file", "# topic: sum", ("sum begins again", "line 6")),
    ("# topic: file", "# topic: A File", ("no name for a topic",)),
    ("# state: not sent\n", "# state: not sent\n# state: sent\n", ("twice",)),
    ("0001-toy-mend-the-sum.patch", "0001-toy-mend-the-sum.patch -p1", ("no options",))],
    ids=["unknown-need", "later-need", "missing-field", "unknown-field", "topic-twice",
         "bad-name", "field-twice", "options"])
def test_bad_series(toy: Toy, old: str, new: str, words: Tuple[str, ...]) -> None:
    """One line says what is wrong in `series`, where, and what to do."""
    toy.edit("series", old, new)
    refused(toy, *words)


def test_needs_in_a_cycle(toy: Toy) -> None:
    """Two topics that need each other."""
    text = (toy.top / "series").read_text()
    text = text.replace("needs: none", "needs: file", 1).replace("needs: none", "needs: sum", 1)
    (toy.top / "series").write_text(text)
    refused(toy, "topic sum needs file, which needs sum in turn", "cycle")


def test_patch_outside_of_topics(toy: Toy) -> None:
    """A line before the first block."""
    toy.edit("series", "\n# topic: sum", "0001-x.patch\n\n# topic: sum")
    refused(toy, "0001-x.patch is in no topic")


def test_closure(toy: Toy) -> None:
    """What a topic needs is needed in turn, in the order of the series."""
    add_commit(toy)
    with (toy.top / "series").open("a") as file:
        file.write("\n# topic: more\n# needs: file\n# upstream: x\n# state: not sent\n"
                   "toy-add-more\n")
    toy.edit("series", "# topic: file\n# needs: none", "# topic: file\n# needs: sum")
    assert series.read(toy.top).closure("more") == ["sum", "file"]
    assert series.read(toy.top).closure("sum") == []


# Work that is not lost

def test_work_in_the_tree_is_kept(toy: Toy) -> None:
    """Commits that are not in patches/ stop `make tree`, even when patches/ moved."""
    add_commit(toy, "work")
    head = toy.git("rev-parse", "series")
    done = toy.run("stack/tree")
    assert done.returncode == 1 and "make refresh" in done.stderr
    assert toy.git("rev-parse", "series") == head
    assert toy.run("stack/clean", "--all").returncode == 1
    assert toy.git("rev-parse", "series") == head


def drop_last_patch(toy: Toy) -> None:
    """Somebody else's repository has a shorter series."""
    name = series.read(toy.top).patches()[-1]
    (toy.top / "patches" / name).unlink()
    toy.edit("series", name + "\n", "")


@pytest.mark.parametrize("work", [False, True])
def test_newer_patches_are_not_written_over(toy: Toy, work: bool) -> None:
    """After a pull, refresh would write the old series back."""
    drop_last_patch(toy)
    if work:
        add_commit(toy, "work")
    refused(toy, "merge the two" if work else "make tree", "toy-add-a-selftest has gone")


def test_newer_patch_is_not_written_over(toy: Toy) -> None:
    """A patch that came with a pull, in place of another version of it."""
    toy.edit("patches/02-file/0001-toy-add-a-new-file.patch", "It holds", "It now holds")
    refused(toy, "patches/02-file/0001-toy-add-a-new-file.patch has changed", "make tree")


def test_newer_order_is_not_written_over(toy: Toy) -> None:
    """An order of patches that came with a pull."""
    one, other = (name + "\n" for name in topics(toy)["file"])
    toy.edit("series", one + other, other + one)
    refused(toy, "the order in series has changed", "make tree")


def test_refresh_from_another_branch(toy: Toy) -> None:
    """What `git am --continue` leaves is not on the branch that is written."""
    toy.git("checkout", "-q", "--detach")
    add_commit(toy)
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
        add_commit(toy)
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
    toy.edit("patches/01-sum/0001-toy-mend-the-sum.patch", "line 2", "line two")
    done = toy.run("stack/tree")
    assert done.returncode != 0 and "toy: mend the sum" in done.stderr
    assert not list((toy.top / "build").glob("linux*"))


def test_patches_on_a_later_kernel(toy: Toy, tmp_path: Path) -> None:
    """Each patch that does not apply is named: it is already there, or it conflicts."""
    later = toy_kernel(tmp_path / "later")
    (later / "kernel/sum.c").write_text(SUM.replace("a - b", "a + b"))
    (later / "kernel/toy.c").write_text("Another file.\n")
    for name in ("linux", "base"):
        shutil.rmtree(toy.top / "build" / name)
    done = toy.run("stack/tree", KERNEL=str(later))
    assert done.returncode != 0
    assert "already there: 01-sum/0001-toy-mend-the-sum.patch" in done.stderr
    assert "conflicts: 02-file/0001-toy-add-a-new-file.patch" in done.stderr
    assert "2 of 3 patches do not apply" in done.stderr


def test_series_names_no_patch(toy: Toy) -> None:
    """A line of series without a file stops before anything is done."""
    shutil.rmtree(toy.top / "build/linux")
    (toy.top / "patches/02-file/0001-toy-add-a-new-file.patch").unlink()
    done = toy.run("stack/tree")
    assert done.returncode != 0 and "0001-toy-add-a-new-file.patch" in done.stderr
    assert not (toy.top / "build/linux").exists()


def test_tree_made_by_hand(toy: Toy) -> None:
    """A tree with a tag `base` and no note of ours is taken as it is."""
    (toy.top / "build/linux/.git/perf-bpf-applied").unlink()
    head = toy.git("rev-parse", "series")
    assert "made by hand" in toy.must("stack/tree")
    assert toy.git("rev-parse", "series") == head

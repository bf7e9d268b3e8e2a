# SPDX-License-Identifier: GPL-2.0
"""make topic T=NAME: a topic alone on what it needs, as `b4 send` wants it.

On the toy series (toy.py) with a third topic that builds on the first. Nothing
is sent: b4 writes the mails into a directory.
"""
from __future__ import annotations

import email
import re
import shutil
from email.message import Message
from pathlib import Path

import pytest

from perfbpf.git import git, git_text
from toy import Toy, add_cover, make_toy

pytestmark = pytest.mark.skipif(
    not shutil.which("b4") or not shutil.which("git-filter-repo"),
    reason="b4 is not installed, nor what it needs: run `stack/setup topic`")


@pytest.fixture(scope="module", name="whole")
def fixture_whole(tmp_path_factory: pytest.TempPathFactory) -> Toy:
    """A toy with a topic `more`, which needs `sum`."""
    toy = make_toy(tmp_path_factory.mktemp("toy"))
    for old, new in (("3", "three"), ("three", "iii")):
        toy.edit("build/linux/kernel/sum.c", f"line {old} */", f"line {new} */")
        toy.commit(f"toy: call it {new}", "It builds on the sum.")
    with (toy.top / "series").open("a") as file:
        file.write("\n# topic: more\n# needs: sum\n# upstream: x\n# state: not sent\n"
                   "toy-call-it-three\ntoy-call-it-iii\n")
    add_cover(toy, "03-more")
    toy.must("stack/refresh")
    make(toy, "more")
    return toy


@pytest.fixture(name="toy")
def fixture_toy(whole: Toy, tmp_path: Path) -> Toy:
    """A copy of it, with its own tree for topics."""
    shutil.copytree(whole.top, tmp_path / "copy", symlinks=True)
    for clone in ("linux", "linux-topic"):
        (tmp_path / "copy/build" / clone / ".git/objects/info/alternates").write_text(
            f"{tmp_path}/copy/build/base/.git/objects\n")
    return Toy(tmp_path / "copy")


def home(toy: Toy) -> dict[str, str]:
    """A user without any configuration of git or b4."""
    path = toy.top / "build/home"
    path.mkdir(exist_ok=True)
    return {"HOME": str(path), "XDG_CONFIG_HOME": str(path), "XDG_DATA_HOME": str(path),
            "XDG_CACHE_HOME": str(path)}


def make(toy: Toy, name: str) -> str:
    """Make a topic; what it says."""
    # stack/setup would look for the packages of a whole build.
    (toy.top / "stack/setup").write_text("#!/bin/sh\n")
    return toy.must("make", "-s", "topic", f"T={name}", **home(toy))


def tree(toy: Toy) -> Path:
    """The tree for topics."""
    return toy.top / "build/linux-topic"


def b4(toy: Toy, *words: str) -> str:
    """Run b4 on the branch; what it says."""
    done = toy.run("sh", "-c", 'cd build/linux-topic && exec b4 --offline-mode "$@"', "b4", *words,
                   **home(toy))
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def description(toy: Toy) -> str:
    """The cover letter of the branch."""
    return git_text(tree(toy), "config", "branch.b4/more.description")


def mails(toy: Toy) -> list[Message]:
    """The mails, as they were written."""
    return [email.message_from_bytes(path.read_bytes())
            for path in sorted((toy.top / "build/mails/more").iterdir())]


def text_of(mail: Message) -> str:
    """The text of a mail."""
    payload = mail.get_payload(decode=True)
    assert isinstance(payload, bytes)
    return payload.decode()


def subjects(toy: Toy, commits: str) -> list[str]:
    """The subjects of some commits, first to last."""
    return git_text(tree(toy), "log", "--reverse", "--format=%s", commits).splitlines()


def test_branch(toy: Toy) -> None:
    """The topic's commits stand on those of its needs, and on no other."""
    assert subjects(toy, "base..needs/more") == ["toy: mend the sum"]
    assert subjects(toy, "needs/more..b4/more") == ["toy: call it three", "toy: call it iii"]
    assert git_text(tree(toy), "symbolic-ref", "--short", "HEAD") == "b4/more"
    assert not (tree(toy) / "kernel/toy.c").exists()


def test_b4_tracks_it(toy: Toy) -> None:
    """b4 knows the branch: its cover letter, its change-id, its commits."""
    said = b4(toy, "prep", "--show-info")
    for line in (r"branch: b4/more", r"cover-subject: .*toy: more", r"change-id: \d{8}-more-\w+",
                 r"revision: 1", r"commit-\w+: toy: call it iii"):
        assert re.search(f"^{line}$", said, re.M), said


def test_mails(toy: Toy) -> None:
    """A cover letter and the patches, to whom get_maintainer.pl names."""
    cover, *patches = mails(toy)
    assert [str(mail["Subject"]) for mail in (cover, *patches)] == [
        "[PATCH 0/2] toy: more", "[PATCH 1/2] toy: call it three", "[PATCH 2/2] toy: call it iii"]
    assert "sum@toy.example" in str(cover["To"]) and "sums@lists.toy.example" in str(cover["Cc"])
    assert "toy@localhost" in str(cover["From"])
    text = text_of(cover)
    assert "What more is about." in text and "on what it depends on." in text
    assert "kernel/sum.c | 2 +-" in text and "written by" not in text, "one diffstat, b4's"
    assert re.search(r"^change-id: \d{8}-more-", text, re.M)


def test_build_linux_is_not_disturbed(toy: Toy) -> None:
    """The work tree has its branch, its commits and what is not committed."""
    (toy.top / "build/linux/kernel/sum.c").write_text("int edited;\n")
    before = toy.git("for-each-ref") + toy.git("status", "--porcelain") + toy.git("diff")
    make(toy, "more")
    make(toy, "file")
    assert toy.git("for-each-ref") + toy.git("status", "--porcelain") + toy.git("diff") == before


def test_again_without_change(toy: Toy) -> None:
    """The same commits, the same change-id, the same cover letter."""
    before = git(tree(toy), "for-each-ref", "refs/heads"), b4(toy, "prep", "--show-info"), \
        description(toy)
    make(toy, "more")
    assert before == (git(tree(toy), "for-each-ref", "refs/heads"),
                      b4(toy, "prep", "--show-info"), description(toy))


def test_again_after_a_refresh(toy: Toy) -> None:
    """The branch follows patches/, and keeps its change-id."""
    change_id = re.findall(r"change-id: \S+", b4(toy, "prep", "--show-info"))
    (toy.top / "build/linux/kernel/sum2.c").write_text("int sum2;\n")
    toy.commit("toy: add another sum", "One was not enough.")
    toy.edit("patches/03-more/cover.txt", "What more is about", "What this is about")
    toy.must("stack/refresh")
    make(toy, "more")
    assert subjects(toy, "needs/more..b4/more")[-1] == "toy: add another sum"
    assert re.findall(r"change-id: \S+", b4(toy, "prep", "--show-info")) == change_id
    assert "What this is about" in description(toy)
    assert len(mails(toy)) == 4


def test_edited_cover_letter_is_kept(toy: Toy) -> None:
    """What b4 or its user wrote into the cover letter stays, and that is said."""
    git(tree(toy), "config", "branch.b4/more.description",
        description(toy) + "\nChanges in v2:\n- Another sum\n")
    assert "is left as it is" in make(toy, "more")
    assert "Changes in v2" in text_of(mails(toy)[0])


def test_own_commits_are_kept(toy: Toy) -> None:
    """A commit on the branch stops it, and distclean."""
    (tree(toy) / "kernel/mine.c").write_text("int mine;\n")
    git(tree(toy), "add", "-f", "kernel/mine.c")
    git(tree(toy), "commit", "-q", "-m", "mine")
    head = git(tree(toy), "rev-parse", "b4/more")
    done = toy.run("make", "-s", "topic", "T=more", **home(toy))
    assert done.returncode != 0 and "did not come from patches/" in done.stderr
    assert git(tree(toy), "rev-parse", "b4/more") == head
    done = toy.run("stack/clean", "--all")
    assert done.returncode == 1 and "build/linux-topic has work" in done.stderr


def test_edits_are_kept(toy: Toy) -> None:
    """So does an edit that is not committed."""
    (tree(toy) / "kernel/sum.c").write_text("int edited;\n")
    done = toy.run("make", "-s", "topic", "T=more", **home(toy))
    assert done.returncode != 0 and "not committed" in done.stderr
    assert (tree(toy) / "kernel/sum.c").read_text() == "int edited;\n"


def test_topic_that_lacks_a_need(toy: Toy) -> None:
    """What does not apply on the declared needs leaves the branch as it was."""
    toy.edit("series", "# needs: sum", "# needs: none")
    head = git(tree(toy), "rev-parse", "b4/more")
    done = toy.run("make", "-s", "topic", "T=more", **home(toy))
    assert done.returncode != 0 and "toy: call it three" in done.stderr
    assert git(tree(toy), "rev-parse", "b4/more") == head


@pytest.mark.parametrize("name, word", [("", "which topic?"), ("nosuch", "no topic \"nosuch\"")])
def test_which_topic(toy: Toy, name: str, word: str) -> None:
    """Without a name, and with a wrong one, the names are listed."""
    done = toy.run("make", "-s", "topic", f"T={name}", **home(toy))
    assert done.returncode != 0 and word in done.stderr, done.stderr
    assert "sum" in done.stderr and "more" in done.stderr


def test_distclean(toy: Toy) -> None:
    """A branch that patches/ give back goes with the rest."""
    toy.must("stack/clean", "--all")
    assert not (toy.top / "build").exists()

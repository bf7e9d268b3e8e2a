# SPDX-License-Identifier: GPL-2.0
"""make topic T=NAME: one topic on the base and what it needs, ready for `b4 send`.

The mails are written to build/mails/NAME, to be read; none is sent.

build/linux-topic is a clone of build/base, apart from build/linux:

    base ── patches of the needs ── patches of the topic
                                 │                     │
                           needs/NAME               b4/NAME

`b4 prep` tracks b4/NAME, with needs/NAME as its base and with the cover letter in
the branch's description, so that the branch has the topic's commits and no other.
The cover letter is that of patches/, and To: and Cc: are what get_maintainer.pl
says of the patches. b4's change-id stays, however often this is run.

A second run brings the branch to what patches/ are now. It refuses when the
branch has other commits than the last run left, and keeps a cover letter that was
edited in b4, as after a first version was sent. What the last run left is noted in
the branch's configuration.
"""
from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from email.utils import parseaddr
from pathlib import Path

from perfbpf import series as series_file
from perfbpf.git import ToolError, am, git, git_text
from perfbpf.paths import TOP, build_dir
from perfbpf.series import COVER, Cover, Series

# Keys of branch.b4/NAME: b4's own, and what the last run left.
DESCRIPTION = "description"
TRACKING = "b4-tracking"
TIP = "perf-bpf-tip"
LETTER = "perf-bpf-cover"


class Tree:
    """build/linux-topic, and the topic's branch in it."""

    def __init__(self, path: Path, name: str) -> None:
        self.path = path
        self.name = name
        self.branch = f"b4/{name}"
        self.needs = f"needs/{name}"

    def git(self, *words: str) -> str:
        """Run git there."""
        return git_text(self.path, *words)

    def setting(self, key: str) -> str:
        """Return a key of the branch's configuration, "" without one."""
        try:
            return git(self.path, "config", "-z", f"branch.{self.branch}.{key}").decode()[:-1]
        except ToolError:
            return ""

    def set(self, key: str, value: str) -> None:
        """Set a key of the branch's configuration."""
        self.git("config", f"branch.{self.branch}.{key}", value)

    def head(self) -> str:
        """Return the branch's commit, "" when there is no such branch."""
        return self.git("for-each-ref", "--format=%(objectname)", f"refs/heads/{self.branch}")

    def b4(self, *words: str) -> str:
        """Run b4 there, without any network; its output. Raises ToolError when it fails.

        With a mail server, as b4 writes no mails without one or a key to sign them
        with; this one does not exist.
        """
        env = {**os.environ, "GIT_CONFIG_COUNT": "1",
               "GIT_CONFIG_KEY_0": "sendemail.smtpserver", "GIT_CONFIG_VALUE_0": "none.invalid"}
        try:
            done = subprocess.run(["b4", "--offline-mode", "--no-interactive", *words],
                                  cwd=self.path, env=env, stdin=subprocess.DEVNULL,
                                  capture_output=True, text=True, check=False)
        except FileNotFoundError:
            raise ToolError("there is no b4: run `stack/setup topic`") from None
        if done.returncode:
            raise ToolError(f"b4 {' '.join(words)} in {self.path}:"
                            f" {' '.join((done.stdout + done.stderr).split())[-400:]}")
        return done.stdout + done.stderr


def make_clone(path: Path, base: Path) -> None:
    """Make build/linux-topic, whole or not at all."""
    if path.exists():
        return
    draft = path.with_name(path.name + ".tmp")
    shutil.rmtree(draft, ignore_errors=True)
    git(path.parent, "clone", "-q", "--shared", "--no-checkout", str(base), str(draft))
    git(draft, "config", "gc.auto", "0")
    git(draft, "config", "b4.prep-cover-strategy", "branch-description")
    git(draft, "checkout", "-q", "-f", "--detach", "base")
    draft.rename(path)


def check_work(tree: Tree) -> None:
    """Raise ToolError when a run would lose commits or edits."""
    if (tree.path / ".git" / "rebase-apply").exists():
        tree.git("am", "--abort")
    if tree.git("status", "--porcelain", "--untracked-files=no"):
        raise ToolError(f"{tree.path} has changes that are not committed: put them into the"
                        " topic's commits in build/linux, or discard them"
                        " (`git checkout -f`), and run this again")
    head = tree.head()
    if head and head != tree.setting(TIP):
        raise ToolError(f"{tree.path}: the branch {tree.branch} has commits that did not come from"
                        " patches/: bring them into build/linux (`git format-patch"
                        f" {tree.needs}..{tree.branch}`, `git am`) and `make refresh`, or remove"
                        f" the branch (`git branch -D {tree.branch}`), and run this again")


def patches_of(top: Path, series: Series, names: list[str]) -> list[Path]:
    """Return the files of the patches of some topics, in order."""
    return series_file.patch_paths(top, Series(tuple(series.topic(name) for name in names)))


def apply(top: Path, tree: Tree, series: Series) -> None:
    """Bring needs/NAME and b4/NAME to what patches/ are."""
    needed = patches_of(top, series, series.closure(tree.name))
    own = patches_of(top, series, [tree.name])
    tree.git("checkout", "-q", "--detach", "base")
    am(tree.path, needed)
    tree.git("branch", "-f", tree.needs)
    if not tree.setting(TRACKING):
        # b4 makes the branch, on the one that is checked out.
        tree.git("checkout", "-q", tree.needs)
        tree.b4("prep", "-n", tree.name)
    tree.git("checkout", "-q", "--detach", tree.needs)
    am(tree.path, own)
    tree.git("checkout", "-q", "-B", tree.branch)
    tree.set(TIP, tree.head())


def letter(cover: Cover, series: Series, name: str, version: str) -> str:
    """Return the cover letter as b4 takes it: the subject, and a body that says
    what the topic stands on."""
    text = f"{cover.subject}\n\n{cover.body}"
    if series.closure(name):
        text += f"\nIt applies to Linux {version}, on what it depends on.\n"
    return text


def set_cover(tree: Tree, text: str) -> bool:
    """Give the branch its cover letter, and To: and Cc:. False if it was left as
    it is, because it was edited since the last run."""
    noted = tree.setting(LETTER)
    if noted and noted != digest(tree.setting(DESCRIPTION)):
        return False
    tree.set(DESCRIPTION, text)
    tree.b4("prep", "--auto-to-cc")
    tree.set(LETTER, digest(tree.setting(DESCRIPTION)))
    return True


def write_mails(tree: Tree, directory: Path) -> None:
    """Write what `b4 send` would send into a directory."""
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    tree.b4("send", "--no-sign", "-o", str(directory))


def digest(text: str) -> str:
    """Return the number of a text."""
    return hashlib.sha256(text.encode()).hexdigest()


def topic(top: Path, name: str) -> None:
    """Do it all for one topic. Raises ToolError."""
    series = series_file.read(top)
    patches = series.topic(name).patches
    cover = series_file.read_cover(top / "patches" / series.directory(name) / COVER)
    tree = Tree(build_dir(top) / "linux-topic", name)
    make_clone(tree.path, build_dir(top) / "base")
    check_work(tree)
    sender, address = parseaddr(cover.sender)
    tree.git("config", "user.name", sender)
    tree.git("config", "user.email", address)
    apply(top, tree, series)
    version = (top / "BASE").read_text(encoding="utf-8").strip()
    if not set_cover(tree, letter(cover, series, name, version)):
        print(f"topic: the cover letter of {tree.branch} was edited since the last run, and is left"
              " as it is; `b4 prep --edit-cover` changes it")
    mails = build_dir(top) / "mails" / name
    write_mails(tree, mails)
    needs = "".join(f", {need}" for need in series.closure(name))
    print(f"topic: {tree.path}: the branch {tree.branch} has the {len(patches)} patches of {name}"
          f" on {tree.needs} (the base{needs}).\n"
          f"topic: {mails}: the mails; none was sent. In {tree.path.name}:\n"
          "    b4 prep --show-info     what b4 has of it\n"
          "    b4 prep --edit-cover    the cover letter, To: and Cc:\n"
          "    b4 send                 send it")


def work(path: Path) -> list[str]:
    """Return what a tree for topics has that patches/ would not give back."""
    if not path.exists():
        return []
    left = git_text(path, "status", "--porcelain", "--untracked-files=no").splitlines()
    left += git_text(path, "tag", "--list", "sent/*").splitlines()
    for branch in git_text(path, "for-each-ref", "--format=%(refname:short)",
                           "refs/heads/b4").splitlines():
        tree = Tree(path, branch.partition("/")[2])
        if tree.head() != tree.setting(TIP) or \
                digest(tree.setting(DESCRIPTION)) != tree.setting(LETTER):
            left.append(branch)
    return left


def main(arguments: list[str]) -> int:
    """The command line: the topic's name, or --work for what would be lost."""
    try:
        if arguments == ["--work"]:
            print("".join(f"{line}\n" for line in work(build_dir() / "linux-topic")), end="")
        else:
            topic(TOP, arguments[0])
    except (ToolError, OSError) as error:
        print(f"topic: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

# SPDX-License-Identifier: GPL-2.0
"""stack/topic NAME: one topic on the base and what it needs, ready for `b4 send`.

The mails are written to build/mails/NAME, to be read; none is sent. build/linux-topic, a clone
of build/base, has the branch b4/NAME on the branch needs/NAME. A second run brings them to what
patches/ are now: the change-id stays, and so does a cover letter that was edited in b4. It
refuses when b4/NAME has commits that the last run did not leave.
"""
from __future__ import annotations

import os
import shutil
import subprocess
import sys
from email.utils import parseaddr

from perfbpf import series as series_file
from perfbpf.build import source
from perfbpf.git import ToolError, am, git, git_text
from perfbpf.paths import BASE, BUILD, TOP
from perfbpf.series import PATCHES, Series
from perfbpf.stage import need_space
from perfbpf.tree import TOPICS as TREE


def b4(*words: str) -> None:
    """Run b4 there, without any network (ToolError: it failed). With a mail server that does not
    exist, as b4 writes no mails without one or a key to sign them with."""
    env = {**os.environ, "GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "sendemail.smtpserver",
           "GIT_CONFIG_VALUE_0": "none.invalid"}
    done = subprocess.run(["b4", "--offline-mode", "--no-interactive", *words], cwd=TREE, env=env,
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if done.returncode:
        raise ToolError(f"b4 {' '.join(words)} in {TREE}:"
                        f" {' '.join((done.stdout + done.stderr).split())[-400:]}")


def setting(branch: str, key: str) -> str:
    """A key of the branch's configuration, "" without one."""
    return git_text(TREE, "config", "--default", "", f"branch.{branch}.{key}")


def prepare(series: Series, name: str) -> None:
    """Bring needs/NAME and b4/NAME to what patches/ are."""
    branch, needs = f"b4/{name}", f"needs/{name}"
    if not TREE.exists():
        need_space(2500, "a tree for topics")
        git(BUILD, "clone", "-q", "--shared", str(BASE), str(TREE))
        git(TREE, "config", "b4.prep-cover-strategy", "branch-description")
    head = git_text(TREE, "for-each-ref", "--format=%(objectname)", f"refs/heads/{branch}")
    if head != setting(branch, "perf-bpf-tip") or git(TREE, "status", "--porcelain", "-uno"):
        raise ToolError(f"{TREE} has changes, or {branch} commits, that did not come from patches/:"
                        " bring them into build/linux (`git format-patch`, `git am`) and `make"
                        f" refresh`, or give them up (`git checkout -f; git branch -D {branch}`)")
    head, _, tail = series_file.split_cover(series.cover(name))
    fields, _, body = (head + tail).partition("\n\n")
    sender, subject = fields.split("\n")
    who, address = parseaddr(sender.removeprefix("From: "))
    git(TREE, "config", "user.name", who)
    git(TREE, "config", "user.email", address)
    git(TREE, "checkout", "-q", "-f", "--detach", "base")
    am(TREE, [PATCHES / patch for need in series.closure(name)
              for patch in series.topic(need).patches])
    git(TREE, "checkout", "-q", "-B", needs)
    if not setting(branch, "b4-tracking"):
        b4("prep", "-n", name)
    git(TREE, "checkout", "-q", "--detach", needs)
    am(TREE, [PATCHES / patch for patch in series.topic(name).patches])
    git(TREE, "checkout", "-q", "-B", branch)
    git(TREE, "config", f"branch.{branch}.perf-bpf-tip", git_text(TREE, "rev-parse", "HEAD"))
    letter = f"{subject.removeprefix('Subject: [PATCH] ')}\n\n{body.strip()}\n"
    if series.closure(name):
        letter += f"\nIt applies to Linux {(TOP / 'BASE').read_text().strip()}, on what it" \
                  " depends on.\n"
    noted = setting(branch, "perf-bpf-letter")
    if noted and noted.strip() != setting(branch, "description").strip():
        print(f"topic: the cover letter of {branch} was edited, and is left as it is")
        return
    git(TREE, "config", f"branch.{branch}.description", letter)
    b4("prep", "--auto-to-cc")
    git(TREE, "config", f"branch.{branch}.perf-bpf-letter", setting(branch, "description"))


def main() -> int:
    """Exit status: 0 made (ToolError: it cannot be)."""
    series = series_file.read()
    name = series.topic((sys.argv[1:] or [""])[0]).name
    subprocess.run([TOP / "stack/setup", "topic"], check=True)
    source("base")
    prepare(series, name)
    mails = BUILD / "mails" / name
    shutil.rmtree(mails, ignore_errors=True)
    mails.mkdir(parents=True)
    b4("send", "--no-sign", "-o", str(mails))
    print(f"topic: {TREE} has the branch b4/{name} on needs/{name}, {mails} the mails; none was"
          f" sent. In {TREE.name}:\n"
          "    b4 prep --show-info     what b4 has of it\n"
          "    b4 prep --edit-cover    the cover letter, To: and Cc:\n"
          "    b4 send                 send it")
    return 0

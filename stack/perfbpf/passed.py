# SPDX-License-Identifier: GPL-2.0
"""What has passed with the patches as they are, of what takes too long to be run each time.

tests/passed has a line for each: a hash of all that it depends on, the day, the name. The runs
alone write it, with the hash that they began with, and only if build/linux is what patches/ say,
where it is that tree that they build. Mails' texts are in no hash: nothing is compiled of them.
Nor is gcc: what a topic lacks that it needs, every compiler misses.

  debug            make check-debug: `make lint` tells when the kernel's patches are others
  topic:NAME       a topic compiles on what it needs (tests/series)
  configuration    the kernel compiles without modules and BTF (tests/full/configurations)
  sample-ctx-32    a 32-bit kernel's check of BPF programs (test_sample_ctx_32.py)
  bpf-selftests    what the series adds to selftests/bpf passes in the guest (bpf_progs.sh)
"""
from __future__ import annotations

import functools
import hashlib
import re
import subprocess
import time
from pathlib import Path
from typing import Callable, Sequence

from perfbpf import series, tree
from perfbpf.git import git_text, touched
from perfbpf.paths import BASE, TOP
from perfbpf.stage import locked

FILE = TOP / "tests/passed"
HEAD = "# SPDX-License-Identifier: GPL-2.0\n# Written by the runs alone: stack/perfbpf/passed.py.\n"
CONFIGS = ("stack/configs/guest.config", "stack/configs/series.config")
BPF = ("tools/lib/bpf/", "tools/bpf/", "tools/include/", "tools/testing/selftests/bpf/")


def diff(patch: Path) -> bytes:
    """A patch without its mail's text."""
    return patch.read_bytes().partition(b"\ndiff --git ")[2]


def is_kernel_code(name: str) -> bool:
    """Is a path of the tree the kernel's code?"""
    return name.endswith((".c", ".h", ".S")) and not name.startswith(("tools/", "samples/"))


def is_built(name: str) -> bool:
    """Does the kernel's build depend on a path of the tree?"""
    return not name.startswith(("tools/", "samples/", "Documentation/", "MAINTAINERS"))


@functools.cache
def paths_of(patch: Path) -> list[str]:
    """The paths of the tree that a patch touches."""
    return touched(patch)


def with_patches_to(*chosen: Callable[[str], bool]) -> list[Path]:
    """The patches that touch what one of these functions chooses."""
    return [path for path in series.read().paths()
            if any(choose(name) for name in paths_of(path) for choose in chosen)]


def depends(name: str) -> tuple[list[Path], Sequence[str]]:
    """The patches and the files of this repository that one of these depends on."""
    if name == "debug":
        return with_patches_to(is_kernel_code), ()
    if name == "configuration":
        return with_patches_to(is_built), ("tests/full/configurations",)
    if name == "sample-ctx-32":
        return with_patches_to(is_built), ("tests/kernel/test_sample_ctx_32.py",
                                           "tests/kernel/sample_ctx_32.c")
    if name == "bpf-selftests":
        return with_patches_to(is_built, lambda path: path.startswith(BPF)), (
            *CONFIGS, "tests/guest/build_programs", "tests/guest/bpf_progs.sh")
    read, topic = series.read(), name.removeprefix("topic:")
    return [series.PATCHES / patch for one in (*read.closure(topic), topic)
            for patch in read.topic(one).patches], (*CONFIGS, "tests/builds.py")


def base_tree() -> str:
    """The tree of the base; before that is there, the one that Debian's package makes."""
    text = (series.PATCHES / "debian-hunks.txt").read_text(encoding="utf-8")
    return git_text(BASE, "rev-parse", "base^{tree}") if BASE.exists() else \
        text.partition("# tree ")[2].partition("\n")[0]


def number(name: str) -> str:
    """One number for all that one of these depends on."""
    patches, files = depends(name)
    digest = hashlib.sha256(b"" if name == "debug" else base_tree().encode())
    if name == "bpf-selftests":     # whether the verifier takes a program is clang's question too
        digest.update(subprocess.run(["clang", "--version"], stdout=subprocess.PIPE,
                                     check=False).stdout)
    for patch in patches:
        digest.update(diff(patch))
    for file in files:
        digest.update((TOP / file).read_bytes())
    return digest.hexdigest()


def begin(name: str) -> str:
    """number() of what is about to run; "" if that would not say what it is, as somebody works
    in build/linux. A topic is built from patches/, in another tree."""
    return number(name) if name.startswith("topic:") or tree.is_as_patches_say() else ""


def lines() -> dict[str, tuple[str, str]]:
    """The number and the day of each name."""
    return {name: (digest, day) for digest, day, name in re.findall(
        r"^([0-9a-f]{64}) (\d{4}-\d\d-\d\d) (\S+)$",
        FILE.read_text(encoding="utf-8") if FILE.exists() else "", re.MULTILINE)}


def day(name: str) -> str:
    """When one of these passed as it is now, as YYYY-MM-DD; "": it did not."""
    digest, when = lines().get(name, ("", ""))
    return when if digest and digest == begin(name) else ""


def write(name: str, digest: str) -> None:
    """Note that one of these has passed, with what begin() said."""
    if not digest:
        return
    with locked("passed"):
        known = {**lines(), name: (digest, time.strftime("%Y-%m-%d"))}
        FILE.write_text(HEAD + "".join(f"{digest} {when} {one}\n" for one, (digest, when)
                                       in sorted(known.items())), encoding="utf-8")


def outdated() -> str:
    """"", or a line that says that the kernel's patches are not those of the last check-debug."""
    digest, when = lines().get("debug", ("", "no day"))
    return "" if digest == number("debug") else \
        f"{FILE.relative_to(TOP)}: `make check-debug` passed last on {when}, with other patches:" \
        " run it before patches to the kernel are sent"

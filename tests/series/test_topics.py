# SPDX-License-Identifier: GPL-2.0
"""Every topic builds on nothing but what it needs: what its patches touch compiles.

Not those that need all others before them: the series is built as a whole anyway. One
that compiled with all as it is now (tests/passed) is skipped, unless it is asked for
by name (TEST=), or all are (`make topics`).
"""
from __future__ import annotations

import re
from pathlib import Path

import pytest

from builds import SERIES, Stacks, Step, build, last_step, make_stacks
from once import Once
from perfbpf import passed, tree
from perfbpf.git import touched
from perfbpf.series import PATCHES

STACKS = [(*SERIES.closure(topic), topic) for topic in SERIES.names()]
ALONE = [last_step(topics) for topics in STACKS if topics != SERIES.names()]


@pytest.fixture(scope="module", name="stacks")
def fixture_stacks() -> Stacks:
    """The commits of topics on each other."""
    return make_stacks()


@pytest.mark.both
@pytest.mark.parametrize("step", ALONE, ids=lambda step: step.name)
def test_topic_builds(step: Step, request: pytest.FixtureRequest) -> None:
    """With all patches of a topic on those of the topics it needs."""
    once = Once(f"topic:{step.name}", request)
    once.skip()
    build(step, request.getfixturevalue("stacks"))
    once.passed()


def changed(monkeypatch: pytest.MonkeyPatch, patch: Path) -> set[str]:
    """What has another number when the last byte of a patch is another."""
    names = [f"topic:{topic}" for topic in SERIES.names()] + [
        "configuration", "bpf-selftests", "sample-ctx-32"]
    before, read = [passed.number(name) for name in names], passed.diff
    with monkeypatch.context() as context:
        context.setattr(passed, "diff", lambda path: read(path) if path != patch
                        else read(path)[:-1] + b"x")
        return {name for name, old in zip(names, before) if passed.number(name) != old}


@pytest.mark.both
@pytest.mark.parametrize("topic", SERIES.names())
def test_byte_of_patch(monkeypatch: pytest.MonkeyPatch, topic: str) -> None:
    """A topic whose patch has one other byte is built, and so are those that need it, and what
    is built of what the patch touches; nothing else."""
    patch = PATCHES / SERIES.topic(topic).patches[-1]
    paths = touched(patch)
    wanted = {f"topic:{topics[-1]}" for topics in STACKS if topic in topics}
    of_kernel = [path for path in paths if path.split("/")[0] in (
        "arch", "include", "kernel", "lib", "net", "scripts", "security")]
    if of_kernel:
        wanted |= {"configuration", "sample-ctx-32"}
    if of_kernel or [path for path in paths if re.match(
            "tools/(bpf|include|lib/bpf|testing/selftests/bpf)/", path)]:
        wanted.add("bpf-selftests")
    assert changed(monkeypatch, patch) == wanted


@pytest.mark.both
def test_byte_of_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """What has passed, has not when a byte of its line in tests/passed is another."""
    monkeypatch.setattr(passed, "FILE", tmp_path / "passed")
    monkeypatch.setattr(tree, "is_as_patches_say", lambda: True)
    for name in ("configuration", "topic:perf-fixes"):
        assert not passed.day(name)
        passed.write(name, passed.number(name))
        assert passed.day(name)
        text = passed.FILE.read_text()
        digest = passed.number(name)
        for place in (0, 31, 63):
            byte = "0" if digest[place] != "0" else "1"
            passed.FILE.write_text(text.replace(digest, digest[:place] + byte + digest[place + 1:]))
            assert not passed.day(name)
        passed.FILE.write_text(re.sub(rf"(?m)^\S+ (\S+ {name})$", r"\1", text))
        assert not passed.day(name)
        passed.FILE.write_text(text)

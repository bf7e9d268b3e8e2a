# SPDX-License-Identifier: GPL-2.0
"""stack/check; builds and their stamps."""
import fcntl
import shutil
import signal
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from perfbpf import check, passed, stage
from perfbpf.git import ToolError, git
from perfbpf.paths import TOP
from toy import copy_tooling, gone

Stage = check.Stage
NEW = "def test_new(record_property): record_property('flaky', 'a.log and b.log')\n"
TESTS = NEW + NEW.replace("new", "known") + "def test_fails(): assert not 'true'\n"
REPORT = ("FAILED: tests/test_toy.py::test_fails\n", "1 failed, 2 passed", "a.log and b.log",
          "test_toy.py::test_new failed, and passed when it ran once more; cause: not",
          "test_toy.py::test_known failed, and passed when it ran once more; cause: a cause\n")


def test_stages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
                capsys: pytest.CaptureFixture[str]) -> None:
    """Stages wait for what they need, and end at limits; the report says how, and what failed."""
    def run(*lanes: list[Any], minutes: float = 1) -> tuple[dict[str, str], str]:
        runner = check.Runner(check.Kind("", lanes), "")
        monkeypatch.setattr(check, "LEAST", 0.5)
        monkeypatch.setattr(check, "MARGIN", 1)
        runner.deadline = time.time() + 60 * minutes
        runner.run()
        assert not check.report(runner)
        return {name: how for name, (how, _) in runner.ended.items()}, capsys.readouterr().out

    for name in ("logs", "tests"):
        (tmp_path / name).mkdir()
    (tmp_path / "tests/flaky").write_text("test_known a cause\n")
    for name in ("conftest.py", "subject.py"):
        shutil.copy(TOP / "tests" / name, tmp_path / "tests")
    (tmp_path / "tests/test_toy.py").write_text(TESTS)
    monkeypatch.setattr(check, "BUILD", tmp_path)
    monkeypatch.setattr(check, "TOP", tmp_path)
    how, said = run(
        [Stage("a", 9, "true"), Stage("b", 9, "ls /none", ("a",)), Stage("c", 9, "true", ("b",))],
        [Stage("e", 9, "true", ("a",)), Stage("f", 0.5, "sleep 99"), Stage("g", 9, "/no/one"),
         Stage("h", 9, "true", ("g",))])
    assert how.pop("g").startswith("failed") and how == {
        "a": "passed", "b": "failed (2)", "c": "not run, as b did not pass", "e": "passed",
        "f": "ended at its limit", "h": "not run, as g did not pass"}
    assert "cannot access '/none'" in said and "c: not run, as b did not pass\n" in said
    how, _ = run([Stage("a", 9, "sleep 99"), Stage("b", 9, "true", ("a",))],
                 [Stage("c", 9, "sleep 99")], minutes=0.01)
    assert how == {"a": "all took too long", "b": "not run, as all took too long",
                   "c": "all took too long"}
    _, said = run([Stage("t", 60, tests="tests/test_toy.py")])
    assert not [line for line in REPORT if line not in said], said


def test_passed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A stage that has passed with all as it is now is left out, and takes no time; one that has
    not runs, and is noted if it passes, with the number that it began with."""
    ran = tmp_path / "ran"
    monkeypatch.setattr(check, "BUILD", tmp_path)
    monkeypatch.setattr(passed, "FILE", tmp_path / "passed")
    monkeypatch.setattr(passed, "begin", lambda name: f"{ran.stat().st_size:064x}")
    (tmp_path / "logs").mkdir()
    ran.touch()
    script = tmp_path / "script"
    kind = check.Kind("", [[Stage("x", 9, str(script), passed="configuration")]])
    for text, times, outcome in (("exit 1", 1, "failed (1)"), ("exit 0", 2, "passed"),
                                 ("exit 0", 3, "passed")):
        script.write_text(f"#!/bin/sh\necho >>{ran}\n{text}\n")
        script.chmod(0o755)
        assert check.expected(kind) > 0
        runner = check.Runner(kind, "")
        runner.run()
        assert runner.ended["x"][0] == outcome and ran.stat().st_size == times
    passed.write("configuration", f"{3:064x}")
    assert not check.expected(kind)
    runner.run()
    assert runner.ended["x"][0] == "passed" and ran.stat().st_size == 3


def test_interrupted(tmp_path: Path) -> None:
    """Ctrl-C ends all stages."""
    toy = copy_tooling(tmp_path / "repo")
    (toy.top / "stack/build").write_text("#!/bin/bash\n(echo $BASHPID >pid; sleep 555; :) &\nwait")
    assert toy.stop_at("sleep", "555", signal.SIGINT, f"{toy.top}/stack/check", "tooling") == 130
    assert gone(toy.top / "pid")


def test_stamp(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is as its sources is left alone; after a failure, or an edit meanwhile, it is not."""
    (file := tmp_path / "tree/file").parent.mkdir()
    other, said = tmp_path / "other", []
    git(file.parent, "init", "-q")
    (file.parent / ".git/info/exclude").write_text("*\n")      # as Debian's .gitignore has it
    monkeypatch.setattr(stage, "BUILD", tmp_path)

    def make(command: str = "echo built >>built") -> str:
        stage.build("x", tmp_path / "out", 1, lambda run: run(["sh", "-c", command], cwd=tmp_path),
                    file.parent, [other])
        return (tmp_path / "built").read_text()

    for number, path in enumerate((file, file, other, file), 1):
        git(file.parent, "commit", "-q", "--allow-empty", "-m", "x")
        other.touch()
        path.write_text(f"{number}")
        assert make() == make() == "built\n" * number
        git(file.parent, "add", "-f", "file")
    for command in ("false", "kill $$", "echo edited >tree/file"):
        other.write_text(command)
        try:
            make(command)
        except ToolError as error:
            assert "x failed; whole log" in str(error) and "edited" not in command
        assert not (tmp_path / "out" / stage.STAMP).exists()
    thread = threading.Thread(target=lambda: said.append(make()))
    with open(tmp_path / "locks/x", "w") as lock:   # a second run waits
        fcntl.flock(lock, fcntl.LOCK_EX)
        thread.start()
        thread.join(0.5)
        assert thread.is_alive() and not said
    thread.join(10)
    assert said == ["built\n" * 5]

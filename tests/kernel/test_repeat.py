# SPDX-License-Identifier: GPL-2.0
"""What guest_host makes of a guest that failed, with guests that are no guests."""
from pathlib import Path

import pytest

import guest_host as host
import ktap
from perfbpf.plan import Entry

PLAN = [Entry("script", name) for name in ("one", "two", "three")]
ENDS: list[tuple[int, str]] = []    # how the guests of Scripted end: status, results by letter
RAN: list[str] = []                 # what each of them ran


class Scripted(host.Runs):
    """Runs whose guests end as ENDS says."""

    def run(self, entries: list[Entry]) -> host.Session:
        """The next one."""
        (folder := Path(self.name)).mkdir(exist_ok=True)
        status, results = ENDS.pop(0)
        (folder / "dmesg").write_text("WARNING: CPU: 0 PID: 1 at kernel/x.c:1\n" * (status == 4))
        (folder / "ktap.log").write_text("\n".join([f"KTAP version 1\n1..{len(entries)}", *(
            f"{'not ' * (result == 'f')}ok {number} {one.name}"
            for number, (one, result) in enumerate(zip(entries, results), 1)), ""]))
        RAN.append(" ".join(entry.path for entry in entries))
        return host.Session(status, "", folder, *ktap.parse_log(folder / "ktap.log", entries))


@pytest.mark.both
@pytest.mark.parametrize("ends, ran, passed, flaky, status", [
    ([(0, "ppp")], [], "one two three", "", 0), ([(4, "pfp")], [], "one three", "", 4),
    ([(1, "pfp"), (0, "p")], ["two"], "one two three", "script:two", 0),
    ([(1, "fpp"), (1, "f")], ["one"], "two three", "", 1),
    ([(5, "p"), (0, "p"), (0, "p")], ["two", "three"], "one two three", "(guest) script:two", 0)])
def test_repeat(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ends: list[tuple[int, str]],
                ran: list[str], passed: str, flaky: str, status: int) -> None:
    """What failed, and what the guest died of, runs once more, alone; a splat never does."""
    monkeypatch.setattr(host, "SUBJECT", "series")
    ENDS[:], RAN[:] = ends, []
    runs = Scripted("series", 1, 1, name=str(tmp_path / "results"))
    ended = host.repeat(runs, PLAN, runs.run(PLAN))
    assert RAN[1:] == ran and not ENDS and ended.status == status
    assert " ".join(one.path for one in PLAN if ended.passed(one)) == passed
    assert " ".join(sorted(ended.flaky)) == flaky

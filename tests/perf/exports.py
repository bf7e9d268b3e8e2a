# SPDX-License-Identifier: GPL-2.0
"""perf's exports for other viewers: run them, read them, and tell what they show as user code."""
from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, Iterator, NamedTuple, Optional
from unittest import mock

from perfbpf.paths import BASE, LINUX
from subject import Result, run_perf, subject_name
from viewers import read_pprof

PERF_DIR = (BASE if subject_name() == "base" else LINUX) / "tools/perf"
SCRIPTS = PERF_DIR / "scripts/python"


def perf(data: Path, *args: str) -> Result:
    """Run perf where the recording is."""
    result = run_perf(data.parent, [args[0], "-i", str(data), *args[1:]])
    assert result.status == 0 and not result.timed_out, str(result)
    return result


def script(data: Path, name: str, *args: str) -> Result:
    """Run a script of perf, with its own arguments."""
    assert (SCRIPTS / name).is_file(), f"perf has no script {name}"
    # where the scripts find their library
    with mock.patch.dict(os.environ, PERF_EXEC_PATH=str(PERF_DIR)):
        return perf(data, "script", "--no-inline", "-s", str(SCRIPTS / name), "--", *args)


def gecko(data: Path) -> dict[str, Any]:
    """The Firefox Profiler's JSON."""
    script(data, "gecko.py", "--save-only", "gecko.json")
    return json.loads((data.parent / "gecko.json").read_text())


def gecko_frames(profile: dict[str, Any]) -> set[tuple[str, str, Optional[int]]]:
    """Location, category and line of each frame."""
    categories = [category["name"] for category in profile["meta"]["categories"]]
    found = set()
    for thread in profile["threads"]:
        schema = thread["frameTable"]["schema"]
        for frame in thread["frameTable"]["data"]:
            found.add((thread["stringTable"][frame[schema["location"]]],
                       categories[frame[schema["category"]]], frame[schema["line"]]))
    return found


class Frame(NamedTuple):
    """A line of a location."""
    name: str
    system_name: str
    file: str
    line: int
    start_line: int
    mapping: str
    address: int


class Pprof:
    """A profile as pprof-format reads it, with names for numbers."""

    def __init__(self, raw: dict[str, Any]) -> None:
        self.raw = raw
        self._strings = raw["stringTable"]["strings"]
        self._by_id = {table: self._index(raw[table])
                       for table in ("mapping", "location", "function")}
        self.types = [(self.string(each["type"]), self.string(each["unit"]))
                      for each in raw["sampleType"]]

    @staticmethod
    def _index(table: list[dict[str, Any]]) -> dict[int, dict[str, Any]]:
        found = {int(each["id"]): each for each in table}
        assert len(found) == len(table) and 0 not in found, "an id is 0 or twice there"
        return found

    def string(self, index: Any) -> str:
        """A string of the table."""
        return self._strings[int(index)]

    def frames(self, location_id: Any) -> list[Frame]:
        """The lines of a location, the innermost function first."""
        location = self._by_id["location"][int(location_id)]
        mapping = self._by_id["mapping"][int(location["mappingId"])]["filename"] \
            if int(location["mappingId"]) else 0
        found = []
        for line in location["line"]:
            function = self._by_id["function"][int(line["functionId"])]
            found.append(Frame(self.string(function["name"]), self.string(function["systemName"]),
                               self.string(function["filename"]), int(line["line"]),
                               int(function["startLine"]), self.string(mapping),
                               int(location["address"])))
        return found

    def samples(self) -> Iterator[tuple[list[Frame], list[int], dict[str, Any]]]:
        """The frames with a name, leaf first; the values; the labels."""
        for sample in self.raw["sample"]:
            assert len(sample["value"]) == len(self.types)
            labels = {self.string(label["key"]): self.string(label["str"]) or int(label["num"])
                      for label in sample["label"]}
            yield ([frame for each in sample["locationId"] for frame in self.frames(each)],
                   [int(value) for value in sample["value"]], labels)


def pprof(data: Path, *args: str) -> Pprof:
    """The profile that perf writes for pprof."""
    script(data, "pprof.py", "--output", "perf.pb.gz", *args)
    return Pprof(read_pprof(data.parent / "perf.pb.gz"))


def flamegraph_user(data: Path) -> Iterator[str]:
    """What a flame graph has as user code."""
    script(data, "flamegraph.py", "--format", "json", "--output", "stacks.json")
    nodes = [json.loads((data.parent / "stacks.json").read_text())]
    while nodes:
        node = nodes.pop()
        nodes += node["c"]
        if node["l"] == "":
            yield node["n"]


def gecko_user(data: Path) -> Iterator[str]:
    """What the Firefox Profiler has as user code."""
    yield from (name for name, category, _ in gecko_frames(gecko(data)) if category == "User")


def pprof_user(data: Path) -> Iterator[str]:
    """What a profile of pprof has in other mappings than the kernel's."""
    for frames, _, _ in pprof(data).samples():
        yield from (frame.system_name for frame in frames
                    if not frame.mapping.startswith(("[kernel", "[bpf]")))


def stackcollapse_user(data: Path) -> Iterator[str]:
    """What collapsed stacks do not mark as the kernel's."""
    for line in script(data, "stackcollapse.py", "--kernel").out.splitlines():
        stack, _, _ = line.rpartition(" ")
        yield from (name for name in stack.split(";")[1:] if not name.endswith("_[k]"))


EXPORTS = {"flamegraph": flamegraph_user, "gecko": gecko_user, "pprof": pprof_user,
           "stackcollapse": stackcollapse_user}

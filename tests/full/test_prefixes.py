# SPDX-License-Identifier: GPL-2.0
"""Every prefix of the series builds, and every prefix of a topic on what it needs alone.

`make prefixes` says PERF_BPF_PREFIX=dependents, for builds.py; with TOPIC=NAME
(PERF_BPF_TOPIC) it builds those of one topic. Without the former only what a patch
touches is compiled after it, in a quarter of the time.
"""
from __future__ import annotations

import os

import pytest

from builds import SERIES, Stacks, Step, build, make_stacks, steps_of

TOPIC = os.environ.get("PERF_BPF_TOPIC", "")
# ToolError when there is none of that name.
TOPICS = [SERIES.topic(TOPIC).name] if TOPIC else list(SERIES.names())
PREFIXES = [step for topic in TOPICS
            for step in steps_of(SERIES.names()[:SERIES.names().index(topic) + 1])]
ALONE = [step for topic in TOPICS for step in steps_of((*SERIES.closure(topic), topic))]


@pytest.fixture(scope="module", name="stacks")
def fixture_stacks() -> Stacks:
    """The commits of topics on each other."""
    return make_stacks()


@pytest.mark.parametrize("step", PREFIXES, ids=lambda step: step.name)
def test_prefix_builds(step: Step, stacks: Stacks) -> None:
    """With the series up to this patch, what the patch touches compiles."""
    build(step, stacks)


@pytest.mark.parametrize("step", ALONE, ids=lambda step: step.name)
def test_topic_builds(step: Step, stacks: Stacks) -> None:
    """With nothing but what a topic needs, up to this patch, the same."""
    build(step, stacks)

# SPDX-License-Identifier: GPL-2.0
"""Every topic builds on nothing but what it needs: what its patches touch compiles.

Not those that need all others before them: the series is built as a whole anyway.
"""
from __future__ import annotations

import pytest

from builds import SERIES, Stacks, Step, build, last_step, make_stacks

STACKS = [(*SERIES.closure(topic), topic) for topic in SERIES.names()]
ALONE = [last_step(topics) for topics in STACKS if topics != SERIES.names()]


@pytest.fixture(scope="module", name="stacks")
def fixture_stacks() -> Stacks:
    """The commits of topics on each other."""
    return make_stacks()


@pytest.mark.both
@pytest.mark.parametrize("step", ALONE, ids=lambda step: step.name)
def test_topic_builds(step: Step, stacks: Stacks) -> None:
    """With all patches of a topic on those of the topics it needs."""
    build(step, stacks)

# SPDX-License-Identifier: GPL-2.0
"""The topics that can be sent first, of which patches/README.md has the numbers, change no kernel
code and no interface of the kernel, and need no topic that does, but the fixes of BPF."""
from __future__ import annotations

import re

import pytest

from builds import SERIES
from perfbpf.git import touched
from perfbpf.series import PATCHES

RANGE = re.search(r"^Topics (\d\d) to (\d\d) run on kernels without the series",
                  (PATCHES / "README.md").read_text(encoding="utf-8"), re.MULTILINE)
STOCK = SERIES.names()[int(RANGE[1]) - 1:int(RANGE[2])] if RANGE else ()
NO_KERNEL = ("tools/", "Documentation/", "samples/")


@pytest.mark.both
def test_range() -> None:
    """README tells the numbers, of the topics from perf-fixes to the first of the kernel's."""
    assert STOCK and STOCK[0] == "perf-fixes" and "ksymbol" not in STOCK


@pytest.mark.both
@pytest.mark.parametrize("topic", STOCK)
def test_topic_needs_no_kernel(topic: str) -> None:
    """No patch of the topic touches the kernel or tools' copies of its ABI; nor do its needs."""
    paths = {path for patch in SERIES.topic(topic).patches for path in touched(PATCHES / patch)}
    assert not [path for path in paths if not path.startswith(NO_KERNEL)
                or path.startswith("tools/include/uapi/")]
    assert set(SERIES.closure(topic)) - {"bpf-fixes"} <= set(STOCK)

# SPDX-License-Identifier: GPL-2.0
"""perf record on this machine, for what needs no kernel of the series."""
from __future__ import annotations

from pathlib import Path

import pytest

from subject import run_perf


@pytest.mark.both
@pytest.mark.parametrize("options", [[], ["--no-bpf-event"]], ids=("bpf", "no-bpf"))
def test_event_that_cannot_be_opened(options: list[str], tmp_path: Path) -> None:
    """It is told, and the side-band thread, which was not started, is not stopped."""
    # a breakpoint that is no address: no machine has it
    result = run_perf(tmp_path, ["record", *options, "-o", "perf.data", "--switch-output-event",
                                 "dummy", "-e", "mem:0xfffffffffffffff0:x", "true"])
    assert not result.crashed and not result.timed_out, str(result)
    assert result.status > 0 and "Failure to open" in result.err, str(result)

# SPDX-License-Identifier: GPL-2.0
"""What shows only with options on the kernel's command line, in one more guest.

Pages of ITS thunks have symbols: the mitigation is for Intel CPUs that have eIBRS; an
emulated one gets both by options, which taint that kernel.

What a program that was closed reads while it still runs has not been freed:
slub_debug=P overwrites what is freed, and the kernel crashes where that is used.
"""

import os
import re
import subprocess

import pytest

import guest_host as host

FORCE_ITS = "setcpuid=ibrs_enhanced spectre_v2=eibrs indirect_target_selection=force"
POISON_FREED = "slub_debug=P"
# The last one comes last: where it finds the bug there is no kernel to run another.
COMMANDS = ("perf_events/ksymbol_sources -v its", "perf_events/ksymbol_code -v its",
            "perf_events/ksymbol_end -t prints_its_stack")


@pytest.fixture(scope="module", name="said")
def run_guest() -> str:
    """What COMMANDS print in a guest that is started with both groups of options."""
    for command in COMMANDS:
        if not os.access(host.SELFTESTS / command.split()[0], os.X_OK):
            raise FileNotFoundError(f"{command}: run `make selftests`")
    ended = subprocess.run(
        [str(host.TOP / "stack/guest"), "--kernel", host.SUBJECT, "--timeout", "300",
         "--append", f"{FORCE_ITS} {POISON_FREED}", "--again", "--results", str(results()),
         "--", "sh", "-c", "cat /sys/kernel/slab/kmalloc-32/poison; "
         + "; ".join(f"{host.SELFTESTS}/{command}" for command in COMMANDS)],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        text=True, check=False)
    if ended.returncode not in (0, 1):
        raise RuntimeError(f"no result: status {ended.returncode}\n{ended.stderr}")
    return ended.stdout


def results() -> host.pathlib.Path:
    """Where the guest's files are."""
    return host.BUILD / "results" / f"guest-{host.SUBJECT}-options"


def test_its_thunks(said: str, record_property: host.Note) -> None:
    """Pages of thunks are in all sets alike, and perf gets their code."""
    host.note_guest(results(), record_property)
    found = re.search(r"ITS thunks: (\d+) made", said)
    assert found and int(found[1]) > 0, said[-4000:]
    for test in ("sets", "code_is_that_in_kcore"):
        assert re.search(rf"^ok \d+ source\.its\.{test}$", said, re.MULTILINE), said[-4000:]


@pytest.mark.both
def test_line_info_is_not_freed(said: str) -> None:
    """The line info of a program that was closed is there for the stack that it prints.
    The base deletes the symbols first, and so does not come to the line info."""
    assert said.startswith("1\n"), f"freed memory is not poisoned:\n{said[:1000]}"
    assert re.search(r"^ok \d+ end\.prints_its_stack$", said, re.MULTILINE), said[-4000:]

# SPDX-License-Identifier: GPL-2.0
"""Pages of ITS thunks have symbols: in a guest whose CPU is said to need them.

The mitigation is for Intel CPUs that have eIBRS; an emulated one gets both by
the kernel's command line, which taints that kernel. All else that these programs test
runs in the other guest.
"""

import os
import re
import subprocess

import guest_host as host
from perfbpf import outcome

FORCE_ITS = "setcpuid=ibrs_enhanced spectre_v2=eibrs indirect_target_selection=force"
PROGRAMS = ("perf_events/ksymbol_sources", "perf_events/ksymbol_code")


def test_its_thunks(record_property: host.Note) -> None:
    """Pages of thunks are in all sets alike, and perf gets their code."""
    results = host.BUILD / "results" / f"guest-{host.SUBJECT}-its"
    programs = [host.SELFTESTS / program for program in PROGRAMS]
    for program in programs:
        if not os.access(program, os.X_OK):
            raise FileNotFoundError(f"{program}: run `make selftests`")
    ended = subprocess.run(
        [str(host.TOP / "stack/guest"), "--kernel", host.SUBJECT, "--timeout", "300",
         "--append", FORCE_ITS, "--again", "--results", str(results),
         "--", "sh", "-c", "; ".join(f"{program} -v its" for program in programs)],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        text=True, check=False)
    host.note_guest(results, record_property)
    if ended.returncode not in (0, 1):
        raise RuntimeError(f"no result: {outcome.meaning(ended.returncode)}\n{ended.stderr}")
    found = re.search(r"ITS thunks: (\d+) made", ended.stdout)
    assert found and int(found[1]) > 0, ended.stdout[-4000:]
    for test in ("sets", "code_is_that_in_kcore"):
        assert re.search(rf"^ok \d+ source\.its\.{test}$", ended.stdout, re.MULTILINE), \
            ended.stdout[-4000:]

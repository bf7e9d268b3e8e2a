# SPDX-License-Identifier: GPL-2.0
"""stack/perf: a perf that lacks a feature is no build."""

import os
from pathlib import Path

from toy import make_toy

# Makes a perf that has all features but one.
MAKE = """\
#!/bin/bash
for word; do
	case $word in O=*) out=${word#O=} ;; esac
done
printf '#!/bin/sh\\n[ "$4" != libLLVM ]\\n' >"$out/perf"
chmod +x "$out/perf"
"""


def test_smaller_perf_is_no_build(tmp_path: Path) -> None:
    """stack/perf fails, says which feature is missing and what to do, and is run again."""
    toy = make_toy(tmp_path)
    fakes = tmp_path / "fakes"
    fakes.mkdir()
    (fakes / "make").write_text(MAKE)
    (fakes / "make").chmod(0o755)
    for _ in range(2):
        done = toy.run("stack/perf", "series", PATH=f"{fakes}:{os.environ['PATH']}")
        assert done.returncode == 1, done.stdout
        assert "built without libLLVM: install the -dev packages" in done.stderr, done.stderr

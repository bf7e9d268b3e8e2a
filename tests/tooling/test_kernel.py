# SPDX-License-Identifier: GPL-2.0
"""stack/kernel when it is interrupted: what it left is redone, not trusted.

The kernel is the toy's and `make` a stand-in, which stops where a real build
spends its minutes.
"""
from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from toy import Toy, make_toy

MERGE_CONFIG = """\
#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# merge_config.sh -m -O DIR FRAGMENT...: a later line wins, "=n" is none
dir=$3; shift 3
awk -F= '/^CONFIG_/ { v[$1] = $0 } END { for (n in v) if (v[n] !~ /=n$/) print v[n] }' "$@" \\
	>"$dir/.config"
"""
MAKE = """\
#!/bin/bash
here=$(dirname "$0")
for word; do
	case $word in
	O=*) out=${{word#O=}} ;;
	KCONFIG_CONFIG=*) config=${{word#*=}} ;;
	KCONFIG_ALLCONFIG=*) all=${{word#*=}} ;;
	esac
done
case "$*" in
*allnoconfig*) cp "$all" "$config" ;;
*bzImage*)
	echo half >"$out/vmlinux"
	[ -e "$here/quick" ] || {{ echo >"$here/reached"; sleep 1000; }}
	echo whole >"$out/vmlinux"
	echo built >>"$here/builds" ;;
esac
"""


@pytest.fixture(name="toy")
def toy_fixture(tmp_path: Path) -> Toy:
    """A toy whose kernel has what stack/kernel calls in it."""
    toy = make_toy(tmp_path)
    merge = toy.top / "build/linux/scripts/kconfig/merge_config.sh"
    merge.parent.mkdir(parents=True)
    merge.write_text(MERGE_CONFIG)
    merge.chmod(0o755)
    toy.commit("toy: merge configs", "stack/kernel merges the fragments of a config.")
    toy.must("stack/refresh")
    return toy


@pytest.fixture(name="path")
def path_fixture(tmp_path: Path) -> str:
    """PATH with the stand-in for make in front."""
    fakes = tmp_path / "fakes"
    fakes.mkdir()
    os.mkfifo(fakes / "reached")
    (fakes / "make").write_text(MAKE.format())
    (fakes / "make").chmod(0o755)
    return f"{fakes}:{os.environ['PATH']}"


def runs(group: int) -> bool:
    """Does a process of this group still run? One that only waits for init to
    reap it, which may take long on a busy machine, does not."""
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, _, pgrp = stat.read_text().rpartition(")")[2].split()[:3]
        except (FileNotFoundError, ProcessLookupError):
            continue
        if int(pgrp) == group and state not in "ZX":
            return True
    return False


def wait_until_gone(group: int) -> bool:
    """Wait until nothing of a process group runs; False if it does after 10 s."""
    end = time.monotonic() + 10
    while time.monotonic() < end:
        if not runs(group):
            return True
        time.sleep(0.05)
    return False


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL], ids=["ctrl-c", "killed"])
def test_interrupted_build_is_redone(toy: Toy, path: str, tmp_path: Path,
                                     number: signal.Signals) -> None:
    """Half a kernel has no stamp; the next run builds, and the one after has nothing to do."""
    fakes, out = tmp_path / "fakes", toy.top / "build/out-kernel"
    env = {**{k: v for k, v in os.environ.items() if k not in ("KERNEL", "PERF_BPF_BUILD")},
           "PATH": path}
    with subprocess.Popen(["stack/kernel", "series"], cwd=toy.top, env=env,
                          stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                          stderr=subprocess.DEVNULL, start_new_session=True) as child:
        (fakes / "reached").read_text()
        os.killpg(child.pid, number)
        assert child.wait(timeout=20) != 0
    assert wait_until_gone(child.pid), "something of it is left running"
    assert (out / "vmlinux").read_text() == "half\n"
    assert not (out / ".perf-bpf-stamp").exists()

    (fakes / "quick").touch()
    toy.must("stack/kernel", "series", PATH=path)
    assert (out / "vmlinux").read_text() == "whole\n"
    assert "up to date" in toy.must("stack/kernel", "series", PATH=path)
    assert (fakes / "builds").read_text() == "built\n"


def test_config_that_kconfig_refuses(toy: Toy, path: str) -> None:
    """A line of the fragment that did not survive is named, and nothing is built."""
    merge = toy.top / "build/linux/scripts/kconfig/merge_config.sh"
    merge.write_text(MERGE_CONFIG.replace("!~ /=n$/", "!~ /=n$|KASAN=/"))
    toy.commit("toy: know no KASAN", "It is the line that goes.")
    toy.must("stack/refresh")
    done = toy.run("stack/kernel", "debug", PATH=path)
    assert done.returncode == 1
    assert "kconfig refused CONFIG_KASAN=y" in done.stdout + done.stderr
    assert not (toy.top / "build/out-debug/vmlinux").exists()

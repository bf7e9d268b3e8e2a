# SPDX-License-Identifier: GPL-2.0
"""stack/build WHAT [NAME]: build what the table in perfbpf/paths.py lists.

  base, tree     the base's tree in build/base, the series on it in build/linux
  kernel [series|debug|base|mainline|mainline-base]
                 for the guest; NAME:config makes its configuration alone
  perf [series|base]
  selftests      of the directories that the series touches, but bpf
  clean, distclean
                 remove what was built; the second also the base, the downloads and the
                 trees, unless these hold what patches/ do not

What is as its sources are is left alone: a stamp, written last, says what was built.
"""
from __future__ import annotations

import re
import shutil
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Callable

from perfbpf import base, tree
from perfbpf.git import ToolError, git_text
from perfbpf.paths import BASE, KERNELS, LINUX, PERF_FEATURES, PERFS, PYTHON, TESTS, TOP
from perfbpf.stage import JOBS, Run, build, say, stage

CONFIGS = TOP / "stack/configs"
SELFTESTS = "tools/testing/selftests"


def source(name: str) -> Path:
    """The kernel tree to build, which is made if need be."""
    base.ensure()
    if name == "base":
        return BASE
    tree.ensure()
    return LINUX


# The kernel

def check_config(config: Path, fragments: list[Path]) -> None:
    """Kconfig drops what it cannot grant without a word, so each line is held against the
    result; a later fragment overrides an earlier one (ToolError: what was refused)."""
    wanted: dict[str, str] = {}
    for fragment in fragments:
        text = re.sub("^# (CONFIG_.*) is not set$", r"\1=n", fragment.read_text(), flags=re.M)
        if stray := re.search(r"^(?!#|CONFIG_\w+=.+$|$).*", text, re.MULTILINE):
            raise ToolError(f"{fragment}: \"{stray[0]}\" is not CONFIG_NAME=VALUE")
        wanted.update(re.findall("^(CONFIG_.*?)=(.*)$", text, re.MULTILINE))
    granted = dict(re.findall("^(CONFIG_.*?)=(.*)$", config.read_text(), re.MULTILINE))
    wrong = [f"{name}={value}" for name, value in wanted.items()
             if granted.get(name, "n") != value]
    if wrong:
        raise ToolError(f"kconfig refused {' '.join(wrong)}: see in the tree's Kconfig files"
                        " whether it exists, what it depends on (also by an `if` or a `menu` around"
                        " it) and what selects it, and add that to the fragment in stack/configs/")


def kernel(name: str) -> None:
    """Build a kernel for the guest: all that no fragment of its configuration asks for is off."""
    name, _, stop = name.partition(":")
    tree = source("base" if name.endswith("base") else "series")
    out = KERNELS[name].path
    names = ["guest"] + ["series"] * (tree == LINUX) + [name.removesuffix("-base")] * (
        name not in ("base", "series"))
    fragments = [CONFIGS / f"{one}.config" for one in names]
    made = out / ".perf-bpf-config"

    def configure(run: Run) -> None:
        made.mkdir(parents=True, exist_ok=True)
        run([tree / "scripts/kconfig/merge_config.sh", "-m", "-O", made, *fragments])
        run(["make", "-C", tree, f"O={out}", f"KCONFIG_CONFIG={made}/new",
             f"KCONFIG_ALLCONFIG={made}/.config", "allnoconfig"])
        # the old one is kept when nothing changed, or everything would be rebuilt
        new, config = (made / "new").read_bytes(), out / ".config"
        if not config.exists() or config.read_bytes() != new:
            config.write_bytes(new)
        check_config(config, fragments)

    def whole(run: Run) -> None:
        configure(run)
        run(["make", "-C", tree, f"O={out}", JOBS, "bzImage", "modules"])

    if stop:
        stage(f"kernel-{name}-config", configure)
    else:
        build(f"kernel-{name}", out, 4500 if name == "debug" else 3000, whole, tree, fragments)


# perf, and what tests run

def perf(name: str) -> None:
    """Build perf, with every feature of PERF_FEATURES."""
    tree, out = source(name), PERFS[name].path

    def whole(run: Run) -> None:
        # The Rust workload's object breaks ar's LLVM plugin, and nothing here needs it, nor the
        # agent for Java. shellcheck of perf's tests takes a tenth of the time: lint does it.
        run(["make", "-C", tree / "tools/perf", f"O={out}", "NO_RUST=1", "NO_JVMTI=1",
             "NO_SHELLCHECK=1", f"PYTHON={PYTHON}", JOBS, "all"])
        missing = [feature for feature in PERF_FEATURES if subprocess.run(
            [out / "perf", "check", "-q", "feature", feature], check=False).returncode]
        if missing:
            raise ToolError(f"{out}/perf was built without {' '.join(missing)}: install the -dev"
                            f" packages (`make setup`), remove {out}, and build again; see"
                            " \"Auto-detecting\" above")

    build(f"perf-{name}", out, 1000, whole, tree)
    say(f"perf-{name}: try it: {out}/perf record -a -- sleep 5 && {out}/perf report")
    say("the scripts (perf script report flamegraph and the like) need"
        f" `export PERF_EXEC_PATH={tree}/tools/perf`; an installed perf has them")


def series_touches(*paths: str) -> list[str]:
    """The paths that the series touches, of these of the tree."""
    return git_text(LINUX, "diff", "--name-only", "base", "--", *paths).splitlines()


def selftests() -> None:
    """Build the kselftests of the directories that the series touches, against its own uapi
    headers; those of bpf need the BTF of a kernel."""
    out, headers = TESTS["selftests"].path, TESTS["headers"].path
    source("series")
    targets = {path.parent.name for path in map(Path, series_touches(SELFTESTS))
               if path.parent.parent == Path(SELFTESTS)}

    def whole(run: Run) -> None:
        headers.mkdir(parents=True, exist_ok=True)
        run(["make", "-C", LINUX, f"O={headers}", "headers"])
        for target in sorted(targets - {"bpf"}):
            shutil.rmtree(out / target, ignore_errors=True)
            (out / target).mkdir()
            run(["make", "-C", LINUX / SELFTESTS / target, JOBS, f"OUTPUT={out / target}",
                 f"KHDR_INCLUDES=-isystem {headers}/usr/include", "all"])

    build("selftests", out, 200, whole)


BUILDERS: dict[str, tuple[Callable[..., object], tuple[str, ...]]] = {
    "kernel": (kernel, tuple(name for name, out in KERNELS.items() if out.kind == "kernel")),
    "perf": (perf, tuple(PERFS)), "selftests": (selftests, ()),
    "tree": (partial(source, "series"), ()), "base": (partial(source, "base"), ()),
    "clean": (tree.clean, ()), "distclean": (tree.distclean, ())}


def main() -> int:
    """Exit status: 0 built, 2 the command line is wrong (ToolError: it cannot be built)."""
    what, names = (sys.argv[1:2] or [""])[0], sys.argv[2:]
    builder, known = BUILDERS.get(what, (None, ()))
    names = names or list(known[:1])
    if not builder or len(names) > 1 or [name for name in names
                                         if name.removesuffix(":config") not in known]:
        print(f"no `stack/build {' '.join(sys.argv[1:])}`:\n\n{__doc__}", file=sys.stderr)
        return 2
    builder(*names)
    return 0

# SPDX-License-Identifier: GPL-2.0
"""Take the tests whose programs are not built out of bpf's prog_tests/verifier.c.

    python3 -m perfbpf.bpf_selftests prog_tests/verifier.c PROGRAM...

verifier.c includes the skeleton of each program and has one test_...() that runs it,
of a line or a few. Those of other programs are removed, as are functions that are
then of no use.
"""

import re
import sys
from pathlib import Path

INCLUDE = re.compile(r'#include "(\w+)\.skel\.h"\n')
TEST = re.compile(r"void test_\w+\(void\)\s*\{\s*RUN\w*\((\w+)\);\s*\}\n")
# The functions that prepare maps for some tests stand behind all others.
FIRST_HELPER = "\nstatic int init_test_val_map("


def pruned(source: str, programs: set[str]) -> str:
    """Return verifier.c with the tests of `programs`, names without .c.
    ValueError if it does not look as expected."""
    if FIRST_HELPER not in source:
        raise ValueError(f"no line {FIRST_HELPER.strip()!r}")
    source = source[:source.index(FIRST_HELPER)]
    for pattern in (INCLUDE, TEST):
        source = pattern.sub(lambda m: m[0] if m[1] in programs else "", source)
    return source


def main() -> int:
    """Change the file in place."""
    path, programs = Path(sys.argv[1]), set(sys.argv[2:])
    if not path.exists():
        return 0
    try:
        path.write_text(pruned(path.read_text(encoding="utf-8"), programs), encoding="utf-8")
    except ValueError as error:
        print(f"bpf_selftests: {path}: {error}: mend stack/perfbpf/bpf_selftests.py",
              file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())

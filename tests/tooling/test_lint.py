# SPDX-License-Identifier: GPL-2.0
"""stack/lint: one planted defect of each kind is found, and none in the clean toy."""
import pytest

from toy import SPDX, Toy, fixture_toy, fixture_whole  # noqa: F401

SUM, FILE, SHELL = ("01-sum/0001-toy-mend-the-sum.patch", "02-file/0001-toy-add-a-new-file.patch",
                    "02-file/0002-toy-add-a-selftest.patch")
# Those that are planted at once, as lint stops where files are not in their places, or patches do
# not apply: a file, what is in it, what stands there instead, and what is said of it.
DEFECTS: dict[str, list[tuple[str, str, str, str]]] = {
    "places": [
        ("series", SHELL, "02-file/0003-x.patch", "02-file/0003-x.patch is not in patches/"),
        ("patches/x", "", "x\n", f"patches/{SHELL}: is not in series"),
        ("series", SUM, f"{SUM}\n{FILE}", "should be 01-sum/0002-toy-add-a-new-file.patch"),
        ("patches/cover-letter.txt", "", "x\n", "patches/cover-letter.txt: is not in series")],
    "fuzz": [(f"patches/{SUM}", " \t/* line 2 */", " \t/* line two */", f"lint: {SUM}: git am in")],
    "others": [
        ("kernel/toy.c", "return", "retrun", "kernel/toy.c: is not what patches/ create"),
        ("patches/README.md", "", "", "selftests/toy/toy.sh: is not what patches/ create"),
        ("kernel/extra.c", "", SPDX, "kernel/extra.c: no patch creates it"),
        (".gitattributes", "/kernel/** ", "/k/** ", "add the line \"/kernel/** linguist"),
        ("patches/02-file/cover.txt", "2 files", "3 files", "cover.txt: has not the diffstat"),
        ("series", "needs: sum", "needs: file", "on what the topic more needs (file) alone"),
        (f"patches/{SUM}", "toy: mend", "toy/core, x: Let", f"{SUM}: the subject is"),
        (f"patches/{SHELL}", "toy: add", "toy: a" + "d" * 75, f"{SHELL}: the subject is"),
        (f"patches/{FILE}", "\n---\n", "\nonto 1234\n---\n", f"{FILE}: the last line of its"),
        (f"patches/{FILE}", "return a - b", "return(a)", "RETURN_PARENTHESES"),
        ("patches/checkpatch.allow", "", "LONG_LINE x.c\n", "LONG_LINE x.c is of no use"),
        ("MAINTAINERS.snippet", "", "F:\tkernel/none.c\n", "kernel/none.c"),
        ("MAINTAINERS.snippet", "F:\tkernel/toy.c\n", "", "no F: entry has kernel/toy.c"),
        ("patches/debian-hunks.txt", "", "kernel/sum.c:4,1\n", "lines that Debian's own patches"),
        ("tests/guest/plan", "", "kselftest toy/x\n", "kselftest:toy/x is not in the tree"),
        ("tests/plain", "", "text\n", "tests/plain: has no"),
        ("N.md", "", SPDX + "[a](series) [b](https://x.org) [c](gone)\n", "N.md: links to gone"),
        ("tests/fine", "", "rm $UNQUOTED/x\n", "SC2086"),
        ("tests/x", "", f"#!/usr/bin/python3\n{SPDX}import os\n", "tests/x:3:1: F401"),
        ("tests/fine.py", "", "NUMBER: int = \"one\"\n", "tests/fine.py:2: error: Incompatible")]}


@pytest.mark.parametrize("name", DEFECTS)
def test_defects(toy: Toy, name: str) -> None:
    """Each defect has its finding; a file without its executable bit and a path have theirs."""
    (toy.top / "selftests/toy/toy.sh").chmod(0o644)
    toy.edit("tests/fine", "", f"# {toy.top}/x\n")
    for path, old, new, _ in DEFECTS[name]:
        toy.edit(path, old, new)
    found = toy.run("stack/lint", status=1)
    assert not [words for *_, words in DEFECTS[name] if words not in found], found
    assert "tests/fine: holds this machine's path" in found
    assert f"\nlint: {found.count('lint: ') - 1} findings, " in found


def test_no_findings(whole: Toy, toy: Toy) -> None:
    """The clean toy has none; what is only said is none. quilt takes no binary file."""
    assert whole.run("stack/lint").startswith("lint: 0 findings")
    toy.edit("patches/debian-hunks.txt", "# tree ", "# tree 0")
    toy.shell("sed -i 's/line 1/line 0/' kernel/sum.c; git commit -q --amend -a --no-edit")
    toy.run("stack/refresh")
    said = toy.run("stack/lint", says="lint: 0 findings")
    assert "not held against" in said and "passed last on" in said
    toy.commit("toy: add a blob", "kernel/blob.c", "\0\1\2")
    toy.run("stack/refresh")
    toy.run("stack/lint", status=1, says="quilt push refuses")

# SPDX-License-Identifier: GPL-2.0
"""`make lint` says what is wrong, for every kind of wrong it knows.

Each test breaks one thing in a copy of this repository with a toy series on a
toy kernel of a few files (see toy.py), where lint takes seconds.
"""

import shutil
from pathlib import Path

import pytest

from toy import Toy, make_toy


@pytest.fixture(scope="module", name="clean")
def fixture_clean(tmp_path_factory: pytest.TempPathFactory) -> Toy:
    """A toy that lint is content with."""
    toy = make_toy(tmp_path_factory.mktemp("toy"))
    done = toy.run("make", "-s", "lint")
    assert done.returncode == 0, done.stdout + done.stderr
    return toy


@pytest.fixture(name="toy")
def fixture_toy(clean: Toy, tmp_path: Path) -> Toy:
    """A copy of the clean toy, to be broken."""
    shutil.copytree(clean.top, tmp_path / "copy", symlinks=True)
    # build/linux borrows build/base's objects, by a path of the original.
    (tmp_path / "copy/build/linux/.git/objects/info/alternates").write_text(
        f"{tmp_path}/copy/build/base/.git/objects\n")
    return Toy(tmp_path / "copy")


def finding(toy: Toy, *words: str) -> None:
    """Lint fails, and one line has all these words."""
    done = toy.run("make", "-s", "lint")
    assert done.returncode != 0, f"lint found nothing:\n{done.stdout}"
    lines = [line for line in done.stdout.splitlines() if all(word in line for word in words)]
    assert lines, f"no line with {words} in:\n{done.stdout}{done.stderr}"


def edit(path: Path, old: str, new: str) -> None:
    """Replace the first `old` in a file, which must be there."""
    text = path.read_text()
    assert old in text, f"{path} has no {old!r}"
    path.write_text(text.replace(old, new, 1))


def test_mirror_edited_by_hand(toy: Toy) -> None:
    """A byte differs from what the patches create."""
    edit(toy.top / "kernel/toy.c", "return 0", "return 1")
    finding(toy, "kernel/toy.c", "differs from what patches/ create", "make refresh")


def test_mirror_missing(toy: Toy) -> None:
    """A file the series creates has no copy."""
    (toy.top / "selftests/toy/toy.sh").unlink()
    finding(toy, "selftests/toy/toy.sh", "is missing", "make refresh")


def test_mirror_extra(toy: Toy) -> None:
    """A file at a kernel path that no patch creates."""
    (toy.top / "kernel/extra.c").write_text("int x;\n")
    finding(toy, "kernel/extra.c", "no patch creates it")


def test_mirror_mode(toy: Toy) -> None:
    """A script that lost its executable bit."""
    (toy.top / "selftests/toy/toy.sh").chmod(0o644)
    finding(toy, "selftests/toy/toy.sh", "executable bit")


def test_patch_missing_from_series(toy: Toy) -> None:
    """A patch file that series does not name."""
    edit(toy.top / "series", "0002-toy-add-a-new-file.patch\n", "")
    finding(toy, "0002-toy-add-a-new-file.patch", "is not in series")


def test_series_names_no_patch(toy: Toy) -> None:
    """A line of series without a file."""
    (toy.top / "patches/0003-toy-add-a-selftest.patch").unlink()
    finding(toy, "series:", "0003-toy-add-a-selftest.patch", "not in patches/")


def test_unknown_section(toy: Toy) -> None:
    """A heading that the design does not know."""
    edit(toy.top / "series", "# fixes", "# odds")
    finding(toy, "series:", "0001-toy-mend-the-sum.patch", "unknown")


def test_message_with_rest(toy: Toy) -> None:
    """A message with what an editor left behind its end."""
    edit(toy.top / "patches/0001-toy-mend-the-sum.patch", "\n---\n",
         "\n\nonto 1234567 # Next commands to do:\n---\n")
    finding(toy, "0001-toy-mend-the-sum.patch", "no Signed-off-by (onto 1234567")


def test_fuzz(toy: Toy) -> None:
    """A context line that is not quite the base's: patch -F1 would take it."""
    edit(toy.top / "patches/0001-toy-mend-the-sum.patch", " \t/* line 2 */", " \t/* line two */")
    finding(toy, "0001-toy-mend-the-sum.patch", "git am refuses it")


def test_checkpatch_error(toy: Toy) -> None:
    """A coding style error in an added line."""
    edit(toy.top / "patches/0002-toy-add-a-new-file.patch", "+\treturn 0;", "+\treturn(0);")
    finding(toy, "0002-toy-add-a-new-file.patch", "checkpatch", "kernel/toy.c", "RETURN_PARENTHESES")


def test_checkpatch_stale_exception(toy: Toy) -> None:
    """An exception that nothing needs."""
    with (toy.top / "stack/checkpatch.allow").open("a") as file:
        file.write("LONG_LINE kernel/no.c # it was long once\n")
    finding(toy, "stack/checkpatch.allow", "LONG_LINE", "remove it")


def test_shellcheck(toy: Toy) -> None:
    """A shell script that shellcheck refuses."""
    with (toy.top / "stack/clean").open("a") as file:
        file.write("rm $UNQUOTED/x\n")
    finding(toy, "stack/clean", "SC2086")


def test_python_syntax(toy: Toy) -> None:
    """A python file that does not compile."""
    (toy.top / "tests/broken.py").write_text("# SPDX-License-Identifier: GPL-2.0\ndef f(:\n")
    finding(toy, "tests/broken.py:2", "invalid syntax")


def test_no_licence(toy: Toy) -> None:
    """A file without an SPDX line."""
    (toy.top / "stack/plain").write_text("text\n")
    finding(toy, "stack/plain", "SPDX")


def test_path_of_this_machine(toy: Toy) -> None:
    """A file that holds an absolute path of this machine."""
    (toy.top / "stack/note").write_text(f"# SPDX-License-Identifier: GPL-2.0\n{toy.top}/x\n")
    finding(toy, "stack/note:2", "this machine's path")


def test_maintainers(toy: Toy) -> None:
    """An entry of MAINTAINERS.snippet that matches no file of the patched tree."""
    with (toy.top / "MAINTAINERS.snippet").open("a") as file:
        file.write("F:\tkernel/nowhere.c\n")
    finding(toy, "MAINTAINERS.snippet", "kernel/nowhere.c")


def test_debian_hunk(toy: Toy) -> None:
    """A hunk whose context reaches into lines that Debian changes."""
    with (toy.top / "stack/debian-hunks.txt").open("a") as file:
        file.write("kernel/sum.c:7,1\n")
    finding(toy, "0001-toy-mend-the-sum.patch", "kernel/sum.c", "Debian")


def test_debian_hunk_beside(toy: Toy) -> None:
    """The line after the last context line is nobody's business."""
    with (toy.top / "stack/debian-hunks.txt").open("a") as file:
        file.write("kernel/sum.c:10,1\n")
    done = toy.run("make", "-s", "lint")
    assert done.returncode == 0, done.stdout + done.stderr


def test_quilt(toy: Toy) -> None:
    """A binary file, which git am takes and quilt does not."""
    (toy.top / "build/linux/kernel/blob").write_bytes(b"\0\1\2")
    toy.commit("toy: add a blob", "Nobody can read it.")
    toy.must("stack/refresh")
    finding(toy, "0004-toy-add-a-blob.patch", "quilt push refuses it")


def test_maintainers_lack_a_file(toy: Toy) -> None:
    """A file that the series creates and no entry of MAINTAINERS.snippet has."""
    edit(toy.top / "MAINTAINERS.snippet", "F:\tkernel/toy.c\n", "")
    finding(toy, "MAINTAINERS.snippet", "kernel/toy.c", "which the series creates")

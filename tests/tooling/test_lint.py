# SPDX-License-Identifier: GPL-2.0
"""`make lint` says what is wrong, for every kind of wrong it knows.

Each test breaks one thing in a copy of this repository with a toy series on a
toy kernel of a few files (see toy.py), where lint takes seconds.
"""

import shutil
from pathlib import Path
from typing import Tuple

import pytest

from toy import Toy, add_cover, make_toy


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


def test_mirror_edited_by_hand(toy: Toy) -> None:
    """A byte differs from what the patches create."""
    toy.edit("kernel/toy.c", "return 0", "return 1")
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
    toy.edit("series", "02-file/0001-toy-add-a-new-file.patch\n", "")
    finding(toy, "patches/02-file/0001-toy-add-a-new-file.patch", "is not in series")


def test_series_names_no_patch(toy: Toy) -> None:
    """A line of series without a file."""
    (toy.top / "patches/02-file/0002-toy-add-a-selftest.patch").unlink()
    finding(toy, "series:", "02-file/0002-toy-add-a-selftest.patch", "not in patches/")


def test_patch_in_the_wrong_directory(toy: Toy) -> None:
    """A line of series that stands below another topic's heading."""
    line = "02-file/0001-toy-add-a-new-file.patch\n"
    toy.edit("series", line, "")
    toy.edit("series", "the-sum.patch\n", "the-sum.patch\n" + line)
    finding(toy, "series:", line.strip(), "wrong directory or number", "topic sum",
            "01-sum/0002-toy-add-a-new-file.patch")


def test_numbers_with_a_gap(toy: Toy) -> None:
    """Patches are numbered from 1 in each topic."""
    (toy.top / "patches/02-file/0002-toy-add-a-selftest.patch").rename(
        toy.top / "patches/02-file/0003-toy-add-a-selftest.patch")
    toy.edit("series", "02-file/0002", "02-file/0003")
    finding(toy, "02-file/0003-toy-add-a-selftest.patch", "it must be 02-file/0002-")


def test_no_cover_letter(toy: Toy) -> None:
    """A topic that cannot be sent."""
    (toy.top / "patches/02-file/cover.txt").unlink()
    finding(toy, "patches/02-file/cover.txt is missing", "From:")


def test_cover_letter_without_subject(toy: Toy) -> None:
    """A cover letter that no mail can be made of."""
    toy.edit("patches/02-file/cover.txt", "Subject: [PATCH] ", "About: ")
    finding(toy, "patches/02-file/cover.txt", "Subject: [PATCH]", "write them")


def test_stale_diffstat(toy: Toy) -> None:
    """The diffstat of a cover letter is that of the patches."""
    toy.edit("patches/02-file/cover.txt", "2 files changed", "3 files changed")
    finding(toy, "patches/02-file/cover.txt", "not the diffstat", "make refresh")


def test_stray_file_among_the_patches(toy: Toy) -> None:
    """A file in patches/ that belongs to no topic, such as a cover letter of them all."""
    (toy.top / "patches/cover-letter.txt").write_text("all\n")
    finding(toy, "patches/cover-letter.txt", "is not in series")


@pytest.mark.parametrize("old, new, words", [
    ("needs: none", "needs: nosuch", ("topic sum needs nosuch", "no topic")),
    ("needs: none", "needs: file", ("topic sum needs file", "comes later")),
    ("# state: not sent\n", "", ("topic sum has no \"# state:\"",))],
    ids=["unknown-need", "later-need", "missing-field"])
def test_bad_series(toy: Toy, old: str, new: str, words: Tuple[str, ...]) -> None:
    """The fields of a topic."""
    toy.edit("series", old, new)
    finding(toy, "series:", *words)


def build_on_sum(toy: Toy, needs: str) -> None:
    """A third topic, whose patch has a line of the first one's in its context."""
    toy.edit("build/linux/kernel/sum.c", "\t/* line 3 */", "\t/* line three */")
    toy.commit("toy: spell a number", "It builds on the sum.")
    with (toy.top / "series").open("a") as file:
        file.write(f"\n# topic: more\n# needs: {needs}\n# upstream: x\n# state: not sent\n"
                   "toy-spell-a-number\n")
    add_cover(toy, "03-more")
    toy.must("stack/refresh")


@pytest.mark.parametrize("needs", ["none", "file"])
def test_topic_that_needs_another(toy: Toy, needs: str) -> None:
    """A topic that does not apply on what it declares: the missing need is named, and
    no other."""
    build_on_sum(toy, needs)
    finding(toy, "patches/03-more/0001-toy-spell-a-number.patch", "topic more needs",
            "also builds on sum:")


@pytest.mark.parametrize("needs", ["sum", "sum, file"])
def test_topic_with_its_needs(toy: Toy, needs: str) -> None:
    """The same topic, with the need declared."""
    build_on_sum(toy, needs)
    done = toy.run("make", "-s", "lint")
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("subject, word", [
    ("toy: Let the sum be a sum", "begins with \"Let\""),
    ("toy/core, x: Let the sum be a sum", "begins with \"Let\""),
    ("toy: make the sum of two numbers a sum of two numbers, and not their difference",
     "80 characters")])
def test_subject(toy: Toy, subject: str, word: str) -> None:
    """A subject that does not say what the patch does, or that no log shows whole."""
    toy.edit("patches/01-sum/0001-toy-mend-the-sum.patch", "Subject: [PATCH] toy: mend the sum",
             f"Subject: [PATCH] {subject[:70]}\n {subject[70:]}" if len(subject) > 70
             else f"Subject: [PATCH] {subject}")
    finding(toy, "patches/01-sum/0001-toy-mend-the-sum.patch", word)


def test_let_elsewhere_in_a_subject(toy: Toy) -> None:
    """"let" is a word like others."""
    toy.edit("patches/01-sum/0001-toy-mend-the-sum.patch", "toy: mend the sum",
             "toy: Letters are no numbers, let alone sums")
    done = toy.run("make", "-s", "lint")
    assert done.returncode == 0, done.stdout + done.stderr


def test_message_with_rest(toy: Toy) -> None:
    """A message with what an editor left behind its end."""
    toy.edit("patches/01-sum/0001-toy-mend-the-sum.patch", "\n---\n",
         "\n\nonto 1234567 # Next commands to do:\n---\n")
    finding(toy, "patches/01-sum/0001-toy-mend-the-sum.patch", "no Signed-off-by (onto 1234567")


def test_fuzz(toy: Toy) -> None:
    """A context line that is not quite the base's: patch -F1 would take it."""
    toy.edit("patches/01-sum/0001-toy-mend-the-sum.patch", " \t/* line 2 */", " \t/* line two */")
    finding(toy, "patches/01-sum/0001-toy-mend-the-sum.patch", "git am refuses it")


def test_checkpatch_error(toy: Toy) -> None:
    """A coding style error in an added line."""
    toy.edit("patches/02-file/0001-toy-add-a-new-file.patch", "+\treturn 0;", "+\treturn(0);")
    finding(toy, "patches/02-file/0001-toy-add-a-new-file.patch", "checkpatch", "kernel/toy.c",
            "RETURN_PARENTHESES")


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


def test_pylint(toy: Toy) -> None:
    """What pylint finds in a module, and in a command without a suffix."""
    (toy.top / "stack/command").write_text(
        "#!/usr/bin/python3\n# SPDX-License-Identifier: GPL-2.0\n\"\"\"A command.\"\"\"\n"
        "import os\n")
    finding(toy, "stack/command:4", "unused-import")


def test_pylint_looks_again_when_an_import_changes(toy: Toy) -> None:
    """What was found of a file is kept only as long as what it imports stays the same."""
    (toy.top / "tests/used.py").write_text(
        "# SPDX-License-Identifier: GPL-2.0\n\"\"\"A module.\"\"\"\nNAME = 1\n")
    (toy.top / "tests/user.py").write_text(
        "# SPDX-License-Identifier: GPL-2.0\n\"\"\"Another.\"\"\"\nimport used\n\n"
        "print(used.NAME)\n")
    done = toy.run("make", "-s", "lint")
    assert done.returncode == 0, done.stdout + done.stderr
    toy.edit("tests/used.py", "NAME", "OTHER")
    finding(toy, "tests/user.py:5", "no-member")


def test_mypy(toy: Toy) -> None:
    """What mypy finds in a module."""
    (toy.top / "tests/typed.py").write_text(
        "# SPDX-License-Identifier: GPL-2.0\n\"\"\"A module.\"\"\"\nNUMBER: int = \"one\"\n")
    finding(toy, "tests/typed.py:3", "Incompatible types")


def test_untyped_function_in_the_package(toy: Toy) -> None:
    """The package has types throughout."""
    (toy.top / "stack/perfbpf/untyped.py").write_text(
        "# SPDX-License-Identifier: GPL-2.0\n\"\"\"A module.\"\"\"\n\n\n"
        "def untyped(number):\n    \"\"\"Return it.\"\"\"\n    return number\n")
    finding(toy, "stack/perfbpf/untyped.py:5", "no-untyped-def")


def test_mirror_not_marked(toy: Toy) -> None:
    """A directory of mirrors that the host of the repository shows as if written here."""
    toy.edit(".gitattributes", "/selftests/** linguist-generated\n", "")
    finding(toy, ".gitattributes", "selftests/", "add the line")


def test_mirror_without_note(toy: Toy) -> None:
    """A directory of mirrors that does not say so."""
    (toy.top / "kernel/README.md").unlink()
    finding(toy, "kernel/README.md", "is missing", "make refresh")


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
    finding(toy, "patches/01-sum/0001-toy-mend-the-sum.patch", "kernel/sum.c", "Debian")


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
    finding(toy, "patches/02-file/0003-toy-add-a-blob.patch", "quilt push refuses it")


def test_maintainers_lack_a_file(toy: Toy) -> None:
    """A file that the series creates and no entry of MAINTAINERS.snippet has."""
    toy.edit("MAINTAINERS.snippet", "F:\tkernel/toy.c\n", "")
    finding(toy, "MAINTAINERS.snippet", "kernel/toy.c", "which the series creates")


def test_link_to_nowhere(toy: Toy) -> None:
    """A relative link of a Markdown file to a file that is not there."""
    (toy.top / "NOTES.md").write_text("<!-- SPDX-License-Identifier: GPL-2.0 -->\n"
                                      "[here](series), [web](https://kernel.org/),"
                                      " [gone](patches/gone.patch)\n")
    finding(toy, "NOTES.md:2", "patches/gone.patch", "not there")

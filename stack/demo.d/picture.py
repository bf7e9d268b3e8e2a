#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""picture.py TITLE FILE.svg: the text on standard input, with its colours, as a picture."""
import io
import re
import sys

from rich import _export_format
from rich.console import Console
from rich.text import Text

# The template fetches its font from the network; the viewer's own will do.
FORMAT = ("<!-- SPDX-License-Identifier: GPL-2.0 -->\n"
          + re.sub(r"@font-face \{\{.*?\}\}\s*", "", _export_format.CONSOLE_SVG_FORMAT, flags=re.S))


def main(title: str, path: str) -> None:
    """Write the picture (OSError: it cannot be written)."""
    text = Text.from_ansi(sys.stdin.read().expandtabs().rstrip("\n"))
    width = max(len(line) for line in text.plain.splitlines())
    console = Console(record=True, width=width, file=io.StringIO(), force_terminal=True,
                      color_system="standard")
    console.print(text, no_wrap=True, crop=False)
    console.save_svg(path, title=title, code_format=FORMAT)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(f"usage: {sys.argv[0]} TITLE FILE.svg < text")
    main(sys.argv[1], sys.argv[2])

# SPDX-License-Identifier: GPL-2.0
"""Relative links of Markdown files, and those to patches, which get other numbers.

A link to a patch is `[NN/NNNN](.../NN-TOPIC/NNNN-SLUG.patch)`; the slug is what
a patch is known by when its number or its topic's has changed.
"""
from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from perfbpf.series import Series, slug

LINK = re.compile(r"\]\(([^)#\s]+)(?:#[^)\s]*)?\)")
PATCH_LINK = re.compile(r"\[(\d\d/\d{4})\]\(([^)\s]*?)(\d\d-[a-z0-9-]+/\d{4}-[^)\s/]+\.patch)\)")
ELSEWHERE = re.compile(r"[a-z]+:|/")


def broken(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the line and the target of each relative link to a file that is not there."""
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        for target in LINK.findall(line):
            if not ELSEWHERE.match(target) and not (path.parent / target).exists():
                yield number, target


def renumber(text: str, series: Series) -> str:
    """Return the text with each link to a patch leading to where `series` has its slug.

    A slug that `series` has not, or has in several topics, is left as it is.
    """
    places: dict[str, list[str]] = {}
    for name in series.patches():
        places.setdefault(slug(name), []).append(name)

    def moved(match: re.Match[str]) -> str:
        known = places.get(slug(match[3]), [])
        if match[3] in known or len(known) != 1:
            return match[0]
        topic, _, patch = known[0].partition("/")
        return f"[{topic[:2]}/{patch[:4]}]({match[2]}{known[0]})"

    return PATCH_LINK.sub(moved, text)

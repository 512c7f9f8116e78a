"""Recognises lines inside an article's element that are not part of it: calls to action, related stories, bios.

Their patterns are in ``trimming.txt``.
"""

import re

from .. import read_lists
from .layout import any_of

_PATTERNS = read_lists(__package__, "trimming.txt")
_BOILERPLATE = re.compile(rf"(?i)^\W*{any_of(_PATTERNS['boilerplate'])}")
_RIGHTS = re.compile(r"(?i)\ball rights reserved\b|版权(?:说明|保护|声明|所有)")
_END = re.compile(rf"(?i)^\W*{any_of(_PATTERNS['end'])}\W*$")
_PORTRAIT = re.compile(any_of(_PATTERNS["portrait"]), re.IGNORECASE)
_APPEAL = re.compile(any_of(_PATTERNS["appeal"]), re.IGNORECASE)
MAX_LINE = 400
_MIN_REPEATED_LINES, _MIN_REPEATED_CHARACTERS = 3, 1_000


def is_boilerplate(line: str) -> bool:
    """Returns whether a line is a call to action, a label or a notice of the site."""
    if len(line) > MAX_LINE:
        return False
    if _BOILERPLATE.match(line) is not None:
        return True
    # The search itself is slow on lines without these letters, which are nearly all.
    return ("ights" in line or "IGHTS" in line or "版" in line) and _RIGHTS.search(line) is not None


def ends_article(heading: str) -> bool:
    """Returns whether a heading introduces content after the end of an article."""
    return len(heading) <= 100 and _END.match(heading) is not None


def is_portrait(line: str) -> bool:
    """Returns whether a line at the end of an article is about its author."""
    return len(line) <= 2 * MAX_LINE and _PORTRAIT.search(line) is not None


def is_appeal(line: str) -> bool:
    """Returns whether a line at the end of an article asks readers to subscribe, to install or to write to the site."""
    return len(line) <= MAX_LINE and _APPEAL.search(line) is not None


def without_repeats(lines: list[str]) -> list[str]:
    """Returns lines without the passages that are there twice: some pages have their text once for each size of screen.

    A passage is repeated if at least three lines with 1,000 characters follow each other as they did before.
    """
    if len(set(lines)) == len(lines):
        return lines
    kept, first = list[str](), dict[str, int]()
    place = 0
    while place < len(lines):
        earlier = first.setdefault(lines[place], place)
        count = 0
        while place + count < len(lines) and earlier + count < place and lines[earlier + count] == lines[place + count]:
            count += 1
        characters = sum(map(len, lines[place : place + count]))
        if count < _MIN_REPEATED_LINES or characters < _MIN_REPEATED_CHARACTERS:
            kept.append(lines[place])
            count = 1
        place += count
    return kept

"""Removes the name of the site from the title of an article."""

# ruff: noqa: RUF001 - the marks that pages are written with

import itertools
import re
from collections.abc import Iterable
from typing import Any
from urllib.parse import urlsplit

from .nodes import letters_of, text_of

_MARKS = re.compile(r"\s+[|\-–—•·»«:/~]{1,2}\s+|\s*[|»]\s*|:\s+")
_MAX_CHARACTERS = 500


def clean_title(title: str, site_names: Iterable[str], url: str, headings: Iterable[str] = ()) -> str:
    """Returns a title without the site's name at either end and the separator next to it.

    >>> clean_title("Council raises embankment - The River News", ["The River News"], "http://rivernews.example/1")
    'Council raises embankment'

    Args:
      title: the title.
      site_names: names of the site.
      url: URL of the page; its host may be the name of the site too ("rivernews").
      headings: headings of the page; a title that consists of a heading, a separator and more text is reduced to the
        heading.
    """
    title = " ".join(title.split())[:_MAX_CHARACTERS]
    names = {letters_of(name) for name in site_names}
    host = (urlsplit(url).hostname or "").removeprefix("www.")
    names |= {
        letters_of(host),
        letters_of(host.split(".")[0]),
        *(letters_of(".".join(host.split(".")[-n:-1])) for n in (2, 3)),
    }
    names = {name for name in names if len(name) > 1} | {f"the{name}" for name in names if len(name) > 1}
    for _ in range(3):  # the site's name may be given several times
        shorter = _without(title, names)
        if shorter == title:
            break
        title = shorter
    for heading in headings:
        if len(heading) >= 15 and title != heading and title.startswith(heading) and _MARKS.match(title, len(heading)):
            return heading
    return title


def _without(title: str, names: set[str]) -> str:
    for mark in _MARKS.finditer(title):
        head, tail = title[: mark.start()].strip(), title[mark.end() :].strip()
        if head and tail and letters_of(tail) in names:
            return head
        if head and tail and letters_of(head) in names and len(tail.split()) > 2:
            return tail
    return title


def headings_of(tree: Any) -> list[str]:
    """Returns the texts of the first five ``h1`` elements."""
    return [text for node in itertools.islice(tree.iter("h1"), 5) if (text := text_of(node, _MAX_CHARACTERS))]


def element_title(tree: Any) -> str:
    """Returns the text of the ``title`` element, or ""."""
    node = next(tree.iter("title"), None)
    return text_of(node, _MAX_CHARACTERS) if node is not None else ""

"""Extracts visible bylines and dates, for pages whose metadata lack them."""

# ruff: noqa: RUF001 - the marks that pages are written with

import datetime
import re
from collections.abc import Iterator
from typing import Any

from lxml import etree

from .dates import day_in_text, parse_day
from .hints import Name, judge_name
from .layout import Layout
from .nodes import text_of

_MAX_BYLINE = 200
_MAX_CANDIDATES = 60
# Through the attributes: a test of each element takes twice the time.
_BYLINES = tuple(
    etree.XPath(path)
    for path in (
        "//@itemprop[contains(., 'author')]/.. | //@rel[contains(., 'author')]/..",
        """//@class[contains(., 'byline') or contains(., 'Byline')]/.. | //@data-testid[contains(., 'byline')]/..
            | //@id[contains(., 'byline')]/..""",
        "//@class[contains(., 'author') or contains(., 'Author')]/..",
    )
)
_BY_LINE = re.compile(
    r"^\W*(?:(?:written|posted|published|reported|story)\s+)?(?:by|von|por|par|di)[\s:]+(?=\S{2,}\s+\S{2,})",
    re.IGNORECASE,
)
_NAME_CASE = re.compile(r"^\W*\S+(?:\s+\S+)?[\s:]+(?:[^\W\d_][\w.’'-]*\s+)*?[A-ZÀ-Þ\u0400-\u042f]")
_UPDATED = re.compile(r"updat|modif|edit|actuali|aktualis|mis à jour|обновл", re.IGNORECASE)
_POSTED = re.compile(r"publi|post|creat|issued|entry-date|dateline|date_?time|timestamp|byline", re.IGNORECASE)
_DATES = tuple(
    etree.XPath(path)
    for path in (
        "//@itemprop[contains(., 'date')]/..",
        "//time | //abbr[@title]",
        """//@class[contains(., 'date') or contains(., 'Date') or contains(., 'timestamp')
            or contains(., 'published')]/..""",
        "//@class[contains(., 'posted') or contains(., 'pubtime')]/.. | //@id[contains(., 'date')]/..",
    )
)


def bylines(tree: Any, layout: Layout) -> tuple[str, ...]:
    """Returns the raw texts of the page's byline; () if there is none."""
    for path in _BYLINES:
        found: list[str] = []
        around: set[Any] = set()
        for node in _candidates(tree, path):
            text = _byline_text(node)
            if not text:
                continue
            above = [node, *node.iterancestors()]
            if found and not around.intersection(above[:4]):
                break  # belongs to another story
            around.update(above[1:4])
            found.append(text)
        if found:
            return tuple(dict.fromkeys(found))
    prose = 0
    for block in layout.blocks:
        prose += block.prose > 0
        if prose > 3:
            break
        if len(block.text) <= _MAX_BYLINE // 2 and _BY_LINE.match(block.text) and _NAME_CASE.match(block.text):
            return (block.text,)
    return ()


def _candidates(tree: Any, path: etree.XPath) -> Iterator[Any]:
    """Yields the first elements of a path that are not in comments, sidebars, navigation or footers."""
    for node in path(tree)[:_MAX_CANDIDATES]:
        if node.tag in ("meta", "link", "script", "html", "body", "article", "main"):
            continue
        for above in node.iterancestors():
            if (
                above.tag in ("aside", "footer", "nav")
                or judge_name(f"{above.get('class', '')} {above.get('id', '')}") is Name.NEVER
            ):
                break
        else:
            if judge_name(f"{node.get('class', '')} {node.get('id', '')}") is not Name.NEVER:
                yield node


def _byline_text(node: Any) -> str:
    whole = text_of(node, _MAX_BYLINE + 1)
    if len(whole) > _MAX_BYLINE:
        return ""
    names = node.xpath(".//*[@itemprop='name']")[:_MAX_CANDIDATES]
    text = (
        ", ".join(text_of(name, _MAX_BYLINE) or name.get("content", "") for name in names)
        or whole
        or node.get("content", "")
    )
    return text if 3 < len(text) <= _MAX_BYLINE and any(letter.isalpha() for letter in text) else ""


def days(tree: Any, layout: Layout) -> tuple[datetime.date | None, datetime.date | None]:
    """Returns the visible days of (first publication, last modification)."""
    published: datetime.date | None = None
    modified: datetime.date | None = None
    for path in _DATES:
        for node in _candidates(tree, path):
            name = " ".join(node.get(attribute, "") for attribute in ("itemprop", "class", "id", "data-testid"))
            words = text_of(node, _MAX_BYLINE)
            day = _day_of(node, words)
            if day is None:
                continue
            if _UPDATED.search(name) or _UPDATED.match(words):
                modified = modified or day
            elif published is None and (_POSTED.search(name) or node.tag == "time" or "date" in name.lower()):
                published = day
        if published:
            break
    return published or _first_in_blocks(layout), modified


def _day_of(node: Any, words: str) -> datetime.date | None:
    for attribute in ("datetime", "content", "title", "data-datetime", "data-timestamp", "data-date"):
        if (day := parse_day(node.get(attribute))) is not None and _plausible(day):
            return day
    day = day_in_text(words)
    return day if day is not None and _plausible(day) else None


def _first_in_blocks(layout: Layout) -> datetime.date | None:
    """Returns the first day in a short line before, or soon after, the start of the text."""
    prose = 0
    for block in layout.blocks:
        prose += block.prose > 0
        if prose > 2:
            return None
        if len(block.text) <= _MAX_BYLINE // 2 and not block.prose and not _UPDATED.match(block.text):
            day = day_in_text(block.text)
            if day is not None and _plausible(day):
                return day
    return None


def _plausible(day: datetime.date) -> bool:
    return 1990 <= day.year <= 2100

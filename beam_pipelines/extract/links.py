"""Extracts the links of a page: canonical targets with their texts."""

import itertools
import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Any
from urllib.parse import urlsplit

from ...formats.urls import canonical_url
from .nodes import text_of

MAX_LINKS = 5_000  # per page, unless the options say otherwise; more links are a crawler trap
_MAX_TEXT = 300
_MAX_GENERIC = 60
_MAX_CACHED = 500  # longest link that is cached, in characters
_GENERIC = re.compile(
    r"^\W*(read|see|view|show|load|learn|find)?\s*"
    r"(more|all|next|previous|back|here|full story|continue reading|comments?|share)\W*$",
    re.IGNORECASE,
)
_NO_PAGE = ("#", "javascript:", "mailto:", "tel:", "data:", "whatsapp:", "sms:", "about:", "blob:")


def links_of(tree: Any, url: str, max_links: int = MAX_LINKS) -> tuple[tuple[tuple[str, str], ...], int]:
    """Returns unique (canonical URL, link text) pairs in order, and the number of anchors beyond the limit.

    Links to the page itself are left out. Generic texts, such as "Read more", are replaced by "".

    Args:
      tree: a parsed page.
      url: canonical URL of the page.
      max_links: number of pairs to return; at most four times as many anchors are read.
    """
    anchors = tree.iter("a")
    found = tuple(itertools.islice(_links(itertools.islice(anchors, 4 * max_links), url), max_links))
    return found, sum(1 for anchor in anchors if anchor.get("href"))


def _links(anchors: Iterator[Any], url: str) -> Iterator[tuple[str, str]]:
    parts = urlsplit(url)
    origin = f"{parts.scheme}://{parts.netloc}/"
    seen: set[tuple[str, str]] = set()
    for anchor in anchors:
        # Pages of a site share most links, so results are cached; only relative links depend on the page.
        href = anchor.get("href")
        if not href:
            continue
        rooted = href.startswith(("/", "http")) and len(href) <= _MAX_CACHED
        target = _canonical(href, origin) if rooted else _target(href, url)
        if not target or target == url:
            continue
        text = (
            text_of(anchor, _MAX_TEXT)
            if len(anchor)
            else " ".join((anchor.text or "")[: 4 * _MAX_TEXT].split())[:_MAX_TEXT]
        )
        if len(text) <= _MAX_GENERIC and _GENERIC.match(text):
            text = ""
        if (target, text) not in seen:
            seen.add((target, text))
            yield target, text


@lru_cache(maxsize=20_000)
def _canonical(href: str, origin: str) -> str:
    return canonical_url(href, origin)


def _target(href: str, url: str) -> str:
    href = href.strip()
    return "" if href.lower().startswith(_NO_PAGE) else canonical_url(href, url)

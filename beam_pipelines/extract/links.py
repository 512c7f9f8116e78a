"""Links of a page: canonical targets with their texts."""

import itertools
import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Any
from urllib.parse import urlsplit

from .nodes import text_of
from .urls import canonical_url

_MAX_LINKS = 5_000  # of one page; more is a trap, or no page
_MAX_TEXT = 300
_MAX_GENERIC = 60
_MAX_KEPT = 500  # characters of a link that is remembered
_GENERIC = re.compile(
    r"^\W*(read|see|view|show|load|learn|find)?\s*(more|all|next|previous|back|here|full story|continue reading|comments?|share)\W*$",
    re.IGNORECASE,
)
_NO_PAGE = ("#", "javascript:", "mailto:", "tel:", "data:", "whatsapp:", "sms:", "about:", "blob:")


def links_of(tree: Any, url: str) -> Iterator[tuple[str, str]]:
    """(canonical URL, link text) in order, each pair once, without links to the page itself; generic texts are emptied.

    Args:
      tree: a parsed page.
      url: its address, canonical.
    """
    parts = urlsplit(url)
    origin = f"{parts.scheme}://{parts.netloc}/"
    seen: set[tuple[str, str]] = set()
    for anchor in itertools.islice(tree.iter("a"), 4 * _MAX_LINKS):
        # The same links stand on every page of a site; only relative ones depend on where they stand.
        href = anchor.get("href")
        if not href:
            continue
        rooted = href.startswith(("/", "http")) and len(href) <= _MAX_KEPT
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
            if len(seen) >= _MAX_LINKS:
                return


@lru_cache(maxsize=20_000)
def _canonical(href: str, origin: str) -> str:
    return canonical_url(href, origin)


def _target(href: str, url: str) -> str:
    href = href.strip()
    return "" if href.lower().startswith(_NO_PAGE) else canonical_url(href, url)

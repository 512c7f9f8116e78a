"""Parses RSS, Atom, RDF and JSON feeds: title, links of the entries, days and authors."""

import dataclasses
import datetime
from collections.abc import Iterable, Iterator
from typing import Any

from lxml import etree

from .dates import is_impossible, parse_day
from .loose_json import load_json
from .nodes import child_text, local_name

MAX_ENTRIES = 5_000
_MAX_AUTHORS = 10
_DAYS = ("pubdate", "published", "date", "issued", "created")  # elements of an entry, in this order

_Entry = tuple[str, str, datetime.date | None, tuple[str, ...]]  # link, title, day, authors


@dataclasses.dataclass(frozen=True)
class Feed:
    """A feed.

    Attributes:
      title: title of the feed.
      entries: (link, entry title), in order.
      stated: (link, day of publication, authors as written) of the entries with a day or authors.
      dropped: number of entries after the first ``MAX_ENTRIES``.
      impossible_dates: number of entries whose stated day does not exist.
    """

    title: str
    entries: tuple[tuple[str, str], ...]
    stated: tuple[tuple[str, datetime.date | None, tuple[str, ...]], ...] = ()
    dropped: int = 0
    impossible_dates: int = 0


def parse_feed(raw: bytes) -> Feed | None:
    """Returns a parsed feed in any of the formats; ``None`` if the bytes are not a feed.

    Broken XML is read as far as possible. Entities are not expanded, and nothing is fetched.
    """
    start = raw.lstrip(b"\xef\xbb\xbf \t\r\n")
    if start[:1] == b"{":
        return _json_feed(start)
    if start[:1] != b"<" or not _looks_like_feed(start[:2000].lower()):
        return None
    parser = etree.XMLParser(recover=True, resolve_entities=False, no_network=True, huge_tree=False)
    root = etree.fromstring(start, parser)
    if root is None or local_name(root) not in {"rss", "feed", "rdf"}:
        return None
    channel = next((child for child in root if local_name(child) == "channel"), root)
    entries = [node for node in root.iter() if local_name(node) in {"item", "entry"}]
    read = entries[:MAX_ENTRIES]
    texts = [[child_text(entry, name) for name in _DAYS] for entry in read]
    found = [
        (_link(entry), child_text(entry, "title"), _first_day(stated), _authors(entry))
        for entry, stated in zip(read, texts, strict=True)
    ]
    return _feed(child_text(channel, "title"), found, len(entries), _impossible_dates(texts))


def _feed(title: str, found: Iterable[_Entry], count: int, impossible_dates: int) -> Feed:
    linked = [entry for entry in found if entry[0]]
    stated = tuple((link, day, authors) for link, _, day, authors in linked if day or authors)
    entries = tuple((link, text) for link, text, _, _ in linked)
    return Feed(title, entries, stated, max(0, count - MAX_ENTRIES), impossible_dates)


def _first_day(texts: Iterable[Any]) -> datetime.date | None:
    return next((day for text in texts if (day := parse_day(text)) is not None), None)


def _impossible_dates(stated: Iterable[Iterable[Any]]) -> int:
    """Returns the number of entries whose day does not exist; the texts of each entry are given."""
    return sum(any(map(is_impossible, texts)) for texts in stated)


def _authors(entry: etree._Element) -> tuple[str, ...]:
    named = (child for child in entry if local_name(child) in ("creator", "author"))
    texts = (child_text(child, "name") or " ".join("".join(child.itertext()).split()) for child in named)
    return tuple(text for text in texts if text)[:_MAX_AUTHORS]


def _looks_like_feed(head: bytes) -> bool:
    return any(sign in head for sign in (b"<rss", b"<feed", b"<rdf", b":rdf"))


def _link(entry: etree._Element) -> str:
    links = [child for child in entry if local_name(child) == "link"]
    for link in links:
        if link.get("href") and link.get("rel", "alternate") == "alternate":
            return str(link.get("href")).strip()
    for link in links:
        if link.text and link.text.strip():
            return str(link.text).strip()
    for child in entry:
        if (
            local_name(child) == "guid"
            and child.get("isPermaLink", "true").lower() == "true"
            and (child.text or "").strip().startswith("http")
        ):
            return str(child.text).strip()
    return ""


def _json_feed(raw: bytes) -> Feed | None:
    try:
        value = load_json(raw)
    except ValueError:
        return None
    if not isinstance(value, dict) or "jsonfeed.org" not in str(value.get("version", "")):
        return None
    items = [item for item in value.get("items") or [] if isinstance(item, dict)]
    found = [
        (
            str(item.get("url") or item.get("external_url") or ""),
            str(item.get("title") or ""),
            parse_day(item.get("date_published")),
            tuple(_json_authors(item)),
        )
        for item in items[:MAX_ENTRIES]
    ]
    impossible = _impossible_dates([item.get("date_published")] for item in items[:MAX_ENTRIES])
    return _feed(str(value.get("title") or ""), found, len(items), impossible)


def _json_authors(item: dict[str, Any]) -> Iterator[str]:
    given = item.get("authors") or [item.get("author")]
    for author in given if isinstance(given, list) else []:
        name = author.get("name") if isinstance(author, dict) else None
        if isinstance(name, str) and name.strip():
            yield name.strip()

"""Reads RSS, Atom, RDF and JSON feeds: title, links of the entries, days and authors."""

import dataclasses
import datetime
import html
import re
from collections.abc import Callable
from typing import Any, Final
from urllib.parse import urljoin

from ...formats.dates import parse_day
from ...formats.jsonl import load_json
from .charsets import readable
from .xml_text import child_text, head_of, local_name, parse_xml, root_of, whole_text, xml_source

MAX_ENTRIES = 5_000
FEED_ROOTS: Final = ("rss", "feed", "rdf")
_MAX_AUTHORS = 10
_DAYS = ("pubdate", "published", "date", "issued", "created", "publicationdate")  # elements of an entry, in this order
_BASE: Final = "{http://www.w3.org/XML/1998/namespace}base"
_TAG: Final = re.compile(r"</?[A-Za-z][^<>]*>")
_NAMED_ADDRESS: Final = re.compile(r"[^\s@]++@[^\s(]++\s*\(([^()]+)\)")  # of RSS: marta@herald.example (Marta Olsen)

_Entry = tuple[str, str, list[Any], tuple[str, ...]]  # link, title, days as written, authors
_Entries = tuple[str, list[Any], Callable[[Any], _Entry]]  # title of the feed, its entries, and their reader


@dataclasses.dataclass(frozen=True)
class Feed:
    """A feed.

    Attributes:
      title: title of the feed.
      entries: (absolute link, entry title), in order.
      stated: (link, day of publication, authors as written) of the entries with a day or authors.
      dropped: number of entries after the first ``MAX_ENTRIES``.
    """

    title: str
    entries: tuple[tuple[str, str], ...]
    stated: tuple[tuple[str, datetime.date | None, tuple[str, ...]], ...] = ()
    dropped: int = 0


def parse_feed(raw: bytes, url: str = "", charset: str = "") -> Feed | None:
    """Returns a parsed feed in any of the formats; ``None`` if the bytes are not a feed.

    XML that is not well-formed is repaired, and read as far as possible. Nothing is fetched.

    Args:
      raw: the body.
      url: of the feed, with which its relative links are joined.
      charset: charset in the HTTP header, or "".
    """
    start = raw.lstrip(b"\xef\xbb\xbf \t\r\n")
    feed = _of_json(start) if start[:1] == b"{" else _of_xml(raw, charset)
    if feed is None:
        return None
    title, items, read = feed
    entries: list[tuple[str, str]] = []
    stated: list[tuple[str, datetime.date | None, tuple[str, ...]]] = []
    for given, text, days, authors in map(read, items[:MAX_ENTRIES]):
        if link := _joined(url, given):
            entries.append((link, text))
            day = next((day for one in days if (day := parse_day(one)) is not None), None)
            if day or authors:
                stated.append((link, day, authors))
    return Feed(title, tuple(entries), tuple(stated), max(0, len(items) - MAX_ENTRIES))


def _joined(base: str, link: str) -> str:
    try:
        return urljoin(base, link) if link else ""
    except ValueError:
        return link


def _of_xml(raw: bytes, charset: str) -> _Entries | None:
    if root_of(head_of(raw)) not in FEED_ROOTS:
        return None
    source = xml_source(raw, charset)
    root = parse_xml(source) if source else None
    if root is None or local_name(root) not in FEED_ROOTS:
        return None
    channel = next((child for child in root if local_name(child) == "channel"), root)
    entries = [node for node in root.iter() if local_name(node) in {"item", "entry"}]
    return _plain(child_text(channel, "title")), entries, _xml_entry


def _xml_entry(entry: Any) -> _Entry:
    named = (child for child in entry if local_name(child) in ("creator", "author"))
    authors = dict.fromkeys(child_text(child, "name") or whole_text(child) for child in named)
    texts: list[Any] = [child_text(entry, name) for name in _DAYS]
    people = (match[1].strip() if (match := _NAMED_ADDRESS.fullmatch(author)) else author for author in authors)
    return _link(entry), _plain(child_text(entry, "title")), texts, tuple(filter(None, people))[:_MAX_AUTHORS]


def _plain(text: str) -> str:
    """A title without markup: that of RSS and Atom may be HTML."""
    return readable(html.unescape(_TAG.sub("", text))) if "<" in text or "&" in text else text


def _link(entry: Any) -> str:
    """The address of an entry's page, joined with the bases that the document states (XML Base)."""
    links = [child for child in entry if local_name(child) == "link"]
    pages = [link for link in links if link.get("rel", "alternate").lower() in ("alternate", "")]
    pages.sort(key=lambda link: "html" not in link.get("type", "html"))
    found = [(child, whole_text(child)) for child in entry if local_name(child) == "origlink"]  # behind a counter
    found += [(link, link.get("href", "")) for link in pages] + [(link, whole_text(link)) for link in links]
    found += [
        (child, text)
        for child in entry
        if local_name(child) in ("guid", "id")
        and child.get("isPermaLink", "true").lower() == "true"
        and (text := whole_text(child)).startswith("http")
    ]
    node, address = next(((node, text.strip()) for node, text in found if text.strip()), (None, ""))
    while "&amp;" in address:  # escaped twice
        address = address.replace("&amp;", "&")
    while node is not None:
        address, node = _joined(node.get(_BASE, ""), address), node.getparent()
    return address


def _of_json(raw: bytes) -> _Entries | None:
    try:
        value = load_json(raw)
    except ValueError:
        return None
    if not isinstance(value, dict) or "jsonfeed.org" not in str(value.get("version", "")):
        return None
    items = [item for item in value.get("items") or [] if isinstance(item, dict)]
    return str(value.get("title") or ""), items, _json_entry


def _json_entry(item: dict[str, Any]) -> _Entry:
    given = item.get("authors") or [item.get("author")]
    names = [author.get("name") for author in given if isinstance(author, dict)] if isinstance(given, list) else []
    authors = tuple(name.strip() for name in names if isinstance(name, str) and name.strip())
    link = item.get("url") or item.get("external_url") or ""
    return str(link).strip(), str(item.get("title") or ""), [item.get("date_published")], authors

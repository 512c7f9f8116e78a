"""Parses sitemaps (sitemaps.org 0.9): URL sets, indexes, news sitemaps and text files, plain or gzipped."""

import dataclasses
import datetime
import io
import itertools
from collections.abc import Iterator

from lxml import etree

from ..extract.dates import day_in_url, parse_day
from ..extract.nodes import child_text, local_name
from .coding import BrokenCodingError, TooLargeError, gunzip

MAX_ENTRIES = 50_000  # limit of the protocol for one sitemap
MAX_BYTES = 50 << 20  # limit of the protocol, uncompressed
_HEAD_BYTES = 4_096
_NEWEST = datetime.date.max


@dataclasses.dataclass(frozen=True)
class Entry:
    """A listed URL with its day of publication, else the day of its last change, else ``None``."""

    url: str
    day: datetime.date | None


@dataclasses.dataclass(frozen=True)
class Sitemap:
    """The entries of a sitemap.

    Attributes:
      is_index: whether the entries are sitemaps.
      entries: entries in the order of the sitemap.
      dropped: number of entries after the first 50,000.
    """

    is_index: bool
    entries: tuple[Entry, ...]
    dropped: int


def parse_sitemap(body: bytes, *, text: bool = False) -> Sitemap | None:
    """Returns a parsed sitemap; ``None`` if the bytes are not a sitemap.

    Broken XML is read up to the error. Entities are not expanded, and nothing is fetched.

    Args:
      body: the payload, gzipped or not.
      text: whether a plain list of URLs, one per line, counts as a sitemap; only where a sitemap is expected.
    """
    try:
        plain = gunzip(body, MAX_BYTES) if body.startswith(b"\x1f\x8b") else body
    except (BrokenCodingError, TooLargeError):
        return None
    plain = plain.lstrip(b"\xef\xbb\xbf \t\r\n")
    head = plain[:_HEAD_BYTES]
    if b"<" not in head:
        return _text_sitemap(plain) if text else None
    is_index = b"sitemapindex" in head
    if not is_index and b"urlset" not in head:
        return None
    return _bounded(is_index, _xml_entries(plain, "sitemap" if is_index else "url"))


def _bounded(is_index: bool, found: Iterator[Entry]) -> Sitemap:
    entries = tuple(itertools.islice(found, MAX_ENTRIES))
    return Sitemap(is_index, entries, sum(1 for _ in found))


def _text_sitemap(plain: bytes) -> Sitemap | None:
    lines = [line for raw in plain.decode("utf-8", "replace").splitlines() if (line := raw.strip())]
    if not lines or not all(line.startswith(("http://", "https://")) for line in lines):
        return None
    return _bounded(False, (Entry(line, None) for line in lines))


def _xml_entries(plain: bytes, tag: str) -> Iterator[Entry]:
    parsed = etree.iterparse(
        io.BytesIO(plain),
        events=("end",),
        recover=True,
        resolve_entities=False,
        no_network=True,
        load_dtd=False,
        huge_tree=False,
    )
    try:
        for _, node in parsed:
            if local_name(node) == tag:
                if url := child_text(node, "loc"):
                    published = parse_day(child_text(node, "news", "publication_date"))
                    yield Entry(url, published or parse_day(child_text(node, "lastmod")))
                node.clear(keep_tail=False)
                while node.getprevious() is not None:  # frees the entries that have been read
                    del node.getparent()[0]
    except etree.XMLSyntaxError:
        return  # the parser cannot recover


def in_date_range(
    entry: Entry, since: datetime.date | None, until: datetime.date | None, *, is_index: bool = False
) -> bool:
    """Returns whether an entry's day is between two days (inclusive).

    Args:
      entry: the entry; without a day, the day in its URL is used. An undated entry is in every range.
      since: first day, or ``None``.
      until: last day, or ``None``.
      is_index: whether the entry is a sitemap. Only ``since`` applies to it: a sitemap that changed later may list
        earlier days.
    """
    day = entry.day or (None if is_index else day_in_url(entry.url))
    if day is None:
        return True
    return (since is None or day >= since) and (until is None or is_index or day <= until)


def newest_first(entries: tuple[Entry, ...]) -> list[Entry]:
    """Returns the entries sorted by day, newest first; undated entries follow in their original order."""
    return sorted(entries, key=lambda entry: (entry.day is None, _NEWEST - (entry.day or _NEWEST)))

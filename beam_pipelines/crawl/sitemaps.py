"""Sitemaps (sitemaps.org 0.9): URL sets, indexes, news sitemaps and text files, plain or gzipped."""

import dataclasses
import datetime
import io
import itertools
from collections.abc import Iterator

from lxml import etree

from ..extract.dates import day_in_url, parse_day
from .coding import BrokenCodingError, TooLargeError, gunzip

MAX_ENTRIES = 50_000  # of one sitemap, as the protocol bounds it
MAX_BYTES = 50 << 20  # uncompressed, as well
_HEAD_BYTES = 4_096
_NEWEST = datetime.date.max


@dataclasses.dataclass(frozen=True)
class Entry:
    """A listed URL and its day: of publication, else of its last change, else ``None``."""

    url: str
    day: datetime.date | None


@dataclasses.dataclass(frozen=True)
class Sitemap:
    """What a sitemap lists, in its order.

    Attributes:
      is_index: the entries are sitemaps.
      dropped: entries beyond the protocol's 50,000.
    """

    is_index: bool
    entries: tuple[Entry, ...]
    dropped: int = 0


def parse_sitemap(body: bytes, *, text: bool = False) -> Sitemap | None:
    """Reads a sitemap, broken XML as far as it goes; ``None`` if the bytes are none. Entities are not expanded and nothing is fetched.

    Args:
      body: the payload, gzipped or not.
      text: whether a plain list of URLs, one a line, counts as one; only where a sitemap is expected.
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
    return _taken(is_index, _xml_entries(plain, "sitemap" if is_index else "url"))


def _taken(is_index: bool, found: Iterator[Entry]) -> Sitemap:
    entries = tuple(itertools.islice(found, MAX_ENTRIES))
    return Sitemap(is_index, entries, sum(1 for _ in found))


def _text_sitemap(plain: bytes) -> Sitemap | None:
    lines = [line for raw in plain.decode("utf-8", "replace").splitlines() if (line := raw.strip())]
    if not lines or not all(line.startswith(("http://", "https://")) for line in lines):
        return None
    return _taken(False, (Entry(line, None) for line in lines))


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
            if _name(node) == tag:
                if url := _text(node, "loc"):
                    yield Entry(
                        url, parse_day(_text(node, "news", "publication_date")) or parse_day(_text(node, "lastmod"))
                    )
                node.clear(keep_tail=False)
                while node.getprevious() is not None:  # what was read must not pile up under the root
                    del node.getparent()[0]
    except etree.XMLSyntaxError:
        return  # beyond recovery from here on


def _name(node: etree._Element) -> str:
    return node.tag.rpartition("}")[2].lower() if isinstance(node.tag, str) else ""


def _text(node: etree._Element, *path: str) -> str:
    """The text of a child by its name without namespace, or of a child's child; "" if there is none."""
    for name in path:
        found = next((child for child in node if _name(child) == name), None)
        if found is None:
            return ""
        node = found
    return " ".join("".join(node.itertext()).split())


def within(entry: Entry, since: datetime.date | None, until: datetime.date | None, *, is_index: bool = False) -> bool:
    """Whether an entry's day lies between two days, both included; one without a day, also in its URL, does.

    Of an index only the sitemaps that were last changed before ``since`` are left out: a later change says nothing of the days they list.
    """
    day = entry.day or (None if is_index else day_in_url(entry.url))
    if day is None:
        return True
    return (since is None or day >= since) and (until is None or is_index or day <= until)


def newest_first(entries: tuple[Entry, ...]) -> list[Entry]:
    """Entries by day, the newest first; those without a day after them, in their order."""
    return sorted(entries, key=lambda entry: (entry.day is None, _NEWEST - (entry.day or _NEWEST)))

"""The state of a crawl: a record of each URL, with which the next crawl fetches only what changed."""

import dataclasses
import datetime
import gzip
import hashlib
import json
import zlib
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from ...errors import InputError
from ...formats import files
from .fetch import Fetched
from .sitemaps import Entry

_FORMAT = "newsembed crawl state 1"
_MAX_LINKS = 5_000  # of one response; a response with more links is always requested unconditionally
_FORGET_AFTER = datetime.timedelta(days=400)  # since the last request
_PARALLEL = 16  # state files read concurrently


@dataclasses.dataclass(frozen=True)
class UrlRecord:
    """The record of one URL.

    Attributes:
      etag: ETag header, or "".
      modified: Last-Modified header, or "".
      digest: SHA-1 of the body, hexadecimal; "" if there was none to store.
      requested: day of the last request.
      kind: kind of the response, see :class:`~.links.Outlinks`.
      links: outgoing links; ``None`` if they were not followed or are too many.
      image: URL of the thumbnail, or "".
    """

    etag: str
    modified: str
    digest: str
    requested: datetime.date
    kind: str = "page"
    links: tuple[Entry, ...] | None = None
    image: str = ""

    def conditions(self) -> dict[str, str]:
        """Returns the headers of a conditional request; empty if the server sent no validators."""
        named = {"If-None-Match": self.etag, "If-Modified-Since": self.modified}
        return {name: value for name, value in named.items() if value}


def record_of(
    fetched: Fetched, kind: str = "page", links: tuple[Entry, ...] | None = None, image: str = ""
) -> UrlRecord:
    """Returns the record of a response.

    Args:
      fetched: the response.
      kind: kind of the response.
      links: outgoing links; ``None`` if they are not followed.
      image: URL of the thumbnail, or "".
    """
    kept = links if links is not None and len(links) <= _MAX_LINKS else None
    etag, modified = (
        value if value.isascii() and value.isprintable() else ""
        for value in map(fetched.header, ("etag", "last-modified"))
    )
    return UrlRecord(etag, modified, digest_of(fetched), fetched.date.date(), kind, kept, image)


def digest_of(fetched: Fetched) -> str:
    """Returns the SHA-1 of the body, hexadecimal."""
    return hashlib.sha1(fetched.body, usedforsecurity=False).hexdigest()


def write_state(path: str, known: Mapping[str, UrlRecord], today: datetime.date) -> None:
    """Writes the state of a site atomically. URLs that were not requested in the last 400 days are left out.

    Args:
      path: path of the file, ending in .json.gz.
      known: records by canonical URL.
      today: the day of this crawl.
    """
    kept = {url: entry for url, entry in sorted(known.items()) if today - entry.requested <= _FORGET_AFTER}
    # The pages of a site share most of their links: each URL is written once.
    urls = sorted({link.url for entry in kept.values() for link in entry.links or ()})
    numbers = {url: number for number, url in enumerate(urls)}
    pages = {url: _as_json(entry, numbers) for url, entry in kept.items()}
    raw = json.dumps({"format": _FORMAT, "urls": urls, "pages": pages}, sort_keys=True).encode("ascii")
    files.write_whole(path, gzip.compress(raw, mtime=0))


def read_state(path: str) -> dict[str, UrlRecord]:
    """Returns the records of a state file by canonical URL; empty if the file does not exist.

    Raises:
      InputError: if the file is damaged.
    """
    if not files.exists(path):
        return {}
    with files.open_read(path) as source:
        raw = source.read()
    try:
        return _parse(raw)
    except (OSError, EOFError, zlib.error, ValueError, KeyError, TypeError, IndexError, AttributeError) as error:
        raise InputError(
            f"a damaged state file: {type(error).__name__}: {error}",
            path=path,
            field="--state",
            remedy="delete it: the site is then fetched completely once",
        ) from error


def _parse(raw: bytes) -> dict[str, UrlRecord]:
    value = json.loads(gzip.decompress(raw))
    if value["format"] != _FORMAT:
        raise ValueError(f"got the format {value['format']!r}, expected {_FORMAT!r}")
    return {url: _from_json(entry, value["urls"]) for url, entry in value["pages"].items()}


def check_states(folder: str) -> None:
    """Checks every state file of a folder: the hosts that a crawl will reach are not known in advance.

    Raises:
      InputError: naming the first damaged file.
    """
    with ThreadPoolExecutor(_PARALLEL) as pool:
        for _ in pool.map(read_state, files.list_files(f"{folder}/*.json.gz")):
            pass


def publish_states(source: str, target: str) -> None:
    """Copies the state files of a folder to another folder, each atomically; may be repeated."""
    files.copy(files.list_files(f"{source}/*.json.gz"), target)


def _as_json(entry: UrlRecord, numbers: Mapping[str, int]) -> list[Any]:
    links = (
        None
        if entry.links is None
        else [[numbers[link.url], link.day.isoformat() if link.day else None] for link in entry.links]
    )
    return [entry.etag, entry.modified, entry.digest, entry.requested.isoformat(), entry.kind, links, entry.image]


def _from_json(value: list[Any], urls: list[str]) -> UrlRecord:
    etag, modified, digest, requested, kind, links, image = value
    entries = (
        None
        if links is None
        else tuple(Entry(urls[number], datetime.date.fromisoformat(day) if day else None) for number, day in links)
    )
    return UrlRecord(etag, modified, digest, datetime.date.fromisoformat(requested), kind, entries, image)

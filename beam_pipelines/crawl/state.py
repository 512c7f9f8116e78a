"""What a crawl remembers of each URL, so that the next one fetches only what changed."""

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
_MAX_LINKS = 5_000  # of one response; what lists more is asked for whole each time
_FORGET_AFTER = datetime.timedelta(days=400)  # without a request
_PARALLEL = 16  # state files read at a time


@dataclasses.dataclass(frozen=True)
class Known:
    """What is known of one URL.

    Attributes:
      etag / modified: validators as the server sent them, or "".
      digest: SHA-1 of the body, hexadecimal.
      asked: day of the last request.
      kind / links / image: where it led (see :class:`~.links.Leads`); ``links`` is ``None`` where they were not followed or are too many.
    """

    etag: str
    modified: str
    digest: str
    asked: datetime.date
    kind: str = "page"
    links: tuple[Entry, ...] | None = None
    image: str = ""

    def conditions(self) -> dict[str, str]:
        """Headers of a conditional request; empty if the server gave nothing to compare with."""
        named = {"If-None-Match": self.etag, "If-Modified-Since": self.modified}
        return {name: value for name, value in named.items() if value}


def known_of(fetched: Fetched, kind: str = "page", links: tuple[Entry, ...] | None = None, image: str = "") -> Known:
    """What to remember of a response."""
    kept = links if links is not None and len(links) <= _MAX_LINKS else None
    etag, modified = (
        value if value.isascii() and value.isprintable() else ""
        for value in map(fetched.header, ("etag", "last-modified"))
    )
    return Known(etag, modified, digest_of(fetched), fetched.date.date(), kind, kept, image)


def digest_of(fetched: Fetched) -> str:
    """SHA-1 of the body, hexadecimal."""
    return hashlib.sha1(fetched.body, usedforsecurity=False).hexdigest()


def write_state(path: str, known: Mapping[str, Known], today: datetime.date) -> None:
    """Writes a site's state, whole. URLs that no crawl asked for in 400 days are left out.

    Args:
      path: ends in .json.gz.
      known: by canonical URL.
      today: the day of this crawl.
    """
    kept = {url: entry for url, entry in sorted(known.items()) if today - entry.asked <= _FORGET_AFTER}
    # A page's links are mostly those of the next page too: each URL is written once.
    urls = sorted({link.url for entry in kept.values() for link in entry.links or ()})
    numbers = {url: number for number, url in enumerate(urls)}
    pages = {url: _as_json(entry, numbers) for url, entry in kept.items()}
    raw = json.dumps({"format": _FORMAT, "urls": urls, "pages": pages}, sort_keys=True).encode("ascii")
    files.write_whole(path, gzip.compress(raw, mtime=0))


def read_state(path: str) -> dict[str, Known]:
    """State by canonical URL; empty if nothing was written yet.

    Raises:
      InputError: if the file is damaged.
    """
    if not files.exists(path):
        return {}
    with files.open_read(path) as source:
        raw = source.read()
    try:
        value = json.loads(gzip.decompress(raw))
        if value["format"] != _FORMAT:
            raise ValueError(f"got the format {value['format']!r}, expected {_FORMAT!r}")  # noqa: TRY301 - one place names the file
        return {url: _from_json(entry, value["urls"]) for url, entry in value["pages"].items()}
    except (OSError, EOFError, zlib.error, ValueError, KeyError, TypeError, IndexError, AttributeError) as error:
        raise InputError(
            f"a damaged state file: {type(error).__name__}: {error}",
            path=path,
            field="--state",
            remedy="delete it: its site is then fetched whole once",
        ) from error


def check_states(folder: str) -> None:
    """Reads every state file of a folder: which hosts a crawl will meet shows only while it runs.

    Raises:
      InputError: naming the first that is damaged.
    """
    with ThreadPoolExecutor(_PARALLEL) as pool:
        for _ in pool.map(read_state, files.list_files(f"{folder}/*.json.gz")):
            pass


def publish_states(source: str, target: str) -> None:
    """Copies the state files of a folder to another, each whole; may run again."""
    files.copy(files.list_files(f"{source}/*.json.gz"), target)


def _as_json(entry: Known, numbers: Mapping[str, int]) -> list[Any]:
    links = (
        None
        if entry.links is None
        else [[numbers[link.url], link.day.isoformat() if link.day else None] for link in entry.links]
    )
    return [entry.etag, entry.modified, entry.digest, entry.asked.isoformat(), entry.kind, links, entry.image]


def _from_json(value: list[Any], urls: list[str]) -> Known:
    etag, modified, digest, asked, kind, links, image = value
    entries = (
        None
        if links is None
        else tuple(Entry(urls[number], datetime.date.fromisoformat(day) if day else None) for number, day in links)
    )
    return Known(etag, modified, digest, datetime.date.fromisoformat(asked), kind, entries, image)

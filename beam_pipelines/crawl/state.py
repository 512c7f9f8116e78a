"""What a crawl keeps: a record of each URL, with which the next crawl fetches only what changed, and site reports."""

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
from ...formats.records import Failure, Rejection
from .fetch import Fetched
from .sources import Entry

_MAX_LINKS = 5_000  # of one response; a response with more links is always requested unconditionally
_FORGET_AFTER = datetime.timedelta(days=400)  # since the last request
_PARALLEL = 16  # state files read concurrently


@dataclasses.dataclass(frozen=True)
class Visit:
    """A URL to fetch.

    Attributes:
      url: the URL, without a fragment once it is scheduled.
      depth: number of links from a seed.
      kind: expected kind of response: "page", "sitemap" or "image".
      attempt: number of the attempt, from 1.
    """

    url: str
    depth: int = 0
    kind: str = "page"
    attempt: int = 1


@dataclasses.dataclass(frozen=True)
class Outcome:
    """The outcome of one scheduled URL: stored (``reason`` is ``None``), rejected or failed."""

    url: str
    reason: Rejection | Failure | None
    detail: str = ""
    kind: str = "page"


@dataclasses.dataclass(frozen=True)
class SiteReport:
    """The result of crawling one site.

    Attributes:
      outcomes: outcome of each scheduled URL.
      listed: visits for other domains.
      tallies: counts by name.
    """

    outcomes: tuple[Outcome, ...]
    listed: tuple[Visit, ...]
    tallies: Mapping[str, int]


def write_report(path: str, report: SiteReport) -> None:
    """Writes a report atomically; it marks the site's WARC as complete, so that a repeated shard skips the site."""
    files.write_json(path, dataclasses.asdict(report))


def read_report(path: str) -> SiteReport | None:
    """Returns the report of a site; ``None`` if its crawl is not complete."""
    if not files.exists(path):
        return None
    value = files.read_json(path)
    reasons: dict[str, Rejection | Failure] = {reason.value: reason for reason in (*Rejection, *Failure)}
    outcomes = (Outcome(**outcome | {"reason": reasons.get(outcome["reason"])}) for outcome in value["outcomes"])
    return SiteReport(tuple(outcomes), tuple(Visit(**visit) for visit in value["listed"]), value["tallies"])


@dataclasses.dataclass(frozen=True)
class UrlRecord:
    """The record of one URL.

    Attributes:
      etag: ETag header, or "".
      modified: Last-Modified header, or "".
      digest: SHA-1 of the body, hexadecimal; "" if there was none to store.
      requested: day of the last request.
      kind: kind of the response, see :class:`~.sources.Outlinks`.
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
    digest = hashlib.sha1(fetched.body, usedforsecurity=False).hexdigest()
    return UrlRecord(etag, modified, digest, fetched.date.date(), kind, kept, image)


def write_state(path: str, known: Mapping[str, UrlRecord], today: datetime.date) -> None:
    """Writes the state of a site atomically. URLs that were not requested in the last 400 days are left out.

    Args:
      path: path of the file, ending in .json.gz.
      known: records by canonical URL.
      today: the day of this crawl.
    """
    kept = {url: record for url, record in sorted(known.items()) if today - record.requested <= _FORGET_AFTER}
    # The pages of a site share most of their links: each URL is written once.
    urls = sorted({link.url for record in kept.values() for link in record.links or ()})
    numbers = {url: number for number, url in enumerate(urls)}
    pages = {
        url: vars(record)
        | {"links": None if record.links is None else [[numbers[link.url], link.day] for link in record.links]}
        for url, record in kept.items()
    }
    raw = json.dumps({"urls": urls, "pages": pages}, sort_keys=True, default=datetime.date.isoformat).encode("ascii")
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
        value = json.loads(gzip.decompress(raw))
        return {url: _record(fields, value["urls"]) for url, fields in value["pages"].items()}
    except (OSError, EOFError, zlib.error, ValueError, KeyError, TypeError, IndexError, AttributeError) as error:
        raise InputError(
            f"a damaged state file: {type(error).__name__}: {error}",
            path=path,
            field="--state",
            remedy="delete it: the site is then fetched completely once",
        ) from error


def _record(fields: dict[str, Any], urls: list[str]) -> UrlRecord:
    links = fields.pop("links")
    if links is not None:
        links = tuple(Entry(urls[number], day and datetime.date.fromisoformat(day)) for number, day in links)
    requested = datetime.date.fromisoformat(fields.pop("requested"))
    return UrlRecord(**fields, requested=requested, links=links)


def check_states(folder: str) -> None:
    """Checks every state file of a folder: the hosts that a crawl will reach are not known in advance.

    Raises:
      InputError: naming the first damaged file.
    """
    with ThreadPoolExecutor(_PARALLEL) as pool:
        for _ in pool.map(read_state, files.list_files("*.json.gz", folder)):
            pass


def publish_states(source: str, target: str) -> None:
    """Copies the state files of a folder to another folder, each atomically; may be repeated."""
    files.copy(files.list_files("*.json.gz", source), target)

"""What a crawl keeps: a record of each URL, with which the next crawl fetches only what changed, and site reports.

And the files of a crawl: WARC 1.1 with one gzip member per record, so that readers can start at any record, and its
index.
"""

import base64
import dataclasses
import datetime
import gzip
import hashlib
import io
import json
import uuid
import zlib
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, BinaryIO
from urllib.parse import quote, urlsplit

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
    sent = map(fetched.header, ("etag", "last-modified"))
    etag, modified = (value if value.isascii() and value.isprintable() else "" for value in sent)
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
        problem = f"a damaged state file: {type(error).__name__}: {error}"
        remedy = "delete it: the site is then fetched completely once"
        raise InputError(problem, path=path, field="--state", remedy=remedy) from error


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
        list(pool.map(read_state, files.list_files("*.json.gz", folder)))


# The body is written decoded; these headers keep the values as sent, under the names that Common Crawl uses.
_RENAMED = {name: f"X-Crawler-{name.title()}" for name in ("content-encoding", "content-length", "transfer-encoding")}


class WarcWriter:
    """Writes requests and responses to an open file.

    Args:
      sink: binary file; closed by the caller.
      software: name of the software in the warcinfo record.
      info: further fields of the warcinfo record.
    """

    def __init__(self, sink: BinaryIO, software: str, info: Mapping[str, str] | None = None) -> None:
        self._sink = sink
        self._offset = 0
        self._index: list[tuple[str, dict[str, str]]] = []  # key with time, and fields of CDXJ
        fields = {
            "software": software,
            "format": "WARC File Format 1.1",
            "conformsTo": "http://iipc.github.io/warc-specifications/specifications/warc-format/warc-1.1/",
            **(info or {}),
        }
        content = "".join(f"{name}: {value}\r\n" for name, value in fields.items()).encode()
        now = datetime.datetime.now(datetime.UTC)
        self._info_id = self._write("warcinfo", content, {"Content-Type": "application/warc-fields"}, now)

    def write(self, fetched: Fetched) -> None:
        """Writes the request, if known, and the response; its body has no transfer and content coding."""
        lines = [f"HTTP/1.1 {fetched.status} {fetched.reason}"]
        lines += [f"{_RENAMED.get(name.lower(), name)}: {value}" for name, value in fetched.headers]
        head = "\r\n".join([*lines, f"Content-Length: {len(fetched.body)}", "", ""]).encode("utf-8", "replace")
        headers = {"WARC-Target-URI": fetched.url, "WARC-Warcinfo-ID": self._info_id}
        if fetched.request:
            typed = headers | {"Content-Type": "application/http; msgtype=request"}
            headers["WARC-Concurrent-To"] = self._write("request", fetched.request, typed, fetched.date)
        headers["Content-Type"] = "application/http; msgtype=response"
        digest = hashlib.sha1(fetched.body, usedforsecurity=False).digest()
        offset = self._offset
        self._write("response", head + fetched.body, headers, fetched.date, digest)
        fields = {
            "url": fetched.url,
            "mime": fetched.content_type or "unk",
            "status": str(fetched.status),
            "digest": base64.b32encode(digest).decode(),
            "length": str(self._offset - offset),
            "offset": str(offset),
        }
        self._index.append((f"{_search_key(fetched.url)} {fetched.date:%Y%m%d%H%M%S}", fields))

    def index(self, name: str) -> bytes:
        """The index of the responses so far, as CDXJ: one line each, sorted.

        Args:
          name: of the WARC file, without folder.
        """
        lines = (f"{key} {json.dumps(fields | {'filename': name})}\n" for key, fields in self._index)
        return "".join(sorted(lines)).encode()

    def _write(
        self,
        kind: str,
        content: bytes,
        headers: Mapping[str, str],
        date: datetime.datetime,
        payload_digest: bytes | None = None,
    ) -> str:
        """Writes one record and returns its id."""
        from fastwarc.warc import WarcRecord, WarcRecordType

        record = WarcRecord()
        record.init_headers(getattr(WarcRecordType, kind), record_urn=f"uuid:{uuid.uuid4()}".encode())
        record.set_bytes_content(content)
        for name, value in {"WARC-Date": date.strftime("%Y-%m-%dT%H:%M:%SZ"), **headers}.items():
            record.headers[name] = value
        raw = io.BytesIO()
        record.write(raw, checksum_data=True, payload_digest=payload_digest)
        member = gzip.compress(raw.getvalue(), compresslevel=6, mtime=0)
        self._sink.write(member)
        self._offset += len(member)
        return str(record.record_id)


def _search_key(url: str) -> str:
    """The key that sorts the captures of a host together, with its domain first: ``example,news)/2024/a?b=1``."""
    parts = urlsplit(url)
    host = ",".join(reversed((parts.hostname or "").split(".")))
    port = f":{parts.port}" if parts.port else ""
    query = f"?{parts.query}" if parts.query else ""
    return quote(f"{host}{port}){parts.path or '/'}{query}".lower(), safe="!$&'()*+,-./:;=?@[]_~%")

"""Writes WARC 1.1 with one gzip member per record, so that readers can start at any record, and its index."""

import base64
import datetime
import gzip
import hashlib
import io
import json
import uuid
from collections.abc import Mapping
from typing import BinaryIO
from urllib.parse import quote, urlsplit

from .fetch import Fetched

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
        if fetched.peer:
            headers["WARC-IP-Address"] = fetched.peer.partition("%")[0]
        if fetched.request:
            typed = headers | {"Content-Type": "application/http; msgtype=request"}
            headers["WARC-Concurrent-To"] = self._write("request", fetched.request, typed, fetched.date)
        headers["Content-Type"] = "application/http; msgtype=response"
        digest = hashlib.sha1(fetched.body, usedforsecurity=False).digest()
        offset = self._offset
        self._write("response", head + fetched.body, headers, fetched.date, digest)
        fields = {
            "url": fetched.url,
            "mime": fetched.content_type.partition(";")[0].strip() or "unk",
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

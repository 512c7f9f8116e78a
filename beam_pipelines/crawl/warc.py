"""Writes WARC 1.1 with one gzip member per record, so that readers can start at any record."""

import datetime
import gzip
import hashlib
import io
import uuid
from collections.abc import Mapping
from typing import Any, BinaryIO

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
        fields = {
            "software": software,
            "format": "WARC File Format 1.1",
            "conformsTo": "http://iipc.github.io/warc-specifications/specifications/warc-format/warc-1.1/",
            **(info or {}),
        }
        content = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
        self._info_id = self._write("warcinfo", content.encode(), {"Content-Type": "application/warc-fields"}, _now())

    def write(self, fetched: Fetched) -> None:
        """Writes the request, if known, and the response; its body has no transfer and content coding."""
        lines = [f"HTTP/1.1 {fetched.status} {fetched.reason}"]
        lines += [f"{_RENAMED.get(name.lower(), name)}: {value}" for name, value in fetched.headers]
        head = "\r\n".join([*lines, f"Content-Length: {len(fetched.body)}", "", ""])
        common = {"WARC-Target-URI": fetched.url, "WARC-Warcinfo-ID": self._info_id}
        peer = {"WARC-IP-Address": fetched.peer.partition("%")[0]} if fetched.peer else {}
        if fetched.request:
            headers = common | peer | {"Content-Type": "application/http; msgtype=request"}
            peer |= {"WARC-Concurrent-To": self._write("request", fetched.request, headers, fetched.date)}
        headers = common | peer | {"Content-Type": "application/http; msgtype=response"}
        digest = hashlib.sha1(fetched.body, usedforsecurity=False).digest()
        self._write("response", head.encode("utf-8", "replace") + fetched.body, headers, fetched.date, digest)

    def _write(
        self,
        kind: str,
        content: bytes,
        headers: Mapping[str, str],
        date: datetime.datetime,
        payload_digest: bytes | None = None,
    ) -> str:
        """Writes one record and returns its id."""
        record = _record(kind, content)
        record.headers["WARC-Date"] = date.strftime("%Y-%m-%dT%H:%M:%SZ")
        for name, value in headers.items():
            record.headers[name] = value
        raw = io.BytesIO()
        record.write(raw, checksum_data=True, payload_digest=payload_digest)
        self._sink.write(gzip.compress(raw.getvalue(), compresslevel=6, mtime=0))
        return str(record.record_id)


def _record(kind: str, content: bytes) -> Any:
    from fastwarc.warc import WarcRecord, WarcRecordType

    record = WarcRecord()
    record.init_headers(getattr(WarcRecordType, kind), record_urn=f"uuid:{uuid.uuid4()}".encode())
    record.set_bytes_content(content)
    return record


def _now() -> datetime.datetime:
    return datetime.datetime.now(datetime.UTC)

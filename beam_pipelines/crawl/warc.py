"""Writing WARC 1.1: one gzip member a record, so that readers can enter the file anywhere."""

import datetime
import gzip
import io
import uuid
from typing import Any, BinaryIO

from .fetch import Fetched


class WarcWriter:
    """Writes responses to an open file.

    Args:
      sink: binary file; closed by the caller.
      software: written in the file's warcinfo record.
    """

    def __init__(self, sink: BinaryIO, software: str) -> None:
        self._sink = sink
        record = self._record("warcinfo", f"software: {software}\r\nformat: WARC File Format 1.1\r\n".encode())
        record.headers["Content-Type"] = "application/warc-fields"
        self._write(record)

    def write(self, fetched: Fetched) -> None:
        """Writes one response, its body as it came, without a transfer encoding."""
        lines = [f"HTTP/1.1 {fetched.status} {fetched.reason}"]
        lines += [f"{name}: {value}" for name, value in fetched.headers if name.lower() not in {"transfer-encoding", "content-length"}]
        head = "\r\n".join([*lines, f"Content-Length: {len(fetched.body)}", "", ""])
        record = self._record("response", head.encode("utf-8", "replace") + fetched.body)
        record.headers["WARC-Target-URI"] = fetched.url
        record.headers["Content-Type"] = "application/http; msgtype=response"
        self._write(record)

    @staticmethod
    def _record(kind: str, content: bytes) -> Any:
        from fastwarc.warc import WarcRecord, WarcRecordType

        record = WarcRecord()
        record.init_headers(getattr(WarcRecordType, kind), record_urn=f"uuid:{uuid.uuid4()}".encode())
        record.headers["WARC-Date"] = datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        record.set_bytes_content(content)
        return record

    def _write(self, record: Any) -> None:
        raw = io.BytesIO()
        record.write(raw, checksum_data=True)
        self._sink.write(gzip.compress(raw.getvalue(), compresslevel=6))

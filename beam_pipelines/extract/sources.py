"""Slices of WARC and article files: what one worker reads at a time, record after record, whatever is broken."""

import contextlib
import dataclasses
import datetime
import io
import itertools
import json
from collections.abc import Iterator
from typing import Any

import zstandard

from ...tasks.errors import InputError
from .. import files

RECORDS_PER_WARC_SLICE = 200
LINES_PER_SLICE = 4_000
_MAX_PAYLOAD_BYTES = 20 << 20


@dataclasses.dataclass(frozen=True)
class Slice:
    """Part of an input file.

    Attributes:
      kind: "warc", "jsonl" or "parquet".
      start: byte offset of the first record (WARC), or number of the first line or row.
      count: records, lines or rows; -1 reads to the end.
    """

    path: str
    kind: str
    start: int
    count: int


@dataclasses.dataclass(frozen=True)
class Response:
    """One captured HTTP response. ``truncated`` if the file ends, or breaks, inside it."""

    url: str
    status: int
    content_type: str
    charset: str
    payload: bytes
    fetched_at: datetime.datetime | None
    truncated: bool


def slices_of(paths: tuple[str, ...], kind: str) -> list[Slice]:
    """Cuts input files into slices.

    Args:
      paths: WARC files, or article files of any supported ending.
      kind: "warc" or "articles".

    Raises:
      InputError: on a file of an unknown kind, or one that is no WARC file at all.
    """
    return [piece for path in paths for piece in (_warc_slices(path) if kind == "warc" else _article_slices(path))]


def _warc_slices(path: str) -> list[Slice]:
    """Slices at record boundaries; one for a file that cannot be entered in its middle (gzip as a single member)."""
    from fastwarc.warc import ArchiveIterator

    offsets: list[int] = []
    with files.open_read(path) as source:
        head = source.read(2)
        if head not in (b"\x1f\x8b", b"WA"):
            raise InputError(
                f"got the first bytes {head!r}, expected gzip or WARC",
                path=path,
                remedy="give .warc or .warc.gz files to --warc, article files to --articles",
            )
        source.seek(0)
        # A broken end is counted when its slice is read; the records before it are used.
        with contextlib.suppress(Exception):
            for record in ArchiveIterator(source, parse_http=False):
                offsets.append(record.stream_pos)  # noqa: PERF401 - what was found before an error must stay
    if any(later <= earlier for earlier, later in itertools.pairwise(offsets)):
        return [Slice(path, "warc", 0, -1)]
    starts = offsets[::RECORDS_PER_WARC_SLICE] or [0]
    # The last slice reads on to the end, so that it meets whatever broke the index.
    return [Slice(path, "warc", start, RECORDS_PER_WARC_SLICE) for start in starts[:-1]] + [Slice(path, "warc", starts[-1], -1)]


def read_warc(piece: Slice) -> Iterator[Response | Exception]:
    """Responses of a slice; an exception in place of a record that does not parse, after which the slice ends."""
    from fastwarc.warc import ArchiveIterator, WarcRecordType

    with files.open_read(piece.path) as source:
        source.seek(piece.start)
        archive = iter(ArchiveIterator(source, parse_http=True, record_types=WarcRecordType.any_type))
        seen = 0
        while piece.count < 0 or seen < piece.count:
            try:
                record = next(archive)
                seen += 1
                if record.record_type in (WarcRecordType.response, WarcRecordType.resource):
                    yield _response(record)
            except StopIteration:
                return
            except Exception as error:  # noqa: BLE001 - FastWARC raises many kinds on broken streams; each becomes a dead letter
                yield error
                return


def _response(record: Any) -> Response:
    headers = record.http_headers
    expected = record.content_length
    payload = record.reader.read(_MAX_PAYLOAD_BYTES)
    date = record.record_date
    status = int(headers.status_code or 0) if headers is not None else 200
    return Response(
        url=(record.headers.get("WARC-Target-URI") or "").strip("<>"),
        status=status,
        content_type=(record.http_content_type or "").lower()
        if headers is not None
        else (record.headers.get("Content-Type") or "").lower(),
        charset=(record.http_charset or "") if headers is not None else "",
        payload=_decoded(payload, (headers.get("Content-Encoding") or "") if headers is not None else ""),
        fetched_at=date.astimezone(datetime.UTC) if date is not None else None,
        truncated=len(payload) < min(expected, _MAX_PAYLOAD_BYTES),
    )


def _decoded(payload: bytes, encoding: str) -> bytes:
    """Undoes a Content-Encoding that the archive kept; bounded, and left as it is if it does not fit."""
    import zlib

    if "gzip" not in encoding.lower() and "deflate" not in encoding.lower():
        return payload
    try:
        return zlib.decompressobj(wbits=47).decompress(payload, _MAX_PAYLOAD_BYTES)
    except zlib.error:
        return payload  # many archives strip the encoding and keep the header


def _article_slices(path: str) -> list[Slice]:
    if path.endswith(".parquet"):
        import pyarrow.parquet as pq

        with files.open_read(path) as source:
            rows = pq.read_metadata(source).num_rows
        return [Slice(path, "parquet", start, LINES_PER_SLICE) for start in range(0, max(rows, 1), LINES_PER_SLICE)]
    if not path.endswith((".jsonl", ".jsonl.zst", ".jsonl.gz", ".json", ".ndjson")):
        raise InputError(
            "unknown kind of article file", path=path, field="--articles", remedy="give .jsonl, .jsonl.zst, .jsonl.gz or .parquet"
        )
    lines = sum(1 for _ in _lines(path))
    return [Slice(path, "jsonl", start, LINES_PER_SLICE) for start in range(0, max(lines, 1), LINES_PER_SLICE)]


def _lines(path: str) -> Iterator[bytes]:
    import gzip

    with files.open_read(path) as source:
        if path.endswith(".zst"):
            yield from io.BufferedReader(zstandard.ZstdDecompressor().stream_reader(source, read_across_frames=True), 1 << 20)
        elif path.endswith(".gz"):
            yield from gzip.GzipFile(fileobj=source)
        else:
            yield from source


def read_rows(piece: Slice) -> Iterator[tuple[str, dict[str, Any] | str]]:
    """("path:line", row) of a slice of an article file; in place of a row that is none, the text of the line."""
    if piece.kind == "parquet":
        yield from _parquet_rows(piece)
        return
    for number, line in enumerate(_lines(piece.path), 1):
        if number > piece.start + piece.count:
            return
        if number > piece.start and line.strip():
            try:
                row = json.loads(line)
            except (ValueError, RecursionError):
                row = None
            yield f"{piece.path}:{number}", row if isinstance(row, dict) else line.decode("utf-8", "replace").strip()


def _parquet_rows(piece: Slice) -> Iterator[tuple[str, dict[str, Any] | str]]:
    from ..parquet import read_batches

    number = 0
    for batch in read_batches(piece.path):
        if number + batch.num_rows > piece.start and number < piece.start + piece.count:
            for place, row in enumerate(batch.to_pylist(), number + 1):
                if piece.start < place <= piece.start + piece.count:
                    yield f"{piece.path}:{place}", row
        number += batch.num_rows

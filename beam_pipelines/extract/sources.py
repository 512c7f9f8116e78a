"""Cuts WARC and article files into slices, and reads the records of a slice despite errors in the files."""

import contextlib
import dataclasses
import datetime
import glob
import io
import itertools
import os
import zlib
from collections.abc import Iterator, Sequence
from typing import Any, Final

from ...errors import InputError
from ...formats import files
from ...formats.jsonl import CompressionError, read_lines
from ...formats.parquet import damage_named, read_batches
from .cdx import Part, indexes_beside, indexes_given
from .loose_json import load_json
from .path_lists import is_path_list, read_path_list
from .warc import MAX_CONTENT_BYTES, Frame, Gap, read_frames

RECORDS_PER_WARC_SLICE = 200
LINES_PER_SLICE = 4_000
_FEW_SHARDS: Final = 8  # so that the cores of one machine share a small crawl
_LEAST_RECORDS, _MOST_RECORDS = 500, 4_000  # of the slices of a shard


@dataclasses.dataclass(frozen=True)
class Slice:
    """A part of an input file.

    Attributes:
      path: path of the file.
      kind: "warc", "jsonl" or "parquet".
      start: byte offset of the first record (WARC), or number of the first line or row.
      count: number of records, lines or rows; -1 reads to the end.
      holds: "articles" or "posts", where lines or rows are read.
      records: how many it has; None if nobody has counted them.
      part: of a WARC file, where there is an index to compare it with.
    """

    path: str
    kind: str
    start: int
    count: int
    holds: str = "articles"
    records: int | None = None
    part: Part | None = None


@dataclasses.dataclass(frozen=True)
class Response:
    """One captured HTTP response.

    Attributes:
      url: target URI.
      status: HTTP status code.
      content_type: content type in lower case.
      charset: charset in the header, or "".
      payload: body without content coding.
      fetched_at: time of the capture, UTC.
      truncated: whether the file ends or breaks inside the record.
      oversized: whether the record is larger than the limit.
    """

    url: str
    status: int
    content_type: str
    charset: str
    payload: bytes
    fetched_at: datetime.datetime | None
    truncated: bool
    oversized: bool = False


def row_slices(paths: tuple[str, ...], holds: str) -> list[Slice]:
    """Cuts files of articles or posts into slices.

    Args:
      paths: files with any supported extension.
      holds: "articles" or "posts".

    Raises:
      InputError: if a file has an unknown type.
    """
    return [piece for path in paths for piece in _row_slices(path, holds)]


def groups_of(pieces: Sequence[Slice]) -> list[range]:
    """The slices of each shard of articles: few shards for many small files.

    Up to eight slices are a shard each. Of more, a shard gets consecutive slices of at most 4,000 records together; of
    fewer, but at least 500, where that makes eight shards. A slice of unknown length, such as a file of a list, is a
    shard.

    Returns:
      The places of the slices of each shard, in order.
    """
    if len(pieces) <= _FEW_SHARDS:
        return [range(place, place + 1) for place in range(len(pieces))]
    total = sum(piece.records or 0 for piece in pieces)
    most = min(max(-(-total // _FEW_SHARDS), _LEAST_RECORDS), _MOST_RECORDS)
    starts, held = [0], 0
    for place, piece in enumerate(pieces):
        records = most if piece.records is None else piece.records
        if place and held + records > most:
            starts.append(place)
            held = 0
        held += records
    return [range(start, end) for start, end in itertools.pairwise([*starts, len(pieces)])]


def warc_slices(paths: tuple[str, ...], base: str = "", indexes: tuple[str, ...] = ()) -> list[Slice]:
    """Cuts WARC files into slices, with the indexes that list their records.

    Args:
      paths: WARC files and lists of them.
      base: prefix of relative paths in lists.
      indexes: CDX or CDXJ files. Those next to a file of `paths` are found without being named.

    Raises:
      InputError: if a file is not a WARC file, or is listed but does not exist; if an index cannot be read or names
        none of the files.
    """
    for path in paths:
        _refuse_folder(path)
    # A single file is cut so that all cores share it; a list has enough files, and each is read only once.
    single = [path for path in paths if not is_path_list(path)]
    listed = {path: read_path_list(path, base) for path in paths if is_path_list(path)}
    given = indexes_given(indexes, [*single, *itertools.chain.from_iterable(listed.values())])
    found = list[Slice]()
    for path in paths:
        if path in listed:
            found += [Slice(named, "warc", 0, -1, part=_part(given.get(named, ()))) for named in listed[path]]
        else:
            found += _warc_slices(path, (*indexes_beside(path), *given.get(path, ())))
    return found


def _refuse_folder(path: str) -> None:
    """Names the WARC files in a folder, such as the output of ``newsembed crawl``.

    Raises:
      InputError: for a local folder.
    """
    if os.path.isdir(path):
        found = sorted(glob.glob(f"{glob.escape(path)}/**/*.warc*", recursive=True))
        pattern = f"{os.path.dirname(found[0])}/*.warc*" if found else f"{path.rstrip('/')}/*.warc.gz"
        remedy = f"name a file, or a pattern of files such as '{pattern}'"
        raise InputError("is a folder, expected a WARC file", path=path, field="--warc", remedy=remedy)


def _part(indexes: tuple[str, ...], start: int = 0, end: int | None = None) -> Part | None:
    return Part(tuple(sorted(set(indexes))), start, end) if indexes else None


def _warc_slices(path: str, indexes: tuple[str, ...]) -> list[Slice]:
    """Returns slices at record boundaries; one slice for a file with a single gzip member, which has no entry points.

    Raises:
      InputError: if the file is not a WARC file.
    """
    with files.open_read(path) as source:
        head = source.read(2)
        found = list(read_frames(source, places_only=True))
    if head not in (b"\x1f\x8b", b"WA") and not any(isinstance(frame, Frame) for frame in found):
        raise InputError(
            f"got the first bytes {head!r}, expected gzip or WARC",
            path=path,
            remedy="give .warc or .warc.gz files to --warc, and article files to --articles",
        )
    offsets = [frame.offset for frame in found]
    if any(later <= earlier for earlier, later in itertools.pairwise(offsets)):
        return [Slice(path, "warc", 0, -1, part=_part(indexes))]
    starts = offsets[::RECORDS_PER_WARC_SLICE] or [0]
    ends = [*starts[1:], None]
    each = RECORDS_PER_WARC_SLICE
    last = Slice(path, "warc", starts[-1], -1, records=len(offsets) - (len(starts) - 1) * each)
    pieces = [*(Slice(path, "warc", start, each, records=each) for start in starts[:-1]), last]
    bounds = zip([0, *starts[1:]], ends, strict=True)
    return [
        dataclasses.replace(piece, part=_part(indexes, start, end))
        for piece, (start, end) in zip(pieces, bounds, strict=True)
    ]


def read_warc(piece: Slice, begun: set[int] | None = None) -> Iterator[Response | Gap]:
    """Yields the responses of a slice, and a gap in place of each record that cannot be read.

    Args:
      piece: the slice.
      begun: gets the offsets of all records and gaps, also of those that are not responses.
    """
    with files.open_read(piece.path) as source:
        frames = read_frames(source, piece.start)
        for frame in frames if piece.count < 0 else itertools.islice(frames, piece.count):
            if begun is not None:
                begun.add(frame.offset)
            found = frame if isinstance(frame, Gap) else _parsed(frame)
            if found is not None:
                yield found


def _parsed(frame: Frame) -> Response | Gap | None:
    """The response in a record, ``None`` for other records, or the reason why it cannot be read."""
    from fastwarc.warc import ArchiveIterator, WarcRecordType

    try:
        header, content = frame.parts()
        source = io.BytesIO(header + content)
        records = ArchiveIterator(source, parse_http=True, record_types=WarcRecordType.any_type, stream_detect=False)
        record = next(iter(records), None)
        if record is None or record.record_type in (WarcRecordType.unknown, WarcRecordType.no_type):
            return Gap(frame.offset, frame.offset, "no WARC record" if record is None else "unknown type of record")
        if record.record_type == WarcRecordType.response and not record.is_http and content.startswith(b"HTTP/"):
            record.is_http = True  # some writers name no Content-Type, and damage can hide it
            record.parse_http()
        if record.record_type in (WarcRecordType.response, WarcRecordType.resource):
            found = _response(record, cut=frame.cut)
            return found if found.url else Gap(frame.offset, frame.offset, "no WARC-Target-URI")
    except Exception as error:  # noqa: BLE001 - FastWARC raises many types; each becomes a dead letter
        return Gap(frame.offset, frame.offset, f"{type(error).__name__}: {error}")
    cut = "the file ends inside this record, which is not a response"
    return Gap(frame.offset, frame.offset, cut) if frame.cut else None


def _response(record: Any, *, cut: bool) -> Response:
    headers = record.http_headers
    expected = record.content_length
    payload = record.reader.read(MAX_CONTENT_BYTES)
    date = record.record_date
    status = int(headers.status_code or 0) if headers is not None else 200
    decoded = _decoded(payload, (headers.get("Content-Encoding") or "") if headers is not None else "")
    return Response(
        url=(record.headers.get("WARC-Target-URI") or "").strip("<>"),
        status=status,
        content_type=(record.http_content_type or "").lower()
        if headers is not None
        else (record.headers.get("Content-Type") or "").lower(),
        charset=(record.http_charset or "") if headers is not None else "",
        payload=decoded,
        fetched_at=date.astimezone(datetime.UTC) if date is not None else None,
        truncated=cut or len(payload) < min(expected, MAX_CONTENT_BYTES),
        oversized=expected > MAX_CONTENT_BYTES or len(decoded) >= MAX_CONTENT_BYTES,
    )


def _decoded(payload: bytes, encoding: str) -> bytes:
    """Decodes a Content-Encoding that the archive kept, up to the size limit; unchanged if the data does not match."""
    if "gzip" not in encoding.lower() and "deflate" not in encoding.lower():
        return payload
    try:
        return zlib.decompressobj(wbits=47).decompress(payload, MAX_CONTENT_BYTES)
    except zlib.error:
        return payload  # many archives decode the body and keep the header


def _row_slices(path: str, holds: str) -> list[Slice]:
    if path.endswith(".parquet"):
        rows = _parquet_row_count(path, holds)
        return _cut(path, "parquet", rows, holds)
    if not path.endswith((".jsonl", ".jsonl.zst", ".jsonl.gz", ".json", ".ndjson")):
        raise InputError(
            f"unknown type of file of {holds}" if holds != "articles" else "unknown type of article file",
            path=path,
            field=f"--{holds}",
            remedy="give .jsonl, .jsonl.zst, .jsonl.gz or .parquet",
        )
    lines = 0
    # A truncated end is counted when the last slice is read; the lines before it are used.
    with contextlib.suppress(EOFError):
        for _ in _lines(path, holds):
            lines += 1
    return _cut(path, "jsonl", lines, holds)


def _cut(path: str, kind: str, rows: int, holds: str) -> list[Slice]:
    return [
        Slice(path, kind, start, LINES_PER_SLICE, holds, min(rows - start, LINES_PER_SLICE))
        for start in range(0, max(rows, 1), LINES_PER_SLICE)
    ]


def _parquet_row_count(path: str, holds: str) -> int:
    import pyarrow.parquet as pq

    with files.open_read(path) as source, damage_named(path, f"--{holds}"):
        return int(pq.read_metadata(source).num_rows)


def _lines(path: str, holds: str) -> Iterator[bytes]:
    """Yields the complete lines of a file of articles or posts, without line ends.

    Raises:
      InputError: if the compression differs from the file extension.
      EOFError: after the last complete line, if the compressed data is truncated or corrupt.
    """
    with files.open_read(path) as source:
        try:
            yield from read_lines(source, path)
        except CompressionError as error:
            raise InputError(
                f"the compression differs from the file extension: {error}",
                path=path,
                field=f"--{holds}",
                remedy="rename the file, or fetch it again",
            ) from error


def read_rows(piece: Slice) -> Iterator[tuple[str, dict[str, Any] | str | EOFError]]:
    """Yields ("path:line", row) for a slice of a file of articles or posts.

    An invalid row is the text of its line. The rest of a truncated file is represented by the error.
    """
    if piece.kind == "parquet":
        yield from _parquet_rows(piece)
        return
    number = 0
    try:
        for number, line in enumerate(_lines(piece.path, piece.holds), 1):
            if number > piece.start + piece.count:
                return
            if number > piece.start and line.strip():
                yield f"{piece.path}:{number}", _json_object(line)
    except EOFError as error:
        yield f"{piece.path}:{number + 1}", error


def _json_object(line: bytes) -> dict[str, Any] | str:
    try:
        row = load_json(line)
    except ValueError:
        row = None
    return row if isinstance(row, dict) else line.decode("utf-8", "replace").strip()


def _parquet_rows(piece: Slice) -> Iterator[tuple[str, dict[str, Any] | str]]:
    number = 0
    for batch in read_batches(piece.path):
        if number + batch.num_rows > piece.start and number < piece.start + piece.count:
            for place, row in enumerate(batch.to_pylist(), number + 1):
                if piece.start < place <= piece.start + piece.count:
                    yield f"{piece.path}:{place}", row
        number += batch.num_rows

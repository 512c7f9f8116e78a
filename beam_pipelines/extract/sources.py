"""Cuts inputs into slices, reads rows despite errors in the files, and compares WARC files with their indexes.

An index of a WARC file, CDX or CDXJ, says where its records begin. If it lists a record that the file does not have,
the record is lost, for example because the file was copied in part; the file alone does not show this. Formats:
https://iipc.github.io/warc-specifications/specifications/cdx-format/cdx-2015/ (columns), and
one JSON object a line after key and time (CDXJ), as pywb, Common Crawl and ``newsembed crawl`` write it.
"""

import contextlib
import dataclasses
import functools
import glob
import itertools
import json
import os
import zlib
from collections.abc import Collection, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

from ...errors import InputError, reading
from ...formats import files
from ...formats.codings import gunzip
from ...formats.digests import some_of
from ...formats.jsonl import ENDINGS, CompressionError, load_json, read_values
from ...formats.parquet import damage_named, read_batches
from ...formats.records import Failure
from .warc import Frame, Gap, Response, read_frames, response_of

RECORDS_PER_WARC_SLICE = 200
LINES_PER_SLICE = 4_000
_FEW_SHARDS: Final = 8  # so that the cores of one machine share a small crawl
_LEAST_RECORDS, _MOST_RECORDS = 500, 4_000  # of the slices of a shard
_LIST_ENDINGS = (".txt", ".paths", ".txt.gz", ".paths.gz")
_INDEX_ENDINGS: Final = (".cdxj", ".cdx", ".cdxj.gz", ".cdx.gz")
_COLUMNS: Final = {9: "N b a m s k r V g", 10: "N b a m s k r M V g", 11: "N b a m s k r M S V g"}  # without a header
_MAX_OFFSET: Final = 1 << 63
_MOST_LIST_BYTES: Final = 1 << 30
_PARALLEL = 16  # concurrent lookups
_RENAME: Final = "rename the file, or fetch it again: its compression differs from its name"

# By path: how many rows of the last file a process has read, and the rest. A compressed file can only be read from its
# start, so the next slice goes on from there.
_unread: Final = dict[str, tuple[int, Iterator[Any]]]()
_Line = tuple[str, str, int, str]  # "path:line", name of a WARC file or "", offset, URL or what is wrong


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
      indexes: paths of the indexes with which a WARC file is compared.
      end: byte after the slice of a WARC file.
    """

    path: str
    kind: str
    start: int
    count: int
    holds: str = "articles"
    records: int | None = None
    indexes: tuple[str, ...] = ()
    end: int = _MAX_OFFSET


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


def warc_slices(paths: Sequence[str], base: str = "", indexes: Iterable[str] = ()) -> list[Slice]:
    """Cuts WARC files into slices, with the indexes that list their records.

    Args:
      paths: WARC files and lists of them.
      base: prefix of relative paths in lists.
      indexes: CDX or CDXJ files. Those next to a file of `paths` are found without being named.

    Raises:
      InputError: if a file is not a WARC file, or is listed but does not exist; if an index cannot be read or names
        none of the files.
    """
    for path in filter(os.path.isdir, paths):  # such as the output of `newsembed crawl`
        found = sorted(glob.glob(f"{glob.escape(path)}/**/*.warc*", recursive=True))
        pattern = f"{os.path.dirname(found[0])}/*.warc*" if found else f"{path.rstrip('/')}/*.warc.gz"
        remedy = f"name a file, or a pattern of files such as '{pattern}'"
        raise InputError("is a folder, expected a WARC file", path=path, field="--warc", remedy=remedy)
    # A single file is cut so that all cores share it; a list has enough files, and each is read only once.
    named = {path: read_path_list(path, base) if is_path_list(path) else [path] for path in paths}
    given = _indexes_given(indexes, [*itertools.chain.from_iterable(named.values())])
    slices = list[Slice]()
    for path in paths:
        if is_path_list(path):
            slices += [Slice(one, "warc", 0, -1, indexes=given.get(one, ())) for one in named[path]]
        else:
            slices += _warc_slices(path, tuple(sorted({*indexes_beside(path), *given.get(path, ())})))
    return slices


def _warc_slices(path: str, indexes: tuple[str, ...]) -> Iterator[Slice]:
    """Yields slices at record boundaries; one slice for a file with a single gzip member, which has no entry points."""
    with files.open_read(path) as source:
        head = source.read(2)
        found = list(read_frames(source, places_only=True))
    if head not in (b"\x1f\x8b", b"WA") and not any(isinstance(frame, Frame) for frame in found):
        remedy = "give .warc or .warc.gz files to --warc, and article files to --articles"
        raise InputError(f"got the first bytes {head!r}, expected gzip or WARC", path=path, remedy=remedy)
    offsets, each = [frame.offset for frame in found], RECORDS_PER_WARC_SLICE
    if any(later <= earlier for earlier, later in itertools.pairwise(offsets)):
        yield Slice(path, "warc", 0, -1, indexes=indexes)
        return
    starts = [0, *offsets[each::each], _MAX_OFFSET]
    for number, (start, end) in enumerate(itertools.pairwise(starts)):
        count = -1 if end == _MAX_OFFSET else each
        records = min(each, len(offsets) - number * each)
        yield Slice(path, "warc", start, count, records=records, indexes=indexes, end=end)


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
            found = frame if isinstance(frame, Gap) else response_of(frame)
            if found is not None:
                yield found


def is_path_list(path: str) -> bool:
    """Returns whether an input is a list of paths: it starts with "@" or has the file extension of a list."""
    return path.startswith("@") or path.endswith(_LIST_ENDINGS)


def read_path_list(path: str, base: str = "") -> list[str]:
    """Returns the paths of a list, plain or gzipped, as Common Crawl has them for each month (``warc.paths.gz``).

    A line is a path; blank lines and lines starting with # are skipped.

    Args:
      path: path of the list, local, gs:// or s3://, with or without "@".
      base: prefix of relative paths, such as ``s3://commoncrawl/``; the folder of the list if empty.

    Raises:
      InputError: if a file does not exist, naming the list and the line; if the list is empty or not text.
    """
    place = path.removeprefix("@")
    prefix = f"{base.rstrip('/')}/" if base else f"{place.rpartition('/')[0]}/" if "/" in place else ""
    with files.open_read(place) as source:
        raw = source.read()
    with reading(place, "fetch it again, or give the WARC files directly", OSError, EOFError, zlib.error):
        unpacked, problem = gunzip(raw, _MOST_LIST_BYTES)
        if problem:
            raise EOFError(problem)
        text = unpacked.decode("utf-8-sig")
    named = {
        number: line if line.startswith("/") or "://" in line else prefix + line
        for number, line in enumerate(map(str.strip, text.splitlines()), 1)
        if line and not line.startswith("#")
    }
    if not named:
        raise InputError("contains no path", path=place, field="--warc", remedy="write one path per line")
    with ThreadPoolExecutor(_PARALLEL) as pool:
        for (number, target), found in zip(named.items(), pool.map(files.exists, named.values()), strict=True):
            if not found:
                where, remedy = f"{place}:{number}", "check --warc_base, or remove the line"
                raise InputError(f"no such file: {target}", path=where, field="--warc", remedy=remedy)
    return list(named.values())


def indexes_beside(path: str) -> tuple[str, ...]:
    """Returns the indexes next to a WARC file: ``a.cdxj`` or ``a.warc.gz.cdx.gz`` for ``a.warc.gz``."""
    stem = path.removesuffix(".gz").removesuffix(".warc")
    names = sorted({f"{start}{ending}" for start in (path, stem) for ending in _INDEX_ENDINGS})
    return tuple(filter(files.exists, names))


def _indexes_given(indexes: Iterable[str], paths: Collection[str]) -> dict[str, tuple[str, ...]]:
    """Returns by WARC file which of the given indexes name it."""
    found: dict[str, tuple[str, ...]] = {}
    for index in indexes:
        names = {name for _, name, _, _ in _lines_of_index(index)} - {""}
        meant = [path for path in paths if path.rpartition("/")[2] in names]
        if not meant:
            problem = f"names none of the WARC files, but {some_of(sorted(names), 3) or 'no file'}"
            remedy = "give the index of the files in --warc; files are compared by name, without folders"
            raise InputError(problem, path=index, field="--cdx", remedy=remedy)
        for path in meant:
            found[path] = (*found.get(path, ()), index)
    return found


def lost_records(piece: Slice, begun: Collection[int]) -> tuple[int, list[tuple[Failure, str, str]]]:
    """Compares a slice of a WARC file with its indexes.

    Args:
      piece: the slice; what cannot be read of the indexes belongs to the first one.
      begun: offsets at which a record or a gap begins.

    Returns:
      The number of listed records, and (reason, key, detail) of what is lost.
    """
    path, warc_name, listed = piece.path, piece.path.rpartition("/")[2], dict[int, tuple[str, str]]()
    unread: list[tuple[Failure, str, str]] = []
    for index in piece.indexes:
        lines = _lines_about(index, files.file_digest(index), warc_name)
        unread += [(Failure.BROKEN_RECORD, where, text) for where, name, _, text in lines if not name]
        listed |= {offset: (url, index) for _, name, offset, url in lines if name and piece.start <= offset < piece.end}
    missing = [
        (Failure.MISSING_RECORD, f"{path}:{offset}", f"listed in {index}, but no record begins here; {url}")
        for offset, (url, index) in sorted(listed.items())
        if offset not in begun
    ]
    return len(listed), missing + (unread if piece.start == 0 else [])


@functools.lru_cache(maxsize=4)  # the parts of a file are read one after the other
def _lines_about(index: str, _digest: str, warc_name: str) -> list[_Line]:
    """The lines of an index about a file, with broken ones.

    The digest is that of the index: a later run of the same process may find another one at its path.
    """
    return [line for line in _lines_of_index(index) if line[1] in ("", warc_name)]


def _lines_of_index(index: str) -> Iterator[_Line]:
    columns: list[str] | None = None
    number = 0
    try:
        for number, raw in enumerate(_lines(index), 1):
            line = raw.decode("utf-8", "replace").strip()
            if line.startswith("CDX "):
                columns = line.split()[1:]
            elif line and not line.startswith("!"):  # "!" begins what describes the index
                yield f"{index}:{number}", *_listed(line, columns)
    except EOFError as error:
        yield f"{index}:{number + 1}", "", 0, f"the index is cut or broken from here on: {error}"


def _listed(line: str, columns: list[str] | None) -> tuple[str, int, str]:
    """The name of the WARC file, the offset and the URL; or "", 0 and what is wrong."""
    try:
        if line.endswith("}"):
            fields = json.loads(line[line.index("{") :])
            name, place, url = fields["filename"], fields["offset"], fields.get("url", "")
        else:
            values = line.split()
            names = columns or _COLUMNS.get(len(values), "").split()
            fields = dict(zip(names, values, strict=True))
            name, place, url = fields["g"], fields["V"] if "V" in fields else fields["v"], fields.get("a", "")
        warc_name, offset = str(name).rpartition("/")[2], int(str(place))
    except (ValueError, KeyError, RecursionError) as error:
        return "", 0, f"no line of an index: {type(error).__name__}: {error}"
    if not warc_name or not 0 <= offset < _MAX_OFFSET:
        return "", 0, f"no line of an index: file {warc_name!r}, offset {offset}"
    return warc_name, offset, str(url)


def row_slices(paths: Iterable[str], holds: str) -> list[Slice]:
    """Cuts files of "articles" or "posts" into slices.

    Raises:
      InputError: if a file has an unknown type.
    """
    slices = list[Slice]()
    for path in paths:
        rows, kind = 0, "jsonl"
        if path.endswith(".parquet"):
            import pyarrow.parquet as pq

            kind = "parquet"
            with files.open_read(path) as source, damage_named(path, f"--{holds}"):
                rows = int(pq.read_metadata(source).num_rows)
        elif path.endswith(ENDINGS):
            # A truncated end is counted when the last slice is read; the lines before it are used.
            with contextlib.suppress(EOFError):
                for _ in _lines(path):
                    rows += 1
        else:
            remedy = "give .jsonl, .json, .csv, .tsv (also .gz, .bz2, .xz, .zst) or .parquet"
            raise InputError(f"unknown type of file of {holds}", path=path, field=f"--{holds}", remedy=remedy)
        starts = range(0, max(rows, 1), LINES_PER_SLICE)
        for start in starts:
            count = LINES_PER_SLICE if start != starts[-1] else -1  # the last finds where a file is broken
            slices.append(Slice(path, kind, start, count, holds, min(rows - start, LINES_PER_SLICE)))
    return slices


def _lines(path: str) -> Iterator[bytes]:
    """Yields the complete lines of a file, without line ends.

    Raises:
      EOFError: after the last complete line, if the compressed data is truncated or corrupt.
    """
    with files.open_read(path) as source, reading(path, _RENAME, CompressionError):
        yield from read_values(source, path)


def read_rows(piece: Slice) -> Iterator[tuple[str, dict[str, Any] | str | EOFError]]:
    """Yields ("path:line", row) for a slice of a file of articles or posts.

    An invalid row is the text of its line. The rest of a truncated file is represented by the error.
    """
    number, rows = _unread.pop(piece.path, (piece.start + 1, iter(())))
    if number > piece.start:
        number, rows = piece.start, _rows_after(piece)
    try:
        number += sum(1 for _ in itertools.islice(rows, piece.start - number))
        for row in rows if piece.count < 0 else itertools.islice(rows, piece.count):
            number += 1
            if isinstance(row, dict):
                yield f"{piece.path}:{number}", row
            elif row.strip():
                yield f"{piece.path}:{number}", _json_object(row)
    except EOFError as error:
        yield f"{piece.path}:{number + 1}", error
    else:
        _unread.clear()
        if piece.count >= 0:  # a file that has been read to its end may grow before the next job
            _unread[piece.path] = number, rows


def _rows_after(piece: Slice) -> Iterator[bytes | dict[str, Any]]:
    """Yields the lines, or the rows of Parquet, of a whole file after the first ``piece.start``."""
    if piece.kind != "parquet":
        yield from itertools.islice(_lines(piece.path), piece.start, None)
        return
    left = piece.start
    for batch in read_batches(piece.path):
        if batch.num_rows > left:
            yield from batch.slice(left).to_pylist()
        left = max(0, left - batch.num_rows)


def _json_object(line: bytes) -> dict[str, Any] | str:
    with contextlib.suppress(ValueError):
        row = load_json(line)
        if isinstance(row, dict):
            return row
    return line.decode("utf-8", "replace").strip()

"""The streams of an archive's version, in parts: reading, appending, and joining small parts into larger ones.

A run appends one part to a stream. Parts that are not larger than twice what comes after them are rewritten
together with it, so that n rows are in about log2(n) parts and each row is rewritten about log2(n) times.
"""

import dataclasses
import os
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from .archive import VersionWriter
from .arrays import Array, read_npy
from .parquet import read_batches, schema_of
from .records import Article
from .whole import replacing

ARTICLES, VECTORS, SIGNATURES, SKETCHES = "articles", "vectors", "signatures", "sketches"
PARENTS: Final = "parents.npy"
MERGES: Final = "events/merges.parquet"
_ENDINGS: Final = {ARTICLES: "parquet", VECTORS: "npy", SIGNATURES: "npy", SKETCHES: "npy"}
_ROWS_PER_GROUP: Final = 2_000

Mask = npt.NDArray[np.bool_]


def part_paths(version: str, stream: str) -> list[str]:
    """The parts of a stream, oldest first; none without a version."""
    folder = os.path.join(version, stream)
    names = sorted(os.listdir(folder)) if version and os.path.isdir(folder) else []
    return [os.path.join(folder, name) for name in names]


def row_count(path: str) -> int:
    """The number of rows of a part."""
    if path.endswith(".parquet"):
        return int(pq.read_metadata(path).num_rows)
    return len(np.load(path, mmap_mode="r"))


def read_array_part(path: str) -> Array:
    """A part of numbers, mapped into memory; arrays of Python objects are refused.

    Raises:
      InputError: if it is not an npy file.
    """
    if os.path.getsize(path) <= 1 << 12:  # an array without rows cannot be mapped
        return read_npy(path, path)
    try:
        return np.load(path, mmap_mode="r", allow_pickle=False)
    except ValueError:
        return read_npy(path, path)  # names the file


def write_array(path: str, values: Array) -> None:
    """Writes an npy file completely or not at all."""
    with replacing(path) as temporary, open(temporary, "wb") as sink:
        np.save(sink, values)


def append_arrays(writer: VersionWriter, stream: str, new: Array, removed: Mask | None = None) -> None:
    """Adds rows to a stream of arrays, in the new version.

    Args:
      writer: of the new version.
      stream: its name.
      new: rows ``[n, …]``.
      removed: bool ``[N]``, which of the rows so far are left out; None: no row is.
    """
    for part in _plan(writer, stream, len(new), removed):
        rows = [read_array_part(path)[~gone] for path, gone in part.joined]
        write_array(writer.path(part.name), np.concatenate([*rows, new] if part.has_new else rows))


def append_articles(writer: VersionWriter, new: Sequence[Article], removed: Mask | None = None) -> None:
    """Adds articles to the stream of articles, as :func:`append_arrays` does."""
    schema = schema_of(Article)
    for part in _plan(writer, ARTICLES, len(new), removed):
        with (
            replacing(writer.path(part.name)) as temporary,
            pq.ParquetWriter(temporary, schema, compression="zstd", write_page_checksum=True) as sink,
        ):
            for path, gone in part.joined:
                _copy_rows(sink, path, gone)
            for start in range(0, len(new) if part.has_new else 0, _ROWS_PER_GROUP):
                group = new[start : start + _ROWS_PER_GROUP]
                columns = {field: [getattr(article, field) for article in group] for field in schema.names}
                sink.write_table(pa.table(columns, schema=schema))


def _copy_rows(sink: Any, path: str, removed: Mask) -> None:
    start = 0
    for batch in read_batches(path):
        kept = pa.array(~removed[start : start + batch.num_rows])
        start += batch.num_rows
        sink.write_table(pa.Table.from_batches([batch.filter(kept)], sink.schema))


@dataclasses.dataclass(frozen=True)
class _Part:
    """A part that is written: parts of the version before with the rows to leave out, and the new rows or not."""

    name: str
    joined: Sequence[tuple[str, Mask]]
    has_new: bool


def _plan(writer: VersionWriter, stream: str, new: int, removed: Mask | None) -> list[_Part]:
    """The parts to write. Links those that stay as they are into the new version."""
    paths = part_paths(writer.base, stream)
    counts = [row_count(path) for path in paths]
    ends = np.cumsum([0, *counts])
    gone = np.zeros(ends[-1], bool) if removed is None else removed
    before = [(path, gone[start:end]) for path, start, end in zip(paths, ends[:-1], ends[1:], strict=True)]
    first, size = len(paths), new
    while first and new and counts[first - 1] <= 2 * size:
        first -= 1
        size += counts[first]
    parts = []
    for path, mask in before[:first]:
        name = f"{stream}/{os.path.basename(path)}"
        if not mask.any():
            writer.carry(name)
        elif not mask.all():
            parts.append(_Part(name, [(path, mask)], has_new=False))
    if new:
        parts.append(_Part(f"{stream}/part-{writer.number:06d}.{_ENDINGS[stream]}", before[first:], has_new=True))
    return parts

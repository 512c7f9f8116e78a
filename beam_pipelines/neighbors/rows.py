"""Document vectors as arrays, cut into blocks of days, so that a worker reads only the days that it searches."""

import dataclasses
import functools
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Self

import numpy as np

from ...formats import files, parquet
from ...formats.arrays import read_arrays, write_arrays
from ...formats.records import Space
from ..arrays import Array, Floats, Ids, doc_numbers_of
from ..entities.cooccurrence import unit_rows


@dataclasses.dataclass(frozen=True)
class Rows:
    """Documents with their vectors, sorted by id.

    Attributes:
      ids: uint64 ``[N]``, the document ids as numbers.
      days: int32 ``[N]``, byline dates as days since 1970-01-01.
      vectors: for every space float32 ``[N, D]`` of unit length, zero where a document has no vector.
    """

    ids: Ids
    days: Array
    vectors: Mapping[Space, Floats]

    def __len__(self) -> int:
        return len(self.ids)

    def take(self, chosen: Any) -> Self:
        """Returns the chosen documents, given as a mask, a slice or sorted row numbers."""
        vectors = {space: values[chosen] for space, values in self.vectors.items()}
        return dataclasses.replace(self, ids=self.ids[chosen], days=self.days[chosen], vectors=vectors)

    @functools.cached_property
    def present(self) -> Mapping[Space, Array]:
        """Flags of the documents that have a vector, by space: bool ``[N]``."""
        return {space: np.asarray(values.any(axis=1)) for space, values in self.vectors.items()}

    def having(self, space: Space) -> Any:
        """Returns the row numbers of the documents that have a vector in a space."""
        return np.flatnonzero(self.present[space])

    def vectors_of(self, space: Space, numbers: Any) -> Floats:
        """Returns the vectors of sorted, distinct row numbers; those of all documents are not copied."""
        values = self.vectors[space]
        return values if len(numbers) == len(values) else values[numbers]


def read_vectors(paths: Mapping[Space, str]) -> Rows:
    """Reads one shard of the streams of the spaces; ``paths`` has its path in each. Other spaces have no vectors."""
    columns = {space: _read_columns(path) for space, path in paths.items()}
    ids = np.unique(np.concatenate([numbers for numbers, _, _ in columns.values()]))
    days = np.zeros(len(ids), np.int32)
    vectors = {space: np.zeros((len(ids), 0), np.float32) for space in Space}
    for space, (numbers, dates, values) in columns.items():
        places = np.searchsorted(ids, numbers)
        days[places] = dates
        vectors[space] = np.zeros((len(ids), values.shape[1]), np.float32)
        vectors[space][places] = unit_rows(values)
    return Rows(ids, days, vectors)


def _read_columns(path: str) -> tuple[Ids, Array, Floats]:
    """Returns the ids, days and vectors of a stream."""
    parts: list[tuple[Array, ...]] = []
    for batch in parquet.read_batches(path, ["doc_id", "byline_date", "values"]):
        values = batch.column("values").flatten().to_numpy(zero_copy_only=False)
        days = batch.column("byline_date").cast("int32").to_numpy()
        parts.append((doc_numbers_of(batch.column("doc_id")), days, values.reshape(len(batch), -1).astype(np.float32)))
    nothing = (np.zeros(0, np.uint64), np.zeros(0, np.int32), np.zeros((0, 0), np.float32))
    ids, days, vectors = map(np.concatenate, zip(*parts, strict=True)) if parts else nothing
    return ids, days, vectors


def write_blocks(workspace: str, shard: int, rows: Rows, block_days: int) -> None:
    """Writes the documents of one source shard, one file per block of days."""
    blocks = rows.days // block_days
    for block in np.unique(blocks).tolist():
        part = rows.take(blocks == block)
        vectors = {space.value: values for space, values in part.vectors.items()}
        path = f"{workspace}/_rows/block={block:06d}/part-{shard:05d}.npz"
        write_arrays(path, {"ids": part.ids, "days": part.days, **vectors})


def read_blocks(workspace: str, blocks: Iterable[int], days: tuple[int, int] | None = None) -> Rows:
    """Returns the documents of the given blocks, sorted by id; with ``days`` only from its first to its last day."""
    parts = []
    for block in blocks:
        for path in files.list_files(f"_rows/block={block:06d}/part-*.npz", workspace):
            arrays = read_arrays(path)
            part = Rows(arrays["ids"], arrays["days"], {space: arrays[space.value] for space in Space})
            if days is not None:
                wanted = (part.days >= days[0]) & (part.days <= days[1])
                part = part if wanted.all() else part.take(wanted)
            parts.append(part)
    return concatenate(parts)


def concatenate(parts: Sequence[Rows]) -> Rows:
    """Returns the documents of several parts, sorted by id; a space that a part lacks (width 0) becomes zeros."""
    nothing = Rows(np.zeros(0, np.uint64), np.zeros(0, np.int32), dict.fromkeys(Space, np.zeros((0, 0), np.float32)))
    parts = [nothing, *parts]
    ids = np.concatenate([part.ids for part in parts])
    order = np.argsort(ids, kind="stable")
    place = np.empty(len(ids), np.int64)
    place[order] = np.arange(len(ids))
    places = np.split(place, np.cumsum([len(part) for part in parts])[:-1])
    vectors: dict[Space, Floats] = {}
    for space in Space:
        width = max(part.vectors[space].shape[1] for part in parts)
        vectors[space] = np.zeros((len(ids), width), np.float32)
        for part, into in zip(parts, places, strict=True):
            if part.vectors[space].shape[1]:
                vectors[space][into] = part.vectors[space]
    return Rows(ids[order], np.concatenate([part.days for part in parts])[order], vectors)

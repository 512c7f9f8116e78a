"""Document vectors as arrays, cut into blocks of days, so that a worker reads only the days that it searches."""

import dataclasses
import functools
import io
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Self

import numpy as np

from ...formats import files, parquet
from ...formats.arrays import write_arrays
from ...formats.records import Space
from ..entities.cooccurrence import unit_rows
from ..entities.tables import Floats

Ids = np.ndarray[Any, np.dtype[np.uint64]]
Days = np.ndarray[Any, np.dtype[np.int32]]
Flags = np.ndarray[Any, np.dtype[np.bool_]]


@dataclasses.dataclass(frozen=True)
class Rows:
    """Documents with their vectors, sorted by id.

    Attributes:
      ids: uint64 ``[N]``, the document ids as numbers.
      days: int32 ``[N]``, byline dates as days since 1970-01-01.
      vectors: for every space float32 ``[N, D]`` of unit length, zero where a document has no vector.
    """

    ids: Ids
    days: Days
    vectors: Mapping[Space, Floats]

    def __len__(self) -> int:
        return len(self.ids)

    def take(self, chosen: Flags | Any) -> Self:
        """Returns the chosen documents, given as a mask, a slice or sorted row numbers."""
        vectors = {space: values[chosen] for space, values in self.vectors.items()}
        return dataclasses.replace(self, ids=self.ids[chosen], days=self.days[chosen], vectors=vectors)

    @functools.cached_property
    def present(self) -> Mapping[Space, Flags]:
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
    documents: dict[str, int] = {}
    parts: dict[Space, tuple[list[str], Floats]] = {}
    for space, path in paths.items():
        ids: list[str] = []
        values: list[Floats] = []
        for batch in parquet.read_batches(path, ["doc_id", "byline_date", "values"]):
            ids.extend(batch.column("doc_id").to_pylist())
            days = batch.column("byline_date").cast("int32").to_pylist()
            documents.update(zip(ids[-len(days) :], days, strict=True))
            values.append(
                batch.column("values")
                .flatten()
                .to_numpy(zero_copy_only=False)
                .reshape(len(days), -1)
                .astype(np.float32)
            )
        parts[space] = (ids, np.concatenate(values) if values else np.zeros((0, 0), np.float32))
    ordered = sorted(documents)
    place = {doc_id: number for number, doc_id in enumerate(ordered)}
    vectors: dict[Space, Floats] = {}
    for space, (ids, found) in parts.items():
        vectors[space] = np.zeros((len(ordered), found.shape[1]), np.float32)
        vectors[space][[place[doc_id] for doc_id in ids]] = unit_rows(found)
    vectors |= {space: np.zeros((len(ordered), 0), np.float32) for space in Space if space not in paths}
    numbers = np.array([int(doc_id, 16) for doc_id in ordered], np.uint64)
    return Rows(numbers, np.array([documents[doc_id] for doc_id in ordered], np.int32), vectors)


def block_path(workspace: str, block: int, shard: int) -> str:
    """Returns the path of the documents of one block that came from one source shard."""
    return f"{workspace}/_rows/block={block:06d}/part-{shard:05d}.npz"


def write_blocks(workspace: str, shard: int, rows: Rows, block_days: int) -> list[int]:
    """Writes one file per block of days and returns the numbers of the blocks.

    Args:
      workspace: the job's temporary folder.
      shard: number of the source shard.
      rows: documents of the shard.
      block_days: days of a block.
    """
    blocks = rows.days // block_days
    present = [int(block) for block in np.unique(blocks)]
    for block in present:
        part = rows.take(blocks == block)
        arrays: dict[str, Any] = {
            "ids": part.ids,
            "days": part.days,
            **{space.value: values for space, values in part.vectors.items()},
        }
        write_arrays(block_path(workspace, block, shard), arrays)
    return present


def read_blocks(workspace: str, blocks: Iterable[int], days: tuple[int, int] | None = None) -> Rows:
    """Returns the documents of the given blocks, sorted by id; with ``days`` only from its first to its last day."""
    parts = []
    for block in blocks:
        for path in files.list_files(f"{workspace}/_rows/block={block:06d}/part-*.npz"):
            part = _read_block(path)
            if days is not None:
                wanted = (part.days >= days[0]) & (part.days <= days[1])
                part = part if wanted.all() else part.take(wanted)
            parts.append(part)
    return concatenate(parts)


def _read_block(path: str) -> Rows:
    with files.open_read(path) as source, np.load(io.BytesIO(source.read())) as arrays:
        return Rows(arrays["ids"], arrays["days"], {space: arrays[space.value] for space in Space})


def concatenate(parts: Sequence[Rows]) -> Rows:
    """Returns the documents of several parts, sorted by id; a space that a part lacks (width 0) becomes zeros."""
    if not parts:
        return Rows(
            np.zeros(0, np.uint64), np.zeros(0, np.int32), {space: np.zeros((0, 0), np.float32) for space in Space}
        )
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

"""Document vectors as arrays, cut into blocks of days, so that a worker reads only the days that it searches."""

import dataclasses
import functools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, Self

import numpy as np

from ...formats import files, parquet
from ...formats.arrays import read_arrays, write_arrays
from ...formats.records import Space
from ..arrays import Array, Floats, Ids, doc_ids_of, doc_numbers_of, text_digests, write_parts
from ..entities.cooccurrence import unit_rows
from ..shards import Shard

FAR_PAIRS: Final = "far_pairs"  # the stream: one array
_LEAST_DAYS: Final = 8
_MOST_DAYS: Final = 28
_MOST_DOCUMENTS: Final = 20_000
_MOST_PAIRS: Final = 2_000_000
_PAIRS_AT_ONCE: Final = 4_096
_SAMPLE: Final = "_sample"


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


# Cosines of articles some weeks apart in the learned space: a background for `triplets` to compare with. Such articles
# share the subjects of their weeks, and stories that run for long, but seldom report one event.


def write_sample(shard: Shard, paths: Mapping[Space, str], documents: int) -> None:
    """Writes those documents of a shard of vectors that are in the sample of all, with their publishers.

    Args:
      shard: of this stage.
      paths: of the shard, by space.
      documents: number of documents of all shards.
    """
    rows = read_vectors(paths)
    # Ids are digests, so the smallest ones are a random sample, which does not depend on the shards.
    rows = rows.take(rows.ids.astype(np.float64) <= 2.0**64 * min(1.0, _MOST_DOCUMENTS / max(documents, 1)))
    publishers: dict[str, str] = {}
    for path in paths.values():
        for batch in parquet.read_batches(path, ["doc_id", "publisher"]):
            publishers.update(zip(*(column.to_pylist() for column in batch.columns), strict=True))
    names = [publishers[doc_id] for doc_id in doc_ids_of(rows.ids).to_pylist()]
    own = {"ids": rows.ids, "days": rows.days, "publishers": text_digests(names)}
    write_arrays(shard.path(_SAMPLE, "npz"), {**own, "vectors": rows.vectors[Space.LEARNED]})


def write_far_pairs(shard: Shard, _: None) -> None:
    """Writes the cosines of pairs of the sample, float32 ``[P]``; it holds 20,000 documents or a few more."""
    parts = [read_arrays(path) for path in files.list_files(f"{_SAMPLE}/*.npz", shard.workspace)]
    width = max(part["vectors"].shape[1] for part in parts)
    for part in parts:
        if not part["vectors"].shape[1]:  # no document of the part has a vector
            part["vectors"] = np.zeros((len(part["ids"]), width), np.float32)
    ids, days, publishers, vectors = (np.concatenate([part[name] for part in parts]) for name in parts[0])
    count, cosines = far_pairs(ids, days, publishers, vectors)
    write_parts(shard.path(FAR_PAIRS, "npy"), (count,), np.dtype(np.float32), cosines)


def far_pairs(
    ids: Ids, days: Array, publishers: Ids, vectors: Floats, most_pairs: int = _MOST_PAIRS
) -> tuple[int, Iterator[Floats]]:
    """Returns P, a number of pairs of documents 8 to 28 days apart, and their cosines, some pairs at a time.

    Args:
      ids: uint64 ``[N]``, in any order.
      days: int32 ``[N]``.
      publishers: uint64 ``[N]``, equal for documents of one publisher.
      vectors: float32 ``[N, D]`` of unit length, or zero.
      most_pairs: with more pairs than this, every second, third, … pair is taken.

    Returns:
      P, and parts that together are float32 ``[P]``, in the order of days and ids. A cosine is NaN where one of the
      documents has no vector, and for two documents of one publisher, which are never a positive.
    """
    order = np.lexsort((ids, days))
    days = days[order]
    first = np.searchsorted(days, days + _LEAST_DAYS)
    counts = np.searchsorted(days, days + _MOST_DAYS, side="right") - first
    ends = np.cumsum(counts)
    total = int(ends[-1]) if len(ends) else 0
    taken = range(0, total, max(1, -(-total // most_pairs)))
    present = np.asarray(vectors.any(axis=1))

    def cosines() -> Iterator[Floats]:
        """Yields those of the chosen pairs; pair n is of the first row whose pairs end after n."""
        for start in range(0, len(taken), _PAIRS_AT_ONCE):
            numbers = np.array(taken[start : start + _PAIRS_AT_ONCE])
            place = np.searchsorted(ends, numbers, side="right")
            left, right = order[place], order[first[place] + numbers - (ends[place] - counts[place])]
            found = np.full(len(numbers), np.nan, np.float32)
            known = np.flatnonzero((publishers[left] != publishers[right]) & present[left] & present[right])
            found[known] = np.einsum("pd,pd->p", vectors[left[known]], vectors[right[known]])
            yield found

    return len(taken), cosines()

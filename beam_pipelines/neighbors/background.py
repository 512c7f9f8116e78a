"""The similarities of articles some weeks apart, in all spaces: a background for `triplets` to compare with.

They share the subjects of their weeks, and stories that run for long, but seldom report one event.
"""

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from ...formats import files, parquet
from ...formats.arrays import read_arrays, write_arrays
from ...formats.records import Space
from ..arrays import Array, doc_numbers_of, write_array
from ..shards import Shard
from .rows import Ids, Rows, concatenate, read_vectors

FAR_PAIRS: Final = "far_pairs"  # the stream: one array
LEAST_DAYS: Final = 8
MOST_DAYS: Final = 28
_MOST_DOCUMENTS: Final = 20_000
_MOST_PAIRS: Final = 2_000_000
_PAIRS_AT_ONCE: Final = 4_096
_SAMPLE: Final = "_sample"


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
    arrays: dict[str, Array] = {space.value: rows.vectors[space] for space in paths}
    arrays |= {"ids": rows.ids, "days": rows.days, "publishers": _publishers(paths, rows.ids)}
    write_arrays(shard.path(_SAMPLE, "npz"), arrays)


def write_far_pairs(shard: Shard, spaces: Sequence[Space]) -> None:
    """Writes the similarities of pairs of the sample. One worker can hold it: 20,000 documents at most, or a few more.

    Args:
      shard: of this stage.
      spaces: those of the neighbors.
    """
    parts = [read_arrays(path) for path in files.list_files(f"{shard.workspace}/{_SAMPLE}/*.npz")]
    missing = np.zeros((0, 0), np.float32)
    rows = concatenate(
        [Rows(part["ids"], part["days"], {space: part.get(space.value, missing) for space in Space}) for part in parts]
    )
    ids = np.concatenate([part["ids"] for part in parts])
    publishers = np.concatenate([part["publishers"] for part in parts])[np.argsort(ids, kind="stable")]
    write_array(shard.path(FAR_PAIRS, "npy"), background(rows, publishers, spaces))


def background(
    rows: Rows, publishers: Ids, spaces: Sequence[Space], most_pairs: int = _MOST_PAIRS
) -> np.ndarray[Any, np.dtype[np.float32]]:
    """Returns the similarities of pairs of documents 8 to 28 days apart.

    Args:
      rows: N documents.
      publishers: uint64 ``[N]``, equal for documents of one publisher.
      spaces: those of the neighbors.
      most_pairs: with more pairs than this, every second, third, … pair is taken.

    Returns:
      float32 ``[P, len(spaces)]``. NaN where one of the documents has no vector, and in all spaces for two documents of
      one publisher, which are never a positive.
    """
    order = np.lexsort((rows.ids, rows.days))
    days = rows.days[order]
    first = np.searchsorted(days, days + LEAST_DAYS)
    counts = np.searchsorted(days, days + MOST_DAYS, side="right") - first
    ends = np.cumsum(counts)
    total = int(ends[-1]) if len(ends) else 0
    numbers = np.arange(0, total, max(1, -(-total // most_pairs)))
    left = np.searchsorted(ends, numbers, side="right")
    right = order[first[left] + numbers - (ends[left] - counts[left])]
    left = order[left]
    apart = np.flatnonzero(publishers[left] != publishers[right])
    found = np.full((len(numbers), len(spaces)), np.nan, np.float32)
    for column, space in enumerate(spaces):
        vectors, present = rows.vectors[space], rows.present[space]
        known = apart[present[left[apart]] & present[right[apart]]]
        for start in range(0, len(known), _PAIRS_AT_ONCE):
            part = known[start : start + _PAIRS_AT_ONCE]
            found[part, column] = np.einsum("pd,pd->p", vectors[left[part]], vectors[right[part]])
    return found


def _publishers(paths: Mapping[Space, str], ids: Ids) -> Ids:
    """A number for the publisher of each document, uint64 ``[N]``; ``ids`` are some of the shard's, sorted."""
    found = np.zeros(len(ids), np.uint64)
    for path in paths.values():
        for batch in parquet.read_batches(path, ["doc_id", "publisher"]):
            documents = doc_numbers_of(batch.column("doc_id"))
            places = np.searchsorted(ids, documents)
            known = np.flatnonzero(places < len(ids))
            known = known[ids[places[known]] == documents[known]]
            names = batch.column("publisher").to_pylist()
            found[places[known]] = [_number_of(names[row]) for row in known.tolist()]
    return found


def _number_of(name: str) -> int:
    return int.from_bytes(hashlib.blake2b(name.encode(), digest_size=8).digest(), "big")

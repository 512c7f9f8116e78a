"""The similarities of articles some weeks apart, and their contrasts: a background for `triplets` to compare with.

They share the subjects of their weeks, and stories that run for long, but seldom report one event.
"""

import hashlib
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import numpy as np

from ...formats import files, parquet
from ...formats.arrays import read_arrays, write_arrays
from ...formats.records import Space
from ..arrays import Array, doc_numbers_of, new_mapped, write_parts
from ..entities.tables import Floats
from ..lookup import Lookup
from ..shards import Shard
from .contrast import CONTRASTS, LEAST_DAYS, MOST_DAYS, contrasts_of, of_pairs
from .rows import Ids, Rows, read_vectors

FAR_PAIRS: Final = "far_pairs"  # the stream: one array
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
    """Writes the similarities of pairs of the sample, and their contrasts, float32 ``[P, 2 * spaces]``.

    One worker can read the sample: 20,000 documents at most, or a few more.

    Args:
      shard: of this stage.
      spaces: those of the neighbors.
    """
    with tempfile.TemporaryDirectory(prefix="newsembed-sample-") as folder:
        rows, publishers = _read_sample(f"{shard.workspace}/{_SAMPLE}", folder, spaces)
        contrasts = contrasts_of(Lookup(f"{shard.workspace}/{CONTRASTS}"), rows.ids)
        count, parts = background(rows, publishers, spaces, contrasts)
        write_parts(shard.path(FAR_PAIRS, "npy"), (count, 2 * len(spaces)), np.dtype(np.float32), parts)


def _read_sample(sample: str, folder: str, spaces: Sequence[Space]) -> tuple[Rows, Ids]:
    """Returns the documents of the sample and their publishers, with the vectors in mapped files of a local folder."""
    few: dict[str, list[Array]] = {"ids": [], "days": [], "publishers": []}
    widths = dict.fromkeys(Space, 0)
    paths = files.list_files(f"{sample}/*.npz")
    for path in paths:
        part = read_arrays(path)
        for name, values in few.items():
            values.append(part[name])
        widths |= {space: max(widths[space], part[space.value].shape[1]) for space in spaces}
    found = {name: np.concatenate(values) for name, values in few.items()}
    count = len(found["ids"])
    vectors = {space: new_mapped(f"{folder}/{space.value}", (count, widths[space]), np.float32) for space in Space}
    start = 0
    for path in paths:
        part = read_arrays(path)
        end = start + len(part["ids"])
        for space in spaces:
            if part[space.value].shape[1]:  # else no document of the part has a vector
                vectors[space][start:end] = part[space.value]
        start = end
    return Rows(found["ids"], found["days"], vectors), found["publishers"]


def background(
    rows: Rows, publishers: Ids, spaces: Sequence[Space], contrasts: Floats, most_pairs: int = _MOST_PAIRS
) -> tuple[int, Iterator[Floats]]:
    """Returns P, a number of pairs of documents 8 to 28 days apart, and their numbers, some pairs at a time.

    Args:
      rows: N documents in any order.
      publishers: uint64 ``[N]``, equal for documents of one publisher.
      spaces: those of the neighbors.
      contrasts: of the documents, in the order of `Space`, float32 ``[N, 4]``.
      most_pairs: with more pairs than this, every second, third, … pair is taken.

    Returns:
      P, and parts that together are float32 ``[P, 2 * len(spaces)]``, in the order of days and ids: the similarities,
      then the contrasts. A similarity is NaN where one of the documents has no vector; all are for two documents of one
      publisher, which are never a positive.
    """
    columns = [tuple(Space).index(space) for space in spaces]
    order = np.lexsort((rows.ids, rows.days))
    days = rows.days[order]
    first = np.searchsorted(days, days + LEAST_DAYS)
    counts = np.searchsorted(days, days + MOST_DAYS, side="right") - first
    ends = np.cumsum(counts)
    total = int(ends[-1]) if len(ends) else 0
    taken = range(0, total, max(1, -(-total // most_pairs)))

    def parts() -> Iterator[Floats]:
        """Yields the features of the chosen pairs; pair n is of the first row whose pairs end after n."""
        for start in range(0, len(taken), _PAIRS_AT_ONCE):
            numbers = np.array(taken[start : start + _PAIRS_AT_ONCE])
            left = np.searchsorted(ends, numbers, side="right")
            right = order[first[left] + numbers - (ends[left] - counts[left])]
            one = order[left]
            similarities = _similarities(rows, publishers, spaces, one, right)
            of_both = of_pairs(contrasts[one][:, columns], contrasts[right][:, columns])
            yield np.concatenate([similarities, of_both], axis=1)

    return len(taken), parts()


def _similarities(rows: Rows, publishers: Ids, spaces: Sequence[Space], left: Array, right: Array) -> Floats:
    """Returns the similarities of pairs of row numbers, float32 ``[P, len(spaces)]``, see :func:`background`."""
    found = np.full((len(left), len(spaces)), np.nan, np.float32)
    apart = np.flatnonzero(publishers[left] != publishers[right])
    for column, space in enumerate(spaces):
        vectors, present = rows.vectors[space], rows.present[space]
        known = apart[present[left[apart]] & present[right[apart]]]
        found[known, column] = np.einsum("pd,pd->p", vectors[left[known]], vectors[right[known]])
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

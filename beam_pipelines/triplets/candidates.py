"""The neighbors of a shard as an array: one row per pair, with its similarities in all spaces."""

from collections.abc import Collection, Iterable
from typing import Any, Final

import numpy as np

from ...formats.parquet import read_batches
from ...formats.records import Space
from ..arrays import Array, doc_numbers_of
from .table import DocumentTable

SPACES: Final = tuple(Space)
# ``similarity``: in the order of Space, NaN where a space does not have the pair. ``gap``: other minus anchor, in days.
CANDIDATE: Final = np.dtype(
    [("anchor", "<u8"), ("other", "<u8"), ("gap", "<i4"), ("similarity", "<f4", (len(SPACES),))]
)
_ROWS_AT_ONCE = 65_536


def read_candidates(path: str) -> Array:
    """Reads one shard of the ``neighbors`` stream, merged by :func:`merge_spaces`; dtype :data:`CANDIDATE`."""
    columns = ["query", "neighbor", "space", "similarity", "day_gap"]
    parts = [np.zeros(0, CANDIDATE)]
    for batch in read_batches(path, columns, _ROWS_AT_ONCE):
        query, neighbor, space, similarity, gap = (batch.column(name) for name in columns)
        encoded = space.dictionary_encode()
        numbers = np.array([SPACES.index(Space(name)) for name in encoded.dictionary.to_pylist()], np.int64)
        part = np.zeros(len(batch), CANDIDATE)
        part["anchor"], part["other"], part["gap"] = doc_numbers_of(query), doc_numbers_of(neighbor), gap.to_numpy()
        part["similarity"] = np.nan
        part["similarity"][np.arange(len(batch)), numbers[encoded.indices.to_numpy()]] = similarity.to_numpy()
        parts.append(part)
    return merge_spaces(np.concatenate(parts))


def merge_spaces(rows: Array) -> Array:
    """Returns one row per pair with the highest similarity of each space, sorted by anchor and other."""
    ordered = rows[np.lexsort((rows["other"], rows["anchor"]))]
    if not len(ordered):
        return ordered
    starts = np.flatnonzero(
        np.append(
            True, (ordered["anchor"][1:] != ordered["anchor"][:-1]) | (ordered["other"][1:] != ordered["other"][:-1])
        )
    )
    merged = ordered[starts]
    merged["similarity"] = np.fmax.reduceat(ordered["similarity"], starts, axis=0)
    return merged


def known_pairs(paths: Iterable[str], wanted: Collection[tuple[int, int]], table: DocumentTable) -> Array:
    """Returns the wanted (anchor, other) pairs that are among the neighbors and whose documents are in the table."""
    found = [np.zeros(0, CANDIDATE)]
    anchors = np.unique(np.array([anchor for anchor, _ in wanted], np.uint64))
    for path in paths:
        rows = read_candidates(path)
        rows = rows[np.isin(rows["anchor"], anchors)]
        found.append(rows[[pair in wanted for pair in rows[["anchor", "other"]].tolist()]])
    rows = np.concatenate(found)
    return rows[(table.places(rows["anchor"]) >= 0) & (table.places(rows["other"]) >= 0)]


def strength(candidates: Array) -> np.ndarray[Any, np.dtype[np.float32]]:
    """Returns the highest similarity in any space, float32 ``[P]``."""
    return np.asarray(np.fmax.reduce(candidates["similarity"], axis=1))


def rank_within(*keys: Array) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Returns the number of earlier rows with the same keys, int64 ``[N]``."""
    if not len(keys[0]):
        return np.zeros(0, np.int64)
    order = np.lexsort(keys[::-1])  # stable
    changes = np.append(True, np.any([key[order][1:] != key[order][:-1] for key in keys], axis=0))
    starts = np.flatnonzero(changes)
    ranks = np.empty(len(order), np.int64)
    ranks[order] = np.arange(len(order)) - starts[np.cumsum(changes) - 1]
    return ranks

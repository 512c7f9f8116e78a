"""Pairs that a search found, as arrays, and merging of parts that keeps the best pairs of each query."""

import enum
from collections.abc import Mapping
from typing import Any

import numpy as np

from ...formats.records import Space
from ..entities.tables import Floats
from .rows import Rows

SPACES = tuple(Space)


class Side(enum.IntEnum):
    """The days among which a pair was searched."""

    POSITIVE = 0  # days near the query's day
    NEGATIVE = 1  # days far from the query's day
    GLOBAL = 2  # all days


# Similarities are cosines in every space, NaN if a document has no vector there; ``space`` is the space searched.
FOUND = np.dtype(
    [
        ("query", "<u8"),
        ("neighbor", "<u8"),
        ("side", "u1"),
        ("space", "u1"),
        ("gap", "<i4"),
        ("similarity", "<f4", (len(SPACES),)),
    ]
)
Found = np.ndarray[Any, np.dtype[Any]]
_PAIRS_AT_ONCE = 1_024


def make_found(
    queries: Rows, candidates: Rows, query_numbers: Any, candidate_numbers: Any, side: Side, space: Space
) -> Found:
    """Returns pairs of distinct documents with exact similarities in all spaces, dtype :data:`FOUND`.

    Args:
      queries: documents that were searched for.
      candidates: documents that were searched.
      query_numbers: row in ``queries`` of each pair, int ``[P]``.
      candidate_numbers: row in ``candidates`` of each pair, int ``[P]``.
      side: the days that were searched.
      space: the space that was searched.
    """
    found = np.zeros(len(query_numbers), FOUND)
    found["query"], found["neighbor"] = queries.ids[query_numbers], candidates.ids[candidate_numbers]
    found["side"], found["space"] = side, SPACES.index(space)
    found["gap"] = candidates.days[candidate_numbers] - queries.days[query_numbers]
    for column, other in enumerate(SPACES):
        found["similarity"][:, column] = _cosines(queries, candidates, query_numbers, candidate_numbers, other)
    return found[found["query"] != found["neighbor"]]


def _cosines(queries: Rows, candidates: Rows, query_numbers: Any, candidate_numbers: Any, space: Space) -> Floats:
    cosines = np.full(len(query_numbers), np.nan, np.float32)
    known = np.flatnonzero(queries.present[space][query_numbers] & candidates.present[space][candidate_numbers])
    for start in range(0, len(known), _PAIRS_AT_ONCE):  # fits into a processor's cache
        part = known[start : start + _PAIRS_AT_ONCE]
        left, right = queries.vectors[space][query_numbers[part]], candidates.vectors[space][candidate_numbers[part]]
        cosines[part] = np.clip(np.einsum("pd,pd->p", left, right), -1, 1)
    return cosines


def keep_best(found: Found, counts: Mapping[Side, int]) -> Found:
    """Returns the best pairs of each (query, side, space) by similarity, ties by id; sorted, without repeats.

    It may be applied to parts and then to their union in any order; the result is the same as for all pairs at once.

    Args:
      found: pairs, dtype :data:`FOUND`.
      counts: number of pairs to keep by side; 1 for a side that is not given.
    """
    similarity = found["similarity"][np.arange(len(found)), found["space"] % len(SPACES)]
    order = np.lexsort((found["neighbor"], -similarity, found["space"], found["side"], found["query"]))
    ordered = found[order]
    repeated = np.ones(len(ordered), bool)
    names = ("query", "neighbor", "side", "space")
    repeated[1:] = np.all([ordered[name][1:] == ordered[name][:-1] for name in names], axis=0)
    repeated[:1] = False
    ordered = ordered[~repeated]
    starts = np.ones(len(ordered), bool)
    starts[1:] = np.any([ordered[name][1:] != ordered[name][:-1] for name in ("query", "side", "space")], axis=0)
    group = np.cumsum(starts) - 1
    rank = np.arange(len(ordered)) - np.flatnonzero(starts)[group] if len(ordered) else np.zeros(0, int)
    limit = np.array([counts.get(side, 1) for side in Side])
    return ordered[rank < limit[ordered["side"]]]

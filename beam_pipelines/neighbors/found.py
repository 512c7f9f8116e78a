"""Pairs that a search found, as arrays: keeping the best of each query, whatever order the parts come in."""

import enum
from collections.abc import Mapping
from typing import Any

import numpy as np

from ..entities.tables import Floats
from ..records import Space
from .rows import Rows

SPACES = tuple(Space)


class Side(enum.IntEnum):
    """What a pair was searched for."""

    POSITIVE = 0  # among the days around the query's
    NEGATIVE = 1  # among the days far from the query's
    GLOBAL = 2  # among all days
    DOCUMENT = 3  # no pair: says that the document exists


# Similarities are cosines in every space, NaN where one of the two has no vector; ``space`` is the one searched.
FOUND = np.dtype(
    [("query", "<u8"), ("neighbor", "<u8"), ("side", "u1"), ("space", "u1"), ("gap", "<i4"), ("similarity", "<f4", (len(SPACES),))]
)
Found = np.ndarray[Any, np.dtype[Any]]


def make_found(queries: Rows, candidates: Rows, query_numbers: Any, candidate_numbers: Any, side: Side, space: Space) -> Found:
    """Describes pairs, with exact similarities in all spaces.

    Args:
      queries: documents that were searched for.
      candidates: documents that were found.
      query_numbers: row in ``queries`` of each pair, int ``[P]``.
      candidate_numbers: row in ``candidates`` of each pair, int ``[P]``.
      side: what was searched.
      space: where.
    """
    found = np.zeros(len(query_numbers), FOUND)
    found["query"], found["neighbor"] = queries.ids[query_numbers], candidates.ids[candidate_numbers]
    found["side"], found["space"] = side, SPACES.index(space)
    found["gap"] = candidates.days[candidate_numbers] - queries.days[query_numbers]
    for column, other in enumerate(SPACES):
        left, right = queries.vectors[other], candidates.vectors[other]
        found["similarity"][:, column] = _cosines(left, right, query_numbers, candidate_numbers)
    return found[found["query"] != found["neighbor"]]


def _cosines(left: Floats, right: Floats, left_rows: Any, right_rows: Any) -> Floats:
    if not left.shape[1] or not right.shape[1]:
        return np.full(len(left_rows), np.nan, np.float32)
    cosines = np.einsum("pd,pd->p", left[left_rows], right[right_rows])
    cosines[np.logical_not(left[left_rows].any(axis=1) & right[right_rows].any(axis=1))] = np.nan
    return np.asarray(np.clip(cosines, -1, 1), np.float32)


def keep_best(found: Found, counts: Mapping[Side, int]) -> Found:
    """The best pairs of each (query, side, space) by similarity in that space, ties by id; sorted, without repeats.

    It may be applied to parts and to their union in any order: the result is that of applying it to all pairs at once.
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

"""Pairs that a search found, as arrays: keeping the best of each query, whatever order the parts come in."""

import enum
from collections.abc import Mapping
from typing import Any

import numpy as np

from ...formats.records import Space
from ..entities.tables import Floats
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
        found["similarity"][:, column] = _cosines(queries, candidates, query_numbers, candidate_numbers, other)
    return found[found["query"] != found["neighbor"]]


def _cosines(queries: Rows, candidates: Rows, query_numbers: Any, candidate_numbers: Any, space: Space) -> Floats:
    cosines = np.full(len(query_numbers), np.nan, np.float32)
    known = np.flatnonzero(queries.present[space][query_numbers] & candidates.present[space][candidate_numbers])
    for start in range(0, len(known), _PAIRS_AT_ONCE):  # what fits into a processor's cache
        part = known[start : start + _PAIRS_AT_ONCE]
        left, right = queries.vectors[space][query_numbers[part]], candidates.vectors[space][candidate_numbers[part]]
        cosines[part] = np.clip(np.einsum("pd,pd->p", left, right), -1, 1)
    return cosines


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

"""Retrieval on held-out examples: how high each query ranks its answer among the answers of all rows."""

from typing import Final

import numpy as np

from ..learning.objectives import Pairs

_ROWS: Final = 1024  # queries whose scores exist at a time


def join_pairs(parts: list[Pairs], limit: int) -> Pairs:
    """Returns the distinct rows of all parts, in order, at most this many; NumPy arrays.

    Rows are the same if their documents and kinds are: the last batch of a set may begin its next epoch.
    """
    joined = Pairs(*(np.concatenate([np.asarray(array) for array in arrays]) for arrays in zip(*parts, strict=True)))
    keys = np.concatenate([joined.query_ids[:, :2], joined.answer_ids[:, :2], joined.kind[:, None]], axis=1)
    _, first = np.unique(keys, axis=0, return_index=True)
    kept = np.sort(first)[:limit]
    return Pairs(*(array[kept] for array in joined))


def answer_ranks(pairs: Pairs, event_days: int = 1) -> np.ndarray:
    """Returns the rank of each query's answer among the answers of all rows, int64 [B]; 1 is best.

    Documents of the query's own row do not compete, nor do those of the same event: of
    the same story, with days that differ by at most `event_days` from a day of the row. Ties count against the answer.
    """
    query, answer = np.asarray(pairs.query, np.float32), np.asarray(pairs.answer, np.float32)
    own = np.einsum("id,id->i", query, answer)
    ranks = np.ones(len(query), np.int64)
    for start in range(0, len(query), _ROWS):
        rows = slice(start, start + _ROWS)
        competes = np.ones((len(query[rows]), len(answer)), bool)
        for mine in (np.asarray(pairs.query_ids)[rows], np.asarray(pairs.answer_ids)[rows]):
            competes &= ~_is_same(mine, np.asarray(pairs.answer_ids), event_days)
        ranks[rows] += np.sum(competes & (query[rows] @ answer.T >= own[rows, None]), axis=1)
    return ranks


def retrieval_figures(pairs: Pairs) -> dict[str, float]:
    """Returns the share of queries that rank their answer first, and the mean of 1 / rank."""
    ranks = answer_ranks(pairs)
    return {"retrieval_recall_at_1": float(np.mean(ranks == 1)), "retrieval_mrr": float(np.mean(1.0 / ranks))}


def _is_same(left: np.ndarray, right: np.ndarray, event_days: int) -> np.ndarray:
    """Whether rows [R, 5] and [M, 5] are the same document or report the same event, bool [R, M]."""

    def equal(columns: slice) -> np.ndarray:
        return np.all(left[:, None, columns] == right[None, :, columns], axis=-1)

    words, day = slice(2, 4), 4
    has_event = np.any(left[:, words] != 0, axis=1) & (left[:, day] != 0)
    near = np.abs(left[:, None, day] - right[None, :, day]) <= event_days
    return equal(slice(0, 2)) | (equal(words) & near & has_event[:, None] & (right[:, day] != 0)[None, :])

"""Retrieval on held-out rows: ranks against a plain search, who competes, and rows that come twice."""

import numpy as np
import pytest
from newsembed.learning.objectives import Pairs
from newsembed.training.retrieval import answer_ranks, join_pairs, retrieval_figures


def unit(rng, rows):
    vectors = rng.normal(size=(rows, 4)).astype(np.float32)
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def drawn(rng, rows, documents=1000):
    def ids():
        story = rng.integers(0, 4, rows)
        return np.stack(
            [rng.integers(0, documents, rows), np.zeros(rows, int), story, story * 7, rng.integers(0, 5, rows)], axis=1
        ).astype(np.int32)

    return Pairs(unit(rng, rows), unit(rng, rows), ids(), ids(), rng.integers(0, 4, rows).astype(np.int32))


def same(left, right, days=1):
    """Whether two documents are one, or report one event."""
    is_known = left[4] != 0 and right[4] != 0 and left[2:4] != [0, 0]
    return left[:2] == right[:2] or (is_known and left[2:4] == right[2:4] and abs(left[4] - right[4]) <= days)


@pytest.mark.parametrize("days", [0, 1, 2])
@pytest.mark.parametrize("documents", [5, 1000])
def test_ranks_equal_a_plain_search(documents, days, monkeypatch):
    monkeypatch.setattr("newsembed.training.retrieval._ROWS", 7)
    pairs = drawn(np.random.default_rng(documents), 40, documents)
    expected = []
    for i in range(40):
        mine = (pairs.query_ids[i].tolist(), pairs.answer_ids[i].tolist())
        rivals = [j for j in range(40) if not any(same(one, pairs.answer_ids[j].tolist(), days) for one in mine)]
        own = float(pairs.query[i] @ pairs.answer[i])
        expected.append(1 + sum(float(pairs.query[i] @ pairs.answer[j]) > own for j in rivals))
    assert answer_ranks(pairs, event_days=days).tolist() == expected
    if days != 1:
        return
    assert answer_ranks(pairs).tolist() == expected
    figures = retrieval_figures(pairs)
    assert figures["retrieval_mrr"] == pytest.approx(np.mean(1 / np.array(expected)))
    assert figures["retrieval_recall_at_1"] == pytest.approx(np.mean(np.array(expected) == 1))


def test_a_model_that_tells_nothing_apart_finds_nothing():
    ids = np.array([[n, 0, 0, 0, 0] for n in range(6)], np.int32)
    same_vector = np.tile(np.float32([1, 0]), (3, 1))
    pairs = Pairs(same_vector, same_vector, ids[:3], ids[3:], np.zeros(3, np.int32))
    assert answer_ranks(pairs).tolist() == [3, 3, 3]


def test_rows_that_come_twice_count_once_and_the_limit_holds():
    pairs = drawn(np.random.default_rng(1), 12)
    parts = [Pairs(*(array[:8] for array in pairs)), Pairs(*(array[4:] for array in pairs))]
    joined = join_pairs(parts, 100)
    for found, expected in zip(joined, pairs, strict=True):
        np.testing.assert_array_equal(found, expected)
    assert len(join_pairs(parts, 5).kind) == 5
    # The same documents in another row of Table 1 are another question.
    other = pairs._replace(kind=pairs.kind + 1)
    assert len(join_pairs([pairs, other], 100).kind) == 24


def test_rows_are_the_same_by_both_words_of_both_documents_and_the_kind():
    query = [[1, 2, 3, 4, 5], [1, 9, 3, 4, 5], [9, 2, 3, 4, 5], [1, 2, 9, 9, 9], [1, 2, 3, 4, 5], [1, 2, 3, 4, 5]]
    answer = [[6, 7, 0, 0, 0], [6, 7, 0, 0, 0], [6, 7, 0, 0, 0], [6, 7, 9, 9, 9], [6, 9, 0, 0, 0], [9, 7, 0, 0, 0]]
    vectors, kind = np.arange(12, dtype=np.float32).reshape(6, 2), np.zeros(6, np.int32)
    pairs = Pairs(vectors, vectors + 1, np.array(query, np.int32), np.array(answer, np.int32), kind)
    joined = join_pairs([pairs, pairs._replace(kind=kind + np.arange(6, dtype=np.int32) // 5)], 9)
    assert joined.query[:, 0].tolist() == [0, 2, 4, 8, 10, 10]  # the fourth differs in its event only
    assert joined.kind.tolist() == [0, 0, 0, 0, 0, 1]

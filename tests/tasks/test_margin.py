"""Margin scoring and one-to-one matching against plain loops in float64."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from newsembed.tasks import margin
from newsembed.tasks.margin import Candidates, Threshold
from scipy import sparse
from vectors import unit


def plain_margins(left, right, k):
    """Equation 2 of Artetxe and Schwenk (2019), written out: margin of every pair, and the k nearest of each row."""
    cosines = left.astype(np.float64) @ right.astype(np.float64).T
    near = [sorted(range(len(right)), key=lambda j, row=row: (-row[j], j))[:k] for row in cosines]
    back = [sorted(range(len(left)), key=lambda i, row=row: (-row[i], i))[:k] for row in cosines.T]
    margins = np.zeros_like(cosines)
    for i in range(len(left)):
        for j in range(len(right)):
            first = sum(cosines[i, z] / (2 * len(near[i])) for z in near[i])
            second = sum(cosines[z, j] / (2 * len(back[j])) for z in back[j])
            margins[i, j] = cosines[i, j] / (first + second) if first + second > 1e-6 else 0
    return cosines, margins, near, back


def plain_best(left, right, k):
    """Of each sentence's k neighbors the one of the highest margin, both directions, as {(i, j): margin}."""
    _, margins, near, back = plain_margins(left, right, k)
    pairs = {(i, max(near[i], key=lambda j: margins[i, j])) for i in range(len(left))}
    pairs |= {(max(back[j], key=lambda i: margins[i, j]), j) for j in range(len(right))}
    return {pair: margins[pair] for pair in pairs if margins[pair] > 0}


@given(arrays(np.float32, st.tuples(st.integers(0, 6), st.integers(1, 12)), elements=st.sampled_from([-1, 0, 0.5, 1])))
def test_nearest_is_a_stable_sort_by_cosine(scores):
    found, cosines = margin.nearest(scores, np.eye(scores.shape[1], dtype=np.float32), 4)
    expected = np.argsort(-scores, axis=1, kind="stable")[:, :4]
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(cosines, np.take_along_axis(scores, expected, 1))


def test_nearest_in_blocks_and_of_sparse_rows_is_the_same(monkeypatch):
    left, right = unit(0, 23), unit(1, 17)
    whole = margin.nearest(left, right, 3)
    monkeypatch.setattr(margin, "_COSINES_AT_ONCE", 40)
    for sides in ((left, right), (sparse.csr_matrix(left), sparse.csr_matrix(right))):
        rows, cosines = margin.nearest(*sides, 3)
        np.testing.assert_array_equal(rows, whole[0])
        np.testing.assert_allclose(cosines, whole[1], atol=1e-6)


@given(st.integers(1, 30), st.integers(1, 30), st.integers(1, 6), st.integers(0, 1000))
@settings(max_examples=60)
def test_the_best_pairs_are_those_of_plain_loops(rows, others, k, seed):
    left, right = unit(seed, rows), unit(seed + 1, others)
    found = margin.best_pairs(margin.find_neighborhoods(left, right, k))
    expected = plain_best(left, right, k)
    pairs = list(zip(found.left.tolist(), found.right.tolist(), strict=True))
    assert pairs == sorted(expected)
    np.testing.assert_allclose(found.margins, [expected[pair] for pair in pairs], rtol=1e-4)
    cosines = np.einsum("pd,pd->p", left[found.left], right[found.right])
    np.testing.assert_allclose(found.cosines, cosines, atol=1e-6)


def test_sentences_without_a_vector_are_in_no_pair():
    left, right = unit(0, 5), unit(1, 6)
    left[2], right[3] = 0, 0
    found = margin.best_pairs(margin.find_neighborhoods(left, right))
    assert 2 not in found.left
    assert 3 not in found.right


pairs_of_rows = st.lists(
    st.tuples(st.integers(0, 6), st.integers(0, 6), st.sampled_from([1.0, 1.25, 1.5, 2.0])), max_size=25
)


def candidates(rows):
    left, right, margins = zip(*rows, strict=True) if rows else ((), (), ())
    scores = np.array(margins, np.float32)
    return Candidates(np.array(left, np.int64), np.array(right, np.int64), scores / 4, scores)


@given(pairs_of_rows)
def test_one_to_one_takes_the_highest_margins_first(rows):
    rows = list({row[:2]: row for row in rows}.values())
    kept, lefts, rights = set(), set(), set()
    for left, right, _ in sorted(rows, key=lambda row: (-row[2], row[0], row[1])):
        if left not in lefts and right not in rights:
            kept.add((left, right))
            lefts.add(left)
            rights.add(right)
    found = candidates(rows)
    mask = margin.one_to_one(found)
    assert {row[:2] for row, one in zip(rows, mask, strict=True) if one} == kept


@given(pairs_of_rows, pairs_of_rows)
def test_a_union_has_each_pair_once_in_order(first, second):
    found = margin.union([candidates(first), candidates(second)])
    best = {}
    for left, right, value in first + second:
        best[left, right] = max(value, best.get((left, right), 0))
    assert list(zip(found.left.tolist(), found.right.tolist(), strict=True)) == sorted(best)
    assert found.margins.tolist() == [best[pair] for pair in sorted(best)]


@given(st.lists(st.tuples(st.sampled_from([1.0, 1.25, 1.5, 2.0]), st.booleans()), max_size=12), st.integers(0, 3))
def test_thresholds_are_those_of_counting_from_each_margin_on(rows, missed):
    margins, is_true = np.array([row[0] for row in rows], np.float32), np.array([row[1] for row in rows], bool)
    total = int(is_true.sum()) + missed + 1
    found = margin.thresholds(margins, is_true, ~is_true, total)
    expected = []
    for bar in sorted(set(margins.tolist()), reverse=True):
        accepted = is_true[margins >= bar]
        expected.append(Threshold(bar, accepted.mean(), accepted.sum() / total))
    assert found == expected
    best = margin.best_f1(found)
    assert best.f1 == max((one.f1 for one in expected), default=0)
    reached = [one.margin for one in expected if one.precision >= 0.5]
    chosen = margin.for_precision(found, 0.5)
    assert (chosen.margin if chosen else None) == (min(reached) if reached else None)

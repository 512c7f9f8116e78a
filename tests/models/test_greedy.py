"""The walk along a ranked list equals one that compares every article with every article shown before."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from newsembed.models import greedy
from newsembed.models.greedy import walk
from scipy.sparse import csr_matrix
from vectors import unit


def reference(vectors, threshold, most):
    """Shown places, by comparing all pairs in float64."""
    cosines = vectors.astype(np.float64) @ vectors.T.astype(np.float64)
    shown, looked_at = [], 0
    for place in range(len(vectors)):
        if len(shown) == most:
            break
        looked_at += 1
        if all(cosines[place, other] <= threshold for other in shown):
            shown.append(place)
    return shown, looked_at


@settings(max_examples=60, deadline=None)
@given(
    st.integers(0, 50),
    st.integers(0, 40),
    st.floats(-0.9, 0.99),
    st.none() | st.integers(1, 8),
    st.sampled_from([1, 3, 256]),
)
def test_it_equals_comparing_all_pairs(seed, count, threshold, most, block):
    vectors = unit(seed, count, 3)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(greedy, "_BLOCK", block)
        found, sparse = walk(vectors, threshold, most), walk(csr_matrix(vectors), threshold, most)
    expected, looked_at = reference(vectors, threshold, most)
    for one in (found, sparse):
        assert np.flatnonzero(one.shown).tolist() == expected
        assert len(one.shown) == len(one.nearest) == len(one.cosine) == looked_at
    cosines = vectors @ vectors.T
    for place in range(looked_at):
        before = [other for other in expected if other < place]
        assert found.cosine[place] == pytest.approx(max(cosines[place, before], default=-1), abs=1e-6)
        assert found.nearest[place] == (max(before, key=lambda o: found_key(cosines, place, o)) if before else -1)


def found_key(cosines, place, other):
    return round(float(cosines[place, other]), 6), -other


def test_a_threshold_of_1_shows_all_copies_too():
    vectors = np.repeat(unit(2, 40, 200), 2, axis=0)
    assert (np.sum(vectors**2, axis=1) > 1).any()  # rounding
    assert walk(vectors, 1.0).shown.all()
    assert walk(vectors, 0.9999).shown.tolist() == [True, False] * 40

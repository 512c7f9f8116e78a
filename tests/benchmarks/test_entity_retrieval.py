"""The figures of the benchmark of entities across languages."""

import numpy as np
import pytest


@pytest.fixture(scope="module")
def benchmark(script):
    return script("entity_retrieval")


def test_a_tie_counts_by_its_share_and_empty_vectors_are_not_covered(benchmark):
    left = np.array([[1, 0], [1, 0], [0, 1], [0, 0]], np.float32)
    right = np.array([[1, 0], [1, 0], [0, 1], [1, 0]], np.float32)
    hit, coverage = benchmark.score(left, right)
    assert hit == pytest.approx((1 / 3 + 1 / 3 + 1) / 3)  # the fourth row of the right side ties, too
    assert coverage == 3 / 4

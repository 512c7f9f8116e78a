"""The figures of the benchmark of entities across languages."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest


@pytest.fixture(scope="module")
def benchmark():
    path = Path(__file__).parents[2] / "benchmarks/entity_retrieval.py"
    spec = importlib.util.spec_from_file_location("entity_retrieval", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_tie_counts_by_its_share_and_empty_vectors_are_not_covered(benchmark):
    left = np.array([[1, 0], [1, 0], [0, 1], [0, 0]], np.float32)
    right = np.array([[1, 0], [1, 0], [0, 1], [1, 0]], np.float32)
    hit, coverage = benchmark.score(left, right)
    assert hit == pytest.approx((1 / 3 + 1 / 3 + 1) / 3)  # the fourth row of the right side ties, too
    assert coverage == 3 / 4

"""The figures of the benchmark of entities across languages: its ceiling, its scores and its halves."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest
from newsembed.beam_pipelines.entities.linking import Mentions


@pytest.fixture(scope="module")
def benchmark():
    path = Path(__file__).parents[2] / "benchmarks/entity_retrieval.py"
    spec = importlib.util.spec_from_file_location("entity_retrieval", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def mentions(*rows):
    return [Mentions("0" * 16, None, "", "", one, (1,) * len(one), (), None) for one in rows]


def test_the_ceiling_counts_ties_pairs_without_a_common_entity_and_equal_pairs(benchmark):
    # Two of three translations of [0] are [0], which one ranking can find with one chance in two: 2 pairs / 2 rows.
    # The third pair of [0] shares nothing. [1, 2] is found by its one translation [1]. Empty sides do not count.
    left = mentions((0,), (0,), (0,), (1, 2), (), (3,))
    right = mentions((0,), (0,), (9,), (1,), (4,), ())
    most, unshared, equal = benchmark.ceiling(left, right)
    assert most == pytest.approx((1 + 1) / 4)
    assert unshared == pytest.approx(1 / 4)
    assert equal == pytest.approx(2 / 4)


def test_the_ceiling_chooses_one_place_for_equal_sentences(benchmark):
    left = mentions((0,), (0,), (0,))
    right = mentions((0,), (0, 1), (0, 1))
    # All three look alike: sending them to [0] finds 1 pair, to [0, 1] 2 pairs of 2 equal rows, so 1 in the mean.
    assert benchmark.ceiling(left, right) == (pytest.approx(1 / 3), 0, pytest.approx(1 / 3))


def test_counts_distinguish_sentences(benchmark):
    one = [Mentions("0" * 16, None, "", "", (0,), (count,), (), None) for count in (1, 2)]
    assert benchmark.ceiling(one, one)[0] == 1


def test_no_pairs_have_no_ceiling(benchmark):
    assert benchmark.ceiling(mentions(()), mentions((1,))) == (0, 0, 0)


def test_a_tie_counts_by_its_share_and_empty_vectors_are_not_covered(benchmark):
    left = np.array([[1, 0], [1, 0], [0, 1], [0, 0]], np.float32)
    right = np.array([[1, 0], [1, 0], [0, 1], [1, 0]], np.float32)
    hit, coverage = benchmark.score(left, right)
    assert hit == pytest.approx((1 / 3 + 1 / 3 + 1) / 3)  # the fourth row of the right side ties, too
    assert coverage == 3 / 4


def test_halves_keep_documents_whole(benchmark):
    documents = ["a", "a", "b", "c", "c", "d"]
    assert benchmark.half_of(documents, "first") == [0, 1, 2]
    assert benchmark.half_of(documents, "second") == [3, 4, 5]
    assert benchmark.half_of(documents, "all") == [0, 1, 2, 3, 4, 5]

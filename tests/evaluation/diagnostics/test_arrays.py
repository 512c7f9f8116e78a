"""Neighbors, pairs, geometry, redundancy and maps against cases worked by hand, and against the trainer's functions."""

import math

import numpy as np
import pytest
from newsembed.evaluation import similarity, tokens
from newsembed.evaluation.encoders import normalised
from newsembed.evaluation.events import EventDocument
from newsembed.evaluation.similarity import PairKind
from newsembed.models import losses
from scipy import sparse
from vectors import circle

of_both_forms = pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix], ids=["dense", "sparse"])


def drawn(rows, width=8, seed=0):
    return normalised(np.random.default_rng(seed).normal(size=(rows, width)))


def article(number, event="", topic="", language=""):
    return EventDocument(str(number), "title", "body", event=event, topic=topic, language=language)


@of_both_forms
def test_the_nearest_come_first_without_the_query_itself(form):
    vectors = form(circle(0, 10, 30, 180))
    places, cosines = similarity.nearest(vectors, [0, 3], 2)
    assert places.tolist() == [[1, 2], [2, 1]]
    np.testing.assert_allclose(cosines, np.cos(np.deg2rad([[10, 30], [150, 170]])), atol=1e-6)


def test_ties_go_to_the_earlier_and_no_more_than_all_others_are_given():
    places, _ = similarity.nearest(circle(0, 0, 0), [1], 5)
    assert places.tolist() == [[0, 2]]


def test_shared_neighbors_by_hand():
    # By the second encoder articles 1 and 2 have changed places, so of one neighbor each: 0 has 1 and 2, 1 has 0 and 2,
    # 2 has 1 and 0.
    assert similarity.shared_neighbors(circle(0, 10, 30, 50), circle(0, 10, 30, 50), 1) == 1
    assert similarity.shared_neighbors(circle(0, 10, 21), circle(0, 21, 10), 1) == pytest.approx(0)
    assert similarity.shared_neighbors(circle(0, 10, 21), circle(0, 21, 10), 2) == 1


def test_pairs_of_each_kind_by_hand():
    labels = zip(["storm"] * 3 + ["drought", ""], ["en", "de", "en", "en", "en"], strict=True)
    articles = [article(number, event, "weather", language) for number, (event, language) in enumerate(labels)]
    articles.append(article(5))
    found = {kind: set(map(tuple, places.tolist())) for kind, places in similarity.draw_pairs(articles, 100).items()}
    assert found[PairKind.SAME_EVENT] == {(0, 1), (0, 2), (1, 2)}
    assert found[PairKind.ACROSS_LANGUAGES] == {(0, 1), (1, 2)}
    assert found[PairKind.SAME_TOPIC] == {(0, 3), (1, 3), (2, 3), (0, 4), (1, 4), (2, 4), (3, 4)}
    assert found[PairKind.RANDOM] == {(i, j) for j in range(6) for i in range(j)}


def test_more_pairs_than_the_limit_are_drawn_once_each_and_by_seed():
    articles = [article(number, "one event", "one topic") for number in range(40)]
    found = similarity.draw_pairs(articles, 50, seed=1)
    assert PairKind.SAME_TOPIC not in found
    for places in found.values():
        rows = set(map(tuple, places.tolist()))
        assert len(rows) == 50
        assert all(0 <= i < j < 40 for i, j in rows)
    again = similarity.draw_pairs(articles, 50, seed=1)
    assert all((found[kind] == again[kind]).all() for kind in found)
    assert (found[PairKind.RANDOM] != similarity.draw_pairs(articles, 50, seed=2)[PairKind.RANDOM]).any()


@of_both_forms
def test_similarities_by_hand(form):
    places = {PairKind.SAME_EVENT: np.array([[0, 1]]), PairKind.RANDOM: np.array([[0, 1], [0, 2], [1, 2]])}
    found = similarity.similarities(form(circle(0, 60, 180)), places)
    np.testing.assert_allclose(found[PairKind.RANDOM].cosines, [0.5, -1, -0.5], atol=1e-6)
    assert found[PairKind.RANDOM].mean == pytest.approx(-1 / 3, abs=1e-6)
    assert found[PairKind.RANDOM].quantiles[1] == pytest.approx(-0.5)
    assert found[PairKind.RANDOM].auc is None
    auc = (1 + 1 + 0.5) / 3  # above two of three random ones and tied with itself
    assert found[PairKind.SAME_EVENT].auc == pytest.approx(auc)


@of_both_forms
def test_alignment_and_uniformity_are_the_trainer_s(form, monkeypatch):
    monkeypatch.setattr(similarity, "_BLOCK", 7)
    vectors = drawn(20)
    places = np.array([[0, 1], [2, 7], [3, 19]])
    expected = float(losses.alignment(vectors[places[:, 0]], vectors[places[:, 1]]))
    assert similarity.alignment(form(vectors), places) == pytest.approx(expected, rel=1e-5)
    assert similarity.uniformity(form(vectors)) == pytest.approx(float(losses.uniformity(vectors)), rel=1e-5)


def test_text_redundancy_by_hand():
    assert tokens.text_redundancy(np.array([2, 5, 6, 7, 8, 3], np.int32)) == pytest.approx(0)
    assert tokens.text_redundancy(np.array([2, 5, 5, 5, 5, 3], np.int32)) == pytest.approx(1)
    # Four pieces, two of each: one bit of the two that four could tell.
    assert tokens.text_redundancy(np.array([2, 5, 5, 3, 6, 6, 3], np.int32)) == pytest.approx(0.5)
    assert tokens.text_redundancy(np.array([2, 1, 1, 3], np.int32)) == pytest.approx(1)  # [UNK] is a word
    assert math.isnan(tokens.text_redundancy(np.array([2, 5, 3], np.int32)))


def test_repetition_by_hand():
    assert tokens.word_repetition(["a", "b", "c"]) == 1
    assert tokens.word_repetition(["a", "b", "a", "a"]) == 2
    assert math.isnan(tokens.word_repetition([]))
    bins = tokens.repetition_by_length([10, 50, 51, 300, 301, 5000, 60], [1, 1.5, 2, 3, 4, 6, math.nan])
    assert [(row.shortest, row.longest, row.documents, *row.means) for row in bins] == [
        (0, 50, 2, 1.25),
        (51, 100, 1, 2),
        (201, 300, 1, 3),
        (301, None, 2, 5),
    ]
    assert tokens.repetition_by_length([], []) == []


def test_redundancy_by_length_by_hand():
    rows = [np.array([2, *range(5, 5 + length), 3], np.int32) for length in (1, 2, 16, 17, 32, 70)]
    bins = tokens.redundancy_by_length(rows, np.array([np.nan, 0.1, 0.3, 0.5, 0.7, 0.9], np.float32))
    assert [(row.shortest, row.longest, row.documents) for row in bins] == [(2, 16, 2), (17, 32, 2), (65, 128, 1)]
    assert [row.means[1] for row in bins] == pytest.approx([0.2, 0.6, 0.9])
    assert [row.means[0] for row in bins] == pytest.approx([0, 0, 0], abs=1e-9)
    assert tokens.redundancy_by_length(rows[:1], np.array([np.nan], np.float32)) == []


@of_both_forms
def test_a_map_keeps_groups_together(form):
    rng = np.random.default_rng(0)
    centres = np.eye(60)[:2].repeat(10, axis=0)
    vectors = normalised(centres + 0.02 * rng.normal(size=centres.shape))
    points = similarity.project(form(vectors), seed=3)
    assert points.shape == (20, 2)
    np.testing.assert_allclose(points.mean(axis=0), 0, atol=1e-3)
    distances = np.linalg.norm(points[:, None] - points, axis=-1)
    np.fill_diagonal(distances, np.inf)
    assert all((nearest < 10) == (place < 10) for place, nearest in enumerate(distances.argmin(axis=1)))
    np.testing.assert_array_equal(points, similarity.project(form(vectors), seed=3))


def test_a_map_of_equal_vectors_is_a_map():
    points = similarity.project(np.tile(circle(40), (12, 1)))
    assert np.isfinite(points).all()

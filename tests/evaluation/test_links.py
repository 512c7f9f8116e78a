"""Linking posts to articles: pooled measures by hand and by plain sorting, ties, files, and the bootstrap."""

import json

import numpy as np
import pytest
from newsembed.errors import InputError
from newsembed.evaluation import links
from newsembed.evaluation.benchmark import Score
from newsembed.evaluation.encoders import Document
from newsembed.evaluation.links import (
    PostLinking,
    link_scores,
    pooled_cosines,
    precisions_at,
    resampled_ap,
)
from newsembed.evaluation.paired import paired_test
from newsembed.evaluation.registry import SUITES, Options
from sklearn.metrics import average_precision_score


def write(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(path)


def test_a_case_by_hand_with_ties():
    scores = np.array([0.9, 0.5, 0.5, 0.5, 0.1])
    relevant = np.array([True, True, False, False, False])
    found = precisions_at(scores, relevant, [1, 2, 3, 5])
    assert found == {
        1: 1.0,
        2: pytest.approx((1 + 1 / 3) / 2),
        3: pytest.approx((1 + 2 / 3) / 3),
        5: pytest.approx(2 / 5),
    }
    measures = link_scores(scores, relevant)
    assert set(measures) == {"AP", "ROC AUC", "mRP", "P@R"}
    assert measures["P@R"] == measures["mRP"] == pytest.approx(2 / 3)
    # Ranked in groups of ties: recall 1/2 at precision 1, recall 1 at precision 2/4.
    assert measures["AP"] == pytest.approx(0.5 * 1 + 0.5 * 0.5)
    # Of 6 pairs of a relevant and another, the first beats 3, the second ties with 2 and beats 1.
    assert measures["ROC AUC"] == pytest.approx((3 + 1 + 2 * 0.5) / 6)


def test_precisions_equal_the_mean_over_orders():
    rng = np.random.default_rng(0)
    scores, relevant = rng.integers(0, 4, 12).astype(float), rng.random(12) < 0.4
    expected = dict.fromkeys(range(1, 13), 0.0)
    draws = 4000
    for _ in range(draws):
        order = np.lexsort((rng.random(12), -scores))
        for depth in expected:
            expected[depth] += relevant[order[:depth]].mean() / draws
    assert precisions_at(scores, relevant, list(expected)) == pytest.approx(expected, abs=0.02)


def test_depths_reach_as_far_as_there_are_relevant_pairs():
    rng = np.random.default_rng(1)
    scores, relevant = rng.random((300, 300)), np.eye(300, dtype=bool)
    measures = link_scores(scores, relevant)
    assert [name for name in measures if name.startswith("P@")] == ["P@50", "P@100", "P@200", "P@R"]
    best = np.argsort(-scores.ravel())
    for name, depth in (("P@50", 50), ("P@200", 200), ("P@R", 300)):
        assert measures[name] == pytest.approx(relevant.ravel()[best[:depth]].mean())
    assert measures["mRP"] == pytest.approx(np.mean([measures[f"P@{name}"] for name in (50, 100, 200, "R")]))


def test_cosines_of_many_articles_are_those_of_one_product(monkeypatch):
    rng = np.random.default_rng(2)
    articles, posts = (rng.normal(size=(count, 5)).astype(np.float32) for count in (8, 4))
    articles /= np.linalg.norm(articles, axis=1, keepdims=True)
    posts /= np.linalg.norm(posts, axis=1, keepdims=True)
    monkeypatch.setattr(links, "_ARTICLES_AT_A_TIME", 3)
    found = pooled_cosines(articles, posts)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, articles @ posts.T, atol=1e-6)


def test_a_file_of_posts(tmp_path):
    rows = [
        {"title": "A", "body": "a a", "post": "one"},
        {"title": "B", "body": "b b", "post": "two"},
        {"title": "A", "body": "a a", "post": "three"},
    ]
    suite = SUITES["links"](write(tmp_path / "posts.jsonl", rows), "links", Options())
    assert suite.documents() == [
        Document("A", "a a"),
        Document("B", "b b"),
        *(Document(x, "") for x in ("one", "two", "three")),
    ]
    assert suite.owners().tolist() == [0, 1, 0]
    vectors = np.float32([[1, 0], [0, 1], [1, 0], [1, 0], [1, 0]])  # the post about B looks like one about A
    scores = {score.metric: score for score in suite.score(vectors)}
    assert scores["P@R"].value == pytest.approx(2 / 3)
    assert scores["AP"].count == 3
    without = PostLinking(suite.path, excluded=frozenset({Document("three", "")}))
    assert len(without.documents()) == 4


def test_titles_are_posts_about_their_bodies(tmp_path):
    rows = [{"title": f"t{number}", "body": f"b{number}"} for number in range(3)]
    suite = SUITES["title_links"](write(tmp_path / "a.jsonl", rows), "links", Options())
    assert suite.documents()[:1] + suite.documents()[3:4] == [Document("", "b0"), Document("t0", "")]
    assert suite.protocol["titles"] is True


@pytest.mark.parametrize(
    ("row", "field"), [({"title": "A", "body": "a"}, "post"), ({"title": "A", "body": " ", "post": "x"}, "body")]
)
def test_broken_lines_are_named(tmp_path, row, field):
    path = write(tmp_path / "x.jsonl", [{"title": "A", "body": "a", "post": "x"}, row])
    with pytest.raises(InputError, match=rf"x\.jsonl:2: {field}"):
        PostLinking(path).documents()
    with pytest.raises(InputError, match="fewer than two articles"):
        PostLinking(write(tmp_path / "y.jsonl", [{"title": "A", "body": "a", "post": "x"}])).documents()


def test_the_bootstrap_finds_a_difference_and_none_where_there_is_none():
    rng = np.random.default_rng(3)
    owners = np.repeat(np.arange(40), 2)
    truth = owners[None, :] == np.arange(40)[:, None]
    good, bad = (
        [
            Score("AP", link_scores(cosines, truth)["AP"], draws=tuple(resampled_ap(cosines, owners, resamples=60)))
            for cosines in (truth + rng.normal(size=truth.shape) * noise for _ in range(2))
        ]
        for noise in (0.5, 1.5)
    )
    found = paired_test(good, bad)
    assert 0 < found.low < found.difference < found.high
    assert (found.p, found.count) == (pytest.approx(1 / 60), 60)
    same = paired_test(good, good)
    assert (same.difference, same.low, same.high, same.p) == (0, 0, 0, 1)


def test_a_resample_counts_a_pair_as_often_as_it_draws_both_articles():
    rng = np.random.default_rng(5)
    owners = np.array([0, 0, 1, 2, 3, 4, 5])
    cosines = rng.integers(0, 6, (6, 7)) / 6  # many ties
    relevant = owners[None, :] == np.arange(6)[:, None]
    times = np.random.default_rng(2).multinomial(6, np.full(6, 1 / 6), 30)
    expected = [
        average_precision_score(relevant.ravel(), cosines.ravel(), sample_weight=np.outer(row, row[owners]).ravel())
        for row in times
    ]
    np.testing.assert_allclose(resampled_ap(cosines, owners, resamples=30, seed=2), expected, rtol=1e-12)
    assert len(set(np.round(expected, 6))) > 10


def test_ap_keeps_its_resamples_where_they_are_asked_for(tmp_path):
    path = write(tmp_path / "x.jsonl", [{"title": f"t{n}", "body": f"b{n}"} for n in range(5)])
    embeddings = np.random.default_rng(0).normal(size=(10, 4)).astype(np.float32)
    embeddings /= np.linalg.norm(embeddings, axis=1, keepdims=True)
    plain, kept = (SUITES["title_links"](path, "x", Options(draws=draws)) for draws in (False, True))
    without, found = plain.score(embeddings), kept.score(embeddings)
    assert [score.metric for score in found if score.draws] == ["AP"]
    expected = resampled_ap(pooled_cosines(embeddings[:5], embeddings[5:]), np.arange(5))
    assert found[0].draws == tuple(expected)
    assert [(score.metric, score.value) for score in found] == [(score.metric, score.value) for score in without]
    assert not any(score.draws for score in without)
    assert plain.protocol != kept.protocol

"""Linking posts to articles: pooled measures by hand and by plain sorting, ties, files, and the bootstrap."""

import numpy as np
import pytest
from json_lines import write_rows
from newsembed.errors import InputError
from newsembed.evaluation.benchmark import suites
from newsembed.evaluation.benchmarks import retrieval
from newsembed.evaluation.benchmarks.retrieval import PostLinking, link_scores, resampled_ap
from newsembed.evaluation.encoders import Document
from sklearn.metrics import average_precision_score
from vectors import unit

POSTS = ("one", "two", "three")


def test_a_case_by_hand_with_ties():
    scores = np.array([0.9, 0.5, 0.5, 0.5, 0.1])
    measures = link_scores(scores, np.array([True, True, False, False, False]))
    assert set(measures) == {"AP", "ROC AUC", "mRP", "P@R"}
    assert measures["P@R"] == measures["mRP"] == pytest.approx((1 + 1 / 3) / 2)
    # Ranked in groups of ties: recall 1/2 at precision 1, recall 1 at precision 2/4.
    assert measures["AP"] == pytest.approx(0.5 * 1 + 0.5 * 0.5)
    # Of 6 pairs of a relevant and another, the first beats 3, the second ties with 2 and beats 1.
    assert measures["ROC AUC"] == pytest.approx((3 + 1 + 2 * 0.5) / 6)


def test_precisions_equal_the_mean_over_orders(monkeypatch):
    rng = np.random.default_rng(0)
    scores, relevant = rng.integers(0, 4, 12).astype(float), rng.random(12) < 0.6
    total = int(relevant.sum())
    expected = dict.fromkeys(range(1, total + 1), 0.0)
    draws = 4000
    for _ in range(draws):
        order = np.lexsort((rng.random(12), -scores))
        for depth in expected:
            expected[depth] += relevant[order[:depth]].mean() / draws
    monkeypatch.setattr(retrieval, "DEPTHS", tuple(expected))
    measures = link_scores(scores, relevant)
    assert {depth: measures[f"P@{depth}"] for depth in expected} == pytest.approx(expected, abs=0.02)
    assert measures["mRP"] == pytest.approx(np.mean([measures[f"P@{depth}"] for depth in expected]))


def test_a_file_of_posts(tmp_path):
    rows = [{"title": name, "body": f"{name} {name}", "post": post} for name, post in zip("ABA", POSTS, strict=True)]
    suite = suites()["links"].make(write_rows(tmp_path / "posts.jsonl", rows), "links")
    articles = [Document(name, f"{name} {name}") for name in "AB"]
    assert suite.documents() == [*articles, *(Document(post, "") for post in POSTS)]
    assert suite._pairs[2].tolist() == [0, 1, 0]
    vectors = np.float32([[1, 0], [0, 1], [1, 0], [1, 0], [1, 0]])  # the post about B looks like one about A
    scores = {score.metric: score for score in suite.score(vectors)}
    assert scores["P@R"].value == pytest.approx(2 / 3)
    assert scores["AP"].count == 3
    without = PostLinking(suite.path, excluded=frozenset({Document("three", "")}))
    assert len(without.documents()) == 4


def test_titles_are_posts_about_their_bodies(tmp_path):
    rows = [{"title": f"t{number}", "body": f"b{number}"} for number in range(3)]
    suite = suites()["title_links"].make(write_rows(tmp_path / "a.jsonl", rows), "links")
    assert suite.documents()[:1] + suite.documents()[3:4] == [Document("", "b0"), Document("t0", "")]
    assert suite.protocol["titles"] is True


def test_articles_of_each_language_are_scored_with_the_posts_of_all(tmp_path):
    rows = [{"title": f"t{n}", "body": f"b{n}", "language": language} for n, language in enumerate(["de", "en", "en"])]
    suite = suites()["title_links"].make(write_rows(tmp_path / "a.jsonl", rows), "links")
    articles, posts = np.float32([[1, 0], [0, 1], [0.6, 0.8]]), np.float32([[0, 1], [0, 1], [0.6, 0.8]])
    scores = {(one.metric, one.part): one for one in suite.score(np.concatenate([articles, posts]))}
    assert [part for metric, part in scores if metric == "AP"] == ["all", "de", "en"]
    cosines, relevant = articles @ posts.T, np.eye(3, dtype=bool)
    for part, members in (("de", [0]), ("en", [1, 2]), ("all", [0, 1, 2])):
        assert scores["AP", part].value == pytest.approx(link_scores(cosines[members], relevant[members])["AP"])
        assert scores["AP", part].count == len(members)


@pytest.mark.parametrize(
    ("row", "field"), [({"title": "A", "body": "a"}, "post"), ({"title": "A", "body": " ", "post": "x"}, "body")]
)
def test_broken_lines_are_named(tmp_path, row, field):
    path = write_rows(tmp_path / "x.jsonl", [{"title": "A", "body": "a", "post": "x"}, row])
    with pytest.raises(InputError, match=rf"x\.jsonl:2: {field}"):
        PostLinking(path).documents()
    with pytest.raises(InputError, match="fewer than two articles"):
        PostLinking(write_rows(tmp_path / "y.jsonl", [{"title": "A", "body": "a", "post": "x"}])).documents()


def test_a_resample_counts_a_wrong_pair_as_often_as_both_articles_and_a_right_one_as_often_as_its_own(monkeypatch):
    monkeypatch.setattr(retrieval, "_RESAMPLES", 30)
    rng = np.random.default_rng(5)
    owners = np.array([0, 0, 1, 2, 3, 4, 5])
    cosines = rng.integers(0, 6, (6, 7)) / 6  # many ties
    relevant = owners[None, :] == np.arange(6)[:, None]
    times = np.random.default_rng(0).multinomial(6, np.full(6, 1 / 6), 30)
    expected = []
    for row in times:
        weights = np.outer(row, row[owners])
        weights[relevant] = row[owners]
        expected.append(average_precision_score(relevant.ravel(), cosines.ravel(), sample_weight=weights.ravel()))
    np.testing.assert_allclose(resampled_ap(cosines, owners), expected, rtol=1e-12)
    assert len(set(np.round(expected, 6))) > 10


def test_resamples_of_ap_lie_around_ap():
    cosines = np.random.default_rng(2).normal(size=(200, 200)) + 1.5 * np.eye(200)
    drawn, ap = resampled_ap(cosines, np.arange(200)), link_scores(cosines, np.eye(200, dtype=bool))["AP"]
    assert abs(np.median(drawn) / ap - 1) < 0.1


def test_ap_keeps_its_resamples_where_they_are_asked_for(tmp_path, monkeypatch):
    monkeypatch.setattr(retrieval, "_AT_ONCE", 2)  # cosines of many articles are those of one product
    path = write_rows(tmp_path / "x.jsonl", [{"title": f"t{n}", "body": f"b{n}"} for n in range(5)])
    embeddings = unit(0, 10, 4)
    plain, kept = (suites()["title_links"].make(path, "x", {"draws": draws}) for draws in (False, True))
    without, found = plain.score(embeddings), kept.score(embeddings)
    assert [score.metric for score in found if score.draws] == ["AP"]
    expected = resampled_ap(embeddings[:5] @ embeddings[5:].T, np.arange(5))
    assert found[0].draws == pytest.approx(tuple(expected))
    assert [(score.metric, score.value) for score in found] == [(score.metric, score.value) for score in without]
    assert not any(score.draws for score in without)
    assert plain.protocol != kept.protocol

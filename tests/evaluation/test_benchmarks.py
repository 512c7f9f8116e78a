"""Retrieval, clustering and STS against cases worked by hand, and their complaints about bad files."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from json_lines import write_rows
from newsembed.evaluation.benchmark import suites
from newsembed.evaluation.benchmarks.classification import Clustering
from newsembed.evaluation.benchmarks.retrieval import SameEventRetrieval, ranking_scores
from newsembed.evaluation.benchmarks.sts import Sts, read_pairs
from newsembed.evaluation.encoders import normalised
from newsembed.evaluation.events import read_events
from newsembed.evaluation.statistics import resampled_means
from refusals import refuses
from vectors import circle


def row(number, event, *, publisher="p", language="en", date="2020-01-01", **more):
    return {
        "id": str(number), "title": f"t{number}", "body": "b", "publisher": publisher,
        "language": language, "event": event, "topic": "x", "byline_date": date, **more,
    }  # fmt: skip


def scores(benchmark, embeddings):
    benchmark.documents()
    return {(s.metric, s.part): s for s in benchmark.score(normalised(np.asarray(embeddings, float)))}


# Retrieval


def test_options_remove_candidates_from_both_sides(tmp_path):
    rows = [
        row(0, "A", publisher="p", date="2020-01-01"),
        row(1, "A", publisher="p", date="2020-01-02"),  # nearest to d0, same publisher
        row(2, "B", publisher="q", date="2020-02-01"),  # second, far in time
        row(3, "A", publisher="q", date="2020-01-03"),
    ]
    path, vectors = write_rows(tmp_path / "e.jsonl", rows), circle(0, 1, 5, 20)
    assert scores(SameEventRetrieval(path), vectors)["mAP", "all"].count == 3
    crossed = SameEventRetrieval(path, cross_publisher=True)
    # d0: d2 no, d3 yes: 1/2. d1 the same: 1/2. d3: d1 (19), d0 (20), both yes: 1.
    assert scores(crossed, vectors)["mAP", "all"].value == pytest.approx(2 / 3)
    near = SameEventRetrieval(path, cross_publisher=True, max_day_gap=7)
    assert scores(near, vectors)["mAP", "all"].value == 1.0


def plain_ap(cosines, relevant):
    """Average precision by counting along the ranking; no ties."""
    order = np.argsort(-cosines)
    ranks = [rank for rank, place in enumerate(order, 1) if relevant[place]]
    return sum(number / rank for number, rank in enumerate(ranks, 1)) / len(ranks)


def test_events_across_languages_against_plain_numpy(tmp_path):
    rng = np.random.default_rng(3)
    languages = [("en", "de", "ru")[place % 3] for place in range(36)]
    events = [f"e{place}" for place in rng.integers(0, 9, 36)]
    rows = [row(n, event, language=tag) for n, (event, tag) in enumerate(zip(events, languages, strict=True))]
    vectors = rng.normal(size=(36, 5)).astype(np.float32)
    found = scores(suites()["events_across"].make(write_rows(tmp_path / "e.jsonl", rows), "x"), vectors)
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    expected = {}
    for query in range(36):
        others = [n for n in range(36) if languages[n] != languages[query]]
        relevant = [events[n] == events[query] for n in others]
        if any(relevant):
            expected[query] = plain_ap(unit[others] @ unit[query], relevant)
    assert found["mAP", "all"].value == pytest.approx(np.mean(list(expected.values())))
    for tag in ("en", "de", "ru"):
        own = [value for query, value in expected.items() if languages[query] == tag]
        assert (found["mAP", tag].value, found["mAP", tag].count) == (pytest.approx(np.mean(own)), len(own))


def test_draws_of_events_are_kept_for_each_part_on_request(tmp_path):
    rows = [row(n, "AABBCC"[n % 6], language=("en", "de")[n % 2]) for n in range(12)]
    path, vectors = write_rows(tmp_path / "e.jsonl", rows), normalised(np.random.default_rng(4).normal(size=(12, 4)))
    plain, kept = (scores(suites()["events"].make(path, "x", {"draws": draws}), vectors) for draws in (False, True))
    assert not any(score.draws for score in plain.values())
    benchmark = SameEventRetrieval(path, draws=True)
    values, labels = benchmark.query_scores(vectors)["mAP"], np.array([one["event"] for one in rows])
    german = np.array([one["language"] == "de" for one in rows])
    assert kept["mAP", "all"].draws == pytest.approx(tuple(resampled_means(values, labels)))
    assert kept["mAP", "de"].draws == pytest.approx(tuple(resampled_means(values[german], labels[german])))
    assert {part: score.value for part, score in kept.items()} == {part: score.value for part, score in plain.items()}
    assert (benchmark.protocol["draws"], "draws" in SameEventRetrieval(path).protocol) == (True, False)
    assert {(score.low, score.high) for score in plain.values()} == {(None, None)}
    german_score = scores(SameEventRetrieval(path, intervals=True), vectors)["mAP", "de"]
    ends = np.percentile(resampled_means(values[german], labels[german]), [2.5, 97.5])
    assert (german_score.low, german_score.high) == pytest.approx(tuple(ends))
    assert german_score.low < german_score.value < german_score.high


def test_a_collapsed_encoder_has_no_luck(tmp_path):
    path = write_rows(tmp_path / "e.jsonl", [row(0, "A"), row(1, "A"), row(2, "B"), row(3, "B")])
    found = scores(SameEventRetrieval(path), np.ones((4, 2)))
    assert found["hit@1", "all"].value == pytest.approx(1 / 3)
    assert found["mAP", "all"].value == pytest.approx(1 / 3)


def test_metrics_at_k_by_hand():
    # Ranked: yes, no, yes, no, yes. R = 3.
    similarities = np.array([[0.9, 0.8, 0.7, 0.6, 0.5]], np.float32)
    relevant = np.array([[True, False, True, False, True]])
    found = ranking_scores(similarities, relevant, np.ones((1, 5), bool), 3)
    assert found["mAP@3"][0] == pytest.approx((1 + 2 / 3) / 3)
    tied = ranking_scores(np.ones((1, 5), np.float32), relevant, np.ones((1, 5), bool), 3)
    assert tied["mAP@3"][0] == pytest.approx(1 / 3 / 3)  # irrelevant ones first: only rank 3 is relevant
    alone = ranking_scores(np.ones((1, 1), np.float32), np.ones((1, 1), bool), np.ones((1, 1), bool), 3)
    assert alone["mAP@3"][0] == 1


@given(st.integers(0, 2**31), st.integers(2, 12))
def test_average_precision_equals_its_definition(seed, size):
    rng = np.random.default_rng(seed)
    similarities = rng.permutation(size).astype(np.float32)[None]  # no ties
    relevant, candidate = rng.random((2, size)) < 0.5
    metrics = ranking_scores(similarities, relevant[None], candidate[None])
    precision, hit = metrics["mAP"], metrics["hit@1"]
    order = [i for i in np.argsort(-similarities[0]) if candidate[i]]
    hits = [bool(relevant[i]) for i in order]
    if not any(hits):
        assert np.isnan(precision[0])
        assert np.isnan(hit[0])
        return
    expected = np.mean([sum(hits[: k + 1]) / (k + 1) for k, is_hit in enumerate(hits) if is_hit])
    assert precision[0] == pytest.approx(expected)
    assert hit[0] == hits[0]


def test_block_size_does_not_change_the_scores(tmp_path, monkeypatch):
    rng = np.random.default_rng(1)
    path = write_rows(
        tmp_path / "e.jsonl",
        [row(i, str(i % 7), publisher=str(i % 3), language="en" if i % 2 else "fr") for i in range(40)],
    )
    embeddings = rng.normal(size=(40, 8))
    whole = scores(SameEventRetrieval(path, cross_publisher=True), embeddings)
    monkeypatch.setattr("newsembed.evaluation.benchmarks.retrieval._AT_ONCE", 7)
    assert scores(SameEventRetrieval(path, cross_publisher=True), embeddings) == whole


@pytest.mark.parametrize(
    ("rows", "options", "message"),
    [
        ([row(0, "A"), row(1, "A")], {}, "fewer than two events"),
        ([row(0, "A"), row(1, "B")], {}, "no document has another one"),
        ([row(0, "A"), row(1, "A", date=None), row(2, "B")], {"max_day_gap": 1}, "byline_date: 1 of 3"),
        ([row(0, "A"), row(1, "A", publisher=""), row(2, "B")], {"cross_publisher": True}, "publisher: 1 of 3"),
    ],
)
def test_retrieval_refuses(tmp_path, rows, options, message):
    benchmark = SameEventRetrieval(write_rows(tmp_path / "e.jsonl", rows), **options)
    refuses(message, scores, benchmark, np.ones((len(rows), 2)))


# The events file


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"id": "1", "title": "t", "body": "b"}', "event: the field is missing"),
        (json.dumps(row(0, "A", date="1/21")), "byline_date: got '1/21'"),
        (json.dumps(row(0, "A") | {"title": ["x"]}), "title: got a JSON list"),
        (json.dumps(row(0, "A")) + "\n" + json.dumps(row(0, "B")), r"e\.jsonl:2: id: .*also at .*:1"),
        ("\n", "contains no documents"),
    ],
)
def test_bad_event_files(tmp_path, text, message):
    (tmp_path / "e.jsonl").write_text(text)
    refuses(message, read_events, str(tmp_path / "e.jsonl"))


# Clustering


def test_separate_clusters_score_one_and_one_point_scores_zero(tmp_path):
    path = write_rows(tmp_path / "e.jsonl", [row(i, "ABC"[i % 3]) for i in range(12)])
    found = scores(Clustering(path, seeds=3), circle(*[(i % 3) * 100 + i * 0.1 for i in range(12)]))
    assert found["ARI", "all"].value == pytest.approx(1)
    assert found["V", "all"].value == pytest.approx(1)
    assert found["V", "all"].std == pytest.approx(0, abs=1e-9)
    collapsed = scores(Clustering(path, seeds=1), np.ones((12, 2)))
    assert collapsed["ARI", "all"].value == pytest.approx(0)
    assert collapsed["ARI", "all"].std is None


def test_std_is_over_seeds(tmp_path, monkeypatch):
    path = write_rows(tmp_path / "e.jsonl", [row(i, e) for i, e in enumerate("AABB")])
    runs = {0: [0, 0, 1, 1], 1: [0, 0, 0, 1]}
    monkeypatch.setattr(
        "newsembed.evaluation.benchmarks.classification.kmeans", lambda _, __, seed: np.array(runs[seed])
    )
    found = scores(Clustering(path, seeds=2), np.ones((4, 2)))
    assert found["ARI", "all"].value == pytest.approx(0.5)
    assert found["ARI", "all"].std == pytest.approx(np.sqrt(0.5))


def test_clustering_refuses_one_class_and_unknown_labels(tmp_path):
    path = write_rows(tmp_path / "e.jsonl", [row(0, "A"), row(1, "A"), row(2, "")])
    refuses("fewer than two classes", Clustering(path).documents)
    refuses("expected one of event, topic", Clustering, path, label="color")
    (tmp_path / "f.jsonl").write_text('{"id": "1", "title": "t", "body": "b"}')
    refuses("topic: the field is missing", Clustering(str(tmp_path / "f.jsonl"), label="topic").documents)


# STS


SEMEVAL = '5\tA b\tA b\n3\tA\tB "quoted\n\tno\tscore\n0.5\tC\tD\n'  # fmt: skip
STSB = (
    "main-news\tMSRpar\t2012test\t0001\t4.0\tS one\tS two\n"
    'main-news\tMSRpar\t2012test\t0002\t1.0\tS "x\tS y\tsource\tsource\n'
    "main-captions\timages\t2014\t0003\t2.5\tS p\tS q\n"
)  # fmt: skip
SICK = (
    "pair_ID\tsentence_A\tsentence_B\trelatedness_score\tentailment_judgment\n"
    "1\tA\tB\t4.5\tNEUTRAL\n2\tC\tD\t3.2\tNEUTRAL\n"
)


def test_both_spellings_of_the_forums_are_one_genre(tmp_path):
    forums = STSB.replace("main-news", "main-forum", 1).replace("main-news", "main-forums")
    (tmp_path / "sts-train.csv").write_text(forums)
    genres = [pair.genre for pair in read_pairs(str(tmp_path / "sts-train.csv"))]
    assert genres == ["main-forums", "main-forums", "main-captions"]


@pytest.mark.parametrize(("text", "gold"), [(SEMEVAL, [5, 3, 0.5]), (STSB, [4, 1, 2.5]), (SICK, [4.5, 3.2])])
def test_layouts(tmp_path, text, gold):
    (tmp_path / "s").write_text(text)
    pairs = read_pairs(str(tmp_path / "s"))
    assert [pair.score for pair in pairs] == gold
    assert pairs[1].first.startswith('S "x') == (text == STSB)  # quotes are text


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a\tb\n", "the 2 tab-separated columns of the first line match no known layout"),
        ("", "no known layout"),
        ("5\ta\tb\n5\ta\n", "s:2: got 2 tab-separated columns, expected at least 3"),
        ("5\ta\tb\nx\ta\tb\n", "s:2: score: got 'x'"),
        ("5\ta\tb\n4\t\tb\n", "s:2: sentence1: a sentence is empty"),
        ("1\ta\tb\nnan\tc\td\n", "s:2: score: got 'nan'"),
        ("1\ta\tb\tx\n2\tc\td\n", "s:2: got 3 tab-separated columns, expected at least 4"),
        ("5\ta\tb\n5\tc\td\n", "fewer than two distinct scores"),
    ],
)
def test_bad_sts_files(tmp_path, text, message):
    (tmp_path / "s").write_text(text)
    refuses(message, read_pairs, str(tmp_path / "s"))


def test_sts_refuses_missing_file_and_equal_cosines(tmp_path):
    (tmp_path / "s").write_text(SICK)
    refuses("all 2 cosines", scores, Sts(str(tmp_path / "s")), np.ones((4, 2)))

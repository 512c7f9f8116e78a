"""What the demo checks: every line of its table is met by good numbers, and missed alone by one bad number."""

import dataclasses
import json
import types

import numpy as np
import pytest
from newsembed.evaluation.benchmark import Score
from newsembed.evaluation.results import Result, Results
from newsembed.formats import files, parquet
from newsembed.formats.records import Article, Triplet, make_doc_id
from newsembed.launch import cli, demo
from newsembed.launch.demo import checks, names
from newsembed.launch.demo.steps import QUERIES, Places

HELD_OUT, PARAPHRASES = "events heldout.jsonl", "events paraphrases.jsonl"
BALANCE = "every job: in = out + rejected + failed, and something out"
BEATS_TFIDF = "held-out events, mAP: trained > TF-IDF"
ORDER = "held-out events, mAP, {}: trained > pretrained > random"


def good():
    """Numbers with which every line is met, none with much to spare."""
    rows = [
        {"job": "extract", "in": 10, "out": 7, "rejected": {"no_title": 1, "no_body": 1}, "failed": {"truncated": 1}},
        {"job": "clean", "in": 7, "out": 7, "rejected": {}, "failed": {}},
    ]
    mined = {
        "positive precision": 0.9,
        "positive recall": 0.6,
        "negative precision (not the same event)": 0.95,
        "negative precision (nor the same evergreen)": 0.1,
        names.PRECISION: 0.9,
        names.RECALL: 0.5,
    }
    scores = {
        (encoder, HELD_OUT, part): value
        for encoder, value in {"trained": 0.53, "pretrained": 0.52, "random": 0.51, "tfidf": 0.525}.items()
        for part in ("all", "de")
    }
    scores |= {("trained", PARAPHRASES, "all"): 0.31, ("tfidf", PARAPHRASES, "all"): 0.3}
    return types.SimpleNamespace(rows=rows, mined=mined, scores=scores, difference=1e-5)


def results_of(scores):
    entries = {(encoder, benchmark): [] for encoder, benchmark, _ in scores}
    for (encoder, benchmark, part), value in scores.items():
        entries[encoder, benchmark] += [Score("mAP", value, part), Score("hit@1", 1 - value, part)]
    return Results(tuple(Result(*key, "ok", tuple(found)) for key, found in entries.items()), {})


def missed(numbers):
    found = checks.checks_of(numbers.rows, numbers.mined, results_of(numbers.scores), numbers.difference)
    return [check["name"] for check in found if not check["met"]]


def test_a_language_without_a_region_is_scored_but_not_asked_for():
    numbers = good()
    numbers.scores |= {(encoder, HELD_OUT, "ru"): 0.5 for encoder in ("trained", "pretrained", "random", "tfidf")}
    assert missed(numbers) == []
    assert [row["events heldout: mAP ru"] for row in checks.table(results_of(numbers.scores))] == [0.5] * 4


def test_good_numbers_meet_every_line():
    numbers = good()
    found = checks.checks_of(numbers.rows, numbers.mined, results_of(numbers.scores), numbers.difference)
    assert [(check["name"], check["measured"], check["expected"]) for check in found] == [
        (BALANCE, "2 of 2 jobs", "all of them"),
        ("positive precision", 0.9, ">= 0.9"),
        ("positive recall", 0.6, ">= 0.6"),
        ("negative precision (not the same event)", 0.95, ">= 0.95"),
        (names.PRECISION, 0.9, ">= 0.9"),
        (names.RECALL, 0.5, ">= 0.5"),
        (ORDER.format("all"), "0.530 > 0.520 > 0.510", "this order"),
        (ORDER.format("de"), "0.530 > 0.520 > 0.510", "this order"),
        (BEATS_TFIDF, "0.530 > 0.525", "this order"),
        ("cross-publisher paraphrases, mAP: trained > TF-IDF", "0.310 > 0.300", "this order"),
        ("SavedModel equals JAX", 1e-5, "<= 1e-05"),
    ]
    assert all(check["met"] is True for check in found)


@pytest.mark.parametrize(
    ("name", "bar"),
    [
        ("positive precision", 0.9),
        ("positive recall", 0.6),
        ("negative precision (not the same event)", 0.95),
        (names.PRECISION, 0.9),
        (names.RECALL, 0.5),
    ],
)
def test_mining_just_below_its_bar_is_missed(name, bar):
    numbers = good()
    numbers.mined[name] = bar - 1e-6
    assert missed(numbers) == [name]


def test_no_bar_is_set_for_evergreens():
    numbers = good()
    numbers.mined["negative precision (nor the same evergreen)"] = 0.0
    assert missed(numbers) == []


@pytest.mark.parametrize(
    "change",
    [
        {"failed": {}},
        {"rejected": {}},
        {"rejected": {"no_title": 1}},
        {"in": 11},
        {"out": 8},
        {"in": 3, "out": 0},
    ],
)
def test_a_job_that_does_not_add_up_or_writes_nothing_is_missed(change):
    numbers = good()
    numbers.rows[0] |= change
    assert missed(numbers) == [BALANCE]
    (check, *_) = checks.checks_of(numbers.rows, numbers.mined, results_of(numbers.scores), 0.0)
    assert check["measured"] == "1 of 2 jobs"


@pytest.mark.parametrize("part", ["all", "de"])
@pytest.mark.parametrize(
    ("encoder", "value"),
    [
        ("pretrained", 0.53),  # as good as the trained one
        ("pretrained", 0.51),  # no better than the random one
        ("pretrained", 0.6),
        ("random", 0.52),
        ("random", 0.6),
    ],
)
def test_encoders_in_another_order_are_missed(part, encoder, value):
    numbers = good()
    numbers.scores[encoder, HELD_OUT, part] = value
    assert missed(numbers) == [ORDER.format(part)]


@pytest.mark.parametrize(
    ("benchmark", "value", "name"),
    [
        (HELD_OUT, 0.53, BEATS_TFIDF),
        (PARAPHRASES, 0.31, "cross-publisher paraphrases, mAP: trained > TF-IDF"),
    ],
)
def test_an_encoder_no_better_than_words_is_missed(benchmark, value, name):
    numbers = good()
    numbers.scores["tfidf", benchmark, "all"] = value
    assert missed(numbers) == [name]


@pytest.mark.parametrize("encoder", ["trained", "pretrained", "random", "tfidf"])
def test_an_encoder_without_scores_is_an_error(encoder):
    numbers = good()
    numbers.scores = {key: value for key, value in numbers.scores.items() if key[:2] != (encoder, HELD_OUT)}
    with pytest.raises(KeyError):
        missed(numbers)


def test_an_export_that_differs_is_missed():
    numbers = good()
    numbers.difference = 1.1e-5
    assert missed(numbers) == ["SavedModel equals JAX"]


def triplet(anchor, positive, negative):
    return Triplet(
        f"{anchor:016x}", f"{positive:016x}", f"{negative:016x}", "en", (0.5, 0.5, 0.5), (0.5, 0.5, 0.5), 1, 400, 0.1
    )


def test_mining_is_scored_against_the_truth_by_hand():
    truth = {
        f"{n:016x}": {"event": event, "near_duplicate_group": group}
        for n, (event, group) in enumerate(
            [("e1", None), ("e1", None), ("e2", None), (None, "g"), (None, "g"), ("e1", None)]
        )
    }
    publishers = {f"{n:016x}": publisher for n, publisher in enumerate("ababab")}
    mined = [triplet(1, 0, 2), triplet(1, 0, 2), triplet(0, 2, 1), triplet(3, 4, 4), triplet(0, 9, 9)]
    scored = checks.score_mining(iter(mined), truth, publishers)
    assert scored["positive pairs"] == 4  # (1,0) (0,2) (3,4) (0,9)
    assert scored["positive precision"] == pytest.approx(1 / 4)
    assert scored["positive recall"] == pytest.approx(1 / 2)  # of (0,1) and (0,5); (1,5) has one publisher
    assert scored["negative pairs"] == 4  # (1,2) (0,1) (3,4) (0,9)
    # (1,2) and (3,4) are right; (0,9) is unknown to the truth.
    assert scored["negative precision (not the same event)"] == pytest.approx(2 / 4)
    assert scored["negative precision (nor the same evergreen)"] == pytest.approx(1 / 4)
    assert scored["anchors"] == 3


def test_nothing_mined_scores_zero():
    scored = checks.score_mining(iter([]), {}, {})
    assert set(scored.values()) == {0}


def test_the_encoders_table_has_every_score_and_every_failure():
    results = results_of({("trained", HELD_OUT, "all"): 0.53, ("trained", HELD_OUT, "de"): 0.41})
    failed = Result("tfidf", HELD_OUT, "failed", error="no memory")
    assert checks.table(dataclasses.replace(results, results=(*results.results, failed))) == [
        {
            "encoder": "trained",
            "events heldout: mAP": 0.53,
            "events heldout: hit@1": 0.47,
            "events heldout: mAP de": 0.41,
            "events heldout: hit@1 de": 0.59,
        },
        {"encoder": "tfidf", f"{HELD_OUT}: failed": "no memory"},
    ]


@pytest.mark.parametrize("place", [0, 4])
def test_a_search_that_shows_an_article_about_something_else_is_missed(place):
    found = {query: [topic] * 5 for query, topic in QUERIES.items()}
    assert [check["met"] for check in checks.search_checks(found)] == [True] * 3
    found["election mayor vote"][place] = "court"
    lines = checks.search_checks(found)
    assert [check["met"] for check in lines] == [True, False, True]
    assert lines[1]["measured"] == "4 of 5"
    found["election mayor vote"] = ["elections"] * 4
    assert not checks.search_checks(found)[1]["met"]


def test_the_searches_are_scored_by_the_topics_of_what_they_find(tmp_path):
    from newsembed.formats.articles import ArticleText
    from newsembed.serving import search
    from newsembed.serving.index import DocumentIndex, indexed_document
    from newsembed.serving.words import WordsBuilder

    titles = {
        "floods": "flood river evacuation",
        "elections": "election mayor vote",
        "football": "striker goal cup final",
    }
    articles = [ArticleText(topic, "", "", title, "", "en") for topic, title in titles.items()]
    index = DocumentIndex(np.eye(3, dtype=np.float32), list(map(indexed_document, articles)))
    with WordsBuilder() as builder:
        builder.add(articles)
    index.words = builder.built()
    places = Places(str(tmp_path))
    index.save(places.index)
    nothing = types.SimpleNamespace(encode_queries=lambda texts: np.ones((len(texts), 3), np.float32))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(search, "index_encoder", lambda _index: nothing)
        found = checks.found_topics(places, {topic: {"topic": topic} for topic in ("floods", "elections")})
    assert [found[query][0] for query in QUERIES] == ["floods", "elections", ""]


@pytest.fixture
def finished(tmp_path, monkeypatch):
    """What a finished demo leaves: two articles of an event and one of another, mined as they should be."""
    places = Places(str(tmp_path))
    numbers = good()
    urls = [f"http://p{number}.example/a" for number in range(3)]
    ids = [make_doc_id(url) for url in urls]
    (tmp_path / "newsroom").mkdir()
    rows = [
        {"url": url, "event": event, "near_duplicate_group": None}
        for url, event in zip(urls, ["e1", "e1", "e2"], strict=True)
    ]
    (tmp_path / "newsroom/truth.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    articles = [Article(doc_id, url, url.split("/")[2], "title", "body") for doc_id, url in zip(ids, urls, strict=True)]
    part = "part-00000-of-00001.parquet"
    parquet.write_shard(f"{places.work}/clean/articles/{part}", articles, Article)
    mined = Triplet(*ids, "en", (0.5, 0.5, 0.5), (0.5, 0.5, 0.5), 1, 400, 0.1)
    parquet.write_shard(f"{places.work}/triplets/triplets/{part}", [mined], Triplet)
    files.write_json(f"{places.evaluation}/results.json", results_of(numbers.scores).to_dict())
    monkeypatch.setattr(checks, "job_rows", lambda _places: numbers.rows)
    monkeypatch.setattr(checks, "export_difference", lambda _places: numbers.difference)
    monkeypatch.setattr(checks, "found_names", lambda _places: {names.PRECISION: 1.0, names.RECALL: 1.0})
    monkeypatch.setattr(checks, "found_topics", lambda _places, _truth: {q: [t] * 5 for q, t in QUERIES.items()})
    return types.SimpleNamespace(places=places, numbers=numbers)


def test_the_demo_is_scored_from_its_folders(finished):
    sections = checks.score(finished.places)
    assert len(sections["checks"]) == 14
    assert all(check["met"] for check in sections["checks"])
    assert sections["mining"]["positive recall"] == 1
    assert [row["encoder"] for row in sections["encoders"]] == ["trained", "pretrained", "random", "tfidf"]
    finished.numbers.difference = 0.1
    assert [check["met"] for check in checks.score(finished.places)["checks"]].count(False) == 1


@pytest.mark.parametrize(("difference", "code", "word"), [(0.0, 0, "met"), (0.1, 1, "MISSED")])
def test_the_demo_fails_where_a_check_is_missed(finished, monkeypatch, capsys, difference, code, word):
    finished.numbers.difference = difference
    monkeypatch.setattr(demo, "steps", lambda *_: [])
    monkeypatch.setattr(demo, "job_rows", lambda _places: [])
    shown = []
    monkeypatch.setattr(demo, "write_report", lambda *arguments: shown.append(arguments))
    assert cli.main(["demo", "--output", finished.places.output]) == code
    ((folder, _, sections),) = shown
    assert folder == finished.places.work
    assert sections["checks"][-4]["met"] is (code == 0)
    assert word in capsys.readouterr().out

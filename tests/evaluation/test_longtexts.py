"""Multi-News and Stream-News as distributed: which clusters count, the scores, and errors that name the place."""

import json

import numpy as np
import pytest
from benchmarking import found
from newsembed.evaluation.benchmark import discover
from newsembed.evaluation.benchmarks.longtexts import MultiNews, StreamNews
from newsembed.evaluation.encoders import Document, TfidfEncoder, encode_checked
from newsembed.evaluation.suites import run_suites
from newsembed.evaluation.tables import chosen_tables, filled, needed
from refusals import refuses
from vectors import circle


def sources(word, count, separator):
    return separator.join(f"{word} NEWLINE_CHAR report{number}" for number in range(count))


@pytest.fixture
def multi(tmp_path):
    """Five summaries in two parts: those of storm and vote have eight documents or more."""
    folder = tmp_path / "multi_news"
    folder.mkdir()
    lines = [
        sources("storm", 8, " ||||| "),
        sources("small", 7, " ||||| ") + " ||||| small report6 |||||  ||||| ",
        sources("seven", 7, "|||||") + "|||||" + "seven NEWLINE_CHAR report0",
    ]
    (folder / "train.src.cleaned").write_text("\n".join(lines) + "\n")
    (folder / "train.tgt").write_text("– storm summary\n\n– seven\n")
    lines = [sources("vote", 9, " story_separator_special_tag "), "x"]
    (folder / "val.src").write_text("\n".join(lines) + "\n")
    (folder / "val.tgt").write_text("– vote summary\n– x\n")
    return folder


def test_summaries_with_eight_distinct_documents_are_clusters_and_queries(multi):
    (multi / "train.tgt").write_text("– storm summary\n– small\n– seven\n")
    benchmark = MultiNews(str(multi))
    documents = benchmark.documents()
    assert [one.body for one in documents if one.is_query] == ["– storm summary", "– small", "– vote summary"]
    assert documents[3:5] == [Document("", "storm \n report0"), Document("", "storm \n report1")]
    assert len(documents) == 3 + 8 + 8 + 9
    scores = found(benchmark.score(encode_checked(TfidfEncoder(), documents).embeddings))
    assert (scores["ARI", "all"].count, scores["mAP@8", "all"].count) == (25, 3)
    assert scores["mAP@8", "all"].value > 0.9
    assert len(MultiNews(str(multi), excluded=frozenset(documents[3:4])).documents()) == 2 + 8 + 9


def test_the_precisions_are_those_of_the_eight_nearest_documents(multi):
    (multi / "train.tgt").write_text("– storm\n– small\n– seven\n")
    (multi / "train.src.cleaned").write_text(f"{sources('storm', 8, '|||||')}\nx\nx\n")
    # The query storm ranks four of vote, its own eight, then five of vote; vote ranks its nine first.
    angles = [*[0, 180], *range(10, 18), *[1, 2, 3, 4, *[180] * 5]]
    ranks = np.arange(5, 9)
    first = np.sum((ranks - 4) / ranks) / 8
    score = found(MultiNews(str(multi)).score(circle(*angles)))["mAP@8", "all"]
    vote = (5 + 0) / 8  # the last four of its nine are further than the documents of storm
    assert score.value == pytest.approx((first + vote) / 2)


@pytest.mark.parametrize(
    ("name", "text", "place"),
    [
        ("train.tgt", "– storm\n", "train.tgt"),
        ("val.tgt", "\n– x\n", "val.tgt:1"),
        ("val.tgt", None, "val.tgt"),
        ("train.src.cleaned", "a ||||| b\n\n\n", "multi_news"),
    ],
)
def test_errors_of_multi_news_name_the_file_and_the_line(multi, name, text, place):
    (multi / "train.tgt").write_text("– storm\n– small\n– seven\n")
    (multi / name).unlink() if text is None else (multi / name).write_text(text)
    error = refuses(f"{place}[:,]", MultiNews(str(multi)).documents)
    assert "expected: train.src" in str(error)


@pytest.fixture
def stream(tmp_path):
    """Events of 50 articles in English, of 50 in German over two files, of 49 and one of a language left out."""
    folder = tmp_path / "news-clustering" / "dataset"
    folder.mkdir(parents=True)
    events = [("e1", "eng", 50), ("e2", "eng", 49), (7, "rus", 60), (8, "deu", 20)]
    rows = [
        {"lang": lang, "title": f"{event} title", "text": f"{event}word n{number}", "cluster": event, "date": ""}
        for event, lang, count in events
        for number in range(count)
    ]
    (folder / "dataset.dev.json").write_text(json.dumps(rows))
    rows = [{"lang": "deu", "title": "", "text": f"8word t{number}", "cluster": 8} for number in range(30)]
    (folder / "dataset.test.json").write_text(json.dumps([*rows, {**rows[0], "text": " "}]))
    (folder / "clustering.dev.json").write_text("{}")
    return folder


def test_events_of_fifty_articles_of_three_languages_are_clusters(stream):
    benchmark = StreamNews(str(stream), seeds=2)
    documents = benchmark.documents()
    assert len(documents) == 100
    assert documents[0] == Document("e1 title", "e1word n0")
    embeddings = circle(*[0] * 50, *[90] * 50)
    scores = benchmark.score(embeddings)
    assert [(score.metric, score.part) for score in scores] == [("ARI", "all"), ("V", "all")]
    assert scores[0].value == 1
    assert scores[0].runs == 2


@pytest.mark.parametrize(
    ("text", "place"),
    [("{", "dataset.dev.json"), ("{}", "array"), ('[{"lang": "eng", "title": "t", "text": 1, "cluster": 1}]', "text")],
)
def test_errors_of_stream_news_name_the_file_and_the_field(stream, text, place):
    (stream / "dataset.dev.json").write_text(text)
    error = refuses(place, StreamNews(str(stream)).documents)
    assert "dataset.dev.json" in str(error)


def test_events_that_are_too_small_are_an_error(stream):
    (stream / "dataset.test.json").write_text("[]")
    refuses("cluster: fewer than two events of 50", StreamNews(str(stream)).documents)


def test_table_6_takes_both(multi, stream, tmp_path):
    (multi / "train.tgt").write_text("– storm\n– small\n– seven\n")
    assert {one.protocol["suite"] for one in discover(str(tmp_path))} == {"multinews", "streamnews"}
    (table,) = chosen_tables(["newsembed-6"])
    results = run_suites({"tfidf": TfidfEncoder}, needed([table], str(tmp_path)))
    shown = filled(table, results)
    assert [note.partition(" ")[0] for note in shown.notes] == ["ours:", "ours:"]
    assert "-" not in shown.rows[-1]

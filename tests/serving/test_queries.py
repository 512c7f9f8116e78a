"""What a query is, which dates and which encoder it gets, and what is handed to them, without a model."""

import argparse
import dataclasses
import datetime
import types

import numpy as np
import pytest
from newsembed.errors import InputError
from newsembed.formats.articles import ArticleText
from newsembed.formats.index import IndexedDocument, Reading
from newsembed.serving import cluster, embed, search, specs
from newsembed.serving.dates import ALL_DATES, DateRange, as_days
from newsembed.serving.filters import Filters
from newsembed.serving.hybrid import Found
from newsembed.serving.index import DocumentIndex, Hit
from newsembed.serving.saved_model import SavedModelEncoder
from newsembed.serving.shapes import by_bucket, filled, heights, length_buckets

DAY = datetime.date(2024, 1, 10)
ROWS = np.eye(3, dtype=np.float32)
DOCUMENTS = [
    IndexedDocument(str(number), f"https://a.example/{number}", "a.example", f"title {number}", day)
    for number, day in enumerate((DAY, DAY + datetime.timedelta(2), None))
]


@pytest.fixture
def index():
    return DocumentIndex(ROWS, DOCUMENTS, encoder="model:there", encoder_digest="digest")


@pytest.mark.parametrize(
    ("query", "is_url"),
    [
        ("http://a.example", True),
        ("https://a.example/1", True),
        ("https://a.example/1 2", False),
        ("http", False),
        ("ftp://a.example", False),
        ("see http://a.example", False),
        ("", False),
    ],
)
def test_a_query_that_is_one_address_asks_by_url(query, is_url):
    assert search.is_url(query) is is_url


def test_words_are_embedded_as_a_query_and_searched_among_the_dates(index):
    asked = []
    encoder = types.SimpleNamespace(encode_queries=lambda texts: asked.append(texts) or ROWS[1:2])
    hits = search.find_words(index, encoder, " storm ", 2).hits
    assert asked == [[" storm "]]
    assert [(hit.rank, hit.document.doc_id) for hit in hits][0] == (1, "1")
    assert len(hits) == 2
    only = search.find_words(index, encoder, "storm", 2, filters=Filters(DateRange(until=DAY))).hits
    assert [hit.document.doc_id for hit in only] == ["0"]


def test_the_dates_of_a_query(index):
    later = DAY + datetime.timedelta(3)
    assert search.date_range(index, "", None, None, None) == ALL_DATES
    assert search.date_range(index, "", DAY, later, None) == DateRange(DAY, later)
    around = search.date_range(index, "https://a.example/1", None, None, 0)
    assert around == DateRange(DAY + datetime.timedelta(2), DAY + datetime.timedelta(2))
    for since, until in ((DAY, None), (None, DAY)):
        with pytest.raises(InputError, match="given with since or until"):
            search.date_range(index, "https://a.example/1", since, until, 1)


def test_ranges_include_both_ends_and_no_document_without_a_date():
    days = as_days([None, DAY - datetime.timedelta(1), DAY, DAY + datetime.timedelta(1)])
    assert DateRange(DAY, DAY).holds(days).tolist() == [False, False, True, False]
    assert DateRange(since=DAY).holds(days).tolist() == [False, False, True, True]
    assert DateRange(until=DAY).holds(days).tolist() == [False, True, True, False]
    assert ALL_DATES.holds(days).all()
    assert [one.is_bounded for one in (ALL_DATES, DateRange(since=DAY), DateRange(until=DAY))] == [False, True, True]
    assert DateRange.around(DAY, 2) == DateRange(DAY - datetime.timedelta(2), DAY + datetime.timedelta(2))
    for days_around in (-1, 10**9):
        with pytest.raises(InputError, match=f"got {days_around} around 2024-01-10"):
            DateRange.around(DAY, days_around)


def test_results_show_title_score_publisher_date_and_the_whole_url(capsys):
    from rich.console import Console

    long = dataclasses.replace(DOCUMENTS[2], url=f"https://a.example/{'x' * 300}", title="one two three " * 9)
    search.print_results([Hit(1, 0.98765, DOCUMENTS[0]), Hit(12, -0.5, long)], Console(width=40))
    lines = capsys.readouterr().out.splitlines()
    assert [line.rstrip() for line in lines[:3]] == [
        "   1  title 0",
        "      0.9877  a.example  2024-01-10",
        f"      {DOCUMENTS[0].url}",
    ]
    assert lines[3].startswith("  12  one two three")
    assert lines[4].startswith("      ")
    assert lines[-2].strip() == "-0.5000  a.example"
    assert lines[-1].strip() == long.url


def parsed(*arguments):
    parser = argparse.ArgumentParser()
    search.add_arguments(parser)
    return parser.parse_args(arguments)


def test_dates_that_the_archive_lacks_name_those_that_it_has(index, tmp_path, monkeypatch):
    index.save(str(tmp_path))
    monkeypatch.setattr(search, "index_encoder", lambda *_, **__: pytest.fail("the model is not needed for this"))
    with pytest.raises(InputError, match="no article of the index has a byline date in this range; it has dates from"):
        search.run(parsed("--index", str(tmp_path), "storm", "--since", "1990-01-01", "--until", "1990-02-01"))
    with pytest.raises(InputError, match=r"--count: got 0, expected at least 1"):
        search.run(parsed("--index", "nowhere", "storm", "--count", "0"))


@pytest.mark.parametrize(("engine", "is_told"), [("TensorFlow", True), ("JAX", False), ("NumPy", False)])
def test_a_slow_start_is_explained(index, tmp_path, monkeypatch, capsys, engine, is_told):
    index.save(str(tmp_path))
    encoder = object.__new__(SavedModelEncoder)
    encoder.engine = engine
    monkeypatch.setattr(search, "index_encoder", lambda *_, **__: encoder)
    monkeypatch.setattr(search, "find_words", lambda *_, **__: Found([], "hybrid"))
    assert search.run(parsed("--index", str(tmp_path), "storm")) == 0
    error = capsys.readouterr().err
    assert error.startswith("note: TensorFlow computes this SavedModel and takes seconds to start") == is_told
    assert bool(error) == is_told


def test_the_index_names_its_encoder_unless_another_is_given(index, monkeypatch):
    made = []

    def make(spec, **options):
        made.append((spec, options))
        return types.SimpleNamespace(digest="digest" if spec != "model:other" else "other")

    monkeypatch.setattr(search, "encoder_from_spec", make)
    search.index_encoder(index, max_length=7)
    index.reading = Reading("d ")  # of the documents: what it was built with
    search.index_encoder(index, "savedmodel:moved", query_prompt="q ", few_texts=True)
    unset = {"long_documents": None, "progress": False}
    assert made == [
        (
            "model:there",
            {"max_length": 7, "document_prompt": None, "query_prompt": None, "few_texts": False, **unset},
        ),
        (
            "savedmodel:moved",
            {"max_length": None, "document_prompt": "d ", "query_prompt": "q ", "few_texts": True, **unset},
        ),
    ]
    index.reading = Reading(max_length=64)
    for spec, given in (("model:there", None), ("model:there", 7), ("savedmodel:moved", None)):
        search.index_encoder(index, spec, max_length=given)
    assert [options["max_length"] for _, options in made[2:]] == [64, 7, None]
    with pytest.raises(InputError, match=r"model:other is not the encoder that built the index \(model:there\)"):
        search.index_encoder(index, "model:other")
    search.index_encoder(DocumentIndex(ROWS, DOCUMENTS), "model:other")  # an index of unknown origin


def test_an_index_of_other_lengths_names_the_option(index, monkeypatch):
    index.encoder_digest = "0a1b-64"
    for digest, message in (
        ("0a1b-256", "--max_length: the index was built with 64 tokens of each document, the encoder reads 256"),
        ("0a1c-64", "model:there is not the encoder that built the index"),
    ):
        monkeypatch.setattr(search, "encoder_from_spec", lambda *_, d=digest, **__: types.SimpleNamespace(digest=d))
        with pytest.raises(InputError, match=message):
            search.index_encoder(index)


def test_a_short_text_names_an_encoder(monkeypatch):
    from newsembed.serving import encoder, saved_model

    made = []
    for module, name in (
        (encoder, "load_encoder"),
        (encoder, "fresh_encoder"),
        (saved_model, "SavedModelEncoder"),
    ):
        monkeypatch.setattr(module, name, lambda *where, name=name, **options: made.append((name, *where, options)))
    for spec in ("model:dir", "model:dir@7", "random:dir", "random:dir@7", "savedmodel:dir@7"):
        specs.encoder_from_spec(spec, max_length=9, progress=False, document_prompt="d ", query_prompt="q ")
    specs.encoder_from_spec("savedmodel:dir", few_texts=True)
    prompts = {"document_prompt": "d ", "query_prompt": "q "}
    options = {"max_length": 9, "progress": False, "long_documents": None} | prompts
    assert made == [
        ("load_encoder", "dir", None, options | {"few_texts": False}),
        ("load_encoder", "dir", 7, options | {"few_texts": False}),
        ("fresh_encoder", "dir", 0, options),
        ("fresh_encoder", "dir", 7, options),
        ("SavedModelEncoder", "dir@7", {"progress": False, "long_documents": None, "few_texts": False} | prompts),
        (
            *("SavedModelEncoder", "dir"),
            {"progress": True, "long_documents": None, "few_texts": True} | dict.fromkeys(prompts),
        ),
    ]
    assert [specs.split_number(text) for text in ("@7", "a@", "a@-1", "a@b@7")] == [
        ("@7", None), ("a@", None), ("a@-1", None), ("a@b", 7)
    ]  # fmt: skip
    given = (("m", None), (None, "s"), (None, None))
    chosen = [argparse.Namespace(model=model, saved_model=saved) for model, saved in given]
    assert [specs.encoder_spec(args) for args in chosen] == ["model:m", "savedmodel:s", None]


def test_groups_are_made_by_the_method_that_is_asked_for(monkeypatch, index):
    calls = []
    for name in ("agglomerative", "pairs_above", "pairs_within_days", "components"):
        monkeypatch.setattr(cluster, name, lambda *given, name=name: calls.append((name, *given[1:])) or name)
    assert cluster.cluster(index, "average", 0.7) == "agglomerative"
    assert cluster.cluster(index, "graph", 0.7) == "components"
    assert cluster.cluster(index, "graph", 0.7, 0) == "components"
    dates = [document.byline_date for document in DOCUMENTS]
    assert calls == [
        ("agglomerative", 0.7),
        *(("pairs_above", 0.7), ("components", "pairs_above")),
        *(("pairs_within_days", dates, 0.7, 0), ("components", "pairs_within_days")),
    ]
    with pytest.raises(InputError, match="average linkage does not look at dates"):
        cluster.cluster(index, "average", 0.7, 0)


def test_articles_are_embedded_in_chunks_without_the_empty_ones(monkeypatch):
    monkeypatch.setattr(embed, "_CHUNK", 2)
    texts = ("ab", " \n", "cd", "  ", " e")  # title and body, one character each
    articles = [ArticleText(str(number), "", "", *text) for number, text in enumerate(texts)]
    asked = []
    encoder = types.SimpleNamespace(encode=lambda *texts: asked.append(texts) or ROWS[: len(texts[0])])
    counts = {}
    found = list(embed.embedded(encoder, iter(articles), counts))
    assert [[article.doc_id for article in chunk] for chunk, _ in found] == [["0"], ["2"], ["4"]]
    assert asked == [(["a"], ["b"]), (["c"], ["d"]), ([" "], ["e"])]
    assert counts == {"embedded": 3, "empty": 2}
    broken = types.SimpleNamespace(encode=lambda titles, _bodies: np.full((len(titles), 2), np.inf))
    with pytest.raises(InputError, match="NaN or infinity"):
        list(embed.embedded(broken, iter(articles)))
    with pytest.raises(InputError, match="none of 2 articles has text"):
        list(embed.embedded(encoder, iter([articles[1], articles[3]])))


def test_buckets_by_hand():
    lengths = [30, 33, 5, 64, 32]
    found = [(numbers.tolist(), shape) for numbers, shape in by_bucket(lengths, length_buckets(100), 64)]
    # Longest first; a batch of 64 cells holds one row of 64 or two of 32. No row is longer than 64.
    assert found == [([1], (1, 64)), ([3], (1, 64)), ([0, 2], (2, 32)), ([4], (1, 32))]
    heights_of = [shape for _, shape in by_bucket([10] * 3, (32,), 32 * 20, multiple=6)]
    assert heights_of == [(12, 32)], "eight rows, rounded up to a multiple of six"
    assert heights(8) == [1, 8]
    assert heights(9) == [1, 8, 9]
    tokens = filled([np.array([2, 5, 3], np.int32), np.array([2, 3], np.int32)], np.array([1, 0]), (3, 4))
    assert tokens.tolist() == [[2, 3, 0, 0], [2, 5, 3, 0], [0, 0, 0, 0]]

"""What a query is, which dates and which encoder it gets, and what is handed to them, without a model."""

import dataclasses
import datetime
import types

import numpy as np
import pytest
from letters import run
from newsembed.errors import InputError
from newsembed.formats.articles import ArticleText
from newsembed.serving import embed, search
from newsembed.serving.extracts import Extract
from newsembed.serving.filters import ALL_DATES, DateRange
from newsembed.serving.index import Hit
from refusals import refuses
from tables import index_of, numbered

DAY = datetime.date(2024, 1, 10)
ROWS = np.eye(3, dtype=np.float32)
DOCUMENTS = numbered([f"title {number}" for number in range(3)], [DAY, DAY + datetime.timedelta(2)])


@pytest.fixture
def index():
    return index_of(ROWS, DOCUMENTS, encoder="model:there", encoder_digest="digest")


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


def test_the_dates_of_a_query(index):
    later = DAY + datetime.timedelta(3)
    assert search.date_range(index, "", None, None, None) == ALL_DATES
    assert search.date_range(index, "", DAY, later, None) == DateRange(DAY, later)
    around = search.date_range(index, "https://a.example/1", None, None, 0)
    assert around == DateRange(DAY + datetime.timedelta(2), DAY + datetime.timedelta(2))
    for since, until in ((DAY, None), (None, DAY)):
        refuses("given with since or until", search.date_range, index, "https://a.example/1", since, until, 1)


def test_ranges_of_days():
    assert DateRange.around(DAY, 2) == DateRange(DAY - datetime.timedelta(2), DAY + datetime.timedelta(2))
    for days_around in (-1, 10**9):
        refuses(f"got {days_around} around 2024-01-10", DateRange.around, DAY, days_around)


def test_results_show_title_score_publisher_date_and_the_whole_url(capsys):
    from rich.console import Console

    long = dataclasses.replace(DOCUMENTS[2], url=f"https://a.example/{'x' * 300}", title="one two three " * 9)
    search.print_results([Hit(1, 0.98765, DOCUMENTS[0]), Hit(12, -0.5, long)], Console(width=40))
    search.print_results([Hit(1, 0.1, dataclasses.replace(DOCUMENTS[0], url=""), share=1.0)], Console(width=40))
    *lines, _, answer = capsys.readouterr().out.splitlines()
    assert answer.strip() == "strong  a.example  2024-01-10"
    assert [line.rstrip() for line in lines[:3]] == [
        "   1  title 0",
        "      0.9877  a.example  2024-01-10",
        f"      {DOCUMENTS[0].url}",
    ]
    assert lines[3].startswith("  12  one two three")
    assert lines[4].startswith("      ")
    assert lines[-2].strip() == "-0.5000  a.example"
    assert lines[-1].strip() == long.url


def test_results_in_several_languages_say_which(capsys):
    from rich.console import Console

    english, german = (dataclasses.replace(DOCUMENTS[0], language=tag) for tag in ("en", "de"))
    for hits, expected in (((english, german), ["en  a.example", "de  a.example"]), ((german,), ["a.example"])):
        search.print_results([Hit(1, 0.5, one) for one in hits], Console(width=80))
        lines = [line.strip() for line in capsys.readouterr().out.splitlines() if line.strip().startswith("0.5")]
        assert lines == [f"0.5000  {one}  2024-01-10" for one in expected]


def test_titles_of_strangers_do_not_reach_the_terminal(index, capsys):
    from rich.console import Console

    evil = "\x1b]0;pwned\x07\x9b31m\u202e"
    document = dataclasses.replace(DOCUMENTS[0], title=evil, publisher=evil, url=f"https://a.example/{evil}")
    search.print_results([Hit(1, 0.5, document, Extract((), evil, ((0, 1),)))], Console())
    assert not {*"\x1b\x07\x9b\u202e"} & set(capsys.readouterr().out)
    assert "\x1b" not in str(InputError("p", path="\x1b[31m", remedy=evil))


def test_dates_that_the_archive_lacks_name_those_that_it_has(index, monkeypatch):
    monkeypatch.setattr(search, "index_encoder", lambda *_, **__: pytest.fail("the model is not needed for this"))
    late = ("--since", "1990-01-01", "--until", "1990-02-01")
    message = "no article of the index has a byline date in this range; it has dates from"
    refuses(message, run, search, "--index", index.archive.uri, "storm", *late)


def test_the_index_names_its_encoder_unless_another_is_given(index, monkeypatch):
    made = []

    def make(spec, **options):
        made.append((spec, options))
        return types.SimpleNamespace(digest="digest" if spec != "model:other" else "other")

    monkeypatch.setattr(search, "encoder_from_spec", make)
    search.index_encoder(index, max_length=7)
    index.settings["document_prompt"] = "d "  # of the documents: what it was built with
    search.index_encoder(index, "savedmodel:moved", query_prompt="q ")
    unset = {"long_documents": None, "progress": False}
    assert made == [
        ("model:there", {"max_length": 7, "document_prompt": None, "query_prompt": None, **unset}),
        ("savedmodel:moved", {"max_length": None, "document_prompt": "d ", "query_prompt": "q ", **unset}),
    ]
    index.settings.update(document_prompt=None, max_length=64)
    for spec, given in (("model:there", None), ("model:there", 7), ("savedmodel:moved", None)):
        search.index_encoder(index, spec, max_length=given)
    assert [options["max_length"] for _, options in made[2:]] == [64, 7, None]
    with pytest.raises(InputError, match=r"model:other is not the encoder that built the index \(model:there\)"):
        search.index_encoder(index, "model:other")
    unknown = index_of(ROWS, DOCUMENTS)
    search.index_encoder(unknown, "model:other")
    refuses("does not say which encoder", search.index_encoder, unknown)


def test_an_index_of_other_lengths_names_the_option(index, monkeypatch):
    index.encoder_digest = "0a1b-64"
    for digest, message in (
        ("0a1b-256", "--max_length: the index was built with 64 tokens of each document, the encoder reads 256"),
        ("0a1c-64", "model:there is not the encoder that built the index"),
    ):
        monkeypatch.setattr(search, "encoder_from_spec", lambda *_, d=digest, **__: types.SimpleNamespace(digest=d))
        refuses(message, search.index_encoder, index)


def test_articles_are_embedded_in_chunks_without_the_empty_ones():
    texts = ("ab", " \n", "cd", "  ", " e")  # title and body, one character each
    articles = [ArticleText(str(number), "", "", *text) for number, text in enumerate(texts)]
    asked = []
    encoder = types.SimpleNamespace(encode=lambda *texts: asked.append(texts) or ROWS[: len(texts[0])])
    counts = {}
    found = list(embed.embedded(encoder, iter(articles), counts, chunk=2))
    assert [[article.doc_id for article in chunk] for chunk, _ in found] == [["0"], ["2"], ["4"]]
    assert asked == [(["a"], ["b"]), (["c"], ["d"]), ([" "], ["e"])]
    assert counts == {"embedded": 3, "empty": 2}
    broken = types.SimpleNamespace(encode=lambda titles, _bodies: np.full((len(titles), 2), np.inf))
    refuses("NaN or infinity", list, embed.embedded(broken, iter(articles)))
    refuses("none of 2 articles has text", list, embed.embedded(encoder, iter([articles[1], articles[3]])))

"""Which articles are diagnosed: any JSONL of articles, drawn by whole events, and queries that exist."""

import pytest
from json_lines import write_rows
from newsembed.evaluation.events import EventDocument, collect, sample
from newsembed.formats.articles import write_articles
from refusals import refuses


def write(tmp_path, rows):
    return write_rows(tmp_path / "articles.jsonl", rows)


def rows(count=6):
    return [{"id": f"a{n}", "title": f"title {n}", "body": "", "event": f"e{n // 2}"} for n in range(count)]


def test_articles_without_labels_go_by_doc_id_or_url_and_their_dates_are_not_read(tmp_path):
    given = [{"doc_id": "d", "url": "http://x.example/1", "title": "one", "body": "text", "byline_date": "1/21"}]
    given += [{"url": "http://x.example/2", "title": None, "body": "two", "language": "zh"}]
    given += [{"id": "", "url": "http://x.example/3", "title": " ", "body": "\n"}]
    found = collect(write(tmp_path, given))
    assert [article.id for article in found.articles] == ["d", "http://x.example/2"]
    assert (found.read, found.empty) == (3, 1)
    assert sorted(found.queries) == [0, 1]


def test_folders_of_parquet_are_read_as_by_index(tmp_path):
    for number in range(2):
        title, topic = f"title {number}", f"topic {number}"
        article = {"doc_id": f"d{number}", "title": title, "body": "b", "byline_date": "2020-01-01", "topic": topic}
        write_articles(f"{tmp_path}/articles/part-{number}.parquet", [{**article, "authors": ["A"]}])
    found = collect(f"{tmp_path}/articles").articles
    expected = [(f"d{n}", f"title {n}", f"topic {n}", "") for n in range(2)]
    assert [(one.id, one.title, one.topic, one.event) for one in found] == expected


BLANK = {"id": "blank", "title": "", "body": " "}


@pytest.mark.parametrize(
    ("lines", "options", "message"),
    [
        ([{"title": "a", "body": "b"}], {}, "articles.jsonl:1: id: the field is missing"),
        ([{"id": "1", "body": "b"}], {}, "articles.jsonl:1: title: the field is missing"),
        (rows(1), {}, "1 of 1 articles have text, expected at least two"),
        (rows(), {"queries": ["a9"]}, "no article has the id 'a9'"),
        (rows(), {"queries": ["a33"]}, "did you mean 'a3'"),
        ([*rows(), BLANK], {"queries": ["blank"]}, "the article 'blank' has no text"),
        (rows(), {"limit": 1}, "keeps 0 articles, expected at least two"),
    ],
)
def test_bad_input(tmp_path, lines, options, message):
    refuses(message, collect, write(tmp_path, lines), **options)


def test_queries_keep_their_order_and_come_once(tmp_path):
    found = collect(write(tmp_path, rows()), queries=["a4", "a1", "a4"])
    assert [found.articles[place].id for place in found.queries] == ["a4", "a1"]


def test_drawn_queries_have_company_in_their_event_where_there_is_any(tmp_path):
    lonely = [{"id": f"b{number}", "title": "t", "body": "", "event": None} for number in range(20)]
    found = collect(write(tmp_path, [*lonely, *rows(2)]), shown=3)
    assert {found.articles[place].id for place in found.queries[:2]} == {"a0", "a1"}
    assert len(found.queries) == 3


def test_a_sample_holds_whole_events_and_the_queries():
    articles = [EventDocument(str(n), "t", "b", event=f"e{n // 4}" if n < 40 else "") for n in range(60)]
    kept = sample(articles, 20, keep=["13"], seed=5)
    ids = {article.id for article in kept}
    assert len(kept) <= 20
    assert "13" in ids
    assert [int(article.id) for article in kept] == sorted(int(article.id) for article in kept)
    for article in kept:
        if article.event and article.event != "e3":
            assert {str(4 * int(article.event[1:]) + place) for place in range(4)} <= ids
    assert kept == sample(articles, 20, keep=["13"], seed=5)
    assert kept != sample(articles, 20, keep=["13"], seed=6)
    assert sample(articles, 60) == articles

"""Articles that users bring: JSONL and Parquet read the same, what is missing or broken is named."""

import hashlib
import io
import json
import types

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from newsembed.errors import InputError
from newsembed.formats import articles as articles_module
from newsembed.formats.articles import ArticleText, article_files, read_articles, read_rows

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
ARTICLES = st.builds(
    ArticleText,
    doc_id=st.text("0123456789abcdef", min_size=16, max_size=16),
    url=TEXT,
    publisher=TEXT,
    title=TEXT,
    body=TEXT,
    language=TEXT,
    byline_date=st.none() | st.dates(),
)


def as_row(article):
    return {name: getattr(article, name) for name in ArticleText.__slots__}


@settings(max_examples=30, deadline=None)
@given(st.lists(ARTICLES, min_size=1, max_size=5))
def test_jsonl_and_parquet_come_back(tmp_path_factory, articles):
    folder, rows = tmp_path_factory.mktemp("articles"), [as_row(article) for article in articles]
    (folder / "a.jsonl").write_text("".join(json.dumps(row, default=str) + "\n" for row in rows), encoding="utf-8")
    schema = pa.schema([(name, pa.date32() if name == "byline_date" else pa.string()) for name in rows[0]])
    pq.write_table(pa.Table.from_pylist(rows, schema), folder / "a.parquet")
    assert list(read_articles(str(folder / "a.jsonl"))) == articles
    assert list(read_articles(str(folder / "a.parquet"))) == articles


def test_a_folder_is_read_in_the_order_of_its_names_and_parquet_first(tmp_path):
    (tmp_path / "inner").mkdir()
    for name in ("b.jsonl", "inner/a.jsonl.gz", "c.jsonl.zst", "notes.txt"):
        (tmp_path / name).touch()
    assert article_files(str(tmp_path)) == [
        str(tmp_path / name) for name in ("b.jsonl", "c.jsonl.zst", "inner/a.jsonl.gz")
    ]
    (tmp_path / "z.parquet").touch()
    assert article_files(str(tmp_path)) == [str(tmp_path / "z.parquet")]


def test_the_folder_of_a_job_stands_for_its_articles(tmp_path):
    for name in ("articles/part-0.parquet", "clusters/part-0.parquet", "dead_letters/rules/part-0.parquet"):
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).touch()
    assert len(article_files(str(tmp_path))) == 3  # a folder of the user's own
    (tmp_path / "manifest.json").write_text("{}")
    assert article_files(str(tmp_path)) == [str(tmp_path / "articles/part-0.parquet")]


def test_rows_name_their_place(tmp_path):
    (tmp_path / "a.jsonl").write_text('\n{"title": "t"}\n')
    pq.write_table(pa.table({"title": ["t", "u"], "other": [1, 2]}), tmp_path / "a.parquet")
    found = list(read_rows([str(tmp_path / "a.jsonl"), str(tmp_path / "a.parquet")], ["title"], ["url"]))
    assert found == [
        (f"{tmp_path}/a.jsonl:2", {"title": "t"}),
        (f"{tmp_path}/a.parquet:row 1", {"title": "t"}),
        (f"{tmp_path}/a.parquet:row 2", {"title": "u"}),
    ]


def test_doc_id_is_the_start_of_the_urls_sha1(tmp_path):
    (tmp_path / "a.jsonl").write_text(
        '{"title": "t", "body": "b", "url": "https://x.example/"}\n{"title": "t", "body": null, "doc_id": "d"}\n'
    )
    first, second = read_articles(str(tmp_path / "a.jsonl"))
    assert first.doc_id == hashlib.sha1(b"https://x.example/").hexdigest()[:16]
    assert (second.doc_id, second.body) == ("d", "")


def test_junk_dates_are_no_dates(tmp_path):
    (tmp_path / "a.jsonl").write_text('{"title": "t", "body": "b", "byline_date": "1/21"}')
    assert next(read_articles(str(tmp_path / "a.jsonl"))).byline_date is None


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.jsonl", b'{"title": "t"}', r"a\.jsonl:1: body: the field is missing"),
        ("a.jsonl", b'{"title": 3, "body": ""}', "title: got a int"),
        ("a.parquet", b"junk", "not readable Parquet"),
        ("a.csv", b"", "the name ends neither"),
        ("readme.txt", b"", "neither"),
    ],
)
def test_bad_articles(tmp_path, name, content, message):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=message):
        list(read_articles(str(tmp_path / name)))


def test_absent_and_empty_places(tmp_path):
    with pytest.raises(InputError, match="no such file"):
        list(read_articles(str(tmp_path / "none")))
    with pytest.raises(InputError, match="holds no"):
        list(read_articles(str(tmp_path)))


def test_a_parquet_file_without_bodies_is_named(tmp_path):
    pq.write_table(pa.table({"title": ["t"]}), tmp_path / "a.parquet")
    with pytest.raises(InputError, match=r"a\.parquet: body: the column is missing"):
        list(read_articles(str(tmp_path / "a.parquet")))


def test_an_article_without_an_id_or_a_url_is_named_by_its_texts(tmp_path):
    (tmp_path / "a.jsonl").write_text('{"title": "t", "body": "b"}\n{"title": " ", "body": "\\n"}\n')
    first, second = read_articles(str(tmp_path / "a.jsonl"))
    assert first.doc_id == hashlib.sha1(b"t\nb").hexdigest()[:16]
    assert (first.is_empty, second.is_empty) == (False, True)


def test_a_dash_is_jsonl_on_standard_input_and_may_be_read_twice(monkeypatch):
    lines = b'{"title": "Storm", "body": "Wind."}\n{"title": "Vote", "body": "Close."}\n'
    monkeypatch.setattr(articles_module.sys, "stdin", types.SimpleNamespace(buffer=io.BytesIO(lines)))
    articles_module._spooled_input.cache_clear()
    try:
        assert [one.title for one in read_articles("-")] == ["Storm", "Vote"]
        assert [one.title for one in read_articles("-")] == ["Storm", "Vote"]
    finally:
        articles_module._spooled_input.cache_clear()


@pytest.mark.parametrize(("line", "problem"), [(b'{"title": "t"}', "body: the field is missing"), (b"{", "not JSON")])
def test_errors_name_the_line_of_standard_input(monkeypatch, line, problem):
    lines = b'{"title": "Storm", "body": "Wind."}\n' + line
    monkeypatch.setattr(articles_module.sys, "stdin", types.SimpleNamespace(buffer=io.BytesIO(lines)))
    articles_module._spooled_input.cache_clear()
    try:
        with pytest.raises(InputError, match=f"^standard input:2: {problem}"):
            list(read_articles("-"))
    finally:
        articles_module._spooled_input.cache_clear()

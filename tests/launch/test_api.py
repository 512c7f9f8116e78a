"""newsembed from Python: encoders, indexes, articles in every form, jobs; and what the guide shows."""

import datetime
import doctest
import logging
import re
import subprocess
import sys
from pathlib import Path

import newsembed
import numpy as np
import pyarrow as pa
import pytest
from newsembed.errors import InputError
from newsembed.launch import api
from refusals import refuses

GUIDE = Path(__file__).parents[2] / "docs" / "guides" / "python.md"


def test_importing_it_imports_nothing_else_and_names_are_listed():
    code = (
        "import sys, newsembed; newsembed.__version__; dir(newsembed); "
        "assert not {'numpy', 'pyarrow', 'jax', 'tensorflow', 'newsembed.launch.api'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
    assert set(newsembed._OFFERED) <= set(dir(newsembed))
    for name in newsembed._OFFERED:
        assert getattr(newsembed, name).__doc__
    with pytest.raises(AttributeError, match="no attribute 'lode'"):
        newsembed.lode  # noqa: B018


def test_every_form_of_articles_has_the_same_vectors(static_model, article_rows):
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    encoder = newsembed.load(static_model)
    rows = [*article_rows, {"title": "Only a title"}, {"body": "only a body"}]
    expected = encoder.encoder.encode([row.get("title", "") for row in rows], [row.get("body", "") for row in rows])
    for form in (rows, tuple(rows), pa.Table.from_pylist(rows, pa.schema([("title", "string"), ("body", "string")]))):
        np.testing.assert_array_equal(encoder.encode(form), expected)
    np.testing.assert_array_equal(encoder.encode(pandas.DataFrame(rows)), expected)


def test_texts_are_bodies(static_model):
    encoder = newsembed.load(static_model)
    texts = ["storm on the coast", "", "the vote"]
    np.testing.assert_array_equal(encoder.encode(texts), encoder.encoder.encode([""] * 3, texts))
    np.testing.assert_array_equal(encoder.encode_queries(texts), encoder.encoder.encode_queries(texts))
    assert (encoder.encode(texts).dtype, encoder.dimensions) == (np.float32, 8)
    assert encoder.digest != newsembed.load(static_model, max_length=5).digest


@pytest.mark.parametrize("given", ["one text", {"title": "one"}, [3], [{"url": "u"}]])
def test_other_forms_are_refused(static_model, given):
    with pytest.raises(InputError, match="expected|neither title nor body"):
        newsembed.load(static_model).encode(given)


def test_one_query_is_not_a_list_of_letters(static_model):
    refuses("got a str, expected several queries", newsembed.load(static_model).encode_queries, "storm")


def test_an_index_is_built_saved_opened_and_searched(static_model, article_rows, tmp_path):
    encoder = newsembed.load(static_model)
    built = newsembed.Index.build(encoder, article_rows, str(tmp_path / "index"))
    opened = newsembed.open(str(tmp_path / "index"), saved_model=static_model)
    assert len(opened) == len(article_rows)
    vectors, query = encoder.encode(article_rows), encoder.encode_queries(["storm"])[0]
    order = np.argsort(-(vectors @ query), kind="stable")
    for index in (built, opened):
        found = index.search("storm", k=3, mode="vectors")
        assert [hit.document.url for hit in found] == [article_rows[number]["url"] for number in order[:3]]
    hits = opened.search("storm", since="2024-01-02", until=datetime.date(2024, 1, 3))
    assert {hit.document.byline_date.isoformat() for hit in hits} == {"2024-01-02", "2024-01-03"}
    times = {
        "since": datetime.datetime(2024, 1, 2, 23, 59),
        "until": datetime.datetime(2024, 1, 3, tzinfo=datetime.UTC),
    }
    for mode in ("hybrid", "words", "vectors"):
        found = opened.search("storm", k=9, mode=mode, **times)
        assert {hit.document.byline_date.isoformat() for hit in found} <= {"2024-01-02", "2024-01-03"}
        assert [hit.document for hit in found] == [
            hit.document for hit in opened.search("storm", k=9, mode=mode, since="2024-01-02", until="2024-01-03")
        ]
    assert article_rows[0]["url"] not in [hit.document.url for hit in opened.search(article_rows[0]["url"])]
    for wrong in ("yesterday", 2024):
        with pytest.raises(InputError, match="expected a day as YYYY-MM-DD"):
            opened.search("storm", since=wrong)
    with pytest.raises(InputError, match="mode: got 'word', expected one of hybrid, words, vectors"):
        opened.search("storm", mode="word")
    for mode in (None, "words", "vectors"):
        for few in (0, -1):
            with pytest.raises(InputError, match=f"count: got {few}, expected 1 or more"):
                opened.search("storm", mode=mode, k=few)


def test_groups_are_numbers_of_documents_largest_first(static_model, article_rows, tmp_path):
    rows = [*article_rows, article_rows[1] | {"url": "https://copy.example/1"}]
    index = newsembed.Index.build(newsembed.load(static_model), rows, str(tmp_path))
    assert index.cluster(0.9999) == [[1, 4], [0], [2], [3]]
    assert index.cluster(-0.9999) == [[0, 1, 2, 3, 4]]
    with pytest.raises(InputError, match="threshold: got 2"):
        index.cluster(2)
    assert index.to_arrow(["title"]).column("title").to_pylist() == [one.title for one in index.documents]
    with pytest.raises(InputError, match="columns: no column 'titel'"):
        index.to_arrow(["title", "titel"])


@pytest.mark.parametrize("ending", [".parquet", ".jsonl", ".jsonl.gz", ".jsonl.zst"])
def test_articles_are_read_as_they_were_written(tmp_path, article_rows, ending):
    path = str(tmp_path / "folder" / f"articles{ending}")
    assert newsembed.write_articles(path, article_rows) == len(article_rows)
    table = newsembed.read_articles(path)
    names = ["doc_id", "url", "publisher", "title", "body", "language", "byline_date", "image_url"]
    assert table.column_names == names
    assert [row | {"byline_date": row["byline_date"].isoformat()} for row in table.to_pylist()] == [
        {"doc_id": row["doc_id"], "language": "", "image_url": ""} | given
        for row, given in zip(table.to_pylist(), article_rows, strict=True)
    ]
    assert newsembed.write_articles(path, table) == len(article_rows)
    assert newsembed.read_articles(path).equals(table)
    assert [file.name for file in Path(path).parent.iterdir()] == [f"articles{ending}"]


def test_a_job_with_unknown_names_is_refused(tmp_path):
    with pytest.raises(InputError, match=r"got min_word, expected some of .*\n  remedy: did you mean min_words\?"):
        newsembed.run("clean", output=str(tmp_path / "o"), articles="a", options={"min_word": 3})
    with pytest.raises(InputError, match="got article, expected some of articles"):
        newsembed.run("clean", output=str(tmp_path / "o"), article="a")
    with pytest.raises(InputError, match="search is not a mining job"):
        newsembed.run("search", output=str(tmp_path / "o"))


def test_a_job_runs(tmp_path, article_rows):
    newsembed.write_articles(str(tmp_path / "articles.jsonl"), article_rows)
    manifest = newsembed.run("extract", output=str(tmp_path / "extract"), articles=str(tmp_path / "articles.jsonl"))
    assert newsembed.read_articles(str(tmp_path / "extract" / "articles")).num_rows == len(article_rows)
    assert manifest["job"] == "extract"


def test_the_log_is_as_before_while_beam_is_imported(caplog):
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.manager.disable
    with api._quiet():
        logging.warning("apitools not found")  # noqa: LOG015 - as Beam does
        root.addHandler(logging.NullHandler())
    assert (root.handlers, root.manager.disable, caplog.messages) == (handlers, level, [])


def test_the_examples_of_the_guide_run(static_model, article_file, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("model").symlink_to(static_model)
    Path("articles.jsonl").symlink_to(article_file)
    examples = "\n".join(re.findall(r"```python\n(.*?)```", GUIDE.read_text(encoding="utf-8"), re.DOTALL))
    assert examples.count(">>> ") > 8
    test = doctest.DocTestParser().get_doctest(examples, {}, "python.md", str(GUIDE), 0)
    report = []
    doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(test, out=report.append)
    assert not report, "".join(report)

"""Reading articles, embedding them to files, the index and its search, by command and by function."""

import dataclasses
import datetime
import json
import shutil

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from letters import parsed, run
from newsembed.errors import InputError
from newsembed.formats.archive import Archive, IndexedDocument
from newsembed.formats.archive_writer import Writer
from newsembed.formats.articles import ArticleText, read_articles
from newsembed.serving import embed, index_command, search
from newsembed.serving.encoder import load_encoder
from newsembed.serving.filters import DateRange, Filters
from newsembed.serving.index import DocumentIndex, Hit
from refusals import refuses
from tables import index_of, numbered
from vectors import unit

DAY = datetime.date(2024, 1, 1)


def documents(count):
    return numbered([f"title {number}" for number in range(count)])


# Articles


def test_an_archive_stands_for_its_articles(tmp_path):
    date = datetime.date(2024, 1, 2)
    text = ArticleText("d", "https://a.example", "a", "Title", "Body.", "en", date, "https://a.example/i.jpg")
    index_of(np.ones((1, 2), np.float32), [text], tmp_path)
    assert list(read_articles(str(tmp_path))) == [text]


# The index


def dated(count):
    """Documents a day apart from 2024-01-01 on; every fifth has no date."""
    days = [None if number % 5 == 4 else DAY + datetime.timedelta(number) for number in range(count)]
    return numbered([f"title {number}" for number in range(count)], days)


@pytest.mark.parametrize(("since", "until"), [(10, None), (None, 19), (10, 19), (2_000, None)])
@pytest.mark.parametrize("exact_limit", [4, 1_000])
def test_a_search_among_dates_is_the_search_of_those_documents_alone(since, until, exact_limit):
    rows, listed, query = unit(0, 60), dated(60), unit(9, 1)[0]
    inside = [n for n in range(since or 0, 60 if until is None else until + 1) if n % 5 != 4]
    index = index_of(rows, listed, exact_limit=exact_limit)
    bounds = DateRange(*(None if day is None else DAY + datetime.timedelta(day) for day in (since, until)))
    hits = index.search(query, 7, Filters(bounds))
    expected = sorted(inside, key=lambda number: -float(rows[number] @ query))[:7]
    assert [hit.document for hit in hits] == [listed[number] for number in expected]


def test_a_search_by_url_among_the_days_around_its_article():
    index = index_of(unit(0, 60), dated(60))
    url = "https://a.example/20"
    hits = index.search_url(url, 50, Filters(index.dates_around(url, 3)))
    assert {hit.document.url for hit in hits} == {f"https://a.example/{number}" for number in (17, 18, 21, 22, 23)}
    assert index.search_url(url, 50, Filters(index.dates_around(url, 0))) == []
    refuses(r"/4 has no byline date", index.dates_around, "https://a.example/4", 3)


def test_a_folder_without_an_index_says_so(tmp_path):
    refuses("no readable archive: it has no runs", DocumentIndex.load, str(tmp_path))
    refuses("absent: no readable archive: no such folder", DocumentIndex.load, str(tmp_path / "absent"))
    refuses("test_index.py: no readable archive: it has no runs", DocumentIndex.load, __file__)
    (tmp_path / "archive/runs.lance").mkdir(parents=True)
    with pytest.raises(InputError) as raised:
        DocumentIndex.load(f"{tmp_path}/")
    assert raised.value.remedy == f"name {tmp_path}/archive"


def test_many_vectors_are_searched_in_the_database(tmp_path, monkeypatch):
    monkeypatch.setattr("newsembed.formats.archive_writer.EXACT_LIMIT", 1_000)
    rows, queries = unit(0, 4000, 16), unit(3, 50, 16)
    index = index_of(rows, documents(4000), tmp_path, exact_limit=1_000)
    assert not index.is_exact
    assert {one.columns[0] for one in index.archive._articles.list_indices()} >= {"vector", "words", "byline_date"}
    found = [set(index.nearest(query, 10)[0].tolist()) for query in queries]
    exact = [set(np.argsort(-(rows @ query))[:10].tolist()) for query in queries]
    recall = np.mean([len(a & b) / 10 for a, b in zip(found, exact, strict=True)])
    assert recall > 0.3  # random vectors are the worst case for an inverted file
    numbers, scores = index.nearest(rows[5], 1)
    assert (numbers.tolist(), round(float(scores[0]), 5)) == ([5], 1)
    np.testing.assert_allclose(index.cosines(rows[5], np.array([5, 9])), [1, rows[5] @ rows[9]], atol=1e-5)
    monkeypatch.setenv("NEWSEMBED_CACHE_GB", "0")  # reads what it needs again
    again = DocumentIndex(Archive(str(tmp_path)), exact_limit=1_000)
    assert [set(again.nearest(query, 10)[0].tolist()) for query in queries] == found
    every = rows @ rows[5]
    expected = [(every[9] - every.mean()) / every.std()]
    np.testing.assert_allclose(index.deviations(rows[5], every[9:10], np.array([9])), expected, atol=1e-4)
    few = Filters(DateRange(datetime.date(2024, 1, 1)))
    assert index.nearest(rows[5], 3, few)[0].tolist() == []
    assert index.search_url("https://a.example/7", 1)[0].document.url != "https://a.example/7"


@pytest.mark.parametrize("few", [1_024, 50])
def test_of_rare_languages_all_vectors_are_compared(tmp_path, monkeypatch, few):
    monkeypatch.setattr("newsembed.formats.archive_writer.EXACT_LIMIT", 1_000)
    monkeypatch.setattr("newsembed.serving.index._LANGUAGE_ROWS", few)
    languages = ["en"] * 1_500 + ["de"] * 80 + ["fr-CA", "fr"] * 30 + [""] * 20
    tagged = enumerate(zip(documents(1_660), languages, strict=True))
    texts = [dataclasses.replace(one, language=tag, publisher=f"{n % 2}.example") for n, (one, tag) in tagged]
    rows = unit(0, 1_660, 16)
    index = index_of(rows, texts, tmp_path, exact_limit=1_000)
    assert {"language", "publisher"} <= {one.columns[0] for one in index.archive._articles.list_indices()}
    exact = DocumentIndex(index.archive)
    assert exact.is_exact
    assert len(index.groups.large) == (1 if few > 50 else 3)
    for query in unit(3, 10, 16):
        wanted = exact.nearest(query, 100)[0]
        missed = set(wanted.tolist()) - set(index.nearest(query, 100)[0].tolist())
        assert all(number < 1_500 or number >= 1_640 for number in missed)  # English, or too few to be a language
    odd = Filters(publishers=("1.example",))
    assert not np.any(index.nearest(rows[1_505], 100, odd)[0] % 2 == 0)
    german = Filters(languages=("de",))
    assert index.nearest(rows[1_505], 5, german)[0].tolist() == exact.nearest(rows[1_505], 5, german)[0].tolist()


@pytest.mark.parametrize("size", ["much", "-1", "nan"])
def test_a_cache_of_no_size_is_an_error(tmp_path, monkeypatch, size):
    monkeypatch.setenv("NEWSEMBED_CACHE_GB", size)
    refuses(f"NEWSEMBED_CACHE_GB: got '{size}'", index_of, unit(0, 3), documents(3), tmp_path)


# The commands


def test_index_and_search_commands(model_dir, articles, tmp_path, capsys):
    output = str(tmp_path / "index")
    assert run(index_command, "--model", model_dir, "--input", articles, "--output", output) == 0
    assert "5 articles indexed for exact search, 1 without a date (byline_date or" in capsys.readouterr().out
    assert run(search, "--index", output, "Storm hits the coast Wind and rain.", "--count", "3", "--json") == 0
    hits = json.loads(capsys.readouterr().out)
    assert [hit["rank"] for hit in hits] == [1, 2, 3]
    assert run(search, "--index", output, "https://a.example/0") == 0
    shown = capsys.readouterr().out
    lines = [line for line in shown.splitlines() if "example" in line and "https" not in line]
    assert len(lines) == 4
    assert sum("https://" in line for line in shown.splitlines()) == 4
    assert lines[0].split() == ["1.0000", "d.example", "2024-03-01"]  # the copy at another publisher
    assert run(search, "--index", output, "storm", "--since", "2024-02-01", "--json") == 0
    assert {hit["byline_date"][:7] for hit in json.loads(capsys.readouterr().out)} == {"2024-03"}
    assert run(search, "--index", output, "https://a.example/0", "--days", "5", "--json") == 0
    near = {f"2024-01-0{day}" for day in (2, 3, 4)}
    assert {hit["byline_date"] for hit in json.loads(capsys.readouterr().out)} <= near
    refuses("days are counted from an article", run, search, "--index", output, "storm", "--days", "5")
    with pytest.raises(InputError, match="--since: got '1/2/24', expected a day as YYYY-MM-DD"):
        run(search, "--index", output, "storm", "--since", "1/2/24")


def test_an_index_is_replaced_only_if_asked(model_dir, articles, tmp_path, monkeypatch, capsys):
    output = tmp_path / "index"
    given = ["--model", model_dir, "--input", articles, "--output", str(output)]
    assert run(index_command, *given) == 0
    before = DocumentIndex.load(str(output)).documents
    few = tmp_path / "few.jsonl"
    few.write_text('{"title": "One", "body": "article"}\n')
    given[3] = str(few)
    with monkeypatch.context() as patch:
        patch.setattr(index_command, "encoder_from_spec", lambda *_, **__: pytest.fail("the folder is checked first"))
        error = refuses("index: --output: has an index already", run, index_command, *given)
        index_of(unit(0, 1), documents(1), tmp_path / "archive", clean={})
        archive = [*given[:5], str(tmp_path / "archive")]
        for more in (["--append"], ["--overwrite"]):
            refuses("is an archive of newsembed update", run, index_command, *archive, *more)
        refuses("--output: is not an archive, and not empty", run, index_command, *given[:5], model_dir)
    refuses("--output: is not an archive, and not empty", Writer(model_dir).__enter__)
    assert "--append" in error.remedy
    assert "--overwrite" in error.remedy
    assert DocumentIndex.load(str(output)).documents == before
    with Writer(str(output)), pytest.raises(InputError, match="--output: another run is writing to this folder"):
        run(index_command, *given, "--append")
    assert run(index_command, *given, "--append") == 0
    assert len(DocumentIndex.load(str(output))) == 6
    assert run(index_command, *given, "--overwrite") == 0
    assert [document.title for document in DocumentIndex.load(str(output)).documents] == ["One"]
    refuses("--overwrite: given with --append", parsed, index_command, *given, "--append", "--overwrite")


def test_an_index_finds_its_encoder_from_any_folder_and_after_both_moved(model_dir, articles, tmp_path, monkeypatch):
    (tmp_path / "built").mkdir()
    monkeypatch.chdir(tmp_path / "built")
    shutil.copytree(model_dir, "model")
    run(index_command, "--model", "model@10", "--input", articles, "--output", "indexes/one")
    facts = DocumentIndex.load("indexes/one").settings
    assert (facts["encoder"], facts["encoder_beside"]) == ("model:model@10", "model:../../model@10")
    assert DocumentIndex.load("indexes/one").encoder == "model:model@10"
    (tmp_path / "built").rename(tmp_path / "moved")
    monkeypatch.chdir(tmp_path)
    found = DocumentIndex.load("moved/indexes/one")
    assert found.encoder == "model:moved/model@10"
    assert search.index_encoder(found).digest == found.encoder_digest
    (tmp_path / "moved" / "model").rename(tmp_path / "elsewhere")
    with pytest.raises(InputError, match="the encoder that built the index was not found: model:model@10") as caught:
        search.index_encoder(DocumentIndex.load("moved/indexes/one"))
    assert found.encoder_digest in str(caught.value)
    assert "--saved_model" in caught.value.remedy
    assert search.index_encoder(found, "model:elsewhere@10").digest == found.encoder_digest


def test_a_failed_embed_leaves_no_file(model_dir, tmp_path, monkeypatch):
    (tmp_path / "bad.jsonl").write_text('{"title": "a", "body": "b"}\n{"title": "no body"}\n')
    monkeypatch.setattr(embed, "_CHUNK", 1)
    output = str(tmp_path / "vectors.parquet")
    with pytest.raises(InputError, match="the field is missing"):
        run(embed, "--model", model_dir, "--input", tmp_path / "bad.jsonl", "--output", output)
    assert [path.name for path in tmp_path.iterdir()] == ["bad.jsonl"]
    monkeypatch.setattr(embed, "encoder_from_spec", lambda *_, **__: pytest.fail("the input is checked first"))
    with pytest.raises(InputError, match="no such file or folder"):
        run(embed, "--model", model_dir, "--input", tmp_path / "none.jsonl", "--output", output)


def test_titles_with_markup_are_shown_as_they_are(capsys):
    from rich.console import Console

    document = IndexedDocument("d", "u", "[red]p", "[bold]News[/bold] [1/2]")
    search.print_results([Hit(1, 0.5, document)], Console())
    assert "[bold]News[/bold] [1/2]" in capsys.readouterr().out


def test_embed_writes_folder_and_parquet_alike(model_dir, articles, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(embed, "_CHUNK", 2)
    with open(articles, encoding="utf-8") as file:
        (tmp_path / "a.jsonl").write_text(file.read() + '{"title": " ", "body": "", "url": "u"}\n')
    source = str(tmp_path / "a.jsonl")
    assert run(embed, "--model", model_dir, "--input", source, "--output", tmp_path / "v") == 0
    assert "5 articles embedded, 1 without text left out" in capsys.readouterr().out
    assert run(embed, "--model", model_dir, "--input", source, "--output", tmp_path / "v.parquet") == 0
    vectors = np.load(tmp_path / "v/embeddings.npy")
    table = pq.read_table(tmp_path / "v.parquet")
    assert np.array_equal(np.stack(table["embedding"].to_numpy()), vectors)
    assert table["doc_id"].to_pylist() == (tmp_path / "v/ids.txt").read_text().split()
    loaded = list(read_articles(articles))
    expected = load_encoder(model_dir).encode([a.title for a in loaded], [a.body for a in loaded])
    np.testing.assert_allclose(vectors, expected, atol=1e-5)


@pytest.mark.parametrize("output", ["v", "v.parquet", "v.lance"])
def test_embed_replaces_vectors_only_when_asked(model_dir, articles, tmp_path, output):
    options = ("--model", model_dir, "--input", articles, "--output", str(tmp_path / output))
    assert run(embed, *options) == 0
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
    caught = refuses("there are vectors already", run, embed, *options)
    assert "--overwrite" in caught.remedy
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")} == before
    assert run(embed, *options, "--overwrite") == 0


@pytest.mark.parametrize(("seconds", "told"), [(0.0, [2, 4, 5]), (1e9, [])])
def test_many_articles_are_counted_while_they_are_embedded(model_dir, articles, monkeypatch, capsys, seconds, told):
    monkeypatch.setattr(embed, "_TOLD_SECONDS", seconds)
    found = list(embed.embedded(load_encoder(model_dir), read_articles(articles), chunk=2))
    assert sum(len(chunk) for chunk, _ in found) == 5
    said = [line for line in capsys.readouterr().err.splitlines() if "so far" in line]
    assert said == [f"{count} articles embedded so far" for count in told]


@pytest.mark.parametrize("name", ["v.npy", "v.jsonl", "v.csv"])
def test_embed_makes_no_folder_with_the_name_of_another_kind_of_file(model_dir, articles, tmp_path, name):
    options = ("--model", model_dir, "--input", articles, "--output", str(tmp_path / name))
    refuses("only files that end in .parquet are written", run, embed, *options)
    (tmp_path / name).mkdir()
    assert run(embed, *options) == 0
    assert (tmp_path / name / "embeddings.npy").exists()


@settings(max_examples=25, deadline=None)
@given(st.lists(st.sampled_from([0.1, 0.5, 0.9]), min_size=1, max_size=40), st.integers(1, 50))
def test_the_nearest_are_those_of_a_stable_sort_of_all(cosines, count):
    rows = np.array([[cosine, np.sqrt(1 - cosine**2)] for cosine in cosines], np.float32)
    index = index_of(rows, [IndexedDocument(str(row), str(row), "p", "t") for row in range(len(rows))])
    numbers, scores = index.nearest(np.array([1, 0], np.float32), count)
    expected = sorted(range(len(rows)), key=lambda row: (-index.embeddings[row, 0], row))[:count]
    assert numbers.tolist() == expected
    assert scores.tolist() == pytest.approx([index.embeddings[row, 0] for row in expected])

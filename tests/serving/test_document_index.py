"""A document index by values worked by hand: what is searched exactly, filters, places, what a folder keeps."""

import dataclasses
import datetime

import numpy as np
import pytest
from newsembed.errors import InputError
from newsembed.formats.articles import ArticleText
from newsembed.formats.index import IndexedDocument, Reading
from newsembed.serving import index as module
from newsembed.serving.dates import DateRange
from newsembed.serving.extracts import Extract
from newsembed.serving.filters import Filters
from newsembed.serving.index import EXACT_LIMIT, DocumentIndex, Hit, append, indexed_document
from newsembed.serving.words import WordsBuilder

FIRST = datetime.date(2024, 1, 1)


def documents(count):
    """Documents a day apart."""
    return [
        IndexedDocument(f"d{n}", f"https://a.example/{n}", "a.example", f"title {n}", FIRST + datetime.timedelta(n))
        for n in range(count)
    ]


def unit_rows(count, dimensions=8, seed=0):
    rows = np.random.default_rng(seed).normal(size=(count, dimensions)).astype(np.float32)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def numbers(hits):
    return [hit.number for hit in hits]


# Construction


def test_a_hit_has_no_number_and_no_extract_unless_they_are_given():
    document = IndexedDocument("d", "u", "p", "t", FIRST, "en", "i")
    hit = Hit(2, 0.5, document)
    shown = {
        "rank": 2, "score": 0.5, "doc_id": "d", "url": "u", "publisher": "p", "title": "t",
        "byline_date": "2024-01-01", "language": "en", "image_url": "i",
    }  # fmt: skip
    assert (hit.number, hit.to_dict()) == (-1, shown)
    marked = dataclasses.replace(hit, extract=Extract(((0, 1),), "text", ((1, 2),)))
    assert marked.to_dict() == {**shown, "title_marks": [[0, 1]], "extract": "text", "extract_marks": [[1, 2]]}


def test_a_url_is_found_in_any_spelling_and_as_it_is_written_first():
    urls = ("http://a.example/1", "https://www.a.example/1", "not a url", "", "https://a.example/2?b=1&a=2")
    index = DocumentIndex(unit_rows(5), [IndexedDocument(f"d{n}", url, "p", "t", None) for n, url in enumerate(urls)])
    assert [index.number_of(url) for url in urls if url] == [0, 1, 2, 4]
    for spelling, place in (
        ("HTTPS://WWW.A.example:443/1/?utm_source=x#top", 0),  # the first of two
        ("http://a.example/2?a=2&b=1", 4),
    ):
        assert index.has(spelling)
        assert index.number_of(spelling) == place

    for missing in ("http://a.example/3", "not a url either", "", "ftp://a.example/1"):
        assert not index.has(missing)
        with pytest.raises(InputError, match="no document with the URL"):
            index.number_of(missing)


@pytest.mark.parametrize(("shape", "count"), [((2,), 2), ((2, 3), 3), ((2, 1, 3), 2)])
def test_embeddings_have_a_row_for_each_document(shape, count):
    with pytest.raises(InputError, match=rf"shape \({shape[0]}.* for {count} documents"):
        DocumentIndex(np.ones(shape, np.float32), documents(count))


def test_rows_of_any_length_are_scaled_and_rows_of_zeros_stay():
    index = DocumentIndex(np.array([[0.3, 0.4], [30, 40], [0, 0]], np.float32), documents(3))
    np.testing.assert_allclose(index.embeddings, [[0.6, 0.8], [0.6, 0.8], [0, 0]], rtol=1e-6)
    assert index.embeddings.dtype == np.float32


def test_search_is_exact_up_to_the_limit():
    assert EXACT_LIMIT == 50_000
    assert DocumentIndex(unit_rows(30), documents(30), exact_limit=30).is_exact
    assert not DocumentIndex(unit_rows(31), documents(31), exact_limit=30).is_exact
    given = object()
    assert DocumentIndex(unit_rows(31), documents(31), exact_limit=30, inverted_file=given)._faiss is given


@pytest.mark.parametrize(("count", "lists", "probed"), [(2, 1, 1), (9, 3, 1), (2_500, 50, 5)])
def test_the_lists_of_an_inverted_file(count, lists, probed):
    found = DocumentIndex(unit_rows(count), documents(count), exact_limit=1)._faiss
    assert (found.nlist, found.nprobe, found.ntotal) == (lists, probed, count)


@pytest.mark.parametrize(("count", "expected"), [(4_096, 4_096), (10_000, 6_400)])
def test_an_inverted_file_learns_its_lists_from_64_rows_for_each(monkeypatch, count, expected):
    import faiss

    seen, train = [], faiss.IndexIVFFlat.train
    monkeypatch.setattr(faiss.IndexIVFFlat, "train", lambda self, rows: seen.append(rows) or train(self, rows))
    rows = unit_rows(count, 2)
    module._build_faiss(rows)
    assert len(np.unique(seen[0], axis=0)) == len(seen[0]) == expected
    if expected == count:
        np.testing.assert_array_equal(seen[0], rows)


# Search


def test_the_length_of_a_query_does_not_count():
    rows, query = unit_rows(20), unit_rows(1, seed=3)[0]
    index = DocumentIndex(rows, documents(20))
    for factor in (0.01, 1, 70):
        np.testing.assert_allclose(
            sorted((score for _, score in index.nearest(factor * query, 20)), reverse=True),
            np.sort(rows @ query)[::-1],
            atol=1e-6,
        )


def test_equal_documents_come_in_their_order():
    rows = np.repeat(unit_rows(2), 100, axis=0)
    rows[:100], rows[100:] = rows[100:].copy(), rows[:100].copy()
    index = DocumentIndex(rows, documents(200))
    assert numbers(index.search(rows[150], 200)) == [*range(100, 200), *range(100)]


def inverted(count, limit):
    """An index whose inverted file looks into one list only, so that it misses most documents."""
    index = DocumentIndex(unit_rows(count), documents(count), exact_limit=limit)
    assert index._faiss.nlist > 2
    index._faiss.nprobe = 1
    return index


@pytest.mark.parametrize(("among", "is_whole"), [(19, True), (20, True), (21, False)])
def test_few_documents_are_compared_one_by_one(among, is_whole):
    until = FIRST + datetime.timedelta(among - 1)
    found = inverted(60, 20).search(unit_rows(1, seed=9)[0], 60, DateRange(until=until))
    assert (sorted(numbers(found)) == list(range(among))) == is_whole
    assert set(numbers(found)) <= set(range(among))


def test_an_inverted_file_finds_the_first_document_and_nothing_twice():
    index = inverted(60, 20)
    found = index.search(index.embeddings[0], 60)
    assert found[0].number == 0
    assert found[0].score == pytest.approx(1, abs=1e-6)
    assert len(set(numbers(found))) == len(found) < 60
    assert all(-1.001 < hit.score < 1.001 for hit in found)


def test_the_spread_of_a_query_is_over_at_most_4096_documents():
    rows, query = unit_rows(4_098, 2), np.array([0.3, 0.4], np.float32)
    for count, step in ((4_096, 1), (4_097, 2), (4_098, 2)):
        cosines = rows[:count:step].astype(float) @ (query / 0.5)
        found = DocumentIndex(rows[:count], documents(count)).spread(query)
        assert found == pytest.approx((cosines.mean(), cosines.std()), abs=1e-6)
    assert DocumentIndex(rows[:5], documents(5)).spread(np.zeros(2, np.float32)) == (0.0, 0.0)


# Filters and places

MIXED = [
    IndexedDocument("0", "https://a.example/x", "A.example", "t", FIRST, "en-GB"),
    IndexedDocument("1", "https://a.example/y", "B.example", "t", FIRST, "en"),
    IndexedDocument("2", "https://a.example/x", "A.example", "t", FIRST, "de"),
    IndexedDocument("3", "", "A.example", "t", FIRST + datetime.timedelta(9), "en"),
    IndexedDocument("4", "", "A.example", "t", None, "en"),
    IndexedDocument("5", "https://a.example/z", "A.example", "t", FIRST + datetime.timedelta(2), "EN-us"),
]


def test_documents_pass_all_filters_together():
    index = DocumentIndex(unit_rows(6), MIXED)
    dates = DateRange(until=FIRST + datetime.timedelta(3))
    filters = index.filters(dates, ["En-AU"], ["a.EXAMPLE"])
    assert filters == Filters(dates, ("en",), ("a.example",))
    assert index.passing(filters).tolist() == [True, False, False, False, False, True]
    assert index.count(filters) == 2
    assert index.passing(Filters()).tolist() == [True] * 6
    assert sorted(numbers(index.search(unit_rows(1)[0], 9, filters))) == [0, 5]
    with pytest.raises(InputError, match="has the language 'fr'"):
        index.filters(languages=["fr"])
    with pytest.raises(InputError, match=r"has the publisher 'c\.example'"):
        index.filters(publishers=["c.example"])


def test_the_error_without_a_document_names_what_is_in_the_way():
    index = DocumentIndex(unit_rows(6), MIXED)
    late = index.nothing_left(Filters(DateRange(since=datetime.date(2025, 1, 1)), ("en",)))
    assert late.problem == (
        "no article of the index has a byline date in this range; it has dates from 2024-01-01 to 2024-01-10"
    )
    assert (late.field, late.remedy) == ("--since, --until", "give days within the archive's")
    other = index.nothing_left(Filters(languages=("de",), publishers=("b.example",)))
    assert (other.problem, other.field) == ("no article of the index passes all filters", "filters")
    undated = DocumentIndex(unit_rows(2), [MIXED[4]] * 2)
    assert undated.span() == "articles without dates only"
    late = undated.nothing_left(Filters(DateRange(since=FIRST)))
    assert late.problem.endswith("; it has articles without dates only")
    assert late.remedy == "leave out --since and --until"


def test_places_of_addresses():
    index = DocumentIndex(unit_rows(6), MIXED)
    assert index.number_of("https://a.example/x") == 0  # the first of two
    assert index.number_of("https://a.example/z") == 5
    assert index.has("https://a.example/y")
    assert not index.has("")
    assert len(index) == 6
    assert index.dates_around("https://a.example/z", 2) == DateRange(FIRST, FIRST + datetime.timedelta(4))


def test_a_search_by_address_has_as_many_answers_as_asked_for():
    index = DocumentIndex(unit_rows(9), documents(9))
    cosines = index.embeddings @ index.embeddings[4]
    expected = [number for number in np.argsort(-cosines).tolist() if number != 4]
    for count in (1, 3, 8, 20):
        hits = index.search_url("https://a.example/4", count)
        assert numbers(hits) == expected[:count]
        assert [hit.rank for hit in hits] == list(range(1, min(count, 8) + 1))


# Folders


def test_a_folder_keeps_everything(tmp_path, monkeypatch):
    articles = [
        ArticleText(f"d{n}", f"https://a.example/{n}", "a.example", "t", text, language, FIRST)
        for n, (text, language) in enumerate([("storms at sea", "en"), ("Stürme am Meer", "de"), ("calm", "en")])
    ]
    index = DocumentIndex(
        unit_rows(3),
        list(map(indexed_document, articles)),
        encoder_digest="one",
        reading=Reading("passage: ", "mean:128", 64),
        exact_limit=2,
    )
    with WordsBuilder() as builder:
        builder.add(articles)
    index.words, index.ranking = builder.built(), {"weights": [1.0]}
    index.save(str(tmp_path / "i"))
    monkeypatch.setattr(module, "_build_faiss", lambda _: pytest.fail("the folder has it"))
    found = DocumentIndex.load(str(tmp_path / "i"))
    assert (found.reading, found.encoder_digest) == (Reading("passage: ", "mean:128", 64), "one")
    append(str(tmp_path / "i"), unit_rows(1, seed=1), [dataclasses.replace(articles[0], doc_id="d9")])
    assert DocumentIndex.load(str(tmp_path / "i")).reading == found.reading
    assert (found.is_exact, found._exact_limit, found.ranking) == (False, 2, {"weights": [1.0]})
    assert found.words.search(found.words.read("storm"), 3).numbers.tolist() == [0]
    plain = DocumentIndex(unit_rows(3), documents(3))
    plain.save(str(tmp_path / "plain"))
    again = DocumentIndex.load(str(tmp_path / "plain"))
    assert (again.words, again.ranking, again.reading) == (None, None, Reading())


def test_an_inverted_file_is_made_when_the_limit_is_passed():
    rows = unit_rows(12)
    index = DocumentIndex(rows[:8], documents(8), exact_limit=10)
    assert index.inverted_file_with(rows[8:10]) is None
    made = index.inverted_file_with(rows[8:11])
    assert (made.ntotal, index.is_exact) == (11, True)
    grown = DocumentIndex(rows[:11], documents(11), exact_limit=10)
    assert grown.inverted_file_with(rows[11:]).ntotal == 12


def test_a_caller_without_a_digest_is_trusted(tmp_path):
    folder, article = str(tmp_path), ArticleText("new", "", "", "t", "b")
    DocumentIndex(unit_rows(3), documents(3), encoder_digest="one").save(folder)
    with pytest.raises(InputError, match="with another encoder"):
        append(folder, unit_rows(1), [article], encoder_digest="two")
    with pytest.raises(InputError, match=r"shape \(1,\) for 1 article$"):
        append(folder, np.ones(1, np.float32), [article])
    assert append(folder, unit_rows(1), [article]).documents == 4
    assert (
        append(folder, unit_rows(1), [dataclasses.replace(article, doc_id="d9")], encoder_digest="one").documents == 5
    )

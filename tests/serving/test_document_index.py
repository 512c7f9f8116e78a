"""A document index by values worked by hand: what is searched exactly, filters, places, what a folder keeps."""

import dataclasses
import datetime

import numpy as np
import pytest
from newsembed.formats.archive import IndexedDocument
from newsembed.serving.extracts import Extract
from newsembed.serving.filters import DateRange, Filters
from newsembed.serving.index import Hit
from refusals import refuses
from tables import index_of, numbered
from vectors import unit

FIRST = datetime.date(2024, 1, 1)


def documents(count):
    """Documents a day apart."""
    numbers = range(count)
    return numbered([f"title {n}" for n in numbers], [FIRST + datetime.timedelta(n) for n in numbers])


def numbers(hits):
    return [hit.number for hit in hits]


# Construction


def test_a_hit_has_no_number_and_no_extract_unless_they_are_given():
    document = IndexedDocument("d", "u", "p", "t", FIRST, "en", "i")
    hit = Hit(2, 0.5, document)
    shown = {
        "rank": 2, "score": 0.5, "band": "", "doc_id": "d", "url": "u", "publisher": "p", "title": "t",
        "byline_date": "2024-01-01", "language": "en", "image_url": "i",
    }  # fmt: skip
    assert (hit.number, hit.to_dict()) == (-1, shown)
    marked = dataclasses.replace(hit, extract=Extract(((0, 1),), "text", ((1, 2),)))
    assert marked.to_dict() == {**shown, "title_marks": [[0, 1]], "extract": "text", "extract_marks": [[1, 2]]}


def test_a_url_is_found_in_any_spelling_and_as_it_is_written_first():
    urls = ("http://a.example/1", "https://www.a.example/1", "not a url", "", "https://a.example/2?b=1&a=2")
    index = index_of(unit(0, 5), [IndexedDocument(f"d{n}", url, "p", "t", None) for n, url in enumerate(urls)])
    assert [index.number_of(url) for url in urls if url] == [0, 1, 2, 4]
    for spelling, place in (
        ("HTTPS://WWW.A.example:443/1/?utm_source=x#top", 0),  # the first of two
        ("http://a.example/2?a=2&b=1", 4),
    ):
        assert index.has(spelling)
        assert index.number_of(spelling) == place

    for missing in ("http://a.example/3", "not a url either", "", "ftp://a.example/1"):
        assert not index.has(missing)
        refuses("no document with the URL", index.number_of, missing)


# Search


def test_the_spread_of_a_query_is_over_at_most_4096_documents():
    rows, query = unit(0, 4_098, 2), np.array([0.3, 0.4], np.float32)
    for count, step in ((4_096, 1), (4_097, 2), (4_098, 2)):
        cosines = rows[:count:step].astype(float) @ (query / 0.5)
        found = index_of(rows[:count], documents(count)).deviations(query, np.array([0.5, 0.1]), np.array([0, 1]))
        np.testing.assert_allclose(found, (np.array([0.5, 0.1]) - cosines.mean()) / cosines.std(), atol=1e-4)


def of_languages(counts):
    """Documents in languages, with the tags one after another."""
    tags = [tag for tag, count in counts.items() for _ in range(count)]
    every = documents(len(tags))
    return [dataclasses.replace(one, language=tag) for one, tag in zip(every, tags, strict=True)]


@pytest.mark.parametrize("exact_limit", [1_000, 1])
def test_articles_count_by_how_much_nearer_they_are_than_others_in_their_language(exact_limit):
    generator = np.random.default_rng(3)
    rows = generator.normal(size=(190, 12)).astype(np.float32) / 2
    rows[:120, 0] += 4  # the language of the query
    rows[0, :2] = 4, 3
    rows[120, :2] = 2, 4  # its translation
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    index = index_of(rows, of_languages({"en": 70, "en-GB": 50, "de": 60, "sw": 10}), exact_limit=exact_limit)
    cosines, groups = rows @ rows[0], [slice(0, 120)] * 120 + [slice(120, 180)] * 60 + [slice(0, 190)] * 10
    expected = np.array(
        [(cosines[n] - cosines[g].mean()) / max(cosines[g].std(), cosines.std()) for n, g in enumerate(groups)]
    )
    np.testing.assert_allclose(index.deviations(rows[0], cosines, np.arange(190)), expected, atol=1e-4)

    numbers, found = index.nearest(rows[0], 9)
    assert numbers.tolist() == np.argsort(-expected)[:9].tolist()
    np.testing.assert_allclose(found, cosines[numbers], atol=1e-5)
    assert 120 in numbers[:3].tolist()
    assert 120 not in np.argsort(-cosines)[:20].tolist()
    english = index.nearest(rows[0], 9, Filters(languages=("en",)))[0].tolist()
    assert english == np.argsort(-cosines[:70])[:9].tolist()


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
    index = index_of(unit(0, 6), MIXED)
    dates = DateRange(until=FIRST + datetime.timedelta(3))
    filters = index.filters(dates, ["En-AU"], ["a.EXAMPLE"])
    assert filters == Filters(dates, ("EN-us", "en", "en-GB"), ("A.example",))
    assert index.passing(filters).tolist() == [True, False, False, False, False, True]
    assert index.count(filters) == 2
    assert index.passing(Filters()).tolist() == [True] * 6
    assert sorted(numbers(index.search(unit(0, 1)[0], 9, filters))) == [0, 5]
    refuses("has the language 'fr'", index.filters, languages=["fr"])
    refuses(r"has the publisher 'c\.example'", index.filters, publishers=["c.example"])


def test_the_error_without_a_document_names_what_is_in_the_way():
    index = index_of(unit(0, 6), MIXED)
    late = index.nothing_left(Filters(DateRange(since=datetime.date(2025, 1, 1)), ("en",)))
    assert late.problem == (
        "no article of the index has a byline date in this range; it has dates from 2024-01-01 to 2024-01-10"
    )
    assert (late.field, late.remedy) == ("--since, --until", "give days within the archive's")
    other = index.nothing_left(Filters(languages=("de",), publishers=("B.example",)))
    assert (other.problem, other.field) == ("no article of the index passes all filters", "filters")
    undated = index_of(unit(0, 2), [MIXED[4]] * 2)
    late = undated.nothing_left(Filters(DateRange(since=FIRST)))
    assert late.problem.endswith("; it has articles without dates only")
    assert late.remedy == "leave out --since and --until"
    assert index_of(unit(0, 0), []).nothing_left(Filters()).problem == "the index has no articles"


def test_a_search_by_address_has_as_many_answers_as_asked_for():
    index = index_of(unit(0, 9), documents(9))
    cosines = index.embeddings @ index.embeddings[4]
    expected = [number for number in np.argsort(-cosines).tolist() if number != 4]
    for count in (1, 3, 8, 20):
        hits = index.search_url("https://a.example/4", count)
        assert numbers(hits) == expected[:count]
        assert [hit.rank for hit in hits] == list(range(1, min(count, 8) + 1))


@pytest.mark.parametrize(
    ("chance", "share", "band"),
    [
        (0.1, None, ""),
        (0.1, 0.95, "strong"),
        (0.6, 0.6, "strong"),
        (0.1, 0.6, "fair"),
        (0.6, 0.0, "fair"),
        (0.4, 0.3, "weak"),
    ],
)
def test_a_hit_is_strong_by_the_words_that_it_holds_and_fair_by_meaning(chance, share, band):
    assert Hit(1, 17.2, IndexedDocument("d", "u", "p", "t"), share=share, chance=chance).band == band

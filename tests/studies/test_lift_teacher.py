"""The teacher of a lift, against similarities of dense matrices."""

import dataclasses
import datetime

import numpy as np
import pytest
from manifests import doc
from newsembed.formats import parquet
from newsembed.formats.arrays import NO_DAY
from newsembed.formats.articles import ArticleText
from newsembed.formats.records import Article, Triplet, words_to_doc_id
from newsembed.studies.lift import teacher as module
from newsembed.studies.lift.teacher import chosen_articles, make_teacher
from refusals import refuses
from sklearn.feature_extraction.text import TfidfVectorizer
from vectors import unit


def some_articles(count, seed=0):
    rng = np.random.default_rng(seed)
    words = np.array(["flood", "river", "vote", "court", "strike", "rain", "judge", "mayor"])
    texts = [[" ".join(rng.choice(words, length)) for length in (3, 20)] for _ in range(count)]
    return [ArticleText(doc(number), f"http://p.example/{number}", "p", *two) for number, two in enumerate(texts)]


def some_keys(count):
    return unit(1, count, 5)


@pytest.mark.parametrize("share", [0.0, 0.7, 1.0])
def test_shares_are_those_of_the_nearest_in_a_softmax_over_all_by_words_and_keys(monkeypatch, share):
    monkeypatch.setattr(module, "_ROWS", 4)  # several blocks, the last one smaller
    articles, keys = some_articles(10), some_keys(10)
    found = make_teacher(articles, keys, share, neighbors=3, temperature=0.2)
    texts = [f"{article.title}\n{article.body}" for article in articles]
    exact = TfidfVectorizer(sublinear_tf=True).fit_transform(texts).toarray()
    similarities = share * exact @ exact.T + (1 - share) * np.float64(keys) @ np.float64(keys).T
    np.fill_diagonal(similarities, -np.inf)
    for row, scores in enumerate(similarities):
        nearest = sorted(range(10), key=lambda other: -scores[other])[:3]
        assert sorted(found.neighbors[row]) == sorted(nearest)
        expected = np.exp(scores[found.neighbors[row]] / 0.2) / np.exp(scores / 0.2).sum()
        np.testing.assert_allclose(found.probabilities[row], expected, rtol=1e-4)
        assert (np.diff(found.probabilities[row]) <= 1e-7).all()  # nearest first
    assert [words_to_doc_id(tuple(words)) for words in found.doc_ids.tolist()] == [doc(n) for n in range(10)]
    np.testing.assert_array_equal(found.keys, keys)


def test_words_between_languages_are_what_the_cosine_lets_expect():
    articles, keys = some_articles(12), some_keys(12)
    languages = np.array(["en", "en-GB", "de"] * 4)
    articles = [
        dataclasses.replace(article, language=str(name)) for article, name in zip(articles, languages, strict=True)
    ]
    found = make_teacher(articles, keys, 0.7, neighbors=11, temperature=0.2)
    texts = [f"{article.title}\n{article.body}" for article in articles]
    table = TfidfVectorizer(sublinear_tf=True).fit_transform(texts).toarray()
    exact, cosines = table @ table.T, np.float64(keys) @ np.float64(keys).T
    same = (languages[:, None] == "de") == (languages == "de")
    pairs = same & ~np.eye(12, dtype=bool)
    slope = (exact * cosines)[pairs].sum() / (cosines[pairs] ** 2).sum()
    scores = 0.7 * np.where(same, exact, slope * cosines) + 0.3 * cosines
    np.fill_diagonal(scores, -np.inf)
    expected = np.exp(scores / 0.2) / np.exp(scores / 0.2).sum(axis=1, keepdims=True)
    found_shares = np.zeros_like(expected)
    np.put_along_axis(found_shares, found.neighbors, found.probabilities, axis=1)
    np.testing.assert_allclose(found_shares, expected, rtol=1e-3, atol=1e-6)


def test_a_small_archive_has_as_many_neighbors_as_there_are():
    found = make_teacher(some_articles(3), some_keys(3))
    assert found.neighbors.shape == (3, 2)
    assert [sorted(row) for row in found.neighbors.tolist()] == [[1, 2], [0, 2], [0, 1]]
    np.testing.assert_allclose(found.probabilities.sum(axis=1), 1, rtol=1e-6)


def test_days_are_ordinals_and_an_unknown_one_is_no_day_and_lengths_are_in_characters():
    dates = (datetime.date(1, 1, 1), None, datetime.date(2020, 3, 1))
    articles = [
        dataclasses.replace(article, byline_date=date) for article, date in zip(some_articles(3), dates, strict=True)
    ]
    teacher = make_teacher(articles, some_keys(3))
    assert teacher.days.dtype == teacher.lengths.dtype == np.int32
    assert teacher.days.tolist() == [1, NO_DAY, 737485]
    assert teacher.lengths.tolist() == [len(article.title) + len(article.body) for article in articles]


@pytest.fixture
def work(tmp_path):
    day = datetime.date(2020, 1, 1)
    rows = [
        Article(doc(n), f"http://p.example/{n}", "p", "" if n == 3 else f"t {n}", "" if n == 3 else "b", ("A",), day)
        for n in range(8)
    ]
    near = (1.0, 1.0, 1.0)
    triplets = [Triplet(doc(6), doc(2), doc(4), "en", near, near, 0, 400, 0.1)]
    parquet.write_shard(f"{tmp_path}/clean/articles/part-00000-of-00001.parquet", rows, Article)
    parquet.write_shard(f"{tmp_path}/triplets/triplets/part-00000-of-00001.parquet", triplets, Triplet)
    return str(tmp_path)


def test_articles_of_triplets_come_first_and_those_without_text_never(work):
    lowest = min(doc(n) for n in (0, 1, 4, 5, 7))  # neither named as anchor or positive, nor empty
    assert [article.doc_id for article in chosen_articles(work, 3)] == sorted([doc(6), doc(2), lowest])
    assert [article.doc_id for article in chosen_articles(work, 2)] == sorted([doc(6), doc(2)])
    assert len(chosen_articles(work, 100)) == 7


def test_one_article_is_too_few(work):
    refuses(r"clean/articles: got 1 article with text, expected at least 2", chosen_articles, work, 1)


def test_a_log_says_how_many_articles_of_all_chunks_are_embedded(monkeypatch, capsys):
    class Encoder:
        def encode(self, titles, _bodies):
            return some_keys(1000)[[int(title) for title in titles]]

    monkeypatch.setattr("newsembed.serving.specs.make_encoder", lambda *_, **__: Encoder())
    monkeypatch.setattr("newsembed.beam_pipelines.progress.SECONDS_BETWEEN_LINES", -1.0)
    articles = [dataclasses.replace(article, title=f"{n}") for n, article in enumerate(some_articles(1000))]
    np.testing.assert_array_equal(module.embedded("model", articles, 16), some_keys(1000))
    lines = capsys.readouterr().err.splitlines()
    said = [line.partition(" articles")[0] for line in lines if "━" not in line]
    assert said == ["lift: teacher …", *(f"lift: teacher {done} of 1,000" for done in ("0", "512"))]

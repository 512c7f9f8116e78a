"""The learned space: vectors of an encoder, its bars by dates, and what it proves or refuses."""

import datetime
import json
import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from newsembed.beam_pipelines import encoders, jobs
from newsembed.beam_pipelines import neighbors as neighbors_job
from newsembed.beam_pipelines import triplets as triplets_job
from newsembed.beam_pipelines import vectors as vectors_job
from newsembed.beam_pipelines.arrays import COSINE_BINS
from newsembed.beam_pipelines.arrays import cosine_histogram as histogram
from newsembed.beam_pipelines.entities import tables
from newsembed.beam_pipelines.neighbors import NeighborsOptions
from newsembed.beam_pipelines.neighbors.rows import far_pairs
from newsembed.beam_pipelines.triplets.learned import calibrate, near_pairs, precision_curve
from newsembed.beam_pipelines.triplets.rules import TripletsOptions
from newsembed.errors import InputError
from newsembed.formats import parquet
from newsembed.formats.records import Article, Triplet, Vector, make_doc_id

ONE = ["--direct_num_workers=1"]
DAY = datetime.date(2020, 1, 1)
NAN = math.nan


class Letters:
    """Counts letters; an article's title counts twice."""

    digest = "letters"

    def embed(self, texts, titles=None):
        rows = zip(texts, titles or [""] * len(texts), strict=True)
        return np.array([[(text + 2 * title).count(letter) for letter in "abcdz"] for text, title in rows], np.float32)


def open_letters(name):
    if name != "letters":
        raise InputError(f"no encoder {name}")
    return Letters()


@pytest.fixture(autouse=True)
def _letters(monkeypatch):
    monkeypatch.setattr(encoders, "_OPENER", (__name__, "open_letters"))
    encoders.opened.cache_clear()


def article(name, publisher, body, days=0):
    date = None if days is None else DAY + datetime.timedelta(days=days)
    return Article(make_doc_id(name), name, publisher, name, body, ("A B",), date, language="en")


def published(folder, stream, records, kind, shards=2):
    for index in range(shards):
        path = f"{folder}/{stream}/part-{index:05d}-of-{shards:05d}.parquet"
        parquet.write_shard(path, records[index::shards], kind)
    (folder / "manifest.json").write_text('{"digest": "x"}')
    return [str(folder)]


@pytest.fixture
def corpus(tmp_path):
    """Reports of events a and b by two publishers, one without a date, and old articles of the same subjects."""
    clean, entities = tmp_path / "clean", tmp_path / "entities"
    articles = [
        article("a1", "p", "aaaa"),
        article("a2", "q", "aaab", 1),
        article("b1", "p", "bbbb", 1),
        article("b2", "q", "bbbc", 1),
        article("old a", "q", "aadd", -400),
        article("old b", "p", "bbdd", -401),
        article("undated", "p", "aaaa", None),
        article("nothing", "p", "xyx", 1),
    ]
    clean.mkdir()
    entities.mkdir()
    (entities / "manifest.json").write_text('{"digest": "e"}')
    tables.write_aliases(str(entities / "aliases.tsv"), [])
    tables.write_embeddings(str(entities / "entities"), tables.EmbeddingTable((), np.ones((0, 4), np.float32), ()))
    tables.write_embeddings(
        str(entities / "words"), tables.EmbeddingTable(("xyx",), np.ones((1, 3), np.float32), (0.5,))
    )
    return {"articles": published(clean, "articles", articles, Article), "entities": [str(entities)]}


def run_vectors(corpus, output, space=("learned=letters",)):
    return jobs.execute(vectors_job.JOB, corpus | {"space": list(space)}, str(output), None, ONE)


def run_triplets(corpus, tmp_path, **options):
    run_vectors(corpus, tmp_path / "vectors")
    near = str(tmp_path / "near")
    jobs.execute(neighbors_job.JOB, {"vectors": [str(tmp_path / "vectors")]}, near, NeighborsOptions(), ONE)
    inputs = {"articles": corpus["articles"], "neighbors": [near]}
    options = TripletsOptions(max_evergreen_score=1.0, **options)
    outcome = jobs.execute(triplets_job.JOB, inputs, str(tmp_path / "out"), options, ONE)
    return outcome.manifest["counts"], list(parquet.read_stream(f"{tmp_path}/out/triplets", Triplet))


def test_title_and_body_are_embedded_for_every_article_with_a_date(corpus, tmp_path):
    counts = run_vectors(corpus, tmp_path / "out").manifest["counts"]
    found = {row.doc_id: row for row in parquet.read_stream(f"{tmp_path}/out/learned", Vector)}
    names = ("a1", "a2", "b1", "b2", "old a", "old b")
    assert set(found) == {make_doc_id(name) for name in names}  # "nothing" has only a vector of zeros there
    expected = np.array([6, 0, 0, 0, 0]) / 6
    np.testing.assert_allclose(found[make_doc_id("a1")].values, expected, atol=1e-6)
    old = np.array([4, 0, 0, 4, 0]) / math.sqrt(32)  # "aadd", and twice "old a"
    np.testing.assert_allclose(found[make_doc_id("old a")].values, old, atol=1e-6)
    assert counts["rejected"] == {"no_byline_date": 1, "no_vector": 1}
    assert (counts["tallies"]["learned_vectors"], counts["tallies"]["no_learned_vector"]) == (6, 1)


def test_pairs_of_the_learned_space_become_triplets(corpus, tmp_path):
    counts, triplets = run_triplets(corpus, tmp_path, min_learned=0.8)
    assert {(one.anchor, one.positive) for one in triplets} == {
        (make_doc_id(left), make_doc_id(right))
        for left, right in (("a1", "a2"), ("a2", "a1"), ("b1", "b2"), ("b2", "b1"))
    }
    a1 = next(one for one in triplets if one.anchor == make_doc_id("a1"))
    assert a1.negative == make_doc_id("old a")
    assert len(a1.positive_similarity) == len(a1.negative_similarity) == 4
    assert a1.positive_similarity[3] == pytest.approx(5 / math.sqrt(26), abs=1e-6)
    assert json.loads((tmp_path / "out/learned.json").read_text()) == {
        "bar": 0.8,
        "support": 0.55,
        "floor": 0.55,
    }
    assert counts["out"] == 4


def test_the_bar_is_calibrated_by_articles_some_weeks_apart(corpus, tmp_path):
    path = next((tmp_path / "clean/articles").glob("part-00000-*"))
    # Of the first shard, with the articles "a1" and "b1": the same subject two weeks later.
    more = [article("later", "q", "aazz", 14)]
    parquet.write_shard(str(path), [*parquet.read_records(str(path), Article), *more], Article)
    run_triplets(corpus, tmp_path, learned_precision=0.9)
    written = json.loads((tmp_path / "out/learned.json").read_text())
    # The cosine of "a1" (6 a) and "later" (4 a, 2 z) is 4 / sqrt(20) = 0.8944; reports of one event have 0.98.
    assert written["bar"] == pytest.approx(0.895)
    assert written["floor"] <= written["support"] < written["bar"]


@given(st.lists(st.integers(0, 30), min_size=1, max_size=25), st.integers(0, 3))
def test_near_pairs_equal_a_double_loop(days, most):
    gaps = [abs(a - b) for i, a in enumerate(days) for j, b in enumerate(days) if i != j]
    assert near_pairs(Counter(days), most) == sum(gap <= most for gap in gaps)


@given(st.lists(st.integers(0, 60), max_size=40), st.integers(1, 100))
def test_the_background_has_the_pairs_of_8_to_28_days(days, most):
    draw = np.random.default_rng(len(days))
    vectors = draw.normal(size=(len(days), 3)).astype(np.float32)
    vectors[::5] = 0  # documents without a vector
    publishers = draw.integers(0, 3, len(days)).astype(np.uint64)
    pairs = [(i, j) for i in range(len(days)) for j in range(len(days)) if 8 <= days[j] - days[i] <= 28]
    expected = [
        float(vectors[i] @ vectors[j])
        if vectors[i].any() and vectors[j].any() and publishers[i] != publishers[j]
        else NAN
        for i, j in pairs
    ]

    def cosines(most):
        ids = np.arange(len(days), dtype=np.uint64)
        count, parts = far_pairs(ids, np.array(days, np.int32), publishers, vectors, most)
        found = np.concatenate([np.zeros(0, np.float32), *parts])
        assert len(found) == count
        return found

    np.testing.assert_allclose(np.sort(cosines(10**6)), np.sort(np.array(expected)), atol=1e-5)
    np.testing.assert_array_equal(cosines(most), cosines(10**6)[:: max(1, -(-len(pairs) // most))])


cosines = st.lists(st.floats(-1, 1, width=32), max_size=30)


@given(cosines, cosines.filter(len), st.integers(1, 50))
def test_the_precision_is_that_of_the_formula_and_never_falls(near, apart, possible):
    near, apart = histogram(np.array(near, np.float32)), histogram(np.array(apart, np.float32))
    curve = precision_curve(near, apart, int(apart.sum()), possible)
    assert len(curve) == COSINE_BINS
    assert np.all(np.diff(curve) >= 0)
    least, reached, by_subject = 1.0, 0, 0
    pairs = zip(near.tolist()[::-1], apart.tolist()[::-1], curve.tolist()[::-1], strict=True)
    for count, background_count, estimate in pairs:
        reached, by_subject = reached + count, by_subject + background_count
        if reached:
            least = min(least, 1 - possible * by_subject / int(apart.sum()) / reached)
        assert math.isclose(estimate, least, abs_tol=1e-9)


def test_the_bar_is_the_least_similarity_with_the_precision():
    near, apart = (
        histogram(np.array([0.9] * 90 + [0.5] * 10 + [0.2] * 100)),
        histogram(np.array([0.5] * 40 + [0.2] * 400 + [0.0] * 3_560)),
    )
    # From 0.5 on: 1 - 40 (1000 / 4000) / 100 = 0.9; from 0.2 on: 1 - 440 / 4 / 200 = 0.45.
    space, curve = calibrate(near, apart, 4_000, 1_000, 0.9, "x")
    assert curve[round((0.5 + 1) * 1_000)] == pytest.approx(0.9)
    assert space.bar == pytest.approx(0.201, abs=2e-3)
    assert space.support == pytest.approx(0.2, abs=2e-3)  # at most just below the bar
    strict, _ = calibrate(near, apart, 4_000, 1_000, 0.95, "x")
    assert (strict.bar, strict.support) == (pytest.approx(0.501, abs=2e-3), pytest.approx(0.201, abs=2e-3))
    near[1_100] = 1_000  # at 0.1: 1 - 110 / 1200 = 0.908 above it, and 0.45 at 0.2 keeps the curve low
    assert calibrate(near, apart, 4_000, 1_000, 0.95, "x")[0].floor == pytest.approx(0.201, abs=2e-3)


def test_what_cannot_be_calibrated_is_said():
    one = histogram(np.array([0.5]))
    with pytest.raises(InputError, match="8 to 28 days apart, so the learned space cannot be calibrated"):
        calibrate(one, 0 * one, 0, 2, 0.9, "near")
    with pytest.raises(InputError, match=r"no similarity .* precision of 0\.9"):
        calibrate(one, one * 50, 50, 2, 0.9, "near")

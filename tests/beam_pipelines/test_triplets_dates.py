"""triplets: the byline-date model, by plain references."""

import dataclasses
import hashlib
import math

import numpy as np
import pytest
from newsembed.beam_pipelines.triplets import table
from newsembed.beam_pipelines.triplets.table import FEATURES as NGRAMS
from newsembed.beam_pipelines.triplets.table import count_by_month, date_stats, fit, ngram_counts
from newsembed.tests.document_table import article
from sklearn.utils import murmurhash3_32


def fold_by_hand(one):
    return hashlib.blake2b(one.doc_id.encode(), digest_size=1).digest()[0] % 2


def month_by_hand(one):
    return one.byline_date.year * 12 + one.byline_date.month - 1


def fit_by_hand(counts, prior_months):
    """log p(n-gram | month) / p(n-gram) of each fold from the counts of the other fold, in float64."""
    models = np.zeros(counts.shape)
    for fold in range(2):
        seen = counts[1 - fold].astype(float)
        overall = (seen.sum(0) + 0.5) / (seen.sum() + 0.5 * seen.shape[1])
        by_month = seen.sum(1)
        weight = prior_months * max(1.0, by_month.sum() / max(1, (by_month > 0).sum()))
        for month in range(len(seen)):
            models[fold, month] = np.log((seen[month] + weight * overall) / (by_month[month] + weight) / overall)
            if not by_month[month]:
                models[fold, month] = -1e3
    return models


def test_ngrams_are_counted_by_fold_and_month():
    articles = [article(f"x{number}", "p", 31 * (number % 3)) for number in range(8)]
    first = min(map(month_by_hand, articles))
    counts = count_by_month(articles, first, 4)
    assert counts.shape == (2, 4, NGRAMS)
    grams = ngram_counts(articles).toarray()
    for fold in range(2):
        for month in range(4):
            places = [(fold_by_hand(one), month_by_hand(one) - first) for one in articles]
            rows = [n for n, place in enumerate(places) if place == (fold, month)]
            np.testing.assert_array_equal(counts[fold, month], grams[rows].sum(0))


def test_ngrams_are_single_words_and_pairs_of_the_first_three_hundred():
    def places(*grams):
        return sorted(abs(murmurhash3_32(gram, 0)) % NGRAMS for gram in grams)

    one = dataclasses.replace(article("x", "p", 0), title="Storm hits", body="the Coast")
    grams = ("storm", "hits", "the", "coast", "storm hits", "hits the", "the coast")
    counts = ngram_counts([one]).toarray()[0]
    assert np.repeat(np.arange(NGRAMS), counts.astype(int)).tolist() == places(*grams)
    long = dataclasses.replace(one, title="aa", body=" ".join(["bb"] * 299 + ["cc"]))
    counts = ngram_counts([long]).toarray()[0]
    assert np.repeat(np.arange(NGRAMS), counts.astype(int)).tolist() == places(
        "aa", "aa bb", *["bb"] * 299, *["bb bb"] * 298
    )
    cut = table.with_read_words(long)
    assert len(cut.body.split()) == 300
    assert (ngram_counts([cut]) != ngram_counts([long])).nnz == 0


def test_the_byline_model_is_fitted_out_of_fold():
    draw = np.random.default_rng(0)
    counts = np.zeros((2, 5, NGRAMS), np.float32)
    counts[:, :4, :50] = draw.poisson(1.5, (2, 4, 50))  # the last month has no articles
    np.testing.assert_allclose(fit(counts, 4.0), fit_by_hand(counts, 4.0), rtol=1e-4, atol=1e-4)
    changed = counts.copy()
    changed[0] *= 7
    np.testing.assert_array_equal(fit(changed, 4.0)[0], fit(counts, 4.0)[0])  # fold 0 is scored by fold 1 alone
    assert not np.array_equal(fit(changed, 4.0)[1], fit(counts, 4.0)[1])
    counts[1] = 0  # where the other fold has no articles, every month is impossible
    np.testing.assert_array_equal(fit(counts, 4.0)[0], np.full((5, NGRAMS), -1e3))


def test_date_statistics_by_hand():
    one = article("x", "p", 62)
    models = np.zeros((2, 4, NGRAMS), np.float32)
    models[:] = np.log([1.0, 2.0, 4.0, 1.0])[None, :, None]  # p = 1/8, 2/8, 4/8, 1/8 with sharpness 1
    (stats,) = date_stats([one], models, 1.0, month_by_hand(one) - 3)  # the article's month is the last one
    probabilities = np.array([0.125, 0.25, 0.5, 0.125])
    assert stats.entropy == pytest.approx(-(probabilities * np.log(probabilities)).sum() / np.log(4), rel=1e-5)
    assert stats.own_mass == pytest.approx(0.5 + 0.125, rel=1e-5)
    assert stats.expected_gap == pytest.approx((3 - (0.25 + 2 * 0.5 + 3 * 0.125)) / 4, rel=1e-5)
    (earlier,) = date_stats([one], models, 1.0, month_by_hand(one) - 1)  # its month is the second one
    assert earlier.own_mass == pytest.approx(0.125 + 0.25 + 0.5, rel=1e-5)
    (only,) = date_stats([one], models[:, :1], 8.0, month_by_hand(one))  # a corpus of one month
    assert (only.entropy, only.own_mass, only.expected_gap) == pytest.approx((0.0, 1.0, 0.0), abs=1e-9)


def noisy_articles(count):
    """Articles in which few words depend on the month, so that no setting tells the months perfectly apart."""
    draw = np.random.default_rng(3)
    for number in range(count):
        one = article(f"x{number}", "p", 31 * (number % 6))
        words = [f"m{number % 6}" if draw.random() < 0.1 else f"w{draw.integers(20)}" for _ in range(40)]
        yield dataclasses.replace(one, title="title", body=" ".join(words))


def test_smoothing_and_sharpness_make_the_own_months_most_likely():
    articles = list(noisy_articles(90))
    first = min(map(month_by_hand, articles))
    counts = count_by_month(articles, first, 7)
    grams = ngram_counts(articles).toarray().astype(float)
    best = (-math.inf, 0.0, 0.0)
    for prior in (0.1, 1.0, 4.0, 16.0, 64.0):
        models = fit_by_hand(counts, prior)
        ratios = np.stack(
            [row @ models[fold_by_hand(one)].T / row.sum() for one, row in zip(articles, grams, strict=True)]
        )
        for sharpness in 2.0 ** np.arange(12):
            weights = np.exp(sharpness * (ratios - ratios.max(1, keepdims=True)))
            own = weights[np.arange(len(articles)), [month_by_hand(one) - first for one in articles]] / weights.sum(1)
            best = max(best, (float(np.log(own + 1e-9).mean()), prior, sharpness))
    found, sharpness = table.fit_model(articles, counts, first)
    assert sharpness == best[2]
    np.testing.assert_allclose(found, fit_by_hand(counts, best[1]), rtol=1e-3, atol=1e-3)

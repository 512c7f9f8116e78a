"""Paired tests over folds and resamples: by hand, against SciPy, and where there is nothing to pair."""

import numpy as np
import pytest
from newsembed.evaluation.benchmark import Score
from newsembed.evaluation.statistics import paired_test
from scipy.stats import t, ttest_rel


def of_folds(*values):
    return Score("accuracy", float(np.mean(values)), "Cross", folds=values)


def of_draws(value, *values):
    return Score("AUC", value, draws=values)


def test_folds_are_tested_with_the_mean_over_seeds_and_the_larger_variance():
    first = [of_folds(0.5, 0.7, 0.6, 0.8), of_folds(0.7, 0.7, 0.8, 0.6)]
    second = [of_folds(0.4, 0.5, 0.6, 0.5), of_folds(0.4, 0.7, 0.4, 0.5)]
    one, two = (np.mean([score.folds for score in side], axis=0) for side in (first, second))
    found = paired_test(first, second)
    plain = ttest_rel(one, two)
    corrected = plain.statistic / np.sqrt(1 + 4)  # 1/k + n_test/n_train in place of 1/k
    assert (found.method, found.count) == ("folds", 4)
    assert found.value == pytest.approx(np.mean(one - two))
    assert found.p == pytest.approx(2 * t.sf(abs(corrected), 3))
    reach = t.ppf(0.975, 3) * found.value / corrected
    assert (found.low, found.high) == pytest.approx((found.value - reach, found.value + reach))


def test_resamples_are_paired_within_a_draw_and_averaged_over_seeds():
    gaps = np.linspace(-0.1, 0.3, 41)
    base = np.random.default_rng(0).random(41)
    first = [of_draws(0.8, *(base + gaps + 0.2)), of_draws(0.7, *(base + gaps - 0.2))]
    second = [of_draws(0.6, *base), of_draws(0.7, *base)]
    found = paired_test(first, second)
    assert (found.method, found.count) == ("resamples", 41)
    assert found.value == pytest.approx(0.1)
    assert (found.low, found.high) == pytest.approx(tuple(np.percentile(gaps, [2.5, 97.5])))
    assert found.p == pytest.approx(2 * np.mean(gaps <= 1e-9), abs=2 / 41)


@pytest.mark.parametrize(
    ("draws", "p"), [([0.1] * 20, 1 / 20), ([-0.1] * 20, 1 / 20), ([0.0] * 20, 1.0), ([-1.0] + [1.0] * 9, 0.2)]
)
def test_p_is_twice_the_rarer_side(draws, p):
    found = paired_test([of_draws(0.5, *draws)], [of_draws(0.5, *[0.0] * len(draws))])
    assert found.p == pytest.approx(p)


def test_equal_folds_and_constant_gaps_have_a_p():
    same = [of_folds(0.5, 0.7)]
    assert paired_test(same, same).p == 1
    above = paired_test([of_folds(0.75, 0.75)], [of_folds(0.25, 0.25)])
    assert (above.p, above.low, above.high) == (0, 0.5, 0.5)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ([Score("AUC", 0.5)], [Score("AUC", 0.4)]),
        ([of_draws(0.5, 0.1, 0.2)], [of_draws(0.5, 0.1, 0.2, 0.3)]),
        ([of_folds(0.1, 0.2)], [of_draws(0.1, 0.1, 0.2)]),
        ([of_folds(0.1, 0.2)] * 2, [of_folds(0.1, 0.2)]),
        ([], []),
    ],
)
def test_nothing_is_tested_without_common_folds_or_resamples(first, second):
    assert paired_test(first, second) is None

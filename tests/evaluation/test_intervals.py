"""Bootstrap intervals: against the plain loop, and what they must do where the answer is known."""

import numpy as np
import pytest
from newsembed.evaluation.statistics import mean_interval, resampled_means, spearman_interval


def test_events_are_resampled_with_all_their_queries():
    rng = np.random.default_rng(1)
    events = np.repeat(np.arange(40), rng.integers(1, 9, 40))
    values = rng.normal(size=40)[events] + 0.1 * rng.normal(size=len(events))
    drawn = []
    for _ in range(3000):
        chosen = rng.integers(0, 40, 40)
        drawn.append(np.concatenate([values[events == event] for event in chosen]).mean())
    found = mean_interval(values, events)
    assert found.value == pytest.approx(values.mean())
    assert (found.low, found.high) == pytest.approx(tuple(np.percentile(drawn, [2.5, 97.5])), abs=0.03)
    # Queries by themselves would have an interval of less than two thirds of that.
    alone = mean_interval(values, np.arange(len(values)))
    assert alone.high - alone.low < (found.high - found.low) * 2 / 3


def test_resampled_means_are_those_of_the_interval_and_the_same_for_all_encoders():
    rng = np.random.default_rng(2)
    events = np.array(["b", "a", "b", "c", "a", "d", "d", "d"])
    one, two = rng.normal(size=(2, 8))
    drawn = resampled_means(one, events)
    found = mean_interval(one, events)
    assert (found.low, found.high) == pytest.approx(tuple(np.percentile(drawn, [2.5, 97.5])))
    # The plain way: every drawn event with all of its queries.
    times = np.random.default_rng(0).multinomial(4, np.full(4, 0.25), 2000)
    weights = times[:, [("a", "b", "c", "d").index(event) for event in events]]
    assert drawn == pytest.approx((weights @ one) / weights.sum(axis=1))
    # The same events are drawn for the other encoder, so that the differences are paired.
    assert resampled_means(two, events) - drawn == pytest.approx(resampled_means(two - one, events))


def test_one_event_has_no_interval():
    found = mean_interval(np.array([0.2, 0.4]), np.array(["a", "a"]))
    assert (found.value, found.low, found.high) == (pytest.approx(0.3), None, None)


def test_the_interval_of_a_correlation_is_that_of_its_theory():
    rng = np.random.default_rng(0)
    gold = rng.normal(size=800)
    predicted = gold + rng.normal(size=800)
    found = spearman_interval(gold, predicted)
    # Fisher's transform, with the variance of Bonett and Wright (2000) for ranks.
    half = 1.96 * np.sqrt((1 + found.value**2 / 2) / (800 - 3))
    expected = np.tanh([np.arctanh(found.value) - half, np.arctanh(found.value) + half])
    assert (found.low, found.high) == pytest.approx(tuple(expected), abs=0.012)
    assert found == spearman_interval(gold, predicted)

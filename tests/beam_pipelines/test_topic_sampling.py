"""topics: positives and negatives are brought to a ratio by dropping the side in excess, exactly where they are few."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from newsembed.beam_pipelines.topics.sampling import (
    DRAWS,
    LEAST,
    DrawCollector,
    LeastDraws,
    bound_of,
    draw,
    keep_bounds,
    merge_draws,
    wanted_labels,
)


@pytest.mark.parametrize(
    ("positives", "negatives", "kept"),
    [
        (100, 40, (10, 40)),  # too many positives
        (10, 400, (10, 40)),  # too many negatives
        (10, 40, (10, 40)),
        (9, 2, (1, 2)),  # half a positive is rounded to one
        (9, 1, (1, 1)),  # one stays, although a quarter is rounded to none
        (0, 5, (0, 0)),
        (5, 0, (0, 0)),
    ],
)
def test_the_side_in_excess_is_down_sampled(positives, negatives, kept):
    assert wanted_labels(positives, negatives, 0.25) == kept
    assert wanted_labels(positives, negatives, 0) == (positives, negatives)


@given(st.lists(st.integers(0, DRAWS - 1), min_size=1, max_size=60, unique=True), st.data())
def test_so_many_labels_as_wanted_are_below_the_bound(draws, data):
    wanted = data.draw(st.integers(0, len(draws)))
    collectors = [DrawCollector(), DrawCollector()]
    for place, number in enumerate(draws):
        collectors[place % 2].add(7, 1, number)
    least = merge_draws(part for one in collectors for part in one.least())
    assert least == {(7, 1): tuple(sorted(draws))}
    assert sum(number < bound_of(wanted, len(draws), least[7, 1]) for number in draws) == wanted


def test_large_samples_are_within_a_few_percent():
    draws = [draw(f"{number:016x}", "sports") for number in range(5 * LEAST)]
    collector = DrawCollector()
    for number in draws:
        collector.add(0, 1, number)
    (least,) = collector.least()
    assert least == LeastDraws(0, 1, tuple(sorted(draws)[:LEAST]))
    wanted = 2 * LEAST
    assert sum(number < bound_of(wanted, len(draws), least.draws) for number in draws) == pytest.approx(
        wanted, rel=0.04
    )


def test_only_one_side_of_a_topic_is_bounded():
    draws = {(0, 1): [3, 8, 20], (0, 0): [1, 2, 9], (1, 0): [5]}
    bounds = keep_bounds({0: (3, 4), 1: (1, 8), 2: (0, 3)}, draws, 0.25)
    assert bounds == {0: (8, DRAWS), 1: (DRAWS, DRAWS // 2), 2: (DRAWS, 0)}

"""Batches of one period: whole, of distinct records, in another order and from other days in each epoch."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from newsembed.learning.batches import DayOrder


def plain_epoch(days, batch_days, size, seed, number):
    """An epoch by loops over lists, from the same random numbers."""
    rng = np.random.default_rng([seed, number])
    drawn = rng.permutation(len(days)).tolist()[: len(days) // size * size]
    shift = int(rng.integers(batch_days))
    periods = {}
    for record in drawn:
        periods.setdefault((days[record] + shift) // batch_days, []).append(record)
    whole, left = [], []
    for period in sorted(periods):
        records = periods[period]
        end = len(records) // size * size
        whole += records[:end]
        left += records[end:]
    batches = [(whole + left)[start : start + size] for start in range(0, len(drawn), size)]
    return [record for place in rng.permutation(len(batches)) for record in batches[place]]


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(-9, 30), min_size=6, max_size=60), st.integers(1, 9), st.integers(1, 6), st.integers(0, 3))
def test_an_epoch_is_what_plain_loops_make_of_the_same_random_numbers(days, batch_days, size, seed):
    order = DayOrder(np.array(days, np.int32), batch_days, size, seed)
    for number in (0, 3):
        assert order.epoch(number).tolist() == plain_epoch(days, batch_days, size, seed, number)


def orders(days, batch_days, size, epochs, seed=0):
    order = DayOrder(np.array(days, np.int32), batch_days, size, seed)
    return [order.epoch(number).tolist() for number in range(epochs)]


def test_the_calendar_is_cut_at_another_place_in_each_epoch():
    def mixed(days, size):
        """Whether a batch has several days, by epoch."""
        batches = [np.array(days)[order].reshape(-1, size) for order in orders(days, 2, size, 40)]
        return [bool(np.any(found.min(axis=1) < found.max(axis=1))) for found in batches]

    # Days 4 and 5 are in one period of two days in about half of the epochs, days 4 and 6 in none.
    assert 8 < sum(mixed([4, 4, 4, 5, 5, 5], 3)) < 32
    assert not any(mixed([4, 4, 4, 6, 6, 6], 3))

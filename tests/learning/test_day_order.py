"""Batches of one period: whole, of distinct records, in another order and from other days in each epoch."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from newsembed.learning.day_order import DayOrder


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


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(0, 30), min_size=6, max_size=60), st.integers(1, 9), st.integers(1, 6), st.integers(0, 3))
def test_an_epoch_in_the_order_of_days_has_whole_batches_of_distinct_records(days, batch_days, size, seed):
    order = DayOrder(np.array(days, np.int32), batch_days, size, seed)
    assert len(order) == len(days) - len(days) % size
    for number in range(2):
        records = order.epoch(number)
        assert [order[number * len(order) + place] for place in range(len(order))] == records.tolist()
        assert len(set(records.tolist())) == len(order)
        assert set(records.tolist()) <= set(range(len(days)))
        batches = np.array(days)[records].reshape(-1, size)
        within = np.sum(batches.max(axis=1) - batches.min(axis=1) < batch_days)
        # In each of the periods fewer rows than a batch are left over, and so are the rows that the epoch leaves out.
        periods = (max(days) - min(days)) // batch_days + 2
        assert within >= len(batches) - periods


@pytest.mark.parametrize("epoch", range(4))
def test_only_what_is_left_of_each_day_is_in_batches_of_several_days(epoch):
    days = np.repeat(np.array([3, 4, 9, 12, 20], np.int32), [5, 7, 9, 1, 11])
    found = days[DayOrder(days, 1, 2, 0).epoch(epoch)]
    of_one_day = sum(one == two for one, two in found.reshape(-1, 2).tolist())
    assert of_one_day == sum(found.tolist().count(day) // 2 for day in set(days.tolist()))


@pytest.mark.parametrize("epoch", range(4))
def test_each_day_gives_all_of_its_whole_batches_whatever_is_left_of_the_days_before(epoch):
    days = np.repeat(np.array([3, 4, 9], np.int32), [4, 4, 4])
    found = days[DayOrder(days, 1, 3, 0).epoch(epoch)].reshape(-1, 3)
    assert sorted(batch[0] for batch in found.tolist() if len(set(batch)) == 1) == [3, 4, 9]


def test_the_calendar_is_cut_at_other_places_in_other_epochs():
    days = np.array([0, 6, 7, 13], np.int32)
    order = DayOrder(days, 7, 2, 0)
    batches = {frozenset(batch) for epoch in range(30) for batch in days[order.epoch(epoch)].reshape(-1, 2).tolist()}
    assert {frozenset([0, 6]), frozenset([6, 7]), frozenset([7, 13])} <= batches


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(-9, 30), min_size=6, max_size=60), st.integers(1, 9), st.integers(1, 6), st.integers(0, 3))
def test_an_epoch_is_what_plain_loops_make_of_the_same_random_numbers(days, batch_days, size, seed):
    order = DayOrder(np.array(days, np.int32), batch_days, size, seed)
    for number in (0, 3):
        assert order.epoch(number).tolist() == plain_epoch(days, batch_days, size, seed, number)


def orders(days, batch_days, size, epochs, seed=0):
    order = DayOrder(np.array(days, np.int32), batch_days, size, seed)
    return [order.epoch(number).tolist() for number in range(epochs)]


def test_epochs_and_seeds_have_orders_of_their_own():
    days = list(range(40))
    found = [order for seed in (0, 1) for order in orders(days, 5, 2, 3, seed)]
    assert len({tuple(order) for order in found}) == 6
    assert found[:3] == orders(days, 5, 2, 3)


def test_each_epoch_draws_the_records_that_it_leaves_out():
    left_out = {next(iter(set(range(7)) - set(order))) for order in orders([3] * 7, 5, 2, 12)}
    assert len(left_out) > 3


def test_the_calendar_is_cut_at_another_place_in_each_epoch():
    def mixed(days, size):
        """Whether a batch has several days, by epoch."""
        batches = [np.array(days)[order].reshape(-1, size) for order in orders(days, 2, size, 40)]
        return [bool(np.any(found.min(axis=1) < found.max(axis=1))) for found in batches]

    # Days 4 and 5 are in one period of two days in about half of the epochs, days 4 and 6 in none.
    assert 8 < sum(mixed([4, 4, 4, 5, 5, 5], 3)) < 32
    assert not any(mixed([4, 4, 4, 6, 6, 6], 3))


def test_batches_do_not_come_by_date():
    days = np.repeat(np.arange(10), 2)
    firsts = [[days[record] for record in order[::2]] for order in orders(days, 1, 2, 5)]
    assert all(sorted(days) != days for days in firsts)


def test_left_over_records_of_neighbouring_periods_share_a_batch():
    # Three records on each of four days, in batches of two: one record is left over on each day.
    days = np.repeat([0, 10, 20, 30], 3)
    for order in orders(days, 1, 2, 6):
        pairs = [sorted(days[record] for record in order[start : start + 2]) for start in range(0, 12, 2)]
        assert sorted(pair for pair in pairs if pair[0] != pair[1]) == [[0, 10], [20, 30]]


def test_two_epochs_are_kept_for_readers_that_are_one_apart():
    computed = []

    class Counted(DayOrder):
        def epoch(self, number):
            computed.append(number)
            return super().epoch(number)

    order = Counted(np.arange(6, dtype=np.int32), 2, 2, 0)
    for place in range(4):
        order[place], order[6 + place]
    assert computed == [0, 1]

"""Packing against Algorithm 1: a plain search of the cache, and the algorithm as the paper prints it."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from newsembed.beam_pipelines.pack import pack


def pack_plainly(lengths, max_length, capacity, min_fill):
    """Algorithm 1 by looking at every cached row, ties to the row put back last."""
    cache, rows = [], []
    for length in lengths:
        fitting = [row for row in cache if sum(row) + length <= max_length]
        if fitting:
            row = max(reversed(fitting), key=sum)
            cache = [other for other in cache if other is not row]
        else:
            row = []
            if len(cache) == capacity:
                fullest = max(reversed(cache), key=sum)
                cache = [other for other in cache if other is not fullest]
                rows.append(fullest)
        row.append(length)
        if sum(row) >= min_fill * max_length:
            rows.append(row)
        else:
            cache.append(row)
    while cache:
        fullest = max(reversed(cache), key=sum)
        cache = [other for other in cache if other is not fullest]
        rows.append(fullest)
    return rows


@settings(max_examples=200, deadline=None)
@given(st.lists(st.integers(1, 20), max_size=60), st.integers(1, 8), st.sampled_from([0.25, 0.5, 0.75, 1.0]))
def test_equals_a_plain_search_of_the_cache(lengths, capacity, min_fill):
    rows = list(pack(lengths, 20, capacity, min_fill, int))
    assert rows == pack_plainly(lengths, 20, capacity, min_fill)


def pack_as_printed(lengths, max_length, capacity, min_fill):
    """Algorithm 1 as the paper prints it, with a cache that is ordered by length, longest first.

    A piece that fits into a row of the cache joins the first such row, which leaves once it is filled to rho. A piece
    that fits nowhere is inserted into the cache first, however long it is; then, if there are more than C, the first
    row leaves.
    """
    cache, rows = [], []
    for length in lengths:
        place = next((place for place, row in enumerate(cache) if sum(row) + length <= max_length), None)
        if place is None:
            cache.append([length])
        else:
            row = cache.pop(place)
            row.append(length)
            (rows if sum(row) >= min_fill * max_length else cache).append(row)
        cache.sort(key=sum, reverse=True)
        if len(cache) > capacity:
            rows.append(cache.pop(0))
    return rows + cache


def test_the_printed_algorithm_by_hand():
    # 3 fills the row of 7. 9 opens a row although it is long; 5 fits nowhere, and the fullest of three rows leaves.
    assert pack_as_printed([6, 7, 3, 9, 2, 5], 10, 2, 1.0) == [[7, 3], [9], [6, 2], [5]]


@pytest.mark.parametrize("capacity", [20, 50])
@pytest.mark.parametrize("seed", range(3))
def test_rows_are_as_full_as_those_of_the_printed_algorithm(seed, capacity):
    random = np.random.default_rng(seed)
    for lengths in (random.integers(8, 513, 2_000).tolist(), random.geometric(0.03, 2_000).clip(1, 512).tolist()):
        printed = pack_as_printed(lengths, 512, capacity, 0.99)
        assert sorted(length for row in printed for length in row) == sorted(lengths)
        rows = len(list(pack(lengths, 512, capacity, 0.99, int)))
        assert rows == pytest.approx(len(printed), rel=0.005)

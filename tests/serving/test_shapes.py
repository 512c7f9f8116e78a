"""Batches of few shapes: every row once, padding and compilations weighed against each other."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from newsembed.serving.rows import (
    DOCUMENTS_ON_CPU,
    QUERIES_ON_CPU,
    BatchCosts,
    batches,
    by_bucket,
    cheapest_heights,
    heights,
    length_buckets,
    plan,
    row_lengths,
)


def planned(lengths, compiled=(), **costs):
    return list(plan(lengths, 100, BatchCosts(**{"tokens_per_batch": 800, "shape_cost": 0} | costs), compiled))


def shapes(lengths, **costs):
    return [shape for _, shape in planned(lengths, **costs)]


def test_row_lengths():
    assert row_lengths(512) == (16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512)
    assert row_lengths(100) == (16, 24, 32, 48, 64, 96, 100)
    assert row_lengths(16) == (16,)
    assert row_lengths(5) == (5,)


@given(st.lists(st.integers(1, 100), max_size=80), st.integers(1, 900), st.sampled_from([0, 500, 10**6]))
def test_every_row_comes_once_and_fits(lengths, tokens_per_batch, shape_cost):
    seen, before = [], 101
    for numbers, (height, length) in planned(lengths, tokens_per_batch=tokens_per_batch, shape_cost=shape_cost):
        assert 0 < len(numbers) <= height
        assert length in row_lengths(100)
        assert length <= before
        assert height * length <= max(tokens_per_batch, length)
        assert max(lengths[number] for number in numbers) <= length
        seen += numbers.tolist()
        before = length
    assert sorted(seen) == list(range(len(lengths)))


def test_where_compiling_costs_nothing_rows_take_the_shortest_length_that_holds_them():
    found = planned([10, 20, 90] * 64)
    assert {length for _, (_, length) in found} == {16, 24, 96}
    assert sum(height * length for _, (height, length) in found) < 1.02 * 64 * (16 + 24 + 96)


def test_where_compiling_is_dear_one_shape_does():
    assert {*shapes([3, 20, 40, 90], shape_cost=10**6)} == {(1, 96)}
    assert shapes([90] * 7 + [3], shape_cost=10**6) == [(8, 96)]


def test_what_was_compiled_is_used_again():
    three, cost = [60] * 3, 1_000
    assert shapes(three, shape_cost=cost) == [(1, 64)] * 3
    assert shapes(three, shape_cost=cost, compiled={(8, 64)}) == [(8, 64)]
    assert shapes(three, shape_cost=cost, compiled={(8, 96)}) == [(8, 96)]
    assert shapes(three, shape_cost=cost, compiled={(64, 64)}, tokens_per_batch=5_000) == [(1, 64)] * 3


@pytest.mark.parametrize(
    ("rows", "shape_cost", "compiled", "expected"),
    [
        (0, 5, (), ([], 0)),
        (64, 0, (), ([64], 19_200)),
        (65, 0, (), ([64, 1], 19_500)),
        (65, 20_000, (), ([100], 50_000)),
        (200, 1_000, (), ([100, 100], 61_000)),
        (9, 1_000, {(64, 300)}, ([8, 1], 4_700)),
        (9, 20_000, {(64, 300)}, ([64], 19_200)),
    ],
)
def test_the_cheapest_heights_by_hand(rows, shape_cost, compiled, expected):
    assert cheapest_heights(rows, 300, BatchCosts(30_000, shape_cost), compiled) == expected


@pytest.mark.parametrize("heights", [[1], [4, 1, 1, 1], [4, 4], [4, 4, 1, 1, 1], [16, 16]], ids=str)
def test_queries_on_a_cpu_pay_for_their_positions_only(heights):
    compiled = {(height, 16) for height in (1, 4, 16)}
    assert cheapest_heights(sum(heights), 16, QUERIES_ON_CPU, compiled) == (heights, 16 * sum(heights))


@pytest.mark.parametrize("heights", [[1], [1] * 3, [4], [16], [16, 4], [32]], ids=str)
def test_a_few_documents_on_a_cpu_do_not_pay_for_a_full_batch(heights):
    compiled = {(height, 64) for height in (1, 4, 16, 32)}
    assert cheapest_heights(sum(heights), 64, DOCUMENTS_ON_CPU, compiled) == (heights, 64 * sum(heights))


def test_buckets_by_hand():
    lengths = [30, 33, 5, 64, 32]
    found = [(numbers.tolist(), shape) for numbers, shape in by_bucket(lengths, length_buckets(100), 64)]
    # Longest first; a batch of 64 cells holds one row of 64 or two of 32. No row is longer than 64.
    assert found == [([1], (1, 64)), ([3], (1, 64)), ([0, 2], (2, 32)), ([4], (1, 32))]
    heights_of = [shape for _, shape in by_bucket([10] * 3, (32,), 32 * 20, multiple=6)]
    assert heights_of == [(12, 32)], "eight rows, rounded up to a multiple of six"
    assert heights(8) == [1, 8]
    assert heights(9) == [1, 8, 9]
    rows = [np.array([2, 5, 3], np.int32), np.array([2, 3], np.int32)]
    ((numbers, tokens),) = batches(rows, [(np.array([1, 0]), (3, 4))])
    assert numbers.tolist() == [1, 0]
    assert tokens.tolist() == [[2, 3, 0, 0], [2, 5, 3, 0], [0, 0, 0, 0]]

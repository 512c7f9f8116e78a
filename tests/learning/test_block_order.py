"""The order in which few blocks are read at a time."""

import collections

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from newsembed.learning.batches import BLOCKS_AT_ONCE, BlockOrder

SETS = st.tuples(st.lists(st.integers(1, 7), min_size=1, max_size=80), st.integers(1, 48), st.integers(0, 3))


@settings(max_examples=60, deadline=None)
@given(SETS)
def test_each_lane_deals_the_blocks_of_an_epoch_once(given_set):
    """A plain reference: deal the shuffled blocks, shuffle four at a time, go on with the next epoch."""
    sizes, batch_size, seed = given_set
    order, firsts = BlockOrder(sizes, batch_size, seed), np.cumsum([0, *sizes])
    lanes = order.lanes
    assert batch_size % lanes == 0
    assert lanes <= len(sizes)
    streams = [[] for _ in range(lanes)]
    for epoch in range(3):
        blocks = np.random.default_rng([seed, epoch]).permutation(len(sizes))
        for lane in range(lanes):
            own = blocks[lane::lanes]
            for window, start in enumerate(range(0, len(own), 4)):
                records = [n for block in own[start : start + 4] for n in range(firsts[block], firsts[block + 1])]
                streams[lane] += np.random.default_rng([seed, epoch, lane, window]).permutation(records).tolist()
    rows = batch_size // lanes
    for step in range(min(map(len, streams)) // rows):
        expected = [record for stream in streams for record in stream[step * rows :][:rows]]
        assert [order[step * batch_size + row] for row in range(batch_size)] == expected


def test_places_are_found_in_any_sequence_and_an_epoch_holds_every_record_once():
    sizes = [5] * 64
    whole = BlockOrder(sizes, 32, 1)
    records = [whole[number] for number in range(320)]
    assert collections.Counter(records) == collections.Counter(range(320))
    assert records != sorted(records)
    late = BlockOrder(sizes, 32, 1)
    assert [late[number] for number in reversed(range(320))] == records[::-1]
    assert len(whole) == 320


def test_a_share_of_the_rows_asks_for_a_share_of_the_blocks_before_they_are_needed():
    sizes = [3] * 256
    asked = []
    for share in range(4):
        fetched = set()
        order = BlockOrder(sizes, 64, 0, fetched.update)
        for step in range(6):
            for row in range(16 * share, 16 * (share + 1)):
                assert order[step * 64 + row] // 3 in fetched
        asked.append(fetched)
        assert len(fetched) <= BLOCKS_AT_ONCE // 4
    assert len(set.union(*asked)) == sum(map(len, asked)) == 256

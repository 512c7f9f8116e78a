"""bitext.exchange: every row arrives at its receiver, once, in order."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from newsembed.beam_pipelines.bitext.exchange import receive, send
from newsembed.beam_pipelines.shards import Phase, Shard

ROW = np.dtype([("receiver", "<u4"), ("sender", "<u4"), ("number", "<u8")])


@settings(max_examples=30, deadline=None)
@given(st.lists(st.lists(st.integers(0, 4), max_size=12), min_size=1, max_size=4))
def test_each_receiver_gets_its_rows_in_order(tmp_path_factory, senders):
    phase = Phase(str(tmp_path_factory.mktemp("exchange")), "send", len(senders))
    sent = []
    for sender, receivers in enumerate(senders):
        rows = np.array([(receiver, sender, number) for number, receiver in enumerate(receivers)], ROW)
        sent.append(rows)
        with Shard(phase, sender) as shard:
            send(shard, "_rows", rows, rows["receiver"], 5)
    every = np.concatenate(sent)
    for receiver in range(5):
        np.testing.assert_array_equal(receive(phase.workspace, "_rows", receiver), every[every["receiver"] == receiver])

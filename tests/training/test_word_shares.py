"""The bias of an auto-encoder's decoder: log odds by hand."""

import jax
import numpy as np
import pytest
from newsembed.learning.partitioning import Partitioner, place, replicated
from newsembed.training.word_shares import start_decoder_bias


@pytest.fixture(scope="module")
def mesh():
    return Partitioner().make_mesh(jax.devices()[:1])


def test_the_bias_is_the_log_odds_that_a_text_has_a_word(mesh):
    before = place(np.full(5, 9.0, np.float32), replicated(mesh))
    batches = [np.array([[2, 2, 0], [2, 3, 0]], np.int32), np.array([[2, 4, 3], [0, 0, 0]], np.int32)]
    params = {"decoder_bias": before, "other": 1}
    found = start_decoder_bias(params, iter([{"tokens": tokens} for tokens in batches]), Partitioner(), mesh)
    # Of three texts (one row has none) all have 2, two have 3, one has 4, none has 1.
    counts = np.array([0, 3, 2, 1])
    shares = (counts + 0.5) / 4
    np.testing.assert_allclose(np.asarray(found["decoder_bias"])[1:], np.log(shares / (1 - shares)), rtol=1e-6)
    assert np.isfinite(found["decoder_bias"]).all()
    assert (found["other"], found["decoder_bias"].dtype) == (1, np.float32)
    assert np.asarray(params["decoder_bias"]).tolist() == [9.0] * 5

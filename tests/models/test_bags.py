"""Binary vectors of words, their sums, and the cross entropy of a reconstruction: equal to NumPy in float64."""

import jax.numpy as jnp
import numpy as np
import pytest
from newsembed.models.encoders import autoencoder

WORDS, UNITS = 17, 4
ROWS = np.array([[2, 9, 16, 9, 5, 1, 3, 0], [0, 0, 0, 0, 0, 0, 0, 0], [2, 12, 11, 10, 4, 3, 0, 0]], np.int32)


def reference():
    """x of each row by hand: [3, V]."""
    x = np.zeros((3, WORDS))
    x[0, [5, 9, 16]] = 1
    x[2, [10, 11, 12]] = 1
    return x


def table(seed):
    return np.random.default_rng(seed).normal(size=(WORDS, UNITS)).astype(np.float32)


def test_distinct_words_are_each_word_once_in_ascending_order():
    found = np.asarray(autoencoder.distinct_words(jnp.array(ROWS)))
    assert [sorted(set(row) - {0}) for row in found.tolist()] == [[5, 9, 16], [], [10, 11, 12]]
    assert [sum(token > 0 for token in row) for row in found.tolist()] == [3, 0, 3]


@pytest.mark.parametrize(("start", "size"), [(0, WORDS), (5, 5), (10, 7), (16, 1)])
def test_binary_vectors_are_a_part_of_the_whole(start, size):
    found = autoencoder.binary_vectors(jnp.array(ROWS), start, size)
    np.testing.assert_array_equal(found, reference()[:, start : start + size])


@pytest.mark.parametrize("chunk", [100, 17, 6, 1])
def test_sums_of_words_are_those_of_the_table(chunk):
    found = autoencoder.sum_of_words(jnp.array(ROWS), jnp.array(table(0)), chunk=chunk)
    np.testing.assert_allclose(found, reference() @ table(0), rtol=1e-5, atol=1e-6)


def test_large_logits_overflow_nothing():
    hidden = jnp.array([[1e3, 0, 0, 0]])
    loss = autoencoder.reconstruction_loss(hidden, jnp.array(ROWS[:1]), jnp.array(table(1)), jnp.zeros(WORDS), chunk=17)
    assert np.isfinite(loss).all()

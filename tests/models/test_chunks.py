"""Rows in chunks: values, gradients and keys are those of a plain loop."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from newsembed.models.softmax import chunk_count, map_chunks

ROWS = jax.random.normal(jax.random.key(0), (12, 3))
WEIGHTS = jax.random.normal(jax.random.key(1), (3, 3))


def noisy(weights, rows, key):
    return {"out": jnp.tanh(rows @ weights) * jax.random.bernoulli(key, 0.7, rows.shape)}


def loss_of(outputs):
    # Every row meets every other, as in a contrastive loss.
    return jnp.sum(jax.nn.logsumexp(outputs @ outputs.T, axis=1))


@pytest.mark.parametrize("chunks", [1, 4])
def test_value_and_gradient_of_a_loss_over_all_rows_equal_a_plain_loop(chunks):
    key = jax.random.key(2)

    def chunked(weights, rows):
        return loss_of(map_chunks(lambda part, k: noisy(weights, part, k), rows, key, chunks)["out"])

    def plain(weights, rows):
        outputs = jnp.zeros_like(rows)
        for number, own in enumerate([key] if chunks == 1 else jax.random.split(key, chunks)):
            outputs = outputs.at[number::chunks].set(noisy(weights, rows[number::chunks], own)["out"])
        return loss_of(outputs)

    found, expected = (jax.jit(jax.value_and_grad(loss, argnums=(0, 1)))(WEIGHTS, ROWS) for loss in (chunked, plain))
    jax.tree.map(lambda left, right: np.testing.assert_allclose(left, right, rtol=1e-5, atol=1e-6), found, expected)


@pytest.mark.parametrize(("rows", "most", "count"), [(8192, 1024, 8), (12, 5, 3), (12, 12, 1), (12, 100, 1), (7, 6, 7)])
def test_the_fewest_chunks_that_fit(rows, most, count):
    assert chunk_count(rows, most) == count


def test_a_chunk_of_no_row_cannot_be():
    with pytest.raises(ValueError, match="expected chunks and rows that hold multiples of 1"):
        chunk_count(12, 0)

"""Rows in chunks: values, gradients and keys are those of a plain loop."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from newsembed.models.chunks import chunk_count, map_chunks

ROWS = jax.random.normal(jax.random.key(0), (12, 3))
WEIGHTS = jax.random.normal(jax.random.key(1), (3, 3))


def noisy(weights, rows, key):
    return {"out": jnp.tanh(rows @ weights) * jax.random.bernoulli(key, 0.7, rows.shape)}


def loss_of(outputs):
    # Every row meets every other, as in a contrastive loss.
    return jnp.sum(jax.nn.logsumexp(outputs @ outputs.T, axis=1))


def test_value_and_gradient_of_a_loss_over_all_rows_equal_a_plain_loop():
    key, chunks = jax.random.key(2), 4

    def chunked(weights, rows):
        return loss_of(map_chunks(lambda part, k: noisy(weights, part, k), rows, key, chunks)["out"])

    def plain(weights, rows):
        outputs = jnp.zeros_like(rows)
        for number, own in enumerate(jax.random.split(key, chunks)):
            outputs = outputs.at[number::chunks].set(noisy(weights, rows[number::chunks], own)["out"])
        return loss_of(outputs)

    found, expected = (jax.jit(jax.value_and_grad(loss, argnums=(0, 1)))(WEIGHTS, ROWS) for loss in (chunked, plain))
    jax.tree.map(lambda left, right: np.testing.assert_allclose(left, right, rtol=1e-5, atol=1e-6), found, expected)


def test_one_chunk_is_the_function_itself_with_its_own_key():
    key = jax.random.key(3)
    whole = map_chunks(lambda part, k: noisy(WEIGHTS, part, k), ROWS, key, 1)["out"]
    np.testing.assert_array_equal(whole, noisy(WEIGHTS, ROWS, key)["out"])


@pytest.mark.parametrize(
    ("rows", "most", "multiple", "count"),
    [(8192, 1024, 1, 8), (12, 5, 1, 3), (12, 12, 1, 1), (12, 100, 1, 1), (12, 4, 3, 4), (7, 6, 1, 7)],
)
def test_the_fewest_chunks_that_fit(rows, most, multiple, count):
    assert chunk_count(rows, most, multiple) == count


@pytest.mark.parametrize(("rows", "most", "multiple"), [(12, 0, 1), (12, 2, 3), (13, 12, 2)])
def test_chunks_that_cannot_be(rows, most, multiple):
    with pytest.raises(ValueError, match="expected chunks and rows that hold multiples of"):
        chunk_count(rows, most, multiple)

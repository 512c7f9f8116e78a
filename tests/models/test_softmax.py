"""The softmax in chunks against float64, and that it never holds the logits."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from newsembed.models.losses import mean_cross_entropy, terms_of_logits
from newsembed.models.softmax import LOGITS_AT_A_TIME, automatic_chunk, chunk_of_device, softmax_terms

POSITIONS, PIECES, WIDTH = 11, 23, 6


def problem(seed=0):
    rng = np.random.default_rng(seed)
    states, table, bias = rng.normal(size=(POSITIONS, WIDTH)), rng.normal(size=(PIECES, WIDTH)), rng.normal(size=PIECES)
    return states, table, bias, rng.integers(0, PIECES, POSITIONS), rng.integers(0, 2, POSITIONS).astype(float)


def reference(states, table, bias, targets, weights):
    """Loss, accuracy and the gradients of states, table and bias, in float64."""
    logits = states @ table.T + bias
    softmax = np.exp(logits - logits.max(1, keepdims=True))
    softmax /= softmax.sum(1, keepdims=True)
    total = weights.sum()
    loss = -(weights * np.log(softmax[np.arange(POSITIONS), targets])).sum() / total
    gradient = weights[:, None] * (softmax - np.eye(PIECES)[targets]) / total
    hits = (weights * (logits.argmax(1) == targets)).sum() / total
    return loss, hits, (gradient @ table, gradient.T @ states, gradient.sum(0))


@functools.partial(jax.jit, static_argnames="chunk")
def in_chunks(states, table, bias, targets, weights, chunk):
    def loss(states, table, bias):
        return mean_cross_entropy(softmax_terms(states, table, bias, targets, chunk=chunk), weights)

    def first(*parts):
        result = loss(*parts)
        return result.loss, result.accuracy

    return jax.value_and_grad(first, argnums=(0, 1, 2), has_aux=True)(states, table, bias)


@pytest.mark.parametrize("chunk", [1, 7, 23, 100])
def test_loss_accuracy_and_gradients_equal_the_formula_whatever_the_chunk(chunk):
    states, table, bias, targets, weights = problem()
    expected_loss, expected_hits, expected = reference(states, table, bias, targets, weights)
    (loss, hits), gradients = in_chunks(
        jnp.float32(states), jnp.float32(table), jnp.float32(bias), jnp.int32(targets), jnp.float32(weights), chunk
    )
    assert float(loss) == pytest.approx(expected_loss, rel=1e-6)
    assert float(hits) == pytest.approx(expected_hits)
    for found, wanted in zip(gradients, expected, strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-6)


def test_large_logits_stay_finite_and_bfloat16_sums_in_float32():
    states, table, bias, targets, weights = problem(1)
    narrow = jnp.bfloat16(states * 40), jnp.float32(table), jnp.float32(bias), jnp.int32(targets), jnp.float32(weights)
    (loss, _), gradients = in_chunks(*narrow, 7)
    rounded = np.float64(narrow[0]), np.float64(jnp.bfloat16(table)), bias, targets, weights
    assert float(loss) == pytest.approx(reference(*rounded)[0], rel=1e-5)
    assert [array.dtype for array in gradients] == [jnp.bfloat16, jnp.float32, jnp.float32]
    assert all(np.isfinite(np.float32(array)).all() for array in gradients)


@pytest.mark.parametrize(
    ("positions", "pieces"), [(100, 30_000), (1000, 500_000), (4096, 500_000), (22_528, 500_000), (60_000, 500_003)]
)
def test_the_automatic_chunk_keeps_the_logits_within_their_bound(positions, pieces):
    chunk = automatic_chunk(positions, pieces)
    assert chunk == pieces or chunk % 1024 == 0
    assert positions * chunk <= LOGITS_AT_A_TIME
    assert chunk in (pieces, 16_384) or positions * (chunk + 1024) > LOGITS_AT_A_TIME


def test_half_a_million_pieces_take_a_twentieth_of_the_memory():
    """What the compiler reserves in addition to arguments and results, for the loss and its gradients; nothing runs."""
    positions, pieces, width = 4096, 500_000, 768

    def chunked(states, table, bias, targets, weights):
        chunk = chunk_of_device(positions, pieces, 0)
        return mean_cross_entropy(softmax_terms(states, table, bias, targets, chunk=chunk), weights).loss

    def plain(states, table, bias, targets, weights):
        return mean_cross_entropy(terms_of_logits(states @ table.T + bias, targets), weights).loss

    def temporary_bytes(loss):
        shape = functools.partial(jax.ShapeDtypeStruct, dtype=jnp.float32)
        states, table, bias = shape((positions, width)), shape((pieces, width)), shape((pieces,))
        given = states, table, bias, shape((positions,), dtype=jnp.int32), shape((positions,))
        compiled = jax.jit(jax.grad(loss, argnums=(0, 1, 2))).lower(*given).compile()
        return compiled.memory_analysis().temp_size_in_bytes

    logits = 4 * positions * pieces
    assert temporary_bytes(plain) > 1.9 * logits
    assert temporary_bytes(chunked) < 0.12 * logits

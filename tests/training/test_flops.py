"""Counted FLOPs: products and convolutions, as often as they run, and those of architectures."""

import jax
import jax.numpy as jnp
import pytest
from newsembed.models.encoders import KINDS, EncoderConfig
from newsembed.training.metrics import count_flops

LEFT, RIGHT = jax.ShapeDtypeStruct((4, 3), jnp.float32), jax.ShapeDtypeStruct((3, 5), jnp.float32)
ONE = 2 * 4 * 3 * 5


def convolved(left, right):
    """Windows of 2 of 4 rows of 3 numbers to 5: 3 places."""
    kernel = jnp.stack([right, right])
    return jax.lax.conv_general_dilated(left[None], kernel, (1,), "VALID", dimension_numbers=("NWC", "WIO", "NWC"))


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (lambda left, right: jnp.tanh(left @ right) + 1, ONE),
        (lambda left, right: jnp.einsum("bi,ij->bj", left, right) + left @ right, 2 * ONE),
        (jax.jit(jax.checkpoint(jnp.matmul)), ONE),
        (lambda left, right: jax.lax.map(lambda _: left @ right, jnp.arange(7)), 7 * ONE),
        (lambda left, right: jax.lax.fori_loop(0, 3, lambda _, sums: sums + left @ right, jnp.zeros((4, 5))), 3 * ONE),
        (lambda left, right: jax.lax.cond(left[0, 0] > 0, jnp.matmul, lambda a, b: a[:, :1] @ b[:1], left, right), ONE),
        (convolved, 2 * 3 * 2 * 3 * 5),
        (lambda left, right: left.sum() * right, 0),
    ],
    ids=["product", "two", "nested", "map", "loop", "branch", "convolution", "none"],
)
def test_products_count_as_often_as_they_run(function, expected):
    assert count_flops(function, LEFT, RIGHT) == expected


def test_layers_of_a_transformer_by_hand():
    config = EncoderConfig(
        30, hidden_size=8, num_layers=2, num_heads=2, mlp_size=16, max_length=6, embedding_size=5, num_topics=4
    )
    module, tokens = config.module(), jax.ShapeDtypeStruct((3, 6), jnp.int32)
    params = jax.eval_shape(module.init, jax.random.key(0), tokens)
    layer = 8 * 8 * 8 + 4 * 8 * 16 + 4 * 6 * 8  # of a token: projections, feed-forward layer, scores and sums
    found = count_flops(lambda params, tokens: module.apply(params, tokens, method="embed"), params, tokens)
    assert found == 3 * (2 * 6 * layer + 2 * 8 * 5)


@pytest.mark.parametrize("kind", ["star", "laser", "recurrent", "convolution"])
def test_the_cost_is_linear_in_the_length(kind):
    module, tokens = KINDS[kind](vocab_size=40).module(), jax.ShapeDtypeStruct((1, 8), jnp.int32)
    params = jax.eval_shape(module.init, jax.random.key(0), tokens)

    def cost(length):
        rows = jax.ShapeDtypeStruct((1, length), jnp.int32)
        return count_flops(lambda params, tokens: module.apply(params, tokens, method="embed"), params, rows)

    assert cost(64) == pytest.approx(2 * cost(32), rel=0.1)

"""Looking at the attention changes nothing, and each layer's sums to one."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from drawn_parameters import drawn
from newsembed.models.encoders.news import NewsEncoder
from small_encoders import small

CONFIG = small(num_layers=3, num_topics=3)
TOKENS = np.array([[2, 7, 9, 11, 13, 15, 17, 3], [2, 8, 10, 3, 0, 0, 0, 0], [2, 3, 0, 0, 0, 0, 0, 0]], np.int32)
MODERN = {"norm": "modern", "positions": "rotary", "mlp": "gated", "biases": False}
MODELS = {
    "post, cls": {},
    "pre, mean": {"norm": "pre", "pooling": "mean"},
    "modern, local layers": MODERN | {"local_distance": 1, "global_every": 2},
    "all layers local, [CLS] global": {"local_distance": 1, "global_every": 0, "global_tokens": 1},
    "scanned": {"scan_layers": True, "remat": "full"},
}


def make(config):
    """The encoder's methods on fixed parameters, compiled: ``run("encode", tokens)``."""
    model, params = NewsEncoder(config), drawn(config, deviation=0.2)
    return lambda method, *inputs: jax.jit(functools.partial(model.apply, method=method))({"params": params}, *inputs)


def draw(shape, seed):
    return jnp.asarray(np.random.default_rng(seed).normal(size=shape), jnp.float32)


@pytest.mark.parametrize("changes", MODELS.values(), ids=MODELS)
def test_looking_changes_nothing_and_each_layer_s_attention_sums_to_one(changes):
    run = make(dataclasses.replace(CONFIG, **changes))
    plain = run("encode", TOKENS)
    hidden, received = run("encode_observed", TOKENS)
    real = TOKENS > 0
    np.testing.assert_allclose(np.asarray(hidden)[real], np.asarray(plain)[real], atol=1e-5)
    assert received.shape == (3, *TOKENS.shape)
    assert received.dtype == jnp.float32
    np.testing.assert_allclose(np.asarray(received).sum(-1), 1, atol=1e-5)
    assert np.asarray(received).min() >= 0
    assert float(np.asarray(received)[:, ~real].max()) == 0
    assert float(np.asarray(received)[:, 0, :].std()) > 1e-3


def test_a_local_layer_s_first_token_attends_to_its_neighbors_only():
    _, received = make(dataclasses.replace(CONFIG, **MODELS["modern, local layers"]))("encode_observed", TOKENS)
    assert (np.asarray(received)[1, 0] > 0).tolist() == [True, True, False, False, False, False, False, False]
    assert (np.asarray(received)[0, 0] > 0).all()


@pytest.mark.parametrize("terms", [{}, {"lead_length": 2, "sublinear": True}], ids=["plain", "terms"])
@pytest.mark.parametrize("pooling", ["cls", "mean", "weighted"])
def test_pooling_weights_are_those_of_pool(pooling, terms):
    run = make(dataclasses.replace(CONFIG, num_layers=1, pooling=pooling, **terms))
    hidden = draw((3, 8, 16), 5)
    weights, pooled = run("pooling_weights", TOKENS), run("pool", hidden, TOKENS)
    np.testing.assert_allclose(np.einsum("bl,blh->bh", weights, hidden), pooled, atol=1e-6)

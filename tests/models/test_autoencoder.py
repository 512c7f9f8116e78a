"""The auto-encoder's hidden vectors and embeddings: equal to NumPy; texts without words are zero."""

import json

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from newsembed.models.encoders import AutoencoderConfig, Capability, EncoderConfig, config_from_dict, named_kind

CONFIG = AutoencoderConfig(vocab_size=30, embedding_size=6, max_length=12)
ROWS = np.array([[2, 9, 17, 17, 29, 8, 3, 0], [2, 1, 1, 3, 0, 0, 0, 0], [2, 17, 8, 9, 29, 9, 3, 0]], np.int32)


@pytest.fixture(scope="module")
def params():
    fresh = jax.jit(CONFIG.module().init)(jax.random.key(0), jnp.ones((1, 4), jnp.int32))["params"]
    biases = {
        "encoder_bias": jnp.linspace(-2.0, 2.0, CONFIG.embedding_size),
        "decoder_bias": jnp.linspace(-1.0, 1.0, CONFIG.vocab_size),
    }
    return {**nn.unbox(fresh), **biases}


def run(params, method, rows=ROWS):
    return np.asarray(CONFIG.module().apply({"params": params}, jnp.array(rows), method=method))


def logistic(values):
    return 1 / (1 + np.exp(-np.asarray(values, np.float64)))


def test_the_hidden_vector_is_that_of_the_set_of_words_less_that_of_no_word(params):
    kernel, bias = (np.asarray(params[f"encoder_{name}"], np.float64) for name in ("kernel", "bias"))
    expected = logistic(kernel[[9, 17, 29, 8]].sum(0) + bias) - logistic(bias)
    np.testing.assert_allclose(run(params, "hidden")[0], expected, rtol=1e-5, atol=1e-7)


def test_a_text_without_a_word_of_the_vocabulary_is_zero_everywhere(params):
    for method in ("hidden", "embed"):
        assert not run(params, method)[1].any()


def test_embeddings_are_hidden_vectors_of_length_1(params):
    hidden, embedded = run(params, "hidden"), run(params, "embed")
    np.testing.assert_allclose(embedded[0], hidden[0] / np.linalg.norm(hidden[0]), rtol=1e-5)
    gradient = jax.grad(lambda p: jnp.sum(CONFIG.module().apply({"params": p}, jnp.array(ROWS), method="embed")[:, 0]))(
        params
    )
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(gradient))


def test_both_kernels_start_within_four_times_the_limit_of_glorot_and_differ(params):
    limit = 4 * np.sqrt(6 / (CONFIG.vocab_size + CONFIG.embedding_size))
    for name in ("encoder_kernel", "decoder_kernel"):
        largest = np.abs(params[name]).max()
        assert 0.9 * limit < largest <= limit
    assert np.abs(params["encoder_kernel"] - params["decoder_kernel"]).max() > 0.1


def test_the_configuration_survives_json_and_has_one_capability():
    stored = json.loads(json.dumps(CONFIG.to_dict()))
    assert config_from_dict(stored, named_kind(CONFIG)) == CONFIG
    assert CONFIG.capabilities == {Capability.RECONSTRUCTION}
    assert Capability.RECONSTRUCTION not in EncoderConfig(vocab_size=30, pooling="weighted").capabilities

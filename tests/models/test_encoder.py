"""The encoder: padding and packing change nothing, shapes and types, configuration round trip."""

import dataclasses

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from newsembed.models.encoders.news import EncoderConfig, NewsEncoder
from small_encoders import small

CONFIG = small(num_topics=5, dropout_rate=0.0)


class Compiled:
    """The encoder with its `apply` compiled: op by op, each new shape would compile dozens of programs."""

    def __init__(self, encoder):
        self.apply = jax.jit(encoder.apply, static_argnames=("method", "deterministic"))


def build(**changes):
    encoder = NewsEncoder(dataclasses.replace(CONFIG, **changes))
    params = jax.jit(lambda key: nn.unbox(encoder.init(key, jnp.ones((1, 4), jnp.int32))))(jax.random.key(0))
    # Larger weights than at initialisation, so that attention differs between tokens.
    params = jax.tree.map(lambda array: array * 5 if array.ndim > 1 else array, params)
    if encoder.config.pooling == "weighted":
        params["params"]["pooling_logits"] = jax.random.normal(jax.random.key(1), (encoder.config.vocab_size,))
    return Compiled(encoder), params


TERMS = {"lead_length": 3, "sublinear": True}


@pytest.fixture(scope="module", params=[("post", "cls"), ("pre", "weighted", "terms")], ids="-".join)
def model(request):
    norm, pooling, *terms = request.param
    return build(norm=norm, pooling=pooling, **(TERMS if terms else {}))


def test_padding_does_not_change_an_embedding(model):
    encoder, params = model
    row = [2, 9, 17, 30, 3]
    short = encoder.apply(params, jnp.array([row]), method="embed")
    padded = encoder.apply(params, jnp.array([row + [0] * 5]), method="embed")
    np.testing.assert_allclose(short, padded, atol=1e-6)


def test_packed_pieces_do_not_see_each_other(model):
    encoder, params = model
    first, second = [2, 9, 17, 3], [2, 30, 11, 12, 3]
    tokens = jnp.array([[*first, *second, 0]])
    segments = jnp.array([[1] * 4 + [2] * 5 + [0]])
    positions = jnp.array([[*range(4), *range(5), 0]])
    packed = encoder.apply(params, tokens, segments, positions, method="encode")[0]
    assert np.isfinite(packed).all()
    np.testing.assert_allclose(packed[:4], encoder.apply(params, jnp.array([first]), method="encode")[0], atol=2e-6)
    np.testing.assert_allclose(packed[4:9], encoder.apply(params, jnp.array([second]), method="encode")[0], atol=2e-6)


def test_pieces_pool_like_rows_of_their_own(model):
    encoder, params = model
    first, second = [2, 9, 9, 3], [2, 30, 9, 12, 3]
    tokens = jnp.array([[*first, *second, 0]])
    segments = jnp.array([[1] * 4 + [2] * 5 + [0]])
    positions = jnp.array([[*range(4), *range(5), 0]])
    hidden = encoder.apply(params, tokens, segments, positions, method="encode")
    pooled = encoder.apply(params, hidden, tokens, segments, method="pool_pieces")[0]
    for places, row in ((range(4), first), (range(4, 9), second)):
        alone = jnp.array([row])
        expected = encoder.apply(params, encoder.apply(params, alone, method="encode"), alone, method="pool")[0]
        for place in places:
            np.testing.assert_allclose(pooled[place], expected, atol=2e-6)


def test_weighted_pooling_is_the_weighted_mean_and_starts_as_the_mean():
    encoder, params = build(norm="pre", pooling="weighted")
    row = [2, 9, 17, 9, 3]
    hidden = np.asarray(encoder.apply(params, jnp.array([row]), method="encode"))[0]
    weights = np.exp(np.asarray(params["params"]["pooling_logits"])[row])
    padded = encoder.apply(params, np.pad(hidden, ((0, 2), (0, 0)))[None], jnp.array([[*row, 0, 0]]), method="pool")[0]
    np.testing.assert_allclose(padded, np.average(hidden, axis=0, weights=weights), atol=1e-6)
    weighted = NewsEncoder(dataclasses.replace(CONFIG, pooling="weighted"))
    fresh = nn.unbox(jax.jit(weighted.init)(jax.random.key(0), jnp.ones((1, 4), jnp.int32)))["params"]
    assert not np.asarray(fresh["pooling_logits"]).any()


def test_without_layers_a_text_is_a_bag_of_pieces():
    encoder, params = build(norm="pre", pooling="weighted", num_layers=0, positions="rotary")
    one, other = (
        encoder.apply(params, jnp.array([row]), method="embed") for row in ([2, 9, 17, 9, 3], [9, 3, 2, 9, 17])
    )
    np.testing.assert_allclose(one, other, atol=1e-6)
    assert not any(name.startswith("layers") for name in params["params"])


def test_t5_tokens_start_wide_and_logits_small():
    for embedding_init, deviation in (("bert", 0.02), ("t5", 1.0)):
        encoder = NewsEncoder(dataclasses.replace(CONFIG, vocab_size=2000, embedding_init=embedding_init))
        params = nn.unbox(jax.jit(encoder.init)(jax.random.key(0), jnp.ones((1, 4), jnp.int32)))
        assert np.std(params["params"]["token_embedding"]) == pytest.approx(deviation, rel=0.2)
        states = encoder.apply(params, jnp.ones((1, 1, CONFIG.hidden_size)), method="mlm_states")
        table, bias = encoder.apply(params, method="output_table")
        assert np.std(states @ table.T + bias) < 2


def test_heads_give_the_declared_shapes_and_unit_float32_embeddings(model):
    encoder, params = model
    tokens = jnp.array([[2, 5, 6, 3], [2, 7, 3, 0]])
    embeddings = encoder.apply(params, tokens, method="embed")
    assert (embeddings.shape, embeddings.dtype) == ((2, 8), jnp.float32)
    np.testing.assert_allclose(np.linalg.norm(embeddings, axis=1), 1, atol=1e-6)
    assert encoder.apply(params, tokens, method="topic_logits").shape == (2, 5)
    assert encoder.apply(params, jnp.ones((2, 3, 16)), method="mlm_states").shape == (2, 3, 16)


def test_dropout_is_drawn_only_when_asked():
    encoder, params = build(dropout_rate=0.5)
    tokens = jnp.array([[2, 5, 6, 3]])
    still = encoder.apply(params, tokens, method="embed")
    np.testing.assert_array_equal(still, encoder.apply(params, tokens, method="embed"))
    dropped = encoder.apply(params, tokens, deterministic=False, rngs={"dropout": jax.random.key(1)}, method="embed")
    assert not np.allclose(still, dropped)


def test_rows_longer_than_the_positions_are_refused(model):
    encoder, params = model
    with pytest.raises(ValueError, match="got rows of 13 tokens, expected at most max_length = 12"):
        encoder.apply(params, jnp.ones((1, 13), jnp.int32), method="embed")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"hiden_size": 3}, "unknown keys hiden_size"),
        ({"num_heads": 3}, "hidden_size: got 16, expected a multiple of num_heads = 3"),
        ({"dtype": "float64"}, "dtype: got 'float64'"),
        ({"lead_length": -1, "pooling": "weighted"}, "lead_length: got -1, expected an integer of at least 0"),
        ({"sublinear": 2}, "sublinear: got 2, expected one of True, False"),
    ],
)
def test_config_refuses_what_cannot_be(changes, message):
    with pytest.raises(ValueError, match=message):
        EncoderConfig.from_dict(CONFIG.to_dict() | changes)

"""Windows with global tokens: mask, encoder and FLOPs against a dense mask; descriptions of older models."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import linen as nn
from newsembed.models.architecture import Capability
from newsembed.models.attention import visible
from newsembed.models.encoders.news import NewsEncoder
from small_encoders import small

LONG = small(30, mlp_size=16, num_topics=3, dropout_rate=0.0, local_distance=2, global_every=0, global_tokens=1)
TOKENS = np.array([[2, 7, 9, 11, 13, 15, 17, 19, 21, 3], [2, 8, 10, 12, 3, 0, 0, 0, 0, 0]], np.int32)
SEGMENTS = np.array([[1, 1, 1, 1, 2, 2, 2, 2, 2, 0], [1, 1, 2, 2, 2, 2, 2, 3, 3, 3]], np.int32)
DISTANCE = 2


def places_of(segments):
    """The place of each token in its piece, one token at a time."""
    places = np.zeros_like(segments)
    for row, line in enumerate(segments):
        for place in range(1, len(line)):
            places[row, place] = places[row, place - 1] + 1 if line[place] == line[place - 1] else 0
    return places


def dense_mask(groups, places, distance, count):
    """bool [B, L, L], one pair of tokens at a time."""
    rows, length = groups.shape
    mask = np.zeros((rows, length, length), bool)
    for row in range(rows):
        for query in range(length):
            for key in range(length):
                near = abs(query - key) <= distance
                is_global = min(places[row, query], places[row, key]) < count
                mask[row, query, key] = groups[row, query] == groups[row, key] and (near or is_global)
    return mask


@pytest.mark.parametrize("count", [1, 3])
def test_global_tokens_of_one_text_see_all_and_are_seen_by_all(count):
    seen = visible(jnp.asarray(TOKENS), None)
    found = np.asarray(seen.mask(DISTANCE, count))[:, 0]
    real = (TOKENS > 0).astype(int)
    places = np.broadcast_to(np.arange(TOKENS.shape[1]), TOKENS.shape)
    expected = dense_mask(real, places, DISTANCE, count)
    assert np.array_equal(found[0], expected[0])
    # Queries on padding are never read.
    assert np.array_equal(found[1][real[1] > 0], expected[1][real[1] > 0])
    assert not found[1][:, 5:].any(), "no query sees padding"


@pytest.mark.parametrize("count", [1, 2])
def test_in_packed_rows_every_piece_has_its_own_global_tokens(count):
    seen = visible(jnp.asarray(TOKENS), jnp.asarray(SEGMENTS))
    expected = dense_mask(SEGMENTS, places_of(SEGMENTS), DISTANCE, count)
    assert np.array_equal(np.asarray(seen.mask(DISTANCE, count))[:, 0], expected)


def test_a_far_word_reaches_cls_in_one_layer_and_other_far_words_do_not():
    config = dataclasses.replace(LONG, num_layers=1)
    encoder = NewsEncoder(config)
    params = nn.unbox(jax.jit(encoder.init)(jax.random.key(0), TOKENS))
    encode = jax.jit(lambda tokens: encoder.apply(params, tokens, method="encode"))
    changed = TOKENS.copy()
    changed[0, 8] = 5
    moved = np.abs(np.asarray(encode(TOKENS) - encode(changed)))[0].max(-1) > 0
    assert moved.tolist() == [True, False, False, False, False, False, True, True, True, True]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"local_distance": 0, "global_every": 1}, "global_tokens: got 1 with local_distance = 0"),
        ({"window_length": 6}, "global_tokens: got 1 with window_length = 6"),
        ({"local_distance": 0}, "global_every: got 0 with local_distance = 0"),
    ],
)
def test_options_that_do_not_fit_are_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        dataclasses.replace(LONG, **changes)


def test_transformers_has_no_such_model():
    assert Capability.HUGGING_FACE not in LONG.capabilities
    assert Capability.ATTENTION in LONG.capabilities
    assert Capability.HUGGING_FACE in dataclasses.replace(LONG, global_tokens=0, global_every=2).capabilities

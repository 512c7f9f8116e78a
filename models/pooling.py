"""Vectors of texts from those of tokens, and the weight of a token by its position and its copies.

News articles begin with what matters most, and a name that occurs ten times is less than ten times as informative as
one that occurs once. The two options are a prior on positions, and the sublinear term frequency of TF-IDF (Manning,
Raghavan, Schütze 2008, section 6.4.1); these weights need no training.
"""

from typing import Final

import jax
import jax.numpy as jnp

_NORM_FLOOR: Final = 1e-12


def piece_starts(segment_ids: jax.Array) -> jax.Array:
    """Where a piece of a packed row begins, bool [B, L]; padding counts as a piece."""
    before = jnp.pad(segment_ids[:, :-1], ((0, 0), (1, 0)), constant_values=-1)
    return segment_ids != before


def piece_ends(segment_ids: jax.Array) -> jax.Array:
    """Where a piece of a packed row ends, bool [B, L]; padding counts as a piece."""
    after = jnp.pad(segment_ids[:, 1:], ((0, 0), (0, 1)), constant_values=-1)
    return segment_ids != after


def largest_of_pieces(hidden: jax.Array, segment_ids: jax.Array) -> jax.Array:
    """The largest value of each unit over the tokens of a piece.

    Args:
      hidden: float32 [B, L, H].
      segment_ids: int32 [B, L], from 0 to L, equal along a piece.

    Returns:
      float32 [B, L, H]: at each token the values of its piece.
    """
    count = segment_ids.shape[1] + 1

    def of_row(states: jax.Array, ids: jax.Array) -> jax.Array:
        return jax.ops.segment_max(states, ids, num_segments=count)[ids]

    return jax.vmap(of_row)(hidden, segment_ids)


def term_weights(tokens: jax.Array, segment_ids: jax.Array, *, lead_length: int, sublinear: bool) -> jax.Array:
    """The weight of every token by its place in its text and by its copies there.

    Args:
      tokens: int32 [B, L].
      segment_ids: int32 [B, L], which text of its row a token belongs to; equal along a text.
      lead_length: a token at position p counts 1 / (1 + p / lead_length); 0: 1 everywhere.
      sublinear: the copies of a piece, that count s together, count ln(1 + s) together.

    Returns:
      float32 [B, L], positive.
    """
    weights = jnp.ones(tokens.shape, jnp.float32)
    if lead_length:
        places = jnp.arange(tokens.shape[1])
        positions = places - jax.lax.cummax(jnp.where(piece_starts(segment_ids), places, 0), axis=1)
        weights = 1.0 / (1.0 + positions / lead_length)
    if not sublinear:
        return weights
    are_copies = (tokens[:, :, None] == tokens[:, None, :]) & (segment_ids[:, :, None] == segment_ids[:, None, :])
    total = jnp.sum(jnp.where(are_copies, weights[:, None, :], 0.0), axis=-1)
    return weights * jnp.log1p(total) / total


def mean_of_tokens(states: jax.Array, is_token: jax.Array) -> jax.Array:
    """The mean over the tokens of each row: [B, L, H] -> float32 [B, H]; 0 without tokens."""
    real = is_token[..., None].astype(jnp.float32)
    return jnp.sum(states.astype(jnp.float32) * real, axis=1) / jnp.maximum(jnp.sum(real, axis=1), 1.0)


def largest_of_tokens(states: jax.Array, is_token: jax.Array) -> jax.Array:
    """The largest value of each unit over the tokens of each row: [B, L, H] -> float32 [B, H]; 0 without tokens."""
    real = is_token[..., None]
    largest = jnp.max(states.astype(jnp.float32), axis=1, where=real, initial=-jnp.inf)
    return jnp.where(jnp.any(real, axis=1), largest, 0.0)


def of_unit_length(vectors: jax.Array) -> jax.Array:
    """Vectors [..., D] scaled to length 1, float32; zeros stay zeros, with gradient 0."""
    vectors = vectors.astype(jnp.float32)
    squares = jnp.sum(vectors**2, axis=-1, keepdims=True)
    # The root of 0 has no finite gradient, and a tiny floor would multiply by 1e36 on the way back.
    is_long = squares > _NORM_FLOOR**2
    return jnp.where(is_long, vectors * jax.lax.rsqrt(jnp.where(is_long, squares, 1.0)), 0.0)

"""Whole-word masking for masked and translation language modelling (paper, section 3.1), drawn on the device.

Shapes use B rows, L tokens and K gathered positions. Everything is static in shape, so one compilation serves every
batch.
"""

import math
from typing import NamedTuple

import jax
import jax.numpy as jnp

MASKING_RATE = 0.15
_SLACK_POSITIONS = 4  # room for the last word of a row to end beyond the rate
_MASK_SHARE = 0.8  # of the chosen tokens become [MASK] …
_RANDOM_SHARE = 0.1  # … become a random piece, and the rest stay


class MaskedBatch(NamedTuple):
    """Corrupted tokens and what to predict.

    Attributes:
      tokens: int32 [B, L], the input with some tokens replaced.
      positions: int32 [B, K], columns to predict, ascending; arbitrary where `weights` is 0.
      targets: int32 [B, K], the original tokens there.
      weights: float32 [B, K], 1 for a position to predict, 0 for filling.
    """

    tokens: jax.Array
    positions: jax.Array
    targets: jax.Array
    weights: jax.Array


def masked_position_count(length: int, rate: float = MASKING_RATE) -> int:
    """K for rows of `length` tokens: the rate plus a few for the last word, rounded up to 8, at most the row.

    >>> masked_position_count(128), masked_position_count(512)
    (24, 88)
    """
    wanted = math.ceil(rate * length) + _SLACK_POSITIONS
    return min(length, -(-wanted // 8) * 8)


def whole_word_ids(tokens: jax.Array, is_word: jax.Array, continuations: jax.Array) -> jax.Array:
    """Numbers the words of rows that carry no word ids.

    A word begins at every piece that does not go on inside one, and at the first piece of a text: byte-level pieces
    mark the space before a word, which the first word lacks.

    Args:
      tokens: int32 [B, L].
      is_word: bool [B, L], False on special tokens and padding.
      continuations: bool [V], True for pieces that go on inside a word ("##ing").

    Returns:
      int32 [B, L], 1-based, 0 where there is no word; the `word_ids` of `choose_whole_words`.
    """
    follows = jnp.pad(is_word[..., :-1], [(0, 0)] * (is_word.ndim - 1) + [(1, 0)])
    begins = is_word & (~continuations[tokens] | ~follows)
    return jnp.where(is_word, jnp.cumsum(begins, axis=-1), 0).astype(jnp.int32)


def choose_whole_words(key: jax.Array, word_ids: jax.Array, rate: float, capacity: int) -> jax.Array:
    """Chooses words in random order until `rate` of a row's word tokens are chosen, always all tokens of a word.

    The word on the border is taken with the probability that makes the expected number of chosen tokens exactly
    rate x tokens. A word that would not fit into `capacity` is left out.

    Args:
      key: PRNG key.
      word_ids: int32 [B, L], 1-based number of the word in the row (at most L words), 0 on tokens never to be chosen.
      rate: share of tokens, in (0, 1).
      capacity: most tokens chosen in a row.

    Returns:
      bool [B, L].
    """
    rows, length = word_ids.shape
    order_key, border_key = jax.random.split(key)
    row_index = jnp.arange(rows)[:, None]
    eligible = (word_ids > 0).astype(jnp.int32)
    sizes = jnp.zeros((rows, length + 1), jnp.int32).at[row_index, word_ids].add(eligible)
    # argsort gives a true permutation even where two draws are equal, so no two words can interleave.
    order = jnp.argsort(jax.random.uniform(order_key, sizes.shape))
    ends = (
        jnp.zeros_like(sizes).at[row_index, order].set(jnp.cumsum(jnp.take_along_axis(sizes, order, axis=-1), axis=-1))
    )
    budget = rate * jnp.sum(eligible, axis=-1, keepdims=True)
    inside = (budget - (ends - sizes)) / jnp.maximum(
        sizes, 1
    )  # >= 1 inside the budget, <= 0 beyond, between on the border
    chosen = (jax.random.uniform(border_key, (rows, 1)) < inside) & (ends <= capacity)
    return jnp.take_along_axis(chosen, word_ids, axis=-1) & (word_ids > 0)


def mask_whole_words(
    key: jax.Array,
    tokens: jax.Array,
    word_ids: jax.Array,
    *,
    vocab_size: int,
    mask_id: int,
    first_piece_id: int,
    rate: float = MASKING_RATE,
) -> MaskedBatch:
    """Draws a masked language model problem: of the chosen tokens 80 % become [MASK], 10 % a random piece, 10 % stay.

    Args:
      key: PRNG key of this step.
      tokens: int32 [B, L].
      word_ids: int32 [B, L], see `choose_whole_words`.
      vocab_size: random pieces are drawn below this id.
      mask_id: id of [MASK].
      first_piece_id: random pieces are drawn from this id on, so that no special token is drawn.
      rate: share of word tokens to predict.

    Returns:
      A `MaskedBatch` with K = `masked_position_count(L, rate)`.
    """
    choice_key, kind_key, piece_key = jax.random.split(key, 3)
    count = masked_position_count(tokens.shape[-1], rate)
    chosen = choose_whole_words(choice_key, word_ids, rate, count)
    positions = jnp.argsort(~chosen, stable=True)[:, :count].astype(jnp.int32)
    weights = jnp.take_along_axis(chosen, positions, axis=-1).astype(jnp.float32)
    targets = jnp.take_along_axis(tokens, positions, axis=-1)
    kind = jax.random.uniform(kind_key, positions.shape)
    pieces = jax.random.randint(piece_key, positions.shape, first_piece_id, vocab_size, jnp.int32)
    replacement = jnp.where(kind < _MASK_SHARE, mask_id, jnp.where(kind < _MASK_SHARE + _RANDOM_SHARE, pieces, targets))
    replacement = jnp.where(weights > 0, replacement, targets).astype(tokens.dtype)
    corrupted = tokens.at[jnp.arange(tokens.shape[0])[:, None], positions].set(replacement)
    return MaskedBatch(corrupted, positions, targets, weights)

"""Texts as sets of words: binary vectors over the vocabulary, made from token ids a chunk of the vocabulary at a time.

Shapes use N texts, L tokens, V words and D units. Special tokens ([PAD], [UNK], [CLS], …) are not words.
"""

from collections.abc import Callable
from typing import Any, Final

import jax
import jax.numpy as jnp

FIRST_WORD: Final = 5  # ids below are those of the special tokens, see `formats.vocabulary.SPECIAL_TOKENS`
_PAD_ID: Final = 0


def distinct_words(tokens: jax.Array) -> jax.Array:
    """The words of each text once: int32 [N, L], ascending after the zeros that fill a row.

    Args:
      tokens: int32 [N, L]; special tokens are dropped.
    """
    ordered = jnp.sort(jnp.where(tokens < FIRST_WORD, _PAD_ID, tokens), axis=-1)
    is_repeated = jnp.concatenate([jnp.zeros_like(ordered[:, :1], bool), ordered[:, 1:] == ordered[:, :-1]], axis=-1)
    return jnp.where(is_repeated, _PAD_ID, ordered)


def binary_vectors(words: jax.Array, start: jax.Array | int, size: int) -> jax.Array:
    """Which of the words start, …, start + size - 1 each text has: float32 [N, size] of 0 and 1.

    Args:
      words: int32 [N, L]; repeated words count once, special tokens not at all.
      start: id of the first word.
      size: number of words.
    """
    places = words - start
    outside = (words < FIRST_WORD) | (places < 0)  # a negative place would count from the end
    places = jnp.where(outside, size, places)
    return jax.vmap(lambda row: jnp.zeros(size, jnp.float32).at[row].set(1.0, mode="drop"))(places)


def sum_of_words(words: jax.Array, table: jax.Array, *, chunk: int) -> jax.Array:
    """The sum of the vectors of each text's words, x @ table: float32 [N, D].

    Args:
      words: int32 [N, L], see `binary_vectors`.
      table: float32 [V, D].
      chunk: words whose binary vectors exist at a time.
    """

    def part(start: jax.Array | int, size: int) -> jax.Array:
        return binary_vectors(words, start, size) @ jax.lax.dynamic_slice_in_dim(table, start, size)

    empty = jnp.zeros((words.shape[0], table.shape[1]), jnp.float32)
    return _sum_over_chunks(part, empty, table.shape[0], chunk)


def reconstruction_loss(
    hidden: jax.Array, words: jax.Array, table: jax.Array, bias: jax.Array, *, chunk: int
) -> jax.Array:
    """The cross entropy of each text's binary vector x and its reconstruction y, summed over the words: float32 [N].

    y = sigmoid(z) with the logits z = hidden @ table.T + bias, and -x log y - (1 - x) log(1 - y) = softplus(z) - x z
    (Vincent et al. 2008, "Extracting and Composing Robust Features with Denoising Autoencoders", equation 2). Logits
    and binary vectors exist for one chunk of the vocabulary; the backward pass computes them again.

    Args:
      hidden: float32 [N, D].
      words: int32 [N, L], see `binary_vectors`.
      table: float32 [V, D].
      bias: float32 [V].
      chunk: words at a time.
    """

    def part(start: jax.Array | int, size: int) -> jax.Array:
        rows = jax.lax.dynamic_slice_in_dim(table, start, size)
        logits = hidden @ rows.T + jax.lax.dynamic_slice_in_dim(bias, start, size)
        losses = jax.nn.softplus(logits) - binary_vectors(words, start, size) * logits
        return jnp.sum(jnp.where(start + jnp.arange(size) < FIRST_WORD, 0.0, losses), axis=-1)

    return _sum_over_chunks(part, jnp.zeros(hidden.shape[0], jnp.float32), table.shape[0], chunk)


def _sum_over_chunks(part: Callable[[Any, int], jax.Array], empty: jax.Array, size: int, chunk: int) -> jax.Array:
    """The sum of `part(start, size)` over chunks of the vocabulary; the whole of it at once where the chunk allows."""
    if chunk >= size:
        return part(0, size)
    whole = size // chunk
    # Inside a loop the compiler cannot merge the second computation with the first, so it need not be prevented.
    one_chunk = jax.checkpoint(lambda start: part(start, chunk), prevent_cse=False)
    total, _ = jax.lax.scan(lambda so_far, start: (so_far + one_chunk(start), None), empty, jnp.arange(whole) * chunk)
    rest = size - whole * chunk
    return total + part(whole * chunk, rest) if rest else total

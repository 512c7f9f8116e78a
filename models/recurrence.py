"""Recurrent layers over rows, with padding left out, as loops whose input products are taken before them.

flax's cells multiply the inputs inside the loop; one product over all tokens is faster, and the arrays here carry
logical axes. The gates of the LSTM are those of flax's ``OptimizedLSTMCell``: input, forget, cell, output, in this
order; those of the GRU are those of flax's ``GRUCell``: reset, update, candidate, with the reset after the product.

Shapes: B rows, L tokens, I input units, H hidden units.
"""

from typing import Any, ClassVar, NamedTuple

import flax.linen as nn
import jax
import jax.numpy as jnp

from .blocks import logical
from .multi_head import linear


class Memory(NamedTuple):
    """The state of a long short-term memory: output and cell, float32 [B, H] both; a pytree."""

    output: jax.Array
    cell: jax.Array


def lstm_step(memory: Memory, gates: jax.Array) -> Memory:
    """The next state from the sums [B, 4 H] before the gates' activations."""
    enter, forget, candidate, leave = jnp.split(gates.astype(jnp.float32), 4, axis=-1)
    cell = jax.nn.sigmoid(forget) * memory.cell + jax.nn.sigmoid(enter) * jnp.tanh(candidate)
    return Memory(jax.nn.sigmoid(leave) * jnp.tanh(cell), cell)


def gru_step(state: jax.Array, inputs: jax.Array, products: jax.Array, bias: jax.Array) -> jax.Array:
    """The next state of a gated recurrent unit, float32 [B, H]: u h + (1 - u) tanh(i_c + r (p_c + bias)).

    With r = sigmoid(i_r + p_r) and u = sigmoid(i_u + p_u), as flax's ``GRUCell``. The thesis of NTDV weighs the
    candidate by u and the state by 1 - u, which is the same class of functions with the sign of u's arguments changed.

    Args:
      state: h, float32 [B, H].
      inputs: [B, 3 H], what the inputs add to reset, update and candidate.
      products: [B, 3 H], what the state adds.
      bias: [H], of the candidate's product.
    """
    of_reset, of_update, of_candidate = jnp.split(inputs.astype(jnp.float32), 3, axis=-1)
    reset, update, candidate = jnp.split(products.astype(jnp.float32), 3, axis=-1)
    update = jax.nn.sigmoid(of_update + update)
    return update * state + (1 - update) * jnp.tanh(
        of_candidate + jax.nn.sigmoid(of_reset + reset) * (candidate + bias)
    )


def recurrent_kernel(module: nn.Module, name: str, size: int, gates: int = 4) -> jax.Array:
    """The kernel [H, gates H] from a state to the gates, of orthogonal blocks."""

    def blocks(key: jax.Array, shape: tuple[int, int], dtype: Any) -> jax.Array:
        keys = jax.random.split(key, gates)
        one = nn.initializers.orthogonal()
        return jnp.concatenate([one(own, (shape[0], shape[1] // gates), dtype) for own in keys], axis=1)

    kernel: jax.Array = module.param(name, logical(blocks, "embed", "mlp"), (size, gates * size), jnp.float32)
    return kernel


def candidate_bias(module: nn.Module, size: int) -> jax.Array:
    """The bias [H] of a GRU's candidate, inside its reset."""
    bias: jax.Array = module.param("candidate_bias", logical(nn.initializers.zeros, "mlp"), (size,), jnp.float32)
    return bias


class Lstm(nn.Module):
    """One direction over rows.

    Attributes:
      size: H.
      backward: from the last token to the first.
      dtype: of the products.
    """

    size: int
    backward: bool
    dtype: Any

    @nn.compact
    def __call__(self, inputs: jax.Array, is_token: jax.Array) -> jax.Array:
        """[B, L, I] and bool [B, L], False on padding behind the tokens -> [B, L, H]; arbitrary on padding.

        Padding changes no state, so that the backward direction starts at the last token of each row.
        """
        kernel = recurrent_kernel(self, "recurrent", self.size).astype(self.dtype)
        gates = linear(4 * self.size, ("embed", "mlp"), self.dtype, "inputs")(inputs)
        start = jnp.zeros((inputs.shape[0], self.size), jnp.float32)

        def step(memory: Memory, now: tuple[jax.Array, jax.Array]) -> tuple[Memory, jax.Array]:
            own, is_real = now
            new = lstm_step(memory, own + memory.output.astype(self.dtype) @ kernel)
            kept = Memory(*(jnp.where(is_real[:, None], *pair) for pair in zip(new, memory, strict=True)))
            return kept, kept.output.astype(self.dtype)

        times = (jnp.swapaxes(gates, 0, 1), jnp.swapaxes(is_token, 0, 1))
        _, outputs = jax.lax.scan(step, Memory(start, start), times, reverse=self.backward)
        return jnp.swapaxes(outputs, 0, 1)


class Gru(nn.Module):
    """One direction over rows, as `Lstm`.

    Attributes:
      size: H.
      backward: from the last token to the first.
      dtype: of the products.
    """

    size: int
    backward: bool
    dtype: Any

    @nn.compact
    def __call__(self, inputs: jax.Array, is_token: jax.Array) -> jax.Array:
        """[B, L, I] and bool [B, L], False on padding behind the tokens -> [B, L, H]; arbitrary on padding."""
        kernel = recurrent_kernel(self, "recurrent", self.size, gates=3).astype(self.dtype)
        bias = candidate_bias(self, self.size)
        gates = linear(3 * self.size, ("embed", "mlp"), self.dtype, "inputs")(inputs)
        start = jnp.zeros((inputs.shape[0], self.size), jnp.float32)

        def step(state: jax.Array, now: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
            own, is_real = now
            new = gru_step(state, own, state.astype(self.dtype) @ kernel, bias)
            kept = jnp.where(is_real[:, None], new, state)
            return kept, kept.astype(self.dtype)

        times = (jnp.swapaxes(gates, 0, 1), jnp.swapaxes(is_token, 0, 1))
        _, outputs = jax.lax.scan(step, start, times, reverse=self.backward)
        return jnp.swapaxes(outputs, 0, 1)


class BiLstm(nn.Module):
    """Both directions over rows, side by side.

    Attributes:
      size: of each direction, H.
      dtype: of the products.
    """

    cell: ClassVar[type[Lstm] | type[Gru]] = Lstm

    size: int
    dtype: Any

    @nn.compact
    def __call__(self, inputs: jax.Array, is_token: jax.Array) -> jax.Array:
        """[B, L, I] and bool [B, L] -> [B, L, 2 H]; arbitrary on padding."""
        directions = [
            self.cell(self.size, backward, self.dtype, name=name)(inputs, is_token)
            for name, backward in (("forward", False), ("backward", True))
        ]
        return jnp.concatenate(directions, axis=-1)


class BiGru(BiLstm):
    """The same of gated recurrent units."""

    cell: ClassVar[type[Lstm] | type[Gru]] = Gru


def mean_of_tokens(states: jax.Array, is_token: jax.Array) -> jax.Array:
    """The mean over the tokens of each row: [B, L, H] -> float32 [B, H]; 0 without tokens."""
    real = is_token[..., None].astype(jnp.float32)
    return jnp.sum(states.astype(jnp.float32) * real, axis=1) / jnp.maximum(jnp.sum(real, axis=1), 1.0)


def largest_of_tokens(states: jax.Array, is_token: jax.Array) -> jax.Array:
    """The largest value of each unit over the tokens of each row: [B, L, H] -> float32 [B, H]; 0 without tokens."""
    real = is_token[..., None]
    largest = jnp.max(states.astype(jnp.float32), axis=1, where=real, initial=-jnp.inf)
    return jnp.where(jnp.any(real, axis=1), largest, 0.0)

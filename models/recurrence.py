"""Recurrent layers over rows, with padding left out, as loops whose input products are taken before them.

flax's cells multiply the inputs inside the loop; one product over all tokens is faster, and the arrays here carry
logical axes. The gates of the LSTM are those of flax's ``OptimizedLSTMCell``: input, forget, cell, output, in this
order; those of the GRU are those of flax's ``GRUCell``: reset, update, candidate, with the reset after the product.

Shapes: B rows, L tokens, I input units, H hidden units.
"""

from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple

import flax.linen as nn
import jax
import jax.numpy as jnp

from .blocks import parameter
from .decoder import linear


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

    return parameter(module, name, blocks, (size, gates * size), "embed", "mlp")


class Recurrent(nn.Module):
    """One layer of a cell over rows, in one direction; subclasses are the cells.

    Attributes:
      size: H.
      dtype: of the products.
    """

    gates: ClassVar[int]

    size: int
    dtype: Any

    @nn.compact
    def __call__(self, inputs: jax.Array, is_token: jax.Array, *, backward: bool = False) -> jax.Array:
        """[B, L, I] and bool [B, L], False on padding behind the tokens -> [B, L, H]; arbitrary on padding.

        Padding changes no state, so that the backward direction starts at the last token of each row.

        Args:
          inputs: [B, L, I].
          is_token: bool [B, L].
          backward: from the last token to the first.
        """
        kernel = recurrent_kernel(self, "recurrent", self.size, self.gates).astype(self.dtype)
        move = self.step()
        gates = linear(self.gates * self.size, ("embed", "mlp"), self.dtype, "inputs")(inputs)
        start = Memory(*[jnp.zeros((inputs.shape[0], self.size), jnp.float32)] * 2)

        def step(memory: Memory, now: tuple[jax.Array, jax.Array]) -> tuple[Memory, jax.Array]:
            own, is_real = now
            new = move(memory, own, memory.output.astype(self.dtype) @ kernel)
            kept = Memory(*(jnp.where(is_real[:, None], *pair) for pair in zip(new, memory, strict=True)))
            return kept, kept.output.astype(self.dtype)

        times = (jnp.swapaxes(gates, 0, 1), jnp.swapaxes(is_token, 0, 1))
        _, outputs = jax.lax.scan(step, start, times, reverse=backward)
        return jnp.swapaxes(outputs, 0, 1)

    def step(self) -> Callable[[Memory, jax.Array, jax.Array], Memory]:
        """The next state from a state, what the inputs and what the state before add to the gates."""
        raise NotImplementedError


class Lstm(Recurrent):
    """Long short-term memory."""

    gates: ClassVar[int] = 4

    @nn.nowrap
    def step(self) -> Callable[[Memory, jax.Array, jax.Array], Memory]:
        """The next state, see `lstm_step`."""
        return lambda memory, inputs, products: lstm_step(memory, inputs + products)


class Gru(Recurrent):
    """Gated recurrent units."""

    gates: ClassVar[int] = 3

    @nn.nowrap
    def step(self) -> Callable[[Memory, jax.Array, jax.Array], Memory]:
        """The next state, see `gru_step`."""
        bias = parameter(self, "candidate_bias", nn.initializers.zeros, (self.size,), "mlp")
        return lambda memory, inputs, products: Memory(gru_step(memory.output, inputs, products, bias), memory.cell)


class Bidirectional(nn.Module):
    """Both directions over rows, side by side.

    Attributes:
      cell: the class of each direction, `Lstm` or `Gru`.
      size: of each direction, H.
      dtype: of the products.
    """

    cell: type[Recurrent]
    size: int
    dtype: Any

    @nn.compact
    def __call__(self, inputs: jax.Array, is_token: jax.Array) -> jax.Array:
        """[B, L, I] and bool [B, L] -> [B, L, 2 H]; arbitrary on padding."""
        names = ("forward", "backward")
        cells = [self.cell(self.size, self.dtype, name=name) for name in names]
        directions = [cell(inputs, is_token, backward=cell.name == names[1]) for cell in cells]
        return jnp.concatenate(directions, axis=-1)

"""Correspondences between arrays of `transformers` and of a `NewsEncoder`, from which each family makes its list."""

import dataclasses
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ..transformer import TransformerConfig

Array = npt.NDArray[Any]


@dataclasses.dataclass(frozen=True)
class Entry:
    """Arrays of ours and theirs that hold the same numbers.

    Attributes:
      ours: paths, joined with dots.
      theirs: names without the model's prefix.
      shapes: of theirs.
      read: theirs to ours.
      write: ours to theirs.
    """

    ours: tuple[str, ...]
    theirs: tuple[str, ...]
    shapes: tuple[tuple[int, ...], ...]
    read: Callable[..., tuple[Array, ...]]
    write: Callable[..., tuple[Array, ...]]


class LayerNames(NamedTuple):
    """The names of the linear layers and norms of a layer, without the name of the layer.

    Attributes:
      query: and `key` and `value`: the inputs of the attention.
      key: see `query`.
      value: see `query`.
      attention_out: on the attention's result.
      attention_norm: around the attention.
      mlp_in: into the feed-forward layer.
      mlp_out: out of it.
      mlp_norm: around it.
    """

    query: str
    key: str
    value: str
    attention_out: str
    attention_norm: str
    mlp_in: str
    mlp_out: str
    mlp_norm: str


def layers(config: TransformerConfig, prefix: str, names: LayerNames) -> Iterator[Entry]:
    """All layers of an encoder with a dense feed-forward layer and biases; ``{prefix}.{layer}`` is a layer's name."""
    hidden = config.hidden_size
    for layer in range(config.num_layers):
        ours, theirs = f"layers_{layer}", LayerNames(*(f"{prefix}.{layer}.{name}" for name in names))
        yield from query_key_value(config, f"{ours}.attention", (theirs.query, theirs.key, theirs.value))
        yield from attention_output(config, f"{ours}.attention", theirs.attention_out)
        yield from norm(f"{ours}.attention_norm", theirs.attention_norm, hidden)
        yield from linear(f"{ours}.mlp_in", theirs.mlp_in, hidden, config.mlp_size)
        yield from linear(f"{ours}.mlp_out", theirs.mlp_out, config.mlp_size, hidden)
        yield from norm(f"{ours}.mlp_norm", theirs.mlp_norm, hidden)


def masked_lm_head(config: TransformerConfig, dense: str, last_norm: str) -> Iterator[Entry]:
    """Transform and norm before the tied table."""
    hidden = config.hidden_size
    yield from linear("mlm_transform", dense, hidden, hidden, biases=config.biases)
    yield from norm("mlm_norm", last_norm, hidden, biases=config.biases)


def positions(config: TransformerConfig, *, offset: int = 0, types: int = 0) -> Entry:
    """Learned positions; row 0 of the token types is added to each, for texts of one type only.

    Args:
      config: the encoder's.
      offset: rows of their position table before that of the first token.
      types: rows of their table of token types; 0 without one.
    """
    hidden = config.hidden_size
    names = ["embeddings.position_embeddings.weight", "embeddings.token_type_embeddings.weight"]
    shapes = [(config.max_length + offset, hidden), (types, hidden)]

    def read(*arrays: Array) -> tuple[Array, ...]:
        rows = arrays[0][offset:]
        return (rows + arrays[1][0] if types else rows,)

    def write(array: Array) -> tuple[Array, ...]:
        rows = np.pad(array, ((offset, 0), (0, 0)))
        return (rows, np.zeros((types, hidden), np.float32)) if types else (rows,)

    kept = 2 if types else 1
    return Entry(("position_embedding",), tuple(names[:kept]), tuple(shapes[:kept]), read, write)


def same(ours: str, theirs: str, shape: tuple[int, ...]) -> Entry:
    """An array that is the same in both."""
    return Entry((ours,), (theirs,), (shape,), lambda array: (array,), lambda array: (array,))


def linear(ours: str, theirs: str, inputs: int, outputs: int, *, biases: bool = True) -> Iterator[Entry]:
    """A linear layer: [out, in] there, [in, out] here."""
    yield Entry(
        (f"{ours}.kernel",),
        (f"{theirs}.weight",),
        ((outputs, inputs),),
        lambda array: (array.T,),
        lambda array: (array.T,),
    )
    if biases:
        yield same(f"{ours}.bias", f"{theirs}.bias", (outputs,))


def norm(ours: str, theirs: str, size: int, *, biases: bool = True) -> Iterator[Entry]:
    """A layer norm: weight and bias there, scale and bias here."""
    yield same(f"{ours}.scale", f"{theirs}.weight", (size,))
    if biases:
        yield same(f"{ours}.bias", f"{theirs}.bias", (size,))


def query_key_value(config: TransformerConfig, ours: str, theirs: tuple[str, ...]) -> Iterator[Entry]:
    """Ours is one kernel [H, 3, N, d]; theirs three of [H, H], or one of [3 H, H]."""
    hidden, inner = config.hidden_size, (3, config.num_heads, config.head_size)
    rows = 3 * hidden // len(theirs)

    def read(*arrays: Array) -> tuple[Array, ...]:
        return (np.concatenate(arrays).T.reshape(hidden, *inner),)

    def write(array: Array) -> tuple[Array, ...]:
        return tuple(np.split(array.reshape(hidden, 3 * hidden).T, len(theirs)))

    weights = tuple(f"{name}.weight" for name in theirs)
    yield Entry((f"{ours}.query_key_value_kernel",), weights, ((rows, hidden),) * len(theirs), read, write)
    if config.biases:
        yield Entry(
            (f"{ours}.query_key_value_bias",),
            tuple(f"{name}.bias" for name in theirs),
            ((rows,),) * len(theirs),
            lambda *arrays: (np.concatenate(arrays).reshape(inner),),
            lambda array: tuple(np.split(array.reshape(-1), len(theirs))),
        )


def attention_output(config: TransformerConfig, ours: str, theirs: str) -> Iterator[Entry]:
    """The linear layer on the attention's result; ours is a kernel [N, d, H]."""
    hidden = config.hidden_size
    yield Entry(
        (f"{ours}.output_kernel",),
        (f"{theirs}.weight",),
        ((hidden, hidden),),
        lambda array: (array.T.reshape(config.num_heads, config.head_size, hidden),),
        lambda array: (array.reshape(hidden, hidden).T,),
    )
    if config.biases:
        yield same(f"{ours}.output_bias", f"{theirs}.bias", (hidden,))


def gated(config: TransformerConfig, ours: str, theirs: str) -> Iterator[Entry]:
    """Theirs holds the activated half and then the linear one; ours are two layers, so that devices can share each."""
    halves = (f"{ours}.mlp_in", f"{ours}.mlp_gate")
    yield Entry(
        tuple(f"{half}.kernel" for half in halves),
        (f"{theirs}.weight",),
        ((2 * config.mlp_size, config.hidden_size),),
        lambda array: tuple(np.split(array.T, 2, axis=1)),
        lambda *arrays: (np.concatenate(arrays, axis=1).T,),
    )
    if config.biases:
        yield Entry(
            tuple(f"{half}.bias" for half in halves),
            (f"{theirs}.bias",),
            ((2 * config.mlp_size,),),
            lambda array: tuple(np.split(array, 2)),
            lambda *arrays: (np.concatenate(arrays),),
        )

"""The correspondence between the arrays of `transformers` and of a `NewsEncoder`, and their layouts."""

import dataclasses
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ..transformer import TransformerConfig
from .configs import TOKEN_TYPES, integer, position_offset

Array = npt.NDArray[Any]

PREFIXES: Final = {
    "bert": "bert.",
    "roberta": "roberta.",
    "xlm-roberta": "roberta.",
    "megatron-bert": "bert.",
    "modernbert": "model.",
}
OUTPUT_BIAS: Final = {
    "bert": ("cls.predictions.bias", "cls.predictions.decoder.bias"),
    "megatron-bert": ("cls.predictions.bias", "cls.predictions.decoder.bias"),
    "roberta": ("lm_head.bias", "lm_head.decoder.bias"),
    "xlm-roberta": ("lm_head.bias", "lm_head.decoder.bias"),
    "modernbert": ("decoder.bias",),
}
TIED_TABLE: Final = {
    "bert": ("cls.predictions.decoder.weight",),
    "megatron-bert": ("cls.predictions.decoder.weight",),
    "roberta": ("lm_head.decoder.weight",),
    "xlm-roberta": ("lm_head.decoder.weight",),
    "modernbert": ("decoder.weight",),
}


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


def masked_lm(model_type: str, config: TransformerConfig) -> Iterator[Entry]:
    """Transform and norm before the tied table."""
    hidden = config.hidden_size
    dense, norm = {
        "bert": ("cls.predictions.transform.dense", "cls.predictions.transform.LayerNorm"),
        "megatron-bert": ("cls.predictions.transform.dense", "cls.predictions.transform.LayerNorm"),
        "modernbert": ("head.dense", "head.norm"),
    }.get(model_type, ("lm_head.dense", "lm_head.layer_norm"))
    yield from _linear("mlm_transform", dense, hidden, hidden, biases=config.biases)
    yield from _norm("mlm_norm", norm, hidden, biases=config.biases)


def body(values: Mapping[str, Any], config: TransformerConfig) -> Iterator[Entry]:
    """Everything but the heads."""
    if values["model_type"] == "modernbert":
        return _modernbert_body(config)
    return _bert_body(values, config)


def _bert_body(values: Mapping[str, Any], config: TransformerConfig) -> Iterator[Entry]:
    hidden, is_pre = config.hidden_size, config.norm == "pre"
    yield _same("token_embedding", "embeddings.word_embeddings.weight", (config.vocab_size, hidden))
    yield _positions(values, config)
    if not is_pre:
        yield from _norm("input_norm", "embeddings.LayerNorm", hidden)
    for layer in range(config.num_layers):
        ours, theirs = f"layers_{layer}", f"encoder.layer.{layer}"
        yield from _query_key_value(
            config, f"{ours}.attention", tuple(f"{theirs}.attention.self.{name}" for name in ("query", "key", "value"))
        )
        yield from _attention_output(config, f"{ours}.attention", f"{theirs}.attention.output.dense")
        yield from _norm(
            f"{ours}.attention_norm", f"{theirs}.attention.{'ln' if is_pre else 'output.LayerNorm'}", hidden
        )
        yield from _linear(f"{ours}.mlp_in", f"{theirs}.intermediate.dense", hidden, config.mlp_size)
        yield from _linear(f"{ours}.mlp_out", f"{theirs}.output.dense", config.mlp_size, hidden)
        yield from _norm(f"{ours}.mlp_norm", f"{theirs}.{'ln' if is_pre else 'output.LayerNorm'}", hidden)
    if is_pre:
        yield from _norm("output_norm", "encoder.ln", hidden)


def _modernbert_body(config: TransformerConfig) -> Iterator[Entry]:
    hidden, biases = config.hidden_size, config.biases
    yield _same("token_embedding", "embeddings.tok_embeddings.weight", (config.vocab_size, hidden))
    yield from _norm("input_norm", "embeddings.norm", hidden, biases=biases)
    for layer in range(config.num_layers):
        ours, theirs = f"layers_{layer}", f"layers.{layer}"
        if config.has_attention_norm(layer):
            yield from _norm(f"{ours}.attention_norm", f"{theirs}.attn_norm", hidden, biases=biases)
        yield from _query_key_value(config, f"{ours}.attention", (f"{theirs}.attn.Wqkv",))
        yield from _attention_output(config, f"{ours}.attention", f"{theirs}.attn.Wo")
        yield from _norm(f"{ours}.mlp_norm", f"{theirs}.mlp_norm", hidden, biases=biases)
        yield from _gated(config, ours, f"{theirs}.mlp.Wi")
        yield from _linear(f"{ours}.mlp_out", f"{theirs}.mlp.Wo", config.mlp_size, hidden, biases=biases)
    yield from _norm("output_norm", "final_norm", hidden, biases=biases)


def _same(ours: str, theirs: str, shape: tuple[int, ...]) -> Entry:
    return Entry((ours,), (theirs,), (shape,), lambda array: (array,), lambda array: (array,))


def _linear(ours: str, theirs: str, inputs: int, outputs: int, *, biases: bool = True) -> Iterator[Entry]:
    yield Entry(
        (f"{ours}.kernel",),
        (f"{theirs}.weight",),
        ((outputs, inputs),),
        lambda array: (array.T,),
        lambda array: (array.T,),
    )
    if biases:
        yield _same(f"{ours}.bias", f"{theirs}.bias", (outputs,))


def _norm(ours: str, theirs: str, size: int, *, biases: bool = True) -> Iterator[Entry]:
    yield _same(f"{ours}.scale", f"{theirs}.weight", (size,))
    if biases:
        yield _same(f"{ours}.bias", f"{theirs}.bias", (size,))


def _query_key_value(config: TransformerConfig, ours: str, theirs: tuple[str, ...]) -> Iterator[Entry]:
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


def _attention_output(config: TransformerConfig, ours: str, theirs: str) -> Iterator[Entry]:
    hidden = config.hidden_size
    yield Entry(
        (f"{ours}.output_kernel",),
        (f"{theirs}.weight",),
        ((hidden, hidden),),
        lambda array: (array.T.reshape(config.num_heads, config.head_size, hidden),),
        lambda array: (array.reshape(hidden, hidden).T,),
    )
    if config.biases:
        yield _same(f"{ours}.output_bias", f"{theirs}.bias", (hidden,))


def _gated(config: TransformerConfig, ours: str, theirs: str) -> Iterator[Entry]:
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


def _positions(values: Mapping[str, Any], config: TransformerConfig) -> Entry:
    offset, hidden = position_offset(values), config.hidden_size
    types = integer(values, "type_vocab_size", TOKEN_TYPES)

    def write(array: Array) -> tuple[Array, ...]:
        return np.pad(array, ((offset, 0), (0, 0))), np.zeros((types, hidden), np.float32)

    return Entry(
        ("position_embedding",),
        ("embeddings.position_embeddings.weight", "embeddings.token_type_embeddings.weight"),
        ((config.max_length + offset, hidden), (types, hidden)),
        lambda positions, kinds: (positions[offset:] + kinds[0],),
        write,
    )

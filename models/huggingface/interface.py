"""The interface of architectures that Hugging Face's `transformers` can hold, and readers of a config.json.

The readers refuse what `NewsEncoder` does not compute.

And the correspondences between arrays of `transformers` and of a `NewsEncoder`, from which each family makes its list.
"""

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from ..transformer import TransformerConfig

_ACTIVATIONS: Final = {"gelu": "gelu", "gelu_python": "gelu", "gelu_new": "gelu_tanh", "gelu_pytorch_tanh": "gelu_tanh"}

# Keys that change neither the hidden states nor the masked-LM logits of a trained model: names, training, generation,
# heads for other tasks, and tokens.
_NEUTRAL: Final = frozenset(
    str.split(
        "_name_or_path architectures dtype model_type newsembed sentence_transformers tokenizer_class torch_dtype "
        "torchscript transformers_version use_bfloat16 use_cache chunk_size_feed_forward gradient_checkpointing "
        "initializer_range _attn_implementation_autoset output_attentions output_hidden_states output_past return_dict "
        "max_length prefix bos_token_id cls_token_id eos_token_id mask_token_id pad_token_id sep_token_id "
        "decoder_start_token_id finetuning_task task_specific_params problem_type classifier_dropout id2label label2id "
        "num_labels"
    )
)
# Keys of every model, with the only value that an encoder has.
_FIXED: Final[Mapping[str, Any]] = {
    "is_decoder": False,
    "is_encoder_decoder": False,
    "add_cross_attention": False,
    "tie_word_embeddings": True,
    "pruned_heads": {},
}


class ExportedModel(NamedTuple):
    """A model as `transformers` and sentence-transformers hold it.

    Attributes:
      values: of config.json.
      arrays: by name.
      modules: the attributes of `formats.huggingface.SentenceModules`, without those that have their default.
      hidden_size: H.
      token_ids: int64 [V], the id that each of our tokens has in this model.
    """

    values: dict[str, Any]
    arrays: dict[str, Any]
    modules: dict[str, Any]
    hidden_size: int
    token_ids: npt.NDArray[np.int64]


class UnsupportedModelError(ValueError):
    """A model of `transformers` that the architecture cannot compute, or the reverse.

    Args:
      field: the key of config.json or of the configuration, or the array.
      problem: as "got X, expected Y".
    """

    def __init__(self, field: str, problem: str) -> None:
        super().__init__(f"{field}: {problem}")
        self.field = field
        self.problem = problem


class UnsupportedArrayError(UnsupportedModelError):
    """An array that is missing, has another shape, or is unknown."""


def check_keys(values: Mapping[str, Any], known: Iterable[str]) -> None:
    """Refuses keys that say something about the model which nothing here reads.

    Args:
      values: of config.json.
      known: the keys that the family reads, or that change nothing in its models.

    Raises:
      UnsupportedModelError: naming the first key that is not known, or has a value that no encoder here computes.
    """
    for name, expected in _FIXED.items():
        only(values, name, expected, default=expected)
    allowed = _NEUTRAL | set(_FIXED) | set(known)
    unknown = sorted(name for name, value in values.items() if name not in allowed and value is not None)
    if unknown:
        problem = f"got {values[unknown[0]]!r}; newsembed does not know this key and ignores none"
        raise UnsupportedModelError(unknown[0], problem)


def integer(values: Mapping[str, Any], name: str, default: int | None = None) -> int:
    """An integer of config.json.

    Raises:
      UnsupportedModelError: if it is missing without a default, or another type.
    """
    value = values.get(name, default)
    if not isinstance(value, int) or isinstance(value, bool):
        raise UnsupportedModelError(name, f"got {value!r}, expected an integer")
    return value


def number(values: Mapping[str, Any], name: str, default: float) -> float:
    """A number of config.json.

    Raises:
      UnsupportedModelError: if it is another type.
    """
    value = values.get(name, default)
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise UnsupportedModelError(name, f"got {value!r}, expected a number")
    return float(value)


def only(values: Mapping[str, Any], name: str, expected: Any, *, default: Any) -> None:
    """Refuses every value but one.

    Raises:
      UnsupportedModelError: for another value.
    """
    if values.get(name, default) != expected:
        raise UnsupportedModelError(
            name, f"got {values[name]!r}, expected {expected!r}; NewsEncoder computes nothing else"
        )


def activation(values: Mapping[str, Any], name: str) -> str:
    """The value of ``TransformerConfig.activation``.

    Raises:
      UnsupportedModelError: for another function than GELU.
    """
    value = values.get(name, "gelu")
    if value not in list(_ACTIVATIONS):  # it may be a list or an object
        raise UnsupportedModelError(name, f"got {value!r}, expected one of {', '.join(_ACTIVATIONS)}")
    return _ACTIVATIONS[value]


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

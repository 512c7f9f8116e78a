"""The interface of architectures that Hugging Face's `transformers` can hold, and readers of a config.json.

The readers refuse what `NewsEncoder` does not compute.
"""

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from ..architecture import Architecture

_ACTIVATIONS: Final = {"gelu": "gelu", "gelu_python": "gelu", "gelu_new": "gelu_tanh", "gelu_pytorch_tanh": "gelu_tanh"}

# Keys that change neither the hidden states nor the masked-LM logits of a trained model: names, training, generation,
# heads for other tasks, and tokens.
_NEUTRAL: Final = frozenset(
    {
        *("_name_or_path", "architectures", "dtype", "model_type", "newsembed", "sentence_transformers"),
        *("tokenizer_class", "torch_dtype", "torchscript", "transformers_version", "use_bfloat16", "use_cache"),
        *("chunk_size_feed_forward", "gradient_checkpointing", "initializer_range", "_attn_implementation_autoset"),
        *("output_attentions", "output_hidden_states", "output_past", "return_dict", "max_length", "prefix"),
        *("bos_token_id", "cls_token_id", "eos_token_id", "mask_token_id", "pad_token_id", "sep_token_id"),
        *("decoder_start_token_id", "finetuning_task", "task_specific_params", "problem_type"),
        *("classifier_dropout", "id2label", "label2id", "num_labels"),
    }
)
# Keys of every model, with the only value that an encoder has.
_FIXED: Final[Mapping[str, Any]] = {
    "is_decoder": False,
    "is_encoder_decoder": False,
    "add_cross_attention": False,
    "tie_word_embeddings": True,
    "pruned_heads": {},
}


class ImportedModel(NamedTuple):
    """A model read from the values and arrays of `transformers`.

    Attributes:
      config: its architecture.
      params: nested dict of float32 arrays, tokens in the source's order. Heads that the source lacks are missing.
      plain_heads: all heads, to replace missing ones: they return the pooled vector, or 0.
      ignored: names of arrays that have no place in the architecture.
    """

    config: "HuggingFaceArchitecture"
    params: dict[str, Any]
    plain_heads: dict[str, Any]
    ignored: tuple[str, ...]


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


class HuggingFaceArchitecture(Architecture):
    """An architecture with `Capability.HUGGING_FACE`.

    Attributes:
      head_options: fields that may differ between a Hugging Face folder and the run that starts from it.
    """

    head_options: ClassVar[tuple[str, ...]]

    @classmethod
    def from_huggingface(
        cls,
        values: Mapping[str, Any],
        arrays: Mapping[str, Any],
        modules: Any,
        *,
        num_topics: int,
        max_length: int | None = None,
    ) -> ImportedModel:
        """Reads a model.

        Args:
          values: of config.json.
          arrays: by name.
          modules: of sentence-transformers.
          num_topics: T.
          max_length: fewer positions than the source has; None keeps them all.

        Raises:
          UnsupportedModelError: if the architecture does not compute that model, or an array does not fit.
        """
        raise NotImplementedError

    def to_huggingface(
        self, params: Mapping[str, Any], token_ids: npt.NDArray[np.int64] | None = None
    ) -> ExportedModel:
        """The model without its topic and masked-LM heads.

        Args:
          params: nested, tokens in our order.
          token_ids: int64 [V], the id to give to each of our tokens; None: its own or, where the class of
            `transformers` has its padding token elsewhere, the nearest order.

        Raises:
          UnsupportedModelError: if no class computes it with these tokens.
        """
        raise NotImplementedError


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

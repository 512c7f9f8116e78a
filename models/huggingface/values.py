"""The values of a config.json: readers that refuse what `NewsEncoder` does not compute."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from .interface import UnsupportedModelError

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
    if value not in _ACTIVATIONS:
        raise UnsupportedModelError(name, f"got {value!r}, expected one of {', '.join(_ACTIVATIONS)}")
    return _ACTIVATIONS[value]

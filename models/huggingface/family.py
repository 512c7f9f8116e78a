"""`Family`: how `transformers` keeps the models of one ``model_type``."""

import dataclasses
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, NamedTuple

from ..transformer import TransformerConfig
from .interface import UnsupportedModelError
from .layouts import Entry

Values = Mapping[str, Any]


class SpecialIds(NamedTuple):
    """The ids of the special tokens in an exported model, in the order of `formats.vocabulary.SPECIAL_TOKENS`."""

    pad: int = 0
    unknown: int = 1
    opening: int = 2
    closing: int = 3
    mask: int = 4


# The names of the sizes in most families.
SIZES: Final = {
    "vocab_size": "vocab_size",
    "hidden_size": "hidden_size",
    "num_layers": "num_hidden_layers",
    "num_heads": "num_attention_heads",
    "mlp_size": "intermediate_size",
}


@dataclasses.dataclass(frozen=True)
class Family:
    """How `transformers` keeps the models of one ``model_type``, and how they are read and written.

    Attributes:
      model_type: of config.json.
      architecture: the class of `transformers` without a head.
      prefix: of the body's arrays in models with a head.
      body_names: beginnings of the names of the body's arrays; an unknown array there means another architecture.
      output_bias: names of the masked-LM bias; the first that is there is read.
      tied_table: names of the masked-LM output table; it must be the token table.
      keys: of config.json that `options` reads, or that change nothing in trained models of this family.
      options: config.json to fields of `TransformerConfig`, without the sizes.
      values: the reverse. Raises UnsupportedModelError if the family cannot hold that encoder.
      body: all arrays but those of the heads.
      masked_lm: transform and norm before the tied table.
      sizes: fields of `TransformerConfig` and their keys.
      has_pooler: whether its class has a pooler, which no module here reads.
      pad_id: the padding token's id in the code of its class, whatever config.json says; None: any.
    """

    model_type: str
    architecture: str
    prefix: str
    body_names: tuple[str, ...]
    output_bias: tuple[str, ...]
    tied_table: tuple[str, ...]
    keys: frozenset[str]
    options: Callable[[Values], dict[str, Any]]
    values: Callable[[TransformerConfig, SpecialIds], dict[str, Any]]
    body: Callable[[Values, TransformerConfig], Iterable[Entry]]
    masked_lm: Callable[[TransformerConfig], Iterable[Entry]]
    sizes: Mapping[str, str] = dataclasses.field(default_factory=lambda: SIZES)
    has_pooler: bool = False
    pad_id: int | None = None


def check_fields(config: TransformerConfig, model_type: str, expected: Mapping[str, Any]) -> None:
    """Refuses an encoder that a family does not compute.

    Args:
      config: the encoder's.
      model_type: the family.
      expected: the values of the fields that decide.

    Raises:
      UnsupportedModelError: naming the first field that has another value.
    """
    for name, value in expected.items():
        got = getattr(config, name)
        if got != value:
            reason = f"transformers has no class that computes this encoder ({model_type} is the nearest)"
            problem = f"got {got!r} with norm = {config.norm!r}, expected {value!r}: {reason}"
            raise UnsupportedModelError(f"EncoderConfig.{name}", problem)


def written_activation(config: TransformerConfig) -> str:
    """The name of an encoder's activation in config.json."""
    return "gelu" if config.activation == "gelu" else "gelu_pytorch_tanh"

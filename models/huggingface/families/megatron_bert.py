"""Megatron-BERT (Shoeybi et al. 2019): BERT with norms before the sub-layers and one on top."""

from collections.abc import Iterator
from typing import Any, Final

from ...transformer import TransformerConfig
from ..family import Family, SpecialIds, Values, check_fields
from ..layouts import Entry, layers, norm, positions, same
from ..values import integer
from . import bert

_LAYER: Final = bert.LAYER._replace(attention_norm="attention.ln", mlp_norm="ln")


def _options(values: Values) -> dict[str, Any]:
    return bert.options(values) | {"norm": "pre"}


def _values(config: TransformerConfig, ids: SpecialIds) -> dict[str, Any]:
    del ids
    check_fields(config, "megatron-bert", bert.SHAPE | {"norm": "pre"})
    return bert.values_of(config)


def _body(values: Values, config: TransformerConfig) -> Iterator[Entry]:
    hidden = config.hidden_size
    yield same("token_embedding", "embeddings.word_embeddings.weight", (config.vocab_size, hidden))
    yield positions(config, types=integer(values, "type_vocab_size", bert.TOKEN_TYPES))
    yield from layers(config, "encoder.layer", _LAYER)
    yield from norm("output_norm", "encoder.ln", hidden)


MEGATRON_BERT: Final = Family(
    model_type="megatron-bert",
    architecture="MegatronBertModel",
    prefix="bert.",
    body_names=("embeddings.", "encoder."),
    output_bias=bert.OUTPUT_BIAS,
    tied_table=bert.TIED_TABLE,
    keys=bert.KEYS,
    options=_options,
    values=_values,
    body=_body,
    masked_lm=bert.masked_lm,
    has_pooler=True,
)

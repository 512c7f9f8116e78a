"""MPNet (Song et al. 2020): BERT without token types, with T5's relative position bias, one table for all layers.

Its class takes token 1 for padding whatever config.json says, counts positions from 2, and always has 32 buckets.
"""

from collections.abc import Iterator
from typing import Any, Final

from ...transformer import TransformerConfig
from ..family import Family, SpecialIds, Values, check_fields
from ..layouts import Entry, LayerNames, layers, masked_lm_head, norm, positions, same
from ..values import activation, integer, number, only
from . import bert

_PAD_ID: Final = 1
_OFFSET: Final = _PAD_ID + 1  # rows of the position table before that of the first token
_BUCKETS: Final = 32
_LAYER: Final = LayerNames(
    query="attention.attn.q",
    key="attention.attn.k",
    value="attention.attn.v",
    attention_out="attention.attn.o",
    attention_norm="attention.LayerNorm",
    mlp_in="intermediate.dense",
    mlp_out="output.dense",
    mlp_norm="output.LayerNorm",
)


def _options(values: Values) -> dict[str, Any]:
    only(values, "relative_attention_num_buckets", _BUCKETS, default=_BUCKETS)
    only(values, "pad_token_id", _PAD_ID, default=_PAD_ID)
    return {
        "max_length": integer(values, "max_position_embeddings", 512) - _OFFSET,
        "dropout_rate": number(values, "hidden_dropout_prob", 0.1),
        "norm": "post",
        "relative_buckets": _BUCKETS,
        "activation": activation(values, "hidden_act"),
        "layer_norm_epsilon": number(values, "layer_norm_eps", 1e-12),
    }


def _values(config: TransformerConfig, ids: SpecialIds) -> dict[str, Any]:
    check_fields(config, "mpnet", bert.SHAPE | {"relative_buckets": _BUCKETS})
    values = bert.values_of(config, offset=_OFFSET)
    del values["type_vocab_size"], values["position_embedding_type"]
    return values | {
        "relative_attention_num_buckets": _BUCKETS,
        "bos_token_id": ids.opening,
        "eos_token_id": ids.closing,
    }


def _body(values: Values, config: TransformerConfig) -> Iterator[Entry]:
    del values
    hidden = config.hidden_size
    yield same("token_embedding", "embeddings.word_embeddings.weight", (config.vocab_size, hidden))
    yield positions(config, offset=_OFFSET)
    yield from norm("input_norm", "embeddings.LayerNorm", hidden)
    yield same("relative_bias", "encoder.relative_attention_bias.weight", (_BUCKETS, config.num_heads))
    yield from layers(config, "encoder.layer", _LAYER)


def _masked_lm(config: TransformerConfig) -> Iterator[Entry]:
    return masked_lm_head(config, "lm_head.dense", "lm_head.layer_norm")


MPNET: Final = Family(
    model_type="mpnet",
    architecture="MPNetModel",
    prefix="mpnet.",
    body_names=("embeddings.", "encoder."),
    output_bias=("lm_head.bias", "lm_head.decoder.bias"),
    tied_table=("lm_head.decoder.weight",),
    keys=frozenset(
        {
            *("vocab_size", "hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size"),
            *("max_position_embeddings", "relative_attention_num_buckets", "hidden_act", "layer_norm_eps"),
            *("hidden_dropout_prob", "attention_probs_dropout_prob"),
        }
    ),
    options=_options,
    values=_values,
    body=_body,
    masked_lm=_masked_lm,
    has_pooler=True,
    pad_id=_PAD_ID,
)

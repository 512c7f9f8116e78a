"""BERT (Devlin et al. 2019): norms after the sums, learned positions. Its token types are folded into the positions."""

from collections.abc import Iterator
from typing import Any, Final

from ...transformer import TransformerConfig
from ..family import Family, SpecialIds, Values, check_fields, written_activation
from ..layouts import Entry, LayerNames, layers, masked_lm_head, norm, positions, same
from ..values import activation, integer, number, only

TOKEN_TYPES: Final = 2
KEYS: Final = frozenset(
    {
        *("vocab_size", "hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size"),
        *("max_position_embeddings", "type_vocab_size", "position_embedding_type", "hidden_act", "layer_norm_eps"),
        *("hidden_dropout_prob", "attention_probs_dropout_prob", "embedding_size"),
        # Of the pooler of the first multilingual models, which is not read.
        *("directionality", "pooler_fc_size", "pooler_num_attention_heads", "pooler_num_fc_layers"),
        *("pooler_size_per_head", "pooler_type"),
    }
)
LAYER: Final = LayerNames(
    query="attention.self.query",
    key="attention.self.key",
    value="attention.self.value",
    attention_out="attention.output.dense",
    attention_norm="attention.output.LayerNorm",
    mlp_in="intermediate.dense",
    mlp_out="output.dense",
    mlp_norm="output.LayerNorm",
)
OUTPUT_BIAS: Final = ("cls.predictions.bias", "cls.predictions.decoder.bias")
TIED_TABLE: Final = ("cls.predictions.decoder.weight",)
SHAPE: Final = {
    "norm": "post",
    "positions": "learned",
    "mlp": "dense",
    "biases": True,
    "local_distance": 0,
    "relative_buckets": 0,
}


def options(values: Values, *, offset: int = 0) -> dict[str, Any]:
    """Fields of `TransformerConfig`.

    Args:
      values: of config.json.
      offset: rows of the position table before that of the first token.

    Raises:
      UnsupportedModelError: for positions that are not absolute, or another width of the embeddings.
    """
    only(values, "position_embedding_type", "absolute", default="absolute")
    only(values, "embedding_size", values.get("hidden_size"), default=values.get("hidden_size"))
    return {
        "max_length": integer(values, "max_position_embeddings") - offset,
        "dropout_rate": number(values, "hidden_dropout_prob", 0.1),
        "norm": "post",
        "activation": activation(values, "hidden_act"),
        "layer_norm_epsilon": number(values, "layer_norm_eps", 1e-12),
    }


def values_of(config: TransformerConfig, *, offset: int = 0) -> dict[str, Any]:
    """The reverse of `options`, for any shape."""
    return {
        "max_position_embeddings": config.max_length + offset,
        "hidden_act": written_activation(config),
        "hidden_dropout_prob": config.dropout_rate,
        "attention_probs_dropout_prob": 0.0,
        "layer_norm_eps": config.layer_norm_epsilon,
        "type_vocab_size": TOKEN_TYPES,
        "position_embedding_type": "absolute",
    }


def body(values: Values, config: TransformerConfig, *, offset: int = 0) -> Iterator[Entry]:
    """The arrays without heads; for `offset` see `options`."""
    hidden = config.hidden_size
    yield same("token_embedding", "embeddings.word_embeddings.weight", (config.vocab_size, hidden))
    yield positions(config, offset=offset, types=integer(values, "type_vocab_size", TOKEN_TYPES))
    yield from norm("input_norm", "embeddings.LayerNorm", hidden)
    yield from layers(config, "encoder.layer", LAYER)


def masked_lm(config: TransformerConfig) -> Iterator[Entry]:
    """Transform and norm before the tied table."""
    return masked_lm_head(config, "cls.predictions.transform.dense", "cls.predictions.transform.LayerNorm")


def _values(config: TransformerConfig, ids: SpecialIds) -> dict[str, Any]:
    del ids
    check_fields(config, "bert", SHAPE)
    return values_of(config)


BERT: Final = Family(
    model_type="bert",
    architecture="BertModel",
    prefix="bert.",
    body_names=("embeddings.", "encoder."),
    output_bias=OUTPUT_BIAS,
    tied_table=TIED_TABLE,
    keys=KEYS,
    options=options,
    values=_values,
    body=body,
    masked_lm=masked_lm,
    has_pooler=True,
)

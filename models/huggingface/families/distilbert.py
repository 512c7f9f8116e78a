"""DistilBERT (Sanh et al. 2019): BERT without token types and pooler, under names of its own."""

from collections.abc import Iterator
from typing import Any, Final

from ...transformer import TransformerConfig
from ..family import Family, SpecialIds, Values, check_fields, written_activation
from ..layouts import Entry, LayerNames, layers, masked_lm_head, norm, positions, same
from ..values import activation, integer, number
from . import bert

_EPSILON: Final = 1e-12  # in its code; config.json does not say
_SIZES: Final = {
    "vocab_size": "vocab_size",
    "hidden_size": "dim",
    "num_layers": "n_layers",
    "num_heads": "n_heads",
    "mlp_size": "hidden_dim",
}
_LAYER: Final = LayerNames(
    query="attention.q_lin",
    key="attention.k_lin",
    value="attention.v_lin",
    attention_out="attention.out_lin",
    attention_norm="sa_layer_norm",
    mlp_in="ffn.lin1",
    mlp_out="ffn.lin2",
    mlp_norm="output_layer_norm",
)


def _options(values: Values) -> dict[str, Any]:
    return {
        "max_length": integer(values, "max_position_embeddings", 512),
        "dropout_rate": number(values, "dropout", 0.1),
        "norm": "post",
        "activation": activation(values, "activation"),
        "layer_norm_epsilon": _EPSILON,
    }


def _values(config: TransformerConfig, ids: SpecialIds) -> dict[str, Any]:
    del ids
    check_fields(config, "distilbert", bert.SHAPE | {"layer_norm_epsilon": _EPSILON})
    return {
        "max_position_embeddings": config.max_length,
        "activation": written_activation(config),
        "dropout": config.dropout_rate,
        "attention_dropout": 0.0,
        "sinusoidal_pos_embds": False,
    }


def _body(values: Values, config: TransformerConfig) -> Iterator[Entry]:
    del values
    hidden = config.hidden_size
    yield same("token_embedding", "embeddings.word_embeddings.weight", (config.vocab_size, hidden))
    yield positions(config)
    yield from norm("input_norm", "embeddings.LayerNorm", hidden)
    yield from layers(config, "transformer.layer", _LAYER)


def _masked_lm(config: TransformerConfig) -> Iterator[Entry]:
    return masked_lm_head(config, "vocab_transform", "vocab_layer_norm")


DISTILBERT: Final = Family(
    model_type="distilbert",
    architecture="DistilBertModel",
    prefix="distilbert.",
    body_names=("embeddings.", "transformer."),
    output_bias=("vocab_projector.bias",),
    tied_table=("vocab_projector.weight",),
    keys=frozenset(
        {
            *_SIZES.values(),
            *("max_position_embeddings", "activation", "dropout", "attention_dropout"),
            # How the positions were made at first, their dropout, and heads for other tasks.
            *("sinusoidal_pos_embds", "qa_dropout", "seq_classif_dropout", "tie_weights_"),
        }
    ),
    options=_options,
    values=_values,
    body=_body,
    masked_lm=_masked_lm,
    sizes=_SIZES,
)

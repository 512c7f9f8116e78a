"""RoBERTa (Liu et al. 2019) and XLM-R (Conneau et al. 2020): BERT with positions from the padding token's id + 1."""

from collections.abc import Iterator
from typing import Any, Final

from ...transformer import TransformerConfig
from ..family import Family, SpecialIds, Values, check_fields
from ..layouts import Entry, masked_lm_head
from ..values import integer
from . import bert


def _offset(values: Values) -> int:
    """Rows of the position table before that of the first token: its position is the padding token's id + 1."""
    return integer(values, "pad_token_id", 1) + 1


def _options(values: Values) -> dict[str, Any]:
    return bert.options(values, offset=_offset(values))


def _values(config: TransformerConfig, ids: SpecialIds) -> dict[str, Any]:
    check_fields(config, "roberta", bert.SHAPE)
    return bert.values_of(config, offset=ids.pad + 1) | {
        "type_vocab_size": 1,
        "bos_token_id": ids.opening,
        "eos_token_id": ids.closing,
    }


def _body(values: Values, config: TransformerConfig) -> Iterator[Entry]:
    return bert.body(values, config, offset=_offset(values))


def _masked_lm(config: TransformerConfig) -> Iterator[Entry]:
    return masked_lm_head(config, "lm_head.dense", "lm_head.layer_norm")


def _family(model_type: str, architecture: str) -> Family:
    return Family(
        model_type=model_type,
        architecture=architecture,
        prefix="roberta.",
        body_names=("embeddings.", "encoder."),
        output_bias=("lm_head.bias", "lm_head.decoder.bias"),
        tied_table=("lm_head.decoder.weight",),
        keys=bert.KEYS,
        options=_options,
        values=_values,
        body=_body,
        masked_lm=_masked_lm,
        has_pooler=True,
    )


ROBERTA: Final = _family("roberta", "RobertaModel")
XLM_ROBERTA: Final = _family("xlm-roberta", "XLMRobertaModel")

"""The families of `transformers` that are read and written: one file each.

A new family is one more file with a `Family`, and its name in `FAMILIES`.
"""

from collections.abc import Mapping
from typing import Final

from ...transformer import TransformerConfig
from ..family import Family
from ..interface import UnsupportedModelError
from .bert import BERT
from .distilbert import DISTILBERT
from .megatron_bert import MEGATRON_BERT
from .modernbert import MODERNBERT
from .mpnet import MPNET
from .roberta import ROBERTA, XLM_ROBERTA

FAMILIES: Final[Mapping[str, Family]] = {
    family.model_type: family for family in (BERT, ROBERTA, XLM_ROBERTA, DISTILBERT, MPNET, MEGATRON_BERT, MODERNBERT)
}


def find_family(model_type: object, field: str = "model_type") -> Family:
    """The family of a ``model_type``.

    Raises:
      UnsupportedModelError: naming `field`, for one that is not here.
    """
    if not isinstance(model_type, str) or model_type not in FAMILIES:
        raise UnsupportedModelError(field, f"got {model_type!r}, expected one of {', '.join(FAMILIES)}")
    return FAMILIES[model_type]


def family_by_shape(config: TransformerConfig) -> Family:
    """The family whose class computes an encoder of this shape, if any does."""
    if config.relative_buckets:
        return MPNET
    return {"pre": MEGATRON_BERT, "modern": MODERNBERT}.get(config.norm, BERT)


def family_of(config: TransformerConfig) -> Family:
    """The family that an encoder is written as: the one it came from or, without one, by its shape.

    Raises:
      UnsupportedModelError: if it came from a family that is not here.
    """
    if config.family is None:
        return family_by_shape(config)
    return find_family(config.family, "EncoderConfig.family")

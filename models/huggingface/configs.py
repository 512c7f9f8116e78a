"""config.json of `transformers` to `EncoderConfig` and back."""

import dataclasses
from collections.abc import Mapping
from typing import Any, Final

from ..transformer import TransformerConfig
from .families import FAMILIES, family_by_shape, family_of, find_family
from .family import Family, SpecialIds
from .interface import UnsupportedModelError
from .values import check_keys, integer

MODEL_TYPES: Final = tuple(FAMILIES)


def encoder_config(
    values: Mapping[str, Any], *, embedding_size: int | None = None, num_topics: int = 600, pooling: str = "cls"
) -> TransformerConfig:
    """The architecture that a config.json describes.

    Args:
      values: of config.json.
      embedding_size: D; None takes H.
      num_topics: T.
      pooling: of `TransformerConfig`; config.json does not say.

    Raises:
      UnsupportedModelError: for an unknown `model_type`, a missing or unknown key, or an option that `NewsEncoder`
        lacks.
    """
    family = find_family(values.get("model_type"))
    check_keys(values, family.keys)
    sizes: dict[str, Any] = {ours: integer(values, theirs) for ours, theirs in family.sizes.items()}
    try:
        config = TransformerConfig(
            **sizes,
            embedding_size=embedding_size or sizes["hidden_size"],
            num_topics=num_topics,
            pooling=pooling,  # type: ignore[arg-type] # checked there
            **family.options(values),
        )
    except UnsupportedModelError:
        raise
    except ValueError as error:
        raise UnsupportedModelError("config.json", str(error)) from error
    if family_by_shape(config) is family:
        return config
    return dataclasses.replace(config, family=family.model_type)


def huggingface_config(config: TransformerConfig, ids: SpecialIds | None = None) -> dict[str, Any]:
    """The config.json of an encoder without its heads.

    Args:
      config: the encoder's.
      ids: of the special tokens; None: those of `formats.vocabulary` or, where the family's code has its padding token
        elsewhere, with that token and [UNK] swapped.

    Raises:
      UnsupportedModelError: if no class of `transformers` computes this encoder, or its code has another padding token.
    """
    family = family_of(config)
    ids = default_ids(family) if ids is None else ids
    if family.pad_id not in (None, ids.pad):
        problem = f"got {ids.pad}, expected {family.pad_id}, as the code of {family.architecture} has it"
        raise UnsupportedModelError("pad_token_id", problem)
    return {
        "model_type": family.model_type,
        "architectures": [family.architecture],
        **{theirs: getattr(config, ours) for ours, theirs in family.sizes.items()},
        "initializer_range": 0.02,
        "pad_token_id": ids.pad,
        **family.values(config, ids),
    }


def default_ids(family: Family) -> SpecialIds:
    """The ids of the special tokens in a family's exports: ours, with [UNK] in the place of a padding token elsewhere.

    Raises:
      ValueError: if the family's padding token is in the place of another special token than [UNK].
    """
    ids = SpecialIds()
    if family.pad_id in (None, ids.pad):
        return ids
    if family.pad_id != ids.unknown:
        raise ValueError(f"got the padding token {family.pad_id} of {family.model_type}, expected 0 or 1")
    return ids._replace(pad=ids.unknown, unknown=ids.pad)

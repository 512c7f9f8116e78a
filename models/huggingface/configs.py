"""config.json of `transformers` to `EncoderConfig` and back."""

import dataclasses
from collections.abc import Mapping
from typing import Any, Final

from ..transformer import TransformerConfig
from .families import FAMILIES, family_by_shape, family_of, find_family
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


def huggingface_config(config: TransformerConfig) -> dict[str, Any]:
    """The config.json of an encoder without its heads; special tokens have the ids of `formats.vocabulary`.

    Raises:
      UnsupportedModelError: if no class of `transformers` computes this encoder.
    """
    family = family_of(config)
    return {
        "model_type": family.model_type,
        "architectures": [family.architecture],
        **{theirs: getattr(config, ours) for ours, theirs in family.sizes.items()},
        "initializer_range": 0.02,
        "pad_token_id": 0,
        **family.values(config),
    }

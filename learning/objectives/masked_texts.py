"""The masked language model on texts of one piece, such as those of pairs: training that does not compare texts."""

import dataclasses
from collections.abc import Mapping
from typing import Any, ClassVar

import jax
import jax.numpy as jnp

from ...models.encoders import Architecture, Capability
from ...models.masking import masked_position_count
from .base import DeviceBatch, Metrics, Model
from .texts import TextObjective


@dataclasses.dataclass(frozen=True)
class MaskedTexts(TextObjective):
    """Cross entropy of masked whole words on both texts of a pair, which `Contrastive` adds with a weight of 0.1.

    The embedding head gets no gradient: a run ends with its calibration, see `training.whitening`.

    Attributes:
      mlm_weight: factor of the loss, above 0.
    """

    tasks: ClassVar[tuple[str, ...]] = ("pairs",)
    pretrains: ClassVar[bool] = True

    mlm_weight: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require_option(self.mlm_weight > 0, "mlm_weight", "a number above 0")

    @property
    def needs(self) -> tuple[Capability, ...]:
        """Contextual vectors and a masked language model."""
        return Capability.SEQUENCE, Capability.MASKED_LM

    def evaluated(self) -> "MaskedTexts":
        """Returns the objective itself: it has no other loss."""
        return self

    def loss(self, model: Model, params: Any, batch: DeviceBatch, key: jax.Array) -> tuple[jax.Array, Metrics]:
        """Returns the loss, with `mlm_loss` and `mlm_accuracy`.

        Raises:
          InputError: for a batch that `gradient_chunk` does not divide.
        """
        texts = [batch["anchor_tokens"], batch["positive_tokens"]]
        every = jnp.ones(len(texts[0]), bool)
        return self.with_masked_words(model, params, (jnp.zeros(()), {}), [(text, every) for text in texts], key)

    def flops(self, config: Architecture, lengths: Mapping[str, int], batch_size: int) -> float:
        """Returns the FLOPs of the encoder on both texts and of the head on the masked positions."""
        longest, rows = max(lengths.values()), len(lengths) * batch_size
        predicted = rows * masked_position_count(longest, self.masking_rate)
        return config.flops("encode", longest) * rows + config.flops("mlm_logits", predicted)

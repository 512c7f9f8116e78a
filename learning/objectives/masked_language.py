"""The masked language model: on packed rows (MLM and TLM; paper, section 3.1), and on texts of pairs."""

import dataclasses
from typing import Any, ClassVar

import jax
import jax.numpy as jnp

from ...formats.command_line import option
from ...models.encoders import Capability
from .base import DeviceBatch, Metrics, Model
from .texts import TextObjective, WordPrediction


@dataclasses.dataclass(frozen=True)
class MaskedLanguageModel(WordPrediction):
    """Cross entropy of masked whole words on rows of several pieces, each of which attends to itself only.

    MLM and TLM differ in their data only: one compiled step serves both.
    """

    tasks: ClassVar[tuple[str, ...]] = ("mlm", "tlm")
    needs: ClassVar[tuple[Capability, ...]] = (Capability.SEQUENCE, Capability.MASKED_LM)
    pretrains: ClassVar[bool] = True

    def loss(self, model: Model, params: Any, batch: DeviceBatch, key: jax.Array) -> tuple[jax.Array, Metrics]:
        """Returns the mean cross entropy over the masked positions, and `accuracy`."""
        layout = batch["segment_ids"], batch["positions"]
        loss, accuracy = self.predict(model, params, batch["tokens"], batch["word_ids"], layout, key)
        return loss, {"accuracy": accuracy}


@dataclasses.dataclass(frozen=True)
class MaskedTexts(TextObjective):
    """Cross entropy of masked whole words on both texts of a pair, which `Contrastive` adds with a weight of 0.1.

    The embedding head gets no gradient: a run ends with its calibration, see `training.calibration`.

    Attributes:
      mlm_weight: factor of the loss, above 0.
    """

    tasks: ClassVar[tuple[str, ...]] = ("pairs",)
    pretrains: ClassVar[bool] = True

    mlm_weight: float = option(1.0, gt=0)

    def evaluated(self) -> "MaskedTexts":
        """Returns the objective itself: it has no other loss."""
        return self

    def loss(self, model: Model, params: Any, batch: DeviceBatch, key: jax.Array) -> tuple[jax.Array, Metrics]:
        """Returns the loss, with `mlm_loss` and `mlm_accuracy`."""
        texts = [batch["anchor_tokens"], batch["positive_tokens"]]
        return self.with_masked_words(model, params, (jnp.zeros(()), {}), texts, key)

"""The masked language model on packed rows: documents (MLM) and translation pairs (TLM; paper, section 3.1)."""

import dataclasses
from collections.abc import Mapping
from typing import Any, ClassVar

import jax

from ...models.encoders import Architecture, Capability
from ...models.masking import masked_position_count
from .base import DeviceBatch, Metrics, Model
from .texts import WordPrediction


@dataclasses.dataclass(frozen=True)
class MaskedLanguageModel(WordPrediction):
    """Cross entropy of masked whole words on rows of several pieces, each of which attends to itself only.

    MLM and TLM differ in their data only: one compiled step serves both.
    """

    tasks: ClassVar[tuple[str, ...]] = ("mlm", "tlm")
    pretrains: ClassVar[bool] = True

    @property
    def needs(self) -> tuple[Capability, ...]:
        """Contextual vectors and a masked language model."""
        return Capability.SEQUENCE, Capability.MASKED_LM

    def loss(self, model: Model, params: Any, batch: DeviceBatch, key: jax.Array) -> tuple[jax.Array, Metrics]:
        """Returns the mean cross entropy over the masked positions, and `accuracy`. The key gives masks, then dropout.

        Raises:
          InputError: for a batch that `gradient_chunk` does not divide.
        """
        mask_key, dropout_key = jax.random.split(key)
        masked = self.mask(model, mask_key, batch["tokens"], batch["word_ids"])
        layout = batch["segment_ids"], batch["positions"]
        loss, accuracy = self.predict(model, params, masked, layout, dropout_key)
        return loss, {"accuracy": accuracy}

    def flops(self, config: Architecture, lengths: Mapping[str, int], batch_size: int) -> float:
        """Returns the FLOPs of the encoder on all rows and of the head on the masked positions."""
        predicted = batch_size * masked_position_count(lengths["tokens"], self.masking_rate)
        return config.flops("encode", lengths["tokens"]) * batch_size + config.flops("mlm_logits", predicted)

"""Binary cross entropy on the topics that are listed for a document (paper, section 3.2.2)."""

import dataclasses
from typing import Any, ClassVar

import jax
import jax.numpy as jnp

from ...formats.vocabulary import CLS_ID, PAD_ID
from ...models.encoders import Capability
from ...models.losses import topic_bce
from ...models.softmax import map_chunks
from .base import DeviceBatch, Metrics, Model
from .texts import TextObjective


@dataclasses.dataclass(frozen=True)
class Topics(TextObjective):
    """Binary cross entropy of the listed topics; topics that are not listed carry no loss."""

    tasks: ClassVar[tuple[str, ...]] = ("topics",)

    @property
    def needs(self) -> tuple[Capability, ...]:
        """Topic logits, and what `mlm_weight` needs."""
        return (Capability.TOPICS, *super().needs)

    def loss(self, model: Model, params: Any, batch: DeviceBatch, key: jax.Array) -> tuple[jax.Array, Metrics]:
        """Returns equation 2 and `accuracy`."""
        slots = batch["topic_ids"].shape[-1]
        tokens = jnp.asarray(batch["tokens"])  # [B, L], or [B, N, L] of N documents a row
        tokens = tokens.reshape(-1, tokens.shape[-1])
        has_text = tokens[:, 0] != PAD_ID
        # Attention over nothing has no meaning: a place without a document, which has no labels, gets one token.
        tokens = tokens.at[:, 0].set(jnp.where(has_text, tokens[:, 0], CLS_ID))
        topic_key, mlm_key = self.split_key(key)

        def logits_of(rows: jax.Array, chunk_key: jax.Array) -> jax.Array:
            return model.apply(params, chunk_key, "topic_logits", rows)

        logits = map_chunks(logits_of, tokens, topic_key, self.chunks(len(tokens), 1))
        topic_ids, labels = (batch[name].reshape(-1, slots) for name in ("topic_ids", "topic_labels"))
        loss, accuracy = topic_bce(logits, topic_ids, labels)
        return self.with_masked_words(model, params, (loss, {"accuracy": accuracy}), [tokens], mlm_key, [has_text])

"""Binary cross entropy on the topics that are listed for a document (paper, section 3.2.2)."""

import dataclasses
import functools
from collections.abc import Mapping
from typing import Any, ClassVar, Literal

import jax
import jax.numpy as jnp

from ...errors import InputError
from ...formats.vocabulary import CLS_ID, PAD_ID
from ...models.axes import shard_count
from ...models.chunks import map_chunks
from ...models.encoders import Architecture, Capability
from ...models.losses import topic_bce
from .base import DeviceBatch, Metrics, Model
from .texts import TextObjective


@dataclasses.dataclass(frozen=True)
class Topics(TextObjective):
    """Binary cross entropy of the listed topics; topics that are not listed carry no loss.

    Attributes:
      mean_over: "documents" as in equation 2: the sum over the topics that are listed for a document, the mean over the
        documents. "labels": the mean over all listed topics, which is as many times smaller as a document has labels.
      topics_per_row: documents that share one row of the encoder, each attending to itself and pooled on its own. The
        number of documents of a step is a multiple of it on every device, and that many documents must fit the model's
        positions. The loss is the same; rows are fewer and longer.
    """

    tasks: ClassVar[tuple[str, ...]] = ("topics",)

    mean_over: Literal["documents", "labels"] = "documents"
    topics_per_row: int = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require_option(self.mean_over in ("documents", "labels"), "mean_over", "documents or labels")
        self.require_option(self.topics_per_row >= 1, "topics_per_row", "1 or more")

    @property
    def needs(self) -> tuple[Capability, ...]:
        """Topic logits, contextual vectors where documents share a row, and what `mlm_weight` needs."""
        packed = (Capability.SEQUENCE,) if self.topics_per_row > 1 else ()
        return (Capability.TOPICS, *packed, *super().needs)

    def loss(self, model: Model, params: Any, batch: DeviceBatch, key: jax.Array) -> tuple[jax.Array, Metrics]:
        """Returns equation 2 and `accuracy`.

        Raises:
          InputError: for a batch that `gradient_chunk` or `topics_per_row` does not divide.
        """
        slots = batch["topic_ids"].shape[-1]
        tokens = jnp.asarray(batch["tokens"])  # [B, L], or [B, N, L] of N documents a row
        tokens = tokens.reshape(-1, tokens.shape[-1])
        has_text = tokens[:, 0] != PAD_ID
        # Attention over nothing has no meaning: a place without a document, which has no labels, gets one token.
        tokens = tokens.at[:, 0].set(jnp.where(has_text, tokens[:, 0], CLS_ID))
        self._check_rows(model, tokens.shape)
        topic_key, mlm_key = self.split_key(key)
        chunks = self.chunks(len(tokens), 1, self.topics_per_row)
        logits = map_chunks(functools.partial(self._logits, model, params), tokens, topic_key, chunks)
        topic_ids, labels = (batch[name].reshape(-1, slots) for name in ("topic_ids", "topic_labels"))
        loss, accuracy = topic_bce(logits, topic_ids, labels, over=self.mean_over)
        texts = [(tokens, has_text)]
        return self.with_masked_words(model, params, (loss, {"accuracy": accuracy}), texts, mlm_key)

    def flops(self, config: Architecture, lengths: Mapping[str, int], batch_size: int) -> float:
        """Returns the FLOPs of the topic logits of as many documents."""
        return config.flops("topic_logits", lengths["tokens"]) * batch_size

    def _logits(self, model: Model, params: Any, tokens: jax.Array, key: jax.Array) -> jax.Array:
        """Returns the logits [R, T] of tokens [R, L], encoded with `topics_per_row` documents in a row."""
        together = self.topics_per_row
        if together == 1:
            return model.apply(params, key, "topic_logits", tokens)
        length = tokens.shape[1]
        wide = tokens.reshape(-1, together * length)
        numbers = jnp.repeat(jnp.arange(1, together + 1), length)
        positions = jnp.broadcast_to(jnp.tile(jnp.arange(length), together), wide.shape)
        hidden = model.apply(params, key, "encode", wide, jnp.where(wide == PAD_ID, 0, numbers), positions)
        # Every document has its own stretch of the row, so that cutting the row gives back what the heads read.
        own = hidden.reshape(*tokens.shape, hidden.shape[-1])
        logits: jax.Array = model.module.apply({"params": params}, own, tokens, method="topic_logits_hidden")
        return logits

    def _check_rows(self, model: Model, shape: tuple[int, ...]) -> None:
        together, positions = self.topics_per_row, model.config.max_length
        if together > 1 and together * shape[1] > positions:
            raise InputError(
                f"got {together} documents of {shape[1]} tokens in a row, the architecture has {positions} positions",
                field=f"{type(self).__name__}.topics_per_row",
                remedy=f"Set TASK_FEATURE_LENGTHS['tokens'] to {positions // together} or less.",
            )
        unit = together * shard_count("batch")
        if together > 1 and shape[0] % unit:
            raise InputError(
                f"got {shape[0]} documents in a step, expected a multiple of {unit}",
                field="BATCH_SIZE",
                remedy=f"Or set {type(self).__name__}.topics_per_row = 1.",
            )

"""The losses of XTREME's supervised tasks: cross entropy of labels, and of the ends of answers."""

import dataclasses
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import optax

from ...errors import InputError
from ...formats.tfrecords import LABELS
from ...formats.vocabulary import PAD_ID
from ...models.encoders import Architecture, Capability
from .base import DeviceBatch, Metrics, Model, Objective


@dataclasses.dataclass(frozen=True)
class _Labelled(Objective):
    """An objective on the logits of a head.

    Attributes:
      heads: of the architecture, those that the tasks can be trained with.
    """

    heads: ClassVar[tuple[str, ...]]
    needs: ClassVar[tuple[Capability, ...]] = (Capability.LABELS,)

    def check(self, model: Model) -> None:
        """Refuses a head of another task.

        Raises:
          InputError: naming the option.
        """
        head = getattr(model.config, "head", self.heads[0])
        if head not in self.heads:
            problem = f"got {head!r}, expected {' or '.join(self.heads)} for {' and '.join(self.tasks)}"
            remedy = "Set the head of the task that the run trains."
            raise InputError(problem, field=f"{type(model.config).__name__}.head", remedy=remedy)

    def bounds(self, config: Architecture) -> dict[str, int]:
        """Labels count from 1."""
        return {LABELS: getattr(config, "outputs", 0) + 1}


@dataclasses.dataclass(frozen=True)
class Classification(_Labelled):
    """Cross entropy of the label of each text, or of each word at its first piece: the mean over all that have one."""

    tasks: ClassVar[tuple[str, ...]] = ("pair_classification", "token_classification")
    heads: ClassVar[tuple[str, ...]] = ("pair", "word")

    def loss(self, model: Model, params: Any, batch: DeviceBatch, key: jax.Array) -> tuple[jax.Array, Metrics]:
        """Returns the loss, with `accuracy`."""
        logits = model.apply(params, key, "label_logits", batch["tokens"])
        labels, weights = batch["label"] - 1, (batch["label"] > 0).astype(jnp.float32)
        total = jnp.maximum(jnp.sum(weights), 1.0)
        losses = optax.softmax_cross_entropy_with_integer_labels(logits, jnp.maximum(labels, 0))
        is_right = jnp.argmax(logits, axis=-1) == labels
        return jnp.sum(losses * weights) / total, {"accuracy": jnp.sum(is_right * weights) / total}


@dataclasses.dataclass(frozen=True)
class QuestionAnswering(_Labelled):
    """Cross entropy of the first and of the last token of an answer among the tokens of the row: the mean of both."""

    tasks: ClassVar[tuple[str, ...]] = ("question_answering",)
    heads: ClassVar[tuple[str, ...]] = ("span",)

    def loss(self, model: Model, params: Any, batch: DeviceBatch, key: jax.Array) -> tuple[jax.Array, Metrics]:
        """Returns the loss, with `accuracy`, the share of rows with both ends right."""
        logits = model.apply(params, key, "label_logits", batch["tokens"])
        is_padding = (batch["tokens"] == PAD_ID)[..., None]
        logits = jnp.where(is_padding, jnp.finfo(jnp.float32).min, logits)
        ends = jnp.stack([batch["start"], batch["end"]], axis=-1)
        losses = optax.softmax_cross_entropy_with_integer_labels(jnp.swapaxes(logits, 1, 2), ends)
        is_right = jnp.all(jnp.argmax(logits, axis=1) == ends, axis=-1)
        return jnp.mean(losses), {"accuracy": jnp.mean(is_right.astype(jnp.float32))}

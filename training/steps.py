"""One training step per kind of task: loss, gradient, update, compiled once with the state's buffers donated."""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any, Final

import gin
import jax
import jax.numpy as jnp
import optax
from jax.sharding import Mesh

from ..models.encoder import NewsEncoder
from ..models.losses import TEMPERATURE, DocumentIds, info_nce, masked_language_model, topic_bce
from ..models.masking import MASKING_RATE, gather_positions, mask_whole_words
from ..tasks.features import MASK_ID, SPECIAL_TOKENS, TaskName
from .partitioning import Partitioner, replicated
from .train_state import TrainState

DeviceBatch = Mapping[str, jax.Array]
Metrics = dict[str, jax.Array]
TrainStep = Callable[[TrainState, DeviceBatch, jax.Array], tuple[TrainState, Metrics]]


@gin.register
@dataclasses.dataclass(frozen=True)
class Losses:
    """The numbers in the losses.

    Attributes:
      temperature: of InfoNCE.
      masking_rate: share of word tokens that the masked language model predicts.
      stop_translated_gradient: machine-translated positives and negatives pass no gradient back (section 3.3).
    """

    temperature: float = TEMPERATURE
    masking_rate: float = MASKING_RATE
    stop_translated_gradient: bool = True


@dataclasses.dataclass(frozen=True)
class TaskLosses:
    """The loss of every task as a function of the parameters, a global batch and a key.

    Attributes:
      model: the encoder.
      options: the numbers in the losses.
    """

    model: NewsEncoder
    options: Losses

    def loss(self, task: TaskName, params: Any, batch: DeviceBatch, key: jax.Array) -> tuple[jax.Array, Metrics]:
        """The scalar loss of one batch and what to log beside it."""
        if task is TaskName.TRIPLETS:
            return self._triplets(params, batch, key)
        if task is TaskName.TOPICS:
            return self._topics(params, batch, key)
        return self._masked_language_model(params, batch, key)

    def _masked_language_model(self, params: Any, batch: DeviceBatch, key: jax.Array) -> tuple[jax.Array, Metrics]:
        mask_key, dropout_key = jax.random.split(key)
        masked = mask_whole_words(
            mask_key,
            batch["tokens"],
            batch["word_ids"],
            vocab_size=self.model.config.vocab_size,
            mask_id=MASK_ID,
            first_piece_id=len(SPECIAL_TOKENS),
            rate=self.options.masking_rate,
        )
        hidden = self._apply(params, dropout_key, "encode", masked.tokens, batch["segment_ids"], batch["positions"])
        logits = self.model.apply({"params": params}, gather_positions(hidden, masked.positions), method="mlm_logits")
        loss, accuracy = masked_language_model(logits, masked.targets, masked.weights)
        return loss, {"accuracy": accuracy}

    def _triplets(self, params: Any, batch: DeviceBatch, key: jax.Array) -> tuple[jax.Array, Metrics]:
        towers = [batch[f"{name}_tokens"] for name in ("anchor", "positive", "negative")]
        if len({tokens.shape[1] for tokens in towers}) == 1:
            # One pass over [3B, L] instead of three over [B, L]: larger products, a third of the launches.
            # Interleaved, so that a device's share of the rows stays on that device.
            stacked = jnp.stack(towers, axis=1).reshape(-1, towers[0].shape[1])
            embeddings = self._apply(params, key, "embed", stacked).reshape(towers[0].shape[0], 3, -1)
            anchor, positive, negative = embeddings[:, 0], embeddings[:, 1], embeddings[:, 2]
        else:
            keys = jax.random.split(key, 3)
            anchor, positive, negative = (self._apply(params, k, "embed", tokens) for k, tokens in zip(keys, towers, strict=True))
        if self.options.stop_translated_gradient:
            translated = (batch["translated"] > 0)[:, None]
            positive = jnp.where(translated, jax.lax.stop_gradient(positive), positive)
            negative = jnp.where(translated, jax.lax.stop_gradient(negative), negative)
        doc_ids = DocumentIds(batch["anchor_doc_id"], batch["positive_doc_id"], batch["negative_doc_id"])
        loss, accuracy = info_nce(anchor, positive, negative, temperature=self.options.temperature, doc_ids=doc_ids)
        return loss, {"accuracy": accuracy, "alignment": jnp.mean(jnp.sum((anchor - positive) ** 2, axis=-1))}

    def _topics(self, params: Any, batch: DeviceBatch, key: jax.Array) -> tuple[jax.Array, Metrics]:
        logits = self._apply(params, key, "topic_logits", batch["tokens"])
        loss, accuracy = topic_bce(logits, batch["topic_ids"], batch["topic_labels"])
        return loss, {"accuracy": accuracy}

    def _apply(self, params: Any, key: jax.Array, method: str, *arguments: jax.Array) -> jax.Array:
        deterministic = self.model.config.dropout_rate == 0.0
        result: jax.Array = self.model.apply(
            {"params": params}, *arguments, deterministic=deterministic, rngs={"dropout": key}, method=method
        )
        return result


_DONATED_STATE: Final = 0
COUNTS: Final = "counts"  # int32 [devices, …] in a batch, […] in the metrics: what the processes tell each other, see `processes`


def make_train_step(
    task: TaskName,
    losses: TaskLosses,
    optimizer: optax.GradientTransformation,
    abstract: TrainState,
    partitioner: Partitioner,
    mesh: Mesh,
) -> TrainStep:
    """Compiles (at its first call) the step of one task.

    Args:
      task: which loss.
      losses: the losses with their model.
      optimizer: optax's.
      abstract: the state's shapes with their shardings, see `train_state.plan_state`.
      partitioner: the axis rules.
      mesh: the devices.

    Returns:
      ``step(state, batch, key) -> (state, metrics)``. It consumes `state`. All randomness follows from `key` and the state's step
      number. Metrics are float32 scalars: loss, accuracy, gradient_norm and what the loss adds.
    """

    def step(state: TrainState, batch: DeviceBatch, key: jax.Array) -> tuple[TrainState, Metrics]:
        step_key = jax.random.fold_in(key, state.step)

        def loss_of(params: Any) -> tuple[jax.Array, Metrics]:
            return losses.loss(task, params, batch, step_key)

        (loss, metrics), gradients = jax.value_and_grad(loss_of, has_aux=True)(state.params)
        metrics |= {"loss": loss, "gradient_norm": _global_norm(gradients)}
        if COUNTS in batch:
            metrics[COUNTS] = jnp.sum(batch[COUNTS], axis=0)
        return state.apply_gradients(gradients, optimizer), metrics

    shardings = jax.tree.map(lambda array: array.sharding, abstract)
    return partitioner.wrap(jax.jit(step, donate_argnums=_DONATED_STATE, out_shardings=(shardings, replicated(mesh))), mesh)


def _global_norm(tree: Any) -> jax.Array:
    # optax renamed its function within the range of versions that we support.
    return jnp.sqrt(sum(jnp.sum(jnp.square(array)) for array in jax.tree.leaves(tree)))

"""Translation with a distance between a text and its translation: T-MDE, LASER and their contrastive forms.

Source: Wei Li, "Multilingual document embedding from translation", thesis at HKUST 2021, sections 4.3.1 and 4.5; where
it says nothing, its released code (``tfm_laser_0520``).
"""

import dataclasses
import functools
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import jax
import jax.numpy as jnp

from ...errors import InputError
from ...formats.tfrecords.schema import LANGUAGES
from ...formats.vocabulary import PAD_ID
from ...models.axes import shard_count
from ...models.distances import Scale, contrastive_distance, draw_negatives
from ...models.encoders import Architecture, Capability
from ...models.losses import terms_of_logits
from ...models.softmax import SoftmaxTerms, chunk_of_device, softmax_terms
from .base import DeviceBatch, Metrics, Model, Objective, Pairs

_SCALES = ("batch_means", "pairs")


@dataclasses.dataclass(frozen=True)
class Translation(Objective):
    r"""Half the translation loss, and the distance of the vectors of both texts, with negatives from the batch.

    The loss of a batch is::

        sum_i (1/2 l_mt,i + distance_weight (d_p,i + negative_weight / N_s sum_j max(0, margin - (d_n,ij - d_p,i))))
        -------------------------------------------------------------------------------------------------------------
                                       number of target tokens of the batch

    where l_mt,i is the label-smoothed cross entropy, summed over the target tokens of pair i, and d the Euclidean
    distance of two vectors over `scale`. The thesis writes squares and says "Euclidean distance"; its code takes the
    root, and so do we. The division by the target tokens is the code's, as is the default of `scale`.

    Attributes:
      distance_weight: beta; 0 is T-MDE or LASER, 0.25 the thesis's choice for cT-MDE and cLASER.
      negative_weight: lambda.
      margin: alpha.
      negatives: N_s, other pairs of the batch; fewer where the batch has no more.
      scale: v: "batch_means", the mean of the norms of the batch means of both sides (the code), or "pairs", the mean
        distance of the pairs (the thesis; then the mean of d_p is 1, and only negatives train).
      label_smoothing: share of the target's probability that is spread over all word pieces.
      vocabulary_chunk: word pieces whose logits exist at a time on each device; 0 takes as many as fit, see
        `models.softmax.automatic_chunk`.
    """

    tasks: ClassVar[tuple[str, ...]] = ("translation",)

    distance_weight: float = 0.0
    negative_weight: float = 1.0
    margin: float = 0.5
    negatives: int = 40
    scale: Scale = "batch_means"
    label_smoothing: float = 0.1
    vocabulary_chunk: int = 0

    def __post_init__(self) -> None:
        self.require_option(self.distance_weight >= 0, "distance_weight", "0 or more")
        self.require_option(self.negative_weight >= 0, "negative_weight", "0 or more")
        self.require_option(self.margin >= 0, "margin", "0 or more")
        self.require_option(self.negatives >= 1, "negatives", "1 or more")
        self.require_option(self.scale in _SCALES, "scale", " or ".join(_SCALES))
        self.require_option(0 <= self.label_smoothing < 1, "label_smoothing", "at least 0 and less than 1")
        self.require_option(self.vocabulary_chunk >= 0, "vocabulary_chunk", "0 or more")

    @property
    def needs(self) -> tuple[Capability, ...]:
        """A decoder."""
        return (Capability.TRANSLATION,)

    def bounds(self, config: Architecture) -> dict[str, int]:
        """Returns the number of target languages that the architecture knows."""
        return {LANGUAGES: getattr(config, "num_languages", 1)}

    def loss(self, model: Model, params: Any, batch: DeviceBatch, key: jax.Array) -> tuple[jax.Array, Metrics]:
        """Returns the loss of the class; `translation_loss`, in nats per target token, `accuracy` of the next token.

        With a distance also `pair_distance` and `negative_loss`, means over the batch.

        Raises:
          InputError: for a batch of one pair, which has no negatives.
        """
        sources, targets = jnp.asarray(batch["source_tokens"]), jnp.asarray(batch["target_tokens"])
        source_key, target_key, negative_key = jax.random.split(key, 3)
        vectors, states = model.apply(
            params, source_key, "translation", sources, targets[:, :-1], jnp.asarray(batch["target_language"])
        )
        of_token, is_hit = self._of_tokens(model, params, states, targets[:, 1:])
        weights = (targets[:, 1:] != PAD_ID).astype(jnp.float32)
        tokens = jnp.maximum(jnp.sum(weights), 1.0)
        translation = jnp.sum(weights * of_token) / tokens
        metrics = {"translation_loss": translation, "accuracy": jnp.sum(weights * is_hit) / tokens}
        if not self.distance_weight:
            return translation / 2, metrics
        if len(sources) < 2:
            raise InputError("got a batch of one pair, which has no negatives", field="BATCH_SIZE", remedy="Set 2.")
        own, others = contrastive_distance(
            vectors,
            model.apply(params, target_key, "sentence", targets),
            draw_negatives(negative_key, len(sources), self.negatives),
            scale=self.scale,
            margin=self.margin,
        )
        distance = jnp.sum(own + self.negative_weight * others) / tokens
        metrics |= {"pair_distance": jnp.mean(own), "negative_loss": jnp.mean(others)}
        return translation / 2 + self.distance_weight * distance, metrics

    def flops(self, config: Architecture, lengths: Mapping[str, int], batch_size: int) -> float:
        """Returns the FLOPs of encoder and decoder, and of the encoder on the targets where there is a distance."""
        source, target = lengths["source_tokens"], lengths["target_tokens"]
        of_row = config.flops("embed", source) + config.flops("write", target - 1)
        if self.distance_weight:
            of_row += config.flops("embed", target) + 2.0 * batch_size * config.embedding_size
        return of_row * batch_size

    def pairs(self, model: Model, params: Any, batch: DeviceBatch) -> Pairs:
        """Returns texts and their translations; equal texts have equal ids, since records have none."""
        return pairs_of_texts(model, params, batch)

    def _of_tokens(
        self, model: Model, params: Any, states: jax.Array, targets: jax.Array
    ) -> tuple[jax.Array, jax.Array]:
        """Returns the smoothed cross entropy of states [B, T, H] at targets int32 [B, T], and its hits: both [B, T]."""
        head: Any = functools.partial(model.module.apply, {"params": params})
        table, bias = head(method="target_table")
        return of_target_tokens(
            (table, bias),
            functools.partial(head, states, method="target_logits"),
            states,
            targets,
            smoothing=self.label_smoothing,
            chunk=self.vocabulary_chunk,
        )


def of_target_tokens(
    output: tuple[jax.Array, jax.Array],
    logits: Callable[[], jax.Array],
    states: jax.Array,
    targets: jax.Array,
    *,
    smoothing: float,
    chunk: int,
) -> tuple[jax.Array, jax.Array]:
    """Returns the smoothed cross entropy of each target token, and whether it is the likeliest: float32 [B, T] both.

    Args:
      output: the table [V, H] and bias [V] from states to logits.
      logits: computes the logits [B, T, V]; called where all of them fit.
      states: [B, T, H].
      targets: int32 [B, T].
      smoothing: share of the target's probability that is spread over all word pieces.
      chunk: see `Translation.vocabulary_chunk`.
    """
    table, bias = output
    chunk = chunk_of_device(targets.size, len(table), chunk)
    if chunk * shard_count("vocab") >= len(table):
        terms = terms_of_logits(logits(), targets)
    else:
        flat = softmax_terms(states.reshape(-1, states.shape[-1]), table, bias, targets.reshape(-1), chunk=chunk)
        terms = SoftmaxTerms(*(values.reshape(targets.shape) for values in flat))
    # The mean logit needs no logits: it is that of the mean row of the table.
    mean = states.astype(jnp.float32) @ jnp.mean(table, axis=0) + jnp.mean(bias)
    expected = (1 - smoothing) * terms.target + smoothing * mean
    hits = (terms.target >= terms.largest).astype(jnp.float32)
    return terms.log_normalizer - expected, hits


def pairs_of_texts(model: Model, params: Any, batch: DeviceBatch) -> Pairs:
    """Returns texts and their translations; equal texts have equal ids, since records have none."""
    embed: Any = functools.partial(model.module.apply, {"params": params}, method="embed")
    sources, targets = jnp.asarray(batch["source_tokens"]), jnp.asarray(batch["target_tokens"])
    ids = _ids_of_texts(sources), _ids_of_texts(targets)
    return Pairs(embed(sources), embed(targets), *ids, jnp.zeros(len(sources), jnp.int32))


def _ids_of_texts(tokens: jax.Array) -> jax.Array:
    """Two words of a digest of each row [B, L], and zeros for event and day: int32 [B, 5]."""
    factors = jnp.array([[-1_640_531_535], [668_265_263]], jnp.int32)
    weights = jnp.cumprod(jnp.broadcast_to(factors, (2, tokens.shape[1])), axis=1, dtype=jnp.int32)
    words = jnp.sum(tokens[:, None, :].astype(jnp.int32) * weights[None], axis=-1, dtype=jnp.int32)
    return jnp.pad(words, ((0, 0), (0, 3)))

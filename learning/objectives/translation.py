"""Translation, alone or with a distance between the vectors of a text and its translation: T-MDE, LASER and NTDV.

Source: Wei Li, "Multilingual document embedding from translation", thesis at HKUST 2021: sections 4.3.1 and 4.5 for
T-MDE, LASER and their contrastive forms, section 3.3 for NTDV (NV and cNV); where it says nothing, its released code
(``tfm_laser_0520``).
"""

import dataclasses
import functools
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import optax

from ...errors import InputError
from ...formats.command_line import option
from ...formats.tfrecords import LANGUAGES
from ...formats.vocabulary import PAD_ID
from ...models.architecture import parts_of
from ...models.encoders import Architecture, Capability
from ...models.losses import Scale, contrastive_distance, draw_negatives, frobenius_gaps, terms_of_table
from .base import DeviceBatch, Metrics, Model, Objective, Pairs
from .texts import side_by_side


@dataclasses.dataclass(frozen=True)
class TranslationObjective(Objective):
    """An objective on texts and their translations.

    Attributes:
      negatives: N_s, other pairs of the batch; fewer where the batch has no more.
      distance_weight: beta.
      vocabulary_chunk: word pieces whose logits exist at a time on each device; 0 takes as many as fit, see
        `models.softmax.automatic_chunk`.
    """

    tasks: ClassVar[tuple[str, ...]] = ("translation",)

    distance_weight: float = option(0.0, ge=0)
    negatives: int = option(40, ge=1)
    vocabulary_chunk: int = option(0, ge=0)

    def pairs(self, model: Model, params: Any, batch: DeviceBatch) -> Pairs:
        """Returns texts and their translations; equal texts have equal ids, since records have none."""
        embed: Any = functools.partial(model.module.apply, {"params": params}, method="embed")
        texts = [jnp.asarray(batch[f"{side}_tokens"]) for side in ("source", "target")]
        (query, answer), (own, other) = map(embed, texts), map(_ids_of_texts, texts)
        return Pairs(query, answer, own, other, jnp.zeros(len(texts[0]), jnp.int32))

    def of_tokens(
        self, output: tuple[jax.Array, jax.Array], states: jax.Array, targets: jax.Array, smoothing: float = 0.0
    ) -> tuple[jax.Array, jax.Array, jax.Array]:
        """Returns the sums over all target tokens of the smoothed cross entropy and of the hits, and their number.

        Args:
          output: the table [V, H] and bias [V] from states to logits.
          states: [B, T, H].
          targets: int32 [B, T].
          smoothing: share of the target's probability that is spread over all word pieces.
        """
        table, bias = output
        terms = terms_of_table(states, table, bias, targets, chunk=self.vocabulary_chunk)
        # The mean logit needs no logits: it is that of the mean row of the table.
        mean = states.astype(jnp.float32) @ jnp.mean(table, axis=0) + jnp.mean(bias)
        losses = terms.log_normalizer - ((1 - smoothing) * terms.target + smoothing * mean)
        weights = (targets != PAD_ID).astype(jnp.float32)
        hits = (terms.target >= terms.largest).astype(jnp.float32)
        return jnp.sum(weights * losses), jnp.sum(weights * hits), jnp.sum(weights)

    def check_negatives(self, pairs: int) -> None:
        """Refuses a batch of one pair where there is a distance."""
        if self.distance_weight and pairs < 2:
            raise InputError("got a batch of one pair, which has no negatives", field="BATCH_SIZE", remedy="Set 2.")


@dataclasses.dataclass(frozen=True)
class Translation(TranslationObjective):
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
    """

    needs: ClassVar[tuple[Capability, ...]] = (Capability.TRANSLATION,)

    negative_weight: float = option(1.0, ge=0)
    margin: float = option(0.5, ge=0)
    scale: Scale = option("batch_means", choices=("batch_means", "pairs"))
    label_smoothing: float = option(0.1, ge=0, lt=1)

    def bounds(self, config: Architecture) -> dict[str, int]:
        """Returns the number of target languages that the architecture knows."""
        return {LANGUAGES: getattr(config, "num_languages", 1)}

    def loss(self, model: Model, params: Any, batch: DeviceBatch, key: jax.Array) -> tuple[jax.Array, Metrics]:
        """Returns the loss of the class; `translation_loss`, in nats per target token, `accuracy` of the next token.

        With a distance also `pair_distance` and `negative_loss`, means over the batch.
        """
        sources, targets = jnp.asarray(batch["source_tokens"]), jnp.asarray(batch["target_tokens"])
        self.check_negatives(len(sources))
        source_key, target_key, negative_key = jax.random.split(key, 3)
        vectors, states = model.apply(
            params, source_key, "translation", sources, targets[:, :-1], jnp.asarray(batch["target_language"])
        )
        output = model.module.apply({"params": params}, method="target_table")
        losses, hits, tokens = self.of_tokens(output, states, targets[:, 1:], self.label_smoothing)
        tokens = jnp.maximum(tokens, 1.0)
        translation = losses / tokens
        metrics = {"translation_loss": translation, "accuracy": hits / tokens}
        if not self.distance_weight:
            return translation / 2, metrics
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


@dataclasses.dataclass(frozen=True)
class BilingualTranslation(TranslationObjective):
    r"""Both translation losses, and the distance of the vectors of both texts against other pairs of the batch.

    The loss is the mean over pairs of a text a in language 0 and its translation b in language 1 of::

        (1 - distance_weight) (l_ab + l_ba) + distance_weight sum_j max(0, margin + margin k_j / (2 v + 1))
        k_j = |P_a - P_b|^2 - |P_a - P_bj|^2

    where l is the cross entropy of a translation, summed over its tokens, P the matrix of a text's vector, |.| the
    Frobenius norm, v the mean norm over both sides of the batch, and b_j other texts of language 1. The cross entropy
    of the language that the model takes each text to be in is added; it reaches the scores of the languages alone. The
    parts of the model (its translators) get no gradient.

    Attributes:
      distance_weight: beta; 0 is NV, 1/2 cNV.
      margin: alpha; the thesis takes twice the root of the width of a head, 64 for 1024 units.
      negatives: N_s, other pairs of the batch; fewer where the batch has no more.
    """

    needs: ClassVar[tuple[Capability, ...]] = (Capability.BILINGUAL, Capability.PARTS)

    distance_weight: float = option(0.5, ge=0, le=1)
    margin: float = option(64.0, gt=0)
    negatives: int = option(20, ge=1)

    def bounds(self, config: Architecture) -> dict[str, int]:  # noqa: ARG002
        """Returns the number of languages: two."""
        return {LANGUAGES: 2}

    def loss(self, model: Model, params: Any, batch: DeviceBatch, key: jax.Array) -> tuple[jax.Array, Metrics]:
        """Returns the loss of the class; `translation_loss`, in nats per token of both directions, and `accuracy`.

        Also `language_loss` and, with a distance, `distance_loss`, a pair's sum over its negatives.
        """
        texts = texts_by_language(batch)
        pairs = len(texts[0])
        self.check_negatives(pairs)
        params = {**params, **{name: jax.lax.stop_gradient(params[name]) for name in parts_of(model.config)}}
        *keys, negative_key = jax.random.split(key, 3)
        head: Any = functools.partial(model.module.apply, {"params": params})
        vectors, sums = [], []
        for number, own_key in enumerate(keys):  # translator k reads the other language and writes language k
            read_key, write_key = jax.random.split(own_key)
            targets = texts[number]
            reading: Any = model.apply(params, read_key, "read", texts[1 - number], number)
            states = model.apply(params, write_key, "write", reading, targets[:, :-1], number)
            vectors.append(reading.sentence)
            sums.append(self.of_tokens(head(number, method="target_table"), states, targets[:, 1:]))
        losses, hits, tokens = (jnp.sum(jnp.stack(values)) for values in zip(*sums, strict=True))
        logits = jnp.stack([head(side, method="language_logits") for side in texts])
        languages = jnp.broadcast_to(jnp.arange(2.0)[:, None], logits.shape)
        language_loss = jnp.mean(optax.sigmoid_binary_cross_entropy(logits, languages))
        loss = (1 - self.distance_weight) * losses / pairs + language_loss
        metrics = {"translation_loss": losses / tokens, "accuracy": hits / tokens, "language_loss": language_loss}
        if self.distance_weight:
            gaps = frobenius_gaps(vectors[1], vectors[0], draw_negatives(negative_key, pairs, self.negatives))
            distance = jnp.mean(jnp.sum(jnp.maximum(0.0, self.margin + self.margin * gaps), axis=1))
            loss, metrics = loss + self.distance_weight * distance, metrics | {"distance_loss": distance}
        return loss, metrics


def texts_by_language(batch: DeviceBatch) -> tuple[jax.Array, jax.Array]:
    """Returns the texts of language 0 and those of language 1, int32 [B, L] both, padded to the longer feature.

    Args:
      batch: "source_tokens" [B, S], "target_tokens" [B, T] and "target_language" [B], 0 or 1.
    """
    rows = side_by_side([jnp.asarray(batch[f"{side}_tokens"]) for side in ("source", "target")])
    sources, targets = rows[:, 0], rows[:, 1]
    is_first = (jnp.asarray(batch["target_language"]) == 0)[:, None]
    return jnp.where(is_first, targets, sources), jnp.where(is_first, sources, targets)


def _ids_of_texts(tokens: jax.Array) -> jax.Array:
    """Two words of a digest of each row [B, L], and zeros for event and day: int32 [B, 5]."""
    factors = jnp.array([[-1_640_531_535], [668_265_263]], jnp.int32)
    weights = jnp.cumprod(jnp.broadcast_to(factors, (2, tokens.shape[1])), axis=1, dtype=jnp.int32)
    words = jnp.sum(tokens[:, None, :].astype(jnp.int32) * weights[None], axis=-1, dtype=jnp.int32)
    return jnp.pad(words, ((0, 0), (0, 3)))

"""InfoNCE on triplets or pairs over the global batch (paper, section 3.2)."""

import dataclasses
import functools
import math
from collections.abc import Mapping
from typing import Any, ClassVar, Final, NamedTuple

import jax
import jax.numpy as jnp

from ...formats.vocabulary import CLS_ID, PAD_ID
from ...models.chunks import map_chunks
from ...models.encoders import Architecture, Capability
from ...models.losses import (
    TEMPERATURE,
    DocumentEvents,
    DocumentIds,
    Kept,
    LossAndAccuracy,
    SameEvent,
    alignment,
    info_nce,
    normalized_prefix,
    uniformity,
)
from ...tasks.triplets import Augmentation
from .base import DeviceBatch, Metrics, Model, Pairs
from .texts import TextObjective, embed_texts, pairs_of_texts, texts_of

ALL_AUGMENTATIONS: Final = tuple(row.name.lower() for row in Augmentation)
# A learned temperature stays between these, as CLIP's scale between 1 and 100.
LEAST_TEMPERATURE, LARGEST_TEMPERATURE = 0.01, 1.0
# The learned parameter: float32 scalar, saved with the encoder's.
LOG_TEMPERATURE: Final = "log_temperature"


class _Embedded(NamedTuple):
    """Embeddings [B, D] of a batch; the negatives [B, D] or [B, N, D], or None where they are not read."""

    anchor: jax.Array
    positive: jax.Array
    negative: jax.Array | None


@dataclasses.dataclass(frozen=True)
class Contrastive(TextObjective):
    """InfoNCE: every anchor finds its positive among the positives and the mined negatives of the global batch.

    The defaults are the paper's. Pairs (`tasks.pairs`) have no mined negatives, no augmentations, no translated texts
    and no events: the options about these do not change their loss.

    Attributes:
      temperature: of InfoNCE; where it is learned, the initial value.
      learn_temperature: the temperature is a parameter of the run, exp(log_temperature), kept between 0.01 and 1
        (Radford et al. 2021). Only training reads it.
      stop_translated_gradient: machine-translated positives and negatives pass no gradient back below the output of the
        transformer; the dense layer of the embedding learns from them (section 3.2.3). Where the architecture lacks
        `Capability.STOPPED_TEXTS`, nothing learns from them.
      hard_negatives: False leaves the mined negatives out: an anchor is compared with the positives of its batch only.
      symmetric: InfoNCE is the mean of both directions, see `models.losses.info_nce`.
      augmentations: rows of Table 1 that take part, by name in lower case. Triplets of other rows have no part in a
        step, so that its batch is effectively smaller (`newsembed examples --weights` leaves them out of the data
        instead).
      translated_triplets: False leaves out triplets with translated texts.
      mask_same_event: candidates that report the event of the anchor are not negatives: those of the same story whose
        days are near. Data without stories, of older versions, mask nothing.
      mask_similar: candidates whose cosine to the positive is above this bar and whose days are near are not negatives
        either; None turns this rule off.
      event_days: days are near if they differ by at most this many.
      matryoshka_sizes: InfoNCE is the sum over these prefixes of the embedding, each scaled back to length 1 (Kusupati
        et al. 2022); ascending, the last being the whole embedding. Empty takes the whole embedding only.
      matryoshka_weights: factor of each prefix; empty gives each 1.
    """

    tasks: ClassVar[tuple[str, ...]] = ("triplets", "pairs")
    parameter_names: ClassVar[tuple[str, ...]] = (LOG_TEMPERATURE,)

    temperature: float = TEMPERATURE
    learn_temperature: bool = False
    stop_translated_gradient: bool = True
    hard_negatives: bool = True
    symmetric: bool = False
    augmentations: tuple[str, ...] = ALL_AUGMENTATIONS
    translated_triplets: bool = True
    mask_same_event: bool = True
    mask_similar: float | None = None
    event_days: int = 1
    matryoshka_sizes: tuple[int, ...] = ()
    matryoshka_weights: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        least, largest = (LEAST_TEMPERATURE, LARGEST_TEMPERATURE) if self.learn_temperature else (0.0, math.inf)
        is_inside = least <= self.temperature <= largest and self.temperature > 0
        self.require_option(is_inside, "temperature", f"a number from {least:g} to {largest:g}, above 0")
        is_known = set(self.augmentations) <= set(ALL_AUGMENTATIONS) and len(self.augmentations) > 0
        self.require_option(is_known, "augmentations", f"some of {', '.join(ALL_AUGMENTATIONS)}")
        is_cosine = self.mask_similar is None or -1 <= self.mask_similar <= 1
        self.require_option(is_cosine, "mask_similar", "a cosine from -1 to 1, or None")
        self.require_option(self.event_days >= 0, "event_days", "0 or more")
        sizes, weights = self.matryoshka_sizes, self.matryoshka_weights
        is_ascending = list(sizes) == sorted(set(sizes)) and min(sizes, default=1) > 0
        self.require_option(is_ascending, "matryoshka_sizes", "positive sizes, ascending")
        fits = len(weights) in (0, len(sizes)) and min(weights, default=0) >= 0
        expected = "a factor of at least 0 for each of matryoshka_sizes, or none"
        self.require_option(fits, "matryoshka_weights", expected)

    def check(self, model: Model) -> None:
        """Refuses prefixes that do not end with the whole embedding, and what `TextObjective` refuses.

        Raises:
          InputError: naming the option.
        """
        super().check(model)
        whole, sizes = model.config.embedding_size, self.matryoshka_sizes
        is_whole = not sizes or sizes[-1] == whole
        self.require_option(is_whole, "matryoshka_sizes", f"the embedding's size, {whole}, as the last")

    def initial_parameters(self) -> dict[str, jax.Array]:
        """Returns the logarithm of the temperature, where it is learned."""
        return {LOG_TEMPERATURE: jnp.log(jnp.float32(self.temperature))} if self.learn_temperature else {}

    def constrain(self, params: Any) -> Any:
        """Returns the parameters with a learned temperature brought back between its bounds."""
        if not self.learn_temperature:
            return params
        clipped = jnp.clip(params[LOG_TEMPERATURE], math.log(LEAST_TEMPERATURE), math.log(LARGEST_TEMPERATURE))
        return {**params, LOG_TEMPERATURE: clipped}

    def loss(self, model: Model, params: Any, batch: DeviceBatch, key: jax.Array) -> tuple[jax.Array, Metrics]:
        """Returns InfoNCE, with `accuracy`, `alignment`, `uniformity` and, where it is learned, `temperature`.

        Raises:
          InputError: for a batch that `gradient_chunk` does not divide.
        """
        texts = self._texts(batch)
        chunks = self.chunks(len(texts[0]), sum(map(texts_of, texts)))
        text_key, mlm_key = self.split_key(key)
        translated = batch["translated"] > 0 if "translated" in batch else None
        anchor, *others = self._vectors(model, params, texts, translated, text_key)
        embedded = _Embedded(anchor, others[0], others[1] if len(others) > 1 else None)
        kept = self._kept(batch)
        loss, accuracy = self._info_nce(params, embedded, batch, kept, chunks)
        metrics = {"accuracy": accuracy, **_geometry(embedded, kept, chunks)}
        if self.learn_temperature:
            metrics["temperature"] = self._temperature(params)
        own = jnp.broadcast_to(True if kept is None else kept, len(anchor))
        other = own & ~translated if self.stop_translated_gradient and translated is not None else own
        learnable = [own, *[other] * (len(texts) - 1)]
        texts_and_rows = list(zip(texts, learnable, strict=True))
        return self.with_masked_words(model, params, (loss, metrics), texts_and_rows, mlm_key)

    def pairs(self, model: Model, params: Any, batch: DeviceBatch) -> Pairs:
        """Returns anchors and positives."""
        return pairs_of_texts(model, params, batch, self.chunks(len(batch["anchor_tokens"]), 2))

    def flops(self, config: Architecture, lengths: Mapping[str, int], batch_size: int) -> float:
        """Returns the FLOPs of all embeddings and of their similarities: B anchors x 2 B candidates x 2 D.

        For pairs there are B candidates.
        """
        embeddings = math.fsum(config.flops("embed", length) for length in lengths.values()) * batch_size
        return embeddings + batch_size * (len(lengths) - 1) * batch_size * 2 * config.embedding_size

    def _vectors(
        self, model: Model, params: Any, texts: list[jax.Array], translated: jax.Array | None, key: jax.Array
    ) -> list[jax.Array]:
        """Returns the embeddings of anchors and other texts, of which those that are translated are stopped."""
        chunks = self.chunks(len(texts[0]), sum(map(texts_of, texts)))
        stops = self.stop_translated_gradient and translated is not None
        if stops and Capability.STOPPED_TEXTS in model.config.capabilities:

            def embed(rows: tuple[list[jax.Array], jax.Array], chunk_key: jax.Array) -> list[jax.Array]:
                parts, stopped = rows
                stops = [jnp.zeros_like(stopped), *[stopped] * (len(parts) - 1)]
                return embed_texts(model, params, parts, chunk_key, stops)

            return map_chunks(embed, (texts, translated), key, chunks)
        anchor, *others = map_chunks(functools.partial(embed_texts, model, params), texts, key, chunks)
        if stops:
            others = [_stop_where(translated, embeddings) for embeddings in others]
        return [anchor, *others]

    def _texts(self, batch: DeviceBatch) -> list[jax.Array]:
        """Returns the tokens of anchors, positives and, where there are some and they count, negatives."""
        has_negatives = self.hard_negatives and "negative_tokens" in batch
        names = ("anchor", "positive", "negative") if has_negatives else ("anchor", "positive")
        texts = [batch[f"{name}_tokens"] for name in names]
        # One text is [B, L]; several negatives are [B, N, L].
        if texts[-1].ndim == 3:
            # Attention over nothing has no meaning: an empty text, which nobody reads, gets one token.
            texts[-1] = texts[-1].at[:, :, 0].set(jnp.where(_has_text(texts[-1]), texts[-1][:, :, 0], CLS_ID))
        return texts

    def _info_nce(
        self, params: Any, embedded: _Embedded, batch: DeviceBatch, kept: jax.Array | None, chunks: int
    ) -> LossAndAccuracy:
        """Returns the sum over the prefixes, and the accuracy of the whole embedding."""
        are_several = embedded.negative is not None and embedded.negative.ndim == 3
        contrast = functools.partial(
            info_nce,
            temperature=self._temperature(params),
            doc_ids=self._doc_ids(batch),
            kept=Kept(kept, _has_text(batch["negative_tokens"]) if are_several else None),
            symmetric=self.symmetric,
            chunks=chunks,
        )
        sizes = self.matryoshka_sizes
        if not sizes:
            return contrast(*embedded)
        total = jnp.zeros(())
        for size, weight in zip(sizes, self.matryoshka_weights or [1.0] * len(sizes), strict=True):
            prefixes = (vectors if vectors is None else normalized_prefix(vectors, size) for vectors in embedded)
            loss, accuracy = contrast(*prefixes)
            total += weight * loss
        return LossAndAccuracy(total, accuracy)

    def _doc_ids(self, batch: DeviceBatch) -> DocumentIds:
        """Returns the documents of a batch, with the rule for those of one event."""
        rule = None
        # Batches that readers make always have events; others may leave them out where none is known.
        if "anchor_event" in batch and (self.mask_same_event or self.mask_similar is not None):
            events = DocumentEvents(*_of_roles(batch, "event", 3))
            rule = SameEvent(events, by_id=self.mask_same_event, similarity=self.mask_similar, days=self.event_days)
        if "negative_doc_id" not in batch:
            return DocumentIds(batch["anchor_doc_id"], batch["positive_doc_id"], None)
        anchor, positive, negative = _of_roles(batch, "doc_id", 2)
        return DocumentIds(anchor, positive, negative, rule)

    def _temperature(self, params: Any) -> float | jax.Array:
        return jnp.exp(params[LOG_TEMPERATURE]) if self.learn_temperature else self.temperature

    def _kept(self, batch: DeviceBatch) -> jax.Array | None:
        """Returns which triplets take part, bool [B]; None for all."""
        if "augmentation" not in batch:
            return None
        if self.translated_triplets and set(self.augmentations) == set(ALL_AUGMENTATIONS):
            return None
        rows = jnp.array([Augmentation[name.upper()] for name in self.augmentations])
        kept = jnp.any(batch["augmentation"][:, None] == rows, axis=1)
        return kept if self.translated_triplets else kept & (batch["translated"] == 0)


def _of_roles(batch: DeviceBatch, feature: str, size: int) -> list[jax.Array]:
    """Returns a feature of anchors [B, size], positives [B, size] and negatives [B, N, size]."""
    anchor, positive, negative = (batch[f"{role}_{feature}"] for role in ("anchor", "positive", "negative"))
    return [anchor, positive, negative.reshape(len(negative), -1, size)]


def _geometry(embedded: _Embedded, kept: jax.Array | None, chunks: int) -> Metrics:
    """Returns alignment and uniformity of anchors and positives, without gradient."""
    anchor, positive = jax.lax.stop_gradient((embedded.anchor, embedded.positive))
    distance = alignment(anchor, positive, kept)
    spread = uniformity(anchor, kept, chunks=chunks) + uniformity(positive, kept, chunks=chunks)
    return {"alignment": distance, "uniformity": spread / 2}


def _has_text(tokens: jax.Array) -> jax.Array:
    """Returns which of several negatives [B, N, L] are there, bool [B, N]; the others are empty texts."""
    return tokens[:, :, 0] != PAD_ID


def _stop_where(condition: jax.Array, vectors: jax.Array) -> jax.Array:
    """Returns `vectors` [B, ..., D], without gradient where `condition` [B]."""
    return jnp.where(condition.reshape(-1, *[1] * (vectors.ndim - 1)), jax.lax.stop_gradient(vectors), vectors)

"""InfoNCE on triplets or pairs over the global batch (paper, section 3.2)."""

import dataclasses
from typing import Any, ClassVar, Final

import jax
import jax.numpy as jnp

from ...formats.command_line import option
from ...formats.vocabulary import CLS_ID, PAD_ID
from ...models.attention import of_unit_length
from ...models.encoders import Capability
from ...models.encoders.news import stop_rows
from ...models.losses import (
    TEMPERATURE,
    Documents,
    Kept,
    LossAndAccuracy,
    alignment,
    info_nce,
    uniformity,
)
from ...tasks.kinds import Augmentation
from .base import DeviceBatch, Metrics, Model
from .texts import PairObjective, documents_of, texts_of

ALL_AUGMENTATIONS: Final = tuple(row.name.lower() for row in Augmentation)


@dataclasses.dataclass(frozen=True)
class Contrastive(PairObjective):
    """InfoNCE: every anchor finds its positive among the positives and the mined negatives of the global batch.

    Machine-translated positives and negatives pass no gradient back below the output of the transformer; the dense
    layer of the embedding learns from them (section 3.2.3). Where the architecture lacks `Capability.STOPPED_TEXTS`,
    nothing learns from them.

    The defaults are the paper's. Pairs (`tasks.kinds`) have no mined negatives, no augmentations, no translated texts
    and no events: the options about these do not change their loss.

    Attributes:
      temperature: of InfoNCE.
      hard_negatives: False leaves the mined negatives out: an anchor is compared with the positives of its batch only.
      negative_groups: the batch is cut into so many equal parts, and an anchor is compared with texts of its own part
        only. The number of devices gives negatives of the own device, which Table 10 compares with those of all.
      symmetric: InfoNCE is the mean of both directions, see `models.losses.info_nce`.
      augmentations: rows of Table 1 that take part, by name in lower case. Triplets of other rows have no part in a
        step, so that its batch is effectively smaller (`newsembed examples --weights` leaves them out of the data
        instead).
      translated_triplets: False leaves out triplets with translated texts.
      mask_same_event: candidates that report the event of the anchor are not negatives: those of the same story whose
        days are near.
      event_days: days are near if they differ by at most this many.
      matryoshka_sizes: InfoNCE is the sum over these prefixes of the embedding, each scaled back to length 1 (Kusupati
        et al. 2022); ascending, the last being the whole embedding. Empty takes the whole embedding only.
    """

    tasks: ClassVar[tuple[str, ...]] = ("triplets", "pairs")

    temperature: float = option(TEMPERATURE, gt=0)
    hard_negatives: bool = True
    negative_groups: int = option(1, ge=1)
    symmetric: bool = False
    augmentations: tuple[str, ...] = option(ALL_AUGMENTATIONS, choices=ALL_AUGMENTATIONS)
    translated_triplets: bool = True
    mask_same_event: bool = True
    event_days: int = option(1, ge=0)
    matryoshka_sizes: tuple[int, ...] = option((), ge=1)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.augmentations:
            raise self.refuse("augmentations", f"some of {', '.join(ALL_AUGMENTATIONS)}")
        if list(self.matryoshka_sizes) != sorted(set(self.matryoshka_sizes)):
            raise self.refuse("matryoshka_sizes", "ascending sizes")

    def check(self, model: Model) -> None:
        """Refuses prefixes that do not end with the whole embedding, and what `PairObjective` refuses."""
        super().check(model)
        whole, sizes = model.config.embedding_size, self.matryoshka_sizes
        if sizes and sizes[-1] != whole:
            raise self.refuse("matryoshka_sizes", f"the embedding's size, {whole}, as the last")

    def loss(self, model: Model, params: Any, batch: DeviceBatch, key: jax.Array) -> tuple[jax.Array, Metrics]:
        """Returns InfoNCE, with `accuracy`, `alignment` and `uniformity`."""
        texts = self._texts(batch)
        text_key, mlm_key = self.split_key(key)
        stopped = batch["translated"] > 0 if "translated" in batch else None
        vectors = self._vectors(model, params, texts, stopped, text_key)
        kept, chunks = self._kept(batch), self.chunks(len(texts[0]), sum(map(texts_of, texts)))
        loss, accuracy = self._info_nce(vectors, batch, kept, chunks)
        anchor, positive = jax.lax.stop_gradient(vectors[:2])
        spread = uniformity(anchor, kept, chunks=chunks) + uniformity(positive, kept, chunks=chunks)
        metrics = {"accuracy": accuracy, "alignment": alignment(anchor, positive, kept), "uniformity": spread / 2}
        own = jnp.broadcast_to(True if kept is None else kept, len(anchor))
        learnable = [own, *[own if stopped is None else own & ~stopped] * (len(texts) - 1)]
        return self.with_masked_words(model, params, (loss, metrics), texts, mlm_key, learnable)

    def _vectors(
        self, model: Model, params: Any, texts: list[jax.Array], stopped: jax.Array | None, key: jax.Array
    ) -> list[jax.Array]:
        """Returns the embeddings of anchors and other texts; the latter pass no gradient where they are stopped."""
        if stopped is None or Capability.STOPPED_TEXTS in model.config.capabilities:
            return self.embeddings(model, params, texts, key, stopped)
        anchor, *others = self.embeddings(model, params, texts, key)
        return [anchor, *(stop_rows(vectors, stopped) for vectors in others)]

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
        self, vectors: list[jax.Array], batch: DeviceBatch, kept: jax.Array | None, chunks: int
    ) -> LossAndAccuracy:
        """Returns the sum over the prefixes, and the accuracy of the whole embedding."""
        are_several = vectors[-1].ndim == 3
        documents, present = self._documents(batch), _has_text(batch["negative_tokens"]) if are_several else None
        rows, groups = len(vectors[0]), self.negative_groups
        if rows % groups:
            raise self.refuse("negative_groups", f"a divisor of the batch of {rows} rows")

        def contrast(*some: jax.Array) -> LossAndAccuracy:
            def of_group(some: Any, ids: Any, kept: Any) -> LossAndAccuracy:
                return info_nce(
                    *some,
                    temperature=self.temperature,
                    documents=Documents(ids[0], ids[1], ids[2], self.event_days),
                    kept=Kept(*kept),
                    symmetric=self.symmetric,
                    chunks=chunks if groups == 1 else 1,
                )

            parts = some, documents[:3], (kept, present)
            if groups == 1:
                return of_group(*parts)
            cut = jax.tree.map(lambda one: one.reshape(groups, rows // groups, *one.shape[1:]), parts)
            return LossAndAccuracy(*(jnp.mean(one) for one in jax.vmap(of_group)(*cut)))

        if not self.matryoshka_sizes:
            return contrast(*vectors)
        total = jnp.zeros(())
        for size in self.matryoshka_sizes:
            loss, accuracy = contrast(*(of_unit_length(one[..., :size]) for one in vectors))
            total += loss
        return LossAndAccuracy(total, accuracy)

    def _documents(self, batch: DeviceBatch) -> Documents:
        """Returns the documents of a batch."""
        roles = [role for role in ("anchor", "positive", "negative") if f"{role}_doc_id" in batch]
        found = {role: documents_of(batch, role, events=self.mask_same_event) for role in roles}
        return Documents(**found, days=self.event_days)

    def _kept(self, batch: DeviceBatch) -> jax.Array | None:
        """Returns which triplets take part, bool [B]; None for all."""
        if "augmentation" not in batch:
            return None
        if self.translated_triplets and set(self.augmentations) == set(ALL_AUGMENTATIONS):
            return None
        rows = jnp.array([Augmentation[name.upper()] for name in self.augmentations])
        kept = jnp.any(batch["augmentation"][:, None] == rows, axis=1)
        return kept if self.translated_triplets else kept & (batch["translated"] == 0)


def _has_text(tokens: jax.Array) -> jax.Array:
    """Returns which of several negatives [B, N, L] are there, bool [B, N]; the others are empty texts."""
    return tokens[:, :, 0] != PAD_ID

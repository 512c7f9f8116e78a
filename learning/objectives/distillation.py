"""Distillation: a text is near to the documents that a teacher calls near, by vectors of them that do not change."""

import dataclasses
import functools
from collections.abc import Mapping
from typing import Any, ClassVar, Final, NamedTuple

import jax
import jax.numpy as jnp

from ...errors import InputError
from ...formats.teacher import Teacher, read_teacher
from ...models.chunks import map_chunks
from ...models.encoders import Architecture
from ...models.losses import TEMPERATURE, alignment, mean_over
from .base import DeviceBatch, Metrics, Model, Pairs
from .texts import TextObjective, embed_texts, pairs_of_texts

_ROLES: Final = ("anchor", "positive")


class _Text(NamedTuple):
    """Texts of one role.

    Attributes:
      vectors: float32 [B, D].
      own: int32 [B], the row of the text's document among the teacher's.
      other: int32 [B], the row of the document that it is paired with; its own where a pair is of one document.
      known: bool [B], whether the teacher has both.
    """

    vectors: jax.Array
    own: jax.Array
    other: jax.Array
    known: jax.Array


def soft_cross_entropy(
    scores: jax.Array, own: jax.Array, neighbors: jax.Array, probabilities: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """Cross entropy of a softmax over documents with the teacher's shares, each document without itself.

    Args:
      scores: cosines divided by the temperature, [B, N].
      own: int32 [B], the column of the row's own document, which is no candidate.
      neighbors: int32 [B, K], columns.
      probabilities: float32 [B, K], the shares of the neighbors.

    Returns:
      The cross entropy [B], and the logarithm of the sum over the candidates [B].
    """
    columns = jnp.arange(scores.shape[1])
    total = jax.nn.logsumexp(scores, axis=1, where=columns != own[:, None])
    wanted = jnp.take_along_axis(scores, neighbors, axis=1)
    return total - jnp.sum(probabilities * wanted, axis=1), total


def pair_cross_entropy(scores: jax.Array, own: jax.Array, other: jax.Array, total: jax.Array) -> jax.Array:
    """Cross entropy [B] of finding the other document of a pair among all documents but the own.

    Where both are one document, as for a title and its body, that document is found among all.

    Args:
      scores: as for `soft_cross_entropy`, [B, N].
      own: int32 [B].
      other: int32 [B].
      total: of `soft_cross_entropy`, [B].
    """
    wanted = jnp.take_along_axis(scores, other[:, None], axis=1)[:, 0]
    return jnp.where(own == other, jnp.logaddexp(total, wanted), total) - wanted


@dataclasses.dataclass(frozen=True)
class Distillation(TextObjective):
    """A text of a document finds the documents that a teacher calls near, and the document that it is paired with.

    Both are a softmax over all documents of the teacher, by the cosine of the text's embedding with a fixed vector of
    each, the key. `newsembed lift` takes the keys from the encoder that it starts from and the shares from this
    encoder and TF-IDF together, so that the layers learn what exact words know. Because keys do not change, each text
    has all documents as candidates at the price of one product, and the embeddings stay where they started: with keys
    that follow the training, they move away from those of the texts that were not seen lately.

    Mined negatives, augmentations, events and the flag of translated texts are not read. Texts of documents that the
    teacher lacks have no part.

    Attributes:
      teacher: file, see `formats.teacher`.
      temperature: of the softmax.
      pair_weight: factor of the pairs' part; 0 leaves it out.
    """

    tasks: ClassVar[tuple[str, ...]] = ("triplets", "pairs")

    teacher: str = ""
    temperature: float = TEMPERATURE
    pair_weight: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require_option(bool(self.teacher), "teacher", "the file of a teacher, as newsembed lift writes it")
        self.require_option(self.temperature > 0, "temperature", "a number above 0")
        self.require_option(self.pair_weight >= 0, "pair_weight", "0 or more")

    @functools.cached_property
    def known(self) -> Teacher:
        """The teacher; read when it is first needed.

        Raises:
          InputError: see `formats.teacher.read_teacher`.
        """
        return read_teacher(self.teacher)

    def check(self, model: Model) -> None:
        """Refuses keys of another size than the embedding's, and what `TextObjective` refuses.

        Raises:
          InputError: naming the file or the option.
        """
        super().check(model)
        size, whole = self.known.keys.shape[1], model.config.embedding_size
        if size != whole:
            remedy = "Make the teacher from the encoder that the training starts from."
            problem = f"the keys have {size} numbers, the model's embedding has {whole}"
            raise InputError(problem, path=self.teacher, field="keys", remedy=remedy)

    def loss(self, model: Model, params: Any, batch: DeviceBatch, key: jax.Array) -> tuple[jax.Array, Metrics]:
        """Returns the sum of both parts, with `accuracy`, `alignment`, `teacher_loss`, `pair_loss` and `known`.

        The accuracy is the share of texts for which no other candidate scores above the document of the pair, and
        `known` the share of texts whose documents the teacher has.

        Raises:
          InputError: for a batch that `gradient_chunk` does not divide.
        """
        texts = [batch[f"{role}_tokens"] for role in _ROLES]
        text_key, mlm_key = self.split_key(key)
        embed = functools.partial(embed_texts, model, params)
        anchor, positive = map_chunks(embed, texts, text_key, self.chunks(len(texts[0]), len(texts)))
        of_anchor, of_positive = (_places(self.known, batch[f"{role}_doc_id"]) for role in _ROLES)
        known = (of_anchor >= 0) & (of_positive >= 0)
        rows = (_Text(anchor, of_anchor, of_positive, known), _Text(positive, of_positive, of_anchor, known))
        parts = [self._parts(text) for text in rows]
        teacher_loss, pair_loss, accuracy = (sum(values) / len(parts) for values in zip(*parts, strict=True))
        metrics = {
            "accuracy": accuracy,
            "alignment": alignment(jax.lax.stop_gradient(anchor), jax.lax.stop_gradient(positive), known),
            "teacher_loss": teacher_loss,
            "pair_loss": pair_loss,
            "known": jnp.mean(known.astype(jnp.float32)),
        }
        every = jnp.ones(len(known), bool)
        own = (teacher_loss + self.pair_weight * pair_loss, metrics)
        return self.with_masked_words(model, params, own, [(text, every) for text in texts], mlm_key)

    def pairs(self, model: Model, params: Any, batch: DeviceBatch) -> Pairs:
        """Returns anchors and positives."""
        return pairs_of_texts(model, params, batch, self.chunks(len(batch["anchor_tokens"]), len(_ROLES)))

    def flops(self, config: Architecture, lengths: Mapping[str, int], batch_size: int) -> float:
        """Returns the FLOPs of embedding anchors and positives, and of their cosines with N keys: 2 N D each."""
        each = 2.0 * len(self.known.keys) * config.embedding_size
        return batch_size * sum(config.flops("embed", lengths[f"{role}_tokens"]) + each for role in _ROLES)

    def _parts(self, text: _Text) -> tuple[jax.Array, jax.Array, jax.Array]:
        """Returns the teacher's part, the pairs' part and the accuracy, means over texts with known documents."""
        own, other = jnp.maximum(text.own, 0), jnp.maximum(text.other, 0)
        scores = jnp.einsum("bd,nd->bn", text.vectors, self.known.keys) / self.temperature
        neighbors, probabilities = jnp.asarray(self.known.neighbors)[own], jnp.asarray(self.known.probabilities)[own]
        soft, total = soft_cross_entropy(scores, own, neighbors, probabilities)
        paired = pair_cross_entropy(scores, own, other, total)
        is_candidate = (jnp.arange(scores.shape[1]) != own[:, None]) | (own == other)[:, None]
        best = jnp.max(scores, axis=1, where=is_candidate, initial=-jnp.inf)
        found = jnp.take_along_axis(scores, other[:, None], axis=1)[:, 0] >= best
        soft_loss, pair_loss, accuracy = (
            mean_over(values, text.known) for values in (soft, paired, found.astype(jnp.float32))
        )
        return soft_loss, pair_loss, accuracy


def _places(teacher: Teacher, doc_ids: jax.Array) -> jax.Array:
    """Returns the rows of documents [B, 2] in the teacher's tables, int32 [B]; -1 for those that it lacks."""
    same = jnp.all(doc_ids[:, None, :] == teacher.doc_ids[None], axis=2)
    return jnp.where(jnp.any(same, axis=1), jnp.argmax(same, axis=1), -1).astype(jnp.int32)

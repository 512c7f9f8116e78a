"""Distillation: a text is near to the documents that a teacher calls near, by vectors of them that do not change."""

import dataclasses
import functools
from typing import Any, ClassVar, Final

import jax
import jax.numpy as jnp
import numpy as np

from ...errors import InputError
from ...formats.arrays import NO_DAY, Teacher, read_teacher
from ...formats.command_line import option
from ...models.losses import TEMPERATURE, alignment, mean_over
from ..optimizers import matching_parameters
from .base import DeviceBatch, Metrics, Model
from .texts import PairObjective

_ROLES: Final = ("anchor", "positive")
_TABLES: Final = {field.name: f"teacher/{field.name}" for field in dataclasses.fields(Teacher)}  # names in a batch
_LONG: Final = 1_000  # characters


def soft_cross_entropy(scores: jax.Array, own: jax.Array, neighbors: jax.Array, probabilities: jax.Array) -> jax.Array:
    """Cross entropy [B] of a softmax over documents with the teacher's shares, each document without itself.

    All documents that are not neighbors are one class, with the share that the neighbors leave.

    Args:
      scores: cosines divided by the temperature, [B, N].
      own: int32 [B], the column of the row's own document, which is no candidate.
      neighbors: int32 [B, K], different columns.
      probabilities: float32 [B, K], the shares of the neighbors.
    """
    others = jnp.arange(scores.shape[1]) != own[:, None]
    total = jax.nn.logsumexp(scores, axis=1, where=others)
    wanted = jnp.take_along_axis(scores, neighbors, axis=1)
    loss = jnp.sum(probabilities * (total[:, None] - wanted), axis=1)
    if neighbors.shape[1] == scores.shape[1] - 1:
        return loss  # each document is a neighbor
    rows = jnp.arange(len(scores))[:, None]
    rest = jax.nn.logsumexp(scores, axis=1, where=others.at[rows, neighbors].set(False))
    return loss + jnp.maximum(1 - jnp.sum(probabilities, axis=1), 0) * (total - rest)


@dataclasses.dataclass(frozen=True)
class Distillation(PairObjective):
    """A text of a document finds the documents that a teacher calls near, and the document that it is paired with.

    Both are a softmax over all documents of the teacher, by the cosine of the text's embedding with a fixed vector of
    each, the key. `newsembed lift` takes the keys from the encoder that it starts from and the shares from this
    encoder and TF-IDF together, so that the layers learn what exact words know. Because keys do not change, each text
    has all documents as candidates at the price of one product, and the embeddings stay where they started: with keys
    that follow the training, they move away from those of the texts that were not seen lately.

    An article of the same days that the keys call near often reports the event of the pair, so it is no candidate
    for the pair. A mined pair of short texts, such as headlines, may report two events: then other articles of the same
    days are nearer to each of both. So a document of fewer than 1,000 characters has to have the other one among its
    nearest, by the keys and among the documents of the same days and of the other's language, without those that are
    near to the other.

    Mined negatives, augmentations, events and the flag of translated texts are not read. Texts of documents that the
    teacher lacks have no part.

    Attributes:
      teacher: file, see `formats.arrays`.
      temperature: of the softmax.
      pair_weight: factor of the pairs' part; 0 leaves it out.
      pair_rank: a pair counts if its short documents have the other one among so many nearest; 0 counts all.
      near_days: an article at most this many days from one of the pair is no candidate for it,
      near_similarity: if the cosine of their keys is above this; 1 keeps every candidate.
      frozen: regular expression; parameters whose path ("layers_0/mlp_in/kernel") it matches from the start have no
        gradient, so that the backward pass ends above them. Weight decay still changes them. Empty trains all.
    """

    tasks: ClassVar[tuple[str, ...]] = ("triplets", "pairs")

    teacher: str = ""
    temperature: float = option(TEMPERATURE, gt=0)
    pair_weight: float = option(1.0, ge=0)
    pair_rank: int = option(0, ge=0)
    near_days: int = option(2, ge=0)
    near_similarity: float = option(0.5, ge=-1, le=1)
    frozen: str = ""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.teacher:
            raise self.refuse("teacher", "the file of a teacher, as newsembed lift writes it")

    @functools.cached_property
    def known(self) -> Teacher:
        """The teacher; read when it is first needed.

        Raises:
          InputError: see `formats.arrays.read_teacher`.
        """
        return read_teacher(self.teacher)

    def tables(self) -> dict[str, np.ndarray]:
        """Returns the arrays of the teacher.

        Raises:
          InputError: see `formats.arrays.read_teacher`.
        """
        return {key: getattr(self.known, name) for name, key in _TABLES.items()}

    def check(self, model: Model) -> None:
        """Refuses keys of another size than the embedding's, and what `PairObjective` refuses.

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
        """Returns the sum of both parts, with `accuracy`, `alignment`, both losses, `known` and `paired`.

        The accuracy is the share of texts for which no other candidate scores above the document of the pair, `known`
        the share of texts whose documents the teacher has, and `paired` that of the pairs that count.

        Raises:
          InputError: for a batch that `gradient_chunk` does not divide, or if `frozen` matches no parameter.
        """
        if self.frozen:
            held = matching_parameters(params, self.frozen, "Distillation.frozen")
            params = jax.tree.map(
                lambda value, is_held: jax.lax.stop_gradient(value) if is_held else value, params, held
            )
        teacher: Any = Teacher(**{name: jnp.asarray(batch[key]) for name, key in _TABLES.items()})
        texts = [batch[f"{role}_tokens"] for role in _ROLES]
        text_key, mlm_key = self.split_key(key)
        anchor, positive = self.embeddings(model, params, texts, text_key)
        of_anchor, of_positive = (_places(teacher, batch[f"{role}_doc_id"]) for role in _ROLES)
        known = (of_anchor >= 0) & (of_positive >= 0)
        of_anchor, of_positive = jnp.maximum(of_anchor, 0), jnp.maximum(of_positive, 0)
        near = self._near(teacher, of_anchor) | self._near(teacher, of_positive)
        paired = known
        if self.pair_rank:
            paired &= self._accepts(teacher, of_anchor, of_positive) & self._accepts(teacher, of_positive, of_anchor)
        rows = (anchor, of_anchor, of_positive), (positive, of_positive, of_anchor)
        masks = known, paired, paired
        parts = [map(mean_over, self._parts(teacher, near, *text), masks) for text in rows]
        teacher_loss, pair_loss, accuracy = (sum(values) / len(rows) for values in zip(*parts, strict=True))
        metrics = {
            "accuracy": accuracy,
            "alignment": alignment(jax.lax.stop_gradient(anchor), jax.lax.stop_gradient(positive), known),
            "teacher_loss": teacher_loss,
            "pair_loss": pair_loss,
            "known": jnp.mean(known.astype(jnp.float32)),
            "paired": jnp.mean(paired.astype(jnp.float32)),
        }
        own = (teacher_loss + self.pair_weight * pair_loss, metrics)
        return self.with_masked_words(model, params, own, texts, mlm_key)

    def _same_days(self, teacher: Any, documents: jax.Array) -> jax.Array:
        """Returns which documents [B, N] are near in days to some documents, int32 [B]."""
        days, mine = teacher.days, teacher.days[documents][:, None]
        return (mine != NO_DAY) & (days != NO_DAY) & (jnp.abs(days - mine) <= self.near_days)

    def _near(self, teacher: Any, documents: jax.Array) -> jax.Array:
        """Returns which documents [B, N] are near in days and by their keys to some documents, int32 [B]."""
        similarities = jnp.einsum("bd,nd->bn", teacher.keys[documents], teacher.keys)
        return self._same_days(teacher, documents) & (similarities > self.near_similarity)

    def _accepts(self, teacher: Any, documents: jax.Array, others: jax.Array) -> jax.Array:
        """Returns bool [B]: whether ``others`` [B] are among the nearest of ``documents`` [B], or these are long.

        Nearest of the same days and of the other's language. What is near to the other does not count: of a large
        event, many reports may be nearer than this one.
        """
        similarities = jnp.einsum("bd,nd->bn", teacher.keys[documents], teacher.keys)
        own = jnp.take_along_axis(similarities, others[:, None], axis=1)
        compared = teacher.languages[others][:, None] == teacher.languages
        compared &= self._same_days(teacher, documents) & ~self._near(teacher, others)
        compared &= jnp.arange(len(teacher.keys)) != documents[:, None]
        is_nearest = jnp.sum(compared & (similarities > own), axis=1) < self.pair_rank
        return is_nearest | (teacher.lengths[documents] >= _LONG)

    def _parts(
        self, teacher: Any, near: jax.Array, vectors: jax.Array, own: jax.Array, other: jax.Array
    ) -> tuple[jax.Array, jax.Array, jax.Array]:
        """The teacher's part, the pairs' part and whether the other document is found, [B] each.

        Args:
          teacher: its tables.
          near: bool [B, N], documents that are no candidates for the pair.
          vectors: of texts, float32 [B, D].
          own: int32 [B], the row of the text's document among the teacher's.
          other: int32 [B], the row of the document that it is paired with; its own where a pair is of one document.
        """
        scores = jnp.einsum("bd,nd->bn", vectors, teacher.keys) / self.temperature
        columns = jnp.arange(scores.shape[1])
        is_other = columns == other[:, None]
        candidates = is_other | ((columns != own[:, None]) & ~near)
        best = jnp.max(scores, axis=1, where=candidates & ~is_other, initial=-jnp.inf)
        wanted = jnp.take_along_axis(scores, other[:, None], axis=1)[:, 0]
        soft = soft_cross_entropy(scores, own, teacher.neighbors[own], teacher.probabilities[own])
        # The other document is found among the candidates, of which it is one.
        paired = jax.nn.logsumexp(scores, axis=1, where=candidates) - wanted
        return soft, paired, (wanted >= best).astype(jnp.float32)


def _places(teacher: Any, doc_ids: jax.Array) -> jax.Array:
    """Returns the rows of documents [B, 2] in the teacher's tables, int32 [B]; -1 for those that it lacks."""
    same = jnp.all(doc_ids[:, None, :] == teacher.doc_ids[None], axis=2)
    return jnp.where(jnp.any(same, axis=1), jnp.argmax(same, axis=1), -1).astype(jnp.int32)

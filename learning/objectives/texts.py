"""What objectives share: batches in chunks, embeddings of several texts in one pass, masked words next to another loss.

How a step's key is split is a part of each function's contract: the same key gives the same masks and dropout in every
version.
"""

import dataclasses
import functools
import math
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Final

import jax
import jax.numpy as jnp
import numpy as np

from ...errors import InputError
from ...formats.command_line import option
from ...formats.vocabulary import MASK_ID, PAD_ID, SPECIAL_TOKENS, UNK_ID
from ...models.encoders import Capability
from ...models.losses import LossAndAccuracy, mean_cross_entropy, terms_of_table
from ...models.masking import MASKING_RATE, mask_whole_words, whole_word_ids
from ...models.softmax import SoftmaxTerms, chunk_count, map_chunks, shard_count
from .base import DeviceBatch, Metrics, Model, Objective, Pairs

_NO_WORDS: Final = tuple(number for number in range(len(SPECIAL_TOKENS)) if number != UNK_ID)


@dataclasses.dataclass(frozen=True)
class WordPrediction(Objective):
    """An objective that predicts masked words, or may do so in addition to its own loss.

    Attributes:
      masking_rate: share of word tokens that the masked language model predicts.
      vocabulary_chunk: word pieces whose logits exist at a time on each device. 0 takes all of them while they fit
        `models.softmax.LOGITS_AT_A_TIME`, otherwise as many thousands as fit, see `models.softmax.automatic_chunk`.
      gradient_chunk: texts whose activations exist at a time, over all devices. 0 takes the whole batch. Loss and
        gradient stay those of the whole batch (Gao et al. 2021); each text is encoded once more in the backward pass.
    """

    masking_rate: float = option(MASKING_RATE, gt=0, lt=1)
    vocabulary_chunk: int = option(0, ge=0)
    gradient_chunk: int = option(0, ge=0)

    def chunks(self, rows: int, texts: int) -> int:
        """Returns the number of chunks in which the rows of a batch, of so many texts each, are encoded.

        Raises:
          InputError: if `gradient_chunk` is smaller than the smallest chunk, or the batch cannot be divided.
        """
        if not self.gradient_chunk:
            return 1
        try:
            return chunk_count(rows, self.gradient_chunk // texts)
        except ValueError as error:
            least = texts * shard_count("batch")
            raise InputError(
                f"got {self.gradient_chunk} for a batch of {rows} rows with {texts} texts each",
                field=f"{type(self).__name__}.gradient_chunk",
                remedy=f"Set {least} or more, and a BATCH_SIZE that is a multiple of {least // texts}.",
            ) from error

    def predict(
        self,
        model: Model,
        params: Any,
        tokens: jax.Array,
        word_ids: jax.Array,
        layout: Sequence[jax.Array],
        key: jax.Array,
    ) -> LossAndAccuracy:
        """Masks whole words of rows [B, L] and returns the loss of predicting them.

        Args:
          model: with the capability MASKED_LM.
          params: its parameters.
          tokens: int32 [B, L].
          word_ids: int32 [B, L], see `models.masking.mask_whole_words`.
          layout: segment ids and positions, int32 [B, L] each, where the rows are packed; empty where each is one text.
          key: for the masks, then for dropout.
        """
        mask_key, dropout_key = jax.random.split(key)
        ids = {"vocab_size": model.config.vocab_size, "mask_id": MASK_ID, "first_piece_id": len(SPECIAL_TOKENS)}
        masked = mask_whole_words(mask_key, tokens, word_ids, **ids, rate=self.masking_rate)
        head = functools.partial(model.module.apply, {"params": params})

        def terms_of(rows: tuple[jax.Array, ...], own_key: jax.Array) -> SoftmaxTerms:
            """Returns `SoftmaxTerms` [R, K] of rows: tokens [R, L], positions and targets [R, K], and the layout."""
            tokens, positions, targets, *layout = rows
            hidden = model.apply(params, own_key, "encode", tokens, *layout)
            states = head(jnp.take_along_axis(hidden, positions[..., None], axis=1), method="mlm_states")
            table, bias = head(method="output_table")
            return terms_of_table(states, table, bias, targets, chunk=self.vocabulary_chunk)

        rows = (masked.tokens, masked.positions, masked.targets, *layout)
        return mean_cross_entropy(map_chunks(terms_of, rows, dropout_key, self.chunks(len(tokens), 1)), masked.weights)


@dataclasses.dataclass(frozen=True)
class TextObjective(WordPrediction):
    """An objective on texts of one piece, with a masked language model on the same texts if asked for.

    Attributes:
      mlm_weight: factor of a masked language model loss on the texts of the batch, in the same step; SimLTE has 0.1. A
        word starts at every piece without "##", as `pack` numbers words. Translated texts whose gradient is stopped
        are left out.
    """

    mlm_weight: float = option(0.0, ge=0)

    @property
    def needs(self) -> tuple[Capability, ...]:
        """A masked language model, where `mlm_weight` is positive."""
        return (Capability.SEQUENCE, Capability.MASKED_LM) if self.mlm_weight else ()

    def check(self, model: Model) -> None:
        """Refuses a masked language model without the vocabulary's continuation pieces.

        Raises:
          InputError: naming the option.
        """
        if self.mlm_weight and model.continuations is None:
            raise InputError(
                "whole words need the vocabulary's continuation pieces",
                field=f"{type(self).__name__}.mlm_weight",
                remedy="Give them to the Model.",
            )

    def evaluated(self) -> "TextObjective":
        """Returns the objective without the masked language model, which only helps training."""
        return dataclasses.replace(self, mlm_weight=0.0)

    def split_key(self, key: jax.Array) -> tuple[jax.Array, jax.Array]:
        """Returns the keys of the objective's own loss and of the masked language model; without one, `key` twice."""
        if not self.mlm_weight:
            return key, key
        own, others = jax.random.split(key)
        return own, others

    def with_masked_words(
        self,
        model: Model,
        params: Any,
        own: tuple[jax.Array, Metrics],
        texts: Sequence[jax.Array],
        key: jax.Array,
        learnable: Sequence[jax.Array] | None = None,
    ) -> tuple[jax.Array, Metrics]:
        """Adds the masked language model to the objective's own loss and metrics, if `mlm_weight` is positive.

        Args:
          model: with the capability MASKED_LM.
          params: its parameters.
          own: loss and metrics.
          texts: tokens [B, ..., L].
          key: the second of `split_key`.
          learnable: the rows of each of `texts` that may be learned from, bool [B]; None: all.
        """
        if not self.mlm_weight:
            return own
        may_learn = [jnp.ones(len(tokens), bool) for tokens in texts] if learnable is None else learnable

        rows = side_by_side(texts)
        allowed = jnp.stack(
            [may for tokens, may in zip(texts, may_learn, strict=True) for _ in range(texts_of(tokens))], axis=1
        )
        is_word = functools.reduce(jnp.logical_and, (rows != special for special in _NO_WORDS)) & allowed[:, :, None]
        rows, is_word = (array.reshape(-1, rows.shape[-1]) for array in (rows, is_word))
        word_ids = whole_word_ids(rows, is_word, jnp.asarray(model.continuations))
        mlm_loss, mlm_accuracy = self.predict(model, params, rows, word_ids, (), key)
        loss, metrics = own
        return loss + self.mlm_weight * mlm_loss, metrics | {"mlm_loss": mlm_loss, "mlm_accuracy": mlm_accuracy}

    def embeddings(
        self, model: Model, params: Any, texts: Sequence[jax.Array], key: jax.Array, stopped: jax.Array | None = None
    ) -> list[jax.Array]:
        """Returns `embed_texts` in chunks; `stopped`, bool [B], stops all texts of a row but the first."""

        def embed(rows: tuple[list[jax.Array], jax.Array | None], own_key: jax.Array) -> list[jax.Array]:
            parts, stop = rows
            stops = None if stop is None else [jnp.zeros_like(stop), *[stop] * (len(parts) - 1)]
            return embed_texts(model, params, parts, own_key, stops)

        chunks = self.chunks(len(texts[0]), sum(map(texts_of, texts)))
        return map_chunks(embed, (list(texts), stopped), key, chunks)


@dataclasses.dataclass(frozen=True)
class PairObjective(TextObjective):
    """A `TextObjective` on triplets or pairs, whose texts are queries and answers.

    Attributes:
      roles: of query and answer.
    """

    roles: ClassVar[tuple[str, str]] = ("anchor", "positive")

    def pairs(self, model: Model, params: Any, batch: DeviceBatch) -> Pairs:
        """Returns the texts of both roles."""
        texts = [batch[f"{role}_tokens"] for role in self.roles]
        return pairs_of_texts(batch, self.embeddings(model, params, texts, jax.random.key(0)), self.roles)


def side_by_side(texts: Sequence[jax.Array]) -> jax.Array:
    """Returns the texts [R, L] or [R, N, L] of several roles in one array, padded to the longest: int32 [R, all, L].

    Interleaved, so that a device's share of the rows stays on that device.
    """
    longest = max(tokens.shape[-1] for tokens in texts)
    rows = [tokens.reshape(len(tokens), -1, tokens.shape[-1]) for tokens in texts]
    fillings = [((0, 0), (0, 0), (0, longest - tokens.shape[-1])) for tokens in texts]
    padded = [jnp.pad(*one, constant_values=PAD_ID) for one in zip(rows, fillings, strict=True)]
    return jnp.concatenate(padded, axis=1)


def texts_of(tokens: jax.Array) -> int:
    """Returns the number of texts in a row: 1 for [B, L], N for [B, N, L]."""
    return math.prod(tokens.shape[1:-1])


def pairs_of_texts(batch: DeviceBatch, vectors: Sequence[jax.Array], roles: Sequence[str]) -> Pairs:
    """Returns the embeddings of two texts of each row of triplets or pairs as queries and answers.

    Args:
      batch: document ids and, where they are known, events and augmentations.
      vectors: [B, D] of each role.
      roles: of query and answer.
    """
    found = (documents_of(batch, role)[:, 0] for role in roles)
    ids = [jnp.pad(rows, ((0, 0), (0, 5 - rows.shape[1]))) for rows in found]
    kinds = batch.get("augmentation", jnp.zeros(len(vectors[0]), jnp.int32))
    return Pairs(vectors[0], vectors[1], ids[0], ids[1], kinds)


def documents_of(batch: DeviceBatch, role: str, *, events: bool = True) -> jax.Array:
    """Returns the documents of a role, int32 [B, N, 5 or 2], see `models.losses.Documents`; N is 1 but for negatives.

    Args:
      batch: document ids and, where they are known, events.
      role: of the documents.
      events: False: as if none were known.
    """
    ids = jnp.asarray(batch[f"{role}_doc_id"]).reshape(len(batch[f"{role}_doc_id"]), -1, 2)
    known = batch.get(f"{role}_event") if events else None
    if known is None:
        return ids
    return jnp.concatenate([ids, jnp.asarray(known).reshape(*ids.shape[:2], 3)], axis=-1)


def embed_texts(
    model: Model, params: Any, texts: Sequence[jax.Array], key: jax.Array, stopped: Sequence[jax.Array] | None = None
) -> list[jax.Array]:
    """Returns the embeddings [R, D] or [R, N, D] of texts int32 [R, L] or [R, N, L].

    Texts of one length are embedded in one pass with `key`, others one after another with a key of their own each.

    Args:
      model: with the capability STOPPED_TEXTS where `stopped` is given.
      params: its parameters.
      texts: of each role.
      key: for dropout.
      stopped: rows whose gradient ends at the output of the layers, bool [R] for each of `texts`; None: no row.
    """
    stops = [None] * len(texts) if stopped is None else list(stopped)
    if len({tokens.shape[-1] for tokens in texts}) > 1:
        keys = jax.random.split(key, len(texts))
        return [
            _over_texts(functools.partial(model.apply, params, own_key, "embed"), tokens, stop)
            for own_key, tokens, stop in zip(keys, texts, stops, strict=True)
        ]
    # One pass over [3R, L] instead of three over [R, L]: larger products, a third of the launches.
    stacked, stop = side_by_side(texts), None
    if stopped is not None:
        stop = jnp.stack([one for one, tokens in zip(stopped, texts, strict=True) for _ in range(texts_of(tokens))], 1)
    embeddings = _over_texts(functools.partial(model.apply, params, key, "embed"), stacked, stop)
    ends = np.cumsum([texts_of(tokens) for tokens in texts])
    parts = jnp.split(embeddings, ends[:-1].tolist(), axis=1)
    return [part.reshape(*tokens.shape[:-1], -1) for part, tokens in zip(parts, texts, strict=True)]


def _over_texts(embed: Callable[..., jax.Array], tokens: jax.Array, stopped: jax.Array | None) -> jax.Array:
    """Returns `embed` of [R, ..., L] as rows: [R, ..., D]; `stopped` is bool [R] or [R, N], or None."""
    rows = tokens.reshape(-1, tokens.shape[-1])
    if stopped is None:
        return embed(rows).reshape(*tokens.shape[:-1], -1)
    several = stopped.reshape(len(stopped), -1)
    every = jnp.broadcast_to(several, (len(tokens), texts_of(tokens))).reshape(-1)
    return embed(rows, every).reshape(*tokens.shape[:-1], -1)

"""The loss of every task as a function of the parameters, a global batch and a key."""

import dataclasses
import functools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import jax
import jax.numpy as jnp
import numpy as np

from ...errors import InputError
from ...formats.vocabulary import (
    CLS_ID,
    MASK_ID,
    PAD_ID,
    SPECIAL_TOKENS,
    UNK_ID,
    VocabularyFile,
    continues_word,
)
from ...models.axes import shard_count
from ...models.chunks import chunk_count, map_chunks
from ...models.encoders.news import NewsEncoder
from ...models.losses import (
    DocumentIds,
    LossAndAccuracy,
    alignment,
    info_nce,
    mean_cross_entropy,
    normalized_prefix,
    terms_of_logits,
    topic_bce,
    uniformity,
)
from ...models.masking import MaskedBatch, gather_positions, mask_whole_words, whole_word_ids
from ...models.softmax import SoftmaxTerms, chunk_of_device, softmax_terms
from ...tasks.topics import TOPICS
from ...tasks.triplets import TRIPLETS, Augmentation
from ..train_state import LOG_TEMPERATURE
from .options import LARGEST_TEMPERATURE, LEAST_TEMPERATURE, Losses

DeviceBatch = Mapping[str, jax.Array]
Metrics = dict[str, jax.Array]
_NO_WORDS: Final = tuple(number for number in range(len(SPECIAL_TOKENS)) if number != UNK_ID)


def continuation_pieces(vocabulary: VocabularyFile) -> np.ndarray:
    """Which pieces continue a word ("##ing"), bool [V]."""
    return np.array([continues_word(piece) for piece in vocabulary.pieces])


@dataclasses.dataclass(frozen=True, eq=False)
class TaskLosses:
    """The losses with their model.

    Attributes:
      model: the encoder.
      options: the numbers and choices in the losses.
      continuations: bool [V], see `continuation_pieces`; needed where `options.mlm_weight` is positive.

    Raises:
      InputError: from the constructor, for options that do not fit the model.
    """

    model: NewsEncoder
    options: Losses
    continuations: np.ndarray | None = None

    def __post_init__(self) -> None:
        self.options.prefixes(self.model.config.embedding_size)
        if self.options.mlm_weight and self.continuations is None:
            raise InputError(
                "whole words need the vocabulary's continuation pieces",
                field="Losses.mlm_weight",
                remedy="Give TaskLosses them.",
            )

    def initial_parameters(self) -> dict[str, jax.Array]:
        """Parameters that the losses add to the model's: `LOG_TEMPERATURE`, where it is learned."""
        return (
            {LOG_TEMPERATURE: jnp.log(jnp.float32(self.options.temperature))} if self.options.learn_temperature else {}
        )

    def constrain(self, params: Any) -> Any:
        """The parameters after an update, a learned temperature brought back between its bounds."""
        if not self.options.learn_temperature:
            return params
        clipped = jnp.clip(params[LOG_TEMPERATURE], math.log(LEAST_TEMPERATURE), math.log(LARGEST_TEMPERATURE))
        return {**params, LOG_TEMPERATURE: clipped}

    def loss(self, task: str, params: Any, batch: DeviceBatch, key: jax.Array) -> tuple[jax.Array, Metrics]:
        """The scalar loss of one batch and what to log beside it.

        Raises:
          InputError: for a batch that `gradient_chunk` or `topics_per_row` does not divide.
        """
        if task == TRIPLETS.name:
            return self._triplets(params, batch, key)
        if task == TOPICS.name:
            return self._topics(params, batch, key)
        return self._packed_rows(params, batch, key)

    def _packed_rows(self, params: Any, batch: DeviceBatch, key: jax.Array) -> tuple[jax.Array, Metrics]:
        mask_key, dropout_key = jax.random.split(key)
        masked = self._mask(mask_key, batch["tokens"], batch["word_ids"])
        loss, accuracy = self._masked_language_model(
            params, masked, (batch["segment_ids"], batch["positions"]), dropout_key
        )
        return loss, {"accuracy": accuracy}

    def _triplets(self, params: Any, batch: DeviceBatch, key: jax.Array) -> tuple[jax.Array, Metrics]:
        options = self.options
        names = ("anchor", "positive", "negative") if options.hard_negatives else ("anchor", "positive")
        texts = [batch[f"{name}_tokens"] for name in names]
        # One text is [B, L]; several negatives are [B, N, L].
        if texts[-1].ndim == 3:
            # Attention over nothing has no meaning: an empty text, which nobody reads, gets one token.
            texts[-1] = texts[-1].at[:, :, 0].set(jnp.where(_has_text(texts[-1]), texts[-1][:, :, 0], CLS_ID))
        chunks = self._chunks(len(texts[0]), sum(map(_texts_of, texts)))
        text_key, mlm_key = (key, key) if not options.mlm_weight else jax.random.split(key)
        vectors = map_chunks(functools.partial(self._embed, params), texts, text_key, chunks)
        anchor, *others = vectors
        translated = batch["translated"] > 0
        if options.stop_translated_gradient:
            others = [_stop_where(translated, embeddings) for embeddings in others]
        kept = self._kept(batch)
        positive, negative = others[0], others[1] if options.hard_negatives else None
        loss, accuracy = self._info_nce(params, anchor, positive, negative, batch, kept, chunks)
        still_anchor, still_positive = jax.lax.stop_gradient((anchor, positive))
        metrics = {
            "accuracy": accuracy,
            "alignment": alignment(still_anchor, still_positive, kept),
            "uniformity": (
                uniformity(still_anchor, kept, chunks=chunks) + uniformity(still_positive, kept, chunks=chunks)
            )
            / 2,
        }
        if options.learn_temperature:
            metrics["temperature"] = self._temperature(params)
        if not options.mlm_weight:
            return loss, metrics
        learnable = [jnp.broadcast_to(True if kept is None else kept, translated.shape)]
        learnable += [learnable[0] & ~translated if options.stop_translated_gradient else learnable[0]] * (
            len(texts) - 1
        )
        return self._with_mlm(params, loss, metrics, texts, learnable, mlm_key)

    def _info_nce(
        self,
        params: Any,
        anchor: jax.Array,
        positive: jax.Array,
        negative: jax.Array | None,
        batch: DeviceBatch,
        kept: jax.Array | None,
        chunks: int,
    ) -> LossAndAccuracy:
        """The sum over the prefixes, and the accuracy of the whole embedding."""
        negative_ids = batch["negative_doc_id"]
        contrast = functools.partial(
            info_nce,
            temperature=self._temperature(params),
            doc_ids=DocumentIds(
                batch["anchor_doc_id"], batch["positive_doc_id"], negative_ids.reshape(len(negative_ids), -1, 2)
            ),
            kept=kept,
            kept_negatives=_has_text(batch["negative_tokens"]) if negative is not None and negative.ndim == 3 else None,
            symmetric=self.options.symmetric,
            chunks=chunks,
        )
        if not self.options.matryoshka_sizes:
            return contrast(anchor, positive, negative)
        total = jnp.zeros(())
        for size, weight in self.options.prefixes(anchor.shape[-1]).items():
            loss, accuracy = contrast(
                *(
                    vectors if vectors is None else normalized_prefix(vectors, size)
                    for vectors in (anchor, positive, negative)
                )
            )
            total += weight * loss
        return LossAndAccuracy(total, accuracy)

    def _temperature(self, params: Any) -> float | jax.Array:
        return jnp.exp(params[LOG_TEMPERATURE]) if self.options.learn_temperature else self.options.temperature

    def _kept(self, batch: DeviceBatch) -> jax.Array | None:
        """Which triplets take part, bool [B]; None for all."""
        if not self.options.selects_triplets:
            return None
        rows = jnp.array([Augmentation[name.upper()] for name in self.options.augmentations])
        kept = jnp.any(batch["augmentation"][:, None] == rows, axis=1)
        return kept if self.options.translated_triplets else kept & (batch["translated"] == 0)

    def _topics(self, params: Any, batch: DeviceBatch, key: jax.Array) -> tuple[jax.Array, Metrics]:
        tokens = batch["tokens"]
        together = self.options.topics_per_row
        self._check_topic_rows(tokens.shape)
        topic_key, mlm_key = (key, key) if not self.options.mlm_weight else jax.random.split(key)
        logits = map_chunks(
            functools.partial(self._topic_logits, params), tokens, topic_key, self._chunks(len(tokens), 1, together)
        )
        loss, accuracy = topic_bce(logits, batch["topic_ids"], batch["topic_labels"])
        metrics = {"accuracy": accuracy}
        if not self.options.mlm_weight:
            return loss, metrics
        return self._with_mlm(params, loss, metrics, [tokens], [jnp.ones(len(tokens), bool)], mlm_key)

    def _topic_logits(self, params: Any, tokens: jax.Array, key: jax.Array) -> jax.Array:
        """[R, L] -> [R, T], with `topics_per_row` documents side by side while they are encoded."""
        together = self.options.topics_per_row
        if together == 1:
            return self._apply(params, key, "topic_logits", tokens)
        length = tokens.shape[1]
        wide = tokens.reshape(-1, together * length)
        numbers = jnp.repeat(jnp.arange(1, together + 1), length)
        positions = jnp.broadcast_to(jnp.tile(jnp.arange(length), together), wide.shape)
        hidden = self._apply(params, key, "encode", wide, jnp.where(wide == PAD_ID, 0, numbers), positions)
        # Every document has its own stretch of the row, so that cutting the row gives back what the heads read.
        own = hidden.reshape(*tokens.shape, hidden.shape[-1])
        logits: jax.Array = self.model.apply({"params": params}, own, tokens, method="topic_logits_hidden")
        return logits

    def _check_topic_rows(self, shape: tuple[int, ...]) -> None:
        together, positions = self.options.topics_per_row, self.model.config.max_length
        if together > 1 and together * shape[1] > positions:
            raise InputError(
                f"got {together} documents of {shape[1]} tokens in a row, the architecture has {positions} positions",
                field="Losses.topics_per_row",
                remedy=f"Set TASK_FEATURE_LENGTHS['tokens'] to {positions // together} or less.",
            )
        unit = together * shard_count("batch")
        if together > 1 and shape[0] % unit:
            raise InputError(
                f"got {shape[0]}, expected a multiple of {unit}",
                field="BATCH_SIZE",
                remedy="Or set Losses.topics_per_row = 1.",
            )

    def _with_mlm(
        self,
        params: Any,
        loss: jax.Array,
        metrics: Metrics,
        texts: Sequence[jax.Array],
        learnable: Sequence[jax.Array],
        key: jax.Array,
    ) -> tuple[jax.Array, Metrics]:
        """Adds the masked language model on the texts [B, …, L] of the rows that are learnable, each bool [B]."""
        longest = max(tokens.shape[-1] for tokens in texts)

        def of_row(tokens: jax.Array) -> jax.Array:
            wide = jnp.pad(
                tokens, [(0, 0)] * (tokens.ndim - 1) + [(0, longest - tokens.shape[-1])], constant_values=PAD_ID
            )
            return wide.reshape(len(tokens), -1, longest)

        rows = jnp.concatenate([of_row(tokens) for tokens in texts], axis=1)
        allowed = jnp.stack(
            [of_text for of_text, tokens in zip(learnable, texts, strict=True) for _ in range(_texts_of(tokens))],
            axis=1,
        )
        is_word = functools.reduce(jnp.logical_and, (rows != special for special in _NO_WORDS)) & allowed[:, :, None]
        rows, is_word = rows.reshape(-1, longest), is_word.reshape(-1, longest)
        mask_key, dropout_key = jax.random.split(key)
        masked = self._mask(mask_key, rows, whole_word_ids(rows, is_word, jnp.asarray(self.continuations)))
        mlm_loss, mlm_accuracy = self._masked_language_model(params, masked, (), dropout_key)
        return loss + self.options.mlm_weight * mlm_loss, metrics | {"mlm_loss": mlm_loss, "mlm_accuracy": mlm_accuracy}

    def _mask(self, key: jax.Array, tokens: jax.Array, word_ids: jax.Array) -> MaskedBatch:
        return mask_whole_words(
            key,
            tokens,
            word_ids,
            vocab_size=self.model.config.vocab_size,
            mask_id=MASK_ID,
            first_piece_id=len(SPECIAL_TOKENS),
            rate=self.options.masking_rate,
        )

    def _masked_language_model(
        self, params: Any, masked: MaskedBatch, layout: Sequence[jax.Array], key: jax.Array
    ) -> LossAndAccuracy:
        """Of rows [B, L], with their segment ids and positions [B, L] in `layout` where they are packed."""
        count = self._chunks(len(masked.tokens), 1)
        rows = (masked.tokens, masked.positions, masked.targets, *layout)
        terms = map_chunks(functools.partial(self._mlm_terms, params), rows, key, count)
        return mean_cross_entropy(terms, masked.weights)

    def _mlm_terms(self, params: Any, rows: tuple[jax.Array, ...], key: jax.Array) -> SoftmaxTerms:
        """`SoftmaxTerms` [R, K] of one chunk."""
        tokens, positions, targets, *layout = rows
        hidden = gather_positions(self._apply(params, key, "encode", tokens, *layout), positions)
        pieces = self.model.config.vocab_size
        chunk = chunk_of_device(targets.size, pieces, self.options.vocabulary_chunk)
        if chunk * shard_count("vocab") >= pieces:
            return terms_of_logits(self.model.apply({"params": params}, hidden, method="mlm_logits"), targets)
        states = self.model.apply({"params": params}, hidden, method="mlm_states")
        table, bias = self.model.apply({"params": params}, method="output_table")
        flat = softmax_terms(states.reshape(-1, states.shape[-1]), table, bias, targets.reshape(-1), chunk=chunk)
        return SoftmaxTerms(*(values.reshape(targets.shape) for values in flat))

    def _embed(self, params: Any, texts: Sequence[jax.Array], key: jax.Array) -> list[jax.Array]:
        """Texts [R, L] or [R, N, L] to embeddings [R, D] or [R, N, D]."""
        if len({tokens.shape[-1] for tokens in texts}) > 1:
            keys = jax.random.split(key, len(texts))
            return [
                _over_texts(functools.partial(self._apply, params, k, "embed"), tokens)
                for k, tokens in zip(keys, texts, strict=True)
            ]
        # One pass over [3R, L] instead of three over [R, L]: larger products, a third of the launches.
        # Interleaved, so that a device's share of the rows stays on that device.
        length = texts[0].shape[-1]
        stacked = jnp.concatenate([tokens.reshape(len(tokens), -1, length) for tokens in texts], axis=1)
        embeddings = _over_texts(functools.partial(self._apply, params, key, "embed"), stacked)
        ends = np.cumsum([_texts_of(tokens) for tokens in texts])
        parts = jnp.split(embeddings, ends[:-1].tolist(), axis=1)
        return [part.reshape(*tokens.shape[:-1], -1) for part, tokens in zip(parts, texts, strict=True)]

    def _chunks(self, rows: int, texts: int, multiple: int = 1) -> int:
        """In how many chunks to take the rows of a batch, each with so many texts."""
        asked = self.options.gradient_chunk
        if not asked:
            return 1
        try:
            return chunk_count(rows, asked // texts, multiple)
        except ValueError as error:
            least = texts * multiple * shard_count("batch")
            raise InputError(
                f"got {asked} for a batch of {rows} rows with {texts} texts each",
                field="Losses.gradient_chunk",
                remedy=f"Set {least} or more, and a BATCH_SIZE that is a multiple of {least // texts}.",
            ) from error

    def _apply(self, params: Any, key: jax.Array, method: str, *arguments: jax.Array) -> jax.Array:
        deterministic = self.model.config.dropout_rate == 0.0
        result: jax.Array = self.model.apply(
            {"params": params}, *arguments, deterministic=deterministic, rngs={"dropout": key}, method=method
        )
        return result


def _texts_of(tokens: jax.Array) -> int:
    """Texts of a row: 1 for [B, L], N for [B, N, L]."""
    return math.prod(tokens.shape[1:-1])


def _over_texts(embed: Callable[[jax.Array], jax.Array], tokens: jax.Array) -> jax.Array:
    """`embed` of [R, …, L] as rows: [R, …, D]."""
    return embed(tokens.reshape(-1, tokens.shape[-1])).reshape(*tokens.shape[:-1], -1)


def _has_text(tokens: jax.Array) -> jax.Array:
    """Which of several negatives [B, N, L] are there, bool [B, N]: a record with fewer than others has empty texts in their place."""
    return tokens[:, :, 0] != PAD_ID


def _stop_where(condition: jax.Array, vectors: jax.Array) -> jax.Array:
    """`vectors` [B, …, D], without gradient where `condition` [B]."""
    return jnp.where(condition.reshape(-1, *[1] * (vectors.ndim - 1)), jax.lax.stop_gradient(vectors), vectors)

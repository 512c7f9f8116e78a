"""What objectives share: batches in chunks, embeddings of several texts in one pass, masked words next to another loss.

How a step's key is split is a part of each function's contract: the same key gives the same masks and dropout in every
version.
"""

import dataclasses
import functools
import math
from collections.abc import Callable, Sequence
from typing import Any, Final

import jax
import jax.numpy as jnp
import numpy as np

from ...errors import InputError
from ...formats.vocabulary import MASK_ID, PAD_ID, SPECIAL_TOKENS, UNK_ID
from ...models.axes import shard_count
from ...models.chunks import chunk_count, map_chunks
from ...models.encoders import Capability
from ...models.losses import LossAndAccuracy, mean_cross_entropy, terms_of_logits
from ...models.masking import MASKING_RATE, MaskedBatch, gather_positions, mask_whole_words, whole_word_ids
from ...models.softmax import SoftmaxTerms, chunk_of_device, softmax_terms
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

    masking_rate: float = MASKING_RATE
    vocabulary_chunk: int = 0
    gradient_chunk: int = 0

    def __post_init__(self) -> None:
        self.require_option(0 < self.masking_rate < 1, "masking_rate", "a number between 0 and 1")
        self.require_option(self.vocabulary_chunk >= 0, "vocabulary_chunk", "0 or more")
        self.require_option(self.gradient_chunk >= 0, "gradient_chunk", "0 or more")

    def chunks(self, rows: int, texts: int, multiple: int = 1) -> int:
        """Returns the number of chunks in which the rows of a batch are encoded.

        Args:
          rows: of the batch.
          texts: of each row.
          multiple: each device's share of a chunk is a multiple of it.

        Raises:
          InputError: if `gradient_chunk` is smaller than the smallest chunk, or the batch cannot be divided.
        """
        if not self.gradient_chunk:
            return 1
        try:
            return chunk_count(rows, self.gradient_chunk // texts, multiple)
        except ValueError as error:
            least = texts * multiple * shard_count("batch")
            raise InputError(
                f"got {self.gradient_chunk} for a batch of {rows} rows with {texts} texts each",
                field=f"{type(self).__name__}.gradient_chunk",
                remedy=f"Set {least} or more, and a BATCH_SIZE that is a multiple of {least // texts}.",
            ) from error

    def mask(self, model: Model, key: jax.Array, tokens: jax.Array, word_ids: jax.Array) -> MaskedBatch:
        """Returns rows [B, L] with some of their whole words masked, see `models.masking.mask_whole_words`."""
        return mask_whole_words(
            key,
            tokens,
            word_ids,
            vocab_size=model.config.vocab_size,
            mask_id=MASK_ID,
            first_piece_id=len(SPECIAL_TOKENS),
            rate=self.masking_rate,
        )

    def predict(
        self, model: Model, params: Any, masked: MaskedBatch, layout: Sequence[jax.Array], key: jax.Array
    ) -> LossAndAccuracy:
        """Returns the loss of masked rows [B, L].

        Args:
          model: with the capability MASKED_LM.
          params: its parameters.
          masked: the rows.
          layout: segment ids and positions, int32 [B, L] each, where the rows are packed; empty where each is one text.
          key: for dropout.
        """
        rows = (masked.tokens, masked.positions, masked.targets, *layout)
        terms_of = functools.partial(self.prediction_terms, model, params)
        terms = map_chunks(terms_of, rows, key, self.chunks(len(masked.tokens), 1))
        return mean_cross_entropy(terms, masked.weights)

    def prediction_terms(self, model: Model, params: Any, rows: tuple[jax.Array, ...], key: jax.Array) -> SoftmaxTerms:
        """Returns `SoftmaxTerms` [R, K] of rows: tokens [R, L], positions and targets [R, K], and the layout."""
        tokens, positions, targets, *layout = rows
        hidden = gather_positions(model.apply(params, key, "encode", tokens, *layout), positions)
        pieces = model.config.vocab_size
        chunk = chunk_of_device(targets.size, pieces, self.vocabulary_chunk)
        head = functools.partial(model.module.apply, {"params": params})
        if chunk * shard_count("vocab") >= pieces:
            return terms_of_logits(head(hidden, method="mlm_logits"), targets)
        states = head(hidden, method="mlm_states")
        table, bias = head(method="output_table")
        flat = softmax_terms(states.reshape(-1, states.shape[-1]), table, bias, targets.reshape(-1), chunk=chunk)
        return SoftmaxTerms(*(values.reshape(targets.shape) for values in flat))


@dataclasses.dataclass(frozen=True)
class TextObjective(WordPrediction):
    """An objective on texts of one piece, with a masked language model on the same texts if asked for.

    Attributes:
      mlm_weight: factor of a masked language model loss on the texts of the batch, in the same step; SimLTE has 0.1. A
        word starts at every piece without "##", as `pack` numbers words. Translated texts whose gradient is stopped
        are left out.
    """

    mlm_weight: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require_option(self.mlm_weight >= 0, "mlm_weight", "0 or more")

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
        texts: Sequence[tuple[jax.Array, jax.Array]],
        key: jax.Array,
    ) -> tuple[jax.Array, Metrics]:
        """Adds the masked language model to the objective's own loss and metrics, if `mlm_weight` is positive.

        Args:
          model: with the capability MASKED_LM.
          params: its parameters.
          own: loss and metrics.
          texts: tokens [B, ..., L] with the rows that may be learned from, bool [B].
          key: the second of `split_key`.
        """
        if not self.mlm_weight:
            return own
        longest = max(tokens.shape[-1] for tokens, _ in texts)

        def of_row(tokens: jax.Array) -> jax.Array:
            filling = [(0, 0)] * (tokens.ndim - 1) + [(0, longest - tokens.shape[-1])]
            return jnp.pad(tokens, filling, constant_values=PAD_ID).reshape(len(tokens), -1, longest)

        rows = jnp.concatenate([of_row(tokens) for tokens, _ in texts], axis=1)
        allowed = jnp.stack([may for tokens, may in texts for _ in range(texts_of(tokens))], axis=1)
        is_word = functools.reduce(jnp.logical_and, (rows != special for special in _NO_WORDS)) & allowed[:, :, None]
        rows, is_word = rows.reshape(-1, longest), is_word.reshape(-1, longest)
        mask_key, dropout_key = jax.random.split(key)
        masked = self.mask(model, mask_key, rows, whole_word_ids(rows, is_word, jnp.asarray(model.continuations)))
        mlm_loss, mlm_accuracy = self.predict(model, params, masked, (), dropout_key)
        loss, metrics = own
        return loss + self.mlm_weight * mlm_loss, metrics | {"mlm_loss": mlm_loss, "mlm_accuracy": mlm_accuracy}


def texts_of(tokens: jax.Array) -> int:
    """Returns the number of texts in a row: 1 for [B, L], N for [B, N, L]."""
    return math.prod(tokens.shape[1:-1])


def pairs_of_texts(model: Model, params: Any, batch: DeviceBatch, chunks: int) -> Pairs:
    """Returns anchors and positives of a batch of triplets or pairs as queries and answers.

    Args:
      model: that embeds them.
      params: its parameters.
      batch: tokens, document ids and, where they are known, events and augmentations.
      chunks: see `WordPrediction.chunks`.
    """
    texts = [batch[f"{role}_tokens"] for role in ("anchor", "positive")]
    anchor, positive = map_chunks(functools.partial(embed_texts, model, params), texts, jax.random.key(0), chunks)
    no_event = jnp.zeros((len(anchor), 3), jnp.int32)

    def ids(role: str) -> jax.Array:
        return jnp.concatenate([batch[f"{role}_doc_id"], batch.get(f"{role}_event", no_event)], axis=1)

    return Pairs(anchor, positive, ids("anchor"), ids("positive"), batch.get("augmentation", no_event[:, 0]))


def embed_texts(
    model: Model,
    params: Any,
    texts: Sequence[jax.Array],
    key: jax.Array,
    stopped: Sequence[jax.Array] | None = None,
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
    # Interleaved, so that a device's share of the rows stays on that device.
    length = texts[0].shape[-1]
    stacked = jnp.concatenate([tokens.reshape(len(tokens), -1, length) for tokens in texts], axis=1)
    stop = None
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

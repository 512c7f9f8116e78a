"""The denoising auto-encoder with a term for the similarity of articles (Okura, Tagami and Tajima 2016, section 3)."""

import dataclasses
import functools
from typing import Any, ClassVar

import jax
import jax.numpy as jnp

from ...errors import InputError
from ...formats.command_line import option
from ...formats.vocabulary import PAD_ID
from ...models.encoders import Capability
from ...models.encoders.autoencoder import distinct_words, reconstruction_loss
from ...models.softmax import chunk_of_device
from .base import DeviceBatch, Metrics, Model, Objective, Pairs
from .texts import pairs_of_texts, side_by_side

_ROLES = ("anchor", "positive", "negative")


@dataclasses.dataclass(frozen=True)
class Denoising(Objective):
    """Reconstruction of three texts from some of their words, and hidden vectors closer to the positive's.

    For the hidden vectors h1 of the anchor, h2 of the positive and h3 of the negative, each of a text that lost some
    words, the loss of a triplet is::

        sum over the three texts of the cross entropy of x and its reconstruction
        + alpha log(1 + exp(h1 . h3 - h1 . h2))

    and that of a batch is the mean. With ``alpha=0`` it is the denoising auto-encoder of Vincent et al. 2008. The key
    of a step gives the words that are lost.

    Attributes:
      alpha: factor of the second term; the paper does not state its value.
      masking_share: probability that a word is set to 0 in the input.
      vocabulary_chunk: words whose logits exist at a time on each device; 0 takes all of them while they fit
        `models.softmax.LOGITS_AT_A_TIME`.
    """

    tasks: ClassVar[tuple[str, ...]] = ("triplets",)
    needs: ClassVar[tuple[Capability, ...]] = (Capability.RECONSTRUCTION,)  # hidden vectors not scaled, and a decoder

    alpha: float = option(300.0, ge=0)
    masking_share: float = option(0.3, ge=0, lt=1)
    vocabulary_chunk: int = option(0, ge=0)

    def loss(self, model: Model, params: Any, batch: DeviceBatch, key: jax.Array) -> tuple[jax.Array, Metrics]:
        """Returns the loss, with `reconstruction`, `similarity_loss` and `accuracy`.

        `reconstruction` is the mean cross entropy of a text, `similarity_loss` the mean of the second term without
        alpha, and `accuracy` the share of anchors that are closer to the positive than to the negative.

        Raises:
          InputError: for records of several negatives.
        """
        words = distinct_words(_stacked(batch))
        is_kept = jax.random.bernoulli(key, 1 - self.masking_share, words.shape)
        hidden = model.apply(params, key, "hidden", jnp.where(is_kept, words, PAD_ID))
        table, bias = model.module.apply({"params": params}, method="decoder")
        chunk = chunk_of_device(len(words), len(bias), self.vocabulary_chunk)
        entropies = reconstruction_loss(hidden, words, table, bias, chunk=chunk).reshape(-1, len(_ROLES))
        anchor, positive, negative = jnp.moveaxis(hidden.reshape(*entropies.shape, -1), 1, 0)
        margin = jnp.sum(anchor * (positive - negative), axis=-1)
        similarity = jnp.mean(jax.nn.softplus(-margin))
        metrics = {
            "reconstruction": jnp.mean(entropies),
            "similarity_loss": similarity,
            "accuracy": jnp.mean((margin > 0).astype(jnp.float32)),
        }
        return jnp.mean(jnp.sum(entropies, axis=-1)) + self.alpha * similarity, metrics

    def pairs(self, model: Model, params: Any, batch: DeviceBatch) -> Pairs:
        """Returns anchors and positives, without noise."""
        roles = _ROLES[:2]
        embed: Any = functools.partial(model.module.apply, {"params": params}, method="embed")
        return pairs_of_texts(batch, [embed(batch[f"{role}_tokens"]) for role in roles], roles)

    def evaluated(self) -> "Denoising":
        """Returns the objective without noise."""
        return dataclasses.replace(self, masking_share=0.0)


def _stacked(batch: DeviceBatch) -> jax.Array:
    """Returns the texts of all triplets in order, int32 [3 B, L].

    Raises:
      InputError: for records of several negatives.
    """
    texts = [batch[f"{role}_tokens"] for role in _ROLES]
    if texts[-1].ndim != 2:
        raise InputError(
            f"got {texts[-1].shape[1]} negatives of each anchor, expected 1",
            field="TASK_FEATURE_LENGTHS['negatives']",
            remedy="Leave it out: the loss has one negative.",
        )
    rows = side_by_side(texts)
    return rows.reshape(-1, rows.shape[-1])

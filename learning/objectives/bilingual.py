"""Translation both ways through shared layers, with a distance between the vectors of both texts: NTDV.

Source: Wei Li, "Multilingual document embedding from translation", thesis at HKUST 2021, section 3.3 (NV and cNV).
"""

import dataclasses
import functools
from collections.abc import Mapping
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import optax

from ...errors import InputError
from ...formats.tfrecords.schema import LANGUAGES
from ...formats.vocabulary import PAD_ID
from ...models.architecture import parts_of
from ...models.distances import draw_negatives, frobenius_gaps
from ...models.encoders import Architecture, Capability
from .base import DeviceBatch, Metrics, Model, Objective, Pairs
from .translation import of_target_tokens, pairs_of_texts


@dataclasses.dataclass(frozen=True)
class BilingualTranslation(Objective):
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
      vocabulary_chunk: see `Translation.vocabulary_chunk`.
    """

    tasks: ClassVar[tuple[str, ...]] = ("translation",)

    distance_weight: float = 0.5
    margin: float = 64.0
    negatives: int = 20
    vocabulary_chunk: int = 0

    def __post_init__(self) -> None:
        self.require_option(0 <= self.distance_weight <= 1, "distance_weight", "0 to 1")
        self.require_option(self.margin > 0, "margin", "a number above 0")
        self.require_option(self.negatives >= 1, "negatives", "1 or more")
        self.require_option(self.vocabulary_chunk >= 0, "vocabulary_chunk", "0 or more")

    @property
    def needs(self) -> tuple[Capability, ...]:
        """Two translators with layers between them."""
        return (Capability.BILINGUAL, Capability.PARTS)

    def bounds(self, config: Architecture) -> dict[str, int]:  # noqa: ARG002
        """Returns the number of languages: two."""
        return {LANGUAGES: 2}

    def loss(self, model: Model, params: Any, batch: DeviceBatch, key: jax.Array) -> tuple[jax.Array, Metrics]:
        """Returns the loss of the class; `translation_loss`, in nats per token of both directions, and `accuracy`.

        Also `language_loss` and, with a distance, `distance_loss`, a pair's sum over its negatives.

        Raises:
          InputError: for a batch of one pair, which has no negatives.
        """
        if self.distance_weight and len(batch["source_tokens"]) < 2:
            raise InputError("got a batch of one pair, which has no negatives", field="BATCH_SIZE", remedy="Set 2.")
        frozen = {name: jax.lax.stop_gradient(params[name]) for name in parts_of(model.config)}
        params = {**params, **frozen}
        texts = texts_by_language(batch)
        to_first, to_second, negative_key = jax.random.split(key, 3)
        # Translator k reads the other language and writes language k.
        sides = [
            self._side(model, params, to_first, texts[1], texts[0], 0),
            self._side(model, params, to_second, texts[0], texts[1], 1),
        ]
        losses, hits, tokens = (
            jnp.sum(jnp.stack(values)) for values in zip(*(side[1:] for side in sides), strict=True)
        )
        language_loss = self._language_loss(model, params, texts)
        pairs = len(texts[0])
        loss = (1 - self.distance_weight) * losses / pairs + language_loss
        metrics: Metrics = {
            "translation_loss": losses / tokens,
            "accuracy": hits / tokens,
            "language_loss": language_loss,
        }
        if self.distance_weight:
            negatives = draw_negatives(negative_key, pairs, self.negatives)
            gaps = frobenius_gaps(sides[1][0], sides[0][0], negatives)
            distance = jnp.mean(jnp.sum(jnp.maximum(0.0, self.margin + self.margin * gaps), axis=1))
            loss, metrics = loss + self.distance_weight * distance, metrics | {"distance_loss": distance}
        return loss, metrics

    def _side(
        self, model: Model, params: Any, key: jax.Array, sources: jax.Array, targets: jax.Array, number: int
    ) -> tuple[jax.Array, jax.Array, jax.Array, jax.Array]:
        """Returns P of the sources [B, P], and of translator `number` the sums of losses, hits and target tokens."""
        keys = jax.random.split(key)
        reading: Any = model.apply(params, keys[0], "read", sources, number)
        states = model.apply(params, keys[1], "write", reading, targets[:, :-1], number)
        head: Any = functools.partial(model.module.apply, {"params": params})
        losses, hits = of_target_tokens(
            head(number, method="target_table"),
            functools.partial(head, states, number, method="target_logits"),
            states,
            targets[:, 1:],
            smoothing=0.0,
            chunk=self.vocabulary_chunk,
        )
        weights = (targets[:, 1:] != PAD_ID).astype(jnp.float32)
        return reading.sentence, jnp.sum(weights * losses), jnp.sum(weights * hits), jnp.sum(weights)

    def _language_loss(self, model: Model, params: Any, texts: tuple[jax.Array, jax.Array]) -> jax.Array:
        """Returns the mean cross entropy of the languages of both sides."""
        score: Any = functools.partial(model.module.apply, {"params": params}, method="language_logits")
        logits = jnp.stack([score(side) for side in texts])
        languages = jnp.broadcast_to(jnp.arange(2.0)[:, None], logits.shape)
        return jnp.mean(optax.sigmoid_binary_cross_entropy(logits, languages))

    def flops(self, config: Architecture, lengths: Mapping[str, int], batch_size: int) -> float:
        """Returns the FLOPs of reading and writing both sides, each as long as the longer one."""
        length = max(lengths["source_tokens"], lengths["target_tokens"])
        of_row = 2 * (config.flops("read", length) + config.flops("write", length - 1))
        return of_row * batch_size

    def pairs(self, model: Model, params: Any, batch: DeviceBatch) -> Pairs:
        """Returns texts and their translations; equal texts have equal ids, since records have none."""
        return pairs_of_texts(model, params, batch)


def texts_by_language(batch: DeviceBatch) -> tuple[jax.Array, jax.Array]:
    """Returns the texts of language 0 and those of language 1, int32 [B, L] both, padded to the longer feature.

    Args:
      batch: "source_tokens" [B, S], "target_tokens" [B, T] and "target_language" [B], 0 or 1.
    """
    sources, targets = jnp.asarray(batch["source_tokens"]), jnp.asarray(batch["target_tokens"])
    length = max(sources.shape[1], targets.shape[1])
    sources, targets = (
        jnp.pad(side, ((0, 0), (0, length - side.shape[1])), constant_values=PAD_ID) for side in (sources, targets)
    )
    is_first = (jnp.asarray(batch["target_language"]) == 0)[:, None]
    return jnp.where(is_first, targets, sources), jnp.where(is_first, sources, targets)

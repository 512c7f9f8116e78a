"""The triplet loss of AST on pairs: an article is nearer to the posts about it than to other posts, by a margin."""

import dataclasses
from typing import Any, ClassVar, Final, NamedTuple

import jax
import jax.numpy as jnp

from ...formats.command_line import option
from ...models.losses import alignment
from .base import DeviceBatch, Metrics, Model
from .texts import PairObjective

MARGIN: Final = 0.075
MINING_MARGIN: Final = 0.1
_MULTI_SIMILARITY, _ALL = "multi_similarity", "all"


class Triplets(NamedTuple):
    """The triplets of a batch, as three parts of a mask: (i, j, k) counts if all are True.

    Attributes:
      positive: bool [A, C], candidate j is a kept positive of anchor i.
      negative: bool [A, C], candidate k is a kept negative of anchor i.
    """

    positive: jax.Array
    negative: jax.Array


def multi_similarity(scores: jax.Array, same: jax.Array, margin: float = MINING_MARGIN) -> Triplets:
    """Keeps the candidates that an anchor may confuse (Wang et al. 2019, "Multi-Similarity Loss", section 3.3).

    A negative is kept if its cosine is above that of the least similar positive, less the margin; a positive if its
    cosine is below that of the most similar negative, plus the margin.

    Args:
      scores: cosines of anchors and candidates, [A, C].
      same: bool [A, C], whether a candidate belongs to the anchor's article.
      margin: epsilon.
    """
    least = jnp.min(scores, axis=1, keepdims=True, where=same, initial=jnp.inf)
    most = jnp.max(scores, axis=1, keepdims=True, where=~same, initial=-jnp.inf)
    return Triplets(same & (scores < most + margin), ~same & (scores > least - margin))


def triplet_margin(scores: jax.Array, triplets: Triplets, margin: float = MARGIN) -> tuple[jax.Array, jax.Array]:
    """Mean of max(0, |a - t|^2 - |a - t'|^2 + margin) over the triplets where it is not 0, and their number.

    Args:
      scores: cosines of unit vectors, [A, C]; |a - t|^2 is 2 - 2 a . t.
      triplets: which count.
      margin: m.

    Returns:
      float32 scalars; 0 and 0 without such a triplet.
    """
    positive = jnp.where(triplets.positive, scores, jnp.inf)  # a positive that does not count is near enough
    negative = jnp.where(triplets.negative, scores, -jnp.inf)
    excess = 2.0 * (negative[:, None, :] - positive[:, :, None]) + margin
    losses = jnp.where(excess > 0, excess, 0.0)
    count = jnp.sum(losses > 0)
    return jnp.sum(losses) / jnp.maximum(count, 1), count.astype(jnp.float32)


@dataclasses.dataclass(frozen=True)
class Linking(PairObjective):
    """A triplet margin loss on articles and the posts about them, with triplets mined in the global batch.

    Texts of one article (`positive_doc_id`) are never negatives of each other. The defaults are AST's; the margin and
    the training without miner are read in its released code.

    Attributes:
      margin: m, of squared distances between unit vectors.
      mining: "multi_similarity" keeps what an article may confuse, see `multi_similarity`; "all" takes every triplet of
        the batch, with articles and posts as anchors, positives and negatives, as the released code does.
      mining_margin: epsilon of the miner, of cosines.
    """

    tasks: ClassVar[tuple[str, ...]] = ("pairs",)
    roles: ClassVar[tuple[str, str]] = ("positive", "anchor")  # posts look for their articles

    margin: float = option(MARGIN, gt=0)
    mining: str = option(_MULTI_SIMILARITY, choices=(_MULTI_SIMILARITY, _ALL))
    mining_margin: float = option(MINING_MARGIN, ge=0)

    def loss(self, model: Model, params: Any, batch: DeviceBatch, key: jax.Array) -> tuple[jax.Array, Metrics]:
        """Returns the triplet loss, with `accuracy`, `alignment` and `triplets`, the number whose loss is not 0.

        The accuracy is the share of articles for which no other article's post scores above the own.
        """
        texts = [batch["anchor_tokens"], batch["positive_tokens"]]
        text_key, mlm_key = self.split_key(key)
        articles, posts = self.embeddings(model, params, texts, text_key)
        of_articles, of_posts = batch["anchor_doc_id"], batch["positive_doc_id"]
        scores, same = jnp.einsum("id,jd->ij", articles, posts), _same(of_articles, of_posts)
        if self.mining == _MULTI_SIMILARITY:
            mined = multi_similarity(jax.lax.stop_gradient(scores), same, self.mining_margin)
            loss, count = triplet_margin(scores, mined, self.margin)
        else:
            vectors, ids = jnp.concatenate([articles, posts]), jnp.concatenate([of_articles, of_posts])
            of_event = _same(ids, ids)
            every = Triplets(of_event & ~jnp.eye(len(ids), dtype=bool), ~of_event)
            loss, count = triplet_margin(jnp.einsum("id,jd->ij", vectors, vectors), every, self.margin)
        others = jnp.max(scores, axis=1, where=~same, initial=-jnp.inf)
        metrics = {
            "accuracy": jnp.mean((jnp.diagonal(scores) >= others).astype(jnp.float32)),
            "alignment": alignment(*jax.lax.stop_gradient((articles, posts))),
            "triplets": count,
        }
        return self.with_masked_words(model, params, (loss, metrics), texts, mlm_key)


def _same(left: jax.Array, right: jax.Array) -> jax.Array:
    return jnp.all(left[:, None, :] == right[None, :, :], axis=-1)

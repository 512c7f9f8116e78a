"""The triplet loss of AST on pairs: an article is nearer to the posts about it than to other posts, by a margin."""

import dataclasses
import functools
from collections.abc import Mapping
from typing import Any, ClassVar, Final, NamedTuple

import jax
import jax.numpy as jnp

from ...models.chunks import map_chunks
from ...models.encoders import Architecture
from ...models.losses import alignment
from .base import DeviceBatch, Metrics, Model, Pairs
from .texts import TextObjective, embed_texts

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
class Linking(TextObjective):
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

    margin: float = MARGIN
    mining: str = _MULTI_SIMILARITY
    mining_margin: float = MINING_MARGIN

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require_option(self.margin > 0, "margin", "a number above 0")
        self.require_option(self.mining in (_MULTI_SIMILARITY, _ALL), "mining", f"{_MULTI_SIMILARITY} or {_ALL}")
        self.require_option(self.mining_margin >= 0, "mining_margin", "0 or more")

    def loss(self, model: Model, params: Any, batch: DeviceBatch, key: jax.Array) -> tuple[jax.Array, Metrics]:
        """Returns the triplet loss, with `accuracy`, `alignment` and `triplets`, the number whose loss is not 0.

        The accuracy is the share of articles for which no other article's post scores above the own.

        Raises:
          InputError: for a batch that `gradient_chunk` does not divide.
        """
        texts = [batch["anchor_tokens"], batch["positive_tokens"]]
        text_key, mlm_key = self.split_key(key)
        embed = functools.partial(embed_texts, model, params)
        articles, posts = map_chunks(embed, texts, text_key, self.chunks(len(texts[0]), len(texts)))
        scores = jnp.einsum("id,jd->ij", articles, posts)
        same = _same(batch["anchor_doc_id"], batch["positive_doc_id"])
        loss, count = self._triplet_loss(articles, posts, batch)
        others = jnp.max(scores, axis=1, where=~same, initial=-jnp.inf)
        metrics = {
            "accuracy": jnp.mean((jnp.diagonal(scores) >= others).astype(jnp.float32)),
            "alignment": alignment(*jax.lax.stop_gradient((articles, posts))),
            "triplets": count,
        }
        every = jnp.ones(len(articles), bool)
        return self.with_masked_words(model, params, (loss, metrics), [(text, every) for text in texts], mlm_key)

    def _triplet_loss(self, articles: jax.Array, posts: jax.Array, batch: DeviceBatch) -> tuple[jax.Array, jax.Array]:
        of_articles, of_posts = batch["anchor_doc_id"], batch["positive_doc_id"]
        if self.mining == _MULTI_SIMILARITY:
            scores = jnp.einsum("id,jd->ij", articles, posts)
            same = _same(of_articles, of_posts)
            mined = multi_similarity(jax.lax.stop_gradient(scores), same, self.mining_margin)
            return triplet_margin(scores, mined, self.margin)
        vectors, ids = jnp.concatenate([articles, posts]), jnp.concatenate([of_articles, of_posts])
        scores, same = jnp.einsum("id,jd->ij", vectors, vectors), _same(ids, ids)
        return triplet_margin(scores, Triplets(same & ~jnp.eye(len(ids), dtype=bool), ~same), self.margin)

    def pairs(self, model: Model, params: Any, batch: DeviceBatch) -> Pairs:
        """Returns posts as queries and articles as answers."""
        texts = [batch["positive_tokens"], batch["anchor_tokens"]]
        embed = functools.partial(embed_texts, model, params)
        posts, articles = map_chunks(embed, texts, jax.random.key(0), self.chunks(len(texts[0]), len(texts)))
        no_event = jnp.zeros((len(posts), 3), jnp.int32)
        post_ids, article_ids = (
            jnp.concatenate([batch[f"{role}_doc_id"], no_event], axis=1) for role in ("positive", "anchor")
        )
        return Pairs(posts, articles, post_ids, article_ids, no_event[:, 0])

    def flops(self, config: Architecture, lengths: Mapping[str, int], batch_size: int) -> float:
        """Returns the FLOPs of all embeddings, and of their cosines: B articles x B posts x 2 D."""
        embeddings = sum(config.flops("embed", length) for length in lengths.values()) * batch_size
        return embeddings + batch_size * batch_size * 2 * config.embedding_size


def _same(left: jax.Array, right: jax.Array) -> jax.Array:
    return jnp.all(left[:, None, :] == right[None, :, :], axis=-1)

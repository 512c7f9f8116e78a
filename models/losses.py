"""The training losses (paper, section 3): masked language model, InfoNCE over the global batch, topics by cross entropy.

All are pure functions of global arrays. Under `jit` with the batch sharded over the mesh's data axis they stay global: the other devices'
positives and negatives are gathered by the compiler. Losses are float32 scalars.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp

TEMPERATURE = 0.05


class DocumentIds(NamedTuple):
    """Who is who in a batch of triplets: each int32 [B, 2], the two words of a document id."""

    anchor: jax.Array
    positive: jax.Array
    negative: jax.Array


class LossAndAccuracy(NamedTuple):
    """A loss with the share of items whose right answer scored highest; both float32 scalars."""

    loss: jax.Array
    accuracy: jax.Array


def masked_language_model(logits: jax.Array, targets: jax.Array, weights: jax.Array) -> LossAndAccuracy:
    """Mean cross entropy over the positions to predict (section 3.1).

    loss = sum_bk w_bk (logsumexp_v logits_bkv - logits_bk,target) / max(1, sum_bk w_bk)

    Args:
      logits: [B, K, V].
      targets: int32 [B, K].
      weights: [B, K], 1 where a token is to be predicted, 0 where the slot is empty.
    """
    logits = logits.astype(jnp.float32)
    right = jnp.take_along_axis(logits, targets[..., None], axis=-1)[..., 0]
    total = jnp.maximum(jnp.sum(weights), 1.0)
    loss = jnp.sum(weights * (jax.nn.logsumexp(logits, axis=-1) - right)) / total
    hits = (right >= jnp.max(logits, axis=-1)).astype(jnp.float32)
    return LossAndAccuracy(loss, jnp.sum(weights * hits) / total)


def info_nce(
    anchor: jax.Array,
    positive: jax.Array,
    negative: jax.Array,
    *,
    temperature: float | jax.Array = TEMPERATURE,
    doc_ids: DocumentIds | None = None,
) -> LossAndAccuracy:
    """Contrastive loss over the global batch (section 3.2).

    loss = - mean_i log( e(a_i, p_i) / ( e(a_i, p_i) + sum_{j != i} e(a_i, p_j) + sum_j e(a_i, n_j) ) ),
    e(x, y) = exp(x . y / temperature)

    A candidate that is the very document of anchor i or of positive i is no negative of i: such p_j (j != i) and n_j leave the denominator.

    Args:
      anchor: [B, D], rows of length 1.
      positive: [B, D], rows of length 1.
      negative: [B, D], rows of length 1.
      temperature: divides the similarities; a scale would be 1 / temperature.
      doc_ids: who the documents are; None masks nothing.

    Returns:
      The loss, and the share of anchors for which no candidate scores above the positive.
    """
    anchor, positive, negative = (vectors.astype(jnp.float32) for vectors in (anchor, positive, negative))
    to_positives = jnp.einsum("id,jd->ij", anchor, positive) / temperature
    to_negatives = jnp.einsum("id,jd->ij", anchor, negative) / temperature
    own = jnp.diagonal(to_positives)
    if doc_ids is not None:
        same_positive, same_negative = same_document_masks(doc_ids)
        to_positives = jnp.where(same_positive, -jnp.inf, to_positives)
        to_negatives = jnp.where(same_negative, -jnp.inf, to_negatives)
    candidates = jnp.concatenate([to_positives, to_negatives], axis=1)
    loss = jnp.mean(jax.nn.logsumexp(candidates, axis=1) - own)
    return LossAndAccuracy(loss, jnp.mean((own >= jnp.max(candidates, axis=1)).astype(jnp.float32)))


def same_document_masks(doc_ids: DocumentIds) -> tuple[jax.Array, jax.Array]:
    """Which candidates are the anchor's or its positive's own document.

    Returns:
      bool [B, B] for (anchor i, positive j), False on the diagonal, and bool [B, B] for (anchor i, negative j).
    """

    def equal(left: jax.Array, right: jax.Array) -> jax.Array:
        return jnp.all(left[:, None, :] == right[None, :, :], axis=-1)

    others = ~jnp.eye(doc_ids.anchor.shape[0], dtype=bool)
    to_positives = (equal(doc_ids.anchor, doc_ids.positive) | equal(doc_ids.positive, doc_ids.positive)) & others
    to_negatives = equal(doc_ids.anchor, doc_ids.negative) | equal(doc_ids.positive, doc_ids.negative)
    return to_positives, to_negatives


def topic_bce(logits: jax.Array, topic_ids: jax.Array, labels: jax.Array) -> LossAndAccuracy:
    """Binary cross entropy on the listed topics only (section 3.3); topics that are not listed carry no loss and no gradient.

    loss = mean over listed (b, m) of softplus(x) - y x, with x = logits[b, topic_ids[b, m]] and y = labels[b, m]

    Args:
      logits: [B, T].
      topic_ids: int32 [B, M].
      labels: int32 [B, M]: 1 positive, 0 negative, -1 for an empty slot.

    Returns:
      The loss, and the share of listed topics on the right side of 0.
    """
    listed = jnp.take_along_axis(logits.astype(jnp.float32), topic_ids, axis=1)
    weights = (labels >= 0).astype(jnp.float32)
    total = jnp.maximum(jnp.sum(weights), 1.0)
    loss = jnp.sum(weights * (jax.nn.softplus(listed) - labels * listed)) / total
    hits = ((listed > 0) == (labels > 0)).astype(jnp.float32)
    return LossAndAccuracy(loss, jnp.sum(weights * hits) / total)

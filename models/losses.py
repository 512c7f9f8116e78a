"""The training losses (paper, section 3): masked language model, InfoNCE over the global batch, topic cross entropy.

All are pure functions of global arrays. Under `jit` with the batch sharded over the mesh's data axis they stay global:
the other devices' positives and negatives are gathered by the compiler. Losses are float32 scalars.
"""

import functools
from collections.abc import Sequence
from typing import Final, Literal, NamedTuple

import flax.struct
import jax
import jax.numpy as jnp

from .chunks import map_chunks
from .softmax import SoftmaxTerms

TEMPERATURE: Final = 0.05
_NORM_FLOOR: Final = 1e-12
_UNIFORMITY_SCALE: Final = 2.0  # Wang and Isola's t


class DocumentEvents(NamedTuple):
    """The event and the byline day of the documents of a batch of triplets.

    Each is int32 [..., 3]: the two words of the id of the event, both 0 where it is unknown, and the day, 0 where it is
    unknown. One id may name a story of many days; documents report the same event if their days are near, too.

    Attributes:
      anchor: [B, 3].
      positive: [B, 3].
      negative: [B, 3] or [B, N, 3], as the negatives.
    """

    anchor: jax.Array
    positive: jax.Array
    negative: jax.Array


class SameEvent(flax.struct.PyTreeNode):
    """Which candidates count as reports of the anchor's event, apart from the documents of the triplet itself.

    Attributes:
      events: of the documents.
      by_id: a candidate counts if anchor or positive has the same event and a day that is near.
      similarity: a candidate counts if its cosine to the positive is greater and its day is near that of anchor or
        positive; None leaves this rule out. The cosine passes no gradient.
      days: days are near if they differ by at most this many; an unknown day is near no other.
    """

    events: DocumentEvents
    by_id: bool = flax.struct.field(pytree_node=False)
    similarity: float | None = flax.struct.field(pytree_node=False)
    days: int = flax.struct.field(pytree_node=False)


class DocumentIds(NamedTuple):
    """The documents of a batch of triplets: int32, the two words of each document id.

    `clean` keeps one article of a cluster of (near) duplicates, so an id stands for its cluster. Only where the search
    for near duplicates was turned off are there copies under ids of their own, and then no job knows of them.

    Attributes:
      anchor: [B, 2].
      positive: [B, 2].
      negative: [B, 2] or [B, N, 2], as the negatives; None without negatives.
      same_event: which other documents report the same event; None knows of none.
    """

    anchor: jax.Array
    positive: jax.Array
    negative: jax.Array | None
    same_event: SameEvent | None = None


class Kept(NamedTuple):
    """The parts of a batch of triplets that take part in the loss; None keeps all.

    Attributes:
      triplets: bool [B]; the other triplets have no loss, and their documents are not candidates.
      negatives: bool [B, N], or [B], as the negatives; False for an empty slot.
    """

    triplets: jax.Array | None = None
    negatives: jax.Array | None = None


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
    return mean_cross_entropy(terms_of_logits(logits, targets), weights)


def terms_of_logits(logits: jax.Array, targets: jax.Array) -> SoftmaxTerms:
    """`SoftmaxTerms` [...] of logits [..., V] for targets int32 [...]; see also `softmax.softmax_terms`."""
    logits = logits.astype(jnp.float32)
    right = jnp.take_along_axis(logits, targets[..., None], axis=-1)[..., 0]
    return SoftmaxTerms(jax.nn.logsumexp(logits, axis=-1), right, jax.lax.stop_gradient(jnp.max(logits, axis=-1)))


def mean_cross_entropy(terms: SoftmaxTerms, weights: jax.Array) -> LossAndAccuracy:
    """Weighted mean of log_normalizer - target, and of its hits; both are 0 where all weights are 0.

    Args:
      terms: of any shape.
      weights: of the same shape.
    """
    total = jnp.maximum(jnp.sum(weights), 1.0)
    loss = jnp.sum(weights * (terms.log_normalizer - terms.target)) / total
    hits = (terms.target >= terms.largest).astype(jnp.float32)
    return LossAndAccuracy(loss, jnp.sum(weights * hits) / total)


def info_nce(
    anchor: jax.Array,
    positive: jax.Array,
    negative: jax.Array | None = None,
    *,
    temperature: float | jax.Array = TEMPERATURE,
    doc_ids: DocumentIds | None = None,
    kept: Kept | None = None,
    symmetric: bool = False,
    chunks: int = 1,
) -> LossAndAccuracy:
    """Contrastive loss over the global batch (section 3.2).

    loss = - mean_i log( e(a_i, p_i) / ( e(a_i, p_i) + sum_{j != i} e(a_i, p_j) + sum_j e(a_i, n_j) ) ),
    e(x, y) = exp(x . y / temperature)

    A candidate that is the same document as anchor i or positive i is not a negative of i: such p_j (j != i) and n_j
    leave the denominator. The same holds for those that report the same event, by the rules of `doc_ids.same_event`.

    Args:
      anchor: [B, D], rows of length 1.
      positive: [B, D], rows of length 1.
      negative: [B, D] or [B, N, D], rows of length 1; every anchor meets those of all anchors. None leaves the
        positives of the batch.
      temperature: divides the similarities; a scale would be 1 / temperature.
      doc_ids: of the documents; None masks nothing.
      kept: what takes part; None keeps all.
      symmetric: the loss is the mean of both directions; in the other one, each positive is matched with the anchors
        of the batch, under the same masks, without hard negatives (Radford et al. 2021).
      chunks: the scores [B, B + B N] exist for B / chunks anchors at a time.

    Returns:
      The loss, and the share of anchors for which no candidate scores above the positive.
    """
    size = anchor.shape[-1]
    anchor, positive = anchor.astype(jnp.float32), positive.astype(jnp.float32)
    kept, known = kept or Kept(), _Known.of(doc_ids)
    groups = [_Group(positive, known.positive, kept.triplets)]
    if negative is not None:
        vectors = negative.astype(jnp.float32).reshape(-1, size)
        groups.append(_Group(vectors, known.negative, _of_negatives(negative, kept)))
    contrast = functools.partial(_contrast, known=known, temperature=temperature, chunks=chunks)
    losses, hits = contrast(anchor, groups)
    if symmetric:
        losses += contrast(positive, [_Group(anchor, known.anchor, kept.triplets)])[0]
        losses /= 2
    return LossAndAccuracy(mean_over(losses, kept.triplets), mean_over(hits, kept.triplets))


class _Documents(NamedTuple):
    """What is known of documents: ids [M, 2] and events [M, 3], each None where it is not known."""

    ids: jax.Array | None = None
    events: jax.Array | None = None

    @classmethod
    def flat(cls, ids: jax.Array | None, events: jax.Array | None) -> "_Documents":
        return cls(None if ids is None else ids.reshape(-1, 2), None if events is None else events.reshape(-1, 3))


class _Known(NamedTuple):
    """What is known of the documents of a batch, the negatives flattened, and the rule for those of one event."""

    anchor: _Documents
    positive: _Documents
    negative: _Documents
    rule: SameEvent | None

    @classmethod
    def of(cls, doc_ids: DocumentIds | None) -> "_Known":
        if doc_ids is None:
            return cls(_Documents(), _Documents(), _Documents(), None)
        rule = doc_ids.same_event
        events = (None, None, None) if rule is None else rule.events
        ids = (doc_ids.anchor, doc_ids.positive, doc_ids.negative)
        anchor, positive, negative = map(_Documents.flat, ids, events)
        return cls(anchor, positive, negative, rule)


class _Group(NamedTuple):
    """Candidates: vectors [M, D], their documents, and which of them are kept, bool [M] or None for all."""

    vectors: jax.Array
    documents: _Documents
    kept: jax.Array | None


def _of_negatives(negative: jax.Array, kept: Kept) -> jax.Array | None:
    """Which of the flattened negatives are candidates."""
    slots = negative.shape[:-1]
    triplets, negatives = kept
    parts = [] if triplets is None else [jnp.broadcast_to(triplets.reshape(-1, *[1] * (len(slots) - 1)), slots)]
    parts += [] if negatives is None else [negatives]
    return jnp.stack(parts).all(axis=0).reshape(-1) if parts else None


class _Queries(NamedTuple):
    """A block of queries: numbers [R], vectors [R, D], those of their answers where they are read, both documents."""

    number: jax.Array
    vectors: jax.Array
    answers: jax.Array | None
    anchors: _Documents
    positives: _Documents


def _contrast(
    queries: jax.Array, groups: Sequence[_Group], known: _Known, temperature: float | jax.Array, chunks: int
) -> tuple[jax.Array, jax.Array]:
    """Cross entropy [B] of query i picking number i of the first group, and 1 where nothing scored higher [B]."""

    def rows(block: _Queries, _: jax.Array) -> tuple[jax.Array, jax.Array]:
        """Scores a block of queries against the documents of all groups."""
        scores, own_score = [], jnp.zeros(())
        for place, group in enumerate(groups):
            score = jnp.einsum("id,jd->ij", block.vectors, group.vectors) / temperature
            own = (block.number[:, None] == jnp.arange(len(group.vectors))) if place == 0 else None
            if own is not None:
                own_score = jnp.sum(jnp.where(own, score, 0.0), axis=1)
            masked = _masked(block, group, known.rule, own)
            scores.append(score if masked is None else jnp.where(masked, -jnp.inf, score))
        candidates = jnp.concatenate(scores, axis=1)
        hit = (own_score >= jnp.max(candidates, axis=1)).astype(jnp.float32)
        return jax.nn.logsumexp(candidates, axis=1) - own_score, hit

    reads_answers = known.rule is not None and known.rule.similarity is not None
    answers = groups[0].vectors if reads_answers else None
    every = _Queries(jnp.arange(len(queries)), queries, answers, known.anchor, known.positive)
    losses, hits = map_chunks(rows, every, jax.random.key(0), chunks)
    return losses, hits


def _masked(block: _Queries, group: _Group, rule: SameEvent | None, own: jax.Array | None) -> jax.Array | None:
    """Which candidates [M] leave the denominator of each query [R], bool [R, M]; None if none does."""
    masks = []
    for mine in (block.anchors, block.positives):
        if mine.ids is not None and group.documents.ids is not None:
            masks.append(_same(mine.ids, group.documents.ids))
        if rule is not None and rule.by_id and mine.events is not None and group.documents.events is not None:
            masks.append(_same_event(mine.events, group.documents.events, rule.days))
    if rule is not None and rule.similarity is not None:
        masks.append(_similar(block, group, rule))
    if group.kept is not None:
        masks.append(~group.kept[None, :])
    if not masks:
        return None
    masked = functools.reduce(jnp.logical_or, masks)
    return masked if own is None else masked & ~own


def _same_event(left: jax.Array, right: jax.Array, days: int) -> jax.Array:
    """Whether documents [R, 3] and [M, 3] have one event, which is known, and days that are near: bool [R, M]."""
    is_known = jnp.any(left[:, :2] != 0, axis=1)[:, None]
    return _same(left[:, :2], right[:, :2]) & is_known & _near(left, right, days)


def _near(left: jax.Array, right: jax.Array, days: int) -> jax.Array:
    """Whether the days of documents [R, 3] and [M, 3] are known and differ by at most this many: bool [R, M]."""
    mine, others = left[:, 2], right[:, 2]
    are_known = (mine != 0)[:, None] & (others != 0)[None, :]
    return are_known & (jnp.abs(mine[:, None] - others[None, :]) <= days)


def _similar(block: _Queries, group: _Group, rule: SameEvent) -> jax.Array:
    """Whether candidates are similar to the answer of each query, and near in time: bool [R, M]."""
    events, similarity = group.documents.events, rule.similarity
    assert events is not None
    assert similarity is not None
    assert block.answers is not None
    assert block.anchors.events is not None
    assert block.positives.events is not None
    cosine = jax.lax.stop_gradient(jnp.einsum("id,jd->ij", block.answers, group.vectors))
    near = _near(block.anchors.events, events, rule.days) | _near(block.positives.events, events, rule.days)
    return (cosine > similarity) & near


def _same(left: jax.Array, right: jax.Array) -> jax.Array:
    return jnp.all(left[:, None, :] == right[None, :, :], axis=-1)


def mean_over(values: jax.Array, kept: jax.Array | None) -> jax.Array:
    """Mean of [B] over the rows that are kept, bool [B]; 0 if there are none. None keeps all."""
    if kept is None:
        return jnp.mean(values)
    return jnp.sum(jnp.where(kept, values, 0.0)) / jnp.maximum(jnp.sum(kept), 1)


def normalized_prefix(vectors: jax.Array, size: int) -> jax.Array:
    """The first `size` numbers of each vector, scaled to length 1: [..., D] -> [..., size].

    Source: Kusupati et al. 2022, "Matryoshka Representation Learning".
    """
    prefix = vectors[..., :size]
    # The floor is inside the root: otherwise a prefix of zeros would have no finite gradient.
    return prefix * jax.lax.rsqrt(jnp.maximum(jnp.sum(prefix**2, axis=-1, keepdims=True), _NORM_FLOOR**2))


def alignment(anchor: jax.Array, positive: jax.Array, kept: jax.Array | None = None) -> jax.Array:
    """Mean of |a_i - p_i|^2 for unit vectors [B, D]: 0 is best, 4 worst (Wang and Isola 2020)."""
    return mean_over(jnp.sum((anchor - positive) ** 2, axis=-1), kept)


def uniformity(vectors: jax.Array, kept: jax.Array | None = None, *, chunks: int = 1) -> jax.Array:
    """The log of mean_{i != j} exp(-2 |x_i - x_j|^2) for unit vectors [B, D].

    It is 0 where all vectors are equal, and close to -4 where they cover a sphere (Wang and Isola 2020).

    Args:
      vectors: [B, D].
      kept: bool [B]; only pairs of kept rows count. None keeps all.
      chunks: distances exist for B / chunks rows at a time.

    Returns:
      float32 scalar; 0 where there is no pair.
    """
    weights = jnp.ones(len(vectors)) if kept is None else kept.astype(jnp.float32)

    def rows(block: tuple[jax.Array, jax.Array], _: jax.Array) -> jax.Array:
        number, own = block
        kernel = jnp.exp(-2 * _UNIFORMITY_SCALE * (1 - jnp.einsum("id,jd->ij", own, vectors)))
        return jnp.sum(jnp.where(number[:, None] == jnp.arange(len(vectors)), 0.0, kernel) * weights, axis=1)

    sums = map_chunks(rows, (jnp.arange(len(vectors)), vectors), jax.random.key(0), chunks)
    count = jnp.sum(weights)
    pairs = count * (count - 1)
    return jnp.where(
        pairs > 0,
        jnp.log(jnp.maximum(jnp.sum(sums * weights), jnp.finfo(jnp.float32).tiny) / jnp.maximum(pairs, 1.0)),
        0.0,
    )


def topic_bce(
    logits: jax.Array, topic_ids: jax.Array, labels: jax.Array, *, over: Literal["documents", "labels"] = "documents"
) -> LossAndAccuracy:
    """Binary cross entropy on the listed topics (equation 2); other topics carry no loss and no gradient.

    loss = mean_b sum_m softplus(x_bm) - y_bm x_bm, with x_bm = logits[b, topic_ids[b, m]] and y_bm = labels[b, m]

    The sum is over the listed topics of a document, the mean over the documents that have any.

    Args:
      logits: [B, T].
      topic_ids: int32 [B, M].
      labels: int32 [B, M]: 1 positive, 0 negative, -1 for an empty slot.
      over: "labels" takes the mean over all listed (b, m) instead, so that the loss does not grow with their number.

    Returns:
      The loss, and the share of listed topics on the right side of 0.
    """
    listed = jnp.take_along_axis(logits.astype(jnp.float32), topic_ids, axis=1)
    weights = (labels >= 0).astype(jnp.float32)
    count = jnp.maximum(jnp.sum(weights), 1.0)
    documents = jnp.maximum(jnp.sum(jnp.any(labels >= 0, axis=1)), 1)
    terms = weights * (jax.nn.softplus(listed) - labels * listed)
    loss = jnp.sum(terms) / (documents if over == "documents" else count)
    hits = ((listed > 0) == (labels > 0)).astype(jnp.float32)
    return LossAndAccuracy(loss, jnp.sum(weights * hits) / count)

"""The training losses (paper, section 3): masked language model, InfoNCE over the global batch, topic cross entropy.

All are pure functions of global arrays. Under `jit` with the batch sharded over the mesh's data axis they stay global:
the other devices' positives and negatives are gathered by the compiler. Losses are float32 scalars.

Distances between the vectors of texts and of their translations, for training encoders by translation.

Shapes: N pairs, P units, K negatives of each pair.
"""

import functools
from collections.abc import Sequence
from typing import Any, Final, Literal, NamedTuple

import jax
import jax.numpy as jnp

from .softmax import SoftmaxTerms, chunk_of_device, map_chunks, shard_count, softmax_terms

TEMPERATURE: Final = 0.05
_UNIFORMITY_SCALE: Final = 2.0  # Wang and Isola's t
_Own = tuple[jax.Array | None, jax.Array | None]


class Documents(NamedTuple):
    """The documents of a batch of triplets, int32 [..., 5]: the two words of an id, those of its event, and its day.

    Event and day are 0 where they are unknown; where no event is known, the ids alone, [..., 2], do. One event may be a
    story of many days. `clean` keeps one article of a cluster of (near) duplicates, so an id stands for its cluster.
    Only where the search for near duplicates was turned off are there copies under ids of their own, and then no job
    knows of them.

    Attributes:
      anchor: [B, 5].
      positive: [B, 5].
      negative: [B, 5] or [B, N, 5], as the negatives; None without negatives.
      days: see `same_documents`.
    """

    anchor: jax.Array
    positive: jax.Array
    negative: jax.Array | None = None
    days: int = 1


def same_documents(left: Any, right: Any, days: int) -> Any:
    """Whether rows of `Documents` [R, 5] and [M, 5] have one id, or one event and days that are near: bool [R, M].

    Args:
      left: of JAX or NumPy.
      right: likewise.
      days: days are near if they differ by at most this many; an unknown day is near no other.
    """
    mine, others = left[:, None], right[None]
    same_id = (mine[..., :2] == others[..., :2]).all(-1)
    if left.shape[-1] == 2:  # no events are known
        return same_id
    is_known = (mine[..., 2:4] != 0).any(-1) & (mine[..., 4] != 0) & (others[..., 4] != 0)
    is_near = abs(mine[..., 4] - others[..., 4]) <= days
    same_event = (mine[..., 2:4] == others[..., 2:4]).all(-1) & is_known & is_near
    return same_id | same_event


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


def terms_of_logits(logits: jax.Array, targets: jax.Array) -> SoftmaxTerms:
    """`SoftmaxTerms` [...] of logits [..., V] for targets int32 [...]; see also `softmax.softmax_terms`."""
    logits = logits.astype(jnp.float32)
    right = jnp.take_along_axis(logits, targets[..., None], axis=-1)[..., 0]
    return SoftmaxTerms(jax.nn.logsumexp(logits, axis=-1), right, jax.lax.stop_gradient(jnp.max(logits, axis=-1)))


def terms_of_table(
    states: jax.Array, table: jax.Array, bias: jax.Array, targets: jax.Array, *, chunk: int
) -> SoftmaxTerms:
    """`SoftmaxTerms` [...] of the logits states @ table.T + bias, all of them at once where they fit.

    Args:
      states: [..., H].
      table: [V, H].
      bias: [V].
      targets: int32 [...].
      chunk: pieces whose logits exist at a time on each device; 0 leaves it to `softmax.automatic_chunk`.
    """
    chunk = chunk_of_device(targets.size, len(table), chunk)
    if chunk * shard_count("vocab") >= len(table):
        narrow = table.astype(states.dtype)
        logits = jnp.einsum("...h,vh->...v", states, narrow, preferred_element_type=jnp.float32) + bias
        return terms_of_logits(logits, targets)
    flat = softmax_terms(states.reshape(-1, states.shape[-1]), table, bias, targets.reshape(-1), chunk=chunk)
    return SoftmaxTerms(*(values.reshape(targets.shape) for values in flat))


def mean_cross_entropy(terms: SoftmaxTerms, weights: jax.Array) -> LossAndAccuracy:
    """Weighted mean of log_normalizer - target, and of its hits; both are 0 where all weights are 0.

    It is the loss of the masked language model (section 3.1): sum_bk w_bk (logsumexp_v logits_bkv - logits_bk,target) /
    max(1, sum_bk w_bk).

    Args:
      terms: of any shape, [B, K] for K positions of each row.
      weights: of the same shape, 1 where a token is to be predicted, 0 where the slot is empty.
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
    temperature: float = TEMPERATURE,
    documents: Documents | None = None,
    kept: Kept | None = None,
    symmetric: bool = False,
    chunks: int = 1,
) -> LossAndAccuracy:
    """Contrastive loss over the global batch (section 3.2).

    loss = - mean_i log( e(a_i, p_i) / ( e(a_i, p_i) + sum_{j != i} e(a_i, p_j) + sum_j e(a_i, n_j) ) ),
    e(x, y) = exp(x . y / temperature)

    A candidate that is the same document as anchor i or positive i, or reports its event, is not a negative of i: such
    p_j (j != i) and n_j leave the denominator, see `same_documents`.

    Args:
      anchor: [B, D], rows of length 1.
      positive: [B, D], rows of length 1.
      negative: [B, D] or [B, N, D], rows of length 1; every anchor meets those of all anchors. None leaves the
        positives of the batch.
      temperature: divides the similarities; a scale would be 1 / temperature.
      documents: of the batch; None masks nothing.
      kept: what takes part; None keeps all.
      symmetric: the loss is the mean of both directions; in the other one, each positive is matched with the anchors
        of the batch, under the same masks, without hard negatives (Radford et al. 2021).
      chunks: the scores [B, B + B N] exist for B / chunks anchors at a time.

    Returns:
      The loss, and the share of anchors for which no candidate scores above the positive.
    """
    size = anchor.shape[-1]
    anchor, positive = anchor.astype(jnp.float32), positive.astype(jnp.float32)
    kept = kept or Kept()
    *given, days = documents or (None, None, None, 0)
    own, own_positive, others = (None if rows is None else rows.reshape(-1, rows.shape[-1]) for rows in given)
    groups = [_Group(positive, own_positive, kept.triplets)]
    if negative is not None:
        vectors = negative.astype(jnp.float32).reshape(-1, size)
        groups.append(_Group(vectors, others, _of_negatives(negative, kept)))
    contrast = functools.partial(_contrast, own=(own, own_positive), days=days, temperature=temperature, chunks=chunks)
    losses, hits = contrast(anchor, groups)
    if symmetric:
        losses += contrast(positive, [_Group(anchor, own, kept.triplets)])[0]
        losses /= 2
    return LossAndAccuracy(mean_over(losses, kept.triplets), mean_over(hits, kept.triplets))


class _Group(NamedTuple):
    """Candidates: vectors [M, D], their documents [M, 5], and which of them are kept, bool [M] or None for all."""

    vectors: jax.Array
    documents: jax.Array | None
    kept: jax.Array | None


def _of_negatives(negative: jax.Array, kept: Kept) -> jax.Array | None:
    """Which of the flattened negatives are candidates."""
    slots = negative.shape[:-1]
    triplets, negatives = kept
    parts = [] if triplets is None else [jnp.broadcast_to(triplets.reshape(-1, *[1] * (len(slots) - 1)), slots)]
    parts += [] if negatives is None else [negatives]
    return jnp.stack(parts).all(axis=0).reshape(-1) if parts else None


def _contrast(
    queries: jax.Array,
    groups: Sequence[_Group],
    own: _Own,
    *,
    days: int,
    temperature: float,
    chunks: int,
) -> tuple[jax.Array, jax.Array]:
    """Cross entropy [B] of query i picking number i of the first group, and 1 where nothing scored higher [B].

    Args:
      queries: [B, D].
      groups: the candidates.
      own: the documents [B, 5] of the queries' anchors and positives, which are no negatives.
      days: see `same_documents`.
      temperature: divides the similarities.
      chunks: of the queries.
    """

    def rows(block: tuple[jax.Array, jax.Array, _Own], _: jax.Array) -> Any:
        """Scores a block of queries against the documents of all groups."""
        number, vectors, documents = block
        scores, own_score = [], jnp.zeros(())
        for place, group in enumerate(groups):
            score = jnp.einsum("id,jd->ij", vectors, group.vectors) / temperature
            masked = _masked(documents, group, days)
            if place == 0:
                is_own = number[:, None] == jnp.arange(len(group.vectors))
                own_score = jnp.sum(jnp.where(is_own, score, 0.0), axis=1)
                masked = None if masked is None else masked & ~is_own
            scores.append(score if masked is None else jnp.where(masked, -jnp.inf, score))
        candidates = jnp.concatenate(scores, axis=1)
        hit = (own_score >= jnp.max(candidates, axis=1)).astype(jnp.float32)
        return jax.nn.logsumexp(candidates, axis=1) - own_score, hit

    losses, hits = map_chunks(rows, (jnp.arange(len(queries)), queries, own), jax.random.key(0), chunks)
    return losses, hits


def _masked(own: _Own, group: _Group, days: int) -> jax.Array | None:
    """Which candidates [M] leave the denominator of each query [R], bool [R, M]; None if none does."""
    known = [] if group.documents is None else [mine for mine in own if mine is not None]
    masks = [same_documents(mine, group.documents, days) for mine in known]
    if group.kept is not None:
        masks.append(~group.kept[None, :])
    return functools.reduce(jnp.logical_or, masks) if masks else None


def mean_over(values: jax.Array, kept: jax.Array | None) -> jax.Array:
    """Mean of [B] over the rows that are kept, bool [B]; 0 if there are none. None keeps all."""
    if kept is None:
        return jnp.mean(values)
    return jnp.sum(jnp.where(kept, values, 0.0)) / jnp.maximum(jnp.sum(kept), 1)


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


def topic_bce(logits: jax.Array, topic_ids: jax.Array, labels: jax.Array) -> LossAndAccuracy:
    """Binary cross entropy on the listed topics (equation 2); other topics carry no loss and no gradient.

    loss = mean_b sum_m softplus(x_bm) - y_bm x_bm, with x_bm = logits[b, topic_ids[b, m]] and y_bm = labels[b, m]

    The sum is over the listed topics of a document, the mean over the documents that have any.

    Args:
      logits: [B, T].
      topic_ids: int32 [B, M].
      labels: int32 [B, M]: 1 positive, 0 negative, -1 for an empty slot.

    Returns:
      The loss, and the share of listed topics on the right side of 0.
    """
    listed = jnp.take_along_axis(logits.astype(jnp.float32), topic_ids, axis=1)
    weights = (labels >= 0).astype(jnp.float32)
    count = jnp.maximum(jnp.sum(weights), 1.0)
    documents = jnp.maximum(jnp.sum(jnp.any(labels >= 0, axis=1)), 1)
    terms = weights * (jax.nn.softplus(listed) - labels * listed)
    loss = jnp.sum(terms) / documents
    hits = ((listed > 0) == (labels > 0)).astype(jnp.float32)
    return LossAndAccuracy(loss, jnp.sum(weights * hits) / count)


Scale = Literal["batch_means", "pairs"]
_EPSILON = 1e-6  # added to v
_FLOOR = 1e-12  # below the root of a squared distance, where its gradient has no bound


def norms(vectors: jax.Array) -> jax.Array:
    """Euclidean norm of the last axis; its gradient at 0 is 0."""
    return _root(jnp.sum(jnp.square(vectors), axis=-1))


def _root(squares: jax.Array) -> jax.Array:
    """The square root, with gradient 0 at 0."""
    is_zero = squares < _FLOOR
    return jnp.where(is_zero, 0.0, jnp.sqrt(jnp.where(is_zero, 1.0, squares)))


def cross_distances(left: jax.Array, right: jax.Array) -> jax.Array:
    """Euclidean distance of every row of `left` [N, P] to every row of `right` [M, P]: float32 [N, M]."""
    products = jnp.einsum("np,mp->nm", left, right, precision=jax.lax.Precision.HIGHEST)
    return _root(jnp.sum(left**2, axis=-1)[:, None] + jnp.sum(right**2, axis=-1)[None, :] - 2 * products)


def draw_negatives(key: jax.Array, pairs: int, count: int) -> jax.Array:
    """For each pair of a batch the numbers of different other pairs: int32 [N, min(count, N - 1)].

    The others are those that follow the pair at distances drawn from `key`, from the first again after the last. So
    every pair is a negative as often as any other, and no pair is its own.
    """
    shifts = 1 + jax.random.permutation(key, pairs - 1)[: min(count, pairs - 1)]
    return (jnp.arange(pairs)[:, None] + shifts[None, :]) % pairs


def scale_of(left: jax.Array, right: jax.Array, scale: Scale) -> jax.Array:
    """v, by which distances are divided, a float32 scalar.

    Args:
      left: [N, P].
      right: [N, P].
      scale: "batch_means": the mean of the norms of the means of both sides over the batch; "pairs": the mean distance
        of the pairs.
    """
    if scale == "pairs":
        return jnp.mean(norms(left - right))
    return (norms(jnp.mean(left, axis=0)) + norms(jnp.mean(right, axis=0))) / 2


def contrastive_distance(
    left: jax.Array, right: jax.Array, negatives: jax.Array, *, scale: Scale, margin: float
) -> tuple[jax.Array, jax.Array]:
    """The distance of each pair, and how far its negatives are from being farther by a margin.

    With d(a, b) = |a - b| / (v + epsilon), v by `scale_of`::

        pair_n     = d(left_n, right_n)
        negative_n = mean_k max(0, margin - (d(left_n, right_nk) - pair_n))

    Both stay the same where all vectors are multiplied by a number.

    Args:
      left: float32 [N, P].
      right: float32 [N, P].
      negatives: int32 [N, K], rows of `right`.
      scale: see `scale_of`; its gradient counts.
      margin: alpha.

    Returns:
      float32 [N] both.
    """
    divisor = scale_of(left, right, scale) + _EPSILON
    own = norms(left - right) / divisor
    others = jnp.take_along_axis(cross_distances(left, right), negatives, axis=1) / divisor
    return own, jnp.mean(jnp.maximum(0.0, margin - (others - own[:, None])), axis=1)


def frobenius_gaps(left: jax.Array, right: jax.Array, negatives: jax.Array) -> jax.Array:
    """How much farther a pair is than its negatives, in squares, over a scale: float32 [N, K].

    (|left_n - right_n|^2 - |left_n - right_nk|^2) / (2 v + 1), where v is the mean norm of all rows of both sides. The
    norm of a row is the Frobenius norm of the matrix that it lists. The 1 keeps the term finite, so that it changes
    where all vectors are multiplied by a number.

    Args:
      left: float32 [N, P].
      right: float32 [N, P].
      negatives: int32 [N, K], rows of `right`.
    """
    scale = (jnp.mean(norms(left)) + jnp.mean(norms(right))) / 2
    own = jnp.sum(jnp.square(left - right), axis=-1)[:, None]
    others = jnp.sum(jnp.square(left[:, None] - right[negatives]), axis=-1)
    return (own - others) / (2 * scale + 1)

"""Similarities of articles for people to look at: pairs, neighbors, geometry, and a map in two dimensions.

Pure functions of articles and their embeddings; ``studies.diagnose`` combines them into a report. Alignment and
uniformity (Wang and Isola 2020, arXiv 2005.10242) read a whole collection, dense or sparse; the trainer reports them
for each batch (``models.losses``).
"""

import dataclasses
import enum
from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from ..formats.arrays import Floats, highest
from .encoders import Embeddings, cosine_similarities, dense_rows, paired_cosines
from .events import EventDocument, codes

_BLOCK: Final = 256  # rows of the similarity matrix held at once
_SCALE: Final = 2.0  # Wang and Isola's t

FEWEST: Final = 5
_DENSE_DIMENSIONS: Final = 50  # wider vectors are reduced to 50 dimensions first, as scikit-learn advises for t-SNE
_PERPLEXITY: Final = 30.0
_WORTH_THREADS: Final = 1_000

IntArray = npt.NDArray[np.int64]


class PairKind(enum.StrEnum):
    """The kinds of pairs that are compared."""

    SAME_EVENT = "same event"
    ACROSS_LANGUAGES = "same event, two languages"
    SAME_TOPIC = "same topic, not the same event"
    RANDOM = "random"


@dataclasses.dataclass(frozen=True)
class Similarities:
    """The cosines of one kind of pairs.

    Attributes:
      cosines: float32 ``[P]``.
      mean: mean of the cosines.
      quantiles: 5th, 50th and 95th percentile of the cosines.
      auc: probability that such a pair is nearer than a random pair, ties counting half (the area under the ROC curve);
        ``None`` for random pairs.
    """

    cosines: Floats
    mean: float
    quantiles: tuple[float, float, float]
    auc: float | None


def draw_pairs(articles: Sequence[EventDocument], limit: int, seed: int = 0) -> dict[PairKind, IntArray]:
    """Draws pairs of every kind: rows int64 ``[P, 2]`` with P <= ``limit``, the smaller row first.

    Random pairs are any two articles. If a kind has more than ``limit`` pairs, they are drawn without replacement.
    Kinds without pairs are absent.
    """
    draw = np.random.default_rng(seed)
    event, topic, language = (
        codes([getattr(article, field) for article in articles]) for field in ("event", "topic", "language")
    )
    same_event = _pairs_within(event, limit, draw)
    same_topic = _pairs_within(topic, limit, draw)
    first, second = same_topic.T
    same_topic = same_topic[(event[first] != event[second]) | (event[first] < 0)]
    first, second = same_event.T
    across = same_event[(language[first] != language[second]) & (language[first] >= 0) & (language[second] >= 0)]
    found = {
        PairKind.SAME_EVENT: same_event,
        PairKind.ACROSS_LANGUAGES: across,
        PairKind.SAME_TOPIC: same_topic,
        PairKind.RANDOM: _random_pairs(len(articles), limit, draw),
    }
    return {kind: _drawn(pairs, limit, draw) for kind, pairs in found.items() if len(pairs)}


def similarities(embeddings: Embeddings, pairs: Mapping[PairKind, IntArray]) -> dict[PairKind, Similarities]:
    """Returns the cosines of all pairs by kind.

    Args:
      embeddings: float32 ``[N, D]`` of unit length, dense or CSR.
      pairs: from :func:`draw_pairs`.
    """
    from sklearn.metrics import roc_auc_score

    cosines = {kind: paired_cosines(embeddings[rows[:, 0]], embeddings[rows[:, 1]]) for kind, rows in pairs.items()}
    chance = cosines.get(PairKind.RANDOM)
    found = {}
    for kind, values in cosines.items():
        area = None
        if chance is not None and kind is not PairKind.RANDOM:
            labels = np.repeat([1, 0], [len(values), len(chance)])
            area = float(roc_auc_score(labels, np.concatenate([values, chance])))
        low, middle, high = np.quantile(values, (0.05, 0.5, 0.95)).tolist()
        found[kind] = Similarities(values, float(values.mean(dtype=np.float64)), (low, middle, high), area)
    return found


def _pairs_within(codes: IntArray, limit: int, draw: np.random.Generator) -> IntArray:
    """Returns pairs of rows with the same code >= 0: all of them, or ``limit`` drawn from a larger group."""
    groups = [np.flatnonzero(codes == code) for code in np.unique(codes[codes >= 0])]
    return np.concatenate(
        [np.zeros((0, 2), np.int64), *(members[_random_pairs(len(members), limit, draw)] for members in groups)]
    )


def _random_pairs(articles: int, limit: int, draw: np.random.Generator) -> IntArray:
    """Returns distinct pairs of different rows: ``limit`` of them, or all if there are fewer."""
    count = articles * (articles - 1) // 2
    numbers = np.arange(count) if count <= limit else draw.choice(count, limit, replace=False, shuffle=False)
    # Pair number n of the triangle, row by row: row i begins at i * (2 * articles - i - 1) / 2.
    starts = np.arange(articles) * (2 * articles - np.arange(articles) - 1) // 2
    first = np.searchsorted(starts, numbers, side="right") - 1
    return np.stack([first, numbers - starts[first] + first + 1], axis=1).astype(np.int64)


def _drawn(pairs: IntArray, limit: int, draw: np.random.Generator) -> IntArray:
    return pairs if len(pairs) <= limit else pairs[np.sort(draw.choice(len(pairs), limit, replace=False))]


def nearest(embeddings: Embeddings, queries: Sequence[int] | IntArray, k: int) -> tuple[IntArray, Floats]:
    """Returns the k articles nearest to each query, without the query; the earlier of tied articles comes first.

    Args:
      embeddings: float32 ``[N, D]`` of unit length, dense or CSR.
      queries: Q rows of ``embeddings``.
      k: number of neighbors; at most N - 1 are returned.

    Returns:
      (rows int64 ``[Q, k]``, cosines float32 ``[Q, k]``), the nearest first.
    """
    places = np.asarray(queries, np.int64)
    k = min(k, embeddings.shape[0] - 1)
    blocks = []
    for start in range(0, len(places), _BLOCK):
        own = places[start : start + _BLOCK]
        similarities = cosine_similarities(embeddings[own], embeddings)
        similarities[np.arange(len(own)), own] = -np.inf
        blocks.append(highest(similarities, k))
    rows, cosines = (np.concatenate(parts) for parts in zip(*blocks, strict=True))
    return rows, cosines


def shared_neighbors(first: Embeddings, second: Embeddings, k: int) -> float:
    """Returns the share of the k nearest articles on which two encoders agree, mean over all articles.

    It is 1 if they agree on all, and k / (N - 1) by chance.

    Args:
      first: float32 ``[N, D]`` of unit length, dense or CSR.
      second: embeddings of the same articles by another encoder, ``[N, E]``.
      k: number of neighbors, at least 1; at most N - 1 are compared.
    """
    everything = np.arange(first.shape[0])
    one, other = (nearest(embeddings, everything, k)[0] for embeddings in (first, second))
    common = [len(set(left) & set(right)) for left, right in zip(one.tolist(), other.tolist(), strict=True)]
    return float(np.mean(common) / one.shape[1])


def alignment(embeddings: Embeddings, pairs: IntArray) -> float:
    """Returns the mean of ``|x - y|^2`` over pairs that belong together: 0 is best, 4 is worst.

    Args:
      embeddings: float32 ``[N, D]`` of unit length, dense or CSR.
      pairs: int64 ``[P, 2]``, P >= 1.
    """
    cosines = paired_cosines(embeddings[pairs[:, 0]], embeddings[pairs[:, 1]])
    return float(2 - 2 * cosines.mean(dtype=np.float64))


def uniformity(embeddings: Embeddings) -> float:
    """Returns the log of the mean of ``exp(-2 |x - y|^2)`` over all pairs of different articles.

    It is 0 if all articles are one point, and near -4 if they are spread over a sphere.

    Args:
      embeddings: float32 ``[N, D]`` of unit length, dense or CSR, N >= 2.
    """
    rows, total = embeddings.shape[0], 0.0
    for start in range(0, rows, _BLOCK):
        cosines = cosine_similarities(embeddings[start : start + _BLOCK], embeddings).astype(np.float64)
        kernel = np.exp(-2 * _SCALE * (1 - cosines))
        total += float(kernel.sum() - kernel[np.arange(len(kernel)), np.arange(start, start + len(kernel))].sum())
    return float(np.log(total / (rows * (rows - 1))))


def project(embeddings: Embeddings, seed: int = 0) -> Floats:
    """A map by t-SNE (van der Maaten and Hinton 2008): float32 ``[N, 2]`` with mean 0; the axes have no unit.

    On unit vectors Euclidean distances rank pairs as cosines do. Wide vectors
    are first reduced to 50 dimensions by a truncated SVD.

    Args:
      embeddings: float32 ``[N, D]`` of unit length, dense or CSR, N >= 5.
      seed: the same seed gives the same map on the same machine.
    """
    from sklearn.decomposition import TruncatedSVD
    from sklearn.manifold import TSNE
    from threadpoolctl import threadpool_limits

    points = embeddings
    if points.shape[1] > _DENSE_DIMENSIONS:
        with np.errstate(divide="ignore", invalid="ignore"):  # equal vectors have no variance to explain
            points = TruncatedSVD(min(_DENSE_DIMENSIONS, points.shape[0]), random_state=seed).fit_transform(points)
    points = dense_rows(points)
    # The initial positions are from a PCA, which needs two directions in which the points differ.
    init = "pca" if (points.std(axis=0) > 0).sum() >= 2 else "random"
    perplexity = min(_PERPLEXITY, (len(points) - 1) / 3)
    # On few points, threads wait longer than they work.
    with threadpool_limits(1 if len(points) < _WORTH_THREADS else None):
        placed = TSNE(perplexity=perplexity, init=init, random_state=seed).fit_transform(points)
    return np.asarray(placed - placed.mean(axis=0), np.float32)

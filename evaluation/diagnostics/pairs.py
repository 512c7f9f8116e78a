"""Similarities of pairs of articles: of the same event, of the same topic, and random pairs."""

import dataclasses
import enum
from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from ..encoders import Embeddings, paired_cosines
from ..events import EventDocument, codes

_BLOCK = 8192  # pairs compared at once; their sparse rows are copied

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float32]


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

    cosines: FloatArray
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
    cosines = {kind: _cosines(embeddings, places) for kind, places in pairs.items()}
    chance = cosines.get(PairKind.RANDOM)
    return {
        kind: Similarities(
            values,
            float(values.mean(dtype=np.float64)),
            tuple(float(value) for value in np.quantile(values, (0.05, 0.5, 0.95))),  # type: ignore[arg-type]
            None if chance is None or kind is PairKind.RANDOM else area_under_roc(values, chance),
        )
        for kind, values in cosines.items()
    }


def area_under_roc(positive: FloatArray, negative: FloatArray) -> float:
    """Returns the probability that a value of ``positive`` exceeds one of ``negative``, ties counting half.

    Args:
      positive: ``[P]``.
      negative: ``[Q]``.
    """
    from sklearn.metrics import roc_auc_score

    labels = np.repeat([1, 0], [len(positive), len(negative)])
    return float(roc_auc_score(labels, np.concatenate([positive, negative])))


def _cosines(embeddings: Embeddings, pairs: IntArray) -> FloatArray:
    parts = [pairs[start : start + _BLOCK] for start in range(0, len(pairs), _BLOCK)]
    return np.concatenate([paired_cosines(embeddings[part[:, 0]], embeddings[part[:, 1]]) for part in parts])


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

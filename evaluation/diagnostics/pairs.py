"""How similar pairs of one event, of one topic and of chance are."""

import dataclasses
import enum
from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from ..encoders import Embeddings, paired_cosines
from ..events import EventDocument

_BLOCK = 8192  # pairs compared at once: sparse rows of as many articles are copied

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float32]


class PairKind(enum.StrEnum):
    """Which pairs of articles are compared."""

    SAME_EVENT = "same event"
    ACROSS_LANGUAGES = "same event, two languages"
    SAME_TOPIC = "same topic, not the same event"
    RANDOM = "random"


@dataclasses.dataclass(frozen=True)
class Similarities:
    """The cosines of one kind of pairs.

    Attributes:
      cosines: float32 ``[P]``.
      mean: of them.
      quantiles: their 5th, 50th and 95th percentile.
      auc: how probably such a pair is nearer than a random one, ties counting half (the area under the ROC curve); None for random pairs.
    """

    cosines: FloatArray
    mean: float
    quantiles: tuple[float, float, float]
    auc: float | None


def draw_pairs(articles: Sequence[EventDocument], limit: int, seed: int = 0) -> dict[PairKind, IntArray]:
    """Pairs of every kind, int64 ``[P, 2]`` places with P <= ``limit``, the first place the smaller; a kind of which there is none is absent.

    Random pairs are any two articles. Where there are more than ``limit`` pairs of a kind they are drawn without repetition.
    """
    draw = np.random.default_rng(seed)
    event, topic, language = (
        _codes([getattr(article, field) for article in articles]) for field in ("event", "topic", "language")
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
    """The cosines of all pairs.

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
    """How probably a value of ``positive`` ``[P]`` exceeds one of ``negative`` ``[Q]``, ties counting half."""
    from sklearn.metrics import roc_auc_score

    labels = np.repeat([1, 0], [len(positive), len(negative)])
    return float(roc_auc_score(labels, np.concatenate([positive, negative])))


def _cosines(embeddings: Embeddings, pairs: IntArray) -> FloatArray:
    parts = [pairs[start : start + _BLOCK] for start in range(0, len(pairs), _BLOCK)]
    return np.concatenate([paired_cosines(embeddings[part[:, 0]], embeddings[part[:, 1]]) for part in parts])


def _pairs_within(codes: IntArray, limit: int, draw: np.random.Generator) -> IntArray:
    """Pairs of places with one code that is not negative: all of them, or ``limit`` drawn ones of a group that alone has more."""
    groups = [np.flatnonzero(codes == code) for code in np.unique(codes[codes >= 0])]
    return np.concatenate(
        [np.zeros((0, 2), np.int64), *(members[_random_pairs(len(members), limit, draw)] for members in groups)]
    )


def _random_pairs(articles: int, limit: int, draw: np.random.Generator) -> IntArray:
    """Different pairs of different places, ``limit`` of them or all there are."""
    count = articles * (articles - 1) // 2
    numbers = np.arange(count) if count <= limit else draw.choice(count, limit, replace=False, shuffle=False)
    # Pair number n of the triangle, row by row: row i begins at i * (2 * articles - i - 1) / 2.
    starts = np.arange(articles) * (2 * articles - np.arange(articles) - 1) // 2
    first = np.searchsorted(starts, numbers, side="right") - 1
    return np.stack([first, numbers - starts[first] + first + 1], axis=1).astype(np.int64)


def _drawn(pairs: IntArray, limit: int, draw: np.random.Generator) -> IntArray:
    return pairs if len(pairs) <= limit else pairs[np.sort(draw.choice(len(pairs), limit, replace=False))]


def _codes(values: Sequence[str]) -> IntArray:
    """One integer per distinct value, -1 for ""."""
    numbers = {value: number for number, value in enumerate(sorted(set(values) - {""}))}
    return np.array([numbers.get(value, -1) for value in values], np.int64)

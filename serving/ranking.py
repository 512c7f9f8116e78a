"""How the evidence of words and of vectors becomes one order, by weights that are learned from an index itself.

The rank score of a document is linear in its evidence: the logarithm of its rank by each of both, its cosine in
standard deviations of the index, and its BM25 score by the rarity of the query. Each weight is linear in facts of the
query: the number of its words, their rarity, and the best evidence by each of both. So a query of few rare words is
answered by words, and a long sentence by vectors, as far as that is right for the encoder and the archive.

The shown score is a logistic function of the rank score and of the facts of the query, from 0 to 1.
"""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]

DEPTH: Final = 100  # documents by each of both that are compared
NO_RANK: Final = 2 * DEPTH  # of a document that one of both did not find
_FIRST_RANKS: Final = 5  # ranks below are much alike
_EVIDENCE: Final = 4
_FACTS: Final = 5
_STEPS: Final = 50
_SLACK: Final = 1e-6
_TINY: Final = 1e-300


@dataclasses.dataclass(frozen=True)
class Evidence:
    """What words and vectors say about the candidates of a query.

    Attributes:
      numbers: of the documents, int64 ``[n]``, in increasing order.
      cosines: with the query, float64 ``[n]``.
      deviations: the cosines, as standard deviations of the index above its mean.
      bm25: float64 ``[n]``, 0 for a document without a word of the query.
      vector_ranks: from 0, `NO_RANK` for those that were not among the nearest.
      word_ranks: the same by words.
      length: number of words of the query.
      rarity: the sum of their inverse document frequencies.
      known: the share of that sum that words of the index have.
    """

    numbers: npt.NDArray[np.int64]
    cosines: FloatArray
    deviations: FloatArray
    bm25: FloatArray
    vector_ranks: FloatArray
    word_ranks: FloatArray
    length: int
    rarity: float
    known: float

    def facts(self) -> FloatArray:
        """What the weights depend on, float64 ``[5]``."""
        best = [array.max(initial=0.0) for array in (self.deviations, self._shares())]
        return np.array([1.0, np.log(max(self.length, 1)), self.rarity / 10, best[0] / 5, best[1]])

    def features(self) -> FloatArray:
        """float64 ``[n, 20]``: each kind of evidence times each fact of the query."""
        ranks = [-np.log(_FIRST_RANKS + ranks) for ranks in (self.vector_ranks, self.word_ranks)]
        evidence = np.stack([*ranks, self.deviations, self._shares()], axis=1)
        return (evidence[:, :, None] * self.facts()).reshape(len(self.numbers), -1)

    def _shares(self) -> FloatArray:
        return self.bm25 / max(self.rarity * self.known, 1e-9)


@dataclasses.dataclass(frozen=True)
class Ranking:
    """Learned weights.

    Attributes:
      weights: of the features, float64 ``[20]``.
      scale: of the rank score in the shown score, above 0.
      offsets: of the facts of the query and of the known share of its words in the shown score, float64 ``[6]``.
      queries: number of queries that they were learned from.
    """

    weights: FloatArray
    scale: float
    offsets: FloatArray
    queries: int = 0

    def scores(self, evidence: Evidence) -> FloatArray:
        """The shown scores of the candidates, from 0 to 1; their order is that of the rank scores."""
        return _logistic(self.scale * (evidence.features() @ self.weights) + _offset_facts(evidence) @ self.offsets)

    def to_dict(self) -> dict[str, Any]:
        """JSON values."""
        values = {"weights": self.weights.tolist(), "scale": self.scale, "offsets": self.offsets.tolist()}
        return {**values, "queries": self.queries}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any] | None) -> "Ranking":
        """What `to_dict` gave; the weights that were learned from a generated newsroom, for None or another shape."""
        if values is None or len(values.get("weights", ())) != _EVIDENCE * _FACTS:
            return DEFAULT
        arrays = [np.array(values[name], np.float64) for name in ("weights", "offsets")]
        return cls(arrays[0], float(values["scale"]), arrays[1], int(values.get("queries", 0)))


def learn(found: Sequence[tuple[Evidence, npt.NDArray[np.bool_]]], without: Sequence[Evidence]) -> Ranking:
    """The ranking that puts the right documents first most often, near `DEFAULT` unless the data favour another.

    The weights maximize the mean over the queries of the logarithm of the share that right documents have in a softmax
    of the rank scores, by Newton's method; the shown scores are a logistic regression.

    Args:
      found: for each query its evidence and which candidates are right, at least one.
      without: the evidence of queries that no document answers.
    """
    scale = np.concatenate([evidence.features() for evidence, _ in found]).std(axis=0) + 1e-9
    groups = [(evidence.features() / scale, right) for evidence, right in found]
    weights = _climb(groups, DEFAULT.weights * scale, pull=0.01 * len(groups)) / scale
    rows, labels = [], []
    for evidence, right in found:
        rows.append(_shown_features(evidence, weights))
        labels.append(right.astype(np.float64))
    for evidence in without:
        rows.append(_shown_features(evidence, weights))
        labels.append(np.zeros(len(evidence.numbers)))
    fitted = _logistic_regression(np.concatenate(rows), np.concatenate(labels))
    return Ranking(weights, max(float(fitted[0]), 1e-3), fitted[1:], len(found))


def _climb(groups: Sequence[tuple[FloatArray, npt.NDArray[np.bool_]]], start: FloatArray, pull: float) -> FloatArray:
    """Newton's method with halved steps, from `start`, which also pulls."""

    def value(weights: FloatArray) -> float:
        total = -0.5 * pull * float((weights - start) @ (weights - start))
        for features, right in groups:
            shares = _softmax(features @ weights)
            total += float(np.log(shares[right].sum() + _TINY))
        return total

    weights, best = start, value(start)
    for _ in range(_STEPS):
        slope, curve = -pull * (weights - start), pull * np.eye(len(weights))
        for features, right in groups:
            shares = _softmax(features @ weights)
            target = shares * right / (shares[right].sum() + _TINY)
            mean = shares @ features
            slope = slope + features.T @ (target - shares)
            curve = curve + (features * shares[:, None]).T @ features - np.outer(mean, mean)
        step = np.linalg.solve(curve, slope)
        while (reached := value(weights + step)) < best and np.abs(step).max() > _SLACK:
            step = step / 2
        if reached <= best + _SLACK * abs(best):
            break
        weights, best = weights + step, reached
    return weights


def _shown_features(evidence: Evidence, weights: FloatArray) -> FloatArray:
    facts = np.tile(_offset_facts(evidence), (len(evidence.numbers), 1))
    return np.concatenate([(evidence.features() @ weights)[:, None], facts], axis=1)


def _offset_facts(evidence: Evidence) -> FloatArray:
    return np.append(evidence.facts(), evidence.known)


def _logistic_regression(rows: FloatArray, labels: FloatArray) -> FloatArray:
    """Weights of a logistic regression with a little L2, by Newton's method."""
    scale = np.abs(rows).max(axis=0) + 1e-9
    rows, weights, pull = rows / scale, np.zeros(rows.shape[1]), 1e-3 * len(rows) ** 0.5
    for _ in range(_STEPS):
        shares = _logistic(rows @ weights)
        slope = rows.T @ (labels - shares) - pull * weights
        step = np.linalg.solve((rows * (shares * (1 - shares))[:, None]).T @ rows + pull * np.eye(len(weights)), slope)
        weights = weights + step * min(1.0, 5 / (np.abs(step).max() + 1e-9))
        if np.abs(step).max() < _SLACK:
            break
    return np.asarray(weights / scale, np.float64)


def _softmax(values: FloatArray) -> FloatArray:
    shares = np.exp(values - values.max())
    return np.asarray(shares / shares.sum(), np.float64)


def _logistic(values: FloatArray) -> FloatArray:
    return np.asarray(1 / (1 + np.exp(-np.clip(values, -60, 60))), np.float64)


# Learned by `tuning` from the 2,047 articles of a generated newsroom; see benchmarks/RESULTS.md.
DEFAULT: Final = Ranking(
    np.array(
        [
            *(-0.664, 0.218, 0.213, 0.203, 0.007),  # rank by vectors
            *(1.367, -0.101, 0.031, -0.2, -0.438),  # rank by words
            *(0.14, 0.114, 0.336, 0.14, 0.151),  # cosine
            *(3.444, -0.238, -0.718, 0.756, -0.102),  # BM25
        ]
    ),
    0.797,
    np.array([-3.063, -0.192, 0.509, -1.855, -3.558, 3.028]),
)

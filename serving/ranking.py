"""How the evidence of words and of vectors becomes one order, by weights that are learned from an index itself.

The rank score of a document is linear in its evidence: the logarithm of its rank by each of both, its cosine in
standard deviations of its language, its BM25 score by the rarity of the query, and whether it is in another language
than the query, whose words it can hardly hold. Each weight is linear in facts of the query: the number of its words,
their rarity, and the best evidence by each of both. So a query of few rare words is answered by words, and a long
sentence by vectors, as far as that is right for the encoder and the archive.

The shown score is a logistic function of the rank score and of the facts of the query, from 0 to 1.
"""

import dataclasses
import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ..formats.files import packaged

FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]
IntArray = npt.NDArray[np.int64]

DEPTH: Final = 100  # documents by each of both that are compared
NO_RANK: Final = 2 * DEPTH  # of a document that one of both did not find
_FIRST_RANKS: Final = 5  # ranks below are much alike
# Bounds of the facts of a query: the weights were learned from shorter queries. At a Chinese title of forty pairs of
# characters they would have the opposite sign.
_MOST_LENGTH, _MOST_RARITY = 16, 80
_STEPS: Final = 50
_LEAST_STEP: Final = 1e-6
_TINY: Final = 1e-300


@dataclasses.dataclass(frozen=True)
class Evidence:
    """What words and vectors say about the candidates of a query.

    Attributes:
      numbers: of the documents, int64 ``[n]``, in increasing order.
      cosines: with the query, float64 ``[n]``.
      deviations: the cosines, as standard deviations above the mean of the document's language in the index.
      bm25: float64 ``[n]``, 0 for a document without a word of the query.
      vector_ranks: from 0, `NO_RANK` for those that were not among the nearest.
      word_ranks: the same by words.
      foreign: whether each is in another language than most of what the words find.
      length: number of words of the query.
      rarity: the sum of their inverse document frequencies.
      known: the share of that sum that words of the index have.
    """

    numbers: IntArray
    cosines: FloatArray
    deviations: FloatArray
    bm25: FloatArray
    vector_ranks: FloatArray
    word_ranks: FloatArray
    foreign: BoolArray
    length: int
    rarity: float
    known: float

    def facts(self) -> FloatArray:
        """What the weights depend on, float64 ``[5]``."""
        best = [array.max(initial=0.0) for array in (self.deviations, self._shares())]
        length, rarity = np.clip(self.length, 1, _MOST_LENGTH), min(self.rarity, _MOST_RARITY)
        return np.array([1.0, np.log(length), rarity / 10, best[0] / 5, best[1]])

    def features(self) -> FloatArray:
        """float64 ``[n, 25]``: each kind of evidence times each fact of the query."""
        ranks = [-np.log(_FIRST_RANKS + ranks) for ranks in (self.vector_ranks, self.word_ranks)]
        evidence = np.stack([*ranks, self.deviations, self._shares(), self.foreign], axis=1)
        return (evidence[:, :, None] * self.facts()).reshape(len(self.numbers), -1)

    def _shares(self) -> FloatArray:
        return self.bm25 / max(self.rarity * self.known, 1e-9)


@dataclasses.dataclass(frozen=True)
class Ranking:
    """Learned weights.

    Attributes:
      weights: of the features, float64 ``[25]``.
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
        ranks = self.scale * (evidence.features() @ self.weights) + _offset_facts(evidence) @ self.offsets
        return np.asarray(1 / (1 + np.exp(-np.clip(ranks, -60, 60))), np.float64)

    def to_dict(self) -> dict[str, Any]:
        """JSON values."""
        return {**vars(self), "weights": self.weights.tolist(), "offsets": self.offsets.tolist()}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any] | None) -> "Ranking":
        """What `to_dict` gave; `DEFAULT` for None."""
        arrays = {name: np.array(values[name], np.float64) for name in ("weights", "offsets")} if values else {}
        return cls(**{**values, **arrays}) if values else DEFAULT


def learn(found: Sequence[tuple[Evidence, BoolArray]], without: Sequence[Evidence]) -> Ranking:
    """The ranking that puts the right documents first most often, near `DEFAULT` unless the data favour another.

    The weights maximize the mean over the queries of the logarithm of the share that right documents have in a softmax
    of the rank scores, by Newton's method; the shown scores are a logistic regression.

    Args:
      found: for each query its evidence and which candidates are right, at least one.
      without: the evidence of queries that no document answers.
    """
    features, right = [
        np.concatenate(part) for part in zip(*((one.features(), is_right) for one, is_right in found), strict=True)
    ]
    firsts = np.cumsum([0, *(len(one.numbers) for one, _ in found[:-1])])
    scale = features.std(axis=0) + 1e-9
    weights = _climb(features / scale, right, firsts, DEFAULT.weights * scale, pull=0.01 * len(found)) / scale
    rows, labels = [], []
    for evidence, is_right in [*found, *((one, np.zeros(len(one.numbers), np.bool_)) for one in without)]:
        facts = np.tile(_offset_facts(evidence), (len(evidence.numbers), 1))
        rows.append(np.concatenate([(evidence.features() @ weights)[:, None], facts], axis=1))
        labels.append(is_right)
    fitted = _logistic_regression(np.concatenate(rows), np.concatenate(labels))
    return Ranking(weights, max(float(fitted[0]), 1e-3), fitted[1:], len(found))


def _climb(
    features: FloatArray, right: BoolArray, firsts: IntArray, start: FloatArray, pull: float, slack: float = 1e-6
) -> FloatArray:
    """The weights that give right rows of each group the greatest share in a softmax, near `start`, which pulls.

    Newton's method with halved steps.

    Args:
      features: float64 ``[n, F]``, one group after another.
      right: bool ``[n]``.
      firsts: the first row of each group.
      start: float64 ``[F]``.
      pull: half of it is the cost of a squared distance of 1 from `start`.
      slack: the gain of a step, as a share of the value, with which it ends.
    """
    sizes = np.diff([*firsts, len(features)])

    def total(values: FloatArray) -> FloatArray:
        return np.asarray(np.add.reduceat(values, firsts, axis=0), np.float64)

    def shares_of(weights: FloatArray) -> tuple[FloatArray, FloatArray, float]:
        """The share of each row, that of the right rows of its group, and the value to maximize."""
        scores = features @ weights
        raised = np.exp(scores - np.repeat(np.maximum.reduceat(scores, firsts), sizes))
        shares = raised / np.repeat(total(raised), sizes)
        whole = total(shares * right) + _TINY
        cost = 0.5 * pull * float((weights - start) @ (weights - start))
        return shares, np.repeat(whole, sizes), float(np.log(whole).sum()) - cost

    weights, (shares, whole, best) = start, shares_of(start)
    for _ in range(_STEPS):
        means = total(features * shares[:, None])
        slope = features.T @ (shares * right / whole - shares) - pull * (weights - start)
        curve = (features * shares[:, None]).T @ features - means.T @ means + pull * np.eye(len(weights))
        step = np.linalg.solve(curve, slope)
        while (reached := shares_of(weights + step))[2] < best and np.abs(step).max() > _LEAST_STEP:
            step = step / 2
        if reached[2] <= best + slack * abs(best):
            break
        weights, (shares, whole, best) = weights + step, reached
    return weights


def _logistic_regression(rows: FloatArray, labels: BoolArray) -> FloatArray:
    """Weights of a logistic regression with a little L2: a softmax over each row and a row of zeros."""
    scale, count = np.abs(rows).max(axis=0) + 1e-9, len(rows)
    pairs = np.stack([rows / scale, np.zeros_like(rows)], axis=1).reshape(2 * count, -1)
    right = np.stack([labels, ~labels], axis=1).reshape(-1)
    start = np.zeros(rows.shape[1])
    return _climb(pairs, right, np.arange(0, 2 * count, 2), start, 1e-3 * count**0.5, slack=1e-12) / scale


def _offset_facts(evidence: Evidence) -> FloatArray:
    return np.append(evidence.facts(), evidence.known)


# Learned by MiniLM and E5 from queries on a generated newsroom and NTREX-128 in four languages, and news of 2016: the
# article itself (which counts three times), other reports of its event, those of them in other languages, and
# translations; see docs/results.md. The lines are the rank by vectors, the rank by words, the cosine, BM25, and another
# language.
_LEARNED: Final = json.loads(packaged(__package__, "rankings.json"))
DEFAULT: Final = Ranking.from_dict(_LEARNED["default"])
# The same without translations, which latent semantics do not find: words count more.
LATENT_SEMANTICS: Final = Ranking.from_dict(_LEARNED["latent_semantics"])

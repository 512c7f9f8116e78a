"""Table 1 of Okura et al. 2016 on labelled articles: near-duplicate AUC among the most similar pairs of one day.

The paper takes the articles of one day, the 0.2 % of their pairs with the greatest cosine of their full texts, and 400
pairs of these at random; editors gave each a level from 1 to 5. Here the levels follow from the labels of the documents
(``events.py``), so they are a stand-in for what people think:

====  ==================================
5     the same ``duplicate_group``
4     the same event
2     the same topic
1     nothing of these
====  ==================================

Pairs of several days are pooled, because one day of a small collection has too few: the share is that of all pairs of
one day, and where it is less than 400 pairs the 400 most similar ones are taken. Full-text cosine is that of the sets
of words (`baselines.BinaryWordEncoder`). For every level above the lowest that occurs, the measure is the AUC of the
cosine, as in ``duplicates.py``; the interval resamples days, each with all of its pairs.
"""

import collections
import dataclasses
import functools
import itertools
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ..errors import InputError
from .baselines import BinaryWordEncoder
from .benchmark import PathBenchmark, Score
from .encoders import Document, Embeddings, encode_checked, paired_cosines
from .events import EventDocument, read_events

COPY, EVENT, TOPIC, OTHER = 5, 4, 2, 1
_DRAWS: Final = 1000
_AT_LEAST: Final = 1e-9  # of weight on each side of a level, for a draw to count

Pairs = npt.NDArray[np.int64]


@dataclasses.dataclass(frozen=True)
class DayDuplicates(PathBenchmark):
    """Near-duplicate AUC among the most similar pairs of one day of one JSONL file of labelled documents.

    Attributes:
      path: the file.
      name: the name in tables.
      share: of the pairs of one day that are judged, those with the greatest full-text cosine.
      most: pairs to judge; more are drawn from at random.
      seed: of the draw.
      draws: whether scores keep their values on the resamples of days, for paired tests.
      excluded: documents to leave out, see ``leakage.py``.
    """

    path: str
    name: str = "day_duplicates"
    share: float = 0.002
    most: int = 400
    seed: int = 0
    draws: bool = False
    excluded: frozenset[Document] = frozenset()

    @property
    def protocol(self) -> Mapping[str, Any]:
        """Every option that changes a score, as JSON values."""
        names = ("share", "most", "seed", *(("draws",) if self.draws else ()))
        options = {name: getattr(self, name) for name in names}
        return {"suite": "day_duplicates", "similarity": "cosine", **options, "excluded": len(self.excluded)}

    @functools.cached_property
    def _documents(self) -> list[EventDocument]:
        return [one for one in read_events(self.path) if one.byline_date and one.document not in self.excluded]

    @functools.cached_property
    def _pairs(self) -> tuple[Pairs, npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Rows [P, 2], level [P] and day [P] of the pairs that are judged.

        Raises:
          InputError: if they have fewer than two levels.
        """
        days: dict[int, list[int]] = collections.defaultdict(list)
        for row, one in enumerate(self._documents):
            if one.byline_date is not None:
                days[one.byline_date.toordinal()].append(row)
        found = [(*pair, day) for day, rows in sorted(days.items()) for pair in itertools.combinations(rows, 2)]
        every = np.array(found, np.int64).reshape(-1, 3)
        words = encode_checked(BinaryWordEncoder(), self.documents()).embeddings
        cosines = paired_cosines(words[every[:, 0]], words[every[:, 1]])
        count = min(len(every), max(self.most, round(self.share * len(every))))
        top = np.sort(np.lexsort((np.arange(len(every)), -cosines))[:count])
        chosen = np.sort(np.random.default_rng(self.seed).permutation(top)[: self.most])
        levels = np.array([self._level(*pair) for pair in every[chosen, :2].tolist()], np.int64)
        if len(set(levels.tolist())) < 2:
            raise InputError(
                f"the {len(chosen)} most similar pairs of one day have fewer than two levels",
                path=self.path,
                remedy="give more documents with events, topics and duplicate groups",
            )
        return every[chosen, :2], levels, every[chosen, 2]

    def _level(self, first: int, second: int) -> int:
        one, two = self._documents[first], self._documents[second]
        for level, field in ((COPY, "duplicate_group"), (EVENT, "event"), (TOPIC, "topic")):
            if getattr(one, field) and getattr(one, field) == getattr(two, field):
                return level
        return OTHER

    def documents(self) -> Sequence[Document]:
        """Returns all documents, in the order in which ``score`` expects their embeddings."""
        return [one.document for one in self._documents]

    def score(self, embeddings: Embeddings) -> list[Score]:
        """Returns ``AUC`` with its interval for each level above the lowest; ``count`` is its number of pairs."""
        from sklearn.metrics import roc_auc_score

        pairs, levels, days = self._pairs
        cosines = paired_cosines(embeddings[pairs[:, 0]], embeddings[pairs[:, 1]])
        scores = []
        for level in sorted(set(levels.tolist()))[1:]:
            positive = levels >= level
            value = float(roc_auc_score(positive, cosines))
            drawn = resampled_auc(positive, cosines, days)
            low, high = (float(end) for end in np.percentile(drawn, [2.5, 97.5])) if len(drawn) else (None, None)
            kept = tuple(drawn.tolist()) if self.draws else ()
            part, count = f"level ≥ {level}", int(positive.sum())
            scores.append(Score("AUC", value, part, count, low=low, high=high, draws=kept))
        return scores


def resampled_auc(
    positive: npt.NDArray[np.bool_], scores: npt.NDArray[Any], days: npt.NDArray[Any]
) -> npt.NDArray[np.float64]:
    """The AUC of each draw of days, each with all of its pairs; draws without both sides are left out.

    The days of a draw depend on ``days`` alone, so that differences between encoders are paired.

    Args:
      positive: bool [P].
      scores: [P].
      days: of each pair, [P].
    """
    from sklearn.metrics import roc_auc_score

    names, members = np.unique(days, return_inverse=True)
    rng = np.random.default_rng(0)
    values = []
    for times in rng.multinomial(len(names), np.full(len(names), 1 / len(names)), _DRAWS):
        weights = times[members].astype(np.float64)
        if min(weights[positive].sum(), weights[~positive].sum()) > _AT_LEAST:
            values.append(roc_auc_score(positive, scores, sample_weight=weights))
    return np.array(values)

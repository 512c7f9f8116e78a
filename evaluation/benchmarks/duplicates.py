"""Near duplicates (Okura et al. 2016): pairs that people or labels call alike, and a list without repeats.

``duplicates`` (Table 1): pairs that people labelled. Each pair of articles has a level: an integer that is higher the
more similar people found them (unrelated, same topic, same event, copy). For every level L above the lowest, pairs of
level L or higher are positive and the others are negative. The predicted score is the cosine; the measure is
scikit-learn's ROC AUC. File: JSONL with ``first`` and ``second`` (objects with ``title`` and ``body``) and ``level``.

``day_duplicates``: the same table on labelled articles. The paper takes the articles of one day, the 0.2 % of their
pairs with the greatest cosine of their full texts, and 400 pairs of these at random; editors gave each a level from 1
to 5. Here the levels follow from the labels of the documents (``events.py``), so they are a stand-in for what people
think:

====  ==================================
5     the same ``duplicate_group``
4     the same event
2     the same topic
1     nothing of these
====  ==================================

Pairs of several days are pooled, because one day of a small collection has too few: the share is that of all pairs of
one day, and where it is less than 400 pairs the 400 most similar ones are taken. Full-text cosine is that of the sets
of words (`baselines.BinaryWordEncoder`). For every level above the lowest that occurs, the measure is the AUC of the
cosine; the interval resamples days, each with all of its pairs.

``display``: what a reader of a de-duplicated list sees, after section 5, who measured clicks of real readers. The
labelled documents of one JSONL file (``events.py``) are cut into lists of consecutive days; each list is shuffled with
every seed, as by a ranking that knows nothing about events. `models.greedy` walks along it. So that encoders whose
cosines differ in scale can be compared, the threshold of each is the one that skips a given share of all articles:
parts "10 % skipped", and so on.

- ``events``: distinct events among the shown articles, as a share of all events of the list (an article without an
  event is an event of its own).
- ``repeats left``: shown articles whose event was shown before, as a share of all repeats of the unfiltered list.
- ``copies gone``: articles whose near copy (``duplicate_group``) is before them in the list and that are skipped,
  as a share of all such articles.
- ``simulated clicks``: a simulation, not a measurement. A reader scrolls to depth d and clicks the first report of each
  event and nothing else; the number is clicks divided by d, parts "depth 10, 10 % skipped".
"""

import collections
import dataclasses
import datetime
import functools
import itertools
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ...errors import InputError
from ...formats.jsonl import read_jsonl
from ...models.greedy import walk
from ..baselines import BinaryWordEncoder
from ..benchmark import Benchmark, Score, Suite, draws_option, over_runs
from ..encoders import Document, Embeddings, encode_checked, paired_cosines
from ..events import EventDocument, read_events

COPY, EVENT, TOPIC, OTHER = 5, 4, 2, 1
SHARES: Final = (0.05, 0.1, 0.2, 0.3)
DEPTHS: Final = (10, 20)
_REMEDY: Final = 'each line needs {"first": {"title", "body"}, "second": {"title", "body"}, "level": integer}'
_DRAWS: Final = 1000
_AT_LEAST: Final = 1e-9  # of weight on each side of a level, for a draw to count
_STEPS: Final = 24  # bisections of the threshold

Rows = npt.NDArray[np.int64]


@dataclasses.dataclass(frozen=True)
class NearDuplicates(Benchmark):
    """Near-duplicate AUC over one JSONL file of pairs."""

    def _facts(self) -> dict[str, Any]:
        return {"suite": "duplicates", "similarity": "cosine"}

    @functools.cached_property
    def _pairs(self) -> list[tuple[Document, Document, int]]:
        rows = [_parse(row, where) for where, row in read_jsonl(self.path)]
        kept = [row for row in rows if self.keeps(*row[:2])]
        if len({level for *_, level in kept}) < 2:
            remedy = "give pairs of at least two levels"
            raise InputError("fewer than two levels", path=self.path, field="level", remedy=remedy)
        return kept

    def _texts(self) -> Sequence[Document]:
        return [pair[0] for pair in self._pairs] + [pair[1] for pair in self._pairs]

    def _scores(self, embeddings: Embeddings) -> list[Score]:
        count = len(self._pairs)
        cosines = paired_cosines(embeddings[:count], embeddings[count:])
        return _by_level(np.array([level for *_, level in self._pairs]), cosines)


def _by_level(levels: npt.NDArray[np.int64], cosines: npt.NDArray[np.float32]) -> list[Score]:
    """Returns ``AUC`` for each level above the lowest; ``count`` is the number of positive pairs."""
    from sklearn.metrics import roc_auc_score

    return [
        Score("AUC", float(roc_auc_score(levels >= level, cosines)), f"level ≥ {level}", int((levels >= level).sum()))
        for level in np.unique(levels)[1:].tolist()
    ]


def _parse(row: Mapping[str, Any], where: str) -> tuple[Document, Document, int]:
    documents = []
    for field in ("first", "second"):
        side = row.get(field)
        if not isinstance(side, dict) or not all(isinstance(side.get(part), str) for part in ("title", "body")):
            raise InputError("expected an object with title and body", path=where, field=field, remedy=_REMEDY)
        documents.append(Document(side["title"], side["body"]))
    level = row.get("level")
    if not isinstance(level, int) or isinstance(level, bool):
        raise InputError(f"got {level!r}, expected an integer", path=where, field="level", remedy=_REMEDY)
    return documents[0], documents[1], level


@dataclasses.dataclass(frozen=True)
class _Dated(Benchmark):
    """A benchmark over the documents of one JSONL file that have a date."""

    @functools.cached_property
    def rows(self) -> list[tuple[datetime.date, EventDocument]]:
        """The documents with their dates."""
        return [
            (one.byline_date, one) for one in read_events(self.path) if one.byline_date and self.keeps(one.document)
        ]

    def _texts(self) -> Sequence[Document]:
        return [one.document for _, one in self.rows]


@dataclasses.dataclass(frozen=True, kw_only=True)
class DayDuplicates(_Dated):
    """Near-duplicate AUC among the most similar pairs of one day of one JSONL file of labelled documents.

    Attributes:
      share: of the pairs of one day that are judged, those with the greatest full-text cosine.
      most: pairs to judge; more are drawn from at random.
      seed: of the draw.
    """

    share: float = 0.002
    most: int = 400
    seed: int = 0
    draws: bool = draws_option()

    def _facts(self) -> dict[str, Any]:
        options = {name: getattr(self, name) for name in ("share", "most", "seed")}
        return {"suite": "day_duplicates", "similarity": "cosine", **options}

    @functools.cached_property
    def _pairs(self) -> tuple[Rows, npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Rows [P, 2], level [P] and day [P] of the pairs that are judged."""
        days: dict[int, list[int]] = collections.defaultdict(list)
        for row, (day, _) in enumerate(self.rows):
            days[day.toordinal()].append(row)
        found = [(*pair, day) for day, rows in sorted(days.items()) for pair in itertools.combinations(rows, 2)]
        every = np.array(found, np.int64).reshape(-1, 3)
        words = encode_checked(BinaryWordEncoder(), self.documents()).embeddings
        cosines = paired_cosines(words[every[:, 0]], words[every[:, 1]])
        count = min(len(every), max(self.most, round(self.share * len(every))))
        top = np.sort(np.argsort(-cosines, kind="stable")[:count])
        chosen = np.sort(np.random.default_rng(self.seed).permutation(top)[: self.most])
        levels = np.array([self._level(*pair) for pair in every[chosen, :2].tolist()], np.int64)
        if len(set(levels.tolist())) < 2:
            problem = f"the {len(chosen)} most similar pairs of one day have fewer than two levels"
            remedy = "give more documents with events, topics and duplicate groups"
            raise InputError(problem, path=self.path, remedy=remedy)
        return every[chosen, :2], levels, every[chosen, 2]

    def _level(self, first: int, second: int) -> int:
        one, two = self.rows[first][1], self.rows[second][1]
        for level, field in ((COPY, "duplicate_group"), (EVENT, "event"), (TOPIC, "topic")):
            if getattr(one, field) and getattr(one, field) == getattr(two, field):
                return level
        return OTHER

    def _scores(self, embeddings: Embeddings) -> list[Score]:
        pairs, levels, days = self._pairs
        cosines = paired_cosines(embeddings[pairs[:, 0]], embeddings[pairs[:, 1]])
        scores = []
        for score, level in zip(_by_level(levels, cosines), np.unique(levels)[1:], strict=True):
            drawn = resampled_auc(levels >= level, cosines, days)
            low, high = np.percentile(drawn, [2.5, 97.5]).tolist() if len(drawn) else (None, None)
            draws = tuple(drawn.tolist()) if self.draws else ()
            scores.append(dataclasses.replace(score, low=low, high=high, draws=draws))
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


@dataclasses.dataclass(frozen=True, kw_only=True)
class Display(_Dated):
    """Greedy showing over one JSONL file of labelled documents.

    Attributes:
      days: of a list; documents without a date are left out.
      orders: number of random orders of the lists.
    """

    days: int = 7
    orders: int = 3

    def _facts(self) -> dict[str, Any]:
        facts = {"days": self.days, "seeds": list(range(self.orders)), "skipped": list(SHARES), "depths": list(DEPTHS)}
        return {"suite": "display", **facts}

    def _texts(self) -> Sequence[Document]:
        events = [one.event for _, one in self.rows if one.event]
        if len(set(events)) == len(events):
            remedy = "give reports of the same events"
            raise InputError("no two dated documents share an event", path=self.path, remedy=remedy)
        return super()._texts()

    def _scores(self, embeddings: Embeddings) -> list[Score]:
        events = [one.event or f"\0{row}" for row, (_, one) in enumerate(self.rows)]
        values: dict[tuple[str, str], list[float]] = collections.defaultdict(list)
        for seed in range(self.orders):
            lists = self._lists(seed)
            for share in SHARES:
                threshold = threshold_that_skips(embeddings, lists, share)
                part = f"{share:.0%} skipped"
                shown = [rows[walk(embeddings[rows], threshold).shown] for rows in lists]
                distinct, all_distinct = (
                    sum(len({events[row] for row in rows}) for rows in some) for some in (shown, lists)
                )
                repeats = sum(map(len, lists)) - all_distinct
                values["events", part].append(distinct / all_distinct)
                values["repeats left", part].append((sum(map(len, shown)) - distinct) / max(1, repeats))
                copies = [row for rows in lists for row in self._copies(rows)]
                if copies:
                    gone = set(copies).difference(*(rows.tolist() for rows in shown))
                    values["copies gone", part].append(len(gone) / len(copies))
                for depth in DEPTHS:
                    clicks = []
                    for rows in lists:
                        found = walk(embeddings[rows], threshold, depth).shown
                        visible = [events[row] for row in rows[: len(found)][found]]
                        clicks.append(len(set(visible)) / len(visible))
                    values["simulated clicks", f"depth {depth}, {part}"].append(float(np.mean(clicks)))
        return [over_runs(metric, found, part, len(events)) for (metric, part), found in values.items()]

    def _lists(self, seed: int) -> list[Rows]:
        """The documents of each period in a random order."""
        first = min(day for day, _ in self.rows)
        periods: dict[int, list[int]] = collections.defaultdict(list)
        for number, (day, _) in enumerate(self.rows):
            periods[(day - first).days // self.days].append(number)
        rng = np.random.default_rng(seed)
        return [rng.permutation(np.array(rows)) for _, rows in sorted(periods.items())]

    def _copies(self, rows: Rows) -> list[int]:
        """The rows of a list with a near copy before them."""
        seen, copies = set[str](), []
        for row in rows.tolist():
            group = self.rows[row][1].duplicate_group
            if group and group in seen:
                copies.append(row)
            seen.add(group)
        return copies


def threshold_that_skips(embeddings: Embeddings, lists: Sequence[Rows], share: float) -> float:
    """The least threshold, up to rounding, that skips at most this share of the articles of all lists.

    Args:
      embeddings: float32 [N, D].
      lists: rows of each list in order.
      share: from 0 to 1.
    """
    most = share * sum(map(len, lists))
    low, high = -1.0, 1.0  # a threshold of 1 skips none
    for _ in range(_STEPS):
        middle = (low + high) / 2
        skipped = sum(int(np.sum(~walk(embeddings[rows], middle).shown)) for rows in lists)
        low, high = (middle, high) if skipped > most else (low, middle)
    return high


SUITES: Final = {
    "duplicates": Suite(NearDuplicates),
    "day_duplicates": Suite(DayDuplicates),
    "display": Suite(Display),
}

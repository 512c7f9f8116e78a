"""What a reader of a de-duplicated list sees: distinct events and repeats among the articles that are shown.

Protocol, after Okura et al. 2016, section 5, who measured clicks of real readers. The labelled documents of one JSONL
file (``events.py``) are cut into lists of consecutive days; each list is shuffled with every seed, as by a ranking that
knows nothing about events. `models.greedy` walks along it. So that encoders whose cosines differ in scale can be
compared, the threshold of each is the one that skips a given share of all articles: parts "10 % skipped", and so on.

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
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from ..errors import InputError
from ..models.greedy import walk
from .benchmark import PathBenchmark, Score, over_runs
from .encoders import Document, Embeddings
from .events import EventDocument, read_events

SHARES: Final = (0.05, 0.1, 0.2, 0.3)
DEPTHS: Final = (10, 20)
_STEPS: Final = 24  # bisections of the threshold

Rows = npt.NDArray[np.int64]


class Seen(NamedTuple):
    """Counts over lists, see the module."""

    articles: int
    shown: int
    events: int
    shown_events: int
    repeats: int
    shown_repeats: int
    copies: int
    copies_gone: int


@dataclasses.dataclass(frozen=True)
class Display(PathBenchmark):
    """Greedy showing over one JSONL file of labelled documents.

    Attributes:
      path: the file.
      name: the name in tables.
      days: of a list; documents without a date are left out.
      seeds: of the orders of the lists.
      excluded: documents to leave out, see ``leakage.py``.
    """

    path: str
    name: str = "display"
    days: int = 7
    seeds: tuple[int, ...] = (0, 1, 2)
    excluded: frozenset[Document] = frozenset()

    @property
    def protocol(self) -> Mapping[str, Any]:
        """Every option that changes a score, as JSON values."""
        return {
            "suite": "display",
            "days": self.days,
            "seeds": list(self.seeds),
            "skipped": list(SHARES),
            "depths": list(DEPTHS),
            "excluded": len(self.excluded),
        }

    @functools.cached_property
    def _documents(self) -> list[EventDocument]:
        found = [one for one in read_events(self.path) if one.byline_date and one.document not in self.excluded]
        if len({one.event for one in found if one.event}) == len([one for one in found if one.event]):
            raise InputError(
                "no two dated documents share an event", path=self.path, remedy="give reports of the same events"
            )
        return found

    def documents(self) -> Sequence[Document]:
        """Returns all documents, in the order in which ``score`` expects their embeddings."""
        return [one.document for one in self._documents]

    def score(self, embeddings: Embeddings) -> list[Score]:
        """Returns the scores of every share of skipped articles; ``count`` is the number of articles in all lists."""
        values: dict[tuple[str, str], list[float]] = collections.defaultdict(list)
        for seed in self.seeds:
            lists = self._lists(seed)
            for share in SHARES:
                threshold = threshold_that_skips(embeddings, lists, share)
                part = f"{share:.0%} skipped"
                seen = self._seen(embeddings, lists, threshold)
                values["events", part].append(seen.shown_events / seen.events)
                values["repeats left", part].append(seen.shown_repeats / max(1, seen.repeats))
                if seen.copies:
                    values["copies gone", part].append(seen.copies_gone / seen.copies)
                for depth in DEPTHS:
                    clicks = [self._clicks(embeddings, rows, threshold, depth) for rows in lists]
                    values["simulated clicks", f"depth {depth}, {part}"].append(float(np.mean(clicks)))
        count = len(self._documents)
        return [over_runs(metric, found, part, count) for (metric, part), found in values.items()]

    def _lists(self, seed: int) -> list[Rows]:
        """The documents of each period in a random order."""
        first = min(one.byline_date or datetime.date.max for one in self._documents)
        periods: dict[int, list[int]] = collections.defaultdict(list)
        for number, one in enumerate(self._documents):
            if one.byline_date is not None:
                periods[(one.byline_date - first).days // self.days].append(number)
        rng = np.random.default_rng(seed)
        return [rng.permutation(np.array(rows)) for _, rows in sorted(periods.items())]

    def _event(self, row: int) -> str:
        return self._documents[row].event or f"\0{row}"

    def _seen(self, embeddings: Embeddings, lists: Sequence[Rows], threshold: float) -> Seen:
        totals = np.zeros(len(Seen._fields), np.int64)
        for rows in lists:
            shown = walk(embeddings[rows], threshold).shown.tolist()
            events = [self._event(row) for row in rows.tolist()]
            visible = [event for event, is_shown in zip(events, shown, strict=True) if is_shown]
            groups = [self._documents[row].duplicate_group for row in rows.tolist()]
            is_copy = [bool(group) and group in groups[:place] for place, group in enumerate(groups)]
            gone = [copy and not is_shown for copy, is_shown in zip(is_copy, shown, strict=True)]
            totals += (
                *(len(rows), len(visible), len(set(events)), len(set(visible))),
                *(len(events) - len(set(events)), len(visible) - len(set(visible)), sum(is_copy), sum(gone)),
            )
        return Seen(*totals.tolist())

    def _clicks(self, embeddings: Embeddings, rows: Rows, threshold: float, depth: int) -> float:
        """Distinct events among the first articles shown, divided by their number; a simulation, see the module."""
        found = walk(embeddings[rows], threshold, depth)
        visible = rows[: len(found.shown)][found.shown].tolist()
        return len({self._event(row) for row in visible}) / len(visible)


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

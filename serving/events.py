"""Events: articles of near days with similar vectors, found one article after another.

News streams are clustered online by similarity and time: Miranda et al., "Multilingual Clustering of Streaming News",
EMNLP 2018; Saravanakumar et al., "Event-Driven News Stream Clustering using Entity-Aware Contextual Embeddings", EACL
2021. Here the similarity of an article and an event is the mean cosine with the articles of the event that are at most
``days`` away, each less ``day_decay`` for every day between. The article joins the event with the highest similarity if
that is at least ``threshold``, and otherwise opens an event, which gets the article's doc_id as its id.

An article that is as similar to a second event can show that both are one: if the mean over all pairs of their articles
near that day reaches the threshold, too, the event with fewer articles becomes part of the other. Ids change in no
other way. The articles of a run are taken in the order of their dates, so one run over many days and a run for each day
differ only by articles that arrive late.
"""

import dataclasses
from collections.abc import Callable
from typing import Final

import numpy as np
import numpy.typing as npt

from ..formats.command_line import Options, option

NO_EVENT: Final = 0
UNDATED: Final = 0  # in place of a day
_NO_CODE: Final = -1
_BLOCK: Final = 512  # articles whose cosines are computed at once; 12,000 near articles take 25 MB
_DIGITS: Final = 6  # of similarities: products of other shapes differ in the last bits

Ids = npt.NDArray[np.uint64]
Days = npt.NDArray[np.int64]
Vectors = npt.NDArray[np.float32]


@dataclasses.dataclass(frozen=True)
class EventOptions(Options):
    """When articles belong to one event."""

    threshold: float = option(0.65, "least mean cosine, less the decay, of an article and an event", ge=-1, le=1)
    days: int = option(3, "articles whose byline dates are more days apart are not compared", ge=0, le=3650)
    day_decay: float = option(0.05, "taken from the cosine for every day between two articles", ge=0, le=1)


@dataclasses.dataclass(frozen=True)
class Merge:
    """Two events that became one: the one that ended, the one that has its articles, the article that joined them."""

    event: int
    into: int
    doc_id: int


def assign(
    doc_ids: Ids,
    days: Days,
    events: Ids,
    vectors: Callable[[npt.NDArray[np.int64]], Vectors],
    options: EventOptions,
) -> tuple[Ids, list[Merge]]:
    """Gives events to the articles that have none.

    Args:
      doc_ids: uint64 ``[N]``.
      days: int64 ``[N]``, ordinals of byline dates; :data:`UNDATED` without one.
      events: uint64 ``[N]``, the event of each article; :data:`NO_EVENT` for those that get one now.
      vectors: returns unit rows ``[n, D]`` for row numbers ``[n]``.
      options: of the clusters.

    Returns:
      The events ``[N]``, where articles without a date have none, and the merges in their order.
    """
    new = np.flatnonzero((events == NO_EVENT) & (days != UNDATED))
    if not len(new):
        return events.copy(), []
    centers = np.unique(days[new])
    places = np.searchsorted(centers, days)
    before, after = np.maximum(places - 1, 0), np.minimum(places, len(centers) - 1)
    gaps = np.minimum(np.abs(days - centers[before]), np.abs(centers[after] - days))
    rows = np.flatnonzero((gaps <= options.days) & (days != UNDATED))
    rows = rows[np.lexsort((doc_ids[rows], days[rows]))]
    window = _Window(doc_ids[rows], days[rows], events[rows].copy(), vectors(rows), options)
    window.add_all()
    result = events.copy()
    result[rows] = window.events
    if window.merges:
        _rename(result, window.merges)
    return result, window.merges


def _rename(events: Ids, merges: list[Merge]) -> None:
    """Follows the merges for articles outside of the window, in place."""
    into = dict[int, int]()
    for merge in reversed(merges):
        into[merge.event] = into.get(merge.into, merge.into)
    for row in np.flatnonzero(np.isin(events, np.array(list(into), np.uint64))).tolist():
        events[row] = into[int(events[row])]


class _Window:
    """The articles of some days, sorted by day: those that have an event, and those that get one.

    Events have codes inside: of those with articles here already, then one for each place, for the event it may open.
    """

    def __init__(self, doc_ids: Ids, days: Days, events: Ids, vectors: Vectors, options: EventOptions) -> None:
        self.merges: list[Merge] = []
        self._doc_ids, self._days, self._vectors, self._options = doc_ids, days, vectors, options
        known, codes = np.unique(events, return_inverse=True)
        self._ids = np.concatenate([known, doc_ids])
        self._codes = np.where(events == NO_EVENT, _NO_CODE, codes)
        self._first_code = len(known)

    @property
    def events(self) -> Ids:
        """The event of each article; :data:`NO_EVENT` for those that have none yet."""
        return np.where(self._codes == _NO_CODE, NO_EVENT, self._ids[self._codes]).astype(np.uint64)

    def add_all(self) -> None:
        """Gives events to the articles that have none, in their order."""
        new = np.flatnonzero(self._codes == _NO_CODE)
        for start in range(0, len(new), _BLOCK):
            places = new[start : start + _BLOCK]
            first, last = self._range(places[0])[0], self._range(places[-1])[1]
            cosines = self._vectors[places] @ self._vectors[first:last].T  # one large product is faster than many
            for place, row in zip(places.tolist(), cosines, strict=True):
                begin, end = self._range(place)
                self._add(place, begin, row[begin - first : end - first])

    def _add(self, place: int, first: int, cosines: Vectors) -> None:
        """Gives an event to one article; merges events that it shows to be one.

        Args:
          place: of the article.
          first: place of the first article of the days around it.
          cosines: with all articles of these days.
        """
        codes = self._codes[first : first + len(cosines)]
        near = np.flatnonzero(codes != _NO_CODE)
        codes = codes[near]
        gaps = np.abs(self._days[near + first] - self._days[place])
        similarities = cosines[near].astype(np.float64) - self._options.day_decay * gaps
        counts = np.bincount(codes, minlength=1)
        means = np.round(np.bincount(codes, similarities, len(counts)) / np.maximum(counts, 1), _DIGITS)
        similar = np.flatnonzero((means >= self._options.threshold) & (counts > 0))
        if not len(similar):
            self._codes[place] = self._first_code + place
            return
        order = similar[np.lexsort((self._ids[similar], -means[similar]))].tolist()
        self._codes[place] = order[0]
        for other in order[1:]:
            self._merge_if_one(place, other)

    def _range(self, place: int) -> tuple[int, int]:
        """The first place within the days around an article, and the first place after them."""
        day, reach = self._days[place], self._options.days
        first, last = np.searchsorted(self._days, [day - reach, day + reach + 1])
        return int(first), int(last)

    def _merge_if_one(self, place: int, other: int) -> None:
        """Merges another event into that of an article, or the reverse, if all their pairs are similar enough."""
        own, (first, last) = int(self._codes[place]), self._range(place)
        ours, theirs = (first + np.flatnonzero(self._codes[first:last] == code) for code in (own, other))
        gaps = np.abs(self._days[ours][:, None] - self._days[theirs][None])
        cosines = (self._vectors[ours] @ self._vectors[theirs].T).astype(np.float64)
        if round(float((cosines - self._options.day_decay * gaps).mean()), _DIGITS) < self._options.threshold:
            return
        places = {code: np.flatnonzero(self._codes == code) for code in (own, other)}
        into, ended = sorted(
            places, key=lambda code: (-len(places[code]), int(self._days[places[code][0]]), int(self._ids[code]))
        )
        self._codes[places[ended]] = into
        self.merges.append(Merge(int(self._ids[ended]), int(self._ids[into]), int(self._doc_ids[place])))

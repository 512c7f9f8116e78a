"""Events: articles of near days with similar vectors, found one article after another.

News streams are clustered online by similarity and time: Miranda et al., "Multilingual Clustering of Streaming News",
EMNLP 2018; Saravanakumar et al., "Event-Driven News Stream Clustering using Entity-Aware Contextual Embeddings", EACL
2021. Here the similarity of an article and an event is a mean over the articles of the event that are at most ``days``
away: of the cosine, less ``day_decay`` for every day between, less a threshold. The article joins the event with the
highest similarity that is not negative, and otherwise opens an event, which gets the article's doc_id as its id. No
cosine means the same for all encoders, languages and archives, so the thresholds are learned from the byline dates,
without labels, see :class:`Scale`.

An article that is as similar to a second event can show that both are one: if the mean over all pairs of their articles
near that day is not negative, too, the event with fewer articles becomes part of the other. Ids change in no
other way. The articles of a run are taken in the order of their dates, so one run over many days and a run for each day
differ only by articles that arrive late.
"""

import collections
import dataclasses
import functools
import itertools
from collections.abc import Callable, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from ..formats.arrays import unit_rows
from ..formats.command_line import Options, option

NO_EVENT: Final = 0
UNDATED: Final = 0  # in place of a day
_NO_CODE: Final = -1
_BLOCK: Final = 512  # articles whose cosines are computed at once; 12,000 near articles take 25 MB
_DIGITS: Final = 6  # of similarities: products of other shapes differ in the last bits
_OF_LANGUAGE: Final = 1_024  # articles of a language, the latest and as many others, from which a scale is learned
_LEAST_OF_LANGUAGE: Final = 64  # articles of a language that has a mean of its own
_LEAST_ARTICLES: Final = 16  # of a scale that is learned
_FAR_DAYS: Final = 7  # articles that are more days apart report different events
_UNRELATED: Final = 0.2  # of the pairs of near days above a threshold
_MANY: Final = 4_096  # articles with a date from which on they are; nearest neighbors among fewer are too noisy
_SAMPLE: Final = 2_048  # articles of a language
_NEAREST: Final = 0.001  # of a sample
_MOST_NEAR: Final = 0.95  # of a sample, of the days around an article
_LEAST_PAIRS: Final = 10  # of near days above a threshold
_LEAST_FAR_PAIRS: Final = 1_000
_DEVIATIONS: Final = 6.0  # above the median of all pairs, where dates do not tell
_BELOW: Final = 0.1587  # the share of a normal distribution that is a standard deviation below its median
_THRESHOLD: Final = 0.6  # of few articles

Ids = npt.NDArray[np.uint64]
Days = npt.NDArray[np.int64]
Rows = npt.NDArray[np.int64]
Vectors = npt.NDArray[np.float32]
Floats = npt.NDArray[np.float64]


@dataclasses.dataclass(frozen=True)
class EventOptions(Options):
    """When articles belong to one event."""

    threshold: float | None = option(
        None,
        "least mean cosine, less the decay, of an article and an event; default: learned from the dates of the archive",
        ge=-1,
        le=1,
    )
    days: int = option(3, "articles whose byline dates are more days apart are not compared", ge=0, le=3650)
    day_decay: float = option(0.05, "taken from the cosine for every day between two articles", ge=0, le=1)


@dataclasses.dataclass(frozen=True)
class Merge:
    """Two events that became one: the one that ended, the one that has its articles, the article that joined them."""

    event: int
    into: int
    doc_id: int


@dataclasses.dataclass(frozen=True)
class Scale:
    """From which cosine on two articles of near days report one event, by their languages.

    The texts of one language have a direction of their own in most encoders, and all texts have one in many: cosines by
    E5 are 0.7 and more. So vectors are taken less the mean of their language (Yang et al. 2021, "A Simple and Effective
    Method To Eliminate the Self Language Bias in Multilingual Representations").

    Two articles that are more than a week apart report different events. So the share of these pairs with at least some
    cosine is that of unrelated pairs, and tells how many pairs of near days with such a cosine are unrelated. The
    threshold is the least cosine above which one pair in five is (a false discovery rate, Benjamini and Hochberg 1995),
    or two in five where there is none. Where dates tell nothing, since the archive is of a few days, it is six standard
    deviations above the median cosine of all pairs. Related pairs are above the median, so the deviation is that below
    it.

    A topic that lasts for months, such as a club's transfers, has similar articles every day, which report different
    events. So in a large archive the similarity of articles a and b is their cosine less r(a, b) / 2 and r(b, a) / 2,
    where r(a, b) is the mean cosine of a with its nearest neighbors in a sample of articles from other weeks that are
    in the language of b. This is CSLS (Conneau et al. 2018, "Word Translation Without Parallel Data", equation 3). The
    pairs that tell the threshold are not of the sample, where no cosine is far above r. An archive of some days has no
    other weeks, so articles that are four days apart, three or two, count as such.

    Attributes:
      languages: L languages, then R rare ones, which have a mean of their own and share the first entry of the other
        arrays.
      means: float32 ``[1 + L + R, D]``.
      thresholds: of the articles of two languages, float64 ``[1 + L, 1 + L]``.
      samples: of each language the vectors of articles less their mean, and their days; none of few articles.
      far_days: articles that are more days apart count as those of other weeks.
    """

    languages: tuple[str, ...]
    means: Vectors
    thresholds: Floats
    samples: Sequence[tuple[Vectors, Days]] = ()
    far_days: int = _FAR_DAYS

    def usual(self, centred: Vectors, days: Days) -> Floats:
        """r(a, b) / 2 of each article a by the language of b, float64 ``[n, 1 + L]``; 0 without samples.

        Args:
          centred: unit vectors of the articles, less the mean of their language, ``[n, D]``.
          days: their days, ``[n]``.
        """
        result = np.zeros((len(centred), len(self.thresholds)))
        for code, (sample, sample_days) in enumerate(self.samples):
            count = max(1, round(_NEAREST * len(sample)))
            for start in range(0, len(centred), _BLOCK):
                block = slice(start, start + _BLOCK)
                near = np.abs(days[block, None] - sample_days) <= self.far_days
                cosines = np.where(near, np.float32(-1), centred[block] @ sample.T)
                highest = np.partition(cosines, -count, axis=1)[:, -count:].mean(axis=1) / 2
                is_known = near.mean(axis=1) <= _MOST_NEAR
                result[block, code] = np.where(is_known, highest, result[block, 0])
        return result

    @classmethod
    def fixed(cls, threshold: float) -> "Scale":
        """One threshold for cosines of all languages."""
        return cls((), np.zeros((1, 1), np.float32), np.full((1, 1), threshold))

    @classmethod
    def learned(
        cls,
        doc_ids: Ids,
        days: Days,
        languages: Sequence[str],
        vectors: Callable[[Rows], Vectors],
        near_days: int,
    ) -> "Scale":
        """The scale of some articles; of fewer than 16 with a date, a fixed one. See :func:`assign` for the arguments.

        It is learned from the latest articles of each language and from those of the lowest ids, which are digests and
        so a random sample.
        """
        dated = np.flatnonzero(days != UNDATED)
        counts = collections.Counter(languages[row] for row in dated.tolist())
        known = tuple(sorted(language for language, count in counts.items() if count >= _LEAST_OF_LANGUAGE))
        codes, latest, others, samples = _codes(languages, known), [], [], []
        if len(dated) < _LEAST_ARTICLES:
            return cls.fixed(_THRESHOLD)
        for code in range(1 + len(known)):
            own = dated[codes[dated] == code] if code else dated  # all of them in place of languages that are rare
            latest.append(own[np.lexsort((doc_ids[own], days[own]))][-_OF_LANGUAGE:])
            drawn = own[np.argsort(doc_ids[own], kind="stable")]
            size = min(_SAMPLE, len(drawn) // 2) if len(dated) >= _MANY else 0
            samples.append(drawn[:size])
            others.append(drawn[size:][:_OF_LANGUAGE])
        every_day, of_sample = np.unique(days[dated]), days[samples[0]]
        reaches = (_FAR_DAYS, *range(min(near_days, _FAR_DAYS - 1), 0, -1)) if len(of_sample) else ()
        around = {far: max(np.mean(np.abs(of_sample - day) <= far) for day in every_day) for far in reaches}
        far_days = next((far for far in reaches if around[far] <= _MOST_NEAR), 0)
        samples = samples if far_days else []
        read = np.unique(np.concatenate([*latest, *others, *samples]))
        units, places = vectors(read), functools.partial(np.searchsorted, read)
        means = [units[places(rows)].mean(axis=0) for rows in others]
        every = (*known, *sorted(counts.keys() - {*known}))
        named = _codes(languages, every)
        for code in range(1 + len(known), 1 + len(every)):
            own = vectors(dated[named[dated] == code])
            means.append((own.sum(axis=0) + means[0]) / (len(own) + 1))  # of two articles, some is left that differs
        centred = unit_rows(units - np.stack(means)[named[read]])
        thresholds = np.zeros((1 + len(known), 1 + len(known)))
        of_samples = [(centred[places(rows)], days[rows]) for rows in samples]
        scale = cls(every, np.stack(means), thresholds, of_samples, far_days or _FAR_DAYS)
        usual, of = scale.usual(centred, days[read]), codes[read]
        for one, rows in enumerate(latest):
            for other in range(one + 1):
                pairs, ours = [], places(rows)
                for theirs in (latest[other], others[other]):
                    apart, their = rows[:, None] != theirs, places(theirs)
                    cosines = centred[ours] @ centred[their].T - usual[ours][:, of[their]] - usual[their][:, of[ours]].T
                    pairs.append((cosines[apart], np.abs(days[rows][:, None] - days[theirs])[apart]))
                (near, gaps), (any_day, far_gaps) = pairs
                threshold = _threshold(near[gaps <= near_days], any_day[far_gaps > scale.far_days], any_day)
                thresholds[[one, other], [other, one]] = threshold
        return scale


def _threshold(near: Floats, far: Floats, any_day: Floats) -> float:
    """The threshold by the cosines of pairs of near days, of far days, and of all."""
    low, middle = np.quantile(any_day, [_BELOW, 0.5])
    deviant = float(middle + _DEVIATIONS * (middle - low))
    if len(far) >= _LEAST_FAR_PAIRS:
        falling, far = np.sort(near)[::-1], np.sort(far)
        found = np.arange(1, len(near) + 1)
        unrelated = len(near) * (len(far) - np.searchsorted(far, falling) + 1) / len(far)
        # Where a topic lasts, no share may be smaller than the second one.
        for allowed, least in ((_UNRELATED, -1.0), (2 * _UNRELATED, deviant)):
            enough = np.flatnonzero((unrelated <= allowed * found) & (found >= _LEAST_PAIRS))
            if len(enough):
                return max(float(falling[enough[-1]]), least)
    return deviant


def _codes(languages: Sequence[str], known: Sequence[str]) -> Rows:
    place = {language: code for code, language in enumerate(known, 1)}
    return np.array([place.get(language, 0) for language in languages], np.int64)


def assign(
    doc_ids: Ids,
    days: Days,
    events: Ids,
    languages: Sequence[str],
    vectors: Callable[[Rows], Vectors],
    options: EventOptions,
) -> tuple[Ids, list[Merge]]:
    """Gives events to the articles that have none.

    Args:
      doc_ids: uint64 ``[N]``.
      days: int64 ``[N]``, ordinals of byline dates; :data:`UNDATED` without one.
      events: uint64 ``[N]``, the event of each article; :data:`NO_EVENT` for those that get one now.
      languages: of each article, without region and script.
      vectors: returns unit rows ``[n, D]`` for row numbers ``[n]``, as a new array.
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
    if options.threshold is None:
        scale = Scale.learned(doc_ids, days, languages, vectors, options.days)
    else:
        scale = Scale.fixed(options.threshold)
    named = _codes([languages[row] for row in rows.tolist()], scale.languages)
    codes = np.where(named < len(scale.thresholds), named, 0)
    centred = vectors(rows)
    for start in range(0, len(rows), _BLOCK):  # in place: those of a first run are gigabytes
        block = slice(start, start + _BLOCK)
        centred[block] = unit_rows(centred[block] - scale.means[named[block]])
    usual = scale.usual(centred, days[rows])
    window = _Window(doc_ids[rows], days[rows], events[rows], centred, codes, scale.thresholds, usual, options)
    window.add_all()
    result = events.copy()
    result[rows] = window.events
    if window.merges:
        _rename(result, window.merges)
    return result, window.merges


def inherited(before: Ids, found: Ids, doc_ids: Ids, ended: Sequence[int]) -> tuple[Ids, list[Merge]]:
    """Gives events that were found anew the ids of those before, so that links to them stay.

    The two events with most articles in common are one, then the two with most of all others, and so on. An event
    before that has no heir is merged with the event that most of its articles are in now.

    Args:
      before: uint64 ``[N]``, the events of the articles until now; :data:`NO_EVENT` for none.
      found: uint64 ``[N]``, those found anew.
      doc_ids: uint64 ``[N]``.
      ended: events that were merged with others earlier, whose ids are not used again.

    Returns:
      The events ``[N]``, and the merges.
    """
    counts = collections.Counter(zip(before.tolist(), found.tolist(), strict=True))
    common = {pair: count for pair, count in counts.items() if NO_EVENT not in pair}
    pairs = sorted(common, key=lambda pair: (-common[pair], pair))
    olds, names = dict[int, int](), dict[int, int]()
    for old, new in pairs:
        if old not in olds and new not in names:
            olds[old], names[new] = new, old
    used = {*before.tolist(), *ended}
    for new in np.unique(found[found != NO_EVENT]).tolist():
        if new not in names:  # mostly its own id, the doc_id of the article that opened it
            names[new] = next(number for number in itertools.count(new) if number not in used)
            used.add(names[new])
    merges = list[Merge]()
    for old, new in pairs:
        if old not in olds:
            olds[old] = new
            first = np.flatnonzero((before == old) & (found == new))[0]
            merges.append(Merge(old, names[new], int(doc_ids[first])))
    return np.array([names.get(new, NO_EVENT) for new in found.tolist()], np.uint64), merges


def _rename(events: Ids, merges: list[Merge]) -> None:
    """Follows the merges for articles outside of the window, in place."""
    into = dict[int, int]()
    for merge in reversed(merges):
        into[merge.event] = into.get(merge.into, merge.into)
    for row in np.flatnonzero(np.isin(events, np.array(list(into), np.uint64))).tolist():
        events[row] = into[int(events[row])]


@dataclasses.dataclass(eq=False)
class _Window:
    """The articles of some days, sorted by day: those that have an event, and those that get one.

    Events have codes inside: of those with articles here already, then one for each place, for the event it may open.
    """

    _doc_ids: Ids
    _days: Days
    _given: Ids  # the event of each article, `NO_EVENT` for none
    _vectors: Vectors
    _languages: Rows
    _thresholds: Floats
    _usual: Floats  # see `Scale.usual`
    _options: EventOptions

    def __post_init__(self) -> None:
        self.merges: list[Merge] = []
        known, codes = np.unique(self._given, return_inverse=True)
        self._ids = np.concatenate([known, self._doc_ids])
        self._codes = np.where(self._given == NO_EVENT, _NO_CODE, codes)
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
        margins = self._margins(cosines[near], np.array([place]), near + first)
        counts = np.bincount(codes, minlength=1)
        means = np.round(np.bincount(codes, margins, len(counts)) / np.maximum(counts, 1), _DIGITS)
        similar = np.flatnonzero((means >= 0) & (counts > 0))
        if not len(similar):
            self._codes[place] = self._first_code + place
            return
        order = similar[np.lexsort((self._ids[similar], -means[similar]))].tolist()
        self._codes[place] = order[0]
        for other in order[1:]:
            self._merge_if_one(place, other)

    def _margins(self, cosines: Vectors, places: Rows, others: Rows) -> Floats:
        """By how much cosines, scaled and less the decay, are above their threshold; places are broadcast."""
        gaps = np.abs(self._days[places] - self._days[others])
        ours, theirs = self._languages[places], self._languages[others]
        usual = self._usual[places, theirs] + self._usual[others, ours]
        return cosines.astype(np.float64) - usual - self._options.day_decay * gaps - self._thresholds[ours, theirs]

    def _range(self, place: int) -> tuple[int, int]:
        """The first place within the days around an article, and the first place after them."""
        day, reach = self._days[place], self._options.days
        first, last = np.searchsorted(self._days, [day - reach, day + reach + 1])
        return int(first), int(last)

    def _merge_if_one(self, place: int, other: int) -> None:
        """Merges another event into that of an article, or the reverse, if all their pairs are similar enough."""
        own, (first, last) = int(self._codes[place]), self._range(place)
        ours, theirs = (first + np.flatnonzero(self._codes[first:last] == code) for code in (own, other))
        cosines = self._vectors[ours] @ self._vectors[theirs].T
        if round(float(self._margins(cosines, ours[:, None], theirs[None]).mean()), _DIGITS) < 0:
            return
        places = {code: np.flatnonzero(self._codes == code) for code in (own, other)}
        into, ended = sorted(
            places, key=lambda code: (-len(places[code]), int(self._days[places[code][0]]), int(self._ids[code]))
        )
        self._codes[places[ended]] = into
        self.merges.append(Merge(int(self._ids[ended]), int(self._ids[into]), int(self._doc_ids[place])))

"""The articles of an index by event, as cards that an editor reads: one for each event, near copies folded."""

import collections
import dataclasses
import datetime
import functools
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import numpy as np

from ...errors import InputError
from ...formats.archive import IndexedDocument, read_runs
from ...formats.arrays import unit
from ..analysis import base_language
from ..cluster import IntArray
from ..events import UNDATED, EventOptions, assign
from ..filters import DateRange, Filters, as_days
from ..hybrid import largest_first
from ..index import DocumentIndex
from ..interface import FloatArray
from .telling import additions, shared_names, summary

COPY_COSINE: Final = 0.95  # an article this similar to an earlier one of its event is its copy
REPORTS_SHOWN: Final = 4  # of a card
_PERIODS: Final = (1, 7, 31, 366)  # days
_ENOUGH: Final = 12  # events of a period that is shown by itself
_NEAR, _STORY = 60, 4  # articles near an event, and events of its story on each side
_FAR: Final = 3.0  # standard deviations above the mean cosine
_COMMON: Final = 0.1  # of all articles
_NO_EVENT: Final = -1
_WEEK, _OFTEN, _SILENT = 7, 2, 5  # days, articles in them, and publishers that have no report of an event


@dataclasses.dataclass(frozen=True, slots=True)
class Report(IndexedDocument):
    """An article of an event, and the later articles of the event that are near copies of it.

    In a whole event, ``summary`` has its first sentences, and ``adds`` sentences that no earlier report has.
    """

    copies: tuple[IndexedDocument, ...] = ()
    summary: str = ""
    adds: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True, slots=True)
class Card:
    """What is known of an event.

    Attributes:
      id: doc_id of the article that opened it.
      lead: the article that is most like the others.
      image_url: of the lead, or of the first article with an image; "" if there is none.
      first: the first byline date.
      last: the last byline date.
      articles: how many, near copies included.
      publishers: with the number of their articles, those with most first.
      languages: the same for languages; articles of unknown language are left out.
      timeline: the number of articles of each day that has any, by day.
      reports: the lead and then articles of other publishers, by date; all articles of a whole event.
      summary: the first sentences of the lead.
      first_by: the publisher that reported first, if it was alone on that day and others followed.
      names: what most reports name; only of a whole event.
      silent: the publishers with most articles of near days that have none in the event; only of a whole event.
    """

    id: str
    lead: IndexedDocument
    image_url: str
    first: datetime.date
    last: datetime.date
    articles: int
    publishers: tuple[tuple[str, int], ...]
    languages: tuple[tuple[str, int], ...]
    timeline: tuple[tuple[datetime.date, int], ...]
    reports: tuple[Report, ...]
    summary: str = ""
    first_by: str = ""
    names: tuple[str, ...] = ()
    silent: tuple[str, ...] = ()


def found_events(index: DocumentIndex, options: EventOptions) -> list[str]:
    """The event of each document: the doc_id of the one that opened it, "" for documents without a byline date.

    The events are those of :mod:`..events`, by the order of the dates and then of the index.
    """
    dates = [document.byline_date for document in index.documents]
    days = np.array([date.toordinal() if date else UNDATED for date in dates], np.int64)
    numbers = np.arange(1, len(dates) + 1, dtype=np.uint64)
    languages = [base_language(document.language) for document in index.documents]
    events, _ = assign(numbers, days, np.zeros(len(dates), np.uint64), languages, index.vectors_at, options)
    return [index.documents[event - 1].doc_id if event else "" for event in events.tolist()]


class EventBook:
    """Looks events up by day, filter, id and article.

    Args:
      index: the articles.
      events: id of the event of each; "" for articles that are in none. Articles without a date are in none either.
    """

    def __init__(self, index: DocumentIndex, events: Sequence[str]) -> None:
        self.index = index
        dates = [document.byline_date for document in index.documents]
        self._days = as_days(dates)
        names = np.array([event if date else "" for event, date in zip(events, dates, strict=True)])
        self.ids, codes = np.unique(names, return_inverse=True)
        self._codes = np.where(names == "", _NO_EVENT, codes)
        order = np.lexsort((np.arange(len(names)), self._days, codes))
        self._rows = np.split(order, np.cumsum(np.bincount(codes))[:-1])  # of each code, by date
        publishers = [document.publisher for document in index.documents]
        names, self._publishers = np.unique(np.array(publishers), return_inverse=True)
        self._publisher_names: list[str] = names.tolist()

    @functools.cached_property
    def of_documents(self) -> dict[str, str]:
        """The id of the event of each article that is in one, by doc_id."""
        events = zip(self.index.documents, self._codes.tolist(), strict=True)
        return {document.doc_id: str(self.ids[code]) for document, code in events if code != _NO_EVENT}

    def span(self) -> tuple[datetime.date, datetime.date] | None:
        """The first and the last byline date of the index; None if no article has one."""
        known = self._days[~np.isnat(self._days)]
        return (known.min().item(), known.max().item()) if len(known) else None

    def last_days(self, count: int | None = None) -> DateRange:
        """The given number of days up to the last byline date; by default the last day, week, month or year.

        The default is the shortest of these with a dozen events that several articles report, or else with most. Where
        the last year has none, as after a wrong date, it ends with the last of a year that has a dozen.

        Raises:
          InputError: if no article has a date.
        """
        span = self.span()
        if span is None:
            raise InputError("no article of the index has a byline date", field="index", remedy="search it by words")
        if count is not None:
            return DateRange(span[1] - datetime.timedelta(count - 1), span[1])
        several = self._days[[rows[0] for rows in self._rows if len(rows) > 1]]
        several = np.sort(several[~np.isnat(several)])  # articles without a date are in no event
        end = np.datetime64(span[1])
        if len(several) and (end - several[-1]).astype(int) >= _PERIODS[-1]:
            in_a_year = np.arange(1, len(several) + 1) - np.searchsorted(several, several - _PERIODS[-1])
            end = several[np.flatnonzero(in_a_year >= min(_ENOUGH, in_a_year.max()))[-1]]
        ages = (end - several).astype(np.int64)
        counts = [int((ages < days).sum()) for days in _PERIODS]
        chosen = next((n for n, found in enumerate(counts) if found >= _ENOUGH), counts.index(max(counts)))
        return DateRange(end.item() - datetime.timedelta(_PERIODS[chosen] - 1), end.item())

    def ranked(self, filters: Filters) -> IntArray:
        """Numbers of the events with articles that pass filters.

        Those that most publishers report come first; then those with most articles, and the latest. Only articles
        that pass are counted.
        """
        rows = np.flatnonzero(self.index.passing(filters) & (self._codes != _NO_EVENT))
        codes = self._codes[rows]
        articles = np.bincount(codes, minlength=len(self.ids))
        width = int(self._publishers.max()) + 1
        pairs = np.unique(codes * width + self._publishers[rows])  # of an event and a publisher
        publishers = np.bincount(pairs // width, minlength=len(self.ids))
        latest = np.zeros(len(self.ids), np.int64)
        np.maximum.at(latest, codes, self._days[rows].astype(np.int64))
        found = np.flatnonzero(articles)
        return found[np.lexsort((self.ids[found], -latest[found], -articles[found], -publishers[found]))]

    def number(self, event_id: str) -> int | None:
        """The number of an event, or of the one that it has become a part of; None if there is no such event."""
        for name in (event_id, self._heirs.get(event_id, "")):
            place = int(np.searchsorted(self.ids, name))
            if name and place < len(self.ids) and self.ids[place] == name:
                return place
        return None

    @functools.cached_property
    def _heirs(self) -> dict[str, str]:
        """For each event that was merged, the one that has its articles; runs that were rolled back do not count."""
        heirs, runs = dict[str, str](), {run.number: run for run in read_runs(self.index.archive.uri)}
        run = runs.get(self.index.archive.run.number)
        while run:
            for merge in reversed(run.merges):
                heirs[merge.event_id] = heirs.get(merge.into, merge.into)
            run = runs.get(run.report.get("rollback", run.number - 1))
        return heirs

    def event_of(self, url: str) -> int | None:
        """The number of the event of an article; None for an article without a date."""
        code = int(self._codes[self.index.places(np.array([self.index.number_of(url)]))[0]])
        return None if code == _NO_EVENT else code

    def rows(self, number: int) -> IntArray:
        """Places in the index of the articles of an event, by date."""
        return self._rows[number]

    def vectors(self, numbers: Sequence[int]) -> list[FloatArray]:
        """The vectors of the articles of events, float32 ``[n, D]`` of each; all are read at once."""
        rows = [self._rows[number] for number in numbers]
        found = self.index.vectors_at(np.concatenate([np.zeros(0, np.int64), *rows]))
        return np.split(found, np.cumsum([*map(len, rows)])[:-1]) if rows else []

    def cards(self, numbers: Sequence[int]) -> list[Card]:
        """Events, see `card`."""
        return [self.card(number, vectors) for number, vectors in zip(numbers, self.vectors(numbers), strict=True)]

    def card(self, number: int, vectors: FloatArray | None = None, *, whole: bool = False) -> Card:
        """An event with its lead and some reports of other publishers; all reports if `whole`.

        Args:
          number: of the event.
          vectors: of its articles, if they were read.
          whole: see above.
        """
        rows = self._rows[number]
        documents = [self.index.documents[row] for row in rows]
        days = [document.byline_date for document in documents if document.byline_date]
        (vectors,) = self.vectors([number]) if vectors is None else (vectors,)
        lead = documents[int(np.argmax(np.round(vectors @ vectors.sum(0), 5)))]  # rounded: copies tie, the first leads
        firsts = {lead.publisher: lead}  # and the first articles of other publishers
        for document in documents:
            firsts.setdefault(document.publisher, document)
        opened = {one.publisher for one in documents if one.byline_date == min(days)}
        pictures = [one.image_url for one in (lead, *documents) if one.image_url]
        card = Card(
            str(self.ids[number]),
            lead,
            pictures[0] if pictures else "",
            min(days),
            max(days),
            len(documents),
            _counted(document.publisher for document in documents),
            _counted(document.language for document in documents),
            tuple(sorted(collections.Counter(days).items())),
            tuple(map(_report, [*firsts.values()][:REPORTS_SHOWN])),
            first_by=min(opened) if len(opened) == 1 and len(firsts) > 1 else "",
        )
        if not whole:
            return card
        bodies = self._bodies(rows)
        by_id = dict(zip((one.doc_id for one in documents), bodies, strict=True))
        reports, names = _told(folded(documents, vectors), by_id), shared_names(bodies, self._is_common)
        return dataclasses.replace(card, reports=tuple(reports), names=tuple(names), silent=self._silent(rows))

    def _silent(self, rows: IntArray) -> tuple[str, ...]:
        """The publishers that have written most in the week before the last of some articles, and none of them."""
        last = self._days[rows].max()
        near = (self._days <= last) & (self._days > last - _WEEK)
        counts = np.bincount(self._publishers[near], minlength=len(self._publisher_names))
        counts[self._publishers[rows]] = 0
        most = [name for name in np.argsort(-counts, kind="stable").tolist() if counts[name] >= _OFTEN]
        return tuple(filter(None, (self._publisher_names[name] for name in most[:_SILENT])))

    def with_summaries(self, cards: Sequence[Card]) -> list[Card]:
        """Cards with the first sentences of their leads."""
        texts = zip(cards, self.texts(cards), strict=True)
        return [dataclasses.replace(card, summary=summary(text)) for card, text in texts]

    def texts(self, cards: Sequence[Card]) -> list[str]:
        """The bodies of the leads of events, which are read all at once."""
        return self._bodies(np.array([self._places[card.lead.doc_id] for card in cards], np.int64))

    def _bodies(self, rows: IntArray) -> list[str]:
        return self.index.archive.take(self.index.numbers[rows].tolist(), ["body"])["body"].to_pylist()

    def story(self, number: int) -> tuple[list[Card], list[Card]]:
        """The most similar events before and after an event, by date; only those that are far from most articles."""
        (vectors,) = self.vectors([number])
        center, last = center_of(vectors), self.card(number, vectors).last
        found, cosines = self.index.nearest(center, _NEAR)
        places, codes = self.index.places(found), dict[int, None]()
        for place in places[self.index.deviations(center, cosines, places) >= _FAR].tolist():
            if (code := int(self._codes[place])) not in (number, _NO_EVENT):
                codes[code] = None
        cards = sorted(self.cards([*codes][: 2 * _STORY]), key=lambda card: (card.first, card.id))
        before = [card for card in cards if card.first <= last]
        return before[-_STORY:], cards[len(before) :][:_STORY]

    @functools.cached_property
    def _places(self) -> dict[str, int]:
        return {document.doc_id: place for place, document in enumerate(self.index.documents)}

    def _is_common(self, name: str) -> bool:
        return any(word.frequency > _COMMON * len(self.index) for word in self.index.read(name))


def center_of(vectors: FloatArray) -> FloatArray:
    """The mean direction ``[D]`` of the articles of an event, of length 1."""
    return unit(vectors.mean(0))


def _told(reports: Sequence[Report], bodies: Mapping[str, str]) -> list[Report]:
    """Reports with what they say and add."""
    texts = [bodies[report.doc_id] for report in reports]
    added = additions(texts, [report.language for report in reports])
    return [
        dataclasses.replace(report, summary=summary(text), adds=tuple(adds))
        for report, text, adds in zip(reports, texts, added, strict=True)
    ]


def _report(document: IndexedDocument, copies: Sequence[IndexedDocument] = ()) -> Report:
    return Report(**dataclasses.asdict(document), copies=tuple(copies))


def folded(documents: Sequence[IndexedDocument], vectors: FloatArray) -> list[Report]:
    """Reports by date: an article joins the earliest report with a cosine of at least :data:`COPY_COSINE`.

    Args:
      documents: n, by date.
      vectors: unit rows ``[n, D]``.
    """
    shown: list[int] = []
    copies: dict[int, list[IndexedDocument]] = collections.defaultdict(list)
    for place, document in enumerate(documents):
        near = np.flatnonzero(vectors[shown] @ vectors[place] >= COPY_COSINE) if shown else np.zeros(0, np.int64)
        if len(near):
            copies[shown[near[0]]].append(document)
        else:
            shown.append(place)
    return [_report(documents[place], copies.get(place, ())) for place in shown]


def _counted(values: Iterable[str]) -> tuple[tuple[str, int], ...]:
    return tuple(largest_first(collections.Counter(filter(None, values))))

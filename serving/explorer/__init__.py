"""The explorer: a page with the events of a day or a week, search, and a map of topics; and the routes that it uses.

``GET /`` is the page, which needs nothing from other servers but the pictures of articles. ``GET /events``,
``GET /event`` and ``GET /map`` answer in JSON.
"""

import asyncio
import contextlib
import dataclasses
import datetime
import importlib.resources
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Annotated, Any, Final, Self

from fastapi import FastAPI, HTTPException, Query, Response
from fastapi.concurrency import run_in_threadpool
from pydantic import BaseModel, Field, model_validator
from starlette.routing import Route

from ...formats.archive import IndexedDocument
from ..bodies import MAX_COUNT, Day, SearchHit, Text, Values
from ..cluster import IntArray
from ..events import EventOptions
from ..filters import DateRange, Filters
from ..gate import RefusedError, no_index, unavailable
from ..index import DocumentIndex
from .book import Card, EventBook, center_of, found_events
from .topic_map import LARGEST, TopicMap, draw

FILES: Final = {"/": "text/html", "/style.css": "text/css", "/page.css": "text/css", "/page.js": "text/javascript"}
_MOST_DAYS: Final = 366
_PATIENCE: Final = 1.0  # seconds that a request waits for the events
_SIMILAR: Final = 10
_MAPS_KEPT: Final = 8
# Scripts and styles of this server only; pictures of articles come from their publishers.
_HEADERS: Final = {
    "Content-Security-Policy": "default-src 'self'; img-src http: https: data:; frame-ancestors 'none'; "
    "base-uri 'none'; form-action 'self'",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}

Drawing = tuple[list[Card], TopicMap]


class EventsRequest(BaseModel, extra="forbid"):
    """The query of GET /events and GET /map: days and filters.

    Without ``since`` and ``until`` the answer is about the last ``days`` days of the index, or, without these too, its
    last day, week, month or year, whichever has enough events.
    """

    since: Day = None
    until: Day = None
    days: Annotated[int, Field(ge=1, le=_MOST_DAYS)] | None = None
    language: Values = []
    publisher: Values = []
    count: Annotated[int, Field(ge=1, le=MAX_COUNT)] = 30
    offset: Annotated[int, Field(ge=0)] = 0


class EventRequest(BaseModel, extra="forbid"):
    """The query of GET /event: the ``id`` of an event, or the ``url`` of one of its articles."""

    id: Text = ""
    url: Text = ""

    @model_validator(mode="after")
    def _asks_one_thing(self) -> Self:
        if bool(self.id) == bool(self.url):
            raise ValueError("give either id (of an event) or url (of an article)")
        return self


class Period(BaseModel):
    """Some days of an index.

    Attributes:
      since: the first of these days, None for no bound.
      until: the last of them.
      total: events of these days.
      span: the first and the last date of the index; None without dates.
    """

    since: datetime.date | None
    until: datetime.date | None
    total: int
    span: tuple[datetime.date, datetime.date] | None


class EventsResponse(Period):
    """A page of the events of some days, those that most publishers report first."""

    events: list[Card]


class EventResponse(BaseModel):
    """A whole event and the similar ones before and after it; with a URL also that article, and similar ones.

    ``event`` is None for an article without a date.
    """

    event: Card | None
    article: IndexedDocument | None = None
    similar: list[SearchHit] = []
    before: list[Card] = []
    after: list[Card] = []


class MapPoint(BaseModel):
    """An event on the map."""

    id: str
    title: str
    language: str
    first: datetime.date
    articles: int
    publishers: int
    topic: int
    place: tuple[float, float]


class MapResponse(Period):
    """The largest events of some days: places from 0 to 1, and the topics they belong to."""

    topics: list[str]
    events: list[MapPoint]


class Books:
    """The events of the index that is served. A separate thread finds them when an index is new.

    Args:
      options: of events, for an index of `newsembed index`; an archive of `newsembed update` keeps its events.
    """

    def __init__(self, options: EventOptions | None = None) -> None:
        self._options = options or EventOptions()
        self._thread = ThreadPoolExecutor(1, "newsembed events")
        self._lock = threading.Lock()
        self._book: Future[EventBook] | None = None
        self._maps: dict[tuple[EventBook, Filters], Drawing] = {}

    def prepare(self, index: DocumentIndex) -> "Future[EventBook]":
        """Starts to find the events of the first index, unless that was done."""
        with self._lock:
            return self._book or self._use(self._thread.submit(self._read, index))

    def replace(self, index: DocumentIndex) -> None:
        """Finds the events of another index, and shows them in place of those before."""
        book = Future[EventBook]()
        book.set_result(self._read(index))
        with self._lock:
            self._use(book)

    async def get(self, index: DocumentIndex) -> EventBook:
        """The events, with their index; of the first index, which is given, 503 while they are being found."""
        future = asyncio.wrap_future(self.prepare(index))
        try:
            return await asyncio.wait_for(asyncio.shield(future), _PATIENCE)
        except TimeoutError as error:
            count = f"{len(index):,}"
            raise unavailable(f"{count} articles are being grouped into events; try again soon") from error

    def events_of(self, doc_ids: Sequence[str]) -> list[str]:
        """The events of articles, "" for those in none, and for all while the events are being found."""
        future = self._book
        known = future.result().of_documents if future and future.done() and not future.exception() else {}
        return [known.get(doc_id, "") for doc_id in doc_ids]

    def drawing(self, book: EventBook, filters: Filters) -> Drawing:
        """The largest events that pass filters, with their map; the last few are kept. 501 without scikit-learn."""
        known = self._maps.get((book, filters))
        if known is None:
            numbers = book.ranked(filters)[:LARGEST].tolist()
            titles = [[book.index.documents[row].title for row in book.rows(number)] for number in numbers]
            vectors = book.vectors(numbers)
            cards = [book.card(*event) for event in zip(numbers, vectors, strict=True)]
            try:
                drawn = draw([*map(center_of, vectors)], titles, book.index, book.texts(cards))
            except ModuleNotFoundError as error:
                remedy = "pip install 'newsembed[evaluate]' on the server"
                raise RefusedError(501, f"the map needs the package {error.name}: {remedy}") from error
            known = cards, drawn
            with self._lock:
                while len(self._maps) >= _MAPS_KEPT:
                    del self._maps[next(iter(self._maps))]
                self._maps[book, filters] = known
        return known

    def close(self) -> None:
        """Drops the work that has not begun."""
        self._thread.shutdown(wait=False, cancel_futures=True)

    def _use(self, book: "Future[EventBook]") -> "Future[EventBook]":
        self._book, self._maps = book, {}
        self._thread.submit(self._draw_first, book)
        return book

    def _draw_first(self, book: "Future[EventBook]") -> None:
        """Draws the map that the page asks for first, so that it is there."""
        with contextlib.suppress(Exception):  # the request then says what is wrong
            found = book.result()
            self.drawing(found, found.index.filters(found.last_days(), [], []))

    def _read(self, index: DocumentIndex) -> EventBook:
        return EventBook(index, index.events if "events" in index.settings else found_events(index, self._options))


def add_explorer(app: FastAPI, books: Books, current: Callable[[], DocumentIndex | None]) -> None:
    """Adds the page and its routes.

    Args:
      app: of the server.
      books: the events.
      current: returns the index that is served now; None: there is none.
    """
    for path, kind in FILES.items():
        name = "page.html" if path == "/" else path.removeprefix("/")
        content = importlib.resources.files(__package__).joinpath(name).read_bytes()
        page = Response(content, media_type=kind, headers=_HEADERS)  # which is an application that answers so
        app.router.routes.append(Route(path, page, methods=["GET"], include_in_schema=False))

    def served() -> DocumentIndex:
        index = current()
        if index is None:
            raise no_index()
        return index

    @app.get("/events")
    async def events(request: Annotated[EventsRequest, Query()]) -> EventsResponse:
        """The events from `since` to `until`, or of the last `days` days of the index; the largest come first."""
        return await run_in_threadpool(_events, await books.get(served()), request)

    what = "The event of an `id`, or of the article with a `url`: all its reports, and similar articles of others."

    @app.get("/event", description=what)
    async def event(request: Annotated[EventRequest, Query()]) -> EventResponse:
        book = await books.get(served())
        if request.url and not book.index.has(request.url):
            raise HTTPException(404, f"no document with the URL {request.url}")
        return await run_in_threadpool(_event, book, request)

    @app.get("/map")
    async def topics(request: Annotated[EventsRequest, Query()]) -> MapResponse:
        """The places of the 300 largest of these events on a map, where similar ones are near, and their topics."""
        return await run_in_threadpool(_map, books, await books.get(served()), request)


def _period(book: EventBook, request: EventsRequest) -> tuple[Filters, IntArray, dict[str, Any]]:
    """The filters of a request, the events that pass them, and the values of :class:`Period`."""
    dates = DateRange(request.since, request.until)
    if not (dates.since or dates.until):
        dates = book.last_days(request.days)
    filters = book.index.filters(dates, request.language, request.publisher)
    ranked = book.ranked(filters)
    return filters, ranked, {**dataclasses.asdict(dates), "total": len(ranked), "span": book.span()}


def _events(book: EventBook, request: EventsRequest) -> EventsResponse:
    _, ranked, period = _period(book, request)
    chosen = ranked[request.offset : request.offset + request.count].tolist()
    return EventsResponse(events=book.with_summaries(book.cards(chosen)), **period)


def _event(book: EventBook, request: EventRequest) -> EventResponse:
    if not request.url:
        number = book.number(request.id)
        if number is None:
            raise HTTPException(404, f"no event {request.id!r}; it may have become part of another event")
        before, after = book.story(number)
        return EventResponse(event=book.card(number, whole=True), before=before, after=after)
    index, number = book.index, book.event_of(request.url)
    own = set() if number is None else set(index.numbers[book.rows(number)].tolist())
    hits = index.search_url(request.url, len(own) + _SIMILAR)
    others = [hit for hit in hits if hit.number not in own][:_SIMILAR]
    return EventResponse(
        event=None if number is None else book.card(number, whole=True),
        article=index.archive.documents([index.number_of(request.url)])[0],
        similar=[SearchHit(**{**hit.to_dict(), "rank": rank}) for rank, hit in enumerate(others, 1)],
    )


def _map(books: Books, book: EventBook, request: EventsRequest) -> MapResponse:
    filters, _, period = _period(book, request)
    cards, drawn = books.drawing(book, filters)
    points = [
        MapPoint(
            id=card.id,
            title=card.lead.title,
            language=card.lead.language,
            first=card.first,
            articles=card.articles,
            publishers=len(card.publishers),
            topic=topic,
            place=place,
        )
        for card, topic, place in zip(cards, drawn.topics.tolist(), drawn.places.tolist(), strict=True)
    ]
    return MapResponse(topics=list(drawn.labels), events=points, **period)

"""The explorer: a page with the events of a day or a week, search, and a map of topics; and the routes that it uses.

``GET /`` is the page, which needs nothing from other servers but the pictures of articles. ``GET /events``,
``GET /event`` and ``GET /map`` answer in JSON.
"""

import asyncio
import importlib.resources
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Annotated, Any, Final

from fastapi import FastAPI, HTTPException, Query, Response
from fastapi.concurrency import run_in_threadpool

from ...formats.archive import read_events, read_pointer, version_folder
from ..bodies import SearchHit
from ..dates import DateRange
from ..events import EventOptions
from ..filters import Filters
from ..index import DocumentIndex
from ..limits import RefusedError, UnavailableError
from .bodies import (
    ArticleBody,
    EventBody,
    EventRequest,
    EventResponse,
    EventsRequest,
    EventsResponse,
    MapPoint,
    MapResponse,
)
from .book import Card, EventBook, found_events, kept_events
from .topic_map import LARGEST, TopicMap, draw

FILES: Final = {"/": "text/html", "/page.css": "text/css", "/page.js": "text/javascript"}
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


class Books:
    """The events of the index that is served. A separate thread finds them when an index is new.

    Args:
      path: of the index or the archive; the events of an archive are those that it keeps.
      options: of events, for an index outside of an archive.
    """

    def __init__(self, path: str | None = None, options: EventOptions | None = None) -> None:
        self._path, self._options = path, options or EventOptions()
        self._thread = ThreadPoolExecutor(1, "newsembed events")
        self._lock = threading.Lock()
        self._of: DocumentIndex | None = None
        self._book: Future[EventBook] | None = None
        self._maps: dict[tuple[EventBook, Filters], Drawing] = {}

    def prepare(self, index: DocumentIndex) -> "Future[EventBook]":
        """Starts to find the events of an index, unless that was done."""
        with self._lock:
            if self._book is None or self._of is not index:
                self._of, self._maps = index, {}
                self._book = self._thread.submit(self._read, index)
            return self._book

    async def get(self, index: DocumentIndex) -> EventBook:
        """The events of an index.

        Raises:
          UnavailableError: while they are being found.
        """
        future = asyncio.wrap_future(self.prepare(index))
        try:
            return await asyncio.wait_for(asyncio.shield(future), _PATIENCE)
        except TimeoutError as error:
            count = f"{len(index):,}"
            raise UnavailableError(f"{count} articles are being grouped into events; try again soon") from error

    def drawing(self, book: EventBook, filters: Filters) -> Drawing:
        """The largest events that pass filters, with their map; the last few are kept.

        Raises:
          RefusedError: 501, if scikit-learn is not installed.
        """
        key = (book, filters)
        known = self._maps.get(key)
        if known is None:
            numbers = book.ranked(filters)[:LARGEST].tolist()
            cards = [book.card(number) for number in numbers]
            documents = book.index.documents
            titles = [[documents[row].title for row in book.rows(number)] for number in numbers]
            try:
                drawn = draw([book.center(number) for number in numbers], titles, book.index)
            except ModuleNotFoundError as error:
                remedy = "pip install 'newsembed[evaluate]' on the server"
                raise RefusedError(501, f"the map needs the package {error.name}: {remedy}") from error
            with self._lock:
                while len(self._maps) >= _MAPS_KEPT:
                    del self._maps[next(iter(self._maps))]
                known = self._maps[key] = (cards, drawn)
        return known

    def close(self) -> None:
        """Drops the work that has not begun."""
        self._thread.shutdown(wait=False, cancel_futures=True)

    def _read(self, index: DocumentIndex) -> EventBook:
        pointer = read_pointer(self._path) if self._path else None
        if self._path is None or pointer is None:
            return EventBook(index, found_events(index, self._options))
        return EventBook(index, kept_events(index, read_events(version_folder(self._path, pointer.version))))


def add_explorer(app: FastAPI, books: Books, current: Callable[[], DocumentIndex | None], described: list[Any]) -> None:
    """Adds the page and its routes.

    Args:
      app: of the server.
      books: the events.
      current: returns the index that is served now; None: there is none.
      described: dependencies of routes that need the API key.
    """
    for path, kind in FILES.items():
        _add_file(app, path, kind)

    def served() -> DocumentIndex:
        index = current()
        if index is None:
            raise HTTPException(404, "this server has no index; start it with --index")
        return index

    @app.get("/events", dependencies=described)
    async def events(request: Annotated[EventsRequest, Query()]) -> EventsResponse:
        """The events from `since` to `until`, or of the last `days` days of the index; the largest come first."""
        book = await books.get(served())
        return await run_in_threadpool(_events, book, request)

    what = "The event of an `id`, or of the article with a `url`: all its reports, and similar articles of others."

    @app.get("/event", dependencies=described, description=what)
    async def event(request: Annotated[EventRequest, Query()]) -> EventResponse:
        index = served()
        if request.url and not index.has(request.url):
            raise HTTPException(404, f"no document with the URL {request.url}")
        book = await books.get(index)
        if request.id and not book.has(request.id):
            raise HTTPException(404, f"no event {request.id!r}; it may have become part of another event")
        return await run_in_threadpool(_event, book, request)

    @app.get("/map", dependencies=described)
    async def topics(request: Annotated[EventsRequest, Query()]) -> MapResponse:
        """The places of the 300 largest of these events on a map, where similar ones are near, and their topics."""
        book = await books.get(served())
        return await run_in_threadpool(_map, books, book, request)


def _add_file(app: FastAPI, path: str, kind: str) -> None:
    name = "page.html" if path == "/" else path.removeprefix("/")
    content = importlib.resources.files(__package__).joinpath(name).read_bytes()

    @app.get(path, include_in_schema=False)
    async def answer() -> Response:
        return Response(content, media_type=kind, headers=_HEADERS)


def _filters(book: EventBook, request: EventsRequest) -> Filters:
    dates = DateRange(request.since, request.until)
    if not dates.is_bounded:
        dates = book.last_days(request.days)
    return book.index.filters(dates, request.language, request.publisher)


def _events(book: EventBook, request: EventsRequest) -> EventsResponse:
    filters = _filters(book, request)
    ranked = book.ranked(filters)
    chosen = ranked[request.offset : request.offset + request.count].tolist()
    return EventsResponse(
        since=filters.dates.since,
        until=filters.dates.until,
        total=len(ranked),
        events=[EventBody.of(book.card(number)) for number in chosen],
        span=book.span(),
    )


def _event(book: EventBook, request: EventRequest) -> EventResponse:
    if not request.url:
        return EventResponse(event=EventBody.of(book.card(book.number(request.id), whole=True)))
    index, number = book.index, book.event_of(request.url)
    own = set() if number is None else set(book.rows(number).tolist())
    hits = index.search_url(request.url, len(own) + _SIMILAR)
    others = [hit for hit in hits if hit.number not in own][:_SIMILAR]
    return EventResponse(
        event=None if number is None else EventBody.of(book.card(number, whole=True)),
        article=ArticleBody.of(index.documents[index.number_of(request.url)]),
        similar=[SearchHit(**{**hit.to_dict(), "rank": rank}) for rank, hit in enumerate(others, 1)],
    )


def _map(books: Books, book: EventBook, request: EventsRequest) -> MapResponse:
    filters = _filters(book, request)
    cards, drawn = books.drawing(book, filters)
    points = [
        MapPoint(
            id=card.event_id,
            title=card.lead.title,
            language=card.lead.language,
            articles=card.articles,
            publishers=len(card.publishers),
            topic=topic,
            place=place,
        )
        for card, topic, place in zip(cards, drawn.topics.tolist(), drawn.places.tolist(), strict=True)
    ]
    return MapResponse(
        since=filters.dates.since,
        until=filters.dates.until,
        total=len(book.ranked(filters)),
        span=book.span(),
        topics=list(drawn.labels),
        events=points,
    )

"""What answers requests: an encoder and an index, which may be replaced while requests are under way."""

import asyncio
import dataclasses
import functools
import itertools
import logging
import os
import threading
from collections.abc import Callable
from typing import Any, Final, Self, TypeVar

import anyio
from fastapi import HTTPException
from fastapi.concurrency import run_in_threadpool

from .. import __version__
from ..errors import InputError, counted
from ..formats.archive import last_number
from .batching import Batcher, BatchOptions
from .bodies import SearchRequest
from .explorer import Books
from .gate import no_index, too_large
from .hybrid import MODES, Found, chosen_mode, find
from .index import DocumentIndex
from .interface import FloatArray, TextEncoder, TokenCounter, most_tokens
from .search import date_range

RELOAD_SECONDS: Final = 5.0
_MANY: Final = 1_000  # documents
_COUNTED_AT_ONCE: Final = 256  # documents whose tokens are counted before the sum is compared
_FIRST_PREPARATIONS: Final = 4  # of short texts
_RETIRE_SECONDS: Final = 60.0  # until the threads of an encoder end that another has replaced
_LOG: Final = logging.getLogger(__name__)
_Result = TypeVar("_Result")


class Service:
    """The encoder and the index behind the routes.

    Both may be replaced while requests are answered: each request uses those that it found.

    Args:
      encoder: what embeds.
      index: what is searched; None for a server that only embeds.
      options: how requests share calls of the encoder.
      books: the events of the index.

    Attributes:
      batcher: the encoder, and what shares its calls.
      index: as given, or what has replaced it.
      books: as given.
      notice: tells what users should know for now about what they see; "" for nothing.
    """

    def __init__(
        self,
        encoder: TextEncoder,
        index: DocumentIndex | None = None,
        options: BatchOptions | None = None,
        books: Books | None = None,
    ) -> None:
        self._found = 0  # searches that have their vectors
        self._now = Batcher(encoder, options, self._is_ahead), index
        self.books: Books = books or Books()
        self.notice: Callable[[DocumentIndex], str] = lambda _: ""
        # A thread for each core: more of them would only wait for one another in the middle of a search.
        self._searching = anyio.CapacityLimiter(os.cpu_count() or 1)

    @property
    def batcher(self) -> Batcher:
        """What shares the calls of the encoder now."""
        return self._now[0]

    @property
    def encoder(self) -> TextEncoder:
        """What embeds now."""
        return self._now[0].encoder

    @property
    def index(self) -> DocumentIndex | None:
        """What is searched now."""
        return self._now[1]

    def prepare(self) -> None:
        """Compiles and reads what searches need, and lets the thread of documents compile the rest while it is idle."""
        _prepare(self.batcher)
        if self.index is not None:
            self.index.archive.read_terms()
            self.books.prepare(self.index)

    def replace(self, index: DocumentIndex, encoder: TextEncoder | None = None) -> None:
        """Serves another index, when its events are found.

        Args:
          index: in place of the one before.
          encoder: of its vectors, where that is another one. Requests that found the one before have a minute.
        """
        batcher = before = self.batcher
        if encoder is not None:
            batcher = Batcher(encoder, before.options, self._is_ahead)
            _prepare(batcher)
        index.archive.read_terms()
        self.books.replace(index)
        self._now = batcher, index
        if encoder is not None:
            timer = threading.Timer(_RETIRE_SECONDS, before.stop)
            timer.daemon = True
            timer.start()

    def close(self) -> None:
        """Stops its threads."""
        self.batcher.close()
        self.books.close()

    async def check_tokens(self, titles: list[str], bodies: list[str], most: int) -> None:
        """Refuses documents of more than `most` tokens, if there may be so many and the encoder can count them."""
        encoder = self.encoder
        if not isinstance(encoder, TokenCounter) or await called(len(titles), most_tokens, titles, bodies) <= most:
            return
        total = 0
        for start in range(0, len(titles), _COUNTED_AT_ONCE):
            part = slice(start, start + _COUNTED_AT_ONCE)
            count = await run_in_threadpool(encoder.count_tokens, titles[part], bodies[part])
            if count is None:
                return
            total += count
            if total > most:
                raise too_large("tokens in a request", most, "max_tokens", "send its documents in several requests")

    async def embed(self, titles: list[str], bodies: list[str]) -> tuple[FloatArray, TextEncoder]:
        """Unit vectors ``[N, D]``, and the encoder that made them."""
        batcher = self.batcher
        waiting = await called(len(titles), batcher.documents, titles, bodies)  # sorts them by length
        try:
            return await asyncio.wrap_future(waiting), batcher.encoder
        finally:
            waiting.cancel()

    async def search(self, request: SearchRequest) -> Found:
        """The answer to a checked request; 404 without an index or for a URL that is not in it."""
        batcher, index = self._now
        if index is None:
            raise no_index()
        url = request.url.strip()
        if url and not index.has(url):
            raise HTTPException(404, f"no document with the URL {url}")
        dates = date_range(index, url, request.since, request.until, request.days)
        filters = index.filters(dates, request.language, request.publisher)
        mode = "vectors" if url else chosen_mode(request.mode)
        if not index.count(filters):
            return Found([], mode, notes=(index.nothing_left(filters).problem,))
        if url:
            by_url = functools.partial(index.search_url, url, request.count, filters)
            return Found(await anyio.to_thread.run_sync(by_url, limiter=self._searching), mode)
        vector: FloatArray | None = None
        cosines: FloatArray | None = None
        if mode != "words":
            vector, cosines = await asyncio.wrap_future(batcher.query(request.q, index.compare))
        options: dict[str, Any] = {"mode": mode, "filters": filters, "facets": request.facets, "cosines": cosines}
        search = functools.partial(find, index, request.q, vector, request.count, **options)
        self._found += vector is not None
        try:
            return await anyio.to_thread.run_sync(search, limiter=self._searching)
        finally:
            self._found -= vector is not None

    def _is_ahead(self) -> bool:
        """Whether more searches have their vectors than there are threads for the rest.

        Those by words alone do not count: under a constant load of them the others would wait without end.
        """
        return self._found > self._searching.total_tokens

    def health(self) -> dict[str, Any]:
        """JSON values of GET /healthz."""
        encoder, index = self.encoder, self.index
        facts = {"encoder": encoder.digest, "dimensions": encoder.dimensions, "tokenizer": encoder.tokenizer_name}
        searched = {"documents": len(index) if index else 0, "modes": list(MODES) if index else []}
        notice = self.notice(index) if index else ""
        return {"status": "ok", "version": __version__, **facts, **searched, "notice": notice}


async def called(documents: int, function: Callable[..., _Result], *args: Any) -> _Result:
    """The result of a function that takes time for many documents: computed in a thread then, else at once."""
    return await run_in_threadpool(function, *args) if documents > _MANY else function(*args)


def _prepare(batcher: Batcher) -> None:
    steps = iter(batcher.encoder.preparations())
    for step in itertools.islice(steps, _FIRST_PREPARATIONS):
        step()
    batcher.prepare(steps)


def _refuse_encoder(_: DocumentIndex) -> TextEncoder:
    raise InputError("it is of another encoder", remedy="start the server again, without --model and --saved_model")


@dataclasses.dataclass
class Watcher:
    """Gives a service the new versions of its archive. A context manager, inside which a thread looks for them.

    Searches that are under way finish on the version that they began with. A version of another encoder, as
    ``newsembed update --train`` makes it, comes with that encoder. A version that cannot be read, or whose encoder
    cannot, is refused with a line in the log, and the one before stays.

    Attributes:
      service: with an index.
      seconds: between two looks; 0 for never.
      encoder_of: loads the encoder of a version that has another one; by default such a version is refused.
    """

    service: Service
    seconds: float = RELOAD_SECONDS
    encoder_of: Callable[[DocumentIndex], TextEncoder] = _refuse_encoder

    def __post_init__(self) -> None:
        assert self.service.index is not None
        archive = self.service.index.archive
        self._uri, self._seen, self._digest = archive.uri, archive.run.number, self.service.index.encoder_digest
        self._problem, self._stop = "", threading.Event()
        self._thread = threading.Thread(target=self._watch, name="newsembed new versions", daemon=True)

    def look(self) -> bool:
        """Loads and passes on a new version, if there is one that can be served."""
        try:
            number = last_number(self._uri)
            if number == self._seen:
                return False
            self._seen = number  # refused once, not every few seconds
            index = DocumentIndex.load(self._uri)
            encoder = self.encoder_of(index) if index.encoder_digest != self._digest else None
            self.service.replace(index, encoder)
        except (InputError, OSError, MemoryError) as error:
            if str(error) != self._problem:
                _LOG.warning("%s: the new version is not served, the old one stays: %s", self._uri, error)
            self._problem = str(error)
            return False
        self._problem, self._digest = "", index.encoder_digest
        what = "the index and its encoder are" if encoder else "the index is"
        print(f"a new version of {what} served: {counted(len(index), 'document')}", flush=True)
        return True

    def _watch(self) -> None:
        while not self._stop.wait(self.seconds):
            try:
                self.look()
            except Exception:  # noqa: BLE001 - the old version is served whatever happens
                _LOG.warning("%s: looking for a new version failed", self._uri, exc_info=True)

    def __enter__(self) -> Self:
        if self.seconds > 0:
            self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()

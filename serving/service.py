"""What answers requests: an encoder and an index, which may be replaced while requests are under way."""

import asyncio
import dataclasses
import functools
import itertools
import os
import threading
from typing import Any, Final

import anyio
from fastapi import HTTPException
from fastapi.concurrency import run_in_threadpool

from .. import __version__
from .batching import Batcher, BatchOptions
from .bodies import SearchRequest
from .explorer import Books
from .hybrid import Found, chosen_mode, find, modes_of
from .index import DocumentIndex
from .interface import FloatArray, TextEncoder, TokenCounter, most_tokens
from .large_bodies import called
from .limits import TooLargeError
from .search import date_range

_COUNTED_AT_ONCE: Final = 256  # documents whose tokens are counted before the sum is compared
_FIRST_PREPARATIONS: Final = 4  # of short texts
_RETIRE_SECONDS: Final = 60.0  # until the threads of an encoder end that another has replaced


@dataclasses.dataclass(frozen=True)
class _Served:
    """What answers a request: an encoder, what shares its calls, and an index of its vectors."""

    encoder: TextEncoder
    batcher: Batcher
    index: DocumentIndex | None


class Service:
    """The encoder and the index behind the routes.

    Both may be replaced while requests are answered: each request uses those that it found.

    Args:
      encoder: what embeds.
      index: what is searched; None for a server that only embeds.
      options: how requests share calls of the encoder.
      books: the events of the index.
    """

    def __init__(
        self,
        encoder: TextEncoder,
        index: DocumentIndex | None = None,
        options: BatchOptions | None = None,
        books: Books | None = None,
    ) -> None:
        self._now = _Served(encoder, Batcher(encoder, options), index)
        self.books = books or Books()
        # A thread for each core: more of them would only wait for one another in the middle of a search.
        self._searching = anyio.CapacityLimiter(os.cpu_count() or 1)

    @property
    def encoder(self) -> TextEncoder:
        """What embeds now."""
        return self._now.encoder

    @property
    def batcher(self) -> Batcher:
        """What shares the calls of the encoder."""
        return self._now.batcher

    @property
    def index(self) -> DocumentIndex | None:
        """What is searched now."""
        return self._now.index

    def prepare(self) -> None:
        """Compiles what searches need, and lets the thread of documents compile the rest while it is idle."""
        _prepare(self.encoder, self.batcher)
        if self.index is not None:
            self.books.prepare(self.index)

    def replace(self, index: DocumentIndex, encoder: TextEncoder | None = None) -> None:
        """Serves another index from now on, and begins to find its events.

        Args:
          index: in place of the one before.
          encoder: of its vectors, where that is another one. Requests that found the one before have a minute.
        """
        before = self._now
        if encoder is None:
            self._now = dataclasses.replace(before, index=index)
        else:
            batcher = Batcher(encoder, before.batcher.options)
            _prepare(encoder, batcher)
            self._now = _Served(encoder, batcher, index)
            timer = threading.Timer(_RETIRE_SECONDS, before.batcher.stop)
            timer.daemon = True
            timer.start()
        self.books.prepare(index)

    def close(self) -> None:
        """Stops its threads."""
        self.batcher.close()
        self.books.close()

    async def check_tokens(self, titles: list[str], bodies: list[str], most: int) -> None:
        """Counts the tokens of documents, if there may be too many and the encoder can count them.

        Args:
          titles: of the documents.
          bodies: of the documents.
          most: the limit.

        Raises:
          TooLargeError: if the encoder would read more.
        """
        encoder = self._now.encoder
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
                raise TooLargeError("tokens in a request", most, "max_tokens", "send its documents in several requests")

    async def embed(self, titles: list[str], bodies: list[str]) -> tuple[FloatArray, TextEncoder]:
        """Unit vectors ``[N, D]``, and the encoder that made them."""
        now = self._now
        waiting = await called(len(titles), now.batcher.documents, titles, bodies)  # sorts them by length
        try:
            return await asyncio.wrap_future(waiting), now.encoder
        finally:
            waiting.cancel()

    async def search(self, request: SearchRequest) -> Found:
        """The answer to a checked request.

        Raises:
          HTTPException: 404 without an index or for a URL that is not in it.
        """
        now = self._now
        index = now.index
        if index is None:
            raise HTTPException(404, "this server has no index; start it with --index")
        url = request.url.strip()
        if url and not index.has(url):
            raise HTTPException(404, f"no document with the URL {url}")
        dates = date_range(index, url, request.since, request.until, request.days)
        filters = index.filters(dates, request.language, request.publisher)
        mode = "vectors" if url else chosen_mode(index, request.mode)
        if not index.count(filters):
            return Found([], mode, notes=(index.nothing_left(filters).problem,))
        if url:
            by_url = functools.partial(index.search_url, url, request.count, filters)
            return Found(await anyio.to_thread.run_sync(by_url, limiter=self._searching), mode)
        vector: FloatArray | None = None
        if mode != "words":
            vector = await asyncio.wrap_future(now.batcher.query(request.q))
        search = functools.partial(find, index, request.q, vector, request.count, mode=mode, filters=filters)
        return await anyio.to_thread.run_sync(search, limiter=self._searching)

    def health(self) -> dict[str, Any]:
        """JSON values of GET /healthz."""
        encoder, index = self._now.encoder, self._now.index
        return {
            "status": "ok",
            "version": __version__,
            "encoder": encoder.digest,
            "dimensions": encoder.dimensions,
            "tokenizer": encoder.tokenizer_name,
            "documents": len(index) if index else 0,
            "modes": list(modes_of(index)) if index else [],
        }


def _prepare(encoder: TextEncoder, batcher: Batcher) -> None:
    steps = iter(encoder.preparations())
    for step in itertools.islice(steps, _FIRST_PREPARATIONS):
        step()
    batcher.prepare(steps)

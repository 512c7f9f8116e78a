"""Embeds the texts of many requests in few calls of an encoder, searches before documents.

Searches and documents have a thread each, so that a search never waits for a call that embeds documents. Searches that
wait together share a call. Documents are embedded in slices: a slice holds a few documents of one or several requests,
and before each slice the thread of documents lets searches finish.
"""

import collections
import contextlib
import dataclasses
import logging
import threading
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, InvalidStateError
from typing import Any, Final

import numpy as np

from ..formats.command_line import Options, option
from .gate import stopping
from .interface import FloatArray, TextEncoder

MAX_QUERIES: Final = 32  # in a call
CHARACTERS_PER_DOCUMENT: Final = 4_096  # a slice with longer documents holds fewer
PATIENCE_SECONDS: Final = 0.1  # documents wait for searches this long before each slice, so that both go on
_JOIN_SECONDS: Final = 1.0
_AHEAD_SECONDS: Final = 0.005
_LOG: Final = logging.getLogger(__name__)

Compare = Callable[[FloatArray], Sequence[FloatArray] | None]


@dataclasses.dataclass(frozen=True, kw_only=True)
class BatchOptions(Options):
    """How requests share calls of the encoder."""

    batch_documents: int = option(
        16,
        "documents that are embedded at once; searches go before the next ones (fewer for faster searches, more for "
        "faster /embed)",
        ge=1,
    )
    batch_wait_ms: float = option(
        2.0,
        "milliseconds that a search waits for others to share its call, after a call that was shared",
        ge=0,
        le=1_000,
        metavar="MS",
    )


class _Request:
    """Texts to embed: what is left to do, and the vectors so far."""

    def __init__(
        self, titles: Sequence[str], bodies: Sequence[str], dimensions: int, compare: Compare | None = None
    ) -> None:
        self.titles, self.bodies, self.compare = titles, bodies, compare
        self.lengths = [len(title) + len(body) for title, body in zip(titles, bodies, strict=True)]
        # Texts of similar length share a slice, as they would in one call.
        self.left = collections.deque(np.argsort(self.lengths, kind="stable").tolist())
        self.embeddings: FloatArray = np.zeros((len(titles), dimensions), np.float32)
        self.unfinished = len(titles)
        self.future: Future[Any] = Future()

    def settle(self, outcome: Any) -> None:
        """Gives the future its result or error, unless it was cancelled or has one."""
        with contextlib.suppress(InvalidStateError):
            if isinstance(outcome, Exception):
                self.future.set_exception(outcome)
            else:
                self.future.set_result(outcome)


_Part = tuple[_Request, list[int]]  # numbers of texts of a request


class Batcher:
    """Embeds queries and documents in the background. The threads start with the first request.

    Args:
      encoder: what embeds; it is called by two threads.
      options: how requests share its calls.
      is_ahead: whether embedded queries wait for what comes next. Others may as well wait and share a call, then.

    Attributes:
      encoder: as given.
      options: as given.
    """

    def __init__(
        self, encoder: TextEncoder, options: BatchOptions | None = None, is_ahead: Callable[[], bool] = lambda: False
    ) -> None:
        self.encoder, self.options, self._is_ahead = encoder, options or BatchOptions(), is_ahead
        self._changed = threading.Condition()
        self._queries = collections.deque[_Request]()
        self._documents = collections.deque[_Request]()
        self._preparations = collections.deque[Callable[[], None]]()
        self._is_searching = self._is_stopping = False
        self._threads: list[threading.Thread] = []

    def query(self, text: str, compare: Compare | None = None) -> Future[Any]:
        """The unit vector [D] of a query, later; 503 after :meth:`stop`.

        Args:
          text: the query.
          compare: of the unit vectors [Q, D] of queries that share a call, what it gives for each, or None for all. The
            result is the vector and that, then.
        """
        request = _Request([text], [""], self.encoder.dimensions, compare)
        self._add(self._queries, [request])
        return request.future

    def documents(self, titles: Sequence[str], bodies: Sequence[str]) -> Future[FloatArray]:
        """Unit vectors [N, D] of documents, later; 503 after :meth:`stop`.

        Cancel the future to leave out what is not embedded yet.
        """
        request = _Request(titles, bodies, self.encoder.dimensions)
        if request.unfinished:
            self._add(self._documents, [request])
        else:
            request.settle(request.embeddings)
        return request.future

    def prepare(self, preparations: Iterable[Callable[[], None]]) -> None:
        """Runs functions, one at a time, while no documents wait."""
        self._add(self._preparations, preparations)

    def stop(self) -> None:
        """Ends the threads after their current call; requests that wait get 503."""
        with self._changed:
            self._is_stopping = True
            waiting = [*self._queries, *self._documents]
            self._queries.clear()
            self._documents.clear()
            self._changed.notify_all()
        for request in waiting:
            request.settle(stopping())

    def close(self) -> None:
        """Stops, and waits a moment for the threads."""
        self.stop()
        for thread in self._threads:
            thread.join(_JOIN_SECONDS)

    def _add(self, queue: collections.deque[Any], items: Iterable[Any]) -> None:
        with self._changed:
            if self._is_stopping:
                raise stopping()
            if not self._threads:
                for work, name in ((self._search, "searches"), (self._embed, "documents")):
                    self._threads.append(threading.Thread(target=work, name=f"newsembed {name}", daemon=True))
                    self._threads[-1].start()
            queue.extend(items)
            self._changed.notify_all()

    def _search(self) -> None:
        """The thread of searches."""

        def encode(batch: Sequence[tuple[_Request, int]]) -> FloatArray:
            return self.encoder.encode_queries([request.titles[0] for request, _ in batch])

        shared = False
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._queries or self._is_stopping)
                seconds = self.options.batch_wait_ms / 1_000 if shared else 0.0
                while not self._changed.wait_for(self._is_full, seconds) and self._is_ahead():
                    seconds = _AHEAD_SECONDS
                if self._is_stopping:
                    return
                batch = [self._queries.popleft() for _ in range(min(len(self._queries), MAX_QUERIES))]
                self._is_searching, shared = True, len(batch) > 1
            _encode([(request, [0]) for request in batch if not request.future.cancelled()], encode)
            for compare in dict.fromkeys(request.compare for request in batch):
                _answer([request for request in batch if request.compare == compare], compare)
            with self._changed:
                self._is_searching = False
                self._changed.notify_all()

    def _embed(self) -> None:
        """The thread of documents."""

        def encode(batch: Sequence[tuple[_Request, int]]) -> FloatArray:
            parts = ([getattr(request, name)[number] for request, number in batch] for name in ("titles", "bodies"))
            return self.encoder.encode(*parts)

        while True:
            preparation, chosen = None, list[_Part]()
            with self._changed:
                self._changed.wait_for(lambda: self._documents or self._preparations or self._is_stopping)
                self._changed.wait_for(
                    lambda: not (self._queries or self._is_searching) or self._is_stopping, PATIENCE_SECONDS
                )
                if self._is_stopping:
                    return
                if self._documents:
                    chosen = self._next_slice()
                elif self._preparations:
                    preparation = self._preparations.popleft()
            if preparation:
                self._run(preparation)
            _encode(chosen, encode)
            for request, _ in chosen:
                if not request.unfinished:
                    request.settle(request.embeddings)

    def _is_full(self) -> bool:
        return len(self._queries) >= MAX_QUERIES or self._is_stopping

    def _run(self, preparation: Callable[[], None]) -> None:
        try:
            preparation()
        except Exception:  # noqa: BLE001 - an optional step; requests get the same error and report it
            _LOG.warning("preparing the encoder failed; requests prepare it instead", exc_info=True)
            self._preparations.clear()

    def _next_slice(self) -> list[_Part]:
        """Takes the next documents from the front of the queue; a request with more goes to its end."""
        chosen: list[_Part] = []
        rows, characters = self.options.batch_documents, self.options.batch_documents * CHARACTERS_PER_DOCUMENT
        for _ in range(len(self._documents)):
            request = self._documents.popleft()
            if request.future.done():  # cancelled or failed
                continue
            numbers = list[int]()
            while request.left and rows and (characters >= request.lengths[request.left[0]] or not (chosen or numbers)):
                numbers.append(request.left.popleft())
                rows, characters = rows - 1, characters - request.lengths[numbers[-1]]
            if numbers:
                chosen.append((request, numbers))
            if request.left:
                self._documents.append(request) if numbers else self._documents.appendleft(request)
                break
        return chosen


def _answer(requests: Sequence[_Request], compare: Compare | None) -> None:
    """Gives embedded queries their vectors, and what is compared with them; all of an index in one product."""
    vectors = [request.embeddings[0] for request in requests]
    outcomes: Sequence[Any] = vectors
    if compare:
        try:
            compared = compare(np.stack(vectors))
            outcomes = [(vector, compared and compared[row]) for row, vector in enumerate(vectors)]
        except Exception as error:  # noqa: BLE001 - whatever it is, the requests get it
            outcomes = [error] * len(vectors)
    for request, outcome in zip(requests, outcomes, strict=True):
        request.settle(outcome)


def _encode(chosen: Sequence[_Part], encode: Callable[[Sequence[tuple[_Request, int]]], FloatArray]) -> None:
    """Embeds texts of some requests in one call; where that fails, only the requests that cause it get the error."""
    places = [(request, number) for request, numbers in chosen for number in numbers]
    try:
        embeddings = encode(places) if places else ()
    except Exception as error:  # noqa: BLE001 - whatever it is, the requests get it
        for part in chosen:
            _encode([part], encode) if len(chosen) > 1 else part[0].settle(error)
        return
    for (request, number), embedding in zip(places, embeddings, strict=True):
        request.embeddings[number] = embedding
        request.unfinished -= 1

"""Embeds the texts of many requests in few calls of an encoder, searches before documents.

Searches and documents have a thread each, so that a search never waits for a call that embeds documents. Searches that
wait together share a call. Documents are embedded in slices: a slice holds a few documents of one or several requests,
and before each slice the thread of documents lets searches finish.
"""

import argparse
import collections
import contextlib
import dataclasses
import logging
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, InvalidStateError
from typing import Final

import numpy as np

from ..errors import require_option
from .interface import FloatArray, TextEncoder
from .limits import UnavailableError

MAX_QUERIES: Final = 32  # in a call
CHARACTERS_PER_DOCUMENT: Final = 4_096  # a slice with longer documents holds fewer
PATIENCE_SECONDS: Final = 0.1  # documents wait for searches this long before each slice, so that both go on
_JOIN_SECONDS: Final = 1.0
_LOG: Final = logging.getLogger(__name__)


@dataclasses.dataclass(frozen=True)
class BatchOptions:
    """How requests share calls of the encoder.

    Attributes:
      documents: in a slice.
      wait_ms: how long a search waits for others to share its call, after a call that was shared.
    """

    documents: int = 16
    wait_ms: float = 2.0


class _Documents:
    """A request to embed documents: what is left to do, and the vectors so far."""

    def __init__(self, titles: Sequence[str], bodies: Sequence[str], dimensions: int) -> None:
        self.titles, self.bodies = titles, bodies
        self.lengths = [len(title) + len(body) for title, body in zip(titles, bodies, strict=True)]
        # Texts of similar length share a slice, as they would in one call.
        self.left = collections.deque(np.argsort(self.lengths, kind="stable").tolist())
        self.embeddings: FloatArray = np.zeros((len(titles), dimensions), np.float32)
        self.unfinished = len(titles)
        self.future: Future[FloatArray] = Future()


_Slice = list[tuple[_Documents, list[int]]]  # numbers of documents by request


class Batcher:
    """Embeds queries and documents in the background. The threads start with the first request.

    Args:
      encoder: what embeds; it is called by two threads.
      options: how requests share its calls.

    Attributes:
      options: as given.
    """

    def __init__(self, encoder: TextEncoder, options: BatchOptions | None = None) -> None:
        self._encoder = encoder
        self.options = options or BatchOptions()
        self._changed = threading.Condition()
        self._queries: collections.deque[tuple[str, Future[FloatArray]]] = collections.deque()
        self._documents: collections.deque[_Documents] = collections.deque()
        self._preparations: Iterator[Callable[[], None]] = iter(())
        self._searching = 0
        self._is_stopping = False
        self._threads: list[threading.Thread] = []

    def query(self, text: str) -> Future[FloatArray]:
        """The unit vector [D] of a query, later.

        Raises:
          UnavailableError: after :meth:`stop`.
        """
        future: Future[FloatArray] = Future()
        with self._changed:
            self._start()
            self._queries.append((text, future))
            self._changed.notify_all()
        return future

    def documents(self, titles: Sequence[str], bodies: Sequence[str]) -> Future[FloatArray]:
        """Unit vectors [N, D] of documents, later. Cancel the future to leave out what is not embedded yet.

        Raises:
          UnavailableError: after :meth:`stop`.
        """
        request = _Documents(titles, bodies, self._encoder.dimensions)
        if not request.unfinished:
            request.future.set_result(request.embeddings)
            return request.future
        with self._changed:
            self._start()
            self._documents.append(request)
            self._changed.notify_all()
        return request.future

    def prepare(self, preparations: Iterable[Callable[[], None]]) -> None:
        """Runs functions, one at a time, while no documents wait."""
        with self._changed:
            self._start()
            self._preparations = iter(preparations)
            self._changed.notify_all()

    def stop(self) -> None:
        """Ends the threads after their current call; requests that wait get UnavailableError."""
        with self._changed:
            self._is_stopping = True
            waiting = [future for _, future in self._queries] + [request.future for request in self._documents]
            self._queries.clear()
            self._documents.clear()
            self._changed.notify_all()
        for future in waiting:
            _settle(future, UnavailableError("the server is stopping", close=True))

    def close(self) -> None:
        """Stops, and waits a moment for the threads."""
        self.stop()
        for thread in self._threads:
            thread.join(_JOIN_SECONDS)

    def _start(self) -> None:
        if self._is_stopping:
            raise UnavailableError("the server is stopping", close=True)
        if not self._threads:
            for work, name in ((self._search, "searches"), (self._embed, "documents")):
                self._threads.append(threading.Thread(target=work, name=f"newsembed {name}", daemon=True))
                self._threads[-1].start()

    def _search(self) -> None:
        """The thread of searches."""
        shared = False
        while batch := self._next_queries(wait=shared):
            shared = len(batch) > 1
            self._encode_queries([one for one in batch if not one[1].cancelled()])
            with self._changed:
                self._searching = 0
                self._changed.notify_all()

    def _next_queries(self, *, wait: bool) -> list[tuple[str, Future[FloatArray]]]:
        """Takes the queries of the next call; none when the batcher stops."""
        with self._changed:
            self._changed.wait_for(lambda: self._queries or self._is_stopping)
            if wait:
                seconds = self.options.wait_ms / 1_000
                self._changed.wait_for(lambda: len(self._queries) >= MAX_QUERIES or self._is_stopping, seconds)
            batch = [self._queries.popleft() for _ in range(min(len(self._queries), MAX_QUERIES))]
            self._searching = len(batch)
            return batch

    def _encode_queries(self, batch: list[tuple[str, Future[FloatArray]]]) -> None:
        if not batch:
            return
        try:
            embeddings = self._encoder.encode_queries([text for text, _ in batch])
        except Exception as error:  # noqa: BLE001 - whatever it is, the requests get it
            if len(batch) == 1:
                _settle(batch[0][1], error)
            else:  # only the documents that cause it may fail
                for one in batch:
                    self._encode_queries([one])
        else:
            for (_, future), embedding in zip(batch, embeddings, strict=True):
                _settle(future, embedding)

    def _embed(self) -> None:
        """The thread of documents."""
        while True:
            with self._changed:
                while not (self._documents or self._is_stopping):
                    preparation = next(self._preparations, None)
                    if preparation is None:
                        self._changed.wait()
                    else:
                        self._let_searches_finish()
                        self._changed.release()
                        self._run(preparation)
                        self._changed.acquire()
                self._let_searches_finish()
                if self._is_stopping:
                    return
                chosen = self._next_slice()
            self._encode_slice(chosen)

    def _run(self, preparation: Callable[[], None]) -> None:
        try:
            preparation()
        except Exception:  # noqa: BLE001 - an optional step; requests get the same error and report it
            _LOG.warning("preparing the encoder failed; requests prepare it instead", exc_info=True)
            self._preparations = iter(())

    def _let_searches_finish(self) -> None:
        end = time.monotonic() + PATIENCE_SECONDS
        while (self._queries or self._searching) and not self._is_stopping:
            left = end - time.monotonic()
            if left <= 0:
                return
            self._changed.wait(left)

    def _next_slice(self) -> _Slice:
        """Takes the next documents from the front of the queue; a request with more goes to its end."""
        chosen: _Slice = []
        rows, characters = self.options.documents, self.options.documents * CHARACTERS_PER_DOCUMENT
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

    def _encode_slice(self, chosen: _Slice) -> None:
        if not chosen:
            return
        titles = [request.titles[number] for request, numbers in chosen for number in numbers]
        bodies = [request.bodies[number] for request, numbers in chosen for number in numbers]
        try:
            embeddings = self._encoder.encode(titles, bodies)
        except Exception as error:  # noqa: BLE001 - whatever it is, the requests get it
            if len(chosen) == 1:
                _settle(chosen[0][0].future, error)
            else:  # only the documents that cause it may fail
                for one in chosen:
                    self._encode_slice([one])
            return
        start = 0
        for request, numbers in chosen:
            request.embeddings[numbers] = embeddings[start : start + len(numbers)]
            start += len(numbers)
            request.unfinished -= len(numbers)
            if not request.unfinished:
                _settle(request.future, request.embeddings)


def _settle(future: "Future[FloatArray]", outcome: FloatArray | Exception) -> None:
    """Gives a future its result or error, unless it was cancelled or has one."""
    with contextlib.suppress(InvalidStateError):
        if isinstance(outcome, Exception):
            future.set_exception(outcome)
        else:
            future.set_result(outcome)


def add_batch_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds ``--batch_documents`` and ``--batch_wait_ms``."""
    default = BatchOptions()
    parser.add_argument(
        "--batch_documents",
        type=int,
        default=default.documents,
        metavar="N",
        help="documents that are embedded at once; searches go before the next ones "
        f"(default: {default.documents}; fewer for faster searches, more for faster /embed)",
    )
    parser.add_argument(
        "--batch_wait_ms",
        type=float,
        default=default.wait_ms,
        metavar="MS",
        help=f"milliseconds that a search waits for others to be embedded with, while there are several clients "
        f"(default: {default.wait_ms:g})",
    )


def batch_options(args: argparse.Namespace) -> BatchOptions:
    """What the options say.

    Raises:
      InputError: for a number of documents below 1, or a time below 0.
    """
    require_option(args.batch_documents >= 1, "batch_documents", args.batch_documents, "at least 1", "serve")
    fits = 0 <= args.batch_wait_ms <= 1_000
    require_option(fits, "batch_wait_ms", args.batch_wait_ms, "0 to 1000", "serve")
    return BatchOptions(args.batch_documents, args.batch_wait_ms)

"""The gate in front of the routes: it bounds what is received, how long that takes, and how many requests wait."""

import asyncio
import collections
import contextlib
from collections.abc import Awaitable, Iterator
from typing import Final, TypeVar

from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from .limits import Limits, RefusedError, TooLargeError, UnavailableError

_SEARCHES: Final = "searches"
KINDS: Final = {  # of the routes that use the encoder or the index, as messages call them
    "/embed": "requests to embed",
    "/search": _SEARCHES,
    "/events": _SEARCHES,
    "/event": _SEARCHES,
    "/map": _SEARCHES,
}
_READING: Final = "bodies"
_Result = TypeVar("_Result")


class Admission:
    """Counts the requests inside, and refuses new ones when they are too many or the server stops.

    Args:
      limits: of requests.
    """

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self._inside: collections.Counter[str] = collections.Counter()
        self._deadlines: set[asyncio.Timeout] = set()
        self._is_stopping = False

    @property
    def is_stopping(self) -> bool:
        """Whether the server stops."""
        return self._is_stopping

    def stop(self) -> None:
        """Refuses all requests from now on, also those whose body is not complete. Called in the event loop."""
        self._is_stopping = True
        for deadline in self._deadlines:
            deadline.reschedule(asyncio.get_running_loop().time())

    def inside(self) -> dict[str, int]:
        """How many requests of each kind are inside now."""
        return dict(self._inside)

    @contextlib.contextmanager
    def enter(self, kind: str) -> Iterator[None]:
        """Holds one of the places of this kind.

        Raises:
          UnavailableError: if all are taken or the server stops.
        """
        if self._is_stopping:
            raise UnavailableError("the server is stopping", close=True)
        if self._inside[kind] >= self.limits.max_queue:
            raise UnavailableError(f"{self.limits.max_queue} {kind} are waiting already; try again later")
        self._inside[kind] += 1
        try:
            yield
        finally:
            self._inside[kind] -= 1

    async def read(self, scope: Scope, receive: Receive) -> bytes | None:
        """The body of a request; None if the client went away.

        Raises:
          TooLargeError: as soon as too many bytes are declared or received.
          UnavailableError: if the server stops.
          RefusedError: 408, if it takes too long.
        """
        most = self.limits.max_bytes
        refusal = TooLargeError("bytes in a request", most, "max_bytes", "send fewer documents at a time")
        declared = Headers(scope=scope).get("content-length", "")
        if declared.isdecimal() and int(declared) > most:
            raise refusal
        parts, size = list[bytes](), 0
        try:
            async with self._deadline():
                while True:
                    message = await receive()
                    if message["type"] != "http.request":
                        return None
                    parts.append(message.get("body", b""))
                    size += len(parts[-1])
                    if size > most:
                        raise refusal
                    if not message.get("more_body", False):
                        return b"".join(parts)
        except TimeoutError as error:
            if self._is_stopping:
                raise UnavailableError("the server is stopping", close=True) from error
            seconds = f"{self.limits.read_seconds:g}"
            detail = f"the body of the request did not arrive in {seconds} seconds (--read_seconds of the server)"
            raise RefusedError(408, detail, headers={"Connection": "close"}) from error

    @contextlib.asynccontextmanager
    async def _deadline(self) -> "collections.abc.AsyncIterator[None]":
        async with asyncio.timeout(self.limits.read_seconds) as deadline:
            self._deadlines.add(deadline)
            try:
                yield
            finally:
                self._deadlines.discard(deadline)


class Gate:
    """ASGI middleware: receives a body as a whole within the limits, then lets the request wait among its kind.

    A body has a place of its own while it is received, so that slow senders leave the places of others free.

    Args:
      app: what answers.
      admission: shared with the server, which stops it.
    """

    def __init__(self, app: ASGIApp, admission: Admission) -> None:
        self._app = app
        self._admission = admission

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers one request."""
        if scope["type"] != "http" or scope["path"] not in KINDS:
            await self._app(scope, receive, send)
            return
        try:
            if scope["method"] == "POST":
                with self._admission.enter(_READING):
                    body = await self._admission.read(scope, receive)
                if body is None:
                    return
                receive = _replayed(body, receive)
            with self._admission.enter(KINDS[scope["path"]]):
                await self._app(scope, receive, send)
        except RefusedError as refusal:
            await refusal.response()(scope, receive, send)


def _replayed(body: bytes, receive: Receive) -> Receive:
    """A receiver that gives a body that was received before, then what comes after it."""
    waiting = [body]

    async def receive_again() -> Message:
        if waiting:
            return {"type": "http.request", "body": waiting.pop(), "more_body": False}
        return await receive()

    return receive_again


async def unless_gone(request: Request, work: Awaitable[_Result]) -> _Result:
    """The result of `work`, which is cancelled if the client disconnects first.

    Args:
      request: whose body was received.
      work: what the client waits for.

    Raises:
      RefusedError: if the client went away.
    """
    task, gone = asyncio.ensure_future(work), asyncio.ensure_future(_gone(request))
    try:
        await asyncio.wait({task, gone}, return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            return task.result()
        raise RefusedError(499, "the client closed the connection")  # nobody receives it
    finally:
        task.cancel()
        gone.cancel()


async def _gone(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass

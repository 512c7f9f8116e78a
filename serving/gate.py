"""In front of the routes of a server: who is answered, how much is received, how many wait, and what is counted."""

import asyncio
import collections
import contextlib
import dataclasses
import datetime
import hmac
import json
import math
import os
import re
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from typing import Any, Final, Self, TextIO, TypeVar

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import ClientDisconnect, HTTPConnection, Request
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from .. import __version__
from ..errors import InputError
from ..formats.codings import ACCEPTED, TooLargeError, undo_codings
from ..formats.command_line import Options, option

SHORTEST: Final = 16  # characters
_REMEDY: Final = 'make one with python -c "import secrets; print(secrets.token_urlsafe(32))"'


def read_key(path: str) -> str:
    """The key of a file, without white space around it.

    Raises:
      InputError: if the file cannot be read, or :func:`check_key` refuses its content.
    """
    try:
        with open(path, encoding="utf-8") as file:
            content = file.read()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not a text file"
        raise InputError(f"the API key cannot be read: {reason}", path=path, remedy="name a readable file") from None
    return check_key(content, path)


def check_key(key: str, source: str) -> str:
    """The key without white space around it.

    Args:
      key: of any length.
      source: the file or variable that holds it, for the message.

    Raises:
      InputError: if it is too short, or has other characters than visible ASCII, which a header cannot hold.
    """
    key = key.strip()
    if len(key) < SHORTEST:
        raise InputError(f"an API key needs at least {SHORTEST} characters", path=source, remedy=_REMEDY)
    if not all("!" <= character <= "~" for character in key):
        raise InputError("an API key holds visible ASCII characters only", path=source, remedy=_REMEDY)
    return key


LOCAL_HOSTS: Final = ("localhost", "127.0.0.1", "[::1]")
ANY_HOST: Final = "*"
KEY_VARIABLE: Final = "NEWSEMBED_API_KEY"
# These hold no data.
OPEN_PATHS: Final = frozenset({"/", "/style.css", "/page.css", "/page.js", "/healthz", "/docs", "/openapi.json"})
_PREDICT: Final = "/predict"
KINDS: Final = {  # of the routes that use the encoder or the index, as messages call them
    **dict.fromkeys(("/embed", _PREDICT), "requests to embed"),
    **dict.fromkeys(("/search", "/feed.atom", "/feed.json", "/events", "/event", "/map"), "searches"),
}
_READING: Final = "bodies"
_CODINGS: Final = frozenset({*ACCEPTED.split(", "), "x-gzip"})  # of bodies
_RETRY: Final = {"Retry-After": "1"}  # seconds that a refused client is told to wait
_LONGEST_NAME: Final = 253  # characters of a host name
# What is counted by name: a scan of made-up paths must not create one series for each.
_NAMED: Final = frozenset(
    {*KINDS, "/", "/healthz", "/metrics", "/docs", "/openapi.json"}
    | {"GET", "POST", "HEAD", "OPTIONS", "PUT", "DELETE", "PATCH"}
)
_OTHER: Final = "other"
_SECONDS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
_NO_ANSWER: Final = 499  # the client went away before the answer began
_ALWAYS: Final = {"X-Content-Type-Options": "nosniff", "Cache-Control": "no-store"}  # unless a route says otherwise
_Result = TypeVar("_Result")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Limits(Options):
    """Bounds of requests to ``newsembed serve``. The encoder reads the first tokens of a document only."""

    max_bytes: int = option(8 * 2**20, "bytes of the body of a request", gt=0)
    max_documents: int = option(256, "documents of a request", gt=0)
    max_characters: int = option(200_000, "characters of a document (title and body together) or of a query", gt=0)
    max_tokens: int = option(
        131_072, "tokens that the encoder reads of the documents of a request, where it can count them", gt=0
    )
    max_queue: int = option(
        128, "searches, and requests to /embed, that may wait at once; more get 503 with Retry-After", gt=0
    )
    read_seconds: float = option(
        30.0,
        "time to receive the headers of a request, and again its body (later it gets 408); a connection that sends or "
        "takes nothing for so long is closed",
        gt=0,
        lt=math.inf,
        metavar="SECONDS",
    )


@dataclasses.dataclass(frozen=True)
class Access:
    """Who is answered, and where that is written.

    Attributes:
      hosts: names in the header Host, without ports; "*" for any.
      key: the API key; None: requests need no key.
      log: receives a line of JSON for each request; None: nothing is written.
    """

    hosts: tuple[str, ...] = LOCAL_HOSTS
    key: str | None = dataclasses.field(default=None, repr=False)
    log: TextIO | None = None


class RefusedError(Exception):
    """A request that the server refuses.

    Args:
      status: of HTTP.
      detail: the reason, for people.
      headers: of the answer.
      facts: further JSON values of the answer.
    """

    def __init__(self, status: int, detail: str, headers: Mapping[str, str] | None = None, **facts: int | str) -> None:
        super().__init__(status, detail)
        self.status, self.detail, self.headers, self.facts = status, detail, headers, facts

    def response(self) -> JSONResponse:
        """The answer, ``{"detail": …}`` with the facts."""
        return JSONResponse({"detail": self.detail, **self.facts}, self.status, self.headers)


def too_large(what: str, limit: int, name: str, advice: str) -> RefusedError:
    """The refusal of a request over a limit: 413, with the limit and the option that raises it.

    Args:
      what: what is limited, for example "bytes in a request".
      limit: the most that is accepted.
      name: of the field of :class:`Limits`.
      advice: what the client can do, an imperative.
    """
    detail = f"more than {limit} {what}; {advice}, or start the server with a larger --{name}"
    return RefusedError(413, detail, limit=limit, option=f"--{name}")


def unavailable(reason: str) -> RefusedError:
    """The refusal of a request that may be sent again later: 503 with Retry-After."""
    return RefusedError(503, reason, _RETRY)


def stopping() -> RefusedError:
    """The refusal of a request to a server that stops, which also ends the connection."""
    return RefusedError(503, "the server is stopping", {**_RETRY, "Connection": "close"})


def no_index() -> RefusedError:
    """The refusal of a search, where there is nothing to search."""
    return RefusedError(404, "this server has no index; start it with --index")


class Gate:
    """ASGI middleware, the outermost: compares host and key, receives a body, lets a request wait among its kind.

    A body has a place of its own while it is received, so that slow senders leave the places of others free. Every
    answer is counted, refusals too, and written to the log without query, body and key, which are private.

    Args:
      limits: of requests.
      access: who is answered.
      documents: returns how many documents the index has now.

    Attributes:
      is_stopping: whether the server stops.
    """

    def __init__(
        self, limits: Limits | None = None, access: Access | None = None, documents: Callable[[], int] = lambda: 0
    ) -> None:
        self.limits, self._access = limits or Limits(), access or Access()
        self._hosts = [name.lower() for name in self._access.hosts]
        self.is_stopping = False
        self._app: ASGIApp
        self._inside = collections.Counter[str]()
        self._deadlines = set[asyncio.Timeout]()
        self._registry = CollectorRegistry()
        named: dict[str, Any] = {"registry": self._registry}
        labels = ("route", "method")
        took = "From the headers of a request to the end of its answer."
        waits = "Requests that are being received, wait or are being computed."
        self._requests = Counter("newsembed_requests", "Requests that were answered.", (*labels, "status"), **named)
        self._seconds = Histogram("newsembed_request_seconds", took, labels, buckets=_SECONDS, **named)
        self._waiting = Gauge("newsembed_requests_inside", waits, ("kind",), **named)
        Gauge("newsembed_index_documents", "Documents in the index.", **named).set_function(documents)
        info = Gauge("newsembed_info", "1, with the version of the program.", ("version",), **named)
        info.labels(__version__).set(1)

    def around(self, app: ASGIApp) -> Self:
        """Is in front of an application from now on."""
        self._app = app
        return self

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started, status, sent = time.perf_counter(), _NO_ANSWER, 0

        async def noted(message: Message) -> None:
            nonlocal status, sent
            status = message.get("status", status)
            sent += len(message.get("body", b""))
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _ALWAYS.items():
                    headers.setdefault(name, value)
            await send(message)

        try:
            await self._answer(scope, receive, noted)
        except RefusedError as refusal:
            await refusal.response()(scope, receive, noted)
        except Exception:
            status = 500
            raise
        finally:
            self._count(scope, status, time.perf_counter() - started, sent)

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._check(HTTPConnection(scope))
        if scope["method"] == "HEAD":  # the same as GET, without the content (RFC 9110, 9.3.2)
            scope, send = {**scope, "method": "GET"}, _without_content(send)
        if scope["path"] not in KINDS:
            await self._app(scope, receive, send)
            return
        if scope["method"] == "POST":
            with self._enter(_READING):
                body = await self._read(scope, receive)
            if body is None:
                return
            sent = Headers(scope=scope)
            is_coded = "content-encoding" in sent
            # As TensorFlow Serving, which reads JSON of any content type; a browser says which page sends a form.
            if scope["path"] == _PREDICT and "origin" not in sent:
                sent = Headers({**sent, "content-type": "application/json"})
            body = await run_in_threadpool(self._json, sent, body) if is_coded else self._json(sent, body)
            headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
            given = [header for header in scope["headers"] if not header[0].startswith(b"content-")]
            scope, receive = {**scope, "headers": given + headers}, _replayed(body, receive)
        with self._enter(KINDS[scope["path"]]):
            await self._app(scope, receive, send)

    def _check(self, request: HTTPConnection) -> None:
        """Refuses another host name than the allowed ones, and requests for data without the key."""
        given = request.headers.get("host", "")
        host = re.sub(r":\d*$", "", given).lower()
        if not any(name in (ANY_HOST, host) or (name[:2] == "*." and host.endswith(name[1:])) for name in self._hosts):
            shown = repr(given[:_LONGEST_NAME])
            detail = f"this server does not answer to the host name {shown}; start it with --allowed_host to add it"
            raise RefusedError(400, detail, option="--allowed_host")
        if request.scope["path"] not in OPEN_PATHS and not self.has_key(request):
            detail = "send the header `Authorization: Bearer KEY` with the API key of this server"
            raise RefusedError(401, detail, {"WWW-Authenticate": "Bearer"})

    def has_key(self, request: HTTPConnection) -> bool:
        """Whether a request has the key, if one is needed; the time does not tell how much of a wrong key is right."""
        if self._access.key is None:
            return True
        scheme, _, given = request.headers.get("authorization", "").partition(" ")
        return hmac.compare_digest(given.strip().encode(), self._access.key.encode()) and scheme.lower() == "bearer"

    def stop(self) -> None:
        """Refuses all requests from now on, also those whose body is not complete. Called in the event loop."""
        self.is_stopping = True
        for deadline in self._deadlines:
            deadline.reschedule(asyncio.get_running_loop().time())

    @contextlib.contextmanager
    def _enter(self, kind: str) -> Iterator[None]:
        """Holds one of the places of this kind, unless all are taken or the server stops."""
        if self.is_stopping:
            raise stopping()
        if self._inside[kind] >= self.limits.max_queue:
            raise unavailable(f"{self.limits.max_queue} {kind} are waiting already; try again later")
        self._inside[kind] += 1
        try:
            yield
        finally:
            self._inside[kind] -= 1

    async def _read(self, scope: Scope, receive: Receive) -> bytes | None:
        """The body of a request, unless it is too large, too slow, or the server stops; None if the client went."""
        most, parts, size = self.limits.max_bytes, list[bytes](), 0
        refusal = too_large("bytes in a request", most, "max_bytes", "send fewer documents at a time")
        declared = Headers(scope=scope).get("content-length", "")
        if declared.isdecimal() and int(declared) > most:
            raise refusal
        deadline = asyncio.timeout(self.limits.read_seconds)
        self._deadlines.add(deadline)
        try:
            async with deadline:
                async for part in Request(scope, receive).stream():
                    parts.append(part)
                    size += len(part)
                    if size > most:
                        raise refusal
            return b"".join(parts)
        except ClientDisconnect:
            return None
        except TimeoutError as error:
            if self.is_stopping:
                raise stopping() from error
            seconds = f"{self.limits.read_seconds:g}"
            detail = f"the body of the request did not arrive in {seconds} seconds (--read_seconds of the server)"
            raise RefusedError(408, detail, {"Connection": "close"}) from error
        finally:
            self._deadlines.discard(deadline)

    def _json(self, headers: Headers, body: bytes) -> bytes:
        """The body of a request, which is JSON by its header, without content codings (RFC 9110, 8.3 and 8.4)."""
        kind = headers.get("content-type", "application/json").partition(";")[0]
        if not re.fullmatch(r"application/(?:[\w.-]+\+)?json", kind.strip().lower()):
            shown = kind.strip() or "none"
            detail = f"got the content type {shown}: send the header content-type: application/json"
            raise RefusedError(415, detail, {"Accept": "application/json"})
        names = [name.strip().lower() for name in ",".join(headers.getlist("content-encoding")).split(",")]
        names = [name for name in names if name not in ("", "identity")]
        if unknown := [name for name in names if name not in _CODINGS]:
            detail = f"got the content coding {unknown[0]}, expected {ACCEPTED}"
            raise RefusedError(415, detail, {"Accept-Encoding": ACCEPTED})
        try:
            content, problem = undo_codings(body, ",".join(names), self.limits.max_bytes)
        except TooLargeError as error:
            advice = "send fewer documents at a time"
            raise too_large("bytes in a request, decoded", self.limits.max_bytes, "max_bytes", advice) from error
        if problem:
            raise RefusedError(400, f"the body is not as its header Content-Encoding says: {problem}")
        return content

    def _count(self, scope: Scope, status: int, seconds: float, sent: int) -> None:
        route, method = (name if name in _NAMED else _OTHER for name in (scope["path"], scope["method"]))
        self._requests.labels(route, method, str(status)).inc()
        self._seconds.labels(route, method).observe(seconds)
        if self._access.log is None:
            return
        line = {
            "time": datetime.datetime.now(datetime.UTC).isoformat(timespec="milliseconds"),
            "client": (scope.get("client") or [None])[0],
            "method": scope["method"],
            "path": scope["path"],
            "status": status,
            "seconds": round(seconds, 6),
            "bytes": sent,
        }
        print(json.dumps(line), file=self._access.log, flush=True)

    def metrics(self) -> Response:
        """The answer of ``GET /metrics``, in the format of Prometheus."""
        for kind, count in self._inside.items():
            self._waiting.labels(kind).set(count)
        return Response(generate_latest(self._registry), media_type=CONTENT_TYPE_LATEST)


def _without_content(send: Send) -> Send:
    async def send_head(message: Message) -> None:
        await send({**message, "body": b""} if message["type"] == "http.response.body" else message)

    return send_head


def _replayed(body: bytes, receive: Receive) -> Receive:
    """A receiver that gives a body that was received before, then what comes after it."""
    waiting = [body]

    async def receive_again() -> Message:
        if waiting:
            return {"type": "http.request", "body": waiting.pop(), "more_body": False}
        return await receive()

    return receive_again


async def unless_gone(request: Request, work: Awaitable[_Result]) -> _Result:
    """The result of `work`, which is cancelled if the client of a received request disconnects first."""

    async def gone() -> None:
        while (await request.receive())["type"] != "http.disconnect":
            pass

    task, left = asyncio.ensure_future(work), asyncio.ensure_future(gone())
    try:
        await asyncio.wait({task, left}, return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            return task.result()
        raise RefusedError(_NO_ANSWER, "the client closed the connection")  # nobody receives it
    finally:
        task.cancel()
        left.cancel()


def allowed_hosts(host: str, names: Sequence[str]) -> tuple[str, ...]:
    """The host names that are answered, as they are in the header Host, without ports.

    Args:
      host: the address to listen on.
      names: further ones.

    Raises:
      InputError: for a name with a port, or a ``*`` elsewhere than in front.
    """
    for name in names:
        bare = name.removeprefix("*.")
        has_port = not name.startswith("[") and ":" in name
        if name != ANY_HOST and (not bare or "*" in bare or has_port or "/" in name):
            problem = f"got {name!r}, expected a host name without a port"
            remedy = f"give a name such as search.example.org, *.example.org or {ANY_HOST}"
            raise InputError(problem, field="--allowed_host", remedy=remedy)
    return tuple(dict.fromkeys([*LOCAL_HOSTS, f"[{host}]" if ":" in host else host.lower(), *names]))


def api_key(path: str) -> str | None:
    """The key of ``--api_key_file`` or of the environment; None if neither is given."""
    if path:
        return read_key(path)
    key = os.environ.get(KEY_VARIABLE)
    return None if key is None else check_key(key, KEY_VARIABLE)

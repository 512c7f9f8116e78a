r"""``newsembed serve``: an HTTP server that embeds and searches, with a page to explore.

Example::

    newsembed serve --saved_model work/saved --index work/index --port 8000
    curl -s localhost:8000/embed -H 'content-type: application/json' \
        -d '{"documents": [{"title": "Storm", "body": "It rained."}]}'
    curl -s 'localhost:8000/search?q=storm+hits+coast&count=5&since=2024-01-01'
    curl -s 'localhost:8000/search?q=storm&mode=words&language=en&publisher=news.example'

Routes: ``POST /embed``, ``POST /predict``, ``GET`` and ``POST /search``, ``GET /events``, ``GET /event``, ``GET /map``,
``GET /healthz``, ``GET /metrics`` (for Prometheus), ``GET /`` (the page), ``GET /docs`` (the API).
"""

import asyncio
import contextlib
import dataclasses
import functools
import json
import math
import resource
import socket
import sys
from collections.abc import AsyncIterator, Callable
from typing import Annotated, Any, Final

import h11
import jinja2
import numpy as np
import uvicorn
from fastapi import Depends, FastAPI, Query, Request, Response
from fastapi.concurrency import run_in_threadpool
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, JSONResponse
from fastapi.security import HTTPBearer
from pydantic_core import to_json
from uvicorn.protocols.http.h11_impl import H11Protocol

from .. import __version__
from ..errors import InputError
from ..formats.command_line import option
from .batching import BatchOptions
from .bodies import (
    EmbedRequest,
    EmbedResponse,
    LargeBodyRoute,
    PredictRequest,
    PredictResponse,
    SearchHit,
    SearchRequest,
    SearchResponse,
)
from .events import EventOptions
from .explorer import Books, add_explorer
from .explorer.feed import add_feeds
from .gate import (
    ANY_HOST,
    KEY_VARIABLE,
    LOCAL_HOSTS,
    Access,
    Gate,
    Limits,
    RefusedError,
    allowed_hosts,
    api_key,
    unless_gone,
)
from .index import DocumentIndex
from .interface import FloatArray, TextEncoder
from .search import index_encoder
from .service import RELOAD_SECONDS, Service, Watcher, called
from .specs import PROMPT_HELP, ReadingOptions, encoder_from_spec

MAX_PORT: Final = 65_535
STOP_SECONDS: Final = 5  # for requests that are computed when the server stops
_BACKLOG: Final = 2_048  # connections that the system holds until they are accepted


def create_app(service: Service, limits: Limits | None = None, access: Access | None = None) -> FastAPI:
    """The web application; nothing is loaded here.

    Args:
      service: what the routes compute.
      limits: of requests.
      access: who is answered; by default this machine only.

    Returns:
      The application; its ``state`` holds `service` and `gate`, which stop it.
    """
    gate = Gate(limits, access, lambda: len(service.index) if service.index else 0)

    @contextlib.asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        yield
        service.close()

    # In the description of the API only: the gate compares the key, before a body is received.
    described = [Depends(HTTPBearer(auto_error=False))] if access and access.key else []
    app = FastAPI(
        title="newsembed",
        version=__version__,
        docs_url=None,
        redoc_url=None,
        lifespan=lifespan,
        dependencies=described,
    )
    app.state.service, app.state.gate = service, gate
    app.add_middleware(gate.around)
    _add_errors(app)
    _add_routes(app, service, gate)
    add_explorer(app, service.books, lambda: service.index)
    return app


def _add_routes(app: FastAPI, service: Service, gate: Gate) -> None:
    async def vectors(request: EmbedRequest, connection: Request) -> tuple[bytes, TextEncoder]:
        titles, bodies = await called(len(request.documents), request.parts, gate.limits)
        await service.check_tokens(titles, bodies, gate.limits.max_tokens)
        embeddings, encoder = await unless_gone(connection, service.embed(titles, bodies))
        return await run_in_threadpool(_as_json, embeddings), encoder

    async def embed(request: EmbedRequest, connection: Request) -> Response:
        """A vector of length 1 for each document; title or body may be empty."""
        rows, encoder = await vectors(request, connection)
        facts = to_json({"dimensions": encoder.dimensions, "encoder": encoder.digest})
        return Response(b'{"embeddings":' + rows + b"," + facts[1:], media_type="application/json")

    app.router.add_api_route(
        "/embed", embed, methods=["POST"], response_model=EmbedResponse, route_class_override=LargeBodyRoute
    )

    @app.post("/predict", response_model=PredictResponse)
    async def predict(request: PredictRequest, connection: Request) -> Response:
        """The same in the form of Vertex AI and TensorFlow Serving, for their clients."""
        rows, _ = await vectors(EmbedRequest(documents=request.instances), connection)
        return Response(b'{"predictions":' + rows + b"}", media_type="application/json")

    @app.get("/search")
    async def search_by_query(request: Annotated[SearchRequest, Query()]) -> SearchResponse:
        """The articles nearest to words (`q`), or to an article of the index (`url`); one of the two is needed.

        `mode` is hybrid (the default), words or vectors. `since` and `until` are days
        (YYYY-MM-DD, inclusive); `days` counts from the byline date of the article of `url`, in both directions.
        """
        request.check(gate.limits)
        found = await service.search(request)
        events = service.books.events_of([hit.document.doc_id for hit in found.hits])
        hits = [SearchHit(**hit.to_dict(), event_id=event) for hit, event in zip(found.hits, events, strict=True)]
        notes, facets = list(found.notes), dict(found.facets)
        return SearchResponse(hits=hits, mode=found.mode, notes=notes, facets=facets, matches=found.matches)

    @app.post("/search")
    async def search_by_body(request: SearchRequest) -> SearchResponse:
        """The same as GET /search, for queries that are too long for an address."""
        return await search_by_query(request)

    add_feeds(app, search_by_query)

    @app.get("/healthz")
    async def healthz(request: Request) -> dict[str, Any]:
        """Version, encoder, documents and modes of search; `{"status": "ok"}` alone for requests without the key."""
        return service.health() if gate.has_key(request) else {"status": "ok"}

    @app.get("/docs", include_in_schema=False)
    def docs() -> HTMLResponse:
        schema, pages = app.openapi(), jinja2.Environment(loader=jinja2.PackageLoader(__package__, ""), autoescape=True)
        page = pages.get_template("api.html").render(schema=schema, schemas=schema["components"]["schemas"])
        return HTMLResponse(page)

    @app.get("/metrics")
    def metrics() -> Response:
        """Requests, their seconds and the size of the index, in the text format of Prometheus."""
        return gate.metrics()


def _add_errors(app: FastAPI) -> None:
    """Makes answers of the exceptions that routes raise."""

    @app.exception_handler(RefusedError)
    def refuse(_: Request, error: RefusedError) -> JSONResponse:
        return error.response()

    @app.exception_handler(InputError)
    def reject(_: Request, error: InputError) -> JSONResponse:
        return JSONResponse({"detail": str(error)}, 422)

    @app.exception_handler(RequestValidationError)
    def describe(_: Request, error: RequestValidationError) -> Response:
        """Returns 422 without FastAPI's echo of the input, which may be large."""
        details = [{name: part[name] for name in ("type", "loc", "msg")} for part in error.errors()]
        # Half a surrogate pair in a key, which JSON can smuggle in, has no UTF-8 form.
        text = json.dumps({"detail": details}, ensure_ascii=False).encode("utf-8", "replace")
        return Response(text, 422, media_type="application/json")


def _as_json(embeddings: FloatArray) -> bytes:
    """Rows of numbers as JSON, one by one, so that a large answer leaves other threads their turn."""
    if not np.isfinite(embeddings).all():
        raise ValueError("the encoder returned NaN or infinity; use a checkpoint from before training diverged")
    return b"[" + b",".join(to_json(row.tolist()) for row in embeddings) + b"]"


@dataclasses.dataclass(frozen=True, kw_only=True)
class ServeOptions(ReadingOptions):
    """The options of ``newsembed serve``."""

    prompt: str | None = option(None, PROMPT_HELP.format("query (without --index: document of /embed)"), metavar="TEXT")
    index: str = option("", "what newsembed index or update wrote; without it there is no search", metavar="DIR|URI")
    reload_seconds: float = option(
        RELOAD_SECONDS, "look for a new version of the index this often, and serve it; 0 for never", ge=0, lt=math.inf
    )
    host: str = option("127.0.0.1", "address to listen on; by default this machine only")
    port: int = option(8000, "0 for any free one", ge=0, le=MAX_PORT)
    events: EventOptions = dataclasses.field(default_factory=EventOptions, metadata={"prefix": "event_"})
    access_log: str = option(
        "none",
        "json: a line on standard error for each request, without its query and body",
        choices=("none", "json"),
    )
    allowed_host: tuple[str, ...] = option(
        (),
        f"a host name that is answered besides {', '.join(LOCAL_HOSTS)} and --host; repeatable; *.example.org for all "
        f"names below, {ANY_HOST} for any name",
        repeated=True,
        metavar="NAME",
    )
    api_key_file: str = option(
        "",
        "a file with the API key that clients must send as `Authorization: Bearer KEY` "
        f"(or the environment variable {KEY_VARIABLE}; default: no key)",
        metavar="FILE",
    )
    batches: BatchOptions = dataclasses.field(default_factory=BatchOptions, metadata={"prefix": ""})
    limits: Limits = dataclasses.field(default_factory=Limits, metadata={"prefix": ""})


OPTIONS: Final = ServeOptions


def run(args: ServeOptions, notice: Callable[[DocumentIndex], str] = lambda _: "") -> int:
    """Runs the server until it is stopped.

    Args:
      args: its options.
      notice: what the page says for now about the index that is served; "" for nothing.
    """
    log = sys.stderr if args.access_log == "json" else None
    access = Access(allowed_hosts(args.host, args.allowed_host), api_key(args.api_key_file), log)
    if ANY_HOST in access.hosts:
        print("warning: any host name is answered, so pages of other sites can read answers", file=sys.stderr)
    for opened in _bind(args.host, args.port):  # a port in use is an error before the model is read
        opened.close()
    print(f"loading {args.index or args.spec or 'nothing'}", file=sys.stderr, flush=True)
    service = load_service(args)
    service.notice = notice
    print(f"tokenizer: {service.encoder.tokenizer_name}; the encoder compiles its first batches", flush=True)
    service.prepare()

    def encoder_of(index: DocumentIndex) -> TextEncoder:
        return index_encoder(index, max_length=args.max_length, query_prompt=args.prompt)

    known = {} if args.spec else {"encoder_of": encoder_of}
    with Watcher(service, args.reload_seconds, **known) if service.index else contextlib.nullcontext():
        listen(create_app(service, args.limits, access), args.host, args.port)
    return 0


def load_service(args: ServeOptions) -> Service:
    """The encoder and index that the options name.

    Raises:
      InputError: if neither an encoder nor an index that names one was given, or they do not belong together.
    """
    if args.index:
        if args.long_documents:
            problem = "documents are read as the index says"
            raise InputError(problem, field="--long_documents", remedy="Build the index with this option.")
        index = DocumentIndex.load(args.index)
        encoder = index_encoder(index, args.spec, max_length=args.max_length, query_prompt=args.prompt)
        return Service(encoder, index, args.batches, Books(args.events))
    if not args.spec:
        raise InputError("nothing to serve", field="--model", remedy="give --model, --saved_model or --index")
    return Service(encoder_from_spec(args.spec, progress=False, **args.reading), options=args.batches)


def listen(app: FastAPI, host: str, port: int) -> None:
    """Answers requests until SIGINT or SIGTERM. Prints the address.

    Args:
      app: of :func:`create_app`.
      host: the address to listen on.
      port: 0 for any free one.

    Raises:
      InputError: if the address cannot be used.
    """
    config = uvicorn.Config(
        app,
        log_level="warning",
        access_log=False,
        http=functools.partial(Connection, seconds=app.state.gate.limits.read_seconds),
        ws="none",
        timeout_graceful_shutdown=STOP_SECONDS + 1,
    )
    with contextlib.suppress(KeyboardInterrupt):  # not raised where the parent process ignores Ctrl-C, as nohup does
        _Server(config, app, host).run(_bind(host, port))
    print("stopped", file=sys.stderr)


class _Server(uvicorn.Server):
    """Prints the address when requests are answered; refuses requests when it begins to stop.

    uvicorn would wait for half-sent requests, and end what is left with tracebacks.
    """

    def __init__(self, config: uvicorn.Config, app: FastAPI, host: str) -> None:
        super().__init__(config)
        self._state, self._host = app.state, f"[{host}]" if ":" in host else host

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if sockets:
            print(f"listening on http://{self._host}:{sockets[0].getsockname()[1]}", flush=True)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._state.gate.stop()  # new and half-sent requests
        late = asyncio.get_running_loop().call_later(STOP_SECONDS, self._state.service.batcher.stop)  # those that wait
        await super().shutdown(sockets)
        late.cancel()


def _bind(host: str, port: int) -> list[socket.socket]:
    """Sockets that listen, one for each address of the host, all with one port."""
    sockets = list[socket.socket]()
    try:
        for family, _, _, _, address in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM):
            chosen = sockets[0].getsockname()[1] if sockets else port
            sockets.append(socket.create_server((address[0], chosen), family=family, backlog=_BACKLOG))
    except OSError as error:
        for opened in sockets:
            opened.close()
        problem = f"cannot listen on {host}, port {port}: {error.strerror or error}"
        remedy = "choose a free port, and an address of this machine as --host"
        raise InputError(problem, field="--port", remedy=remedy) from error
    return sockets


_LINGER_SECONDS: Final = 1.0  # after an early answer: a client that still sends would lose it by an immediate reset
_FEWEST: Final = 16  # connections that are accepted whatever the system allows


class Connection(H11Protocol):
    """HTTP/1.1 with limits from the first byte.

    The headers of a request must arrive, and an answer must be taken, within a time. A connection is closed after an
    answer that came before the end of its request, such as 413. Where there are too many, the one that has waited
    longest for a request makes room. Bodies have their limit in `gate`.

    Args:
      seconds: to send headers, and to take the next piece of an answer.
      most: connections at a time; 0 for half of the descriptors of this process.
      **options: of uvicorn.
    """

    def __init__(self, *, seconds: float, most: int = 0, **options: Any) -> None:
        super().__init__(**options)
        self._limit_seconds = seconds
        self._most = most or max(_FEWEST, resource.getrlimit(resource.RLIMIT_NOFILE)[0] // 2)
        self._timer: asyncio.TimerHandle | None = None
        self.opened_at, self._is_ending = 0.0, False

    def connection_made(self, transport: asyncio.Transport) -> None:
        """Waits for a request; where there are too many connections, one is ended."""
        super().connection_made(transport)
        self.opened_at = self.loop.time()
        self._end_after(self._limit_seconds)
        if len(self.connections) > self._most:
            silent = [other for other in self.connections if isinstance(other, Connection) and other.is_silent]
            min(silent, key=lambda other: other.opened_at, default=self).transport.abort()

    @property
    def is_silent(self) -> bool:
        """Whether no request is being answered."""
        return not self.transport.is_closing() and (self.cycle is None or self.cycle.response_complete)

    def connection_lost(self, exc: Exception | None) -> None:
        """Ends the limit of time."""
        self._end_after(None)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Reads what the client sent, unless the connection is ending."""
        if self._is_ending:
            return
        before = self.cycle
        super().data_received(data)
        if self.cycle is not before:
            self._end_after(None)

    def on_response_complete(self) -> None:
        """Waits for the next request, or ends the connection if the client did not finish this one."""
        answered = self.cycle
        is_early = self.conn.their_state is h11.SEND_BODY
        super().on_response_complete()
        if self.transport.is_closing():
            self._end_after(self._limit_seconds)  # until the answer is taken
        elif is_early:
            self._is_ending = True
            self._unset_keepalive_if_required()
            with contextlib.suppress(OSError):  # the client has gone
                self.transport.write_eof()
            self._end_after(_LINGER_SECONDS)
        elif self.cycle is answered:  # else the next request was here already
            self._end_after(self._limit_seconds)

    def pause_writing(self) -> None:
        """The client takes no more of the answer."""
        super().pause_writing()
        self._end_after(self._limit_seconds)

    def resume_writing(self) -> None:
        """The client takes the answer again."""
        super().resume_writing()
        self._end_after(None)

    def _end_after(self, seconds: float | None) -> None:
        """Ends the connection after this time, unless this is called again; None for never."""
        if self._timer is not None:
            self._timer.cancel()
        self._timer = None if seconds is None else self.loop.call_later(seconds, self.transport.abort)

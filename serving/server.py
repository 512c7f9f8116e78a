r"""``newsembed serve``: an HTTP server that embeds and searches, with a page to explore.

Example::

    newsembed serve --saved_model work/saved --index work/index --port 8000
    curl -s localhost:8000/embed -H 'content-type: application/json' \
        -d '{"documents": [{"title": "Storm", "body": "It rained."}]}'
    curl -s 'localhost:8000/search?q=storm+hits+coast&count=5&since=2024-01-01'
    curl -s 'localhost:8000/search?q=storm&mode=words&language=en&publisher=news.example'

Routes: ``POST /embed``, ``GET`` and ``POST /search``, ``GET /events``, ``GET /event``, ``GET /map``, ``GET /healthz``,
``GET /metrics`` (for Prometheus), ``GET /`` (the page), ``GET /docs`` (the API).
"""

import argparse
import asyncio
import contextlib
import dataclasses
import socket
import sys
from collections.abc import AsyncIterator, Callable
from typing import TYPE_CHECKING, Annotated, Any, Final, TextIO

import numpy as np
from fastapi import Depends, FastAPI, Query, Request, Response
from fastapi.concurrency import run_in_threadpool
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, JSONResponse
from fastapi.security import HTTPBearer
from pydantic_core import to_json
from starlette.middleware.authentication import AuthenticationMiddleware

from .. import __version__
from ..errors import InputError, counted
from .access import ANY_HOST, LOCAL_HOSTS, HostCheck, KeyBackend, add_access_arguments, allowed_hosts, api_key, explain
from .api_page import api_page
from .batching import add_batch_arguments, batch_options
from .bodies import EmbedRequest, EmbedResponse, SearchHit, SearchRequest, SearchResponse
from .events import EventOptions
from .explorer import Books, add_explorer
from .gate import Admission, Gate, unless_gone
from .hybrid import Found
from .index import DocumentIndex
from .interface import FloatArray, TextEncoder
from .large_bodies import called, route_in_steps
from .limits import Limits, RefusedError, add_limit_arguments, limits_from
from .monitoring import Metrics, Monitor, log_stream
from .reload import DEFAULT_SECONDS, Watcher, load_current, version_of
from .search import index_encoder
from .service import Service
from .specs import add_encoder_arguments, add_long_documents_argument, encoder_from_spec, encoder_spec

if TYPE_CHECKING:
    import uvicorn

MAX_PORT: Final = 65_535
_BACKLOG: Final = 2_048  # connections that the system holds until they are accepted
STOP_SECONDS: Final = 5  # for requests that are computed when the server stops


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


def create_app(service: Service, limits: Limits | None = None, access: Access | None = None) -> FastAPI:
    """The web application; nothing is loaded here.

    Args:
      service: what the routes compute.
      limits: of requests.
      access: who is answered; by default this machine only.

    Returns:
      The application; its ``state`` holds `service` and `admission`, which stop it.
    """
    limits, access = limits or Limits(), access or Access()
    key = KeyBackend(access.key) if access.key else None
    # In the description of the API only: the middleware compares the key, before a body is received.
    described = [Depends(HTTPBearer(auto_error=False))] if key else []

    @contextlib.asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        yield
        service.close()

    app = FastAPI(title="newsembed", version=__version__, docs_url=None, redoc_url=None, lifespan=lifespan)
    app.state.service, app.state.admission = service, Admission(limits)
    app.add_middleware(Gate, admission=app.state.admission)
    if key:
        app.add_middleware(AuthenticationMiddleware, backend=key, on_error=explain)
    app.add_middleware(HostCheck, hosts=access.hosts)
    metrics = Metrics(lambda: len(service.index) if service.index else 0, app.state.admission.inside)
    app.add_middleware(Monitor, metrics=metrics, log=access.log)  # the outermost: it counts refusals too
    _add_errors(app)
    _add_reports(app, service, key, metrics, described)
    add_explorer(app, service.books, lambda: service.index, described)

    async def embed(request: EmbedRequest, connection: Request) -> Response:
        """A vector of length 1 for each document; title or body may be empty."""
        titles, bodies = await called(len(request.documents), request.parts, limits)
        await service.check_tokens(titles, bodies, limits.max_tokens)
        embeddings, encoder = await unless_gone(connection, service.embed(titles, bodies))
        return await run_in_threadpool(_embed_response, embeddings, encoder)

    app.router.add_api_route(
        "/embed",
        embed,
        methods=["POST"],
        dependencies=described,
        response_model=EmbedResponse,
        route_class_override=route_in_steps(app.state.admission),
    )

    _add_searches(app, service, limits, described)
    return app


def _add_searches(app: FastAPI, service: Service, limits: Limits, described: list[Any]) -> None:
    """Adds the search, by query and by body."""

    @app.get("/search", dependencies=described)
    async def search_by_query(request: Annotated[SearchRequest, Query()]) -> SearchResponse:
        """The articles nearest to words (`q`), or to an article of the index (`url`); one of the two is needed.

        `mode` is hybrid (the default where the index has words), words or vectors. `since` and `until` are days
        (YYYY-MM-DD, inclusive); `days` counts from the byline date of the article of `url`, in both directions.
        """
        request.check(limits)
        return _search_response(await service.search(request))

    @app.post("/search", dependencies=described)
    async def search_by_body(request: SearchRequest) -> SearchResponse:
        """The same as GET /search, for queries that are too long for an address."""
        request.check(limits)
        return _search_response(await service.search(request))


def _add_reports(
    app: FastAPI, service: Service, key: KeyBackend | None, metrics: Metrics, described: list[Any]
) -> None:
    """Adds the routes that neither embed nor search."""

    @app.get("/healthz", dependencies=described)
    async def healthz(request: Request) -> dict[str, Any]:
        """Version, encoder, documents and modes of search; `{"status": "ok"}` alone for requests without the key."""
        return service.health() if key is None or key.holds(request) else {"status": "ok"}

    @app.get("/docs", include_in_schema=False)
    def docs() -> HTMLResponse:
        return HTMLResponse(api_page(app.openapi()))

    @app.get("/metrics", dependencies=described)
    def numbers() -> Response:
        """Requests, their seconds and the size of the index, in the text format of Prometheus."""
        return metrics.response()


def _add_errors(app: FastAPI) -> None:
    """Makes answers of the exceptions that routes raise."""

    @app.exception_handler(RefusedError)
    def refuse(_: Request, error: RefusedError) -> JSONResponse:
        return error.response()

    @app.exception_handler(InputError)
    def reject(_: Request, error: InputError) -> JSONResponse:
        return JSONResponse({"detail": str(error)}, 422)

    @app.exception_handler(RequestValidationError)
    def describe(request: Request, error: RequestValidationError) -> JSONResponse:
        """Returns 422 without FastAPI's echo of the input, which may be large."""
        details = [
            {"type": part["type"], "loc": [_utf8(place) for place in part["loc"]], "msg": part["msg"]}
            for part in error.errors()
        ]
        if isinstance(error.body, bytes):  # it was not read as JSON: `curl -d` sends a form
            kind = request.headers.get("content-type", "none")
            details[0]["msg"] = f"got the content type {kind}: send the header content-type: application/json"
        return JSONResponse({"detail": details}, 422)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the options of ``newsembed serve``."""
    add_encoder_arguments(parser, required=False, prompted="query (without --index: document of /embed)")
    add_long_documents_argument(parser)
    parser.add_argument(
        "--index", metavar="DIR", help="what newsembed index or update wrote; without it there is no search"
    )
    parser.add_argument(
        "--reload_seconds",
        type=float,
        default=DEFAULT_SECONDS,
        metavar="S",
        help="look for a new version of the index this often, and serve it; 0 for never (default: %(default)g)",
    )
    parser.add_argument(
        "--host", default="127.0.0.1", help="address to listen on (default: 127.0.0.1, this machine only)"
    )
    parser.add_argument("--port", type=int, default=8000, help="default: 8000; 0 for any free one")
    parser.add_argument(
        "--event_threshold",
        type=float,
        default=EventOptions().threshold,
        metavar="COSINE",
        help="least mean cosine of an article and an event, for the page of an index that is not in an archive "
        "(default: %(default)g)",
    )
    parser.add_argument(
        "--access_log",
        choices=("none", "json"),
        default="none",
        help="json: a line on standard error for each request, without its query and body (default: %(default)s)",
    )
    add_access_arguments(parser)
    add_batch_arguments(parser)
    add_limit_arguments(parser)


def run(args: argparse.Namespace) -> int:
    """Runs the server until it is stopped.

    Raises:
      InputError: for an unusable port, limit, host name or key, or a model or index that cannot be read.
    """
    if not 0 <= args.port <= MAX_PORT:
        raise InputError(
            f"got {args.port}, expected 0 to {MAX_PORT}", field="--port", remedy="choose a free port above 1023"
        )
    if not 0 <= args.reload_seconds < float("inf"):
        raise InputError(
            f"got {args.reload_seconds}, expected 0 or more", field="--reload_seconds", remedy="give 0 for never"
        )
    limits = limits_from(args)
    access = Access(allowed_hosts(args.host, args.allowed_host), api_key(args), log_stream(args.access_log))
    if ANY_HOST in access.hosts:
        print("warning: any host name is answered, so pages of other sites can read answers", file=sys.stderr)
    for opened in _bind(args.host, args.port):  # a port in use is an error before the model is read
        opened.close()
    version = version_of(args.index) if args.index else ""  # before it is loaded: a later one is noticed
    service = load_service(args)
    service.prepare()
    print(f"tokenizer: {service.encoder.tokenizer_name}")

    def encoder_of(index: DocumentIndex) -> TextEncoder:
        return index_encoder(index, max_length=args.max_length, query_prompt=args.prompt)

    own = None if encoder_spec(args) else encoder_of
    with reloading(service, args.index, version, args.reload_seconds, own):
        listen(create_app(service, limits, access), args.host, args.port)
    return 0


def reloading(
    service: Service,
    path: str | None,
    version: str,
    seconds: float,
    encoder_of: Callable[[DocumentIndex], TextEncoder] | None = None,
) -> contextlib.AbstractContextManager[object]:
    """Inside this context, a service gets the new versions of its index.

    Args:
      service: whose index is replaced.
      path: of the index or the archive; None for a service without one.
      version: of the index that it has, see :func:`~.reload.version_of`.
      seconds: between two looks; 0 for never.
      encoder_of: loads the encoder of a version that has another one; None to refuse such a version.
    """

    def replace(index: DocumentIndex) -> None:
        service.replace(index)
        print(f"a new version of the index is served: {counted(len(index), 'document')}", flush=True)

    def renew(index: DocumentIndex) -> None:
        service.replace(index, None if encoder_of is None else encoder_of(index))
        print(f"a new version of the index and its encoder are served: {counted(len(index), 'document')}", flush=True)

    if path is None or service.index is None:
        return contextlib.nullcontext()
    return Watcher(path, service.index, version, replace, seconds, renew if encoder_of else None)


def listen(app: FastAPI, host: str, port: int) -> None:
    """Answers requests until SIGINT or SIGTERM. Prints the address.

    Args:
      app: of :func:`create_app`.
      host: the address to listen on.
      port: 0 for any free one.

    Raises:
      InputError: if the address cannot be used.
    """
    import uvicorn

    sockets = _bind(host, port)
    address = f"[{host}]" if ":" in host else host
    config = uvicorn.Config(
        app, log_level="warning", access_log=False, http="h11", ws="none", timeout_graceful_shutdown=STOP_SECONDS + 1
    )
    server = uvicorn.Server(config)
    _add_steps(server, app, f"http://{address}:{sockets[0].getsockname()[1]}")
    with contextlib.suppress(KeyboardInterrupt):  # not raised where the parent process ignores Ctrl-C, as nohup does
        server.run(sockets)
    print("stopped", file=sys.stderr)


def _add_steps(server: "uvicorn.Server", app: FastAPI, address: str) -> None:
    """Prints the address when requests are answered; refuses requests when the server begins to stop.

    uvicorn would wait for half-sent requests, and end what is left with tracebacks.
    """
    startup, shutdown = server.startup, server.shutdown

    async def start(sockets: list[socket.socket] | None = None) -> None:
        await startup(sockets)
        print(f"listening on {address}", flush=True)

    async def stop(sockets: list[socket.socket] | None = None) -> None:
        app.state.admission.stop()  # new and half-sent requests
        late = asyncio.get_running_loop().call_later(STOP_SECONDS, app.state.service.batcher.stop)  # those that wait
        await shutdown(sockets)
        late.cancel()

    server.startup, server.shutdown = start, stop


def _bind(host: str, port: int) -> list[socket.socket]:
    """Sockets that listen, one for each address of the host, all with one port.

    Raises:
      InputError: if an address cannot be used.
    """
    sockets = list[socket.socket]()
    try:
        for family, _, _, _, address in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM):
            chosen = sockets[0].getsockname()[1] if sockets else port
            sockets.append(socket.create_server((address[0], chosen), family=family, backlog=_BACKLOG))
    except OSError as error:
        for opened in sockets:
            opened.close()
        raise InputError(
            f"cannot listen on {host}, port {port}: {error.strerror or error}",
            field="--port",
            remedy="choose a free port, and an address of this machine as --host",
        ) from error
    return sockets


def load_service(args: argparse.Namespace) -> Service:
    """The encoder and index that the options name.

    Raises:
      InputError: if neither an encoder nor an index that names one was given, or they do not belong together.
    """
    spec, options = encoder_spec(args), batch_options(args)
    if args.index:
        if args.long_documents:
            problem = "documents are read as the index says"
            raise InputError(problem, field="--long_documents", remedy="Build the index with this option.")
        index = load_current(args.index)
        encoder = index_encoder(index, spec, max_length=args.max_length, query_prompt=args.prompt)
        books = Books(args.index, EventOptions(threshold=args.event_threshold))
        return Service(encoder, index, options, books)
    if not spec:
        raise InputError("nothing to serve", field="--model", remedy="give --model, --saved_model or --index")
    reading = {"document_prompt": args.prompt, "long_documents": args.long_documents}
    encoder = encoder_from_spec(spec, max_length=args.max_length, progress=False, **reading)
    return Service(encoder, options=options)


def _utf8(place: str | int) -> str | int:
    """A key as it can be answered: half a surrogate pair, which JSON can smuggle in, has no UTF-8 form."""
    return place.encode("utf-8", "replace").decode() if isinstance(place, str) else place


def _search_response(found: Found) -> SearchResponse:
    hits = [SearchHit(**hit.to_dict()) for hit in found.hits]
    return SearchResponse(hits=hits, mode=found.mode, notes=list(found.notes), matches=found.matches)


def _embed_response(embeddings: FloatArray, encoder: TextEncoder) -> Response:
    """An :class:`EmbedResponse` as JSON, row by row, so that a large answer leaves other threads their turn.

    Raises:
      ValueError: for NaN or infinity.
    """
    if not np.isfinite(embeddings).all():
        raise ValueError("the encoder returned NaN or infinity; use a checkpoint from before training diverged")
    rows = b",".join(to_json(row.tolist()) for row in embeddings)
    rest = to_json({"dimensions": encoder.dimensions, "encoder": encoder.digest})
    return Response(b'{"embeddings":[' + rows + b"]," + rest[1:], media_type="application/json")

r"""``newsembed serve``: an HTTP server that embeds and searches, with a page to explore.

Example::

    newsembed serve --saved_model work/saved --index work/index --port 8000
    curl -s localhost:8000/embed -H 'content-type: application/json' \
        -d '{"documents": [{"title": "Storm", "body": "It rained."}]}'
    curl -s 'localhost:8000/search?q=storm+hits+coast&count=5&since=2024-01-01'

Routes: ``POST /embed``, ``GET`` and ``POST /search``, ``GET /healthz``, ``GET /`` (the page), ``GET /docs`` (the API).
"""

import argparse
import datetime
import importlib.resources
import threading
from typing import Annotated, Any, Final

from fastapi import FastAPI, HTTPException, Query, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, JSONResponse
from pydantic import BaseModel, ConfigDict, Field, model_validator

from .. import __version__
from ..errors import InputError
from .encoder import FloatArray, TextEncoder
from .index import DocumentIndex, Hit
from .search import date_range, index_encoder
from .specs import add_encoder_arguments, encoder_from_spec, encoder_spec

MAX_BATCH: Final = 256
MAX_CHARACTERS: Final = 200_000  # of one title or body; the encoder reads the first tokens only
MAX_COUNT: Final = 100
MAX_PORT: Final = 65_535

_Text = Annotated[str, Field(max_length=MAX_CHARACTERS)]
_Count = Annotated[int, Field(ge=1, le=MAX_COUNT)]


class DocumentBody(BaseModel):
    """A document to embed; one part may be empty."""

    model_config = ConfigDict(extra="forbid")
    title: _Text = ""
    body: _Text = ""

    @model_validator(mode="after")
    def _has_text(self) -> "DocumentBody":
        if not (self.title.strip() or self.body.strip()):
            raise ValueError("title and body are both empty")
        return self


class EmbedRequest(BaseModel):
    """The body of POST /embed."""

    model_config = ConfigDict(extra="forbid")
    documents: Annotated[list[DocumentBody], Field(min_length=1, max_length=MAX_BATCH)]


class EmbedResponse(BaseModel):
    """A unit vector for each document, in their order."""

    embeddings: list[list[float]]
    dimensions: int
    encoder: str


class SearchRequest(BaseModel):
    """The body of POST /search: words (``q``) or the URL of an indexed document, not both; of which byline dates.

    ``since`` and ``until`` are days (inclusive); ``days`` counts from the byline date of the document of ``url``, to
    both sides.
    """

    model_config = ConfigDict(extra="forbid")
    q: _Text = ""
    url: _Text = ""
    since: datetime.date | None = None
    until: datetime.date | None = None
    days: Annotated[int, Field(ge=0)] | None = None
    count: _Count = 10

    @model_validator(mode="after")
    def _asks_one_thing(self) -> "SearchRequest":
        if bool(self.q.strip()) == bool(self.url.strip()):
            raise ValueError("give either q (words) or url (of an indexed document)")
        return self


class SearchHit(BaseModel):
    """One result; ``byline_date`` is YYYY-MM-DD."""

    rank: int
    score: float
    doc_id: str
    url: str
    publisher: str
    title: str
    byline_date: str | None


class SearchResponse(BaseModel):
    """Results, best first."""

    hits: list[SearchHit]


class Service:
    """The encoder and the index behind the routes. The encoder embeds one request at a time."""

    def __init__(self, encoder: TextEncoder, index: DocumentIndex | None = None) -> None:
        self.encoder = encoder
        self.index = index
        self._lock = threading.Lock()

    def embed(self, titles: list[str], bodies: list[str]) -> FloatArray:
        """Unit vectors ``[N, D]``."""
        with self._lock:
            return self.encoder.encode(titles, bodies)

    def embed_query(self, text: str) -> FloatArray:
        """The unit vector ``[D]`` of a query."""
        with self._lock:
            return self.encoder.encode_queries([text])[0]

    def search(self, request: SearchRequest) -> list[Hit]:
        """Results of a checked request.

        Raises:
          HTTPException: 404 without an index or for a URL that is not in it.
        """
        if self.index is None:
            raise HTTPException(404, "this server has no index; start it with --index")
        url = request.url.strip()
        if url and not self.index.has(url):
            raise HTTPException(404, f"no document with the URL {url}")
        dates = date_range(self.index, url, request.since, request.until, request.days)
        if url:
            return self.index.search_url(url, request.count, dates)
        return self.index.search(self.embed_query(request.q), request.count, dates)

    def health(self) -> dict[str, Any]:
        """JSON values of GET /healthz."""
        return {
            "status": "ok",
            "version": __version__,
            "encoder": self.encoder.digest,
            "dimensions": self.encoder.dimensions,
            "tokenizer": self.encoder.tokenizer_name,
            "documents": len(self.index) if self.index else 0,
        }


def create_app(service: Service) -> FastAPI:
    """The web application; nothing is loaded here."""
    app = FastAPI(title="newsembed", version=__version__)
    page = importlib.resources.files(__package__).joinpath("explorer.html").read_text(encoding="utf-8")

    @app.exception_handler(InputError)
    def refuse(_: Request, error: InputError) -> JSONResponse:
        return JSONResponse({"detail": str(error)}, 422)

    @app.exception_handler(RequestValidationError)
    def explain(_: Request, error: RequestValidationError) -> JSONResponse:
        # Without FastAPI's echo of the input, which may be large.
        details = [
            {"type": part["type"], "loc": [_utf8(place) for place in part["loc"]], "msg": part["msg"]}
            for part in error.errors()
        ]
        return JSONResponse({"detail": details}, 422)

    @app.get("/", response_class=HTMLResponse, include_in_schema=False)
    def explore() -> str:
        return page

    @app.get("/healthz")
    def healthz() -> dict[str, Any]:
        return service.health()

    @app.post("/embed")
    def embed(request: EmbedRequest) -> EmbedResponse:
        documents = request.documents
        embeddings = service.embed(
            [document.title for document in documents], [document.body for document in documents]
        )
        return EmbedResponse(
            embeddings=embeddings.tolist(), dimensions=service.encoder.dimensions, encoder=service.encoder.digest
        )

    @app.get("/search")
    def search_by_query(request: Annotated[SearchRequest, Query()]) -> SearchResponse:
        return _response(service.search(request))

    @app.post("/search")
    def search_by_body(request: SearchRequest) -> SearchResponse:
        return _response(service.search(request))

    return app


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the options of ``newsembed serve``."""
    add_encoder_arguments(parser, required=False, prompted="query (without --index: document of /embed)")
    parser.add_argument("--index", metavar="DIR", help="what newsembed index wrote; without it there is no search")
    parser.add_argument(
        "--host", default="127.0.0.1", help="address to listen on (default: 127.0.0.1, this machine only)"
    )
    parser.add_argument("--port", type=int, default=8000, help="default: 8000")


def run(args: argparse.Namespace) -> int:
    """Runs the server until it is stopped.

    Raises:
      InputError: for an unusable port, or a model or index that cannot be read.
    """
    import uvicorn

    if not 0 <= args.port <= MAX_PORT:
        raise InputError(
            f"got {args.port}, expected 0 to {MAX_PORT}", field="--port", remedy="choose a free port above 1023"
        )
    service = load_service(args)
    service.embed(["warm up"], [""])  # the first call compiles
    print(f"tokenizer: {service.encoder.tokenizer_name}")
    print(f"listening on http://{args.host}:{args.port}")
    uvicorn.run(create_app(service), host=args.host, port=args.port, log_level="warning")
    return 0


def load_service(args: argparse.Namespace) -> Service:
    """The encoder and index that the options name.

    Raises:
      InputError: if neither an encoder nor an index that names one was given, or they do not belong together.
    """
    spec = encoder_spec(args)
    if args.index:
        index = DocumentIndex.load(args.index)
        return Service(index_encoder(index, spec, max_length=args.max_length, query_prompt=args.prompt), index)
    if not spec:
        raise InputError("nothing to serve", field="--model", remedy="give --model, --saved_model or --index")
    return Service(encoder_from_spec(spec, max_length=args.max_length, progress=False, document_prompt=args.prompt))


def _utf8(place: str | int) -> str | int:
    """A key as it can be answered: half a surrogate pair, which JSON can smuggle in, has no UTF-8 form."""
    return place.encode("utf-8", "replace").decode() if isinstance(place, str) else place


def _response(hits: list[Hit]) -> SearchResponse:
    return SearchResponse(hits=[SearchHit(**hit.to_dict()) for hit in hits])

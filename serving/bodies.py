"""What clients send to the server and get back, as JSON. Large requests are parsed outside the event loop."""

import base64
import contextlib
import datetime
from collections.abc import Callable, Coroutine
from typing import Annotated, Any, Final, Literal, Self

from fastapi import Request, Response
from fastapi.concurrency import run_in_threadpool
from fastapi.routing import APIRoute
from pydantic import AfterValidator, BaseModel, BeforeValidator, Field, ValidationError, model_validator

from .analysis import has_text
from .filters import parse_day
from .gate import Limits, too_large
from .hybrid import Mode

MAX_COUNT: Final = 100
AT_ONCE: Final = 1 << 18  # bytes that are parsed in the event loop, in a few milliseconds

_Count = Annotated[int, Field(ge=1, le=MAX_COUNT)]
_NO_TEXT: Final = "it has only white space, control characters or characters without width"


def _checked_text(text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError as error:  # JSON can smuggle it in
        raise ValueError("half a surrogate pair, which is not a character") from error
    return text


Text = Annotated[str, AfterValidator(_checked_text)]
Values = Annotated[list[Text], Field(max_length=MAX_COUNT)]
Day = Annotated[datetime.date | None, BeforeValidator(lambda value: None if value is None else parse_day(value))]


class DocumentBody(BaseModel, extra="forbid"):
    """A document to embed; one part may be empty."""

    title: Text = ""
    body: Text = ""

    @model_validator(mode="after")
    def _has_text(self) -> Self:
        if not (self.title.strip() or self.body.strip()):
            raise ValueError("title and body are both empty")
        if not (has_text(self.title) or has_text(self.body)):
            raise ValueError(f"there is no text to read in title and body: {_NO_TEXT}")
        return self


class EmbedRequest(BaseModel, extra="forbid"):
    """The body of POST /embed."""

    documents: Annotated[list[DocumentBody], Field(min_length=1)]

    def parts(self, limits: Limits) -> tuple[list[str], list[str]]:
        """The titles and the bodies of the documents, compared with the limits of the server.

        Raises:
          RefusedError: for too many documents or a document of too many characters.
        """
        if len(self.documents) > limits.max_documents:
            advice = "send them in several requests"
            raise too_large("documents in a request", limits.max_documents, "max_documents", advice)
        if any(len(document.title) + len(document.body) > limits.max_characters for document in self.documents):
            advice = "cut the document (the encoder reads its first tokens only)"
            raise too_large("characters in a document", limits.max_characters, "max_characters", advice)
        return [document.title for document in self.documents], [document.body for document in self.documents]


def _plain(value: Any) -> Any:
    """A text that clients of TensorFlow Serving may send as ``{"b64": …}``; anything else as it is."""
    if isinstance(value, dict) and value.keys() == {"b64"} and isinstance(value["b64"], str):
        return base64.b64decode(value["b64"], validate=True).decode()
    return value


def _as_document(instance: Any) -> Any:
    instance = _plain(instance)
    if isinstance(instance, dict) and instance.keys() == {"text"}:
        instance = _plain(instance["text"])
    if isinstance(instance, dict):
        return {name: _plain(value) for name, value in instance.items()}
    return {"body": instance} if isinstance(instance, str) else instance


class PredictRequest(BaseModel):
    """The body of POST /predict, as Vertex AI and clients of TensorFlow Serving send it.

    Each instance is a text, or has a `text`, or a `title` and a `body`. A text may be ``{"b64": …}``, UTF-8 in base64.
    `parameters` are not read.
    """

    instances: Annotated[list[Annotated[DocumentBody, BeforeValidator(_as_document)]], Field(min_length=1)]
    signature_name: Literal["serving_default", "text"] = "serving_default"
    parameters: Any = None


class PredictResponse(BaseModel):
    """A unit vector for each instance, in their order."""

    predictions: list[list[float]]


class LargeBodyRoute(APIRoute):
    """A route for an `EmbedRequest` that parses a large one in a thread.

    Python's JSON parser holds the interpreter's lock until it is done; that of pydantic needs a third of the time, and
    leaves other threads their turn between documents.
    """

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """The handler of FastAPI, for requests that parse themselves."""
        handle = super().get_route_handler()

        async def handle_large(request: Request) -> Response:
            return await handle(_LargeRequest(request.scope, request.receive))

        return handle_large


class _LargeRequest(Request):
    async def json(self) -> Any:
        raw = await self.body()
        if len(raw) > AT_ONCE:
            with contextlib.suppress(ValidationError):  # which FastAPI describes after its own parser
                return await run_in_threadpool(EmbedRequest.model_validate_json, raw)
        return await super().json()


class EmbedResponse(BaseModel):
    """A unit vector for each document, in their order."""

    embeddings: list[list[float]]
    dimensions: int
    encoder: str


class SearchRequest(BaseModel, extra="forbid"):
    """The body of POST /search: words (``q``) or the URL of an indexed document, not both; how, and among which.

    ``mode`` is hybrid (the default), words or vectors. ``since`` and ``until`` are days
    (YYYY-MM-DD, inclusive); ``days`` counts from the byline date of the document of ``url``, in both directions.
    ``facets`` asks for counts of the 100 best articles.
    """

    q: Text = ""
    url: Text = ""
    since: Day = None
    until: Day = None
    days: Annotated[int, Field(ge=0)] | None = None
    language: Values = []
    publisher: Values = []
    mode: Mode | None = None
    count: _Count = 10
    facets: bool = False

    @model_validator(mode="after")
    def _asks_one_thing(self) -> Self:
        if bool(self.q.strip()) == bool(self.url.strip()):
            raise ValueError("give either q (words) or url (of an indexed document)")
        if self.q.strip() and not has_text(self.q):
            raise ValueError(f"there is no text to read in q: {_NO_TEXT}")
        return self

    def check(self, limits: Limits) -> None:
        """Compares the request with the limits of the server.

        Raises:
          RefusedError: for a query of too many characters.
        """
        given = (self.q, self.url, *self.language, *self.publisher)
        if max(map(len, given)) > limits.max_characters:
            raise too_large("characters in a query", limits.max_characters, "max_characters", "shorten the query")


class SearchHit(BaseModel):
    """One result; ``byline_date`` is YYYY-MM-DD. Marks are the places of words of the query, from and to.

    ``band`` says how well it answers words: strong, fair or weak. ``event_id`` is empty until the events are known.
    """

    rank: int
    score: float
    band: str = ""
    event_id: str = ""
    doc_id: str
    url: str
    publisher: str
    title: str
    byline_date: str | None
    language: str = ""
    image_url: str = ""
    title_marks: list[tuple[int, int]] = []
    extract: str = ""
    extract_marks: list[tuple[int, int]] = []


class SearchResponse(BaseModel):
    """Results, best first; how they were found, and what the user should know about them.

    ``facets`` counts the best articles by publisher, language and month.
    """

    hits: list[SearchHit]
    mode: Mode
    notes: list[str] = []
    facets: dict[str, list[tuple[str, int]]] = {}
    matches: bool  # false where the hits, if any, are only the nearest articles to a query that nothing answers

"""What clients send to the server and get back, as JSON."""

import datetime
from typing import Annotated, Any, Final

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from .dates import parse_day
from .hybrid import Mode
from .limits import Limits, TooLargeError
from .queries import has_text

MAX_COUNT: Final = 100

_Count = Annotated[int, Field(ge=1, le=MAX_COUNT)]
_NO_TEXT: Final = "it has only white space, control characters or characters without width"


def _checked_text(text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError as error:  # JSON can smuggle it in
        raise ValueError("half a surrogate pair, which is not a character") from error
    return text


def _checked_day(value: Any) -> datetime.date | None:
    return None if value is None else parse_day(value)


Text = Annotated[str, AfterValidator(_checked_text)]
Values = Annotated[list[Text], Field(max_length=MAX_COUNT)]
Day = Annotated[datetime.date | None, BeforeValidator(_checked_day)]


class DocumentBody(BaseModel):
    """A document to embed; one part may be empty."""

    model_config = ConfigDict(extra="forbid")
    title: Text = ""
    body: Text = ""

    @model_validator(mode="after")
    def _has_text(self) -> "DocumentBody":
        if not (self.title.strip() or self.body.strip()):
            raise ValueError("title and body are both empty")
        if not (has_text(self.title) or has_text(self.body)):
            raise ValueError(f"there is no text to read in title and body: {_NO_TEXT}")
        return self


class EmbedRequest(BaseModel):
    """The body of POST /embed."""

    model_config = ConfigDict(extra="forbid")
    documents: Annotated[list[DocumentBody], Field(min_length=1)]

    def parts(self, limits: Limits) -> tuple[list[str], list[str]]:
        """The titles and the bodies of the documents, compared with the limits of the server.

        Raises:
          TooLargeError: for too many documents or a document of too many characters.
        """
        if len(self.documents) > limits.max_documents:
            advice = "send them in several requests"
            raise TooLargeError("documents in a request", limits.max_documents, "max_documents", advice)
        if any(len(document.title) + len(document.body) > limits.max_characters for document in self.documents):
            advice = "cut the document (the encoder reads its first tokens only)"
            raise TooLargeError("characters in a document", limits.max_characters, "max_characters", advice)
        return [document.title for document in self.documents], [document.body for document in self.documents]


class EmbedResponse(BaseModel):
    """A unit vector for each document, in their order."""

    embeddings: list[list[float]]
    dimensions: int
    encoder: str


class SearchRequest(BaseModel):
    """The body of POST /search: words (``q``) or the URL of an indexed document, not both; how, and among which.

    ``mode`` is hybrid (the default where the index has words), words or vectors. ``since`` and ``until`` are days
    (YYYY-MM-DD, inclusive); ``days`` counts from the byline date of the document of ``url``, in both directions.
    """

    model_config = ConfigDict(extra="forbid")
    q: Text = ""
    url: Text = ""
    since: Day = None
    until: Day = None
    days: Annotated[int, Field(ge=0)] | None = None
    language: Values = []
    publisher: Values = []
    mode: Mode | None = None
    count: _Count = 10

    @model_validator(mode="after")
    def _asks_one_thing(self) -> "SearchRequest":
        if bool(self.q.strip()) == bool(self.url.strip()):
            raise ValueError("give either q (words) or url (of an indexed document)")
        if self.q.strip() and not has_text(self.q):
            raise ValueError(f"there is no text to read in q: {_NO_TEXT}")
        return self

    def check(self, limits: Limits) -> None:
        """Compares the request with the limits of the server.

        Raises:
          TooLargeError: for a query of too many characters.
        """
        given = (self.q, self.url, *self.language, *self.publisher)
        if max(map(len, given)) > limits.max_characters:
            raise TooLargeError("characters in a query", limits.max_characters, "max_characters", "shorten the query")


class SearchHit(BaseModel):
    """One result; ``byline_date`` is YYYY-MM-DD. Marks are the places of words of the query, from and to."""

    rank: int
    score: float
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
    """Results, best first; how they were found, and what the user should know about them."""

    hits: list[SearchHit]
    mode: Mode
    notes: list[str] = []
    matches: bool  # false where the hits, if any, are only the nearest articles to a query that nothing answers

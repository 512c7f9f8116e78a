"""What the page sends to the server and gets back, as JSON."""

import datetime
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, model_validator

from ...formats.index import IndexedDocument
from ..bodies import MAX_COUNT, Day, SearchHit, Text, Values
from .book import Card, Report

_MOST_DAYS = 366


class EventsRequest(BaseModel):
    """The query of GET /events and GET /map: days and filters.

    Without ``since`` and ``until`` the answer is about the last ``days`` days of the index.
    """

    model_config = ConfigDict(extra="forbid")
    since: Day = None
    until: Day = None
    days: Annotated[int, Field(ge=1, le=_MOST_DAYS)] = 7
    language: Values = []
    publisher: Values = []
    count: Annotated[int, Field(ge=1, le=MAX_COUNT)] = 30
    offset: Annotated[int, Field(ge=0)] = 0


class EventRequest(BaseModel):
    """The query of GET /event: the ``id`` of an event, or the ``url`` of one of its articles."""

    model_config = ConfigDict(extra="forbid")
    id: Text = ""
    url: Text = ""

    @model_validator(mode="after")
    def _asks_one_thing(self) -> "EventRequest":
        if bool(self.id) == bool(self.url):
            raise ValueError("give either id (of an event) or url (of an article)")
        return self


class ArticleBody(BaseModel):
    """An article, as results show it."""

    doc_id: str
    url: str
    publisher: str
    title: str
    byline_date: str | None
    language: str
    image_url: str

    @classmethod
    def of(cls, document: IndexedDocument) -> "ArticleBody":
        """The body of a document."""
        return cls(**document.to_dict())


class ReportBody(ArticleBody):
    """An article of an event, with its near copies."""

    copies: list[ArticleBody] = []

    @classmethod
    def of_report(cls, report: Report) -> "ReportBody":
        """The body of a report."""
        return cls(**report.document.to_dict(), copies=[ArticleBody.of(copy) for copy in report.copies])


class EventBody(BaseModel):
    """An event; see :class:`~.book.Card`."""

    id: str
    lead: ArticleBody
    image_url: str
    first: datetime.date
    last: datetime.date
    articles: int
    publishers: list[tuple[str, int]]
    languages: list[tuple[str, int]]
    timeline: list[tuple[datetime.date, int]]
    reports: list[ReportBody]

    @classmethod
    def of(cls, card: Card) -> "EventBody":
        """The body of a card."""
        return cls(
            id=card.event_id,
            lead=ArticleBody.of(card.lead),
            image_url=card.image_url,
            first=card.first,
            last=card.last,
            articles=card.articles,
            publishers=list(card.publishers),
            languages=list(card.languages),
            timeline=list(card.timeline),
            reports=[ReportBody.of_report(report) for report in card.reports],
        )


class Period(BaseModel):
    """Some days of an index.

    Attributes:
      since: the first of these days, None for no bound.
      until: the last of them.
      total: events of these days.
      span: the first and the last date of the index; None without dates.
    """

    since: datetime.date | None
    until: datetime.date | None
    total: int
    span: tuple[datetime.date, datetime.date] | None


class EventsResponse(Period):
    """A page of the events of some days, those that most publishers report first."""

    events: list[EventBody]


class EventResponse(BaseModel):
    """A whole event; with the URL of an article also that article, and similar articles of other events.

    ``event`` is None for an article without a date.
    """

    event: EventBody | None
    article: ArticleBody | None = None
    similar: list[SearchHit] = []


class MapPoint(BaseModel):
    """An event on the map."""

    id: str
    title: str
    language: str
    articles: int
    publishers: int
    topic: int
    place: tuple[float, float]


class MapResponse(Period):
    """The largest events of some days: places from 0 to 1, and the topics they belong to."""

    topics: list[str]
    events: list[MapPoint]

"""A saved search as a feed, newest first: Atom (RFC 4287) and JSON Feed 1.1."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Annotated, Any, Final

import jinja2
from fastapi import FastAPI, Query, Request, Response
from fastapi.responses import JSONResponse

from ..bodies import SearchHit, SearchRequest, SearchResponse

_ATOM: Final = "application/atom+xml"
_JSON_FEED: Final = "application/feed+json"
_NO_DATE: Final = "1970-01-01"


def add_feeds(app: FastAPI, search: Callable[[SearchRequest], Awaitable[SearchResponse]]) -> None:
    """Adds the routes of feeds.

    Args:
      app: of the server.
      search: answers a request.
    """

    @app.get("/feed.atom", response_class=Response)
    @app.get("/feed.json", response_class=Response)
    async def feed(http: Request, request: Annotated[SearchRequest, Query()]) -> Response:
        """The answer to a search as a feed that a desk subscribes to, newest first: Atom or JSON Feed 1.1.

        Weak answers are left out.
        """
        found = await search(request)
        hits = [hit for hit in found.hits if hit.band != "weak"] if found.matches else []
        title, address = f"newsembed: {request.q or request.url}", str(http.url)
        if http.url.path.endswith(".json"):
            return JSONResponse(json_feed(title, address, hits), media_type=_JSON_FEED)
        return Response(atom(title, address, hits), media_type=_ATOM)


def json_feed(title: str, address: str, hits: Sequence[SearchHit]) -> dict[str, Any]:
    """The values of a JSON Feed.

    Args:
      title: of the feed.
      address: its URL.
      hits: its articles.
    """
    items = [
        {
            "id": hit.url or hit.doc_id,
            "url": hit.url,
            "title": hit.title,
            "content_text": hit.extract or hit.title,
            "authors": [{"name": hit.publisher}],
            "language": hit.language,
            **({"date_published": _time(hit)} if hit.byline_date else {}),
            **({"image": hit.image_url} if hit.image_url else {}),
        }
        for hit in _by_date(hits)
    ]
    return {"version": "https://jsonfeed.org/version/1.1", "title": title, "feed_url": address, "items": items}


def atom(title: str, address: str, hits: Sequence[SearchHit]) -> str:
    """The text of an Atom feed, see `json_feed`."""
    pages = jinja2.Environment(loader=jinja2.PackageLoader(__package__, ""), autoescape=True)
    text = pages.get_template("feed.xml").render(title=title, address=address, hits=_by_date(hits), time=_time)
    return "".join(one for one in text if one >= " " or one in "\t\n\r")  # no XML document may hold other controls


def _by_date(hits: Sequence[SearchHit]) -> list[SearchHit]:
    return sorted(hits, key=lambda hit: (hit.byline_date or _NO_DATE, -hit.rank), reverse=True)


def _time(hit: SearchHit | None) -> str:
    return f"{(hit and hit.byline_date) or _NO_DATE}T00:00:00Z"

"""A saved search as a feed, newest first: Atom (RFC 4287) and JSON Feed 1.1."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Annotated, Any, Final
from xml.sax.saxutils import escape, quoteattr

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
    ordered = _by_date(hits)
    updated = _time(ordered[0]) if ordered else f"{_NO_DATE}T00:00:00Z"
    lines = [
        '<?xml version="1.0" encoding="utf-8"?>',
        '<feed xmlns="http://www.w3.org/2005/Atom">',
        f"<title>{escape(title)}</title><id>{escape(address)}</id><updated>{updated}</updated>",
        f"<link rel='self' href={quoteattr(address)}/>",
    ]
    for hit in ordered:
        lines += [
            f"<entry><title>{escape(hit.title)}</title><id>{escape(hit.url or hit.doc_id)}</id>",
            *([f"<link href={quoteattr(hit.url)}/>"] if hit.url else []),
            f"<updated>{_time(hit)}</updated>",
            f"<author><name>{escape(hit.publisher)}</name></author><summary>{escape(hit.extract)}</summary></entry>",
        ]
    return _without_controls("\n".join([*lines, "</feed>\n"]))


def _by_date(hits: Sequence[SearchHit]) -> list[SearchHit]:
    return sorted(hits, key=lambda hit: (hit.byline_date or _NO_DATE, -hit.rank), reverse=True)


def _time(hit: SearchHit) -> str:
    return f"{hit.byline_date or _NO_DATE}T00:00:00Z"


def _without_controls(text: str) -> str:
    """Without the characters that no XML document may hold."""
    return "".join(one for one in text if one >= " " or one in "\t\n\r")

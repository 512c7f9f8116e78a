"""Feeds of a section: RSS 2.0, Atom or JSON Feed, as the publisher prefers."""

import email.utils
import json
from collections.abc import Sequence
from xml.sax.saxutils import escape, quoteattr

from .articles import Story
from .publishers import Publisher

_LONGEST = 60  # a feed holds the newest articles only


def feed_url(publisher: Publisher, section: str) -> str:
    """The address of a section's feed; ``section`` is its slug."""
    ending = {"rss": "rss.xml", "atom": "atom.xml", "json": "feed.json"}[publisher.feed]
    return f"{publisher.home}/feeds/{section}/{ending}"


def feed(publisher: Publisher, title: str, url: str, stories: Sequence[Story]) -> tuple[str, str]:
    """Renders a feed.

    Args:
      publisher: whose feed it is.
      title: of the section.
      url: of the feed itself.
      stories: newest first.

    Returns:
      The content type and the text.
    """
    newest = stories[:_LONGEST]
    if publisher.feed == "atom":
        return "application/atom+xml; charset=utf-8", _atom(publisher, title, url, newest)
    if publisher.feed == "json":
        return "application/feed+json; charset=utf-8", _json(publisher, title, url, newest)
    return "application/rss+xml; charset=utf-8", _rss(publisher, title, newest)


def _rss(publisher: Publisher, title: str, stories: Sequence[Story]) -> str:
    items = "".join(
        f"<item><title>{escape(story.title)}</title><link>{escape(story.url)}</link><guid>{escape(story.url)}</guid>"
        f"<pubDate>{email.utils.format_datetime(story.published)}</pubDate>"
        f"<description>{escape(story.sentences[0])}</description></item>\n"
        for story in stories
    )
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n<rss version="2.0"><channel>'
        f"<title>{escape(title)} - {escape(publisher.name)}</title><link>{publisher.home}/</link>"
        f"<description>{escape(publisher.name)}</description><language>{publisher.language}</language>\n"
        f"{items}</channel></rss>\n"
    )


def _atom(publisher: Publisher, title: str, url: str, stories: Sequence[Story]) -> str:
    entries = "".join(
        f"<entry><title>{escape(story.title)}</title><link href={quoteattr(story.url)}/><id>{escape(story.url)}</id>"
        f"<published>{story.published.isoformat()}</published><updated>{story.published.isoformat()}</updated>"
        f"<summary>{escape(story.sentences[0])}</summary></entry>\n"
        for story in stories
    )
    updated = stories[0].published.isoformat() if stories else "2023-12-31T00:00:00+00:00"
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n<feed xmlns="http://www.w3.org/2005/Atom">'
        f"<title>{escape(title)} - {escape(publisher.name)}</title><id>{escape(url)}</id>"
        f"<link rel='self' href={quoteattr(url)}/>"
        f"<author><name>{escape(publisher.name)}</name></author><updated>{updated}</updated>\n{entries}</feed>\n"
    )


def _json(publisher: Publisher, title: str, url: str, stories: Sequence[Story]) -> str:
    items = [
        {
            "id": story.url,
            "url": story.url,
            "title": story.title,
            "summary": story.sentences[0],
            "date_published": story.published.isoformat(),
        }
        for story in stories
    ]
    head = {
        "version": "https://jsonfeed.org/version/1.1",
        "title": f"{title} - {publisher.name}",
        "home_page_url": f"{publisher.home}/",
    }
    return json.dumps(
        {**head, "feed_url": url, "language": publisher.language, "items": items}, ensure_ascii=False, indent=1
    )

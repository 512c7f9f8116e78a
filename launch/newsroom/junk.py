"""Pages that a crawl meets and a corpus must not keep."""

import dataclasses
import datetime
import enum
from collections.abc import Sequence

from .articles import Story
from .interface_words import WORDS
from .options import NewsroomOptions
from .pages import Link, Surroundings, article_page, hub_page
from .publishers import PUBLISHERS, Publisher
from .store import Resource

DISALLOWED_FOLDER = "/intern/"
_WHEN = datetime.datetime(2023, 6, 1, 12, tzinfo=datetime.UTC)
_HTML = "text/html; charset=utf-8"


class Junk(enum.StrEnum):
    """What is wrong with a page; truth.jsonl calls its kind ``junk:<value>``."""

    NAVIGATION = "navigation"
    STUB = "stub"
    COOKIE_WALL = "cookie_wall"
    SOFT_404 = "soft_404"
    BROKEN_MARKUP = "broken_markup"
    BINARY = "binary"
    DISALLOWED = "disallowed"
    SERVER_ERROR = "server_error"
    REDIRECT = "redirect"


# One round of junk: common kinds come more than once.
_ROUND = (*Junk, Junk.STUB, Junk.NAVIGATION, Junk.COOKIE_WALL, Junk.SOFT_404, Junk.STUB)

_SOFT_404 = {
    "en": ("Page not found", "Sorry, the page you are looking for does not exist or has been moved. Please go back to the front page."),
    "de": ("Seite nicht gefunden", "Die gesuchte Seite gibt es leider nicht mehr. Bitte kehren Sie zur Startseite zurück."),
    "es": ("Página no encontrada", "Lo sentimos, la página que busca no existe o ha cambiado de sitio. Vuelva a la portada."),
}
_COOKIE_WALL = {
    "en": "To read this article you must accept cookies. We and our 312 partners store information on your device. Please enable JavaScript "
    "and cookies in your browser and accept all cookies to continue, or subscribe without advertising. ",
    "de": "Um diesen Artikel zu lesen, müssen Sie Cookies zustimmen. Wir und unsere 312 Partner speichern Daten auf Ihrem Gerät. Bitte "
    "aktivieren Sie JavaScript und Cookies im Browser und stimmen Sie allen Cookies zu, oder schließen Sie ein Abonnement ohne Werbung ab. ",
    "es": "Para leer este artículo debe aceptar las cookies. Nosotros y nuestros 312 socios guardamos información en su dispositivo. Active "
    "JavaScript y las cookies en su navegador y acepte todas las cookies para continuar, o suscríbase sin publicidad. ",
}


@dataclasses.dataclass(frozen=True)
class JunkPage:
    """One junk URL.

    Attributes:
      resources: what the server answers: one page, or a chain of redirects.
    """

    publisher: Publisher
    kind: Junk
    url: str
    title: str
    resources: tuple[Resource, ...]


def junk_pages(options: NewsroomOptions, stories: Sequence[Story]) -> list[JunkPage]:
    """Junk of every kind, dealt out to the publishers in turn.

    Args:
      options: seed and scale.
      stories: the articles of the site, which redirects lead to and broken pages are broken from.
    """
    random = options.stream("junk")
    pages = []
    for number in range(options.count(98, len(Junk))):
        kind = _ROUND[number % len(_ROUND)]
        publisher = PUBLISHERS[(number * 5 + number // len(_ROUND)) % len(PUBLISHERS)]
        own = [story for story in stories if story.publisher is publisher] or list(stories)
        pages.append(_page(kind, publisher, random.choice(own), number, own[:12]))
    return pages


def _page(kind: Junk, publisher: Publisher, story: Story, number: int, others: Sequence[Story]) -> JunkPage:
    folder = DISALLOWED_FOLDER if kind is Junk.DISALLOWED else "/more/"
    path = f"{folder}{kind.value.replace('_', '-')}-{number}"
    url = publisher.home + path
    words = WORDS[publisher.language]
    navigation = [Link(other.title, other.url) for other in others]

    def page(body: str | bytes, *, status: int = 200) -> tuple[Resource, ...]:
        raw = body.encode() if isinstance(body, str) else body
        return (Resource(publisher.host, path, raw, _HTML, _WHEN, status),)

    def simple(title: str, text: str) -> str:
        return (
            f'<!DOCTYPE html><html lang="{publisher.language}"><head><meta charset="utf-8"><title>{title}</title></head>'
            f"<body><h1>{title}</h1><p>{text}</p></body></html>"
        )

    title = story.title
    match kind:
        case Junk.NAVIGATION:
            title = words["regions"]
            return JunkPage(publisher, kind, url, title, page(hub_page(publisher, title, [], [], navigation)))
        case Junk.STUB:
            title = f"{story.title} (1/2)"
            return JunkPage(publisher, kind, url, title, page(_article(publisher, story, url, title, story.sentences[:3])))
        case Junk.COOKIE_WALL:
            return JunkPage(publisher, kind, url, title, page(simple(title, _COOKIE_WALL[publisher.language] * 3)))
        case Junk.SOFT_404:
            title, text = _SOFT_404[publisher.language]
            return JunkPage(publisher, kind, url, title, page(simple(title, text)))
        case Junk.BROKEN_MARKUP:
            whole = _article(publisher, story, url, title, story.sentences)
            cut = whole.replace("</p>", "").replace("<div", "<div <div").replace("</h1>", "</h2").replace("<body>", "")
            return JunkPage(publisher, kind, url, title, page(cut[: len(cut) // 3]))
        case Junk.BINARY:
            noise = bytes((position * position * 31 + position * 17 + number) % 256 for position in range(20_000))
            return JunkPage(publisher, kind, url, title, page(b"\x00\x01\xff\xfe" + noise))
        case Junk.DISALLOWED:
            return JunkPage(publisher, kind, url, title, page(_article(publisher, story, url, title, story.sentences)))
        case Junk.SERVER_ERROR:
            return JunkPage(publisher, kind, url, title, page(simple("Internal server error", "The server could not answer."), status=500))
        case Junk.REDIRECT:
            return JunkPage(publisher, kind, url, title, _chain(publisher, path, story.url))


def _article(publisher: Publisher, story: Story, url: str, title: str, sentences: Sequence[str]) -> str:
    import random

    copy = dataclasses.replace(story, publisher=publisher, url=url, title=title, sentences=tuple(sentences))
    around = Surroundings((), (), (), (), f"{publisher.home}/img/logo.jpg")
    return article_page(copy, around, random.Random(len(title)))


def _chain(publisher: Publisher, path: str, target: str) -> tuple[Resource, ...]:
    """Two redirects, permanent and temporary, to a real article."""
    middle = f"{path}-moved"
    empty = b"<!DOCTYPE html><title>Moved</title>"
    first = Resource(publisher.host, path, empty, _HTML, _WHEN, 301, publisher.home + middle)
    return first, Resource(publisher.host, middle, empty, _HTML, _WHEN, 302, target)

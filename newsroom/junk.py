"""Pages that a crawl finds and a corpus must reject."""
# ruff: noqa: RUF001 - Cyrillic letters are meant

import dataclasses
import datetime
import enum
import html
import random
from collections.abc import Callable, Iterator, Sequence

from .articles import Story
from .interface_words import WORDS
from .options import ABROAD, REGIONS, NewsroomOptions
from .pages import Link, Surroundings, article_page, hub_page
from .publishers import PUBLISHERS, Publisher
from .store import Resource

DISALLOWED_FOLDER = "/intern/"
_WHEN = datetime.datetime(2023, 6, 1, 12, tzinfo=datetime.UTC)
_HTML = "text/html; charset=utf-8"


class Junk(enum.StrEnum):
    """The kind of a junk page; in truth.jsonl, ``junk:<value>``."""

    NAVIGATION = "navigation"
    STUB = "stub"
    COOKIE_WALL = "cookie_wall"
    SOFT_404 = "soft_404"
    BROKEN_MARKUP = "broken_markup"
    BINARY = "binary"
    DISALLOWED = "disallowed"
    SERVER_ERROR = "server_error"
    REDIRECT = "redirect"


# One round of junk; common kinds are repeated.
_ROUND = (*Junk, Junk.STUB, Junk.NAVIGATION, Junk.COOKIE_WALL, Junk.SOFT_404, Junk.STUB)

_SOFT_404 = {
    "en": (
        "Page not found",
        "Sorry, the page you are looking for does not exist or has been moved. Please go back to the front page.",
    ),
    "de": (
        "Seite nicht gefunden",
        "Die gesuchte Seite gibt es leider nicht mehr. Bitte kehren Sie zur Startseite zurück.",
    ),
    "es": (
        "Página no encontrada",
        "Lo sentimos, la página que busca no existe o ha cambiado de sitio. Vuelva a la portada.",
    ),
    "ru": (
        "Страница не найдена",
        "К сожалению, такой страницы нет или её перенесли. Пожалуйста, вернитесь на главную страницу.",
    ),
}
_COOKIE_WALL = {
    "en": "To read this article you must accept cookies. We and our 312 partners store information on your device. "
    "Please enable JavaScript and cookies in your browser and accept all cookies to continue, or subscribe without "
    "advertising. ",
    "de": "Um diesen Artikel zu lesen, müssen Sie Cookies zustimmen. Wir und unsere 312 Partner speichern Daten auf "
    "Ihrem Gerät. Bitte aktivieren Sie JavaScript und Cookies im Browser und stimmen Sie allen Cookies zu, "
    "oder schließen "
    "Sie ein Abonnement ohne Werbung ab. ",
    "es": "Para leer este artículo debe aceptar las cookies. Nosotros y nuestros 312 socios guardamos información en "
    "su dispositivo. Active JavaScript y las cookies en su navegador y acepte todas las cookies para continuar, o "
    "suscríbase sin publicidad. ",
    "ru": "Чтобы прочесть эту статью, нужно принять куки. Мы и наши 312 партнёров храним данные на вашем устройстве. "
    "Включите JavaScript и куки в браузере и примите все куки, чтобы продолжить, или оформите подписку без рекламы. ",
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
    """Junk of every kind, distributed over the publishers in turn.

    Args:
      options: seed and scale.
      stories: the articles of the site, which redirects lead to and broken pages are broken from.
    """
    return [
        *_of_publishers(options, stories, REGIONS, "junk", options.count(98, len(Junk))),
        *_of_publishers(options, stories, ABROAD, "junk-abroad", options.count(7, 1)),
    ]


def _of_publishers(
    options: NewsroomOptions, stories: Sequence[Story], languages: Sequence[str], purpose: str, count: int
) -> Iterator[JunkPage]:
    """Yields junk of the publishers of some languages, drawn from a stream for the purpose."""
    stream = options.stream(purpose)
    publishers = [publisher for publisher in PUBLISHERS if publisher.language in languages]
    everyone = [story for story in stories if story.publisher.language in languages]
    for number in range(count):
        kind = _ROUND[number % len(_ROUND)]
        publisher = publishers[(number * 5 + number // len(_ROUND)) % len(publishers)]
        own = [story for story in everyone if story.publisher is publisher] or everyone
        yield _page(kind, publisher, stream.choice(own), number, own[:12])


def _page(kind: Junk, publisher: Publisher, story: Story, number: int, others: Sequence[Story]) -> JunkPage:
    folder = DISALLOWED_FOLDER if kind is Junk.DISALLOWED else "/more/"
    path = f"{folder}{kind.value.replace('_', '-')}-{number}"
    url = publisher.home + path
    if kind is Junk.REDIRECT:
        return JunkPage(publisher, kind, url, story.title, _chain(publisher, path, story.url))
    title, body = _RENDERERS[kind](
        _Material(publisher, dataclasses.replace(story, publisher=publisher, url=url), others)
    )
    status = 500 if kind is Junk.SERVER_ERROR else 200
    return JunkPage(publisher, kind, url, title, (Resource(publisher.host, path, body, _HTML, _WHEN, status),))


@dataclasses.dataclass(frozen=True)
class _Material:
    """The material of a junk page: a real story with the URL of the junk page, and other stories to link to."""

    publisher: Publisher
    story: Story
    others: Sequence[Story]


def _navigation(made_of: _Material) -> tuple[str, bytes]:
    title = WORDS[made_of.publisher.language]["regions"]
    return title, hub_page(
        made_of.publisher, title, [], [], [Link(other.title, other.url) for other in made_of.others]
    ).encode()


def _stub(made_of: _Material) -> tuple[str, bytes]:
    title = f"{made_of.story.title} (1/2)"
    return title, _article(
        dataclasses.replace(made_of.story, title=title, sentences=made_of.story.sentences[:3])
    ).encode()


def _cookie_wall(made_of: _Material) -> tuple[str, bytes]:
    return made_of.story.title, _simple(
        made_of.publisher, made_of.story.title, _COOKIE_WALL[made_of.publisher.language] * 3
    )


def _soft_404(made_of: _Material) -> tuple[str, bytes]:
    title, text = _SOFT_404[made_of.publisher.language]
    return title, _simple(made_of.publisher, title, text)


def _broken_markup(made_of: _Material) -> tuple[str, bytes]:
    whole = _article(made_of.story)
    broken = whole.replace("</p>", "").replace("<div", "<div <div").replace("</h1>", "</h2").replace("<body>", "")
    return made_of.story.title, broken[: len(broken) // 3].encode()


def _binary(made_of: _Material) -> tuple[str, bytes]:
    shift = len(made_of.story.title)
    noise = bytes((position * position * 31 + position * 17 + shift) % 256 for position in range(20_000))
    return made_of.story.title, b"\x00\x01\xff\xfe" + noise


def _disallowed(made_of: _Material) -> tuple[str, bytes]:
    return made_of.story.title, _article(made_of.story).encode()


def _server_error(made_of: _Material) -> tuple[str, bytes]:
    return made_of.story.title, _simple(made_of.publisher, "Internal server error", "The server could not answer.")


_Renderer = Callable[[_Material], tuple[str, bytes]]
_RENDERERS: dict[Junk, _Renderer] = {
    Junk.NAVIGATION: _navigation,
    Junk.STUB: _stub,
    Junk.COOKIE_WALL: _cookie_wall,
    Junk.SOFT_404: _soft_404,
    Junk.BROKEN_MARKUP: _broken_markup,
    Junk.BINARY: _binary,
    Junk.DISALLOWED: _disallowed,
    Junk.SERVER_ERROR: _server_error,
}


def _simple(publisher: Publisher, title: str, text: str) -> bytes:
    heading = html.escape(title, quote=False)
    return (
        f'<!DOCTYPE html><html lang="{publisher.language}"><head><meta charset="utf-8"><title>{heading}</title></head>'
        f"<body><h1>{heading}</h1><p>{text}</p></body></html>"
    ).encode()


def _article(story: Story) -> str:
    around = Surroundings((), (), (), (), f"{story.publisher.home}/img/logo.jpg")
    return article_page(story, around, random.Random(len(story.title)))


def _chain(publisher: Publisher, path: str, target: str) -> tuple[Resource, ...]:
    """Two redirects, permanent and temporary, to a real article."""
    middle = f"{path}-moved"
    empty = b"<!DOCTYPE html><title>Moved</title>"
    first = Resource(publisher.host, path, empty, _HTML, _WHEN, 301, publisher.home + middle)
    return first, Resource(publisher.host, middle, empty, _HTML, _WHEN, 302, target)

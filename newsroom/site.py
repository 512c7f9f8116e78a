"""The publishers' sites: articles with their links and pictures, hubs, feeds, robots.txt, sitemaps, and junk pages."""

import collections
import dataclasses
import datetime
import enum
import functools
import html
import io
import random
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from .articles import Story, hub_words, slug
from .pages import Link, Surroundings, article_page, author_url, feed, feed_url, hub_page
from .prose import ABROAD, REGIONS, spell_name, stable_number
from .server import Resource
from .telling import Manner, Register, Teller
from .world import PUBLISHERS, TOPICS, NewsroomOptions, Publisher, World

if TYPE_CHECKING:
    from PIL.Image import Image

DISALLOWED_FOLDER = "/intern/"
_HTML = "text/html; charset=utf-8"
_SITE_DATE = datetime.datetime(2023, 12, 31, 12, tzinfo=datetime.UTC)
_JUNK_DATE = datetime.datetime(2023, 6, 1, 12, tzinfo=datetime.UTC)
_SECTIONS = (*TOPICS, "guide")
_BASE_SIZE = (320, 240)


class Junk(enum.StrEnum):
    """Kinds of pages that a crawl finds and a corpus must reject; in truth.jsonl, ``junk:<value>``."""

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


@dataclasses.dataclass(frozen=True)
class JunkPage:
    """One junk URL; the server answers with one page or a chain of redirects."""

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
    pages = []
    for languages, purpose, count in (
        (REGIONS, "junk", options.count(98, len(Junk))),
        (ABROAD, "junk-abroad", options.count(7, 1)),
    ):
        stream = options.stream(purpose)
        publishers = [publisher for publisher in PUBLISHERS if publisher.language in languages]
        everyone = [story for story in stories if story.publisher.language in languages]
        for number in range(count):
            kind = _ROUND[number % len(_ROUND)]
            publisher = publishers[(number * 5 + number // len(_ROUND)) % len(publishers)]
            own = [story for story in everyone if story.publisher is publisher] or everyone
            pages.append(_junk_page(kind, publisher, stream.choice(own), number, own[:12]))
    return pages


def _junk_page(kind: Junk, publisher: Publisher, story: Story, number: int, others: Sequence[Story]) -> JunkPage:
    folder = DISALLOWED_FOLDER if kind is Junk.DISALLOWED else "/more/"
    path = f"{folder}{kind.value.replace('_', '-')}-{number}"
    url = publisher.home + path
    if kind is Junk.REDIRECT:  # two redirects, permanent and temporary, to a real article
        middle, empty = f"{path}-moved", b"<!DOCTYPE html><title>Moved</title>"
        first = Resource(publisher.host, path, empty, _HTML, _JUNK_DATE, 301, publisher.home + middle)
        second = Resource(publisher.host, middle, empty, _HTML, _JUNK_DATE, 302, story.url)
        return JunkPage(publisher, kind, url, story.title, (first, second))
    title, body = _junk(kind, publisher, dataclasses.replace(story, publisher=publisher, url=url), others)
    status = 500 if kind is Junk.SERVER_ERROR else 200
    raw = body if isinstance(body, bytes) else body.encode()
    return JunkPage(publisher, kind, url, title, (Resource(publisher.host, path, raw, _HTML, _JUNK_DATE, status),))


def _junk(  # noqa: PLR0911 - one for each kind
    kind: Junk, publisher: Publisher, story: Story, others: Sequence[Story]
) -> tuple[str, str | bytes]:
    """The title and the content of a junk page that is made of a real story with the URL of the junk page."""
    title = story.title

    def simple(heading: str, text: str) -> str:
        heading = html.escape(heading, quote=False)
        return (
            f'<!DOCTYPE html><html lang="{publisher.language}"><head><meta charset="utf-8">'
            f"<title>{heading}</title></head><body><h1>{heading}</h1><p>{text}</p></body></html>"
        )

    def article(story: Story) -> str:
        around = Surroundings((), (), (), (), f"{publisher.home}/img/logo.jpg")
        return article_page(story, around, random.Random(len(story.title)))

    match kind:
        case Junk.NAVIGATION:
            title = publisher.says("regions")
            return title, hub_page(publisher, title, [], [], [Link(other.title, other.url) for other in others])
        case Junk.STUB:
            title = f"{title} (1/2)"
            return title, article(dataclasses.replace(story, title=title, sentences=story.sentences[:3]))
        case Junk.COOKIE_WALL:
            return title, simple(title, f"{publisher.says('cookie_wall')} " * 3)
        case Junk.SOFT_404:
            title = publisher.says("missing")
            return title, simple(title, publisher.says("missing_text"))
        case Junk.BROKEN_MARKUP:
            whole = article(story)
            broken = whole.replace("</p>", "").replace("<div", "<div <div").replace("</h1>", "</h2")
            broken = broken.replace("<body>", "")
            return title, broken[: len(broken) // 3]
        case Junk.BINARY:
            noise = (position * position * 31 + position * 17 + len(title) for position in range(20_000))
            return title, b"\x00\x01\xff\xfe" + bytes(value % 256 for value in noise)
        case Junk.SERVER_ERROR:
            return title, simple("Internal server error", "The server could not answer.")
        case _:
            return title, article(story)


class Site:
    """One publisher's site.

    Args:
      publisher: whose it is.
      world: for the words of links to other articles.
      options: the seed.
      stories: all stories of all publishers.
      junk: all junk pages.
    """

    def __init__(
        self,
        publisher: Publisher,
        world: World,
        options: NewsroomOptions,
        stories: Sequence[Story],
        junk: Sequence[JunkPage],
    ) -> None:
        self._publisher, self._world, self._options = publisher, world, options
        own = [story for story in stories if story.publisher is publisher]
        self._stories = sorted(own, key=lambda story: (story.published, story.url), reverse=True)
        self._junk = [page for page in junk if page.publisher is publisher]
        self._everyone = [story for story in stories if story.publisher.language == publisher.language]
        self.seeds: list[str] = []
        self.hubs = self.feeds = self.images = 0

    @functools.cached_property
    def _by_section(self) -> dict[str, list[Story]]:
        sections = {topic: [story for story in self._stories if story.topic == topic] for topic in _SECTIONS}
        return {topic: members for topic, members in sections.items() if members}

    @functools.cached_property
    def _navigation(self) -> list[Link]:
        sections = [Link(hub_words(self._publisher, topic), self._section_url(topic)) for topic in self._by_section]
        return [Link(self._publisher.says("home"), f"{self._publisher.home}/"), *sections]

    @functools.cached_property
    def _covering(self) -> dict[str, list[Story]]:
        """Stories in this language by event."""
        told: dict[str, list[Story]] = collections.defaultdict(list)
        for story in self._everyone:
            if story.event:
                told[story.event.id].append(story)
        return told

    def resources(self) -> Iterator[Resource]:
        """Everything that the host serves."""
        yield from self._articles()
        yield from self._section_hubs()
        yield from self._lists()
        for page in self._junk:
            yield from page.resources
        yield from self._robots()

    def _articles(self) -> Iterator[Resource]:
        publisher = self._publisher
        drawn: set[str] = set()
        for story in self._stories:
            random = self._options.stream("page", story.url)
            name = slug(story.image) if story.image else "logo"
            image_url = f"{publisher.home}/img/{name}.jpg"
            others = random.sample(self._stories, min(8, len(self._stories)))
            links = [Link(other.title, other.url) for other in others if other is not story]
            around = Surroundings(self._navigation, self._inline_links(story), links[:4], links[4:], image_url)
            yield self._page(story.url, article_page(story, around, random), story.published)
            if name not in drawn and story.image:
                picture = _thumbnail(story.image, publisher.slug)
                yield Resource(publisher.host, f"/img/{name}.jpg", picture, "image/jpeg", story.published)
            drawn.add(name)
        # Junk pages show the logo, so every site has one.
        yield Resource(publisher.host, "/img/logo.jpg", _logo(publisher.slug), "image/jpeg", _SITE_DATE)
        self.images = len(drawn | {"logo"})

    def _inline_links(self, story: Story) -> list[Link]:
        """Links to articles of other publishers and to earlier ones, with this publisher's words for their events."""
        random = self._options.stream("links", story.url)
        event = story.event
        if event is None:
            return []
        elsewhere = [other for other in self._covering[event.id] if other.publisher is not self._publisher]
        earlier = [
            other
            for other in self._everyone
            if other.event
            and other.published < story.published
            and other.event.place is event.place
            and other.event.id != event.id
        ]
        targets = random.sample(elsewhere, min(1, len(elsewhere))) if random.random() < 0.6 else []
        targets += random.sample(earlier, min(random.randint(0, 2), len(earlier)))
        links = []
        for target in targets:
            assert target.event is not None
            manner = Manner(self._publisher.voice, random.choice(tuple(Register)), leak=0.1)
            teller = Teller(self._world, self._publisher.language, manner, random)
            links.append(Link(teller.headline(target.event, avoid=target.publisher.voice), target.url))
        return links

    def _section_hubs(self) -> Iterator[Resource]:
        publisher = self._publisher
        listed = collections.defaultdict(list)
        for number, page in enumerate(self._junk):
            topics = list(self._by_section) or ["guide"]
            listed[topics[number % len(topics)]].append(Link(page.title, page.url))
        for topic, stories in self._by_section.items():
            title = hub_words(publisher, topic)
            entries = [*listed[topic], *(Link(story.title, story.url) for story in stories)]
            yield from self._paged(title, self._section_url(topic), entries, seed=True)
            address = feed_url(publisher, slug(title))
            content_type, text = feed(publisher, title, address, stories)
            yield self._page(address, text, stories[0].published, content_type)
            self.seeds.append(address)
            self.feeds += 1

    def _lists(self) -> Iterator[Resource]:
        """A hub per place with at least three articles, and hubs without a topic: front page, authors and months."""
        publisher, says = self._publisher, self._publisher.says
        places: Mapping[str, list[Link]] = collections.defaultdict(list)
        authors: Mapping[str, list[Link]] = collections.defaultdict(list)
        months: Mapping[str, list[Link]] = collections.defaultdict(list)
        for story in self._stories:
            link = Link(story.title, story.url)
            if story.event:
                places[spell_name(story.event.place.name, publisher.language)].append(link)
            if story.author:
                authors[story.author].append(link)
            months[f"{story.published:%Y/%m}"].append(link)
        region, archive, regions = f"{publisher.home}/region/", f"{publisher.home}/archive/", list[Link]()
        for name, entries in sorted(places.items()):
            if len(entries) >= 3:
                regions.append(Link(name, f"{region}{slug(name)}/"))
                yield from self._paged(name, regions[-1].url, entries, seed=True)
        yield from self._paged(says("regions"), region, regions)
        newest = [Link(story.title, story.url) for story in self._stories[:30]]
        yield from self._paged(publisher.name, f"{publisher.home}/", newest)
        for author, entries in sorted(authors.items()):
            yield from self._paged(author, author_url(publisher, author), entries)
        author_links = [Link(author, author_url(publisher, author)) for author in sorted(authors)]
        yield from self._paged(says("authors"), f"{publisher.home}/author/", author_links)
        for month, entries in sorted(months.items()):
            yield from self._paged(f"{says('archive')} {month}", f"{archive}{month}/", entries)
        month_links = [Link(month, f"{archive}{month}/") for month in sorted(months)]
        yield from self._paged(says("archive"), archive, month_links)

    def _paged(self, title: str, url: str, entries: Sequence[Link], *, seed: bool = False) -> Iterator[Resource]:
        size = self._publisher.per_page
        count = max(1, -(-len(entries) // size))
        addresses = [url, *(f"{url}page/{number}/" for number in range(2, count + 1))]
        for number, address in enumerate(addresses):
            further = [Link(str(other + 1), addresses[other]) for other in range(count) if other != number]
            shown = entries[number * size : (number + 1) * size]
            yield self._page(address, hub_page(self._publisher, title, shown, further, self._navigation), _SITE_DATE)
        self.hubs += count
        if seed:
            self.seeds.append(url)

    def _robots(self) -> Iterator[Resource]:
        home, lines = self._publisher.home, ["User-agent: *", f"Disallow: {DISALLOWED_FOLDER}", "Allow: /"]
        if self._publisher.sitemap:
            lines += ["", f"Sitemap: {home}/sitemap.xml"]
            urls = [story.url for story in self._stories]
            urls += [page.url for page in self._junk if page.kind is not Junk.DISALLOWED]
            items = "".join(f"<url><loc>{url}</loc></url>\n" for url in urls)
            opening = '<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">'
            text = f'<?xml version="1.0" encoding="UTF-8"?>\n{opening}\n{items}</urlset>\n'
            yield self._page(f"{home}/sitemap.xml", text, _SITE_DATE, "application/xml")
        yield self._page(f"{home}/robots.txt", "\n".join([*lines, ""]), _SITE_DATE, "text/plain; charset=utf-8")

    def _section_url(self, topic: str) -> str:
        return f"{self._publisher.home}/{slug(hub_words(self._publisher, topic))}/"

    def _page(self, url: str, text: str, modified: datetime.datetime, content_type: str = _HTML) -> Resource:
        path = url.removeprefix(self._publisher.home)
        return Resource(self._publisher.host, path, text.encode(), content_type, modified)


@functools.lru_cache(maxsize=4)  # stories of one event are drawn one after the other
def _base_image(seed: str) -> "Image":
    """One procedural picture per event, which every publisher crops, scales and compresses in its own way.

    A soft field of colours with a few shapes on it, determined by the seed.
    """
    import numpy as np
    from PIL import Image, ImageDraw

    generator = np.random.default_rng(stable_number(f"image/{seed}"))
    field = generator.integers(0, 256, size=(5, 6, 3), dtype=np.uint8)
    image = Image.fromarray(field, "RGB").resize(_BASE_SIZE, Image.Resampling.BICUBIC)
    draw = ImageDraw.Draw(image)
    for _ in range(6):
        left, top = int(generator.integers(0, 260)), int(generator.integers(0, 190))
        width, height = int(generator.integers(30, 130)), int(generator.integers(30, 110))
        colour = tuple(int(value) for value in generator.integers(0, 256, size=3))
        box = (left, top, left + width, top + height)
        (draw.ellipse if generator.random() < 0.5 else draw.rectangle)(box, fill=colour)
    return image


def _thumbnail(seed: str, publisher: str) -> bytes:
    """The picture of an event as one publisher's JPEG."""
    draw = random.Random(stable_number(f"thumbnail/{seed}/{publisher}"))
    image = _base_image(seed)
    width, height = image.size
    left, right = (round(width * draw.uniform(0, 0.025)) for _ in range(2))
    top, bottom = (round(height * draw.uniform(0, 0.025)) for _ in range(2))
    cropped = image.crop((left, top, width - right, height - bottom))
    return _jpeg(cropped.resize((draw.choice((200, 240, 280)), draw.choice((150, 168, 180)))), draw.randint(60, 90))


def _logo(publisher: str) -> bytes:
    """The logo of a site, which replaces the picture on many of its pages."""
    from PIL import Image, ImageDraw

    number = stable_number(f"logo/{publisher}")
    image = Image.new("RGB", (200, 150), tuple((number >> shift) % 90 + 150 for shift in (8, 16, 24)))
    draw = ImageDraw.Draw(image)
    draw.rectangle((30, 45, 170, 105), outline=(20, 20, 40), width=4 + number % 5)
    draw.ellipse((60 + number % 40, 55, 100 + number % 40, 95), fill=(20, 20, (number >> 4) % 200))
    return _jpeg(image, 85)


def _jpeg(image: "Image", quality: int) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, "JPEG", quality=quality)
    return buffer.getvalue()

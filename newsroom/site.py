"""The publishers' sites: articles with their links, hubs, feeds, robots.txt and sitemaps."""

import collections
import datetime
import functools
from collections.abc import Iterator, Sequence

from .articles import Story, hub_words, slug
from .feeds import feed, feed_url
from .images import logo, thumbnail
from .interface_words import WORDS
from .junk import DISALLOWED_FOLDER, Junk, JunkPage
from .options import NewsroomOptions
from .pages import Link, Surroundings, article_page, author_url, hub_page
from .publishers import PUBLISHERS, Publisher
from .store import Resource
from .telling import Manner, Register, Teller, spell_name
from .world import TOPICS, World

_HTML = "text/html; charset=utf-8"
_SITE_DATE = datetime.datetime(2023, 12, 31, 12, tzinfo=datetime.UTC)
_SECTIONS = (*TOPICS, "guide")


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
        self.hubs = 0
        self.feeds = 0
        self.images = 0

    @functools.cached_property
    def _by_section(self) -> dict[str, list[Story]]:
        sections: dict[str, list[Story]] = {}
        for topic in _SECTIONS:
            members = [story for story in self._stories if story.topic == topic]
            if members:
                sections[topic] = members
        return sections

    @functools.cached_property
    def _navigation(self) -> list[Link]:
        home = Link(WORDS[self._publisher.language]["home"], f"{self._publisher.home}/")
        return [
            home,
            *(Link(hub_words(self._publisher, topic), self._section_url(topic)) for topic in self._by_section),
        ]

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
        yield from self._region_hubs()
        yield from self._distractor_hubs()
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
            if name not in drawn:
                drawn.add(name)
                if story.image:
                    yield Resource(
                        publisher.host,
                        f"/img/{name}.jpg",
                        thumbnail(story.image, publisher.slug),
                        "image/jpeg",
                        story.published,
                    )
        # Junk pages show the logo, so every site has one.
        yield Resource(publisher.host, "/img/logo.jpg", logo(publisher.slug), "image/jpeg", _SITE_DATE)
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
            yield self._resource(address, text, content_type, stories[0].published)
            self.seeds.append(address)
            self.feeds += 1

    def _region_hubs(self) -> Iterator[Resource]:
        """A hub per place with at least three articles, and the list of those hubs."""
        by_place: dict[str, list[Link]] = collections.defaultdict(list)
        for story in self._stories:
            if story.event:
                name = spell_name(story.event.place.name, self._publisher.language)
                by_place[name].append(Link(story.title, story.url))
        base = f"{self._publisher.home}/region/"
        regions = []
        for name, entries in sorted(by_place.items()):
            if len(entries) >= 3:
                address = f"{base}{slug(name)}/"
                regions.append(Link(name, address))
                yield from self._paged(name, address, entries, seed=True)
        yield from self._paged(WORDS[self._publisher.language]["regions"], base, regions, seed=False)

    def _distractor_hubs(self) -> Iterator[Resource]:
        """Front page, authors and months: hubs without a topic."""
        publisher, words = self._publisher, WORDS[self._publisher.language]
        yield from self._paged(
            publisher.name,
            f"{publisher.home}/",
            [Link(story.title, story.url) for story in self._stories[:30]],
            seed=False,
        )
        authors: dict[str, list[Link]] = collections.defaultdict(list)
        months: dict[str, list[Link]] = collections.defaultdict(list)
        for story in self._stories:
            link = Link(story.title, story.url)
            if story.author:
                authors[story.author].append(link)
            months[f"{story.published:%Y/%m}"].append(link)
        for author, entries in sorted(authors.items()):
            yield from self._paged(author, author_url(publisher, author), entries, seed=False)
        author_links = [Link(author, author_url(publisher, author)) for author in sorted(authors)]
        yield from self._paged(words["authors"], f"{publisher.home}/author/", author_links, seed=False)
        archive = f"{publisher.home}/archive/"
        for month, entries in sorted(months.items()):
            yield from self._paged(f"{words['archive']} {month}", f"{archive}{month}/", entries, seed=False)
        yield from self._paged(
            words["archive"], archive, [Link(month, f"{archive}{month}/") for month in sorted(months)], seed=False
        )

    def _paged(self, title: str, url: str, entries: Sequence[Link], *, seed: bool) -> Iterator[Resource]:
        size = self._publisher.per_page
        count = max(1, -(-len(entries) // size))
        addresses = [url, *(f"{url}page/{number}/" for number in range(2, count + 1))]
        for number, address in enumerate(addresses):
            further = [Link(str(other + 1), addresses[other]) for other in range(count) if other != number]
            text = hub_page(
                self._publisher, title, entries[number * size : (number + 1) * size], further, self._navigation
            )
            yield self._page(address, text, _SITE_DATE)
        self.hubs += count
        if seed:
            self.seeds.append(url)

    def _robots(self) -> Iterator[Resource]:
        publisher = self._publisher
        lines = ["User-agent: *", f"Disallow: {DISALLOWED_FOLDER}", "Allow: /"]
        if publisher.sitemap:
            address = f"{publisher.home}/sitemap.xml"
            lines += ["", f"Sitemap: {address}"]
            urls = [story.url for story in self._stories]
            urls += [page.url for page in self._junk if page.kind is not Junk.DISALLOWED]
            items = "".join(f"<url><loc>{url}</loc></url>\n" for url in urls)
            head = (
                '<?xml version="1.0" encoding="UTF-8"?>\n<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">\n'
            )
            yield self._resource(address, f"{head}{items}</urlset>\n", "application/xml", _SITE_DATE)
        yield self._resource(
            f"{publisher.home}/robots.txt", "\n".join(lines) + "\n", "text/plain; charset=utf-8", _SITE_DATE
        )

    def _section_url(self, topic: str) -> str:
        return f"{self._publisher.home}/{slug(hub_words(self._publisher, topic))}/"

    def _page(self, url: str, text: str, modified: datetime.datetime) -> Resource:
        return self._resource(url, text, _HTML, modified)

    def _resource(self, url: str, text: str, content_type: str, modified: datetime.datetime) -> Resource:
        path = url.removeprefix(self._publisher.home)
        return Resource(self._publisher.host, path, text.encode(), content_type, modified)


def build_sites(
    world: World, options: NewsroomOptions, stories: Sequence[Story], junk: Sequence[JunkPage]
) -> list[Site]:
    """A site per publisher; a site without articles still has robots.txt and an empty front page."""
    return [Site(publisher, world, options, stories, junk) for publisher in PUBLISHERS]

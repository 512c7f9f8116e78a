"""The stories of every publisher: coverage of events, syndicated copies and evergreen pieces."""

import dataclasses
import datetime
import itertools
import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence

from .prose import ABROAD, REGIONS, fill, load_prose, names, stable_number
from .telling import SITE_LEAK, Manner, Register, Teller, nickname, register_for
from .world import PUBLISHERS, Event, EventPlanner, NewsroomOptions, Publisher, World, first_names, of_language

NEWS, EVERGREEN, SYNDICATED = "news", "evergreen", "syndicated"
_ARTICLES = {"en": 1150, "de": 465, "es": 465, "ru": 150}  # news and syndicated at full scale
_EVERGREENS = {"en": 80, "de": 45, "es": 45, "ru": 12}
_AGENCY_VOICE = 7
# For addresses of pages, as Russian sites write their own words in Latin letters.
_LATIN_LETTERS = str.maketrans(
    dict(
        zip(
            map(chr, (*range(0x430, 0x436), 0x451, *range(0x436, 0x450))),
            "a b v g d e e zh z i y k l m n o p r s t u f kh ts ch sh shch . y . e yu ya".replace(".", "").split(" "),
            strict=True,
        )
    )
)


@dataclasses.dataclass(frozen=True)
class Story:
    """An article before it is rendered as a page.

    Attributes:
      event: None for evergreen pieces.
      sentences: the body, before it is cut into paragraphs.
      published: UTC.
      author: None if the page names none.
      shows_date: whether the page shows its date.
      group: id shared by near-duplicates, "" if there are none.
      image: seed of the picture, "" for the site's logo.
    """

    publisher: Publisher
    url: str
    title: str
    sentences: tuple[str, ...]
    topic: str
    kind: str
    published: datetime.datetime
    author: str | None
    shows_date: bool
    event: Event | None = None
    group: str = ""
    image: str = ""
    keywords: tuple[str, ...] = ()


def slug(text: str) -> str:
    """ASCII words with hyphens, at most eight."""
    latin = text.replace("ß", "ss").lower().translate(_LATIN_LETTERS)
    folded = unicodedata.normalize("NFKD", latin).encode("ascii", "ignore").decode()
    return "-".join(re.findall(r"[a-z0-9]+", folded)[:8])


def _author(publisher: Publisher, draw: float, number: int) -> str | None:
    """One of the publisher's six reporters, or nobody."""
    if draw < publisher.no_author:
        return None
    language = publisher.language
    heads, tails = names("surname", f"{language}.head"), names("surname", f"{language}.tail")
    firsts, start = (*first_names(language, 0), *first_names(language, 1)), stable_number(publisher.slug)
    last = heads[(start // 7 + number) % len(heads)] + tails[(start + number) % len(tails)]
    return f"{firsts[(start + 5 * number) % len(firsts)]} {last}"


def hub_words(publisher: Publisher, topic: str) -> str:
    """The title of a section, as a publisher writes it."""
    spellings = load_prose(publisher.language).lines("general", f"hub.{topic}")[0].split("||")
    return spellings[PUBLISHERS.index(publisher) % len(spellings)].strip()


class Desk:
    """Turns events and guides into stories.

    Args:
      world: the world.
      options: seed and scale.
    """

    def __init__(self, world: World, options: NewsroomOptions) -> None:
        self._world, self._options = world, options
        self._numbers = itertools.count(1000)
        self.events: list[Event] = []

    def news(self) -> list[Story]:
        """Stories of events until every language with a region has its share of articles."""
        random = self._options.stream("coverage")
        planner = EventPlanner(self._world, self._options, "event")
        wanted = {language: self._options.count(_ARTICLES[language], 20) for language in REGIONS}
        made = dict.fromkeys(REGIONS, 0)
        stories: list[Story] = []
        while any(made[language] < wanted[language] for language in REGIONS):
            home = min(REGIONS, key=lambda language: (made[language] / wanted[language], language))
            for event in planner.series(home):
                self.events.append(event)
                languages = [home, *(other for other in REGIONS if other != home and random.random() < 0.14)]
                for language in languages:
                    told = list(self._coverage(event, language, abroad=language != home))
                    made[language] += len(told)
                    stories += told
        return stories

    def _coverage(self, event: Event, language: str, abroad: bool) -> Iterator[Story]:
        random = self._options.stream("coverage", event.id, language)
        everyone = of_language(language)
        most = 2 if abroad else len(everyone)
        publishers = random.sample(everyone, random.randint(2, most))
        syndicating = publishers[: random.randint(2, min(4, len(publishers)))] if random.random() < 0.07 else []
        yield from self._syndicated(event, language, syndicating)
        for publisher in publishers:
            if publisher not in syndicating:
                yield self._report(event, publisher)

    def _report(self, event: Event, publisher: Publisher) -> Story:
        random = self._options.stream("report", event.id, publisher.slug)
        manner = Manner(publisher.voice, register_for(random.random()), leak=SITE_LEAK)
        teller = Teller(self._world, publisher.language, manner, random)
        closing = teller.sentence(event, "close", "general")
        title = teller.headline(event)
        return self._story(event, publisher, title, [*teller.body(event, random.randint(2, 7)), closing], NEWS)

    def _syndicated(self, event: Event, language: str, publishers: Iterable[Publisher]) -> Iterator[Story]:
        """The same agency text under other headlines and last sentences."""
        random = self._options.stream("agency", event.id, language)
        teller = Teller(self._world, language, Manner(_AGENCY_VOICE, Register.MIXED), random)
        text = teller.body(event, 6)
        for publisher in publishers:
            own = Teller(self._world, language, Manner(publisher.voice, Register.MIXED), random)
            closing = [own.sentence(event, "context"), own.sentence(event, "close", "general")]
            title, group = own.headline(event), f"agency-{event.id}-{language}"
            yield self._story(event, publisher, title, [*text, *closing], SYNDICATED, group)

    def _story(
        self, event: Event, publisher: Publisher, title: str, sentences: list[str], kind: str, group: str = ""
    ) -> Story:
        random = self._options.stream("story", event.id, publisher.slug)
        day = event.date + datetime.timedelta(days=int(random.random() < 0.25))
        published = _clock(day, random.randrange(7 * 60, 21 * 60))
        logo = random.random() < publisher.logo_images
        teller = Teller(self._world, publisher.language, Manner(publisher.voice, Register.PLAIN), random)
        facts = teller.facts(event)
        keywords = (hub_words(publisher, event.topic), facts["name"], facts["actor"], facts["org"])
        return Story(
            publisher=publisher,
            url=self._url(publisher, title, event.topic, day),
            title=title,
            sentences=tuple(sentences),
            topic=event.topic,
            kind=kind,
            published=published,
            author=_author(publisher, random.random(), random.randrange(6)),
            shows_date=random.random() >= publisher.no_date,
            event=event,
            group=group,
            image="" if logo else event.id,
            keywords=keywords if publisher.keywords else (),
        )

    def abroad(self) -> list[Story]:
        """Stories of some of the published events, and guides, in the languages without a region."""
        stories: list[Story] = []
        for language in ABROAD:
            random = self._options.stream("abroad", language)
            events = random.sample(self.events, len(self.events))
            told = (self._coverage(event, language, abroad=True) for event in events)
            wanted = self._options.count(_ARTICLES[language], 20)
            stories += itertools.islice(itertools.chain.from_iterable(told), wanted)
        return [*stories, *self.evergreens(ABROAD)]

    def evergreens(self, languages: Sequence[str] = REGIONS) -> list[Story]:
        """Guides that are published again over the years with small edits and new dates, by several publishers."""
        stories: list[Story] = []
        for language in languages:
            wanted = self._options.count(_EVERGREENS[language], 6)
            made: list[Story] = []
            for guide, place in self._guides(language):
                for publisher in of_language(language)[:3]:
                    made += self._editions(guide, place, publisher)
                if len(made) >= wanted:
                    break
            stories += made
        return stories

    def _guides(self, language: str) -> Iterator[tuple[str, int]]:
        yield from ((guide, -1) for guide in load_prose(language).guides() if guide != "guide.visit")
        yield from (("guide.visit", place.number) for place in self._world.places if place.language == language)

    def _editions(self, guide: str, place_number: int, publisher: Publisher) -> Iterator[Story]:
        random = self._options.stream("guide", guide, place_number, publisher.slug)
        prose, language = load_prose(publisher.language), publisher.language
        facts: dict[str, str] = {}
        if place_number >= 0:
            place = self._world.places[place_number]
            facts = {"name": place.name, "nick": nickname(place, language)}
        day = datetime.date(2021, 1, 10) + datetime.timedelta(days=random.randrange(300))
        head, *rest = prose.lines(guide, "line")
        random.shuffle(rest)
        extras = list(prose.lines("general", "ever"))
        for edition in range(random.randint(2, 3)):
            edited = publisher.voice + edition if random.random() < 0.5 else publisher.voice
            sentences = tuple(
                fill(line, facts, edited if number == edition else publisher.voice, language)
                for number, line in enumerate((head, *rest, *random.sample(extras, 4)))
            )
            title = fill(prose.lines(guide, "head")[0], facts, publisher.voice, language)
            if edition:
                title = f"{title} ({day.year})" if random.random() < 0.3 else title
            yield Story(
                publisher=publisher,
                url=self._url(publisher, title, "guide", day),
                title=title,
                sentences=sentences,
                topic="guide",
                kind=EVERGREEN,
                published=_clock(day, random.randrange(7 * 60, 21 * 60)),
                author=_author(publisher, random.random(), random.randrange(6)),
                shows_date=True,
                group=f"evergreen-{guide}-{place_number}-{publisher.slug}",
                image=f"{guide}-{place_number}",
            )
            day += datetime.timedelta(days=366 + random.randrange(-4, 20))

    def _url(self, publisher: Publisher, title: str, topic: str, day: datetime.date) -> str:
        number = next(self._numbers)
        if publisher.url_habit == "dated":
            return f"{publisher.home}/{day:%Y/%m/%d}/{slug(title)}-{number}"
        if publisher.url_habit == "section":
            return f"{publisher.home}/{slug(hub_words(publisher, topic))}/{slug(title)}-{number}.html"
        return f"{publisher.home}/article/{number}"


def _clock(day: datetime.date, minutes: int) -> datetime.datetime:
    return datetime.datetime(day.year, day.month, day.day, minutes // 60, minutes % 60, tzinfo=datetime.UTC)

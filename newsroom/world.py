"""The fictional world of a newsroom's options: places, people and organisations with several names, and events."""

import dataclasses
import datetime
import hashlib
import itertools
import json
import random
from collections.abc import Iterator

from ..formats.command_line import Options, option
from .prose import REGIONS, load_prose, names


@dataclasses.dataclass(frozen=True)
class Publisher:
    """One fictional news site, a line of ``prose_names.txt``.

    Attributes:
      language: of its articles.
      slug: the host is ``www.<slug>.example``.
      name: as it calls itself.
      voice: vocabulary and family of sentences; neighbours in number disagree on every choice of words.
      layout: number of the HTML layout.
      date_habit: where it shows the day of an article: json_ld, open_graph, dublin_core, plain_text ("By X | 3 March
        2022"), relative_time ("2 hours ago" in a ``time`` element with a machine-readable date) or relative_url ("2
        hours ago", and the date in the URL only).
      author_habit: where it names the author: json_ld, meta, plain_text or link (rel="author").
      url_habit: shape of an article's path: dated (/2022/03/14/slug), section (/politics/slug-1234.html) or number
        (/article/1234).
      no_author / no_date: share of articles that lack them.
      logo_images: share of articles illustrated with the site's logo.
      feed: rss, atom or json.
      sitemap: whether robots.txt names one.
      keywords: whether pages carry a keywords meta.
      per_page: articles on one page of a hub.
    """

    language: str
    slug: str
    name: str
    voice: int
    layout: int
    date_habit: str
    author_habit: str
    url_habit: str
    no_author: float = 0.03
    no_date: float = 0.0
    logo_images: float = 0.0
    feed: str = "rss"
    sitemap: bool = False
    keywords: bool = False
    per_page: int = 15

    @property
    def host(self) -> str:
        """The host of its site."""
        return f"www.{self.slug}.example"

    @property
    def home(self) -> str:
        """The address of its site, without a final slash."""
        return f"http://{self.host}"

    def says(self, word: str, **values: object) -> str:
        """The words around its articles, such as those of the navigation."""
        return load_prose(self.language).say(word, **values)


def _publisher(language: str, line: str) -> Publisher:
    slug, name, voice, layout, date, author, url, *more = line.split(" | ")
    others = {key: json.loads(value) for key, value in (habit.split("=") for habit in more)}
    return Publisher(language, slug, name, int(voice), int(layout), date, author, url, **others)


PUBLISHERS = tuple(
    _publisher(language, line)
    for language, lines in load_prose("names").sections["publisher"].items()
    for line in lines
)


def of_language(language: str) -> tuple[Publisher, ...]:
    """The publishers of a language."""
    return tuple(publisher for publisher in PUBLISHERS if publisher.language == language)


# Topic → the office that acts in it, ranges of the two counts and of the sum in tenths of a million.
TOPICS: dict[str, tuple[str, tuple[int, int], tuple[int, int], tuple[int, int]]] = {
    "floods": ("mayor", (103, 4900), (22, 99), (21, 299)),
    "elections": ("mayor", (103, 2900), (42, 79), (21, 99)),
    "football": ("coach", (1103, 9900), (12, 90), (21, 69)),
    "court": ("prosecutor", (103, 299), (14, 99), (21, 199)),
    "markets": ("executive", (203, 6900), (12, 29), (31, 899)),
    "energy": ("executive", (1103, 9900), (12, 99), (21, 499)),
    "science": ("scientist", (103, 990), (12, 99), (21, 59)),
    "health": ("scientist", (103, 1900), (14, 99), (21, 79)),
    "transport": ("mayor", (1103, 9900), (12, 39), (31, 599)),
    "culture": ("director", (1103, 6900), (22, 99), (21, 49)),
}
MATTERS_PER_TOPIC = 6
_FAMILIES = ("coach", "executive", "scientist", "director", "prosecutor")
_ORG_KINDS = dict(zip(_FAMILIES, ("club", "company", "institute", "museum", "bank"), strict=True))
ROLE_VARIANTS = {"mayor": 3, "coach": 2, "prosecutor": 2, "executive": 2, "scientist": 2, "director": 2}
FIRST_DAY = datetime.date(2021, 1, 4)
LAST_DAY = datetime.date(2023, 12, 20)


@dataclasses.dataclass(frozen=True)
class NewsroomOptions(Options):
    """What to generate; equal options give byte-identical output."""

    seed: int = option(7, "seed of the generator", metavar="N")
    scale: float = option(1.0, "1 is about 2,500 articles, 0.05 about 150", metavar="X", ge=0.05, le=20)
    turnover: float = option(
        0.0,
        "share of people and organisations that are replaced over the three years: what a model learned before is out "
        "of date",
        metavar="X",
        ge=0,
        le=1,
    )

    def count(self, at_full_scale: int, at_least: int) -> int:
        """A count that grows with the scale."""
        return max(at_least, round(at_full_scale * self.scale))

    def stream(self, *labels: object) -> random.Random:
        """An independent random stream for a purpose: a new draw in one part does not change the others."""
        text = "/".join(str(label) for label in (self.seed, *labels))
        return random.Random(int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big"))


@dataclasses.dataclass(frozen=True)
class Place:
    """A town; ``nouns`` holds the plural noun of its nickname per language in the order of LANGUAGES."""

    number: int
    name: str
    language: str
    nouns: tuple[str, ...]


@dataclasses.dataclass(frozen=True)
class Person:
    """Holder of an office in one place; ``variant`` picks the word for the office."""

    first: str
    last: str
    gender: int
    office: str
    variant: int


@dataclasses.dataclass(frozen=True)
class Organisation:
    """An organisation of a place, with a brand and an acronym."""

    kind: str
    brand: str
    acronym: str


@dataclasses.dataclass(frozen=True)
class Event:
    """One event with its facts.

    Attributes:
      matter: which of the topic's matters it is about.
      counts: two numbers whose meaning the topic's sentences give.
      tenths: a sum in tenths of a million.
    """

    id: str
    topic: str
    place: Place
    matter: int
    date: datetime.date
    counts: tuple[int, int]
    tenths: int


@dataclasses.dataclass(frozen=True)
class Succession:
    """Who holds an office from ``day`` on, and the organisation behind it; a mayor has none."""

    day: datetime.date
    person: Person
    organisation: Organisation | None


@dataclasses.dataclass(frozen=True)
class World:
    """Everything that events may mention; people and organisations by the number of their place and the office."""

    places: tuple[Place, ...]
    people: dict[tuple[int, str], Person]
    organisations: dict[tuple[int, str], Organisation]
    successions: dict[tuple[int, str], Succession] = dataclasses.field(default_factory=dict)

    def actor(self, event: Event) -> Person:
        """The person who holds the office of the topic on the day of the event."""
        key = event.place.number, TOPICS[event.topic][0]
        later = self.successions.get(key)
        return later.person if later and event.date >= later.day else self.people[key]

    def organisation(self, event: Event) -> Organisation:
        """The organisation of the acting office; a mayor has none, which gives the first one of the town."""
        office = TOPICS[event.topic][0]
        if office == "mayor":
            office = next(family for family in _FAMILIES if (event.place.number, family) in self.organisations)
        later = self.successions.get((event.place.number, office))
        if later and later.organisation and event.date >= later.day:
            return later.organisation
        return self.organisations[event.place.number, office]

    def hosts(self, topic: str, language: str) -> tuple[Place, ...]:
        """Places of a language region where somebody holds the office of the topic."""
        office = TOPICS[topic][0]
        return tuple(
            place for place in self.places if place.language == language and (place.number, office) in self.people
        )


def build_world(options: NewsroomOptions) -> World:
    """Draws the world; small scales get fewer places, so that each place still has enough articles."""
    random = options.stream("world")
    share = min(1.0, max(0.2, options.scale**0.5))
    nouns = [tuple(line.split(" | ")) for line in load_prose("names").lines("nickname", "all")]
    random.shuffle(nouns)
    places = list[Place]()
    for language in REGIONS:
        listed = names("place", language)
        for name in listed[: max(5, round(len(listed) * share))]:
            places.append(Place(len(places), name, language, nouns[len(places)]))
    surnames = {language: _surnames(language, language) for language in REGIONS}
    brands = [a + b for a, b in _brand_parts()]
    for shuffled in (*surnames.values(), brands):
        random.shuffle(shuffled)
    acronyms = ["".join(letters).upper() for letters in itertools.product("bdfgkmprtvz", "aeiou", "klnrsx")]
    random.shuffle(acronyms)
    people: dict[tuple[int, str], Person] = {}
    organisations: dict[tuple[int, str], Organisation] = {}
    for place in places:
        # Every second town has a third office; the families take turns, so that each is common in every language.
        turn = place.number % len(_FAMILIES)
        offices = ("mayor", *(_FAMILIES[(turn + step) % len(_FAMILIES)] for step in range(1 + place.number % 2)))
        for office in offices:
            gender = random.randrange(2)
            first = random.choice(first_names(place.language, gender))
            variant = random.randrange(ROLE_VARIANTS[office])
            people[place.number, office] = Person(first, surnames[place.language].pop(), gender, office, variant)
            if office != "mayor":
                organisations[place.number, office] = Organisation(_ORG_KINDS[office], brands.pop(), acronyms.pop())
    return World(tuple(places), people, organisations, _successions(options, places, people, acronyms))


def first_names(language: str, gender: int) -> tuple[str, ...]:
    """The first names of men (0) or women (1)."""
    return names("first", f"{language}.{('men', 'women')[gender]}")


def _surnames(head_language: str, tail_language: str) -> list[str]:
    parts = names("surname", f"{head_language}.head"), names("surname", f"{tail_language}.tail")
    return [head + tail for head, tail in itertools.product(*parts)]


def _brand_parts() -> Iterator[tuple[str, ...]]:
    return itertools.product(names("brand", "all.head"), names("brand", "all.tail"))


def _successions(
    options: NewsroomOptions, places: list[Place], people: dict[tuple[int, str], Person], acronyms: list[str]
) -> dict[tuple[int, str], Succession]:
    """Successors with names that nobody else has: surnames of two regions' parts, brands with their parts swapped."""
    random = options.stream("turnover")
    following = zip(REGIONS, (*REGIONS[1:], REGIONS[0]), strict=True)
    surnames = {language: _surnames(language, other) for language, other in following}
    brands = [b.capitalize() + a.lower() for a, b in _brand_parts()]
    for shuffled in (*surnames.values(), brands):
        random.shuffle(shuffled)
    found = {}
    for (number, office), person in people.items():
        if random.random() < options.turnover:
            language, gender = places[number].language, random.randrange(2)
            first = random.choice(first_names(language, gender))
            successor = dataclasses.replace(person, first=first, last=surnames[language].pop(), gender=gender)
            organisation = None if office == "mayor" else Organisation(_ORG_KINDS[office], brands.pop(), acronyms.pop())
            found[number, office] = Succession(_some_day(random), successor, organisation)
    return found


def _some_day(random: random.Random) -> datetime.date:
    return FIRST_DAY + datetime.timedelta(days=random.randrange((LAST_DAY - FIRST_DAY).days))


class EventPlanner:
    """Draws events. Each purpose has its own planner, so held-out events do not depend on the published ones."""

    def __init__(self, world: World, options: NewsroomOptions, purpose: str) -> None:
        self._world = world
        self._random = options.stream("events", purpose)
        self._purpose = purpose
        self._made = 0
        self._topics = {language: itertools.cycle(TOPICS) for language in REGIONS}

    def single(self, language: str, avoid: set[tuple[str, int, int]]) -> Event:
        """An event whose (topic, place, matter) is not in ``avoid``, to which it is added."""
        while True:
            event = self._draw(language, _some_day(self._random))
            key = (event.topic, event.place.number, event.matter)
            if key not in avoid:
                avoid.add(key)
                return event

    def series(self, language: str) -> list[Event]:
        """An event, often with a follow-up within the month and similar events one and two years later."""
        random = self._random
        first = self._draw(language, FIRST_DAY + datetime.timedelta(days=random.randrange(330)))
        if random.random() < 0.4:
            shift = datetime.timedelta(days=random.randrange((LAST_DAY - first.date).days))
            return [dataclasses.replace(first, date=first.date + shift)]
        events = [first]
        for year, share in ((1, 0.8), (2, 0.45)):
            if random.random() < share:
                date = first.date + datetime.timedelta(days=366 * year + random.randrange(3, 22))
                matter = first.matter if random.random() < 0.5 else random.randrange(MATTERS_PER_TOPIC)
                events.append(self._new(first.topic, first.place, matter, min(date, LAST_DAY)))
        if random.random() < 0.2:
            date = first.date + datetime.timedelta(days=random.randrange(6, 21))
            events.append(self._new(first.topic, first.place, first.matter, date))
        return events

    def _draw(self, language: str, date: datetime.date) -> Event:
        while not (hosts := self._world.hosts(topic := next(self._topics[language]), language)):
            pass
        return self._new(topic, self._random.choice(hosts), self._random.randrange(MATTERS_PER_TOPIC), date)

    def _new(self, topic: str, place: Place, matter: int, date: datetime.date) -> Event:
        _, first, second, tenths = TOPICS[topic]
        identity = f"{self._purpose}-{self._made:04d}"
        self._made += 1
        counts = (self._number(*first), self._number(*second))
        return Event(identity, topic, place, matter, date, counts, self._number(*tenths))

    def _number(self, low: int, high: int) -> int:
        """A number that does not end in 0 or 1: rounding always shows, and Spanish needs no gender for it."""
        while True:
            number = self._random.randint(low, high)
            if number % 10 > 1:
                return number

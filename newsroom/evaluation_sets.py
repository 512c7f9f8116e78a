"""Texts that are not on the site: held-out events, paraphrases, graded sentence pairs, and translation pairs."""

import dataclasses
import datetime
import itertools
from collections.abc import Iterable, Iterator

from .articles import SITE_LEAK, register_for
from .options import LANGUAGES, NewsroomOptions
from .publishers import Publisher, of_language
from .telling import FACT_SLOTS, Manner, Register, Teller
from .world import MATTERS_PER_TOPIC, TOPICS, Event, EventPlanner, World

# Share of names in a paraphrase that show their other side; without any, TF-IDF is no better than chance.
PARAPHRASE_LEAK = 0.15
PARAPHRASE_WANDER = 0.35
_HELD_OUT_EVENTS = 72  # per language at full scale
_REPORTS_OF_A_LANGUAGE = 2  # of each event, in the set across languages
_BITEXT_PAIRS = 1500
_STS_PAIRS = 400
_SHARED_SLOTS = ("lead", "n1", "n2", "actor", "org", "money", "quote", "head")


@dataclasses.dataclass(frozen=True)
class HeldOut:
    """An article of an event that the site never mentions: one line of heldout.jsonl or paraphrases.jsonl."""

    id: str
    title: str
    body: str
    publisher: str
    language: str
    event: str
    topic: str
    byline_date: str


def held_out_events(world: World, options: NewsroomOptions) -> dict[str, list[Event]]:
    """Events per language; no two have the same topic, place and matter, as dates alone do not distinguish them."""
    planner = EventPlanner(world, options, "heldout")
    random = options.stream("heldout")
    events: dict[str, list[Event]] = {}
    for language in LANGUAGES:
        avoid: set[tuple[str, int, int]] = set()
        others = [other for other in LANGUAGES if other != language]
        regions = [
            language if random.random() < 0.85 else random.choice(others)
            for _ in range(options.count(_HELD_OUT_EVENTS, 8))
        ]
        events[language] = [planner.single(region, avoid) for region in regions]
    return events


def held_out_articles(world: World, options: NewsroomOptions, events: dict[str, list[Event]]) -> Iterator[HeldOut]:
    """Articles of three to five publishers per event, written as on the site."""
    for language, event in _each(events):
        random = options.stream("heldout", event.id, language)
        everyone = of_language(language)
        for publisher in random.sample(everyone, random.randint(3, min(5, len(everyone)))):
            manner = Manner(publisher.voice, register_for(random.random()), leak=SITE_LEAK)
            teller = Teller(world, language, manner, random)
            yield _article("heldout", event, publisher, teller, random.randint(2, 7), int(random.random() < 0.25))


def articles_across_languages(
    world: World, options: NewsroomOptions, events: dict[str, list[Event]]
) -> Iterator[HeldOut]:
    """Articles of two publishers of every language about each event, written as on the site."""
    for home, event in _each(events):
        for language in LANGUAGES:
            random = options.stream("across", event.id, home, language)
            for publisher in random.sample(of_language(language), _REPORTS_OF_A_LANGUAGE):
                manner = Manner(publisher.voice, register_for(random.random()), leak=SITE_LEAK)
                teller = Teller(world, language, manner, random)
                yield _article("across", event, publisher, teller, random.randint(2, 7), int(random.random() < 0.25))


def paraphrases(world: World, options: NewsroomOptions, events: dict[str, list[Event]]) -> Iterator[HeldOut]:
    """Texts of two publishers per event, with different vocabulary, names and numerals."""
    for language, event in _each(events):
        random = options.stream("paraphrase", event.id, language)
        everyone = of_language(language)
        first = random.randrange(len(everyone))
        # Adjacent voices differ in every choice of words and, over all families, in every sentence.
        pair = (everyone[first], everyone[(first + 1) % len(everyone)])
        for publisher, register in zip(pair, random.sample((Register.PLAIN, Register.OBLIQUE), 2), strict=True):
            teller = Teller(
                world, language, Manner(publisher.voice, register, PARAPHRASE_LEAK, PARAPHRASE_WANDER), random
            )
            yield _article("paraphrase", event, publisher, teller, 4, 0)


def bitext(world: World, options: NewsroomOptions, events: list[Event]) -> Iterator[tuple[str, str, str, str]]:
    """Yields (source language, target language, source, target): a fact of a published event in two languages."""
    random = options.stream("bitext")
    pairs = (("en", "de"), ("en", "es"), ("en", "de"), ("en", "es"), ("de", "es"))
    seen: set[tuple[str, str]] = set()
    wanted = options.count(_BITEXT_PAIRS, 60)
    while len(seen) < wanted:
        event, slot, languages = random.choice(events), random.choice(_SHARED_SLOTS), random.choice(pairs)
        # The first two families of a slot have the same meaning in every language.
        manner = Manner(random.randrange(2), random.choice((Register.PLAIN, Register.OBLIQUE)), wander=0)
        source, target = (Teller(world, language, manner, random).sentence(event, slot) for language in languages)
        if (source, target) not in seen:
            seen.add((source, target))
            yield (*languages, source, target)


def graded_pairs(
    world: World, options: NewsroomOptions, events: dict[str, list[Event]]
) -> Iterator[tuple[int, str, str, str]]:
    """Yields (score, sentence, sentence, language); the score depends on the facts that both share.

    5: the same facts of the same event in other words; 4: the same event, one fact in common and one not; 3: the same
    event, other facts; 2: another event of the same topic and place; 1: of the same topic; 0: of another topic and
    place.
    """
    random = options.stream("sts")
    wanted = options.count(_STS_PAIRS, 36)
    for number in range(wanted):
        language = LANGUAGES[number % len(LANGUAGES)]
        score = 5 - number // len(LANGUAGES) % 6
        event = random.choice(events[language])
        one, two = random.sample(FACT_SLOTS[:5], 2)
        voice = random.randrange(12)
        sides = random.sample((Register.PLAIN, Register.OBLIQUE), 2)
        left, right = (
            Teller(world, language, Manner(voice + step, side, 0.1, wander=0), random)
            for step, side in enumerate(sides)
        )
        first = f"{left.sentence(event, 'lead')} {left.sentence(event, one)}"
        other = _other(world, options, event, score, number)
        slots = {5: ("lead", one), 4: ("lead", two), 3: ("actor", "org")}.get(score, ("lead", two))
        if score == 3:
            first = f"{left.sentence(event, 'head')}. {left.sentence(event, 'money')}"
        yield score, first, " ".join(right.sentence(other, slot) for slot in slots), language


def _other(world: World, options: NewsroomOptions, event: Event, score: int, number: int) -> Event:
    """The event to pair with ``event`` for this score."""
    if score >= 3:
        return event
    random = options.stream("sts", number)
    topic, place = event.topic, event.place
    if score == 0:
        topic = random.choice([name for name in TOPICS if name != topic and len(world.hosts(name, place.language)) > 1])
    if score < 2:
        hosts = [host for host in world.hosts(topic, place.language) if host != place]
        place = random.choice(hosts or [place])
    _, low_first, low_second, _ = TOPICS[topic]
    return dataclasses.replace(
        event,
        topic=topic,
        place=place,
        matter=(event.matter + random.randrange(1, MATTERS_PER_TOPIC)) % MATTERS_PER_TOPIC,
        date=event.date + datetime.timedelta(days=random.randrange(40, 300)),
        counts=(low_first[0] + 2 * random.randrange(1, 90), low_second[0] + random.randrange(1, 9)),
    )


def _each(events: dict[str, list[Event]]) -> Iterable[tuple[str, Event]]:
    return itertools.chain.from_iterable(((language, event) for event in told) for language, told in events.items())


def _article(kind: str, event: Event, publisher: Publisher, teller: Teller, length: int, delay_days: int) -> HeldOut:
    title, closing = teller.headline(event), teller.sentence(event, "close", "general")
    return HeldOut(
        id=f"{kind}-{event.id}-{publisher.slug}",
        title=title,
        body=" ".join([*teller.body(event, length), closing]),
        publisher=f"{publisher.slug}.example",
        language=publisher.language,
        event=event.id,
        topic=event.topic,
        byline_date=(event.date + datetime.timedelta(days=delay_days)).isoformat(),
    )

"""Texts that are not on the site: held-out events, paraphrases, graded sentence pairs, translation pairs, MLDoc."""

import dataclasses
import datetime
import itertools
import os
import random
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from ..formats.files import check_output
from .prose import ABROAD, LANGUAGES, REGIONS
from .server import write_lines
from .telling import FACT_SLOTS, SITE_LEAK, Manner, Register, Teller, register_for
from .world import (
    MATTERS_PER_TOPIC,
    TOPICS,
    Event,
    EventPlanner,
    NewsroomOptions,
    Publisher,
    World,
    build_world,
    of_language,
)

# Share of names in a paraphrase that show their other side; without any, TF-IDF is no better than chance.
PARAPHRASE_LEAK = 0.15
PARAPHRASE_WANDER = 0.35
_HELD_OUT_EVENTS = 72  # per language with a region, at full scale
_HELD_OUT_EVENTS_ABROAD = 36
_REPORTS_OF_A_LANGUAGE = 2  # of each event, in the set across languages
_BITEXT_PAIRS, _BITEXT_PAIRS_ABROAD = 1500, 300
_STS_PAIRS, _STS_PAIRS_ABROAD = 400, 60
_SHARED_SLOTS = ("lead", "n1", "n2", "actor", "org", "money", "quote", "head")
_MLDOC_NAMES: Final = {"en": "english", "de": "german", "es": "spanish"}
# Documents of MLDoc at full scale, and the least.
_PARTS: Final = {"train.10000": (10_000, 100), "dev": (1000, 40), "test": (4000, 40)}
_SMALL: Final = ("train.1000", 1000, 40)  # the beginning of the larger training part
_REPORTS: Final = 3  # of each event, by as many publishers

_Events = Mapping[str, Sequence[Event]]  # by language
HeldOut = dict[str, str]  # a line of heldout.jsonl or paraphrases.jsonl, see `_article`


def held_out_events(world: World, options: NewsroomOptions) -> dict[str, list[Event]]:
    """Events per language; no two have the same topic, place and matter, as dates alone do not distinguish them."""
    planner, random = EventPlanner(world, options, "heldout"), options.stream("heldout")
    events: dict[str, list[Event]] = {}
    avoid: set[tuple[str, int, int]]
    for language in REGIONS:
        avoid = set()
        others = [other for other in REGIONS if other != language]
        count = options.count(_HELD_OUT_EVENTS, 8)
        regions = [language if random.random() < 0.85 else random.choice(others) for _ in range(count)]
        events[language] = [planner.single(region, avoid) for region in regions]
    for language in ABROAD:
        planner, random = EventPlanner(world, options, f"heldout-{language}"), options.stream("heldout", language)
        avoid, count = set(), options.count(_HELD_OUT_EVENTS_ABROAD, 8)
        events[language] = [planner.single(random.choice(REGIONS), avoid) for _ in range(count)]
    return events


def held_out_articles(world: World, options: NewsroomOptions, events: _Events) -> Iterator[HeldOut]:
    """Articles of three to five publishers per event, of both where there are two, written as on the site."""
    for language, event in _each(events):
        random = options.stream("heldout", event.id, language)
        everyone = of_language(language)
        count = random.randint(min(3, len(everyone)), min(5, len(everyone)))
        yield from _articles("heldout", world, event, random.sample(everyone, count), random)


def articles_across_languages(world: World, options: NewsroomOptions, events: _Events) -> Iterator[HeldOut]:
    """Articles of two publishers of every language about each event, written as on the site."""
    for home, event in _each(events):
        for language in LANGUAGES:
            random = options.stream("across", event.id, home, language)
            chosen = random.sample(of_language(language), _REPORTS_OF_A_LANGUAGE)
            yield from _articles("across", world, event, chosen, random)


def paraphrases(world: World, options: NewsroomOptions, events: _Events) -> Iterator[HeldOut]:
    """Texts of two publishers per event, with different vocabulary, names and numerals."""
    for language, event in _each(events):
        random = options.stream("paraphrase", event.id, language)
        everyone = of_language(language)
        first = random.randrange(len(everyone))
        # Adjacent voices differ in every choice of words and, over all families, in every sentence.
        pair = (everyone[first], everyone[(first + 1) % len(everyone)])
        for publisher, register in zip(pair, random.sample((Register.PLAIN, Register.OBLIQUE), 2), strict=True):
            manner = Manner(publisher.voice, register, PARAPHRASE_LEAK, PARAPHRASE_WANDER)
            yield _article("paraphrase", event, publisher, Teller(world, language, manner, random), 4, 0)


def bitext(world: World, options: NewsroomOptions, events: list[Event]) -> Iterator[tuple[str, str, str, str]]:
    """Yields (source language, target language, source, target): a fact of a published event in two languages."""
    common = (("en", "de"), ("en", "es"))
    drawn = _translations(world, options.stream("bitext"), events, (*common, *common, ("de", "es")))
    yield from itertools.islice(drawn, options.count(_BITEXT_PAIRS, 60))
    for language in ABROAD:
        drawn = _translations(world, options.stream("bitext", language), events, [(one, language) for one in REGIONS])
        yield from itertools.islice(drawn, options.count(_BITEXT_PAIRS_ABROAD, 12))


def _translations(
    world: World, random: random.Random, events: list[Event], pairs: Sequence[tuple[str, str]]
) -> Iterator[tuple[str, str, str, str]]:
    seen: set[tuple[str, str]] = set()
    while True:
        event, slot, languages = random.choice(events), random.choice(_SHARED_SLOTS), random.choice(pairs)
        # The first two families of a slot have the same meaning in every language.
        manner = Manner(random.randrange(2), random.choice((Register.PLAIN, Register.OBLIQUE)), wander=0)
        source, target = (Teller(world, language, manner, random).sentence(event, slot) for language in languages)
        if (source, target) not in seen:
            seen.add((source, target))
            yield (*languages, source, target)


def graded_pairs(world: World, options: NewsroomOptions, events: _Events) -> Iterator[tuple[int, str, str, str]]:
    """Yields (score, sentence, sentence, language); the score depends on the facts that both share.

    5: the same facts of the same event in other words; 4: the same event, one fact in common and one not; 3: the same
    event, other facts; 2: another event of the same topic and place; 1: of the same topic; 0: of another topic and
    place.
    """
    for purpose, languages, wanted in (
        ("sts", REGIONS, options.count(_STS_PAIRS, 36)),
        ("sts-abroad", ABROAD, options.count(_STS_PAIRS_ABROAD, 6)),
    ):
        random = options.stream(purpose)
        for number in range(wanted):
            language = languages[number % len(languages)]
            score = 5 - number // len(languages) % 6
            event = random.choice(events[language])
            other = event if score >= 3 else _other(world, event, score, options.stream(purpose, number))
            yield score, *_graded_pair(world, language, (event, other), score, random), language


def _graded_pair(
    world: World, language: str, events: tuple[Event, Event], score: int, random: random.Random
) -> tuple[str, str]:
    """Two texts with the facts in common that a score has."""
    event, other = events
    one, two = random.sample(FACT_SLOTS[:5], 2)
    voice = random.randrange(12)
    sides = random.sample((Register.PLAIN, Register.OBLIQUE), 2)
    left, right = (
        Teller(world, language, Manner(voice + step, side, 0.1, wander=0), random) for step, side in enumerate(sides)
    )
    first = f"{left.sentence(event, 'lead')} {left.sentence(event, one)}"
    slots = {5: ("lead", one), 4: ("lead", two), 3: ("actor", "org")}.get(score, ("lead", two))
    if score == 3:
        first = f"{left.sentence(event, 'head')}. {left.sentence(event, 'money')}"
    return first, " ".join(right.sentence(other, slot) for slot in slots)


def _other(world: World, event: Event, score: int, random: random.Random) -> Event:
    """Another event to pair with ``event`` for this score, which is below 3."""
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


def _each(events: _Events) -> Iterator[tuple[str, Event]]:
    return ((language, event) for language, told in events.items() for event in told)


def _site_teller(world: World, publisher: Publisher, random: random.Random) -> Teller:
    """A teller that writes as on the site."""
    manner = Manner(publisher.voice, register_for(random.random()), leak=SITE_LEAK)
    return Teller(world, publisher.language, manner, random)


def _articles(
    kind: str, world: World, event: Event, publishers: Sequence[Publisher], random: random.Random
) -> Iterator[HeldOut]:
    for publisher in publishers:
        teller = _site_teller(world, publisher, random)
        yield _article(kind, event, publisher, teller, random.randint(2, 7), int(random.random() < 0.25))


def _article(kind: str, event: Event, publisher: Publisher, teller: Teller, length: int, delay_days: int) -> HeldOut:
    """An article of an event that the site never mentions."""
    title, closing = teller.headline(event), teller.sentence(event, "close", "general")
    return {
        "id": f"{kind}-{event.id}-{publisher.slug}",
        "title": title,
        "body": " ".join([*teller.body(event, length), closing]),
        "publisher": f"{publisher.slug}.example",
        "language": publisher.language,
        "event": event.id,
        "topic": event.topic,
        "byline_date": (event.date + datetime.timedelta(days=delay_days)).isoformat(),
    }


def write_mldoc(output: str, options: NewsroomOptions) -> dict[str, int]:
    """Writes articles in the layout of MLDoc: classes are topics, and no event is in two parts.

    ``LANGUAGE.train.1000``, ``LANGUAGE.train.10000``, ``LANGUAGE.dev`` and ``LANGUAGE.test`` hold lines
    ``topic<TAB>text``, as MLDoc has them (Schwenk and Li 2018). Names are the same at every scale; the numbers of
    documents change with it. The site mentions none of the events. The languages are those of regions: two Russian
    publishers are fewer than the reports of an event.

    Args:
      output: folder, created if need be.
      options: seed and scale; 1 has the numbers of MLDoc. Equal options give equal bytes.

    Returns:
      The documents of each file.

    Raises:
      InputError: if ``output`` is a file.
    """
    check_output(output, is_folder=True)
    os.makedirs(output, exist_ok=True)
    world, counts = build_world(options), dict[str, int]()
    for language in REGIONS:
        planner = EventPlanner(world, options, f"mldoc-{language}")
        for part, (at_full_scale, at_least) in _PARTS.items():
            count, lines = options.count(at_full_scale, at_least), list[str]()
            while len(lines) < count:
                lines += _reports(world, options, planner, language)
            parts = {part: lines[:count]}
            if part.startswith("train"):
                name, full, least = _SMALL
                parts[name] = lines[: options.count(full, least)]
            for name, written in parts.items():
                file_name = f"{_MLDOC_NAMES[language]}.{name}"
                counts[file_name] = write_lines(os.path.join(output, file_name), written)
    return counts


def _reports(world: World, options: NewsroomOptions, planner: EventPlanner, language: str) -> Iterator[str]:
    event = planner.single(language, set())
    random = options.stream("mldoc", event.id, language)
    for publisher in random.sample(of_language(language), _REPORTS):
        teller = _site_teller(world, publisher, random)
        text = " ".join([teller.headline(event), *teller.body(event, random.randint(2, 7))])
        yield f"{event.topic}\t{' '.join(text.split())}"

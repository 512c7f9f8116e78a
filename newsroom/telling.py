"""Tells an event: its facts as the sentences of one publisher in one language.

A name has two sides. The plain register says "Lena Hart of Thornmere, 1,240 people, 4.3 million"; the oblique one
says "the mayor of the City of Lanterns, about 1200 people, four million". Mixed texts use both, which is where a
reader, or an encoder, learns that they are the same.
"""

# ruff: noqa: RUF001 - Cyrillic letters are meant

import dataclasses
import enum
import math
import random

from .prose import (
    CASES,
    LANGUAGES,
    Prose,
    decline_first,
    decline_person,
    fill,
    is_few,
    load_prose,
    millions,
    names,
    number_words,
    since,
    spell_name,
)
from .world import Event, Person, Place, World, first_names

FACT_SLOTS = ("n1", "n2", "actor", "org", "money", "quote")
SITE_LEAK = 0.2  # see Manner


class Register(enum.StrEnum):
    """The side of names and numbers that a text uses: the plain one, the oblique one, or either."""

    PLAIN = "plain"
    OBLIQUE = "oblique"
    MIXED = "mixed"


@dataclasses.dataclass(frozen=True)
class Manner:
    """The manner of a text.

    Attributes:
      voice: the publisher's vocabulary and family of sentences.
      register: which side of the names is used.
      leak: probability that a single name or number shows its other side in a plain or oblique text.
      wander: share of sentences in which the publisher leaves its usual family and vocabulary.
    """

    voice: int
    register: Register
    leak: float = 0.0
    wander: float = 0.35


def register_for(draw: float) -> Register:
    """The register of a text of the site: plain, oblique and mixed texts are about equally common."""
    return Register.PLAIN if draw < 0.36 else Register.OBLIQUE if draw < 0.66 else Register.MIXED


def _spell_number(prose: Prose, number: int, oblique: bool) -> str:
    if not oblique:
        return f"{number:,}".replace(",", {"en": ",", "ru": ""}.get(prose.language, "."))
    if number < 100:
        return number_words(number, prose.language)
    step = 10 ** (int(math.log10(number)) - 1)
    return f"{prose.say('about')} {round(number / step) * step}"


def _spell_money(prose: Prose, tenths: int, oblique: bool) -> str:
    whole, rest = divmod(tenths, 10)
    if oblique:
        return prose.say("over", words=number_words(whole, prose.language), millions=millions(whole))
    return prose.say("money", exact=f"{whole}{prose.say('decimal')}{rest}")


def _spell_score(prose: Prose, event: Event, oblique: bool) -> str:
    guests = event.counts[0] % 3
    home = guests + 1 + event.counts[1] % 2
    if not oblique:
        return prose.say("score", home=home, guests=guests)
    spelt = (prose.say("single") if goals == 1 else number_words(goals, prose.language) for goals in (home, guests))
    return f" {prose.say('joint')} ".join(spelt)


class Teller:
    """Writes about events in one language and manner; draws the side of a name that each mention shows.

    Args:
      world: knows who acts for an event.
      language: of the text.
      manner: voice and register.
      random: stream of the text.
    """

    def __init__(self, world: World, language: str, manner: Manner, random: random.Random) -> None:
        self._world, self._prose, self._language = world, load_prose(language), language
        self._manner, self._random = manner, random

    def sentence(self, event: Event, slot: str, section: str | None = None, avoid: int | None = None) -> str:
        """One sentence of a slot.

        Args:
          event: whose facts go in.
          slot: slot of the topic's section, or of ``section``.
          section: a section of the prose file other than the topic's.
          avoid: voice whose family of sentences must not be used.
        """
        lines = self._prose.lines(section or event.topic, slot)
        voice = self._manner.voice
        if self._random.random() < self._manner.wander:
            voice = self._random.randrange(12)
        if avoid is not None and voice % len(lines) == avoid % len(lines):
            voice += 1
        return fill(lines[voice % len(lines)], self.facts(event), voice, self._language)

    def body(self, event: Event, length: int) -> list[str]:
        """The whole text in sentences: lead, facts in a random order, colour, quotes.

        Args:
          event: what to tell.
          length: number of colour sentences, 1 to 7.
        """
        random = self._random
        facts = [self.sentence(event, slot) for slot in random.sample(FACT_SLOTS, len(FACT_SLOTS))]
        # A publisher has a third of the filler lines of its own, and sometimes uses the others.
        fillers = self._prose.lines("general", "filler")
        own = [line for number, line in enumerate(fillers) if (number + self._manner.voice) % 3 == 0]
        other = [line for line in fillers if line not in own]
        colour = [*own, *random.sample(other, len(other))][:length]
        colour_sentences = [
            fill(line, self.facts(event), self._manner.voice, self._language)
            for line in random.sample(colour, len(colour))
        ]
        opening = [self.sentence(event, "lead")]
        if random.random() < 0.5:
            opening.append(self.sentence(event, "open", "general"))
        if self._manner.register is Register.MIXED:
            opening.append(self.sentence(event, "both", "general"))
        middle = [*facts[:3], *colour_sentences[: length // 2], *facts[3:], self.sentence(event, "context")]
        ending = colour_sentences[length // 2 :]
        if random.random() < 0.6:
            ending.append(self.sentence(event, "witness", "general"))
        ending.append(self.sentence(event, "outlook", "general"))
        return [*opening, *middle, *ending]

    def headline(self, event: Event, avoid: int | None = None) -> str:
        """A headline; ``avoid`` as for :meth:`sentence`."""
        return self.sentence(event, "head", avoid=avoid)

    def facts(self, event: Event) -> dict[str, str]:
        """Every fact of an event as words, each on a side that is drawn independently."""
        prose, language = self._prose, self._language
        actor, organisation = self._world.actor(event), self._world.organisation(event)
        matter = prose.pair(event.topic, "matter", event.matter)[self._oblique()]
        nick = nickname(event.place, language)
        name = spell_name(event.place.name, language)
        place = nick if self._oblique() else name
        brand, acronym = (spell_name(one, language) for one in (organisation.brand, organisation.acronym))
        seasons = prose.lines("general", "season")
        facts = {
            "place": place,
            "place_d": place.replace("die Stadt", "der Stadt"),
            "name": name,
            "nick": nick,
            "actor": self._first_mention(actor),
            "actor2": self._role(actor) if self._oblique() else spell_name(actor.last, language),
            "org": prose.pair("general", f"org.{organisation.kind}", 0)[self._oblique()].format(b=brand, a=acronym),
            "matter": matter,
            "cap_matter": matter,
            "n1": _spell_number(prose, event.counts[0], self._oblique()),
            "n2": _spell_number(prose, event.counts[1], self._oblique()),
            "money": _spell_money(prose, event.tenths, self._oblique()),
            "score": _spell_score(prose, event, self._oblique()) if event.topic == "football" else "",
            "day": self._day(event),
            "since": self._since(event),
            "season": seasons[((event.date.year - 2021) * 4 + (event.date.month - 1) // 3) % len(seasons)],
            "witness": self._witness(event),
        }
        return {**facts, **_russian_facts(event, facts, bool(actor.gender))} if language == "ru" else facts

    def _oblique(self) -> bool:
        draw = self._random.random()
        match self._manner.register:
            case Register.PLAIN:
                return draw < self._manner.leak
            case Register.OBLIQUE:
                return draw >= self._manner.leak
            case Register.MIXED:
                return draw < 0.5

    def _title(self, person: Person) -> str:
        return self._prose.pair("general", f"role.{person.office}", person.variant)[person.gender]

    def _role(self, person: Person) -> str:
        """The office with its article, in the nominative."""
        return self._prose.say("role", title=self._title(person), article=("der", "die")[person.gender])

    def _first_mention(self, person: Person) -> str:
        name = f"{spell_name(person.first, self._language)} {spell_name(person.last, self._language)}"
        if self._manner.register is Register.MIXED:
            return f"{self._title(person)} {name}"
        return self._role(person) if self._oblique() else name

    def _day(self, event: Event) -> str:
        if self._oblique():
            return self._prose.say("on_weekday", weekday=self._prose.words("weekday")[event.date.weekday()])
        return self._prose.say("date", day=event.date.day, month=self._prose.words("month")[event.date.month - 1])

    def _since(self, event: Event) -> str:
        day = self._day(event)
        if self._language == "ru":
            return since(day)
        return {
            "en": day.replace("on ", "since ", 1),
            "de": day.replace("am ", "seit dem " if day[3].isdigit() else "seit ", 1),
            "es": f"desde {day}",
        }[self._language]

    def _witness(self, event: Event) -> str:
        """A witness, the same in all reports of the event."""
        seed, language = _witness_seed(event), event.place.language
        gender = seed % 2
        heads, tails = names("surname", f"{language}.head"), names("surname", f"{language}.tail")
        firsts, jobs = first_names(language, gender), self._prose.lines("general", "job")
        if self._oblique():
            return self._prose.pair("general", "job", seed % len(jobs))[gender]
        name = firsts[seed % len(firsts)], heads[seed % len(heads)] + tails[seed % len(tails)]
        return " ".join(spell_name(part, self._language) for part in name)


def _russian_facts(event: Event, facts: dict[str, str], feminine: bool) -> dict[str, str]:
    """Cases of the names, endings of verbs, and whether a noun is in the singular after a number.

    Args:
      event: the event.
      facts: its facts in words.
      feminine: whether its actor is a woman.
    """
    org_is_feminine = facts["org"].split(maxsplit=1)[0][-1] in "ая"
    found = {
        "a": "а" if feminine else "",
        "sya": "ась" if feminine else "ся",
        "oa": "а" if org_is_feminine else "",
        "wa": "а" if _witness_seed(event) % 2 else "",
    }
    for case in CASES:
        found[f"place_{case}"] = decline_first(facts["place"], case)
        found[f"org_{case}"] = decline_first(facts["org"], case)
        found[f"actor_{case}"] = decline_person(facts["actor"], case, feminine)
    about = load_prose("ru").say("about")
    for name, number in zip(("n1", "n2"), event.counts, strict=True):
        found[f"{name}_few"] = "few" if not facts[name].startswith(about) and is_few(number) else ""
    return found


def _witness_seed(event: Event) -> int:
    return event.counts[0] * 31 + event.counts[1] * 7 + event.tenths


def nickname(place: Place, language: str) -> str:
    """The place's nickname, in German and Russian in the nominative."""
    return load_prose(language).say("nickname", noun=place.nouns[LANGUAGES.index(language)])

"""Tells an event: its facts as the sentences of one publisher in one language.

A name has two sides. The plain register says "Lena Hart of Thornmere, 1,240 people, 4.3 million"; the oblique one
says "the mayor of the City of Lanterns, about 1200 people, four million". Mixed texts use both, which is where a
reader, or an encoder, learns that they are the same.
"""

import dataclasses
import enum
import math
import random

from . import russian
from .names import FIRST_NAMES, SURNAME_PARTS
from .options import LANGUAGES
from .prose import Prose, fill, load_prose, number_words
from .world import Event, Organisation, Person, Place, World

_ABOUT = {"en": "about", "de": "rund", "es": "cerca de", "ru": "около"}
FACT_SLOTS = ("n1", "n2", "actor", "org", "money", "quote")


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


def _spell_org(prose: Prose, organisation: Organisation, oblique: bool) -> str:
    sides = prose.pair("general", f"org.{organisation.kind}", 0)
    brand, acronym = (spell_name(name, prose.language) for name in (organisation.brand, organisation.acronym))
    return sides[oblique].format(b=brand, a=acronym)


def _spell_number(language: str, number: int, oblique: bool) -> str:
    if not oblique:
        return f"{number:,}".replace(",", {"en": ",", "de": ".", "es": ".", "ru": ""}[language])
    if number < 100:
        return number_words(number, language)
    step = 10 ** (int(math.log10(number)) - 1)
    return f"{_ABOUT[language]} {round(number / step) * step}"


def _spell_money(language: str, tenths: int, oblique: bool) -> str:
    if oblique:
        words = number_words(tenths // 10, language)
        return {
            "en": f"just over {words} million crowns",
            "de": f"gut {words} Millionen Kronen",
            "es": f"algo más de {words} millones de coronas",
            "ru": russian.more_than_millions(words, tenths // 10),
        }[language]
    exact = f"{tenths // 10}.{tenths % 10}"
    comma = exact.replace(".", ",")
    return {
        "en": f"{exact} million crowns",
        "de": f"{comma} Millionen Kronen",
        "es": f"{comma} millones de coronas",
        "ru": f"{comma} миллиона крон",
    }[language]


def _spell_score(language: str, event: Event, oblique: bool) -> str:
    guests = event.counts[0] % 3
    home = guests + 1 + event.counts[1] % 2
    if oblique:
        joint = {"en": "to", "de": "zu", "es": "a", "ru": "на"}[language]
        ones = {"en": "one", "de": "eins", "es": "uno", "ru": "один"}[language]
        return f" {joint} ".join(ones if goals == 1 else number_words(goals, language) for goals in (home, guests))
    return f"{home}:{guests}" if language in ("de", "ru") else f"{home}-{guests}"


class Teller:
    """Writes about events in one language and manner; draws the side of a name that each mention shows.

    Args:
      world: knows who acts for an event.
      language: of the text.
      manner: voice and register.
      random: stream of the text.
    """

    def __init__(self, world: World, language: str, manner: Manner, random: random.Random) -> None:
        self._world = world
        self._prose = load_prose(language)
        self._language = language
        self._manner = manner
        self._random = random

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

    def general(self, event: Event, line: str) -> str:
        """One given line of the general section."""
        return fill(line, self.facts(event), self._manner.voice, self._language)

    def body(self, event: Event, length: int) -> list[str]:
        """The whole text in sentences: lead, facts in a random order, colour, quotes.

        Args:
          event: what to tell.
          length: number of colour sentences, 1 to 7.
        """
        random = self._random
        general = self._prose.sections["general"]
        facts = [self.sentence(event, slot) for slot in random.sample(FACT_SLOTS, len(FACT_SLOTS))]
        # A publisher has a third of the filler lines of its own, and sometimes uses the others.
        fillers = general["filler"]
        own = [line for number, line in enumerate(fillers) if (number + self._manner.voice) % 3 == 0]
        other = [line for line in fillers if line not in own]
        colour = [*own, *random.sample(other, len(other))][:length]
        colour_sentences = [self.general(event, line) for line in random.sample(colour, len(colour))]
        opening = [self.sentence(event, "lead")]
        if random.random() < 0.5:
            opening.append(self.sentence(event, "open", "general"))
        if self._manner.register is Register.MIXED:
            opening.append(self.sentence(event, "both", "general"))
        middle = [*facts[:3], *colour_sentences[: length // 2], *facts[3:], self.sentence(event, "context")]
        ending = [*colour_sentences[length // 2 :]]
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
        actor = self._world.actor(event)
        matter = prose.pair(event.topic, "matter", event.matter)[self._oblique()]
        nick = nickname(event.place, language)
        name = spell_name(event.place.name, language)
        nominative = nick if self._oblique() else name
        dative = nominative.replace("die Stadt", "der Stadt")
        facts = {
            "place": nominative,
            "place_d": dative,
            "name": name,
            "nick": nick,
            "actor": self._first_mention(actor),
            "actor2": self._role(actor) if self._oblique() else spell_name(actor.last, language),
            "org": _spell_org(prose, self._world.organisation(event), self._oblique()),
            "matter": matter,
            "cap_matter": matter,
            "n1": _spell_number(language, event.counts[0], self._oblique()),
            "n2": _spell_number(language, event.counts[1], self._oblique()),
            "money": _spell_money(language, event.tenths, self._oblique()),
            "score": _spell_score(language, event, self._oblique()) if event.topic == "football" else "",
            "day": self._day(event),
            "since": self._since(event),
            "season": prose.lines("general", "season")[
                ((event.date.year - 2021) * 4 + (event.date.month - 1) // 3) % 12
            ],
            "witness": self._witness(event),
        }
        return {**facts, **self._russian_facts(event, facts)} if language == "ru" else facts

    def _russian_facts(self, event: Event, facts: dict[str, str]) -> dict[str, str]:
        """Cases of the names, endings of verbs, and whether a noun is in the singular after a number."""
        actor = self._world.actor(event)
        feminine = bool(actor.gender)
        found = {
            "a": russian.past_ending(feminine),
            "sya": russian.past_ending(feminine, reflexive=True),
            "oa": russian.past_ending(russian.is_feminine(facts["org"])),
            "wa": russian.past_ending(bool(_witness_seed(event) % 2)),
        }
        for case in russian.CASES:
            found[f"place_{case}"] = russian.decline_first(facts["place"], case)
            found[f"org_{case}"] = russian.decline_first(facts["org"], case)
            found[f"actor_{case}"] = russian.decline_person(facts["actor"], case, feminine)
        for name, number in zip(("n1", "n2"), event.counts, strict=True):
            exact = not facts[name].startswith(_ABOUT["ru"])
            found[f"{name}_few"] = "few" if exact and russian.is_few(number) else ""
        return found

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
        sides = self._office_words(person)
        return sides[person.gender]

    def _office_words(self, person: Person) -> tuple[str, str]:
        return self._prose.pair("general", f"role.{person.office}", person.variant)

    def _role(self, person: Person) -> str:
        """The office with its article, in the nominative."""
        title = self._title(person)
        article = ("der", "die")[person.gender]
        return {"en": f"the {title}", "de": f"{article} {title}"}.get(self._language, title)

    def _first_mention(self, person: Person) -> str:
        name = f"{spell_name(person.first, self._language)} {spell_name(person.last, self._language)}"
        if self._manner.register is Register.MIXED:
            return f"{self._title(person)} {name}"
        return self._role(person) if self._oblique() else name

    def _day(self, event: Event) -> str:
        if self._oblique():
            weekday = self._prose.words("weekday")[event.date.weekday()]
            return {"en": f"on {weekday}", "de": f"am {weekday}", "es": f"el {weekday}"}.get(self._language, weekday)
        return date_words(self._language, event.date.day, event.date.month)

    def _since(self, event: Event) -> str:
        day = self._day(event)
        if self._language == "ru":
            return russian.since(day)
        return {
            "en": day.replace("on ", "since ", 1),
            "de": day.replace("am ", "seit dem " if day[3].isdigit() else "seit ", 1),
            "es": f"desde {day}",
        }[self._language]

    def _witness(self, event: Event) -> str:
        """A witness, the same in all reports of the event."""
        seed = _witness_seed(event)
        gender = seed % 2
        names = FIRST_NAMES[event.place.language][gender]
        heads, tails = SURNAME_PARTS[event.place.language]
        jobs = self._prose.lines("general", "job")
        if self._oblique():
            return self._prose.pair("general", "job", seed % len(jobs))[gender]
        last = heads[seed % len(heads)] + tails[seed % len(tails)]
        return " ".join(spell_name(name, self._language) for name in (names[seed % len(names)], last))


def spell_name(name: str, language: str) -> str:
    """A name of the world in the letters of a language."""
    return russian.in_cyrillic(name) if language == "ru" else name


def _witness_seed(event: Event) -> int:
    return event.counts[0] * 31 + event.counts[1] * 7 + event.tenths


def nickname(place: Place, language: str) -> str:
    """The place's nickname, in German and Russian in the nominative."""
    noun = place.nouns[LANGUAGES.index(language)]
    return {
        "en": f"the City of {noun}",
        "de": f"die Stadt der {noun}",
        "es": f"la Ciudad de {noun}",
        "ru": f"Город {noun}",
    }[language]


def date_words(language: str, day: int, month: int) -> str:
    """A day with its preposition, without the year."""
    name = load_prose(language).words("month")[month - 1]
    return {
        "en": f"on {day} {name}",
        "de": f"am {day}. {name}",
        "es": f"el {day} de {name}",
        "ru": f"{day} {name}",
    }[language]

"""The sentences of one language: prose files and their template language, numbers in words, and Russian cases.

Names are in Cyrillic letters as ``prose_names.txt`` has them, by the rules of the name's own language. No code of the
pipeline knows that table.
"""
# ruff: noqa: RUF001, RUF002 - Cyrillic letters are meant

import dataclasses
import functools
import hashlib
import itertools
import re
from collections.abc import Mapping

from ..formats.files import packaged

REGIONS = ("en", "de", "es")  # languages with places, people and events of their own
ABROAD = ("ru",)  # languages whose publishers report from the regions of the others, in another script
LANGUAGES = (*REGIONS, *ABROAD)
CASES = "gdip"  # genitive, dative, instrumental, prepositional

_CHOICE = re.compile(r"<([^<>]*)>")
_FACT = re.compile(r"\{(\w+)\}")
_COUNTED = re.compile(r"\{(\w+):([^{}|]*)\|([^{}|]*)\}")  # a number and its noun, see prose_ru.txt
_FIRST_LETTER = re.compile(r"[^\W\d_]")
_ACRONYM_LETTERS = str.maketrans({**dict(zip("BDFGKMPRTVZAEIOULNS", "БДФГКМПРТВЗАЕИОУЛНС", strict=True)), "X": "КС"})
_HISSING, _GUTTURAL = "жшчщц", "гкх"
_FEW = (2, 3, 4)


def stable_number(text: str) -> int:
    """A number that depends on the text alone; ``hash`` differs from process to process."""
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:6], "big")


@dataclasses.dataclass(frozen=True)
class Prose:
    """The content of ``prose_<language>.txt``: sections with slots of lines."""

    language: str
    sections: Mapping[str, Mapping[str, tuple[str, ...]]]

    def lines(self, section: str, slot: str) -> tuple[str, ...]:
        """The lines of a slot."""
        return self.sections[section][slot]

    def pair(self, section: str, slot: str, index: int) -> tuple[str, str]:
        """The two sides of a ``plain || other`` line."""
        plain, other = (side.strip() for side in self.lines(section, slot)[index].split("||"))
        return plain, other

    def words(self, slot: str) -> list[str]:
        """The words of a general slot of one line; an underscore joins two to one."""
        return [word.replace("_", " ") for word in self.lines("general", slot)[0].split()]

    def guides(self) -> list[str]:
        """The names of the sections of evergreen guides."""
        return [name for name in self.sections if name.startswith("guide.")]

    def say(self, slot: str, **values: object) -> str:
        """The line of the interface (words around an article, forms of dates and sums) with its values."""
        return self.lines("interface", slot)[0].format(**values)


@functools.cache
def load_prose(language: str) -> Prose:
    """The prose file of a language that comes with the package: lines ``slot: sentence`` below ``[section]``."""
    sections: dict[str, dict[str, tuple[str, ...]]] = {}
    for line in map(str.strip, packaged(__package__, f"prose_{language}.txt").splitlines()):
        if line.startswith("["):
            current = sections.setdefault(line.strip("[]"), {})
        elif line and not line.startswith("#"):
            slot, _, sentence = line.partition(": ")
            current[slot] = (*current.get(slot, ()), sentence)
    return Prose(language, sections)


@functools.cache
def names(section: str, slot: str = "all", side: int = 0) -> tuple[str, ...]:
    """The invented names of a kind.

    Args:
      section: of ``prose_names.txt``.
      slot: language and part, as in "en.men".
      side: 0 for the name itself, 1 for its Cyrillic letters.
    """
    return tuple(line.split(" | ")[side] for line in load_prose("names").lines(section, slot))


def fill(template: str, facts: Mapping[str, str], voice: int, language: str) -> str:
    """Chooses the words of a voice and inserts the facts.

    Voices that differ by one disagree on every choice: that is what gives publishers a vocabulary of their own.

    >>> fill("the water <rose|climbed> in {place}", {"place": "Thornmere"}, 0, "en")
    'The water climbed in Thornmere'
    """

    def choose(match: re.Match[str]) -> str:
        options = match[1].split("|")
        return options[(stable_number(match[1]) + voice) % len(options)]

    def count(match: re.Match[str]) -> str:
        noun = match[2] if facts[f"{match[1]}_few"] else match[3]
        return f"{agree(facts[match[1]], match[2])} {noun}"

    text = _COUNTED.sub(count, _CHOICE.sub(choose, template))
    text = _FACT.sub(lambda match: facts[match[1]], text)
    if language == "es":
        text = re.sub(
            r"\b([Dd]e|[Aa]) el ", lambda match: {"de": "del ", "a": "al "}.get(match[1], match[1] + " el "), text
        )
    return _FIRST_LETTER.sub(lambda match: match[0].upper(), text, count=1)


def number_words(number: int, language: str) -> str:
    """A number below 100 in words.

    >>> number_words(47, "de")
    'siebenundvierzig'
    """
    prose = load_prose(language)
    small, tens = prose.say("small").split(), prose.say("tens").split()  # of small ones Spanish has thirty
    if number < len(small):
        return small[number]
    ten, one = divmod(number, 10)
    return prose.say("number", tens=tens[ten], ones=small[one]) if one else tens[ten]


@functools.cache
def _cyrillic() -> Mapping[str, str]:
    """Every name of the world in Cyrillic letters; surnames and brands also with the parts that successors have."""

    def pairs(section: str, *slots: str) -> list[tuple[str, str]]:
        return [pair for slot in slots for pair in zip(names(section, slot), names(section, slot, 1), strict=True)]

    of_regions = [f"{language}.{part}" for language in REGIONS for part in ("men", "women")]
    found = dict([*pairs("place", *REGIONS), *pairs("first", *of_regions)])
    heads, tails = (pairs("surname", *(f"{language}.{part}" for language in REGIONS)) for part in ("head", "tail"))
    brands = pairs("brand", "all.head"), pairs("brand", "all.tail")
    for (one, first), (other, second) in (*itertools.product(heads, tails), *itertools.product(*brands)):
        found[one + other] = first + second
    for (one, first), (other, second) in itertools.product(*brands):
        found[other.capitalize() + one.lower()] = second.capitalize() + first.lower()
    return found


def in_cyrillic(name: str) -> str:
    """A name of the world, or an acronym, in Cyrillic letters; KeyError for other words.

    >>> in_cyrillic("Hartwick"), in_cyrillic("BAX")
    ('Хартвик', 'БАКС')
    """
    return name.translate(_ACRONYM_LETTERS) if name.isupper() else _cyrillic()[name]


def spell_name(name: str, language: str) -> str:
    """A name of the world in the letters of a language."""
    return in_cyrillic(name) if language == "ru" else name


def decline(word: str, case: str, feminine: bool = False) -> str:
    """A noun or foreign name in a case; words in -о, -е, -и, -у and women's names in consonants have no cases.

    Args:
      word: in the nominative.
      case: one of `CASES`.
      feminine: whether it names a woman.

    >>> [decline("Торнмир", case) for case in CASES]
    ['Торнмира', 'Торнмиру', 'Торнмиром', 'Торнмире']
    """
    at = CASES.index(case)
    stem, last = word[:-1], word[-1]
    if last in "ая":
        hissing = stem[-1] in _HISSING
        soft = last == "я" or stem[-1] in _GUTTURAL or hissing
        dative = "и" if word.endswith("ия") else "е"
        return stem + ("и" if soft else "ы", dative, "ей" if last == "я" or hissing else "ой", dative)[at]
    if word.endswith("ье"):
        return stem + ("я", "ю", "ем", "е")[at]
    if feminine or last in "ёеиоуыэю":
        return word
    if last in "ьй":
        return stem + ("я", "ю", "ем", "и" if word.endswith("ий") else "е")[at]
    return word + ("а", "у", "ем" if last in _HISSING else "ом", "е")[at]


def decline_first(phrase: str, case: str) -> str:
    """A phrase with its first word in a case, such as a place's nickname or an organisation.

    >>> decline_first("Город Фонарей", "p")
    'Городе Фонарей'
    """
    word, space, rest = phrase.partition(" ")
    return decline(word, case) + space + rest


def decline_person(mention: str, case: str, feminine: bool) -> str:
    """A mention of somebody in a case: an office, a name of two words, or both; the words of offices are masculine.

    >>> decline_person("мэр Агнес Хартвик", "d", feminine=True)
    'мэру Агнес Хартвик'
    """
    words = mention.split()
    offices = len(words) % 2
    return " ".join(decline(word, case, feminine and number >= offices) for number, word in enumerate(words))


def since(day: str) -> str:
    """A Russian day as the beginning of something.

    Args:
      day: as in "on Tuesday", or "4 March".

    >>> since("во вторник"), since("в среду"), since("4 марта")
    ('со вторника', 'со среды', 'с 4 марта')
    """
    weekday = day.rsplit(maxsplit=1)[-1]
    if day[0].isdigit():
        return f"с {day}"
    genitive = f"{weekday[:-1]}ы" if weekday.endswith("у") else decline(weekday, "g")
    return f"со {genitive}" if genitive.startswith(("вт", "ср")) else f"с {genitive}"


def millions(number: int) -> str:
    """The Russian noun after a number of somewhat more than so many millions."""
    if number % 10 == 1 and number != 11:
        return "миллион"
    return "миллиона" if is_few(number) else "миллионов"


def is_few(number: int) -> bool:
    """Whether a Russian noun after the number is in the genitive singular: 2 to 4, 22 to 24 and so on."""
    return number % 10 in _FEW and number // 10 % 10 != 1


def agree(words: str, noun: str) -> str:
    """The words of a number before a noun of its gender; the genitive singular of feminine nouns ends in -ы or -и.

    >>> agree("сорок два", "минуты"), agree("сорок два", "дома")
    ('сорок две', 'сорок два')
    """
    return words[:-1] + "е" if words.endswith("два") and noun[-1] in "ыи" else words

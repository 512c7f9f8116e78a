"""The sentences of one language: prose files and their template language."""

import dataclasses
import functools
import importlib.resources
import re
from collections.abc import Mapping

from ..errors import InputError
from .options import stable_number
from .russian import agree

_CHOICE = re.compile(r"<([^<>]*)>")
_FACT = re.compile(r"\{(\w+)\}")
_COUNTED = re.compile(r"\{(\w+):([^{}|]*)\|([^{}|]*)\}")  # a number and its noun, see prose_ru.txt
_FIRST_LETTER = re.compile(r"[^\W\d_]")


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


def parse_prose(language: str, text: str, path: str) -> Prose:
    """Reads a prose file.

    Raises:
      InputError: at a line that is neither a section, a slot nor a comment, or whose brackets do not close.
    """
    sections: dict[str, dict[str, list[str]]] = {}
    current: dict[str, list[str]] | None = None
    for number, raw in enumerate(text.splitlines(), start=1):
        line = raw.strip()
        if not line or line.startswith("#"):
            continue
        if line.startswith("["):
            current = sections.setdefault(line.strip("[]"), {})
            continue
        slot, separator, sentence = line.partition(": ")
        balanced = line.count("<") == line.count(">") and line.count("{") == line.count("}")
        if current is None or not separator or not balanced:
            raise InputError(
                f"line {number} is no 'slot: sentence': {line!r}",
                path=path,
                remedy="see the comment at the top of prose_en.txt",
            )
        current.setdefault(slot, []).append(sentence)
    return Prose(
        language, {name: {slot: tuple(lines) for slot, lines in slots.items()} for name, slots in sections.items()}
    )


@functools.cache
def load_prose(language: str) -> Prose:
    """The prose file of a language that comes with the package."""
    name = f"prose_{language}.txt"
    return parse_prose(language, (importlib.resources.files(__package__) / name).read_text(encoding="utf-8"), name)


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


# Zero to nineteen (in Spanish to twenty-nine), then the tens; "." means that the first row has the word.
_NUMBERS = {
    "en": (
        (
            "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen "
            "seventeen eighteen nineteen"
        ),
        ". . twenty thirty forty fifty sixty seventy eighty ninety",
        "{tens}-{ones}",
    ),
    "de": (
        (
            "null ein zwei drei vier fünf sechs sieben acht neun zehn elf zwölf dreizehn vierzehn fünfzehn sechzehn "
            "siebzehn achtzehn neunzehn"
        ),
        ". . zwanzig dreißig vierzig fünfzig sechzig siebzig achtzig neunzig",
        "{ones}und{tens}",
    ),
    "es": (
        (
            "cero un dos tres cuatro cinco seis siete ocho nueve diez once doce trece catorce quince dieciséis "
            "diecisiete dieciocho diecinueve veinte veintiún veintidós veintitrés veinticuatro "
            "veinticinco veintiséis veintisiete veintiocho veintinueve"
        ),
        ". . veinte treinta cuarenta cincuenta sesenta setenta ochenta noventa",
        "{tens} y {ones}",
    ),
    "ru": (
        (
            "ноль один два три четыре пять шесть семь восемь девять десять одиннадцать двенадцать тринадцать "
            "четырнадцать пятнадцать шестнадцать семнадцать восемнадцать девятнадцать"
        ),
        ". . двадцать тридцать сорок пятьдесят шестьдесят семьдесят восемьдесят девяносто",
        "{tens} {ones}",
    ),
}


def number_words(number: int, language: str) -> str:
    """A number below 100 in words.

    >>> number_words(47, "de")
    'siebenundvierzig'
    """
    small_text, tens_text, joint = _NUMBERS[language]
    small = small_text.split()
    if number < len(small):
        return small[number]
    tens, ones = divmod(number, 10)
    word = tens_text.split()[tens]
    return joint.format(tens=word, ones=small[ones]) if ones else word

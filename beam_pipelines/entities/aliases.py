"""Alias tables: names that the corpus counts, and known names.

Variants of one name become aliases of one entity. Known entities (`gazetteer`, and a user's) take over names of the
corpus, and bring theirs in all languages.
"""

import collections
import dataclasses
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from ...formats.names import KnownName
from .linking import LEAST_PRIOR, Linker, WordUse, words_of
from .spellings import normal_letters
from .tables import Alias

_CLEAR_SHARE = 0.6  # the leading full name owns a surname if it has this share of all full names with it
_KNOWN_SHARE = 0.2  # … and as many documents as this share of those with the bare surname
_INITIALS = 2  # letters; so short a word is another one in some language: "Si"
_LISTED_SHARE = 0.1  # full names below this share are not listed as meanings of the surname
_AMBIGUOUS_PRIOR = 0.6  # prior of the bare word itself if no full name owns it
_TITLE_SHARE = 0.8  # least share of the surnames after a title that belong to a more frequent full name
_BEARER_SHARE = 0.8  # of the full names with a surname, that a title before it means one of them
_LEAST_SURNAMES = 5  # after a title
_MOST_MEANINGS = 5  # of one alias
_LEAST_SHARE = 0.05  # of the weight of all meanings of an alias; rarer ones are not listed
_REGION_PRIOR = 0.6  # of a country or continent, if names of the corpus end in its name
_ALSO_A_WORD = 0.1  # documents with the word in lower case, relative to those with a capital
_NOT_LATIN = "\u0250"  # letters from here on are of other scripts
_COMMON_TO = 3  # a built-in name that this many languages share, or English has, is a name in all languages
# Built-in entities, whose names in one language are words of others.
_LOCAL = ("region:", "place:", "organisation:", "language:", "currency:", "concept:")
# Known entities that are no people: "East" is no name of the Middle East, nor "Street" of Wall Street.
_WITHOUT_SURNAME = ("region:", "city:", "place:", "organisation:", "concept:")
_LEAST_PRIOR = 1e-4  # alias tables have four digits


class Entity(NamedTuple):
    """An entity found in the corpus.

    Attributes:
      key: id, the name with underscores.
      name: the name as written.
      documents: number of documents with the full name.
    """

    key: str
    name: str
    documents: int


def resolve_names(
    documents: Mapping[str, int],
    limit: int,
    no_names: Collection[str] = (),
    is_word: Callable[[str], bool] = str.islower,
) -> tuple[list[Entity], list[Alias]]:
    """Returns the entities by falling document frequency, and their aliases.

    "President Jane Roe" and "Jane Q Roe" become aliases of "Jane Roe", and "Roe" does too if few other full names end
    in it. If several full names do, the word keeps its own entity and the full names are listed as possible meanings.
    "President Roe" is another name of whoever "Roe" is: words that stand before surnames of many people who are better
    known by a first name are titles. Of names that differ in hyphens and capitals alone, the most frequent one counts.

    Args:
      documents: document frequency by name, tokens joined by single spaces.
      limit: most entities to keep.
      no_names: words that are no entities by themselves, such as "Monday".
      is_word: whether a word is also a word in lower case, as titles are, and surnames are not.

    Returns:
      Entities, and aliases sorted by alias, falling prior and entity.
    """
    spelled = _same_spelling(documents)
    heads = {name: _variant_of(spelled[name], documents) for name in documents}
    while any(heads[head] != head for head in heads.values()):  # every step shortens names, so it ends
        heads = {name: heads[head] for name, head in heads.items()}
    bearers = _without_titles(heads, documents, is_word)
    heads = {name: bearers.get(head, head) for name, head in heads.items()}
    totals: collections.Counter[str] = collections.Counter()
    for name, head in heads.items():
        totals[head] = max(totals[head], documents[name])
    surnames = _full_names_by_surname(heads, totals)
    owners = _owners(documents, surnames)
    for word in {*no_names} - {*owners}:
        totals.pop(word, None)
    kept = sorted((name for name in totals if name not in owners), key=lambda name: (-totals[name], name))[:limit]
    entities = [Entity(name.replace(" ", "_"), name, totals[name]) for name in kept]
    return entities, _ordered(_aliases(heads, owners, surnames, set(kept)))


def _ordered(aliases: Iterable[Alias]) -> list[Alias]:
    return sorted(aliases, key=lambda item: (item.alias, -item.prior, item.entity))


def _aliases(
    heads: Mapping[str, str], owners: Mapping[str, str], surnames: Mapping[str, Mapping[str, int]], kept: set[str]
) -> Iterator[Alias]:
    for name, head in heads.items():
        full_names = {full: count for full, count in surnames.get(name, {}).items() if full in kept}
        total = sum(full_names.values())
        shares = {full: count / total for full, count in full_names.items() if count >= _LISTED_SHARE * total}
        if name not in owners and head not in kept:
            continue
        left = 1.0 if name in owners else 1 - _AMBIGUOUS_PRIOR
        priors = {full: left * share for full, share in shares.items()}
        if name not in owners:
            priors = {head: _AMBIGUOUS_PRIOR if shares else 1.0} | priors
        yield from (Alias(name, full.replace(" ", "_"), prior, full) for full, prior in priors.items())


def _owners(documents: Mapping[str, int], surnames: Mapping[str, Mapping[str, int]]) -> dict[str, str]:
    """Returns the full name that a bare surname stands for, by surname, where it is clear."""
    owners = {}
    for word, full_names in surnames.items():
        if full_names and len(word) > _INITIALS and word in documents:
            best = _most_frequent(full_names)
            if full_names[best] >= max(_CLEAR_SHARE * sum(full_names.values()), _KNOWN_SHARE * documents[word]):
                owners[word] = best
    return owners


def _most_frequent(names: Mapping[str, int]) -> str:
    return min(names, key=lambda name: (-names[name], name))


def _same_spelling(documents: Mapping[str, int]) -> dict[str, str]:
    """Returns the most frequent name that differs from one in hyphens and capitals alone, by name of several words."""
    found: dict[str, str] = {}
    for name in sorted(documents, key=lambda name: (-documents[name], name)):
        found.setdefault(name.replace("-", " ").lower(), name)
    return {name: found[name.replace("-", " ").lower()] if " " in name else name for name in documents}


def _without_titles(
    heads: Mapping[str, str], documents: Mapping[str, int], is_word: Callable[[str], bool]
) -> dict[str, str]:
    """Returns the full name of the bearer of the surname after a title, by name of a title and a surname."""
    counts = {name: documents[name] for name, head in heads.items() if name == head}
    surnames = _full_names_by_surname(heads, counts)
    best = {word: _most_frequent(full) for word, full in surnames.items()}
    pairs = [name.split(" ") for name in counts if name.count(" ") == 1 and name.split(" ")[1] in best]
    followers: collections.Counter[str] = collections.Counter(first for first, _ in pairs)
    others = collections.Counter(first for first, last in pairs if best[last].split(" ")[0] != first)
    least = {first: max(_LEAST_SURNAMES, _TITLE_SHARE * count) for first, count in followers.items()}
    titles = {first for first, count in others.items() if count >= least[first] and is_word(first)}
    named = {
        word: {name: count for name, count in full.items() if name.split(" ")[0] not in titles}
        for word, full in surnames.items()
    }
    owners = {
        last: owner
        for last, owner in _owners(documents, named).items()
        if named[last][owner] >= _BEARER_SHARE * sum(named[last].values()) and not is_word(last)
    }
    return {f"{first} {last}": owners[last] for first, last in pairs if first in titles and last in owners}


def _variant_of(name: str, documents: Mapping[str, int]) -> str:
    """Returns the more frequent, shorter name of which this is a variant, or the name itself."""
    words = name.split(" ")
    bare = " ".join(word for place, word in enumerate(words) if not (0 < place < len(words) - 1 and len(word) == 1))
    if bare != name and " " in bare and bare in documents:
        return bare
    for start in range(1, len(words) - 1):
        shorter = " ".join(words[start:])
        if documents.get(shorter, 0) > documents[name] and words[start][0].isupper():
            return shorter
    return name


def _full_names_by_surname(heads: Mapping[str, str], totals: Mapping[str, int]) -> dict[str, dict[str, int]]:
    found: dict[str, dict[str, int]] = {}
    for head in set(heads.values()):
        words = head.split(" ")
        if 2 <= len(words) <= 3 and all(word[0].isupper() for word in words):
            found.setdefault(words[-1], {})[head] = totals[head]
    return found


class CorpusWords(NamedTuple):
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
    if len(parts) > 1 and (name.alias.isascii() or name.alias[0] < _NOT_LATIN):
        return " ".join(parts) in corpus.spans
    if any(len(part) == 1 and part >= "\u0e00" for part in parts):
        return name.language in ("", *corpus.languages) or name.language.partition("-")[0] in corpus.languages
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
                tags = {*languages[alias, entity].split(",")}
                may_be_word = (alias == alias.lower() != alias.upper()) or len(normal_letters(alias)) < 4
                local = entity.startswith(_LOCAL) and len(tags) < _COMMON_TO and "en" not in tags
                limits = ",".join(sorted(tags)) if "" not in tags and (may_be_word or local) else ""
                yield Alias(alias, entity, max(weight / total, _LEAST_PRIOR), entities[entity], limits)


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
        if key.startswith(_WITHOUT_SURNAME) and " " not in item.alias and item.name.endswith(f" {item.alias}"):
            continue  # the last word of a name, as surnames are
        known = merged.get((item.alias, key))  # "Britain" and "Great Britain" are one entity
        merged[item.alias, key] = Alias(item.alias, key, item.prior + (known.prior if known else 0), found[key].name)
    taken = {alias for alias, _ in merged}
    regions = {
        item.alias: item
        for item in listed
        if item.alias in taken
        and (item.entity.startswith("region:") and not item.languages and item.prior >= LEAST_PRIOR)
    }
    for item in list(merged.values()):
        region = regions.get(item.alias)
        if region is not None and item.entity != region.entity:
            merged[item.alias, item.entity] = dataclasses.replace(item, prior=item.prior * (1 - _REGION_PRIOR))
            merged[region.alias, region.entity] = dataclasses.replace(region, prior=_REGION_PRIOR)
    merged |= {(item.alias, item.entity): item for item in listed if item.alias not in taken}
    return list(found.values()), _ordered(merged.values())


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
        rank = {"en": 0, "": 1}.get(name.language, 2)
        if name.entity not in found or rank < found[name.entity][0]:
            found[name.entity] = (rank, name.alias)
    return {entity: alias for entity, (_, alias) in found.items()}

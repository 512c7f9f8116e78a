"""Names of known entities against the corpus: which entities may occur in it, and the aliases of those that do."""

import collections
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from ...formats.names import KnownName
from .aliases import Entity
from .linking import LEAST_PRIOR
from .tables import Alias
from .tokens import WordUse, words_of

_MOST_MEANINGS = 5  # of one alias
_LEAST_SHARE = 0.05  # of the weight of all meanings of an alias; rarer ones are not listed
_COMMON_TO = 3  # a built-in name that so many languages share, or English has, is a name in all languages
_LOCAL = ("region:", "language:", "currency:")  # built-in entities, whose names in one language are words of others


def may_occur(name: KnownName, words: Collection[str], languages: Collection[str]) -> bool:
    """Whether all words of a name are words of the corpus.

    Args:
      name: the name.
      words: words of the corpus, in lower case.
      languages: its languages. Names in scripts without spaces are not compared by words, but by their language.
    """
    parts = words_of(name.alias)
    if any(len(part) == 1 and part >= "\u0e00" for part in parts):
        return name.language in ("", *languages) or name.language.partition("-")[0] in languages
    return all(piece.lower() in words for part in parts for piece in part.replace("-", " ").replace("'", " ").split())


def is_common_word(alias: str, uses: Mapping[str, Mapping[str, WordUse]]) -> bool:
    """Whether an alias of one capitalised word is a common word in a language of the corpus, such as "Nice"."""
    word = alias.lower()
    return " " not in alias and word != alias and any(words[word].common for words in uses.values() if word in words)


def known_aliases(names: Iterable[KnownName], entities: Mapping[str, str]) -> Iterator[Alias]:
    """Yields the aliases of entities, with priors that add up to at most 1 for each alias.

    A name in lower case or of up to three letters is an alias in its languages only: it may be any word elsewhere.

    Args:
      names: names of known entities.
      entities: name by id of the entities to list.
    """
    weights: dict[str, dict[str, float]] = collections.defaultdict(dict)
    languages: dict[tuple[str, str], set[str]] = collections.defaultdict(set)
    for name in names:
        if name.entity in entities:
            meanings = weights[name.alias]
            meanings[name.entity] = max(meanings.get(name.entity, 0.0), name.prior)
            languages[name.alias, name.entity].add(name.language.partition("-")[0])
    for alias in sorted(weights):
        total = sum(weights[alias].values())
        ranked = sorted(weights[alias].items(), key=lambda item: (-item[1], item[0]))[:_MOST_MEANINGS]
        for entity, weight in ranked:
            if weight >= _LEAST_SHARE * total:
                tags = _limits(alias, entity, languages[alias, entity])
                yield Alias(alias, entity, max(weight / total, 1e-4), entities[entity], ",".join(tags))


def _limits(alias: str, entity: str, languages: Collection[str]) -> list[str]:
    """Returns the languages in which an alias is this name; none for all."""
    if "" in languages:
        return []
    if (alias == alias.lower() != alias.upper()) or len(alias) < 4:
        return sorted(languages)
    local = entity.startswith(_LOCAL) and len(languages) < _COMMON_TO and "en" not in languages
    return sorted(languages) if local else []


def merge_known(
    entities: Sequence[Entity], aliases: Sequence[Alias], known: Sequence[Entity], names: Iterable[Alias], limit: int
) -> tuple[list[Entity], list[Alias]]:
    """Returns the entities of the corpus and the known ones, the most frequent first, and their aliases.

    An entity of the corpus is a known one if its name most likely means that one. A name that the corpus gives to
    another entity, such as the surname of somebody in the news, keeps the meanings that it has there.

    Args:
      entities: entities found by their capitals.
      aliases: their aliases.
      known: known entities that occur in the corpus.
      names: the aliases of the known entities.
      limit: most entities to keep.
    """
    names = list(names)
    ids = {entity.key for entity in known}
    meant = {item.alias: item.entity for item in names if item.prior >= LEAST_PRIOR and not item.languages}
    renamed = {entity.key: meant[entity.name] for entity in entities if meant.get(entity.name) in ids}
    documents = {entity.key: entity for entity in known}
    for entity in entities:
        key = renamed.get(entity.key, entity.key)
        other = documents.get(key)
        documents[key] = Entity(
            key, other.name if other else entity.name, max(entity.documents, other.documents if other else 0)
        )
    kept = sorted(documents.values(), key=lambda item: (-item.documents, item.name, item.key))[:limit]
    keys = {entity.key for entity in kept}
    merged = {}
    for item in aliases:
        key = renamed.get(item.entity, item.entity)
        merged[item.alias, key] = Alias(item.alias, key, item.prior, documents[key].name)
    taken = {item.alias for item in aliases}
    merged.update({(item.alias, item.entity): item for item in names if item.alias not in taken})
    return kept, sorted(
        (item for item in merged.values() if item.entity in keys),
        key=lambda item: (item.alias, -item.prior, item.entity),
    )


def readable_names(names: Iterable[KnownName]) -> dict[str, str]:
    """Returns a name of each entity: the first English one, else the first of all languages, else the first."""
    found: dict[str, tuple[int, str]] = {}
    for name in names:
        rank = 0 if name.language == "en" else 1 if not name.language else 2
        if name.entity not in found or rank < found[name.entity][0]:
            found[name.entity] = (rank, name.alias)
    return {entity: alias for entity, (_, alias) in found.items()}

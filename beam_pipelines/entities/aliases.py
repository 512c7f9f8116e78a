"""Alias table from counted names: variants of one name become aliases of one entity."""

import collections
import dataclasses
from collections.abc import Callable, Collection, Iterator, Mapping

from .tables import Alias

_CLEAR_SHARE = 0.6  # the leading full name owns a surname if it has this share of all full names with it
_KNOWN_SHARE = 0.2  # … and as many documents as this share of those with the bare surname
_INITIALS = 2  # letters; so short a word is another one in some language: "Si"
_LISTED_SHARE = 0.1  # full names below this share are not listed as meanings of the surname
_AMBIGUOUS_PRIOR = 0.6  # prior of the bare word itself if no full name owns it
_TITLE_SHARE = 0.8  # least share of the surnames after a title that belong to a more frequent full name
_BEARER_SHARE = 0.8  # of the full names with a surname, that a title before it means one of them
_LEAST_SURNAMES = 5  # after a title


@dataclasses.dataclass(frozen=True)
class Entity:
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
    target = {name: _variant_of(spelled[name], documents) for name in documents}
    heads = {name: _last_target(name, target) for name in documents}
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
    entities = [Entity(_key(name), name, totals[name]) for name in kept]
    return entities, sorted(
        _aliases(heads, owners, surnames, set(kept)), key=lambda item: (item.alias, -item.prior, item.entity)
    )


def _aliases(
    heads: Mapping[str, str], owners: Mapping[str, str], surnames: Mapping[str, Mapping[str, int]], kept: set[str]
) -> Iterator[Alias]:
    for name, head in heads.items():
        full_names = {full: count for full, count in surnames.get(name, {}).items() if full in kept}
        total = sum(full_names.values())
        shares = {full: count / total for full, count in full_names.items() if count >= _LISTED_SHARE * total}
        if name in owners:
            yield from (Alias(name, _key(full), share, full) for full, share in shares.items())
        elif head in kept:
            yield Alias(name, _key(head), _AMBIGUOUS_PRIOR if shares else 1.0, head)
            yield from (Alias(name, _key(full), (1 - _AMBIGUOUS_PRIOR) * share, full) for full, share in shares.items())


def _owners(documents: Mapping[str, int], surnames: Mapping[str, Mapping[str, int]]) -> dict[str, str]:
    """Returns the full name that a bare surname stands for, by surname, where it is clear."""
    return {
        word: owner
        for word, full_names in surnames.items()
        if len(word) > _INITIALS and word in documents and (owner := _owner(documents[word], full_names))
    }


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
    best = {word: min(full, key=lambda name: (-full[name], name)) for word, full in surnames.items()}
    pairs = [name.split(" ") for name in counts if name.count(" ") == 1 and name.split(" ")[1] in best]
    followers: collections.Counter[str] = collections.Counter(first for first, _ in pairs)
    others = collections.Counter(first for first, last in pairs if best[last].split(" ")[0] != first)
    titles = {
        first
        for first, count in others.items()
        if count >= max(_LEAST_SURNAMES, _TITLE_SHARE * followers[first]) and is_word(first)
    }
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


def _key(name: str) -> str:
    return name.replace(" ", "_")


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


def _last_target(name: str, target: Mapping[str, str]) -> str:
    """Follows variants to the last one; every step shortens the name, so the chain ends."""
    while target[name] != name:
        name = target[name]
    return name


def _full_names_by_surname(heads: Mapping[str, str], totals: Mapping[str, int]) -> dict[str, dict[str, int]]:
    found: dict[str, dict[str, int]] = {}
    for head in set(heads.values()):
        words = head.split(" ")
        if 2 <= len(words) <= 3 and all(word[0].isupper() for word in words):
            found.setdefault(words[-1], {})[head] = totals[head]
    return found


def _owner(documents: int, full_names: Mapping[str, int]) -> str:
    """Returns the full name that a bare surname stands for, "" if it is ambiguous."""
    if not full_names:
        return ""
    best = min(full_names, key=lambda name: (-full_names[name], name))
    clear = full_names[best] >= _CLEAR_SHARE * sum(full_names.values()) and full_names[best] >= _KNOWN_SHARE * documents
    return best if clear else ""

"""Gives each language entities of its own, to compare mining with and without names that cross languages."""

import dataclasses
import itertools
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from .aliases import Entity
from .linking import priors_without
from .tables import Alias

_LEAST_PRIOR = 1e-4  # alias tables have four digits
_MOST_OF_A_LANGUAGE = 0.99  # a sum of priors; a certain alias would leave nothing to the other languages


def keep_apart(
    entities: Sequence[Entity], aliases: Iterable[Alias], languages: Iterable[str]
) -> tuple[list[Entity], list[Alias]]:
    """Returns an entity of its own for each entity and language, with the aliases of the first in this language alone.

    Args:
      entities: entities of all languages.
      aliases: their aliases, sorted by alias.
      languages: BCP-47 tags of the corpus.

    Returns:
      Entities with 0 documents, since those of one language are not counted yet; aliases sorted by alias, falling
      prior and entity.
    """
    bases = sorted({tag.partition("-")[0] for tag in languages if tag})
    own = [Entity(f"{base}:{entity.key}", entity.name, 0) for entity in entities for base in bases]
    groups = itertools.groupby(aliases, key=lambda item: item.alias)
    found = [item for _, group in groups for item in _divided(list(group), bases)]
    return own, sorted(found, key=lambda item: (item.alias, -item.prior, item.entity))


def choose_apart(aliases: Iterable[Alias], keys: Collection[str]) -> list[Alias]:
    """Returns the aliases of some entities of :func:`keep_apart`, with priors that leave the linker's choice as it was.

    The prior of an alias in one language depends on its rows of other languages; without them it would be too small.

    Args:
      aliases: those that `keep_apart` returned, each in one language.
      keys: the entities to keep.

    Returns:
      Aliases sorted by alias, falling prior and entity.
    """
    found = []
    for _, group in itertools.groupby(aliases, key=lambda item: item.alias):
        meanings = list(group)
        before = {base: _in_language(meanings, base) for base in sorted({item.languages for item in meanings})}
        kept = {
            base: {number: min(prior, 1.0) for number, prior in priors.items() if meanings[number].entity in keys}
            for base, priors in before.items()
        }
        found += [dataclasses.replace(meanings[number], prior=prior) for _, number, prior in _together(kept)]
    return sorted(found, key=lambda item: (item.alias, -item.prior, item.entity))


def _divided(meanings: Sequence[Alias], bases: Sequence[str]) -> Iterator[Alias]:
    """Yields the meanings of one alias by language, with priors that make the linker choose as before."""
    for base, number, prior in _together({base: _in_language(meanings, base) for base in bases}):
        entity = f"{base}:{meanings[number].entity}"
        yield dataclasses.replace(meanings[number], entity=entity, prior=prior, languages=base)


def _together(before: Mapping[str, Mapping[int, float]]) -> Iterator[tuple[str, int, float]]:
    """Yields (language, meaning, prior in the table of all languages) from the priors in each language.

    The linker divides the priors of the meanings in a language by 1 less those of the other languages. Let S be the sum
    of the priors that a language had after this division, and A the sum of S / (1 - S) over languages. Then priors that
    are multiplied by 1 / (1 - S) / (1 + A) are, after the division, what they were.
    """
    sums = {base: min(_MOST_OF_A_LANGUAGE, sum(priors.values())) for base, priors in before.items()}
    shared = 1 + sum(total / (1 - total) for total in sums.values())
    for base, priors in before.items():
        for number, prior in priors.items():
            yield base, number, max(_LEAST_PRIOR, prior / (1 - sums[base]) / shared)


def _in_language(meanings: Sequence[Alias], base: str) -> Mapping[int, float]:
    """The prior of each meaning in a language, by its number; see `Linker`."""
    here = {number for number, item in enumerate(meanings) if not item.languages or base in item.languages.split(",")}
    return priors_without([item.prior for item in meanings], here)

"""Entities kept apart by language: what mining is without names that cross languages."""

import collections
import dataclasses
from collections.abc import Iterable, Sequence

from .aliases import Entity
from .tables import Alias

_LEAST_PRIOR = 1e-4  # alias tables have four digits


def keep_apart(
    entities: Sequence[Entity], aliases: Sequence[Alias], languages: Iterable[str]
) -> tuple[list[Entity], list[Alias]]:
    """Returns an entity of its own for each entity and language, with the aliases of the first in this language alone.

    The linker reads priors of one alias as shares over all languages, so they are divided: in each language the
    meanings of an alias have the priors that they had.

    Args:
      entities: entities of all languages.
      aliases: their aliases.
      languages: BCP-47 tags of the corpus.

    Returns:
      Entities with 0 documents, since those of one language are not counted yet; aliases sorted by alias, falling
      prior and entity.
    """
    bases = sorted({tag.partition("-")[0] for tag in languages if tag})
    totals: collections.Counter[str] = collections.Counter()
    for item in aliases:
        totals[item.alias] += item.prior
    own = [Entity(f"{base}:{entity.key}", entity.name, 0) for entity in entities for base in bases]
    found = [
        dataclasses.replace(
            item,
            entity=f"{base}:{item.entity}",
            prior=max(item.prior / (1 + (len(bases) - 1) * min(1.0, totals[item.alias])), _LEAST_PRIOR),
            languages=base,
        )
        for item in aliases
        for base in bases
        if not item.languages or base in item.languages.split(",")
    ]
    return own, sorted(found, key=lambda item: (item.alias, -item.prior, item.entity))

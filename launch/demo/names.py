"""Names in two scripts: whether a name in a Russian article is linked to the entity of the name in Latin letters."""

import collections
import dataclasses
from collections.abc import Iterable, Iterator, Sequence

from ...beam_pipelines.entities.linking import Linker
from ...beam_pipelines.entities.tables import read_aliases
from ...beam_pipelines.entities.tokens import words_of
from ...formats.parquet import read_stream
from ...formats.records import Article
from .steps import Places

PRECISION, RECALL = "names across scripts: precision", "names across scripts: recall"
_LANGUAGE = "ru"


@dataclasses.dataclass(frozen=True)
class Name:
    """A name of the newsroom's world.

    Attributes:
      kind: place, person or organisation.
      name: in Latin letters.
      forms: the words that Russian articles have for it.
    """

    kind: str
    name: str
    forms: frozenset[str]


def found_names(places: Places) -> dict[str, float]:
    """Scores the alias table of the build against the newsroom's table of names, see :func:`score_names`."""
    forms: dict[tuple[str, str], list[str]] = collections.defaultdict(list)
    with open(f"{places.newsroom}/names.tsv", encoding="utf-8") as lines:
        for line in lines:
            kind, name, form = line.rstrip("\n").split("\t")
            forms[kind, name].append(form)
    names = [Name(*key, frozenset(found)) for key, found in forms.items()]
    aliases = read_aliases(f"{places.work}/entities/aliases.tsv")
    rows = {entity: row for row, entity in enumerate(sorted({alias.entity for alias in aliases}))}
    articles = read_stream(f"{places.work}/clean/articles", Article)
    return score_names(Linker(aliases, rows), names, (one for one in articles if one.language == _LANGUAGE))


def score_names(linker: Linker, names: Sequence[Name], articles: Iterable[Article]) -> dict[str, float]:
    """Precision and recall of links from Russian articles to the entities of Latin names.

    Recall is over the names in each article whose Latin spelling has an entity. A link to such an entity is right if
    the article has a form of the name.

    Args:
      linker: of the alias table.
      names: all names of the world.
      articles: in Russian.
    """
    rows = {number: set(_rows(linker, name)) for number, name in enumerate(names)}
    named: dict[int, list[Name]] = collections.defaultdict(list)
    for number, found in rows.items():
        for row in found:
            named[row].append(names[number])
    hits: dict[str, list[bool]] = collections.defaultdict(list)
    right: list[bool] = []
    for article in articles:
        texts = [article.title, *article.keywords, article.body]
        linked, words = linker.link(texts, article.language), set(words_of(" ".join(texts)))
        for number, name in enumerate(names):
            if rows[number] and name.forms & words:
                hits[name.kind].append(bool(rows[number] & set(linked)))
        right += [any(name.forms & words for name in named[row]) for row in linked if row in named]
    return {
        PRECISION: _share(right),
        RECALL: _share([hit for found in hits.values() for hit in found]),
        **{f"{RECALL}, {kind}": _share(found) for kind, found in sorted(hits.items())},
        "names across scripts": float(sum(map(len, hits.values()))),
    }


def _rows(linker: Linker, name: Name) -> Iterator[int]:
    """Yields the entities of a name in Latin letters, and of the last name of somebody."""
    for written in {name.name, name.name.split()[-1]} if name.kind == "person" else {name.name}:
        row = linker.meaning(written, "en")
        if row is not None:
            yield row


def _share(hits: Sequence[bool]) -> float:
    return sum(hits) / len(hits) if hits else 0.0

"""Chooses the articles of a diagnosis: those with text, up to a limit, and the queries whose neighbors are shown."""

import collections
import dataclasses
import difflib
from collections.abc import Sequence

import numpy as np

from ...errors import InputError
from ..events import EventDocument, read_events


@dataclasses.dataclass(frozen=True)
class Collection:
    """Articles to embed.

    Attributes:
      articles: articles with text, in the order of the file.
      queries: positions in ``articles`` of those whose neighbors are shown.
      read: number of articles in the file.
      empty: number of articles in the file without title and body.
    """

    articles: tuple[EventDocument, ...]
    queries: tuple[int, ...]
    read: int
    empty: int


def collect(
    path: str, *, queries: Sequence[str] = (), shown: int = 5, limit: int | None = None, seed: int = 0
) -> Collection:
    """Reads the articles of a diagnosis.

    Args:
      path: JSONL of articles, see ``events.read_events``; ``event``, ``topic`` and ``language`` may be absent.
      queries: ids of the queries; if there are none, they are drawn.
      shown: number of queries to draw; articles with another article of their event are preferred.
      limit: maximum number of articles; ``queries`` are always kept, events are kept whole. ``None`` keeps all
        articles.
      seed: seed of the draws.

    Raises:
      InputError: if the file cannot be read, if fewer than two articles have text, or if a query is unknown or has no
        text.
    """
    rows = read_events(path, label=None)
    known = {row.id: row for row in rows}
    for name in queries:
        if name not in known:
            close = difflib.get_close_matches(name, known, n=1)
            remedy = f"did you mean {close[0]!r}?" if close else "give ids of articles in the file"
            raise InputError(f"no article has the id {name!r}", path=path, field="--queries", remedy=remedy)
        if not _has_text(known[name]):
            raise InputError(
                f"the article {name!r} has no text", path=path, field="--queries", remedy="choose another one"
            )
    texts = [row for row in rows if _has_text(row)]
    if len(texts) < 2:
        raise InputError(
            f"{len(texts)} of {len(rows)} articles have text, expected at least two",
            path=path,
            remedy="give more articles",
        )
    kept = texts if limit is None else sample(texts, limit, keep=queries, seed=seed)
    if len(kept) < 2:
        raise InputError(
            f"keeps {len(kept)} articles, expected at least two", field="--max_articles", remedy="give a larger number"
        )
    places = {row.id: place for place, row in enumerate(kept)}
    chosen = [places[name] for name in dict.fromkeys(queries)] or _draw_queries(kept, shown, seed)
    return Collection(tuple(kept), tuple(chosen), len(rows), len(rows) - len(texts))


def sample(
    articles: Sequence[EventDocument], limit: int, *, keep: Sequence[str] = (), seed: int = 0
) -> list[EventDocument]:
    """Returns at most ``limit`` articles, in their order: those in ``keep``, then whole events in random order.

    An article without an event counts as an event. An event that does not fit is left out, so fewer articles than
    ``limit`` may be returned.
    """
    if len(articles) <= limit:
        return list(articles)
    groups: dict[tuple[str, str], list[int]] = {}
    for place, article in enumerate(articles):
        groups.setdefault(("event", article.event) if article.event else ("id", article.id), []).append(place)
    wanted = set(keep)
    chosen = {place for place, article in enumerate(articles) if article.id in wanted}
    members = list(groups.values())
    for number in np.random.default_rng(seed).permutation(len(members)):
        if len(chosen.union(members[number])) <= limit:
            chosen.update(members[number])
    return [articles[place] for place in sorted(chosen)]


def _draw_queries(articles: Sequence[EventDocument], shown: int, seed: int) -> list[int]:
    sizes = collections.Counter(article.event for article in articles if article.event)
    order = np.random.default_rng(seed).permutation(len(articles)).tolist()
    # A stable sort: articles of an event with others come first, both kinds in random order.
    order.sort(key=lambda place: sizes[articles[place].event] < 2)
    return order[:shown]


def _has_text(article: EventDocument) -> bool:
    return bool(article.title.strip() or article.body.strip())

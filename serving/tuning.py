"""Learns the ranking of an index from its own articles, when it is built: nobody has to label anything.

Titles and pieces of titles and leads of sampled articles are queries. Right are, once, the sampled article itself and,
twice and without it, the other articles that are near it by its whole text, by words or by vectors, and within days of
its date: reports of the same event. Where dates are not known, they must be near by both. An encoder reads at most
`ARTICLES` x 3 short queries.
"""

import datetime
import random
import re
from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np

from ..formats.archive import vectors_of
from .analysis import written
from .hybrid import evidence
from .index import DocumentIndex
from .interface import FloatArray, TextEncoder
from .ranking import Ranking, learn

ARTICLES: Final = 200
_LEAST: Final = 30  # queries; fewer teach less than what the generated newsroom taught
_NEAR: Final = 5  # documents by words and by vectors each
_NEAR_BOTH: Final = 3  # without a date
_DAYS: Final = 3
_OTHERS: Final = 2  # how much a search for other reports counts, where one for the article itself counts 1
_TEXT: Final = 2_000  # characters of an article that its like are searched by
_TEXT_WORDS: Final = 30
_SENTENCE: Final = re.compile(r"(?<=[.!?\u3002\uff01\uff1f])\s*")
_LETTERS: Final = "bcdfghjklmnpqrstvwxz"


def learn_ranking(index: DocumentIndex, encoder: TextEncoder) -> Ranking | None:
    """The ranking that fits the articles of an index; None where too few of them report the same events.

    Args:
      index: whose articles are sampled.
      encoder: that built it.
    """
    generator = random.Random(0)
    sampled = generator.sample(index.numbers.tolist(), min(ARTICLES, len(index)))
    rows = index.archive.take(sampled, ["title", "body", "byline_date", "vector"])
    index.look_up(f"{row['title']}\n{row['body']}"[:_TEXT] for row in rows.select(["title", "body"]).to_pylist())
    columns = [rows[name].to_pylist() for name in ("title", "body", "byline_date")]
    texts = zip(sampled, *columns, vectors_of(rows["vector"], index.archive.dimensions), strict=True)
    asked: list[tuple[int, str]] = []
    right: dict[int, set[int]] = {}
    for number, title, body, date, own in texts:
        right[number] = _alike(index, number, f"{title}\n{body}", date, own)
        if right[number] and title.strip():
            asked += [(number, query) for query in queries_of(title, body, generator)]
    nonsense = [" ".join("".join(generator.choices(_LETTERS, k=8)) for _ in range(1 + n % 4)) for n in range(20)]
    if len(asked) < _LEAST:
        return None
    vectors = encoder.encode_queries([*(query for _, query in asked), *nonsense])
    found = []
    for (number, query), vector in zip(asked, vectors[: len(asked)], strict=True):
        words = index.read(query)
        # Who looks for other reports leaves the source out; who remembers words of an article wants that one.
        for wanted, without, times in ((right[number], number, _OTHERS), ({number}, None, 1)):
            each = evidence(index, words, vector, without=without)
            is_right = np.isin(each.numbers, list(wanted))
            found += [(each, is_right)] * (times if is_right.any() else 0)
    nothing = [
        evidence(index, index.read(query), vector)
        for query, vector in zip(nonsense, vectors[len(asked) :], strict=True)
    ]
    return learn(found, nothing) if len(found) >= _LEAST else None


def queries_of(title: str, body: str, generator: random.Random) -> Iterator[str]:
    """Three queries for an article: its title, three words of it, and three to five words of title and lead."""
    yield title
    yield _pick(title, 3, generator)
    lead = " ".join(_SENTENCE.split(body.strip())[:2])
    yield _pick(f"{title} {lead}", generator.randint(3, 5), generator)


def _pick(text: str, count: int, generator: random.Random) -> str:
    words = written(text)
    places = sorted(generator.sample(range(len(words)), min(count, len(words))))
    return " ".join(words[place] for place in places)


def _alike(index: DocumentIndex, number: int, text: str, date: datetime.date | None, vector: FloatArray) -> set[int]:
    """The numbers of articles that most likely report the event of one."""
    words = [word for word in index.read(text[:_TEXT]) if word.frequency > 1]
    rarest = sorted(words, key=lambda word: -word.rarity)[:_TEXT_WORDS]
    by_words = _others(index.matching(rarest, _NEAR + 1)[0].tolist(), number)
    by_vectors = _others(index.nearest(vector, _NEAR + 1)[0].tolist(), number)
    if date is None:
        return {*by_words[:_NEAR_BOTH]} & {*by_vectors[:_NEAR_BOTH]}
    places = [*{*by_words, *by_vectors}]
    near = zip(places, index.archive.take(places, ["byline_date"])["byline_date"].to_pylist(), strict=True)
    return {place for place, day in near if day is not None and abs((day - date).days) <= _DAYS}


def _others(numbers: Sequence[int], own: int) -> list[int]:
    return [number for number in numbers if number != own][:_NEAR]

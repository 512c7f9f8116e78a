"""Search by words, by vectors, or by both: the results, and in words why there are none."""

import dataclasses
from collections.abc import Sequence
from typing import Any, Final, Literal

import numpy as np
import numpy.typing as npt

from ..errors import InputError
from .analysis import stemmer_of
from .extracts import extract
from .filters import NO_FILTERS, Filters
from .index import DocumentIndex, FloatArray, Hit
from .ranking import DEPTH, NO_RANK, Evidence, Ranking
from .words import Matches, QueryWord

Mode = Literal["hybrid", "words", "vectors"]
MODES: Final[tuple[Mode, ...]] = ("hybrid", "words", "vectors")
NO_WORDS: Final = "the index holds no words, so that only vectors are searched; build it again with newsembed index"
_SHOWN_WORDS: Final = 5
_LEAST_SCORE: Final = 0.01  # of a result of the mode hybrid that has something to do with the query


@dataclasses.dataclass(frozen=True)
class Found:
    """The answer to a query.

    Attributes:
      hits: best first.
      mode: how they were found.
      words: of the query.
      notes: what the user should know about the answer, in words.
    """

    hits: list[Hit]
    mode: Mode
    words: tuple[QueryWord, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def matches(self) -> bool:
        """Whether there are results and, in the mode hybrid, a word of the query is known or a score is not near 0."""
        if self.mode != "hybrid" or any(word.frequency for word in self.words):
            return bool(self.hits)
        return any(hit.score >= _LEAST_SCORE for hit in self.hits)


def modes_of(index: DocumentIndex) -> tuple[Mode, ...]:
    """The modes in which an index can be searched, the default first."""
    return MODES if index.words is not None else ("vectors",)


def chosen_mode(index: DocumentIndex, mode: Mode | None) -> Mode:
    """The mode of a search: `mode`, or hybrid where the index has words.

    Raises:
      InputError: for words of an index that has none, or an unknown mode.
    """
    if mode not in (None, *MODES):
        raise InputError(f"got {mode!r}, expected one of {', '.join(MODES)}", field="mode", remedy="choose one of them")
    if index.words is None and mode in ("words", "hybrid"):
        problem = f"{mode} needs the words of the articles, which this index does not hold"
        raise InputError(
            problem, field="mode", remedy="build the index again with newsembed index, or search by vectors"
        )
    return mode or modes_of(index)[0]


def find(
    index: DocumentIndex,
    query: str,
    vector: FloatArray | None,
    count: int,
    *,
    mode: Mode | None = None,
    filters: Filters = NO_FILTERS,
) -> Found:
    """The documents that answer a query.

    Scores are from 0 to 1 in the mode hybrid (see `ranking`), BM25 in the mode words, and cosines in the mode vectors.

    Args:
      index: what is searched.
      query: its words.
      vector: of the query, float32 ``[D]``; None in the mode words.
      count: how many, if there are as many.
      mode: None for hybrid where the index has words, else vectors.
      filters: what the documents must be.

    Raises:
      InputError: if the index has no words and the mode needs them, nothing passes the filters, or `count` is not
        positive.
    """
    wanted = chosen_mode(index, mode)
    if count < 1:
        raise InputError(f"got {count}, expected 1 or more", field="count", remedy="ask for at least one document")
    if not index.count(filters):
        raise index.nothing_left(filters)
    words = [] if index.words is None else index.words.read(query)
    notes = [NO_WORDS] if index.words is None else _unknown(words)
    if wanted == "words":
        assert index.words is not None
        matches = index.words.search(words, count, filters)
        hits = index.hits(matches.numbers.tolist(), matches.scores.tolist())
    elif vector is None:
        raise InputError("the query has no vector", field="mode", remedy="give the vector, or search by words")
    elif wanted == "vectors":
        hits = index.search(vector, count, filters)
    else:
        found = evidence(index, words, vector, filters)
        scores = Ranking.from_dict(index.ranking).scores(found)
        order = np.lexsort((found.numbers, -scores))[:count]
        hits = index.hits(found.numbers[order].tolist(), scores[order].tolist())
    return Found(_with_extracts(index, hits, words), wanted, tuple(words), tuple(notes))


def _with_extracts(index: DocumentIndex, hits: list[Hit], words: Sequence[QueryWord]) -> list[Hit]:
    """The hits with the places of the words in them, where the index has words."""
    if index.words is None or not hits:
        return hits
    weights = {term: word.rarity for word in words for term in word.terms}
    bodies = index.words.bodies([hit.number for hit in hits])
    return [
        dataclasses.replace(
            hit,
            extract=extract(hit.document.title, bodies[hit.number], weights, stemmer_of(hit.document.language)),
        )
        for hit in hits
    ]


def evidence(
    index: DocumentIndex,
    words: Sequence[QueryWord],
    vector: FloatArray,
    filters: Filters = NO_FILTERS,
    without: int | None = None,
) -> Evidence:
    """What words and vectors say about the `DEPTH` best documents by each of both.

    Args:
      index: with words.
      words: of the query.
      vector: of the query.
      filters: what the documents must be.
      without: a document that is not a candidate.
    """
    assert index.words is not None
    best = index.words.search(words, DEPTH + 1, filters)
    nearest = [number for number, _ in index.nearest(vector, DEPTH + 1, filters) if number != without][:DEPTH]
    by_words = [number for number in best.numbers.tolist() if number != without][:DEPTH]
    numbers = np.array(sorted({*nearest, *by_words}), np.int64)
    matches = _scores_of(index, words, numbers, best)
    cosines = index.embeddings[numbers].astype(np.float64) @ (vector / max(float(np.linalg.norm(vector)), 1e-12))
    mean, deviation = index.spread(vector)
    rarity = sum(word.rarity for word in words)
    known = sum(word.rarity for word in words if word.frequency)
    return Evidence(
        numbers,
        cosines,
        (cosines - mean) / max(deviation, 1e-9),
        matches,
        _ranks(numbers, nearest),
        _ranks(numbers, by_words),
        len(words),
        rarity,
        known / rarity if rarity else 0.0,
    )


def _scores_of(
    index: DocumentIndex, words: Sequence[QueryWord], numbers: npt.NDArray[Any], best: Matches
) -> npt.NDArray[Any]:
    """BM25 of documents, float64 ``[n]``; of those among the best it is known."""
    scores = dict(zip(best.numbers.tolist(), best.scores.tolist(), strict=True))
    if len(best.numbers) > DEPTH and index.words is not None:  # others may hold words, too
        others = [number for number in numbers.tolist() if number not in scores]
        more = index.words.search(words, len(others), among=others)
        scores |= dict(zip(more.numbers.tolist(), more.scores.tolist(), strict=True))
    return np.array([scores.get(number, 0.0) for number in numbers.tolist()])


def _ranks(numbers: npt.NDArray[Any], listed: list[int]) -> npt.NDArray[Any]:
    places = {number: place for place, number in enumerate(listed)}
    return np.array([places.get(number, NO_RANK) for number in numbers.tolist()], np.float64)


def _unknown(words: Sequence[QueryWord]) -> list[str]:
    """What the user should know about the words of the query."""
    unknown = [word.text for word in words if not word.frequency]
    if not words:
        return ["the query has no letters or numbers, so that no word was searched"]
    if not unknown:
        return []
    shown = ", ".join(unknown[:_SHOWN_WORDS]) + (" and more" if len(unknown) > _SHOWN_WORDS else "")
    if len(unknown) == len(words):
        return [f"no word of the query is in the index: {shown}"]
    return [f"not in the index: {shown}"]

"""Search by words, by vectors, or by both: the results, and in words why there are none."""

import collections
import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal

import numpy as np
import numpy.typing as npt

from ..errors import InputError
from .filters import NO_FILTERS, Filters
from .index import DocumentIndex, Hit, QueryWord
from .interface import FloatArray
from .ranking import DEPTH, NO_RANK, Evidence, Ranking

Mode = Literal["hybrid", "words", "vectors"]
MODES: Final[tuple[Mode, ...]] = ("hybrid", "words", "vectors")
_SHOWN_WORDS: Final = 5
_FIRST: Final = 10  # documents by words whose language is that of the query
_LEAST_SCORE: Final = 0.01  # of a result of the mode hybrid that has something to do with the query


@dataclasses.dataclass(frozen=True)
class Found:
    """The answer to a query.

    Attributes:
      hits: best first.
      mode: how they were found.
      words: of the query.
      notes: what the user should know about the answer, in words.
      facets: how many of the best `DEPTH` articles each publisher, language and month has, the largest first; months
        (YYYY-MM) by time. Empty if they were not asked for.
    """

    hits: list[Hit]
    mode: Mode
    words: tuple[QueryWord, ...] = ()
    notes: tuple[str, ...] = ()
    facets: Mapping[str, list[tuple[str, int]]] = dataclasses.field(default_factory=dict)

    @property
    def matches(self) -> bool:
        """Whether there are results and, in the mode hybrid, a word of the query is known or a score is not near 0."""
        if self.mode != "hybrid" or any(word.frequency for word in self.words):
            return bool(self.hits)
        return any(hit.score >= _LEAST_SCORE for hit in self.hits)


def chosen_mode(mode: str | None) -> Mode:
    """The mode of a search: `mode`, or hybrid; an `InputError` for another word."""
    for known in MODES:
        if mode in (None, known):
            return known
    raise InputError(f"got {mode!r}, expected one of {', '.join(MODES)}", field="mode", remedy="choose one of them")


def find(
    index: DocumentIndex,
    query: str,
    vector: FloatArray | None,
    count: int,
    *,
    mode: Mode | None = None,
    filters: Filters = NO_FILTERS,
    facets: bool = False,
    cosines: FloatArray | None = None,
) -> Found:
    """The documents that answer a query.

    Scores are from 0 to 1 in the mode hybrid (see `ranking`), BM25 in the mode words, and cosines in the mode vectors.

    Args:
      index: what is searched.
      query: its words.
      vector: of the query, float32 ``[D]``; None in the mode words.
      count: how many, if there are as many.
      mode: None for hybrid.
      filters: what the documents must be.
      facets: whether the best articles are counted, too.
      cosines: of `vector` with all articles, by `DocumentIndex.compare`, if they are known.

    Raises:
      InputError: if nothing passes the filters, or `count` is not positive.
    """
    wanted = chosen_mode(mode)
    if count < 1:
        raise InputError(f"got {count}, expected 1 or more", field="count", remedy="ask for at least one document")
    if not index.count(filters):
        raise index.nothing_left(filters)
    words, most = index.read(query), max(count, DEPTH) if facets else count
    if wanted == "words":
        numbers, scores = index.matching(words, most, filters)
    elif vector is None:
        raise InputError("the query has no vector", field="mode", remedy="give the vector, or search by words")
    elif wanted == "vectors":
        numbers, cosines = index.nearest(vector, most, filters, cosines)
        scores = cosines.astype(np.float64)
    else:
        found = evidence(index, words, vector, filters, cosines=cosines, depth=max(count, DEPTH))
        scores = Ranking.from_dict(index.settings.get("ranking")).scores(found)
        order = np.lexsort((found.numbers, -scores))[:most]
        numbers, scores = found.numbers[order], scores[order]
    counts = _facets(index, numbers[:DEPTH].tolist()) if facets else {}
    hits = index.hits(numbers[:count], scores[:count], words)
    if wanted == "hybrid":
        hits = [dataclasses.replace(hit, chance=hit.score) for hit in hits]
    return Found(hits, wanted, tuple(words), tuple(_unknown(words)), counts)


def _facets(index: DocumentIndex, numbers: list[int]) -> dict[str, list[tuple[str, int]]]:
    documents = index.archive.documents(numbers)
    values = {
        "publisher": [document.publisher for document in documents],
        "language": [document.language for document in documents],
        "month": [f"{document.byline_date:%Y-%m}" for document in documents if document.byline_date],
    }
    counts = {name: collections.Counter(filter(None, found)) for name, found in values.items()}
    by_time = sorted(counts.pop("month").items())
    return {**{name: largest_first(count) for name, count in counts.items()}, "month": by_time}


def largest_first(counts: Mapping[str, int]) -> list[tuple[str, int]]:
    """Names with their counts, the largest first; ties by name."""
    return sorted(counts.items(), key=lambda item: (-item[1], item[0]))


def evidence(
    index: DocumentIndex,
    words: Sequence[QueryWord],
    vector: FloatArray,
    filters: Filters = NO_FILTERS,
    without: int | None = None,
    cosines: FloatArray | None = None,
    depth: int = DEPTH,
) -> Evidence:
    """What words and vectors say about the best documents by each of both.

    Args:
      index: what is searched.
      words: of the query.
      vector: of the query.
      filters: what the documents must be.
      without: a document that is not a candidate.
      cosines: of `vector` with all articles, if they are known.
      depth: the documents by each. Those beyond `DEPTH` have no rank, as the weights expect.
    """
    best, bm25 = (part.tolist() for part in index.matching(words, depth + 1, filters))
    near = index.nearest(vector, depth + 1, filters, cosines)[0].tolist()
    nearest, by_words = ([number for number in found if number != without][:depth] for found in (near, best))
    numbers = np.array(sorted({*nearest, *by_words}), np.int64)
    scores = dict(zip(best, bm25, strict=True))
    if len(best) > depth:  # others may hold words, too
        others = [number for number in numbers.tolist() if number not in scores]
        more = index.matching(words, len(others), among=others)
        scores |= dict(zip(*(part.tolist() for part in more), strict=True))
    near_to, places = index.cosines(vector, numbers), index.places(numbers)
    held, word_ranks = np.array([scores.get(one, 0.0) for one in numbers.tolist()]), _ranks(numbers, by_words[:DEPTH])
    rarity = sum(word.rarity for word in words)
    known = sum(word.rarity for word in words if word.frequency)
    return Evidence(
        numbers,
        near_to,
        index.deviations(vector, near_to, places),
        held,
        _ranks(numbers, nearest[:DEPTH]),
        word_ranks,
        _foreign(index.groups.of[places], held, word_ranks),
        len(words),
        rarity,
        known / rarity if rarity else 0.0,
    )


def _foreign(languages: npt.NDArray[Any], held: npt.NDArray[Any], ranks: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    """Which candidates are in another language than the first documents by words: that of the query."""
    first = ranks < _FIRST
    if not first.any():
        return first
    return np.asarray(languages != np.bincount(languages[first], held[first]).argmax(), np.bool_)


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

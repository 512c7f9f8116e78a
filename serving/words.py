"""The words of an index: which documents hold the words of a query, by BM25."""

import dataclasses
import datetime
import math
import os
import shutil
import tempfile
import weakref
from collections.abc import Iterable, Sequence
from typing import Any, Final, Self

import numpy as np
import numpy.typing as npt

from ..formats.articles import ArticleText
from ..formats.words import DAY, LANGUAGE, NUMBER, PUBLISHER, TEXT, WordsFolder, WordsRow, WordsWriter
from .analysis import base_language, clean, stemmers_of, terms, tokens
from .filters import NO_FILTERS, Filters

MAX_WORDS: Final = 64  # of a query
_EPOCH: Final = datetime.date(1970, 1, 1)


@dataclasses.dataclass(frozen=True, slots=True)
class QueryWord:
    """A word of a query.

    Attributes:
      text: as it was given.
      terms: what the index may know it as, one for each stemmer of its languages, without repetitions.
      frequency: number of documents that hold one of them, at least; 0 for a word that the index does not know.
      rarity: its inverse document frequency as in BM25, at least 0.
    """

    text: str
    terms: tuple[str, ...]
    frequency: int
    rarity: float


@dataclasses.dataclass(frozen=True, slots=True)
class Matches:
    """Documents that hold words of a query, best first: their numbers and BM25 scores, float64 ``[n]``."""

    numbers: npt.NDArray[np.int64]
    scores: npt.NDArray[np.float64]


class Words:
    """The words of the documents of an index.

    Args:
      files: what holds them.
      languages: of the documents, BCP-47 tags; they say which stemmers were used.
    """

    def __init__(self, files: WordsFolder, languages: Iterable[str]) -> None:
        self.files = files
        self.stemmers = stemmers_of(set(languages))

    def __len__(self) -> int:
        return len(self.files)

    def read(self, query: str) -> list[QueryWord]:
        """The different words of a query, in its order. Quotes and colons are not operators.

        Of a long query the rarest `MAX_WORDS` words count.
        """
        text = clean(query)
        found: dict[tuple[int, int], dict[str, None]] = {}
        for stemmer in self.stemmers:
            for term in terms(text, stemmer):
                found.setdefault((term.start, term.end), {})[term.text] = None
        words: dict[tuple[str, ...], QueryWord] = {}
        for (start, end), known in sorted(found.items()):
            if tuple(known) not in words:
                words[tuple(known)] = self._word(text[start:end], tuple(known))
        if len(words) <= MAX_WORDS:
            return list(words.values())
        least = sorted((word.rarity for word in words.values() if word.frequency), reverse=True)[:MAX_WORDS]
        return [word for word in words.values() if word.frequency and word.rarity >= least[-1]][:MAX_WORDS]

    def search(
        self, words: Sequence[QueryWord], count: int, filters: Filters = NO_FILTERS, among: Sequence[int] | None = None
    ) -> Matches:
        """The documents with the highest BM25 score, best first; ties by number.

        Title and body are one text; of the terms of a word the best one counts.

        Args:
          words: of `read`.
          count: how many, if as many hold a word.
          filters: what the documents must be.
          among: numbers of the documents that are asked for; None for all.
        """
        from tantivy import Occur, Query

        asked = [(Occur.Should, self._word_query(word)) for word in words if word.frequency]
        if not asked or count < 1 or (among is not None and not len(among)):
            return Matches(np.zeros(0, np.int64), np.zeros(0))
        required = self._conditions(filters)
        if among is not None:
            required.append(Query.term_set_query(self.files.schema, NUMBER, [int(number) for number in among]))
        query = Query.boolean_query(asked)
        if required:
            silent = [(Occur.Must, Query.const_score_query(one, 0.0)) for one in required]
            query = Query.boolean_query([(Occur.Must, query), *silent])
        hits = self.files.searcher.search(query, min(count, len(self)), count=False).hits
        numbers = np.array(self.files.numbers([address for _, address in hits]), np.int64)
        scores = np.array([score for score, _ in hits], np.float64)
        order = np.lexsort((numbers, -scores))
        return Matches(numbers[order], scores[order])

    def bodies(self, numbers: Sequence[int]) -> dict[int, str]:
        """The bodies of documents by their numbers."""
        from tantivy import Query

        query = Query.term_set_query(self.files.schema, NUMBER, [int(number) for number in numbers])
        addresses = [address for _, address in self.files.searcher.search(query, max(len(numbers), 1)).hits]
        return dict(zip(self.files.numbers(addresses), map(self.files.source, addresses), strict=True))

    def _word(self, text: str, known: tuple[str, ...]) -> QueryWord:
        frequency = max(self.files.searcher.doc_freq(TEXT, term) for term in known)
        return QueryWord(text, known, frequency, math.log(1 + (len(self) - frequency + 0.5) / (frequency + 0.5)))

    def _word_query(self, word: QueryWord) -> Any:
        from tantivy import Query

        each = [Query.term_query(self.files.schema, TEXT, term, index_option="freq") for term in word.terms]
        return each[0] if len(each) == 1 else Query.disjunction_max_query(each)

    def _conditions(self, filters: Filters) -> list[Any]:
        """Queries that all hold for the documents that a search is restricted to."""
        from tantivy import FieldType, Query

        schema, dates = self.files.schema, filters.dates
        required = [
            Query.term_set_query(schema, field, list(values))
            for field, values in ((LANGUAGE, filters.languages), (PUBLISHER, filters.publishers))
            if values
        ]
        if dates.is_bounded:
            first, last = (None if day is None else days_of(day) for day in (dates.since, dates.until))
            required.append(Query.range_query(schema, DAY, FieldType.Integer, first, last))
        return required


def days_of(day: datetime.date) -> int:
    """Days since 1970-01-01."""
    return (day - _EPOCH).days


class WordsBuilder:
    """Collects the words of articles in a folder of its own, which goes when the `Words` of `built` go."""

    def __init__(self) -> None:
        self._folder = tempfile.mkdtemp(prefix="newsembed-words-")
        self._place = os.path.join(self._folder, "words")
        self._count = 0
        self._languages = set[str]()
        self._remove = weakref.finalize(self, shutil.rmtree, self._folder, ignore_errors=True)

    def __enter__(self) -> Self:
        self._writer = WordsWriter(self._place)
        self._writer.__enter__()
        return self

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        try:
            self._writer.__exit__(kind, *rest)
        finally:
            if kind is not None:
                self._remove()

    def add(self, articles: Sequence[ArticleText]) -> None:
        """Adds the next articles of the index."""
        for number, article in enumerate(articles, self._count):
            self._writer.add(words_row(number, article))
            self._languages.add(article.language)
        self._count += len(articles)

    def built(self) -> Words:
        """The words, when the context has ended."""
        made = Words(WordsFolder(self._place), self._languages)
        self._remove.detach()
        weakref.finalize(made, shutil.rmtree, self._folder, ignore_errors=True)
        return made


def add_articles(folder: str, articles: Iterable[ArticleText], *, start: int) -> None:
    """Adds articles to a folder of words, numbered from `start` on.

    Raises:
      OSError: if they cannot be written.
    """
    with WordsWriter(folder) as writer:
        for number, article in enumerate(articles, start):
            writer.add(words_row(number, article))


def words_row(number: int, article: ArticleText) -> WordsRow:
    """What the words of an index keep of an article, which is the document `number`."""
    title, body = clean(article.title), clean(article.body)
    return WordsRow(
        number,
        tokens(f"{title}\n{body}", article.language),
        body,
        None if article.byline_date is None else days_of(article.byline_date),
        base_language(article.language),
        article.publisher.lower(),
    )

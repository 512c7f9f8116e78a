"""A version of an archive as a search index: by vectors, words, URLs and filters.

The vectors of up to `EXACT_LIMIT` articles are held in memory and compared one by one; those of more are searched in
the database, by its index. Articles have numbers, which hold within a version.
"""

import dataclasses
import functools
import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ..errors import InputError
from ..formats.archive import (
    EXACT_LIMIT,
    SHOWN,
    Archive,
    IndexedDocument,
    any_of,
    vectors_of,
)
from ..formats.arrays import highest, unit
from ..formats.urls import canonical_url
from .analysis import base_language, clean, stemmer_of, terms
from .extracts import Extract, extract
from .filters import ALL_DATES, NO_FILTERS, DateRange, Filters, known_value
from .interface import FloatArray
from .specs import found_encoder

MAX_WORDS: Final = 64  # of a query
_NEARLY_ALL, _HALF = 0.9, 0.5  # of the words of a query, and of the highest score of the mode hybrid
_IN_MOST: Final = 0.25  # of the articles; such words are marked only if the query has no others
LEAST: Final = 50  # articles of a language; those of rarer languages are compared with all articles
_ROWS: Final = 4_096  # of all articles
_LANGUAGE_ROWS: Final = 1_024

Numbers = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


class Groups:
    """Articles by language.

    Args:
      languages: the tag of each article, "" or null if unknown.

    Attributes:
      of: the group of each article, int64 ``[N]``: 0 for rare languages, or for all where there is one language only.
      tags: for each group from 1 the tags of its language, as the archive writes them.
      large: the groups from 1 with more articles than a sample has.
    """

    def __init__(self, languages: pa.ChunkedArray) -> None:
        encoded = languages.fill_null("").combine_chunks().dictionary_encode()
        values, places = encoded.dictionary.to_pylist(), encoded.indices.to_numpy()
        bases = [base_language(value) for value in values]
        counts = np.bincount(places, minlength=len(values))
        held = {base: sum(counts[[other == base for other in bases]]) for base in bases}
        names = [base for base in sorted(held) if held[base] >= LEAST]
        names = names if len(held) > 1 else []
        self.of: Numbers = np.array([names.index(base) + 1 if base in names else 0 for base in bases])[places]
        self.tags = [[value for value, base in zip(values, bases, strict=True) if base == name] for name in names]
        self.large = [group for group, name in enumerate(names, 1) if held[name] > _LANGUAGE_ROWS]

    def samples(self) -> list[Numbers]:
        """Places of up to 4,096 of all articles, and of up to 1,024 of each group from 1."""
        every = [(np.arange(len(self.of)), _ROWS)]
        every += [(np.flatnonzero(self.of == group + 1), _LANGUAGE_ROWS) for group in range(len(self.tags))]
        return [places[:: -(-len(places) // most)] for places, most in every]


@dataclasses.dataclass(frozen=True, slots=True)
class Hit:
    """One answer.

    Attributes:
      rank: 1 is the best.
      score: cosine in [-1, 1], BM25, or from 0 to 1, by the mode of the search.
      document: what was found.
      number: of the article in its version of the archive, -1 if unknown.
      extract: where words of the query are in it; None where they were not looked for.
      share: the share of the query's words that it holds, by their rarity; None where they were not looked for.
      chance: that it is right; 0 unless the score is that of the mode hybrid.
    """

    rank: int
    score: float
    document: IndexedDocument
    number: int = -1
    extract: Extract | None = None
    share: float | None = None
    chance: float = 0.0

    @property
    def band(self) -> str:
        """How well it answers the query: strong, fair or weak; "" where no words were looked for.

        The score alone does not tell: for words that the archive lacks it is that of the nearest articles. Strong: it
        holds nearly all that the query asks for, or half of it and is probably right. Fair: it holds half, or is
        probably right, as an article in another language can be.
        """
        if self.share is None:
            return ""
        if self.share >= _NEARLY_ALL or (self.share >= _HALF and self.chance >= _HALF):
            return "strong"
        return "fair" if max(self.share, self.chance) >= _HALF else "weak"

    def to_dict(self) -> dict[str, Any]:
        """JSON values."""
        values = {"rank": self.rank, "score": self.score, "band": self.band, **self.document.to_dict()}
        return values if self.extract is None else {**values, **self.extract.to_dict()}


@dataclasses.dataclass(frozen=True, slots=True)
class QueryWord:
    """A word of a query.

    Attributes:
      text: as it was given.
      terms: what the index may know it as, one for each stemmer of its languages, without repetitions.
      frequency: number of articles that hold one of them, at least; 0 for a word that the index does not know.
      rarity: its inverse document frequency as in BM25, at least 0.
    """

    text: str
    terms: tuple[str, ...]
    frequency: int
    rarity: float


class DocumentIndex:
    """A version of an archive that is searched.

    Args:
      archive: the version.
      exact_limit: most articles whose vectors are compared one by one.

    Attributes:
      encoder: ``KIND:REST`` of the encoder that made the vectors, "" if unknown; from the working directory.
      encoder_digest: its digest; a query must be embedded by the same one.
      settings: how it read the articles, and what was learned; JSON values.
    """

    def __init__(self, archive: Archive, *, exact_limit: int = EXACT_LIMIT) -> None:
        self.archive = archive
        self.settings = archive.run.settings
        self.encoder = found_encoder(archive.uri, self.settings)
        self.encoder_digest = str(self.settings.get("encoder_digest", ""))
        self.is_exact = len(archive) <= exact_limit

    @classmethod
    def load(cls, uri: str) -> "DocumentIndex":
        """The last version of an archive.

        Raises:
          InputError: if it cannot be read.
        """
        return cls(Archive(uri))

    def __len__(self) -> int:
        return len(self.archive)

    # What is read whole, by commands that need it: one entry for each article, in one order.

    @functools.cached_property
    def numbers(self) -> Numbers:
        """The numbers of all articles, int64 ``[N]``."""
        return self.archive.rows(["byline_date"])["_rowid"].to_numpy().astype(np.int64)

    @functools.cached_property
    def documents(self) -> list[IndexedDocument]:
        """What results show of all articles."""
        return [IndexedDocument(**row) for row in self.archive.rows(SHOWN).select(SHOWN).to_pylist()]

    @functools.cached_property
    def events(self) -> list[str]:
        """The events of all articles, as `update` keeps them; "" for none."""
        return [event or "" for event in self.archive.rows(["event_id"])["event_id"].to_pylist()]

    @functools.cached_property
    def embeddings(self) -> FloatArray:
        """All vectors, float32 ``[N, D]``, unit rows."""
        return vectors_of(self.archive.rows(["vector"])["vector"], self.archive.dimensions)

    # Filters

    def filters(
        self, dates: DateRange = ALL_DATES, languages: Sequence[str] = (), publishers: Sequence[str] = ()
    ) -> Filters:
        """Filters of a search.

        Args:
          dates: byline dates.
          languages: BCP-47 tags; region and script do not count.
          publishers: in any case.

        Raises:
          InputError: for a language or publisher that no article has; it names the nearest.
        """
        chosen = []
        for field, given in (("language", [*map(base_language, languages)]), ("publisher", publishers)):
            known = [self._values[field][known_value(name, self._values[field], field)] for name in given]
            chosen.append(tuple(sorted({*itertools.chain(*known)})))
        return Filters(dates, *chosen)

    @functools.cached_property
    def _values(self) -> Mapping[str, Mapping[str, list[str]]]:
        """By field, the values of the archive by what filters name them."""
        rows = self.archive.rows(["language", "publisher"])
        found: dict[str, dict[str, list[str]]] = {"language": {}, "publisher": {}}
        for field, named in (("language", base_language), ("publisher", str.lower)):
            for value in rows[field].unique().to_pylist():
                found[field].setdefault(named(value), []).append(value)
        return found

    def count(self, filters: Filters = NO_FILTERS) -> int:
        """How many articles pass filters."""
        return self.archive.count(filters.condition)

    def passing(self, filters: Filters) -> npt.NDArray[np.bool_]:
        """Whether each article passes filters, bool ``[N]``."""
        if not filters.condition:
            return np.ones(len(self), np.bool_)
        rows = self.archive.rows(["byline_date"], filters.condition)
        return np.isin(self.numbers, rows["_rowid"].to_numpy().astype(np.int64))

    def nothing_left(self, filters: Filters) -> InputError:
        """The error that says why no article passes filters."""
        if not len(self):
            return InputError("the index has no articles", path=self.archive.uri, remedy="add some by update or index")
        if not self.count(Filters(filters.dates)):
            has = f"dates from {self._days[0]} to {self._days[-1]}" if self._days else "articles without dates only"
            problem = f"no article of the index has a byline date in this range; it has {has}"
            remedy = "give days within the archive's" if self._days else "leave out --since and --until"
            return InputError(problem, field="--since, --until", remedy=remedy)
        return InputError("no article of the index passes all filters", field="filters", remedy="leave out one of them")

    @functools.cached_property
    def _days(self) -> list[Any]:
        found = self.archive.rows(["byline_date"], "byline_date IS NOT NULL")["byline_date"].unique()
        return sorted(found.to_pylist())

    # Vectors

    def search(self, query: FloatArray, count: int, filters: Filters = NO_FILTERS) -> list[Hit]:
        """The articles of highest cosine with a query, best first; ties by number.

        Args:
          query: float32 ``[D]`` by the index's encoder, of any length.
          count: how many, if as many pass the filters.
          filters: what the articles must be.
        """
        return self.hits(*self.nearest(query, count, filters))

    def compare(self, queries: FloatArray) -> list[FloatArray] | None:
        """The cosines of unit queries ``[Q, D]`` with all articles, float32 ``[N]`` each; None if they are too many.

        One product of many queries takes a tenth of the time of as many products.
        """
        return [*(queries @ self.embeddings.T)] if self.is_exact else None

    def nearest(
        self, query: FloatArray, count: int, filters: Filters = NO_FILTERS, cosines: FloatArray | None = None
    ) -> tuple[Numbers, FloatArray]:
        """The numbers of the nearest articles, best first, and their cosines; see `search`.

        The order is that of the cosines, or in an archive of several languages that of `deviations`.

        Args:
          query: see `search`.
          count: see `search`.
          filters: see `search`.
          cosines: of the query, by `compare`, if they are known.
        """
        query = np.asarray(query, np.float32).reshape(-1)
        if self.is_exact:
            scores, places = self.embeddings @ unit(query) if cosines is None else cosines, np.arange(len(self))
            if filters.condition:
                places = np.flatnonzero(self.passing(filters))
                scores = scores[places]
        else:
            numbers, scores = self._nearest_by_index(unit(query), count, filters)
            places = self.places(numbers)
        if not len(scores):
            return np.zeros(0, np.int64), scores
        several = len(self.groups.tags) > 0
        order = self.deviations(query, scores, places).astype(np.float32) if several else scores
        (best,), _ = highest(order[None], min(count, len(scores)))
        return self.numbers[places[best]], scores[best]

    def _nearest_by_index(self, unit: FloatArray, count: int, filters: Filters) -> tuple[Numbers, FloatArray]:
        """The nearest articles of all, and of each of the languages, by the index of the vectors."""
        tags = [] if filters.languages else self.groups.tags
        found = []
        if tags and not filters.condition:  # one product is faster than a request for each rare language
            few, vectors = self._few
            tags, found = [tags[group - 1] for group in self.groups.large], [(few, vectors @ unit)]
        parts = [dataclasses.replace(filters, languages=tuple(each)).condition for each in tags]
        found += [self.archive.nearest(unit, count, part) for part in (filters.condition, *parts)]
        numbers, cosines = (np.concatenate(each) for each in zip(*found, strict=True))
        numbers, first = np.unique(numbers, return_index=True)
        return numbers, cosines[first]

    def cosines(self, query: FloatArray, numbers: Numbers) -> npt.NDArray[np.float64]:
        """The cosines of a query with articles, float64 ``[n]``."""
        vectors = self.vectors_at(self.places(numbers)) if self.is_exact else self.archive.vectors(numbers.tolist())
        return vectors.astype(np.float64) @ unit(query)

    def places(self, numbers: Numbers) -> Numbers:
        """The places of articles in `numbers`."""
        return np.asarray(self._order[np.searchsorted(self.numbers, numbers, sorter=self._order)], np.int64)

    def vectors_at(self, places: Numbers) -> FloatArray:
        """The vectors of articles by their places, float32 ``[n, D]``."""
        return self.embeddings[places] if self.is_exact else self.archive.vectors(self.numbers[places].tolist())

    @functools.cached_property
    def _order(self) -> Numbers:
        return np.argsort(self.numbers)

    def deviations(self, query: FloatArray, cosines: npt.NDArray[Any], places: Numbers) -> npt.NDArray[np.float64]:
        """Cosines of a query as standard deviations above the mean of its cosines with articles in their language.

        Most encoders give unrelated texts of one language higher cosines than a text and its translation. So the order
        of an archive of several languages is that of the deviations: an article counts by how much nearer it is than
        others in its language. The deviation is that of all articles at least: where an encoder knows nothing about
        another language, its cosines are all near 0, and small differences would count as much as those of the language
        of the query.

        Args:
          query: ``[D]``, of any length.
          cosines: with articles, ``[n]``.
          places: of these articles, int64 ``[n]``.
        """
        groups = self.groups.of[places]
        of_samples = [np.asarray(sample @ unit(query), np.float64) for sample in self._samples]
        means, deviations = (np.array([measure(each) for each in of_samples]) for measure in (np.mean, np.std))
        return np.asarray((cosines - means[groups]) / np.maximum(deviations, max(deviations[0], 1e-9))[groups])

    @functools.cached_property
    def groups(self) -> Groups:
        """The articles by language; rare languages, or all articles where there is one language, are one group."""
        return Groups(self.archive.rows(["language"])["language"])

    @functools.cached_property
    def _few(self) -> tuple[Numbers, FloatArray]:
        """The numbers and the vectors of the articles in languages of which there are few articles."""
        places = np.flatnonzero(~np.isin(self.groups.of, [0, *self.groups.large]))
        return self.numbers[places], self.vectors_at(places)

    @functools.cached_property
    def _samples(self) -> list[FloatArray]:
        return [self.vectors_at(places) for places in self.groups.samples()]

    def hits(
        self, numbers: Iterable[int], scores: Iterable[float], words: Sequence[QueryWord] | None = None
    ) -> list[Hit]:
        """Results of articles by their numbers, best first, with the places of `words` if they are given."""
        places = [int(number) for number in numbers]
        rare = [word for word in words or () if word.frequency <= _IN_MOST * len(self)] or words or ()
        weights = {term: word.rarity for word in rare for term in word.terms}
        whole = sum(word.rarity for word in rare)
        hits = []
        rows = self.archive.take(places, SHOWN if words is None else (*SHOWN, "body")).to_pylist()
        for rank, (number, score, row) in enumerate(zip(places, scores, rows, strict=True), 1):
            document = IndexedDocument(**{name: row[name] for name in SHOWN})
            stemmer = stemmer_of(row["language"])
            found = None if words is None else extract(row["title"], row["body"], weights, stemmer)
            held = sum(word.rarity for word in rare if found and not found.terms.isdisjoint(word.terms))
            share = held / whole if found and whole else None
            hits.append(Hit(rank, float(score), document, number, found, share))
        return hits

    # URLs

    def search_url(self, url: str, count: int, filters: Filters = NO_FILTERS) -> list[Hit]:
        """The articles most similar to that of ``url``, without that one.

        Raises:
          InputError: if no article has that URL.
        """
        own = self.number_of(url)
        numbers, scores = self.nearest(self.archive.vectors([own])[0], count + 1, filters)
        others = numbers != own
        return self.hits(numbers[others][:count], scores[others][:count])

    def has(self, url: str) -> bool:
        """Whether an article has that URL, or another spelling of it."""
        return bool(self._of_url(url))

    def number_of(self, url: str) -> int:
        """The number of the article of a URL.

        Raises:
          InputError: if no article has that URL.
        """
        return int(self._article(url)["_rowid"])

    def _article(self, url: str) -> Mapping[str, Any]:
        rows = self._of_url(url)
        if not rows:
            remedy = "give the URL of an indexed document, or search by words"
            raise InputError(f"no document with the URL {url}", field="url", remedy=remedy)
        return min(rows, key=lambda row: (row["url"] != url, row["_rowid"]))

    def _of_url(self, url: str) -> list[dict[str, Any]]:
        """The articles of a URL as it is written, and as `canonical_url` makes it: https, "www.", tracking."""
        urls = {"url": url, "canonical_url": canonical_url(url)}
        where = " OR ".join(any_of(column, [value]) for column, value in urls.items() if value)
        return self.archive.rows(["url", "byline_date"], where).to_pylist() if url else []

    def dates_around(self, url: str, days: int) -> DateRange:
        """The days around the byline date of an article, where other reports of its event are.

        Args:
          url: of the article.
          days: the greatest distance from its date.

        Raises:
          InputError: if no article has that URL, it has no date, or ``days`` is not a number of days.
        """
        date = self._article(url)["byline_date"]
        if date is None:
            raise InputError(f"{url} has no byline date", field="days", remedy="give since and until instead")
        return DateRange.around(date, days)

    # Words

    def read(self, query: str) -> list[QueryWord]:
        """The different words of a query, in its order. Quotes and colons are not operators.

        Of a long query the rarest `MAX_WORDS` words count.
        """
        text, found = clean(query), self._found(query)
        frequencies = self.archive.frequencies(itertools.chain(*found.values()))
        words: dict[tuple[str, ...], QueryWord] = {}
        for (start, end), known in sorted(found.items()):
            held = max(frequencies.get(term, 0) for term in known)
            rarity = math.log(1 + (len(self) - held + 0.5) / (held + 0.5))
            words.setdefault(tuple(known), QueryWord(text[start:end], tuple(known), held, rarity))
        if len(words) <= MAX_WORDS:
            return list(words.values())
        least = sorted((word.rarity for word in words.values() if word.frequency), reverse=True)[:MAX_WORDS]
        return [word for word in words.values() if word.frequency and word.rarity >= least[-1]][:MAX_WORDS]

    def _found(self, text: str) -> dict[tuple[int, int], dict[str, None]]:
        """What the index may know the words of a text as, by their places; one for each stemmer of its languages."""
        found: dict[tuple[int, int], dict[str, None]] = {}
        for stemmer in sorted({*map(stemmer_of, self.settings["languages"])}):
            for term in terms(clean(text), stemmer):
                found.setdefault((term.start, term.end), {})[term.text] = None
        return found

    def look_up(self, texts: Iterable[str]) -> None:
        """Counts the words of texts that are read later, all at once."""
        self.archive.frequencies(term for text in texts for known in self._found(text).values() for term in known)

    def matching(
        self,
        words: Sequence[QueryWord],
        count: int,
        filters: Filters = NO_FILTERS,
        among: Sequence[int] | None = None,
    ) -> tuple[Numbers, npt.NDArray[np.float64]]:
        """The articles with the highest BM25 score, best first, and the scores; title (twice) and body are one text.

        Args:
          words: of `read`.
          count: how many, if as many hold a word.
          filters: what the articles must be.
          among: numbers of the articles that are asked for; None for all.
        """
        asked = [term for word in words if word.frequency for term in word.terms]
        if not asked or (among is not None and not len(among)):
            return np.zeros(0, np.int64), np.zeros(0)
        where = filters.condition if among is None else f"_rowid IN ({', '.join(map(str, among))})"
        return self.archive.matching(asked, count, where)

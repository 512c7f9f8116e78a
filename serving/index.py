"""A document index: build, search, save and load.

Search is exact among up to :data:`EXACT_LIMIT` documents (all, or those of the dates asked for), and by a faiss
inverted file among more. ``formats.index`` describes the folder on disk. `append` adds documents to a folder.
"""

import dataclasses
import functools
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ..errors import InputError, counted
from ..formats.articles import ArticleText
from ..formats.index import IndexedDocument, Reading, StoredIndex, append_index, read_index, write_index
from ..formats.urls import canonical_url
from .analysis import base_language
from .dates import ALL_DATES, DateRange, as_days
from .extracts import Extract
from .filters import Filters, as_filters, known_value
from .interface import TextEncoder
from .words import Words, add_articles

EXACT_LIMIT: Final = 50_000  # one query over 50 000 x 768 floats takes some 20 ms on one core
_TRAINING_ROWS_PER_LIST: Final = 64
_PROBED_SHARE: Final = 0.1
_SPREAD_ROWS: Final = 4_096

FloatArray = npt.NDArray[np.float32]


def indexed_document(article: ArticleText) -> IndexedDocument:
    """The fields of an article that search results show."""
    names = [field.name for field in dataclasses.fields(IndexedDocument)]
    return IndexedDocument(*(getattr(article, name) for name in names))


def reading_of(encoder: TextEncoder, document_prompt: str | None, long_documents: str | None) -> Reading:
    """How an encoder reads documents.

    Args:
      encoder: what embeds; a SavedModel does not say how many tokens it reads.
      document_prompt: what it was given in place of its own prompt.
      long_documents: what it was given in place of its own way to read documents of more tokens.
    """
    return Reading(document_prompt, long_documents, getattr(encoder, "max_length", None))


@dataclasses.dataclass(frozen=True, slots=True)
class Hit:
    """One answer.

    Attributes:
      rank: 1 is the best.
      score: cosine in [-1, 1], BM25, or from 0 to 1, by the mode of the search.
      document: what was found.
      number: its place in the index, -1 if unknown.
      extract: where words of the query are in it; None where they were not looked for.
    """

    rank: int
    score: float
    document: IndexedDocument
    number: int = -1
    extract: Extract | None = None

    def to_dict(self) -> dict[str, Any]:
        """JSON values."""
        values = {"rank": self.rank, "score": self.score, **self.document.to_dict()}
        return values if self.extract is None else {**values, **self.extract.to_dict()}


class DocumentIndex:
    """Documents with their embeddings.

    Args:
      embeddings: float32 ``[N, D]``; scaled to unit rows here.
      documents: N, in the same order.
      encoder: ``KIND:REST`` of the encoder that made them, "" if unknown.
      encoder_digest: its digest; a query must be embedded by the same one.
      reading: how it read the documents; None if unknown.
      exact_limit: most documents searched exactly.
      inverted_file: faiss's, of these embeddings, if it was built before; otherwise it is built here if N exceeds the
        limit.

    Attributes:
      words: of the documents, by their places; None for vectors only.
      ranking: how scores of words and vectors are joined, see ``formats.index``.

    Raises:
      InputError: on different lengths, no documents, or embeddings that are not finite.
    """

    def __init__(
        self,
        embeddings: FloatArray,
        documents: Sequence[IndexedDocument],
        *,
        encoder: str = "",
        encoder_digest: str = "",
        reading: Reading | None = None,
        exact_limit: int = EXACT_LIMIT,
        inverted_file: Any = None,
    ) -> None:
        if embeddings.ndim != 2 or len(embeddings) != len(documents):
            raise InputError(
                f"got embeddings of shape {embeddings.shape} for {counted(len(documents), 'document')}",
                remedy="Build it with newsembed index.",
            )
        if not documents:
            raise InputError("no documents to index", remedy="give at least one article with text")
        if not np.isfinite(embeddings).all():
            raise InputError(
                "the embeddings hold NaN or infinity", remedy="use a checkpoint from before training diverged"
            )
        self.embeddings: FloatArray = _unit_rows(embeddings)
        self.documents = tuple(documents)
        self.encoder = encoder
        self.encoder_digest = encoder_digest
        self.reading = reading or Reading()
        self.words: Words | None = None
        self.ranking: Mapping[str, Any] | None = None
        self._days = as_days([document.byline_date for document in documents])
        self._exact_limit = exact_limit
        self._by_url = {
            document.url: number for number, document in reversed(list(enumerate(documents))) if document.url
        }
        if inverted_file is None and len(documents) > exact_limit:
            inverted_file = _build_faiss(self.embeddings)
        self._faiss = inverted_file

    def __len__(self) -> int:
        return len(self.documents)

    @property
    def is_exact(self) -> bool:
        """Whether all searches are exact."""
        return self._faiss is None

    def search(self, query: FloatArray, count: int, dates: DateRange | Filters = ALL_DATES) -> list[Hit]:
        """The documents of highest cosine with a query, best first; ties by position.

        Args:
          query: float32 ``[D]`` by the index's encoder, of any length.
          count: how many, if the index has as many of these dates.
          dates: byline dates to search among, or other filters.

        Raises:
          InputError: if the query has another width or ``count`` is not positive.
        """
        found = self.nearest(query, count, dates)
        return self.hits([number for number, _ in found], [score for _, score in found])

    def hits(self, numbers: Sequence[int], scores: Sequence[float]) -> list[Hit]:
        """Results of documents by their places, best first."""
        pairs = enumerate(zip(numbers, scores, strict=True), 1)
        return [Hit(rank, score, self.documents[number], number) for rank, (number, score) in pairs]

    def search_url(self, url: str, count: int, dates: DateRange | Filters = ALL_DATES) -> list[Hit]:
        """The documents most similar to the indexed document of ``url``, without that document.

        Args:
          url: of an indexed document.
          count: how many, if the index has as many of these dates.
          dates: byline dates to search among.

        Raises:
          InputError: if no document has that URL.
        """
        own = self.number_of(url)
        near = self.nearest(self.embeddings[own], count + 1, dates)
        others = [(number, score) for number, score in near if number != own][:count]
        return self.hits([number for number, _ in others], [score for _, score in others])

    def filters(
        self, dates: DateRange = ALL_DATES, languages: Sequence[str] = (), publishers: Sequence[str] = ()
    ) -> Filters:
        """Filters of a search.

        Args:
          dates: byline dates.
          languages: BCP-47 tags; region and script do not count.
          publishers: as the documents have them.

        Raises:
          InputError: for a language or publisher that no document has; it names the nearest.
        """
        tags, names = self._values
        return Filters(
            dates,
            tuple(known_value(base_language(tag), tags.tolist(), "language") for tag in languages),
            tuple(known_value(name, names.tolist(), "publisher") for name in publishers),
        )

    def count(self, dates: DateRange | Filters) -> int:
        """How many documents have one of these byline dates, or pass other filters."""
        return int(np.count_nonzero(self.passing(dates)))

    def nothing_left(self, filters: Filters) -> InputError:
        """The error that says why no document passes filters."""
        if not self.count(filters.dates):
            problem = f"no article of the index has a byline date in this range; it has {self.span()}"
            no_dates = bool(np.isnat(self._days).all())
            remedy = "leave out --since and --until" if no_dates else "give days within the archive's"
            return InputError(problem, field="--since, --until", remedy=remedy)
        return InputError("no article of the index passes all filters", field="filters", remedy="leave out one of them")

    def spread(self, query: FloatArray) -> tuple[float, float]:
        """The mean and the standard deviation of the cosines of a query with up to 4,096 documents of the index."""
        step = -(-len(self) // _SPREAD_ROWS)
        cosines = self.embeddings[::step] @ (np.asarray(query, np.float32) / max(float(np.linalg.norm(query)), 1e-12))
        return float(cosines.mean()), float(cosines.std())

    def span(self) -> str:
        """The first and the last byline date, in words."""
        days = sorted(document.byline_date for document in self.documents if document.byline_date)
        return f"dates from {days[0]} to {days[-1]}" if days else "articles without dates only"

    def has(self, url: str) -> bool:
        """Whether a document has that URL, or another spelling of it."""
        return self._place_of(url) is not None

    def _place_of(self, url: str) -> int | None:
        """The document of a URL as it is written, or else as `canonical_url` makes it: https, "www.", tracking."""
        if url in self._by_url:
            return self._by_url[url]
        return self._by_canonical.get(canonical_url(url))

    @functools.cached_property
    def _by_canonical(self) -> Mapping[str, int]:
        canonical = ((canonical_url(url), place) for url, place in self._by_url.items())
        return {url: place for url, place in canonical if url}  # of the first document, which comes last

    def dates_around(self, url: str, days: int) -> DateRange:
        """The days around the byline date of an indexed document, where other reports of its event are.

        Args:
          url: of the document.
          days: the greatest distance from its date.

        Raises:
          InputError: if no document has that URL, it has no date, or ``days`` is not a number of days.
        """
        date = self.documents[self.number_of(url)].byline_date
        if date is None:
            raise InputError(f"{url} has no byline date", field="days", remedy="give since and until instead")
        return DateRange.around(date, days)

    def inverted_file_with(self, rows: FloatArray) -> Any:
        """Faiss's inverted file of the documents and more rows; None where search stays exact."""
        if self._faiss is not None:
            self._faiss.add(rows)
        elif len(self) + len(rows) > self._exact_limit:
            return _build_faiss(np.concatenate([self.embeddings, rows]))
        return self._faiss

    def save(self, folder: str, *, replace: bool = True) -> None:
        """Writes the index; see ``formats.index``.

        Raises:
          InputError: if there is an index that is not to be replaced, or another process writes it.
        """
        write_index(
            folder,
            StoredIndex(
                self.embeddings,
                self.documents,
                self.encoder,
                self.encoder_digest,
                self._exact_limit,
                self._faiss,
                self.reading,
                None if self.words is None else self.words.files,
                self.ranking,
            ),
            replace=replace,
        )

    @classmethod
    def load(cls, folder: str) -> "DocumentIndex":
        """Reads what :meth:`save` wrote.

        Raises:
          InputError: if a part is missing, broken or of another index.
        """
        stored = read_index(folder)
        index = cls(
            stored.embeddings,
            stored.documents,
            encoder=stored.encoder,
            encoder_digest=stored.encoder_digest,
            reading=stored.reading,
            exact_limit=EXACT_LIMIT if stored.exact_limit is None else stored.exact_limit,
            inverted_file=stored.inverted_file,
        )
        index.words = (
            None if stored.words is None else Words(stored.words, [document.language for document in stored.documents])
        )
        index.ranking = stored.ranking
        return index

    def number_of(self, url: str) -> int:
        """The place of the document of a URL.

        Raises:
          InputError: if no document has that URL.
        """
        place = self._place_of(url)
        if place is None:
            raise InputError(
                f"no document with the URL {url}",
                field="url",
                remedy="give the URL of an indexed document, or search by words",
            )
        return place

    @functools.cached_property
    def _values(self) -> tuple[npt.NDArray[np.str_], npt.NDArray[np.str_]]:
        """The languages and the publishers of the documents, as filters have them."""
        languages = np.array([base_language(document.language) for document in self.documents])
        return languages, np.array([document.publisher.lower() for document in self.documents])

    def passing(self, given: DateRange | Filters) -> npt.NDArray[np.bool_]:
        """Whether each document passes filters, bool ``[N]``."""
        filters = as_filters(given)
        inside = filters.dates.holds(self._days)
        for wanted, place in ((filters.languages, 0), (filters.publishers, 1)):
            if wanted:
                inside = inside & np.isin(self._values[place], wanted)
        return inside

    def nearest(self, query: FloatArray, count: int, dates: DateRange | Filters = ALL_DATES) -> list[tuple[int, float]]:
        """The places of the documents of highest cosine with a query, and the cosines; see `search`.

        Raises:
          InputError: if the query has another width or ``count`` is not positive.
        """
        query = np.asarray(query, np.float32).reshape(-1)
        if query.shape[0] != self.embeddings.shape[1]:
            raise InputError(
                f"the query has {query.shape[0]} dimensions, the index {self.embeddings.shape[1]}",
                remedy="embed the query with the index's encoder",
            )
        if count < 1:
            raise InputError(
                f"got {count} results to return, expected at least 1", field="count", remedy="give a positive number"
            )
        query = query / max(float(np.linalg.norm(query)), 1e-12)
        inside = self.passing(dates)
        among = int(np.count_nonzero(inside))
        count = min(count, among)
        if self._faiss is not None and among > self._exact_limit:
            chosen = _only(inside, self._faiss.nprobe) if among < len(self) else None
            found, numbers = self._faiss.search(query[None], count, params=chosen)
            return [
                (int(number), float(score)) for number, score in zip(numbers[0], found[0], strict=True) if number >= 0
            ]
        # Few enough to compare them all: none is missed in a list that the inverted file does not probe.
        rows = np.flatnonzero(inside)
        scores = (self.embeddings[rows] if among < len(self) else self.embeddings) @ query
        if count < len(scores):  # a sort of all would take longer than the product
            lowest = np.partition(scores, len(scores) - count)[len(scores) - count]
            reaching = np.flatnonzero(scores >= lowest)
        else:
            reaching = np.arange(len(scores))
        best = reaching[np.argsort(-scores[reaching], kind="stable")[:count]]
        return [(int(rows[place]), float(scores[place])) for place in best]


@dataclasses.dataclass(frozen=True, slots=True)
class Appended:
    """What `append` did: the documents that it added, those that the index had, and all that it has now."""

    added: int
    known: int
    documents: int


def append(
    folder: str, embeddings: FloatArray, articles: Sequence[ArticleText], *, encoder_digest: str = ""
) -> Appended:
    """Adds articles to an index folder, with their words where the index has words.

    The folder is the old index until it is the new one, in one step; files that do not change are shared. Articles
    whose `doc_id` the index has are left out, so that the same call again changes nothing. One process writes at a
    time.

    Args:
      folder: what ``newsembed index`` wrote.
      embeddings: float32 ``[n, D]`` of the articles by the index's encoder, of any length.
      articles: n.
      encoder_digest: of that encoder; "" to trust the caller.

    Raises:
      InputError: if the folder holds no index, another process writes it, it is of another encoder, or the embeddings
        do not fit.
      OSError: if it cannot be written; the index before stays.
    """
    before = DocumentIndex.load(folder)
    if encoder_digest and before.encoder_digest and encoder_digest != before.encoder_digest:
        problem = f"the index was built with another encoder ({before.encoder or 'unnamed'})"
        raise InputError(problem, path=folder, remedy="embed with the index's encoder, or build the index again")
    if embeddings.ndim != 2 or len(embeddings) != len(articles):
        raise InputError(
            f"got embeddings of shape {embeddings.shape} for {counted(len(articles), 'article')}", path=folder
        )
    if not np.isfinite(embeddings).all():
        raise InputError("the embeddings hold NaN or infinity", remedy="use a checkpoint from before training diverged")
    known = {document.doc_id for document in before.documents}
    chosen = dict[str, int]()
    for place, article in enumerate(articles):
        if article.doc_id not in known:
            chosen.setdefault(article.doc_id, place)
    places, count = list(chosen.values()), len(before)
    if places:
        new = [articles[place] for place in places]
        rows = _unit_rows(embeddings[places])
        addition = StoredIndex(rows, tuple(map(indexed_document, new)), inverted_file=before.inverted_file_with(rows))
        append_index(folder, addition, len(before), lambda words: add_articles(words, new, start=count))
    return Appended(len(places), len(articles) - len(places), count + len(places))


def _unit_rows(embeddings: FloatArray) -> FloatArray:
    norms = np.linalg.norm(embeddings, axis=1, keepdims=True)
    return np.asarray(embeddings / np.where(norms > 0, norms, 1), np.float32)


def _only(inside: npt.NDArray[np.bool_], probes: int) -> Any:
    """Faiss's parameters for a search among some rows."""
    import faiss

    library: Any = faiss  # its stubs do not know these arguments, which keep the bitmap alive
    bitmap = library.IDSelectorBitmap(np.packbits(inside, bitorder="little"))
    return library.SearchParametersIVF(sel=bitmap, nprobe=probes)


def _build_faiss(embeddings: FloatArray) -> Any:
    """An inverted file over sqrt(N) lists that probes a tenth of them."""
    import faiss

    count, dimensions = embeddings.shape
    lists = max(1, int(np.sqrt(count)))
    index = faiss.IndexIVFFlat(faiss.IndexFlatIP(dimensions), dimensions, lists, faiss.METRIC_INNER_PRODUCT)
    sample = np.random.default_rng(0).choice(count, min(count, lists * _TRAINING_ROWS_PER_LIST), replace=False)
    index.train(embeddings[np.sort(sample)])
    index.add(embeddings)
    index.nprobe = max(1, int(lists * _PROBED_SHARE))
    return index

"""newsembed from Python: load an encoder, search an index, read and write articles, run a job.

`import newsembed` offers what is here, and imports nothing until a name is used. docs/guides/python.md has examples.
"""

import contextlib
import dataclasses
import datetime
import logging
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

from ..errors import InputError, refusing

if TYPE_CHECKING:
    import pyarrow as pa

    from ..formats.archive import IndexedDocument
    from ..formats.articles import ArticleText
    from ..serving.hybrid import Mode
    from ..serving.index import DocumentIndex, Hit
    from ..serving.interface import FloatArray, TextEncoder

__all__ = ["Encoder", "Index", "explore", "load", "open", "read_articles", "run", "write_articles"]

_REMEDY = "give texts, or articles with the fields title and body: dictionaries, a pandas data frame or an Arrow table"


@dataclasses.dataclass(frozen=True)
class Encoder:
    """An encoder of texts.

    Attributes:
      encoder: what computes the vectors.
    """

    encoder: "TextEncoder"

    @property
    def dimensions(self) -> int:
        """D, the width of the vectors."""
        return self.encoder.dimensions

    @property
    def digest(self) -> str:
        """Differs whenever the vectors of the same texts may differ."""
        return self.encoder.digest

    def encode(self, articles: Any) -> "FloatArray":
        """Embeds texts or articles as float32 ``[N, D]`` of unit length.

        Args:
          articles: a sequence of strings, or of articles (dictionaries, or objects with ``title`` and ``body``), or a
            pandas data frame or an Arrow table with the columns ``title`` and ``body``. A missing part is empty.

        Raises:
          InputError: for anything else.
        """
        titles, bodies = _texts(articles)
        return self.encoder.encode(titles, bodies)

    def encode_queries(self, texts: Sequence[str]) -> "FloatArray":
        """Embeds queries as float32 ``[N, D]`` of unit length, with the model's prompt of queries if it has one."""
        if isinstance(texts, str):
            raise InputError("got a str, expected several queries", remedy="give a list of texts")
        return self.encoder.encode_queries(list(texts))


class Index:
    """A version of an archive that `newsembed index` or `newsembed update` wrote.

    Args:
      index: what is searched.
      saved_model: the folder of the encoder; None for the one that the archive names.
    """

    def __init__(self, index: "DocumentIndex", saved_model: str | None = None) -> None:
        self._index = index
        self._spec = None if saved_model is None else _spec(saved_model)
        self._encoder: TextEncoder | None = None

    def __len__(self) -> int:
        return len(self._index)

    @property
    def documents(self) -> "list[IndexedDocument]":
        """All articles, with ``title``, ``url``, ``publisher``, ``byline_date`` and ``doc_id``."""
        return self._index.documents

    @property
    def embeddings(self) -> "FloatArray":
        """The vectors of `documents`, float32 ``[N, D]`` of unit length."""
        return self._index.embeddings

    def to_arrow(self, columns: Sequence[str] | None = None) -> "pa.Table":
        """The table of articles, or some of its columns, for pandas, Polars and DuckDB.

        Raises:
          InputError: for a column that the table does not have.
        """
        import pyarrow as pa

        from ..formats.archive import ARTICLES

        known = self._index.archive.table(ARTICLES).schema.names
        if unknown := [name for name in columns or () if name not in known]:
            raise InputError(f"no column {unknown[0]!r}", field="columns", remedy=f"take some of {', '.join(known)}")
        return pa.Table.from_batches(self._index.archive.batches(columns))

    def search(
        self,
        query: str,
        *,
        since: datetime.date | str | None = None,
        until: datetime.date | str | None = None,
        language: str | Sequence[str] = (),
        publisher: str | Sequence[str] = (),
        mode: "Mode | None" = None,
        k: int = 10,
    ) -> "list[Hit]":
        """The `k` documents that answer a query, best first, each with ``rank``, ``score`` and ``document``.

        ``extract`` has the places of its words in title and body.

        Args:
          query: words, or the URL of an indexed document, which is left out itself.
          since: the first byline date, a date or "YYYY-MM-DD"; of a time, its UTC day counts.
          until: the last one.
          language: of the documents, or several.
          publisher: of the documents, or several.
          mode: "words", "vectors", or "hybrid", the default.
          k: how many.

        Raises:
          InputError: for an empty query, an unknown URL, a bad date, a language or publisher that no document has,
            filters that leave nothing, or where the encoder is not there.
        """
        from ..serving import search
        from ..serving.filters import DateRange

        dates = DateRange(_day(since, "since"), _day(until, "until"))
        names = [[given] if isinstance(given, str) else list(given) for given in (language, publisher)]
        filters = self._index.filters(dates, *names)
        if search.is_url(query):
            return self._index.search_url(query, k, filters)
        if self._encoder is None and mode != "words":
            self._encoder = search.index_encoder(self._index, self._spec)
        encoder = None if mode == "words" else self._encoder
        return search.find_words(self._index, encoder, query, k, mode=mode, filters=filters).hits

    def cluster(self, threshold: float = 0.75, *, max_day_gap: int | None = None) -> "list[list[int]]":
        """Groups of documents that report the same event: their numbers, the largest group first.

        Args:
          threshold: least cosine of two documents.
          max_day_gap: days that joined documents may be apart.

        Raises:
          InputError: for options out of range.
        """
        from ..serving.cluster import ClusterOptions, cluster

        ClusterOptions(index="", output="", threshold=threshold, max_day_gap=max_day_gap)  # checks them
        groups: dict[int, list[int]] = {}
        for number, label in enumerate(cluster(self._index, threshold, max_day_gap).tolist()):
            groups.setdefault(label, []).append(number)
        return sorted(groups.values(), key=lambda group: (-len(group), group[0]))

    @classmethod
    def build(cls, encoder: Encoder, articles: Any, uri: str) -> Self:
        """Writes an index, in the place of one that is there, and opens it.

        Args:
          encoder: of `load`.
          articles: as `Encoder.encode` takes them; those without text are left out.
          uri: folder, or URI of an object store.

        Raises:
          InputError: if there is no article with text, or another process writes the index.
        """
        from ..serving.index_command import build_index

        index = cls(build_index(encoder.encoder, iter(_records(articles)), uri))
        index._encoder = encoder.encoder
        return index


def explore(articles: Any, output: str = "explored", *, model: str = "", fields: Sequence[str] = ()) -> Index:
    """Makes an archive of articles with events and topics, or adds what is new to it, as ``newsembed explore`` does.

    ``newsembed serve --index OUTPUT/archive`` shows it as a page.

    Args:
      articles: a file, folder, pattern or URL, a sequence of these, or articles as `Encoder.encode` takes them.
      output: the folder; the archive is in ``archive/``.
      model: a model folder, the name of an installed model or of one on the Hugging Face Hub; "" for latent semantics,
        which are learned from the articles.
      fields: of files, such as "title=headline".

    Raises:
      InputError: for bad input, or too few articles to learn from.
    """
    from . import extras

    extras.require(["mine", "train"])
    with _quiet():
        from . import exploration
        from .explore import inputs_of

    paths = [articles] if isinstance(articles, str) else articles
    if not all(isinstance(one, str) for one in (paths if isinstance(paths, Sequence) else [None])):
        paths = [f"{output}/given.jsonl"]
        os.makedirs(output, exist_ok=True)
        write_articles(paths[0], articles)
    return open(exploration.explore(inputs_of(paths), output, model, fields))


def load(folder: str, *, max_length: int | None = None) -> Encoder:
    """The encoder of a folder: a training folder, a safetensors export or a SavedModel.

    A model without layers needs neither JAX nor TensorFlow.

    Args:
      folder: ``DIR``, or ``DIR@STEP`` for a checkpoint of a training folder.
      max_length: tokens read of each text; a SavedModel has its own.

    Raises:
      InputError: if the folder holds no model of newsembed.
    """
    from ..serving.specs import encoder_from_spec

    return Encoder(encoder_from_spec(_spec(folder), max_length=max_length, progress=False))


def open(uri: str, *, saved_model: str | None = None) -> Index:  # noqa: A001 - newsembed.open reads as it should
    """The archive that ``newsembed index`` or ``newsembed update`` wrote, as its last run left it.

    Args:
      uri: folder, or URI of an object store.
      saved_model: the folder of its encoder, where that was moved.

    Raises:
      InputError: if it cannot be read.
    """
    from ..serving.index import DocumentIndex

    return Index(DocumentIndex.load(uri), saved_model)


def read_articles(path: str) -> "pa.Table":
    """Articles of a file (Parquet, JSONL, JSON, CSV, TSV, also compressed) or of all in a folder, as an Arrow table.

    ``.to_pandas()`` makes a data frame of it. The columns are ``doc_id``, ``url``, ``publisher``, ``title``, ``body``,
    ``language``, ``byline_date`` and ``image_url``.

    Raises:
      InputError: if there is no such file, or a row lacks ``title`` or ``body``.
    """
    from ..formats import articles

    return articles.to_table(articles.read_articles(path))


def write_articles(path: str, articles: Any) -> int:
    """Writes articles as Parquet, JSONL, or JSONL with .gz or .zst, by the ending of `path`; returns their number.

    Args:
      path: the file.
      articles: as `Encoder.encode` takes them; columns that newsembed does not know are written as they are.

    Raises:
      InputError: for another ending, or an article without title and body.
    """
    from ..formats import articles as files

    return files.write_articles(path, _rows(articles))


def run(job: str, *, output: str, options: Mapping[str, Any] | None = None, **inputs: str | Sequence[str]) -> Any:
    """Runs a mining job, or skips it if its result is there; returns its manifest, with the counts.

    Args:
      job: its command, such as "clean".
      output: the folder to publish the result in.
      options: of the job, by name, such as ``{"min_words": 80}``.
      inputs: paths by the names of the job's inputs, such as ``articles="work/extract/articles"``.

    Raises:
      InputError: for another name of a job, an option or an input, and for what the job refuses.
    """
    from . import extras

    extras.require(["mine"])
    from .cli import load as load_command

    with _quiet():
        from ..beam_pipelines.jobs import execute

        module = load_command(job)
    if not hasattr(module, "JOB"):
        raise InputError(f"{job} is not a mining job", field="job", remedy="run it by its command")
    paths = {name: (given,) if isinstance(given, str) else tuple(given) for name, given in inputs.items()}
    _check_names(job, "inputs", paths, [spec.name for spec in module.JOB.inputs])
    _check_names(job, "options", options or {}, [field.name for field in dataclasses.fields(module.JOB.options)])
    return execute(module.JOB, paths, output, module.JOB.options(**(options or {}))).manifest


def _check_names(job: str, field: str, given: Mapping[str, Any], known: Sequence[str]) -> None:
    from .parsing import did_you_mean

    if unknown := sorted(set(given) - set(known)):
        problem = f"got {', '.join(unknown)}, expected some of {', '.join(known)}"
        raise InputError(problem, field=field, remedy=f"{did_you_mean(unknown[0], known)}see `newsembed {job} --help`")


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Keeps Beam, when it is imported, from logging that Google's clients are absent, and from setting up the log."""
    root, level = logging.getLogger(), logging.root.manager.disable
    handlers = list(root.handlers)
    logging.disable(logging.WARNING)
    try:
        yield
    finally:
        logging.disable(level)
        root.handlers[:] = handlers


def _spec(folder: str) -> str:
    """``KIND:REST`` of a folder, by what is in it."""
    from ..formats.model_folder import is_saved_model

    return f"savedmodel:{folder}" if is_saved_model(folder) else f"model:{folder}"


def _day(value: datetime.date | str | None, field: str) -> datetime.date | None:
    if isinstance(value, datetime.datetime):  # also pandas.Timestamp; it is a date, but cannot be compared with one
        from ..formats.dates import utc_day

        return utc_day(value)
    if value is None or isinstance(value, datetime.date):
        return value
    with refusing(f"got {value!r}, expected a day as YYYY-MM-DD", ValueError, field=field):
        return datetime.date.fromisoformat(str(value))


def _rows(articles: Any) -> "list[Mapping[str, Any]]":
    """Articles in any form that the API takes, as mappings.

    Raises:
      InputError: for a string or an object in another form.
    """
    if hasattr(articles, "to_pylist"):  # Arrow
        return list(articles.to_pylist())
    if hasattr(articles, "to_dict") and hasattr(articles, "columns"):  # pandas: NaN stands for what is missing
        return list(articles.astype(object).where(articles.notna(), None).to_dict("records"))
    if isinstance(articles, str | Mapping):
        raise InputError(f"got a {type(articles).__name__}, expected several articles", remedy=_REMEDY)
    return [_row(article) for article in articles]


def _row(article: Any) -> Mapping[str, Any]:
    if isinstance(article, str):
        return {"title": "", "body": article}
    if isinstance(article, Mapping):
        return article
    if dataclasses.is_dataclass(article) and not isinstance(article, type):
        return {field.name: getattr(article, field.name) for field in dataclasses.fields(article)}
    raise InputError(f"got a {type(article).__name__}, expected a text or an article", remedy=_REMEDY)


def _records(articles: Any) -> "list[ArticleText]":
    from ..formats.articles import article_of

    return [
        article_of({"title": "", "body": "", **row}, f"article {number}")
        for number, row in enumerate(_rows(articles), 1)
    ]


def _texts(articles: Any) -> tuple[list[str], list[str]]:
    """Titles and bodies.

    Raises:
      InputError: for an article without both.
    """
    rows = _rows(articles)
    for number, row in enumerate(rows, 1):
        if row.keys().isdisjoint(("title", "body")):
            raise InputError("it has neither title nor body", path=f"article {number}", remedy=_REMEDY)
    records = _records(rows)
    return [record.title for record in records], [record.body for record in records]

"""``newsembed index``: build a search index over articles.

Example::

    newsembed index --saved_model work/saved --input work/articles --output work/index
    newsembed index --saved_model work/saved --input today.jsonl --output work/index --append
    newsembed index --saved_model work/newer --input work/articles --output s3://bucket/index --overwrite
    newsembed search --index work/index "storm hits the coast"

The index is a LanceDB database: a local folder, or a URI of an object store. A run appears whole or not at all.
"""

import dataclasses
import itertools
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import pyarrow as pa

from ..errors import InputError, counted
from ..formats.archive import ARTICLE_COLUMNS, Archive, any_of, check_startable, is_archive, schema, vector_column
from ..formats.archive_writer import Writer
from ..formats.arrays import unit_rows
from ..formats.articles import ArticleText, article_files, read_articles
from ..formats.command_line import option, required
from ..formats.files import check_output
from ..formats.urls import canonical_url
from .analysis import words_of
from .embed import ARTICLES_HELP, embedded
from .index import DocumentIndex
from .interface import FloatArray, TextEncoder
from .search import index_encoder
from .specs import ReadingOptions, encoder_from_spec, settings_of
from .tuning import learn_ranking

_AT_ONCE: Final = 1_000  # articles that are looked up in an index
_REMARKS: Final = {
    "empty": "without text left out",
    "known": "known already",
    "replaced": "with another text or date than before",
    "repeated": "with the URL or doc_id of another left out",
    "undated": "without a date (byline_date or published_at, YYYY-MM-DD)",
    "unknown": "without a language, so that words have no stems (`clean` and `explore` find the language)",
}


@dataclasses.dataclass(frozen=True, kw_only=True)
class IndexOptions(ReadingOptions):
    """The options of ``newsembed index``."""

    input: str = required(ARTICLES_HELP, metavar="FILE|DIR")
    output: str = required(
        "folder or URI of the index; has none yet, unless --append or --overwrite", metavar="DIR|URI"
    )
    append: bool = option(False, "add articles to the index, and replace those that have changed")
    overwrite: bool = option(False, "replace the index in the folder; it is there until the new one is complete")

    def __post_init__(self) -> None:
        """Refuses options that do not go together."""
        super().__post_init__()
        if self.append and self.overwrite:
            raise InputError("given with --append", field="--overwrite", remedy="give one of the two")
        if self.append and (self.prompt is not None or self.long_documents):
            problem, remedy = "documents are read as the index says", "leave out --prompt and --long_documents"
            raise InputError(problem, field="--append", remedy=remedy)


OPTIONS: Final = IndexOptions


def run(options: IndexOptions) -> int:
    """Runs the command."""
    article_files(options.input)  # a wrong path is noticed before the model is read
    output, counts = options.output, Counter[str]()
    if "://" not in output:
        check_output(output, is_folder=True)
        check_startable(output, "--output")
    if is_archive(output):
        if not (options.append or options.overwrite):
            remedy = "choose another folder, or give --append to add articles to it or --overwrite to replace it"
            raise InputError("has an index already", path=output, field="--output", remedy=remedy)
        if "clean" in Archive(output).run.settings:
            problem, remedy = "is an archive of newsembed update, which writes its index", "choose another folder"
            raise InputError(problem, path=output, field="--output", remedy=remedy)
    if options.append:
        before = DocumentIndex.load(output)
        encoder = index_encoder(before, options.spec, max_length=options.max_length)
        append(output, encoder, read_articles(options.input), counts)
        print(f"{counted(counts['added'], 'article')} added to {len(before)}{_remarks(counts)}: {output}")
        return 0
    spec, reading = options.needed_spec, options.reading
    encoder = encoder_from_spec(spec, **reading)
    del reading["max_length"]
    articles = read_articles(options.input)
    after = build_index(encoder, articles, output, options.input, spec=spec, counts=counts, **reading)
    how = "exact" if after.is_exact else "approximate"
    print(f"{counted(len(after), 'article')} indexed for {how} search{_remarks(counts)}: {output}")
    return 0


def _remarks(counts: Mapping[str, int]) -> str:
    return "".join(f", {counts[name]} {text}" for name, text in _REMARKS.items() if counts.get(name))


def build_index(
    encoder: TextEncoder,
    articles: Iterator[ArticleText],
    uri: str,
    source: str = "",
    *,
    spec: str = "",
    counts: Counter[str] | None = None,
    document_prompt: str | None = None,
    long_documents: str | None = None,
) -> DocumentIndex:
    """Embeds articles and writes an index of them, in the place of one that is there.

    Args:
      encoder: what embeds.
      articles: those without text, and those whose ``doc_id`` came before, are left out.
      uri: folder or URI of the index.
      source: where the articles are from, for an error.
      spec: ``KIND:REST`` of the encoder, kept in the index so that ``search`` can load it.
      counts: what was left out is counted here.
      document_prompt: what the encoder was given in place of its own prompt, kept in the index, too.
      long_documents: what the encoder was given in place of its own way to read them, kept in the index, too.

    Raises:
      InputError: if no article has text, an embedding is not finite, or another process writes the index.
    """
    counts = Counter() if counts is None else counts
    shape, languages = schema(encoder.dimensions, encoder.digest), set[str]()
    tables = _tables(encoder, _unseen(articles, counts), shape, counts, languages, source)
    first = next(tables)  # nothing is written where there is nothing to embed
    with Writer(uri) as writer:
        writer.create(shape, (batch for table in itertools.chain([first], tables) for batch in table.to_batches()))
        settings = settings_of(uri, spec, encoder, document_prompt, long_documents)
        settings["languages"] = sorted(languages)
        made = writer.finish(settings, {"articles": counts["embedded"]})
        ranking = learn_ranking(DocumentIndex(Archive(uri, made)), encoder)
        learned = {"ranking": ranking.to_dict() if ranking else None}
        writer.publish(dataclasses.replace(made, settings={**made.settings, **learned}))
    return DocumentIndex.load(uri)


def append(
    uri: str, encoder: TextEncoder, articles: Iterator[ArticleText], counts: Counter[str] | None = None
) -> DocumentIndex:
    """Adds articles to an index; the encoder reads only those that it does not have with the same texts and date.

    Args:
      uri: folder or URI of the index.
      encoder: that built it.
      articles: those whose ``doc_id`` the index has replace the ones there.
      counts: ``added``, ``replaced``, ``known`` and ``empty`` are counted here.

    Raises:
      InputError: if there is no index, another process writes it, or it is of another encoder.
    """
    counts = Counter() if counts is None else counts
    with Writer(uri) as writer:
        archive = Archive(uri)
        settings = dict(archive.run.settings)
        if settings["encoder_digest"] != encoder.digest:
            problem = f"the index was built with another encoder ({settings['encoder'] or 'unnamed'})"
            raise InputError(problem, path=uri, remedy="embed with the index's encoder, or build the index again")
        shape, languages = schema(encoder.dimensions, encoder.digest), set[str](settings["languages"])
        changed = _changed(archive, _unseen(articles, counts), counts)
        for first in itertools.islice(changed, 1):
            for table in _tables(encoder, itertools.chain([first], changed), shape, counts, languages):
                writer.change(table)
            report = {"added": counts["added"], "replaced": counts["replaced"]}
            writer.publish(writer.finish({**settings, "languages": sorted(languages)}, report))
    return DocumentIndex.load(uri)


def _tables(
    encoder: TextEncoder,
    articles: Iterator[ArticleText],
    shape: pa.Schema,
    counts: Counter[str],
    languages: set[str],
    source: str = "",
) -> Iterator[pa.Table]:
    """Yields rows of articles with their vectors; adds up what they are."""
    for chunk, vectors in embedded(encoder, articles, counts, source):
        languages.update(article.language for article in chunk)
        counts["undated"] += sum(article.byline_date is None for article in chunk)
        counts["unknown"] += sum(not article.language for article in chunk)
        yield table_rows(chunk, vectors, shape)


def _changed(archive: Archive, articles: Iterator[ArticleText], counts: Counter[str]) -> Iterator[ArticleText]:
    """Yields the articles that an archive does not have as they are, without those that have no text."""
    names = ("doc_id", "title", "body", "byline_date")
    while chunk := list(itertools.islice(articles, _AT_ONCE)):
        rows = archive.rows(names, any_of("doc_id", (article.doc_id for article in chunk))).to_pylist()
        there = {row["doc_id"]: tuple(row[name] for name in names) for row in rows}
        for article in chunk:
            own, before = tuple(getattr(article, name) for name in names), there.get(article.doc_id)
            what = (
                "empty" if article.is_empty else "added" if before is None else "known" if own == before else "replaced"
            )
            counts[what] += 1
            if what in ("added", "replaced"):
                yield article


def _unseen(articles: Iterator[ArticleText], counts: Counter[str]) -> Iterator[ArticleText]:
    """Yields the articles whose `doc_id` is new, and those without text; counts the others."""
    seen = set[str]()
    for article in articles:
        if article.is_empty or article.doc_id not in seen:
            seen.add(article.doc_id)
            yield article
        else:
            counts["repeated"] += 1


def table_rows(articles: Sequence[Any], vectors: FloatArray, shape: pa.Schema, events: Sequence[str] = ()) -> pa.Table:
    """Rows of the table of articles.

    Args:
      articles: `ArticleText` or `Article`.
      vectors: float32 ``[n, D]``, scaled to length 1 here.
      shape: of the table.
      events: their ids; none for no events.
    """
    columns: dict[str, Any] = {name: [getattr(one, name, None) for one in articles] for name in ARTICLE_COLUMNS}
    for name in ("title", "body"):
        columns[name] = [text.encode("utf-8", "replace").decode("utf-8") for text in columns[name]]
    texts = zip(*(columns[name] for name in ("title", "body", "language")), strict=True)
    # A word of the title counts twice.
    columns["words"] = [words_of(f"{title}\n{title}\n{body}", language) for title, body, language in texts]
    columns["canonical_url"] = [canonical_url(article.url) for article in articles]
    columns["event_id"] = list(events) or [""] * len(articles)
    columns["vector"] = vector_column(unit_rows(vectors))
    return pa.table([pa.array(columns[name], shape.field(name).type) for name in shape.names], schema=shape)

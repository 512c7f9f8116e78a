"""``newsembed embed``: vectors of the articles in a file.

Example::

    newsembed embed --model work/model --input articles.jsonl --output work/vectors
    newsembed embed --saved_model work/saved --input work/articles --output vectors.parquet
    newsembed embed --saved_model work/saved --input work/articles --output s3://bucket/database/vectors.lance

An output that ends in ``.parquet``, or in ``.lance`` for a table of LanceDB, gets one row per article with ``doc_id``,
``url``, ``title``, ``publisher``, ``language``, ``byline_date`` and ``embedding`` (a list of float32), which databases
of vectors load. Any other name becomes a folder with ``embeddings.npy`` (float32 [N, D], unit rows) and ``ids.txt``
(N lines). Articles without any text are left out and counted. An output that exists is replaced only with
``--overwrite``.
"""

import dataclasses
import itertools
import os
import sys
import time
from collections.abc import Iterator
from typing import Final

import numpy as np

from ..errors import InputError, counted
from ..formats import folders
from ..formats.arrays import TABLE, has_vectors, write_folder, write_table
from ..formats.articles import ArticleText, article_files, read_articles
from ..formats.command_line import option, required
from ..formats.files import check_output
from .interface import FloatArray, TextEncoder
from .specs import ReadingOptions, encoder_from_spec

ARTICLES_HELP: Final = "articles: Parquet or JSONL (.gz, .zst), or an archive; - for JSONL on standard input"
_OTHER_FILES: Final = (".npy", ".npz", ".json", ".jsonl", ".csv", ".tsv", ".txt")
_TOLD_SECONDS: Final = 30.0  # from one count of the articles so far to the next
_CHUNK: Final = 4096  # articles in memory at once with their texts


@dataclasses.dataclass(frozen=True, kw_only=True)
class EmbedOptions(ReadingOptions):
    """The options of ``newsembed embed``."""

    input: str = required(ARTICLES_HELP, metavar="FILE|DIR")
    output: str = required("where the vectors go", metavar="DIR|FILE.parquet|TABLE.lance", local=True)
    overwrite: bool = option(False, "replace the vectors of an earlier run")


OPTIONS: Final = EmbedOptions


def run(options: EmbedOptions) -> int:
    """Runs the command.

    Raises:
      InputError: if the output exists, or the input or the encoder cannot be read.
    """
    article_files(options.input)  # a wrong path is noticed before the model is read
    output = options.output
    is_file, is_table = output.endswith(".parquet"), output.endswith(TABLE)
    if output.endswith(_OTHER_FILES) and not os.path.isdir(output):
        problem = "is the name of a file, and only files that end in .parquet are written"
        remedy = "name a folder, for embeddings.npy and ids.txt, or a file that ends in .parquet"
        raise InputError(problem, path=output, field="--output", remedy=remedy)
    if "://" not in output:
        check_output(output, is_folder=not is_file)
    if has_vectors(output) and not options.overwrite:
        remedy = "choose another path, or give --overwrite to replace them"
        raise InputError("there are vectors already", path=output, field="--output", remedy=remedy)
    if "://" not in output and not is_file and not is_table:
        folders.check_output(output, overwrite=True)  # before the model is read
    encoder = encoder_from_spec(options.needed_spec, **options.reading)
    counts = {"embedded": 0, "empty": 0}
    chunks = embedded(encoder, read_articles(options.input), counts, options.input)
    if is_file or is_table:
        write_table(output, chunks, encoder.dimensions)
    else:
        named = (([article.doc_id for article in articles], embeddings) for articles, embeddings in chunks)
        write_folder(output, named, encoder.dimensions)
    print(f"{counted(counts['embedded'], 'article')} embedded, {counts['empty']} without text left out: {output}")
    return 0


def embedded(
    encoder: TextEncoder,
    articles: Iterator[ArticleText],
    counts: dict[str, int] | None = None,
    source: str = "",
    chunk: int = 0,
    *,
    quiet: bool = False,
) -> Iterator[tuple[list[ArticleText], FloatArray]]:
    """Yields chunks of (articles, their embeddings ``[n, D]``), articles without text left out.

    A run of many chunks says on standard error how many articles it has embedded: a bar of the encoder is of one chunk.

    Args:
      encoder: what embeds.
      articles: any number.
      counts: ``embedded`` and ``empty`` are added up here.
      source: where the articles are from, for an error.
      chunk: articles that are in memory at once; 0 for 4,096.
      quiet: the caller shows the progress.

    Raises:
      InputError: if no article has text, or an embedding is not finite.
    """
    counts = {} if counts is None else counts
    told = time.monotonic()
    while read := list(itertools.islice(articles, chunk or _CHUNK)):
        kept = [article for article in read if not article.is_empty]
        counts["empty"] = counts.get("empty", 0) + len(read) - len(kept)
        counts["embedded"] = counts.get("embedded", 0) + len(kept)
        if not kept:
            continue
        embeddings = encoder.encode([article.title for article in kept], [article.body for article in kept])
        if not np.isfinite(embeddings).all():
            raise InputError(
                "the encoder returned NaN or infinity", remedy="use a checkpoint from before training diverged"
            )
        if not quiet and time.monotonic() - told >= _TOLD_SECONDS:
            told = time.monotonic()
            print(f"{counts['embedded']:,} articles embedded so far", file=sys.stderr)
        yield kept, embeddings
    if not counts.get("embedded"):
        problem = (
            f"none of {counted(counts['empty'], 'article')} has text" if counts.get("empty") else "holds no articles"
        )
        raise InputError(problem, path=source or None, remedy="give articles with a title or a body")

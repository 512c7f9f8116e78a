"""``newsembed embed``: vectors of the articles in a file.

Example::

    newsembed embed --model work/model --input articles.jsonl --output work/vectors
    newsembed embed --saved_model work/saved --input work/articles --output vectors.parquet

An output that ends in ``.parquet`` gets one row an article with ``doc_id``, ``url`` and ``embedding``; any other name becomes a folder with
``embeddings.npy`` (float32 [N, D], unit rows) and ``ids.txt`` (N lines). Articles without any text are left out and counted.
"""

import argparse
import itertools
import os
from collections.abc import Iterator
from typing import Any, Final

import numpy as np

from ..errors import InputError
from .articles import ArticleText, read_articles
from .encoder import FloatArray, TextEncoder
from .specs import add_encoder_arguments, encoder_from_spec, encoder_spec

_CHUNK: Final = 4096  # articles in memory at once with their texts


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the options of ``newsembed embed``."""
    add_encoder_arguments(parser, required=True)
    parser.add_argument("--input", required=True, metavar="FILE|DIR", help="articles: Parquet or JSONL (.gz, .zst)")
    parser.add_argument("--output", required=True, metavar="DIR|FILE.parquet", help="where the vectors go")


def run(args: argparse.Namespace) -> int:
    """Runs the command."""
    encoder = encoder_from_spec(encoder_spec(args) or "", max_length=args.max_length)
    write = _write_parquet if args.output.endswith(".parquet") else _write_folder
    counts = {"embedded": 0, "empty": 0}
    write(args.output, embedded(encoder, read_articles(args.input), counts), encoder.dimensions)
    print(f"{counts['embedded']} articles embedded, {counts['empty']} without text left out: {args.output}")
    return 0


def embedded(
    encoder: TextEncoder, articles: Iterator[ArticleText], counts: dict[str, int] | None = None
) -> Iterator[tuple[list[ArticleText], FloatArray]]:
    """Yields chunks of (articles, their embeddings ``[n, D]``), articles without text left out.

    Args:
      encoder: what embeds.
      articles: any number; a chunk of them is in memory at once.
      counts: ``embedded`` and ``empty`` are added up here.

    Raises:
      InputError: if no article has text, or an embedding is not finite.
    """
    counts = {} if counts is None else counts
    while chunk := list(itertools.islice(articles, _CHUNK)):
        kept = [article for article in chunk if not article.is_empty]
        counts["empty"] = counts.get("empty", 0) + len(chunk) - len(kept)
        counts["embedded"] = counts.get("embedded", 0) + len(kept)
        if not kept:
            continue
        embeddings = encoder.encode([article.title for article in kept], [article.body for article in kept])
        if not np.isfinite(embeddings).all():
            raise InputError(
                "the encoder returned NaN or infinity", remedy="use a checkpoint from before training diverged"
            )
        yield kept, embeddings
    if not counts.get("embedded"):
        raise InputError(
            f"no article with text ({counts.get('empty', 0)} without)", remedy="give articles with a title or a body"
        )


def _write_folder(output: str, chunks: Iterator[tuple[list[ArticleText], FloatArray]], dimensions: int) -> None:
    parts, ids = [np.zeros((0, dimensions), np.float32)], list[str]()
    for articles, embeddings in chunks:
        ids += [article.doc_id for article in articles]
        parts.append(embeddings)
    os.makedirs(output, exist_ok=True)
    np.save(os.path.join(output, "embeddings.npy"), np.concatenate(parts))
    with open(os.path.join(output, "ids.txt"), "w", encoding="utf-8") as file:
        file.writelines(f"{name}\n" for name in ids)


def _write_parquet(output: str, chunks: Iterator[tuple[list[ArticleText], FloatArray]], dimensions: int) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    kind = pa.list_(pa.float32(), dimensions)
    schema = pa.schema([("doc_id", pa.string()), ("url", pa.string()), ("embedding", kind)])
    folder = os.path.dirname(os.path.abspath(output))
    os.makedirs(folder, exist_ok=True)
    temporary = f"{output}.tmp"
    with pq.ParquetWriter(temporary, schema, compression="zstd") as writer:
        for articles, embeddings in chunks:
            columns: list[Any] = [
                pa.array([article.doc_id for article in articles]),
                pa.array([article.url for article in articles]),
                pa.FixedSizeListArray.from_arrays(pa.array(embeddings.reshape(-1)), dimensions),
            ]
            writer.write_table(pa.Table.from_arrays(columns, schema=schema))
    os.replace(temporary, output)

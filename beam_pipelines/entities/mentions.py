"""The entities and words of an article as row numbers, from which embeddings and vectors are computed."""

import dataclasses
import datetime
import itertools
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from ...formats import parquet
from ...formats.records import Article
from .linking import Linker
from .tokens import words_of

Integers = np.ndarray[Any, np.dtype[np.int64]]


@dataclasses.dataclass(frozen=True, slots=True)
class Mentions:
    """Row numbers of the entities and words of one article.

    Attributes:
      doc_id: 16 hex digits.
      byline_date: date of the article, if known.
      publisher: publisher of the article.
      language: BCP-47 tag.
      entities: rows of the entity table without repeats, by falling count, then row.
      entity_counts: number of mentions of each.
      words: rows of the word table for title, keywords and lead, in order and with repeats.
      image_hash: wavelet hash of the thumbnail, 8 bytes, if there is one.
    """

    doc_id: str
    byline_date: datetime.date | None
    publisher: str
    language: str
    entities: tuple[int, ...]
    entity_counts: tuple[int, ...]
    words: tuple[int, ...]
    image_hash: bytes | None


def find_mentions(article: Article, linker: Linker, words: Mapping[str, int], lead_words: int) -> Mentions:
    """Links the entities of title, keywords and body, and looks up the words of the article's head.

    Args:
      article: the article.
      linker: finds entities in texts.
      words: row by word, in lower case.
      lead_words: number of words of the body that belong to the head.
    """
    texts = [article.title, *article.keywords, article.body]
    tokens = [words_of(text) for text in texts]
    entities = linker.link(texts, article.language, tokens)
    head = map(str.lower, itertools.chain(*tokens[:-1], tokens[-1][:lead_words]))
    ranked = sorted(entities, key=lambda row: (-entities[row], row))
    return Mentions(
        article.doc_id,
        article.byline_date,
        article.publisher,
        article.language,
        tuple(ranked),
        tuple(entities[row] for row in ranked),
        tuple(row for row in map(words.get, head) if row is not None),
        article.image_hash,
    )


def head_words(article: Article, lead_words: int) -> list[str]:
    """Returns the words of title and keywords and the first ``lead_words`` words of the body, in lower case."""
    # A word has at most a few dozen characters, so a prefix of the body suffices.
    lead = words_of(article.body[: 40 * lead_words])[:lead_words]
    return [word.lower() for word in (*words_of(article.title), *words_of(" ".join(article.keywords)), *lead)]


def read_column(folder: str, column: str, limit: int | None = None) -> Iterator[tuple[Integers, Integers]]:
    """Yields one list column of a stream of :class:`Mentions` in parts.

    Args:
      folder: folder of the stream.
      column: name of the column.
      limit: keep only the first ``limit`` numbers of each article; None keeps all.

    Yields:
      The numbers of some articles, concatenated, and how many each article has: int64 ``[sum(lengths)]`` and
      ``[articles]``.
    """
    for path in parquet.shard_paths(folder):
        for batch in parquet.read_batches(path, [column]):
            lists = batch.column(column)
            flat = lists.flatten().to_numpy(zero_copy_only=False).astype(np.int64)
            lengths = np.diff(lists.offsets.to_numpy())
            if limit is not None:
                place = np.arange(len(flat)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
                flat, lengths = flat[place < limit], np.minimum(lengths, limit)
            yield flat, lengths

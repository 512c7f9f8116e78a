"""What one article mentions, as numbers: the ids-only record from which embeddings and vectors are made."""

import dataclasses
import datetime
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
    """Numbers of the entities and words of one article.

    Attributes:
      entities: rows of the entity table, each once, by first rank of count then row.
      entity_counts: mentions of each.
      words: rows of the word table, of title, keywords and lead, in order and with repeats.
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
    """Links the entities of title, keywords and body and looks up the words of the article's head."""
    entities = linker.link([article.title, *article.keywords, article.body])
    ranked = sorted(entities, key=lambda row: (-entities[row], row))
    return Mentions(
        article.doc_id,
        article.byline_date,
        article.publisher,
        article.language,
        tuple(ranked),
        tuple(entities[row] for row in ranked),
        tuple(words[word] for word in head_words(article, lead_words) if word in words),
        article.image_hash,
    )


def head_words(article: Article, lead_words: int) -> list[str]:
    """Lower-cased words of title and keywords and the first words of the body."""
    # A word has at most a few dozen characters, so a prefix of the body is enough.
    lead = words_of(article.body[: 40 * lead_words])[:lead_words]
    return [word.lower() for word in (*words_of(article.title), *words_of(" ".join(article.keywords)), *lead)]


def read_column(folder: str, column: str, limit: int | None = None) -> Iterator[tuple[Integers, Integers]]:
    """One list column of a stream of :class:`Mentions` in parts: the numbers of some articles one after the other, and how many each has.

    Args:
      folder: of the stream.
      column: name of the column.
      limit: numbers to keep of each article, the first ones; None keeps all.
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

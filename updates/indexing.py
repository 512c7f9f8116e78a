"""The search index of a version: it grows by the new articles, and is rewritten where that pays."""

import itertools
import os
from collections.abc import Sequence
from typing import Final

import numpy as np

from ..formats.archive import INDEX, VersionWriter
from ..formats.archive_parts import ARTICLES, VECTORS, part_paths, read_array_part, row_count
from ..formats.articles import ArticleText
from ..formats.index import IndexedDocument, facts_file
from ..formats.parquet import read_records
from ..formats.records import Article
from ..serving.embed import embedded
from ..serving.events import Vectors
from ..serving.index import DocumentIndex, append, indexed_document, reading_of
from ..serving.interface import TextEncoder
from ..serving.words import WordsBuilder
from .options import EncoderChoice

SMALL: Final = 2_000  # documents: rewriting as many takes seconds
CORRECTED: Final = 20_000  # documents: rewriting as many takes half a minute, so that a correction is found
MOST_STALE: Final = 0.02  # share of the documents of an index that the archive has no more
_CHUNK: Final = 1_024


def text_of(article: Article) -> ArticleText:
    """What embedding and indexing an article needs."""
    fields = ("doc_id", "url", "publisher", "title", "body", "language", "byline_date")
    return ArticleText(*(getattr(article, name) for name in fields))


def unit_vectors(encoder: TextEncoder, articles: Sequence[Article]) -> Vectors:
    """Embeds articles as float32 ``[n, D]`` of unit length.

    Raises:
      RuntimeError: if the encoder leaves out an article.
    """
    parts = [np.zeros((0, encoder.dimensions), np.float32)]
    parts += [vectors for _, vectors in embedded(encoder, map(text_of, articles))] if articles else []
    vectors = np.concatenate(parts)
    if len(vectors) != len(articles):
        raise RuntimeError(f"{len(vectors)} vectors of {len(articles)} articles")
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(vectors / np.where(norms > 0, norms, 1), np.float32)


def grow_index(
    writer: VersionWriter, articles: Sequence[Article], vectors: Vectors, encoder: TextEncoder, choice: EncoderChoice
) -> None:
    """Takes over the index of the version before and adds the new articles; nothing is embedded again.

    Articles whose place another has taken stay in the index until they are more than :data:`MOST_STALE` of it. A small
    index is rewritten at once, one of :data:`CORRECTED` documents where a page has another text than in the index.

    Args:
      writer: of the new version, whose articles and vectors are written.
      articles: the new ones.
      vectors: theirs.
      encoder: of all vectors.
      choice: how the command line names it.
    """
    writer.carry(INDEX)
    folder = writer.path(INDEX)
    if not os.path.exists(facts_file(folder)):
        write_index(writer, encoder, choice)
        return
    appended = append(folder, vectors, [text_of(one) for one in articles], encoder_digest=encoder.digest)
    # Known are articles that take the place of one with the same URL.
    stale = appended.known + appended.documents - sum(row_count(path) for path in part_paths(writer.folder, VECTORS))
    small = CORRECTED if appended.known else SMALL
    if stale and (appended.documents <= small or stale > MOST_STALE * appended.documents):
        write_index(writer, encoder, choice)


def write_index(writer: VersionWriter, encoder: TextEncoder, choice: EncoderChoice) -> None:
    """Writes the index of all articles of the new version from their texts and vectors."""
    vectors = [read_array_part(path) for path in part_paths(writer.folder, VECTORS)]
    documents = list[IndexedDocument]()
    with WordsBuilder() as words:
        for path in part_paths(writer.folder, ARTICLES):
            texts = map(text_of, read_records(path, Article))
            while chunk := list(itertools.islice(texts, _CHUNK)):
                words.add(chunk)
                documents += map(indexed_document, chunk)
    index = DocumentIndex(
        np.concatenate(vectors),
        documents,
        encoder=choice.spec,
        encoder_digest=encoder.digest,
        reading=reading_of(encoder, choice.document_prompt, choice.long_documents),
    )
    index.words = words.built()
    index.save(writer.path(INDEX))

"""The teacher of a lift: which articles of an archive are near to each other, by its start and by exact words."""

import dataclasses
from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ...beam_pipelines.progress import JobProgress
from ...errors import InputError, counted
from ...evaluation.encoders import Document, TfidfEncoder
from ...formats import parquet
from ...formats.articles import ArticleText, read_articles
from ...formats.records import Triplet, doc_id_to_words
from ...formats.teacher import NO_DAY, Teacher

_SHOWN: Final = 512  # articles between two updates of the progress bar
_ROWS: Final = 256  # of the similarity matrix in memory at once

FloatArray = npt.NDArray[np.float32]


@dataclasses.dataclass(frozen=True)
class TeacherOptions:
    """How near articles are found and weighed.

    Attributes:
      words_share: share of TF-IDF in the similarity; the rest is the cosine of the start's embeddings.
      neighbors: nearest articles of each that get a share of their own, K at most.
      temperature: of the softmax of the similarities with all articles, whose values are the shares.
      documents: articles at most; those of the triplets come first.
    """

    words_share: float = 0.7
    neighbors: int = 128
    temperature: float = 0.05
    documents: int = 50_000


def chosen_articles(work: str, documents: int) -> list[ArticleText]:
    """Returns the articles of a build that a teacher knows, in the order of their ids.

    Those that triplets name come first, then those with the lowest ids, which are digests and so a random sample.

    Args:
      work: folder of the build.
      documents: their largest number.

    Raises:
      InputError: if fewer than two articles have text.
    """
    folder = f"{work}/clean/articles"
    named = {
        doc_id
        for triplet in parquet.read_stream(f"{work}/triplets/triplets", Triplet)
        for doc_id in (triplet.anchor, triplet.positive)
    }
    ids = [article.doc_id for article in read_articles(folder) if not article.is_empty]
    kept = set(sorted(ids, key=lambda doc_id: (doc_id not in named, doc_id))[:documents])
    if len(kept) < 2:
        remedy = "Build from more articles, or use --recipe contrastive."
        raise InputError(
            f"got {counted(len(kept), 'article')} with text, expected at least 2", path=folder, remedy=remedy
        )
    chosen = [article for article in read_articles(folder) if article.doc_id in kept]
    return sorted(chosen, key=lambda article: article.doc_id)


def make_teacher(articles: Sequence[ArticleText], keys: FloatArray, options: TeacherOptions) -> Teacher:
    """Returns the teacher of some articles.

    Args:
      articles: N of them, at least two.
      keys: their embeddings by the start, float32 [N, D] of length 1.
      options: see `TeacherOptions`.

    Raises:
      InputError: if no article has a word.
    """
    documents = [Document(article.title, article.body) for article in articles]
    words = TfidfEncoder().encode(documents)
    count = min(options.neighbors, len(articles) - 1)
    blocks = [
        _nearest(similarities, first, count, options.temperature)
        for first, similarities in _similarities(words, keys, options.words_share)
    ]
    neighbors, probabilities = (np.concatenate(parts) for parts in zip(*blocks, strict=True))
    ids = np.array([doc_id_to_words(article.doc_id) for article in articles], np.int32)
    dates = [article.byline_date for article in articles]
    days = np.array([date.toordinal() if date else NO_DAY for date in dates], np.int32)
    return Teacher(ids, keys, days, neighbors, probabilities)


def _similarities(words: Any, keys: FloatArray, share: float) -> Iterator[tuple[int, FloatArray]]:
    """Yields the first row and some rows [R, N] of the similarities of all articles."""
    columns = words.T.tocsr()
    for first in range(0, len(keys), _ROWS):
        rows = slice(first, first + _ROWS)
        exact = (words[rows] @ columns).toarray()
        yield first, np.float32(share) * exact + np.float32(1 - share) * (keys[rows] @ keys.T)


def _nearest(
    similarities: FloatArray, first: int, count: int, temperature: float
) -> tuple[npt.NDArray[np.int32], FloatArray]:
    """Returns the nearest articles of some, and their shares among all articles but the own, [R, K] each.

    The nearest come first, ties by their place.
    """
    own = np.arange(len(similarities))
    similarities[own, first + own] = -np.inf
    lowest = np.partition(similarities, -count, axis=1)[:, -count]
    nearest = np.stack([_in_order(row, bar)[:count] for row, bar in zip(similarities, lowest, strict=True)])
    highest = similarities.max(axis=1, keepdims=True)
    weights = np.exp((similarities - highest) / np.float32(temperature))
    shares = weights / weights.sum(axis=1, keepdims=True, dtype=np.float64)
    return nearest.astype(np.int32), np.take_along_axis(shares, nearest, axis=1).astype(np.float32)


def _in_order(similarities: FloatArray, bar: np.float32) -> npt.NDArray[np.int64]:
    """Returns the places of values of at least a bar, largest first, ties by their place."""
    places = np.flatnonzero(similarities >= bar)
    return places[np.argsort(-similarities[places], kind="stable")]


def embedded(model: str, articles: Sequence[ArticleText], max_length: int) -> FloatArray:
    """Returns the embeddings of articles by a model, float32 [N, D] of length 1.

    Args:
      model: its folder.
      articles: with text.
      max_length: tokens of each that it reads.
    """
    from ...serving import embed, specs
    from ...serving.long_documents import HEAD

    # Training reads the first tokens, too; windows over whole articles would take several times as long.
    encoder = specs.make_encoder("model", model, max_length=max_length, long_documents=HEAD)
    chunks: list[FloatArray] = []
    with JobProgress("lift") as progress:
        for first in range(0, len(articles), _SHOWN):
            part = articles[first : first + _SHOWN]
            chunks += [vectors for _, vectors in embed.embedded(encoder, iter(part))]
            progress("teacher", first + len(part), len(articles), "articles embedded")
    return np.concatenate(chunks)

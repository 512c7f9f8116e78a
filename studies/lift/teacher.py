"""The teacher of a lift: which articles of an archive are near to each other, by its start and by exact words."""

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ...beam_pipelines.progress import JobProgress
from ...errors import InputError, counted
from ...evaluation.encoders import Document, TfidfEncoder
from ...formats import parquet
from ...formats.arrays import NO_DAY, Floats, Teacher, highest
from ...formats.articles import ArticleText, read_articles
from ...formats.records import Triplet, doc_id_to_words
from ...serving.analysis import base_language

_SHOWN: Final = 512  # articles between two updates of the progress bar
_ROWS: Final = 256  # of the similarity matrix in memory at once
WORDS_SHARE: Final = 0.7  # of TF-IDF in the similarity; the rest is the cosine of the start's embeddings
_NEIGHBORS: Final = 128  # nearest articles of each that get a share of their own, K at most
_SLOPE_ARTICLES: Final = 2_048  # four million pairs
_TEMPERATURE: Final = 0.05  # of the softmax of the similarities with all articles, whose values are the shares
DOCUMENTS: Final = 50_000  # articles at most; those of the triplets come first


def chosen_articles(work: str, documents: int = DOCUMENTS) -> list[ArticleText]:
    """Returns the articles of a build that a teacher knows, in the order of their ids.

    Those that triplets name come first, then those with the lowest ids, which are digests and so a random sample.

    Args:
      work: folder of the build.
      documents: their largest number.
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
        problem = f"got {counted(len(kept), 'article')} with text, expected at least 2"
        raise InputError(problem, path=folder, remedy=remedy)
    chosen = [article for article in read_articles(folder) if article.doc_id in kept]
    return sorted(chosen, key=lambda article: article.doc_id)


def make_teacher(
    articles: Sequence[ArticleText],
    keys: Floats,
    words_share: float = WORDS_SHARE,
    neighbors: int = _NEIGHBORS,
    temperature: float = _TEMPERATURE,
) -> Teacher:
    """Returns the teacher of some articles.

    Words say nothing about two articles in different languages, so their share there is what the cosine lets expect:
    the cosine times the slope of words by cosines within languages.

    Args:
      articles: N of them, at least two.
      keys: their embeddings by the start, float32 [N, D] of length 1.
      words_share: share of TF-IDF in the similarity.
      neighbors: nearest articles of each that get a share of their own.
      temperature: of the softmax of the similarities.
    """
    with JobProgress("lift") as progress:
        progress("nearest articles", 0, len(keys), "")
        words = TfidfEncoder().encode([Document(article.title, article.body) for article in articles])
        count = min(neighbors, len(articles) - 1)
        languages = np.unique([base_language(article.language) for article in articles], return_inverse=True)[1]
        columns, blocks, slope = words.T.tocsr(), [], _slope(words, keys, languages)
        for first in range(0, len(keys), _ROWS):
            rows = slice(first, first + _ROWS)
            exact, cosines = (words[rows] @ columns).toarray(), keys[rows] @ keys.T
            exact = np.where(languages[rows, None] == languages, exact, slope * cosines)
            similarities = words_share * exact + (1 - words_share) * cosines
            own = np.arange(len(similarities))
            similarities[own, first + own] = -np.inf
            nearest, values = highest(similarities, count)
            total = np.exp((similarities - values[:, :1]) / temperature).sum(axis=1, keepdims=True, dtype=np.float64)
            shares = np.exp((values - values[:, :1]) / temperature) / total
            blocks.append((nearest.astype(np.int32), shares.astype(np.float32)))
            progress("nearest articles", first + len(own), len(keys), "")
    nearest, shares = (np.concatenate(parts) for parts in zip(*blocks, strict=True))
    ids = np.array([doc_id_to_words(one.doc_id) for one in articles], np.int32)
    days = np.array([one.byline_date.toordinal() if one.byline_date else NO_DAY for one in articles], np.int32)
    lengths = np.array([len(f"{one.title}{one.body}") for one in articles], np.int32)
    return Teacher(ids, keys, days, languages.astype(np.int32), lengths, nearest, shares)


def _slope(words: Any, keys: Floats, languages: npt.NDArray[Any]) -> np.float32:
    """The slope, through 0, of TF-IDF by cosines over pairs of articles in one language; by least squares."""
    rows = np.random.default_rng(0).permutation(len(keys))[:_SLOPE_ARTICLES]
    exact, cosines = (words[rows] @ words[rows].T).toarray(), keys[rows] @ keys[rows].T
    pairs = (languages[rows, None] == languages[rows]) & ~np.eye(len(rows), dtype=bool)
    return np.float32(np.sum((exact * cosines)[pairs]) / max(np.sum(cosines[pairs] ** 2), 1e-9))


def embedded(model: str, articles: Sequence[ArticleText], max_length: int) -> Floats:
    """Returns the embeddings of articles by a model, float32 [N, D] of length 1.

    Args:
      model: its folder.
      articles: with text.
      max_length: tokens of each that it reads.
    """
    from ...serving import embed, specs
    from ...serving.rows import HEAD

    # Training reads the first tokens, too; windows over whole articles would take several times as long.
    encoder = specs.make_encoder("model", model, max_length=max_length, long_documents=HEAD)
    counts: dict[str, int] = {}
    chunks: list[Floats] = []
    with JobProgress("lift", "articles") as progress:
        progress("teacher", 0, len(articles), "")
        for _, vectors in embed.embedded(encoder, iter(articles), counts, chunk=_SHOWN, quiet=True):
            chunks.append(vectors)
            progress("teacher", counts["embedded"], len(articles), "")
    return np.concatenate(chunks)

"""How often the word pieces of a vocabulary occur in a corpus."""

import dataclasses
import itertools
from collections.abc import Iterable, Iterator
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ...errors import InputError
from ...formats.articles import ArticleText
from ...formats.vocabulary import SPECIAL_TOKENS
from ...tasks.vocabulary import Vocabulary

IntArray = npt.NDArray[np.int64]

_TOGETHER: Final = 1024  # articles whose texts are in memory at once
_MATRIX_TEXTS: Final = 16_384  # more change means and covariances little


@dataclasses.dataclass(frozen=True)
class Corpus:
    """How often the pieces of a vocabulary occur in some articles; special tokens never do.

    Attributes:
      counts: of each piece, [V].
      texts: with each piece, and last the number of all, [V + 1].
      terms: sparse [N, V], of the first articles: what each piece counts in the weighted mean of each text, apart from
        the weight of the piece; see `models.pooling.term_weights`.
    """

    counts: IntArray
    texts: IntArray
    terms: Any


def count_pieces(
    articles: Iterator[ArticleText], vocabulary: Vocabulary, *, max_length: int, lead_length: int
) -> Corpus:
    """How often each piece occurs in the first `max_length` tokens of some articles.

    Raises:
      InputError: if no article has a piece.
    """
    from scipy.sparse import csr_array

    counts, texts = np.zeros(vocabulary.size, np.int64), np.zeros(vocabulary.size + 1, np.int64)
    pieces, terms = list[Any](), list[Any]()
    for chunk in chunks(articles):
        titles, bodies = [article.title for article in chunk], [article.body for article in chunk]
        for row in vocabulary.encode_documents(titles, bodies, max_length):
            own, values = term_counts(row, lead_length)
            counts += np.bincount(row, minlength=vocabulary.size)
            texts[own] += 1
            texts[-1] += 1
            if len(own) and len(terms) < _MATRIX_TEXTS:
                pieces.append(own)
                terms.append(values)
    counts[: len(SPECIAL_TOKENS)] = 0
    if not terms:
        raise InputError("no article of the corpus has a word", remedy="Give articles with texts.")
    ends = np.cumsum([0, *map(len, pieces)])
    matrix = csr_array((np.concatenate(terms), np.concatenate(pieces), ends), shape=(len(terms), vocabulary.size))
    return Corpus(counts, texts, matrix)


def term_counts(row: npt.NDArray[Any], lead_length: int) -> tuple[IntArray, npt.NDArray[np.float64]]:
    """The different pieces of a text without special tokens, and what their copies count together.

    A token at position p counts 1 / (1 + p / lead_length), and copies that count s together count ln(1 + s).

    >>> term_counts(np.array([2, 7, 9, 7, 3]), 0)
    (array([7, 9]), array([1.09861229, 0.69314718]))
    """
    places = np.arange(len(row))
    counts = np.bincount(row, 1 / (1 + places / lead_length) if lead_length else None)
    counts[: len(SPECIAL_TOKENS)] = 0
    pieces = np.flatnonzero(counts)
    return pieces, np.log1p(counts[pieces])


def chunks(articles: Iterable[ArticleText]) -> Iterator[list[ArticleText]]:
    """Lists of some of the articles, one after the other."""
    rest = iter(articles)
    while chunk := list(itertools.islice(rest, _TOGETHER)):
        yield chunk

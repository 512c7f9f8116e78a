"""What a distillation takes from texts: words and counts of a corpus, and the rows by which an encoder reads pieces."""

import dataclasses
import itertools
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ...errors import InputError
from ...formats.articles import ArticleText
from ...formats.vocabulary import CLS_ID, CONTINUATION, SEP_ID, SPECIAL_TOKENS
from ...tasks.vocabulary import Vocabulary, normalize_for_learning

IntArray = npt.NDArray[np.int64]

_TOGETHER: Final = 1024  # articles whose texts are in memory at once
_MATRIX_TEXTS: Final = 16_384  # more change their covariance little
_LEAST_COUNT: Final = 3  # a rarer word is a misspelling as often as a name


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


def frequent_words(articles: Iterator[ArticleText], count: int, known: Collection[str]) -> list[str]:
    """The most frequent words of some articles that are not pieces yet, at most `count`; ties in the order of letters.

    Words are what newsembed's own tokenizer cuts into pieces. Those that occur less than 3 times are left out.
    """
    counts: Counter[str] = Counter()
    for chunk in _chunks(articles):
        for text in normalize_for_learning([part for article in chunk for part in (article.title, article.body)]):
            counts.update(text.split(" "))
    known = {*known, ""}
    found = [(-number, word) for word, number in counts.items() if number >= _LEAST_COUNT and word not in known]
    return [word for _, word in sorted(found)[:count]]


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
    for chunk in _chunks(articles):
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
        raise InputError("no article has a word", field="--articles", remedy="Give articles with texts.")
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


def piece_rows(own: Vocabulary, pieces: Sequence[str], *, is_own: bool, max_length: int) -> list[npt.NDArray[np.int32]]:
    """The row by which an encoder reads each piece, ``[CLS] … [SEP]``, int32.

    A piece that the encoder knows is its id. Another one is cut by the encoder's tokenizer, without the mark of its
    vocabulary that it continues a word.

    Args:
      own: the encoder's vocabulary.
      pieces: to be read.
      is_own: whether they are those of `own`, in its order.
      max_length: of a row.
    """
    ids = {piece: token for token, piece in enumerate(own.pieces)} if own.tokenizer is None else {}
    known = range(len(pieces)) if is_own else [ids.get(piece) for piece in pieces]
    rows: list[Any] = [None if token is None else np.array([CLS_ID, token, SEP_ID], np.int32) for token in known]
    others = [number for number, row in enumerate(rows) if row is None]
    texts = [pieces[number].removeprefix(CONTINUATION) or pieces[number] for number in others]
    for number, row in zip(others, own.encode_documents(texts, [""] * len(texts), max_length), strict=True):
        rows[number] = row
    return rows


def _chunks(articles: Iterable[ArticleText]) -> Iterator[list[ArticleText]]:
    rest = iter(articles)
    while chunk := list(itertools.islice(rest, _TOGETHER)):
        yield chunk

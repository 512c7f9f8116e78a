"""What a distillation takes from texts: frequent words of a corpus, and the rows by which an encoder reads pieces."""

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ...formats.articles import ArticleText
from ...formats.vocabulary import CLS_ID, CONTINUATION, SEP_ID
from ...tasks.vocabulary import Vocabulary, normalize_for_learning
from ..shared.corpus import chunks

_LEAST_COUNT: Final = 3  # a rarer word is a misspelling as often as a name


def frequent_words(articles: Iterator[ArticleText], count: int, known: Collection[str]) -> list[str]:
    """The most frequent words of some articles that are not pieces yet, at most `count`; ties in the order of letters.

    Words are what newsembed's own tokenizer cuts into pieces. Those that occur less than 3 times are left out.
    """
    counts: Counter[str] = Counter()
    for chunk in chunks(articles):
        for text in normalize_for_learning([part for article in chunk for part in (article.title, article.body)]):
            counts.update(text.split(" "))
    known = {*known, ""}
    found = [(-number, word) for word, number in counts.items() if number >= _LEAST_COUNT and word not in known]
    return [word for _, word in sorted(found)[:count]]


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

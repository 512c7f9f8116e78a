"""Redundancy of documents by length (SimLTE).

R of the words (Table 3 there) is the number of nouns and verbs over the number of their distinct lemmas: 1 if none is
repeated. Proper nouns are nouns, auxiliaries are not verbs; that is our reading.

The other two definitions are ours.

R of the text is Shannon's redundancy of its word pieces. With n pieces, where piece v occurs c_v times,

    H = - sum_v (c_v / n) log2 (c_v / n),    R = 1 - H / log2 n

It is 0 if no piece occurs twice and 1 if all pieces are the same. R of the encoder is the mean cosine between the
top-layer vectors of two different tokens of the document (``serving.probe``): near 1 if all tokens carry the same
information, so that a few would suffice.
"""

import dataclasses
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from ...formats.vocabulary import SPECIAL_TOKENS, UNK_ID

_WORD_BINS = (50, 100, 200, 300)  # words; the last bin has no end
_FIRST_BIN = 16  # pieces; each further bin ends at twice the length


@dataclasses.dataclass(frozen=True)
class RedundancyBin:
    """Documents of similar length.

    Attributes:
      shortest: smallest number of pieces in the bin.
      longest: largest number of pieces in the bin.
      documents: number of documents.
      text: mean R of their texts.
      encoder: mean R of the encoder on them.
    """

    shortest: int
    longest: int
    documents: int
    text: float
    encoder: float


@dataclasses.dataclass(frozen=True)
class RepetitionBin:
    """Documents of similar length.

    Attributes:
      shortest: smallest number of words in the bin.
      longest: largest number of words in the bin, ``None`` for the last one.
      documents: number of documents.
      repetition: mean R of their words.
    """

    shortest: int
    longest: int | None
    documents: int
    repetition: float


def word_repetition(lemmas: Sequence[str]) -> float:
    """Returns the number of words over that of their distinct lemmas; NaN without words.

    >>> word_repetition(["storm", "hit", "coast", "storm"])
    1.3333333333333333

    Args:
      lemmas: of every noun and verb of a document.
    """
    return len(lemmas) / len(set(lemmas)) if lemmas else float("nan")


def repetition_by_length(words: Sequence[int], values: Sequence[float]) -> list[RepetitionBin]:
    """Returns mean R of documents of up to 50, 100, 200, 300 and more words; bins without documents are left out.

    Args:
      words: number of words of each document.
      values: R of each document; NaN is left out.
    """
    lengths, known = np.array(words), np.array(values, np.float64)
    bins, shortest = [], 0
    for longest in (*_WORD_BINS, None):
        here = np.isfinite(known) & (lengths >= shortest) & (lengths <= (np.inf if longest is None else longest))
        if here.any():
            bins.append(RepetitionBin(shortest, longest, int(here.sum()), float(known[here].mean())))
        shortest = (longest or 0) + 1
    return bins


def text_redundancy(tokens: npt.NDArray[np.int32]) -> float:
    """Returns R of one text from its tokens ``[n]``, without special tokens except [UNK]; NaN below two tokens."""
    pieces = tokens[(tokens >= len(SPECIAL_TOKENS)) | (tokens == UNK_ID)]
    if len(pieces) < 2:
        return float("nan")
    shares = np.unique(pieces, return_counts=True)[1] / len(pieces)
    entropy = -float((shares * np.log2(shares)).sum())
    return 1 - entropy / float(np.log2(len(pieces)))


def redundancy_by_length(
    tokens: Sequence[npt.NDArray[np.int32]], encoder: npt.NDArray[np.float32]
) -> list[RedundancyBin]:
    """Returns means by length, the shortest first: up to 16 pieces, up to 32, up to 64 and so on.

    Args:
      tokens: int32 ``[n]`` of each document.
      encoder: float32 ``[N]``, R of the encoder on each document; documents with NaN are left out.
    """
    lengths = np.array([int(((row >= len(SPECIAL_TOKENS)) | (row == UNK_ID)).sum()) for row in tokens])
    text = np.array([text_redundancy(row) for row in tokens])
    counted = np.isfinite(text) & np.isfinite(encoder)
    bins, shortest, longest = [], 2, _FIRST_BIN
    while counted.any() and shortest <= lengths[counted].max():
        here = counted & (lengths >= shortest) & (lengths <= longest)
        if here.any():
            bins.append(
                RedundancyBin(
                    shortest,
                    longest,
                    int(here.sum()),
                    float(text[here].mean()),
                    float(encoder[here].mean(dtype=np.float64)),
                )
            )
        shortest, longest = longest + 1, 2 * longest
    return bins

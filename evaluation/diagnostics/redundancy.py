"""Redundancy of documents by length (SimLTE, appendix A; it gives no formula, so both definitions are ours).

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

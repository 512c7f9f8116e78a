"""The attention that each part of speech receives (as in SimLTE, section 3.6).

The attention of a document is that of the positions from which its embedding is pooled: of [CLS], or the mean over all
tokens (``NewsEncoder.encode_observed``). A word receives the sum over its pieces. The shares of [CLS], [SEP] and the
words add up to 1 in every document.
"""

import collections
import dataclasses
from collections.abc import Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from ...formats.vocabulary import SPECIAL_TOKENS, UNK_ID
from ...tasks.parts_of_speech import Word

SPECIAL: Final = "[CLS], [SEP]"
_SPECIAL_IDS: Final = tuple(token for token in range(len(SPECIAL_TOKENS)) if token != UNK_ID)  # [UNK] is a word

IntArray = npt.NDArray[np.int32]
FloatArray = npt.NDArray[np.float32]


@dataclasses.dataclass(frozen=True)
class TagAttention:
    """One part of speech.

    Attributes:
      tag: its name, or ``SPECIAL``.
      words: number of words (tokens for ``SPECIAL``).
      tokens: share of the tokens, mean over documents.
      attention: share of the attention by layer, mean over documents.
      per_word: attention of one word (one token for ``SPECIAL``) by layer, mean over all words of all documents
        (SimLTE, Figure 3).
    """

    tag: str
    words: int
    tokens: float
    attention: tuple[float, ...]
    per_word: tuple[float, ...]

    @property
    def lift(self) -> tuple[float, ...]:
        """Share of attention divided by share of tokens, by layer: 1 if attention is uniform."""
        return tuple(value / self.tokens for value in self.attention)


def tag_tokens(tokens: IntArray, words: Sequence[Word], pieces: Sequence[IntArray]) -> tuple[list[str], int] | None:
    """Returns the part of speech of every token, and the number of words in the tokens.

    Args:
      tokens: int32 ``[n]``, ``[CLS] title [SEP] body [SEP]``, possibly truncated.
      words: (word, tag) of title and body, in order.
      pieces: the token ids of each word.

    Returns:
      (tags, number of words), or ``None`` if words and tokens are not of the same text.
    """
    tags, place = [SPECIAL] * len(tokens), 0
    inner = [position for position, token in enumerate(tokens.tolist()) if token not in _SPECIAL_IDS]
    for number, ((_, tag), own) in enumerate(zip(words, pieces, strict=True)):
        if place == len(inner):
            return tags, number  # the row was truncated here
        for piece in own.tolist():
            if place == len(inner):
                return tags, number + 1
            if tokens[inner[place]] != piece:
                return None
            tags[inner[place]] = tag
            place += 1
    return (tags, len(words)) if place == len(inner) else None


def attention_by_tag(
    attention: Sequence[FloatArray], tags: Sequence[Sequence[str]], words: Sequence[Sequence[str]]
) -> list[TagAttention]:
    """Returns the shares of tokens and of attention, sorted by attention in the last layer, the largest first.

    Args:
      attention: float32 ``[layers, n]`` of each document; rows sum to 1.
      tags: the tag of every token of each document, from :func:`tag_tokens`.
      words: the tags of the words of each document that were read, to count them.

    Raises:
      ValueError: if there is no document.
    """
    if not attention:
        raise ValueError("no document to look at")
    layers, documents = len(attention[0]), len(attention)
    totals: dict[str, npt.NDArray[np.float64]] = collections.defaultdict(lambda: np.zeros(layers))
    shares: dict[str, npt.NDArray[np.float64]] = collections.defaultdict(lambda: np.zeros(layers + 1))
    counts: collections.Counter[str] = collections.Counter()
    for received, own, document in zip(attention, tags, words, strict=True):
        labels = np.array(own)
        for tag in dict.fromkeys(own):
            mine = labels == tag
            total = received[:, mine].sum(axis=1, dtype=np.float64)
            totals[tag] += total
            shares[tag] += np.append(total, mine.mean()) / documents
        counts.update([*document, *(tag for tag in own if tag == SPECIAL)])
    found = [
        TagAttention(
            tag,
            counts[tag],
            float(share[-1]),
            tuple(share[:-1].tolist()),
            tuple((totals[tag] / counts[tag]).tolist()),
        )
        for tag, share in shares.items()
    ]
    return sorted(found, key=lambda row: (-row.attention[-1], row.tag))

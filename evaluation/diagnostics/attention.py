"""How much attention each part of speech gets (SimLTE looks at its encoder so in section 3.6).

The attention of a document is that of what its embedding is read from: of [CLS], or the mean over all tokens where the model pools so
(``NewsEncoder.encode_observed``). A word gets the sum of its pieces. What [CLS], [SEP] and the words share adds up to 1 in every document.
"""

import collections
import dataclasses
from collections.abc import Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from ...formats.vocabulary import SPECIAL_TOKENS, UNK_ID
from .words import Word

SPECIAL: Final = "[CLS], [SEP]"
_SPECIAL_IDS: Final = tuple(token for token in range(len(SPECIAL_TOKENS)) if token != UNK_ID)  # [UNK] is a word

IntArray = npt.NDArray[np.int32]
FloatArray = npt.NDArray[np.float32]


@dataclasses.dataclass(frozen=True)
class TagAttention:
    """One part of speech.

    Attributes:
      tag: its name, or ``SPECIAL``.
      words: how many were seen (of ``SPECIAL``: tokens).
      tokens: their share of the tokens, a mean over documents.
      attention: their share of the attention, by layer, a mean over documents.
    """

    tag: str
    words: int
    tokens: float
    attention: tuple[float, ...]

    @property
    def lift(self) -> tuple[float, ...]:
        """Attention over share of tokens, by layer: 1 where attention is spread evenly."""
        return tuple(value / self.tokens for value in self.attention)


def tag_tokens(tokens: IntArray, words: Sequence[Word], pieces: Sequence[IntArray]) -> tuple[list[str], int] | None:
    """The part of speech of every token and how many words they are, or None if words and tokens do not tell the same text.

    Args:
      tokens: int32 ``[n]``, ``[CLS] title [SEP] body [SEP]``, possibly cut.
      words: (word, tag) of title and body, in order.
      pieces: the ids of each word, as many entries as words.
    """
    tags, place = [SPECIAL] * len(tokens), 0
    inner = [position for position, token in enumerate(tokens.tolist()) if token not in _SPECIAL_IDS]
    for number, ((_, tag), own) in enumerate(zip(words, pieces, strict=True)):
        if place == len(inner):
            return tags, number  # the row was cut here
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
    """Shares of tokens and of attention, the most attended first (in the last layer).

    Args:
      attention: float32 ``[layers, n]`` of each document, rows of sum 1.
      tags: of every token, from :func:`tag_tokens`.
      words: the tags of each document's words, as far as they were read, to count them.

    Raises:
      ValueError: if there is no document.
    """
    if not attention:
        raise ValueError("no document to look at")
    layers, documents = len(attention[0]), len(attention)
    shares: dict[str, npt.NDArray[np.float64]] = collections.defaultdict(lambda: np.zeros(layers + 1))
    counts: collections.Counter[str] = collections.Counter()
    for received, own, document in zip(attention, tags, words, strict=True):
        labels = np.array(own)
        for tag in dict.fromkeys(own):
            mine = labels == tag
            shares[tag] += np.append(received[:, mine].sum(axis=1, dtype=np.float64), mine.mean()) / documents
        counts.update([*document, *(tag for tag in own if tag == SPECIAL)])
    found = [
        TagAttention(tag, counts[tag], float(share[-1]), tuple(share[:-1].tolist())) for tag, share in shares.items()
    ]
    return sorted(found, key=lambda row: (-row.attention[-1], row.tag))

"""The tokens of documents: the attention that each part of speech receives, and redundancy by length (SimLTE).

The attention of a document (section 3.6 there) is that of the positions from which its embedding is pooled: of [CLS],
or the mean over all tokens (``NewsEncoder.encode_observed``). A word receives the sum over its pieces. The shares of
[CLS], [SEP] and the words add up to 1 in every document.

R of the words (Table 3 there) is the number of nouns and verbs over the number of their distinct lemmas: 1 if none is
repeated. Proper nouns are nouns, auxiliaries are not verbs; that is our reading.

The other two definitions are ours.

R of the text is Shannon's redundancy of its word pieces. With n pieces, where piece v occurs c_v times,

    H = - sum_v (c_v / n) log2 (c_v / n),    R = 1 - H / log2 n

It is 0 if no piece occurs twice and 1 if all pieces are the same. R of the encoder is the mean cosine between the
top-layer vectors of two different tokens of the document (``serving.encoder``): near 1 if all tokens carry the same
information, so that a few would suffice.
"""

import collections
import dataclasses
from collections.abc import Iterable, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ..formats.vocabulary import SPECIAL_TOKENS, UNK_ID
from ..tasks.parts_of_speech import Word

SPECIAL: Final = "[CLS], [SEP]"
_SPECIAL_IDS: Final = tuple(token for token in range(len(SPECIAL_TOKENS)) if token != UNK_ID)  # [UNK] is a word
_WORD_BINS = (50, 100, 200, 300)  # words; the last bin has no end
_FIRST_BIN = 16  # pieces; each further bin ends at twice the length

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
    """
    layers, documents = len(attention[0]), len(attention)
    totals: dict[str, npt.NDArray[np.float64]] = collections.defaultdict(lambda: np.zeros(layers))
    shares: dict[str, npt.NDArray[np.float64]] = collections.defaultdict(lambda: np.zeros(layers + 1))
    counts: collections.Counter[str] = collections.Counter()
    for weights, own, document in zip(attention, tags, words, strict=True):
        labels = np.array(own)
        for tag in dict.fromkeys(own):
            mine = labels == tag
            total = weights[:, mine].sum(axis=1, dtype=np.float64)
            totals[tag] += total
            shares[tag] += np.append(total, mine.mean()) / documents
        counts.update([*document, *(tag for tag in own if tag == SPECIAL)])
    found = []
    for tag, share in shares.items():
        *received, tokens = share.tolist()
        per_word = (totals[tag] / counts[tag]).tolist()
        found.append(TagAttention(tag, counts[tag], tokens, tuple(received), tuple(per_word)))
    return sorted(found, key=lambda row: (-row.attention[-1], row.tag))


@dataclasses.dataclass(frozen=True)
class LengthBin:
    """Documents of similar length.

    Attributes:
      shortest: smallest length in the bin.
      longest: largest length in the bin, ``None`` for the last one of words.
      documents: number of documents.
      means: of each value of the documents.
    """

    shortest: int
    longest: int | None
    documents: int
    means: tuple[float, ...]


def word_repetition(lemmas: Sequence[str]) -> float:
    """Returns the number of words over that of their distinct lemmas; NaN without words.

    >>> word_repetition(["storm", "hit", "coast", "storm"])
    1.3333333333333333

    Args:
      lemmas: of every noun and verb of a document.
    """
    return len(lemmas) / len(set(lemmas)) if lemmas else float("nan")


def repetition_by_length(words: Sequence[int], values: Sequence[float]) -> list[LengthBin]:
    """Returns mean R of documents of up to 50, 100, 200, 300 and more words; bins without documents are left out.

    Args:
      words: number of words of each document.
      values: R of each document; NaN is left out.
    """
    return _by_length(words, [values], 0, (*_WORD_BINS, None))


def text_redundancy(tokens: IntArray) -> float:
    """Returns R of one text from its tokens ``[n]``, without special tokens except [UNK]; NaN below two tokens."""
    pieces = _pieces(tokens)
    if len(pieces) < 2:
        return float("nan")
    shares = np.unique(pieces, return_counts=True)[1] / len(pieces)
    entropy = -float((shares * np.log2(shares)).sum())
    return 1 - entropy / float(np.log2(len(pieces)))


def redundancy_by_length(tokens: Sequence[IntArray], encoder: FloatArray) -> list[LengthBin]:
    """Returns mean R of texts and of the encoder: up to 16 pieces, up to 32, up to 64 and so on.

    Args:
      tokens: int32 ``[n]`` of each document.
      encoder: float32 ``[N]``, R of the encoder on each document; documents with NaN are left out.
    """
    lengths = [len(_pieces(row)) for row in tokens]
    ends = [_FIRST_BIN << number for number in range(max(lengths, default=0).bit_length())]
    return _by_length(lengths, [[text_redundancy(row) for row in tokens], encoder], 2, ends)


def _pieces(tokens: IntArray) -> IntArray:
    return tokens[(tokens >= len(SPECIAL_TOKENS)) | (tokens == UNK_ID)]


def _by_length(
    lengths: Sequence[int], values: Sequence[Any], shortest: int, ends: Iterable[int | None]
) -> list[LengthBin]:
    """Means of values ``[values, N]`` by bins of lengths, which end at ``ends``; a document with a NaN is left out."""
    length, known = np.array(lengths), np.array(values, np.float64)
    bins = []
    for longest in ends:
        here = (
            np.isfinite(known).all(axis=0) & (length >= shortest) & (length <= (np.inf if longest is None else longest))
        )
        if here.any():
            bins.append(LengthBin(shortest, longest, int(here.sum()), tuple(known[:, here].mean(axis=1).tolist())))
        shortest = (longest or 0) + 1
    return bins

"""Greedy sequence packing (Algorithm 1 of the paper) and the layout of a packed row. Pure functions without Beam."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np

from ..formats.vocabulary import CLS_ID, PAD_ID, SEP_ID

P = TypeVar("P")
_FRAME = 2  # [CLS] and [SEP] around every piece
_LARGEST = np.iinfo(np.int32).max


def pack(
    pieces: Iterable[P], max_length: int, capacity: int, min_fill: float, length: Callable[[P], int]
) -> Iterator[list[P]]:
    """Packs pieces into rows of at most ``max_length`` tokens; every piece is in exactly one row.

    A cache holds up to ``capacity`` unfinished rows. Each piece goes to the cached row in which it leaves the least
    room. A row is emitted when it is filled to ``min_fill``. If a piece fits into no row of a full cache, the fullest
    row is emitted to make space. At the end the remaining rows are emitted, the fullest first. The time per piece is
    constant, and no more than the cache is held in memory.

    >>> list(pack([5, 4, 3, 6, 2], max_length=10, capacity=2, min_fill=0.9, length=lambda piece: piece))
    [[5, 4], [3, 6], [2]]

    Args:
      pieces: pieces in the order in which they are packed.
      max_length: L, the length of a row in tokens.
      capacity: C, the number of rows in the cache, at least 1.
      min_fill: rho, the share of ``max_length`` from which a row is finished, in (0, 1].
      length: returns the number of tokens of a piece, 1 to ``max_length``.

    Yields:
      The pieces of one row, in the order in which they came.

    Raises:
      ValueError: if a piece is empty or longer than a row.
    """
    cache = _Cache[P](max_length)
    slack = int(max_length * (1 - min_fill) + 1e-9)  # unfilled tokens that a finished row may have
    for piece in pieces:
        tokens = length(piece)
        if not 1 <= tokens <= max_length:
            raise ValueError(f"got a piece of {tokens} tokens, expected 1 to {max_length}")
        row, room = cache.take_best(tokens)
        if row is None:
            if cache.rows == capacity:
                yield cache.take_fullest()
            row, room = [], max_length
        row.append(piece)
        if room - tokens <= slack:
            yield row
        else:
            cache.put(row, room - tokens)
    while cache.rows:
        yield cache.take_fullest()


def longest_first(pieces: Iterable[P], window_tokens: int, length: Callable[[P], int]) -> Iterator[P]:
    """Reorders a stream for :func:`pack`: cuts it into windows and yields each window with the longest piece first.

    Short pieces then fill the gaps that long ones leave, so rows are nearly as full as with best-fit decreasing over
    all pieces at once. Pieces still meet at random, because windows follow the order of the stream. A window should
    open fewer rows than the cache of :func:`pack` holds.

    >>> list(longest_first([1, 5, 3, 2, 4], window_tokens=8, length=lambda piece: piece))
    [5, 3, 1, 4, 2]

    Args:
      pieces: the stream.
      window_tokens: a window ends with the piece that brings it to this many tokens.
      length: returns the number of tokens of a piece.
    """
    window: list[P] = []
    tokens = 0
    for piece in pieces:
        window.append(piece)
        tokens += length(piece)
        if tokens >= window_tokens:
            yield from sorted(window, key=length, reverse=True)
            window, tokens = [], 0
    yield from sorted(window, key=length, reverse=True)


class _Cache(Generic[P]):
    """Unfinished rows by the room they have left.

    Bit r of ``_present`` is set if there is a row with room r, so the best row is found by one bit operation.
    """

    def __init__(self, max_length: int) -> None:
        self.rows = 0
        self._by_room: list[list[list[P]]] = [[] for _ in range(max_length)]  # no row is empty
        self._present = 0

    def put(self, row: list[P], room: int) -> None:
        self._by_room[room].append(row)
        self._present |= 1 << room
        self.rows += 1

    def take_best(self, tokens: int) -> tuple[list[P] | None, int]:
        """Removes the row with the least room for ``tokens``; returns it and its room, or ``(None, 0)``."""
        fitting = self._present >> tokens
        if not fitting:
            return None, 0
        room = tokens + (fitting & -fitting).bit_length() - 1
        row = self._by_room[room].pop()
        if not self._by_room[room]:
            self._present ^= 1 << room
        self.rows -= 1
        return row, room

    def take_fullest(self) -> list[P]:
        row, _ = self.take_best(0)
        if row is None:
            raise LookupError("the cache is empty")
        return row


@dataclass(frozen=True)
class Piece:
    """One unit of packing: a document, a part of one, or a translation pair, framed by [CLS] and [SEP].

    Attributes:
      tokens: int32 ``[n]``, token ids.
      word_ids: int32 ``[n]``, 1-based number of the whole word within the piece, 0 on special tokens.
    """

    tokens: np.ndarray
    word_ids: np.ndarray

    def __len__(self) -> int:
        return self.tokens.size


def frame(tokens: np.ndarray, word_ids: np.ndarray) -> Piece:
    """Returns the piece ``[CLS] tokens [SEP]``, its words numbered from 1."""
    return Piece(
        np.concatenate([[CLS_ID], tokens, [SEP_ID]]).astype(np.int32),
        np.concatenate([[0], _renumber(word_ids), [0]]).astype(np.int32),
    )


def join_parts(parts: Sequence[np.ndarray], word_ids: Sequence[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Joins parts (title and body, source and target) by [SEP].

    Args:
      parts: int32 token ids of each part; empty parts are left out.
      word_ids: 1-based word numbers of each part.

    Returns:
      Token ids and word ids, int32 ``[n]`` each; words are numbered across the parts, [SEP] has word id 0.
    """
    tokens: list[np.ndarray] = []
    words: list[np.ndarray] = []
    last_word = 0
    for part, numbers in zip(parts, word_ids, strict=True):
        if not part.size:
            continue
        if tokens:
            tokens.append(np.array([SEP_ID], np.int32))
            words.append(np.array([0], np.int32))
        tokens.append(part)
        words.append(numbers + last_word)
        last_word += int(numbers[-1])
    if not tokens:
        return np.zeros(0, np.int32), np.zeros(0, np.int32)
    return np.concatenate(tokens), np.concatenate(words)


def split_document(tokens: np.ndarray, word_ids: np.ndarray, max_length: int) -> list[Piece]:
    """Cuts ``title [SEP] body`` into pieces of at most ``max_length`` tokens, including [CLS] and [SEP].

    Cuts fall between words, except inside a word that is longer than a piece. A [SEP] at a cut is dropped.
    """
    room = max_length - _FRAME
    pieces = []
    start = 0
    while start < tokens.size:
        end = min(start + room, tokens.size)
        if end < tokens.size:
            end = _word_start(word_ids, start, end)
        begin, stop = start + (tokens[start] == SEP_ID), end - (tokens[end - 1] == SEP_ID)
        if begin < stop:
            pieces.append(frame(tokens[begin:stop], word_ids[begin:stop]))
        start = end
    return pieces


def cut_pair(source: int, target: int, room: int) -> tuple[int, int]:
    """Returns the lengths to which the two sides of a translation pair are cut.

    The longer side is cut first, until both fit into ``room`` together. Sides that fit keep their lengths.

    >>> cut_pair(10, 3, 8)
    (5, 3)
    >>> cut_pair(10, 9, 8)
    (4, 4)
    """
    shorter = min(source, target, room // 2)
    return (shorter, min(target, room - shorter)) if source <= target else (min(source, room - shorter), shorter)


def make_row(pieces: Sequence[Piece], max_length: int) -> dict[str, list[int]]:
    """Returns the features of one packed row (`tasks.packed`), each padded to ``max_length``."""
    tokens = np.full(max_length, PAD_ID, np.int32)
    segment_ids, positions, word_ids = (np.zeros(max_length, np.int32) for _ in range(3))
    start = words = 0
    for number, piece in enumerate(pieces, start=1):
        here = slice(start, start + len(piece))
        tokens[here] = piece.tokens
        segment_ids[here] = number
        positions[here] = np.arange(len(piece))
        word_ids[here] = np.where(piece.word_ids, piece.word_ids + words, 0)
        start, words = here.stop, words + int(piece.word_ids.max(initial=0))
    row = {"tokens": tokens, "segment_ids": segment_ids, "positions": positions, "word_ids": word_ids}
    return {name: values.tolist() for name, values in row.items()}


def _renumber(word_ids: np.ndarray) -> np.ndarray:
    """Shifts word numbers so that the first word is 1; 0 stays 0."""
    first = word_ids[word_ids > 0].min(initial=_LARGEST)
    return np.where(word_ids > 0, word_ids - first + 1, 0)


def _word_start(word_ids: np.ndarray, start: int, end: int) -> int:
    """Returns the last position in (start, end] at which a word or a [SEP] begins; ``end`` if there is none."""
    cut = end
    while cut > start and word_ids[cut] != 0 and word_ids[cut] == word_ids[cut - 1]:
        cut -= 1
    return cut if cut > start else end

"""Greedy sequence packing (the paper's Algorithm 1) and the packed row: pure functions, no Beam."""

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

    A cache holds up to ``capacity`` rows that are not full yet. Each piece goes to the cached row that it fills best. A row that
    is filled to ``min_fill`` is done; if a piece fits into no row of a full cache, the fullest is done too. In the end
    all rows of the cache are, the fullest first. Takes O(1) a piece and holds no more than the cache.

    >>> list(pack([5, 4, 3, 6, 2], max_length=10, capacity=2, min_fill=0.9, length=lambda piece: piece))
    [[5, 4], [3, 6], [2]]

    Args:
      pieces: in the order in which they are packed.
      max_length: L, of a row.
      capacity: C, rows in the cache, at least 1.
      min_fill: rho, share of ``max_length`` from which a row is done, in (0, 1].
      length: of a piece in tokens, 1 to ``max_length``.

    Raises:
      ValueError: for a piece that is empty or longer than a row.
    """
    cache = _Cache[P](max_length)
    slack = int(max_length * (1 - min_fill) + 1e-9)  # tokens that a row may lack and still be done
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
    """Reorders a stream for :func:`pack`: windows of about ``window_tokens`` tokens, in each the longest piece first.

    Short pieces then find the gaps that long ones left, so that rows are nearly as full as best-fit decreasing makes them of all pieces
    at once. Which pieces meet stays random across windows. A window should open fewer rows than the cache of :func:`pack` holds.

    >>> list(longest_first([1, 5, 3, 2, 4], window_tokens=8, length=lambda piece: piece))
    [5, 3, 1, 4, 2]
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
    """Rows by the room they have left. Bit r of an integer says whether a row with room r is there, so the best is one look away."""

    def __init__(self, max_length: int) -> None:
        self.rows = 0
        self._by_room: list[list[list[P]]] = [[] for _ in range(max_length + 1)]
        self._present = 0

    def put(self, row: list[P], room: int) -> None:
        self._by_room[room].append(row)
        self._present |= 1 << room
        self.rows += 1

    def take_best(self, tokens: int) -> tuple[list[P] | None, int]:
        """The row with the least room that holds ``tokens``, and its room; ``None`` if there is none."""
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
    """What is packed: one document, part of one, or a translation pair, with [CLS] and [SEP].

    Attributes:
      tokens: int32 ``[n]``.
      word_ids: int32 ``[n]``, 1-based number of the whole word inside the piece, 0 on special tokens.
    """

    tokens: np.ndarray
    word_ids: np.ndarray

    def __len__(self) -> int:
        return self.tokens.size


def frame(tokens: np.ndarray, word_ids: np.ndarray) -> Piece:
    """``[CLS] tokens [SEP]``."""
    return Piece(
        np.concatenate([[CLS_ID], tokens, [SEP_ID]]).astype(np.int32),
        np.concatenate([[0], _renumber(word_ids), [0]]).astype(np.int32),
    )


def join_parts(parts: Sequence[np.ndarray], word_ids: Sequence[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Parts (title and body, source and target) with [SEP] between them, empty ones left out; words numbered throughout."""
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
    """Cuts ``title [SEP] body`` into pieces of at most ``max_length`` tokens, [CLS] and [SEP] included.

    A cut falls between words, unless one word is longer than a piece; a [SEP] at a cut goes.
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
    """Lengths to which the two sides of a translation pair are cut: the longer side first, down to ``room`` together.

    >>> cut_pair(10, 3, 8)
    (5, 3)
    >>> cut_pair(10, 9, 8)
    (4, 4)
    """
    excess = source + target - room
    if excess <= 0:
        return source, target
    shorter = min(source, target, room // 2)
    return (shorter, min(target, room - shorter)) if source <= target else (min(source, room - shorter), shorter)


def make_row(pieces: Sequence[Piece], max_length: int) -> dict[str, list[int]]:
    """The features of one packed row (`tasks.packed`), each filled up to ``max_length``."""
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
    """Numbers words from 1; 0 stays."""
    first = word_ids[word_ids > 0].min(initial=_LARGEST)
    return np.where(word_ids > 0, word_ids - first + 1, 0)


def _word_start(word_ids: np.ndarray, start: int, end: int) -> int:
    """The last position in (start, end] at which a word or a [SEP] begins; ``end`` if there is none."""
    cut = end
    while cut > start and word_ids[cut] != 0 and word_ids[cut] == word_ids[cut - 1]:
        cut -= 1
    return cut if cut > start else end

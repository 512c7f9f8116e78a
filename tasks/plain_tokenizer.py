"""Our own tokenizer without TensorFlow: the ids of TF-Text, by tables of its characters.

TF-Text folds a text by ICU's NFKC_Casefold, which maps each character on its own and composes the result (Unicode 16,
definition R5 of section 3.13), splits it at characters of two classes, and cuts each word into the longest pieces.
``folding.json`` holds what TF-Text makes of every character; `tests/tasks/make_folding.py` writes it, and a test
compares all characters. ``unicodedata2`` composes them: it has Unicode 16 under every Python.
"""

import bisect
import functools
import itertools
import json
import re
import sys
from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np
import unicodedata2

from ..formats.files import packaged
from ..formats.vocabulary import CONTINUATION, UNK_ID

_MOST_KEPT: Final = 200_000
_LONGEST_KEPT: Final = 40
_BEYOND: Final = re.compile("[\U00010000-\U0010ffff]")  # a class with such ranges costs five times a class without
_LAST_BELOW: Final = 0xFFFF


class PlainTokenizer:
    """The ids that TF-Text gives, see the module.

    Args:
      pieces: in the order of their ids, the special tokens first.
      max_bytes_per_word: longer words are [UNK].
    """

    def __init__(self, pieces: Sequence[str], max_bytes_per_word: int) -> None:
        self._pieces = pieces
        self._longest = max_bytes_per_word
        self._id = {piece: token for token, piece in enumerate(pieces)}
        self._longest_piece = max(map(len, pieces))
        self._chunks = _Memory()
        self._words = _Memory()

    def encode(self, texts: Sequence[str]) -> list[np.ndarray]:
        """Ids of every text, without special tokens: int32 ``[number of pieces]`` each.

        Args:
          texts: without halves of surrogate pairs.
        """
        return [np.array(self._ids(text), np.int32) for text in texts]

    def encode_with_places(self, texts: Sequence[str]) -> list[tuple[np.ndarray, np.ndarray]]:
        """The ids of `encode`, and where their characters are: int32 ``[number of pieces, 2]``, start and end."""
        placed = [list(self._placed(text)) for text in texts]
        ids = ([token for token, _, _ in row] for row in placed)
        places = ([place for _, *place in row] for row in placed)
        return [
            (np.array(own, np.int32), np.array(of, np.int32).reshape(-1, 2))
            for own, of in zip(ids, places, strict=True)
        ]

    def _placed(self, text: str) -> Iterator[tuple[int, int, int]]:
        """The id of each piece, the place of its first character, and the place after its last one."""
        for chunk in re.finditer(r"\S+", text):
            folded = fold(chunk[0])
            ends = folded_ends(chunk[0], folded)
            for word in _words_in(folded):
                start = word.start()
                for token in self._word_ids(word[0]):
                    is_whole = token == UNK_ID
                    length = len(self._pieces[token]) - (len(CONTINUATION) if start > word.start() else 0)
                    end = word.end() if is_whole else start + length
                    # A character may fold to several, and a mark to none: it belongs to the character before it.
                    first, last = bisect.bisect_right(ends, start), bisect.bisect_left(ends, end) + 1
                    yield token, chunk.start() + first, chunk.start() + max(last, bisect.bisect_right(ends, end))
                    start = end

    def _ids(self, text: str) -> list[int]:
        chunks, ids = self._chunks, list[int]()
        # Nothing composes across white space, so that what stands between two of them can be looked up as a whole.
        for chunk in text.split():
            found = chunks.get(chunk)
            ids += self._chunk_ids(chunk) if found is None else found
        return ids

    def _chunk_ids(self, chunk: str) -> list[int]:
        known, ids = self._words, list[int]()
        for word in words(chunk):
            found = known.get(word)
            ids += known.keep(word, self._word_ids(word)) if found is None else found
        return self._chunks.keep(chunk, ids)

    def _word_ids(self, word: str) -> list[int]:
        """The longest piece that the word begins with, the longest that goes on there, and so on; else [UNK]."""
        if len(word.encode()) > self._longest:
            return [UNK_ID]
        ids, start = list[int](), 0
        while start < len(word):
            rest = (CONTINUATION if start else "") + word[start:]
            shown = len(rest) - len(word) + start
            length = next((n for n in range(min(len(rest), self._longest_piece), shown, -1) if rest[:n] in self._id), 0)
            if not length:
                return [UNK_ID]
            ids.append(self._id[rest[:length]])
            start += length - shown
        return ids

    def __getstate__(self) -> tuple[Sequence[str], int]:
        return self._pieces, self._longest

    def __setstate__(self, state: tuple[Sequence[str], int]) -> None:
        self.__init__(*state)  # type: ignore[misc]


class _Memory(dict[str, list[int]]):
    """The ids of texts that occurred; emptied before it fills the memory. Long texts hardly occur again."""

    def keep(self, text: str, ids: list[int]) -> list[int]:
        if len(self) >= _MOST_KEPT:
            self.clear()
        if len(text) <= _LONGEST_KEPT:
            self[text] = ids
        return ids


def words(text: str) -> list[str]:
    """The words of a text as TF-Text folds and splits it; a punctuation mark and a Chinese character are words.

    >>> words("Größe: 5 km² in Köln")
    ['grösse', ':', '5', 'km2', 'in', 'köln']
    """
    return [word[0] for word in _words_in(fold(text))]


def _words_in(folded: str) -> Iterator[re.Match[str]]:
    return _word_pattern(has_beyond=_BEYOND.search(folded) is not None).finditer(folded)


def folded_ends(text: str, folded: str) -> list[int]:
    """How long the first characters of a text are after folding: for each character, with those before it.

    >>> folded_ends("Maße", fold("Maße"))
    [1, 2, 4, 5]
    """
    parts = [fold(character) for character in text]
    if "".join(parts) != folded:  # characters compose
        parts = [fold(text[: number + 1]) for number in range(len(text))]
        return list(itertools.accumulate(map(len, parts), max))
    return list(itertools.accumulate(map(len, parts)))


def fold(text: str) -> str:
    """A text as ``tensorflow_text.case_fold_utf8`` folds it."""
    if text.isascii():
        return text.lower()
    return unicodedata2.normalize("NFC", text.translate(_folded()))


@functools.cache
def _tables() -> dict[str, Any]:
    return json.loads(packaged(__package__, "folding.json"))


@functools.cache
def _folded() -> dict[int, str | int]:
    """What each character becomes before composition, for `str.translate`."""
    return {
        code: code + made if isinstance(made, int) else made
        for first, last, made in _tables()["folded"]
        for code in range(first, last + 1)
    }


@functools.cache
def _word_pattern(*, has_beyond: bool) -> re.Pattern[str]:
    """What matches a word, in texts with or without characters beyond U+FFFF."""
    most = sys.maxunicode if has_beyond else _LAST_BELOW
    alone, spaces = (
        "".join(f"\\U{first:08x}-\\U{min(last, most):08x}" for first, last in _tables()[name] if first <= most)
        for name in ("alone", "spaces")
    )
    return re.compile(f"[{alone}]|[^{alone}{spaces}]+")

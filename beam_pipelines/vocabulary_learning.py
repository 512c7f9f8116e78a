"""Learning WordPieces from words that TF-Text has split, with the same result every time.

Hugging Face's WordPiece trainer is a byte-pair learner that numbers its ``##`` letters in the order of a hash table, so that
equal counts are broken another way on every run. Here the letters inside a word are moved to code points nobody uses, which
makes them letters of their own: the plain byte-pair learner then needs no ``##``, and sorts its letters.
"""

import dataclasses
import itertools
import string
from collections.abc import Callable, Iterable, Iterator
from typing import Final

import numpy as np

from ..tasks.features import SPECIAL_TOKENS
from ..tasks.vocabulary import CONTINUATION

_INSIDE: Final = 0x40000  # added to letters inside a word; planes 4-7 of Unicode hold no characters, planes 0-3 hold all
_SPACE: Final = 32
_TEXTS_AT_ONCE: Final = 512


@dataclasses.dataclass(frozen=True)
class LearnedPieces:
    """What was learned.

    Attributes:
      pieces: special tokens, alphabet, then merges in the order in which they were made.
      alphabet: how many of them are single letters; a letter counts apart at the start of and inside a word.
      words: words read, those with letters outside the alphabet not counted.
      words_outside: words left out for a letter outside the alphabet.
    """

    pieces: tuple[str, ...]
    alphabet: int
    words: int
    words_outside: int


def learn_pieces(read_texts: Callable[[], Iterable[str]], size: int, min_frequency: int, limit_alphabet: int) -> LearnedPieces:
    """Learns a vocabulary by byte-pair merges over words.

    Args:
      read_texts: gives the texts, as `tasks.vocabulary.normalize_for_learning` makes them; called twice.
      size: pieces to learn, the special tokens included; fewer if the texts hold no more.
      min_frequency: letters and pairs that are seen less often are not learned.
      limit_alphabet: at most so many letters, the most frequent, and never more than half of ``size``.
    """
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers

    counts = np.zeros(2 * _INSIDE, np.int64)
    for codes in _code_chunks(read_texts()):
        counts += np.bincount(codes, minlength=2 * _INSIDE)
    alphabet = choose_alphabet(counts, min_frequency, min(limit_alphabet, (size - len(SPECIAL_TOKENS)) // 2))
    allowed = np.zeros(2 * _INSIDE, bool)
    allowed[alphabet] = allowed[_SPACE] = True
    seen = {"words": 0, "outside": 0}
    learner = Tokenizer(models.BPE())
    learner.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    trainer = trainers.BpeTrainer(
        vocab_size=size,
        min_frequency=min_frequency,
        special_tokens=list(SPECIAL_TOKENS),
        initial_alphabet=[chr(code) for code in alphabet.tolist()],
        show_progress=False,
    )
    learner.train_from_iterator(_allowed_texts(read_texts(), allowed, seen), trainer)
    ids = learner.get_vocab()
    pieces = tuple(_as_piece(symbols) for symbols in sorted(ids, key=lambda piece: ids[piece]))
    return LearnedPieces(pieces, len(alphabet), seen["words"], seen["outside"])


def choose_alphabet(counts: np.ndarray, min_frequency: int, limit: int) -> np.ndarray:
    """The most frequent letters, and every Latin letter and digit at both places, as sorted code points.

    Args:
      counts: int64 by code point, letters inside a word moved by ``_INSIDE``.
      min_frequency: rarer letters are left out.
      limit: at most so many, equal counts by code point; the Latin letters come first.
    """
    basic = [ord(letter) + move for move in (0, _INSIDE) for letter in string.ascii_lowercase + string.digits]
    ranked = counts.copy()
    ranked[basic] += counts.sum() + min_frequency  # ahead of all others
    ranked[_SPACE] = 0
    order = np.argsort(-ranked, kind="stable")[:limit]
    return np.sort(order[ranked[order] >= max(1, min_frequency)])


def _code_chunks(texts: Iterable[str]) -> Iterator[np.ndarray]:
    """Code points of many texts at once, uint32, letters inside words moved; words with unusable code points are blanked."""
    iterator = iter(texts)
    while chunk := list(itertools.islice(iterator, _TEXTS_AT_ONCE)):
        codes = np.frombuffer(f" {' '.join(chunk)} ".encode("utf-32-le"), np.uint32).copy()
        _blank_words(codes, codes < _INSIDE)  # private-use planes
        inside = (codes[1:] != _SPACE) & (codes[:-1] != _SPACE)
        codes[1:][inside] += _INSIDE
        yield codes


def _blank_words(codes: np.ndarray, usable: np.ndarray) -> tuple[int, int]:
    """Overwrites, in place, words with a letter that is not usable; returns the numbers of words (kept, blanked)."""
    is_space = codes == _SPACE
    word = np.cumsum(is_space)  # of letters: number of spaces before it
    bad = np.unique(word[~usable])
    words = np.unique(word[~is_space]).size
    if bad.size:
        codes[np.isin(word, bad) & ~is_space] = _SPACE
    return words - bad.size, bad.size


def _allowed_texts(texts: Iterable[str], allowed: np.ndarray, seen: dict[str, int]) -> Iterator[str]:
    for codes in _code_chunks(texts):
        kept, outside = _blank_words(codes, allowed[codes])
        seen["words"] += kept
        seen["outside"] += outside
        yield codes.tobytes().decode("utf-32-le")


def _as_piece(symbols: str) -> str:
    if symbols in SPECIAL_TOKENS:
        return symbols
    text = "".join(chr(ord(symbol) % _INSIDE) for symbol in symbols)
    return CONTINUATION + text if ord(symbols[0]) >= _INSIDE else text

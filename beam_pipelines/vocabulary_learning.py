"""Deterministic learning of WordPieces from word counts.

Hugging Face's WordPiece trainer is a byte-pair learner that numbers its ``##`` letters in the order of a hash table, so
ties between counts are broken differently in every run. Here each letter, at the start of a word and inside a word, is
renamed to its own code point, by frequency. The plain byte-pair learner then needs no ``##`` and sorts its letters.
"""

import collections
import dataclasses
import itertools
import string
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final

from ..formats.vocabulary import CONTINUATION, SPECIAL_TOKENS

Letter = tuple[bool, str]  # (inside a word, the letter)
_COPIES_AT_ONCE: Final = 4_096
_SURROGATES: Final = range(0xD800, 0xE000)
_BASIC: Final = tuple((inside, letter) for inside in (False, True) for letter in string.ascii_lowercase + string.digits)


@dataclasses.dataclass(frozen=True, slots=True, order=True)
class WordCount:
    """A word and its count in the sample."""

    word: str
    count: int


@dataclasses.dataclass(frozen=True)
class LearnedPieces:
    """A learned vocabulary.

    Attributes:
      pieces: special tokens, alphabet by frequency, then merges in the order in which they were made.
      alphabet: number of single letters; a letter at the start of a word and inside a word are two letters.
      words: total count of the words that were used.
      words_outside: total count of the words that were left out because of a letter outside the alphabet.
    """

    pieces: tuple[str, ...]
    alphabet: int
    words: int
    words_outside: int


def learn_pieces(
    read_words: Callable[[], Iterable[WordCount]], size: int, min_frequency: int, limit_alphabet: int
) -> LearnedPieces:
    """Learns a vocabulary by byte-pair merges inside words.

    Args:
      read_words: returns the words, normalised by `tasks.vocabulary.normalize_for_learning`; called twice.
      size: number of pieces to learn, including special tokens; fewer if the words have no more.
      min_frequency: letters and pairs with lower counts are not learned.
      limit_alphabet: largest number of letters, the most frequent first; never more than half of ``size``.
    """
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers

    most = min(limit_alphabet, (size - len(SPECIAL_TOKENS)) // 2)
    alphabet = choose_alphabet(_count_letters(read_words()), min_frequency, most)
    names = dict(zip(alphabet, _code_points(), strict=False))
    learner = Tokenizer(models.BPE())
    learner.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    trainer = trainers.BpeTrainer(
        vocab_size=size - len(SPECIAL_TOKENS),
        min_frequency=min_frequency,
        initial_alphabet=list(names.values()),
        show_progress=False,
    )
    seen = {"words": 0, "outside": 0}
    learner.train_from_iterator(_renamed(read_words(), names, seen), trainer)
    ids = learner.get_vocab()
    letters = {name: letter for letter, name in names.items()}
    learned = (_as_piece([letters[name] for name in piece]) for piece in sorted(ids, key=lambda piece: ids[piece]))
    return LearnedPieces((*SPECIAL_TOKENS, *learned), len(alphabet), seen["words"], seen["outside"])


def choose_alphabet(counts: Mapping[Letter, int], min_frequency: int, limit: int) -> list[Letter]:
    """Returns the most frequent letters, and every basic Latin letter and digit at the start of and inside words.

    Args:
      counts: count of each letter.
      min_frequency: letters with lower counts are left out.
      limit: largest number of letters; Latin letters and digits precede all others, ties are broken by code point.

    Returns:
      Letters by falling count.
    """
    basic = set(_BASIC)
    candidates = basic | {letter for letter, count in counts.items() if count >= min_frequency}
    chosen = sorted(candidates, key=lambda letter: (letter not in basic, -counts.get(letter, 0), letter))[:limit]
    return sorted(chosen, key=lambda letter: (-counts.get(letter, 0), letter))


def _count_letters(words: Iterable[WordCount]) -> collections.Counter[Letter]:
    counts: collections.Counter[Letter] = collections.Counter()
    for word in words:
        for position, letter in enumerate(word.word):
            counts[position > 0, letter] += word.count
    return counts


def _code_points() -> Iterator[str]:
    """Yields printable code points, the shortest in UTF-8 first, because the time of the learner depends on bytes."""
    for code in itertools.chain(range(ord("!"), _SURROGATES.start), range(_SURROGATES.stop, 0x110000)):
        if not chr(code).isspace():
            yield chr(code)


def _renamed(words: Iterable[WordCount], names: Mapping[Letter, str], seen: dict[str, int]) -> Iterator[str]:
    """Yields texts that repeat each renamed word as often as its count, because the learner takes no counts."""
    for word in words:
        try:
            name = "".join([names[position > 0, letter] for position, letter in enumerate(word.word)])
        except KeyError:
            seen["outside"] += word.count
            continue
        seen["words"] += word.count
        if len(name) == 1:
            continue  # nothing to merge: its letter is in the alphabet
        for start in range(0, word.count, _COPIES_AT_ONCE):
            yield f"{name} " * min(_COPIES_AT_ONCE, word.count - start)


def _as_piece(letters: list[Letter]) -> str:
    text = "".join(letter for _, letter in letters)
    return CONTINUATION + text if letters[0][0] else text

"""Counts words and sentences in any of the 101 languages, also in scripts without spaces or full stops."""

import itertools
import re
from typing import Final

from ...tasks.sentences import CLOSING_QUOTES, FULL_WIDTH_CLOSING, FULL_WIDTH_MARKS, SPACED_MARKS

# Characters per word in scripts written without spaces. Han: in NTREX-128's Chinese translation 69,682 characters
# correspond to 40,353 English words. The others are typical means of segmented text, to one digit, which is enough for
# a threshold of a hundred words. In Thai, Lao, Burmese and Khmer, vowels and tones count as characters.
_UNSPACED: Final = (
    (re.compile("[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]"), 1.7),
    (re.compile("[\u3040-\u30ff\u31f0-\u31ff\uff66-\uff9d]"), 2.0),  # kana
    (re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff]"), 4.0),
)
_TIBETAN_SYLLABLE: Final = re.compile("[\u0f40-\u0fbc]+")
_SYLLABLES_PER_WORD: Final = 2
_ANY_UNSPACED: Final = re.compile(f"[{''.join(pattern.pattern[1:-1] for pattern, _ in _UNSPACED)}\u0f40-\u0fbc]")

# Marks that end a sentence if a space follows, then marks of other scripts that need no space.
_SPACED_MARKS: Final = SPACED_MARKS + "\u0589"
_UNSPACED_MARKS: Final = FULL_WIDTH_MARKS + "\uff61\u0964\u0965\u104b\u17d4\u17d5\u0f0d\u0f0e\u1362"
_CLOSING: Final = CLOSING_QUOTES + "\u00bb)" + FULL_WIDTH_CLOSING
_THAI_OR_LAO: Final = "\u0e00-\u0eff"  # written without a mark at the end of a sentence, and with a space there
_SENTENCE_END: Final = re.compile(
    rf"[{_SPACED_MARKS}]+[{_CLOSING}]*(?:\s|$)|[{_UNSPACED_MARKS}]+|(?<=[{_THAI_OR_LAO}])(?:\s+|$)",
)
_TERMINAL: Final = tuple(_SPACED_MARKS + _UNSPACED_MARKS + _CLOSING + ":;")
_ENDS_THAI_OR_LAO: Final = re.compile(rf"[{_THAI_OR_LAO}]$")
_MIN_WORDS_OF_UNMARKED_SENTENCE: Final = 8


def count_words(text: str) -> int:
    """Returns the number of words of a text; for scripts without spaces, an estimate from the number of characters.

    >>> count_words("two words"), count_words("\u65b0\u805e\u8a18\u4e8b")
    (2, 2)
    """
    if text.isascii() or not _ANY_UNSPACED.search(text):
        return len(text.split())
    syllables = len(_TIBETAN_SYLLABLE.findall(text))
    unspaced = sum(len(pattern.findall(text)) / characters for pattern, characters in _UNSPACED)
    spaced = _ANY_UNSPACED.sub(" ", text)
    return (
        sum(any(map(str.isalnum, word)) for word in spaced.split()) + int(unspaced) + syllables // _SYLLABLES_PER_WORD
    )


def count_sentences(text: str, most: int | None = None) -> int:
    """Returns the number of sentence ends in a text.

    >>> count_sentences("One. Two? No"), count_sentences("\u4eca\u65e5\u3002\u660e\u65e5\u3002")
    (2, 2)

    Args:
      text: the text.
      most: counting stops at this number; ``None`` counts all.
    """
    return sum(1 for _ in itertools.islice(_SENTENCE_END.finditer(text), most))


def ends_sentence(line: str) -> bool:
    """Returns whether a line ends like a sentence; in Thai and Lao, without full stops, whether it is long enough."""
    if line.endswith(_TERMINAL):
        return True
    return bool(_ENDS_THAI_OR_LAO.search(line)) and count_words(line) >= _MIN_WORDS_OF_UNMARKED_SENTENCE

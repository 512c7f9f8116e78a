"""How names sound: finds the Latin spelling of a name that is written in another script.

A word becomes Latin letters (``anyascii``), then a key of its consonants in classes: Arabic has no "p", Cyrillic has no
"w", and some scripts write few vowels. Words with the same key are compared letter by letter.
"""

import functools
import re
from collections.abc import Iterable, Mapping
from typing import Final

# Spellings of one sound, replaced in this order.
_SPELLINGS: Final = (
    *(
        ("augh", "o"),
        ("ough", "o"),
        ("shch", "s"),
        ("tsch", "s"),
        ("sch", "s"),
        ("dzh", "j"),
        ("dj", "j"),
        ("zh", "j"),
        ("kh", "h"),
        ("gh", "g"),
    ),
    *(("ph", "f"), ("qu", "k"), ("ch", "s"), ("sh", "s"), ("ts", "s"), ("tz", "s"), ("th", "t")),
    *(("x", "ks"), ("ce", "se"), ("ci", "si"), ("cy", "si"), ("c", "k"), ("q", "k")),
)
_NASAL: Final = re.compile("\u0902(?=(.?))")  # of Devanagari: "m" before "p" and "b", else "n"
_LABIALS: Final = tuple("\u092a\u092b\u092c\u092d\u092e")
_CLASSES: Final = str.maketrans({"b": "p", "v": "f", "d": "t", "g": "k", "z": "s"})
_SILENT: Final = re.compile(r"[aeiouyh'`]|(?<!^)w")
_REPEATED: Final = re.compile(r"(.)\1+")
_VOWELS: Final = frozenset("aeiouyw")
_LATIN: Final = re.compile(r"[A-Z\u00c0-\u00de][A-Za-z\u00c0-\u024f'\u2019-]{3,}")
_SHORTEST_KEY: Final = 3  # consonants
_LEAST_LETTERS: Final = 3.9  # of a word, where a vowel counts as half a letter
_MOST_WITH_A_KEY: Final = 12  # words, the most frequent first
_VOWEL_COST: Final = 0.3  # of a vowel that one of the words lacks, in consonants
_SIMILAR_COST: Final = 0.25  # of two letters that stand for each other
_SIMILAR: Final = tuple(map(frozenset, ("bp", "vfw", "dt", "gkh", "szj", "iyej", "uow", "ae", "oa")))


@functools.lru_cache(maxsize=200_000)
def letters_of(word: str) -> str:
    r"""Returns a word in lower-case Latin letters, each sound spelled in one way.

    >>> letters_of("\u041f\u0443\u0442\u0438\u043d"), letters_of("Khashoggi")
    ('putin', 'hasogi')
    """
    from anyascii import anyascii

    letters = anyascii(_NASAL.sub(lambda found: "\u092e" if found[1] in _LABIALS else "\u0928", word)).lower()
    for spelling, sound in _SPELLINGS:
        if spelling in letters:
            letters = letters.replace(spelling, sound)
    return _REPEATED.sub(r"\1", letters)


@functools.lru_cache(maxsize=200_000)
def sound_key(word: str) -> str:
    r"""Returns the classes of the consonants of a word.

    >>> sound_key("Trump") == sound_key("\u062a\u0631\u0627\u0645\u0628") == "trmp"
    True
    """
    letters = letters_of(word)
    if letters.startswith("w"):
        letters = f"f{letters[1:]}"
    return _REPEATED.sub(r"\1", _SILENT.sub("", letters).translate(_CLASSES))


def similarity(left: str, right: str) -> float:
    """Returns how alike two words sound, in [0, 1]: 1 less the cost of edits, relative to the longer word.

    Args:
      left: letters, see :func:`letters_of`.
      right: letters.
    """
    costs = [0.0]
    for letter in right:
        costs.append(costs[-1] + _drop_cost(letter))
    for one in left:
        above, costs[0] = costs[0], costs[0] + _drop_cost(one)
        for place, other in enumerate(right, 1):
            change = above + _change_cost(one, other)
            above = costs[place]
            costs[place] = min(change, above + _drop_cost(one), costs[place - 1] + _drop_cost(other))
    longest = max(sum(_drop_cost(letter) for letter in word) for word in (left, right))
    return max(0.0, 1 - costs[-1] / longest) if longest else 0.0


def _drop_cost(letter: str) -> float:
    return _VOWEL_COST if letter in _VOWELS or letter in "h'" else 1.0


@functools.cache
def _change_cost(one: str, other: str) -> float:
    if one == other:
        return 0.0
    if any(one in letters and other in letters for letters in _SIMILAR):
        return _SIMILAR_COST * max(_drop_cost(one), _drop_cost(other))
    return max(_drop_cost(one), _drop_cost(other))


class Spellings:
    """Finds the Latin word that a word of another script spells.

    Args:
      words: rank by word; of words that are equally alike, the one with the lowest rank is meant.
    """

    def __init__(self, words: Mapping[str, int]) -> None:
        found: dict[str, list[str]] = {}
        for word in sorted(words, key=lambda word: (words[word], word)):
            if _LATIN.fullmatch(word) and not word.isupper():
                same = found.setdefault(sound_key(word), [])
                if len(same) < _MOST_WITH_A_KEY:
                    same.append(word)
        self._found = found
        self._closest = functools.lru_cache(maxsize=200_000)(self._find)

    def closest(self, word: str) -> tuple[str, float]:
        """Returns the Latin word that sounds most like a word, and how much; ("", 0) if there is none."""
        return self._closest(word)

    def _find(self, word: str) -> tuple[str, float]:
        key, letters = sound_key(word), letters_of(word)
        if len(key) < _SHORTEST_KEY or sum(0.5 if one in _VOWELS else 1.0 for one in letters) < _LEAST_LETTERS:
            return "", 0.0
        found = [(similarity(letters, letters_of(other)), -place, other) for place, other in enumerate(self._same(key))]
        score, _, best = max(found, default=(0.0, 0, ""))
        return best, score

    def _same(self, key: str) -> Iterable[str]:
        return self._found.get(key, ())

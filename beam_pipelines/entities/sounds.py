"""How names sound: finds the Latin spelling of a name that is written in another script.

A word becomes letters that each stand for one sound, then a key of its consonants in classes: Arabic has no "p",
Cyrillic has no "w", and some scripts write few vowels. Words with the same key are compared letter by letter. English
reads one letter in several ways, so a Latin word has several readings.
"""

import functools
import itertools
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from importlib import resources
from typing import Any, Final

_TABLES: Final = json.loads(resources.files(__package__).joinpath("sounds.json").read_text(encoding="utf-8"))
_SPELLINGS: Final = tuple(map(tuple, _TABLES["spellings"]))  # of one sound in Latin letters, replaced in this order
_READINGS: Final = tuple((re.compile(pattern), other) for pattern, other in _TABLES["readings"])
_ARABIC: Final = str.maketrans(_TABLES["arabic"])
_DEVANAGARI: Final[Mapping[str, str]] = _TABLES["devanagari"]
_CHINESE: Final[Mapping[str, str]] = _TABLES["chinese_sounds"]  # where they differ from Pinyin
_PINYIN: Final = {"zh": "j", "x": "sh", "q": "ch", "c": "ts", "w": "v"}
_LABIAL_NASAL: Final = re.compile("n(?=[pb])")
_SIGNS: Final = frozenset(
    "\u093e\u093f\u0940\u0941\u0942\u0943\u0945\u0947\u0948\u0949\u094b\u094c\u094d"
)  # vowels, none
_UNWRITTEN: Final = "\u0259"  # the vowel after a consonant of Devanagari, which may be silent
_NASAL: Final = re.compile("\u0902(?=(.?))")  # of Devanagari: "m" before "p" and "b", else "n"
_LABIALS: Final = tuple("\u092a\u092b\u092c\u092d\u092e")
_CLASSES: Final = str.maketrans(
    {"b": "p", "v": "f", "d": "t", "g": "k", "z": "s", "š": "s", "č": "s", "ž": "s", "j": "s"}
)
_SILENT: Final = re.compile(r"[aeiouyhə'`]|(?<!^)w")
_REPEATED: Final = re.compile(r"(.)\1+")
_VOWELS: Final = frozenset("aeiouywə")
_LATIN: Final = re.compile(r"[A-Z\u00c0-\u00de][A-Za-z\u00c0-\u024f'\u2019-]*")
_MOST_READINGS: Final = 6  # of a Latin word
_SHORTEST_WORD: Final = 4  # letters of a Latin word that another script may spell alone
_SHORTEST_KEY: Final = 3  # consonants
_SHORTEST_PAIR: Final = 4  # consonants of two words
_LEAST_LETTERS: Final = 3.9  # of a word, where a vowel counts as half a letter
_MOST_WITH_A_KEY: Final = 24  # words, the most frequent first
_LEAST_OF_A_PAIR: Final = 0.8  # similarity of each word
TRANSCRIBING: Final = frozenset(_TABLES["chinese"])  # the characters with which Chinese writes foreign names
ALSO_WORDS: Final = frozenset(_TABLES["chinese_words"])  # those of them that are often words of their own beside names
_LEAST_CHINESE: Final = 0.93  # similarity of a name in Chinese
_NEVER_FIRST: Final = "\u5c14\u59c6"  # of Chinese: they end syllables
_SHORTEST_CHINESE_KEY: Final = 4  # consonants
_NEARLY_EQUAL: Final = 0.02  # similarities
_VOWEL_COST: Final = 0.3  # of a vowel that one of the words lacks, in consonants
_UNWRITTEN_COST: Final = 0.1
_ROUNDING: Final = 1e-9
_LEAST_LIKENESS: Final = 0.8  # less is not looked at
_OTHER_READING: Final = 0.03  # similarity that a less likely reading takes away
_SIMILAR_COST: Final = 0.25  # of two letters that stand for each other
_SIMILAR: Final = tuple(map(frozenset, ("bp", "vfw", "dt", "gkh", "szšžčj", "iyej", "uow", "ae", "oa")))
# Sounds that a script does not tell apart: it cannot write the first one.
_NOT_WRITTEN: Final = {
    "arabic": str.maketrans({"p": "b", "v": "f", "o": "u", "w": "u", "e": "i", "y": "i"}),
    "devanagari": str.maketrans({"z": "j", "ž": "j", "w": "v"}),
    "cyrillic": str.maketrans({"w": "v"}),
    "chinese": str.maketrans({"r": "l", "w": "v", "o": "a", "u": "a", "e": "a"}),
    "": str.maketrans({}),
}
_SCRIPTS: Final = (
    ("cyrillic", "\u0400", "\u052f"),
    ("arabic", "\u0600", "\u06ff"),
    ("devanagari", "\u0900", "\u097f"),
)


def _script(word: str) -> str:
    return next((name for name, first, last in _SCRIPTS if first <= word[0] <= last), "")


@functools.lru_cache(maxsize=200_000)
def letters_of(word: str) -> str:
    r"""Returns a word in lower-case letters, each sound written in one way; "š", "č" and "ž" for "sh", "ch" and "zh".

    >>> letters_of("\u041f\u0443\u0442\u0438\u043d"), letters_of("Khashoggi"), letters_of("\u0936\u0930\u094d\u092e")
    ('putin', 'hašogi', 'šərm')
    """
    from anyascii import anyascii

    if "\u0600" <= word[:1] <= "\u06ff":
        letters = word.translate(_ARABIC)
    elif "\u0900" <= word[:1] <= "\u097f":
        letters = _from_devanagari(word)
    else:
        letters = word
    if not letters.isascii() and letters == word:
        letters = str(anyascii(word))
    return _sounds(letters.lower())


def _sounds(letters: str) -> str:
    for spelling, sound in _SPELLINGS:
        if spelling in letters:
            letters = letters.replace(spelling, sound)
    return _REPEATED.sub(r"\1", letters)


def _from_devanagari(word: str) -> str:
    word = _NASAL.sub(lambda found: "\u092e\u094d" if found[1] in _LABIALS else "\u0928\u094d", word)
    found = []
    for letter, following in itertools.pairwise((*word, "")):
        found.append(_DEVANAGARI.get(letter, ""))
        if "\u0915" <= letter <= "\u0939" and following and following not in _SIGNS:
            found.append(_UNWRITTEN)
    return "".join(found)


@functools.lru_cache(maxsize=50_000)
def readings(word: str) -> tuple[str, ...]:
    """Returns how a Latin word may sound, as letters, the first one by the usual rules.

    >>> readings("Virginia"), readings("Wilson")[1]
    (('virginia', 'virjinia'), 'uilson')
    """
    found = [word.lower()]
    for pattern, other in _READINGS:
        found += [pattern.sub(other, one) for one in found if pattern.search(one)]
    return tuple(dict.fromkeys(map(letters_of, found[:_MOST_READINGS])))


def _key(letters: str) -> str:
    if letters.startswith("w"):
        letters = f"f{letters[1:]}"
    return _REPEATED.sub(r"\1", _SILENT.sub("", letters).translate(_CLASSES))


@functools.lru_cache(maxsize=200_000)
def sound_key(word: str) -> str:
    r"""Returns the classes of the consonants of a word.

    >>> sound_key("Trump") == sound_key("\u062a\u0631\u0627\u0645\u0628") == "trmp"
    True
    """
    return _key(letters_of(word))


def similarity(left: str, right: str, least: float = 0.0) -> float:
    """Returns how alike two words sound, in [0, 1]: 1 less the cost of edits, relative to the longer word.

    Args:
      left: letters, see :func:`letters_of`.
      right: letters.
      least: 0 is returned as soon as it is certain that the result is less than this.
    """
    drops = [_drop_cost(letter) for letter in right]
    costs = [*itertools.accumulate(drops, initial=0.0)]
    longest = max(sum(map(_drop_cost, left)), sum(drops))
    most = (1 - least) * longest + _ROUNDING
    for one in left:
        drop = _drop_cost(one)
        above = costs[0]
        costs[0] = best = above + drop
        for place, other in enumerate(right, 1):
            change = above + _change_cost(one, other)
            above = costs[place]
            costs[place] = best = min(change, above + drop, best + drops[place - 1])
        if min(costs) > most:
            return 0.0
    return max(0.0, 1 - costs[-1] / longest) if longest else 0.0


@functools.cache
def _drop_cost(letter: str) -> float:
    if letter == _UNWRITTEN:
        return _UNWRITTEN_COST
    return _VOWEL_COST if letter in _VOWELS or letter in "h'" else 1.0


@functools.cache
def _change_cost(one: str, other: str) -> float:
    if one == other:
        return 0.0
    is_unwritten = _UNWRITTEN in (one, other) and {one, other} <= _VOWELS
    if is_unwritten or any(one in letters and other in letters for letters in _SIMILAR):
        return _SIMILAR_COST * max(_drop_cost(one), _drop_cost(other))
    return max(_drop_cost(one), _drop_cost(other))


def _likeness(word: str, latin: str, least: float = 0.0) -> float:
    """Returns how much a word of another script sounds like a Latin one, in its best reading; the first counts more.

    Readings that cannot be more alike than ``least`` are not compared.
    """
    script = _script(word)
    own, best = letters_of(word).translate(_NOT_WRITTEN[script]), least
    for place, reading in enumerate(_heard(latin, script)):
        weights = _weight(own), _weight(reading)
        if 1 - abs(weights[0] - weights[1]) / max(weights) > best:
            less = _OTHER_READING if place else 0
            best = max(best, similarity(own, reading, best + less) - less)
    return best


@functools.lru_cache(maxsize=50_000)
def _heard(latin: str, script: str) -> tuple[str, ...]:
    return tuple(reading.translate(_NOT_WRITTEN[script]) for reading in readings(latin))


@functools.lru_cache(maxsize=50_000)
def _weight(letters: str) -> float:
    return sum(map(_drop_cost, letters)) or 1.0


def _from_chinese(text: str) -> str:
    """Returns the letters of characters that write a foreign name by sound."""
    from anyascii import anyascii

    letters = "".join(_CHINESE.get(one) or _from_pinyin(str(anyascii(one)).lower()) for one in text)
    return _REPEATED.sub(r"\1", _sounds(_LABIAL_NASAL.sub("m", letters)).translate(_NOT_WRITTEN["chinese"]))


def _from_pinyin(syllable: str) -> str:
    initial = next((one for one in _PINYIN if syllable.startswith(one)), "")
    return f"{_PINYIN.get(initial, '')}{syllable[len(initial) :]}".replace("ng", "n")


def _read_in_chinese(word: str) -> tuple[str, ...]:
    """Returns the readings of a Latin word with the sounds that Chinese has; a first "h" is no "g" as in Cyrillic."""
    found = (one for one in readings(word) if not (one.startswith("g") and word.startswith("H")))
    return tuple(dict.fromkeys(one.translate(_NOT_WRITTEN["chinese"]).replace("ng", "n") for one in found))


def _chinese_key(letters: str) -> str:
    """Returns the key of letters as in Chinese, which ends few syllables with "m"."""
    return _REPEATED.sub(r"\1", _key(letters).replace("m", "n"))


class Spellings:
    """Finds the Latin words that words of another script spell.

    Args:
      words: rank by word; of words that are equally alike, the one with the lowest rank is meant.
      names: the words of names of several words, for :meth:`closest_pair`.
    """

    def __init__(self, words: Mapping[str, int], names: Iterable[Sequence[str]] = ()) -> None:
        self._found: dict[str, list[str]] = {}
        ranked = sorted(words, key=lambda word: (words[word], word))
        self._words = [word for word in ranked if len(word) >= _SHORTEST_WORD and _is_spelled(word)]
        for word in self._words:
            for key in dict.fromkeys(map(_key, readings(word))):
                _add(self._found, key, word)
        self._pairs: dict[tuple[str, str], list[tuple[str, str]]] = {}
        pairs = {pair for name in names for pair in itertools.pairwise(name) if pair[0] in words and pair[1] in words}
        for left, right in sorted(pairs, key=lambda pair: (max(words[pair[0]], words[pair[1]]), pair)):
            if _is_spelled(left) and _is_spelled(right):
                keys = ({_key(reading) for reading in readings(word)} for word in (left, right))
                for both in itertools.product(*map(sorted, keys)):
                    _add(self._pairs, both, (left, right))
        self._closest = functools.lru_cache(maxsize=200_000)(self._find)
        self._in_chinese: dict[str, list[str]] | None = None
        self._transcribed = functools.lru_cache(maxsize=200_000)(self._find_chinese)

    def closest(self, word: str) -> tuple[str, float]:
        """Returns the Latin word that sounds most like a word, and how much; ("", 0) if it is less than 0.8."""
        return self._closest(word)

    def _find(self, word: str) -> tuple[str, float]:
        key, letters = sound_key(word), letters_of(word)
        if len(key) < _SHORTEST_KEY or sum(0.5 if one in _VOWELS else 1.0 for one in letters) < _LEAST_LETTERS:
            return "", 0.0
        best, score = "", 0.0
        for other in self._found.get(key, ()):
            likeness = _likeness(word, other, max(score, _LEAST_LIKENESS))
            if likeness > max(score, _LEAST_LIKENESS):
                best, score = other, likeness
        return best, score

    def closest_pair(self, left: str, right: str) -> tuple[tuple[str, str], float]:
        """Returns the two Latin words, one after the other in a name, that sound most like two words, and how much.

        Short words such as "Jeff" are found this way only. The score is the mean of both; 0 if there is no such pair.
        """
        keys = sound_key(left), sound_key(right)
        best = ("", ""), 0.0
        if len("".join(keys)) >= _SHORTEST_PAIR:
            for pair in self._pairs.get(keys, ()):
                scores = [_likeness(*one, _LEAST_OF_A_PAIR) for one in zip((left, right), pair, strict=True)]
                if min(scores) > _LEAST_OF_A_PAIR and sum(scores) / 2 > best[1]:
                    best = pair, sum(scores) / 2
        return best

    def transcribed(self, characters: str) -> str:
        """Returns the Latin word that Chinese characters write by sound, "" if none sounds enough alike."""
        return self._transcribed(characters)

    def _find_chinese(self, characters: str) -> str:
        if self._in_chinese is None:
            found: dict[str, list[str]] = {}
            for word in self._words:
                for key in dict.fromkeys(map(_chinese_key, _read_in_chinese(word))):
                    _add(found, key, word)
            self._in_chinese = found
        letters = _from_chinese(characters)
        key = _chinese_key(letters)
        if len(key) < _SHORTEST_CHINESE_KEY or characters[0] in _NEVER_FIRST:
            return ""
        best, least = "", _LEAST_CHINESE
        for word in self._in_chinese.get(key, ()):
            score = max(similarity(letters, reading, least) for reading in _read_in_chinese(word))
            if score >= least:  # later words are less frequent
                best, least = word, score + _NEARLY_EQUAL
        return best


def _is_spelled(word: str) -> bool:
    return bool(_LATIN.fullmatch(word)) and not word.isupper()


def _add(found: dict[Any, list[Any]], key: Any, item: Any) -> None:
    same = found.setdefault(key, [])
    if len(same) < _MOST_WITH_A_KEY:
        same.append(item)

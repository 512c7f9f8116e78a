"""Which known word a word of a text means: by its ending, by a word that is written at its start, or by its sound.

The Latin spelling of a name in another script is found by sound. A word becomes letters that each stand for one sound,
then a key of its consonants in classes: Arabic has no "p", Cyrillic has no "w", and some scripts write few vowels.
Words with the same key are compared letter by letter. English reads one letter in several ways, so a Latin word has
several readings. The rules of languages and scripts are in ``spellings.json``.
"""

import functools
import itertools
import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from ...formats.files import packaged
from ...tasks.sentences import UNSPACED

_RULES: Final = json.loads(packaged(__package__, "spellings.json"))
ARABIC_ARTICLE: Final = "\u0627\u0644"
_SAME_LETTERS: Final = {
    **{ord(letter): same for letters, same in _RULES["same_letters"].items() for letter in letters},
    # A stroke that lengthens words, short vowels of Arabic, vowels of Hebrew, and the dot below of Devanagari.
    **dict.fromkeys([0x640, *range(0x64B, 0x660), 0x670, *range(0x5B0, 0x5C8), 0x93C]),
    **{0x958 + place: letter for place, letter in enumerate("\u0915\u0916\u0917\u091c\u0921\u0922\u092b\u092f")},
}
_MARKED: Final = re.compile(r"[\u05b0-\u05c7\u0610-\u06ff\u0900-\u097f]")
# By script: its first and last letter, what is written at the start of words, endings of words and of names, and the
# least number of letters that are left without them. Arabic names of fewer letters are stems of common words, too.
_SCRIPTS: Final[Mapping[str, Any]] = _RULES["scripts"]
_LATIN_ENDINGS: Final[Mapping[str, Sequence[str]]] = _RULES["latin"]  # by language; one may replace another
_ELISIONS: Final[Mapping[str, Sequence[str]]] = _RULES["elisions"]
_WITH_COMPOUNDS: Final = ("de", "nl", "sv", "da", "no", "nb", "fi", "hu")
_SHORTEST: Final = 3  # letters of a word that may be a form
_SHORTEST_LATIN_STEM: Final = 5  # of a word whose ending is replaced by another
_LONGEST_PARTICLE: Final = 4  # of Korean, after a name
_BETWEEN: Final = "  "  # the parts of a divided word; no word has a space
_NOT_LATIN: Final = "\u0250"  # letters from here on are of other scripts
_UNSPACED: Final = re.compile(rf"{UNSPACED}|[\uac00-\ud7a3]")
_WITH_ARTICLE: Final = re.compile("[\u0648\u0641\u0628]?(\u0627\u0644|\u0644\u0644)")  # Arabic; no foreign name
_MOST_REMEMBERED: Final = 300_000  # words
_MOST_WITH_A_KEY: Final = 24  # words, the most frequent first
_SHORTEST_SPELLED: Final = 4  # letters of a Latin word that another script may spell alone
_SHORTEST_KEY: Final = 3  # consonants of such a word; words with three must be more alike
_SHORTEST_PAIR: Final = 4  # consonants of two words
_LEAST_LETTERS: Final = 3.9  # of a word, where a vowel counts as half a letter
# Least similarity of a spelling, more for one with three consonants and for one without a capital, which may be a
# common word; of the mean of two words that follow each other in a name, and of each of the two.
_LEAST, _MORE_IF_SHORT, _MORE_WITHOUT_CAPITAL = 0.91, 0.03, 0.04
_LEAST_OF_A_PAIR, _LEAST_IN_A_PAIR = 0.9, 0.8
_VOWELS: Final = frozenset("aeiouywə")
_UNWRITTEN: Final = "\u0259"  # the vowel after a consonant of Devanagari, which may be silent
_VOWEL_COST, _UNWRITTEN_COST = 0.3, 0.1  # of a letter that one of the words lacks, in consonants
_SIMILAR_COST: Final = 0.25  # of two letters that stand for each other
_SIMILAR: Final = tuple(map(frozenset, ("bp", "vfw", "dt", "gkh", "szšžčj", "iyej", "uow", "ae", "oa")))
_OTHER_READING: Final = 0.03  # similarity that a less likely reading takes away
_MOST_READINGS: Final = 6  # of a Latin word
_READINGS: Final = tuple((re.compile(pattern), other) for pattern, other in _RULES["readings"])
_ROUNDING: Final = 1e-9
_CLASSES: Final = str.maketrans("bvdgzščžj", "pftksssss")
_SILENT: Final = re.compile(r"[aeiouyhə'`]|(?<!^)w")
_REPEATED: Final = re.compile(r"(.)\1+")
_LATIN: Final = re.compile(r"[A-Z\u00c0-\u00de][A-Za-z\u00c0-\u024f'\u2019-]*")
_LETTERS: Final = str.maketrans(_RULES["letters"])  # of Arabic and Devanagari
_PLURALS: Final = tuple(_RULES["plurals"])  # of Devanagari
_SILENT_VOWEL: Final = re.compile(  # a consonant of Devanagari before another letter that is no sign of a vowel
    "([\u0915-\u0939])(?=[^\u093e-\u0943\u0945\u0947-\u0949\u094b-\u094d])"
)
_NASAL: Final = re.compile("\u0902(?=(.?))")  # of Devanagari: "m" before letters such as "p" and "b", else "n"
# Sounds that a script cannot write, as it writes them.
_NOT_WRITTEN: Final = {
    "cyrillic": str.maketrans("w", "v"),
    "arabic": str.maketrans("pvowey", "bfuuii"),
    "devanagari": str.maketrans("zžw", "jjv"),
    "": {},
}


def normal_letters(text: str) -> str:
    r"""Returns a text without the marks and variants of letters that writers of Arabic, Hebrew and Hindi leave out.

    >>> normal_letters("\u0623\u0645") == "\u0627\u0645"
    True
    """
    return text.translate(_SAME_LETTERS) if not text.isascii() and _MARKED.search(text) else text


class Spellings:
    """Replaces forms and spellings of known words by the known word.

    Args:
      words: the words of all names, with normal letters. The words with a lower number are meant first where spellings
        of other scripts are equally alike.
      limits: the languages of words that are in names of some languages only.
      spelled: the words that other scripts may spell; None for all words.
      names: the words of names of several words, which other scripts may spell.
    """

    def __init__(
        self,
        words: Mapping[str, int],
        limits: Mapping[str, Collection[str]],
        spelled: Iterable[str] | None = None,
        names: Iterable[Sequence[str]] = (),
    ) -> None:
        self._words, self._limits, self._names = words, limits, names
        self._spelled = words if spelled is None else spelled
        self._stems_of = functools.cache(self._find_stems)
        self._meant = functools.cache(lambda base: _Meant(functools.partial(self._find, language=base)))
        self._by_sound = functools.lru_cache(_MOST_REMEMBERED)(self._find_by_sound)  # the same in all languages

    def apply(self, words: Sequence[str], language: str) -> list[str]:
        """Returns the words of a text, with known words instead of their forms and spellings.

        A word with a hyphen or an elided article may become several words.

        Args:
          words: words of a text, with normal letters.
          language: BCP-47 tag of the text; decides which endings words in Latin letters have.
        """
        found = [*map(self._meant(language.partition("-")[0]).__getitem__, words)]
        is_latin = "".join(words).isascii()
        others = [] if is_latin else [place for place, word in enumerate(words) if word[0] >= _NOT_LATIN]
        for place, after in itertools.pairwise(others):
            if after == place + 1 and (pair := self._by_sound(*words[place : place + 2])):
                found[place : place + 2] = pair
        return [part for word in found for part in word.split(_BETWEEN)] if _BETWEEN in "".join(found) else found

    def _is_known(self, word: str, language: str) -> bool:
        return word in self._words and (word not in self._limits or language in self._limits[word])

    def _find(self, word: str, language: str) -> str:
        if len(word) < _SHORTEST or self._is_known(word, language):
            return word
        form = next((one for one in self._forms_of(word, language) if self._is_known(one, language)), "")
        return form or "".join(self._by_sound(word)) or self._divided(word, language) or word

    def _forms_of(self, word: str, language: str) -> Iterator[str]:
        """Yields words with other endings and starts, the most likely first."""
        if word[0] < _NOT_LATIN:
            endings = _LATIN_ENDINGS.get(language, ())
            stems = _stems(word, [""], endings, _SHORTEST_LATIN_STEM)
            genitive = [word[:-1]] if endings and len(word) == _SHORTEST_LATIN_STEM and word.endswith("s") else ()
            yield from (stem + ending for stem in (*stems, *genitive) for ending in endings)
        elif "\uac00" <= word[0] <= "\ud7a3":
            yield from (word[:end] for end in range(len(word) - 1, max(1, len(word) - _LONGEST_PARTICLE - 1), -1))
        elif script := _script(word):
            rules, known = _SCRIPTS[script], self._stems_of(script)
            for stem in _stems(word, rules["starts"], rules["ends"], rules["shortest"]):
                for name in known.get(stem, ()):
                    # Only words of the language have its endings: "Riyadh" and one is "sports".
                    of_language = name in self._limits or word.endswith(name.removeprefix(ARABIC_ARTICLE))
                    if script != "arabic" or of_language:
                        yield name

    def _find_stems(self, script: str) -> dict[str, list[str]]:
        """Returns the known words by stem; words of frequent entities come first."""
        found, rules = dict[str, list[str]](), _SCRIPTS[script]
        starts = ["", ARABIC_ARTICLE] if script == "arabic" else [""]
        words = [word for word in self._words if len(word) >= _SHORTEST and _script(word) == script]
        for word in sorted(words, key=lambda word: (len(word), self._words[word], word)):
            for stem in _stems(word, starts, rules["ends_of_names"], rules["shortest"]):
                found.setdefault(stem, []).append(word)
        return found

    def _divided(self, word: str, language: str) -> str:
        """Returns the parts of a word with an elided article or hyphens, "" if it has none that are known.

        "l'Europe", "US-led" and "EU-Beitritt" name Europe, the US and the EU. All parts with a capital must be known,
        except in languages with compounds: "Nueva-Mexico" is not Mexico.
        """
        article, apostrophe, rest = word.replace("\u2019", "'").partition("'")
        if apostrophe and article.lower() in _ELISIONS.get(language, ()):
            return f"{article}{_BETWEEN}{self._find(rest, language)}" if rest else ""
        if "-" not in word or word[0] >= _NOT_LATIN:
            return ""
        parts = [self._find(part, language) for part in word.split("-") if part]
        known = [self._is_known(part, language) for part in parts if part[0].isupper()]
        enough = any(known) if language in _WITH_COMPOUNDS else known and all(known)
        return _BETWEEN.join(parts) if enough and len(parts) > 1 else ""

    @functools.cached_property
    def _with_keys(self) -> Mapping[tuple[str, ...], Sequence[tuple[str, ...]]]:
        """Latin words, and pairs of words that follow each other in a name, by sound keys, the most frequent first."""
        alone = {(word,) for word in self._spelled if len(word) >= _SHORTEST_SPELLED}
        pairs = {pair for name in self._names for pair in itertools.pairwise(name)}
        may_be = {word for word in self._words if _LATIN.fullmatch(word) and not word.isupper()}
        spelled = [words for words in alone | pairs if may_be.issuperset(words)]
        found: dict[tuple[str, ...], list[tuple[str, ...]]] = {}
        for words in sorted(spelled, key=lambda words: (max(self._words[word] for word in words), words)):
            keys_of_words = (dict.fromkeys(map(_key, readings(word))) for word in words)
            for keys in itertools.product(*keys_of_words):
                same = found.setdefault(keys, [])
                if len(same) < _MOST_WITH_A_KEY:
                    same.append(words)
        return found

    def _find_by_sound(self, *written: str) -> tuple[str, ...]:
        """Returns the Latin word that a word of another script spells, or the two that two words spell; else nothing.

        Short words such as "Jeff" are found in pairs only.
        """
        is_pair = len(written) > 1
        if is_pair and all(word in self._words for word in written):
            return ()
        best: tuple[str, ...] = ()
        score, above = -1.0, _MORE_WITHOUT_CAPITAL * (written[0][0].lower() == written[0][0])
        for stems in itertools.product(*map(_bare, written)):
            keys = tuple(map(sound_key, stems))
            length = len("".join(keys))
            if length < (_SHORTEST_PAIR if is_pair else _SHORTEST_KEY):
                continue
            weight = sum(0.5 if one in _VOWELS else 1.0 for one in letters_of(stems[0]))
            least = above + (_LEAST_OF_A_PAIR if is_pair else _LEAST + _MORE_IF_SHORT * (length <= _SHORTEST_KEY))
            for words in self._with_keys.get(keys, ()) if is_pair or weight >= _LEAST_LETTERS else ():
                scores = [_likeness(*both) for both in zip(stems, words, strict=True)]
                mean = sum(scores) / len(scores)
                if mean >= least - _ROUNDING and mean > score and min(scores) > _LEAST_IN_A_PAIR:
                    best, score = words, mean
        return best


class _Meant(dict[str, str]):
    """What each word means, found once; a dict gives it in half of the time of a cache. It forgets all when full."""

    def __init__(self, find: Callable[[str], str]) -> None:
        self._find = find

    def __missing__(self, word: str) -> str:
        if len(self) >= _MOST_REMEMBERED:
            self.clear()
        self[word] = meant = self._find(word)
        return meant


def _script(word: str) -> str:
    """Returns the name of the script of a word, "" if there are no rules for it."""
    return next((name for name, rules in _SCRIPTS.items() if rules["range"][0] <= word[0] <= rules["range"][1]), "")


def _stems(word: str, starts: Iterable[str], ends: Iterable[str], shortest: int) -> Iterator[str]:
    """Yields what is left of a word without each of the starts and endings that it has."""
    for start in starts:
        for end in ends:
            stop = len(word) - len(end)
            if stop - len(start) >= shortest and word.startswith(start) and word.endswith(end):
                yield word[len(start) : stop]


@functools.lru_cache(_MOST_REMEMBERED)
def _bare(word: str) -> tuple[str, ...]:
    """Returns a word that may spell a Latin name, and what is left of it without endings and starts; else nothing.

    A name has a capital if the script has capitals, and no ending of plurals.
    """
    may_be_name = word[0] >= "\u0370" and word[0] == word[0].upper() and not word.endswith(_PLURALS)
    if not may_be_name or _UNSPACED.match(word) or _WITH_ARTICLE.match(word):
        return ()
    rules = _SCRIPTS.get(_script(word), {"starts": [""], "ends": [""]})
    ends = rules["ends"] if rules["starts"] == [""] else [""]
    return tuple(dict.fromkeys([word, *_stems(word, rules["starts"], ends, _SHORTEST + 1)]))


@functools.lru_cache(_MOST_REMEMBERED)
def letters_of(word: str) -> str:
    r"""Returns a word in lower-case letters, each sound written in one way; "š", "č" and "ž" for "sh", "ch" and "zh".

    >>> letters_of("\u041f\u0443\u0442\u0438\u043d"), letters_of("Khashoggi"), letters_of("\u0936\u0930\u094d\u092e")
    ('putin', 'hašogi', 'šərm')
    """
    from anyascii import anyascii

    word = _NASAL.sub(lambda found: "\u092e\u094d" if "\u092a" <= found[1] <= "\u092e" else "\u0928\u094d", word)
    letters = _SILENT_VOWEL.sub(rf"\1{_UNWRITTEN}", word).translate(_LETTERS)
    if letters == word and not word.isascii():
        letters = str(anyascii(word))
    letters = letters.lower()
    for spelling, sound in _RULES["spellings"]:  # of one sound in Latin letters, replaced in this order
        letters = letters.replace(spelling, sound)
    return _REPEATED.sub(r"\1", letters)


@functools.lru_cache(50_000)
def readings(word: str) -> tuple[str, ...]:
    """Returns how a Latin word may sound, as letters, the first one by the usual rules.

    >>> readings("Virginia"), readings("Wilson")[1]
    (('virginia', 'virjinia'), 'uilson')
    """
    found = [word.lower()]
    for pattern, other in _READINGS:
        found += [pattern.sub(other, one) for one in found if pattern.search(one)]
    return tuple(dict.fromkeys(map(letters_of, found[:_MOST_READINGS])))


@functools.lru_cache(_MOST_REMEMBERED)
def sound_key(word: str) -> str:
    r"""Returns the classes of the consonants of a word.

    >>> sound_key("Trump") == sound_key("\u062a\u0631\u0627\u0645\u0628") == "trmp"
    True
    """
    return _key(letters_of(word))


def _key(letters: str) -> str:
    letters = re.sub("^w", "f", letters)
    return _REPEATED.sub(r"\1", _SILENT.sub("", letters).translate(_CLASSES))


def similarity(left: str, right: str) -> float:
    """Returns how alike two words sound, in [0, 1]: 1 less the cost of edits, relative to the longer word.

    Args:
      left: letters, see :func:`letters_of`.
      right: letters.
    """
    drops = list(map(_drop_cost, right))
    costs = [*itertools.accumulate(drops, initial=0.0)]
    longest = max(sum(map(_drop_cost, left)), sum(drops))
    for one in left:
        drop = _drop_cost(one)
        above, costs[0] = costs[0], costs[0] + drop
        for place, other in enumerate(right, 1):
            cost = min(above + _change_cost(one, other), costs[place] + drop, costs[place - 1] + drops[place - 1])
            above, costs[place] = costs[place], cost
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
    are_similar = is_unwritten or any({one, other} <= letters for letters in _SIMILAR)
    return (_SIMILAR_COST if are_similar else 1.0) * max(_drop_cost(one), _drop_cost(other))


@functools.lru_cache(_MOST_REMEMBERED)
def _likeness(word: str, latin: str) -> float:
    """Returns how much a word of another script sounds like a Latin one, in its best reading; the first counts more."""
    script = "devanagari" if "\u0900" <= word[0] <= "\u097f" else _script(word)
    written = _NOT_WRITTEN.get(script, {})
    own = letters_of(word).translate(written)
    first, *others = (similarity(own, one.translate(written)) for one in readings(latin))
    return max(first, *(likeness - _OTHER_READING for likeness in others), 0.0)

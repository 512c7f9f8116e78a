"""Forms of words in languages that inflect names or write other words at their start: which known word is meant."""

import functools
import itertools
import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from importlib import resources
from typing import Final

from .sounds import Spellings, sound_key

_SHORTEST_STEM: Final = 3
_SHORT_KEY: Final = 3  # consonants
_SHORTEST_ARABIC_STEM: Final = 4  # shorter ones are stems of common words, too
_SHORTEST_LATIN_STEM: Final = 5  # of a word whose ending is replaced by another
OTHER_SCRIPTS: Final = re.compile(r"[\u0370-\u1fff\u2c80-\u2dff\u3040-\ud7ff]")
_MARKED: Final = re.compile(r"[\u05b0-\u05c7\u0610-\u06ff\u0900-\u097f]")
_RULES: Final = json.loads(resources.files(__package__).joinpath("forms.json").read_text(encoding="utf-8"))
ARABIC_ARTICLE: Final = "\u0627\u0644"
_TO_THE: Final = "\u0644\u0644"  # how "to" and the article are written together
_SAME_LETTERS: Final = {
    **{ord(letter): same for letters, same in _RULES["same_letters"].items() for letter in letters},
    0x640: None,  # a stroke that lengthens words
    **dict.fromkeys(range(0x64B, 0x660), None),  # short vowels of Arabic
    0x670: None,
    **dict.fromkeys(range(0x5B0, 0x5C8), None),  # vowels of Hebrew
    0x93C: None,  # the dot below of Devanagari, which writers leave out
    **{0x958 + place: letter for place, letter in enumerate("\u0915\u0916\u0917\u091c\u0921\u0922\u092b\u092f")},
}
_SCRIPTS: Final = (  # name, first and last letter
    ("cyrillic", "\u0400", "\u052f"),
    ("arabic", "\u0600", "\u06ff"),
    ("hebrew", "\u0590", "\u05ff"),
    ("hangul", "\uac00", "\ud7a3"),
)
_LATIN_ENDINGS: Final[Mapping[str, Sequence[str]]] = _RULES["latin"]


def _by_length(endings: Iterable[str]) -> Sequence[tuple[int, frozenset[str]]]:
    """Returns endings with their number of letters, the shortest first."""
    found = itertools.groupby(sorted(endings, key=len), key=len)
    return [(length, frozenset(same)) for length, same in found]


_LATIN_BY_LENGTH: Final = {name: _by_length(endings) for name, endings in _LATIN_ENDINGS.items()}
_CYRILLIC_BY_LENGTH: Final = _by_length(_RULES["cyrillic"])
# Endings of the cases of a name, by the ending that it has itself: those of "China" are others than those of "whale".
_DECLENSIONS: Final = {own: ends.replace("-", "").split(" ") for own, ends in _RULES["cyrillic_declensions"].items()}
_CASES_BY_LENGTH: Final = _by_length({*itertools.chain(*_DECLENSIONS.values())})
_ENDINGS_OF_NAMES: Final = tuple(_RULES["vowels_of_foreign_names"])  # of "Mali" and "Oslo", which have no other cases
_ELISIONS: Final[Mapping[str, Sequence[str]]] = _RULES["elisions"]
_COUNTRIES: Final[Mapping[str, str]] = _RULES["chinese_countries"]
CHINESE_PAIRS: Final = frozenset(_RULES["chinese_pairs"].split(" "))
_PAIR: Final = re.compile(f"(?:{'|'.join(sorted(CHINESE_PAIRS))})(?![{_RULES['not_after_chinese_pairs']}])")
_WITHOUT_CASES: Final = frozenset(_RULES["latin_without_cases"])
_WITH_COMPOUNDS: Final = ("de", "nl", "sv", "da", "no", "nb", "fi", "hu")
BETWEEN: Final = "  "  # the parts of a divided word: a space after the first and one before the second
_MOST_REMEMBERED: Final = 300_000  # words of a language
LEAST_SIMILARITY: Final = 0.91  # of a spelling in another script with a capital
_WITHOUT_ENDING: Final = 0.03  # similarity that is taken off for an ending that may be that of the name itself
LEAST_SIMILARITY_OF_A_WORD: Final = 0.95  # … of a word that may be a common one: no capital tells that it is a name
# … of words with three consonants, likewise
LEAST_SIMILARITY_OF_A_SHORT_NAME: Final = 0.94
LEAST_SIMILARITY_OF_A_SHORT_WORD: Final = 0.99
LEAST_SIMILARITY_OF_A_PAIR: Final = 0.9  # … of two words, one after the other in a name
LEAST_SIMILARITY_OF_A_PAIR_OF_WORDS: Final = 0.94  # … that may be common words
_WITH_ARTICLE: Final = re.compile("[\u0648\u0641\u0628]?(\u0627\u0644|\u0644\u0644)")  # Arabic; no foreign name
_NO_NAMES: Final = tuple(_RULES["plurals"])  # endings of words that are never names of one person or place
_STARTS: Final = re.compile(r"(?:^|[.!?\u2026:\n][\"'\u00bb\u201c\u201d)]*\s+)[^\w\s]*(\w+)")  # of sentences
_UNSPACED: Final = re.compile(r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7a3]")
_LONGEST_PARTICLE: Final = 4  # of Korean, after a name


def normal_letters(text: str) -> str:
    r"""Returns a text without the marks and variants of letters that writers of Arabic, Hebrew and Hindi leave out.

    >>> normal_letters("\u0623\u0645") == "\u0627\u0645"
    True
    """
    return text.translate(_SAME_LETTERS) if not text.isascii() and _MARKED.search(text) else text


def written_out(text: str) -> str:
    """Returns a Chinese text with the names of two countries where it joins their first characters.

    >>> written_out("中美关系")
    '中国美国关系'
    """
    return _PAIR.sub(lambda found: "".join(_COUNTRIES[one] for one in found[0]), text)


class _Meant(dict[str, str]):
    """The word that is meant, by word; found when it is first asked for."""

    def __init__(self, find: Callable[[str], str]) -> None:
        self._find = find

    def __missing__(self, word: str) -> str:
        found = self[word] = self._find(word)
        return found


class Forms:
    """Replaces forms and spellings of known words by the known word.

    A word that is divided becomes one text with its parts, :data:`BETWEEN` them.

    Args:
      words: the words of all names, with normal letters. The words with a lower number are meant first where spellings
        of other scripts are equally alike.
      limits: the languages of words that are in names of some languages only.
      spelled: the words that other scripts may spell; None for all words.
      names: the words of names of several words, which other scripts may spell.
      plain: words of names that have no form but the genitive in languages without cases.
    """

    def __init__(
        self,
        words: Mapping[str, int],
        limits: Mapping[str, Collection[str]],
        spelled: Collection[str] | None = None,
        names: Collection[Sequence[str]] = (),
        plain: Collection[str] = frozenset(),
    ) -> None:
        self._words = words
        self._plain = plain
        self._limits = limits
        self._spelled_words = words if spelled is None else {word: words[word] for word in spelled}
        self._names = names
        self._known_spellings: Spellings | None = None
        # The same in all languages.
        self._spelled = functools.lru_cache(maxsize=_MOST_REMEMBERED)(self._find_spelled)
        self._spelled_pair = functools.lru_cache(maxsize=_MOST_REMEMBERED)(self._find_pair)
        self._stems: dict[str, dict[str, list[str]]] = {}
        self._meant: dict[tuple[str, bool], _Meant] = {}

    def in_latin(self, words: Sequence[str], language: str) -> Sequence[str]:
        """Returns words in Latin letters, with known words instead of their forms.

        Args:
          words: words of a text.
          language: BCP-47 tag of the text; decides which endings words have.
        """
        language = language.partition("-")[0]
        if language in _LATIN_ENDINGS:
            return list(map(self._remembered(language, strict=False).__getitem__, words))
        if "-" not in "".join(words):
            return words
        meant = self._remembered(language, strict=False)
        return [meant[word] if "-" in word else word for word in words]

    def apply(self, words: Sequence[str], language: str, text: str = "") -> Sequence[str]:
        """Returns words of any script, with known words instead of their forms.

        Args:
          words: words of a text, with normal letters.
          language: BCP-47 tag of the text; decides which endings words in Latin letters have.
          text: the text, which tells the words at starts of sentences. Their capital is no sign of a name. "" if the
            words are a name.
        """
        language = language.partition("-")[0]
        meant, unsure = (self._remembered(language, strict) for strict in (False, True))
        starts = frozenset(_STARTS.findall(text)) if text else frozenset()
        found = [unsure[word] if word in starts else meant[word] for word in words]
        if self._names:
            self._find_pairs(words, found)
        return found

    def _remembered(self, language: str, strict: bool) -> _Meant:
        found = self._meant.get((language, strict))
        if found is None or len(found) > _MOST_REMEMBERED:
            found = _Meant(functools.partial(self._find, language=language, strict=strict))
            self._meant[language, strict] = found
        return found

    def _find(self, word: str, language: str, strict: bool) -> str:
        if len(word) < _SHORTEST_STEM or self._is_known(word, language):
            return word
        system = _system(word, language)
        forms = self._with_other_endings(word, system) if system in _LATIN_ENDINGS else self._of_stem(word, system)
        found = next((form for form in forms if self._is_known(form, language)), "") or self._spelled(word, strict)
        return found or self._divided(word, language, strict) or word

    def _divided(self, word: str, language: str, strict: bool) -> str:
        """Returns the parts of a word with an elided article or hyphens, "" if it has none that are known.

        "l'Europe", "US-led" and "EU-Beitritt" name Europe, the US and the EU. All parts with a capital must be known,
        except in languages with compounds: "Nueva-Mexico" is not Mexico.
        """
        article, apostrophe, rest = _partition(word)
        if apostrophe and article.lower() in _ELISIONS.get(language, ()):
            return f"{article}{BETWEEN}{self._find(rest, language, strict)}" if rest else ""
        if "-" not in word or word[0] >= "\u0250":
            return ""
        parts = [self._find(part, language, strict) for part in word.split("-") if part]
        known = [self._is_known(part, language) for part in parts if part[0].isupper()]
        enough = any(known) if language in _WITH_COMPOUNDS else known and all(known)
        return BETWEEN.join(parts) if enough and len(parts) > 1 else ""

    def _find_pairs(self, words: Sequence[str], found: list[str]) -> None:
        """Puts two known words in the place of two words of another script that spell them."""
        for place, both in enumerate(itertools.pairwise(map(_pronounced, words))):
            if all(both):
                left, right = words[place : place + 2]
                is_known = left in self._words and right in self._words
                if not is_known and (pair := self._spelled_pair(left, right)):
                    found[place : place + 2] = pair

    def _find_pair(self, left: str, right: str) -> tuple[str, ...]:
        """Returns the two known words that two words of another script spell, none if they do not."""
        pairs = itertools.product(_pronounced(left), _pronounced(right))
        pair, score = max((self._spellings.closest_pair(*one) for one in pairs), key=lambda item: item[1])
        least = LEAST_SIMILARITY_OF_A_PAIR_OF_WORDS if _has_no_case(left) else LEAST_SIMILARITY_OF_A_PAIR
        return pair if score >= least else ()

    def _with_other_endings(self, word: str, system: str) -> Iterator[str]:
        for stem in _stems(word, system):
            for form in (stem + ending for ending in _LATIN_ENDINGS[system]):
                # "Sommer" and "Spitze" are no forms of "Sommers" and "Spitzer".
                if system not in _WITHOUT_CASES or form not in self._plain or word == f"{form}s":
                    yield form

    def _of_stem(self, word: str, system: str) -> Iterator[str]:
        known = self._stems_of(system) if system else {}
        for stem in _stems(word, system):
            for name in known.get(stem, ()):
                if system == "cyrillic" and not _is_case(word, name, stem):
                    continue
                # Only words of the language have its endings: "Riyadh" and one is "sports".
                if system != "arabic" or name in self._limits or word.endswith(name.removeprefix(ARABIC_ARTICLE)):
                    yield name

    def _stems_of(self, system: str) -> dict[str, list[str]]:
        """Returns the known words by stem; words of frequent entities come first."""
        found = self._stems.get(system)
        if found is None:
            found = {}
            words = [word for word in self._words if len(word) >= _SHORTEST_STEM and _system(word, "") == system]
            for word in sorted(words, key=lambda word: (len(word), self._words[word], word)):
                for stem in _stems(word, system, of_name=True):
                    found.setdefault(stem, []).append(word)
            self._stems[system] = found  # when it is complete: another thread may look up stems meanwhile
        return found

    def _is_known(self, word: str, language: str) -> bool:
        return word in self._words and (word not in self._limits or language in self._limits[word])

    def transcribed(self, characters: str) -> str:
        """Returns the known Latin word that Chinese characters write by sound, "" if there is none."""
        return self._spellings.transcribed(characters)

    @property
    def _spellings(self) -> Spellings:
        """The spellings of known words; they are found when the first word of another script is looked up."""
        if self._known_spellings is None:
            self._known_spellings = Spellings(self._spelled_words, self._names)
        return self._known_spellings

    def _find_spelled(self, word: str, strict: bool) -> str:
        """Returns the Latin word that a word of another script spells, "" if none sounds enough like it."""
        if not _may_spell(word):
            return ""
        found = ((*self._spellings.closest(stem), stem) for stem in _bare(word))
        candidates = (
            (spelled, score - _WITHOUT_ENDING * _is_doubtful(word, stem), stem) for spelled, score, stem in found
        )
        spelled, score, stem = max(candidates, key=lambda item: item[1])
        is_short = len(sound_key(stem)) <= _SHORT_KEY
        if strict or _has_no_case(word):
            least = LEAST_SIMILARITY_OF_A_SHORT_WORD if is_short else LEAST_SIMILARITY_OF_A_WORD
        else:
            least = LEAST_SIMILARITY_OF_A_SHORT_NAME if is_short else LEAST_SIMILARITY
        return spelled if score >= least else ""


@functools.lru_cache(maxsize=_MOST_REMEMBERED)
def _pronounced(word: str) -> tuple[str, ...]:
    """Returns a word of another script, and without endings and starts, each with other consonants."""
    return tuple({sound_key(one): one for one in reversed((*_bare(word),))}.values()) if _may_spell(word) else ()


def _is_doubtful(word: str, stem: str) -> bool:
    """Whether what is left out of a word may be the end of a foreign name."""
    return stem != word and word.endswith(_ENDINGS_OF_NAMES)


def _partition(word: str) -> tuple[str, str, str]:
    """Returns what is before an apostrophe, the apostrophe and the rest."""
    return word.partition("'" if "'" in word else "\u2019")


def _may_spell(word: str) -> bool:
    """Whether a word of another script may spell a Latin name: it has a capital if the script has capitals."""
    return (
        word[0] >= "\u0370"
        and word[0] == word[0].upper()
        and not word.endswith(_NO_NAMES)
        and not _UNSPACED.match(word)
        and not _WITH_ARTICLE.match(word)
    )


def _has_no_case(word: str) -> bool:
    """Whether a word is of a script without capitals, so that nothing but its sound tells a name from other words."""
    return word[0].lower() == word[0]


def _bare(word: str) -> Iterator[str]:
    """Yields a word, and what is left of it without endings of cases and words that are written at its start."""
    yield word
    if "\u0400" <= word[0] <= "\u052f":
        yield from reversed((*_without_endings(word, _CYRILLIC_BY_LENGTH, _SHORTEST_STEM + 1),))
    elif "\u0590" <= word[0] <= "\u06ff":
        stems = {word.removeprefix(start) for start in (*_RULES["arabic_starts"], *_RULES["hebrew_starts"])}
        yield from sorted(stem for stem in stems if len(stem) > _SHORTEST_STEM)


def _system(word: str, language: str) -> str:
    """Returns which rules for forms a word follows: a script, or for Latin letters a language; "" if none."""
    letter = word[0]
    if letter < "\u0250":
        return language if language in _LATIN_ENDINGS else ""
    return next((name for name, first, last in _SCRIPTS if first <= letter <= last), "")


def _stems(word: str, system: str, of_name: bool = False) -> Iterator[str]:
    """Yields what is left of a word without each of the endings and starts of a system that it has, longest first.

    Args:
      word: the word.
      system: of its endings, see :func:`_system`.
      of_name: whether the word is a name, which has no words at its start and no endings of plurals in Arabic.
    """
    if system == "arabic":
        starts, ends = _RULES["arabic_starts"], _RULES["arabic_ends"]
        yield from _arabic_stems(word, starts[:1], ends[:6]) if of_name else _arabic_stems(word, starts, ends)
    elif system == "hebrew":
        for start in _RULES["hebrew_starts"]:
            if word.startswith(start) and len(word) - len(start) >= _SHORTEST_STEM:
                yield word[len(start) :]
    elif system == "hangul":
        for length in range(len(word), max(1, len(word) - _LONGEST_PARTICLE - 1), -1):
            yield word[:length]
    elif system == "cyrillic":
        yield from _without_endings(word, _CASES_BY_LENGTH, _SHORTEST_STEM)
    elif system:
        yield from _without_endings(word, _LATIN_BY_LENGTH[system], _SHORTEST_LATIN_STEM)
        if word[-1] == "s" and word[0].isupper() and len(word) == _SHORTEST_LATIN_STEM:
            yield word[:-1]


def _without_endings(word: str, endings: Sequence[tuple[int, frozenset[str]]], shortest: int) -> Iterator[str]:
    for length, same in endings:
        end = len(word) - length
        if end < shortest:
            return
        if word[end:] in same:
            yield word[:end]


def _is_case(word: str, name: str, stem: str) -> bool:
    """Whether a Cyrillic word is a case of a name that has the same stem."""
    own, ending = name[len(stem) :], word[len(stem) :]
    is_declined = len(stem) > _SHORTEST_STEM or own == ending or own not in _ENDINGS_OF_NAMES
    return is_declined and ending in _DECLENSIONS.get(own, ())


def _arabic_stems(word: str, starts: Sequence[str], ends: Sequence[str]) -> Iterator[str]:
    for start in starts:
        if not word.startswith(start):
            continue
        rest = word[len(start) :]
        bare = rest if start.endswith(_TO_THE) else rest.removeprefix(ARABIC_ARTICLE)
        for ending in ends:
            if bare.endswith(ending) and len(bare) - len(ending) >= _SHORTEST_ARABIC_STEM:
                yield bare[: len(bare) - len(ending)]

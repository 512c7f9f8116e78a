"""Forms of words in languages that inflect names or write other words at their start: which known word is meant."""

import functools
import json
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from importlib import resources
from typing import Final

_SHORTEST_STEM: Final = 3
_SHORTEST_ARABIC_STEM: Final = 4  # shorter ones are stems of common words, too
_SHORTEST_LATIN_STEM: Final = 5  # of a word whose ending is replaced by another
_NOT_LATIN: Final = re.compile(r"[\u0370-\u1fff\u2c80-\u2dff\u3040-\ud7ff]")
_MARKED: Final = re.compile(r"[\u05b0-\u05c7\u0610-\u06ff\u0900-\u097f]")
_RULES: Final = json.loads(resources.files(__package__).joinpath("forms.json").read_text(encoding="utf-8"))
_ARABIC_ARTICLE: Final = "\u0627\u0644"
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
_LATIN_ENDINGS: Final[Mapping[str, Sequence[str]]] = _RULES["latin"]
_LONGEST_PARTICLE: Final = 4  # of Korean, after a name


def normal_letters(text: str) -> str:
    r"""Returns a text without the marks and variants of letters that writers of Arabic, Hebrew and Hindi leave out.

    >>> normal_letters("\u0623\u0645") == "\u0627\u0645"
    True
    """
    return text.translate(_SAME_LETTERS) if not text.isascii() and _MARKED.search(text) else text


class Forms:
    """Replaces forms of known words by the known word.

    Args:
      words: the words of all names, with normal letters.
    """

    def __init__(self, words: Collection[str]) -> None:
        self._words = words
        self._meant: Callable[[str, str], str] = functools.lru_cache(maxsize=200_000)(self._find)

    def apply(self, words: Sequence[str], text: str, language: str) -> Sequence[str]:
        """Returns the words of a text, with known words instead of their forms.

        Args:
          words: words of the text.
          text: the text.
          language: BCP-47 tag of the text; decides which endings words in Latin letters have.
        """
        language = language.partition("-")[0]
        if language in _LATIN_ENDINGS or (not text.isascii() and _NOT_LATIN.search(text)):
            meant = self._meant
            return [meant(word, language) for word in words]
        return words

    def _find(self, word: str, language: str) -> str:
        if word in self._words or len(word) < _SHORTEST_STEM:
            return word
        return next((form for form in _forms(word, language) if form in self._words), word)


def _forms(word: str, language: str) -> Iterator[str]:
    """Yields words of which this one may be a form, the most similar ones first."""
    letter = word[0]
    if "\u0400" <= letter <= "\u052f":
        yield from _other_endings(word, _RULES["cyrillic"])
    elif "\u0600" <= letter <= "\u06ff":
        yield from _arabic_forms(word)
    elif "\u0590" <= letter <= "\u05ff":
        for start in _RULES["hebrew_starts"]:
            if word.startswith(start) and len(word) - len(start) >= _SHORTEST_STEM:
                yield word[len(start) :]
    elif "\uac00" <= letter <= "\ud7a3":
        for length in range(len(word) - 1, max(1, len(word) - _LONGEST_PARTICLE - 1), -1):
            yield word[:length]
    elif letter < "\u0250" and language in _LATIN_ENDINGS:
        if word[-1] == "s" and word[0].isupper() and len(word) > _SHORTEST_LATIN_STEM:
            yield word[:-1]
        yield from _other_endings(word, _LATIN_ENDINGS[language], _SHORTEST_LATIN_STEM)


def _other_endings(word: str, endings: Sequence[str], shortest: int = _SHORTEST_STEM) -> Iterator[str]:
    for ending in sorted(endings, key=len):
        stem = word.removesuffix(ending)
        if len(stem) >= shortest and word.endswith(ending):
            for other in endings:
                yield stem + other


def _arabic_forms(word: str) -> Iterator[str]:
    for start in _RULES["arabic_starts"]:
        if not word.startswith(start):
            continue
        rest = word[len(start) :]
        bare = rest if start.endswith(_TO_THE) else rest.removeprefix(_ARABIC_ARTICLE)
        if len(bare) < _SHORTEST_STEM:
            continue
        for ending in _RULES["arabic_ends"]:
            if bare.endswith(ending) and len(bare) - len(ending) >= _SHORTEST_ARABIC_STEM:
                stem = bare[: len(bare) - len(ending)]
                for other in _RULES["arabic_ends"][:6]:
                    yield stem + other
                    yield f"{_ARABIC_ARTICLE}{stem}{other}"


def words_of_names(names: Mapping[str, object]) -> frozenset[str]:
    """Returns the single words of names that are joined by spaces."""
    return frozenset(word for name in names for word in name.split())

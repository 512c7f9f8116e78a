"""Words with their parts of speech, for languages that a tagger knows.

The tags are those of Universal Dependencies (de Marneffe et al. 2021). By default HanTa tags English, German and Dutch
(Wartena 2019; ``pip install newsembed[tags]``); the package contains its models. Other taggers are functions, see
:func:`load_tagger`.
"""

import dataclasses
import functools
import importlib
import importlib.util
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from ..errors import InputError
from .functions import load_function

HANTA: Final = "hanta"
PUNCTUATION: Final = "PUNCT"
_MODELS: Final = {"en": "morphmodel_en.pgz", "de": "morphmodel_ger.pgz", "nl": "morphmodel_dutch.pgz"}
_WORD: Final = re.compile(r"\w+(?:['’.,-]\w+)*|[^\w\s]")  # noqa: RUF001 - the typographic apostrophe is meant
_SENTENCE_END: Final = frozenset(".!?")
_LONGEST_SENTENCE: Final = 200  # words; a table or a list without a full stop is split there

NOUNS: Final = frozenset({"NOUN", "PROPN"})
VERBS: Final = frozenset({"VERB"})

Word = tuple[str, str]
Lemma = tuple[str, str, str]  # word, tag, lemma
Tag = Callable[[str, str], Sequence[Word]]


class UnavailableError(Exception):
    """No tagger is available; the message gives the reason and the remedy."""


@dataclasses.dataclass(frozen=True)
class Tagger:
    """A part-of-speech tagger.

    Attributes:
      name: name in the report.
      languages: the first parts of the BCP-47 tags of the languages that it knows, or ``None`` for any language.
      tag: ``(text, language) -> [(word, tag), …]``; the words are all of the text, in order, without white space.
      lemmas: ``(text, language) -> [(word, tag, lemma), …]`` of the same words; ``None`` where it gives no lemmas.
    """

    name: str
    languages: tuple[str, ...] | None
    tag: Tag
    lemmas: Callable[[str, str], Sequence[Lemma]] | None = None

    def knows(self, language: str) -> bool:
        """Returns whether it knows the language of a BCP-47 tag."""
        return self.languages is None or primary(language) in self.languages


def load_tagger(spec: str | None) -> Tagger:
    """Loads a tagger by its name.

    Args:
      spec: "hanta", or ``module:function`` or ``file.py:function`` of a function ``(text, language) -> [(word, tag),
        …]``. ``None`` loads HanTa if it is installed.

    Raises:
      UnavailableError: if ``spec`` is ``None`` and HanTa is not installed.
      InputError: if the tagger in ``spec`` cannot be loaded.
    """
    if spec is not None and spec != HANTA:
        function = load_function(spec)
        return Tagger(spec, None, lambda text, language: checked(function(text, language), spec))
    if importlib.util.find_spec("HanTa") is None:
        problem, remedy = (
            "no part-of-speech tagger: HanTa is not installed",
            "pip install newsembed[tags], or give --tags module:function",
        )
        if spec is None:
            raise UnavailableError(f"{problem}; {remedy}")
        raise InputError(problem, field="--tags", remedy=remedy)
    return Tagger("HanTa", tuple(_MODELS), _tag_with_hanta, _lemmas_with_hanta)


def checked(words: Any, name: str) -> list[Word]:
    """Returns the output of a user's tagger, checked to be a sequence of (word, tag).

    Raises:
      InputError: if it is not.
    """
    try:
        pairs = [(word, tag) for word, tag in words]
        if all(isinstance(part, str) for pair in pairs for part in pair):
            return pairs
        problem = "words or tags that are not strings"
    except (TypeError, ValueError) as error:
        problem = f"no sequence of (word, tag): {error}"
    raise InputError(f"{name} returned {problem}", field="--tags", remedy="fix the function")


def primary(language: str) -> str:
    """Returns the first part of a BCP-47 tag: "en" of "en-GB"."""
    return language.replace("_", "-").partition("-")[0].lower()


def split_words(text: str) -> list[str]:
    """Returns words and signs in order; an inner hyphen, apostrophe, point or comma does not split a word.

    >>> split_words("John's well-known plan: 1,200 homes.")
    ["John's", 'well-known', 'plan', ':', '1,200', 'homes', '.']
    """
    return _WORD.findall(text)


def first_words(text: str, count: int) -> str:
    """Returns the text up to the end of its word number ``count``, counted as by :func:`split_words`."""
    ends = [match.end() for match, _ in zip(_WORD.finditer(text), range(count), strict=False)]
    return text[: ends[-1]] if ends else ""


def sentences(words: Sequence[str]) -> list[list[str]]:
    """Splits words after each separate full stop, question or exclamation mark, and after 200 words at the latest."""
    found: list[list[str]] = [[]]
    for word in words:
        found[-1].append(word)
        if word in _SENTENCE_END or len(found[-1]) == _LONGEST_SENTENCE:
            found.append([])
    return [sentence for sentence in found if sentence]


def _tag_with_hanta(text: str, language: str) -> list[Word]:
    return [(word, tag) for word, tag, _ in _own_tags(text, language)]


def _lemmas_with_hanta(text: str, language: str) -> list[Lemma]:
    """Lemmas of nouns and verbs in lower case; of other words, the word in lower case."""
    tagger = _hanta(primary(language))
    return [
        (word, tag, (tagger.analyze(word, pos=own)[0] if tag in NOUNS | VERBS else word).casefold())
        for word, tag, own in _own_tags(text, language)
    ]


def _own_tags(text: str, language: str) -> Iterator[tuple[str, str, str]]:
    """Yields (word, universal tag, HanTa's tag)."""
    tagger = _hanta(primary(language))
    universal = _UNIVERSAL[primary(language)]
    for sentence in sentences(split_words(text)):
        for word, tag in zip(sentence, tagger.tag_sent(sentence, taglevel=0), strict=True):
            yield word, universal_tag(word, tag, universal), tag


def universal_tag(word: str, tag: str, table: Mapping[str, str]) -> str:
    """Returns the universal tag of the longest prefix of ``tag`` in ``table``, or X if there is none.

    A sign is PUNCT or SYM, whatever the tagger returned.
    """
    if not any(letter.isalnum() for letter in word):
        return "SYM" if word in _SYMBOLS else PUNCTUATION
    return next((table[tag[:size]] for size in range(len(tag), 0, -1) if tag[:size] in table), "X")


@functools.cache
def _hanta(language: str) -> Any:
    module: Any = importlib.import_module("HanTa.HanoverTagger")
    # The full path: for a bare name, the library would first try to unpickle a file in the working folder.
    return module.HanoverTagger(os.path.join(os.path.dirname(module.__file__), _MODELS[language]))


_SYMBOLS: Final = frozenset("$€£¥%+=<>°§&@#*^~|")


def _universal(lines: str) -> dict[str, str]:
    """The universal tag of each prefix."""
    entries = map(str.split, lines.split(","))
    return {prefix: tag for tag, *prefixes in entries for prefix in prefixes}


# The universal tags, each with the prefixes of HanTa's tags that have it: BNC's C5 for English, STTS for German, CGN
# for Dutch.
_UNIVERSAL: Final = {
    "en": _universal(
        "ADJ AJ ORD, DET AT DT, ADV AV, CCONJ CJC, SCONJ CJS CJT, NUM CRD, PRON DPS EX PN, INTJ ITJ, NOUN NN, PROPN "
        "NP, PART POS TO XX, ADP PR IN, PUNCT PU, AUX VB VD VH VM, VERB VV"
    ),
    "de": _universal(
        "PUNCT $, ADJ ADJ, ADV ADV PROAV PWAV, ADP AP PTKVZ, DET ART PDAT PIAT PPOSAT PRELAT PWAT, NUM CARD, X FM, "
        "INTJ ITJ, SCONJ KO, CCONJ KON KOKOM, PROPN NE, NOUN NN, PRON P, PART PTK, AUX VA VM, VERB VV"
    ),
    "nl": _universal(
        "ADJ ADJ, ADV BW, PUNCT LET, DET LID, PROPN N(eigen SPEC(deeleigen, NOUN N(soort, INTJ TSW, NUM TW, CCONJ "
        "VG(neven, SCONJ VG(onder, PRON VNW, ADP VZ, VERB WW"
    ),
}

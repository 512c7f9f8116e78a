"""Words of a text in any script, and the capitalised spans among them that may be names."""

import dataclasses
import re
from collections.abc import Iterator, Mapping
from typing import Final

# Scripts written without spaces: every character is a token, so word boundaries never split a name in the middle.
_UNSPACED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff"
# Marks of Indic scripts and combining accents are parts of words, although \w leaves them out.
_LETTERS = rf"(?:[^\W_{_UNSPACED}]|[\u0300-\u036f\u0900-\u0dff])+"
_TOKEN: Final = re.compile(rf"[{_UNSPACED}]|{_LETTERS}(?:(?:['\u2019](?!s\b)|[.&\-\u2010]){_LETTERS})*")
_SENTENCE_BREAKS: Final = frozenset(".!?:;\u2026\n\t\"\u201c\u201d\u201e«»()[]|•\u2013\u2014'\u2018\u2019*")
_CONNECTORS: Final = frozenset(
    {"of", "the", "for", "de", "del", "la", "las", "los", "el", "der", "des", "dem", "den", "von", "van", "zu"}
    | {"da", "do", "dos", "di", "du", "bin", "al", "y", "e"}
)
_UPPER: Final = "".join(character for character in map(chr, range(0x10000)) if character.isupper())
_REST: Final = rf"(?:{_LETTERS})?(?:(?:['\u2019](?!s\b)|[.&\-\u2010]){_LETTERS})*"
_BETWEEN: Final = rf"(?: (?:(?:{'|'.join(sorted(_CONNECTORS))}) ){{0,2}}|(?<=\b[{_UPPER}])\. )"
# What must not stand before the first letter is checked behind it: a pattern that starts with a set of characters is fast.
_RUN: Final = re.compile(
    rf"[{_UPPER}](?<![\w\-\u2010&][\s\S])(?<!\w['\u2019.][\s\S]){_REST}(?:{_BETWEEN}[{_UPPER}]{_REST})*"
)
_CONTRACTION: Final = re.compile(r"['\u2019][a-z]{1,2}$")  # I've, He'll
_PLAIN: Final = re.compile(r"[^\W\d_]+")
_INSIDE: Final = re.compile(rf"[{_UPPER}](?<=[\w,] [\s\S])[^\W\d_]*")
_LONGEST_NAME: Final = 6


def words_of(text: str) -> list[str]:
    """All tokens of a text in order, as written.

    >>> words_of("Trump's aides met Anne-Marie O'Neill.")
    ['Trump', 's', 'aides', 'met', 'Anne-Marie', "O'Neill"]
    """
    return _TOKEN.findall(text)


@dataclasses.dataclass(frozen=True)
class WordUse:
    """How the corpus writes one word in one language, in documents.

    Attributes:
      lower: documents with the word in lower case.
      capital: documents with the word capitalised inside a sentence.
    """

    lower: int = 0
    capital: int = 0

    @property
    def common(self) -> bool:
        """Whether the word is used in lower case often enough to be no name by itself."""
        return self.lower * 2 > self.capital


def is_capitalised(word: str) -> bool:
    return word[0].isupper()


def is_title_case(text: str) -> bool:
    """Whether a headline capitalises most of its longer words, so that its capitals name nothing."""
    longer = [word for word in words_of(text) if len(word) > 3]
    return len(longer) > 2 and sum(map(is_capitalised, longer)) > 0.6 * len(longer)


def word_uses(text: str) -> set[tuple[str, bool]]:
    """Lower-cased words of a text, and whether each stands there with a capital of its own.

    Only after another word or a comma is a capital the word's own; at the start of a sentence it says nothing.
    """
    lower = {(word, False) for word in set(_PLAIN.findall(text)) if not is_capitalised(word)}
    return lower | {(word.lower(), True) for word in set(_INSIDE.findall(text))}


def name_spans(text: str, uses: Mapping[str, WordUse]) -> Iterator[tuple[str, ...]]:
    """Candidate names: runs of capitalised tokens, connectors allowed inside.

    Args:
      text: running text; headlines in title case have no names to find this way.
      uses: of lower-cased words: a common word at the start of a sentence, or alone, names nothing.

    Yields:
      Tokens of each candidate. A single token never comes from the start of a sentence.
    """
    for match in _RUN.finditer(text):
        before = text[max(0, match.start() - 2) : match.start()].rstrip(" ")
        words = _trimmed(words_of(match.group()), not before or before[-1] in _SENTENCE_BREAKS, uses)
        if words:
            yield words


def _trimmed(words: list[str], starts_sentence: bool, uses: Mapping[str, WordUse]) -> tuple[str, ...]:
    """The words of a name, none if they are not sure to be one: the linker needs no help from doubtful places."""
    doubtful = uses.get(words[0].lower(), WordUse()).common or words[0].lower() in _CONNECTORS
    if (starts_sentence and doubtful) or len(words) > _LONGEST_NAME:
        return ()
    if len(words) == 1 and (starts_sentence or doubtful or len(words[0]) < 2 or _CONTRACTION.search(words[0])):
        return ()
    return tuple(words)

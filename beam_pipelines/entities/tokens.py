"""Words of texts in any script, and capitalised spans that may be names."""

import dataclasses
import re
from collections.abc import Iterator, Mapping
from typing import Final

# Scripts without spaces: every character is a token, so that a word boundary never splits a name.
_UNSPACED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff"
# Marks of Indic scripts and combining accents are parts of words, although \w does not match them.
_LETTERS = rf"(?:[^\W_{_UNSPACED}]+|[\u0300-\u036f\u0900-\u0dff]+)+"
_TOKEN: Final = re.compile(rf"[{_UNSPACED}]|{_LETTERS}(?:(?:['\u2019](?!s\b)|[.&\-\u2010]){_LETTERS})*")
# The same for texts without other characters, in half of the time.
_ASCII_TOKEN: Final = re.compile(r"[A-Za-z0-9]+(?:(?:'(?!s\b)|[.&\-])[A-Za-z0-9]+)*")
_SENTENCE_BREAKS: Final = frozenset(".!?:;\u2026\n\t\"\u201c\u201d\u201e«»()[]|•\u2013\u2014'\u2018\u2019*")
_CONNECTORS: Final = frozenset(
    {"of", "the", "for", "de", "del", "la", "las", "los", "el", "der", "des", "dem", "den", "von", "van", "zu"}
    | {"da", "do", "dos", "di", "du", "bin", "al", "y", "e"}
)
_UPPER: Final = "".join(character for character in map(chr, range(0x10000)) if character.isupper())
_REST: Final = rf"(?:{_LETTERS})?(?:(?:['\u2019](?!s\b)|[.&\-\u2010]){_LETTERS})*"
_BETWEEN: Final = rf"(?: (?:(?:{'|'.join(sorted(_CONNECTORS))}) ){{0,2}}|(?<=\b[{_UPPER}])\. )"
# A lookbehind after the first letter checks what precedes it: a pattern that starts with a character set is fast.
_RUN: Final = re.compile(
    rf"[{_UPPER}](?<![\w\-\u2010&][\s\S])(?<!\w['\u2019.][\s\S]){_REST}(?:{_BETWEEN}[{_UPPER}]{_REST})*"
)
_CONTRACTION: Final = re.compile(r"['\u2019][a-z]{1,2}$")  # I've, He'll
_PLAIN: Final = re.compile(r"[^\W\d_]+")
_INSIDE: Final = re.compile(rf"[{_UPPER}](?<=[\w,] [\s\S])[^\W\d_]*")
_LONGEST_NAME: Final = 6


def words_of(text: str) -> list[str]:
    """Returns all tokens of a text in order, as written.

    >>> words_of("Trump's aides met Anne-Marie O'Neill.")
    ['Trump', 's', 'aides', 'met', 'Anne-Marie', "O'Neill"]
    """
    return (_ASCII_TOKEN if text.isascii() else _TOKEN).findall(text)


@dataclasses.dataclass(frozen=True)
class WordUse:
    """How the documents of one language write a word.

    Attributes:
      lower: number of documents with the word in lower case.
      capital: number of documents with the word capitalised inside a sentence.
    """

    lower: int = 0
    capital: int = 0

    @property
    def common(self) -> bool:
        """Whether the word is in lower case often enough not to be a name by itself."""
        return self.lower * 2 > self.capital


def is_capitalised(word: str) -> bool:
    """Returns whether a word starts with a capital."""
    return word[0].isupper()


def is_title_case(text: str) -> bool:
    """Returns whether a headline capitalises most of its longer words, so that capitals do not mark names."""
    longer = [word for word in words_of(text) if len(word) > 3]
    return len(longer) > 2 and sum(map(is_capitalised, longer)) > 0.6 * len(longer)


def word_uses(text: str) -> tuple[set[str], set[str]]:
    """Returns the words that a text writes in lower case, and in lower case those with a capital inside a sentence.

    A capital counts only after another word or a comma; at the start of a sentence every word has one.
    """
    lower = {word for word in set(_PLAIN.findall(text)) if not word[0].isupper()}
    return lower, {word.lower() for word in set(_INSIDE.findall(text))}


def name_spans(text: str, uses: Mapping[str, WordUse]) -> Iterator[tuple[str, ...]]:
    """Yields candidate names: runs of capitalised tokens, with connectors such as "of" inside.

    Args:
      text: running text, not a headline in title case.
      uses: uses of lower-cased words; a common word at the start of a sentence, or alone, is not a name.

    Yields:
      Tokens of each candidate. A single token at the start of a sentence is never a candidate.
    """
    for match in _RUN.finditer(text):
        before = text[max(0, match.start() - 2) : match.start()].rstrip(" ")
        words = _trimmed(words_of(match.group()), not before or before[-1] in _SENTENCE_BREAKS, uses)
        if words:
            yield words


def _trimmed(words: list[str], starts_sentence: bool, uses: Mapping[str, WordUse]) -> tuple[str, ...]:
    """Returns the words of a name, none if it is doubtful: the linker finds the name in clearer contexts."""
    doubtful = uses.get(words[0].lower(), WordUse()).common or words[0].lower() in _CONNECTORS
    if (starts_sentence and doubtful) or len(words) > _LONGEST_NAME:
        return ()
    if len(words) == 1 and (starts_sentence or doubtful or len(words[0]) < 2 or _CONTRACTION.search(words[0])):
        return ()
    return tuple(words)

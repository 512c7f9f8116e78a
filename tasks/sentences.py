"""Splits text into sentences by the punctuation of any language, and into words; the marks at which a sentence ends."""

import re
from collections.abc import Iterator
from typing import Final

SPACED_MARKS: Final = ".!?\u2026\u061f\u06d4"  # end a sentence where a space follows
FULL_WIDTH_MARKS: Final = "\u3002\uff01\uff1f"  # end a sentence, no space needed
CLOSING_QUOTES: Final = "\"'\u201d\u2019"
FULL_WIDTH_CLOSING: Final = "\u300d\u300f\uff09"

_DANDA: Final = "\u0964"
_END: Final = re.compile(
    rf"(?<![{SPACED_MARKS}{_DANDA}])[{SPACED_MARKS}{_DANDA}]++[{CLOSING_QUOTES}\u00bb)\]]*+\s+"
    rf"|[{FULL_WIDTH_MARKS}]+[{CLOSING_QUOTES}){FULL_WIDTH_CLOSING}]*\s*"
)
# What rarely ends a sentence: titles and months of English, titles of German, French and Spanish.
_ABBREVIATIONS: Final = (
    "Mr|Mrs|Ms|Dr|Prof|Sens?|Reps?|Gov|Gen|Lt|Col|Sgt|Capt|Rev|Hon|St|Ste|Mt|vs|"
    "Jan|Feb|Mar|Apr|Jun|Jul|Aug|Sept?|Oct|Nov|Dec|Nr|Hr|Fr|Mme|Mlle|MM|Sra?|Dra"
)
# An initial ("J. Doe"), an ordinal ("3. Mai"), an abbreviation ("Sen. Warren").
_NO_END: Final = re.compile(rf"(?:^|[\s(.])(?:[^\W\d_]|\d{{1,2}}|{_ABBREVIATIONS})\.\s+$")
# Letters and marks of Chinese, Japanese, Thai and other scripts that write no spaces.
UNSPACED: Final = "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]"
_HAS_UNSPACED: Final = re.compile(UNSPACED)
_WORD: Final = re.compile(rf"{UNSPACED}|(?:(?!{UNSPACED})\w)+")
_BEFORE_END: Final = 5  # characters before the mark that the pattern above reads


def split_text(text: str) -> list[tuple[str, str]]:
    r"""Splits a text into sentences, each with its separator: nothing, a space, or a line break between paragraphs.

    >>> split_text("Am 3. Mai kam J. Doe. Er blieb.\nEnde")
    [('', 'Am 3. Mai kam J. Doe.'), (' ', 'Er blieb.'), ('\n', 'Ende')]
    """
    found: list[tuple[str, str]] = []
    for paragraph in text.splitlines():
        for place, sentence in enumerate(_sentences(paragraph)):
            found.append(("" if not found else " " if place else "\n", sentence))
    return found


def words_of(text: str) -> list[str]:
    """The words of a text; a letter of a script that writes no spaces is one.

    There, what is between spaces is a clause, and a copy of a text with few changes has few clauses of it.

    >>> words_of("The flood, 洪水が")
    ['The', 'flood', '洪', '水', 'が']
    """
    return re.findall(_WORD if _HAS_UNSPACED.search(text) else r"\w+", text)


def _sentences(paragraph: str) -> Iterator[str]:
    start = 0
    for end in _END.finditer(paragraph):
        follows_lower = paragraph[end.end() : end.end() + 1].islower()
        if not follows_lower and not _NO_END.search(paragraph, max(start, end.start() - _BEFORE_END), end.end()):
            yield paragraph[start : end.end()].strip()
            start = end.end()
    if paragraph[start:].strip():
        yield paragraph[start:].strip()

"""What a word is: texts become stems by the language of the article, and pairs of characters where no spaces are.

Stems are Snowball's; words of languages that it does not know are only in lower case, where Turkish and Azerbaijani
have two letters i. Letters and digits of other widths and shapes are those that they stand for (NFKC), characters that
show nothing (soft hyphens, joiners, marks of direction) are left out, and the letters of an abbreviation are one word:
"U.S." is "US". Accents are removed after stemming. Chinese, Japanese and Korean text, and that of scripts that write no
spaces (Thai, Lao, Khmer, Burmese), becomes overlapping pairs of characters, whatever the article's language.
"""

import dataclasses
import functools
import itertools
import re
import unicodedata
from collections.abc import Container
from typing import Any, Final

_DOTLESS: Final = "dotless"  # no stems, but the letters i of Turkish
_SNOWBALL: Final = (
    "ar:arabic da:danish de:german el:greek en:english es:spanish fi:finnish fr:french hu:hungarian it:italian nl:dutch"
    " nb:norwegian nn:norwegian no:norwegian pt:portuguese ro:romanian ru:russian sv:swedish ta:tamil tr:turkish"
)
_STEMMERS: Final = {"az": _DOTLESS, **dict(pair.split(":") for pair in _SNOWBALL.split())}
_LONGEST: Final = 200  # characters of a word; longer runs are data, such as encoded images
# Letters of scripts that write no spaces, and Hangul, whose words carry their particles.
PAIRED: Final = (
    "[\u0e00-\u0eff\u1000-\u109f\u1100-\u11ff\u1780-\u17ff\u3040-\u30ff\u3130-\u318f\u31f0-\u31ff\u3400-\u4dbf"
    "\u4e00-\u9fff\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff\uff66-\uff9f\U00020000-\U000323af]"
)
_LAST_MARK: Final = 0xABFF  # of the scripts whose words hold marks that are not letters, such as Devanagari
_PLAIN_WORD: Final = re.compile(r"[^\W_]+")
# Marks and scripts that need more than that.
_NOT_PLAIN: Final = re.compile(
    "[\u0300-\u036f\u0483-\u0489\u0590-\u1cff\u1dc0-\u1dff\u2de0-\u2dff\u3000-\ud7ff\uf900-\ufaff"
    "\uff66-\uff9f\U00010000-\U0010ffff]"
)
# What shows nothing: Unicode's default-ignorable characters, and the stroke that lengthens words in Arabic.
_INVISIBLE: Final = (
    "\u00ad\u034f\u061c\u0640\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164"
    "\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufff8"
)
# The same beyond U+10000, and mathematical letters.
_HIGH: Final = "[\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff\U0001d400-\U0001d7ff]"
_NOTHING: Final = re.compile(f"[{_INVISIBLE}\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]")
_USUAL: Final = dict(zip("\u0130\u02bb\u02bc\u06cc\u06a9\u06c1", "i''\u064a\u0643\u0647", strict=True))
# Blocks with letters and digits of other widths and shapes.
_SHAPES: Final = (range(0xA0, 0x3400), range(0xA640, 0xAC00), range(0xF900, 0x10000))
_LETTER: Final = rf"(?!{PAIRED})[^\W\d_]"
_ABBREVIATION: Final = rf"(?<![\w.]){_LETTER}(?:\.{_LETTER})+(?!\.?\w)"
# Accents of Latin, Greek and Cyrillic letters, and the points of Hebrew and Arabic ones.
_ACCENTS: Final = re.compile("[\u0300-\u036f\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u064b-\u065f\u0670]")
_OTHER_LETTERS: Final = str.maketrans(
    {"ß": "ss", "æ": "ae", "œ": "oe", "þ": "th"}
    | dict(zip("øđðł\u0131ħŋ\u03c2\u0649", "oddlihn\u03c3\u064a", strict=True))
)
# As `_word` finds them in plain text, but faster.
_PLAIN_WORDS: Final = re.compile(rf"(?P<short>{_ABBREVIATION})|[^\W_]+")
_EARLY: Final = 64
# Letters and signs by their category that show nothing: the fillers of Hangul, and Braille without dots.
_BLANK: Final = frozenset("\u115f\u1160\u2800\u3164\uffa0")


@dataclasses.dataclass(frozen=True, slots=True)
class Term:
    """One word of a text, as the index knows it, and its place: characters `start` to `end` of the text."""

    text: str
    start: int
    end: int


def clean(text: str) -> str:
    """The text in the composed form of Unicode (NFC), without half surrogate pairs."""
    return unicodedata.normalize("NFC", text.encode("utf-8", "replace").decode("utf-8"))


def base_language(tag: str) -> str:
    """The language of a BCP-47 tag, without script and region.

    >>> base_language("pt-BR"), base_language("")
    ('pt', '')
    """
    return re.split("[-_]", tag.strip().lower(), maxsplit=1)[0]


def terms(text: str, stemmer: str, among: Container[str] | None = None) -> list[Term]:
    """The words of a text from `clean` with their places.

    Args:
      text: what is read.
      stemmer: of `stemmer_of`.
      among: the words that are asked for, as the index knows them; None for all.
    """
    usual, origins = _usual(text, stemmer)
    places, words = list[tuple[int, int]](), list[str]()
    for found in (_word() if _NOT_PLAIN.search(usual) else _PLAIN_WORDS).finditer(usual):
        run, start, end = found[0], found.start(), found.end()
        if found.lastgroup == "paired":
            for place in range(max(len(run) - 1, 1)):
                places.append((start + place, start + min(place + 2, len(run))))
                words.append(run[place : place + 2].lower())
        elif len(run) <= _LONGEST:
            places.append((start, end))
            words.append((run.replace(".", "") if found.lastgroup else run).lower())
    if origins:
        places = [(origins[start], max(origins[end], origins[end - 1] + 1)) for start, end in places]
    different = [*dict.fromkeys(words)]
    known = dict(zip(different, map(_folded, _stems(different, stemmer)), strict=True))
    asked = {word: term for word, term in known.items() if among is None or term in among}
    return [Term(asked[word], *place) for word, place in zip(words, places, strict=True) if word in asked]


def written(text: str) -> list[str]:
    """The words of a text as they are written; of scripts without spaces, what is between spaces.

    >>> written("U.S. floods: सरकार ने कहा 洪水が")
    ['U.S', 'floods', 'सरकार', 'ने', 'कहा', '洪水が']
    """
    return [found[0] for found in (_word() if _NOT_PLAIN.search(text) else _PLAIN_WORDS).finditer(text)]


def words_of(text: str, language: str) -> str:
    """The words of a text as the index keeps them, between spaces.

    >>> words_of("U.S. hits the coasts", "en"), words_of("Über Stürme 洪水が", "de")
    ('us hit the coast', 'uber sturm 洪水 水が')
    """
    text, stemmer = clean(text), stemmer_of(language)
    if _NOT_PLAIN.search(text) or _unusual()[0].search(text):
        return " ".join(term.text for term in terms(text, stemmer))
    text = re.sub(_ABBREVIATION, lambda found: found[0].replace(".", ""), _usual(text, stemmer)[0])
    words = [word for word in _PLAIN_WORD.findall(text.lower()) if len(word) <= _LONGEST]  # the same, but faster
    known = _stems(words, stemmer)
    return " ".join(known if text.isascii() else map(_folded, known))


def _usual(text: str, stemmer: str) -> tuple[str, list[int]]:
    """A text in usual letters, and the place in the given text of each and of the end; none where all have stayed."""
    if stemmer in (_DOTLESS, _STEMMERS["tr"]):
        text = text.replace("I", "\u0131")
    pieces, places, end = list[str](), list[int](), 0
    low, both = _unusual()
    for found in both.finditer(text) if low.search(text) or _NOT_PLAIN.search(text) else ():
        usual = _usual_letters(found[0])
        pieces += (text[end : found.start()], usual)
        places += [*range(end, found.start()), *[found.start()] * len(usual)]
        end = found.end()
    if not end:
        return text, []
    return "".join((*pieces, text[end:])), [*places, *range(end, len(text) + 1)]


@functools.lru_cache(1 << 12)
def _usual_letters(written: str) -> str:
    letters = _NOTHING.sub("", unicodedata.normalize("NFKC", _NOTHING.sub("", written)))
    return "".join(str(unicodedata.digit(one)) if one.isdecimal() else _USUAL.get(one, one) for one in letters)


def stemmer_of(language: str) -> str:
    """The name of the stemmer for a language; "" for none.

    >>> stemmer_of("pt-BR"), stemmer_of("ja")
    ('portuguese', '')
    """
    return _STEMMERS.get(base_language(language), "")


def has_text(text: str) -> bool:
    r"""Whether a text has a visible character: a letter, a number, a punctuation mark or a sign.

    An encoder makes a vector of an invisible text, too, which means nothing. White space, control characters (such as
    NUL), characters without width, half surrogate pairs and marks without a letter are none. A character that Python's
    Unicode does not know yet may be visible.

    >>> has_text("Überschwemmung"), has_text("洪水"), has_text("🌊")
    (True, True, True)
    >>> has_text(" \n"), has_text("\x00\x1b"), has_text("\u200b\ufeff"), has_text("\u0301")
    (False, False, False, False)
    """
    # Nearly all texts show something early. Of those that do not, each character is looked up once.
    return any(map(_is_visible, text[:_EARLY])) or any(map(_is_visible, set(text[_EARLY:])))


def _is_visible(character: str) -> bool:
    category = unicodedata.category(character)
    return (category[0] in "LNPS" or category in {"Cn", "Co"}) and character not in _BLANK


@functools.cache
def _word() -> re.Pattern[str]:
    """A run of a script without spaces, an abbreviation, or a word of letters, numbers and marks."""
    marks = "".join(chr(code) for code in range(0x300, _LAST_MARK) if unicodedata.category(chr(code))[0] == "M")
    word = rf"(?:(?!{PAIRED})(?:[^\W_]|[{marks}]))+"
    return re.compile(rf"(?P<paired>{PAIRED}+)|(?P<short>{_ABBREVIATION})|{word}")


@functools.cache
def _unusual() -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Characters that are written in another way, or show nothing: below U+10000, with the mark of kana, and all.

    Python looks for the first ones quickly, but not for both at once.
    """
    others = "".join(
        letter
        for letter in map(chr, itertools.chain.from_iterable(_SHAPES))
        if letter.isalnum()
        and (usual := unicodedata.normalize("NFKC", letter)).isalnum()  # no fractions, which are two numbers
        and (usual != letter or letter.isdecimal())
    )
    low = f"[{others}{_INVISIBLE}{''.join(_USUAL)}][\uff9e\uff9f]?"
    return re.compile(low), re.compile(f"{low}|{_HIGH}")


def _stems(words: list[str], stemmer: str) -> list[str]:
    return words if stemmer in ("", _DOTLESS) else list(_stemmer(stemmer).stemWords(words))


@functools.cache
def _stemmer(name: str) -> Any:
    import Stemmer

    return Stemmer.Stemmer(name)  # it keeps Python's lock while it works


@functools.lru_cache(1 << 16)
def _folded(word: str) -> str:
    """A word without accents."""
    if word.isascii():
        return word
    plain = _ACCENTS.sub("", unicodedata.normalize("NFKD", word))
    return unicodedata.normalize("NFC", plain).translate(_OTHER_LETTERS)

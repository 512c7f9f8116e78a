"""What a word is: texts become stems by the language of the article, and pairs of characters where no spaces are.

Stems of 18 languages are Snowball's, as tantivy has them; words of other languages are only in lower case. Accents are
removed after stemming. Chinese, Japanese and Korean text, and that of scripts that write no spaces (Thai, Lao, Khmer,
Burmese), becomes overlapping pairs of characters, whatever the article's language.
"""

import dataclasses
import functools
import re
import unicodedata
from collections.abc import Iterable, Iterator
from typing import Any, Final

_STEMMERS: Final = {
    "ar": "arabic",
    "da": "danish",
    "de": "german",
    "el": "greek",
    "en": "english",
    "es": "spanish",
    "fi": "finnish",
    "fr": "french",
    "hu": "hungarian",
    "it": "italian",
    "nb": "norwegian",
    "nl": "dutch",
    "nn": "norwegian",
    "no": "norwegian",
    "pt": "portuguese",
    "ro": "romanian",
    "ru": "russian",
    "sv": "swedish",
    "ta": "tamil",
    "tr": "turkish",
}
_LONGEST: Final = 200  # bytes of a word; longer runs are data, such as encoded images
# Letters of scripts that write no spaces, and Hangul, whose words carry their particles.
_PAIRED: Final = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1100-\u11ff\u1780-\u17ff\u3040-\u30ff\u3130-\u318f\u31f0-\u31ff\u3400-\u4dbf"
    "\u4e00-\u9fff\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff\uff66-\uff9f\U00020000-\U000323af]+"
)
# Scripts whose words hold marks that are not letters, such as Devanagari.
_MARKED: Final = re.compile("[\u0300-\u036f\u0483-\u0489\u0590-\u0fff\u1700-\u1aff\ua800-\uaaff]")
_WORD: Final = r"[\p{L}\p{M}\p{N}]+"


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


def tokens(text: str, language: str) -> Any:
    """The words of a text as tantivy's ``PreTokenizedString``, for `formats.words`; their places have no meaning.

    Args:
      text: from `clean`.
      language: BCP-47 tag; "" if unknown.
    """
    return _analyzer(stemmer_of(language), bool(_MARKED.search(text))).pre_tokenize(_PAIRED.sub(_pairs, text))


def terms(text: str, stemmer: str) -> Iterator[Term]:
    """The words of a text with their places.

    Args:
      text: from `clean`.
      stemmer: of `stemmer_of`.
    """
    analyzer, start = _analyzer(stemmer, bool(_MARKED.search(text))), 0
    for run in [*_PAIRED.finditer(text), None]:
        end = len(text) if run is None else run.start()
        for token in analyzer.pre_tokenize(text[start:end]).tokens:
            yield Term(token.text, start + token.char_offset_from, start + token.char_offset_to)
        if run is not None:
            for place, pair in enumerate(_pairs(run).split(), run.start()):
                for token in analyzer.analyze(pair):
                    yield Term(token, place, place + len(pair))
            start = run.end()


def stemmer_of(language: str) -> str:
    """The name of the stemmer for a language; "" for none.

    >>> stemmer_of("pt-BR"), stemmer_of("ja")
    ('portuguese', '')
    """
    return _STEMMERS.get(base_language(language), "")


def stemmers_of(languages: Iterable[str]) -> tuple[str, ...]:
    """The stemmers that articles of some languages were read with, sorted."""
    return tuple(sorted({stemmer_of(language) for language in languages}))


def _pairs(run: re.Match[str]) -> str:
    """Overlapping pairs of the characters of a run, between spaces; a single character stays as it is."""
    characters = run[0]
    pairs = [characters[place : place + 2] for place in range(len(characters) - 1)] or [characters]
    return f" {' '.join(pairs)} "


@functools.cache
def _analyzer(stemmer: str, marked: bool) -> Any:
    """Text to lower case, stems and letters without accents.

    Args:
      stemmer: "" for none.
      marked: whether words may hold marks; splitting at those that are not letters takes half of the time.
    """
    from tantivy import Filter, TextAnalyzerBuilder, Tokenizer

    made = TextAnalyzerBuilder(Tokenizer.regex(_WORD) if marked else Tokenizer.simple())
    made = made.filter(Filter.remove_long(_LONGEST)).filter(Filter.lowercase())
    if stemmer:
        made = made.filter(Filter.stemmer(stemmer))
    return made.filter(Filter.ascii_fold()).build()

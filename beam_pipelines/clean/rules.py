"""The rules for one article: each returns a description of the problem, or ``None`` if the article passes.

Most rules come from C4 (Raffel et al. 2020, section 2.2), adapted to news. The rules for words, authors and dates come
from NewsEmbed, section 2.1.
"""

import collections
import dataclasses
import re
from collections.abc import Callable, Sequence
from typing import Final

from ...errors import InputError
from ...formats import files
from ...formats.records import Article, Rejection
from . import dates
from .counting import count_sentences, count_words
from .languages import detect_language, script_share, text_of
from .lines import clean_lines
from .options import CleanOptions

Rule = Callable[[Article, CleanOptions], str | None]
_SPAN_SENTENCES: Final = 3
_SENTENCE_BREAK: Final = re.compile(r"(?:[.!?\u2026\u061f\u06d4](?=\s|$)|[\n\u3002\uff01\uff1f\u0964])\s*")
_ERROR_PAGE: Final = re.compile(
    r"page not found|404 not found|seite nicht gefunden|p\u00e1gina no encontrada|page introuvable"
    r"|page (?:you requested|cannot be found)|accept (?:all )?cookies to continue|enable javascript",
    re.IGNORECASE,
)
_ERROR_PAGE_CHARACTERS: Final = 400  # from the start of the body: error pages are short


def without_title(article: Article, _options: CleanOptions) -> str | None:
    """Rejects articles without a title."""
    return None if article.title else ""


def error_page(article: Article, options: CleanOptions) -> str | None:
    """Rejects error pages, and pages that require cookies or JavaScript."""
    if not options.refuse_error_pages:
        return None
    found = _ERROR_PAGE.search(f"{article.title}\n{article.body[:_ERROR_PAGE_CHARACTERS]}")
    return f"{found.group(0)}: {article.title}" if found else None


def too_few_words(article: Article, options: CleanOptions) -> str | None:
    """Rejects articles that are too short."""
    words = count_words(article.body)
    return f"{words} words" if words < options.min_words else None


def too_few_sentences(article: Article, options: CleanOptions) -> str | None:
    """Rejects articles with too few sentences, such as lists."""
    sentences = count_sentences(article.body, options.min_sentences)
    return f"{sentences} sentences" if sentences < options.min_sentences else None


def placeholder_text(article: Article, options: CleanOptions) -> str | None:
    """Rejects templates with placeholder text."""
    return "lorem ipsum" if options.refuse_placeholder_text and "lorem ipsum" in article.body.casefold() else None


def curly_brace(article: Article, options: CleanOptions) -> str | None:
    """Rejects texts with a curly brace, which are mostly source code."""
    return "{" if options.refuse_curly_braces and "{" in article.body else None


def repeated_lines(article: Article, options: CleanOptions) -> str | None:
    """Rejects texts with many repeated lines."""
    share = repeated_share(article.body)
    return f"{share:.2f} of the text in repeated lines" if share > options.max_repeated_share else None


def repeated_spans(article: Article, options: CleanOptions) -> str | None:
    """Rejects texts with many repeated spans of three sentences, regardless of line breaks."""
    share = repeated_span_share(article.body)
    return (
        f"{share:.2f} of the text in repeated spans of {_SPAN_SENTENCES} sentences"
        if share > options.max_repeated_span_share
        else None
    )


def without_author(article: Article, options: CleanOptions) -> str | None:
    """Rejects articles without an author."""
    return "" if options.require_author and not article.authors else None


def unknown_language(article: Article, options: CleanOptions) -> str | None:
    """Rejects articles whose language was not recognised."""
    return (
        f"none of {options.min_language_probability} or more"
        if options.require_language and not article.language
        else None
    )


def wrong_script(article: Article, options: CleanOptions) -> str | None:
    """Rejects texts mostly in a script that their language does not use: the language or the encoding is wrong."""
    if not article.language:
        return None
    share = script_share(text_of(article), article.language)
    return f"{share:.2f} of the letters fit {article.language}" if share < options.min_script_share else None


# In order of application: an article is rejected under the first rule that it breaks.
RULES: Final[tuple[tuple[Rule, Rejection], ...]] = (
    (without_title, Rejection.NO_TITLE),
    (error_page, Rejection.COOKIE_OR_ERROR_PAGE),
    (too_few_words, Rejection.TOO_FEW_WORDS),
    (too_few_sentences, Rejection.TOO_FEW_SENTENCES),
    (placeholder_text, Rejection.PLACEHOLDER_TEXT),
    (curly_brace, Rejection.CURLY_BRACE),
    (repeated_lines, Rejection.REPEATED_TEXT),
    (repeated_spans, Rejection.REPEATED_SPANS),
    (without_author, Rejection.NO_AUTHOR),
    (dates.without_date, Rejection.NO_BYLINE_DATE),
    (dates.too_early, Rejection.DATE_TOO_EARLY),
    (dates.in_future, Rejection.DATE_IN_FUTURE),
    (dates.disagreeing, Rejection.DATES_DISAGREE),
    (unknown_language, Rejection.UNKNOWN_LANGUAGE),
    (wrong_script, Rejection.WRONG_SCRIPT),
)


def rejection_of(article: Article, options: CleanOptions) -> tuple[Rejection, str] | None:
    """Returns the rejection of the first rule that the article breaks, with its detail; ``None`` if it passes."""
    for rule, rejection in RULES:
        if (detail := rule(article, options)) is not None:
            return rejection, detail
    return None


def cleaned(article: Article, options: CleanOptions) -> tuple[Article, collections.Counter[str]]:
    """Cleans the lines of an article and detects its language.

    Returns:
      (article, number of lines dropped by each rule of :mod:`.lines`).
    """
    body, dropped = clean_lines(article.body, options)
    article = dataclasses.replace(article, title=" ".join(article.title.split()), body=body)
    return dataclasses.replace(article, language=detect_language(article, options)), dropped


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
    """Returns a pattern that matches the user's words as whole words in any case; ``None`` without a list.

    Raises:
      InputError: if a list is empty or not UTF-8.
    """
    words: set[str] = set()
    for path in paths:
        with files.open_read(path) as source:
            try:
                found = {line.strip() for line in source.read().decode("utf-8-sig").splitlines()} - {""}
            except UnicodeDecodeError as error:
                raise InputError(
                    f"not UTF-8: {error}",
                    path=path,
                    field="--bad_words",
                    remedy="write the list as UTF-8, one word per line",
                ) from error
        if not found:
            raise InputError("contains no words", path=path, field="--bad_words", remedy="write one word per line")
        words |= found
    return re.compile(rf"(?<!\w)(?:{'|'.join(map(re.escape, sorted(words)))})(?!\w)", re.IGNORECASE) if words else None


def bad_word(article: Article, words: re.Pattern[str] | None) -> str:
    """Returns the first word of the user's list in the article; "" if there is none."""
    found = words.search(f"{article.title}\n{article.body}") if words else None
    return found.group(0) if found else ""

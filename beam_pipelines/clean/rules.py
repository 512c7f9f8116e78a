"""The rules for one article and for the lines of its body.

Most rules come from C4 (Raffel et al. 2020, section 2.2), adapted to news. The rules for words, authors and dates come
from NewsEmbed, section 2.1.
"""

import collections
import dataclasses
import datetime
import re
from collections.abc import Iterator, Sequence
from typing import Final

from ...errors import InputError, reading
from ...formats import files
from ...formats.dates import day_in_url
from ...formats.records import Article, Rejection
from .languages import count_sentences, count_words, detect_language, ends_sentence, script_share, text_of
from .options import CleanOptions

_Reason = tuple[Rejection, str]  # with its detail
_SPAN_SENTENCES: Final = 3
_SENTENCE_BREAK: Final = re.compile(r"(?:[.!?\u2026\u061f\u06d4](?=\s|$)|[\n\u3002\uff01\uff1f\u0964])\s*")
_ERROR_PAGE: Final = re.compile(
    r"page not found|404 not found|seite nicht gefunden|p\u00e1gina no encontrada|page introuvable"
    r"|page (?:you requested|cannot be found)|accept (?:all )?cookies to continue|enable javascript",
    re.IGNORECASE,
)
_ERROR_PAGE_CHARACTERS: Final = 400  # from the start of the body: error pages are short
_GRACE: Final = datetime.timedelta(days=1)  # a page fetched in one time zone may be dated tomorrow in another
_NOTICE_CHARACTERS: Final = 300  # longer paragraphs about cookies or policies are articles on the subject
# Phrases in lower case. Plain strings, because one regular expression for all of them is ten times slower.
_JAVASCRIPT: Final = ("javascript", "java script")
_COOKIES, _POLICIES = (
    phrases.split("|")
    for phrases in (
        (
            "cookie policy|uses cookies|use of cookies|use cookies|our cookies|accept cookies|accept all cookies"
            "|verwendet cookies|verwenden cookies|utiliza cookies|utilizamos cookies|utilise des cookies"
            "|utilise les cookies|utilizza cookie|utilizza i cookie|gebruikt cookies|использует cookie"
            "|использует файлы cookie|используем файлы cookie"
        ),
        (
            "terms of use|terms of service|privacy policy|privacy notice|sign up for our newsletter|all rights reserved"
            "|datenschutzerklärung|nutzungsbedingungen|alle rechte vorbehalten|privacybeleid|alle rechten voorbehouden"
            "|política de privacidad|términos y condiciones|todos los derechos reservados|todos os direitos reservados"
            "|politique de confidentialité|conditions d'utilisation|conditions d\u2019utilisation|tous droits réservés"
            "|politica sulla privacy|tutti i diritti riservati"
            "|политика конфиденциальности|политики конфиденциальности|все права защищены"
        ),
    )
)
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
    rules = (_in_text, _in_metadata, _in_dates, _in_language)
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
    if options.require_byline_date and article.byline_date is None:
        yield Rejection.NO_BYLINE_DATE, ""


def _in_dates(article: Article, options: CleanOptions) -> Iterator[_Reason]:
    date, most = article.byline_date, options.max_date_disagreement_days
    if date is None:
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
    return re.compile(rf"(?<!\w)(?:{'|'.join(map(re.escape, sorted(words)))})(?!\w)", re.IGNORECASE) if words else None


def bad_word(article: Article, words: re.Pattern[str] | None) -> str:
    """Returns the first word of the user's list in the article; "" if there is none."""
    found = words.search(f"{article.title}\n{article.body}") if words else None
    return found.group(0) if found else ""

"""The rules for one line of a body: a line that breaks a rule is dropped.

The rules are those of C4 (Raffel et al. 2020, section 2.2). If no line of a body is left, the article is rejected under
the rule that dropped most of its lines.
"""

import collections
from collections.abc import Callable
from typing import Final

from ...formats.records import Rejection
from .counting import count_words, ends_sentence
from .options import CleanOptions

LineRule = Callable[[str, CleanOptions], bool]
_NOTICE_CHARACTERS: Final = 300  # longer paragraphs about cookies or policies are articles on the subject

# Phrases in lower case. Plain strings, because one regular expression for all of them is ten times slower.
_JAVASCRIPT: Final = ("javascript", "java script")
_COOKIES: Final = (
    *(
        "cookie policy",
        "uses cookies",
        "use of cookies",
        "use cookies",
        "our cookies",
        "accept cookies",
        "accept all cookies",
    ),
    *(
        "verwendet cookies",
        "verwenden cookies",
        "utiliza cookies",
        "utilizamos cookies",
        "utilise des cookies",
        "utilise les cookies",
    ),
    *(
        "utilizza cookie",
        "utilizza i cookie",
        "gebruikt cookies",
        "использует cookie",
        "использует файлы cookie",
        "используем файлы cookie",
    ),
)
_POLICIES: Final = (
    *(
        "terms of use",
        "terms of service",
        "privacy policy",
        "privacy notice",
        "sign up for our newsletter",
        "all rights reserved",
    ),
    *(
        "datenschutzerklärung",
        "nutzungsbedingungen",
        "alle rechte vorbehalten",
        "privacybeleid",
        "alle rechten voorbehouden",
    ),
    *(
        "política de privacidad",
        "términos y condiciones",
        "todos los derechos reservados",
        "todos os direitos reservados",
    ),
    *(
        "politique de confidentialité",
        "conditions d'utilisation",
        "conditions d\u2019utilisation",
        "tous droits réservés",
    ),
    *("politica sulla privacy", "tutti i diritti riservati"),
    *("политика конфиденциальности", "политики конфиденциальности", "все права защищены"),
)


def is_javascript_notice(line: str, options: CleanOptions) -> bool:
    """Returns whether a line asks readers to enable JavaScript."""
    return options.drop_javascript_lines and len(line) < _NOTICE_CHARACTERS and _names(line, _JAVASCRIPT)


def is_cookie_notice(line: str, options: CleanOptions) -> bool:
    """Returns whether a line is a cookie notice."""
    return options.drop_cookie_lines and len(line) < _NOTICE_CHARACTERS and _names(line, _COOKIES)


def is_policy_notice(line: str, options: CleanOptions) -> bool:
    """Returns whether a line is a notice about terms, privacy, rights or a newsletter."""
    return options.drop_policy_lines and len(line) < _NOTICE_CHARACTERS and _names(line, _POLICIES)


def lacks_terminal_punctuation(line: str, options: CleanOptions) -> bool:
    """Returns whether a line does not end like a sentence, such as captions, menu items and headings."""
    return options.require_terminal_punctuation and not ends_sentence(line)


def has_too_few_words(line: str, options: CleanOptions) -> bool:
    """Returns whether a line has fewer words than ``min_words_per_line``."""
    # The cheap check comes first; only lines with few parts, as in scripts without spaces, are counted exactly.
    return len(line.split()) < options.min_words_per_line and count_words(line) < options.min_words_per_line


def _names(line: str, phrases: tuple[str, ...]) -> bool:
    lowered = line.lower()
    return any(phrase in lowered for phrase in phrases)


# In order of application. The name is the counter of the lines that the rule drops.
LINE_RULES: Final[tuple[tuple[LineRule, str, Rejection], ...]] = (
    (is_javascript_notice, "javascript_lines", Rejection.ONLY_JAVASCRIPT_LINES),
    (is_cookie_notice, "cookie_lines", Rejection.ONLY_COOKIE_LINES),
    (is_policy_notice, "policy_lines", Rejection.ONLY_POLICY_LINES),
    (lacks_terminal_punctuation, "lines_without_terminal_punctuation", Rejection.NO_TERMINAL_PUNCTUATION),
    (has_too_few_words, "lines_with_too_few_words", Rejection.TOO_FEW_WORDS_PER_LINE),
)
_REJECTIONS: Final = {name: rejection for _, name, rejection in LINE_RULES}


def clean_lines(body: str, options: CleanOptions) -> tuple[str, collections.Counter[str]]:
    """Returns the body without the lines that break a rule, and the number of lines that each rule dropped."""
    kept = []
    dropped: collections.Counter[str] = collections.Counter()
    for line in body.splitlines():
        text = " ".join(line.split())
        broken = next((name for rule, name, _ in LINE_RULES if rule(text, options)), "") if text else ""
        if broken:
            dropped[broken] += 1
        elif text:
            kept.append(text)
    return "\n".join(kept), dropped


def rejection_of_lines(dropped: collections.Counter[str]) -> tuple[Rejection, str]:
    """Returns the rejection of an article without remaining lines, by the rule that dropped most of them."""
    if not dropped:
        return Rejection.TOO_FEW_WORDS, "no text"
    (name, count), *_ = dropped.most_common(1)
    return _REJECTIONS[name], f"{count} of {dropped.total()} lines"

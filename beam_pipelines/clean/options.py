"""The options of ``clean``, one or more for each rule."""

import dataclasses
import datetime
from collections.abc import Mapping
from typing import Final

from ...errors import InputError
from ...formats.command_line import Options, option
from ...formats.records import Rejection

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

"""The options of ``clean``, one or more for each rule."""

import dataclasses
import datetime
from collections.abc import Mapping
from typing import Final

from ...errors import InputError
from ...formats.command_line import option
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
class CleanOptions:
    """Options of the rules and the search for duplicates; defaults follow the paper, and C4 where it suits news."""

    min_words: int = option(100, "articles with fewer words are rejected")
    require_author: bool = option(True, "reject articles without an author")
    require_byline_date: bool = option(True, "reject articles without a byline date")
    earliest_date: datetime.date = option(datetime.date(1990, 1, 1), "articles dated before this day are rejected")
    latest_date: datetime.date | None = option(
        None, "articles dated after this day, or after they were fetched, are rejected; default: tomorrow"
    )
    max_date_disagreement_days: int = option(
        7,
        "articles whose byline date differs by more days from the day in the URL, or is by more days later "
        "than the last modification, are rejected; -1 turns the rule off",
    )
    min_sentences: int = option(3, "articles with fewer sentences are rejected")
    require_terminal_punctuation: bool = option(True, "drop lines that do not end like a sentence (captions, menus)")
    min_words_per_line: int = option(3, "drop lines with fewer words")
    drop_javascript_lines: bool = option(True, "drop lines that ask readers to enable JavaScript")
    drop_cookie_lines: bool = option(True, "drop cookie notices")
    drop_policy_lines: bool = option(True, "drop notices about terms, privacy, rights and newsletters")
    refuse_error_pages: bool = option(True, "reject error pages")
    refuse_placeholder_text: bool = option(True, 'reject texts with "lorem ipsum"')
    refuse_curly_braces: bool = option(
        False, "reject texts with a curly brace, as C4 does; off because news rarely quotes code"
    )
    max_repeated_share: float = option(0.3, "reject texts with a larger share of repeated lines; 1 turns the rule off")
    max_repeated_span_share: float = option(
        0.3, "reject texts with a larger share of repeated spans of three sentences; 1 turns the rule off"
    )
    min_language_probability: float = option(0.4, "languages identified with a lower probability count as unknown")
    require_language: bool = option(True, "reject articles whose language is not recognised")
    min_script_share: float = option(
        0.5, "reject articles with a smaller share of letters in a script of their language; 0 turns the rule off"
    )
    near_duplicate_threshold: float = option(
        0.8, "minimum Jaccard similarity of word 5-grams of near duplicates; values above 1 turn the search off"
    )
    permutations: int = option(112, "MinHash permutations")
    bands: int = option(16, "LSH bands; must divide --permutations")

    min_yield_drop: float = option(
        0.1, "with --history: warn about publishers whose yield, a share of 1, dropped by this much"
    )
    yield_false_discovery_rate: float = option(
        0.01,
        "with --history: expected share of false alarms among these warnings (Fisher's exact test, Benjamini-Hochberg)",
    )
    fail_on_yield_alarm: bool = option(False, "with --history: publish nothing if there is a warning")

    def __post_init__(self) -> None:
        """Checks the values.

        Raises:
          InputError: naming the option with an invalid value.
        """
        if self.bands < 1 or self.permutations % self.bands:
            raise InputError(
                f"got {self.bands} bands for {self.permutations} permutations",
                field="--bands",
                remedy="choose a divisor of --permutations",
            )
        if self.near_duplicate_threshold <= 0:
            raise InputError(
                f"got {self.near_duplicate_threshold}, expected more than 0",
                field="--near_duplicate_threshold",
                remedy="0.8 is usual",
            )
        if self.min_words < 0 or self.min_sentences < 0:
            raise InputError(
                "got a negative number", field="--min_words, --min_sentences", remedy="give 0 to turn the rule off"
            )
        for name in (
            "min_script_share",
            "max_repeated_share",
            "max_repeated_span_share",
            "min_yield_drop",
            "yield_false_discovery_rate",
        ):
            if not 0 <= getattr(self, name) <= 1:
                raise InputError(f"got {getattr(self, name)}", field=f"--{name}", remedy="give a share from 0 to 1")

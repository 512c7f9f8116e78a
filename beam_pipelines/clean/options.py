"""Options of ``clean``: each rule is one."""

import dataclasses
import datetime

from ...errors import InputError


@dataclasses.dataclass(frozen=True)
class CleanOptions:
    """Defaults are the paper's and C4's, as far as they fit news."""

    min_words: int = dataclasses.field(default=100, metadata={"help": "articles with fewer words are rejected"})
    require_author: bool = dataclasses.field(default=True, metadata={"help": "reject articles without an author"})
    require_byline_date: bool = dataclasses.field(
        default=True, metadata={"help": "reject articles without a byline date"}
    )
    earliest_date: datetime.date = dataclasses.field(
        default=datetime.date(1990, 1, 1), metadata={"help": "byline dates before this are implausible"}
    )
    latest_date: datetime.date | None = dataclasses.field(
        default=None, metadata={"help": "byline dates after this are turned down, as are those after the fetch"}
    )
    max_date_disagreement_days: int = dataclasses.field(
        default=7,
        metadata={
            "help": "byline dates farther than this from the day in the URL, or after the last change, are turned down; -1 turns the rule off"
        },
    )
    min_sentences: int = dataclasses.field(default=3, metadata={"help": "articles with fewer sentences are rejected"})
    require_terminal_punctuation: bool = dataclasses.field(
        default=True, metadata={"help": "drop lines that end in no sentence (captions, menus)"}
    )
    min_words_per_line: int = dataclasses.field(default=3, metadata={"help": "drop lines with fewer words"})
    drop_javascript_lines: bool = dataclasses.field(
        default=True, metadata={"help": "drop lines that ask for JavaScript"}
    )
    drop_cookie_lines: bool = dataclasses.field(default=True, metadata={"help": "drop lines that tell of cookies"})
    drop_policy_lines: bool = dataclasses.field(
        default=True, metadata={"help": "drop lines on terms, privacy, rights and newsletters"}
    )
    refuse_error_pages: bool = dataclasses.field(
        default=True, metadata={"help": "reject pages that say there is no page"}
    )
    refuse_placeholder_text: bool = dataclasses.field(default=True, metadata={"help": "reject texts with lorem ipsum"})
    refuse_curly_braces: bool = dataclasses.field(
        default=False,
        metadata={"help": "reject texts with a curly brace, as C4 does; news quotes code too rarely to need it"},
    )
    max_repeated_share: float = dataclasses.field(
        default=0.3, metadata={"help": "reject texts of which a larger share is repeated lines; 1 turns it off"}
    )
    max_repeated_span_share: float = dataclasses.field(
        default=0.3,
        metadata={
            "help": "reject texts of which a larger share lies in repeated spans of three sentences; 1 turns it off"
        },
    )
    min_language_probability: float = dataclasses.field(
        default=0.4, metadata={"help": "a language that the identifier gives less counts as unknown"}
    )
    require_language: bool = dataclasses.field(
        default=True, metadata={"help": "reject articles whose language is not recognised"}
    )
    min_script_share: float = dataclasses.field(
        default=0.5,
        metadata={
            "help": "reject articles with a smaller share of letters in a script of their language; 0 turns it off"
        },
    )
    near_duplicate_threshold: float = dataclasses.field(
        default=0.8,
        metadata={"help": "Jaccard similarity of word 5-grams that makes near duplicates; above 1 turns it off"},
    )
    permutations: int = dataclasses.field(default=112, metadata={"help": "MinHash permutations"})
    bands: int = dataclasses.field(default=16, metadata={"help": "LSH bands; must divide the permutations"})

    min_yield_drop: float = dataclasses.field(
        default=0.1,
        metadata={"help": "with --history: warn of publishers whose yield, a share of 1, dropped by so much"},
    )
    yield_false_discovery_rate: float = dataclasses.field(
        default=0.01,
        metadata={
            "help": "with --history: false alarms expected among these warnings (Fisher's exact test, Benjamini-Hochberg)"
        },
    )
    fail_on_yield_alarm: bool = dataclasses.field(
        default=False, metadata={"help": "with --history: publish nothing if there is a warning"}
    )

    def __post_init__(self) -> None:
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

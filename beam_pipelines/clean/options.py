"""Options of ``clean``: each rule is one."""

import dataclasses
import datetime

from ...tasks.errors import InputError


@dataclasses.dataclass(frozen=True)
class CleanOptions:
    """Defaults are the paper's and C4's, as far as they fit news."""

    min_words: int = dataclasses.field(default=100, metadata={"help": "articles with fewer words are rejected"})
    require_author: bool = dataclasses.field(default=True, metadata={"help": "reject articles without an author"})
    require_byline_date: bool = dataclasses.field(default=True, metadata={"help": "reject articles without a byline date"})
    earliest_date: datetime.date = dataclasses.field(
        default=datetime.date(1990, 1, 1), metadata={"help": "byline dates before this are implausible"}
    )
    latest_date: datetime.date | None = dataclasses.field(
        default=None, metadata={"help": "byline dates after this are implausible; without it, those after the fetch"}
    )
    min_sentences: int = dataclasses.field(default=3, metadata={"help": "articles with fewer sentences are rejected"})
    require_terminal_punctuation: bool = dataclasses.field(
        default=True, metadata={"help": "drop lines that end in no sentence (captions, menus)"}
    )
    refuse_placeholder_text: bool = dataclasses.field(default=True, metadata={"help": "reject texts with lorem ipsum"})
    refuse_curly_braces: bool = dataclasses.field(
        default=False, metadata={"help": "reject texts with a curly brace, as C4 does; news quotes code too rarely to need it"}
    )
    max_repeated_share: float = dataclasses.field(default=0.3, metadata={"help": "reject texts of which a larger share is repeated lines"})
    bad_words: str = dataclasses.field(default="", metadata={"help": "file of words, one a line; an article with one of them is rejected"})
    max_language_distance: int = dataclasses.field(
        default=1200, metadata={"help": "largest distance of the language detector that counts as known"}
    )
    require_language: bool = dataclasses.field(default=True, metadata={"help": "reject articles whose language is not recognised"})
    near_duplicate_threshold: float = dataclasses.field(
        default=0.8, metadata={"help": "estimated Jaccard similarity of word 5-grams that makes near duplicates; above 1 turns it off"}
    )
    permutations: int = dataclasses.field(default=112, metadata={"help": "MinHash permutations"})
    bands: int = dataclasses.field(default=16, metadata={"help": "LSH bands; must divide the permutations"})

    def __post_init__(self) -> None:
        if self.bands < 1 or self.permutations % self.bands:
            raise InputError(
                f"got {self.bands} bands for {self.permutations} permutations", field="--bands", remedy="choose a divisor of --permutations"
            )
        if self.near_duplicate_threshold <= 0:
            raise InputError(
                f"got {self.near_duplicate_threshold}, expected more than 0", field="--near_duplicate_threshold", remedy="0.8 is usual"
            )
        if self.min_words < 0 or self.min_sentences < 0:
            raise InputError("got a negative number", field="--min_words, --min_sentences", remedy="give 0 to turn the rule off")

"""The options of ``pairs``."""

import dataclasses
import datetime
import functools
from typing import Final

from ...errors import require_option
from ...formats.command_line import option
from .halves import BOTH, DROP, NO_UNIT, SENTENCE, WORD
from .kinds import KINDS

_SHORTEST_TEXT: Final = 8
START, END = "start", "end"


@dataclasses.dataclass(frozen=True)
class PairsOptions:
    """Options of ``pairs``."""

    of: str = option(
        "titles",
        "the two texts of a pair: an article and a post that links to it (posts), an article and a link "
        "text to it (anchors), a body and its title (titles), two texts that share the sentences of a body (halves)",
    )
    max_length: int = option(512, "tokens of a text, including special tokens")
    keep: str = option(START, "the part that stays of a text that is too long: start or end")
    min_tokens: int = option(3, "fewest tokens of each text, without special tokens")
    per_article: int = option(0, "most pairs of one article, drawn by the seed; 0 keeps all")
    draws: int = option(1, "halves: pairs of each article, each a draw of its own")
    unit: str = option(
        SENTENCE,
        "halves: what is dealt to the two texts, sentence or word; none: both are the whole body, and "
        "dropout alone tells them apart",
    )
    title: str = option(DROP, "halves: drop the title, or give it to both texts (both)")
    seed: int = option(0, "of all draws: the same seed gives the same pairs")
    held_out_share: float = option(
        0.0,
        "hold out this share of the articles with all of their pairs, drawn by the seed: they go to "
        "held_out/ in the output, for EVAL_DATA_DIR",
    )
    held_out_from: datetime.date | None = option(None, "hold out the articles of this day and later, too")

    def __post_init__(self) -> None:
        require = functools.partial(require_option, command="pairs")
        require(self.of in KINDS, "of", self.of, f"one of {', '.join(KINDS)}")
        require(self.max_length >= _SHORTEST_TEXT, "max_length", self.max_length, f"at least {_SHORTEST_TEXT}")
        require(self.keep in (START, END), "keep", self.keep, f"{START} or {END}")
        require(self.min_tokens >= 1, "min_tokens", self.min_tokens, "1 or more")
        require(self.draws >= 1, "draws", self.draws, "1 or more")
        require(self.unit in (SENTENCE, WORD, NO_UNIT), "unit", self.unit, f"{SENTENCE}, {WORD} or {NO_UNIT}")
        require(self.draws == 1 or self.unit != NO_UNIT, "draws", self.draws, f"1 with --unit={NO_UNIT}")
        require(self.title in (DROP, BOTH), "title", self.title, f"{DROP} or {BOTH}")
        defaults = {field.name: field.default for field in dataclasses.fields(self)}
        for kind in KINDS.keys() - {self.of}:
            for name in KINDS[kind].options:
                value = getattr(self, name)
                require(value == defaults[name], name, value, f"none with --of={self.of}: it is for --of={kind}")
        require(self.per_article >= 0, "per_article", self.per_article, "0 or more")
        require(0 <= self.held_out_share < 1, "held_out_share", self.held_out_share, "a number from 0, below 1")

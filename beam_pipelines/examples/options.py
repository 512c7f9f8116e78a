"""The options of ``examples``."""

import dataclasses
import datetime
import functools
from typing import Final

from ...errors import require_option
from ...formats.command_line import option
from ...tasks.triplets import Augmentation

_SHORTEST_TEXT: Final = 8


@dataclasses.dataclass(frozen=True)
class ExamplesOptions:
    """Options of ``examples``."""

    max_length: int = option(512, "tokens of a text, including special tokens")
    augmentations_per_triplet: int = option(1, "distinct rows of Table 1 to draw for each triplet, 1 to 4")
    weights: tuple[float, ...] = option(
        (1.0, 1.0, 1.0, 1.0),
        "weights of the rows of Table 1: title to body, anchor text to document, title to document, "
        "document to document",
    )
    min_anchor_similarity: float = option(0.5, "least similarity of an anchor text to the title")
    max_anchor_texts: int = option(8, "anchor texts to keep of a document, the most similar first")
    negatives_per_example: int = option(
        1,
        "negatives of an example: this many triplets of one anchor and positive are merged "
        "(--triplets.negatives_per_positive mines them)",
    )
    documents_per_example: int = option(
        3, "labelled documents of an example of topics; with 3, as many as texts of a triplet, as in the paper"
    )
    held_out_from: datetime.date | None = option(
        None,
        "hold out the documents of this day and later: their examples go to held_out/ in the output, for EVAL_DATA_DIR",
    )
    held_out_share: float = option(
        0.0,
        "hold out the last days that have at least this share of the anchors, instead of naming a day; 0 "
        "holds nothing out",
    )
    translate_share: float = option(
        1.0, "share of the triplets without English that get an English positive and negative"
    )
    translate_words: int = option(400, "words of a body to translate, in whole sentences; 400 fill about 512 tokens")
    translation_beam: int = option(2, "beam size of the translation; 1 is greedy and faster")
    translation_cache: str = option(
        "", "folder that keeps translations for other runs and jobs; kept only during this job if empty"
    )

    def __post_init__(self) -> None:
        require = functools.partial(require_option, command="examples")
        require(self.max_length >= _SHORTEST_TEXT, "max_length", self.max_length, f"at least {_SHORTEST_TEXT}")
        rows = len(Augmentation)
        require(
            1 <= self.augmentations_per_triplet <= rows,
            "augmentations_per_triplet",
            self.augmentations_per_triplet,
            f"1 to {rows}",
        )
        fits = len(self.weights) == rows and min(self.weights) >= 0 and sum(self.weights) > 0
        require(fits, "weights", self.weights, f"{rows} numbers, none negative, not all 0")
        require(
            0 <= self.min_anchor_similarity <= 1,
            "min_anchor_similarity",
            self.min_anchor_similarity,
            "a number from 0 to 1",
        )
        require(self.max_anchor_texts >= 0, "max_anchor_texts", self.max_anchor_texts, "0 or more")
        require(self.negatives_per_example >= 1, "negatives_per_example", self.negatives_per_example, "1 or more")
        require(self.documents_per_example >= 1, "documents_per_example", self.documents_per_example, "1 or more")
        require(0 <= self.held_out_share < 1, "held_out_share", self.held_out_share, "a number from 0, below 1")
        require(
            self.held_out_from is None or not self.held_out_share,
            "held_out_share",
            self.held_out_share,
            "0 where --held_out_from names a day",
        )
        require(0 <= self.translate_share <= 1, "translate_share", self.translate_share, "a number from 0 to 1")
        require(self.translate_words >= 1, "translate_words", self.translate_words, "1 or more")
        require(self.translation_beam >= 1, "translation_beam", self.translation_beam, "1 or more")

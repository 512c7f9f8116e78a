"""Options of ``newsembed bitext``."""

import dataclasses
import functools

from ...errors import require_option
from ...formats.command_line import option
from ...tasks.margin import DEFAULT_MARGIN, NEIGHBORS
from ..neighbors.index import Engine


@dataclasses.dataclass(frozen=True)
class BitextOptions:
    """Options of ``bitext``."""

    pivot: str = option("en", "pairs are mined between this language and each other; empty: between all languages")
    languages: tuple[str, ...] = option((), "only articles in these languages; empty: all")
    window_days: int = option(1, "largest day gap of two articles whose sentences are compared")
    block_days: int = option(7, "days that one worker holds in memory, for each pair of languages")
    candidates: int = option(10, "with --vectors: nearest articles of each article in each space and language")
    min_entity_similarity: float = option(0.3, "with --vectors: least cosine of entity vectors")
    min_image_similarity: float = option(0.9, "with --vectors: least cosine of image vectors")
    min_words: int = option(4, "words of a sentence, at least")
    max_words: int = option(100, "words of a sentence, at most")
    neighbors: int = option(NEIGHBORS, "k of the margin: neighbors that a cosine is compared with")
    min_margin: float = option(DEFAULT_MARGIN, "least margin of a pair, where --known_pairs do not choose it")
    precision: float = option(0.9, "with --known_pairs: the precision among them that chooses the least margin")
    translated_share: float = option(
        0.05, "with --known_pairs: share of the sentences that have a translation, on which precision depends"
    )
    max_length_ratio: float = option(2.0, "number of words of the longer side to that of the shorter, at most")
    max_copied: float = option(0.7, "share of the words that both sides have in common, at most")
    min_language_probability: float = option(
        0.1, "least probability that a side is in its language; 0 turns the rule off"
    )
    engine: Engine = option(Engine.AUTO, "auto: exact for small sets of sentences, else ScaNN, else faiss")
    exact_below: int = option(50_000, "sentences of one side below which search is exact")

    def __post_init__(self) -> None:
        require = functools.partial(require_option, command="bitext")
        for name in ("block_days", "candidates", "min_words", "neighbors"):
            require(getattr(self, name) >= 1, name, getattr(self, name), "at least 1")
        require(self.window_days >= 0, "window_days", self.window_days, "0 or more")
        require(self.max_words >= self.min_words, "max_words", self.max_words, "at least min_words")
        for name in ("min_entity_similarity", "min_image_similarity"):
            require(-1 <= getattr(self, name) <= 1, name, getattr(self, name), "a cosine from -1 to 1")
        require(self.min_margin > 0, "min_margin", self.min_margin, "above 0")
        require(0 < self.precision <= 1, "precision", self.precision, "a share above 0 and up to 1")
        require(0 < self.translated_share <= 1, "translated_share", self.translated_share, "above 0 and up to 1")
        require(self.max_length_ratio >= 1, "max_length_ratio", self.max_length_ratio, "at least 1")
        require(0 <= self.max_copied <= 1, "max_copied", self.max_copied, "a share from 0 to 1")
        is_share = 0 <= self.min_language_probability < 1
        require(is_share, "min_language_probability", self.min_language_probability, "from 0 to below 1")
        require(self.exact_below >= 1, "exact_below", self.exact_below, "at least 1")

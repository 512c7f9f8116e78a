"""Options and summary of a generated newsroom, and its seeded random streams."""

import dataclasses
import hashlib
import random

from ..errors import InputError

REGIONS = ("en", "de", "es")  # languages with places, people and events of their own
ABROAD = ("ru",)  # languages whose publishers report from the regions of the others, in another script
LANGUAGES = (*REGIONS, *ABROAD)


@dataclasses.dataclass(frozen=True)
class NewsroomOptions:
    """What to generate; equal options give byte-identical output.

    Attributes:
      seed: of every random stream.
      scale: 1.0 makes about 2,500 article pages; 0.05, for tests, about 150 with every habit of the publishers.
      turnover: share of offices that pass to somebody new, with a new organisation, on some day of the three years;
        what a model learned before then is out of date.
    """

    seed: int = 7
    scale: float = 1.0
    turnover: float = 0.0

    def __post_init__(self) -> None:
        if not 0.05 <= self.scale <= 20:
            raise InputError(
                f"got {self.scale}, expected a number from 0.05 to 20",
                field="scale",
                remedy="choose a scale in that range",
            )
        if not 0 <= self.turnover <= 1:
            raise InputError(
                f"got {self.turnover}, expected a share from 0 to 1",
                field="turnover",
                remedy="choose a share in that range",
            )

    def count(self, at_full_scale: int, at_least: int) -> int:
        """A count that grows with the scale."""
        return max(at_least, round(at_full_scale * self.scale))

    def stream(self, *labels: object) -> random.Random:
        """An independent random stream for a purpose: a new draw in one part does not change the others."""
        text = "/".join(str(label) for label in (self.seed, *labels))
        return random.Random(int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big"))


@dataclasses.dataclass(frozen=True)
class NewsroomSummary:
    """Counts of what was written.

    Attributes:
      articles: lines of truth.jsonl.
      by_kind: articles per kind (news, evergreen, syndicated, junk:…).
      by_language: articles per language.
      events: events published on the site.
      hubs: HTML hub pages, further pages of a hub included.
      feeds: RSS, Atom and JSON feeds.
      images: thumbnails.
      heldout / paraphrases / bitext / sts: lines of the evaluation files.
      bytes: size of the site's store.
      mean_words: words per body over news, syndicated and evergreen articles.
    """

    articles: int
    by_kind: dict[str, int]
    by_language: dict[str, int]
    events: int
    hubs: int
    feeds: int
    images: int
    heldout: int
    paraphrases: int
    bitext: int
    sts: int
    bytes: int
    mean_words: float


def stable_number(text: str) -> int:
    """A number that depends on the text alone; ``hash`` differs from process to process."""
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:6], "big")

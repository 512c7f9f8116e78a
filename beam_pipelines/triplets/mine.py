"""The pairing rules (section 2.2.1): which neighbors of an anchor are positives, which are negatives, and how many of each."""

import collections
import dataclasses
import hashlib
import math
from collections.abc import Iterable, Mapping, Sequence

from ...tasks.errors import InputError
from ..records import Neighbor, Rejection, Space, Triplet
from .evergreen import EvergreenModel, pair_features
from .table import DocumentRow, DocumentTable

_SPACES = tuple(Space)


@dataclasses.dataclass(frozen=True)
class TripletsOptions:
    """The paper's date rule, and what keeps the pairs clean and even."""

    max_positive_days: int = dataclasses.field(default=1, metadata={"help": "days between anchor and positive, at most"})
    min_negative_days: int = dataclasses.field(default=365, metadata={"help": "days between anchor and negative, at least"})
    min_entity: float = dataclasses.field(default=0.75, metadata={"help": "entity similarity that makes a positive by itself"})
    min_image: float = dataclasses.field(default=0.8, metadata={"help": "image similarity that makes a positive by itself"})
    min_text: float = dataclasses.field(default=0.85, metadata={"help": "text similarity that makes a positive by itself"})
    joint_margin: float = dataclasses.field(
        default=0.25, metadata={"help": "two spaces that both come this near to their bars make a positive together"}
    )
    cross_publisher: bool = dataclasses.field(default=True, metadata={"help": "positives only from other publishers"})
    max_positives: int = dataclasses.field(default=4, metadata={"help": "positives of an anchor"})
    max_positives_per_publisher: int = dataclasses.field(default=2, metadata={"help": "positives of an anchor from one publisher"})
    negatives_per_positive: int = dataclasses.field(default=1, metadata={"help": "triplets made of each positive, with a negative each"})
    max_evergreen_score: float = dataclasses.field(
        default=0.5, metadata={"help": "negatives that are more probably false are dropped; 1 keeps all"}
    )

    def __post_init__(self) -> None:
        if self.min_negative_days <= self.max_positive_days:
            raise InputError(
                f"got {self.min_negative_days}, expected more than --max_positive_days",
                field="--min_negative_days",
                remedy="the paper has 365 and 1",
            )
        for name in ("max_positives", "max_positives_per_publisher", "negatives_per_positive"):
            if getattr(self, name) < 1:
                raise InputError(f"got {getattr(self, name)}, expected 1 or more", field=f"--{name}", remedy="see --help for the default")


@dataclasses.dataclass(frozen=True)
class Candidate:
    """A neighbor with its similarities merged over the spaces (NaN where a space did not find it)."""

    doc_id: str
    similarities: tuple[float, ...]
    day_gap: int

    @property
    def strength(self) -> float:
        """The best similarity of any space."""
        return max(value for value in self.similarities if not math.isnan(value))


@dataclasses.dataclass(frozen=True)
class Mined:
    """The triplets of one anchor, or why there are none; ``evergreen`` counts the negatives that the filter dropped."""

    triplets: tuple[Triplet, ...] = ()
    rejection: Rejection | None = None
    evergreen: int = 0


def merge_spaces(neighbors: Iterable[Neighbor]) -> list[Candidate]:
    """One candidate for each neighbor, in order of doc_id."""
    found: dict[str, dict[str, Neighbor]] = collections.defaultdict(dict)
    for one in neighbors:
        known = found[one.neighbor].get(one.space)
        if known is None or one.similarity > known.similarity:
            found[one.neighbor][one.space] = one
    return [
        Candidate(
            doc_id,
            tuple(spaces[space].similarity if space in spaces else math.nan for space in _SPACES),
            next(iter(spaces.values())).day_gap,
        )
        for doc_id, spaces in sorted(found.items())
    ]


def evidence(similarities: Sequence[float], options: TripletsOptions) -> float | None:
    """How far a pair is above the bars of the spaces, ``None`` if it is below.

    A space that reaches its bar decides by itself; so do two that both come within ``joint_margin`` of theirs.
    """
    bars = {Space.ENTITY: options.min_entity, Space.IMAGE: options.min_image, Space.TEXT: options.min_text}
    margins = sorted(
        (value - bars[space] for space, value in zip(_SPACES, similarities, strict=True) if not math.isnan(value)), reverse=True
    )
    if margins and margins[0] >= 0:
        return margins[0]
    if len(margins) > 1 and margins[1] >= -options.joint_margin:
        return margins[0]
    return None


def mine(anchor_id: str, neighbors: Iterable[Neighbor], table: DocumentTable, model: EvergreenModel, options: TripletsOptions) -> Mined:
    """The triplets of one anchor.

    Args:
      anchor_id: its doc_id, which must be in the table.
      neighbors: its neighbors of all spaces and date ranges, in any order.
      table: rows of all documents; neighbors that are not in it are ignored.
      model: the evergreen filter.
      options: see :class:`TripletsOptions`.
    """
    anchor = table.get(anchor_id)
    candidates = merge_spaces(neighbors)
    if anchor is None or not candidates:
        return Mined(rejection=Rejection.NO_NEIGHBOR)
    positives = _positives(anchor, candidates, table, options)
    if not positives:
        return Mined(rejection=Rejection.NO_POSITIVE)
    wanted = len(positives) * options.negatives_per_positive
    negatives, evergreen = _negatives(anchor, candidates, table, model, options, wanted)
    if not negatives:
        return Mined(rejection=Rejection.NO_NEGATIVE, evergreen=evergreen)
    triplets = []
    for number in range(wanted):
        positive, (negative, score) = positives[number // options.negatives_per_positive], negatives[number % len(negatives)]
        triplets.append(
            Triplet(
                anchor=anchor_id,
                positive=positive.doc_id,
                negative=negative.doc_id,
                language=anchor.language,
                positive_similarity=positive.similarities,
                negative_similarity=negative.similarities,
                positive_day_gap=positive.day_gap,
                negative_day_gap=negative.day_gap,
                evergreen_score=score,
            )
        )
    return Mined(tuple(dict.fromkeys(triplets)), None, evergreen)


def _positives(anchor: DocumentRow, candidates: Sequence[Candidate], table: DocumentTable, options: TripletsOptions) -> list[Candidate]:
    """The best positives, strongest evidence first, no more than allowed from one publisher."""
    found = []
    for candidate in candidates:
        row = table.get(candidate.doc_id)
        if row is None or abs(candidate.day_gap) > options.max_positive_days:
            continue
        if options.cross_publisher and row.publisher == anchor.publisher:
            continue
        strength = evidence(candidate.similarities, options)
        if strength is not None:
            found.append((-strength, candidate.doc_id, row.publisher, candidate))
    taken: collections.Counter[str] = collections.Counter()
    chosen = []
    for _, _, publisher, candidate in sorted(found, key=lambda one: one[:2]):
        if taken[publisher] < options.max_positives_per_publisher:
            taken[publisher] += 1
            chosen.append(candidate)
    return chosen[: options.max_positives]


def _negatives(
    anchor: DocumentRow, candidates: Sequence[Candidate], table: DocumentTable, model: EvergreenModel, options: TripletsOptions, wanted: int
) -> tuple[list[tuple[Candidate, float]], int]:
    """The hardest negatives that the evergreen filter lets pass, and the number that it dropped on the way."""
    far = [candidate for candidate in candidates if abs(candidate.day_gap) >= options.min_negative_days]
    chosen: list[tuple[Candidate, float]] = []
    dropped = 0
    for candidate in sorted(far, key=lambda one: (-one.strength, one.doc_id)):
        row = table.get(candidate.doc_id)
        if row is None or len(chosen) == wanted:
            continue
        score = model.score(pair_features(anchor, row, candidate.similarities))
        if score > options.max_evergreen_score:
            dropped += 1
        else:
            chosen.append((candidate, score))
    return chosen, dropped


def order_key(triplet: Triplet) -> str:
    """A key that shuffles triplets the same way on every machine."""
    return hashlib.blake2b(f"{triplet.anchor}{triplet.positive}{triplet.negative}".encode(), digest_size=8).hexdigest()


def group_by_query(neighbors: Iterable[Neighbor]) -> Mapping[str, list[Neighbor]]:
    """Neighbors by query."""
    grouped: dict[str, list[Neighbor]] = collections.defaultdict(list)
    for one in neighbors:
        grouped[one.query].append(one)
    return grouped

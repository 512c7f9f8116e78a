"""The pairing rules (section 2.2.1), which choose the positives and negatives of an anchor among its neighbors."""

import dataclasses
import enum
import hashlib
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from ...errors import InputError
from ...formats.command_line import option
from ...formats.records import Rejection, Space, Triplet
from ..arrays import Array, Ids
from .candidates import SPACES, rank_within, strength
from .evergreen import EvergreenModel, pair_features
from .learned import LearnedSpace
from .table import DocumentTable


class PositiveRule(enum.StrEnum):
    """What makes a pair of a few days a positive."""

    RARITY = "rarity"
    THRESHOLDS = "thresholds"


_THRESHOLDS: Final = ("min_entity", "min_image", "min_text", "min_learned", "learned_precision", "joint_margin")


@dataclasses.dataclass(frozen=True)
class TripletsOptions:
    """Options of ``triplets``: the date rule of the paper, and limits that keep the pairs clean and balanced."""

    rule: PositiveRule = option(
        PositiveRule.THRESHOLDS,
        "positives by thresholds of the similarities, or by their rarity among pairs some weeks apart, in "
        "all spaces together, with a bar that --positive_precision calibrates",
    )
    positive_precision: float = option(
        0.95, "--rule=rarity: precision of the positives, estimated by pairs some weeks apart"
    )
    max_positive_days: int = option(1, "largest day gap between anchor and positive")
    min_negative_days: int = option(365, "smallest day gap between anchor and negative")
    min_entity: float = option(0.75, "entity similarity that is enough for a positive")
    min_image: float = option(0.8, "image similarity that is enough for a positive")
    min_text: float = option(0.85, "text similarity that is enough for a positive")
    min_learned: float = option(
        0.0, "similarity in the learned space that is enough for a positive; 0: by --learned_precision"
    )
    learned_precision: float = option(
        0.95, "precision of near pairs at the bar of the learned space, estimated by pairs far apart"
    )
    joint_margin: float = option(
        0.25, "a pair is also positive if two spaces are both within this margin of their thresholds"
    )
    cross_publisher: bool = option(True, "take positives only from other publishers")
    max_positives: int = option(4, "most positives of an anchor")
    max_positives_per_publisher: int = option(2, "most positives of an anchor from one publisher")
    max_anchors_per_event: int = option(
        50, "most anchors of one event, so that a big story does not flood the training set"
    )
    negatives_per_positive: int = option(1, "triplets for each positive, with one negative each")
    max_evergreen_score: float = option(0.5, "drop negatives whose probability of being false is higher; 1 keeps all")

    def __post_init__(self) -> None:
        if self.min_negative_days <= self.max_positive_days:
            raise InputError(
                f"got {self.min_negative_days}, expected more than --max_positive_days",
                field="--min_negative_days",
                remedy="the paper has 365 and 1",
            )
        for name, fits, expected in (
            ("min_learned", -1 <= self.min_learned <= 1, "a cosine"),
            ("learned_precision", 0 < self.learned_precision < 1, "a number between 0 and 1"),
            ("positive_precision", 0 < self.positive_precision < 1, "a number between 0 and 1"),
        ):
            if not fits:
                problem = f"got {getattr(self, name)}, expected {expected}"
                raise InputError(problem, field=f"--{name}", remedy="see --help for the default")
        if self.rule == PositiveRule.RARITY:
            defaults = {field.name: field.default for field in dataclasses.fields(self)}
            for name in _THRESHOLDS:
                if getattr(self, name) != defaults[name]:
                    remedy = "leave it out, or add --rule=thresholds"
                    raise InputError("is only for --rule=thresholds", field=f"--{name}", remedy=remedy)
        for name in ("max_positives", "max_positives_per_publisher", "max_anchors_per_event", "negatives_per_positive"):
            if getattr(self, name) < 1:
                raise InputError(
                    f"got {getattr(self, name)}, expected 1 or more",
                    field=f"--{name}",
                    remedy="see --help for the default",
                )


# Why an anchor has no triplet; MINED if it has triplets.
REASONS: Final = (Rejection.NO_NEIGHBOR, Rejection.NO_POSITIVE, Rejection.NO_NEGATIVE)
_NO_NEIGHBOR, _NO_POSITIVE, _NO_NEGATIVE = range(len(REASONS))
MINED: Final = len(REASONS)

_SIMILARITY: Final = ("<f4", (len(SPACES),))
TRIPLET: Final = np.dtype(
    [
        *((name, "<u8") for name in ("anchor", "positive", "negative")),
        *((f"{name}_similarity", *_SIMILARITY) for name in ("positive", "negative")),
        *((f"{name}_gap", "<i4") for name in ("positive", "negative")),
        ("score", "<f4"),
    ]
)
OUTCOME: Final = np.dtype(
    [("anchor", "<u8"), ("reason", "u1"), ("neighbors", "<u4"), ("evergreen", "<u4"), ("positives", "<u4")]
)


def evidence(
    similarities: Array, options: TripletsOptions, learned: LearnedSpace | None = None
) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Returns the largest margin of each pair over the thresholds of the spaces, NaN for a pair that is not a positive.

    A pair is a positive if one space reaches its threshold, or if two spaces are within ``joint_margin`` of theirs; but
    not if the learned space refuses it.

    Args:
      similarities: ``[P, spaces]`` in the order of ``Space``, NaN where unknown.
      options: the thresholds.
      learned: those of the learned space; ``None`` if there is none.

    Returns:
      float64 ``[P]``.
    """
    fixed = [options.min_entity, options.min_image, options.min_text]
    margins = similarities[:, : len(fixed)].astype(np.float64) - fixed
    refused = np.zeros(len(similarities), bool)
    if learned is not None:
        own = similarities[:, SPACES.index(Space.LEARNED)]
        margins = np.append(margins, learned.margins(own, options.joint_margin)[:, None], axis=1)
        refused = learned.refuses(own)
    margins = np.sort(np.where(np.isnan(margins), -np.inf, margins), axis=1)
    alone, together = margins[:, -1] >= 0, margins[:, -2] >= -options.joint_margin
    return np.where((alone | together) & ~refused, margins[:, -1], np.nan)


def by_evidence(
    pairs: Array, options: TripletsOptions, learned: LearnedSpace | None = None
) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Returns the :func:`evidence` of pairs, dtype ``CANDIDATE``."""
    return evidence(pairs["similarity"], options, learned)


# The strength of each pair, given as dtype CANDIDATE: float64 [P], NaN for a pair that is not a positive.
Strengths = Callable[[Array], np.ndarray[Any, np.dtype[np.float64]]]


def mine(
    anchors: Ids,
    candidates: Array,
    table: DocumentTable,
    model: EvergreenModel,
    options: TripletsOptions,
    strengths: Strengths,
) -> tuple[Array, Array]:
    """Mines the triplets of some anchors.

    Args:
      anchors: uint64 ``[A]``, sorted; all are in the table.
      candidates: dtype ``CANDIDATE``, their neighbors from ``merge_spaces``; documents that are not in the table are
        ignored.
      table: all documents.
      model: the evergreen filter.
      options: see :class:`TripletsOptions`.
      strengths: the rule for positives, such as :func:`by_evidence` with its thresholds.

    Returns:
      The triplets, dtype :data:`TRIPLET`, and the outcome of each anchor, dtype :data:`OUTCOME`, whose ``evergreen``
      counts the negatives that the filter dropped.
    """
    known = (table.places(candidates["anchor"]) >= 0) & (table.places(candidates["other"]) >= 0)
    candidates = candidates[known & np.isin(candidates["anchor"], anchors)]
    positives = _positives(candidates, table, options, strengths)
    wanted = _per_anchor(anchors, positives) * options.negatives_per_positive
    negatives, scores, evergreen = _negatives(anchors, candidates, table, model, options, wanted)
    outcomes = np.zeros(len(anchors), OUTCOME)
    outcomes["anchor"], outcomes["evergreen"], outcomes["positives"] = (
        anchors,
        evergreen,
        _per_anchor(anchors, positives),
    )
    outcomes["neighbors"] = _per_anchor(anchors, candidates)
    found = [outcomes["neighbors"] == 0, wanted == 0, _per_anchor(anchors, negatives) == 0]
    outcomes["reason"] = np.select(found, [_NO_NEIGHBOR, _NO_POSITIVE, _NO_NEGATIVE], MINED)
    return _combined(anchors, positives, negatives, scores, options.negatives_per_positive), outcomes


def same_event_pairs(candidates: Array, table: DocumentTable, options: TripletsOptions, strengths: Strengths) -> Array:
    """Returns all pairs that could be positives, without the limits on their number and the rule on publishers.

    Args:
      candidates: dtype ``CANDIDATE``; documents that are not in the table are ignored.
      table: all documents.
      options: the largest day gap.
      strengths: as in :func:`mine`.

    Returns:
      uint64 ``[P, 2]``, document ids as numbers.
    """
    near = candidates[np.abs(candidates["gap"]) <= options.max_positive_days]
    known = (table.places(near["anchor"]) >= 0) & (table.places(near["other"]) >= 0)
    near = near[known & ~np.isnan(strengths(near))]
    return np.stack([near["anchor"], near["other"]], axis=1)


def _per_anchor(anchors: Ids, rows: Array) -> np.ndarray[Any, np.dtype[np.int64]]:
    return np.bincount(np.searchsorted(anchors, rows["anchor"]), minlength=len(anchors))


def _positives(candidates: Array, table: DocumentTable, options: TripletsOptions, strengths: Strengths) -> Array:
    """Returns the best positives by falling strength, limited by publisher and in all; grouped by anchor."""
    near = candidates[np.abs(candidates["gap"]) <= options.max_positive_days]
    publishers = table.publishers(near["other"])
    strength_of = strengths(near)
    allowed = ~np.isnan(strength_of)
    if options.cross_publisher:
        allowed &= publishers != table.publishers(near["anchor"])
    near, publishers, strength_of = near[allowed], publishers[allowed], strength_of[allowed]
    order = np.lexsort((near["other"], -strength_of, near["anchor"]))
    near, publishers = near[order], publishers[order]
    near = near[rank_within(near["anchor"], publishers) < options.max_positives_per_publisher]
    return near[rank_within(near["anchor"]) < options.max_positives]


def _negatives(
    anchors: Ids,
    candidates: Array,
    table: DocumentTable,
    model: EvergreenModel,
    options: TripletsOptions,
    wanted: Array,
) -> tuple[Array, Array, Array]:
    """Returns the hardest negatives that pass the evergreen filter.

    Returns:
      The negatives, grouped by anchor; their scores; and the number of dropped negatives of each anchor.
    """
    asked = wanted[np.searchsorted(anchors, candidates["anchor"])]
    far = candidates[(np.abs(candidates["gap"]) >= options.min_negative_days) & (asked > 0)]
    far = far[np.lexsort((far["other"], -strength(far), far["anchor"]))]
    scores = model.scores(pair_features(table, far))
    passed = scores <= options.max_evergreen_score
    places = np.searchsorted(anchors, far["anchor"])
    passed_before: Array = np.append(0, np.cumsum(passed))
    first = np.searchsorted(far["anchor"], far["anchor"])
    reached = passed_before[:-1] - passed_before[first] < wanted[places]
    dropped = np.bincount(places[reached & ~passed], minlength=len(anchors))
    return far[reached & passed], scores[reached & passed], dropped


def _combined(anchors: Ids, positives: Array, negatives: Array, scores: Array, per_positive: int) -> Array:
    """Combines each positive with ``per_positive`` negatives, reused in turn if there are too few; no triplet twice."""
    pos, neg = _per_anchor(anchors, positives), _per_anchor(anchors, negatives)
    counts = np.where(neg > 0, pos * per_positive, 0)
    anchor = np.repeat(np.arange(len(anchors)), counts)
    number = np.arange(len(anchor)) - np.repeat(np.cumsum(counts) - counts, counts)
    positive = positives[(np.cumsum(pos) - pos)[anchor] + number // per_positive]
    rows = (np.cumsum(neg) - neg)[anchor] + number % np.maximum(neg[anchor], 1)
    triplets = np.zeros(len(anchor), TRIPLET)
    triplets["anchor"], triplets["score"] = anchors[anchor], scores[rows]
    for name, chosen in (("positive", positive), ("negative", negatives[rows])):
        triplets[name], triplets[f"{name}_similarity"], triplets[f"{name}_gap"] = (
            chosen["other"],
            chosen["similarity"],
            chosen["gap"],
        )
    return triplets[rank_within(triplets["anchor"], triplets["positive"], triplets["negative"]) == 0]


def order_key(triplet: Triplet) -> str:
    """Returns a sort key that shuffles triplets in the same way on every machine."""
    return hashlib.blake2b(f"{triplet.anchor}{triplet.positive}{triplet.negative}".encode(), digest_size=8).hexdigest()

"""The pairing rules (section 2.2.1), which choose the positives and negatives of an anchor among its neighbors."""

import dataclasses
import hashlib
from collections.abc import Collection, Iterable
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ...errors import InputError
from ...formats.command_line import Options, option
from ...formats.parquet import read_batches
from ...formats.records import Rejection, Space, Triplet
from ..arrays import Array, Ids, doc_numbers_of, rank_within
from .evergreen import EvergreenModel, pair_features
from .table import DocumentTable

JOINT_MARGIN: Final = 0.25  # a pair is also a positive if two spaces are both within it of their thresholds
SPACES: Final = tuple(Space)
_SIMILARITY: Final = ("<f4", (len(SPACES),))  # in the order of Space, NaN where a space does not have the pair
# ``gap``: other minus anchor, in days.
CANDIDATE: Final = np.dtype([("anchor", "<u8"), ("other", "<u8"), ("gap", "<i4"), ("similarity", *_SIMILARITY)])
_IDS: Final = [(name, "<u8") for name in ("anchor", "positive", "negative")]
_SIMILARITIES: Final = [(f"{name}_similarity", *_SIMILARITY) for name in ("positive", "negative")]
_GAPS: Final = [(f"{name}_gap", "<i4") for name in ("positive", "negative")]
TRIPLET: Final = np.dtype([*_IDS, *_SIMILARITIES, *_GAPS, ("score", "<f4")])
_COUNTS: Final = [(name, "<u4") for name in ("neighbors", "evergreen", "positives")]
OUTCOME: Final = np.dtype([("anchor", "<u8"), ("reason", "u1"), *_COUNTS])
# Why an anchor has no triplet; MINED if it has triplets.
REASONS: Final = (Rejection.NO_NEIGHBOR, Rejection.NO_POSITIVE, Rejection.NO_NEGATIVE)
MINED: Final = len(REASONS)
_ROWS_AT_ONCE: Final = 65_536

Floats = npt.NDArray[np.float64]


@dataclasses.dataclass(frozen=True)
class TripletsOptions(Options):
    """Options of ``triplets``: the date rule of the paper, and limits that keep the pairs clean and balanced."""

    max_positive_days: int = option(1, "largest day gap between anchor and positive")
    min_negative_days: int = option(365, "smallest day gap between anchor and negative")
    min_entity: float = option(0.75, "entity similarity that is enough for a positive")
    min_image: float = option(0.8, "image similarity that is enough for a positive")
    min_text: float = option(0.85, "text similarity that is enough for a positive")
    cross_publisher: bool = option(True, "take positives only from other publishers")
    max_positives: int = option(4, "most positives of an anchor", ge=1)
    max_positives_per_publisher: int = option(2, "most positives of an anchor from one publisher", ge=1)
    max_anchors_per_event: int = option(50, "most anchors of one event: a big story is not all", ge=1)
    negatives_per_positive: int = option(1, "triplets for each positive, with one negative each", ge=1)
    max_evergreen_score: float = option(0.5, "drop negatives whose probability of being false is higher; 1 keeps all")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.min_negative_days <= self.max_positive_days:
            problem = f"got {self.min_negative_days}, expected more than --max_positive_days"
            raise InputError(problem, field="--min_negative_days", remedy="the paper has 365 and 1")


def read_candidates(path: str) -> Array:
    """Reads one shard of the ``neighbors`` stream, merged by :func:`merge_spaces`; dtype :data:`CANDIDATE`."""
    columns = ["query", "neighbor", "space", "similarity", "day_gap"]
    parts = [np.zeros(0, CANDIDATE)]
    for batch in read_batches(path, columns, _ROWS_AT_ONCE):
        query, neighbor, space, similarity, gap = (batch.column(name) for name in columns)
        encoded = space.dictionary_encode()
        numbers = np.array([SPACES.index(Space(name)) for name in encoded.dictionary.to_pylist()], np.int64)
        part = np.zeros(len(batch), CANDIDATE)
        part["anchor"], part["other"], part["gap"] = doc_numbers_of(query), doc_numbers_of(neighbor), gap.to_numpy()
        part["similarity"] = np.nan
        part["similarity"][np.arange(len(batch)), numbers[encoded.indices.to_numpy()]] = similarity.to_numpy()
        parts.append(part)
    return merge_spaces(np.concatenate(parts))


def merge_spaces(rows: Array) -> Array:
    """Returns one row per pair with the highest similarity of each space, sorted by anchor and other."""
    ordered = rows[np.lexsort((rows["other"], rows["anchor"]))]
    starts = np.flatnonzero(rank_within(ordered["anchor"], ordered["other"]) == 0)
    merged = ordered[starts]
    if len(starts):
        merged["similarity"] = np.fmax.reduceat(ordered["similarity"], starts, axis=0)
    return merged


def known_pairs(paths: Iterable[str], wanted: Collection[tuple[int, int]], table: DocumentTable) -> Array:
    """Returns the wanted (anchor, other) pairs that are among the neighbors and whose documents are in the table."""
    found = [np.zeros(0, CANDIDATE)]
    anchors = np.unique(np.array([anchor for anchor, _ in wanted], np.uint64))
    for path in paths:
        rows = read_candidates(path)
        rows = rows[np.isin(rows["anchor"], anchors)]
        found.append(rows[[pair in wanted for pair in rows[["anchor", "other"]].tolist()]])
    rows = np.concatenate(found)
    return rows[table.has(rows)]


def strength(candidates: Array) -> npt.NDArray[np.float32]:
    """Returns the highest similarity in any space, float32 ``[P]``."""
    return np.fmax.reduce(candidates["similarity"], axis=1)


def evidence(similarities: Array, options: TripletsOptions) -> Floats:
    """Returns the largest margin of each pair over the thresholds of the spaces, NaN for a pair that is not a positive.

    A pair is a positive if one space reaches its threshold, or if two spaces are within `JOINT_MARGIN` of theirs.

    Args:
      similarities: ``[P, spaces]`` in the order of ``Space``, NaN where unknown.
      options: the thresholds.

    Returns:
      float64 ``[P]``.
    """
    margins = similarities.astype(np.float64) - [options.min_entity, options.min_image, options.min_text]
    margins = np.sort(np.where(np.isnan(margins), -np.inf, margins), axis=1)
    alone, together = margins[:, -1] >= 0, margins[:, -2] >= -JOINT_MARGIN
    return np.where(alone | together, margins[:, -1], np.nan)


def same_event_pairs(candidates: Array, options: TripletsOptions) -> Array:
    """Returns all pairs that could be positives, without the limits on their number and the rule on publishers.

    Args:
      candidates: dtype ``CANDIDATE``.
      options: the largest day gap and the thresholds.

    Returns:
      uint64 ``[P, 2]``, document ids as numbers.
    """
    near = candidates[np.abs(candidates["gap"]) <= options.max_positive_days]
    near = near[~np.isnan(evidence(near["similarity"], options))]
    return np.stack([near["anchor"], near["other"]], axis=1)


def mine(
    anchors: Ids,
    candidates: Array,
    table: DocumentTable,
    model: EvergreenModel,
    options: TripletsOptions,
) -> tuple[Array, Array]:
    """Mines the triplets of some anchors.

    Args:
      anchors: uint64 ``[A]``, sorted; all are in the table.
      candidates: dtype ``CANDIDATE``, their neighbors from ``merge_spaces``; all documents are in the table.
      table: all documents.
      model: the evergreen filter.
      options: see :class:`TripletsOptions`.

    Returns:
      The triplets, dtype :data:`TRIPLET`, and the outcome of each anchor, dtype :data:`OUTCOME`, whose ``evergreen``
      counts the negatives that the filter dropped.
    """
    positives = _positives(candidates, table, options)
    counts = _per_anchor(anchors, positives)
    wanted = counts * options.negatives_per_positive
    negatives, scores, evergreen = _negatives(anchors, candidates, table, model, options, wanted)
    outcomes = np.zeros(len(anchors), OUTCOME)
    outcomes["anchor"], outcomes["evergreen"], outcomes["positives"] = anchors, evergreen, counts
    outcomes["neighbors"] = _per_anchor(anchors, candidates)
    # In the order of REASONS.
    lacks = [outcomes["neighbors"] == 0, wanted == 0, _per_anchor(anchors, negatives) == 0]
    outcomes["reason"] = np.select(lacks, list(range(len(REASONS))), MINED)
    return _combined(anchors, positives, negatives, scores, options.negatives_per_positive), outcomes


def _per_anchor(anchors: Ids, rows: Array) -> npt.NDArray[np.int64]:
    return np.bincount(np.searchsorted(anchors, rows["anchor"]), minlength=len(anchors))


def _positives(candidates: Array, table: DocumentTable, options: TripletsOptions) -> Array:
    """Returns the best positives by falling evidence, limited by publisher and in all; grouped by anchor."""
    near = candidates[np.abs(candidates["gap"]) <= options.max_positive_days]
    publishers, margins = table.publishers(near["other"]), evidence(near["similarity"], options)
    allowed = ~np.isnan(margins)
    if options.cross_publisher:
        allowed &= publishers != table.publishers(near["anchor"])
    order = np.lexsort((near["other"], -margins, near["anchor"]))
    order = order[allowed[order]]
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
) -> tuple[Array, Any, Any]:
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
        triplets[name], triplets[f"{name}_gap"] = chosen["other"], chosen["gap"]
        triplets[f"{name}_similarity"] = chosen["similarity"]
    return triplets[rank_within(triplets["anchor"], triplets["positive"], triplets["negative"]) == 0]


def order_key(triplet: Triplet) -> str:
    """Returns a sort key that shuffles triplets in the same way on every machine."""
    return hashlib.blake2b(f"{triplet.anchor}{triplet.positive}{triplet.negative}".encode(), digest_size=8).hexdigest()

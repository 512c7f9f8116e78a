"""The pairs there are to label: far neighbors with their features and their score by the filter of the last ``triplets`` run."""

import dataclasses
import hashlib
from collections.abc import Collection, Mapping

from ...beam_pipelines import files, jobs
from ...beam_pipelines.parquet import read_records, shard_paths
from ...beam_pipelines.records import Neighbor
from ...beam_pipelines.triplets.evergreen import EvergreenModel, pair_features
from ...beam_pipelines.triplets.mine import Candidate, TripletsOptions, group_by_query, merge_spaces
from ...beam_pipelines.triplets.table import DocumentTable, read_table
from ...tasks.errors import InputError

_MAX_ANCHORS = 10_000  # about 300,000 pairs: enough to choose from and to count shares of, and they fit into 300 MB
INPUTS = ("clean", "neighbors", "triplets")


@dataclasses.dataclass(frozen=True)
class Work:
    """What ``newsembed build`` left: where, its digests by job, and the rules, filter and table of its ``triplets``."""

    path: str
    digests: Mapping[str, str]
    options: TripletsOptions
    model: EvergreenModel
    table: DocumentTable

    @property
    def threshold(self) -> float:
        """The score above which a negative is dropped; 0 and 1, which drop all or none, have no uncertain pairs."""
        return self.options.max_evergreen_score if 0 < self.options.max_evergreen_score < 1 else 0.5


@dataclasses.dataclass(frozen=True, slots=True)
class Pair:
    """An anchor and one of its neighbors; ``score`` is the probability that it is a false negative.

    Attributes:
      similarities: per space in the order of ``Space``, NaN where unknown.
      day_gap: other minus anchor.
      features: as ``pair_features`` has them.
    """

    anchor: str
    other: str
    similarities: tuple[float, ...]
    day_gap: int
    features: tuple[float, ...]
    score: float

    @property
    def both(self) -> frozenset[str]:
        """The pair without its direction: who has seen (a, b) is not asked for (b, a)."""
        return frozenset((self.anchor, self.other))


def read_work(path: str) -> Work:
    """Opens the work folder.

    Raises:
      InputError: if one of its jobs has not finished.
    """
    path = path.rstrip("/")
    digests = {name: jobs.input_digest(f"{path}/{name}") for name in INPUTS}
    folder = f"{path}/triplets"
    given = files.read_json(f"{folder}/manifest.json").get("options", {})
    known = {field.name for field in dataclasses.fields(TripletsOptions)}
    model = EvergreenModel.from_json(files.read_json(f"{folder}/evergreen.json"), f"{folder}/evergreen.json")
    options = TripletsOptions(**{name: value for name, value in given.items() if name in known})
    return Work(path, digests, options, model, read_table(f"{folder}/documents/table.npz"))


def read_pairs(work: Work, labelled: Collection[tuple[str, str]] = ()) -> tuple[list[Pair], dict[tuple[str, str], Pair]]:
    """Reads the neighbors once.

    Args:
      work: see :func:`read_work`.
      labelled: (anchor, other) of pairs whose features are wanted, whatever their dates.

    Returns:
      (the far pairs, which ``triplets`` chooses negatives from; the labelled pairs that are among the neighbors). The far
      ones are those of 10,000 anchors at most, drawn by the digest of their ids.

    Raises:
      InputError: if no pair is far enough apart.
    """
    share = _MAX_ANCHORS / max(1, len(work.table))

    def is_candidate(anchor: str, day_gap: int) -> bool:
        return abs(day_gap) >= work.options.min_negative_days and _fraction(anchor) < share

    kept = [
        one
        for path in shard_paths(f"{work.path}/neighbors/neighbors")
        for one in read_records(path, Neighbor)
        if is_candidate(one.query, one.day_gap) or (one.query, one.neighbor) in labelled
    ]
    grouped = sorted(group_by_query(kept).items())
    found = [pair for anchor, group in grouped for one in merge_spaces(group) if (pair := _pair(work, anchor, one))]
    candidates = [pair for pair in found if is_candidate(pair.anchor, pair.day_gap)]
    if not candidates:
        raise InputError(
            f"no two neighbors are {work.options.min_negative_days} days apart",
            path=f"{work.path}/neighbors",
            remedy="mine articles of more than a year, or run triplets with a smaller --min_negative_days",
        )
    return candidates, {(pair.anchor, pair.other): pair for pair in found if (pair.anchor, pair.other) in labelled}


def _pair(work: Work, anchor: str, candidate: Candidate) -> Pair | None:
    """The pair with its features; ``None`` if an article has no date and so no row in the table."""
    row, other = work.table.get(anchor), work.table.get(candidate.doc_id)
    if row is None or other is None:
        return None
    features = pair_features(row, other, candidate.similarities)
    return Pair(anchor, candidate.doc_id, candidate.similarities, candidate.day_gap, features, work.model.score(features))


def _fraction(doc_id: str) -> float:
    """A number in [0, 1) that is the same on every run."""
    return int.from_bytes(hashlib.blake2b(doc_id.encode(), digest_size=8).digest()) / 2**64

"""The pairs to label: far neighbors with their features and their scores by the filter of the last ``triplets`` run."""

import dataclasses
import hashlib
from collections import Counter
from collections.abc import Collection, Mapping, Sequence

import numpy as np

from ...beam_pipelines import jobs
from ...beam_pipelines.arrays import Array, doc_id_of
from ...beam_pipelines.triplets.candidates import CANDIDATE, known_pairs, read_candidates
from ...beam_pipelines.triplets.evergreen import EvergreenModel, pair_features
from ...beam_pipelines.triplets.mine import TripletsOptions
from ...beam_pipelines.triplets.table import DocumentTable, read_table
from ...errors import InputError
from ...formats import files
from ...formats.manifest import read_manifest
from ...formats.parquet import shard_paths

_MAX_ANCHORS = 10_000  # about 300,000 pairs: enough to choose from and to count shares of, and they fit into 300 MB
INPUTS = ("clean", "neighbors", "triplets")


@dataclasses.dataclass(frozen=True)
class Work:
    """A finished build: its folder, the digests of its jobs, and the options, filter and table of ``triplets``."""

    path: str
    digests: Mapping[str, str]
    options: TripletsOptions
    model: EvergreenModel
    table: DocumentTable

    @property
    def threshold(self) -> float:
        """The score above which a negative is dropped; 0.5 for a build that drops all or none."""
        return self.options.max_evergreen_score if 0 < self.options.max_evergreen_score < 1 else 0.5


@dataclasses.dataclass(frozen=True, slots=True)
class Pair:
    """An anchor and one of its neighbors; ``score`` is the probability that it is a false negative.

    Attributes:
      similarities: per space in the order of ``Space``, NaN where unknown.
      day_gap: other minus anchor.
      features: from ``pair_features``.
    """

    anchor: str
    other: str
    similarities: tuple[float, ...]
    day_gap: int
    features: tuple[float, ...]
    score: float

    @property
    def both(self) -> frozenset[str]:
        """The pair without its direction: (a, b) and (b, a) are one question."""
        return frozenset((self.anchor, self.other))


def read_work(path: str) -> Work:
    """Opens the work folder.

    Raises:
      InputError: if one of its jobs has not finished.
    """
    path = path.rstrip("/")
    digests = {name: jobs.input_digest(f"{path}/{name}") for name in INPUTS}
    folder = f"{path}/triplets"
    given = read_manifest(folder).get("options", {})
    known = {field.name for field in dataclasses.fields(TripletsOptions)}
    model = EvergreenModel.from_json(files.read_json(f"{folder}/evergreen.json"), f"{folder}/evergreen.json")
    options = TripletsOptions(**{name: value for name, value in given.items() if name in known})
    return Work(path, digests, options, model, read_table(f"{folder}/documents/table.npz"))


def read_pairs(
    work: Work, labelled: Collection[tuple[str, str]] = ()
) -> tuple[list[Pair], dict[tuple[str, str], Pair]]:
    """Reads the neighbors.

    Args:
      work: see :func:`read_work`.
      labelled: (anchor, other) of pairs to return in any case, whatever their dates.

    Returns:
      (the far pairs, from which ``triplets`` chooses negatives; the labelled pairs that are among the neighbors). The
      far pairs are those of at most 10,000 anchors, sampled by the digest of their ids.

    Raises:
      InputError: if no pair is far enough apart.
    """
    share = _MAX_ANCHORS / max(1, len(work.table))
    wanted = {(int(anchor, 16), int(other, 16)) for anchor, other in labelled}
    paths = shard_paths(f"{work.path}/neighbors/neighbors")
    candidates: list[Pair] = []
    for path in paths:
        rows = read_candidates(path)
        far = rows[np.abs(rows["gap"]) >= work.options.min_negative_days]
        drawn = [number for number in np.unique(far["anchor"]).tolist() if _fraction(doc_id_of(number)) < share]
        far = far[np.isin(far["anchor"], np.array(drawn, np.uint64))]
        candidates += _pairs(
            work, far[(work.table.places(far["anchor"]) >= 0) & (work.table.places(far["other"]) >= 0)]
        )
    if not candidates:
        raise InputError(
            f"no two neighbors are {work.options.min_negative_days} days apart",
            path=f"{work.path}/neighbors",
            remedy="mine articles of more than a year, or run triplets with a smaller --min_negative_days",
        )
    known = known_pairs(paths, wanted, work.table) if wanted else np.zeros(0, CANDIDATE)
    return candidates, {(pair.anchor, pair.other): pair for pair in _pairs(work, known)}


def readable_pairs(work: Work, pairs: Sequence[Pair], languages: Collection[str]) -> list[Pair]:
    """Returns the pairs whose texts one annotator can read.

    Args:
      work: see :func:`read_work`; its table has the languages.
      pairs: from :func:`read_pairs`.
      languages: that the annotator reads, as BCP-47 tags; both articles are in one of them. If empty, both articles of
        a pair are in the same language, whichever it is.

    Raises:
      InputError: if no pair is left.
    """
    languages_of = _languages_of(work, pairs)
    of_both = [{languages_of[doc_id] for doc_id in pair.both} for pair in pairs]
    kept = [
        pair
        for pair, both in zip(pairs, of_both, strict=True)
        if (both <= set(languages) if languages else len(both) == 1)
    ]
    if not kept:
        counts = Counter("-".join(sorted(both)) for both in of_both)
        raise InputError(
            f"no pair has both articles in {' or '.join(languages) or 'one language'}",
            path=f"{work.path}/neighbors",
            field="--language",
            remedy="there are pairs in " + ", ".join(f"{name} ({count})" for name, count in counts.most_common(5)),
        )
    return kept


def _languages_of(work: Work, pairs: Sequence[Pair]) -> dict[str, str]:
    ids = sorted({doc_id for pair in pairs for doc_id in pair.both})
    places = work.table.places(np.array([int(doc_id, 16) for doc_id in ids], np.uint64))
    return {doc_id: work.table.language(place) for doc_id, place in zip(ids, places.tolist(), strict=True)}


def _pairs(work: Work, rows: Array) -> list[Pair]:
    features = pair_features(work.table, rows)
    return [
        Pair(doc_id_of(anchor), doc_id_of(other), tuple(similarities), gap, tuple(values), score)
        for (anchor, other, gap), similarities, values, score in zip(
            rows[["anchor", "other", "gap"]].tolist(),
            rows["similarity"].tolist(),
            features.tolist(),
            work.model.scores(features).tolist(),
            strict=True,
        )
    ]


def _fraction(doc_id: str) -> float:
    """A number in [0, 1) that is the same on every run."""
    return int.from_bytes(hashlib.blake2b(doc_id.encode(), digest_size=8).digest()) / 2**64

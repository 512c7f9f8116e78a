"""The pairs to label: far neighbors, with their scores by the filter of the last ``triplets`` run, and their order.

The pairs of which the filter is least certain come first, with random pairs between them. Uncertain pairs improve the
regression most, but do not measure the pairs of which the filter is certain; random pairs do. False negatives are so
rare among the kept pairs that half of the random pairs come from the few that the filter drops.
"""

import dataclasses
import enum
import hashlib
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Final

import numpy as np

from ...beam_pipelines import jobs
from ...beam_pipelines.arrays import Array, doc_id_of
from ...beam_pipelines.triplets.evergreen import EvergreenModel, pair_features
from ...beam_pipelines.triplets.rules import CANDIDATE, TripletsOptions, known_pairs, read_candidates
from ...beam_pipelines.triplets.table import DocumentTable, read_table
from ...errors import InputError
from ...formats import files
from ...formats.parquet import shard_paths
from ..shared.mining import built_options

_MAX_ANCHORS: Final = 10_000  # about 300,000 pairs: enough to choose from and to count shares of, in 300 MB
RANDOM_SHARE: Final = 0.4  # of random pairs among the questions
_INPUTS: Final = ("clean", "neighbors", "triplets")
_PER_ARTICLE: Final = 2  # uncertain pairs; otherwise twenty editions of one guide would be twenty questions


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
    """Opens the work folder."""
    path = path.rstrip("/")
    digests = {name: jobs.input_digest(f"{path}/{name}") for name in _INPUTS}
    model = EvergreenModel.from_json(files.read_json(f"{path}/triplets/evergreen.json"))
    table = read_table(f"{path}/triplets/documents/table.npz")
    return Work(path, digests, built_options(path, "triplets", {}), model, table)


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
    """
    share = _MAX_ANCHORS / max(1, len(work.table))
    wanted = {(int(anchor, 16), int(other, 16)) for anchor, other in labelled}
    paths = shard_paths(f"{work.path}/neighbors/neighbors")
    candidates: list[Pair] = []
    for path in paths:
        rows = read_candidates(path)
        far = rows[np.abs(rows["gap"]) >= work.options.min_negative_days]
        drawn = [number for number in np.unique(far["anchor"]).tolist() if _hash(doc_id_of(number)) < share * 2**64]
        far = far[np.isin(far["anchor"], np.array(drawn, np.uint64))]
        candidates += _pairs(work, far[work.table.has(far)])
    if not candidates:
        problem = f"no two neighbors are {work.options.min_negative_days} days apart"
        remedy = "mine articles of more than a year, or run triplets with a smaller --min_negative_days"
        raise InputError(problem, path=f"{work.path}/neighbors", remedy=remedy)
    known = known_pairs(paths, wanted, work.table) if wanted else np.zeros(0, CANDIDATE)
    return candidates, {(pair.anchor, pair.other): pair for pair in _pairs(work, known)}


def readable_pairs(work: Work, pairs: Sequence[Pair], languages: Collection[str]) -> list[Pair]:
    """Returns the pairs whose texts one annotator can read.

    Args:
      work: see :func:`read_work`; its table has the languages.
      pairs: from :func:`read_pairs`.
      languages: that the annotator reads, as BCP-47 tags; both articles are in one of them. If empty, both articles of
        a pair are in the same language, whichever it is.
    """
    ids = sorted({doc_id for pair in pairs for doc_id in pair.both})
    places = work.table.places(np.array([int(doc_id, 16) for doc_id in ids], np.uint64)).tolist()
    language = {doc_id: work.table.language(place) for doc_id, place in zip(ids, places, strict=True)}
    of_both = [(pair, {language[doc_id] for doc_id in pair.both}) for pair in pairs]
    kept = [pair for pair, both in of_both if (both <= set(languages) if languages else len(both) == 1)]
    if not kept:
        counts = Counter("-".join(sorted(both)) for _, both in of_both)
        problem = f"no pair has both articles in {' or '.join(languages) or 'one language'}"
        remedy = "there are pairs in " + ", ".join(f"{name} ({count})" for name, count in counts.most_common(5))
        raise InputError(problem, path=f"{work.path}/neighbors", field="--language", remedy=remedy)
    return kept


def _pairs(work: Work, rows: Array) -> list[Pair]:
    features = pair_features(work.table, rows)
    ids = [(doc_id_of(anchor), doc_id_of(other)) for anchor, other in rows[["anchor", "other"]].tolist()]
    columns = (
        rows["similarity"].tolist(),
        rows["gap"].tolist(),
        features.tolist(),
        work.model.scores(features).tolist(),
    )
    return [
        Pair(*both, tuple(similarities), gap, tuple(values), score)
        for both, similarities, gap, values, score in zip(ids, *columns, strict=True)
    ]


def _hash(text: str) -> int:
    """A number of 64 bits that is the same on every run."""
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest())


class Sampled(enum.StrEnum):
    """How a pair was sampled."""

    UNCERTAIN = "uncertain"  # its score is close to the threshold
    DROPPED = "dropped"  # at random from the pairs that the filter drops
    KEPT = "kept"  # at random from the pairs that it keeps


@dataclasses.dataclass(frozen=True, slots=True)
class Question:
    """A pair to label and why it was chosen."""

    pair: Pair
    sampled: Sampled


def questions(
    pairs: Sequence[Pair], threshold: float, seed: int, random_share: float = RANDOM_SHARE
) -> Iterator[Question]:
    """All pairs as questions, each once whatever its direction; the order depends on the arguments only.

    Args:
      pairs: the candidates, in any order.
      threshold: the score above which the filter drops a pair.
      seed: of the random draws.
      random_share: share of random questions, in every part of the order.
    """
    shuffled = sorted(pairs, key=lambda pair: _hash(f"{seed} {pair.anchor} {pair.other}"))
    asked: set[frozenset[str]] = set()
    by_doubt = sorted(shuffled, key=lambda pair: abs(pair.score - threshold))
    uncertain = ((pair, Sampled.UNCERTAIN) for pair in _few_of_each(by_doubt, asked))
    dropped = ((pair, Sampled.DROPPED) for pair in shuffled if pair.score > threshold and pair.both not in asked)
    kept = ((pair, Sampled.KEPT) for pair in shuffled if pair.score <= threshold and pair.both not in asked)
    turns, credit = [dropped, kept], 0.0
    while True:
        credit += random_share
        order = [*turns, uncertain] if credit >= 1 else [uncertain, *turns]
        if credit >= 1:
            credit -= 1
            turns.reverse()
        chosen = next((one for source in order if (one := next(source, None))), None)
        if chosen is None:
            return
        asked.add(chosen[0].both)
        yield Question(*chosen)


def _few_of_each(ordered: Sequence[Pair], asked: set[frozenset[str]]) -> Iterator[Pair]:
    """The pairs that are not asked yet, of each article a few."""
    uses: Counter[str] = Counter()
    for pair in ordered:
        if pair.both not in asked and all(uses[doc_id] < _PER_ARTICLE for doc_id in pair.both):
            uses.update(pair.both)
            yield pair

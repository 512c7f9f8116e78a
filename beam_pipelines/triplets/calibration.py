"""The stages of ``triplets`` that prepare the rule for positives, and the rule as the later stages read it."""

import collections
import logging
from collections.abc import Sequence
from functools import lru_cache, partial

import numpy as np

from ...errors import InputError
from ...formats import files
from ...formats.arrays import write_arrays
from ...formats.parquet import read_batches
from ...formats.records import Space
from ..arrays import COSINE_BINS, Array, cosine_histogram, read_array, write_array
from ..jobs import JobRun
from ..lookup import Lookup
from ..neighbors.background import FAR_PAIRS
from ..neighbors.contrast import CONTRASTS, contrasts_of, of_pairs
from ..shards import Shard
from .candidates import SPACES, read_candidates
from .learned import LearnedSpace, near_pairs
from .learned import calibrate as calibrate_learned
from .mine import PositiveRule, Strengths, TripletsOptions, by_evidence
from .rarity import BINS, Calibration, calibrate, rarities, rarity_histogram, rarity_strengths, tails_of
from .table import TABLE, read_table

POSITIVES, LEARNED = "positives.json", "learned.json"  # published: the bars that were used
_DAYS, _SIMILARITIES = "_days", "_similarities"
_TAILS = "_tails/tails.npz"
_SHOWN = (0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
_SHOWN_RARITIES = range(0, 40, 2)
_log = logging.getLogger(__name__)


def map_stages(job: JobRun, articles: Sequence[str], neighbors: Sequence[str]) -> bool:
    """Adds the stages to the job's graph, after the table of documents; returns whether there is a learned space.

    Args:
      job: the run of ``triplets``.
      articles: paths of the shards of articles.
      neighbors: those of the neighbors.

    Raises:
      InputError: if the neighbors lack what the rule needs.
    """
    options: TripletsOptions = job.options
    folder, by_rarity = job.input("neighbors"), options.rule == PositiveRule.RARITY
    far = "".join(files.list_files(f"{folder}/{FAR_PAIRS}/*.npy"))  # one file
    if by_rarity and not (far and files.list_files(f"{folder}/{CONTRASTS}/*.npy")):
        problem = "lacks what --rule=rarity needs: pairs and contrasts of articles some weeks apart"
        raise InputError(problem, path=folder, field="--neighbors", remedy="run `newsembed neighbors --rarity` again")
    if not far and files.list_files(f"{folder}/background/*.npy"):
        problem = "has no pairs some weeks apart: an earlier version wrote it"
        raise InputError(problem, path=folder, field="--neighbors", remedy="run `newsembed neighbors` again")
    # An earlier version wrote no contrasts beside the similarities.
    learned = bool(far) and read_array(far).shape[1] in (len(SPACES), 2 * len(SPACES))
    if by_rarity or (learned and not options.min_learned):
        job.map_shards("days", _count_days, articles, accounted=False)
        if by_rarity:
            job.map_shards("tails", _write_tails, [far], accounted=False)
        count = partial(_count_near, options=options, folder=folder)
        job.map_shards("similarities", count, neighbors, accounted=False)
    if by_rarity:
        job.map_shards("calibrate", partial(_calibrate_rarity, options=options), [far], accounted=False)
    elif learned:
        job.map_shards("calibrate", partial(_calibrate_learned, options=options, path=folder), [far], accounted=False)
    return learned


def warn(workspace: str) -> None:
    """Says in the log if the thresholds took the place of rarity."""
    path = f"{workspace}/{POSITIVES}"
    if files.exists(path) and (reason := files.read_json(path).get("reason")):
        _log.warning("positives are chosen by thresholds, not by rarity: %s", reason)


@lru_cache(maxsize=1)
def strengths_of(workspace: str, folder: str, options: TripletsOptions, *, learned: bool) -> Strengths:
    """Returns the rule for positives that the stages prepared.

    Args:
      workspace: the job's temporary folder.
      folder: of the neighbors.
      options: of the job.
      learned: whether there is a learned space.
    """
    if options.rule == PositiveRule.RARITY:
        found = files.read_json(f"{workspace}/{POSITIVES}")
        if found["rule"] == PositiveRule.RARITY:
            tails, bar = _read_tails(workspace), found["bar"]
            known = Lookup(f"{folder}/{CONTRASTS}")
            return lambda pairs: rarity_strengths(pairs["similarity"], _contrasts(known, pairs), tails, bar)
        return partial(by_evidence, options=options)
    space = LearnedSpace.from_json(files.read_json(f"{workspace}/{LEARNED}")) if learned else None
    return partial(by_evidence, options=options, learned=space)


def _count_days(shard: Shard, path: str) -> None:
    """Counts the articles of a shard by day: int64 ``[days, 2]``."""
    days = [
        date.toordinal()
        for batch in read_batches(path, ["byline_date"])
        for date in batch.column(0).to_pylist()
        if date
    ]
    write_array(shard.path(_DAYS, "npy"), np.stack(np.unique(np.array(days, np.int64), return_counts=True), axis=1))


def _write_tails(shard: Shard, far: str) -> None:
    write_arrays(f"{shard.workspace}/{_TAILS}", {"tails": tails_of(_far(far)[0])})


def _far(path: str) -> tuple[Array, Array]:
    """The similarities of pairs some weeks apart, and their contrasts."""
    similarities, contrasts = np.split(read_array(path), 2, axis=1)
    return similarities, contrasts


def _contrasts(known: Lookup, pairs: Array) -> Array:
    return of_pairs(contrasts_of(known, pairs["anchor"]), contrasts_of(known, pairs["other"]))


def _read_tails(workspace: str) -> Array:
    with files.open_read(f"{workspace}/{_TAILS}") as source:
        return np.asarray(np.load(source)["tails"])


def _count_near(shard: Shard, path: str, options: TripletsOptions, folder: str) -> None:
    """Counts the near pairs of different publishers by rarity, or by similarity in the learned space: ``[bins]``."""
    table, candidates = read_table(f"{shard.workspace}/{TABLE}"), read_candidates(path)
    known = (table.places(candidates["anchor"]) >= 0) & (table.places(candidates["other"]) >= 0)
    candidates = candidates[known]
    candidates = candidates[table.publishers(candidates["anchor"]) != table.publishers(candidates["other"])]
    near = candidates[np.abs(candidates["gap"]) <= options.max_positive_days]
    if options.rule == PositiveRule.RARITY:
        contrasts = _contrasts(Lookup(f"{folder}/{CONTRASTS}"), near)
        counts = rarity_histogram(rarities(near["similarity"], contrasts, _read_tails(shard.workspace)))
    else:
        counts = cosine_histogram(near["similarity"][:, SPACES.index(Space.LEARNED)])
    write_array(shard.path(_SIMILARITIES, "npy"), counts)


def _counted(workspace: str, options: TripletsOptions, bins: int) -> tuple[Array, int]:
    """The near pairs of all shards by bin, and the number of pairs that are possible."""
    days: collections.Counter[int] = collections.Counter()
    for part in files.list_files(f"{workspace}/{_DAYS}/*.npy"):
        for day, count in read_array(part).tolist():
            days[day] += count
    near = sum(map(read_array, files.list_files(f"{workspace}/{_SIMILARITIES}/*.npy")), np.zeros(bins, np.int64))
    return near, near_pairs(days, options.max_positive_days)


def _calibrate_rarity(shard: Shard, far: str, options: TripletsOptions) -> None:
    """Writes the bar of the rarities, or why the thresholds take its place."""
    near, possible = _counted(shard.workspace, options, BINS)
    by_rarity = rarity_histogram(rarities(*_far(far), _read_tails(shard.workspace)))
    found = calibrate(near, by_rarity, possible, options.positive_precision)
    if isinstance(found, Calibration):
        value = {"rule": PositiveRule.RARITY.value, **found.to_json(_SHOWN_RARITIES)}
    else:
        value = {"rule": PositiveRule.THRESHOLDS.value, "reason": found}
    files.write_json(f"{shard.workspace}/{POSITIVES}", value)


def _calibrate_learned(shard: Shard, far: str, options: TripletsOptions, path: str) -> None:
    """Writes the bars of the learned space: those of the options, or calibrated ones."""
    if options.min_learned:
        support = options.min_learned - options.joint_margin
        space = LearnedSpace(options.min_learned, support, support)
        files.write_json(f"{shard.workspace}/{LEARNED}", space.to_json())
        return
    near, possible = _counted(shard.workspace, options, COSINE_BINS)
    pairs = read_array(far)
    background = cosine_histogram(pairs[:, SPACES.index(Space.LEARNED)])
    space, curve = calibrate_learned(near, background, len(pairs), possible, options.learned_precision, path)
    shown = {f"{cosine:g}": round(float(curve[int((cosine + 1) / 2 * len(curve))]), 4) for cosine in _SHOWN}
    files.write_json(f"{shard.workspace}/{LEARNED}", space.to_json() | {"precision": shown})

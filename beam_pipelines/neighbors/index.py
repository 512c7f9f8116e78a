"""Nearest-neighbor search by cosine with a common interface: exact, ScaNN and faiss."""

import abc
import enum
import importlib
import importlib.util
import math
import sys
from typing import Any, Self

import numpy as np

from ...errors import InputError
from ..entities.cooccurrence import unit_rows
from ..entities.tables import Floats

Rows = np.ndarray[Any, np.dtype[np.int64]]
_SCORES_AT_ONCE = 1_000_000  # 4 MB, and twice as much to sort them
_FEWEST_QUERIES = 64  # fewer at once would read the vectors of a large index more often than they are worth
_GROUP = 8  # columns
_MOST_CANDIDATES = 4  # times as many as wanted
# ScaNN builds at 180 us per row; exact search takes 20 ns per row and query (192 dimensions, one core).
_QUERIES_WORTH_BUILDING = 9_000
# Settings of ScaNN's search: recall@50 is at least 0.98 at 20,000 and 200,000 rows (benchmarks/neighbor_engines.py).
_FEWEST_LEAVES = 16
_LEAVES_FOR_EACH_SEARCHED = 18
_FEWEST_RESCORED = 100
_RESCORED = 4  # times as many as wanted
# Each row is also in a second leaf, whose error is nearly orthogonal to that of the first (SOAR, Sun et al. 2023):
# about half as many leaves have to be searched.
_SPILLED = {"soar_lambda": 1.0, "overretrieve_factor": 2.0}


class Engine(enum.StrEnum):
    """The library that searches."""

    AUTO = "auto"
    EXACT = "exact"
    SCANN = "scann"
    FAISS = "faiss"


def choose_engine(engine: Engine, rows: int, exact_below: int, queries: int) -> Engine:
    """Returns the engine for an index: exact for few rows, else ScaNN, or faiss on platforms without a ScaNN wheel.

    Args:
      engine: the requested engine; ``auto`` is also exact if there are too few queries to repay building an index.
      rows: number of rows of the index.
      exact_below: number of rows below which search is exact.
      queries: number of queries to come.

    Raises:
      InputError: if the named engine, or with ``auto`` every approximate engine, is not installed.
    """
    if engine is Engine.EXACT or rows < exact_below or (engine is Engine.AUTO and queries < _QUERIES_WORTH_BUILDING):
        return Engine.EXACT
    wanted = (Engine.SCANN, Engine.FAISS) if engine is Engine.AUTO else (engine,)
    for candidate in wanted:
        if importlib.util.find_spec(candidate.value):
            return candidate
    names = " or ".join(candidate.value for candidate in wanted)
    raise InputError(f"{names} is not installed", field="--engine", remedy="install it, or use --engine=exact")


class Index(abc.ABC):
    """An index of unit vectors. An approximate engine also approximates similarities, so its results need rescoring."""

    @classmethod
    @abc.abstractmethod
    def build(cls, vectors: Floats) -> Self:
        """Builds an index of the rows of ``vectors``, float32 ``[N, D]``, which are scaled to unit length."""

    @abc.abstractmethod
    def search(self, queries: Floats, count: int) -> tuple[Rows, Floats]:
        """Returns the nearest rows of each query by falling cosine.

        Args:
          queries: float32 ``[Q, D]``, not necessarily of unit length.
          count: K, the number of rows to find.

        Returns:
          Row numbers, int64 ``[Q, min(K, N)]``, -1 where an approximate engine found fewer, and their cosines, float32.
        """


class ExactIndex(Index):
    """Computes all dot products; rows of equal similarity keep their order."""

    def __init__(self, vectors: Floats) -> None:
        self._vectors = vectors

    @classmethod
    def build(cls, vectors: Floats) -> Self:
        """Stores the unit vectors."""
        return cls(unit_rows(vectors))

    def search(self, queries: Floats, count: int) -> tuple[Rows, Floats]:
        """Returns the nearest rows, see :meth:`Index.search`."""
        count = min(count, len(self._vectors))
        found = [highest(unit_rows(part) @ self._vectors.T, count) for part in _parts(queries, len(self._vectors))]
        return np.concatenate([rows for rows, _ in found]), np.concatenate([values for _, values in found])


class ScannIndex(Index):
    """ScaNN: a partition tree with spilled rows, asymmetric hashing and exact rescoring (Guo et al. 2020)."""

    def __init__(self, searcher: Any, rows: int) -> None:
        self._searcher = searcher
        self._rows = rows

    @classmethod
    def build(cls, vectors: Floats) -> Self:
        """Trains and fills the tree, with one thread."""
        scann = _import_scann()
        rows = len(vectors)
        leaves = max(1, round(math.sqrt(rows)))
        builder = scann.scann_ops_pybind.builder(unit_rows(vectors), 10, "dot_product")
        builder = builder.set_n_training_threads(1)
        searched = min(leaves, max(_FEWEST_LEAVES, math.ceil(leaves / _LEAVES_FOR_EACH_SEARCHED)))
        spilled = _SPILLED if leaves > searched else {}  # a search of all leaves misses no row
        # With rows in two leaves, ScaNN draws random centers without a seed: each index would find other rows.
        builder = builder.tree(leaves, searched, training_sample_size=min(rows, 100_000), random_init=False, **spilled)
        builder = builder.score_ah(2, anisotropic_quantization_threshold=0.2).reorder(200)
        return cls(builder.build(), rows)

    def search(self, queries: Floats, count: int) -> tuple[Rows, Floats]:
        """Returns the nearest rows, see :meth:`Index.search`."""
        count = min(count, self._rows)
        rescored = max(_FEWEST_RESCORED, _RESCORED * count)
        found, values = self._searcher.search_batched(
            unit_rows(queries), final_num_neighbors=count, pre_reorder_num_neighbors=rescored
        )
        rows = np.where(np.isfinite(values), found.astype(np.int64), -1)
        return _padded(rows, count, -1), _padded(np.asarray(values, np.float32), count, -math.inf)


def _import_scann() -> Any:
    """Imports ScaNN without TensorFlow, which takes 4 s of a core and 300 MB.

    Only another interface of ScaNN needs it, which ScaNN leaves out where TensorFlow is not installed.
    """
    if hidden := "tensorflow" not in sys.modules:
        # Importing a module that is None is a ModuleNotFoundError.
        sys.modules["tensorflow"] = None  # type: ignore[assignment]
    try:
        return importlib.import_module("scann")
    finally:
        if hidden:
            del sys.modules["tensorflow"]


class FaissIndex(Index):
    """Faiss: inverted lists over exact vectors."""

    def __init__(self, index: Any) -> None:
        self._index = index

    @classmethod
    def build(cls, vectors: Floats) -> Self:
        """Trains and fills the lists, with one thread."""
        import faiss

        rows, dimensions = vectors.shape
        lists = max(1, round(math.sqrt(rows)))
        index = faiss.IndexIVFFlat(faiss.IndexFlatIP(dimensions), dimensions, lists, faiss.METRIC_INNER_PRODUCT)
        index.cp.min_points_per_centroid = 1  # the default would only warn about small indexes
        faiss.omp_set_num_threads(1)
        unit = unit_rows(vectors)
        index.train(unit)
        index.add(unit)
        index.nprobe = max(1, math.ceil(lists / 8))
        return cls(index)

    def search(self, queries: Floats, count: int) -> tuple[Rows, Floats]:
        """Returns the nearest rows, see :meth:`Index.search`."""
        values, rows = self._index.search(unit_rows(queries), min(count, self._index.ntotal))
        return rows.astype(np.int64), values


_CLASSES: dict[Engine, type[Index]] = {Engine.EXACT: ExactIndex, Engine.SCANN: ScannIndex, Engine.FAISS: FaissIndex}


def build_index(vectors: Floats, engine: Engine, exact_below: int, queries: int) -> Index:
    """Builds an index of float32 ``[N, D]`` with the engine from :func:`choose_engine`."""
    return _CLASSES[choose_engine(engine, len(vectors), exact_below, queries)].build(vectors)


def _parts(queries: Floats, rows: int) -> list[Floats]:
    step = queries_at_once(rows)
    return [queries[start : start + step] for start in range(0, max(1, len(queries)), step)]


def queries_at_once(rows: int) -> int:
    """Returns how many queries to compare with an index of so many rows at a time."""
    return max(_FEWEST_QUERIES, _SCORES_AT_ONCE // max(1, rows))


def highest(scores: Floats, count: int) -> tuple[Rows, Floats]:
    """Returns the columns and values of the ``count`` highest scores of each row, ties by lower column.

    Of wide rows it sorts only the scores that reach a bound: with the columns in groups, the K-th highest of the maxima
    of the groups is at most the K-th highest score. Few other scores reach it.

    Args:
      scores: float32 ``[Q, N]``.
      count: K, at most N.

    Returns:
      Columns, int64 ``[Q, K]``, and scores, float32 ``[Q, K]``, both by falling score.
    """
    queries, width = scores.shape
    if width < 2 * _GROUP * count or not queries:
        return _highest_of_all(scores, count)
    groups = width // _GROUP
    maxima = scores[:, : groups * _GROUP].reshape(queries, _GROUP, groups).max(axis=1)
    bound = np.partition(maxima, groups - count, axis=1)[:, groups - count, None]
    reaches = scores >= bound
    counts = np.count_nonzero(reaches, axis=1)
    crowded = np.flatnonzero(counts > _MOST_CANDIDATES * count)  # ties: image vectors have few similarities
    reaches[crowded] = False
    counts[crowded] = 0
    rows, columns = np.divmod(np.flatnonzero(reaches), width)
    place = np.arange(len(rows)) - np.repeat(np.cumsum(counts) - counts, counts)
    candidates = np.zeros((queries, max(count, int(counts.max()))), np.int64)
    values = np.full(candidates.shape, -np.inf, np.float32)
    candidates[rows, place], values[rows, place] = columns, scores[rows, columns]
    best, best_values = _sorted(candidates, values, count)
    if len(crowded):
        best[crowded], best_values[crowded] = _highest_of_all(scores[crowded], count)
    return best, best_values


def _highest_of_all(scores: Floats, count: int) -> tuple[Rows, Floats]:
    queries, width = scores.shape
    if count < width:
        lowest = np.partition(scores, width - count, axis=1)[:, width - count, None]
        chosen = scores >= lowest
        # Many scores may tie with the lowest one wanted: similarities of image vectors have few values.
        tied = np.flatnonzero(np.count_nonzero(chosen, axis=1) > count)
        if len(tied):
            higher, equal = scores[tied] > lowest[tied], scores[tied] == lowest[tied]
            missing = count - np.count_nonzero(higher, axis=1, keepdims=True)
            chosen[tied] = higher | (equal & (np.cumsum(equal, axis=1) <= missing))
        columns = np.nonzero(chosen)[1].reshape(queries, count)
    else:
        columns = np.tile(np.arange(width), (queries, 1))
    return _sorted(columns, np.take_along_axis(scores, columns, axis=1), count)


def _sorted(columns: Rows, values: Floats, count: int) -> tuple[Rows, Floats]:
    order = np.argsort(-values, axis=1, kind="stable")[:, :count]
    return np.take_along_axis(columns, order, axis=1), np.take_along_axis(values, order, axis=1)


def _padded(values: np.ndarray[Any, Any], count: int, filler: float) -> np.ndarray[Any, Any]:
    return np.pad(values, ((0, 0), (0, count - values.shape[1])), constant_values=filler)

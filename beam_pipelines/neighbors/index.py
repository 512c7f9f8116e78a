"""Nearest-neighbor search by cosine: exact, ScaNN and faiss. An engine is one function here, listed in `_ENGINES`."""

import enum
import importlib.util
import math
from collections.abc import Callable, Iterable
from typing import Final

import numpy as np

from ...errors import InputError
from ...formats.arrays import highest, unit_rows
from ...formats.imports import without
from ..arrays import Floats, Places, slices

# Finds at most N rows for each unit vector, by one thread, see `Index.search`.
Search = Callable[[Floats, int], tuple[Places, Floats]]
_SCORES_AT_ONCE: Final = 1_000_000  # 4 MB, and twice as much to sort them
_FEWEST_QUERIES: Final = 64  # fewer at once would read the vectors of a large index more often than they are worth
# ScaNN builds at 180 us per row; exact search takes 20 ns per row and query (192 dimensions, one core).
_QUERIES_WORTH_BUILDING: Final = 9_000
_FEWEST_LEAVES: Final = 20  # of ScaNN
_LEAVES_FOR_EACH_SEARCHED: Final = 22
_FEWEST_RESCORED: Final = 100
_RESCORED: Final = 5  # times as many as wanted
# Each row is also in a second leaf, whose error is nearly orthogonal to that of the first (SOAR, Sun et al. 2023), so
# that about half as many leaves have to be searched.
_SPILLED: Final = {"soar_lambda": 1.0, "overretrieve_factor": 2.0}


class Engine(enum.StrEnum):
    """What searches: a library, which is named as its module is."""

    AUTO = "auto"
    EXACT = "exact"
    SCANN = "scann"
    FAISS = "faiss"


class Index:
    """An index of vectors. An approximate engine also approximates similarities, so its results need rescoring.

    Args:
      vectors: float32 ``[N, D]``, scaled to unit length here.
      engine: what searches.
    """

    def __init__(self, vectors: Floats, engine: Engine) -> None:
        self.engine, self._rows = engine, len(vectors)
        self._search = _ENGINES[engine](unit_rows(vectors))

    def search(self, queries: Floats, count: int) -> tuple[Places, Floats]:
        """Returns the nearest rows of each query by falling cosine.

        Args:
          queries: float32 ``[Q, D]``, not necessarily of unit length.
          count: K, the number of rows to find.

        Returns:
          Row numbers, int64 ``[Q, min(K, N)]``, -1 where an approximate engine found fewer, and their cosines, float32.
        """
        return self._search(unit_rows(queries), min(count, self._rows))


def highest_of_parts(parts: Iterable[Floats], count: int) -> tuple[Places, Floats]:
    """Returns the columns of the highest scores of each row, and these, of scores that come some rows at a time.

    Args:
      parts: float32 ``[Q, N]`` each, one or more.
      count: K, at most N.

    Returns:
      int64 ``[sum of Q, K]`` and float32 of the same shape, see `formats.arrays.highest`.
    """
    rows, values = zip(*(highest(scores, count) for scores in parts), strict=True)
    return np.concatenate(rows), np.concatenate(values)


def _exact(vectors: Floats) -> Search:
    """All dot products; rows of equal similarity keep their order."""
    step = queries_at_once(len(vectors))

    def search(queries: Floats, count: int) -> tuple[Places, Floats]:
        return highest_of_parts((queries[part] @ vectors.T for part in slices(max(1, len(queries)), step)), count)

    return search


def _scann(vectors: Floats) -> Search:
    """ScaNN: a partition tree with spilled rows, asymmetric hashing and exact rescoring (Guo et al. 2020).

    Its recall@50 is 0.98 at 8,000 to 200,000 rows of 192 numbers (benchmarks/neighbor_engines.py).
    """
    rows = len(vectors)
    leaves = max(1, round(math.sqrt(rows)))
    # TensorFlow would take 4 s of a core and 300 MB, and only another interface of ScaNN needs it.
    with without("tensorflow"):
        import scann
    builder = scann.scann_ops_pybind.builder(vectors, 10, "dot_product").set_n_training_threads(1)
    searched = min(leaves, max(_FEWEST_LEAVES, math.ceil(leaves / _LEAVES_FOR_EACH_SEARCHED)))
    spilled = _SPILLED if leaves > searched else {}  # a search of all leaves misses no row
    # With rows in two leaves, ScaNN draws random centers without a seed: each index would find other rows.
    builder = builder.tree(leaves, searched, training_sample_size=min(rows, 100_000), random_init=False, **spilled)
    # 10 iterations over 100,000 rows, the defaults, find as many neighbors and take a third more of the build.
    codes = {"training_sample_size": min(rows, 10_000), "training_iterations": 4}
    searcher = builder.score_ah(2, anisotropic_quantization_threshold=0.2, **codes).reorder(200).build()

    def search(queries: Floats, count: int) -> tuple[Places, Floats]:
        rescored = max(_FEWEST_RESCORED, _RESCORED * count)
        found, values = searcher.search_batched(queries, final_num_neighbors=count, pre_reorder_num_neighbors=rescored)
        missing = ((0, 0), (0, count - values.shape[1]))
        places = np.where(np.isfinite(values), found.astype(np.int64), -1)
        return np.pad(places, missing, constant_values=-1), np.pad(values, missing, constant_values=-math.inf)

    return search


def _faiss(vectors: Floats) -> Search:
    """Faiss: inverted lists over exact vectors."""
    import faiss

    rows, dimensions = vectors.shape
    lists = max(1, round(math.sqrt(rows)))
    index = faiss.IndexIVFFlat(faiss.IndexFlatIP(dimensions), dimensions, lists, faiss.METRIC_INNER_PRODUCT)
    index.cp.min_points_per_centroid = 1  # the default would only warn about small indexes
    faiss.omp_set_num_threads(1)
    index.train(vectors)
    index.add(vectors)
    index.nprobe = max(1, math.ceil(lists / 8))

    def search(queries: Floats, count: int) -> tuple[Places, Floats]:
        values, places = index.search(queries, count)
        return places.astype(np.int64), values

    return search


# The approximate ones in the order in which ``auto`` takes those that are installed.
_ENGINES: Final = {Engine.EXACT: _exact, Engine.SCANN: _scann, Engine.FAISS: _faiss}


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
    wanted = [one for one in _ENGINES if one is not Engine.EXACT] if engine is Engine.AUTO else [engine]
    for candidate in wanted:
        if importlib.util.find_spec(candidate.value):
            return candidate
    names = " or ".join(candidate.value for candidate in wanted)
    raise InputError(f"{names} is not installed", field="--engine", remedy="install it, or use --engine=exact")


def build_index(vectors: Floats, engine: Engine, exact_below: int, queries: int) -> Index:
    """Builds an index of float32 ``[N, D]`` with the engine from :func:`choose_engine`."""
    return Index(vectors, choose_engine(engine, len(vectors), exact_below, queries))


def queries_at_once(rows: int) -> int:
    """Returns how many queries to compare with an index of so many rows at a time."""
    return max(_FEWEST_QUERIES, _SCORES_AT_ONCE // max(1, rows))

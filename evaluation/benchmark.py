"""The interface of benchmarks, and the score that they return."""

import dataclasses
import math
import statistics
from collections.abc import Mapping, Sequence
from typing import Any, Final, Protocol

from .encoders import Document, Embeddings

ALL: Final = "all"


@dataclasses.dataclass(frozen=True, slots=True)
class Score:
    """One number of one benchmark.

    Attributes:
      metric: name as in the tables ("mAP", "ARI", "Spearman").
      value: in the metric's own range, never scaled by 100.
      part: the slice of the data: a language, a genre, or "all".
      count: number of queries, documents or pairs in the slice.
      std: standard deviation over runs (n - 1 in the denominator); ``None`` for a single run.
      runs: number of seeds, folds or repeats; ``value`` is their mean.
      low, high: the ends of the 95 % bootstrap interval, see ``intervals.py``; ``None`` without one.
      folds: the values of the folds of a protocol that has the same folds for all encoders, see ``compare.py``.
      draws: the values on the resamples of a protocol that draws the same ones for all encoders, see ``paired.py``;
        empty unless ``registry.Options.draws`` asks for them.
    """

    metric: str
    value: float
    part: str = ALL
    count: int = 0
    std: float | None = None
    runs: int = 1
    low: float | None = None
    high: float | None = None
    folds: tuple[float, ...] = ()
    draws: tuple[float, ...] = ()

    @property
    def confidence(self) -> float | None:
        """Half the width of the 95 % confidence interval of the mean over runs; ``None`` for a single run.

        Student's t distribution with ``runs - 1`` degrees of freedom.
        """
        if self.std is None or self.runs < 2:
            return None
        from scipy.stats import t

        return float(t.ppf(0.975, self.runs - 1)) * self.std / math.sqrt(self.runs)


def over_runs(metric: str, values: Sequence[float], part: str, count: int) -> Score:
    """Returns the mean and the standard deviation over runs as one score; a single run has no deviation."""
    std = statistics.stdev(values) if len(values) > 1 else None
    return Score(metric, statistics.fmean(values), part, count, std, len(values))


class Benchmark(Protocol):
    """Documents to embed, and a function from their embeddings to scores.

    Benchmarks are frozen dataclasses with a field ``excluded``: documents to leave out. Reading is lazy: a missing or
    broken file raises InputError from ``documents`` and fails this benchmark only.
    """

    @property
    def name(self) -> str:
        """The name in tables; unique in a run."""

    @property
    def paths(self) -> tuple[str, ...]:
        """The files that it reads, for the digests in the results manifest."""

    @property
    def protocol(self) -> Mapping[str, Any]:
        """Every option that changes a score, as JSON values."""

    def documents(self) -> Sequence[Document]:
        """Returns all documents, in the order in which ``score`` expects their embeddings."""

    def score(self, embeddings: Embeddings) -> list[Score]:
        """Returns the scores of normalised embeddings, float32 ``[N, D]``, dense or CSR."""


class PathBenchmark:
    """A benchmark that reads one file or folder, its field ``path``."""

    path: str

    @property
    def paths(self) -> tuple[str, ...]:
        """The file or folder, for the digests in the results manifest."""
        return (self.path,)

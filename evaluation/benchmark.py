"""What every benchmark offers, and the score that all of them return."""

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
      part: the slice it was taken over: a language, a genre, or "all".
      count: queries, documents or pairs in that slice.
      std: standard deviation over runs (n - 1 in the denominator), where there are several.
      runs: seeds, folds or repeats that ``value`` is the mean of.
    """

    metric: str
    value: float
    part: str = ALL
    count: int = 0
    std: float | None = None
    runs: int = 1

    @property
    def confidence(self) -> float | None:
        """Half the width of the 95 % confidence interval of the mean over runs, by Student's t with ``runs - 1`` degrees of freedom."""
        if self.std is None or self.runs < 2:
            return None
        from scipy.stats import t

        return float(t.ppf(0.975, self.runs - 1)) * self.std / math.sqrt(self.runs)


def over_runs(metric: str, values: Sequence[float], part: str, count: int) -> Score:
    """Mean and standard deviation over runs as one score; a single run has no deviation."""
    std = statistics.stdev(values) if len(values) > 1 else None
    return Score(metric, statistics.fmean(values), part, count, std, len(values))


class Benchmark(Protocol):
    """Documents to embed and a function from their embeddings to scores: a frozen dataclass with the field ``excluded``, documents to leave out.

    Reading is lazy: a missing or broken file raises InputError from ``documents``, and fails this benchmark alone.
    """

    @property
    def name(self) -> str:
        """Unique in a run."""

    @property
    def paths(self) -> tuple[str, ...]:
        """Files it reads, for the digests in the results manifest."""

    @property
    def protocol(self) -> Mapping[str, Any]:
        """Every option that changes a score, as JSON values."""

    def documents(self) -> Sequence[Document]:
        """All documents, in the order ``score`` expects their embeddings."""

    def score(self, embeddings: Embeddings) -> list[Score]:
        """Scores of normalised embeddings, float32 ``[N, D]``, dense or CSR."""

"""The result of one encoder on one benchmark, and all results of a run."""

import dataclasses
from collections.abc import Mapping
from typing import Any, Literal

from .benchmark import Score


@dataclasses.dataclass(frozen=True, slots=True)
class Result:
    """One encoder on one benchmark.

    Attributes:
      status: "ok", or "failed": then ``error`` is the reason and there are no scores.
      seconds: wall time of embedding; if ``from_cache``, of the run that filled the cache.
      scoring_seconds: wall time of the metric.
    """

    encoder: str
    benchmark: str
    status: Literal["ok", "failed"]
    scores: tuple[Score, ...] = ()
    error: str = ""
    texts: int = 0
    dimensions: int = 0
    seconds: float = 0.0
    scoring_seconds: float = 0.0
    from_cache: bool = False

    @property
    def texts_per_second(self) -> float | None:
        """Texts embedded each second; ``None`` without a measured time."""
        return self.texts / self.seconds if self.seconds > 0 else None


@dataclasses.dataclass(frozen=True, slots=True)
class Results:
    """All results of one run, in the order of encoders, then of benchmarks, with the manifest."""

    results: tuple[Result, ...]
    manifest: Mapping[str, Any]

    @property
    def failed(self) -> tuple[Result, ...]:
        """The results of encoders and benchmarks that failed."""
        return tuple(result for result in self.results if result.status == "failed")

    def score(self, encoder: str, benchmark: str, metric: str, part: str = "all") -> float:
        """Returns one number.

        Raises:
          KeyError: if that benchmark failed or has no such number.
        """
        for result in self.results:
            if (result.encoder, result.benchmark) == (encoder, benchmark):
                for score in result.scores:
                    if (score.metric, score.part) == (metric, part):
                        return score.value
        raise KeyError((encoder, benchmark, metric, part))

    def to_dict(self) -> dict[str, Any]:
        """Returns the contents of ``results.json`` as JSON values."""
        rows = [dataclasses.asdict(result) | {"texts_per_second": result.texts_per_second} for result in self.results]
        for score in (score for row in rows for score in row["scores"]):
            # Without intervals and folds, results are as before there were any.
            if score["low"] is None:
                del score["low"], score["high"]
            for name in ("folds", "draws"):
                if not score[name]:
                    del score[name]
        return {**self.manifest, "results": rows}

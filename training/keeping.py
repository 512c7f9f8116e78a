"""Which checkpoints of a run stay."""

import dataclasses
from collections.abc import Mapping
from typing import Any, Literal

import gin
import orbax.checkpoint as ocp

from ..errors import InputError


@gin.register
@dataclasses.dataclass(frozen=True)
class Keeping:
    """Which checkpoints stay; one that any rule keeps stays.

    Attributes:
      newest: KEEP_CHECKPOINTS, how many of the newest.
      period: KEEP_PERIOD; checkpoints whose step is a multiple of it stay for good; None: no such rule.
      best: KEEP_BEST, a metric of the evaluation, such as "eval/loss": the checkpoint where it was best stays; None:
        no such rule.
      best_mode: whether the best is the least ("min") or the most ("max").
    """

    newest: int = 3
    period: int | None = None
    best: str | None = None
    best_mode: Literal["min", "max"] = "min"

    def __post_init__(self) -> None:
        if self.newest < 1:
            raise InputError(
                f"got {self.newest}, expected at least 1",
                field="KEEP_CHECKPOINTS",
                remedy="A run continues from the newest.",
            )
        if self.period is not None and self.period < 1:
            raise InputError(f"got {self.period}, expected a number of steps or None", field="KEEP_PERIOD")
        if self.best_mode not in ("min", "max"):
            raise InputError(f"got {self.best_mode!r}, expected min or max", field="KEEP_BEST_MODE")

    def options(self) -> ocp.CheckpointManagerOptions:
        """The same in Orbax's terms."""
        rules = ocp.checkpoint_managers
        policies: list[Any] = [rules.LatestN(self.newest)]
        if self.period is not None:
            policies.append(rules.EveryNSteps(self.period))
        if self.best is not None:
            # Orbax keeps the last ones in this order, so the least must come last.
            policies.append(
                rules.BestN(
                    get_metric_fn=self._metric,
                    reverse=self.best_mode == "min",
                    n=1,
                    keep_checkpoints_without_metrics=False,
                )
            )
        return ocp.CheckpointManagerOptions(
            preservation_policy=rules.AnyPreservationPolicy(policies),
            best_fn=self._metric if self.best is not None else None,  # without it Orbax stores no metrics
            best_mode=self.best_mode,
            cleanup_tmp_directories=True,
            enable_async_checkpointing=True,
        )

    def _metric(self, metrics: Mapping[str, float]) -> float:
        return float(metrics[self.best or ""])

    def figure(self, metrics: Mapping[str, float]) -> float:
        """The metric `best` of an evaluation.

        Raises:
          InputError: if the evaluation does not give it.
        """
        if self.best not in metrics:
            known = ", ".join(metrics) or "nothing: the evaluation gives no metric"
            raise InputError(
                f"got {self.best!r}, expected one of {known}",
                field="KEEP_BEST",
                remedy="Name a metric that the evaluation gives.",
            )
        return self._metric(metrics)

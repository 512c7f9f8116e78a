"""What a run reports: `metrics.jsonl`, TensorBoard events and a progress bar.

One record per `period` steps, with means over the steps since the last record::

    {"step": 100, "loss/triplets/en": 1.93, "accuracy/triplets/en": 0.61, "gradient_norm": 0.8, "padding": 0.12,
     "tokens_per_second": 21000.0, "seconds_per_step": 0.4}

`loss`, `accuracy` and what a loss adds are per (task, language) set; a set that was not drawn since the last record is absent.
`padding` is the share of input positions that hold no token. Times include the input pipeline and exclude compilation and checkpoints.
"""

import collections
import contextlib
import json
import math
import os
import sys
import time
from collections.abc import Iterator
from typing import Any, Final, Self

from ..tasks.features import PAD_ID
from .mixture import Draw

METRICS_FILE: Final = "metrics.jsonl"
_WHOLE_RUN: Final = ("gradient_norm",)  # not split by set


def count_tokens(draw: Draw) -> tuple[int, int]:
    """Input positions of a batch that hold a token, and all of them."""
    rows = [values for name, values in draw.batch.items() if name.endswith("tokens")]
    return sum(int((values != PAD_ID).sum()) for values in rows), sum(values.size for values in rows)


class Means:
    """Sums of what was logged since the last record."""

    def __init__(self) -> None:
        self._clear()

    def _clear(self) -> None:
        self._values: dict[str, list[float]] = collections.defaultdict(list)
        self._tokens = self._positions = self._steps = 0
        self._seconds = 0.0

    def add(self, draw: Draw, metrics: dict[str, float], seconds: float | None) -> None:
        """One step; `seconds` is None where the time tells nothing (compilation)."""
        for name, value in metrics.items():
            self._values[name if name in _WHOLE_RUN else f"{name}/{draw.data_set}"].append(value)
        tokens, positions = count_tokens(draw)
        self._values["padding"].append(1 - tokens / positions)
        if seconds is not None:
            self._tokens += tokens
            self._seconds += seconds
            self._steps += 1

    def take(self) -> dict[str, float]:
        """The means, sorted by name; starts anew."""
        record = {name: math.fsum(values) / len(values) for name, values in sorted(self._values.items())}
        if self._seconds:
            record["tokens_per_second"] = self._tokens / self._seconds
            record["seconds_per_step"] = self._seconds / self._steps
        self._clear()
        return record


class MetricWriter:
    """Appends records to `metrics.jsonl` and TensorBoard; use as a context manager.

    What an interrupted run wrote beyond the step it resumes from is cut off first, so that no step appears twice.

    Args:
      model_dir: where to write.
      start_step: the step that the run starts from.
      enabled: False on all hosts but the first.
    """

    def __init__(self, model_dir: str, start_step: int, *, enabled: bool = True) -> None:
        self._file: Any = None
        self._events: Any = None
        if not enabled:
            return
        import tensorboardX

        path = os.path.join(model_dir, METRICS_FILE)
        kept = [line for line in _lines(path) if json.loads(line)["step"] <= start_step]
        self._file = open(path, "w", encoding="utf-8")  # noqa: SIM115 - closed by __exit__
        self._file.writelines(kept)
        self._events = tensorboardX.SummaryWriter(model_dir, purge_step=start_step + 1, flush_secs=30)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            self._file.close()
            self._events.close()

    def write(self, step: int, record: dict[str, float]) -> None:
        """One record of the means up to `step`."""
        if self._file is None:
            return
        self._file.write(json.dumps({"step": step, **record}) + "\n")
        self._file.flush()
        for name, value in record.items():
            self._events.add_scalar(name, value, step)


def _lines(path: str) -> list[str]:
    """The complete lines of a file; a line that a kill cut off is dropped."""
    if not os.path.exists(path):
        return []
    with open(path, encoding="utf-8") as file:
        return [line for line in file if line.endswith("\n")]


class Progress:
    """A progress bar on a terminal, a line for each record elsewhere; silent on all hosts but the first."""

    def __init__(self, total_steps: int, start_step: int, *, enabled: bool = True) -> None:
        self._total, self._enabled, self._bar, self._task = total_steps, enabled, None, None
        self._start_step, self._started = start_step, time.monotonic()
        if enabled and sys.stderr.isatty():
            from rich.console import Console
            from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

            columns = (
                "train",
                BarColumn(),
                MofNCompleteColumn(),
                TimeElapsedColumn(),
                "left",
                TimeRemainingColumn(),
                TextColumn("{task.description}"),
            )
            self._bar = Progress(*columns, console=Console(stderr=True))
            self._task = self._bar.add_task("", total=total_steps, completed=start_step)

    @contextlib.contextmanager
    def shown(self) -> Iterator[Self]:
        """Shows the bar meanwhile."""
        with self._bar if self._bar is not None else contextlib.nullcontext():
            yield self

    def advance(self, step: int) -> None:
        """`step` steps are done."""
        if self._bar is not None:
            self._bar.update(self._task, completed=step)

    def say(self, text: str) -> None:
        """One line for people."""
        if self._bar is not None:
            self._bar.console.print(text, highlight=False)
        elif self._enabled:
            print(text, file=sys.stderr, flush=True)

    def record(self, step: int, record: dict[str, float]) -> None:
        """Shows the losses of a record."""
        losses = "  ".join(f"{name} {value:.4f}" for name, value in record.items() if name.startswith("loss/"))
        if self._bar is not None:
            self._bar.update(self._task, description=losses)
        elif self._enabled:
            left = (time.monotonic() - self._started) / max(1, step - self._start_step) * (self._total - step)
            print(f"step {step}/{self._total}  {losses}  {left:.0f} s left", file=sys.stderr, flush=True)

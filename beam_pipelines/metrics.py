"""Counts of records as Beam's metrics: what an engine shows while a job runs, compared with the files when it ends."""

from collections.abc import Iterable
from typing import Final

from apache_beam.metrics import Metrics, MetricsFilter
from apache_beam.runners.runner import PipelineResult

from .accounting import Counts

NAMESPACE: Final = "newsembed"


def count(phase: str, counts: Counts) -> None:
    """Adds the counts of a complete shard to the metrics of its phase, inside of a DoFn.

    An engine commits what a bundle counted when the bundle succeeds. A shard that is complete already is counted by its
    report, so a bundle that runs again counts neither less nor more.
    """
    for name, value in _numbers(counts):
        Metrics.counter(NAMESPACE, f"{phase}/{name}").inc(value)


def check(result: PipelineResult, expected: Iterable[tuple[str, Counts]]) -> None:
    """Compares the metrics of a pipeline that has ended with the counts in the files.

    Flink and Spark say only what was attempted, in which a repeated bundle counts twice; that is not compared.

    Args:
      result: of the pipeline.
      expected: names of its phases, and their counts by the files.

    Raises:
      RuntimeError: if they differ; names the phase.
    """
    counters = result.metrics().query(MetricsFilter().with_namespace(NAMESPACE))["counters"]
    committed: dict[str, int] = {}
    for counter in counters:
        if counter.committed is None:
            return
        name = counter.key.metric.name
        committed[name] = committed.get(name, 0) + counter.committed
    for phase, counts in expected:
        for name, value in _numbers(counts):
            if (found := committed.get(f"{phase}/{name}", 0)) != value:
                raise RuntimeError(f"phase {phase}: Beam counted {found} records as {name}, the files have {value}")


def _numbers(counts: Counts) -> list[tuple[str, int]]:
    return [
        ("in", counts.read),
        ("out", counts.written),
        ("rejected", sum(counts.rejected.values())),
        ("failed", sum(counts.failed.values())),
    ]

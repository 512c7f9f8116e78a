"""Published numbers with their sources, from ``published.json`` next to this file; tables show them below our own."""

import dataclasses
import functools
import json
import os
from collections.abc import Mapping, Sequence
from typing import Any


@dataclasses.dataclass(frozen=True, slots=True)
class Published:
    """One column of a published table.

    Attributes:
      suite: the benchmark's ``protocol["suite"]``.
      sets: possible names of the folder or file that the benchmark reads.
      metric, part: as in the score.
      source: where the numbers were published.
      values: by the encoder's name in the source, in the metric's own range.
    """

    suite: str
    sets: Sequence[str]
    metric: str
    part: str
    source: str
    values: Mapping[str, float]


@functools.cache
def published() -> tuple[Published, ...]:
    """Returns all published numbers."""
    with open(os.path.join(os.path.dirname(__file__), "published.json"), encoding="utf-8") as file:
        return tuple(Published(**row) for row in json.load(file))


def beside(
    benchmark: Mapping[str, Any], columns: Sequence[tuple[str, str]]
) -> list[tuple[str, tuple[str, str], float, str]]:
    """Returns the published numbers for the table of one benchmark.

    Args:
      benchmark: its entry in the results manifest: ``protocol`` and ``data``.
      columns: (metric, part) of the table's columns.

    Returns:
      (encoder, (metric, part), value, source) of every published number that belongs in the table.
    """
    suite = benchmark.get("protocol", {}).get("suite")
    names = {os.path.basename(os.path.abspath(row["path"])) for row in benchmark.get("data", ())}
    found = []
    for row in published():
        fits = row.suite == suite and bool(names & set(row.sets))
        if fits and not benchmark["protocol"].get("excluded") and (row.metric, row.part) in columns:
            found += [(name, (row.metric, row.part), value, row.source) for name, value in row.values.items()]
    return found

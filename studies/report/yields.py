"""The outcome of each publisher's articles, for the report."""

import dataclasses
from typing import Any

from ...beam_pipelines.clean.yields import TABLE, PublisherYield, read_yields
from ...formats import files
from ...formats.manifest import read_manifest

_SHOWN_REASONS = 3


@dataclasses.dataclass(frozen=True)
class Yields:
    """The yield table of the clean job, and the alarms of its manifest."""

    publishers: list[PublisherYield]
    alarms: list[dict[str, Any]]


def of_build(output: str) -> Yields | None:
    """The yields of a build; None if it has none."""
    folder = f"{output}/clean"
    if not files.exists(f"{folder}/{TABLE}"):
        return None
    return Yields(read_yields(folder), read_manifest(folder).get("yield_alarms", []))


def top_reasons(row: PublisherYield) -> str:
    """The most frequent rejections of a publisher."""
    ordered = sorted(row.rejected.items(), key=lambda item: (-item[1], item[0]))
    return ", ".join(f"{name} {count:,}" for name, count in ordered[:_SHOWN_REASONS])

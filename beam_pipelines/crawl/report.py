"""The report of one crawled site: it marks the site's WARC as complete, so that a repeated shard skips the site."""

import dataclasses
from collections.abc import Mapping
from typing import Any

from ...formats import files
from ...formats.records import Failure, Rejection
from .frontier import Visit
from .site import Outcome


@dataclasses.dataclass(frozen=True)
class SiteReport:
    """The result of crawling one site.

    Attributes:
      outcomes: outcome of each scheduled URL.
      listed: visits for other domains.
      tallies: counts by name.
    """

    outcomes: tuple[Outcome, ...]
    listed: tuple[Visit, ...]
    tallies: Mapping[str, int]


def write_report(path: str, report: SiteReport) -> None:
    """Writes a report atomically."""
    outcomes = [[one.url, one.reason.value if one.reason else "", one.detail, one.kind] for one in report.outcomes]
    listed = [[visit.url, visit.depth, visit.kind] for visit in report.listed]
    files.write_json(path, {"outcomes": outcomes, "listed": listed, "tallies": dict(report.tallies)})


def read_report(path: str) -> SiteReport | None:
    """Returns the report of a site; ``None`` if its crawl is not complete."""
    if not files.exists(path):
        return None
    value = files.read_json(path)
    return SiteReport(
        tuple(Outcome(url, _reason(reason), detail, kind) for url, reason, detail, kind in value["outcomes"]),
        tuple(Visit(url, depth, kind) for url, depth, kind in value["listed"]),
        value["tallies"],
    )


def _reason(value: str) -> Any:
    if not value:
        return None
    return Rejection(value) if value in Rejection.__members__.values() else Failure(value)

"""What the crawl of one site left behind: its report says that its WARC is complete, so that a repeated shard does not fetch it again."""

import dataclasses
from collections.abc import Mapping
from typing import Any

from ...formats import files
from ...formats.records import Failure, Rejection
from .site import Outcome, Visit


@dataclasses.dataclass(frozen=True)
class SiteReport:
    """Outcomes of a site's URLs, what it lists for others, and tallies."""

    outcomes: tuple[Outcome, ...]
    listed: tuple[Visit, ...]
    tallies: Mapping[str, int]


def write_report(path: str, report: SiteReport) -> None:
    """Writes a report and moves it in."""
    outcomes = [[one.url, one.reason.value if one.reason else "", one.detail, one.kind] for one in report.outcomes]
    listed = [[visit.url, visit.depth, visit.kind] for visit in report.listed]
    files.write_json(path, {"outcomes": outcomes, "listed": listed, "tallies": dict(report.tallies)})


def read_report(path: str) -> SiteReport | None:
    """A site's report; ``None`` if its crawl is not complete."""
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

"""The report of a run: what was read, the outcome of each record, and what the archive holds now."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, Final

from ..beam_pipelines.clean.rules import SWITCHES
from ..beam_pipelines.progress import print_table
from ..errors import counted
from ..formats.records import Rejection
from ..serving.hybrid import largest_first

_NOTHING_FETCHED: Final = "nothing of the crawl could be fetched; a rule, the feeds or the network are in the way"


@dataclasses.dataclass(frozen=True)
class Report:
    """One run. ``read`` is the sum of ``new``, ``known``, ``rejected`` and ``failed``.

    Attributes:
      version: of the archive after the run.
      published: whether the run made this version; otherwise nothing has changed.
      started: UTC time.
      read: records other than hubs and images.
      new: articles that the archive has now.
      known: articles that it had before, with the same texts and date, or had found to be duplicates.
      rejected: by reason: rules, and duplicates with another text or URL.
      failed: by reason.
      hubs_and_images: feeds, section pages and images, which are not counted in ``read``.
      superseded: articles of earlier runs whose place a new article takes, because it has an earlier date
        or, with the same URL and date, another text.
      articles: in the archive now.
      events: with at least one article now.
      opened: events that this run opened and that are still there.
      merged: events that ended because they became part of others.
      notes: what the user should know of the article files.
      crawl: counts of the crawl: URLs in, out, rejected and failed.
      seconds: by step.
    """

    version: int
    published: bool
    started: str
    read: int
    new: int
    known: int
    rejected: Mapping[str, int]
    failed: Mapping[str, int]
    hubs_and_images: int
    superseded: int
    articles: int
    events: int
    opened: int
    merged: int
    notes: Sequence[str] = ()
    crawl: Sequence[Mapping[str, Any]] = ()
    seconds: Mapping[str, float] = dataclasses.field(default_factory=dict)

    @property
    def balance(self) -> int:
        """Number of records that are not accounted for; 0 unless there is a bug."""
        return self.read - self.new - self.known - sum(self.rejected.values()) - sum(self.failed.values())

    def to_json(self) -> dict[str, Any]:
        """The report as it is written: ``read`` is ``in``."""
        values = dataclasses.asdict(self)
        return {"in": values.pop("read")} | values


def print_report(archive: str, report: Report) -> None:
    """Prints a short table, and a sentence about the archive."""
    rows = [("in", report.read), ("new", report.new), ("already known", report.known)]
    for what in ("rejected", "failed"):
        rows += [(f"{what}: {name}", count) for name, count in largest_first(getattr(report, what))]
    optional = [("hubs and images", report.hubs_and_images)]
    optional += [("superseded by earlier or corrected reports", report.superseded)]
    optional += [("events opened", report.opened), ("events merged", report.merged)]
    rows += [(name, count) for name, count in optional if count]
    for counts in report.crawl:
        rows.append(("URLs crawled", counts["in"]))
        rows += [(f"URLs: {name}", count) for name, count in largest_first(counts["rejected"] | counts["failed"])]
    print_table(("articles", "count"), [(name, f"{count:,}") for name, count in rows], numbers=("count",))
    unfetched = [one for one in report.crawl if {*one["failed"], *one["rejected"]} - {Rejection.NOT_MODIFIED}]
    # A crawl has an answer if it has fetched anything, or heard that it has not changed.
    silent = [one for one in unfetched if not (one["out"] or one["rejected"].get(Rejection.NOT_MODIFIED))]
    for note in [*report.notes, *[_NOTHING_FETCHED] * len(silent)]:
        print(f"note: {note}")
    if report.rejected or report.failed or unfetched:
        print(f"`newsembed rejected {archive}` prints the rejected and failed records")
    has = f"{counted(report.articles, 'article')} in {counted(report.events, 'event')}"
    if report.published:
        print(f"{archive}: version {report.version}, {has}; {sum(report.seconds.values()):.1f} s")
    elif report.version:
        print(f"{archive}: nothing new; version {report.version} stays, {has}")
    else:
        print(f"{archive}: nothing new; the archive has no version yet{_why(report)}")


def _why(report: Report) -> str:
    """What rejected most of the first articles, and the option that keeps them."""
    if not report.rejected:
        return ""
    reason, count = largest_first(report.rejected)[0]
    switch = f"; --clean.{SWITCHES[reason]} keeps them" if reason in SWITCHES else ""
    return f": {count:,} of {report.read:,} rejected as {reason}{switch}"

"""Progress bars and tables on the terminal."""

import types
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Self

from rich.box import SIMPLE, Box
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn
from rich.table import Table

from ..errors import counted
from .accounting import CUT_BODIES, MARKUP_IN_BODIES, UNREAD_DATES, UNREAD_FIELD
from .jobs import Outcome

_REFRESHES_PER_SECOND = 2  # rich's default of 10 costs some percent of a core, even when nothing is shown


class JobProgress:
    """Shows a progress bar for each phase of a job, in shards or sites.

    A context manager; inside, call it with (phase, finished parts, all parts, another growing number as text).
    """

    def __init__(self, job: str) -> None:
        self._job = job
        self._bars: dict[str, TaskID] = {}
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("parts"),
            TextColumn("{task.fields[grown]}"),
            TimeElapsedColumn(),
            console=Console(stderr=True),
            refresh_per_second=_REFRESHES_PER_SECOND,
        )

    def __call__(self, phase: str, done: int, total: int, grown: str) -> None:
        """Moves the bar of a phase, which the first call adds."""
        if phase not in self._bars:
            self._bars[phase] = self._progress.add_task(f"{self._job}: {phase}", total=total, grown=grown)
        self._progress.update(self._bars[phase], completed=done, grown=grown)

    def say(self, text: str) -> None:
        """Prints a line above the bars."""
        self._progress.console.print(text, markup=False, highlight=False, soft_wrap=True)

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(
        self, _type: type[BaseException] | None, _error: BaseException | None, _trace: types.TracebackType | None
    ) -> None:
        self._progress.stop()


def job_row(name: str, outcome: Outcome) -> dict[str, Any]:
    """The numbers of one job, as in the table and in ``report.json``."""
    counts = outcome.manifest["counts"]
    alarms = outcome.manifest.get("yield_alarms")
    return {
        "job": name,
        **counts,
        "seconds": round(outcome.seconds, 1),
        "documents_per_second": round(counts["in"] / outcome.seconds, 1) if outcome.seconds else None,
        "skipped": outcome.skipped,
        **({"yield_alarms": alarms} if alarms else {}),
    }


def print_table(
    columns: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    numbers: Collection[str] = (),
    title: str | None = None,
    box: Box = SIMPLE,
) -> None:
    """Prints a table of plain text.

    Args:
      columns: the headings.
      rows: the cells, as text.
      numbers: columns that are aligned to the right.
      title: printed above the table.
      box: rich's box; the default has no lines between columns, so that long cells fit into 80 characters.
    """
    table = Table(box=box)
    for column in columns:
        table.add_column(column, justify="right" if column in numbers else "left", overflow="fold")
    for row in rows:
        table.add_row(*map(escape, row))
    console = Console()
    if title:  # as the table's own it would wrap at its width
        console.print(title, style="italic", markup=False, highlight=False, soft_wrap=True)
    console.print(table)


def print_rows(rows: Sequence[Mapping[str, Any]]) -> None:
    """Prints the table: job, in, out, rejected by reason, failed by reason, seconds, documents/s."""
    cells = []
    for row in rows:
        seconds = f"({row['seconds']:.1f})" if row["skipped"] else f"{row['seconds']:.1f}"
        rate = f"{row['documents_per_second']:,.0f}" if row["documents_per_second"] else "-"
        reasons = "\n".join([*_named(row["rejected"]), *(f"failed: {reason}" for reason in _named(row["failed"]))])
        cells.append((row["job"], f"{row['in']:,}", f"{row['out']:,}", reasons or "-", seconds, rate))
    columns = ("job", "in", "out", "rejected, failed", "seconds", "docs/s")
    print_table(columns, cells, numbers=("in", "out", "seconds", "docs/s"))
    console = Console()
    for alarm in [alarm for row in rows for alarm in row.get("yield_alarms", ())]:
        console.print(_alarm(alarm), style="bold red", markup=False, soft_wrap=True)
    for row in rows:
        for remark in remarks(row["job"], row.get("tallies", {})):
            console.print(f"note: {remark}", markup=False, highlight=False, soft_wrap=True)
    if any(row["skipped"] for row in rows):
        console.print("(seconds) in brackets: of an earlier run with the same options and inputs; skipped now")


def remarks(job: str, tallies: Mapping[str, int]) -> Iterator[str]:
    """What a user should know of the article files that a job has read, a sentence each.

    Args:
      job: its name.
      tallies: of its counts.
    """
    unread = {name.removeprefix(UNREAD_FIELD): tallies[name] for name in tallies if name.startswith(UNREAD_FIELD)}
    if unread:
        yield f"{job} does not read these fields: {', '.join(_named(unread))}"
    if count := tallies.get(UNREAD_DATES):
        yield f"{job} cannot read the dates of {counted(count, 'article')}; write them as YYYY-MM-DD"
    if count := tallies.get(CUT_BODIES):
        yield f"{job} has cut the bodies of {counted(count, 'article')} to 50,000 characters"
    if count := tallies.get(MARKUP_IN_BODIES):
        bodies = f"the bodies of {counted(count, 'article')}"
        yield f"{job} has left HTML tags in {bodies}; give plain text, or pages as WARC files"


def _alarm(alarm: Mapping[str, Any]) -> str:
    before = f"{alarm['before']:.0%} of {counted(alarm['judged_before'], 'article')} before"
    if alarm["kind"] == "lost":
        return f"{alarm['publisher']}: no articles now; kept {before}"
    now = f"{alarm['now']:.0%} of {alarm['judged_now']:,} now"
    return f"{alarm['publisher']}: yield dropped: kept {before}, {now}; what grew most: {alarm['reason']}"


def print_outcomes(outcomes: Sequence[tuple[str, Outcome]]) -> None:
    """Prints the table of the jobs that have just run."""
    print_rows([job_row(name, outcome) for name, outcome in outcomes])


def _named(counts: Mapping[str, int]) -> list[str]:
    return [f"{name} {count:,}" for name, count in sorted(counts.items(), key=lambda item: -item[1])]

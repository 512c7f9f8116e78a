"""Progress bars and tables on the terminal."""

import contextlib
import sys
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final, Self

from rich import progress as bars
from rich.box import SIMPLE, Box
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from ..errors import InputError, counted, visible
from ..formats.bars import SECONDS_BETWEEN_LINES
from ..formats.digests import some_of
from ..formats.files import list_files

if TYPE_CHECKING:
    from .jobs import Job, Outcome

# In tallies, of articles that a user brings:
UNREAD_FIELD: Final = "unread_field:"  # before the name of a field that no rule reads
ABSENT_FIELD: Final = "absent_field:"  # before the name of a field that the user has chosen and a row lacks
READ_AS: Final = "read_as:"  # before "title from headline"
UNREAD_DATES: Final = "unread_dates"  # articles without a byline date whose row states one
WITHOUT_DATE: Final = "without_date"  # articles whose row states none
NO_PERSONS: Final = "no_persons"  # articles without authors whose row states some, such as the URL of a profile
GUESSED_DATES: Final = "guessed_dates"  # articles whose date may have day and month in another order
CUT_BODIES: Final = "cut_bodies"  # articles whose body was too long
WITHOUT_URL: Final = "without_url"  # articles that are known by title and body
MARKUP_IN_BODIES: Final = "markup_in_bodies"  # articles whose body has HTML tags
_OF_FIELDS: Final = {
    READ_AS: "has read {}; --fields title=NAME chooses another field",
    UNREAD_FIELD: "does not read these fields: {}",
    ABSENT_FIELD: "has found rows without these fields of --fields: {}",
}
_OF_ARTICLES: Final = {
    UNREAD_DATES: "cannot read the dates of {}, or they are in the future; write them as YYYY-MM-DD",
    WITHOUT_DATE: "has found no date of {}, which events need; --fields byline_date=NAME names the column",
    NO_PERSONS: "has found no person's name in the authors of {}",
    GUESSED_DATES: "has guessed the order of day and month in the dates of {}",
    CUT_BODIES: "has cut the bodies of {} to 50,000 characters",
    WITHOUT_URL: "has found no absolute http(s) URL of {}, known by title and text now; mining pairs needs publishers",
    MARKUP_IN_BODIES: "has taken the text out of HTML in the bodies of {}",
}

_REFRESHES_PER_SECOND = 2  # rich's default of 10 costs some percent of a core, even when nothing is shown


class JobProgress:
    """Shows a progress bar for each phase of a job, in shards or sites; where it cannot be drawn, a line now and then.

    A context manager; inside, call it with (phase, finished parts, all parts, another growing number as text).
    """

    def __init__(self, job: str, unit: str = "parts") -> None:
        self._job, self._unit = job, unit
        self._bars: dict[str, bars.TaskID] = {}
        name, parts, grown = map(bars.TextColumn, ("{task.description}", unit, "{task.fields[grown]}"))
        columns = (name, bars.BarColumn(), bars.MofNCompleteColumn(), parts, grown)
        times = (bars.TimeElapsedColumn(), bars.TimeRemainingColumn())
        console = Console(stderr=True, force_jupyter=False)  # in a notebook rich asks for ipywidgets
        self._progress = bars.Progress(*columns, *times, console=console, refresh_per_second=_REFRESHES_PER_SECOND)

    def __call__(self, phase: str, done: int, total: int, grown: str) -> None:
        """Moves the bar of a phase, which the first call adds."""
        if not self._bars:  # a job that is skipped shows nothing, not even an empty line
            self._progress.start()
        if phase not in self._bars:
            name = f"{self._job}: {phase}"
            self._bars[phase] = self._progress.add_task(name, total=total, grown=grown)
            self._say(f"{name} …")
        self._progress.update(self._bars[phase], completed=done, grown=grown)
        if done < total and time.monotonic() - self._said > SECONDS_BETWEEN_LINES:
            seconds = self._progress.tasks[self._bars[phase]].time_remaining
            left = "" if seconds is None else f", {timedelta(seconds=round(seconds))} left"
            self._say(f"{self._job}: {phase} " + f"{done:,} of {total:,} {self._unit} {grown}".rstrip() + left)

    def _say(self, line: str) -> None:
        """Prints a line where no bar can be drawn: there, bars are printed at the end only."""
        self._said = time.monotonic()
        if not self._progress.console.is_terminal:
            print(line, file=sys.stderr, flush=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        if self._bars:
            self._progress.stop()


@contextlib.contextmanager
def working(what: str) -> Iterator[None]:
    """Shows that a block of unknown length runs, and for how long."""
    job, _, phase = what.partition(": ")
    with JobProgress(job) as progress:
        progress(phase, 0, 1, "")
        yield
        progress(phase, 1, 1, "")


def job_row(name: str, outcome: "Outcome") -> dict[str, Any]:
    """The numbers of one job, as in the table and in ``report.json``."""
    counts = outcome.manifest["counts"]
    return {
        "job": name,
        **counts,
        "seconds": round(outcome.seconds, 1),
        "documents_per_second": round(counts["in"] / outcome.seconds, 1) if outcome.seconds else None,
        "skipped": outcome.skipped,
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
        table.add_row(*(escape(visible(cell)) for cell in row))
    console = Console(force_jupyter=False)
    if title:  # as the table's own it would wrap at its width
        console.print(title, style="italic", markup=False, highlight=False, soft_wrap=True)
    console.print(table)


def print_rows(rows: Sequence[Mapping[str, Any]]) -> None:
    """Prints the table: job, in, out, rejected by reason, failed by reason, seconds, documents/s."""
    cells = []
    for row in rows:
        seconds = f"({row['seconds']:.1f})" if row["skipped"] else f"{row['seconds']:.1f}"
        rate = f"{row['documents_per_second']:,.0f}" if row["documents_per_second"] else "-"
        reasons = "\n".join([*named(row["rejected"]), *(f"failed: {reason}" for reason in named(row["failed"]))])
        cells.append((row["job"], f"{row['in']:,}", f"{row['out']:,}", reasons or "-", seconds, rate))
    print_table(
        ("job", "in", "out", "rejected, failed", "seconds", "docs/s"), cells, numbers=("in", "out", "seconds", "docs/s")
    )
    for row in rows:
        for remark in remarks(row["job"], row.get("tallies", {})):
            print(f"note: {remark}")
    if any(row["skipped"] for row in rows):
        print("(seconds) in brackets: of an earlier run with the same options and inputs; skipped now")


def remarks(job: str, tallies: Mapping[str, int]) -> Iterator[str]:
    """What a user should know of the article files that a job has read, a sentence each.

    Args:
      job: its name.
      tallies: of its counts.
    """
    for start, said in _OF_FIELDS.items():
        if found := {name.removeprefix(start): tallies[name] for name in tallies if name.startswith(start)}:
            yield f"{job} {said.format(', '.join(named(found)))}"
    for name, said in _OF_ARTICLES.items():
        if count := tallies.get(name):
            yield f"{job} {said.format(counted(count, 'article'))}"


def why_empty(
    job: "Job", inputs: Mapping[str, Sequence[str]], manifest: Mapping[str, Any], output: str, prefix: str = ""
) -> InputError | None:
    """The error that says why a job wrote nothing, and which option keeps records; None if it wrote something.

    Args:
      job: the job.
      inputs: their paths, by name.
      manifest: of its result.
      output: the folder of the result.
      prefix: of the job's options on the command line, such as "clean.".
    """
    counts = manifest["counts"]
    if counts["out"]:
        return None
    if not counts["in"]:
        read = some_of([path for paths in inputs.values() for path in paths])
        return InputError("there was nothing to read", path=read, remedy="give other files")
    reasons = sorted({**counts["rejected"], **counts["failed"]}.items(), key=lambda item: -item[1])
    shown = ", ".join(f"{count:,} of {counts['in']:,} {name}" for name, count in reasons[:3])
    first = reasons[0][0]
    switch = job.switches.get(first)
    remedy = f"--{prefix}{switch} keeps them" if switch else f"see `newsembed rejected {output}`"
    if job.name == "extract" and first == "missing_field":
        remedy = f"name the columns, such as --{prefix}fields title=headline; one column may be two fields; {remedy}"
    return InputError(f"nothing is left: {shown}{examples_of(output).get(first, '')}", path=output, remedy=remedy)


def examples_of(folder: str) -> dict[str, str]:
    """For each reason for which a job could not read records, what to say of one of them after the reason."""
    from ..formats.parquet import read_records
    from ..formats.records import DeadLetter

    return {
        one.reason: f", for example {one.key}: {one.detail}"
        for path in list_files("dead_letters/**", folder)
        for one in read_records(path, DeadLetter)
        if one.outcome == "failed"
    }


def print_outcome(name: str, outcome: "Outcome") -> None:
    """Prints the table of a job that has just run."""
    print_rows([job_row(name, outcome)])


def named(counts: Mapping[str, int]) -> list[str]:
    """Names with their numbers, the largest first."""
    return [f"{visible(name)} {count:,}" for name, count in sorted(counts.items(), key=lambda item: -item[1])]

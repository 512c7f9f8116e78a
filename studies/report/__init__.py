"""The report of a build: ``report.json`` with every number, and ``report.html`` with plots and samples."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from ...formats import files
from ..shared.pages import Block, Cell, Folded, Part, Plot, Table, number, origin, page
from . import plots, samples

_SPARE_COLUMNS: Final = 4


def write_report(output: str, rows: Sequence[Mapping[str, Any]], sections: Mapping[str, Any] | None = None) -> None:
    """Writes ``report.json`` and a self-contained ``report.html``.

    Args:
      output: work folder of the build; plots and samples are read from its jobs' streams.
      rows: numbers by job, see ``beam_pipelines.progress.job_row``.
      sections: further parts of report.json (scores, evaluation, checks), shown as tables.
    """
    report = {"jobs": [dict(row) for row in rows], **(sections or {})}
    files.write_json(f"{output}/report.json", report)
    parts = parts_of(report, plots.all_plots(output, rows), samples.rejected(output), samples.triplets(output))
    text = page("newsembed build", Table(["", ""], origin()), parts)
    files.write_whole(f"{output}/report.html", text.encode("utf-8", errors="replace"))


def parts_of(
    report: Mapping[str, Any],
    drawn: Sequence[tuple[str, str]],
    rejected: Sequence[samples.Rejected],
    triplets: Sequence[Mapping[str, Any]],
) -> list[Part]:
    """The parts of the page: the checks, the jobs, then everything else.

    Args:
      report: the content of report.json.
      drawn: plots, (title, SVG).
      rejected: samples of rejected and failed records.
      triplets: samples of triplets, each with its three documents.
    """
    found: list[tuple[str, list[Block]]] = []
    if "checks" in report:
        found.append(("Checks", list(_tables(report["checks"]))))
    found.append(("Jobs", [_jobs(report["jobs"])]))
    for name, section in report.items():
        if name not in ("checks", "jobs"):
            found.append((name.replace("_", " ").capitalize(), list(_tables(section))))
    found += [(title, [Plot(svg)]) for title, svg in drawn]
    found.append(("Rejected and failed records, by reason", [_rejected(group, rejected) for group in rejected]))
    roles = ("anchor", "positive", "negative")
    pairs = Table(roles, [[_document(row[role]) for role in roles] for row in triplets])
    found.append((f"{len(triplets)} random triplets", [pairs] if triplets else []))
    return [Part(f"part-{place}", title, blocks) for place, (title, blocks) in enumerate(found) if blocks]


def _named(counts: Mapping[str, int]) -> tuple[str, ...]:
    return tuple(f"{name} {count:,}" for name, count in sorted(counts.items(), key=lambda item: -item[1]))


def _jobs(rows: Sequence[Mapping[str, Any]]) -> Table:
    cells = [
        [
            *(row["job"], f"{row['in']:,}", f"{row['out']:,}", ", ".join(_named(row["rejected"]))),
            *(", ".join(_named(row["failed"])), _folded(row["tallies"]), number(row["seconds"])),
        ]
        for row in rows
    ]
    return Table(["job", "in", "out", "rejected", "failed", "tallies", "seconds"], cells)


def _folded(counts: Mapping[str, int]) -> str | Cell:
    """The tallies of a job, folded: some jobs have one for each language and data set."""
    return Cell(str(len(counts)), folded=_named(counts)) if counts else ""


def _tables(section: Any, name: str = "") -> Iterator[Block]:
    """Any part of the report as tables: those inside others come after them, below their names."""
    if isinstance(section, Mapping):
        inner = {key: value for key, value in section.items() if isinstance(value, Mapping) or _is_list(value)}
        rows = [[key, _cell(value)] for key, value in section.items() if key not in inner]
        if rows:
            yield Table(["", ""], rows, name)
        for key, value in inner.items():
            yield from _tables(value, f"{name}, {key}".removeprefix(", "))
    elif _is_list(section):
        names = list(dict.fromkeys(key for item in section for key in item))
        if len(names) > len(section) + _SPARE_COLUMNS:  # many scores of few encoders: one row for each score
            first, *others = names
            headings = [first, *(str(item.get(first, "")) for item in section)]
            yield Table(headings, [[key, *(_cell(item.get(key, "")) for item in section)] for key in others], name)
        else:
            yield Table(names, [[_cell(item.get(key, "")) for key in names] for item in section], name)
    else:
        yield str(_cell(section))


def _is_list(value: Any) -> bool:
    """Whether a value is a list of rows."""
    return isinstance(value, list) and bool(value) and all(isinstance(item, Mapping) for item in value)


def _cell(value: Any) -> str | Cell:
    """A value as text; booleans are shown as met or missed."""
    if isinstance(value, bool):
        return Cell("met", mark="good") if value else Cell("missed", mark="bad")
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {_cell(item)}" for name, item in value.items())
    return ", ".join(str(_cell(item)) for item in value) if isinstance(value, list) else number(value)


def _rejected(group: samples.Rejected, groups: Sequence[samples.Rejected]) -> Folded:
    """Samples of a reason, with its count and its share of all rejected and failed records of the job."""
    total = sum(other.count for other in groups if other.job == group.job)
    note = (
        f"{group.count:,} {group.outcome}, {group.count / total:.1%} of the job's; {len(group.letters)} drawn at random"
    )
    rows = [[letter.key, letter.detail, letter.sample] for letter in group.letters]
    table = Table(["key", "detail", "sample"], rows)
    return Folded(f"{group.job}-{group.reason}", f"{group.job}: {group.reason}", note, table)


def _document(document: Mapping[str, str]) -> Cell:
    facts = " · ".join(document.get(name, "") for name in ("publisher", "byline_date"))
    return Cell(document.get("title", "?"), language=document.get("language", ""), note=facts)

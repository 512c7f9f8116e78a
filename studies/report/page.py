"""The HTML page of a build."""

from collections.abc import Mapping, Sequence
from typing import Any

from ..shared.pages import dim, escaped, in_language, page, table
from .samples import Rejected
from .yields import Yields, top_reasons

_SHOWN_PUBLISHERS = 40
_SPARE_COLUMNS = 4
_STYLE = """
details{margin:.3rem 0}td{overflow-wrap:anywhere;min-width:3.5rem}
@media(max-width:40rem){body{margin:1rem auto;padding:0 .7rem}.wide>svg{max-width:none}}
"""


def render(
    report: Mapping[str, Any],
    plots: Sequence[tuple[str, str]],
    rejected: Sequence[Rejected],
    triplets: Sequence[Mapping[str, Any]],
    yields: Yields | None = None,
    *,
    facts: Mapping[str, str] | None = None,
) -> str:
    """The whole page as text: what made it, the checks, the jobs, then everything else.

    Args:
      report: the content of report.json.
      plots: (title, SVG).
      rejected: samples of rejected and failed records.
      triplets: samples of triplets, each with its three documents.
      yields: of publishers.
      facts: when, by which version and by which command the page was written.
    """
    first = ("checks", "jobs")
    checks = [("Checks", _value(report["checks"]))] if "checks" in report else []
    sections = [
        *checks,
        ("Jobs", _jobs(report["jobs"])),
        *(
            (name.replace("_", " ").capitalize(), _value(section))
            for name, section in report.items()
            if name not in first
        ),
        *((title, f"<div class=wide>{_themed(svg)}</div>") for title, svg in plots),
        ("Clean articles by publisher", _yields(yields)),
        ("Rejected and failed records, by reason", _rejected(rejected)),
        (f"{len(triplets)} random triplets", _triplets(triplets)),
    ]
    shown = [(f"part-{number}", title, content) for number, (title, content) in enumerate(sections) if content]
    about = [table(["", ""], [[escaped(name), escaped(value)] for name, value in facts.items()])] if facts else []
    body = [f'<h2 id="{place}">{escaped(title)}</h2>{content}' for place, title, content in shown]
    return page("newsembed build", _STYLE, [(place, title) for place, title, _ in shown], [*about, *body])


def _themed(svg: str) -> str:
    """A plot of matplotlib in the colours of the page, light or dark."""
    return svg.replace("#000000", "currentColor").replace("#ffffff", "none")


def _named(counts: Mapping[str, int]) -> str:
    return "<br>".join(
        f"{escaped(name)} {count:,}" for name, count in sorted(counts.items(), key=lambda item: -item[1])
    )


def _tallies(counts: Mapping[str, int]) -> str:
    """The tallies of a job, folded: some jobs have one for each language and data set."""
    return f"<details><summary>{len(counts)}</summary>{_named(counts)}</details>" if counts else ""


def _jobs(rows: Sequence[Mapping[str, Any]]) -> str:
    cells = [
        [
            escaped(row["job"]),
            f"{row['in']:,}",
            f"{row['out']:,}",
            _named(row["rejected"]),
            _named(row["failed"]),
            _tallies(row["tallies"]),
            escaped(row["seconds"]),
        ]
        for row in rows
    ]
    return table(["job", "in", "out", "rejected", "failed", "tallies", "seconds"], cells)


def _value(value: Any) -> str:
    """Any part of the report as nested tables; booleans are shown as met or missed."""
    if isinstance(value, Mapping):
        return table(["", ""], [[escaped(name), _value(item)] for name, item in value.items()])
    if isinstance(value, list) and value and all(isinstance(item, Mapping) for item in value):
        names = list(dict.fromkeys(name for item in value for name in item))
        if len(names) > len(value) + _SPARE_COLUMNS:  # many scores of few encoders: one row for each score
            first, *others = names
            headings = [first, *(str(item.get(first, "")) for item in value)]
            return table(
                headings, [[escaped(name), *(_value(item.get(name, "")) for item in value)] for name in others]
            )
        return table(names, [[_value(item.get(name, "")) for name in names] for item in value])
    if isinstance(value, bool):
        return "<span class=good>met</span>" if value else "<span class=bad>missed</span>"
    return ", ".join(_value(item) for item in value) if isinstance(value, list) else escaped(value)


def _yields(yields: Yields | None) -> str:
    """Alarms, then the publishers with most articles."""
    if yields is None:
        return ""
    alarms = [
        [
            escaped(alarm["publisher"]),
            f"<span class=bad>{escaped(alarm['kind'])}</span>",
            f"{alarm['before']:.0%} of {alarm['judged_before']:,}",
            f"{alarm['now']:.0%} of {alarm['judged_now']:,}",
            escaped(alarm["reason"]),
            escaped(alarm["p_value"]),
        ]
        for alarm in yields.alarms
    ]
    rows = [
        [
            escaped(row.publisher),
            f"{row.read:,}",
            f"{row.kept:,}",
            f"{row.duplicates:,}",
            f"{row.rate:.0%}",
            escaped(top_reasons(row)),
        ]
        for row in yields.publishers[:_SHOWN_PUBLISHERS]
    ]
    left = len(yields.publishers) - len(rows)
    return "\n".join(
        [
            dim("Yield: kept articles as a share of those that are not duplicates."),
            *(
                ["<h3>Yield dropped</h3>", table(["publisher", "", "before", "now", "reason that grew", "p"], alarms)]
                if alarms
                else []
            ),
            table(["publisher", "in", "kept", "duplicates", "yield", "rejected"], rows),
            *([dim(f"and {left:,} more in clean/yields.tsv")] if left else []),
        ]
    )


def _rejected(groups: Sequence[Rejected]) -> str:
    """Samples of each reason, with its count and its share of all rejected and failed records of the job."""
    parts = []
    for group in groups:
        total = sum(other.count for other in groups if other.job == group.job)
        parts.append(
            f"<details id={escaped(f'{group.job}-{group.reason}')}><summary>{escaped(f'{group.job}: {group.reason}')} "
            f"<span class=dim>{group.count:,} {escaped(group.outcome)}, {group.count / total:.1%} of the job's; "
            f"{len(group.letters)} drawn at random</span></summary>"
            + table(
                ["key", "detail", "sample"],
                [[escaped(letter.key), escaped(letter.detail), escaped(letter.sample)] for letter in group.letters],
            )
            + "</details>"
        )
    return "".join(parts)


def _triplets(rows: Sequence[Mapping[str, Mapping[str, str]]]) -> str:
    def cell(document: Mapping[str, str]) -> str:
        title = in_language(document.get("title", "?"), document.get("language", ""))
        facts = [escaped(document.get(name, "")) for name in ("publisher", "byline_date")]
        return f"{title}<br><span class=dim>{' · '.join(facts)}</span>"

    if not rows:
        return ""
    return table(
        ["anchor", "positive", "negative"],
        [[cell(row[role]) for role in ("anchor", "positive", "negative")] for row in rows],
    )

"""The HTML page of a build: one file, no scripts, nothing fetched."""

import html
import re
from collections.abc import Mapping, Sequence
from typing import Any

from .samples import Rejected
from .yields import Yields, top_reasons

_SHOWN_PUBLISHERS = 40
_SPARE_COLUMNS = 4
_NUMBER = re.compile(r"-?[\d,]*\.?\d+(e[-+]\d+)?%?")
_STYLE = """
body{font:15px/1.45 system-ui,sans-serif;max-width:1080px;margin:2rem auto;padding:0 1rem;color:#1f2933}
table{border-collapse:collapse;margin:.6rem 0;font-size:13px}td,th{padding:.25rem .6rem;border-bottom:1px solid #d9dee4;text-align:left;vertical-align:top}
td.n,th.n{text-align:right;font-variant-numeric:tabular-nums}h2{margin-top:2.2rem}details{margin:.3rem 0}svg{max-width:100%;height:auto}
.ok{color:#227a3a}.miss{color:#b3261e;font-weight:600}.dim{color:#6b7885}.wide{overflow-x:auto}a{color:#2f6fab}nav a{margin-right:1rem;white-space:nowrap}
"""


def render(
    report: Mapping[str, Any],
    plots: Sequence[tuple[str, str]],
    rejected: Sequence[Rejected],
    triplets: Sequence[Mapping[str, Any]],
    yields: Yields | None = None,
) -> str:
    """The whole page as text."""
    sections = [
        ("Jobs", _jobs(report["jobs"])),
        *((name.replace("_", " ").capitalize(), _value(section)) for name, section in report.items() if name != "jobs"),
        *plots,
        ("Clean articles by publisher", _yields(yields)),
        ("Rejected and failed records, by reason", _rejected(rejected)),
        (f"{len(triplets)} random triplets", _triplets(triplets)),
    ]
    shown = [(f"part-{number}", _text(title), content) for number, (title, content) in enumerate(sections) if content]
    links = "".join(f'<a href="#{place}">{title}</a> ' for place, title, _ in shown)
    return "\n".join(
        [
            f"<!doctype html><html lang=en><meta charset=utf-8><title>newsembed build</title><style>{_STYLE}</style><h1>newsembed build</h1>",
            f"<nav>{links}</nav>",
            *(f'<h2 id="{place}">{title}</h2>{content}' for place, title, content in shown),
            "</html>",
        ]
    )


def _text(value: Any) -> str:
    return html.escape(f"{value:,.4g}" if isinstance(value, float) else str(value))


def _table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table that scrolls by itself where it is wider than the page; columns of numbers stand to the right."""
    numeric = [
        all(_NUMBER.fullmatch(cell) for cell in column if cell) and any(column) for column in zip(*rows, strict=True)
    ]
    marks = [" class=n" if is_numeric else "" for is_numeric in numeric] or [""] * len(headings)
    head = "".join(f"<th{mark}>{_text(heading)}</th>" for heading, mark in zip(headings, marks, strict=True))
    body = "".join(
        "<tr>" + "".join(f"<td{mark}>{cell}</td>" for cell, mark in zip(row, marks, strict=True)) + "</tr>"
        for row in rows
    )
    return f"<div class=wide><table><tr>{head}</tr>{body}</table></div>"


def _named(counts: Mapping[str, int]) -> str:
    return "<br>".join(f"{_text(name)} {count:,}" for name, count in sorted(counts.items(), key=lambda item: -item[1]))


def _jobs(rows: Sequence[Mapping[str, Any]]) -> str:
    cells = [
        [
            _text(row["job"]),
            f"{row['in']:,}",
            f"{row['out']:,}",
            _named(row["rejected"]),
            _named(row["failed"]),
            _named(row["tallies"]),
            _text(row["seconds"]),
        ]
        for row in rows
    ]
    return _table(["job", "in", "out", "rejected", "failed", "tallies", "seconds"], cells)


def _value(value: Any) -> str:
    """Any part of the report as nested tables; booleans as met or missed."""
    if isinstance(value, Mapping):
        return _table(["", ""], [[_text(name), _value(item)] for name, item in value.items()])
    if isinstance(value, list) and value and all(isinstance(item, Mapping) for item in value):
        names = list(dict.fromkeys(name for item in value for name in item))
        if len(names) > len(value) + _SPARE_COLUMNS:  # few encoders by many scores: these go downwards
            first, *others = names
            headings = [first, *(str(item.get(first, "")) for item in value)]
            return _table(headings, [[_text(name), *(_value(item.get(name, "")) for item in value)] for name in others])
        return _table(names, [[_value(item.get(name, "")) for name in names] for item in value])
    if isinstance(value, bool):
        return "<span class=ok>met</span>" if value else "<span class=miss>missed</span>"
    return ", ".join(_value(item) for item in value) if isinstance(value, list) else _text(value)


def _yields(yields: Yields | None) -> str:
    """Alarms, then the publishers with most articles."""
    if yields is None:
        return ""
    alarms = [
        [
            _text(alarm["publisher"]),
            f"<span class=miss>{_text(alarm['kind'])}</span>",
            f"{alarm['before']:.0%} of {alarm['judged_before']:,}",
            f"{alarm['now']:.0%} of {alarm['judged_now']:,}",
            _text(alarm["reason"]),
            _text(alarm["p_value"]),
        ]
        for alarm in yields.alarms
    ]
    rows = [
        [
            _text(row.publisher),
            f"{row.read:,}",
            f"{row.kept:,}",
            f"{row.duplicates:,}",
            f"{row.rate:.0%}",
            _text(top_reasons(row)),
        ]
        for row in yields.publishers[:_SHOWN_PUBLISHERS]
    ]
    left = len(yields.publishers) - len(rows)
    return "\n".join(
        [
            "<p class=dim>Yield: kept articles as a share of those that are no duplicates.</p>",
            *(
                ["<h3>Yield dropped</h3>", _table(["publisher", "", "before", "now", "reason that grew", "p"], alarms)]
                if alarms
                else []
            ),
            _table(["publisher", "in", "kept", "duplicates", "yield", "rejected"], rows),
            *([f"<p class=dim>and {left:,} more in clean/yields.tsv</p>"] if left else []),
        ]
    )


def _rejected(groups: Sequence[Rejected]) -> str:
    """Samples behind each reason, with its count and its share of all records of the job that were turned down."""
    parts = []
    for group in groups:
        total = sum(other.count for other in groups if other.job == group.job)
        parts.append(
            f"<details id={_text(f'{group.job}-{group.reason}')}><summary>{_text(f'{group.job}: {group.reason}')} "
            f"<span class=dim>{group.count:,} {_text(group.outcome)}, {group.count / total:.1%} of the job's; {len(group.letters)} drawn at random</span>"
            "</summary>"
            + _table(
                ["key", "detail", "sample"],
                [[_text(letter.key), _text(letter.detail), _text(letter.sample)] for letter in group.letters],
            )
            + "</details>"
        )
    return "".join(parts)


def _triplets(rows: Sequence[Mapping[str, Mapping[str, str]]]) -> str:
    def cell(document: Mapping[str, str]) -> str:
        return f"{_text(document.get('title', '?'))}<br><span class=dim>{_text(document.get('publisher', ''))} · {_text(document.get('byline_date', ''))}</span>"

    if not rows:
        return ""
    return _table(
        ["anchor", "positive", "negative"],
        [[cell(row[role]) for role in ("anchor", "positive", "negative")] for row in rows],
    )

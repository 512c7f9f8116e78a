"""The report of ``newsembed diagnose``: report.json, report.md and report.html."""

import collections
import json
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from ..shared.arguments import write_text
from ..shared.pages import dim, escaped, in_language, page, table
from . import charts
from .text import (
    PAIR_HEADINGS,
    PARTS,
    REDUNDANCY_HEADINGS,
    REDUNDANCY_NOTE,
    REPETITION_HEADINGS,
    attention_rows,
    facts_rows,
    number,
    repetition_rows,
    report_text,
    tagger_line,
)

Section = Mapping[str, Any]

_COLOURED: Final = 8  # labels of a map with a colour of their own
_UNCOLOURED: Final = "x"
_STYLE: Final = """
:root{--wash:#f3f5f7;--none:#aab3bc}
:root{--s0:#0072b2;--s1:#c04f00;--s2:#00805d;--s3:#b0568a;--s4:#a87000;--s5:#2f8fc4;--s6:#8c6d31;--s7:#7f3c8d}
@media(prefers-color-scheme:dark){
:root{--wash:#1d232a;--none:#5b6875}
:root{--s0:#4db2f0;--s1:#ff9a57;--s2:#3ecfa4;--s3:#eaa3cb;--s4:#f0bc4a;--s5:#9cd6f7;--s6:#cfae6b;--s7:#c58ad3}}
.missing{background:var(--wash);padding:.5rem .8rem;border-left:3px solid var(--s1)}
.bar{display:inline-block;height:.7em;background:var(--s0);min-width:1px}
.side{display:flex;flex-wrap:wrap;gap:1.2rem}.side figure{margin:0;flex:1 1 380px;max-width:520px}
.dots{border:1px solid var(--line);width:100%}
.dots circle{fill:var(--none);fill-opacity:.8;stroke:var(--bg);stroke-width:.4}
.dots circle:hover{stroke:var(--ink);stroke-width:1.2}
.key{display:none;list-style:none;padding:0;margin:.4rem 0}.key li{display:inline-block;margin-right:1rem}
.swatch{display:inline-block;width:.8em;height:.8em;border-radius:50%;margin-right:.35em}
"""


def write_diagnosis(output: str, report: Mapping[str, Any]) -> None:
    """Writes report.json, report.md and report.html, each complete or not at all.

    Args:
      output: the folder.
      report: from ``sections.diagnose``; the names of its sections are those of `PARTS`.
    """
    os.makedirs(output, exist_ok=True)
    data = json.dumps(report, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
    for name, text in (("report.json", data), ("report.md", report_text(report)), ("report.html", render(report))):
        write_text(os.path.join(output, name), text)


def render(report: Mapping[str, Any]) -> str:
    """The whole page as text."""
    parts = [table(["", ""], [[escaped(name), escaped(value)] for name, value in facts_rows(report)])]
    for name, part in PARTS.items():
        section = report["sections"][name]
        inner = _missing(section["missing"]) if "missing" in section else _BODIES[name](section)
        heading = f"<h2>{escaped(part.title)}</h2>{dim(escaped(part.note))}"
        parts.append(f'<section id="{name}">{heading}{inner}</section>')
    return page("newsembed diagnosis", _STYLE, [(name, part.title) for name, part in PARTS.items()], parts)


def _neighbors(section: Section) -> str:
    shared = [
        [escaped(" and ".join(row["encoders"])), number(row["shared"]), number(section["by_chance"])]
        for row in section["shared"]
    ]
    parts = [table(["encoders", "neighbors in common", "by chance"], shared, numbers={1, 2})] if shared else []
    for query in section["queries"]:
        names = list(query["neighbors"])
        columns = [query["neighbors"][name] for name in names]
        rows = [[str(rank), *(_near(column[rank - 1]) for column in columns)] for rank in range(1, section["k"] + 1)]
        title = in_language(query["title"], query["language"])
        parts.append(f"<h3>{title}</h3>{dim(_labels(query))}{table(['', *names], rows, numbers={0})}")
    return "".join(parts)


def _near(article: Section) -> str:
    marks = [
        mark for mark, holds in (("same event", article["same_event"]), ("same topic", article["same_topic"])) if holds
    ]
    shown = f" <span class=good>{escaped(', '.join(marks))}</span>" if marks else ""
    return (
        f"{number(article['cosine'])} {in_language(article['title'], article['language'])}{shown}"
        f"<br><span class=dim>{_labels(article)}</span>"
    )


def _labels(article: Section) -> str:
    return " · ".join(escaped(article[name]) for name in ("id", "language", "topic", "event") if article[name])


def _similarities(section: Section) -> str:
    parts = [_absent(section["absent"])]
    for name, found in section["encoders"].items():
        counts = {kind: values["counts"] for kind, values in found["kinds"].items()}
        rows = [
            [
                escaped(kind),
                f"{values['pairs']:,}",
                *(number(value) for value in (values["mean"], *values["quantiles"], values["auc"])),
            ]
            for kind, values in found["kinds"].items()
        ]
        chart = charts.histograms(name, found["edges"], counts)
        parts.append(f"<h3>{escaped(name)}</h3>{chart}{table(PAIR_HEADINGS, rows, numbers=range(1, 7))}")
    return "".join(parts)


def _geometry(section: Section) -> str:
    rows = [
        [escaped(name), number(values["alignment"]), number(values["uniformity"])]
        for name, values in section["encoders"].items()
    ]
    return _absent(section["absent"]) + table(["encoder", "alignment", "uniformity"], rows, numbers={1, 2})


def _attention(section: Section) -> str:
    parts = [dim(escaped(tagger_line(section)))]
    for name, found in section["encoders"].items():
        parts.append(f"<h3>{escaped(name)}</h3>")
        if "missing" in found:
            parts.append(_missing(found["missing"]))
            continue
        headings, rows = attention_rows(found)
        most = max(row["attention"][-1] for row in found["tags"]) or 1.0
        bars = [
            f'<span class=bar style="width:{120 * row["attention"][-1] / most:.0f}px"></span>' for row in found["tags"]
        ]
        cells = [[*map(escaped, row), bar] for row, bar in zip(rows, bars, strict=True)]
        caption = (
            f"{found['documents']:,} articles; {found['unmatched']:,} left out because the tagger and the encoder "
            "split them into different words"
        )
        parts.append(table([*headings, ""], cells, numbers=range(1, len(headings)), caption=caption))
    return "".join(parts)


def _redundancy(section: Section) -> str:
    parts = [dim(escaped(REDUNDANCY_NOTE))]
    made = {name: found["bins"] for name, found in section["encoders"].items() if "bins" in found}
    for name, bins in made.items():
        points = {
            f"R of {kind}": [(row["longest"], row[key]) for row in bins]
            for kind, key in (("the text", "text"), ("the encoder", "encoder"))
        }
        rows = [
            [
                f"{row['shortest']:,} to {row['longest']:,}",
                f"{row['documents']:,}",
                number(row["text"]),
                number(row["encoder"]),
            ]
            for row in bins
        ]
        chart = charts.lines(name, points, "word pieces, up to", "R")
        parts.append(f"<h3>{escaped(name)}</h3>{chart}{table(REDUNDANCY_HEADINGS, rows, numbers=range(1, 4))}")
    parts += [
        f"<h3>{escaped(name)}</h3>{_missing(found['missing'])}"
        for name, found in section["encoders"].items()
        if "missing" in found
    ]
    parts += [f"<h3>{escaped(name)}</h3>{_missing('its tokens cannot be seen')}" for name in section["without"]]
    return "".join(parts)


def _repetition(section: Section) -> str:
    return table(REPETITION_HEADINGS, repetition_rows(section), numbers=(1, 2))


def _map(section: Section) -> str:
    articles, labels = section["articles"], section["labels"]
    chosen = {label: _largest([article[label] for article in articles]) for label in labels}
    classes = [
        " ".join(f"{label[0]}{chosen[label].get(article[label], _UNCOLOURED)}" for label in labels)
        for article in articles
    ]
    titles = [
        f"{article['title']} ({', '.join(article[label] for label in labels if article[label]) or article['id']})"
        for article in articles
    ]
    switches = "".join(
        f'<label><input type=radio name=by id="by-{label}"{" checked" if label == labels[0] else ""}> {label}</label> '
        for label in labels
    )
    keys = "".join(_key(label, chosen[label], [article[label] for article in articles]) for label in labels)
    rules = "".join(_rules(label, len(chosen[label])) for label in labels)
    figures = "".join(
        f"<figure>{charts.scatter(points, titles, classes, f'Map of {len(points)} articles by {name}')}"
        f"<figcaption>{escaped(name)}</figcaption></figure>"
        for name, points in section["encoders"].items()
    )
    legend = f"<fieldset><legend>Colour by</legend>{switches}</fieldset>" if labels else ""
    return f"<style>{rules}</style>{_absent(section['absent'])}{legend}{keys}<div class=side>{figures}</div>"


def _largest(values: Sequence[str]) -> dict[str, int]:
    """Numbers of the colours of the most frequent labels."""
    counts = collections.Counter(value for value in values if value)
    ordered = sorted(counts, key=lambda value: (-counts[value], value))
    return {value: colour for colour, value in enumerate(ordered[:_COLOURED])}


def _key(label: str, colours: Mapping[str, int], values: Sequence[str]) -> str:
    counts = collections.Counter(values)
    shown = [
        f'<li><span class=swatch style="background:var(--s{colour})"></span>{escaped(value)} ({counts[value]:,})</li>'
        for value, colour in colours.items()
    ]
    others = sum(count for value, count in counts.items() if value not in colours)
    rest = (
        [f'<li><span class=swatch style="background:var(--none)"></span>other or none ({others:,})</li>']
        if others
        else []
    )
    return f'<ul class="key key-{label}">{"".join(shown + rest)}</ul>'


def _rules(label: str, colours: int) -> str:
    """The rules that colour the dots while a label is chosen, without a script."""
    on = f"#map:has(#by-{label}:checked)"
    dots = "".join(f"{on} .{label[0]}{colour}{{fill:var(--s{colour})}}" for colour in range(colours))
    return f"{dots}{on} .key-{label}{{display:block}}"


def _absent(reasons: Mapping[str, str]) -> str:
    return "".join(_missing(f"{name}: {reason}") for name, reason in reasons.items())


def _missing(reason: str) -> str:
    return f"<p class=missing>Missing: {escaped(reason)}.</p>"


_BODIES: Final[Mapping[str, Callable[[Section], str]]] = {
    "neighbors": _neighbors,
    "similarities": _similarities,
    "geometry": _geometry,
    "attention": _attention,
    "redundancy": _redundancy,
    "repetition": _repetition,
    "map": _map,
}

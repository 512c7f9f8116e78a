"""The report of ``newsembed diagnose``: report.json, report.md, and report.html, one file without scripts that fetches nothing."""

import collections
import html
import json
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from . import charts
from .text import PARTS, REDUNDANCY_NOTE, attention_rows, facts_rows, number, report_text, tagger_line

Section = Mapping[str, Any]

_COLOURED: Final = 8  # labels of a map with a colour of their own
_UNCOLOURED: Final = "x"
_STYLE: Final = """
:root{color-scheme:light dark;--bg:#fff;--ink:#1f2933;--dim:#5b6875;--line:#d9dee4;--good:#1d6b34;--wash:#f3f5f7;--none:#aab3bc;
--s0:#0072b2;--s1:#c04f00;--s2:#00805d;--s3:#b0568a;--s4:#a87000;--s5:#2f8fc4;--s6:#8c6d31;--s7:#7f3c8d}
@media(prefers-color-scheme:dark){:root{--bg:#14181d;--ink:#e4e8ec;--dim:#9aa7b4;--line:#35404b;--good:#6fd08c;--wash:#1d232a;--none:#5b6875;
--s0:#4db2f0;--s1:#ff9a57;--s2:#3ecfa4;--s3:#eaa3cb;--s4:#f0bc4a;--s5:#9cd6f7;--s6:#cfae6b;--s7:#c58ad3}}
body{font:15px/1.45 system-ui,sans-serif;max-width:1180px;margin:2rem auto;padding:0 1rem;color:var(--ink);background:var(--bg)}
table{border-collapse:collapse;margin:.6rem 0;font-size:13px}td,th{padding:.25rem .6rem;border-bottom:1px solid var(--line);text-align:left;vertical-align:top}
td.n,th.n{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}h2{margin-top:2.4rem}h3{margin:1.4rem 0 .3rem}caption{text-align:left;color:var(--dim)}
.wide{overflow-x:auto}.dim{color:var(--dim)}.good{color:var(--good);font-weight:600}.missing{background:var(--wash);padding:.5rem .8rem;border-left:3px solid var(--s1)}
svg{max-width:100%;height:auto;color:var(--ink)}svg text{fill:currentColor}summary{cursor:pointer}nav a{margin-right:.9rem}a{color:var(--s0)}
.bar{display:inline-block;height:.7em;background:var(--s0);min-width:1px}.side{display:flex;flex-wrap:wrap;gap:1.2rem}.side figure{margin:0;flex:1 1 380px;max-width:520px}
.dots{border:1px solid var(--line);width:100%}.dots circle{fill:var(--none);fill-opacity:.8;stroke:var(--bg);stroke-width:.4}.dots circle:hover{stroke:var(--ink);stroke-width:1.2}
.key{display:none;list-style:none;padding:0;margin:.4rem 0}.key li{display:inline-block;margin-right:1rem}.swatch{display:inline-block;width:.8em;height:.8em;border-radius:50%;margin-right:.35em}
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
        path = os.path.join(output, name)
        # Half a surrogate pair, which JSON can smuggle in, has no UTF-8 form.
        with open(f"{path}.tmp", "w", encoding="utf-8", errors="replace") as file:
            file.write(text)
        os.replace(f"{path}.tmp", path)


def render(report: Mapping[str, Any]) -> str:
    """The whole page as text."""
    links = "".join(f'<a href="#{name}">{_text(part.title)}</a> ' for name, part in PARTS.items())
    parts = [
        (
            "<!doctype html><html lang=en><meta charset=utf-8><meta name=viewport content='width=device-width'>"
            f"<title>newsembed diagnosis</title><style>{_STYLE}</style><h1>newsembed diagnosis</h1><nav>{links}</nav>"
        ),
        _table(["", ""], [[_text(name), _text(value)] for name, value in facts_rows(report)]),
    ]
    for name, part in PARTS.items():
        section = report["sections"][name]
        inner = _missing(section["missing"]) if "missing" in section else _BODIES[name](section)
        parts.append(
            f'<section id="{name}"><h2>{_text(part.title)}</h2><p class=dim>{_text(part.note)}</p>{inner}</section>'
        )
    return "\n".join([*parts, "</html>"])


def _neighbors(section: Section) -> str:
    shared = [
        [_text(" and ".join(row["encoders"])), number(row["shared"]), number(section["by_chance"])]
        for row in section["shared"]
    ]
    parts = [_table(["encoders", "neighbors in common", "by chance"], shared, numbers={1, 2})] if shared else []
    for query in section["queries"]:
        names = list(query["neighbors"])
        columns = [query["neighbors"][name] for name in names]
        rows = [[str(rank), *(_near(column[rank - 1]) for column in columns)] for rank in range(1, section["k"] + 1)]
        parts.append(
            f"<h3>{_text(query['title'])}</h3><p class=dim>{_labels(query)}</p>{_table(['', *names], rows, numbers={0})}"
        )
    return "".join(parts)


def _near(article: Section) -> str:
    marks = [
        mark for mark, holds in (("same event", article["same_event"]), ("same topic", article["same_topic"])) if holds
    ]
    shown = f" <span class=good>{_text(', '.join(marks))}</span>" if marks else ""
    return f"{number(article['cosine'])} {_text(article['title'])}{shown}<br><span class=dim>{_labels(article)}</span>"


def _labels(article: Section) -> str:
    return " · ".join(_text(article[name]) for name in ("id", "language", "topic", "event") if article[name])


def _similarities(section: Section) -> str:
    parts = [_absent(section["absent"])]
    for name, found in section["encoders"].items():
        counts = {kind: values["counts"] for kind, values in found["kinds"].items()}
        rows = [
            [
                _text(kind),
                f"{values['pairs']:,}",
                *(number(value) for value in (values["mean"], *values["quantiles"], values["auc"])),
            ]
            for kind, values in found["kinds"].items()
        ]
        headings = [
            "pairs",
            "number",
            "mean cosine",
            "5th percentile",
            "median",
            "95th percentile",
            "nearer than random",
        ]
        parts.append(
            f"<h3>{_text(name)}</h3>{charts.histograms(name, found['edges'], counts, 'cosine')}{_table(headings, rows, numbers=set(range(1, 7)))}"
        )
    return "".join(parts)


def _geometry(section: Section) -> str:
    rows = [
        [_text(name), number(values["alignment"]), number(values["uniformity"])]
        for name, values in section["encoders"].items()
    ]
    return _absent(section["absent"]) + _table(["encoder", "alignment", "uniformity"], rows, numbers={1, 2})


def _attention(section: Section) -> str:
    parts = [f"<p class=dim>{_text(tagger_line(section))}</p>"]
    for name, found in section["encoders"].items():
        parts.append(f"<h3>{_text(name)}</h3>")
        if "missing" in found:
            parts.append(_missing(found["missing"]))
            continue
        headings, rows = attention_rows(found)
        most = max(row["attention"][-1] for row in found["tags"]) or 1.0
        bars = [
            f'<span class=bar style="width:{120 * row["attention"][-1] / most:.0f}px"></span>' for row in found["tags"]
        ]
        cells = [[*map(_text, row), bar] for row, bar in zip(rows, bars, strict=True)]
        caption = f"{found['documents']:,} articles, {found['unmatched']:,} left out because their words and the encoder's differ"
        parts.append(_table([*headings, ""], cells, numbers=set(range(1, len(headings))), caption=caption))
    return "".join(parts)


def _redundancy(section: Section) -> str:
    parts = [f"<p class=dim>{_text(REDUNDANCY_NOTE)}</p>"]
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
        parts.append(
            f"<h3>{_text(name)}</h3>{chart}{_table(['word pieces', 'articles', 'R of the text', 'R of the encoder'], rows, numbers={1, 2, 3})}"
        )
    parts += [
        f"<h3>{_text(name)}</h3>{_missing(found['missing'])}"
        for name, found in section["encoders"].items()
        if "missing" in found
    ]
    parts += [f"<h3>{_text(name)}</h3>{_missing('its tokens cannot be seen')}" for name in section["without"]]
    return "".join(parts)


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
        f"<figure>{charts.scatter(points, titles, classes, f'Map of {len(points)} articles by {name}')}<figcaption>{_text(name)}</figcaption></figure>"
        for name, points in section["encoders"].items()
    )
    legend = f"<fieldset><legend>Colour by</legend>{switches}</fieldset>" if labels else ""
    return f"<style>{rules}</style>{_absent(section['absent'])}{legend}{keys}<div class=side>{figures}</div>"


def _largest(values: Sequence[str]) -> dict[str, int]:
    """The most frequent labels by the number of their colour."""
    counts = collections.Counter(value for value in values if value)
    ordered = sorted(counts, key=lambda value: (-counts[value], value))
    return {value: colour for colour, value in enumerate(ordered[:_COLOURED])}


def _key(label: str, colours: Mapping[str, int], values: Sequence[str]) -> str:
    counts = collections.Counter(values)
    shown = [
        f'<li><span class=swatch style="background:var(--s{colour})"></span>{_text(value)} ({counts[value]:,})</li>'
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
    """The page's rules that colour the dots while a label is chosen: no script is needed."""
    on = f"#map:has(#by-{label}:checked)"
    dots = "".join(f"{on} .{label[0]}{colour}{{fill:var(--s{colour})}}" for colour in range(colours))
    return f"{dots}{on} .key-{label}{{display:block}}"


def _absent(reasons: Mapping[str, str]) -> str:
    return "".join(_missing(f"{name}: {reason}") for name, reason in reasons.items())


def _missing(reason: str) -> str:
    return f"<p class=missing>Missing: {_text(reason)}.</p>"


def _text(value: Any) -> str:
    return html.escape(str(value))


def _table(
    headings: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    numbers: set[int] | frozenset[int] = frozenset(),
    caption: str = "",
) -> str:
    """A table of cells that are HTML already; ``numbers`` are the columns aligned to the right."""
    kind = [" class=n" if column in numbers else "" for column in range(len(headings))]
    head = (
        "".join(f"<th scope=col{mark}>{_text(heading)}</th>" for mark, heading in zip(kind, headings, strict=True))
        if any(headings)
        else ""
    )
    body = "".join(
        "<tr>" + "".join(f"<td{mark}>{cell}</td>" for mark, cell in zip(kind, row, strict=True)) + "</tr>"
        for row in rows
    )
    shown = f"<caption>{_text(caption)}</caption>" if caption else ""
    return f"<div class=wide><table>{shown}<tr>{head}</tr>{body}</table></div>"


_BODIES: Final[Mapping[str, Callable[[Section], str]]] = {
    "neighbors": _neighbors,
    "similarities": _similarities,
    "geometry": _geometry,
    "attention": _attention,
    "redundancy": _redundancy,
    "map": _map,
}

"""HTML pages of one file, without scripts and without anything to fetch: the frame, the style and tables."""

import html
import re
from collections.abc import Collection, Iterable, Sequence
from typing import Any, Final

_NUMBER: Final = re.compile(r"-?[\d,]*\.?\d+(e[-+]\d+)?%?")
_STYLE: Final = """
:root{color-scheme:light dark}
:root{--bg:#fff;--ink:#1f2933;--dim:#5b6875;--line:#d9dee4;--good:#1d6b34;--bad:#b3261e;--link:#0072b2}
@media(prefers-color-scheme:dark){
:root{--bg:#14181d;--ink:#e4e8ec;--dim:#9aa7b4;--line:#35404b;--good:#6fd08c;--bad:#ff9a91;--link:#4db2f0}}
body{font:15px/1.45 system-ui,sans-serif;max-width:1180px;margin:2rem auto;padding:0 1rem}
body{color:var(--ink);background:var(--bg)}
table{border-collapse:collapse;margin:.6rem 0;font-size:13px}
td,th{padding:.25rem .6rem;border-bottom:1px solid var(--line);text-align:left;vertical-align:top}
td.n,th.n{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}
caption{text-align:left;color:var(--dim)}h2{margin-top:2.4rem}h3{margin:1.4rem 0 .3rem}svg{max-width:100%;height:auto}
svg{color:var(--ink)}svg text{fill:currentColor}
.wide{overflow-x:auto}.dim{color:var(--dim)}
.good{color:var(--good);font-weight:600}.bad{color:var(--bad);font-weight:600}
a{color:var(--link)}nav a{margin-right:1rem;white-space:nowrap}summary{cursor:pointer}
"""


def page(title: str, style: str, links: Iterable[tuple[str, str]], body: Iterable[str]) -> str:
    """A whole page.

    Args:
      title: of the page, also its heading.
      style: rules in addition to those of all pages.
      links: (id of an element, its title), for the navigation.
      body: the parts, as HTML.
    """
    anchors = "".join(f'<a href="#{place}">{escaped(name)}</a> ' for place, name in links)
    head = (
        "<!doctype html><html lang=en><meta charset=utf-8>"
        "<meta name=viewport content='width=device-width,initial-scale=1'>"
        f"<title>{escaped(title)}</title><style>{_STYLE}{style}</style><h1>{escaped(title)}</h1><nav>{anchors}</nav>"
    )
    return "\n".join([head, *body, "</html>"])


def escaped(value: Any) -> str:
    """A value as escaped text; floats have four digits."""
    return html.escape(f"{value:,.4g}" if isinstance(value, float) else str(value))


def in_language(text: str, language: str) -> str:
    """Escaped text that names its language (BCP-47), for screen readers, fonts and hyphenation; "" if unknown."""
    return f'<span lang="{html.escape(language)}">{escaped(text)}</span>' if language else escaped(text)


def dim(words: str) -> str:
    """A paragraph of secondary text, from HTML."""
    return f"<p class=dim>{words}</p>"


def table(
    headings: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    numbers: Collection[int] | None = None,
    caption: str = "",
) -> str:
    """A table, which scrolls by itself where it is wider than the page.

    Args:
      headings: plain text; no heading row if all are empty.
      rows: cells, as HTML.
      numbers: columns that are aligned to the right; None for those that contain numbers only.
      caption: plain text.
    """
    if numbers is None:
        columns = list(zip(*rows, strict=True))
        numbers = [place for place, column in enumerate(columns) if _is_numeric(column)]
    marks = [" class=n" if place in numbers else "" for place in range(len(headings))]
    head = "".join(
        f"<th scope=col{mark}>{escaped(heading)}</th>" for mark, heading in zip(marks, headings, strict=True)
    )
    lines = [f"<tr>{head}</tr>"] if any(headings) else []
    cells = ("".join(f"<td{mark}>{cell}</td>" for mark, cell in zip(marks, row, strict=True)) for row in rows)
    lines += [f"<tr>{line}</tr>" for line in cells]
    shown = f"<caption>{escaped(caption)}</caption>" if caption else ""
    return f"<div class=wide><table>{shown}{''.join(lines)}</table></div>"


def _is_numeric(column: Sequence[str]) -> bool:
    return any(column) and all(_NUMBER.fullmatch(cell) for cell in column if cell)

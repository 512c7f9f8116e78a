"""Reports as parts of tables, plots and words: one page without scripts and with nothing to fetch, or Markdown.

A block of a part is text (a paragraph), a `Table`, `Plot`, `Heading`, `Missing`, `Folded` table or `Included` template.
"""

import dataclasses
import datetime
import functools
import os
import shlex
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ... import __version__
from ...evaluation.statistics import Interval
from ...evaluation.table import Table, escaped
from ...formats.command_line import LEFT_OUT, without_secrets
from .charts import themed

if TYPE_CHECKING:
    import jinja2

__all__ = ["Table", "escaped"]  # beside what is here


@dataclasses.dataclass(frozen=True)
class Cell:
    """The text of a cell or heading, and what a page shows with it.

    Attributes:
      text: the text.
      language: of the text (BCP-47), for screen readers, fonts and hyphenation; "" if unknown.
      note: secondary text below it.
      mark: "good" or "bad".
      folded: lines that a click shows.
    """

    text: str
    language: str = ""
    note: str = ""
    mark: str = ""
    folded: tuple[str, ...] = ()

    def __str__(self) -> str:
        """The text alone."""
        return self.text


@dataclasses.dataclass(frozen=True)
class Heading:
    """A heading inside a part."""

    heading: str | Cell


@dataclasses.dataclass(frozen=True)
class Missing:
    """Why something is not there."""

    missing: str


@dataclasses.dataclass(frozen=True)
class Plot:
    """A plot, as SVG; on pages only."""

    svg: str


@dataclasses.dataclass(frozen=True)
class Folded:
    """A table that a click shows; on pages only."""

    id: str
    summary: str
    note: str
    table: Table


@dataclasses.dataclass(frozen=True)
class Included:
    """A template with its values, ``made.values``; on pages only."""

    template: str
    values: Mapping[str, Any]


Block = str | Table | Heading | Missing | Plot | Folded | Included


@dataclasses.dataclass(frozen=True)
class Part:
    """A part of a report.

    Attributes:
      id: of the element, for links.
      title: its heading.
      blocks: what it shows.
      note: what its numbers mean.
    """

    id: str
    title: str
    blocks: Sequence[Block]
    note: str = ""


@functools.cache
def _environment() -> "jinja2.Environment":
    import jinja2

    root = os.path.dirname(__file__)
    loader = jinja2.FileSystemLoader([f"{root}/..", f"{root}/../../serving/explorer"])
    environment = jinja2.Environment(loader=loader, autoescape=True)
    environment.filters["themed"] = themed
    return environment


def render(template: str, **values: Any) -> str:
    """A template of this package with values, which are escaped."""
    return _environment().get_template(template).render(values)


def origin() -> list[tuple[str, str]]:
    """When, by which version and by which command a report is written, as rows of its facts."""
    written = f"{datetime.datetime.now(datetime.UTC):%Y-%m-%d %H:%M} UTC"
    return [("written", written), ("newsembed", __version__), ("command", shown_command(sys.argv[1:]))]


def shown_command(arguments: Sequence[str]) -> str:
    """The command line as one would type it, without the values of options that hold secrets, such as S3 keys."""
    words = without_secrets(arguments)
    return " ".join(["newsembed", *(word if word.endswith(LEFT_OUT) else shlex.quote(word) for word in words)])


def page(title: str, facts: Table | None, parts: Sequence[Part]) -> str:
    """A whole page of parts, below what it is about."""
    return render("shared/base.html", title=title, facts=facts, parts=parts)


def markdown(title: str, parts: Iterable[Part | Block], facts: Table | None = None) -> str:
    """A report in GitHub's Markdown, without what only pages show."""
    texts = [f"# {title}", *([facts.markdown()] if facts else [])]
    for part in parts:
        if isinstance(part, Part):
            texts += [f"## {part.title}", part.note]
        for block in part.blocks if isinstance(part, Part) else [part]:
            match block:
                case Table():
                    texts.append(block.markdown())
                case Heading():
                    texts.append(f"### {escaped(str(block.heading))}")
                case Missing():
                    texts.append(f"Missing: {escaped(block.missing)}.")
                case str():
                    texts.append(block)
    return "\n\n".join(texts) + "\n"


def bullets(heading: str, lines: Sequence[str]) -> list[Block]:
    """A list below its heading; nothing for an empty list."""
    return [heading, "\n".join(f"- {line}" for line in lines)] if lines else []


def number(value: Any) -> str:
    """A value of a report as text: floats have four digits."""
    return f"{value:,.4g}" if isinstance(value, float) else str(value)


def with_interval(found: Interval | None, form: str) -> str:
    """A number and, where there is one, its interval in brackets, all in the format ``form``; "-" for none."""
    if found is None:
        return "-"
    ends = "" if found.low is None or found.high is None else f" ({found.low:{form}} to {found.high:{form}})"
    return f"{found.value:{form}}{ends}"

"""Tables of texts, as Markdown or for the terminal; those of the results of benchmarks; the curve of few shots."""

import collections
import dataclasses
import io
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from .benchmark import ALL, AVERAGES, Result, Results, Score
from .statistics import Comparison, beside, comparisons

if TYPE_CHECKING:
    import rich.table

FAILED: Final = "failed"
_ABSENT: Final = "-"
_PUBLISHED: Final = " (published)"
_NUMBER: Final = re.compile(r"(?:[-+<±%.,()\[\]\s\d]|e(?=[-+]\d)|to(?= )|of(?= )|or more|failed|s(?=, )|/s)*")
_OVERALL: Final = {ALL, *AVERAGES}
_COLUMNS: Final = 5  # encoders side by side in a terminal of 80 characters
_FEWEST: Final = 3  # points of a curve
_SHOTS: Final = re.compile(r"(\d+)-shot (.+)")
# Of each kind of tests: the caption, the heading of the part, that of what is compared, and that of the count.
_TESTS: Final = {
    "comparisons": ("Paired t-tests over X→Y cells", "cells", "encoders", "count"),
    "fold_comparisons": ("Paired t-tests over folds (corrected: Nadeau and Bengio)", "part", "encoders", "folds"),
    "printed_comparisons": (
        *("One-sample t-tests of folds against printed figures", "part", "encoder and printed system", "folds"),
    ),
}

Curves = dict[tuple[str, str], dict[str, list[tuple[int, float, float]]]]


@dataclasses.dataclass(frozen=True)
class Table:
    """A table; without a row of headings if all are empty.

    Attributes:
      headings: of the columns.
      rows: cells, which ``str`` makes texts.
      caption: above it.
      notes: below it.
    """

    headings: Sequence[str]
    rows: Sequence[Sequence[Any]]
    caption: str = ""
    notes: Sequence[str] = ()

    @property
    def right(self) -> set[int]:
        """The columns that are aligned to the right: those of numbers."""
        columns = [[str(cell) for cell in column] for column in zip(*self.rows, strict=True)]
        return {
            place
            for place, column in enumerate(columns)
            if all(map(_NUMBER.fullmatch, column)) and re.search(r"\d|failed", "".join(column))
        }

    def markdown(self) -> str:
        """The table in GitHub's Markdown."""
        right = self.right
        sides = ["---:" if place in right else "---" for place in range(len(self.headings))]
        lines = [self.headings, sides, *self.rows]
        return "\n".join(f"| {' | '.join(escaped(str(cell)) for cell in line)} |" for line in lines)

    def section(self) -> str:
        """The table below its caption and above its notes, in GitHub's Markdown."""
        notes = "\n".join(f"- {escaped(note)}" for note in self.notes)
        return f"## {self.caption}\n\n{self.markdown()}\n\n{notes}".rstrip()


def escaped(text: str) -> str:
    """Text on one line without bars or HTML, for Markdown."""
    return re.sub("<(?=[a-zA-Z/!])", "&lt;", " ".join(text.split()).replace("|", r"\|"))


def grids(results: Results) -> list[Table]:
    """The tables of all benchmarks, in the order in which they ran."""
    facts = results.manifest.get("benchmarks", {})
    return [_grid(name, own, facts.get(name, {})) for name, own in results.by_benchmark().items()]


def report(results: Results) -> str:
    """``results.md``: one table over all benchmarks, a table for each benchmark, t-tests and leakage."""
    by_benchmark = grids(results)
    tables = [main_scores(results)] if "recipe" in results.manifest else []
    tables += [summary(results), *by_benchmark] if len(by_benchmark) > 1 else by_benchmark
    tests = comparisons(results.results, results.manifest.get("benchmarks", {}))
    tables += [_tests(found, *_TESTS[kind]) for kind, found in tests.items() if found]
    if leakage := results.manifest.get("leakage"):
        rows = [[name, row["texts"], row["exact"], row["near"]] for name, row in leakage["benchmarks"].items()]
        caption = f"Texts among the training articles ({'left out' if leakage['dropped'] else 'kept'})"
        tables.append(Table(["benchmark", "texts", "exact", "near"], rows, caption))
    blocks = [table.section() for table in tables]
    scores = [score for result in results.results for score in result.scores]
    if any(score.confidence is not None for score in scores):
        interval = "95 % confidence interval of the mean over seeds, folds or repeats (Student's t)"
        blocks.append(f"± is half the width of the {interval}.")
    if any(score.low is not None for score in scores):
        blocks.append("[low, high] is the 95 % bootstrap interval over events, or over pairs of sentences.")
    return "\n\n".join(blocks)


def summary(results: Results) -> Table:
    """Encoders side by side: overall scores on all benchmarks, time and rate of embedding."""
    rows = []
    for benchmark, own in results.by_benchmark().items():
        keys = dict.fromkeys(
            (score.metric, score.part) for result in own for score in result.scores if score.part in _OVERALL
        )
        rows += [[benchmark, _heading(*key), *(_shown(one, *key) for one in own)] for key in keys or [("score", ALL)]]
        rates = [f"{one.seconds:.1f} s, {_rate(one)}/s" if one.dimensions else _ABSENT for one in own]
        rows.append([benchmark, "time, texts/s", *rates])
    return Table(["benchmark", "metric", *results.encoders], rows, "All benchmarks")


def main_scores(results: Results) -> Table:
    """The table of a recipe: encoders in rows, the main score of each benchmark in columns, then the notes."""
    recipe = results.manifest["recipe"]
    headings, columns = ["encoder"], [results.encoders]
    for benchmark, own in results.by_benchmark().items():
        metric = recipe["metrics"].get(benchmark, "")
        main = [
            next((score for score in one.scores if score.part in _OVERALL and metric in ("", score.metric)), None)
            for one in own
        ]
        names = [score.metric for score in main if score]
        headings.append(f"{benchmark}, {names[-1]}" if names else benchmark)
        columns.append(
            [FAILED if one.status == FAILED else _number(score) for one, score in zip(own, main, strict=True)]
        )
    notes = [f"{name}: {note}" for name, note in recipe["notes"].items()]
    return Table(headings, list(zip(*columns, strict=True)), "Main scores", notes)


def console(results: Results) -> "list[rich.table.Table]":
    """The tables for ``rich.print``: a column for each of at most five encoders, so that many languages fit."""
    from rich import table as parts
    from rich.markup import escape

    tables = []
    first = [main_scores(results)] if "recipe" in results.manifest else []
    for grid in [*first, *grids(results)]:
        count = _COLUMNS - any(str(row[0]).endswith(_PUBLISHED) for row in grid.rows)  # these names are long
        for rows in (grid.rows[at : at + count] for at in range(0, len(grid.rows), count)):
            table = parts.Table(parts.Column("", overflow="fold"), title=escape(grid.caption), title_justify="left")
            for name, *cells in rows:
                style = "red" if FAILED in cells else None
                table.add_column(escape(name), justify="right", overflow="fold", style=style)
            for heading, *cells in zip(grid.headings[1:], *(row[1:] for row in rows), strict=True):
                if set(cells) != {_ABSENT}:  # most figures of ours were not published
                    table.add_row(escape(heading), *map(escape, cells))
            tables.append(table)
    return tables


def _grid(name: str, results: Sequence[Result], facts: Mapping[str, Any]) -> Table:
    """The table of one benchmark, with published figures below ours."""
    keys = list(dict.fromkeys((score.metric, score.part) for one in results for score in one.scores)) or [
        ("score", ALL)
    ]
    rows = []
    for one in results:
        cost = [str(one.dimensions), f"{one.seconds:.1f}", _rate(one)] if one.dimensions else [_ABSENT] * 3
        rows.append([one.encoder, *(_shown(one, *key) for key in keys), *cost])
    theirs: dict[str, dict[tuple[str, str], str]] = collections.defaultdict(dict)
    sources = dict[str, None]()
    for encoder, key, value, source in beside(facts, keys):
        theirs[encoder][key] = f"{value:.4f}"
        sources[source] = None
    for encoder, values in theirs.items():
        rows.append([f"{encoder}{_PUBLISHED}", *(values.get(key, _ABSENT) for key in keys), *[_ABSENT] * 3])
    notes = [f"{one.encoder} {FAILED}: {one.error}" for one in results if one.status == FAILED]
    notes += [f"published: {source}" for source in sources]
    return Table(["encoder", *(_heading(*key) for key in keys), "width", "seconds", "texts/s"], rows, name, notes)


def _tests(found: Sequence[Comparison], caption: str, part: str, names: str, count: str) -> Table:
    rows = []
    for one in found:
        corrected = [] if one.corrected_t is None else [f"{one.corrected_t:.2f}", f"{one.corrected_p:.4f}"]
        numbers = [f"{one.difference:+.4f}", f"{one.t:.2f}", f"{one.p:.4f}", *corrected, str(one.count)]
        rows.append([one.benchmark, one.part, f"{one.first} - {one.second}", *numbers])
    headings = ["benchmark", part, names, "difference", "t", "p"]
    headings += [count] if found[0].corrected_t is None else ["corrected t", "corrected p", count]
    return Table(headings, rows, caption, list(dict.fromkeys(one.source for one in found if one.source)))


def _heading(metric: str, part: str) -> str:
    return metric if part == ALL else f"{metric} {part}"


def _shown(result: Result, metric: str, part: str) -> str:
    if result.status == FAILED:
        return FAILED
    return _number(next((score for score in result.scores if (score.metric, score.part) == (metric, part)), None))


def _number(score: Score | None) -> str:
    if score is None:
        return _ABSENT
    if score.low is not None and score.high is not None:
        return f"{score.value:.4f} [{score.low:.4f}, {score.high:.4f}]"
    return f"{score.value:.4f}" if score.confidence is None else f"{score.value:.4f} ± {score.confidence:.4f}"


def _rate(result: Result) -> str:
    return _ABSENT if result.texts_per_second is None else f"{result.texts_per_second:.0f}"


def curves(results: Results) -> Curves:
    """(shots, mean, half the 95 % interval), ascending, by encoder, by (benchmark, metric) with three or more.

    The interval covers other draws and is 0 where there is one draw.
    """
    found: Curves = collections.defaultdict(lambda: collections.defaultdict(list))
    for result in results.results:
        for score in result.scores:
            if match := _SHOTS.fullmatch(score.metric):
                half = score.confidence or 0.0
                found[result.benchmark, match[2]][result.encoder].append((int(match[1]), score.value, half))
    return {
        key: {encoder: sorted(points) for encoder, points in by_encoder.items()}
        for key, by_encoder in found.items()
        if max(map(len, by_encoder.values())) >= _FEWEST
    }


def shots_plot(results: Results) -> str | None:
    """The curves of all benchmarks (SimLTE, Figure 2) as one SVG, a panel for each, or ``None`` without any."""
    if not (panels := curves(results)):
        return None
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.4, 3.2 * len(panels)), layout="constrained")
    FigureCanvasSVG(figure)
    axes = figure.subplots(len(panels), squeeze=False)[:, 0]
    for place, ((benchmark, metric), by_encoder) in zip(axes, panels.items(), strict=True):
        for encoder, points in by_encoder.items():
            place.errorbar(*zip(*points, strict=True), marker="o", markersize=4, capsize=3, label=encoder)
        place.set_xscale("log", base=2)
        place.xaxis.set_major_formatter("{x:g}")
        place.set(title=benchmark, xlabel="documents of each class", ylabel=metric)
        place.legend(frameon=False)
    buffer = io.StringIO()
    figure.savefig(buffer, format="svg", metadata={"Date": None})
    return buffer.getvalue()

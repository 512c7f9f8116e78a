"""The papers' tables: printed rows, and ours where the data are there.

A table is all columns of ``published.json`` with one source. A column that no benchmark here scores, or whose data are
not found, shows its printed values and why there are none of ours.
"""

import dataclasses
import json
import os
import re
import statistics
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from ..errors import InputError, counted
from .benchmark import Benchmark, Result, Results, discover, suites
from .statistics import published
from .table import Table

FORMATS: Final = ("md", "json", "tex")
_ABSENT: Final = "-"
_SIMLTE_HEAD: Final = "simlte"
_AS_SIMLTE: Final = {"head": _SIMLTE_HEAD, "tasks": ("classification", "few_shot")}
_MEAN: Final = "the mean of all columns"
_SHORT: Final = {"Liu, Liu and Yu": "newsembed", "Li 2021": "thesis", "SimLTE": "simlte", "Okura": "okura"}
_SHORT_LAST: Final = {"Danovitch": "ast", "sbert.net": "sbert", "the project": "own"}
_LATEX: Final = {"&": r"\&", "%": r"\%", "_": r"\_", "#": r"\#", "→": r"$\to$", "≥": r"$\ge$", "±": r"$\pm$"}


@dataclasses.dataclass(frozen=True)
class Printed:
    """A table of a paper.

    Attributes:
      name: for the command line, such as ``newsembed-3``.
      source: where it was printed.
      columns: each is one row of ``published.json``, or several that differ in the protocol only.
    """

    name: str
    source: str
    columns: Sequence[Sequence[Mapping[str, Any]]]


def printed_tables() -> dict[str, Printed]:
    """All tables by name, in the order of the papers."""
    by_source: dict[str, dict[Any, list[Mapping[str, Any]]]] = {}
    for row in published():
        key = _heading(row), *row["values"].items()
        by_source.setdefault(row["source"], {}).setdefault(key, []).append(row)
    found: dict[str, Printed] = {}
    for source, columns in by_source.items():
        paper = next((name for start, name in (_SHORT | _SHORT_LAST).items() if start in source), "other")
        number = re.search(r"Tables? (\d[\d.]*)", source)
        name = f"{paper}-{number[1].rstrip('.')}" if number else paper
        parts = sum(one == name or one.startswith(f"{name}-") for one in found)
        found[f"{name}-{parts + 1}" if parts else name] = Printed(name, source, [*columns.values()])
    order = {"newsembed": 0, "simlte": 1, "okura": 2, "thesis": 3, "ast": 4}
    keys = sorted(found, key=lambda name: (order.get(name.split("-")[0], 5), *map(_natural, re.split(r"[-.]", name))))
    return {name: dataclasses.replace(found[name], name=name) for name in keys}


def _natural(part: str) -> tuple[int, str]:
    return (int(part), "") if part.isdigit() else (-1, part)


def chosen_tables(names: Sequence[str]) -> list[Printed]:
    """The tables of some names, or of the papers they begin with; all for none.

    Raises:
      InputError: for an unknown name.
    """
    every = printed_tables()
    if unknown := [name for name in names if not any(_begins(one, name) for one in every)]:
        remedy = (
            f"choose from {', '.join(every)}, or a paper: {', '.join(dict.fromkeys(n.split('-')[0] for n in every))}"
        )
        raise InputError(f"got {', '.join(unknown)}", field="NAMES", remedy=remedy)
    return [table for key, table in every.items() if not names or any(_begins(key, name) for name in names)]


def _begins(key: str, name: str) -> bool:
    return key == name or key.startswith(f"{name}-")


def needed(tables: Iterable[Printed], folder: str | None) -> list[Benchmark]:
    """The benchmarks below a folder that fill columns of tables.

    Raises:
      InputError: if there is no such folder.
    """
    if folder is None:
        return []
    columns = [row for table in tables for column in table.columns for row in column]
    by_simlte = [one for one in discover(folder, _AS_SIMLTE) if one.protocol.get("head") == _SIMLTE_HEAD]
    named = [dataclasses.replace(one, name=f"{one.name}, SimLTE's head") for one in by_simlte]
    every = [*discover(folder), *named]
    return [one for one in every if any(_is_of(column, one.protocol, one.paths) for column in columns)]


def _is_of(column: Mapping[str, Any], protocol: Mapping[str, Any], paths: Iterable[str]) -> bool:
    names = {part for path in paths for part in os.path.abspath(path).split(os.sep)[-2:]}
    # The figures of SimLTE are those of its own head, which `needed` asks for.
    is_head = ("SimLTE" in column["source"]) == (protocol.get("head") == _SIMLTE_HEAD)
    is_suite = bool(column["suite"]) and column["suite"] == protocol.get("suite")
    return is_suite and is_head and bool(names & set(column["sets"]))


def joined(parts: Iterable[Results]) -> Results | None:
    """The results of several runs as those of one; None without any."""
    found = list(parts)
    facts = {name: one for part in found for name, one in part.manifest["benchmarks"].items()}
    rows = tuple(row for part in found for row in part.results)
    return Results(rows, {"benchmarks": facts}) if found else None


def filled(table: Printed, results: Results | None) -> Table:
    """A table with the printed rows, then ours, and a note for each column that ours lack.

    Args:
      table: as printed.
      results: of the benchmarks of `needed`, and of fine-tuned models; None if nothing was run. An encoder that ran
        on no benchmark of the table has no row.
    """
    firsts = [column[0] for column in table.columns]
    systems = dict.fromkeys(name for one in firsts for name in one["values"])
    rows = [[f"{name} (printed)", *(_shown(one, one["values"].get(name)) for one in firsts)] for name in systems]
    results = results or Results((), {"benchmarks": {}})
    facts = results.manifest["benchmarks"].items()
    runs = [(name, one["protocol"], [row["path"] for row in one["data"]]) for name, one in facts]
    made = [_benchmark(column, runs) for column in table.columns]
    benchmarks = {found[0] for found in made if found}
    ours = [one for one in results.results if one.benchmark in benchmarks]
    for name in dict.fromkeys(one.encoder for one in ours):
        values = [_score(found, results, name) for found in made]
        asked = [value for value, one in zip(values, firsts, strict=True) if one.get("why") != _MEAN]
        known = [value for value in asked if value is not None]
        mean = statistics.fmean(known) if known and len(known) == len(asked) else None
        values = [mean if one.get("why") == _MEAN else value for value, one in zip(values, firsts, strict=True)]
        rows.append([name, *map(_shown, firsts, values)])
    notes = [*_data_of(firsts, made, runs, ours), *lacking(table, runs)]
    return Table(["", *map(_heading, firsts)], rows, f"{table.name}: {table.source}", notes)


Run = tuple[str, Mapping[str, Any], Sequence[str]]  # name, protocol and paths of a benchmark
Made = tuple[str, Mapping[str, Any]] | None  # the benchmark that fills a column, and the row of its protocol


def lacking(table: Printed, there: Sequence[Run]) -> list[str]:
    """For the columns that no benchmark of some fills, why, each reason once."""
    notes: dict[str, list[str]] = {}
    for column in table.columns:
        if _benchmark(column, there) is None and (why := column[0].get("why", "")) != _MEAN:
            place = (
                "" if why else f"no data; --suite {column[0]['suite']} reads a folder or file {column[0]['sets'][0]}"
            )
            notes.setdefault(why or place, []).append(_heading(column[0]))
    return [f"not run: {', '.join(headings)}: {why}" for why, headings in notes.items()]


def sources(table: Printed, there: Sequence[Run]) -> list[str]:
    """Where to get the data of columns that no benchmark of some fills, and how their files must look."""
    found = dict[str, str]()
    for suite in (column[0]["suite"] for column in table.columns if _benchmark(column, there) is None):
        try:
            if suite in suites() and suite not in found:
                suites()[suite].make(f"{os.devnull}/{suite}", suite).documents()
        except InputError as error:  # the reader says it of a path that is not there, unless it reads any JSONL
            found[suite] = error.remedy or ""
    found = {suite: remedy for suite, remedy in found.items() if remedy.startswith("get ")}
    return [f"{suite}: {remedy}" for suite, remedy in found.items()]


def _data_of(
    columns: Sequence[Mapping[str, Any]], made: Sequence[Made], runs: Sequence[Run], ours: Sequence[Result]
) -> list[str]:
    """For the columns that benchmarks fill, which data these had, which may differ from the paper's."""
    texts = {one.benchmark: one.texts for one in ours if one.status == "ok"}
    protocols, notes = {name: protocol for name, protocol, _ in runs}, []
    for name in dict.fromkeys(found[0] for found in made if found and found[0] in texts):
        parts = [_heading(column) for column, found in zip(columns, made, strict=True) if found and found[0] == name]
        languages = protocols[name].get("languages") or ()
        tested = f" in {counted(len(languages), 'language')}" if languages else ""
        notes.append(f"ours: {', '.join(parts)}: {name}, {texts[name]:,} texts{tested}")
    return notes


def _heading(column: Mapping[str, Any]) -> str:
    part = "" if column["part"] == "all" else f" {column['part']}"
    return str(column.get("heading") or f"{column['metric']}{part}")


def _benchmark(column: Sequence[Mapping[str, Any]], there: Sequence[Run]) -> Made:
    """The benchmark that fills a column, and the protocol that it follows; None if there is none."""
    for name, protocol, paths in there:
        for row in column:
            if _is_of(row, protocol, paths):
                return name, row
    return None


def _score(made: Made, results: Results, encoder: str) -> float | None:
    if made is None:
        return None
    try:
        return results.score(encoder, made[0], made[1]["metric"], made[1]["part"])
    except KeyError:  # it failed
        return None


def _shown(column: Mapping[str, Any], value: float | None) -> str:
    """A score with as many decimals as the column prints."""
    if value is None:
        return _ABSENT
    if column.get("percent"):
        return f"{100 * value:.1f}"
    return f"{value:.{max(len(str(one).partition('.')[2]) for one in column['values'].values())}f}"


def text_of(tables: Sequence[Table], form: str) -> str:
    """Tables in one of `FORMATS`."""
    if form == "md":
        return "\n\n".join(table.section() for table in tables) + "\n"
    if form == "json":
        return json.dumps(list(map(dataclasses.asdict, tables)), indent=1, ensure_ascii=False) + "\n"
    return "\n".join(map(_latex, tables)) + "\n"


def _latex(table: Table) -> str:
    def line(cells: Sequence[Any]) -> str:
        return " & ".join("".join(_LATEX.get(sign, sign) for sign in str(cell)) for cell in cells) + r" \\"

    form = "l" + "r" * (len(table.headings) - 1)
    rows = "\n".join(map(line, table.rows))
    return (
        f"% {table.caption}\n\\begin{{tabular}}{{{form}}}\n\\toprule\n{line(table.headings)}\n\\midrule\n{rows}\n"
        "\\bottomrule\n\\end{tabular}\n" + "".join(f"% {note}\n" for note in table.notes)
    )

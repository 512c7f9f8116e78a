"""Recipes of ``newsembed evaluate``: encoders and benchmarks in one TOML file, and one table of their main scores.

::

    [encoders]
    tfidf = "tfidf"
    lifted = "model:lifted/model"

    [[benchmarks]]
    name = "events 2019"
    suite = "events"
    data = "events-2019.jsonl"
    metric = "mAP"
    note = "options were chosen on 2018"
    cross_publisher = true

Paths are relative to the folder of the recipe. ``metric`` is the score in the table; the default is the first one of
the benchmark. ``note`` is printed below the table, for example what was known of the set when options were chosen.
The other keys of a benchmark are options of its protocol, as on the command line.
"""

import dataclasses
import os
import tomllib
from collections.abc import Mapping
from typing import Any, Final

from ..errors import InputError
from .benchmark import Benchmark
from .registry import SUITES, Options

_OWN_KEYS: Final = ("name", "suite", "data", "metric", "note")
_OPTIONS: Final = {field.name: field.default for field in dataclasses.fields(Options)}
_PATH_KINDS: Final = ("model", "random", "savedmodel", "st", "wordvectors")
_EXAMPLE: Final = "see `newsembed evaluate --help` for an example"


@dataclasses.dataclass(frozen=True)
class Recipe:
    """What a recipe asks for.

    Attributes:
      encoders: SPEC by name.
      benchmarks: with their own options.
      metrics: of each benchmark by name, the score of the table; "" is the first one.
      notes: of benchmarks by name.
    """

    encoders: Mapping[str, str]
    benchmarks: tuple[Benchmark, ...]
    metrics: Mapping[str, str]
    notes: Mapping[str, str]

    def facts(self) -> dict[str, Any]:
        """What the manifest of the results keeps, JSON values."""
        return {"metrics": dict(self.metrics), "notes": dict(self.notes)}


def read_recipe(path: str, *, intervals: bool) -> Recipe:
    """Reads a recipe.

    Args:
      path: of the TOML file.
      intervals: whether scores get bootstrap intervals.

    Raises:
      InputError: naming the file, the entry and the remedy, for a file that cannot be read, an unknown or missing key
        and a value of a wrong type.
    """
    try:
        with open(path, "rb") as file:
            content = tomllib.load(file)
    except (OSError, tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"no readable recipe: {error}", path=path, remedy=_EXAMPLE) from error
    _check_keys(content, ("encoders", "benchmarks"), (), path, "recipe")
    folder = os.path.dirname(os.path.abspath(path))
    encoders = content.get("encoders", {})
    rows = content.get("benchmarks", [])
    if not isinstance(encoders, dict) or not all(isinstance(spec, str) for spec in encoders.values()):
        raise InputError("expected a table of NAME = SPEC", path=path, field="encoders", remedy=_EXAMPLE)
    if not isinstance(rows, list) or not rows or not all(isinstance(row, dict) for row in rows):
        raise InputError("expected one or more [[benchmarks]]", path=path, field="benchmarks", remedy=_EXAMPLE)
    found = [_benchmark(row, folder, path, f"benchmarks[{index}]", intervals) for index, row in enumerate(rows)]
    names = [benchmark.name for benchmark in found]
    texts = {key: {row["name"]: row.get(key, "") for row in rows} for key in ("metric", "note")}
    if repeated := {name for name in names if names.count(name) > 1}:
        problem = f"two benchmarks are named {', '.join(sorted(repeated))}"
        raise InputError(problem, path=path, field="name", remedy="give each its own name")
    specs = {name: _placed(spec, folder) for name, spec in encoders.items()}
    notes = {name: note for name, note in texts["note"].items() if note}
    return Recipe(specs, tuple(found), texts["metric"], notes)


def _benchmark(row: dict[str, Any], folder: str, path: str, place: str, intervals: bool) -> Benchmark:
    _check_keys(
        row, (*_OWN_KEYS, *(key for key in _OPTIONS if key != "intervals")), ("name", "suite", "data"), path, place
    )
    for key in _OWN_KEYS:
        if not isinstance(row.get(key, ""), str):
            raise InputError(f"got {row[key]!r}, expected a string", path=path, field=f"{place}.{key}", remedy=_EXAMPLE)
    if row["suite"] not in SUITES:
        remedy = f"choose one of {', '.join(SUITES)}"
        raise InputError(f"got {row['suite']!r}", path=path, field=f"{place}.suite", remedy=remedy)
    options = {key: row[key] for key in row if key in _OPTIONS}
    for key, value in options.items():
        options[key] = _option(key, value, path, f"{place}.{key}")
    return SUITES[row["suite"]](
        os.path.join(folder, os.path.expanduser(row["data"])), row["name"], Options(**options, intervals=intervals)
    )


def _option(key: str, value: Any, path: str, place: str) -> Any:
    """The value of a protocol's option; ``seeds`` is a number, as on the command line.

    Raises:
      InputError: for a value of another type.
    """
    default = _OPTIONS[key]
    if key == "seeds":
        fits, expected = type(value) is int and value > 0, "a positive number"
    elif isinstance(default, tuple):
        fits = isinstance(value, list) and all(isinstance(item, str) for item in value)
        expected = "a list of strings"
    elif isinstance(default, bool):
        fits, expected = isinstance(value, bool), "true or false"
    elif isinstance(default, str):
        fits, expected = isinstance(value, str), "a string"
    else:
        fits, expected = type(value) is int and value >= 0, "a number"
    if not fits:
        raise InputError(f"got {value!r}, expected {expected}", path=path, field=place, remedy=_EXAMPLE)
    if key == "seeds":
        return tuple(range(value))
    return tuple(value) if isinstance(default, tuple) else value


def _check_keys(
    table: Mapping[str, Any], known: tuple[str, ...], needed: tuple[str, ...], path: str, place: str
) -> None:
    for key in table:
        if key not in known:
            raise InputError(f"unknown key {key!r}", path=path, field=place, remedy=f"known keys: {', '.join(known)}")
    for key in needed:
        if key not in table:
            raise InputError(f"{key} is missing", path=path, field=place, remedy=_EXAMPLE)


def _placed(spec: str, folder: str) -> str:
    """A SPEC whose folder is relative to the recipe's."""
    kind, colon, rest = spec.partition(":")
    return f"{kind}:{os.path.join(folder, os.path.expanduser(rest))}" if colon and kind in _PATH_KINDS else spec

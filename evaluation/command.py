r"""``newsembed evaluate``: benchmarks over named encoders, side by side.

Example::

    newsembed evaluate --encoder tfidf=tfidf --encoder random=random:work/model --encoder trained=model:work/model \
        --suite events --data work/heldout.jsonl --suite sts --data sts-test.csv --output work/evaluation

An encoder is ``NAME=SPEC``. SPEC is one of ``tfidf``, ``lsa[:DIMENSIONS]``, ``wordvectors:FILE`` (word2vec or GloVe
text), ``st:DIR`` (a sentence-transformers folder), ``model:DIR[@step]`` (a model folder), ``random:DIR[@seed]`` (its
architecture and vocabulary with random parameters), ``savedmodel:DIR``, or any ``module:function`` or
``file.py:function`` that maps a list of texts to a matrix. ``#cls`` after a folder of the kinds ``model`` and
``random`` takes the top-layer state of [CLS] in place of the embedding. ``words`` and ``headline`` compare the sets of
words of whole texts and of titles. The k-th ``--suite`` reads the k-th ``--data``; a single ``--data`` is used for all.
``--suite all`` runs every benchmark found in its ``--data``.

``--recipe FILE.toml`` names encoders and benchmarks in a file instead and adds a table of their main scores:

    newsembed evaluate --recipe quality.toml --encoder mine=model:work/trained --output work/quality

The file:

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
The other keys of a benchmark are options of its protocol, as on the command line; several words are a list.
"""

import dataclasses
import functools
import os
import sys
import tomllib
import typing
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from ..errors import InputError, counted, reading
from ..formats.command_line import Options, option, required, several
from ..formats.files import check_output
from ..formats.remote import local_copy, uploaded
from .baselines import (
    BinaryWordEncoder,
    FunctionEncoder,
    LsaEncoder,
    SentenceTransformerEncoder,
    WordVectorEncoder,
    is_function_spec,
)
from .benchmark import ALL_SUITES, Benchmark, Result, chosen, suites
from .encoders import Encoder, TfidfEncoder
from .leakage import check_leakage
from .statistics import comparisons
from .suites import RESULTS_FILE, TABLE_FILE, EncoderFactory, run_suites, write_results

Factories = Mapping[str, Callable[[str], Encoder]]

_NEEDED_KEYS: Final = ("name", "suite", "data")
_OWN_KEYS: Final = (*_NEEDED_KEYS, "metric", "note")
_PATH_KINDS: Final = ("model", "random", "savedmodel", "st", "wordvectors")
_EXAMPLE: Final = "see `newsembed evaluate --help` for an example"
_WORDS: Final = {bool: "true or false", str: "a string", int: "a number"}


@dataclasses.dataclass(frozen=True, kw_only=True)
class EvaluateOptions(Options):
    """Options of ``newsembed evaluate``; `with_protocols` adds those of the benchmarks."""

    encoder: tuple[str, ...] = several("an encoder; repeat for more rows", "NAME=SPEC")
    recipe: str | None = option(
        None,
        "a TOML file of encoders and benchmarks, for one table of their main scores with intervals; see "
        "docs/guides/evaluate.md. Instead of --suite and --data; --encoder adds rows",
        metavar="FILE",
    )
    suite: tuple[str, ...] = several(
        f"{', '.join(suites())}, or all: every benchmark in --data; repeat for more tables",
        "NAME",
        choices=(*suites(), ALL_SUITES),
    )
    data: tuple[str, ...] = several("its file or folder, as distributed; one for all suites, or one for each", "PATH")
    mteb: tuple[str, ...] = option(
        (),
        "tasks of MTEB instead of --suite, by the library mteb (newsembed[mteb]); --data has a folder for each",
        many=True,
        metavar="TASK",
    )
    output: str = required("folder for results.json and results.md", metavar="DIR")
    cache: str | None = option(
        None, "folder that keeps embeddings by content, so that a second run only scores", metavar="DIR"
    )
    leakage: str | None = option(
        None,
        "training articles (JSONL or Parquet): report the benchmark texts that are among them",
        metavar="PATH",
    )
    drop_leaked: bool = option(False, "with --leakage: leave those texts out of the benchmarks")

    def __post_init__(self) -> None:
        """Checks that what is given goes together."""
        super().__post_init__()
        if self.drop_leaked and not self.leakage:
            remedy = "name the training articles with --leakage"
            raise InputError("given without --leakage", field="--drop_leaked", remedy=remedy)
        if self.recipe and (self.suite or self.data or self.mteb):
            raise InputError("given with --recipe", field="--suite, --data", remedy="name benchmarks in the recipe")
        if self.mteb and (self.suite or len(self.data) > 1 or self.leakage or self.cache):
            remedy = "give --encoder, one --data and --output with it"
            raise InputError("given with --suite, --leakage, --cache or a second --data", field="--mteb", remedy=remedy)
        for name in () if self.recipe else ("encoder", "data") if self.mteb else ("encoder", "suite", "data"):
            if not getattr(self, name):
                raise InputError("missing", field=f"--{name}", remedy=f"give --{name}, or --recipe FILE")
        if len(self.data) > 1 and len(self.data) != len(self.suite):
            problem = f"{len(self.suite)} suites with {len(self.data)} data paths"
            raise InputError(problem, field="--data", remedy="give one for all suites or one for each")


def with_protocols(base: type[EvaluateOptions]) -> Any:
    """The options of the command and of all benchmarks."""
    found: dict[str, Any] = {}
    for suite in suites().values():
        hints = typing.get_type_hints(suite.kind)
        for name, field in suite.options.items():
            own = dataclasses.field(default=field.default, metadata=field.metadata)
            found.setdefault(name, (name, hints[name], own))
    made = dataclasses.make_dataclass("EvaluateOptions", found.values(), bases=(base,), frozen=True, kw_only=True)
    made.__module__ = base.__module__
    return made


def run(options: Any, factories: Factories) -> int:
    """Runs the command; returns 0 if all benchmarks ran, 1 if one failed.

    Args:
      options: an instance of what `with_protocols` made.
      factories: by the word before the colon of a SPEC: makes an encoder from the text after it
        (``serving.factories()``).
    """
    import rich

    from .table import console

    check_output(options.output, is_folder=True)
    _check_protocols(options)
    specs, facts = encoder_specs(options.encoder), dict[str, Any]()
    if options.mteb:
        return _run_mteb(options, {name: encoder_factory(spec, factories) for name, spec in specs.items()}, specs)
    if options.recipe:
        recipe = read_recipe(options.recipe)
        benchmarks, specs = list(recipe.benchmarks), {**recipe.encoders, **specs}
        facts["recipe"] = {"metrics": dict(recipe.metrics), "notes": dict(recipe.notes)}
    else:
        benchmarks = _benchmarks(options)
    encoders = {name: encoder_factory(spec, factories) for name, spec in specs.items()}
    if options.leakage:
        benchmarks, facts["leakage"] = check_leakage(benchmarks, options.leakage, drop=options.drop_leaked)
    results = run_suites(encoders, benchmarks, cache=options.cache, specs=specs, on_result=tell, facts=facts)
    tests = comparisons(results.results, results.manifest["benchmarks"])
    told = {name: [row.to_dict() for row in found] for name, found in tests.items() if found}
    results = dataclasses.replace(results, manifest={**results.manifest, **told})
    with uploaded(options.output, overwrite=True) as output:
        write_results(results, output)
    for table in console(results):
        rich.print(table)
    for result in results.failed:
        print(f"{result.encoder} on {result.benchmark} failed: {result.error}")
    print(f"tables: {options.output}/{TABLE_FILE}   all numbers: {options.output}/{RESULTS_FILE}")
    return 1 if results.failed else 0


def _run_mteb(options: Any, encoders: Mapping[str, EncoderFactory], specs: Mapping[str, str]) -> int:
    """Runs tasks of MTEB and prints their main scores; 1 if one failed."""
    from .mteb_tasks import run_tasks

    with uploaded(options.output, overwrite=True) as output:
        found = run_tasks(options.mteb, local_copy(options.data[0]), encoders, specs, output)
    for encoder, task, score in found:
        print(f"{encoder} on {task}: {score if isinstance(score, float) else f'failed: {score}'}")
    print(f"results of mteb: {options.output}/results")
    return int(any(isinstance(score, str) for *_, score in found))


def _benchmarks(options: Any) -> list[Benchmark]:
    data = list(map(local_copy, options.data))
    files = data * len(options.suite) if len(data) == 1 else data
    found: list[Benchmark] = []
    for suite, file in zip(options.suite, files, strict=True):
        is_repeated = options.suite.count(suite) > 1
        found += chosen(suite, file, f"{suite} {os.path.basename(file)}" if is_repeated else suite, vars(options))
    return found


def _check_protocols(options: Any) -> None:
    """Refuses an option of a protocol that no suite asked for has: the scores would not be those asked for."""
    having: dict[str, list[str]] = {}
    for name, suite in suites().items():
        for option_name, field in suite.options.items():
            if getattr(options, option_name) != field.default:
                having.setdefault(option_name, []).append(name)
    having.pop("intervals", None)  # every recipe has them, and a benchmark without has others
    for option_name, names in having.items():
        if ALL_SUITES not in options.suite and not {*names} & {*options.suite}:
            remedy = "write it in the recipe" if options.recipe else f"leave it out, or ask for {', '.join(names)}"
            raise InputError("no suite asked for has it", field=f"--{option_name}", remedy=remedy)


def encoder_factory(spec: str, factories: Factories) -> EncoderFactory:
    """Returns the factory of the encoder that ``spec`` names; it loads nothing before it is called."""
    kind, _, rest = spec.partition(":")
    if spec in _BASELINES:
        return _BASELINES[spec]
    makers = {**_BASELINES_OF, **factories}
    if kind in makers and rest:
        make = makers[kind]
        return lambda: make(rest)
    if is_function_spec(spec):
        return functools.partial(FunctionEncoder, spec)
    known = ", ".join(
        [*_BASELINES, "lsa:DIMENSIONS", "wordvectors:FILE", "st:DIR", *(f"{name}:DIR" for name in sorted(factories))]
    )
    remedy = f"choose one of {known}, or module:function of an importable module"
    raise InputError(f"got the encoder {spec!r}", field="--encoder", remedy=remedy)


def _lsa(dimensions: str) -> Encoder:
    if not dimensions.isdigit() or int(dimensions) < 1:
        raise InputError(f"got {dimensions!r}", field="lsa", remedy="give a number of dimensions: lsa:256")
    return LsaEncoder(int(dimensions))


_BASELINES: Final[Mapping[str, EncoderFactory]] = {
    "tfidf": TfidfEncoder,
    "lsa": LsaEncoder,
    "words": BinaryWordEncoder,
    "headline": functools.partial(BinaryWordEncoder, is_title_only=True),
}
_BASELINES_OF: Final[Factories] = {
    "lsa": _lsa,
    "wordvectors": WordVectorEncoder,
    "st": SentenceTransformerEncoder,
}


def encoder_specs(texts: Sequence[str]) -> dict[str, str]:
    """Returns SPEC by NAME of every ``NAME=SPEC``, in their order; names must differ."""
    specs = dict[str, str]()
    for text in texts:
        name, equals, spec = text.partition("=")
        if not (name and equals and spec):
            remedy = "for example: --encoder trained=model:work/model"
            raise InputError(f"got {text!r}, expected NAME=SPEC", field="--encoder", remedy=remedy)
        if name in specs:
            raise InputError("two encoders share a name", field="--encoder", remedy="give each its own NAME")
        specs[name] = spec
    return specs


def tell(result: Result) -> None:
    """Prints a line about a result, for progress."""
    note = result.error
    if result.status == "ok":
        rate = f"{result.texts_per_second or 0:.0f} texts/s{' (cached)' if result.from_cache else ''}"
        note = f"{counted(result.texts, 'text')} in {result.seconds:.1f} s, {rate}"
    print(f"{result.encoder} on {result.benchmark}: {result.status}, {note}", file=sys.stderr)


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


def read_recipe(path: str) -> Recipe:
    """Reads a recipe, whose scores get bootstrap intervals.

    Args:
      path: of the TOML file.

    Raises:
      InputError: naming the file, the entry and the remedy, for a file that cannot be read, an unknown or missing key
        and a value of a wrong type.
    """
    with reading(path, _EXAMPLE, OSError), open(path, "rb") as file:
        content = tomllib.load(file)
        _check_keys(content, ("encoders", "benchmarks"), "recipe")
        encoders, rows = content.get("encoders", {}), content.get("benchmarks", [])
        if not isinstance(encoders, dict) or not all(isinstance(spec, str) for spec in encoders.values()):
            raise InputError("expected a table of NAME = SPEC", field="encoders")
        if not isinstance(rows, list) or not rows or not all(isinstance(row, dict) for row in rows):
            raise InputError("expected one or more [[benchmarks]]", field="benchmarks")
        folder = os.path.dirname(os.path.abspath(path))
        found = [_benchmark(row, folder, f"benchmarks[{index}]") for index, row in enumerate(rows)]
        names = [benchmark.name for benchmark in found]
        if repeated := {name for name in names if names.count(name) > 1}:
            problem = f"two benchmarks are named {', '.join(sorted(repeated))}"
            raise InputError(problem, field="name", remedy="give each its own name")
    specs = {name: _placed(spec, folder) for name, spec in encoders.items()}
    metrics = {row["name"]: row.get("metric", "") for row in rows}
    return Recipe(specs, tuple(found), metrics, {row["name"]: row["note"] for row in rows if row.get("note")})


def _benchmark(row: dict[str, Any], folder: str, place: str) -> Benchmark:
    for key in _OWN_KEYS:
        if key in _NEEDED_KEYS and key not in row:
            raise InputError(f"{key} is missing", field=place)
        _check_type(row.get(key, ""), str, f"{place}.{key}")
    if row["suite"] not in suites():
        raise InputError(f"got {row['suite']!r}", field=f"{place}.suite", remedy=f"choose one of {', '.join(suites())}")
    suite = suites()[row["suite"]]
    known = [name for name in suite.options if name != "intervals"]
    _check_keys(row, (*_OWN_KEYS, *known), place)
    hints = typing.get_type_hints(suite.kind)
    options = {key: _check_type(row[key], hints[key], f"{place}.{key}") for key in known if key in row}
    path = os.path.join(folder, os.path.expanduser(row["data"]))
    return suite.make(path, row["name"], {**options, "intervals": True})


def _check_type(value: Any, hint: Any, place: str) -> Any:
    """The value of an option of this type; a list becomes a tuple."""
    kind = next((kind for kind in typing.get_args(hint) if kind in _WORDS), hint)
    is_list = typing.get_origin(hint) is tuple
    values = value if is_list and isinstance(value, list) else [value]
    if isinstance(value, list) != is_list or not all(type(one) is kind for one in values):
        expected = "a list of " + {str: "strings", int: "numbers"}[kind] if is_list else _WORDS[kind]
        raise InputError(f"got {value!r}, expected {expected}", field=place)
    return tuple(value) if is_list else value


def _check_keys(table: Mapping[str, Any], known: Sequence[str], place: str) -> None:
    if unknown := [key for key in table if key not in known]:
        raise InputError(f"unknown key {unknown[0]!r}", field=place, remedy=f"known keys: {', '.join(known)}")


def _placed(spec: str, folder: str) -> str:
    """A SPEC whose folder is relative to the recipe's."""
    kind, colon, rest = spec.partition(":")
    return f"{kind}:{os.path.join(folder, os.path.expanduser(rest))}" if colon and kind in _PATH_KINDS else spec

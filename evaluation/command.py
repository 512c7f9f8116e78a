"""``newsembed evaluate``: benchmarks over named encoders, side by side.

Example::

    newsembed evaluate --encoder tfidf=tfidf --encoder random=random:work/model --encoder trained=model:work/model \
        --suite events --data work/heldout.jsonl --suite sts --data sts-test.csv --output work/evaluation

An encoder is ``NAME=SPEC``. SPEC is one of ``tfidf``, ``lsa[:DIMENSIONS]``, ``wordvectors:FILE`` (word2vec or GloVe
text), ``st:DIR`` (a sentence-transformers folder), ``model:DIR[@step]`` (a model folder), ``random:DIR[@seed]`` (its
architecture and vocabulary with random parameters), ``savedmodel:DIR``, or any ``module:function`` or
``file.py:function`` that maps a list of texts to a matrix. ``words`` and ``headline`` compare the sets of words of
whole texts and of titles. The k-th ``--suite`` reads the k-th ``--data``; a single ``--data`` is used for all.
``--suite all`` runs every benchmark found in its ``--data``.

``--recipe FILE.toml`` names encoders and benchmarks in a file instead and adds a table of their main scores::

    newsembed evaluate --recipe quality.toml --encoder mine=model:work/trained --output work/quality
"""

import argparse
import dataclasses
import functools
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from ..errors import InputError, counted
from ..formats.command_line import without_secrets
from ..formats.whole import check_output
from .baselines import (
    BinaryWordEncoder,
    FunctionEncoder,
    LsaEncoder,
    SentenceTransformerEncoder,
    WordVectorEncoder,
    is_function_spec,
)
from .benchmark import Benchmark
from .classification import DEFAULT_HEAD, HEADS, SHOTS
from .compare import compare, compare_folds, compare_printed
from .encoders import Encoder, TfidfEncoder
from .leakage import check_leakage
from .recipe import read_recipe
from .registry import ALL_SUITES, SUITES, Options, discover
from .results import Result
from .suites import RESULTS_FILE, TABLE_FILE, EncoderFactory, run_suites, write_results

Factories = Mapping[str, Callable[[str], Encoder]]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the options of ``newsembed evaluate``."""
    parser.add_argument(
        "--encoder", action="append", default=[], metavar="NAME=SPEC", help="an encoder; repeat for more rows"
    )
    parser.add_argument(
        "--recipe",
        metavar="FILE",
        help="a TOML file of encoders and benchmarks, for one table of their main scores with intervals; see "
        "docs/guides/evaluate.md. Instead of --suite and --data; --encoder adds rows",
    )
    parser.add_argument(
        "--suite",
        action="append",
        default=[],
        choices=[*SUITES, ALL_SUITES],
        help="a benchmark, or all benchmarks in --data; repeat for more tables",
    )
    parser.add_argument(
        "--data",
        action="append",
        default=[],
        metavar="PATH",
        help="its file or folder, as distributed; one for all suites, or one for each",
    )
    parser.add_argument("--output", required=True, metavar="DIR", help="folder for results.json and results.md")
    parser.add_argument(
        "--cache", metavar="DIR", help="folder that keeps embeddings by content, so that a second run only scores"
    )
    parser.add_argument(
        "--leakage",
        metavar="PATH",
        help="training articles (JSONL or Parquet): report the benchmark texts that are among them",
    )
    parser.add_argument(
        "--drop_leaked", action="store_true", help="with --leakage: leave those texts out of the benchmarks"
    )
    _add_event_arguments(parser)
    _add_protocol_arguments(parser)
    _add_head_arguments(parser)
    _add_text_arguments(parser)


def _add_event_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--cross_publisher", action="store_true", help="events: leave out candidates of the query's publisher"
    )
    parser.add_argument(
        "--cross_language", action="store_true", help="events: leave out candidates in the query's language"
    )
    parser.add_argument(
        "--exclude_near_copies", action="store_true", help="events: leave out candidates of the query's duplicate_group"
    )
    parser.add_argument(
        "--max_day_gap",
        type=int,
        metavar="DAYS",
        help="events: leave out candidates whose byline date is more days away",
    )
    parser.add_argument("--at_k", type=int, metavar="K", help="events: also report mAP@K, R-precision and nDCG@K")
    parser.add_argument(
        "--label", choices=("event", "topic"), default="event", help="clustering: the true classes (default: event)"
    )
    parser.add_argument(
        "--min_cluster_size", type=int, default=1, metavar="N", help="clustering: leave out smaller classes"
    )


def _add_protocol_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--intervals",
        action="store_true",
        help="95 %% bootstrap intervals of events (over events) and sts (over pairs); always with --recipe",
    )
    parser.add_argument(
        "--languages",
        nargs="+",
        default=[],
        metavar="LANGUAGE",
        help="mldoc_laser, mldoc_svm, xnli: only these languages, such as english spanish (xnli: en es)",
    )
    parser.add_argument(
        "--train_languages",
        nargs="+",
        default=[],
        metavar="LANGUAGE",
        help="mldoc_laser, mldoc_svm: train on these languages only (default: on each)",
    )
    parser.add_argument(
        "--folds",
        type=int,
        default=0,
        metavar="N",
        help="mldoc_laser, mldoc_svm: number of folds (even) of all documents instead of the official parts, with "
        "t-tests of each pair of encoders over them; T-MDE has 10",
    )
    parser.add_argument(
        "--seeds",
        type=int,
        default=5,
        metavar="N",
        help="runs of k-means, and of mldoc_laser without folds, seeds 0 to N-1 (default: 5)",
    )


def _add_head_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--head",
        choices=HEADS,
        default=DEFAULT_HEAD,
        help="labelled collections: logistic regression and a few-shot MLP in the span of the drawn documents "
        "(default), or the MLP of SimLTE for both",
    )
    parser.add_argument(
        "--shots",
        type=int,
        nargs="+",
        default=list(SHOTS),
        metavar="K",
        help="labelled collections: documents of each class in few-shot training; three or more give the curve "
        "shots.svg (default: 5 10)",
    )


def _add_text_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--max_length",
        type=int,
        metavar="TOKENS",
        help="tokens of each text that model: and random: read (default: as in training)",
    )
    parser.add_argument(
        "--long_documents",
        choices=("head", "head+tail", "windows"),
        help="how models read longer documents, as for `newsembed embed` (default: as each model.json says, or head)",
    )
    parser.add_argument(
        "--prompt",
        metavar="TEXT",
        help="text before each document, instead of the models' own prompts; '' for none (default: each model's)",
    )


def run(args: argparse.Namespace, factories: Factories) -> int:
    """Runs the command; returns 0 if all benchmarks ran, 1 if one failed.

    Args:
      args: from :func:`add_arguments`.
      factories: by the word before the colon of a SPEC: makes an encoder from the text after it
        (``serving.factories()``).

    Returns:
      The exit code.

    Raises:
      InputError: for an output that cannot be written.
    """
    import rich

    from .table import console, grids

    check_output(args.output, is_folder=True)
    benchmarks, specs, facts = _asked(args)
    encoders = {name: encoder_factory(spec, factories) for name, spec in specs.items()}
    if args.leakage:
        benchmarks, facts["leakage"] = check_leakage(benchmarks, args.leakage, drop=args.drop_leaked)
    command = ["newsembed", *without_secrets(sys.argv[1:])]
    results = run_suites(
        encoders, benchmarks, cache=args.cache, command=command, specs=specs, on_result=_print_progress, facts=facts
    )
    for key, rows in (
        ("comparisons", compare(results.results)),
        ("fold_comparisons", compare_folds(results.results)),
        ("printed_comparisons", compare_printed(results.results, results.manifest["benchmarks"])),
    ):
        if rows:
            manifest = {**results.manifest, key: [row.to_dict() for row in rows]}
            results = dataclasses.replace(results, manifest=manifest)
    write_results(results, args.output)
    for table in console(results):
        rich.print(table)
    for grid in grids(results):
        for encoder, error in grid.errors:
            print(f"{encoder} on {grid.title} failed: {error}")
    print(f"tables: {args.output}/{TABLE_FILE}   all numbers: {args.output}/{RESULTS_FILE}")
    return 1 if results.failed else 0


def _asked(args: argparse.Namespace) -> tuple[list[Benchmark], dict[str, str], dict[str, Any]]:
    """Benchmarks, the SPEC of each encoder, and further entries of the manifest.

    Raises:
      InputError: for options that are missing or do not go together, and a recipe that cannot be read.
    """
    specs = encoder_specs(args.encoder)
    if not args.recipe:
        for option in ("encoder", "suite", "data"):
            if not getattr(args, option):
                raise InputError("missing", field=f"--{option}", remedy=f"give --{option}, or --recipe FILE")
        return _benchmarks(args), specs, {}
    if args.suite or args.data:
        raise InputError("given with --recipe", field="--suite, --data", remedy="name benchmarks in the recipe")
    recipe = read_recipe(args.recipe, intervals=True)
    return list(recipe.benchmarks), {**recipe.encoders, **specs}, {"recipe": recipe.facts()}


def encoder_factory(spec: str, factories: Factories) -> EncoderFactory:
    """Returns the factory of the encoder that ``spec`` names; it loads nothing before it is called.

    Raises:
      InputError: on an unknown kind or a missing folder name.
    """
    kind, _, rest = spec.partition(":")
    if spec in _BASELINES:
        return _BASELINES[spec]
    makers = {**_BASELINES_OF, **factories}
    if kind in makers and rest:
        make = makers[kind]
        return lambda: make(rest)
    if is_function_spec(spec):
        return lambda: FunctionEncoder(spec, progress=True)
    known = ", ".join(
        [*_BASELINES, "lsa:DIMENSIONS", "wordvectors:FILE", "st:DIR", *(f"{name}:DIR" for name in sorted(factories))]
    )
    raise InputError(
        f"got the encoder {spec!r}",
        field="--encoder",
        remedy=f"choose one of {known}, or module:function of an importable module",
    )


def _lsa(dimensions: str) -> Encoder:
    if not dimensions.isdigit():
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
    "st": lambda folder: SentenceTransformerEncoder(folder, progress=True),
}


def encoder_specs(texts: Sequence[str]) -> dict[str, str]:
    """Returns SPEC by NAME of every ``NAME=SPEC``, in their order.

    Raises:
      InputError: if a text has another form, or if a name is given twice.
    """
    specs = dict(_split_encoder(text) for text in texts)
    if len(specs) < len(texts):
        raise InputError("two encoders share a name", field="--encoder", remedy="give each its own NAME")
    return specs


def _split_encoder(text: str) -> tuple[str, str]:
    name, equals, spec = text.partition("=")
    if not name or not equals or not spec:
        raise InputError(
            f"got {text!r}, expected NAME=SPEC",
            field="--encoder",
            remedy="for example: --encoder trained=model:work/model",
        )
    return name, spec


def _benchmarks(args: argparse.Namespace) -> list[Benchmark]:
    files = args.data * len(args.suite) if len(args.data) == 1 else args.data
    if len(files) != len(args.suite):
        raise InputError(
            f"{len(args.suite)} suites with {len(args.data)} data paths",
            field="--data",
            remedy="give one for all suites or one for each",
        )
    if args.drop_leaked and not args.leakage:
        raise InputError(
            "given without --leakage", field="--drop_leaked", remedy="name the training articles with --leakage"
        )
    if args.seeds < 1:
        raise InputError(f"got {args.seeds}, expected at least 1", field="--seeds", remedy="give a positive number")
    if min(args.shots) < 1:
        raise InputError(f"got {min(args.shots)}, expected at least 1", field="--shots", remedy="give positive numbers")
    options = Options(
        args.cross_publisher,
        args.cross_language,
        args.exclude_near_copies,
        args.max_day_gap,
        args.label,
        args.min_cluster_size,
        tuple(range(args.seeds)),
        args.at_k,
        args.intervals,
        tuple(args.languages),
        tuple(args.train_languages),
        args.folds,
        args.head,
        tuple(sorted(set(args.shots))),
    )
    repeated = {suite for suite in args.suite if args.suite.count(suite) > 1}
    benchmarks: list[Benchmark] = []
    for suite, file in zip(args.suite, files, strict=True):
        if suite == ALL_SUITES:
            benchmarks += discover(file, options)
        else:
            benchmarks.append(
                SUITES[suite](file, f"{suite} {os.path.basename(file)}" if suite in repeated else suite, options)
            )
    return benchmarks


def _print_progress(result: Result) -> None:
    note = result.error
    if result.status == "ok":
        rate = f"{result.texts_per_second or 0:.0f} texts/s{' (cached)' if result.from_cache else ''}"
        note = f"{counted(result.texts, 'text')} in {result.seconds:.1f} s, {rate}"
    print(f"{result.encoder} on {result.benchmark}: {result.status}, {note}", file=sys.stderr)

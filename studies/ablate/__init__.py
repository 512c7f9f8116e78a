r"""Trains and evaluates the rows of a table, each without one part of the system, and compares their z-scores.

Every row is trained and evaluated at several checkpoints for each seed. The run file of a row is --base followed by the
row's own lines. A row that changes mining (the evergreen filter, the augmentations, translation) is trained on data
mined again, with the build's other options unchanged. Finished work is not repeated, a killed training resumes from its
last checkpoint, and a row that fails is reported, retried next time, and stops no other row.

example:
  newsembed ablate --newsroom --output ablation        # on a generated newsroom: under half an hour on two cores
  newsembed ablate --data work --suite events=heldout.jsonl --suite sts=sts.tsv --cross_publisher \
      --base runs/train_small.gin --pretrain_base runs/pretrain_small.gin \
      --rows without_topics,without_hard_negatives --seeds 3 --output ablation
  newsembed ablate --data work --suite all=benchmarks --output ablation --print_commands      # one launch for each row

On a cluster, all machines must see the folder of --output. The first command that --print_commands prints mines, and
pretrains what the rows share. The next ones run one row each, at the same time. The last one writes the table. For a
row that needs several machines, run `newsembed launch … -- --gin_file=DIR/rows/ROW/seed-0/run.gin` after the first
command; the other commands then find it trained.
"""

import argparse
import dataclasses
import functools
import os
import sys
import time
from typing import Any

from ...errors import InputError
from ...evaluation.benchmark import Benchmark
from ...evaluation.registry import Options
from ...evaluation.suites import run_manifest
from ...formats.command_line import without_secrets
from ..shared import arguments
from ..shared.mining import build_folder, manifest_of, mine_again
from ..shared.recipe import recipe_of
from ..shared.report import places_line
from ..shared.runs import LOG_FILE, write_run_file
from ..shared.tools import Tools, train_runs
from . import tables
from .conduct import OK, RowResult, conduct, prepare
from .plan import Settings, not_applicable, run_steps, runs_before, training
from .report import write_report
from .table import Row, Table

_KMEANS_SEEDS = (0, 1, 2)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the options of ``newsembed ablate``."""
    arguments.add_study_arguments(parser)
    parser.add_argument(
        "--data",
        metavar="DIR",
        help="work folder of `newsembed build`, of which the tables ast, okura, simlte, ntdv and tmde need some jobs "
        "only; not with --newsroom",
    )
    parser.add_argument(
        "--table",
        default=tables.DEFAULT,
        metavar="NAME",
        help=f"the ablation: {', '.join(tables.names())} (default: %(default)s)",
    )
    known = ", ".join(tables.load(tables.DEFAULT).names)
    parser.add_argument(
        "--rows", default="all", metavar="NAME,…", help=f"rows to compare with the first (default: all): {known}"
    )
    arguments.add_suite_arguments(parser)
    parser.add_argument(
        "--evaluations", type=int, metavar="N", help="checkpoints of each training to evaluate (default: 4)"
    )
    parser.add_argument(
        "--pretrained", metavar="MODEL", help="start from this model (default: pretrain one for each seed)"
    )
    _add_inputs(parser)
    parser.add_argument("--row", metavar="NAME", help="run only this row and write no table; see --print_commands")


def _add_inputs(parser: argparse.ArgumentParser) -> None:
    """Adds the user's inputs to mining."""
    parser.add_argument(
        "--translation_models",
        nargs=1,
        action="extend",
        metavar="DIR",
        help="as for the build, for rows whose examples are made again",
    )
    parser.add_argument(
        "--bitext",
        nargs=1,
        action="extend",
        metavar="FILE",
        help="translation pairs, for tables that train on them; see `newsembed translations --help`",
    )
    parser.add_argument(
        "--bitext_encoder",
        metavar="ENCODER",
        help="encoder, such as model:DIR, that finds translation pairs for the table supervision (default with "
        "--newsroom: a pretraining on the newsroom's own pairs)",
    )
    parser.add_argument(
        "--known_pairs",
        nargs=1,
        action="extend",
        metavar="FILE",
        help="known translations that determine the least margin of these pairs, in the formats of --bitext",
    )


def run(args: argparse.Namespace, tools: Tools | None = None) -> int:
    """Runs the command; returns 0 if every applicable row was scored with every seed, 1 if not.

    Raises:
      InputError: for bad options, before anything runs.
    """
    started = time.monotonic()
    table = tables.load(args.table)
    rows = table.choose(args.rows)
    only = [] if args.row is None else [table.row(args.row)]
    arguments.require_positive(args, "steps", "pretrain_steps", "seeds", "parallel", "evaluations")
    if args.print_commands:
        return arguments.print_launches("ablate", args, "row", [row.name for row in only or rows])
    command = ["newsembed", *without_secrets(sys.argv[1:])]
    work, suites = _sources(args, table)
    arguments.fill_in(args, table.defaults)
    tools = tools or Tools(mine=functools.partial(mine_again, beam_args=args.beam))
    options = Options(**{"cross_publisher": args.cross_publisher, "seeds": _KMEANS_SEEDS} | dict(table.evaluation))
    benchmarks = arguments.benchmarks_of(suites, options)
    inputs = ("translation_models", "bitext", "known_pairs")
    settings = Settings(
        table,
        work,
        os.path.abspath(args.output),
        recipe_of(args),
        _pretrained(args),
        {name: tuple(getattr(args, name) or ()) for name in inputs},
        tuple(args.beam or ()),
    )
    if "bitext_encoder" in table.inputs:
        encoder = args.bitext_encoder or _pair_finder(settings, args.newsroom, tools)
        settings = dataclasses.replace(settings, given={**settings.given, "bitext_encoder": (encoder,)})
    run_steps(settings)
    if args.prepare:
        return _prepare(settings, rows, args.parallel, tools)
    results = conduct(settings, only or rows, benchmarks, args.parallel, tools, command)
    if only:
        return _report_row(results[0])
    return _report(settings, results, benchmarks, command, round(time.monotonic() - started, 1), args.output)


def _sources(args: argparse.Namespace, table: Table) -> tuple[str, list[str]]:
    """The build and the benchmarks: the user's, or the newsroom's, which also sets small trainings as defaults.

    Raises:
      InputError: if both or neither are given, or for a folder without a finished build.
    """
    if (args.newsroom is None) == (args.data is None):
        raise InputError(
            "give either mined data or a newsroom", field="--data, --newsroom", remedy="see `newsembed ablate --help`"
        )
    if args.data is not None:
        return build_folder(args.data, table.build_jobs), args.suite
    from ..shared import newsroom

    arguments.fill_in(args, table.newsroom_defaults)
    places = newsroom.find_newsroom(args.newsroom, args.output, beam_args=args.beam)
    args.cross_publisher, args.bitext = True, args.bitext or [places.bitext]
    if not args.suite and any(name == newsroom.LABELLED for _, name in table.newsroom_suites):
        newsroom.write_labelled(places)
    if not args.suite and any(name == newsroom.ACROSS_LANGUAGES for _, name in table.newsroom_suites):
        newsroom.write_across(places)
    own = [f"{suite}={places.newsroom}/{name}" for suite, name in table.newsroom_suites]
    return places.work, args.suite or own


def _pair_finder(settings: Settings, newsroom: str | None, tools: Tools) -> str:
    """The encoder that finds translation pairs on a newsroom: a pretraining on the build's data, with the given pairs.

    Raises:
      InputError: without a newsroom, or if the training fails.
    """
    if newsroom is None:
        raise InputError(
            "not given",
            field="--bitext_encoder",
            remedy="name an encoder of sentences in several languages, such as model:DIR or st:DIR",
        )
    folders = {job: f"{settings.work}/{job}" for job in ("pack", "vocabulary")}
    run = settings.recipe.pretraining(f"{settings.output}/pair_finder", folders, 0)
    problems = train_runs([run], 1, tools)
    if problems:
        raise InputError(
            f"the encoder that finds translation pairs was not trained: {problems[run.folder]}",
            path=f"{run.folder}/{LOG_FILE}",
            remedy="read the log, or give --bitext_encoder",
        )
    return f"model:{run.model}"


def _pretrained(args: argparse.Namespace) -> str:
    if not args.pretrained:
        return ""
    if not os.path.isdir(f"{args.pretrained}/checkpoints"):
        raise InputError(
            "not a model folder: it has no checkpoints",
            path=args.pretrained,
            field="--pretrained",
            remedy="check the path",
        )
    return os.path.abspath(args.pretrained)


def _prepare(settings: Settings, rows: list[Row], parallel: int, tools: Tools) -> int:
    """Mines, pretrains what rows share, and writes all run files, so that `newsembed launch` can start any of them."""
    chosen = [row for row in rows if not not_applicable(row, settings)]
    folders, problems = prepare(settings, chosen, parallel, tools)
    for row in chosen:
        for seed in settings.seeds if row.name in folders and not row.encoder else ():
            for found in (*runs_before(settings, row, seed), training(settings, row, seed, folders[row.name])):
                write_run_file(found)
    return arguments.tell(problems)


def _report_row(result: RowResult) -> int:
    if result.reason:
        print(f"{result.row.name}: {result.status}: {result.reason}")
    problems = {f"{result.row.name}, seed {seed}": text for seed, text in result.problems.items()}
    return max(arguments.tell(problems), result.status == "failed")


def _report(
    settings: Settings,
    results: list[RowResult],
    benchmarks: list[Benchmark],
    command: list[str],
    seconds: float,
    shown: str,
) -> int:
    manifest = {**run_manifest(benchmarks, {}, command), "settings": _facts(settings, seconds)}
    text, statement = write_report(settings.output, settings.table, results, manifest)
    print(text)
    print(f"{statement} {seconds:.0f} s\n{places_line(shown)}")
    scored = (result.status == OK and not result.problems for result in results if result.status != "not applicable")
    return 0 if all(scored) else 1


def _facts(settings: Settings, seconds: float) -> dict[str, Any]:
    own = tuple(step.job for step in settings.table.steps)
    jobs = ("vocabulary", "pack", "triplets", "examples") if settings.table.build_jobs is None else ("vocabulary", *own)
    places = {job: settings.jobs[job].rpartition("/") for job in jobs}
    digests = {job: manifest_of(work, name)["digest"] for job, (work, _, name) in places.items()}
    return {
        "seconds": seconds,
        "table": settings.table.name,
        **settings.recipe.facts(),
        "pretrained": os.path.basename(settings.pretrained),
        "data": digests,
    }

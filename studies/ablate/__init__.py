r"""Trains and evaluates the rows of Table 10, each without one part of the system, and compares their z-scores with the full system's.

For every row and seed there is one training, from a run file that `gin/runs/ablation_*.gin` and --base make together, and its evaluation at several
checkpoints. Rows that change mining (the evergreen filter, the augmentations, translation) train on data that are mined again with the build's
options otherwise. Whatever has finished is not repeated; a killed training goes on from its last checkpoint; a row that fails is shown as failed,
tried again next time, and stops no other.

example:
  newsembed ablate --newsroom --output ablation                     # everything on a generated newsroom: under half an hour on two cores
  newsembed ablate --data work --suite events=heldout.jsonl --suite sts=sts.tsv --cross_publisher --base runs/train_small.gin \
      --pretrain_base runs/pretrain_small.gin --rows without_topics,without_hard_negatives --seeds 3 --output ablation
  newsembed ablate --data work --suite all=benchmarks --output ablation --print_commands   # one launch a row, for a cluster

On a cluster, DIR of --output is one that all machines see. The first command that --print_commands prints mines and pretrains what the rows share; then
one a row, at the same time; the last one collects. A row that needs several machines: `newsembed launch … -- --gin_file=DIR/rows/ROW/seed-0/run.gin`, after
the first command; the others then find it trained.
"""

import argparse
import functools
import os
import sys
import time
from typing import Any

from ...errors import InputError
from ...evaluation.registry import Options
from ...evaluation.suites import run_manifest
from ..shared import arguments
from ..shared.mining import build_folder, manifest_of, mine_again
from ..shared.recipe import recipe_of
from ..shared.runs import write_run_file
from ..shared.tools import Tools
from .conduct import OK, conduct, prepare
from .plan import Settings, check_rows, not_applicable, pretraining, training
from .report import NUMBERS, PLOT, TABLE, markdown, statement, write_report
from .rows import ROWS, Row, choose_rows

_DEFAULTS = {
    "base": "runs/weak_supervision_paper.gin",
    "pretrain_base": "runs/pretrain_paper.gin",
    "seeds": 3,
    "parallel": 1,
    "evaluations": 4,
}
_KMEANS_SEEDS = (0, 1, 2)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the options of ``newsembed ablate``."""
    arguments.add_study_arguments(parser)
    parser.add_argument("--data", metavar="DIR", help="what `newsembed build` mined; not with --newsroom")
    parser.add_argument(
        "--rows", default="all", metavar="NAME,…", help=f"rows beside the full system (default: all): {', '.join(ROWS)}"
    )
    parser.add_argument(
        "--suite",
        action="append",
        default=[],
        metavar="SUITE=PATH",
        help="a benchmark of `newsembed evaluate`; repeat for more",
    )
    parser.add_argument(
        "--cross_publisher", action="store_true", help="events: leave out candidates of the query's publisher"
    )
    parser.add_argument(
        "--evaluations", type=int, metavar="N", help="checkpoints of a training that are evaluated (default: 4)"
    )
    parser.add_argument(
        "--pretrained", metavar="MODEL", help="start from this model (default: pretrain one for each seed)"
    )
    parser.add_argument(
        "--translation_models",
        nargs=1,
        action="extend",
        metavar="DIR",
        help="what the build had, for rows whose examples are made again",
    )
    parser.add_argument("--row", metavar="NAME", help="only this row, without a table: one launch of --print_commands")


def run(args: argparse.Namespace, tools: Tools | None = None) -> int:
    """Runs the command; 0 if every row that has something to remove was scored with every seed, 1 if not."""
    started = time.monotonic()
    rows = choose_rows(args.rows)
    check_rows(rows)
    if args.row is not None and args.row not in ROWS:
        raise InputError(f"no such row: {args.row}", field="--row", remedy=f"choose one of {', '.join(ROWS)}")
    arguments.require_positive(args, "steps", "pretrain_steps", "seeds", "parallel", "evaluations")
    if args.print_commands:
        return _print_commands(args, [ROWS[args.row]] if args.row else rows)
    command = ["newsembed", *sys.argv[1:]]
    work, suites = _sources(args)
    arguments.fill_in(args, _DEFAULTS)
    tools = tools or Tools(mine=functools.partial(mine_again, beam_args=args.beam))
    benchmarks = arguments.benchmarks_of(suites, Options(cross_publisher=args.cross_publisher, seeds=_KMEANS_SEEDS))
    settings = Settings(
        work,
        os.path.abspath(args.output),
        recipe_of(args),
        _pretrained(args),
        {"translation_models": tuple(args.translation_models or ())},
    )
    if args.prepare:
        chosen = [row for row in rows if not not_applicable(row, work)]
        folders, problems = prepare(settings, chosen, args.parallel, tools)
        _write_run_files(settings, chosen, folders)
        return _tell(problems)
    if args.row:
        (result,) = conduct(settings, [ROWS[args.row]], benchmarks, args.parallel, tools, command)
        if result.reason:
            print(f"{args.row}: {result.status}: {result.reason}")
        return max(
            _tell({f"{args.row}, seed {seed}": text for seed, text in result.problems.items()}),
            result.status == "failed",
        )
    results = conduct(settings, rows, benchmarks, args.parallel, tools, command)
    seconds = round(time.monotonic() - started, 1)
    lines = write_report(
        settings.output, results, {**run_manifest(benchmarks, {}, command), "settings": _facts(settings, seconds)}
    )
    print(markdown(lines))
    print(
        f"{statement(lines)} {seconds:.0f} s\ntable: {args.output}/{TABLE}   numbers: {args.output}/{NUMBERS}   plot: {args.output}/{PLOT}"
    )
    return (
        0
        if all(result.status == "not applicable" or (result.status == OK and not result.problems) for result in results)
        else 1
    )


def _sources(args: argparse.Namespace) -> tuple[str, list[str]]:
    """The build and the benchmarks: the user's, or the newsroom's, which also has small trainings as defaults."""
    if (args.newsroom is None) == (args.data is None):
        raise InputError(
            "give either mined data or a newsroom", field="--data, --newsroom", remedy="see `newsembed ablate --help`"
        )
    if args.data is not None:
        return build_folder(args.data), args.suite
    from ..shared import newsroom

    arguments.fill_in(args, {**newsroom.DEFAULTS, "evaluations": 2})
    places = newsroom.find_newsroom(args.newsroom, args.output, beam_args=args.beam)
    args.cross_publisher = True
    mine = [f"events={places.newsroom}/heldout.jsonl", f"events={places.newsroom}/paraphrases.jsonl"]
    return places.work, args.suite or [
        *mine,
        f"topic_clustering={places.newsroom}/heldout.jsonl",
        f"sts={places.newsroom}/sts.tsv",
    ]


def _print_commands(args: argparse.Namespace, rows: list[Row]) -> int:
    without = ("print_commands", "prepare", "row")
    print("# first, once:")
    print(arguments.command_text("ablate", args, ["--prepare"], without))
    print("# then one launch a row, in any order or at the same time:")
    for row in rows:
        print(arguments.command_text("ablate", args, ["--row", row.name], without))
    print("# at last, the table:")
    print(arguments.command_text("ablate", args, [], without))
    return 0


def _write_run_files(settings: Settings, rows: list[Row], folders: dict[str, dict[str, str]]) -> None:
    """All run files, so that `newsembed launch` can start them on several machines."""
    for row in rows:
        for seed in settings.seeds if row.name in folders else ():
            for found in (pretraining(settings, row, seed), training(settings, row, seed, folders[row.name])):
                if found is not None:
                    write_run_file(found)


def _tell(problems: dict[str, str]) -> int:
    for name, text in problems.items():
        print(f"failed: {name}: {text}", file=sys.stderr)
    return 1 if problems else 0


def _pretrained(args: argparse.Namespace) -> str:
    if not args.pretrained:
        return ""
    if not os.path.isdir(f"{args.pretrained}/checkpoints"):
        raise InputError(
            "no model folder: it has no checkpoints",
            path=args.pretrained,
            field="--pretrained",
            remedy="check the path",
        )
    return os.path.abspath(args.pretrained)


def _facts(settings: Settings, seconds: float) -> dict[str, Any]:
    digests = {job: manifest_of(settings.work, job)["digest"] for job in ("vocabulary", "pack", "triplets", "examples")}
    return {
        "seconds": seconds,
        **settings.recipe.facts(),
        "pretrained": os.path.basename(settings.pretrained),
        "data": digests,
    }

r"""Mines and trains with documents up to a date, and shows how same-event retrieval fares month by month after it (appendix C).

For each cutoff the build's jobs from `clean` on run again on the articles up to that day, with the build's options otherwise; a model is pretrained and trained on
them and asked for the held-out documents of --events, by month of the asking document's byline. A model trained on all documents ("fresh") is asked the same, so
that hard months and small training sets are told from staleness. Whatever has finished is not repeated; a cutoff that fails is shown as failed and stops no other.

Translation pairs carry no date: they are left out unless --bitext gives them. Links (anchor texts) are those of the whole crawl.

example:
  newsembed staleness --newsroom --output staleness                 # everything on a generated newsroom: under half an hour on two cores
  newsembed staleness --articles work --events heldout.jsonl --cross_publisher --cutoffs 2018-01,2018-07,2019-01 --base runs/train_small.gin \
      --pretrain_base runs/pretrain_small.gin --seeds 2 --output staleness
  newsembed staleness --articles work --events heldout.jsonl --cutoffs 2018-01,2018-07 --output staleness --print_commands  # one launch a cutoff
"""

import argparse
import functools
import os
import sys
import time
from typing import Any

from ...beam_pipelines.workflow import STEPS, USER_INPUTS
from ...errors import InputError
from ...evaluation.events import read_events
from ...evaluation.retrieval import SameEventRetrieval
from ...evaluation.suites import run_manifest
from ..shared import arguments
from ..shared.mining import affected, build_folder, manifest_of, mine_again, missing_inputs
from ..shared.recipe import recipe_of
from ..shared.tools import Tools
from .conduct import FRESH, ModelResult, Settings, conduct
from .cutoffs import check_articles, count_by_day, parse_cutoffs
from .report import NUMBERS, PLOT, TABLE, Queries, lines_of, markdown, write_report

_DEFAULTS = {
    "base": "runs/weak_supervision_paper.gin",
    "pretrain_base": "runs/pretrain_paper.gin",
    "seeds": 3,
    "parallel": 1,
    "bin_months": 3,
}
_NEWSROOM = {"cutoffs": "2022-06,2022-12,2023-06", "bin_months": 6}
# What the jobs from `clean` on may have been given; what has no date need not be given again.
_INPUTS = sorted(
    {source[1:] for step in STEPS[1:] for source in step.inputs.values() if source.startswith("@")} - {"history"}
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the options of ``newsembed staleness``."""
    arguments.add_study_arguments(parser)
    parser.add_argument(
        "--articles", metavar="DIR", help="what `newsembed build` made, or its clean folder; not with --newsroom"
    )
    parser.add_argument(
        "--cutoffs",
        metavar="DATE,…",
        help="last days of the training documents: YYYY-MM-DD, or YYYY-MM for the month's last",
    )
    parser.add_argument(
        "--events",
        metavar="FILE",
        help="held-out documents with events and byline dates: JSONL as `evaluate --suite events` reads it",
    )
    parser.add_argument("--cross_publisher", action="store_true", help="leave out candidates of the query's publisher")
    parser.add_argument(
        "--window_months",
        type=int,
        metavar="N",
        help="use the articles of so many months up to the cutoff (default: all)",
    )
    parser.add_argument("--bin_months", type=int, metavar="N", help="months of a point of the plot (default: 3)")
    parser.add_argument(
        "--turnover",
        type=float,
        default=1.0,
        metavar="X",
        help="of a new newsroom: share of its people and organisations that are replaced in the course of the years (default: 1)",
    )
    parser.add_argument(
        "--min_articles",
        type=int,
        default=100,
        metavar="N",
        help="fewest articles that a cutoff may leave (default: 100)",
    )
    for name in _INPUTS:
        parser.add_argument(
            f"--{name}", nargs="+", action="extend", metavar="PATH", help=f"as the build had it: {USER_INPUTS[name]}"
        )
    parser.add_argument(
        "--cutoff",
        metavar="DATE",
        help=f"only this one of --cutoffs, or {FRESH}, without a table: one launch of --print_commands",
    )


def run(args: argparse.Namespace, tools: Tools | None = None) -> int:
    """Runs the command; 0 if every model was scored with every seed, 1 if not."""
    started = time.monotonic()
    arguments.require_positive(
        args, "steps", "pretrain_steps", "seeds", "parallel", "window_months", "bin_months", "min_articles"
    )
    if args.newsroom is not None:
        arguments.fill_in(args, _NEWSROOM)
    cutoffs = parse_cutoffs(args.cutoffs or "")
    names = [*(cutoff.name for cutoff in cutoffs), FRESH]
    if args.cutoff is not None and args.cutoff not in names:
        raise InputError(f"got {args.cutoff!r}", field="--cutoff", remedy=f"choose one of {', '.join(names)}")
    if args.print_commands:
        return _print_commands(args, [args.cutoff] if args.cutoff else names)
    work, events = _sources(args)
    arguments.fill_in(args, _DEFAULTS)
    tools = tools or Tools(mine=functools.partial(mine_again, beam_args=args.beam))
    given = {name: tuple(getattr(args, name) or ()) for name in _INPUTS}
    missing_inputs(work, affected(["clean"]), given, exempt=("bitext", "history"))
    articles = check_articles(count_by_day(work), cutoffs, args.window_months, args.min_articles, f"{work}/clean")
    queries = read_queries(events)
    settings = Settings(work, os.path.abspath(args.output), recipe_of(args), tuple(cutoffs), args.window_months, given)
    benchmark = SameEventRetrieval(events, cross_publisher=args.cross_publisher)
    if args.prepare or args.cutoff:
        chosen = [args.cutoff] if args.cutoff else names
        return _tell(conduct(settings, chosen, None if args.prepare else benchmark, args.parallel, tools))
    results = conduct(settings, names, benchmark, args.parallel, tools)
    lines, pooled = lines_of(cutoffs, articles, results, queries, args.bin_months)
    seconds = round(time.monotonic() - started, 1)
    manifest = run_manifest([benchmark], {}, ["newsembed", *sys.argv[1:]]) | {"settings": _facts(settings, seconds)}
    write_report(settings.output, lines, pooled, results[-1], manifest)
    print(markdown(lines, pooled, results[-1]))
    print(
        f"{seconds:.0f} s\ntable: {args.output}/{TABLE}   numbers: {args.output}/{NUMBERS}   plot: {args.output}/{PLOT}"
    )
    return _tell(results)


def read_queries(path: str) -> Queries:
    """Events and byline days of the held-out documents.

    Raises:
      InputError: for a file that cannot be read, or documents without a day.
    """
    rows = read_events(path)
    missing = [row.id for row in rows if row.byline_date is None]
    if missing:
        raise InputError(
            f"{len(missing)} of {len(rows)} documents lack it, the first is {missing[0]}",
            path=path,
            field="byline_date",
            remedy="fill it in",
        )
    return Queries(tuple(row.event for row in rows), tuple(row.byline_date for row in rows))


def _sources(args: argparse.Namespace) -> tuple[str, str]:
    """The build and the held-out documents: the user's, or the newsroom's, which also has small trainings as defaults."""
    if (args.newsroom is None) == (args.articles is None):
        raise InputError(
            "give either a build or a newsroom",
            field="--articles, --newsroom",
            remedy="see `newsembed staleness --help`",
        )
    args.evaluations = 1
    if args.articles is not None:
        if args.events is None:
            raise InputError(
                "not given", field="--events", remedy="give held-out documents with events and byline dates"
            )
        return build_folder(args.articles), args.events
    from ..shared import newsroom

    arguments.fill_in(args, {**newsroom.DEFAULTS, "seeds": 2})
    places = newsroom.find_newsroom(args.newsroom, args.output, args.turnover, args.beam)
    args.cross_publisher = True
    return places.work, args.events or f"{places.newsroom}/heldout.jsonl"


def _print_commands(args: argparse.Namespace, names: list[str]) -> int:
    without = ("print_commands", "prepare", "cutoff")
    print("# first, once:")
    print(arguments.command_text("staleness", args, ["--prepare"], without))
    print("# then one launch a model, in any order or at the same time:")
    for name in names:
        print(arguments.command_text("staleness", args, ["--cutoff", name], without))
    print("# at last, the table:")
    print(arguments.command_text("staleness", args, [], without))
    return 0


def _tell(results: list[ModelResult]) -> int:
    for result in results:
        for where, text in result.problems.items():
            print(f"failed: {result.name}, {where}: {text}", file=sys.stderr)
    return 1 if any(result.problems for result in results) else 0


def _facts(settings: Settings, seconds: float) -> dict[str, Any]:
    digests = {job: manifest_of(settings.work, job)["digest"] for job in ("extract", "clean")}
    return {"seconds": seconds, **settings.recipe.facts(), "window_months": settings.window_months, "data": digests}

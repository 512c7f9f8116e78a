r"""Trains on documents up to a date and scores same-event retrieval by the months since (appendix C).

For each cutoff the build's jobs from `clean` on run again on the articles up to that day, with the build's other
options unchanged. A model is pretrained and trained on them, and retrieves the held-out documents of --events; the
scores are grouped by the month of the query's byline. A model trained on all documents ("fresh") answers the same
queries, which separates staleness from hard months and from small training sets. Finished work is not repeated; a
cutoff that fails is reported and stops no other.

Translation pairs have no date: they are left out unless --bitext gives them. Links (anchor texts) are those of the
whole crawl.

example:
  newsembed staleness --newsroom --output staleness    # on a generated newsroom: under half an hour on two cores
  newsembed staleness --articles work --events heldout.jsonl --cross_publisher --cutoffs 2018-01,2018-07,2019-01 \
      --base runs/train_small.gin --pretrain_base runs/pretrain_small.gin --seeds 2 --output staleness
  newsembed staleness --articles work --events heldout.jsonl --cutoffs 2018-01,2018-07 --output staleness \
      --print_commands                                                                     # one launch for each cutoff
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
from ...formats.command_line import without_secrets
from ..shared import arguments
from ..shared.mining import affected, build_folder, manifest_of, mine_again, missing_inputs
from ..shared.recipe import DEFAULTS, NEWSROOM_DEFAULTS, recipe_of
from ..shared.report import places_line
from ..shared.tools import Tools
from .conduct import FRESH, ModelResult, Settings, conduct
from .cutoffs import check_articles, check_later_days, count_by_day, parse_cutoffs
from .report import Queries, lines_of, markdown, write_report

_DEFAULTS = {**DEFAULTS, "bin_months": 3}
_NEWSROOM = {"cutoffs": "2022-06,2022-12,2023-06", "bin_months": 6}
# The user's inputs to the jobs from `clean` on; those without dates need not be given again.
_INPUTS = sorted(
    {source[1:] for step in STEPS[1:] for source in step.sources() if source.startswith("@")} - {"history"}
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the options of ``newsembed staleness``."""
    arguments.add_study_arguments(parser)
    parser.add_argument(
        "--articles", metavar="DIR", help="work folder of `newsembed build`, or its clean folder; not with --newsroom"
    )
    parser.add_argument(
        "--cutoffs",
        metavar="DATE,…",
        help="last days of the training documents: YYYY-MM-DD, or YYYY-MM for the last day of a month",
    )
    parser.add_argument(
        "--events",
        metavar="FILE",
        help="held-out documents with events and byline dates: JSONL, as for `newsembed evaluate --suite events`",
    )
    parser.add_argument("--cross_publisher", action="store_true", help="leave out candidates of the query's publisher")
    parser.add_argument(
        "--window_months",
        type=int,
        metavar="N",
        help="use the articles of the N months up to the cutoff (default: all)",
    )
    parser.add_argument("--bin_months", type=int, metavar="N", help="months for each point of the plot (default: 3)")
    parser.add_argument(
        "--turnover",
        type=float,
        default=1.0,
        metavar="X",
        help="for a new newsroom: share of its people and organisations that are replaced over the years (default: 1)",
    )
    parser.add_argument(
        "--min_articles",
        type=int,
        default=100,
        metavar="N",
        help="least number of articles up to a cutoff (default: 100)",
    )
    for name in _INPUTS:
        parser.add_argument(
            f"--{name}", nargs="+", action="extend", metavar="PATH", help=f"as given to the build: {USER_INPUTS[name]}"
        )
    parser.add_argument(
        "--cutoff",
        metavar="DATE",
        help=f"run only this one of --cutoffs, or {FRESH}, and write no table; see --print_commands",
    )


def run(args: argparse.Namespace, tools: Tools | None = None) -> int:
    """Runs the command; returns 0 if every model was scored with every seed, 1 if not.

    Raises:
      InputError: for bad options, before anything runs.
    """
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
        return arguments.print_launches("staleness", args, "cutoff", [args.cutoff] if args.cutoff else names)
    work, events = _sources(args)
    arguments.fill_in(args, _DEFAULTS)
    tools = tools or Tools(mine=functools.partial(mine_again, beam_args=args.beam))
    given = {name: tuple(getattr(args, name) or ()) for name in _INPUTS}
    missing_inputs(work, affected(["clean"]), given, exempt=("bitext", "history"))
    articles = check_articles(count_by_day(work), cutoffs, args.window_months, args.min_articles, f"{work}/clean")
    queries = read_queries(events)
    check_later_days(queries.days, cutoffs, events)
    settings = Settings(work, os.path.abspath(args.output), recipe_of(args), tuple(cutoffs), args.window_months, given)
    benchmark = SameEventRetrieval(events, cross_publisher=args.cross_publisher)
    if args.prepare or args.cutoff:
        chosen = [args.cutoff] if args.cutoff else names
        return _tell(conduct(settings, chosen, None if args.prepare else benchmark, args.parallel, tools))
    results = conduct(settings, names, benchmark, args.parallel, tools)
    lines, pooled = lines_of(cutoffs, articles, results, queries, args.bin_months)
    seconds = round(time.monotonic() - started, 1)
    manifest = run_manifest([benchmark], {}, ["newsembed", *without_secrets(sys.argv[1:])]) | {
        "settings": _facts(settings, seconds)
    }
    write_report(settings.output, lines, pooled, results[-1], manifest)
    print(markdown(lines, pooled, results[-1]))
    print(f"{seconds:.0f} s\n{places_line(args.output)}")
    return _tell(results)


def read_queries(path: str) -> Queries:
    """Events and byline days of the held-out documents.

    Raises:
      InputError: for an unreadable file, or documents without a day.
    """
    rows = read_events(path)
    missing = [row.id for row in rows if row.byline_date is None]
    if missing:
        raise InputError(
            f"{len(missing)} of {len(rows)} documents have no date, the first is {missing[0]}",
            path=path,
            field="byline_date",
            remedy="fill in their dates",
        )
    return Queries(tuple(row.event for row in rows), tuple(row.byline_date for row in rows))


def _sources(args: argparse.Namespace) -> tuple[str, str]:
    """The build and the held-out documents: the user's, or the newsroom's, which also sets small trainings as defaults.

    Raises:
      InputError: if both or neither are given, or for a folder without a finished build.
    """
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

    arguments.fill_in(args, {**NEWSROOM_DEFAULTS, "seeds": 2})
    places = newsroom.find_newsroom(args.newsroom, args.output, args.turnover, args.beam)
    args.cross_publisher = True
    return places.work, args.events or f"{places.newsroom}/heldout.jsonl"


def _tell(results: list[ModelResult]) -> int:
    wrong = {f"{one.name}, {where}": text for one in results for where, text in one.problems.items()}
    return arguments.tell(wrong)


def _facts(settings: Settings, seconds: float) -> dict[str, Any]:
    digests = {job: manifest_of(settings.work, job)["digest"] for job in ("extract", "clean")}
    return {"seconds": seconds, **settings.recipe.facts(), "window_months": settings.window_months, "data": digests}

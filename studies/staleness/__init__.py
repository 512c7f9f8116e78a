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
      --print_commands                                                                     # a command for each model
"""

import collections
import dataclasses
import datetime
import functools
import json
import os
import time
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from ...beam_pipelines.workflow import STEPS, USER_INPUTS
from ...errors import InputError
from ...evaluation.benchmarks.retrieval import SameEventRetrieval
from ...evaluation.encoders import encode_checked
from ...evaluation.events import read_events
from ...evaluation.statistics import FloatArray
from ...evaluation.suites import benchmark_facts, run_manifest
from ...formats import files
from ...formats.command_line import option, several
from ...formats.parquet import read_batches, shard_paths
from ..ablate.rows import Ablation
from ..ablate.table import Row, Table
from ..shared import study
from ..shared.mining import affected, build_folder, mine_again, missing_inputs
from ..shared.recipe import DEFAULTS, NEWSROOM_DEFAULTS, StudyOptions, filled, recipe_of
from ..shared.runs import Run
from ..shared.study import Tools, Variant
from .report import FRESH, Cutoff, Queries, lines_of, parse_cutoffs, write_report

# The user's inputs to the jobs from `clean` on.
_INPUTS: Final = sorted({source[1:] for step in STEPS[1:] for source in step.sources() if source.startswith("@")})
_SCORES: Final = "queries.json"
_CUTOFFS: Final = "2022-06,2022-12,2023-06"  # of a newsroom
_TURNOVER: Final = 1.0  # of a new newsroom: share of its people and organisations that are replaced over the years
_LEAST: Final = 100  # articles up to a cutoff
_MONTHS: Final = 3  # of a point of the plot; a newsroom has fewer events


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Options(StudyOptions):
    articles: str | None = option(
        None, "work folder of `newsembed build`, or its clean folder; not with --newsroom", metavar="DIR"
    )
    cutoffs: str | None = option(
        None,
        "last days of the training documents: YYYY-MM-DD, or YYYY-MM for the last day of a month, joined by commas",
        metavar="DATE,…",
    )
    events: str | None = option(
        None,
        "held-out documents with events and byline dates: JSONL, as for `newsembed evaluate --suite events`",
        metavar="FILE",
    )


OPTIONS: Final = dataclasses.make_dataclass(
    "StalenessOptions",
    [(name, tuple[str, ...], several(f"as given to the build: {USER_INPUTS[name]}", "PATH")) for name in _INPUTS],
    bases=(_Options,),
    frozen=True,
    kw_only=True,
)


def run(options: Any, tools: Tools | None = None) -> int:
    """Runs the command; returns 0 if every model was scored with every seed, 1 if not.

    Args:
      options: `OPTIONS`.
      tools: see `Tools`.
    """
    started = time.monotonic()
    if (options.newsroom is None) == (options.articles is None):
        remedy = "see `newsembed staleness --help`"
        raise InputError("give either a build or a newsroom", field="--articles, --newsroom", remedy=remedy)
    if options.newsroom is not None:
        options = filled(options, {"cutoffs": _CUTOFFS})
    cutoffs = parse_cutoffs(options.cutoffs or "")
    # As an ablation: every model is pretrained by itself. Translation pairs without a date need not be given again.
    ours = dict[str, Any](removes="later documents", start="own", not_needed=() if options.bitext else ("bitext",))
    rows = [Row(name=one.name, mining={"clean": {"latest_date": one.last_day}}, **ours) for one in cutoffs]
    # The data of the fresh model differ from the build's at most in their translation pairs.
    table = Table(name="staleness", title="Staleness", rows=(*rows, Row(name=FRESH, mining={"pack": {}}, **ours)))
    work, events, options = _filled(options)
    given = {name: getattr(options, name) for name in _INPUTS}
    missing_inputs(work, affected(["clean"]), given, exempt=("bitext",))
    articles = count_articles(work, cutoffs)
    queries = _queries(events, cutoffs)
    tools = tools or Tools(mine=functools.partial(mine_again, beam_args=options.beam))
    ablation = Ablation(table, work, os.path.abspath(options.output), recipe_of(options), given)
    benchmark = SameEventRetrieval(events, cross_publisher=options.cross_publisher)
    score = None if options.print_commands else functools.partial(_scores, benchmark=benchmark, tools=tools)
    variants = [_variant(ablation, row, tools) for row in table.rows]
    outcomes = study.conduct(variants, ablation.recipe.seeds, score, options.parallel, tools)
    if score:
        counts = {
            one.name: ablation.examples(table.row(one.name), one.jobs)["triplets"] if one.jobs else 0
            for one in outcomes
        }
        months = _MONTHS if options.newsroom is None else 2 * _MONTHS
        lines, pooled = lines_of(cutoffs, articles, counts, outcomes, queries, months)
        seconds = round(time.monotonic() - started, 1)
        manifest = {**run_manifest([benchmark], {}), "settings": ablation.facts(seconds)}
        text, places = write_report(ablation.output, lines, pooled, outcomes[-1], manifest)
        print(f"{text}\n{seconds:.0f} s\n{places}")
    return study.tell(outcomes)


def _variant(ablation: Ablation, row: Row, tools: Tools) -> Variant:
    """A model for the runner, whose data have triplets."""

    def mine() -> dict[str, str]:
        jobs = ablation.mine(row, tools.mine)
        if not ablation.examples(row, jobs)["triplets"]:
            remedy = "choose a later cutoff: a negative is a year away from its anchor"
            raise InputError("no triplets are left", path=jobs["examples"], field="--cutoffs", remedy=remedy)
        return jobs

    return dataclasses.replace(ablation.variant(row, tools), mine=mine)


def _filled(options: Any) -> tuple[str, str, Any]:
    """The build, the held-out documents, and the options with those of the newsroom."""
    defaults = {**DEFAULTS, "evaluations": 1}
    if options.articles is not None:
        if options.events is None:
            remedy = "give held-out documents with events and byline dates"
            raise InputError("not given", field="--events", remedy=remedy)
        return build_folder(options.articles), options.events, filled(options, defaults)
    from ..shared import newsroom

    options = filled(options, {**NEWSROOM_DEFAULTS, "seeds": 2}, defaults)
    places = newsroom.find_newsroom(options.newsroom, options.output, _TURNOVER, options.beam)
    events = options.events or f"{places.newsroom}/heldout.jsonl"
    return places.work, events, dataclasses.replace(options, cross_publisher=True)


def count_articles(work: str, cutoffs: Sequence[Cutoff], least: int = _LEAST) -> dict[str, int]:
    """Numbers of the clean articles of a build up to each cutoff, by its name; at least so many."""
    days: collections.Counter[datetime.date] = collections.Counter()
    for path in shard_paths(f"{work}/clean/articles"):
        for batch in read_batches(path, ["byline_date"]):
            days.update(date for date in batch.column(0).to_pylist() if date)
    left = {one.name: sum(number for day, number in days.items() if day <= one.last_day) for one in cutoffs}
    for name, number in left.items():
        if number < least:
            span = f"dated from {min(days)} to {max(days)}" if days else "none of which has a byline date"
            problem = f"the cutoff {name} leaves {number} of {days.total()} articles, {span}; expected at least {least}"
            remedy = "choose a later cutoff: a negative is a year away from its anchor, so keep much more than a year"
            raise InputError(problem, path=f"{work}/clean", field="--cutoffs", remedy=remedy)
    return left


def _queries(path: str, cutoffs: Sequence[Cutoff]) -> Queries:
    """Events and byline days of the held-out documents."""
    rows = read_events(path)
    if missing := [row.id for row in rows if row.byline_date is None]:
        problem = f"{len(missing)} of {len(rows)} documents have no date, the first is {missing[0]}"
        raise InputError(problem, path=path, field="byline_date", remedy="fill in their dates")
    days = tuple(row.byline_date for row in rows if row.byline_date)
    if late := [cutoff.name for cutoff in cutoffs if max(days) <= cutoff.last_day]:
        problem = f"no document is later than the cutoff {late[0]}; their days are {min(days)} to {max(days)}"
        remedy = "choose an earlier cutoff: staleness is what a model loses after it"
        raise InputError(problem, path=path, field="--cutoffs", remedy=remedy)
    return Queries(tuple(row.event for row in rows), days, tuple(row.language for row in rows))


def _scores(_name: str, run: Run, benchmark: SameEventRetrieval, tools: Tools) -> FloatArray:
    """Average precision of each document as a query by the last checkpoint, ``[N]``; reused for the same documents."""
    path, facts = f"{run.folder}/{_SCORES}", json.loads(json.dumps(benchmark_facts([benchmark])))
    found = files.read_json(path) if os.path.exists(path) else {}
    if found.get("benchmark") != facts:
        encoded = encode_checked(tools.make_encoder(run, run.steps[-1]), benchmark.documents())
        values = benchmark.query_scores(encoded.embeddings)["mAP"].tolist()
        found = {"benchmark": facts, "mAP": [None if np.isnan(value) else value for value in values]}
        files.write_json(path, found)
    return np.array(found["mAP"], np.float64)

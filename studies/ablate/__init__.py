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
  newsembed ablate --data work --suite all=benchmarks --output ablation --print_commands      # a command for each model

On a cluster, all machines must see the folder of --output. With --print_commands the study mines, pretrains what the
rows share, and prints the commands of the other trainings, which run at the same time. A training that needs several
machines is started by `newsembed launch … -- --gin_file=DIR/rows/ROW/seed-0/run.gin`. The same command without
--print_commands then finds them trained, evaluates them, and writes the table.
"""

import dataclasses
import functools
import os
import time
from collections.abc import Mapping, Sequence
from typing import Any, Final

from ...errors import InputError
from ...evaluation.benchmark import ALL_SUITES, Benchmark, chosen, suites
from ...evaluation.suites import run_manifest
from ...formats.command_line import option, several
from ..shared import study
from ..shared.mining import build_folder, mine_again
from ..shared.recipe import DEFAULTS, NEWSROOM_DEFAULTS, StudyOptions, filled, recipe_of
from ..shared.runs import LOG_FILE, Run, train_all, write_run_file
from ..shared.study import Outcome, Tools
from . import table as tables
from .report import Line, write_report
from .rows import Ablation
from .table import Table

_KMEANS_SEEDS: Final = 3


@dataclasses.dataclass(frozen=True, kw_only=True)
class AblateOptions(StudyOptions):
    """The options of ``newsembed ablate``."""

    data: str | None = option(
        None,
        "work folder of `newsembed build`, of which the tables ast, okura, simlte, ntdv and tmde need some jobs only; "
        "not with --newsroom",
        metavar="DIR",
    )
    table: str = option("newsembed", f"the ablation: {', '.join(tables.names())}, or a file my_table.toml")
    rows: str = option("all", "rows to compare with the first, joined by commas", metavar="NAME,…")
    suite: tuple[str, ...] = option(
        (), "benchmarks as for `newsembed evaluate`, such as events=heldout.jsonl", metavar="SUITE=PATH", many=True
    )
    translation_models: tuple[str, ...] = option(
        (), "as for the build, for rows whose examples are made again", metavar="DIR", many=True
    )
    bitext: tuple[str, ...] = several(
        "translation pairs, for tables that train on them; see `newsembed translations --help`", "FILE"
    )
    bitext_encoder: str | None = option(
        None,
        "encoder, such as model:DIR, that finds translation pairs for the table supervision (default with --newsroom: "
        "a pretraining on the newsroom's own pairs)",
        metavar="ENCODER",
    )
    known_pairs: tuple[str, ...] = several(
        "known translations that determine the least margin of these pairs, in the formats of --bitext", "FILE"
    )


OPTIONS: Final = AblateOptions


def run(options: AblateOptions, tools: Tools | None = None) -> int:
    """Runs the command; returns 0 if every applicable row was scored with every seed, 1 if not."""
    started = time.monotonic()
    table = tables.load(options.table)
    rows = table.choose(options.rows)
    work, options = _filled(options, table)
    protocols = {"cross_publisher": options.cross_publisher, "seeds": _KMEANS_SEEDS} | dict(table.evaluation)
    benchmarks = _benchmarks(options.suite, protocols)
    tools = tools or Tools(mine=functools.partial(mine_again, beam_args=options.beam))
    given = {name: getattr(options, name) for name in ("translation_models", "bitext", "known_pairs")}
    output = os.path.abspath(options.output)
    ablation = Ablation(table, work, output, recipe_of(options), given, options.beam)
    if "@bitext_encoder" in table.sources:
        encoder = options.bitext_encoder or _pair_finder(ablation, options, tools)
        ablation = dataclasses.replace(ablation, given=given | {"bitext_encoder": (encoder,)})
    ablation.run_steps()
    reasons = {row.name: reason for row in rows if (reason := ablation.not_applicable(row))}
    score = None if options.print_commands else functools.partial(ablation.score, benchmarks=benchmarks, tools=tools)
    variants = [ablation.variant(row, tools) for row in rows if row.name not in reasons]
    outcomes = study.conduct(variants, ablation.recipe.seeds, score, options.parallel or 1, tools)
    if score is None:
        return study.tell(outcomes)
    by_name = {row.name: Outcome(row.name, {}) for row in rows} | {one.name: one for one in outcomes}
    lines = []
    for row in rows:
        outcome = by_name[row.name]
        examples = ablation.examples(row, outcome.jobs) if outcome.scores else {}
        lines.append(Line(row, outcome, reasons.get(row.name, ""), examples))
    seconds = round(time.monotonic() - started, 1)
    manifest = {**run_manifest(benchmarks, {}), "settings": ablation.facts(seconds)}
    text, statement, places = write_report(ablation, lines, manifest)
    print(f"{text}\n{statement} {seconds:.0f} s\n{places}")
    return 1 if any(one.problems for one in outcomes) else 0


def _filled(options: AblateOptions, table: Table) -> tuple[str, AblateOptions]:
    """The build, and the options with those of the newsroom and of the table."""
    if (options.newsroom is None) == (options.data is None):
        problem = "give either mined data or a newsroom"
        raise InputError(problem, field="--data, --newsroom", remedy="see `newsembed ablate --help`")
    defaults = {**DEFAULTS, "evaluations": 4, **table.defaults}
    if options.data is not None:
        return build_folder(options.data, table.build_jobs), filled(options, defaults)
    from ..shared import newsroom

    options = filled(options, {**NEWSROOM_DEFAULTS, "evaluations": 2, **table.newsroom_defaults}, defaults)
    places = newsroom.find_newsroom(options.newsroom or "", options.output, beam_args=options.beam)
    if not options.suite:
        for _, name in table.newsroom_suites:
            newsroom.write_set(places, name)
    suites = options.suite or tuple(f"{suite}={places.newsroom}/{name}" for suite, name in table.newsroom_suites)
    bitext = options.bitext or (places.bitext,)
    return places.work, dataclasses.replace(options, cross_publisher=True, suite=suites, bitext=bitext)


def _benchmarks(given: Sequence[str], options: Mapping[str, Any]) -> list[Benchmark]:
    """Benchmarks from ``SUITE=PATH``."""
    pairs = [suite.partition("=")[::2] for suite in given]
    kinds, known = [kind for kind, _ in pairs], [*suites(), ALL_SUITES]
    found: list[Benchmark] = []
    for kind, path in pairs:
        if kind not in known or not path:
            remedy = f"write SUITE=PATH with one of {', '.join(known)}"
            raise InputError(f"got {kind!r}", field="--suite", remedy=remedy)
        if not os.path.exists(path):
            raise InputError("no such file or folder", path=path, field="--suite", remedy="check the path")
        name = f"{kind} {os.path.basename(path)}" if kinds.count(kind) > 1 else kind
        found += chosen(kind, path, name, options)
    for benchmark in found:
        benchmark.documents()  # a wrong folder is an error before the trainings
    if not found:
        raise InputError("no benchmark", field="--suite", remedy="give at least one, such as events=heldout.jsonl")
    return found


def _pair_finder(ablation: Ablation, options: AblateOptions, tools: Tools) -> str:
    """Pretrains the encoder that finds translation pairs on a newsroom, on the pairs of its build; returns its SPEC."""
    if options.newsroom is None:
        remedy = "name an encoder of sentences in several languages, such as model:DIR or st:DIR"
        raise InputError("not given", field="--bitext_encoder", remedy=remedy)
    folders = {job: f"{ablation.work}/{job}" for job in ("pack", "vocabulary")}
    made: Run = ablation.recipe.pretraining(f"{ablation.output}/pair_finder", folders, 0)
    write_run_file(made)
    if problems := train_all([made], 1, tools.trainer, tools.say):
        problem = f"the encoder that finds translation pairs was not trained: {problems[made.folder]}"
        path, remedy = f"{made.folder}/{LOG_FILE}", "read the log, or give --bitext_encoder"
        raise InputError(problem, path=path, remedy=remedy)
    return f"model:{made.model}"

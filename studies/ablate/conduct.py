"""Performs an ablation: mines, pretrains, trains and evaluates every row; a failure stops no other row."""

import dataclasses
import functools
from collections.abc import Mapping, Sequence
from typing import Final, Literal

from ...evaluation.benchmark import Benchmark
from ...evaluation.results import Result
from ..shared.mining import count
from ..shared.runs import Run, evaluate_encoder, evaluate_run, overall_metrics, overall_scores, training_seconds
from ..shared.tools import Tools, attempt, train_runs
from .plan import Settings, mine_row, not_applicable, pretraining, runs_before, training
from .table import Row, Table
from .zscores import Cell

Status = Literal["ok", "failed", "not applicable"]
OK: Final = "ok"


@dataclasses.dataclass(frozen=True)
class RowResult:
    """The outcome of a row.

    Attributes:
      status: "ok" if at least one seed was scored; "failed" if none was; "not applicable" if there is nothing to
        remove.
      reason: why the whole row failed or is not applicable.
      problems: what went wrong, by seed.
      scores: of each scored seed: one number by (step, benchmark).
      metrics: the metric of that number, by benchmark.
      examples: number of training examples by task.
      results: of the benchmarks at the last step, by seed.
      seconds: wall time of its trainings and of its own pretraining.
    """

    row: Row
    status: Status
    reason: str = ""
    problems: Mapping[int, str] = dataclasses.field(default_factory=dict)
    scores: Mapping[int, Mapping[Cell, float]] = dataclasses.field(default_factory=dict)
    metrics: Mapping[str, str] = dataclasses.field(default_factory=dict)
    examples: Mapping[str, int] = dataclasses.field(default_factory=dict)
    results: Mapping[int, Sequence[Result]] = dataclasses.field(default_factory=dict)
    seconds: float = 0.0


def prepare(
    settings: Settings, rows: Sequence[Row], parallel: int, tools: Tools
) -> tuple[dict[str, dict[str, str]], dict[str, str]]:
    """Mines the data of all rows and runs the trainings that rows share: of pretraining, and of parts.

    Returns:
      The folders of the jobs by row, and what went wrong: by row for mining, by folder for a pretraining.
    """
    folders, problems = _mine(settings, rows, tools)
    shared = _pretrainings(settings, [row for row in rows if row.start != "own" and row.name in folders])
    return folders, problems | train_runs(shared, parallel, tools)


def conduct(
    settings: Settings,
    rows: Sequence[Row],
    benchmarks: Sequence[Benchmark],
    parallel: int,
    tools: Tools,
    command: Sequence[str] = (),
) -> list[RowResult]:
    """Mines, trains and evaluates whatever is not finished yet for these rows.

    All trainings run before the first evaluation, because this process holds the accelerator once it evaluates.

    Args:
      settings: see :class:`~.plan.Settings`.
      rows: in the order of the result.
      benchmarks: with distinct names.
      parallel: trainings at a time.
      tools: see :class:`~..shared.tools.Tools`.
      command: the command line, for the manifests of the evaluations.
    """
    reasons = {row.name: reason for row in rows if (reason := not_applicable(row, settings))}
    chosen = [row for row in rows if row.name not in reasons]
    folders, problems = _mine(settings, chosen, tools)
    mined = [row for row in chosen if row.name in folders]
    problems |= train_runs(_pretrainings(settings, mined), parallel, tools)
    trained = [row for row in mined if not row.encoder]
    runs = {
        (row.name, seed): training(settings, row, seed, folders[row.name]) for row in trained for seed in settings.seeds
    }
    ready = [run for (name, seed), run in runs.items() if not _before(settings, name, seed, mined, problems)]
    problems |= train_runs(ready, parallel, tools)
    results = []
    for row in rows:
        if row.name in reasons:
            results.append(RowResult(row, "not applicable", reasons[row.name]))
        elif row.name in problems:
            results.append(RowResult(row, "failed", problems[row.name]))
        else:
            score = _score_encoder if row.encoder else functools.partial(_score, runs=runs, problems=problems)
            found = score(settings, row, benchmarks=benchmarks, tools=tools, command=command)
            work, job = folders[row.name][row.data].rpartition("/")[::2]
            tasks = () if row.encoder else settings.table.counted
            examples = {task: count(work, job, "examples", f"{task}/") for task in tasks}
            results.append(dataclasses.replace(found, examples=examples))
    return results


def _mine(settings: Settings, rows: Sequence[Row], tools: Tools) -> tuple[dict[str, dict[str, str]], dict[str, str]]:
    folders, problems = {}, {}
    for row in rows:
        found, problem = attempt(functools.partial(mine_row, row, settings, tools.mine))
        if found is None:
            problems[row.name] = f"mining: {problem}"
            tools.say(f"{row.name}: {problems[row.name]}")
        else:
            folders[row.name] = found
    return folders, problems


def _pretrainings(settings: Settings, rows: Sequence[Row]) -> list[Run]:
    found = [run for row in rows for seed in settings.seeds for run in runs_before(settings, row, seed)]
    return list({run.folder: run for run in found}.values())


def _before(settings: Settings, name: str, seed: int, rows: Sequence[Row], problems: Mapping[str, str]) -> str:
    """What went wrong with the trainings that a seed of a row starts from; "" if nothing."""
    before = runs_before(settings, next(row for row in rows if row.name == name), seed)
    return "; ".join(problems[run.folder] for run in before if run.folder in problems)


def _evaluate(
    run: Run, benchmarks: Sequence[Benchmark], tools: Tools, command: Sequence[str], table: Table
) -> tuple[Mapping[Cell, float], Mapping[str, str], list[Result]]:
    results = evaluate_run(run, benchmarks, tools.make_encoder, command)
    last = [result for result in results.results if result.encoder == str(run.steps[-1])]
    chosen = (table.group, table.metric)
    return overall_scores(results, *chosen), overall_metrics(results, *chosen), last


def _score_encoder(
    settings: Settings, row: Row, benchmarks: Sequence[Benchmark], tools: Tools, command: Sequence[str]
) -> RowResult:
    """The scores of a row without training: the same for every seed and step."""
    folder, chosen = f"{settings.output}/rows/{row.name}", (settings.table.group, settings.table.metric)

    def evaluate() -> tuple[Mapping[Cell, float], Mapping[str, str], tuple[Result, ...]]:
        results = evaluate_encoder(folder, row.encoder, benchmarks, command)
        return overall_scores(results, *chosen), overall_metrics(results, *chosen), results.results

    found, problem = attempt(evaluate)
    tools.say(f"{row.name}: {problem or 'evaluated'}")
    if found is None:
        return RowResult(row, "failed", f"evaluation: {problem}")
    scores, metrics, results = found
    cells = {(str(step), name): score for step in settings.recipe.evaluated for (_, name), score in scores.items()}
    seeds = settings.seeds
    return RowResult(row, "ok", "", {}, dict.fromkeys(seeds, cells), metrics, results=dict.fromkeys(seeds, results))


def _score(
    settings: Settings,
    row: Row,
    runs: Mapping[tuple[str, int], Run],
    benchmarks: Sequence[Benchmark],
    problems: Mapping[str, str],
    tools: Tools,
    command: Sequence[str],
) -> RowResult:
    scores: dict[int, Mapping[Cell, float]] = {}
    wrong: dict[int, str] = {}
    metrics: Mapping[str, str] = {}
    results: dict[int, Sequence[Result]] = {}
    seconds = 0.0
    for seed in settings.seeds:
        run = runs[row.name, seed]
        before = pretraining(settings, row, seed)
        seconds += training_seconds(run) + (training_seconds(before) if before and row.start == "own" else 0.0)
        pretraining_problem = _before(settings, row.name, seed, [row], problems)
        if pretraining_problem or run.folder in problems:
            wrong[seed] = (
                f"pretraining: {pretraining_problem}" if pretraining_problem else f"training: {problems[run.folder]}"
            )
            continue
        found, problem = attempt(functools.partial(_evaluate, run, benchmarks, tools, command, settings.table))
        if found is None:
            wrong[seed] = f"evaluation: {problem}"
        else:
            scores[seed], metrics, results[seed] = found
        tools.say(f"{row.name}, seed {seed}: {wrong.get(seed, 'evaluated')}")
    status: Status = "ok" if scores else "failed"
    return RowResult(row, status, "", wrong, scores, metrics, results=results, seconds=round(seconds, 1))

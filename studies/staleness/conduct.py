"""Mines, pretrains, trains and evaluates a model for each cutoff and one on all documents; a failure stops no other."""

import dataclasses
import functools
import json
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from ...errors import InputError
from ...evaluation.benchmark import Benchmark
from ...evaluation.encoders import encode_checked
from ...evaluation.intervals import FloatArray
from ...evaluation.retrieval import SameEventRetrieval
from ...evaluation.suites import benchmark_facts
from ..shared.arguments import write_text
from ..shared.mining import Change, changed, count, mine_again, same
from ..shared.recipe import Recipe
from ..shared.runs import EncoderMaker, Run, training_seconds
from ..shared.tools import Tools, attempt, train_runs
from .cutoffs import Cutoff, first_day

FRESH: Final = "fresh"
_SCORES: Final = "queries.json"


@dataclasses.dataclass(frozen=True)
class Settings:
    """The data and the recipe of a staleness study.

    Attributes:
      work: the build whose articles are used.
      output: folder of the study, absolute.
      recipe: of every training.
      cutoffs: ascending.
      window_months: number of months up to the cutoff whose articles are used; None for all.
      given: the user's inputs to mining, by name.
    """

    work: str
    output: str
    recipe: Recipe
    cutoffs: tuple[Cutoff, ...]
    window_months: int | None = None
    given: Mapping[str, tuple[str, ...]] = dataclasses.field(default_factory=dict)

    @property
    def names(self) -> list[str]:
        """The names of all models: the cutoffs, then the fresh one."""
        return [*(cutoff.name for cutoff in self.cutoffs), FRESH]

    def changes(self, name: str) -> dict[str, Change]:
        """The changes of mining options for the data of a model.

        The data of the fresh model differ from the build's at most in their translation pairs.
        """
        if name == FRESH:
            return {"pack": same}
        cutoff = next(cutoff for cutoff in self.cutoffs if cutoff.name == name)
        first = first_day(cutoff, self.window_months)
        return {"clean": changed(latest_date=cutoff.last_day, **({"earliest_date": first} if first else {}))}


@dataclasses.dataclass(frozen=True)
class ModelResult:
    """The outcome of the model of a cutoff, or of the fresh one.

    Attributes:
      problems: what went wrong, by seed or "mining".
      scores: average precision of each query, ``[N]`` by seed; NaN if a query has no relevant candidate.
      examples: number of training examples by task.
      seconds: wall time of all its trainings.
    """

    name: str
    problems: Mapping[str, str]
    scores: Mapping[int, FloatArray]
    examples: Mapping[str, int]
    seconds: float = 0.0


def mine(settings: Settings, name: str, mining: Callable[..., dict[str, str]] = mine_again) -> dict[str, str]:
    """The folder of every job for a model.

    Raises:
      InputError: from the jobs, or if no triplet is left.
    """
    jobs = mining(settings.work, f"{settings.output}/cutoffs/{name}/data", settings.changes(name), settings.given)
    if not _examples(jobs)["triplets"]:
        raise InputError(
            "no triplets are left",
            path=jobs["examples"],
            field="--cutoffs",
            remedy="choose a later cutoff: a negative is a year away from its anchor",
        )
    return jobs


def _examples(jobs: Mapping[str, str]) -> dict[str, int]:
    work, _, job = jobs["examples"].rpartition("/")
    return {task: count(work, job, "examples", f"{task}/") for task in ("triplets", "topics")}


def conduct(
    settings: Settings, names: Sequence[str], benchmark: SameEventRetrieval | None, parallel: int, tools: Tools
) -> list[ModelResult]:
    """Mines, trains and evaluates whatever is not finished yet for these models.

    Args:
      settings: see :class:`Settings`.
      names: cutoffs and ``FRESH``.
      benchmark: the held-out documents; None only mines and writes the run files.
      parallel: trainings at a time.
      tools: see :class:`~..shared.tools.Tools`.
    """
    jobs: dict[str, dict[str, str]] = {}
    problems: dict[str, str] = {}
    for name in names:
        found, problem = attempt(functools.partial(mine, settings, name, tools.mine))
        if found is None:
            problems[name] = problem
            tools.say(f"{name}: mining failed: {problem}")
        else:
            jobs[name] = found
    runs = {
        (name, seed): _runs(settings, name, seed, jobs[name])
        for name in names
        if name in jobs
        for seed in range(settings.recipe.seeds)
    }
    if benchmark is None:
        train_runs(
            [run for pair in runs.values() for run in pair],
            parallel,
            dataclasses.replace(tools, trainer=lambda _run, _cores: ""),
        )
        return [ModelResult(name, {"mining": problems[name]} if name in problems else {}, {}, {}) for name in names]
    problems |= train_runs([first for first, _ in runs.values()], parallel, tools)
    problems |= train_runs([second for first, second in runs.values() if first.folder not in problems], parallel, tools)
    return [_score(settings, name, runs, jobs.get(name), benchmark, problems, tools) for name in names]


def _runs(settings: Settings, name: str, seed: int, jobs: Mapping[str, str]) -> tuple[Run, Run]:
    folder = f"{settings.output}/cutoffs/{name}/seed-{seed}"
    before = settings.recipe.pretraining(f"{folder}/pretrained", jobs, seed)
    return before, settings.recipe.training(folder, jobs, seed, before.model)


def _score(
    settings: Settings,
    name: str,
    runs: Mapping[tuple[str, int], tuple[Run, Run]],
    jobs: Mapping[str, str] | None,
    benchmark: SameEventRetrieval,
    problems: Mapping[str, str],
    tools: Tools,
) -> ModelResult:
    if jobs is None:
        return ModelResult(name, {"mining": problems[name]}, {}, {})
    wrong: dict[str, str] = {}
    scores: dict[int, FloatArray] = {}
    seconds = 0.0
    for seed in range(settings.recipe.seeds):
        before, run = runs[name, seed]
        seconds += training_seconds(before) + training_seconds(run)
        problem = problems.get(before.folder) or problems.get(run.folder)
        if not problem:
            found, problem = attempt(functools.partial(query_scores, run, benchmark, tools.make_encoder))
            if found is not None:
                scores[seed] = found
        if problem:
            wrong[f"seed {seed}"] = problem
        tools.say(f"{name}, seed {seed}: {problem or 'evaluated'}")
    return ModelResult(name, wrong, scores, _examples(jobs), round(seconds, 1))


def query_scores(run: Run, benchmark: SameEventRetrieval, make_encoder: EncoderMaker) -> FloatArray:
    """Average precision of each document as a query by the last checkpoint, ``[N]``; reused for the same documents."""
    path, facts = f"{run.folder}/{_SCORES}", _facts(benchmark)
    if os.path.exists(path):
        with open(path, encoding="utf-8") as file:
            found = json.load(file)
        if found["benchmark"] == facts:
            return np.array([np.nan if value is None else value for value in found["mAP"]], np.float64)
    encoded = encode_checked(make_encoder(run, run.steps[-1]), benchmark.documents())
    values = benchmark.query_scores(encoded.embeddings)["mAP"]
    write_text(
        path, json.dumps({"benchmark": facts, "mAP": [None if np.isnan(value) else float(value) for value in values]})
    )
    return values


def _facts(benchmark: Benchmark) -> dict[str, Any]:
    return {**benchmark_facts([benchmark])[benchmark.name]}

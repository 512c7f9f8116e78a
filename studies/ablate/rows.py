"""The data and the trainings of each row of an ablation, and its scores."""

import dataclasses
import functools
import os
import tempfile
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ...beam_pipelines.jobs import execute
from ...beam_pipelines.progress import JobProgress
from ...beam_pipelines.workflow import Step, load_job
from ...errors import InputError
from ...evaluation.benchmark import Benchmark, Results
from ...evaluation.suites import RESULTS_FILE, benchmark_facts, read_results, run_suites, write_results
from ...formats.manifest import read_manifest
from ..shared.mining import affected, built_options, count, jobs_that_ran, mine_again, missing_inputs, options_of
from ..shared.recipe import Recipe
from ..shared.runs import Run
from ..shared.study import Tools, Variant
from .table import Row, Table


@dataclasses.dataclass(frozen=True)
class Ablation:
    """The data and the recipe of an ablation.

    Attributes:
      table: the rows and how they are reported.
      work: the build.
      output: folder of the study, absolute.
      recipe: of every training.
      given: the user's inputs to mining, by name.
      beam: Beam's own options, for the jobs of the table.
    """

    table: Table
    work: str
    output: str
    recipe: Recipe
    given: Mapping[str, tuple[str, ...]] = dataclasses.field(default_factory=dict)
    beam: tuple[str, ...] = ()

    @property
    def jobs(self) -> dict[str, str]:
        """The folders of the jobs of the build and of the table, by job."""
        own = {step.job: f"{self.output}/data/{step.job}" for step in self.table.steps}
        return {job: f"{self.work}/{job}" for job in jobs_that_ran(self.work)} | own

    def run_steps(self) -> None:
        """Runs the jobs of the table that are not part of the build; finished ones are skipped."""
        for step in self.table.steps:
            self._run_step(step, self.jobs)

    def _run_step(self, step: Step, jobs: Mapping[str, str], changes: Mapping[str, Any] | None = None) -> None:
        """Runs a job of the table on the folders of other jobs, with the table's options and some changes."""
        inputs = {
            name: self.given.get(source[1:], ()) if source.startswith("@") else (jobs[source],)
            for name, source in step.inputs.items()
        }
        own = {**self.table.options.get(step.job, {}), **(changes or {})}
        keeps = self.table.keeps_options and step.job in jobs_that_ran(self.work)
        job = load_job(step.job)
        options = built_options(self.work, step.job, own) if keeps else options_of(job, own)
        with JobProgress(step.job) as progress:
            execute(job, inputs, jobs[step.job], options, self.beam, progress)

    def not_applicable(self, row: Row) -> str:
        """Why the row would equal the control on these data; "" if it does not."""
        for job, section, prefix in row.needs:
            if not count(self.jobs[job], section, prefix):
                return f"nothing to remove: the {job} job counts no {prefix.rstrip('/')}"
        return ""

    def mine(self, row: Row, mine: Callable[..., dict[str, str]] = mine_again) -> dict[str, str]:
        """The folder of every job for a row: the study's, or that of a job which runs again with the row's changes."""
        own = {step.job for step in self.table.steps}
        changes = {job: values for job, values in row.mining.items() if job not in own}
        output, jobs = f"{self.output}/data/{row.name}", self.jobs
        if changes:
            missing_inputs(self.work, affected(changes, row.keeps), self.given, row.not_needed)
            given = {name: paths for name, paths in self.given.items() if name not in row.not_needed}
            mined = mine(self.work, output, changes, given, keeps=row.keeps)
            jobs |= {job: folder for job, folder in mined.items() if job not in own}
        again = {*row.mining, *affected(changes, row.keeps)}
        for step in self.table.steps:
            if again & {step.job, *step.sources()} and step.job not in row.keeps:
                again.add(step.job)
                jobs[step.job] = f"{output}/{step.job}"
                self._run_step(step, jobs, row.mining.get(step.job))
        return jobs

    def runs(self, row: Row, seed: int, jobs: Mapping[str, str]) -> list[Run]:
        """The trainings that a row starts from with a seed, and last its own; none of a row that is not trained."""
        if row.encoder:
            return []
        recipe, lines, folder = self.recipe, row.lines, f"{self.output}/rows/{row.name}/seed-{seed}"
        before: list[Run] = []
        if row.start == "own":
            before.append(recipe.pretraining(f"{folder}/pretrained", jobs, seed, lines))
            lines = []
        elif row.start == "shared":
            before.append(recipe.pretraining(f"{self.output}/pretrained/seed-{seed}", self.jobs, seed, is_shared=True))
        parts = {
            name: recipe.pretraining(
                f"{self.output}/parts/{name}/seed-{seed}", self.jobs, seed, bindings, data=row.data, is_shared=True
            )
            for name, bindings in self.table.parts.items()
        }
        initial = {name: run.model for name, run in parts.items()} or (before[0].model if before else None)
        return [*before, *parts.values(), recipe.training(folder, jobs, seed, initial, lines, row.data)]

    def variant(self, row: Row, tools: Tools) -> Variant:
        """A row for the runner."""
        return Variant(row.name, functools.partial(self.mine, row, tools.mine), functools.partial(self.runs, row))

    def examples(self, row: Row, jobs: Mapping[str, str]) -> dict[str, int]:
        """Numbers of the examples that a row is trained on, by task."""
        return {
            task: 0 if row.encoder else count(jobs[row.data], "examples", f"{task}/") for task in self.table.counted
        }

    def score(self, name: str, run: Run | None, benchmarks: Sequence[Benchmark], tools: Tools) -> Results:
        """The scores of a row at every step that is evaluated, also of one that is not trained: the same at each step.

        Those of a training are reused if the benchmarks have not changed.
        """
        from ...evaluation.command import encoder_factory
        from ...serving import factories

        if run is None:
            spec, folder = self.table.row(name).encoder, f"{self.output}/rows/{name}/evaluation"
            makers, specs = {spec: encoder_factory(spec, factories())}, {spec: spec}
        else:
            folder = f"{run.folder}/evaluation"
            makers = {str(step): functools.partial(tools.make_encoder, run, step) for step in run.steps}
            specs = {step: f"model:{run.model}@{step}" for step in makers}
        found = read_results(folder) if run and os.path.exists(f"{folder}/{RESULTS_FILE}") else Results((), {})
        facts = (found.manifest.get("benchmarks"), [*found.manifest.get("encoders", ())])
        if found.failed or facts != (benchmark_facts(benchmarks), [*makers]):
            with tempfile.TemporaryDirectory() as cache:  # benchmarks may share documents
                found = run_suites(makers, benchmarks, cache=cache, specs=specs)
            write_results(found, folder)
        if found.failed:
            one = found.failed[0]
            raise InputError(f"step {one.encoder} on {one.benchmark}: {one.error}")
        if run:
            return found
        steps = map(str, self.recipe.evaluated)
        repeated = (dataclasses.replace(result, encoder=step) for step in steps for result in found.results)
        return Results(tuple(repeated), found.manifest)

    def facts(self, seconds: float) -> dict[str, Any]:
        """The settings as JSON values, for the manifest."""
        jobs = ["vocabulary", *(step.job for step in self.table.steps)]
        if self.table.build_jobs is None:
            jobs = ["vocabulary", "pack", "triplets", "examples"]
        digests = {job: read_manifest(self.jobs[job])["digest"] for job in jobs}
        return {"seconds": seconds, "table": self.table.name, **self.recipe.facts(), "data": digests}

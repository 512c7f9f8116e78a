"""The data, the pretraining and the training of each row and seed."""

import dataclasses
from collections.abc import Callable, Mapping

from ...beam_pipelines.jobs import execute
from ...beam_pipelines.progress import JobProgress
from ...beam_pipelines.workflow import Step, load_job
from ..shared.mining import Change, affected, count, jobs_that_ran, mine_again, missing_inputs, options_of
from ..shared.recipe import Recipe
from ..shared.runs import Run
from .table import Row, Table


@dataclasses.dataclass(frozen=True)
class Settings:
    """The data and the recipe of an ablation.

    Attributes:
      table: the rows and how they are reported.
      work: the build.
      output: folder of the study, absolute.
      recipe: of every training.
      pretrained: an absolute model folder that every seed starts from; "" pretrains one for each seed.
      given: the user's inputs to mining, by name.
      beam: Beam's own options, for the jobs of the table.
    """

    table: Table
    work: str
    output: str
    recipe: Recipe
    pretrained: str = ""
    given: Mapping[str, tuple[str, ...]] = dataclasses.field(default_factory=dict)
    beam: tuple[str, ...] = ()

    @property
    def seeds(self) -> range:
        """The seeds of every row."""
        return range(self.recipe.seeds)

    @property
    def jobs(self) -> dict[str, str]:
        """The folders of the jobs of the build and of the table, by job."""
        own = {step.job: f"{self.output}/data/{step.job}" for step in self.table.steps}
        return {job: f"{self.work}/{job}" for job in jobs_that_ran(self.work)} | own


def run_steps(settings: Settings) -> None:
    """Runs the jobs of the table that are not part of the build; finished ones are skipped.

    Raises:
      InputError: from the first job that fails.
    """
    for step in settings.table.steps:
        _run_step(step, settings, settings.jobs, settings.jobs[step.job])


def _run_step(
    step: Step, settings: Settings, jobs: Mapping[str, str], output: str, change: Change | None = None
) -> None:
    """Runs a job of the table on the folders of other jobs, with the table's options or a change of them."""
    inputs = {
        name: settings.given.get(source[1:], ()) if source.startswith("@") else (jobs[source],)
        for name, source in step.inputs.items()
    }
    job = load_job(step.job)
    options = settings.table.options.get(step.job)
    if options is None and settings.table.keeps_options and step.job in jobs_that_ran(settings.work):
        options = options_of(settings.work, step.job)
    if change is not None:
        options = change(job.options() if options is None else options)
    with JobProgress(step.job) as progress:
        execute(job, inputs, output, options, settings.beam, progress, progress.say)


def not_applicable(row: Row, settings: Settings) -> str:
    """Why the row would equal the control on these data; "" if it does not."""
    for need in row.needs:
        folder, _, job = settings.jobs[need.job].rpartition("/")
        if not count(folder, job, need.section, need.prefix):
            return f"nothing to remove: the {need.job} job counts no {need.prefix.rstrip('/')}"
    return ""


def mine_row(row: Row, settings: Settings, mine: Callable[..., dict[str, str]] = mine_again) -> dict[str, str]:
    """The folder of every job for a row: the study's, or that of a job which runs again with the row's changes.

    Raises:
      InputError: from the jobs, or if an input of theirs is not given again.
    """
    own = {step.job for step in settings.table.steps}
    changes = {job: change for job, change in row.mining.items() if job not in own}
    output, jobs = f"{settings.output}/data/{row.name}", settings.jobs
    if changes:
        missing_inputs(settings.work, affected(list(changes), row.keeps), settings.given, row.not_needed)
        given = {name: paths for name, paths in settings.given.items() if name not in row.not_needed}
        mined = mine(settings.work, output, changes, given, keeps=row.keeps)
        jobs |= {job: folder for job, folder in mined.items() if job not in own}
    again = {*row.mining, *affected(list(changes), row.keeps)}
    for step in settings.table.steps:
        if again & {step.job, *step.sources()} and step.job not in row.keeps:
            again.add(step.job)
            jobs |= {step.job: f"{output}/{step.job}"}
            _run_step(step, settings, jobs, jobs[step.job], row.mining.get(step.job))
    return jobs


def pretraining(settings: Settings, row: Row, seed: int) -> Run | None:
    """The pretraining that a row starts from with a seed; None if this study does not pretrain for it."""
    recipe = settings.recipe
    if row.encoder:
        return None
    if row.start == "own":
        return recipe.pretraining(f"{_folder(settings, row, seed)}/pretrained", settings.jobs, seed, row.gin_file)
    if row.start == "none" or settings.pretrained:
        return None
    return recipe.pretraining(f"{settings.output}/pretrained/seed-{seed}", settings.jobs, seed)


def part_runs(settings: Settings, row: Row, seed: int) -> dict[str, Run]:
    """The trainings of the models that are parts of a row's model with a seed, by part; rows share them."""
    if row.encoder:
        return {}
    pretraining, jobs = settings.recipe.pretraining, settings.jobs
    return {
        name: pretraining(f"{settings.output}/parts/{name}/seed-{seed}", jobs, seed, None, row.data, bindings)
        for name, bindings in settings.table.parts.items()
    }


def runs_before(settings: Settings, row: Row, seed: int) -> list[Run]:
    """All trainings that a row's training with a seed starts from."""
    before = pretraining(settings, row, seed)
    return [*([before] if before else []), *part_runs(settings, row, seed).values()]


def training(settings: Settings, row: Row, seed: int, jobs: Mapping[str, str]) -> Run:
    """The training of a row with a seed on the folders of its jobs."""
    before = pretraining(settings, row, seed)
    given = None if row.start == "none" else settings.pretrained or None
    parts = {name: run.model for name, run in part_runs(settings, row, seed).items()}
    return settings.recipe.training(
        _folder(settings, row, seed),
        jobs,
        seed,
        parts or (before.model if before else given),
        None if row.start == "own" else row.gin_file,
        row.data,
    )


def _folder(settings: Settings, row: Row, seed: int) -> str:
    return f"{settings.output}/rows/{row.name}/seed-{seed}"

"""From options to runs: the data of each row, its pretraining and its training, by row and seed."""

import dataclasses
from collections.abc import Callable, Mapping, Sequence

from ...beam_pipelines.workflow import STEPS
from ...errors import InputError
from ..shared.mining import affected, count, mine_again, missing_inputs
from ..shared.recipe import Recipe
from ..shared.runs import Run
from .rows import ROWS, Row


@dataclasses.dataclass(frozen=True)
class Settings:
    """What an ablation trains on and how.

    Attributes:
      work: the build.
      output: folder of the study, absolute.
      recipe: of every training.
      pretrained: an absolute model folder that every seed starts from; "" pretrains one for each seed.
      given: the user's inputs to mining, by name.
    """

    work: str
    output: str
    recipe: Recipe
    pretrained: str = ""
    given: Mapping[str, tuple[str, ...]] = dataclasses.field(default_factory=dict)

    @property
    def seeds(self) -> range:
        return range(self.recipe.seeds)

    @property
    def jobs(self) -> dict[str, str]:
        """The build's folders by job."""
        return {step.job: f"{self.work}/{step.job}" for step in STEPS}


def not_applicable(row: Row, work: str) -> str:
    """Why the row says nothing on these data, "" if it does."""
    for need in row.needs:
        if not count(work, need.job, need.section, need.prefix):
            return f"nothing to remove: the {need.job} job counts no {need.prefix.rstrip('/')}"
    return ""


def mine_row(row: Row, settings: Settings, mine: Callable[..., dict[str, str]] = mine_again) -> dict[str, str]:
    """The folder of every job for a row: the build's, or mined again where the row says so.

    Raises:
      InputError: from the jobs, or where an input of theirs is not given again.
    """
    if not row.mining:
        return settings.jobs
    # Without translation there are no models to load.
    exempt = ("translation_models",) if row.name == "without_translation" else ()
    missing_inputs(settings.work, affected(list(row.mining)), settings.given, exempt)
    given = {name: paths for name, paths in settings.given.items() if name not in exempt}
    return mine(settings.work, f"{settings.output}/data/{row.name}", row.mining, given)


def pretraining(settings: Settings, row: Row, seed: int) -> Run | None:
    """The pretraining that a row starts from with a seed, None if it needs none of ours."""
    if row.phase == "pretrain":
        return settings.recipe.pretraining(
            f"{_folder(settings, row, seed)}/pretrained", settings.jobs, seed, row.gin_file
        )
    if row.name == "without_pretraining" or settings.pretrained:
        return None
    return settings.recipe.pretraining(f"{settings.output}/pretrained/seed-{seed}", settings.jobs, seed)


def training(settings: Settings, row: Row, seed: int, jobs: Mapping[str, str]) -> Run:
    """The training of a row with a seed on its data."""
    before = pretraining(settings, row, seed)
    initial = before.model if before else settings.pretrained or None
    return settings.recipe.training(
        _folder(settings, row, seed), jobs, seed, initial, row.gin_file if row.phase == "train" else None
    )


def _folder(settings: Settings, row: Row, seed: int) -> str:
    return f"{settings.output}/rows/{row.name}/seed-{seed}"


def check_rows(rows: Sequence[Row]) -> None:
    """Raises InputError if nothing but the full system is asked for."""
    if len(rows) < 2:
        raise InputError(
            "only the full system, which would be compared with nothing",
            field="--rows",
            remedy=f"add some of {', '.join(ROWS)}",
        )

"""The registry of objectives: the name of a task to the class of the objective that trains on it.

An objective is one file here or in a module of the user's, which a gin file imports: a frozen dataclass that extends
`Objective` and is decorated with `register`. It is then configurable by gin under the name of its class. The trainer
looks objectives up by task; it knows no class by name.
"""

from collections.abc import Iterable, Sequence
from typing import Final, TypeVar

import gin

from ...errors import InputError
from .base import DeviceBatch, Metrics, Model, Objective, Objectives, Pairs, continuation_pieces
from .contrastive import Contrastive
from .denoising import Denoising
from .distillation import Distillation
from .finetuning import Classification, QuestionAnswering
from .linking import Linking
from .masked_language import MaskedLanguageModel, MaskedTexts
from .topics import Topics
from .translation import BilingualTranslation, Translation

__all__ = [
    "ALTERNATIVES",
    "OBJECTIVES",
    "DeviceBatch",
    "Metrics",
    "Model",
    "Objective",
    "Objectives",
    "Pairs",
    "alternative",
    "continuation_pieces",
    "objectives_of",
    "register",
]

OBJECTIVES: Final[dict[str, type[Objective]]] = {}
# Objectives of tasks that have another by default; `train.objectives` names them.
ALTERNATIVES: Final[set[type[Objective]]] = set()

_O = TypeVar("_O", bound=type[Objective])


def register(objective_class: _O) -> _O:
    """Makes a class the objective of its tasks and configurable by gin; a decorator.

    Raises:
      ValueError: if another class serves one of these tasks.
    """
    for task in objective_class.tasks:
        if task in OBJECTIVES:
            raise ValueError(f"the task {task!r} has two objectives: {OBJECTIVES[task]} and {objective_class}")
    with gin.unlock_config():  # a run in this process may have locked it
        gin.register(objective_class)
    OBJECTIVES.update(dict.fromkeys(objective_class.tasks, objective_class))
    return objective_class


def alternative(objective_class: _O) -> _O:
    """Makes a class configurable by gin that trains its tasks only where `train.objectives` names it; a decorator."""
    with gin.unlock_config():
        gin.register(objective_class)
    ALTERNATIVES.add(objective_class)
    return objective_class


def objectives_of(tasks: Iterable[str], given: Sequence[Objective] = ()) -> dict[str, Objective]:
    """Returns the objective of each task; tasks that one class serves share one.

    Args:
      tasks: names of tasks.
      given: objectives that take the place of the registered ones, for the tasks that they serve.

    Raises:
      InputError: for a task without an objective, or one that two of `given` serve.
    """
    chosen: dict[str, Objective] = {}
    for objective in given:
        for task in objective.tasks:
            if task in chosen:
                raise InputError(
                    f"got two objectives for the task {task!r}: {type(chosen[task]).__name__} and "
                    f"{type(objective).__name__}",
                    field="train.objectives",
                    remedy="Name one objective for each task.",
                )
            chosen[task] = objective
    made: dict[type[Objective], Objective] = {}
    for task in sorted(set(tasks) - set(chosen)):
        if task not in OBJECTIVES:
            raise InputError(
                f"the task {task!r} has no objective; there are those of {', '.join(sorted(OBJECTIVES))}",
                field="train.objectives",
                remedy="Import the module that registers its objective in the gin file: import my_module.",
            )
        kind = OBJECTIVES[task]
        if kind not in made:
            made[kind] = gin.get_configurable(kind)()
        chosen[task] = made[kind]
    return {task: chosen[task] for task in sorted(set(tasks))}


for _objective_class in (MaskedLanguageModel, Contrastive, Topics, Translation, Classification, QuestionAnswering):
    register(_objective_class)
for _alternative in (BilingualTranslation, Denoising, Distillation, MaskedTexts, Linking):
    alternative(_alternative)

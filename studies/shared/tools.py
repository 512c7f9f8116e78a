"""The functions that do the work of a study, which tests replace; a failure is kept to its part of the study."""

import dataclasses
from collections.abc import Callable, Sequence
from typing import TypeVar

from ...errors import InputError
from .runs import EncoderMaker, Run, Trainer, load_checkpoint, train_all, train_in_process, write_run_file

T = TypeVar("T")


@dataclasses.dataclass(frozen=True)
class Tools:
    """Functions that mine, train, load an encoder, and print a line of progress."""

    mine: Callable[..., dict[str, str]]
    trainer: Trainer = train_in_process
    make_encoder: EncoderMaker = load_checkpoint
    say: Callable[[str], None] = print


def attempt(work: Callable[[], T]) -> tuple[T | None, str]:
    """The result of ``work``, or None and what went wrong: a failure must not end the study."""
    try:
        return work(), ""
    except InputError as error:
        return None, str(error)
    except Exception as error:  # noqa: BLE001 - whatever it was, it is shown
        return None, f"{type(error).__name__}: {error}"


def train_runs(runs: Sequence[Run], parallel: int, tools: Tools) -> dict[str, str]:
    """Writes the run files and runs the trainings that are not finished; returns what went wrong, by folder.

    Raises:
      InputError: if a folder has another training.
    """
    for run in runs:
        write_run_file(run)
    return train_all(runs, parallel, tools.trainer, tools.say)

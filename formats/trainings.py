"""The folders of trainings in an archive: ``trainings/NUMBER`` of finished ones, ``.training`` of the one in progress.

A finished training has the articles of its ``trial/``, perhaps ``model/``, and at last ``decision.json``.
"""

import json
import os
from typing import Any, Final

MODEL: Final = "model"  # of a training, or of the training in progress
TRIAL: Final = "trial"  # what a training was evaluated on
_TRAININGS: Final = "trainings"
_DECISION: Final = "decision.json"


def training_work(archive: str) -> str:
    """The folder of the training in progress."""
    return os.path.join(archive, ".training")


def training_folder(archive: str, number: int) -> str:
    """The folder of a finished training, from 1."""
    return os.path.join(archive, _TRAININGS, f"{number:06d}")


def trained_model(archive: str, number: int) -> str:
    """The model folder of a finished training."""
    return os.path.join(training_folder(archive, number), MODEL)


def decision_file(archive: str, number: int) -> str:
    """The file with the outcome of a training."""
    return os.path.join(training_folder(archive, number), _DECISION)


def trainings(archive: str) -> list[int]:
    """The numbers of the trainings that have a folder, ascending."""
    folder = os.path.join(archive, _TRAININGS)
    return sorted(int(name) for name in os.listdir(folder) if name.isdigit()) if os.path.isdir(folder) else []


def read_json(path: str) -> Any:
    """The value in a JSON file; None where there is no such file, or a run was cut off while it wrote it."""
    try:
        with open(path, "rb") as source:
            return json.loads(source.read())
    except (FileNotFoundError, ValueError):
        return None

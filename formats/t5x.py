"""The files of a T5X run (its MODEL_DIR), as far as newsembed writes or reads them.

A run of T5X with our models holds::

    config.gin                            the configuration, by T5X
    model.json, vocab.txt, tokenizer…     as in a model folder, see `model_folder`
    checkpoint_<step>/state               Orbax PyTree: {"target": parameters, "state": {"step", "param_states"}}
    checkpoint_<step>/dataset/train_ds-…  `DataPosition`, one file for each share of the data
    optimizer_state.json                  how the optimizer's state is nested: lists, dicts, "array", null for what has
                                          no arrays; T5X's own files have dicts only and leave out the empty parts
"""

import dataclasses
import json
import os
import re
from typing import Any, Final, Self

from ..errors import InputError

STATE: Final = "state"
DATASET: Final = "dataset"
PREFIX: Final = "checkpoint"
POSITION_FILE: Final = "train_ds-000-of-001"  # of a run of one process
ARRAY: Final = "array"
_STEP: Final = re.compile(rf"^{PREFIX}_(\d+)")
_VERSION: Final = 1


@dataclasses.dataclass(frozen=True)
class DataPosition:
    """A position in the training data.

    Attributes:
      batches: batches taken, which is the number of the next step.
      iterators: the state of the mixture's iterators, as checkpoints of our trainer hold it.
    """

    batches: int
    iterators: str

    def to_dict(self) -> dict[str, Any]:
        """Returns the JSON values of the file."""
        return {"format_version": _VERSION, "batches": self.batches, "iterators": self.iterators}

    def write(self, path: str) -> None:
        """Writes the file."""
        with open(path, "w", encoding="utf-8") as file:
            json.dump(self.to_dict(), file)

    @classmethod
    def read(cls, path: str) -> Self:
        """Reads the file.

        Raises:
          InputError: if it is missing or broken.
        """
        remedy = "Name a checkpoint of a run that saved its data (SaveCheckpointConfig.save_dataset = True)."
        try:
            with open(path, encoding="utf-8") as file:
                values: Any = json.load(file)
        except (OSError, ValueError) as error:
            raise InputError(f"got no position in the training data: {error}", path=path, remedy=remedy) from error
        is_known = isinstance(values, dict) and values.get("format_version") == _VERSION
        if not is_known or not isinstance(values.get("batches"), int) or not isinstance(values.get("iterators"), str):
            raise InputError("got no position in the training data", path=path, remedy=remedy)
        return cls(values["batches"], values["iterators"])


def step_of(path: str) -> int | None:
    """Returns the step of the checkpoint that a path is in, None outside of one.

    >>> step_of("/runs/a/checkpoint_20.orbax-checkpoint-tmp/dataset/train_ds-000-of-001")
    20
    """
    found = [match for part in path.split(os.sep) if (match := _STEP.match(part))]
    return int(found[-1][1]) if found else None


def steps(model_dir: str) -> list[int]:
    """Returns the steps of the complete checkpoints of a T5X run, ascending."""
    names = os.listdir(model_dir) if os.path.isdir(model_dir) else []
    return sorted(
        int(match[1])
        for name in names
        if (match := re.fullmatch(rf"{PREFIX}_(\d+)", name)) and os.path.isdir(os.path.join(model_dir, name, STATE))
    )


def checkpoint(model_dir: str, step: int) -> str:
    """Returns the folder of one checkpoint."""
    return os.path.join(model_dir, f"{PREFIX}_{step}")


def position_file(model_dir: str, step: int) -> str:
    """Returns the file of the position in the data of a run of one process."""
    return os.path.join(checkpoint(model_dir, step), DATASET, POSITION_FILE)


def skeleton_file(model_dir: str) -> str:
    """Returns the file that tells how the optimizer's state is nested."""
    return os.path.join(model_dir, "optimizer_state.json")


def write_skeleton(model_dir: str, skeleton: Any) -> None:
    """Writes how the optimizer's state is nested."""
    with open(skeleton_file(model_dir), "w", encoding="utf-8") as file:
        json.dump({"format_version": _VERSION, "opt_state": skeleton}, file, indent=1)


def read_skeleton(model_dir: str) -> Any:
    """Returns how the optimizer's state is nested; None where no file tells.

    Raises:
      InputError: if the file is broken.
    """
    path = skeleton_file(model_dir)
    remedy = "Restore the file from a copy; without it only the parameters can be converted."
    if not os.path.exists(path):
        return None
    try:
        with open(path, encoding="utf-8") as file:
            values: Any = json.load(file)
    except (OSError, ValueError) as error:
        raise InputError(f"got no description of an optimizer's state: {error}", path=path, remedy=remedy) from error
    if not isinstance(values, dict) or values.get("format_version") != _VERSION or "opt_state" not in values:
        raise InputError("got no description of an optimizer's state", path=path, remedy=remedy)
    return values["opt_state"]

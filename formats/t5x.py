"""Checkpoints written and read as nested arrays, ours and those of a T5X run (its MODEL_DIR).

A run of T5X with our models holds::

    config.gin                            the configuration, by T5X
    model.json, vocab.txt, tokenizer…     as in a model folder, see `model_folder`
    checkpoint_<step>/state               Orbax PyTree: {"target": parameters, "state": {"step", "param_states"}}
    checkpoint_<step>/dataset/train_ds-…  `DataPosition`, one file for each share of the data
    optimizer_state.json                  how the optimizer's state is nested: lists, dicts, "array", null for what has
                                          no arrays; T5X's own files have dicts only and leave out the empty parts
"""

import dataclasses
import os
import re
from collections.abc import Mapping
from typing import Any, Final, Self

from ..errors import InputError, reading
from .digests import write_sums
from .files import read_json, write_json
from .model_folder import ITERATORS, PARAMS, TRAINING, ModelFolder

STATE: Final = "state"
DATASET: Final = "dataset"
PREFIX: Final = "checkpoint"
POSITION_FILE: Final = "train_ds-000-of-001"  # of a run of one process
ARRAY: Final = "array"
_STEP: Final = re.compile(rf"^{PREFIX}_(\d+)")


@dataclasses.dataclass(frozen=True)
class DataPosition:
    """A position in the training data.

    Attributes:
      batches: batches taken, which is the number of the next step.
      iterators: the state of the mixture's iterators, as checkpoints of our trainer hold it.
    """

    batches: int
    iterators: str

    def write(self, path: str) -> None:
        """Writes the file."""
        write_json(path, dataclasses.asdict(self))

    @classmethod
    def read(cls, path: str) -> Self:
        """Reads the file.

        Raises:
          InputError: if it is missing or broken.
        """
        remedy = "Name a checkpoint of a run that saved its data (SaveCheckpointConfig.save_dataset = True)."
        values = read_json(path, remedy, dict)
        if not isinstance(values.get("batches"), int) or not isinstance(values.get("iterators"), str):
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
    write_json(skeleton_file(model_dir), {"opt_state": skeleton})


def read_skeleton(model_dir: str) -> Any:
    """Returns how the optimizer's state is nested; None where no file tells.

    Raises:
      InputError: if the file is broken.
    """
    path = skeleton_file(model_dir)
    remedy = "Restore the file from a copy; without it only the parameters can be converted."
    if not os.path.exists(path):
        return None
    values = read_json(path, remedy, dict)
    if "opt_state" not in values:
        raise InputError("got no description of an optimizer's state", path=path, remedy=remedy)
    return values["opt_state"]


def read_iterators(folder: ModelFolder, step: int) -> str:
    """Returns the position in the data of one of our checkpoints.

    Raises:
      InputError: if it cannot be read, or the positions of its processes differ.
    """
    import orbax.checkpoint as ocp

    path = os.path.join(folder.checkpoint(step), ITERATORS)
    remedy = "Choose another checkpoint; this one is broken."
    with reading(path, remedy, OSError), ocp.Checkpointer(ocp.JsonCheckpointHandler()) as checkpointer:
        values = checkpointer.restore(os.path.abspath(path), args=ocp.args.JsonRestore())
    if "state" not in values:
        problem = f"the positions of {len(values['states'])} processes differ, expected one for all"
        remedy = "Train with DataOptions.open_set = @GrainBatches, whose positions fit any number of processes."
        raise InputError(problem, path=path, remedy=remedy)
    return str(values["state"])


def write_checkpoint(folder: ModelFolder, step: int, params: Any, training: Any | None, iterators: str | None) -> None:
    """Writes a checkpoint of ours, with its digests.

    Args:
      folder: the model folder.
      step: steps done.
      params: nested, float32.
      training: {"step", "opt_state"}; None leaves it out: a run can start from the parameters, but not continue.
      iterators: the position in the data; None leaves it out.
    """
    import orbax.checkpoint as ocp

    items: dict[str, Any] = {PARAMS: ocp.args.StandardSave(params)}
    if training is not None and iterators is not None:
        items |= {TRAINING: ocp.args.StandardSave(training), ITERATORS: ocp.args.JsonSave({"state": iterators})}
    _save(folder.checkpoints, step, items, ocp.CheckpointManagerOptions(max_to_keep=None))
    write_sums(folder.checkpoint(step))


def write_t5x_checkpoint(model_dir: str, step: int, state: Any, position: DataPosition) -> None:
    """Writes a checkpoint of T5X.

    Args:
      model_dir: of T5X.
      step: steps done.
      state: {"target", "state"}, nested dicts of arrays.
      position: in the data.
    """
    import orbax.checkpoint as ocp

    handlers = {
        STATE: ocp.PyTreeCheckpointHandler(use_ocdbt=True),
        DATASET: ocp.JsonCheckpointHandler(filename=POSITION_FILE),
    }
    items = {STATE: ocp.args.PyTreeSave(state), DATASET: ocp.args.JsonSave(dataclasses.asdict(position))}
    _save(model_dir, step, items, ocp.CheckpointManagerOptions(max_to_keep=None, step_prefix=PREFIX), handlers)


def _save(
    folder: str, step: int, items: Mapping[str, Any], options: Any, handlers: Mapping[str, Any] | None = None
) -> None:
    """Writes one checkpoint; its folder appears under its name when it is complete."""
    import orbax.checkpoint as ocp

    os.makedirs(folder, exist_ok=True)
    kinds: dict[str, Any] = {"item_handlers": dict(handlers)} if handlers else {"item_names": tuple(items)}
    with ocp.CheckpointManager(os.path.abspath(folder), options=options, **kinds) as manager:
        if step in manager.all_steps():
            remedy = "Name another folder, or remove it."
            raise InputError(f"a checkpoint of step {step} is there", path=folder, remedy=remedy)
        manager.save(step, args=ocp.args.Composite(**items))
        manager.wait_until_finished()

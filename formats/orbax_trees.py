"""Orbax trees as nested lists and dicts of NumPy arrays, whatever devices saved them, and checkpoints of such trees."""

import os
from collections.abc import Mapping
from typing import Any

import numpy as np

from ..errors import InputError
from .digests import write_sums
from .model_folder import ITERATORS, PARAMS, TRAINING, ModelFolder
from .t5x import DATASET, POSITION_FILE, PREFIX, STATE, DataPosition


def read_tree(path: str) -> Any:
    """Returns a saved tree: dicts, lists and NumPy arrays, None for what has no arrays.

    Raises:
      InputError: if it cannot be read.
    """
    import jax
    import orbax.checkpoint as ocp

    remedy = "Choose another checkpoint; this one is broken."
    try:
        with ocp.PyTreeCheckpointer() as checkpointer:
            metadata = checkpointer.metadata(os.path.abspath(path)).item_metadata
            if metadata is None:
                raise InputError("no Orbax metadata", path=path, remedy=remedy)
            restore_args = jax.tree.map(lambda _: ocp.RestoreArgs(restore_type=np.ndarray), metadata.tree)
            return checkpointer.restore(os.path.abspath(path), ocp.args.PyTreeRestore(restore_args=restore_args))
    except (OSError, ValueError, KeyError) as error:
        raise InputError(f"no readable Orbax tree: {error}", path=path, remedy=remedy) from error


def read_iterators(folder: ModelFolder, step: int) -> str:
    """Returns the position in the data of one of our checkpoints.

    Raises:
      InputError: if it cannot be read, or the positions of its processes differ.
    """
    import orbax.checkpoint as ocp

    path = os.path.join(folder.checkpoint(step), ITERATORS)
    try:
        with ocp.Checkpointer(ocp.JsonCheckpointHandler()) as checkpointer:
            values = checkpointer.restore(os.path.abspath(path), args=ocp.args.JsonRestore())
    except (OSError, ValueError, KeyError) as error:
        raise InputError(f"no readable position in the data: {error}", path=path) from error
    if "state" not in values:
        raise InputError(
            f"the positions of {len(values['states'])} processes differ, expected one for all",
            path=path,
            remedy="Train with DataOptions.open_set = @GrainBatches, whose positions fit any number of processes.",
        )
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
    items = {STATE: ocp.args.PyTreeSave(state), DATASET: ocp.args.JsonSave(position.to_dict())}
    _save(model_dir, step, items, ocp.CheckpointManagerOptions(max_to_keep=None, step_prefix=PREFIX), handlers)


def _save(
    folder: str, step: int, items: Mapping[str, Any], options: Any, handlers: Mapping[str, Any] | None = None
) -> None:
    """Writes one checkpoint; its folder appears under its name when it is complete.

    Raises:
      InputError: if it is there.
    """
    import orbax.checkpoint as ocp

    os.makedirs(folder, exist_ok=True)
    kinds: dict[str, Any] = {"item_handlers": dict(handlers)} if handlers else {"item_names": tuple(items)}
    with ocp.CheckpointManager(os.path.abspath(folder), options=options, **kinds) as manager:
        if step in manager.all_steps():
            raise InputError(
                f"a checkpoint of step {step} is there", path=folder, remedy="Name another folder, or remove it."
            )
        manager.save(step, args=ocp.args.Composite(**items))
        manager.wait_until_finished()

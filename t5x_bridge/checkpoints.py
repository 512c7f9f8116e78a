"""Checkpoints both ways: one of ours goes on under T5X, and one of T5X under our trainer. Needs no T5X."""

import json
import os
import shutil
from typing import Any, Final

import numpy as np

from ..errors import InputError
from ..formats import t5x
from ..formats.digests import check_sums
from ..formats.model_folder import PARAMS, TRAINING, ModelFolder
from ..formats.orbax_trees import read_iterators, read_tree, write_checkpoint, write_t5x_checkpoint
from ..formats.t5x import DataPosition
from ..formats.vocabulary import read_vocabulary
from ..learning.model_files import check_same_model
from ..models.encoders import config_from_dict
from .trees import skeleton_of, with_lists, without_lists

_BATCHES: Final = "batches"  # where PATIENCE counts, the trainer saves its counts with the iterators' state


def to_t5x(model_dir: str, output: str, step: int | None) -> str:
    """Writes a checkpoint of ours as one of T5X, with optimizer, step and position in the data.

    T5X continues it with MODEL_DIR = `output` and otherwise the same gin values.

    Args:
      model_dir: our model folder.
      output: MODEL_DIR of T5X, created if need be.
      step: which checkpoint; None takes the last one.

    Returns:
      The folder of the checkpoint.

    Raises:
      InputError: for a checkpoint that is missing, cannot be read or changed; if `output` holds another model or a
        checkpoint of this step.
    """
    folder = ModelFolder(model_dir)
    step = _chosen(folder.steps(), step, folder.checkpoints)
    check_sums(folder.checkpoint(step), "Choose another checkpoint, or restore the file from a copy.")
    params = read_tree(os.path.join(folder.checkpoint(step), PARAMS))
    training = read_tree(os.path.join(folder.checkpoint(step), TRAINING))
    position = DataPosition(step, _iterators_alone(read_iterators(folder, step)))
    _describe(folder, output)
    t5x.write_skeleton(output, skeleton_of(training["opt_state"]))
    state = {"step": np.asarray(training["step"]), "param_states": without_lists(training["opt_state"])}
    write_t5x_checkpoint(output, step, {"target": params, "state": state}, position)
    return t5x.checkpoint(output, step)


def from_t5x(run: str, output: str, step: int | None = None) -> str:
    """Writes a checkpoint of T5X as one of ours.

    It has the optimizer and the position in the data where the run was one of the bridge with an optimizer of optax
    (`optimizer.OptaxOptimizer`), and our trainer continues it with MODEL_DIR = `output` and otherwise the same gin
    values. Else it has the parameters only, from which a run may start, and which can be exported.

    Args:
      run: MODEL_DIR of T5X.
      output: our model folder, created if need be.
      step: which checkpoint; None takes the last one.

    Returns:
      The folder of the checkpoint.

    Raises:
      InputError: for a checkpoint that is missing or cannot be read; if `output` holds another model or a checkpoint of
        this step.
    """
    step = _chosen(t5x.steps(run), step, run)
    saved = read_tree(os.path.join(t5x.checkpoint(run, step), t5x.STATE))
    skeleton, position = t5x.read_skeleton(run), t5x.position_file(run, step)
    training: Any = None
    iterators: str | None = None
    if skeleton is not None and os.path.exists(position):
        opt_state = with_lists(skeleton, saved["state"]["param_states"])
        training = {"step": np.asarray(saved["state"]["step"], np.int32), "opt_state": opt_state}
        iterators = DataPosition.read(position).iterators
    _describe(ModelFolder(run), output)
    write_checkpoint(ModelFolder(output), step, saved["target"], training, iterators)
    return ModelFolder(output).checkpoint(step)


def _chosen(steps: list[int], step: int | None, path: str) -> int:
    """The step asked for, or the last one.

    Raises:
      InputError: if there is none.
    """
    if not steps or (step is not None and step not in steps):
        known = ", ".join(map(str, steps)) or "none"
        raise InputError(f"got step {step}, expected a checkpoint of {known}", path=path)
    return steps[-1] if step is None else step


def _describe(source: ModelFolder, output: str) -> None:
    """Copies the description of a model; refuses a folder of another one.

    Raises:
      InputError: if it is missing, broken or another one.
    """
    description = source.read_description()
    vocabulary = read_vocabulary(source.vocabulary_file)
    source.check_vocabulary(description)
    target = ModelFolder(output)
    if target.is_described:
        config = config_from_dict(description.encoder, description.kind, path=source.description_file)
        check_same_model(output, config, vocabulary)
        return
    os.makedirs(output, exist_ok=True)
    target.write_description(description, vocabulary.content, vocabulary.tokenizer)
    if os.path.exists(source.config_file) and not os.path.exists(target.config_file):
        shutil.copyfile(source.config_file, target.config_file)


def _iterators_alone(state: str) -> str:
    values = json.loads(state)
    return str(values[_BATCHES]) if _BATCHES in values else state

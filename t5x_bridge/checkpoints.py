"""Checkpoints both ways: one of ours goes on under T5X, and one of T5X under our trainer. Needs no T5X.

An optimizer's state is nested otherwise in ours than in those of T5X, which have no lists.
"""

import json
import os
import shutil
from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from ..errors import InputError
from ..formats import t5x
from ..formats.digests import check_sums
from ..formats.model_folder import PARAMS, TRAINING, ModelFolder, read_tree
from ..formats.t5x import DataPosition, read_iterators, write_checkpoint, write_t5x_checkpoint
from ..formats.vocabulary import read_vocabulary
from ..learning.model_files import check_same_model
from ..models.encoders import config_from_dict

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


def skeleton_of(state: Any) -> Any:
    """Returns how a state is nested: lists, dicts, None for what has no arrays, "array".

    >>> import optax, jax.numpy as jnp
    >>> skeleton_of(optax.chain(optax.clip(1.0), optax.trace(0.9)).init({"w": jnp.zeros(2)}))
    [None, {'trace': {'w': 'array'}}]
    """
    if isinstance(state, tuple) and hasattr(state, "_fields"):  # a named tuple
        state = {name: getattr(state, name) for name in state._fields}
    if state is None or (isinstance(state, (Mapping, tuple, list)) and not state):
        return None
    if isinstance(state, Mapping):
        return {str(name): skeleton_of(value) for name, value in state.items()}
    if isinstance(state, (tuple, list)):
        return [skeleton_of(value) for value in state]
    return t5x.ARRAY


def without_lists(state: Any) -> Any:
    """Returns a state as T5X saves it: dicts with the numbers of lists as names, without the parts that are empty.

    >>> without_lists([None, {"count": 3}, {"inner": None}])
    {'1': {'count': 3}}
    """
    if isinstance(state, (list, tuple)):
        state = {str(number): value for number, value in enumerate(state)}
    if not isinstance(state, Mapping):
        return state
    parts = {str(name): without_lists(value) for name, value in state.items() if value is not None}
    return {name: value for name, value in parts.items() if not isinstance(value, Mapping) or value}


def with_lists(skeleton: Any, state: Any, place: str = "param_states") -> Any:
    """Returns a state of T5X nested as `skeleton` says.

    >>> with_lists([None, {"count": "array"}, {"inner": None}], {"1": {"count": 3}})
    [None, {'count': 3}, {'inner': None}]

    Raises:
      InputError: for an array that is missing, or one that the skeleton does not know.
    """
    if skeleton is None:
        return None
    if skeleton == t5x.ARRAY:
        if state is None or isinstance(state, Mapping):
            raise InputError("the checkpoint has no such array: another optimizer", field=place)
        return state
    state = {} if state is None else state
    names = [str(number) for number in range(len(skeleton))] if isinstance(skeleton, list) else list(skeleton)
    if not isinstance(state, Mapping) or set(state) - set(names):
        raise InputError("the checkpoint has other arrays here: another optimizer", field=place)
    parts = dict(skeleton) if isinstance(skeleton, Mapping) else dict(zip(names, skeleton, strict=True))
    filled = {name: with_lists(part, state.get(name), f"{place}/{name}") for name, part in parts.items()}
    return list(filled.values()) if isinstance(skeleton, list) else filled

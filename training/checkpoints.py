"""Checkpoints, and the one place that decides what a run starts from.

A model folder (MODEL_DIR) holds, and keeps holding in later versions::

    config.gin                          the configuration in force, loadable with --gin_file
    model.json                          {"encoder": EncoderConfig.to_dict(), "vocabulary_sha256": hex}
    vocab.txt                           the vocabulary, a copy
    metrics.jsonl, events.out.tfevents… see `metrics`
    checkpoints/<step>/params           Orbax PyTree: the encoder's parameters, nested dict of float32 arrays
    checkpoints/<step>/training         Orbax PyTree: {"step", "opt_state"}
    checkpoints/<step>/iterators        Orbax JSON: {"state": str}, positions in the training data

Whoever only needs the model reads `model.json`, `vocab.txt` and `params` of the largest step with orbax alone::

    orbax.checkpoint.StandardCheckpointer().restore(f"{model_dir}/checkpoints/{step}/params")

A step's folder appears under its final name only when it is complete.
"""

import dataclasses
import os
from typing import Any, Final, Self

import jax
import numpy as np
import orbax.checkpoint as ocp
from etils import epath

from ..models.encoder import EncoderConfig
from ..tasks.errors import InputError
from .huggingface import initial_params, is_huggingface
from .model_files import VocabularyFile, check_same_model
from .train_state import LOG_TEMPERATURE, StateLayout, TrainState

CHECKPOINTS: Final = "checkpoints"
_PARAMS, _TRAINING, _ITERATORS = "params", "training", "iterators"


class Checkpoints:
    """The checkpoints of one model folder; use as a context manager.

    Args:
      model_dir: the model folder.
      keep: how many of the newest to keep.
    """

    def __init__(self, model_dir: str, keep: int = 3) -> None:
        self.path = os.path.join(os.path.abspath(model_dir), CHECKPOINTS)
        options = ocp.CheckpointManagerOptions(max_to_keep=keep, cleanup_tmp_directories=True, enable_async_checkpointing=True)
        self._manager = ocp.CheckpointManager(self.path, options=options, item_names=(_PARAMS, _TRAINING, _ITERATORS))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._manager.wait_until_finished()
        self._manager.close()

    def latest_step(self) -> int | None:
        """The newest complete checkpoint, None if there is none."""
        step: int | None = self._manager.latest_step()
        return step

    def save(self, step: int, state: TrainState, iterators: bytes) -> None:
        """Copies the state and writes it in the background; the arrays may be donated as soon as this returns."""
        self._manager.save(
            step,
            args=ocp.args.Composite(
                params=ocp.args.StandardSave(state.params),
                training=ocp.args.StandardSave({"step": state.step, "opt_state": state.opt_state}),
                iterators=ocp.args.JsonSave({"state": iterators.decode()}),
            ),
        )

    def wait(self) -> None:
        """Returns when everything is on disk."""
        self._manager.wait_until_finished()

    def restore(self, step: int, abstract: TrainState) -> tuple[TrainState, bytes]:
        """A state in the shapes and shardings of `abstract`, with the iterators' state.

        Raises:
          InputError: if the checkpoint is of another architecture or optimizer.
        """
        folder = os.path.join(self.path, str(step))
        training = {"step": abstract.step, "opt_state": abstract.opt_state}
        _check_shapes(os.path.join(folder, _PARAMS), abstract.params)
        _check_shapes(os.path.join(folder, _TRAINING), training)
        restored = self._manager.restore(
            step,
            args=ocp.args.Composite(
                params=ocp.args.StandardRestore(abstract.params),
                training=ocp.args.StandardRestore(training),
                iterators=ocp.args.JsonRestore(),
            ),
        )
        return TrainState(params=restored[_PARAMS], **restored[_TRAINING]), restored[_ITERATORS]["state"].encode()


@dataclasses.dataclass(frozen=True)
class Start:
    """What a run starts from.

    Attributes:
      state: on the devices.
      step: steps already done.
      iterators: the iterators' state to continue with, None to start at the first batch.
      origin: one line for people.
    """

    state: TrainState
    step: int
    iterators: bytes | None
    origin: str


def start_state(
    checkpoints: Checkpoints,
    initial_checkpoint_path: str | None,
    layout: StateLayout,
    key: jax.Array,
    config: EncoderConfig,
    vocabulary: VocabularyFile,
) -> Start:
    """Decides what to start from.

    The order of precedence:

    1. resume: MODEL_DIR has a checkpoint: parameters, optimizer, step and data position of the newest one;
    2. restore: `initial_checkpoint_path` is given: its parameters only; optimizer, step and data start anew;
    3. init: random parameters from `key`.

    Args:
      checkpoints: of MODEL_DIR.
      initial_checkpoint_path: a model folder (its newest step is taken), one `checkpoints/<step>` in it, or a Hugging Face folder, of
        which missing heads stay as `key` draws them.
      layout: the state to fill.
      key: PRNG key for what is drawn.
      config: must be the checkpoint's, where it is known.
      vocabulary: must be the checkpoint's, where it is known.

    Raises:
      InputError: if the checkpoint is missing or of another architecture or vocabulary.
    """
    step = checkpoints.latest_step()
    if step is not None:
        state, iterators = checkpoints.restore(step, layout.abstract)
        check_same_model(os.path.dirname(checkpoints.path), config, vocabulary)
        return Start(state, step, iterators, f"resumed from step {step} of {checkpoints.path}")
    state = layout.create(key)
    if initial_checkpoint_path is None:
        return Start(state, 0, None, "initialised at random")
    if is_huggingface(initial_checkpoint_path):
        params = initial_params(initial_checkpoint_path, config, vocabulary, state.params)
        return Start(state.replace(params=params), 0, None, f"parameters imported from {initial_checkpoint_path}")
    folder = find_checkpoint(initial_checkpoint_path)
    params_path = os.path.join(folder, _PARAMS)
    wanted = _as_saved(params_path, layout.abstract)
    _check_shapes(params_path, wanted)
    check_same_model(os.path.dirname(os.path.dirname(folder)), config, vocabulary)
    with ocp.StandardCheckpointer() as checkpointer:
        params = checkpointer.restore(params_path, wanted)
    kept = {name: params.get(name, fresh) for name, fresh in state.params.items()}
    return Start(state.replace(params=kept), 0, None, f"parameters restored from {folder}")


def find_checkpoint(path: str) -> str:
    """The folder of one step: `path` itself, or the newest step of the model folder `path`.

    Raises:
      InputError: if there is none.
    """
    path = os.path.abspath(path)
    if os.path.isdir(os.path.join(path, _PARAMS)):
        return path
    inside = os.path.join(path, CHECKPOINTS)
    steps = [int(name) for name in os.listdir(inside) if name.isdigit()] if os.path.isdir(inside) else []
    if not steps:
        raise InputError(
            f"got no checkpoint, expected {CHECKPOINTS}/<step>/{_PARAMS} in it",
            path=path,
            field="INITIAL_CHECKPOINT_PATH",
            remedy="Name the MODEL_DIR of a run that saved a checkpoint.",
        )
    return os.path.join(inside, str(max(steps)))


def _as_saved(path: str, abstract: TrainState) -> dict[str, Any]:
    """The parameters to read: a learned temperature where the checkpoint has one, whether this run learns one or not."""
    wanted = {name: array for name, array in abstract.params.items() if name != LOG_TEMPERATURE}
    # The step number is laid out as any scalar is: whole on every device.
    learned = jax.ShapeDtypeStruct((), np.float32, sharding=abstract.step.sharding)
    return wanted | ({LOG_TEMPERATURE: learned} if LOG_TEMPERATURE in _saved_shapes(path) else {})


def _saved_shapes(path: str) -> dict[str, tuple[int, ...]]:
    return _shapes(ocp.PyTreeCheckpointHandler().metadata(epath.Path(path)).tree)


def _check_shapes(path: str, expected_tree: Any) -> None:
    """Compares a saved tree with what the run needs, before anything is read.

    Raises:
      InputError: naming the first array that differs.
    """
    saved = _saved_shapes(path)
    expected = _shapes(expected_tree)
    for name in sorted(saved.keys() | expected.keys()):
        if saved.get(name) != expected.get(name):
            got, wanted = (_describe(shapes.get(name)) for shapes in (saved, expected))
            raise InputError(
                f"the checkpoint has {got}, this run's model {wanted}: another architecture or optimizer",
                path=path,
                field=name,
                remedy="Use the gin files that the checkpoint was trained with (config.gin beside it), or start another MODEL_DIR.",
            )


def _shapes(tree: Any) -> dict[str, tuple[int, ...]]:
    flat, _ = jax.tree_util.tree_flatten_with_path(tree)
    return {"/".join(_key(part) for part in path): tuple(leaf.shape) for path, leaf in flat}


def _key(part: Any) -> str:
    for name in ("key", "name", "idx"):
        if hasattr(part, name):
            return str(getattr(part, name))
    return str(part)


def _describe(shape: tuple[int, ...] | None) -> str:
    return "no such array" if shape is None else f"shape {list(shape)}"

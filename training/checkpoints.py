"""Checkpoints, and the one place that decides what a run starts from.

`formats.model_folder` lists the files of a model folder (MODEL_DIR).

A step's folder appears under its final name only when it is complete. Arrays are stored whole, whatever the mesh: they
can be restored onto another number of devices. With several processes MODEL_DIR is a folder that all of them see; each
array is written once.
"""

import contextlib
import dataclasses
import errno
import os
from collections.abc import Iterator, Mapping
from typing import Any, Final, Self

import jax
import numpy as np
import orbax.checkpoint as ocp
from etils import epath

from ..errors import InputError
from ..formats.digests import damage, write_sums
from ..formats.model_folder import (
    ITERATORS,
    PARAMS,
    TRAINING,
    ModelFolder,
    folder_of_checkpoint,
    is_checkpoint,
)
from ..formats.vocabulary import VocabularyFile
from ..learning.model_files import check_same_model
from ..learning.objectives import parameter_names
from ..models.architecture import parts_of
from ..models.encoders import Architecture
from .huggingface import initial_params
from .keeping import Keeping
from .processes import gather_bytes, wait_for_all
from .train_state import StateLayout, TrainState

_FULL_DISK: Final = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_FULL_DISK_WORDS: Final = tuple(
    os.strerror(number) for number in _FULL_DISK
)  # where a library passes on the words only


class Checkpoints:
    """The checkpoints of one model folder; use as a context manager.

    Args:
      model_dir: the model folder.
      keeping: which to keep.
    """

    def __init__(self, model_dir: str, keeping: Keeping = Keeping()) -> None:  # noqa: B008 - a frozen value
        self.folder = ModelFolder(os.path.abspath(model_dir))
        self.path = self.folder.checkpoints
        self._keeping = keeping
        self._saved: int | None = None
        self._saving: int | None = None
        self._without_sums: int | None = None
        with self._errors_named():
            self._manager = ocp.CheckpointManager(
                self.path, options=keeping.options(), item_names=(PARAMS, TRAINING, ITERATORS)
            )
        self._saved = self.latest_step()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        # A run that ends with an error shows that one, not what follows from it.
        with contextlib.suppress(Exception) if kind is not None else self._errors_named():
            self._finish()
            self._manager.close()

    def latest_step(self) -> int | None:
        """The newest complete checkpoint, None if there is none."""
        step: int | None = self._manager.latest_step()
        return step

    def best_step(self) -> int | None:
        """The complete checkpoint with the best metric `Keeping.best`, None without one."""
        step: int | None = self._manager.best_step() if self._keeping.best is not None else None
        return step

    def steps(self) -> list[int]:
        """All complete checkpoints, the newest first."""
        return sorted(self._manager.all_steps(), reverse=True)

    def save(self, step: int, state: TrainState, iterators: bytes, metrics: Mapping[str, float] | None = None) -> None:
        """Copies the state and writes it in the background; the arrays may be donated as soon as this returns.

        Args:
          step: steps done.
          state: on the devices.
          iterators: this process's iterators.
          metrics: what the evaluation of this step found.

        Raises:
          InputError: if this save or the one before failed, because a disk is full for example; if `metrics` lack the
            one of `Keeping.best`.
        """
        if self._keeping.best is not None and metrics is not None:
            self._keeping.figure(metrics)
        states = [state.decode() for state in gather_bytes(iterators)]
        with self._errors_named():
            self._finish()
            self._saved, self._saving = self._saving or self._saved, step
            self._manager.save(
                step,
                args=ocp.args.Composite(
                    params=ocp.args.StandardSave(state.params),
                    training=ocp.args.StandardSave({"step": state.step, "opt_state": state.opt_state}),
                    iterators=ocp.args.JsonSave({"state": states[0]} if len(set(states)) == 1 else {"states": states}),
                ),
                metrics=dict(metrics) if metrics is not None and self._keeping.best is not None else None,
            )
            self._without_sums = step

    def check(self) -> None:
        """Does not wait.

        Raises:
          InputError: if a save in the background has failed by now.
        """
        with self._errors_named():
            self._manager.check_for_errors()

    def wait(self) -> None:
        """Returns when everything is on disk.

        Raises:
          InputError: if the save failed.
        """
        with self._errors_named():
            self._finish()

    def _finish(self) -> None:
        """Waits until the last save is complete, and writes the digests of its files."""
        self._manager.wait_until_finished()
        step, self._without_sums = self._without_sums, None
        if step is not None and jax.process_index() == 0 and os.path.isdir(folder := self.folder.checkpoint(step)):
            write_sums(folder)

    def restore(self, step: int, abstract: TrainState) -> tuple[TrainState, bytes]:
        """A state in the shapes and shardings of `abstract`, with the state of this process's iterators.

        Raises:
          InputError: if the checkpoint is of another architecture, optimizer or number of processes.
          ValueError: if a file changed since it was written.
        """
        folder = self.folder.checkpoint(step)
        if problem := damage(folder):
            raise ValueError(problem)
        training = {"step": abstract.step, "opt_state": abstract.opt_state}
        _check_shapes(os.path.join(folder, PARAMS), abstract.params)
        _check_shapes(os.path.join(folder, TRAINING), training)
        restored = self._manager.restore(
            step,
            args=ocp.args.Composite(
                params=ocp.args.StandardRestore(abstract.params),
                training=ocp.args.StandardRestore(training),
                iterators=ocp.args.JsonRestore(),
            ),
        )
        iterators = _own_iterators(restored[ITERATORS], folder)
        return TrainState(params=restored[PARAMS], **restored[TRAINING]), iterators

    def set_aside(self, step: int) -> str:
        """Moves a checkpoint that cannot be read out of the way and returns where to."""
        folder = self.folder.damaged_checkpoints
        target = os.path.join(folder, str(step))
        if jax.process_index() == 0:
            os.makedirs(folder, exist_ok=True)
            number = 1
            while os.path.exists(target):
                target, number = os.path.join(folder, f"{step}-{number}"), number + 1
            os.replace(self.folder.checkpoint(step), target)
        wait_for_all(f"set aside {step}")
        self._manager.reload()
        return target

    @contextlib.contextmanager
    def _errors_named(self) -> Iterator[None]:
        """Turns an error of the file system into one that says what is safe and what to do.

        Raises:
          InputError: for an error of the file system.
        """
        try:
            yield
        except InputError:
            raise
        except Exception as error:
            reason = _file_system_reason(error)
            if reason is None:
                raise
            safe = f"step {self._saved} is safe" if self._saved is not None else "no earlier checkpoint exists"
            of_step = "" if self._saving is None else f" of step {self._saving}"
            raise InputError(
                f"a checkpoint{of_step} cannot be written: {reason}; {safe}",
                path=self.path,
                field="MODEL_DIR",
                remedy="Free or allow more space there (KEEP_CHECKPOINTS keeps fewer); the same command then "
                "continues.",
            ) from error


def _file_system_reason(error: BaseException) -> str | None:
    """The file system's message, None if it is not its error. Orbax and TensorStore pass it on in several forms."""
    seen: BaseException | None = error
    while seen is not None:
        if isinstance(seen, OSError) and seen.errno is not None:
            return seen.strerror or str(seen)
        for words in _FULL_DISK_WORDS:
            if words in str(seen):
                return words
        seen = seen.__cause__ or seen.__context__
    return None


def _own_iterators(saved: Mapping[str, Any], folder: str) -> bytes:
    """This process's part of what `Checkpoints.save` wrote. A state that all processes share fits any number.

    Raises:
      InputError: if the states of several processes differ and there are now more or fewer of them.
    """
    if "state" in saved:
        return str(saved["state"]).encode()
    states = saved["states"]
    if len(states) != jax.process_count():
        raise InputError(
            f"the iterators' states of {len(states)} processes differ, and now there are {jax.process_count()}",
            path=os.path.join(folder, ITERATORS),
            remedy=f"Continue with {len(states)} processes, or start another MODEL_DIR with INITIAL_CHECKPOINT_PATH.",
        )
    return str(states[jax.process_index()]).encode()


@dataclasses.dataclass(frozen=True)
class Start:
    """What a run starts from.

    Attributes:
      state: on the devices.
      step: steps already done.
      iterators: the iterators' state to continue with, None to start at the first batch.
      origin: a line or more for people.
      is_random: no parameter is from a checkpoint.
    """

    state: TrainState
    step: int
    iterators: bytes | None
    origin: str
    is_random: bool = False


def start_state(
    checkpoints: Checkpoints,
    initial_checkpoint_path: str | Mapping[str, str] | None,
    layout: StateLayout,
    key: jax.Array,
    config: Architecture,
    vocabulary: VocabularyFile,
) -> Start:
    """Decides what to start from.

    The order of precedence:

    1. resume: MODEL_DIR has a checkpoint: parameters, optimizer, step and data position of the newest one. If that
       cannot be read (a file of it is damaged, for example), it is set aside and the one before it counts;
    2. restore: `initial_checkpoint_path` is given: its parameters only; optimizer, step and data start from zero. The
       parts of a model (`Capability.PARTS`) may come from a checkpoint each; the rest of its parameters is from `key`;
    3. init: random parameters from `key`.

    Args:
      checkpoints: of MODEL_DIR.
      initial_checkpoint_path: a model folder (its newest step is taken), one `checkpoints/<step>` in it, or a Hugging
        Face folder; heads that it lacks stay as `key` draws them. Or one of the first two for each part of the model,
        by name.
      layout: the state to fill.
      key: PRNG key for what is drawn.
      config: must be the checkpoint's, where it is known.
      vocabulary: must be the checkpoint's, where it is known.

    Raises:
      InputError: if the checkpoint is missing or of another architecture or vocabulary, or none of MODEL_DIR can be
        read.
    """
    resumed = _resume(checkpoints, layout)
    if resumed is not None:
        check_same_model(checkpoints.folder.path, config, vocabulary)
        return resumed
    state = layout.create(key)
    if initial_checkpoint_path is None:
        return Start(state, 0, None, "initialised at random", is_random=True)
    if not isinstance(initial_checkpoint_path, str):
        return _from_parts(initial_checkpoint_path, state, layout, config, vocabulary)
    if ModelFolder(initial_checkpoint_path).is_huggingface:
        params = initial_params(initial_checkpoint_path, config, vocabulary, state.params)
        return Start(state.replace(params=params), 0, None, f"parameters imported from {initial_checkpoint_path}")
    folder, params = _read_params(initial_checkpoint_path, layout.abstract, config, vocabulary)
    kept = {name: params.get(name, fresh) for name, fresh in state.params.items()}
    return Start(state.replace(params=kept), 0, None, f"parameters restored from {folder}")


def _from_parts(
    paths: Mapping[str, str], state: TrainState, layout: StateLayout, config: Architecture, vocabulary: VocabularyFile
) -> Start:
    """The state with the parameters of each part from its checkpoint.

    Raises:
      InputError: unless every part has a checkpoint and only parts have; as `_read_params`.
    """
    parts = parts_of(config)
    if set(paths) != set(parts) or not parts:
        expected = f"one for each of {', '.join(parts)}" if parts else "one path: this model has no parts"
        raise InputError(
            f"got checkpoints for {', '.join(sorted(paths)) or 'nothing'}, expected {expected}",
            field="INITIAL_CHECKPOINT_PATH",
            remedy="Name the MODEL_DIR of a run that trained each part.",
        )
    params, lines = dict(state.params), []
    for name, part in parts.items():
        abstract = layout.abstract.replace(params=layout.abstract.params[name])
        folder, params[name] = _read_params(paths[name], abstract, part, vocabulary)
        lines.append(f"{name} restored from {folder}")
    return Start(state.replace(params=params), 0, None, f"{'; '.join(lines)}; the rest initialised at random")


def _read_params(
    path: str, abstract: TrainState, config: Architecture, vocabulary: VocabularyFile
) -> tuple[str, dict[str, Any]]:
    """The folder of a checkpoint, and its parameters on the devices.

    Raises:
      InputError: if it is missing, cannot be read, or is of another model than `config` or of another vocabulary.
    """  # noqa: DOC501 - _damaged makes an InputError
    folder = find_checkpoint(path)
    params_path = os.path.join(folder, PARAMS)
    remedy = "Name another step of that run: INITIAL_CHECKPOINT_PATH may be one checkpoints/<step>."
    if problem := damage(folder, [PARAMS]):
        raise InputError(f"the checkpoint cannot be read ({problem})", path=params_path, remedy=remedy)
    try:
        wanted = _as_saved(params_path, abstract)
        _check_shapes(params_path, wanted)
    except InputError:
        raise  # it can be read and is of another model
    except Exception as error:
        raise _damaged(params_path, error, remedy) from error
    check_same_model(folder_of_checkpoint(folder).path, config, vocabulary)
    try:
        with ocp.StandardCheckpointer() as checkpointer:
            return folder, checkpointer.restore(params_path, wanted)
    except Exception as error:
        raise _damaged(params_path, error, remedy) from error


def _resume(checkpoints: Checkpoints, layout: StateLayout) -> Start | None:
    """The newest checkpoint that can be read; those that cannot are set aside. None if there never was one.

    Raises:
      InputError: if a checkpoint is of another run, or if none can be read.
    """  # noqa: DOC501 - _damaged makes an InputError
    steps, notes = checkpoints.steps(), []
    for step in steps:
        try:
            state, iterators = checkpoints.restore(step, layout.abstract)
        except InputError:
            raise  # it can be read and is of another run: falling back would hide that
        except Exception as error:
            if step == steps[-1]:
                raise _damaged(
                    checkpoints.folder.checkpoint(step),
                    error,
                    "No checkpoint before it is left: restore the folder from a copy, or start another MODEL_DIR.",
                ) from error
            target = checkpoints.set_aside(step)
            notes.append(f"step {step} cannot be read ({_first_line(error)}), set aside as {target}")
        else:
            return Start(state, step, iterators, "; ".join([f"resumed from step {step} of {checkpoints.path}", *notes]))
    return None


def _damaged(path: str, error: Exception, remedy: str) -> InputError:
    return InputError(f"the checkpoint cannot be read ({_first_line(error)})", path=path, remedy=remedy)


def _first_line(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0][:200]}" if lines else type(error).__name__


def find_checkpoint(path: str) -> str:
    """The folder of one step: `path` itself, or the newest step of the model folder `path`.

    Raises:
      InputError: if there is none.
    """
    path = os.path.abspath(path)
    if is_checkpoint(path):
        return path
    folder = ModelFolder(path)
    steps = folder.steps()
    if not steps:
        raise InputError(
            f"got no checkpoint, expected {os.path.relpath(folder.checkpoints, path)}/<step>/{PARAMS} in it",
            path=path,
            field="INITIAL_CHECKPOINT_PATH",
            remedy="Name the MODEL_DIR of a run that saved a checkpoint.",
        )
    return folder.checkpoint(steps[-1])


def _as_saved(path: str, abstract: TrainState) -> dict[str, Any]:
    """The parameters to read: those of the model, and those that objectives added to it when it was saved."""
    names, saved = parameter_names(), _saved_shapes(path)
    wanted = {name: array for name, array in abstract.params.items() if name not in names}
    # The step number is laid out as any scalar is: whole on every device.
    whole = abstract.step.sharding
    return wanted | {
        name: jax.ShapeDtypeStruct(saved[name], np.float32, sharding=whole) for name in sorted(names & saved.keys())
    }


def _saved_shapes(path: str) -> dict[str, tuple[int, ...]]:
    tree = ocp.PyTreeCheckpointHandler().metadata(epath.Path(path)).tree
    if not tree:
        raise FileNotFoundError(errno.ENOENT, "no metadata of arrays", path)
    return _shapes(tree)


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
                remedy="Use the gin files that the checkpoint was trained with (config.gin next to it), or start "
                "another MODEL_DIR.",
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

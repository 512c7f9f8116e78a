"""Checkpoints, and the one place that decides what a run starts from.

`formats.model_folder` lists the files of a model folder (MODEL_DIR).

A step's folder appears under its final name only when it is complete. Arrays are stored whole, whatever the mesh: they
can be restored onto another number of devices. With several processes MODEL_DIR is a folder that all of them see, or a
URI of an object store; each array is written once.

On an object store each process has a copy of MODEL_DIR. The first process writes all checkpoints to its copy and
uploads each one in the background, its digests last; a checkpoint without digests was cut off and is removed.
"""

import contextlib
import dataclasses
import os
import sys
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Final, Self

import jax
import orbax.checkpoint as ocp
from etils import epath
from jax.experimental import multihost_utils

from ..errors import InputError, of_file_system, of_file_system_text
from ..formats.digests import damage, write_sums
from ..formats.files import is_object
from ..formats.model_folder import ITERATORS, PARAMS, TRAINING, ModelFolder, folder_of_checkpoint, is_checkpoint
from ..formats.remote import Staging, local_folder
from ..formats.vocabulary import VocabularyFile
from ..learning.model_files import check_same_model
from ..models.architecture import parts_of
from ..models.encoders import Architecture
from .huggingface import initial_params
from .options import CheckpointOptions
from .processes import gather_bytes, wait_for_all
from .train_state import StateLayout, TrainState

_ANOTHER_STEP: Final = "Name another step of that run: INITIAL_CHECKPOINT_PATH may be one checkpoints/<step>."


class Checkpoints:
    """The checkpoints of one model folder; use as a context manager.

    Args:
      model_dir: the model folder, made if need be, or its URI.
      options: which to keep.

    Attributes:
      folder: where the run writes: the model folder, or this process's copy of it.
      path: of the checkpoints, for people.
    """

    def __init__(self, model_dir: str, options: CheckpointOptions | None = None) -> None:
        self._staging: Staging | None = None
        if is_object(model_dir):
            self._staging = Staging(model_dir, (PARAMS, TRAINING), is_first=jax.process_index() == 0)
        self.folder = ModelFolder(self._staging.path if self._staging else os.path.abspath(model_dir))
        self.path = f"{model_dir.rstrip('/')}/checkpoints" if self._staging else self.folder.checkpoints
        self._options = options or CheckpointOptions()
        self._saved: int | None = None
        self._saving: int | None = None
        self._without_sums: int | None = None
        self._uploads, self._upload = ThreadPoolExecutor(1), Future[None]()
        self._upload.set_result(None)
        with self._errors_named():
            os.makedirs(self.folder.checkpoints, exist_ok=True)
            self._manager = ocp.CheckpointManager(
                self.folder.checkpoints,
                options=self._options.for_orbax(is_alone=self._staging is not None),
                item_names=(PARAMS, TRAINING, ITERATORS),
            )
        self._saved = self.latest_step()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        # A run that ends with an error shows that one, not what follows from it.
        try:
            with contextlib.suppress(Exception) if kind is not None else self._errors_named():
                self._finish()
                self._manager.close()
            with contextlib.suppress(Exception) if kind is not None else contextlib.nullcontext():
                if self._staging:
                    self._staging.upload_files()
        finally:
            self._uploads.shutdown()
            if self._staging:
                self._staging.close()

    def latest_step(self) -> int | None:
        """The newest complete checkpoint, None if there is none."""
        return self._manager.latest_step()

    def best_step(self) -> int | None:
        """The complete checkpoint with the best metric KEEP_BEST, None without one."""
        return self._manager.best_step() if self._options.keep_best is not None else None

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
            one of KEEP_BEST.
        """
        if self._options.keep_best is not None and metrics is not None:
            self._options.figure(metrics)
        states = [state.decode() for state in gather_bytes(iterators)]
        if self._staging and jax.process_count() > 1:
            state = multihost_utils.process_allgather(state, tiled=True)
        with self._errors_named():
            self._finish(is_last=False)
            self._saved, self._saving = self._saving or self._saved, step
            if self._staging and jax.process_index() > 0:
                return
            self._manager.save(
                step,
                args=ocp.args.Composite(
                    params=ocp.args.StandardSave(state.params),
                    training=ocp.args.StandardSave({"step": state.step, "opt_state": state.opt_state}),
                    iterators=ocp.args.JsonSave({"state": states[0]} if len(set(states)) == 1 else {"states": states}),
                ),
                metrics=dict(metrics) if metrics is not None and self._options.keep_best is not None else None,
            )
            self._without_sums = step
            if self._staging:
                self._upload = self._uploads.submit(self._publish, self._staging, step)

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

    def _finish(self, *, is_last: bool = True) -> None:
        """Waits until the last save is complete, with the digests of its files, and uploaded.

        A store that cannot be used for a while ends no run: the next save uploads what is missing.
        """
        self._manager.wait_until_finished()
        try:
            self._upload.result()
        except InputError as error:
            if is_last and self._staging:
                self._staging.upload_steps()  # once more, since it is the last chance
            else:
                problem = f"the checkpoint of step {self._saving} was not uploaded, the next one will be"
                print(f"{problem}: {error}", file=sys.stderr)
        step, self._without_sums = self._without_sums, None
        if step is not None and jax.process_index() == 0 and not self._staging:
            self._write_sums(step)

    def _write_sums(self, step: int) -> None:
        if os.path.isdir(folder := self.folder.checkpoint(step)):
            write_sums(folder)

    def _publish(self, staging: Staging, step: int) -> None:
        self._manager.wait_until_finished()
        self._write_sums(step)
        staging.upload_steps()

    def restore(self, step: int, abstract: TrainState) -> tuple[TrainState, bytes]:
        """A state in the shapes and shardings of `abstract`, with the state of this process's iterators.

        Raises:
          InputError: if the checkpoint is of another architecture, optimizer or number of processes.
          ValueError: if a file changed since it was written.
        """
        folder = self.folder.checkpoint(step)
        if self._staging:
            self._staging.fetch_step(step)
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
        if self._staging or jax.process_index() == 0:
            os.makedirs(folder, exist_ok=True)
            number = 1
            while os.path.exists(target):
                target, number = os.path.join(folder, f"{step}-{number}"), number + 1
            os.replace(self.folder.checkpoint(step), target)
        if self._staging and jax.process_index() == 0:
            target = self._staging.set_aside(step)
        wait_for_all(f"set aside {step}")
        self._manager.reload()
        return target

    @contextlib.contextmanager
    def _errors_named(self) -> Iterator[None]:
        """Turns an error of the file system into one that says what is safe and what to do."""
        try:
            yield
        except InputError:
            raise
        except Exception as error:
            if (found := of_file_system(error) or of_file_system_text(str(error))) is None:
                raise
            safe = f"step {self._saved} is safe" if self._saved is not None else "no earlier checkpoint exists"
            of_step = "" if self._saving is None else f" of step {self._saving}"
            reason = found.problem.removeprefix("cannot be written: ")
            raise InputError(
                f"a checkpoint{of_step} cannot be written: {reason}; {safe}",
                path=self.path,
                field="MODEL_DIR",
                remedy="Free or allow more space there (KEEP_CHECKPOINTS keeps fewer); the same command then "
                "continues.",
            ) from error


def _own_iterators(saved: Mapping[str, Any], folder: str) -> bytes:
    """This process's part of what `Checkpoints.save` wrote. A state that all processes share fits any number."""
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
    if ModelFolder(initial := local_folder(initial_checkpoint_path)).is_huggingface:
        params = initial_params(initial, config, vocabulary, state.params)
        return Start(state.replace(params=params), 0, None, f"parameters imported from {initial_checkpoint_path}")
    folder, params = _read_params(initial_checkpoint_path, layout.abstract, config, vocabulary)
    return Start(state.replace(params=params), 0, None, f"parameters restored from {folder}")


def _from_parts(
    paths: Mapping[str, str], state: TrainState, layout: StateLayout, config: Architecture, vocabulary: VocabularyFile
) -> Start:
    """The state with the parameters of each part from its checkpoint."""
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
    """
    folder = find_checkpoint(path)
    params_path = os.path.join(folder, PARAMS)
    if problem := damage(folder, [PARAMS]):
        raise InputError(f"the checkpoint cannot be read ({problem})", path=params_path, remedy=_ANOTHER_STEP)
    with _damage_named(params_path, _ANOTHER_STEP):
        _check_shapes(params_path, abstract.params)
    check_same_model(folder_of_checkpoint(folder).path, config, vocabulary)
    with _damage_named(params_path, _ANOTHER_STEP), ocp.StandardCheckpointer() as checkpointer:
        return folder, checkpointer.restore(params_path, abstract.params)


def _resume(checkpoints: Checkpoints, layout: StateLayout) -> Start | None:
    """The newest checkpoint that can be read; those that cannot are set aside. None if there never was one.

    Raises:
      InputError: if a checkpoint is of another run, or if none can be read.
    """
    steps, notes = checkpoints.steps(), []
    remedy = "No checkpoint before it is left: restore the folder from a copy, or start another MODEL_DIR."
    for step in steps:
        try:
            with _damage_named(checkpoints.folder.checkpoint(step), remedy):
                state, iterators = checkpoints.restore(step, layout.abstract)
        except InputError as error:
            # A checkpoint of another run can be read: falling back would hide that.
            if error.__cause__ is None or step == steps[-1]:
                raise
            target = checkpoints.set_aside(step)
            notes.append(f"step {step} cannot be read ({_first_line(error.__cause__)}), set aside as {target}")
        else:
            return Start(state, step, iterators, "; ".join([f"resumed from step {step} of {checkpoints.path}", *notes]))
    return None


@contextlib.contextmanager
def _damage_named(path: str, remedy: str) -> Iterator[None]:
    """Turns any error of Orbax into one that names the checkpoint; errors about another model stay as they are."""
    try:
        yield
    except InputError:
        raise
    except Exception as error:
        raise InputError(f"the checkpoint cannot be read ({_first_line(error)})", path=path, remedy=remedy) from error


def _first_line(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0][:200]}" if lines else type(error).__name__


def find_checkpoint(path: str) -> str:
    """The folder of one step: `path` itself, or the newest step of the model folder `path`.

    Raises:
      InputError: if there is none.
    """
    path = os.path.abspath(local_folder(path))
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


def _saved_shapes(path: str) -> dict[str, tuple[int, ...]]:
    tree = ocp.PyTreeCheckpointHandler().metadata(epath.Path(path)).tree
    if not tree:
        raise FileNotFoundError(f"{path} has no metadata of arrays")
    return _shapes(tree)


def _check_shapes(path: str, expected_tree: Any) -> None:
    """Compares a saved tree with what the run needs, before anything is read; names the first array that differs."""
    saved, expected = _saved_shapes(path), _shapes(expected_tree)
    for name in sorted(saved.keys() | expected.keys()):
        if saved.get(name) != expected.get(name):
            got, wanted = (
                f"shape {list(shapes[name])}" if name in shapes else "no such array" for shapes in (saved, expected)
            )
            raise InputError(
                f"the checkpoint has {got}, this run's model {wanted}: another architecture or optimizer",
                path=path,
                field=name,
                remedy="Use the gin files that the checkpoint was trained with (config.gin next to it), or name "
                "another MODEL_DIR or INITIAL_CHECKPOINT_PATH.",
            )


def _shapes(tree: Any) -> dict[str, tuple[int, ...]]:
    flat, _ = jax.tree_util.tree_flatten_with_path(tree)
    return {jax.tree_util.keystr(path, simple=True, separator="/"): tuple(leaf.shape) for path, leaf in flat}

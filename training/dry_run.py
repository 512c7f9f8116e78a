"""``newsembed train --dry_run``: what a run would train, on what, and what it lacks.

Nothing is compiled, allocated or written: parameters and devices exist by their shapes only.
"""

import collections
import contextlib
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any, Final, TypeVar

import gin
import jax
import numpy as np
from jax.sharding import AbstractMesh

from ..errors import InputError, counted
from ..formats.files import exists, is_object, sizes_below
from ..formats.manifest import DataSet, example_paths, read_manifest, recorded_files
from ..formats.model_folder import ModelFolder, folder_of_checkpoint
from ..formats.remote import complete_steps
from ..formats.vocabulary import VocabularyFile, read_vocabulary
from ..learning.mixture import select_sets
from ..learning.model_files import check_same_model
from ..learning.objectives import Model, Objectives, continuation_pieces, objectives_of
from ..learning.options import DataOptions
from ..learning.partitioning import DATA_AXIS, check_batch_size
from ..models.architecture import parts_of
from ..models.encoders import Architecture
from ..tasks import registry
from .calibration import check_calibration
from .checkpoints import find_checkpoint
from .metrics import step_flops
from .train_state import TrainState, bytes_per_device, plan_state

_T = TypeVar("_T")
_INITIAL: Final = "INITIAL_CHECKPOINT_PATH"


def dry_run(devices: int | None = None) -> tuple[list[str], list[InputError]]:
    """Looks at the run of the gin configuration that `gin_config.load_gin` has loaded.

    Args:
      devices: how many there are; None takes those of this process.

    Returns:
      Lines that describe the run, and all that it lacks.

    Raises:
      InputError: for options that do not fit each other.
    """
    groups = gin.get_bindings("train")
    groups["checkpoints"].check_evaluated(groups["held_out"])
    plan = _Plan(groups, devices or jax.device_count())
    lines = list(plan.lines())
    return [gin.operative_config_str().rstrip(), "", *lines], plan.missing


class _Plan:
    """A run before it starts.

    Attributes:
      missing: what it lacks, as far as `lines` has looked.
    """

    def __init__(self, groups: Mapping[str, Any], devices: int) -> None:
        self.missing: list[InputError] = []
        self._groups, self._devices = groups, devices
        self._data: DataOptions = groups["data"]

    def lines(self) -> Iterator[str]:
        """Yields the description, and notes what is missing."""
        data, held_out = self._data, self._groups["held_out"]
        vocabulary = self._tried("VOCABULARY_PATH", read_vocabulary, data.vocabulary_path)
        weights = self._tried("DATA_DIR", data.weights) or {}
        tasks = {data_set.task for data_set in weights} or _tasks_of(data.mixture)
        config = self._config(vocabulary)
        first, start = self._tried("", self._start, config, vocabulary) or (0, "unknown")
        if vocabulary and weights:
            self._tried("", data.check_vocabulary, data.data_dir)
        yield f"start: {start}"
        yield f"steps: {first:,} to {self._groups['run'].train_steps:,}, {counted(data.batch_size, 'row')} each"
        for data_set, weight in weights.items():
            yield self._tried("DATA_DIR", self._set, data_set, weight, first) or f"  {data_set}: no files"
        if held_out.period and held_out.data_dir is not None:
            sets = self._tried("EVAL_DATA_DIR", select_sets, held_out.data_dir, data.mixture) or {}
            if vocabulary and sets:
                self._tried("", data.check_vocabulary, held_out.data_dir)
            yield f"held out: {', '.join(map(str, sets)) or 'nothing'}"
        if vectors := self._groups["calibration"].word_vectors:
            self._tried("WORD_VECTORS", _check_file, vectors)
        if config is not None and (table := self._tried("", self._objectives, config, vocabulary, tasks)):
            yield from self._tried("", self._model, table, bool(weights)) or ()

    def _tried(self, macro: str, function: Callable[..., _T], *arguments: Any) -> _T | None:
        """The result of a call; None after an error, which is noted and names the macro that it is about."""
        try:
            return function(*arguments)
        except InputError as error:
            named = error.field or ""
            field = named if named.isupper() else ", ".join(filter(None, (macro, named)))
            self.missing.append(InputError(error.problem, path=error.path, field=field, remedy=error.remedy))
            return None

    def _config(self, vocabulary: VocabularyFile | None) -> Architecture | None:
        """The model's configuration; without a vocabulary, it has VOCAB_SIZE pieces."""
        options = self._groups["model"]
        if vocabulary is None and options.vocab_size is None:
            return None
        stated = vocabulary or VocabularyFile(self._data.vocabulary_path, b"", options.vocab_size)
        return self._tried("", options.config, stated)

    def _start(self, config: Architecture | None, vocabulary: VocabularyFile | None) -> tuple[int, str]:
        """The step that the run starts after, and what it starts from. Of what is in a store, only names are read."""
        model_dir, initial = self._groups["run"].model_dir, self._groups["checkpoints"].initial_checkpoint_path
        if steps := complete_steps(sizes_below(model_dir)) if is_object(model_dir) else ModelFolder(model_dir).steps():
            if not is_object(model_dir) and config is not None and vocabulary is not None:
                check_same_model(model_dir, config, vocabulary)
            return steps[-1], f"step {steps[-1]:,} of {model_dir}"
        paths = initial if isinstance(initial, Mapping) else {"": initial} if initial else {}
        for name, path in paths.items():
            if is_object(path):
                if not sizes_below(path):
                    remedy = "Name the MODEL_DIR of a run that saved a checkpoint."
                    raise InputError("nothing is stored here", path=path, field=_INITIAL, remedy=remedy)
            elif not ModelFolder(path).is_huggingface:
                checkpoint = find_checkpoint(path)
                part = parts_of(config).get(name) if name and config is not None else config
                if part is not None and vocabulary is not None:
                    check_same_model(folder_of_checkpoint(checkpoint).path, part, vocabulary)
        return 0, f"parameters of {', '.join(paths.values())}" if paths else "random parameters"

    def _set(self, data_set: DataSet, weight: float, first: int) -> str:
        data, folder = self._data, self._data.data_dir
        files, records = len(example_paths(folder, data_set)), registry.example_counts(folder)[data_set]
        listed = recorded_files(read_manifest(folder), folder).items()
        size = sum(size for name, size in listed if name.startswith(f"{data_set.stream}/"))
        steps = weight * (self._groups["run"].train_steps - first)
        share = f"{weight:.1%} of {'each batch' if data.mixed_batches else f'the steps, about {steps:,.0f}'}"
        return (
            f"  {data_set}: {share}: {steps * data.batch_size / records:,.2f} epochs of {counted(records, 'record')} "
            f"in {counted(files, 'file')}, {size / 1e9:,.3f} GB"
        )

    def _objectives(
        self, config: Architecture, vocabulary: VocabularyFile | None, tasks: Collection[str]
    ) -> Objectives:
        pieces = np.zeros(config.vocab_size, bool) if vocabulary is None else continuation_pieces(vocabulary)
        self._data.check_lengths(set(tasks), config)
        table = Objectives(Model(config, pieces), objectives_of(tasks, self._groups.get("objectives", ())))
        check_calibration(config, self._groups["calibration"], is_pretraining=table.pretrains)
        return table

    def _model(self, table: Objectives, has_data: bool) -> list[str]:
        """The model, its layout over the devices and the work of a step."""
        data, optimizer, partitioner = self._data, self._groups["optimizer"], self._groups["model"].partitioner
        mesh = partitioner.abstract_mesh(self._devices)
        check_batch_size(data.batch_size, mesh)
        guarded = optimizer.guards.guarded(optimizer.optimizer)
        state = plan_state(table.model.module, guarded, partitioner, mesh).abstract
        count = sum(array.size for array in jax.tree.leaves(state.params))
        lines = [
            f"model: {table.model.config.summary()}, {count / 1e6:,.1f} M parameters",
            *_layout_lines(state, mesh),
            f"  rows: {data.batch_size // mesh.shape[DATA_AXIS]:,} a step on each of {mesh.shape[DATA_AXIS]} parts",
        ]
        lengths = data.lengths if has_data else data.feature_lengths
        for task in sorted(table.of_task):
            with contextlib.nullcontext() if has_data else contextlib.suppress(InputError):  # a length that data tell
                flops = step_flops(table, task, state.params, lengths, data.batch_size)
                lines.append(f"  {task}: {flops:.3e} FLOPs a step")
        return lines


def _layout_lines(state: TrainState, mesh: AbstractMesh) -> Iterator[str]:
    """Bytes on each device: of all, then of the parameters by how they are divided."""
    params, moments = bytes_per_device(state.params), bytes_per_device(state.opt_state)
    yield f"layout: {' x '.join(f'{size} {name}' for name, size in mesh.shape.items())} devices; bytes on each:"
    yield f"  {params:,} parameters, {moments:,} optimizer, {params:,} gradients; activations are not counted"
    parts = collections.defaultdict(list)
    for array in jax.tree.leaves(state.params):
        parts[str(tuple(filter(None, array.sharding.spec))) if any(array.sharding.spec) else "whole"].append(array)
    for name, arrays in sorted(parts.items()):
        size = f"{sum(array.size for array in arrays):,} parameters"
        yield f"  {name}: {counted(len(arrays), 'array')}, {size}, {bytes_per_device(arrays):,} bytes"


def _tasks_of(mixture: str) -> tuple[str, ...]:
    """The tasks that a mixture can have, where there are no data to ask."""
    name = mixture.partition("/")[0]
    return registry.mixtures().get(name) or tuple(one for one in (name,) if one in registry.names())


def _check_file(path: str) -> None:
    if not exists(path):
        raise InputError("no such file", path=path, remedy="Name a file that exists, or None.")

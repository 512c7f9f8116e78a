"""Builds a run from its options: vocabulary, model, objectives, data, devices; all is checked before it allocates."""

import dataclasses
import math
from collections.abc import Mapping, Sequence

import jax
import optax
from jax.sharding import Mesh

from ..formats.manifest import DataSet
from ..formats.vocabulary import VocabularyFile, read_vocabulary
from ..learning.batches import BatchOptions
from ..learning.mixture import MixtureBatches
from ..learning.objectives import Model, Objective, Objectives, continuation_pieces, objectives_of
from ..learning.options import DataOptions, ModelOptions
from ..learning.partitioning import Partitioner, check_batch_size, data_share
from ..models.encoders import Architecture
from .calibration import Calibration, check_calibration, first_rows
from .costs import peak_flops, step_flops
from .held_out import Evaluation, HeldOut, HeldOutLosses, HeldOutRetrieval, Snapshots, open_held_out
from .loop import TaskStep
from .options import CalibrationOptions, RunOptions
from .train_state import StateLayout, plan_state
from .train_step import make_train_steps


@dataclasses.dataclass(frozen=True)
class Setup:
    """What a run consists of.

    Attributes:
      data: its options.
      vocabulary: of data and model.
      objectives: of all tasks in the mixture, with the model.
      weights: sampling probability of each set.
      batch_options: for whoever opens a set.
      text_length: see `ModelOptions.text_length_of`.
      partitioner: the axis rules.
      mesh: the devices.
    """

    data: DataOptions
    vocabulary: VocabularyFile
    objectives: Objectives
    weights: Mapping[DataSet, float]
    batch_options: BatchOptions
    text_length: int | None
    partitioner: Partitioner
    mesh: Mesh

    @property
    def config(self) -> Architecture:
        """The configuration of the model."""
        return self.objectives.model.config

    def summary(self) -> str:
        """Returns the sets of the run and the shape of the model, for people to read."""
        return f"{', '.join(map(str, sorted(self.weights)))}; {self.config.summary()}"

    def open_batches(self) -> MixtureBatches:
        """Returns the batches of the run from the first one.

        Raises:
          InputError: for missing or damaged files.
        """
        return MixtureBatches(self.weights, self.data.open_set, self.batch_options)

    def calibration(self, options: CalibrationOptions) -> Calibration:
        """Returns what computes parameters from the first rows of the run.

        Raises:
          InputError: for options that do not fit the run.
        """
        check_calibration(
            self.config,
            whitening_rows=options.whitening_rows,
            latent_semantics=options.latent_semantics,
            is_pretraining=self.objectives.pretrains,
        )
        count = math.ceil(options.whitening_rows / self.data.batch_size)
        return Calibration(self.config, self.partitioner, self.mesh, lambda: first_rows(self.open_batches(), count))

    def evaluation(self, held_out: HeldOut) -> Evaluation:
        """Returns the evaluations of the run.

        Raises:
          InputError: if the held-out folder does not fit.
        """
        options = self.batch_options
        if held_out.period and held_out.data_dir is not None:
            options = dataclasses.replace(options, lengths=self.data.lengths_of(held_out.data_dir))
        sets = open_held_out(held_out, self.data.mixture, self.data.open_set, options)
        evaluated = self.objectives.evaluated()
        text_length = self.text_length or self.config.max_length
        losses = HeldOutLosses(sets, evaluated, self.partitioner, self.mesh)
        retrieval = HeldOutRetrieval(sets, held_out.retrieval_rows, evaluated, self.partitioner, self.mesh)
        path = self.data.vocabulary_path
        snapshots = Snapshots(evaluated.model, self.partitioner, self.mesh, path, text_length)
        return Evaluation(held_out, losses, retrieval, snapshots)

    def layout(self, optimizer: optax.GradientTransformation) -> StateLayout:
        """Returns the state of the run before it exists.

        Raises:
          InputError: if the model axis of the mesh does not divide the parameters.
        """
        extra = self.objectives.initial_parameters()
        return plan_state(self.objectives.model.module, optimizer, self.partitioner, self.mesh, extra)

    def steps(self, optimizer: optax.GradientTransformation, layout: StateLayout) -> dict[str, TaskStep]:
        """Returns the step of every task, with its model FLOPs."""
        compiled = make_train_steps(self.objectives, optimizer, layout.abstract, self.partitioner, self.mesh)
        lengths, size = self.data.lengths, self.data.batch_size
        return {
            task: TaskStep(compiled[task], step_flops(task, objective, self.config, lengths, size))
            for task, objective in self.objectives.of_task.items()
        }


def prepare(run: RunOptions, data: DataOptions, model: ModelOptions, objectives: Sequence[Objective] = ()) -> Setup:
    """Builds a run.

    Args:
      run: its seed.
      data: what it trains on.
      model: what it trains.
      objectives: take the place of the registered ones.

    Raises:
      InputError: for a vocabulary, data, an architecture, an objective or options that do not fit each other.
    """
    vocabulary = read_vocabulary(data.vocabulary_path)
    config = model.config(vocabulary)
    weights = data.weights()
    tasks = {data_set.task for data_set in weights}
    data.check_lengths(tasks, config)
    table = Objectives(Model(config, continuation_pieces(vocabulary)), objectives_of(tasks, objectives))
    mesh = model.partitioner.make_mesh()
    check_batch_size(data.batch_size, mesh)
    share = data_share(mesh)
    options = BatchOptions(
        directory=data.data_dir,
        lengths=data.lengths,
        batch_size=data.batch_size // share.count,
        bounds=table.bounds,
        seed=run.seed,
        process_index=share.index,
        process_count=share.count,
        batch_days=data.batch_days,
    )
    text_length = model.text_length_of(None if table.pretrains else data.feature_lengths, config)
    return Setup(data, vocabulary, table, weights, options, text_length, model.partitioner, mesh)


def total_peak_flops(per_device: float | None) -> float | None:
    """Returns the peak FLOP/s of all devices together, None if it is not known.

    Args:
      per_device: of one device; None takes that of its kind.
    """
    per_device = per_device or peak_flops(jax.devices()[0].device_kind)
    return None if per_device is None else per_device * jax.device_count()

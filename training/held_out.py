"""Evaluation while a run trains: the loss on held-out examples, and a hook for benchmarks.

Benchmarks import more than the trainer may, so they come in by gin (`HeldOut.evaluate`).
"""

import dataclasses
import math
import os
from collections.abc import Callable, Mapping
from typing import Any, Final

import gin
import jax
import numpy as np
from jax.sharding import Mesh

from ..errors import InputError
from ..formats.manifest import DataSet
from ..learning.batches import BatchIterator, BatchOpener, BatchOptions
from ..learning.mixture import select_sets
from ..learning.objectives import Model, Objectives, Pairs
from ..learning.partitioning import Partitioner, data_share, place_all, replicated, shard_batch
from ..models.encoders import Architecture
from .retrieval import join_pairs, retrieval_figures

PREFIX: Final = "eval/"
_MASKS: Final = 0x5EED  # held-out rows have the same masks at every evaluation of every run


@dataclasses.dataclass(frozen=True)
class Snapshot:
    """A model in training, as an evaluator sees it.

    Attributes:
      step: steps done.
      config: the architecture.
      vocabulary_path: its vocab.txt.
      embed: token ids int32 [B, L] to embeddings float32 [B, D] of length 1. All processes call it with the same rows.
      rows_multiple: B must be a multiple of it.
      text_length: tokens of the longest text that the run trains on.
    """

    step: int
    config: Architecture
    vocabulary_path: str
    embed: Callable[[np.ndarray], np.ndarray]
    rows_multiple: int
    text_length: int


# Returns metrics by name, the same on every process. Every process calls it; the names get the prefix "eval/".
Evaluator = Callable[[Snapshot], Mapping[str, float]]


@gin.register
@dataclasses.dataclass(frozen=True)
class HeldOut:
    """What is evaluated, and when.

    Attributes:
      period: EVAL_PERIOD, steps between evaluations; the last step is always evaluated. 0 evaluates nothing.
      data_dir: EVAL_DATA_DIR, TFRecords like those of DATA_DIR that the run does not train on, for the held-out loss;
        None leaves it out.
      batches: the most batches of each set for the losses, always the same ones.
      evaluate: an evaluator, such as `@SameEventEvaluator()`; None has none.
      retrieval_rows: EVAL_RETRIEVAL_ROWS, the most rows of each set for the retrieval figures: an anchor looks for its
        positive among the positives of all these rows. 0 leaves them out.
      start: EVAL_START, whether a new run also evaluates and saves what it starts from, so that KEEP_BEST compares with
        it.
    """

    period: int = 0
    data_dir: str | None = None
    batches: int = 8
    evaluate: Evaluator | None = None
    retrieval_rows: int = 0
    start: bool = False

    def __post_init__(self) -> None:
        if self.period < 0 or self.batches < 1:
            raise InputError(
                f"got period {self.period} and {self.batches} batches, expected a period of 0 or more and at least one "
                "batch",
                field="HeldOut",
                remedy="Set EVAL_PERIOD = 0 to evaluate nothing.",
            )
        if self.retrieval_rows < 0 or (self.retrieval_rows and self.data_dir is None):
            raise InputError(
                f"got {self.retrieval_rows} with EVAL_DATA_DIR = {self.data_dir!r}, expected a number of held-out rows",
                field="EVAL_RETRIEVAL_ROWS",
                remedy="Name the held-out examples (EVAL_DATA_DIR), or set it to 0.",
            )
        if self.period and self.data_dir is None and self.evaluate is None:
            raise InputError(
                f"got EVAL_PERIOD = {self.period}, but nothing to evaluate",
                field="HeldOut",
                remedy="Set EVAL_DATA_DIR or HeldOut.evaluate, or EVAL_PERIOD = 0.",
            )
        if self.start and not self.period:
            remedy = "Set EVAL_PERIOD, or EVAL_START = False."
            raise InputError("got True in a run that evaluates nothing", field="EVAL_START", remedy=remedy)

    def is_due(self, step: int) -> bool:
        """Whether this step is evaluated even if it is not the last one."""
        return self.period > 0 and step % self.period == 0


@dataclasses.dataclass(frozen=True)
class _HeldOutSet:
    """The batches of one set that are evaluated, from the state `beginning`.

    Attributes:
      iterator: of the set.
      beginning: its state at the first batch.
      count: batches for the losses.
      retrieval_count: batches for the retrieval figures.
    """

    iterator: BatchIterator
    beginning: bytes
    count: int
    retrieval_count: int


def open_held_out(
    held_out: HeldOut, mixture: str, open_set: BatchOpener, options: BatchOptions
) -> dict[DataSet, _HeldOutSet]:
    """Opens the held-out sets.

    Args:
      held_out: what is evaluated.
      mixture: which sets of the held-out folder count.
      open_set: opens one.
      options: of the training data; the folder is replaced.

    Raises:
      InputError: if the held-out folder does not fit, or has nothing of the mixture.
    """
    if not held_out.period or held_out.data_dir is None:
        return {}
    _refuse_training_data(held_out.data_dir, options.directory)
    # Figures of runs with other BATCH_DAYS can be compared.
    options = dataclasses.replace(options, directory=held_out.data_dir, batch_days=0)
    sets = {}
    for data_set, count in sorted(select_sets(held_out.data_dir, mixture).items()):
        iterator = open_set(data_set, options)
        size = options.batch_size * options.process_count
        batches = max(1, min(held_out.batches, count // size))
        retrieval_batches = math.ceil(min(held_out.retrieval_rows, count) / size)
        sets[data_set] = _HeldOutSet(iterator, iterator.get_state(), batches, retrieval_batches)
    return sets


class HeldOutLosses:
    """The losses on the held-out sets.

    Args:
      sets: see `open_held_out`.
      objectives: of the run; what only helps training is left out.
      partitioner: the axis rules.
      mesh: the devices.
    """

    def __init__(
        self, sets: Mapping[DataSet, _HeldOutSet], objectives: Objectives, partitioner: Partitioner, mesh: Mesh
    ) -> None:
        self._sets, self._objectives, self._partitioner, self._mesh = sets, objectives.evaluated(), partitioner, mesh
        self._compiled: dict[str, Callable[..., Any]] = {}

    def compute(self, params: Any) -> dict[str, float]:
        """Returns `loss/<task>/<language>` and its metrics, `loss/<task>` and `loss`, see `Evaluation.run`."""
        by_set: dict[str, float] = {}
        losses: dict[str, list[float]] = {}
        for data_set, held in self._sets.items():
            held.iterator.set_state(held.beginning)
            parts = []
            for number in range(held.count):
                batch = shard_batch(next(held.iterator), self._mesh)
                part = self._loss_of(data_set.task)(params, batch, number)
                # Wait for each: on CPUs, programs that do not depend on each other may meet their partners in
                # another order.
                parts.append({name: float(value) for name, value in part.items()})
            for name in parts[0]:
                mean = math.fsum(part[name] for part in parts) / held.count
                by_set[f"{name}/{data_set}"] = mean
                if name == "loss":
                    losses.setdefault(f"loss/{data_set.task}", []).append(mean)
        by_task = {name: math.fsum(values) / len(values) for name, values in losses.items()}
        every = [value for values in losses.values() for value in values]
        overall = {"loss": math.fsum(every) / len(every)} if every else {}
        return overall | by_task | by_set

    def _loss_of(self, task: str) -> Callable[..., dict[str, jax.Array]]:
        """Returns the compiled loss of a task: (parameters, batch, number of the batch) to metrics."""
        if task not in self._compiled:

            def loss_of(params: Any, batch: dict[str, jax.Array], number: int) -> dict[str, jax.Array]:
                key = jax.random.fold_in(jax.random.key(_MASKS), number)
                loss, metrics = self._objectives.loss(task, params, batch, key)
                return {"loss": loss, **metrics}

            compiled = jax.jit(loss_of, out_shardings=replicated(self._mesh))
            run = self._partitioner.wrap(compiled, self._mesh)
            tables = place_all(self._objectives.tables(task), self._mesh)
            self._compiled[task] = lambda params, batch, number: run(params, {**tables, **batch}, number)
        return self._compiled[task]


class HeldOutRetrieval:
    """The retrieval figures on the held-out sets, of tasks whose objective has pairs.

    Args:
      sets: see `open_held_out`.
      rows: at most this many of each set.
      objectives: of the run.
      partitioner: the axis rules.
      mesh: the devices.
    """

    def __init__(
        self,
        sets: Mapping[DataSet, _HeldOutSet],
        rows: int,
        objectives: Objectives,
        partitioner: Partitioner,
        mesh: Mesh,
    ) -> None:
        self._sets, self._rows, self._mesh = sets if rows else {}, rows, mesh
        objectives = objectives.evaluated()

        def pairs_of(task: str, params: Any, batch: dict[str, jax.Array]) -> Pairs | None:
            return objectives.pairs(task, params, batch)

        compiled = jax.jit(pairs_of, static_argnums=0, out_shardings=replicated(mesh))
        self._pairs_of = partitioner.wrap(compiled, mesh)

    def compute(self, params: Any) -> dict[str, float]:
        """Returns `retrieval_mrr/<task>/<language>`, `retrieval_mrr`, the mean over the sets, likewise recall at 1."""
        found: dict[str, dict[str, float]] = {}
        for data_set, held in self._sets.items():
            held.iterator.set_state(held.beginning)
            parts = []
            for _ in range(held.retrieval_count):
                pairs = self._pairs_of(data_set.task, params, shard_batch(next(held.iterator), self._mesh))
                if pairs is None:
                    break
                parts.append(Pairs(*map(np.asarray, pairs)))
            if parts:
                for name, value in retrieval_figures(join_pairs(parts, self._rows)).items():
                    found.setdefault(name, {})[f"{name}/{data_set}"] = value
        means = {name: math.fsum(by_set.values()) / len(by_set) for name, by_set in found.items()}
        return means | {name: value for by_set in found.values() for name, value in by_set.items()}


class Snapshots:
    """Makes the snapshots of one run.

    Args:
      model: the model.
      partitioner: the axis rules.
      mesh: the devices.
      vocabulary_path: its vocab.txt.
      text_length: tokens to read of each text.
    """

    def __init__(
        self, model: Model, partitioner: Partitioner, mesh: Mesh, vocabulary_path: str, text_length: int
    ) -> None:
        def embed_rows(params: Any, tokens: jax.Array) -> jax.Array:
            result: jax.Array = model.module.apply({"params": params}, tokens, method="embed")
            return result

        self._config, self._mesh, self._vocabulary_path = model.config, mesh, vocabulary_path
        self._text_length = text_length
        self._embed = partitioner.wrap(jax.jit(embed_rows, out_shardings=replicated(mesh)), mesh)

    def take(self, step: int, params: Any) -> Snapshot:
        """Returns the model after `step` steps."""
        share = data_share(self._mesh)

        def embed(tokens: np.ndarray) -> np.ndarray:
            mine = np.split(tokens, share.count)[share.index]
            return np.asarray(self._embed(params, shard_batch({"tokens": mine}, self._mesh)["tokens"]))

        rows_multiple = len(self._mesh.devices)
        return Snapshot(step, self._config, self._vocabulary_path, embed, rows_multiple, self._text_length)


@dataclasses.dataclass(frozen=True)
class Evaluation:
    """The evaluations of one run.

    Attributes:
      held_out: what and when.
      losses: the losses on held-out examples.
      retrieval: the retrieval figures on them.
      snapshots: makes what the evaluator sees.
    """

    held_out: HeldOut
    losses: HeldOutLosses
    retrieval: HeldOutRetrieval
    snapshots: Snapshots

    @property
    def is_on(self) -> bool:
        """Whether anything is ever evaluated."""
        return self.held_out.period > 0

    @property
    def is_due_at_start(self) -> bool:
        """Whether what a new run starts from is evaluated and saved."""
        return self.held_out.start

    def is_due(self, step: int) -> bool:
        """Whether this step is evaluated even if it is not the last one."""
        return self.held_out.is_due(step)

    def run(self, step: int, params: Any) -> dict[str, float]:
        """Evaluates these parameters.

        Returns:
          `eval/loss/<task>/<language>` (likewise accuracy and what the loss adds), means over the batches;
          `eval/loss/<task>`, the mean over the languages, and `eval/loss`, the mean over all sets; the retrieval
          figures, see `HeldOutRetrieval.compute`; and what the evaluator returns.

        Raises:
          InputError: if the evaluator returns a number that is not finite.
        """
        results = self.losses.compute(params) | self.retrieval.compute(params)
        if self.held_out.evaluate is not None:
            results |= _checked(self.held_out.evaluate(self.snapshots.take(step, params)))
        return {f"{PREFIX}{name}": value for name, value in results.items()}


def _checked(results: Mapping[str, float]) -> dict[str, float]:
    for name, value in results.items():
        if not math.isfinite(value):
            raise InputError(
                f"got {value}, expected a finite number",
                field=f"{PREFIX}{name}",
                remedy="Correct HeldOut.evaluate, or set it to None.",
            )
    return dict(results)


def _refuse_training_data(held_out: str, training: str) -> None:
    if os.path.realpath(held_out) == os.path.realpath(training):
        raise InputError(
            "got DATA_DIR, expected examples that the run does not train on",
            path=held_out,
            field="EVAL_DATA_DIR",
            remedy="Hold some days out (newsembed examples --held_out_share=0.08) and name DATA_DIR/held_out.",
        )

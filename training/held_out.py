"""Evaluation while a run trains: the loss on held-out examples, and a hook for benchmarks, which know more than the trainer may import."""

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
from ..models.encoders.news import EncoderConfig, NewsEncoder
from .batches import BatchIterator, BatchOpener, BatchOptions, DataSet
from .mixture import select_sets
from .partitioning import Partitioner, data_share, replicated, shard_batch
from .steps import Losses, TaskLosses

PREFIX: Final = "eval/"
_MASKS: Final = 0x5EED  # the masks of held-out rows are the same at every evaluation of every run


@dataclasses.dataclass(frozen=True)
class Snapshot:
    """A model in training, as an evaluator sees it.

    Attributes:
      step: steps done.
      config: the architecture.
      vocabulary_path: its vocab.txt.
      embed: token ids int32 [B, L] to embeddings float32 [B, D] of length 1. Over several processes, all call it with the same rows.
      rows_multiple: B must be a multiple of it.
      text_length: tokens of the longest text that the run trains on.
    """

    step: int
    config: EncoderConfig
    vocabulary_path: str
    embed: Callable[[np.ndarray], np.ndarray]
    rows_multiple: int
    text_length: int


# Gives metrics by name, the same on every process. Every process calls it; the names get the prefix "eval/".
Evaluator = Callable[[Snapshot], Mapping[str, float]]


@gin.register
@dataclasses.dataclass(frozen=True)
class HeldOut:
    """What is evaluated, and when.

    Attributes:
      period: EVAL_PERIOD, steps between evaluations; the last step is always evaluated. 0 evaluates nothing.
      data_dir: EVAL_DATA_DIR, TFRecords like those of DATA_DIR that the run does not train on, for the held-out loss; None leaves it out.
      batches: at most so many batches of each set, always the same.
      evaluate: an evaluator, such as `@SameEventEvaluator()`; None has none.
    """

    period: int = 0
    data_dir: str | None = None
    batches: int = 8
    evaluate: Evaluator | None = None

    def __post_init__(self) -> None:
        if self.period < 0 or self.batches < 1:
            raise InputError(
                f"got period {self.period} and {self.batches} batches, expected a period of 0 or more and at least one batch",
                field="HeldOut",
                remedy="Set EVAL_PERIOD = 0 to evaluate nothing.",
            )
        if self.period and self.data_dir is None and self.evaluate is None:
            raise InputError(
                f"got EVAL_PERIOD = {self.period}, but nothing to evaluate",
                field="HeldOut",
                remedy="Set EVAL_DATA_DIR or HeldOut.evaluate, or EVAL_PERIOD = 0.",
            )

    def is_due(self, step: int) -> bool:
        """Whether this step is evaluated, the last one apart."""
        return self.period > 0 and step % self.period == 0


class Evaluation:
    """The evaluations of one run.

    Args:
      held_out: what and when.
      mixture: which sets of the held-out folder count.
      open_set: opens one.
      options: of the training data; the folder is replaced.
      model: the encoder.
      losses: the numbers in the losses.
      partitioner: the axis rules.
      mesh: the devices.
      vocabulary_path: for evaluators.
      text_length: for evaluators, tokens to read of each text.

    Raises:
      InputError: if the held-out folder does not fit, or has nothing of the mixture.
    """

    def __init__(
        self,
        held_out: HeldOut,
        mixture: str,
        open_set: BatchOpener,
        options: BatchOptions,
        model: NewsEncoder,
        losses: Losses,
        partitioner: Partitioner,
        mesh: Mesh,
        vocabulary_path: str,
        text_length: int,
    ) -> None:
        self._held_out, self._partitioner, self._mesh, self._vocabulary_path = (
            held_out,
            partitioner,
            mesh,
            vocabulary_path,
        )
        self._text_length = text_length
        # Dropout is for training; the parameters do not depend on it.
        self._model = NewsEncoder(dataclasses.replace(model.config, dropout_rate=0.0))
        # The masked language model beside the other losses teaches; what is measured is the losses themselves.
        self._losses = TaskLosses(self._model, dataclasses.replace(losses, mlm_weight=0.0))
        self._embed = partitioner.wrap(jax.jit(self._embed_rows, out_shardings=replicated(mesh)), mesh)
        self._compiled: dict[str, Callable[..., Any]] = {}
        self._iterators: dict[DataSet, tuple[BatchIterator, bytes, int]] = {}
        if held_out.period and held_out.data_dir is not None:
            _refuse_training_data(held_out.data_dir, options.directory)
            options = dataclasses.replace(options, directory=held_out.data_dir)
            for data_set, count in sorted(select_sets(held_out.data_dir, mixture).items()):
                iterator = open_set(data_set, options)
                whole_batches = count // (options.batch_size * options.process_count)
                self._iterators[data_set] = (
                    iterator,
                    iterator.get_state(),
                    max(1, min(held_out.batches, whole_batches)),
                )

    @property
    def is_on(self) -> bool:
        """Whether anything is ever evaluated."""
        return self._held_out.period > 0

    def is_due(self, step: int) -> bool:
        """Whether this step is evaluated, the last one apart."""
        return self._held_out.is_due(step)

    def run(self, step: int, params: Any) -> dict[str, float]:
        """Evaluates these parameters.

        Returns:
          `eval/loss/<task>/<language>` (likewise accuracy and what the loss adds), means over the batches; `eval/loss/<task>`, the mean over
          the languages, and `eval/loss`, the mean over all sets; and what the evaluator gives.

        Raises:
          InputError: if the evaluator gives something that is no finite number.
        """
        results = self._held_out_losses(params)
        if self._held_out.evaluate is not None:
            results |= self._checked(self._held_out.evaluate(self._snapshot(step, params)))
        return {f"{PREFIX}{name}": value for name, value in results.items()}

    def _held_out_losses(self, params: Any) -> dict[str, float]:
        by_set: dict[str, float] = {}
        losses: dict[str, list[float]] = {}
        for data_set, (iterator, beginning, count) in self._iterators.items():
            iterator.set_state(beginning)
            parts = []
            for number in range(count):
                part = self._compute(data_set.task, params, shard_batch(next(iterator), self._mesh), number)
                # Waited for one by one: on CPUs, programs that do not depend on each other may meet their partners in another order.
                parts.append({name: float(value) for name, value in part.items()})
            for name in parts[0]:
                mean = math.fsum(part[name] for part in parts) / count
                by_set[f"{name}/{data_set}"] = mean
                if name == "loss":
                    losses.setdefault(f"loss/{data_set.task}", []).append(mean)
        by_task = {name: math.fsum(values) / len(values) for name, values in losses.items()}
        every = [value for values in losses.values() for value in values]
        overall = {"loss": math.fsum(every) / len(every)} if every else {}
        return overall | by_task | by_set

    def _compute(self, task: str, params: Any, batch: dict[str, jax.Array], number: int) -> dict[str, jax.Array]:
        if task not in self._compiled:

            def loss_of(params: Any, batch: dict[str, jax.Array], number: int) -> dict[str, jax.Array]:
                loss, metrics = self._losses.loss(
                    task, params, batch, jax.random.fold_in(jax.random.key(_MASKS), number)
                )
                return {"loss": loss, **metrics}

            self._compiled[task] = self._partitioner.wrap(
                jax.jit(loss_of, out_shardings=replicated(self._mesh)), self._mesh
            )
        return self._compiled[task](params, batch, number)

    def _embed_rows(self, params: Any, tokens: jax.Array) -> jax.Array:
        result: jax.Array = self._model.apply({"params": params}, tokens, method="embed")
        return result

    def _snapshot(self, step: int, params: Any) -> Snapshot:
        share = data_share(self._mesh)

        def embed(tokens: np.ndarray) -> np.ndarray:
            mine = np.split(tokens, share.count)[share.index]
            return np.asarray(self._embed(params, shard_batch({"tokens": mine}, self._mesh)["tokens"]))

        return Snapshot(
            step, self._model.config, self._vocabulary_path, embed, len(self._mesh.devices), self._text_length
        )

    @staticmethod
    def _checked(results: Mapping[str, float]) -> dict[str, float]:
        for name, value in results.items():
            if not math.isfinite(value):
                raise InputError(
                    f"got {value}, expected a finite number",
                    field=f"{PREFIX}{name}",
                    remedy="Mend HeldOut.evaluate, or set it to None.",
                )
        return dict(results)


def _refuse_training_data(held_out: str, training: str) -> None:
    if os.path.realpath(held_out) == os.path.realpath(training):
        raise InputError(
            "got DATA_DIR, expected examples that the run does not train on",
            path=held_out,
            field="EVAL_DATA_DIR",
            remedy="Hold some days or documents out when you build the examples, and name their folder.",
        )

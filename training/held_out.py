"""Evaluation while a run trains: losses and retrieval on held-out examples, and a hook for benchmarks.

Benchmarks import more than the trainer may, so they come in by gin (`HeldOut.evaluate`).
"""

import collections
import dataclasses
import functools
import itertools
import math
import os
from collections.abc import Callable, Iterator, Mapping
from statistics import fmean
from typing import Any, Final, NamedTuple

import gin
import jax
import numpy as np
from jax.sharding import Mesh

from ..errors import InputError
from ..formats.command_line import GinOptions, option
from ..formats.manifest import DataSet
from ..learning.batches import BatchIterator, BatchOpener, BatchOptions
from ..learning.mixture import select_sets
from ..learning.objectives import Objectives, Pairs
from ..learning.partitioning import Partitioner, data_share, place_all, shard_batch
from ..models.encoders import Architecture
from ..models.losses import same_documents

PREFIX: Final = "eval/"
_MASKS: Final = 0x5EED  # held-out rows have the same masks at every evaluation of every run
_QUERIES: Final = 1024  # whose scores exist at a time


@dataclasses.dataclass(frozen=True)
class Snapshot:
    """A model in training, as an evaluator sees it.

    Attributes:
      step: steps done.
      config: the architecture.
      vocabulary_path: its vocab.txt.
      apply: the name of a method of the module, and token ids int32 [B, L], to its result [B, ...]. All processes call
        it with the same rows.
      rows_multiple: B must be a multiple of it.
      text_length: tokens of the longest text that the run trains on.
    """

    step: int
    config: Architecture
    vocabulary_path: str
    apply: Callable[[str, np.ndarray], np.ndarray]
    rows_multiple: int
    text_length: int

    def embed(self, tokens: np.ndarray) -> np.ndarray:
        """Returns the embeddings of token ids int32 [B, L], float32 [B, D] of length 1."""
        return self.apply("embed", tokens)


# Returns metrics by name, the same on every process. Every process calls it; the names get the prefix "eval/".
Evaluator = Callable[[Snapshot], Mapping[str, float]]


@gin.register
@dataclasses.dataclass(frozen=True)
class HeldOut(GinOptions):
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

    period: int = option(0, ge=0, macro="EVAL_PERIOD")
    data_dir: str | None = None
    batches: int = option(8, ge=1, macro="EVAL_BATCHES")
    evaluate: Evaluator | None = None
    retrieval_rows: int = option(0, ge=0, macro="EVAL_RETRIEVAL_ROWS")
    start: bool = option(False, macro="EVAL_START")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.retrieval_rows and self.data_dir is None:
            raise self.refuse("retrieval_rows", "0 where no EVAL_DATA_DIR is named")
        if self.period and self.data_dir is None and self.evaluate is None:
            raise self.refuse("period", "0 where there is neither EVAL_DATA_DIR nor HeldOut.evaluate")
        if self.start and not self.period:
            raise self.refuse("start", "False in a run that evaluates nothing (EVAL_PERIOD = 0)")

    def is_due(self, step: int) -> bool:
        """Whether this step is evaluated even if it is not the last one."""
        return self.period > 0 and step % self.period == 0


class _HeldOutSet(NamedTuple):
    """The batches of one set that are evaluated: for the losses and for retrieval, from the state `beginning`."""

    iterator: BatchIterator
    beginning: bytes
    loss_count: int
    retrieval_count: int

    def first(self, count: int) -> Iterator[Mapping[str, np.ndarray]]:
        """Yields the first batches."""
        self.iterator.set_state(self.beginning)
        for _ in range(count):
            yield next(self.iterator)


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
      InputError: if the held-out folder is that of the training data, does not fit, or has nothing of the mixture.
    """
    if not held_out.period or held_out.data_dir is None:
        return {}
    if os.path.realpath(held_out.data_dir) == os.path.realpath(options.directory):
        raise InputError(
            "got DATA_DIR, expected examples that the run does not train on",
            path=held_out.data_dir,
            field="EVAL_DATA_DIR",
            remedy="Hold some days out (newsembed examples --held_out_share=0.08) and name DATA_DIR/held_out.",
        )
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


class Evaluation:
    """The evaluations of one run.

    Args:
      held_out: what and when.
      sets: see `open_held_out`.
      objectives: of the run; what only helps training is left out.
      partitioner: the axis rules.
      mesh: the devices.
      vocabulary_path: see `Snapshot`.
      text_length: see `Snapshot`.
    """

    def __init__(
        self,
        held_out: HeldOut,
        sets: Mapping[DataSet, _HeldOutSet],
        objectives: Objectives,
        partitioner: Partitioner,
        mesh: Mesh,
        vocabulary_path: str,
        text_length: int,
    ) -> None:
        self.held_out = held_out
        self._sets, self._objectives, self._mesh = sets, objectives.evaluated(), mesh
        self._vocabulary_path, self._text_length = vocabulary_path, text_length

        def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
            return partitioner.compiled(function, mesh)

        def loss(task: str, params: Any, batch: dict[str, jax.Array], number: int) -> dict[str, jax.Array]:
            key = jax.random.fold_in(jax.random.key(_MASKS), number)
            loss, metrics = self._objectives.loss(task, params, batch, key)
            return {"loss": loss, **metrics}

        def method(name: str, params: Any, tokens: jax.Array) -> jax.Array:
            return self._objectives.model.module.apply({"params": params}, tokens, method=name)

        tasks = {data_set.task for data_set in sets}
        self._losses = {task: compiled(functools.partial(loss, task)) for task in tasks}
        self._tables = {task: place_all(self._objectives.tables(task), mesh) for task in tasks}
        self._pairs = {task: compiled(functools.partial(self._objectives.pairs, task)) for task in tasks}
        self._method = functools.cache(lambda name: compiled(functools.partial(method, name)))

    def run(self, step: int, params: Any) -> dict[str, float]:
        """Evaluates these parameters.

        Returns:
          `eval/loss/<task>/<language>` (likewise accuracy and what the loss adds), means over the batches;
          `eval/loss/<task>`, the mean over the languages, and `eval/loss`, the mean over all sets;
          `eval/retrieval_mrr/<task>/<language>` of tasks whose objective has pairs, `eval/retrieval_mrr`, the mean over
          the sets, likewise recall at 1; and what the evaluator returns.

        Raises:
          InputError: if the evaluator returns a number that is not finite.
        """
        results = self.losses(params) | self.retrieval(params)
        if self.held_out.evaluate is not None:
            found = self.held_out.evaluate(self.snapshot(step, params))
            for name, value in found.items():
                if not math.isfinite(value):
                    remedy = "Correct HeldOut.evaluate, or set it to None."
                    problem = f"got {value}, expected a finite number"
                    raise InputError(problem, field=f"{PREFIX}{name}", remedy=remedy)
            results |= found
        return {f"{PREFIX}{name}": value for name, value in results.items()}

    def losses(self, params: Any) -> dict[str, float]:
        """Returns the losses and their metrics on the held-out sets, see `run`."""
        by_set: dict[str, float] = {}
        of_task: dict[str, list[float]] = collections.defaultdict(list)
        for data_set, held in self._sets.items():
            loss, tables, parts = self._losses[data_set.task], self._tables[data_set.task], []
            for number, batch in enumerate(held.first(held.loss_count)):
                part = loss(params, {**tables, **shard_batch(batch, self._mesh)}, number)
                # Wait for each: on CPUs, programs that do not depend on each other may meet their partners in
                # another order.
                parts.append({name: float(value) for name, value in part.items()})
            by_set |= {f"{name}/{data_set}": fmean(part[name] for part in parts) for name in parts[0]}
            of_task[f"loss/{data_set.task}"].append(by_set[f"loss/{data_set}"])
        overall = {"loss": fmean(itertools.chain.from_iterable(of_task.values()))} if of_task else {}
        return overall | {name: fmean(values) for name, values in of_task.items()} | by_set

    def retrieval(self, params: Any) -> dict[str, float]:
        """Returns the retrieval figures on the held-out sets, see `run`."""
        by_set: dict[str, float] = {}
        of_name: dict[str, list[float]] = collections.defaultdict(list)
        for data_set, held in self._sets.items() if self.held_out.retrieval_rows else ():
            batches = (shard_batch(batch, self._mesh) for batch in held.first(held.retrieval_count))
            found = (self._pairs[data_set.task](params, batch) for batch in batches)
            parts = [
                Pairs(*map(np.asarray, pairs)) for pairs in itertools.takewhile(lambda one: one is not None, found)
            ]
            if not parts:
                continue
            ranks = answer_ranks(join_pairs(parts, self.held_out.retrieval_rows))
            for name, figures in (("retrieval_recall_at_1", ranks == 1), ("retrieval_mrr", 1.0 / ranks)):
                value = float(np.mean(figures))
                of_name[name].append(value)
                by_set[f"{name}/{data_set}"] = value
        return {name: fmean(values) for name, values in of_name.items()} | by_set

    def snapshot(self, step: int, params: Any) -> Snapshot:
        """Returns the model after `step` steps."""
        share = data_share(self._mesh)

        def apply(name: str, tokens: np.ndarray) -> np.ndarray:
            mine = np.split(tokens, share.count)[share.index]
            return np.asarray(self._method(name)(params, shard_batch({"tokens": mine}, self._mesh)["tokens"]))

        config, multiple = self._objectives.model.config, len(self._mesh.devices)
        return Snapshot(step, config, self._vocabulary_path, apply, multiple, self._text_length)


def join_pairs(parts: list[Pairs], limit: int) -> Pairs:
    """Returns the distinct rows of all parts, in order, at most this many; NumPy arrays.

    Rows are the same if their documents and kinds are: the last batch of a set may begin its next epoch.
    """
    joined = Pairs(*(np.concatenate([np.asarray(array) for array in arrays]) for arrays in zip(*parts, strict=True)))
    keys = np.concatenate([joined.query_ids[:, :2], joined.answer_ids[:, :2], joined.kind[:, None]], axis=1)
    _, first = np.unique(keys, axis=0, return_index=True)
    kept = np.sort(first)[:limit]
    return Pairs(*(array[kept] for array in joined))


def answer_ranks(pairs: Pairs, event_days: int = 1) -> np.ndarray:
    """Returns the rank of each query's answer among the answers of all rows, int64 [B]; 1 is best.

    Documents of the query's own row do not compete, nor do those of the same event: of
    the same story, with days that differ by at most `event_days` from a day of the row. Ties count against the answer.
    """
    query, answer = np.asarray(pairs.query, np.float32), np.asarray(pairs.answer, np.float32)
    own = np.einsum("id,id->i", query, answer)
    ranks = np.ones(len(query), np.int64)
    for start in range(0, len(query), _QUERIES):
        rows = slice(start, start + _QUERIES)
        competes = np.ones((len(query[rows]), len(answer)), bool)
        for mine in (np.asarray(pairs.query_ids)[rows], np.asarray(pairs.answer_ids)[rows]):
            competes &= ~same_documents(mine, np.asarray(pairs.answer_ids), event_days)
        ranks[rows] += np.sum(competes & (query[rows] @ answer.T >= own[rows, None]), axis=1)
    return ranks

"""What an objective is, the model that it trains, and the table of the objectives of a run."""

import abc
import dataclasses
from collections.abc import Mapping
from typing import Any, ClassVar, NamedTuple, Self

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np

from ...formats.command_line import GinOptions
from ...formats.tfrecords import PIECES, TOPICS
from ...formats.vocabulary import VocabularyFile
from ...models.encoders import Architecture, Capability, require
from ...tasks.registry import MIXED

DeviceBatch = Mapping[str, jax.Array]
Metrics = dict[str, jax.Array]


def continuation_pieces(vocabulary: VocabularyFile) -> np.ndarray:
    """Returns which pieces continue a word ("##ing"), bool [V]."""
    return np.array(vocabulary.continuations)


@dataclasses.dataclass(frozen=True, eq=False)
class Model:
    """A model as the objectives see it.

    Attributes:
      config: the architecture.
      continuations: bool [V], see `continuation_pieces`; None where no objective looks for whole words in plain texts.
      module: the Flax module of the architecture.
    """

    config: Architecture
    continuations: np.ndarray | None = None
    module: nn.Module = dataclasses.field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "module", self.config.module())

    def apply(self, params: Any, key: jax.Array, method: str, *arguments: Any) -> jax.Array:
        """Returns the result of a method of the module in training; dropout, if there is any, is drawn from `key`."""
        return self.module.apply(
            {"params": params},
            *arguments,
            deterministic=self.config.dropout_rate == 0.0,
            rngs={"dropout": key},
            method=method,
        )


class Pairs(NamedTuple):
    """Queries of a batch and their answers, for held-out retrieval.

    Attributes:
      query: embeddings float32 [B, D], rows of length 1.
      answer: embeddings float32 [B, D], rows of length 1.
      query_ids: int32 [B, 5]: the two words of the document's id, those of its event and its day, 0 where unknown.
      answer_ids: int32 [B, 5], likewise.
      kind: int32 [B], rows that differ in it are different although their documents are the same.
    """

    query: jax.Array
    answer: jax.Array
    query_ids: jax.Array
    answer_ids: jax.Array
    kind: jax.Array


@dataclasses.dataclass(frozen=True)
class Objective(GinOptions, abc.ABC):
    """A training objective: the loss of some tasks, with its options as fields. Register subclasses with `register`.

    Bounds of an option are declared with `formats.command_line.option`, and are checked when the objective is made.

    Attributes:
      tasks: names of the tasks that it serves.
      pretrains: True if it leaves the embedding head without gradient. A run of such objectives alone ends with the
        calibration of the head; other runs that start from random parameters begin with it.
    """

    tasks: ClassVar[tuple[str, ...]]
    pretrains: ClassVar[bool] = False

    @property
    def needs(self) -> tuple[Capability, ...]:
        """What the architecture must be able to do, apart from embedding."""
        return ()

    def check(self, model: Model) -> None:
        """Refuses options that do not fit the model.

        Raises:
          InputError: naming the option.
        """

    @abc.abstractmethod
    def loss(self, model: Model, params: Any, batch: DeviceBatch, key: jax.Array) -> tuple[jax.Array, Metrics]:
        """Returns the loss of one batch, a float32 scalar, and scalars to log with it.

        Args:
          model: the model.
          params: its parameters.
          batch: global arrays [B, ...] by feature, and the objective's `tables`.
          key: PRNG key of this step; all randomness follows from it.

        Raises:
          InputError: for a batch that the options do not fit.
        """

    def tables(self) -> dict[str, np.ndarray]:
        """Returns arrays of any shape that the loss finds in every batch, by name.

        A program that is compiled with a large array as a constant holds a copy of it, and is compiled slowly. So the
        trainer puts these on the devices once and gives them to each step.

        Raises:
          InputError: for files that cannot be read.
        """
        return {}

    def bounds(self, config: Architecture) -> dict[str, int]:  # noqa: ARG002
        """Returns bounds of its features' ids other than word pieces and topics, by `FeatureSpec.holds`."""
        return {}

    def pairs(self, model: Model, params: Any, batch: DeviceBatch) -> Pairs | None:  # noqa: ARG002
        """Returns queries and answers, which held-out retrieval ranks; None where the task has none.

        Args:
          model: the model.
          params: its parameters.
          batch: global arrays [B, ...] by feature.
        """
        return None

    def evaluated(self) -> Self:
        """Returns the objective whose loss is measured on held-out examples: without what only helps training."""
        return self


@dataclasses.dataclass(frozen=True, eq=False)
class Objectives:
    """The objectives of a run with their model.

    Attributes:
      model: the model that all of them train.
      of_task: the objective of each task; tasks may share one.
      mixed: the share of each task in the loss of a mixed batch (`mixture.MixedBatches`); empty: no batch is mixed.

    Raises:
      InputError: from the constructor, for a model that lacks what an objective needs, or options that do not fit it.
    """

    model: Model
    of_task: Mapping[str, Objective]
    mixed: Mapping[str, float] = dataclasses.field(default_factory=dict)

    def __post_init__(self) -> None:
        for objective in self.distinct():
            require(self.model.config, *objective.needs, by=f"the objective {type(objective).__name__}")
            objective.check(self.model)

    def distinct(self) -> list[Objective]:
        """Returns every objective once."""
        return list({id(objective): objective for objective in self.of_task.values()}.values())

    @property
    def bounds(self) -> dict[str, int]:
        """How many there are of what features hold ids of, see `tasks.registry.RowMaker`."""
        config = self.model.config
        bounds = {PIECES: config.vocab_size, TOPICS: config.num_topics}
        for objective in self.distinct():
            bounds |= objective.bounds(config)
        return bounds

    @property
    def pretrains(self) -> bool:
        """Whether no objective trains the embedding head."""
        return all(objective.pretrains for objective in self.of_task.values())

    def loss(self, task: str, params: Any, batch: DeviceBatch, key: jax.Array) -> tuple[jax.Array, Metrics]:
        """Returns the loss and the metrics of one batch of a task, see `Objective.loss`.

        Tables that the batch lacks are constants of the program that calls this; see `tables`. The loss of a mixed
        batch is the mean over its rows.
        """
        if task == MIXED:
            total = jnp.zeros(())
            metrics: Metrics = {}
            for number, (part, share) in enumerate(self.mixed.items()):
                own = {name.partition("/")[2]: values for name, values in batch.items() if name.startswith(f"{part}/")}
                loss, found = self.loss(part, params, own, jax.random.fold_in(key, number))
                total += share * loss
                metrics |= {f"{name}_{part}": value for name, value in ({"loss": loss} | found).items()}
            return total, metrics
        objective = self.of_task[task]
        return objective.loss(self.model, params, {**objective.tables(), **batch}, key)

    def tables(self, task: str) -> dict[str, np.ndarray]:
        """Returns what a caller adds to every batch of a task, see `Objective.tables`."""
        if task == MIXED:
            return {f"{part}/{name}": table for part in self.mixed for name, table in self.tables(part).items()}
        return self.of_task[task].tables()

    def pairs(self, task: str, params: Any, batch: DeviceBatch) -> Pairs | None:
        """Returns queries and answers of one batch of a task, see `Objective.pairs`."""
        return self.of_task[task].pairs(self.model, params, batch)

    def evaluated(self) -> "Objectives":
        """Returns the objectives as measured on held-out examples: without dropout and what only helps training."""
        config = self.model.config
        if config.dropout_rate:
            # Dropout is for training; the parameters do not depend on it.
            config = dataclasses.replace(config, dropout_rate=0.0)
        replaced = {id(objective): objective.evaluated() for objective in self.distinct()}
        of_task = {task: replaced[id(objective)] for task, objective in self.of_task.items()}
        return Objectives(Model(config, self.model.continuations), of_task)

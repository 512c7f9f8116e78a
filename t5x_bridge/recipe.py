"""What a run under T5X learns, from which data: the model, its objectives, the sets and the shape of their batches."""

import dataclasses
from collections.abc import Mapping, Sequence

from ..errors import InputError
from ..formats.manifest import DataSet
from ..formats.vocabulary import VocabularyFile, read_vocabulary
from ..learning.batches import BatchOptions
from ..learning.mixture import MixtureBatches
from ..learning.objectives import Model, Objective, Objectives, continuation_pieces, objectives_of
from ..learning.options import DataOptions, ModelOptions
from .layout import BatchLayout, make_layout


@dataclasses.dataclass(frozen=True, eq=False)
class Recipe:
    """A model with what it learns.

    Attributes:
      data: what it trains on; None where it does not train.
      vocabulary: of the model.
      objectives: of all tasks in the mixture, with the model.
      layout: of the batches; None without data.
      text_length: tokens of a text that the finished model reads, see `ModelOptions.text_length_of`.
    """

    data: DataOptions | None
    vocabulary: VocabularyFile
    objectives: Objectives
    layout: BatchLayout | None
    text_length: int | None

    def needed_data(self) -> tuple[DataOptions, BatchLayout]:
        """Returns data and layout.

        Raises:
          InputError: for a model without data.
        """
        if self.data is None or self.layout is None:
            raise InputError(
                "got None, but this run reads training data",
                field="EmbeddingModel.data",
                remedy="Set EmbeddingModel.data = @DataOptions(), as t5x/train.gin does.",
            )
        return self.data, self.layout

    def batch_options(
        self, directory: str, seed: int, batch_size: int, share: tuple[int, int] = (0, 1)
    ) -> BatchOptions:
        """Returns the options for whoever opens a set.

        Args:
          directory: the data folder.
          seed: of the shuffle.
          batch_size: examples over all processes.
          share: number of this process's part of every batch, and number of parts.

        Raises:
          InputError: for a model without data.
        """
        data, _ = self.needed_data()
        return BatchOptions(
            directory=directory,
            lengths=data.lengths,
            batch_size=batch_size // share[1],
            bounds=self.objectives.bounds,
            seed=seed,
            process_index=share[0],
            process_count=share[1],
            batch_days=data.batch_days,
        )

    def open_batches(self, mixture: str, options: BatchOptions) -> MixtureBatches:
        """Returns the batches of a mixture from the first one, as the trainer draws them.

        Raises:
          InputError: for a mixture with a task that the model was not made for, and for missing or damaged files.
        """
        data, _ = self.needed_data()
        weights = dataclasses.replace(data, mixture=mixture).weights()
        self.check_tasks(weights, mixture)
        return MixtureBatches(weights, data.open_set, options)

    def check_tasks(self, sets: Mapping[DataSet, float], mixture: str) -> None:
        """Refuses sets of tasks that the model was not made for.

        Raises:
          InputError: naming the tasks.
        """
        others = sorted({data_set.task for data_set in sets} - set(self.objectives.of_task))
        if others:
            own = ", ".join(self.objectives.of_task)
            raise InputError(
                f"got {mixture!r} with {', '.join(others)}; the model was made for {own}",
                field="DatasetConfig.mixture_or_task_name",
                remedy="Name the same mixture here and in DataOptions.mixture (both are %MIXTURE_OR_TASK_NAME).",
            )


def make_recipe(
    vocabulary_path: str, model: ModelOptions, data: DataOptions | None = None, objectives: Sequence[Objective] = ()
) -> Recipe:
    """Returns the recipe of a run; everything is checked before anything is allocated.

    Args:
      vocabulary_path: the vocab.txt of model and data.
      model: the architecture.
      data: what it trains on; None for a model that only embeds.
      objectives: take the place of the registered ones, each for the tasks that it serves.

    Raises:
      InputError: for a vocabulary, data, an architecture, an objective or options that do not fit each other.
    """
    vocabulary = read_vocabulary(vocabulary_path)
    config = model.config(vocabulary)
    seen = Model(config, continuation_pieces(vocabulary))
    if data is None:
        return Recipe(None, vocabulary, Objectives(seen, {}), None, model.text_length_of(None, config))
    tasks = {data_set.task for data_set in data.weights()}
    data.check_lengths(tasks, config)
    table = Objectives(seen, objectives_of(tasks, objectives))
    text_length = model.text_length_of(None if table.pretrains else data.feature_lengths, config)
    return Recipe(data, vocabulary, table, make_layout(table, data.lengths), text_length)

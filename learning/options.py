"""What a run trains, and on what, in groups that gin configures under their names. Every group checks itself."""

import dataclasses
import functools
from collections.abc import Callable, Mapping

import gin

from ..errors import InputError, refusing
from ..formats.command_line import GinOptions, option
from ..formats.manifest import DataSet, read_inputs
from ..formats.vocabulary import VocabularyFile, input_digest
from ..models.encoders import KINDS, Architecture
from ..tasks import registry
from ..tasks.registry import SMOOTHING
from .batches import BatchOpener, GrainBatches
from .mixture import select_sets
from .partitioning import Partitioner


@gin.register
@dataclasses.dataclass(frozen=True)
class DataOptions(GinOptions):
    """What a run trains on.

    Attributes:
      data_dir: DATA_DIR, the TFRecords with their manifest.
      vocabulary_path: VOCABULARY_PATH, the vocab.txt that the data were written with. An imported tokenizer is
        read from the same folder.
      mixture: MIXTURE_OR_TASK_NAME: a mixture, such as "pretrain", a task, or "task/language".
      feature_lengths: TASK_FEATURE_LENGTHS, tokens per row, by feature; `lengths` has those that the data tell, too.
      batch_size: BATCH_SIZE, examples a step over all devices.
      open_set: opens one set of examples, as `GrainBatches` does.
      smoothing: alpha of the sampling of sets, see `tasks.registry.smoothed_sizes`.
      task_weights: factor on the sampling weight of all sets of a task, 1 where absent.
      batch_days: BATCH_DAYS; a batch of triplets holds anchors of one period of this many days, whose other reports
        are harder negatives than those of any day. 0 draws from all days.
      mixed_batches: every batch has rows of all sets, see `mixture.MixedBatches`. The paper's Table 10 compares this
        with steps of one set each.
    """

    data_dir: str
    vocabulary_path: str
    mixture: str
    feature_lengths: Mapping[str, int]
    batch_size: int
    open_set: BatchOpener = GrainBatches
    smoothing: float = SMOOTHING
    task_weights: Mapping[str, float] | None = None
    batch_days: int = option(0, ge=0, macro="BATCH_DAYS")
    mixed_batches: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        factors = self.task_weights or {}
        if not set(factors) <= set(registry.names()) or any(not factor > 0 for factor in factors.values()):
            raise InputError(
                f"got {dict(factors)}, expected positive factors for some of {', '.join(registry.names())}",
                field="DataOptions.task_weights",
                remedy="Name a single task as MIXTURE_OR_TASK_NAME to leave the others out.",
            )
        if self.mixed_batches and self.batch_days:
            raise self.refuse("mixed_batches", "False where BATCH_DAYS groups the rows of a batch by date")

    def weights(self) -> dict[DataSet, float]:
        """Returns the sampling probability of every set of the mixture.

        Raises:
          InputError: see `mixture.select_sets`.
        """
        factors = self.task_weights or {}
        sizes = registry.smoothed_sizes(select_sets(self.data_dir, self.mixture), self.smoothing)
        scaled = {data_set: size * factors.get(data_set.task, 1.0) for data_set, size in sizes.items()}
        total = sum(scaled.values())
        return {data_set: weight / total for data_set, weight in scaled.items()}

    @functools.cached_property
    def lengths(self) -> Mapping[str, int]:
        """`feature_lengths` with the sizes that the data tell, such as the most labels of a document."""
        return self.lengths_of(self.data_dir)

    def lengths_of(self, folder: str) -> Mapping[str, int]:
        """`feature_lengths` with the sizes that the data of a folder tell."""
        tasks = {data_set.task for data_set in select_sets(folder, self.mixture)}
        return registry.complete_lengths(folder, self.feature_lengths, tasks)

    def check_vocabulary(self, folder: str) -> None:
        """Refuses records of another vocabulary; a folder that no mining job wrote does not say which it has."""
        stated = read_inputs(folder, "vocabulary")
        if stated and input_digest(self.vocabulary_path) not in stated:
            problem, remedy = f"{folder} was written with another vocabulary", "Name the one that its job was given."
            raise InputError(problem, path=self.vocabulary_path, field="VOCABULARY_PATH", remedy=remedy)

    def check_lengths(self, tasks: set[str], config: Architecture) -> None:
        """Refuses rows that are longer than the model reads."""
        for task in sorted(tasks):
            of_task = registry.get(task)
            for name in of_task.text_features:
                if (length := of_task.rules[name].shape(name, self.feature_lengths)[-1]) > config.max_length:
                    raise InputError(
                        f"got {length}, the architecture has {config.max_length} positions",
                        path="TASK_FEATURE_LENGTHS",
                        field=name,
                        remedy=f"Shorten the rows or raise {type(config).__name__}.max_length.",
                    )


@gin.register
@dataclasses.dataclass(frozen=True)
class ModelOptions:
    """What a run trains, and its layout over the devices.

    Attributes:
      architecture: makes the configuration of the model, given `vocab_size`; a class of `models.encoders.KINDS`.
      vocab_size: VOCAB_SIZE; None takes the vocabulary file's.
      text_length: TEXT_LENGTH, how many tokens of a text the finished model reads unless told otherwise. None takes as
        many as it trained on.
      partitioner: the device mesh and axis rules.
    """

    architecture: Callable[..., Architecture]
    vocab_size: int | None = None
    text_length: int | None = None
    partitioner: Partitioner = dataclasses.field(default_factory=Partitioner)

    def config(self, vocabulary: VocabularyFile) -> Architecture:
        """Returns the configuration of the model.

        Raises:
          InputError: for a vocabulary of another size, values out of range, or a kernel that cannot run here.
        """
        if self.vocab_size not in (None, vocabulary.size):
            raise InputError(
                f"the file has {vocabulary.size} pieces, the model's vocab_size is {self.vocab_size}",
                path=vocabulary.path,
                field="VOCAB_SIZE",
                remedy=f"Set VOCAB_SIZE={vocabulary.size}, or name the vocabulary that the model was made for.",
            )
        name = getattr(self.architecture, "__name__", "ModelOptions.architecture")
        with refusing("", ValueError, field=name, remedy="Correct the architecture's gin file."):
            return self.architecture(vocab_size=vocabulary.size)

    def text_length_of(self, lengths: Mapping[str, int] | None, config: Architecture) -> int | None:
        """Returns how many tokens of a text the finished model reads, None where it has learned none.

        Args:
          lengths: `TASK_FEATURE_LENGTHS`; None where the run trains on no whole texts.
          config: the model.

        Raises:
          InputError: for a length that the model cannot read.
        """
        if self.text_length is None:
            if lengths is None:
                return None
            texts = registry.text_features()
            return min(max(length for name, length in lengths.items() if name in texts), config.max_length)
        if not 1 <= self.text_length <= config.max_length:
            raise InputError(
                f"got {self.text_length}, expected 1 to {config.max_length}, the architecture's positions",
                field="TEXT_LENGTH",
                remedy="Give a length that the model can read, or None.",
            )
        return self.text_length


def register_architectures() -> None:
    """Makes the registered architectures configurable by gin, unless their module did."""
    with gin.unlock_config():
        for config_class in KINDS.values():
            try:
                gin.get_configurable(config_class)
            except ValueError:
                gin.external_configurable(config_class, module="newsembed.models")


register_architectures()

"""The options of the losses, by gin."""

import dataclasses
import math
from typing import Any, Final

import gin

from ...errors import InputError
from ...models.losses import TEMPERATURE
from ...models.masking import MASKING_RATE
from ...tasks.triplets import Augmentation

ALL_AUGMENTATIONS: Final = tuple(row.name.lower() for row in Augmentation)
# A learned temperature stays between these, as CLIP's scale between 1 and 100.
LEAST_TEMPERATURE, LARGEST_TEMPERATURE = 0.01, 1.0


@gin.register
@dataclasses.dataclass(frozen=True)
class Losses:
    """The numbers and choices in the losses. The defaults are the paper's.

    Attributes:
      temperature: of InfoNCE; where it is learned, at the start.
      learn_temperature: the temperature is a parameter of the run, exp(log_temperature), kept between 0.01 and 1 (Radford et al. 2021). It lies
        beside the encoder's parameters in the checkpoint, and nothing but training reads it.
      masking_rate: share of word tokens that the masked language model predicts.
      stop_translated_gradient: machine-translated positives and negatives pass no gradient back (section 3.3).
      hard_negatives: False leaves the mined negatives out: an anchor meets the positives of its batch alone.
      symmetric: InfoNCE is the mean of both directions, see `models.losses.info_nce`.
      augmentations: rows of Table 1 that take part, by name in small letters; triplets of other rows have no part in a step, so that its
        batch is effectively smaller (`newsembed examples --weights` leaves them out of the data instead).
      translated_triplets: False gives triplets with translated texts no part.
      matryoshka_sizes: InfoNCE is the sum over these prefixes of the embedding, each brought back to length 1 (Kusupati et al. 2022); ascending,
        the last being the whole embedding. Empty takes the whole embedding only.
      matryoshka_weights: factor of each prefix; empty gives each 1.
      mlm_weight: factor of a masked language model loss on the texts of the same triplets or topics, in the same step; 0.1 is SimLTE's. Whole words
        follow from the "##" pieces, as `pack` numbers them. Translated texts are left out where their gradient is stopped.
      topics_per_row: documents of a topic step that share one row, each attending to itself and pooled on its own; BATCH_SIZE is a multiple of it
        on every device and so many documents fit the model's positions. The loss is the same; rows are fewer and longer.
      vocabulary_chunk: word pieces whose logits exist at a time on each device; 0 takes all of them while they fit
        `models.softmax.LOGITS_AT_A_TIME`, and else as many thousands as fit, see `models.softmax.automatic_chunk`.
      gradient_chunk: texts whose activations exist at a time, over all devices; 0 takes the whole batch. Loss and gradient stay those of the whole
        batch (Gao et al. 2021); each text is encoded once more in the backward pass.
    """

    temperature: float = TEMPERATURE
    masking_rate: float = MASKING_RATE
    stop_translated_gradient: bool = True
    learn_temperature: bool = False
    hard_negatives: bool = True
    symmetric: bool = False
    augmentations: tuple[str, ...] = ALL_AUGMENTATIONS
    translated_triplets: bool = True
    matryoshka_sizes: tuple[int, ...] = ()
    matryoshka_weights: tuple[float, ...] = ()
    mlm_weight: float = 0.0
    topics_per_row: int = 1
    vocabulary_chunk: int = 0
    gradient_chunk: int = 0

    def __post_init__(self) -> None:
        bounds = (LEAST_TEMPERATURE, LARGEST_TEMPERATURE) if self.learn_temperature else (0.0, math.inf)
        is_inside = bounds[0] <= self.temperature <= bounds[1] and self.temperature > 0
        _require(is_inside, "temperature", self.temperature, f"a number from {bounds[0]:g} to {bounds[1]:g}, above 0")
        _require(0 < self.masking_rate < 1, "masking_rate", self.masking_rate, "a number between 0 and 1")
        known = set(self.augmentations) <= set(ALL_AUGMENTATIONS) and len(self.augmentations) > 0
        _require(known, "augmentations", self.augmentations, f"some of {', '.join(ALL_AUGMENTATIONS)}")
        ascending = (
            list(self.matryoshka_sizes) == sorted(set(self.matryoshka_sizes))
            and min(self.matryoshka_sizes, default=1) > 0
        )
        _require(ascending, "matryoshka_sizes", self.matryoshka_sizes, "positive sizes, ascending")
        fits = (
            len(self.matryoshka_weights) in (0, len(self.matryoshka_sizes))
            and min(self.matryoshka_weights, default=0) >= 0
        )
        _require(
            fits,
            "matryoshka_weights",
            self.matryoshka_weights,
            "a factor of at least 0 for each of matryoshka_sizes, or none",
        )
        _require(self.mlm_weight >= 0, "mlm_weight", self.mlm_weight, "0 or more")
        _require(self.topics_per_row >= 1, "topics_per_row", self.topics_per_row, "1 or more")
        _require(self.vocabulary_chunk >= 0, "vocabulary_chunk", self.vocabulary_chunk, "0 or more")
        _require(self.gradient_chunk >= 0, "gradient_chunk", self.gradient_chunk, "0 or more")

    @property
    def selects_triplets(self) -> bool:
        """Whether some triplets have no part."""
        return not self.translated_triplets or set(self.augmentations) != set(ALL_AUGMENTATIONS)

    def prefixes(self, embedding_size: int) -> dict[int, float]:
        """Factor of InfoNCE on each prefix of the embedding.

        Raises:
          InputError: if the last of `matryoshka_sizes` is not the whole embedding.
        """
        sizes = self.matryoshka_sizes or (embedding_size,)
        _require(
            sizes[-1] == embedding_size,
            "matryoshka_sizes",
            sizes,
            f"the embedding's size, {embedding_size}, as the last",
        )
        return dict(zip(sizes, self.matryoshka_weights or [1.0] * len(sizes), strict=True))


def _require(holds: bool, name: str, value: Any, expected: str) -> None:
    if not holds:
        raise InputError(
            f"got {value!r}, expected {expected}",
            field=f"Losses.{name}",
            remedy="Mend the gin file or binding that sets it.",
        )

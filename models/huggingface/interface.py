"""The interface of architectures that Hugging Face's `transformers` can hold, see ``Capability.HUGGING_FACE``."""

from collections.abc import Mapping
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from ..architecture import Architecture


class SentenceModulesLike(Protocol):
    """How sentence-transformers pools the vectors of the tokens, see ``formats.huggingface.SentenceModules``."""

    @property
    def pooling(self) -> str:
        """The vector that is taken: "cls", "mean", "max" or "last", as in `TransformerConfig.pooling`."""
        ...

    @property
    def token_weights(self) -> Any:
        """Float32 [V], or None."""
        ...

    @property
    def lead_length(self) -> int:
        """A token at position p counts 1 / (1 + p / lead_length) in the mean; 0: all the same."""
        ...

    @property
    def sublinear(self) -> bool:
        """Whether the copies of a token count by their logarithm."""
        ...

    @property
    def kernel(self) -> Any:
        """Float32 [H, D] of the dense layer after pooling, or None."""
        ...

    @property
    def bias(self) -> Any:
        """Float32 [D] of that layer, or None."""
        ...

    @property
    def activation(self) -> str:
        """On what that layer returns: "identity" or "tanh"."""
        ...


class ImportedModel(NamedTuple):
    """A model read from the values and arrays of `transformers`.

    Attributes:
      config: its architecture.
      params: nested dict of float32 arrays, tokens in the source's order. Heads that the source lacks are missing.
      plain_heads: all heads, to replace missing ones: they return the pooled vector, or 0.
      ignored: names of arrays that have no place in the architecture.
    """

    config: "HuggingFaceArchitecture"
    params: dict[str, Any]
    plain_heads: dict[str, Any]
    ignored: tuple[str, ...]


class ExportedModel(NamedTuple):
    """A model as `transformers` and sentence-transformers hold it.

    Attributes:
      values: of config.json.
      arrays: by name.
      modules: the attributes of `SentenceModulesLike`, without those that have their default.
      hidden_size: H.
      token_ids: int64 [V], the id that each of our tokens has in this model.
    """

    values: dict[str, Any]
    arrays: dict[str, Any]
    modules: dict[str, Any]
    hidden_size: int
    token_ids: npt.NDArray[np.int64]


class HuggingFaceArchitecture(Architecture, Protocol):
    """An architecture with `Capability.HUGGING_FACE`.

    Attributes:
      head_options: fields that may differ between a Hugging Face folder and the run that starts from it.
    """

    head_options: ClassVar[tuple[str, ...]]

    @classmethod
    def from_huggingface(
        cls,
        values: Mapping[str, Any],
        arrays: Mapping[str, Any],
        modules: SentenceModulesLike,
        *,
        num_topics: int,
        max_length: int | None = None,
    ) -> ImportedModel:
        """Reads a model.

        Args:
          values: of config.json.
          arrays: by name.
          modules: of sentence-transformers.
          num_topics: T.
          max_length: fewer positions than the source has; None keeps them all.

        Raises:
          UnsupportedModelError: if the architecture does not compute that model, or an array does not fit.
        """
        ...

    def to_huggingface(
        self, params: Mapping[str, Any], token_ids: npt.NDArray[np.int64] | None = None
    ) -> ExportedModel:
        """The model without its topic and masked-LM heads.

        Args:
          params: nested, tokens in our order.
          token_ids: int64 [V], the id to give to each of our tokens; None: its own or, where the class of
            `transformers` has its padding token elsewhere, the nearest order.

        Raises:
          UnsupportedModelError: if no class computes it with these tokens.
        """
        ...


class UnsupportedModelError(ValueError):
    """A model of `transformers` that the architecture cannot compute, or the reverse.

    Args:
      field: the key of config.json or of the configuration, or the array.
      problem: as "got X, expected Y".
    """

    def __init__(self, field: str, problem: str) -> None:
        super().__init__(f"{field}: {problem}")
        self.field = field
        self.problem = problem


class UnsupportedArrayError(UnsupportedModelError):
    """An array that is missing, has another shape, or is unknown."""

"""What an architecture can do beside embedding, and the interface that every architecture offers."""

import enum
from collections.abc import Mapping
from typing import Any, ClassVar, Final, Protocol, Self, runtime_checkable

import flax.linen as nn

from ...errors import InputError

NEWS_KIND: Final = "news"


class Capability(enum.StrEnum):
    """A method of the module, or a property of its parameters, that an objective, an exporter or a tool needs.

    Every module has ``__call__(tokens)``, which touches all parameters, and ``embed(tokens, deterministic=True)``: int32 [B, L]
    to float32 [B, D] of unit length. The rest is optional.
    """

    SEQUENCE = "sequence"
    """``encode(tokens, segment_ids, positions, deterministic=True)``: contextual vectors [B, L, H] of packed rows."""
    MASKED_LM = "masked_lm"
    """``mlm_logits(hidden)``, ``mlm_states(hidden)`` and ``output_table()``: logits over the vocabulary; needs SEQUENCE."""
    TOPICS = "topics"
    """``topic_logits(tokens)`` and ``topic_logits_hidden(hidden, tokens)``: one logit for each of ``config.num_topics``."""
    POOLED_PIECES = "pooled_pieces"
    """``pool_pieces(hidden, tokens, segment_ids)`` and an ``embedding_head``, which can be whitened; needs SEQUENCE."""
    PIECE_WEIGHTS = "piece_weights"
    """A parameter ``pooling_logits`` [V]: the logarithm of the weight of each word piece in the pooled vector."""
    LATENT_SEMANTICS = "latent_semantics"
    """A parameter ``token_embedding`` [V, H] that may start from latent semantic analysis; needs PIECE_WEIGHTS."""
    ATTENTION = "attention"
    """``encode_observed(tokens)``: contextual vectors, and the attention that each token receives, by layer."""
    HUGGING_FACE = "hugging_face"
    """The parameters have a layout of ``transformers``, see ``models.huggingface``."""


@runtime_checkable
class Architecture(Protocol):
    """The configuration of a model: a frozen dataclass that is registered in ``models.encoders.KINDS``.

    Attributes:
      kind: name in the registry and in ``model.json``.
      execution_options: fields that change time and memory, never the result; ``to_dict`` leaves them out.
      free_options: fields that may differ between a checkpoint and the run that starts from it, such as the dropout rate.
      vocab_size: word pieces in the vocabulary file, V.
      max_length: the longest row that the model reads.
      embedding_size: width of the document embedding, D.
      num_topics: width of the topic head, T; 0 without one.
      dropout_rate: 0 where the model has no dropout.
      dtype: number type of the activations.
    """

    kind: ClassVar[str]
    execution_options: ClassVar[tuple[str, ...]]
    free_options: ClassVar[tuple[str, ...]]

    @property
    def vocab_size(self) -> int: ...
    @property
    def max_length(self) -> int: ...
    @property
    def embedding_size(self) -> int: ...
    @property
    def num_topics(self) -> int: ...
    @property
    def dropout_rate(self) -> float: ...
    @property
    def dtype(self) -> str: ...

    @property
    def capabilities(self) -> frozenset[Capability]:
        """What the module can do beside embedding."""
        ...

    def module(self) -> nn.Module:
        """The Flax module."""
        ...

    def portable(self) -> Self:
        """The same model computed by XLA's own kernels only, for exports that run on every platform."""
        ...

    def check(self, length: int) -> None:
        """Raises ValueError if rows of ``length`` tokens cannot be computed on the devices of this process."""
        ...

    def flops(self, method: str, length: int) -> float:
        """Model FLOPs of one forward pass of a module's method on one row.

        Args:
          method: "encode", "embed", "topic_logits" or "mlm_logits".
          length: tokens of the row; for "mlm_logits", the number of positions that are predicted.
        """
        ...

    def summary(self) -> str:
        """The size of the model in a few words, such as "12 layers x 768"."""
        ...

    def to_dict(self) -> dict[str, Any]:
        """The model as JSON values without `execution_options`; it identifies the architecture."""
        ...

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Inverse of `to_dict`; raises ValueError for unknown keys and values out of range."""
        ...


def require(config: Architecture, *needed: Capability, by: str) -> None:
    """Refuses an architecture that lacks a capability.

    Args:
      config: the architecture.
      needed: the capabilities.
      by: who needs them, for the message, such as "the masked language model".

    Raises:
      InputError: naming the capabilities that are missing.
    """
    missing = [capability for capability in needed if capability not in config.capabilities]
    if missing:
        raise InputError(
            f"the architecture {config.kind!r} cannot do what {by} needs: {', '.join(missing)}",
            field=type(config).__name__,
            remedy=f"It offers {', '.join(sorted(config.capabilities)) or 'document embeddings only'}; choose another architecture.",
        )

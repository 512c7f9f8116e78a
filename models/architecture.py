"""The interface that every architecture offers, and the capabilities that it may have in addition to embedding."""

import enum
from collections.abc import Mapping
from typing import Any, ClassVar, Final, Protocol, Self, runtime_checkable

import flax.linen as nn

from ..errors import InputError

NEWS_KIND: Final = "news"


class Capability(enum.StrEnum):
    """A method of the module, or a property of its parameters, that an objective, an exporter or a tool needs.

    Every module has ``__call__(tokens)``, which touches all parameters, and ``embed(tokens, deterministic=True)``:
    int32 [B, L] to float32 [B, D] of unit length. The rest is optional.
    """

    SEQUENCE = "sequence"
    """``encode(tokens, segment_ids, positions, deterministic=True)``: contextual vectors [B, L, H] of packed rows."""
    MASKED_LM = "masked_lm"
    """``mlm_logits(hidden)``, ``mlm_states(hidden)``, ``output_table()``: logits [.., V]; needs SEQUENCE."""
    TOPICS = "topics"
    """``topic_logits(tokens)``, ``topic_logits_hidden(hidden, tokens)``: a logit for each of ``config.num_topics``."""
    STOPPED_TEXTS = "stopped_texts"
    """``embed(tokens, stopped)`` with bool [B]: the gradient of these texts ends at the output of the layers, so that
    only the dense layer of the embedding learns from them."""
    POOLED_PIECES = "pooled_pieces"
    """``pool_pieces(hidden, tokens, segment_ids)``, and parameters ``embedding_head`` (kernel [H, D], bias [D]) that
    read the pooled vectors and can be whitened; needs SEQUENCE."""
    PIECE_WEIGHTS = "piece_weights"
    """A parameter ``pooling_logits`` [V], the logarithm of the weight of each word piece in the pooled vector, and
    ``token_weights(tokens, segment_ids)``, the weight of each token, float32 [B, L]."""
    LATENT_SEMANTICS = "latent_semantics"
    """A parameter ``token_embedding`` [V, H] that may start from latent semantic analysis; needs PIECE_WEIGHTS."""
    WORD_VECTORS = "word_vectors"
    """A parameter ``token_embedding`` [V, H] of plain word vectors, which may start from a file of them, or from latent
    semantic analysis without LATENT_SEMANTICS."""
    STATIC = "static"
    """A token has the vector of its piece in every text, which ``encode`` gives for rows of one token, and the pooled
    vector is their weighted mean; needs POOLED_PIECES and PIECE_WEIGHTS."""
    ATTENTION = "attention"
    """``encode_observed(tokens)``: contextual vectors [B, L, H], and the attention that each token receives, float32
    [layers, B, L]."""
    RECONSTRUCTION = "reconstruction"
    """``hidden(tokens)``, float32 [B, D] that is not scaled to length 1 and reads tokens in any order; ``decoder()``,
    the table [V, D] and bias [V] from it to a logit for each word of the vocabulary. The bias is the parameter
    ``decoder_bias``."""
    TRANSLATION = "translation"
    """A decoder: ``translation(tokens, inputs, languages)`` and ``sentence(tokens)``, the vectors of texts, not scaled,
    float32 [B, P], the former with the states of the target tokens, [B, T, S]; ``target_logits(states)`` and
    ``target_table()``, from states to logits [.., V]; ``read(tokens)``, ``write(reading, inputs, languages)`` and
    ``translate(tokens, languages, length)``; the configuration has ``num_languages``. FLOPs of "write"."""
    BILINGUAL = "bilingual"
    """Two translators, of which number k writes language k and reads the other: ``read(tokens, number)``,
    ``write(reading, inputs, number)``, ``target_logits(states, number)`` and ``target_table(number)`` as those of
    TRANSLATION; ``language_logits(tokens)``, the log odds of language 1, float32 [B]; the configuration has
    ``num_heads``, the parts of equal width of which a reading's `sentence` consists. FLOPs of "read" and "write"."""
    PARTS = "parts"
    """The configuration has ``parts``, the architectures of models that are parts of this one by the name of their
    parameters, which may start from checkpoints of these models."""
    HUGGING_FACE = "hugging_face"
    """The parameters have a layout of ``transformers``; the configuration is a `HuggingFaceArchitecture`."""


@runtime_checkable
class Architecture(Protocol):
    """The configuration of a model: a frozen dataclass that is registered in ``models.encoders.KINDS``.

    Attributes:
      kind: name in the registry and in ``model.json``.
      execution_options: fields that change time and memory, never the result; ``to_dict`` leaves them out.
      free_options: fields that may differ between a checkpoint and the run that starts from it, such as the dropout
        rate.
      vocab_size: word pieces in the vocabulary file, V.
      max_length: the longest row that the model reads.
      embedding_size: width of the document embedding, D.
      num_topics: width of the topic head, T; 0 without one.
      dropout_rate: 0 where the model has no dropout.
      dtype: number type of the activations.
    """

    __dataclass_fields__: ClassVar[dict[str, Any]]
    kind: ClassVar[str]
    execution_options: ClassVar[tuple[str, ...]]
    free_options: ClassVar[tuple[str, ...]]

    @property
    def vocab_size(self) -> int:
        """Word pieces in the vocabulary file, V."""
        ...

    @property
    def max_length(self) -> int:
        """The longest row that the model reads."""
        ...

    @property
    def embedding_size(self) -> int:
        """Width of the document embedding, D."""
        ...

    @property
    def num_topics(self) -> int:
        """Width of the topic head, T; 0 without one."""
        ...

    @property
    def dropout_rate(self) -> float:
        """Share of activations dropped in training; 0 where the model has no dropout."""
        ...

    @property
    def dtype(self) -> str:
        """Number type of the activations: float32, bfloat16 or float16."""
        ...

    @property
    def capabilities(self) -> frozenset[Capability]:
        """What the module can do in addition to embedding."""
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

    def __hash__(self) -> int: ...


def parts_of(config: Architecture) -> Mapping[str, Architecture]:
    """The architectures of the models that are parts of a model, by the name of their parameters; empty without any."""
    return getattr(config, "parts", {}) if Capability.PARTS in config.capabilities else {}


def require(config: Architecture, *needed: Capability, by: str, remedy: str = "Choose another architecture.") -> None:
    """Refuses an architecture that lacks a capability.

    Args:
      config: the architecture.
      needed: the capabilities.
      by: who needs them, for the message, such as "the masked language model".
      remedy: what the user can do.

    Raises:
      InputError: naming the capabilities that are missing.
    """
    missing = [capability for capability in needed if capability not in config.capabilities]
    if missing:
        offered = ", ".join(sorted(config.capabilities)) or "document embeddings only"
        raise InputError(
            f"{by} needs {', '.join(missing)}, and this {config.kind} architecture offers {offered}",
            field=type(config).__name__,
            remedy=remedy,
        )

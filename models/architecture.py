"""What every architecture offers, the capabilities that it may have in addition to embedding, and the registry.

Nothing here imports JAX, so that a model without layers can be served without it.
"""

import dataclasses
import enum
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal, Self, TypeVar, get_args, get_origin

from ..errors import InputError, refusing

if TYPE_CHECKING:
    import flax.linen as nn

NEWS_KIND: Final = "news"
DTYPES: Final = ("float32", "bfloat16", "float16")  # of activations; `attention.TYPES` has those of JAX


class Capability(enum.StrEnum):
    """A method of the module, or a property of its parameters, that an objective, an exporter or a tool needs.

    Every module has ``__call__(tokens)``, which touches all parameters, and ``embed(tokens, deterministic=True)``:
    int32 [B, L] to float32 [B, D] of unit length. The rest is optional.

    Attributes:
      SEQUENCE: ``encode(tokens, segment_ids, positions, deterministic=True)``: contextual vectors [B, L, H] of packed
        rows.
      MASKED_LM: ``mlm_states(hidden)``, and ``output_table()`` from them to logits [.., V]; needs SEQUENCE.
      TOPICS: ``topic_logits(tokens)``, ``topic_logits_hidden(hidden, tokens)``: a logit for each of
        ``config.num_topics``.
      STOPPED_TEXTS: ``embed(tokens, stopped)`` with bool [B]: the gradient of these texts ends at the output of the
        layers, so that only the dense layer of the embedding learns from them.
      POOLED_PIECES: ``pool_pieces(hidden, tokens, segment_ids)``, and parameters ``embedding_head`` (kernel [H, D],
        bias [D]) that read the pooled vectors and can be whitened; needs SEQUENCE.
      PIECE_WEIGHTS: A parameter ``pooling_logits`` [V], the logarithm of the weight of each word piece in the pooled
        vector, and ``token_weights(tokens, segment_ids)``, the weight of each token, float32 [B, L].
      LATENT_SEMANTICS: A parameter ``token_embedding`` [V, H] that may start from latent semantic analysis; needs
        PIECE_WEIGHTS.
      WORD_VECTORS: A parameter ``token_embedding`` [V, H] of plain word vectors, which may start from a file of them,
        or from latent semantic analysis without LATENT_SEMANTICS.
      STATIC: A token has the vector of its piece in every text, which ``encode`` gives for rows of one token, and the
        pooled vector is their weighted mean; needs POOLED_PIECES and PIECE_WEIGHTS.
      ATTENTION: ``encode_observed(tokens)``: contextual vectors [B, L, H], and the attention that each token receives,
        float32 [layers, B, L].
      RECONSTRUCTION: ``hidden(tokens)``, float32 [B, D] that is not scaled to length 1 and reads tokens in any order;
        ``decoder()``, the table [V, D] and bias [V] from it to a logit for each word of the vocabulary. The bias is the
        parameter ``decoder_bias``.
      TRANSLATION: A decoder: ``translation(tokens, inputs, languages)`` and ``sentence(tokens)``, the vectors of texts,
        not scaled, float32 [B, P], the former with the states of the target tokens, [B, T, S]; ``target_table()``, from
        states to logits [.., V]; ``read(tokens)``, ``write(reading, inputs, languages)``; the configuration has
        ``num_languages``.
      BILINGUAL: Two translators, of which number k writes language k and reads the other: ``read(tokens, number)``,
        ``write(reading, inputs, number)`` and ``target_table(number)`` as those of TRANSLATION;
        ``language_logits(tokens)``, the log odds of language 1, float32 [B]; the configuration has ``num_heads``, the
        parts of equal width of which a reading's `sentence` consists.
      LABELS: A head of a labelled task: ``label_logits(tokens)``, float32 [B, C] of texts or [B, L, C] of tokens; the
        configuration has ``outputs``, C.
      PARTS: The configuration has ``parts``, the architectures of models that are parts of this one by the name of
        their parameters, which may start from checkpoints of these models.
      HUGGING_FACE: The parameters have a layout of ``transformers``.
    """

    SEQUENCE = "sequence"
    MASKED_LM = "masked_lm"
    TOPICS = "topics"
    STOPPED_TEXTS = "stopped_texts"
    POOLED_PIECES = "pooled_pieces"
    PIECE_WEIGHTS = "piece_weights"
    LATENT_SEMANTICS = "latent_semantics"
    WORD_VECTORS = "word_vectors"
    STATIC = "static"
    ATTENTION = "attention"
    RECONSTRUCTION = "reconstruction"
    TRANSLATION = "translation"
    BILINGUAL = "bilingual"
    LABELS = "labels"
    PARTS = "parts"
    HUGGING_FACE = "hugging_face"


class Architecture:
    """The configuration of a model: base of frozen dataclasses that are registered in ``models.encoders.KINDS``.

    Values are checked when one is made: an integer is at least 1 or what `least` says, a ``Literal`` one of its values,
    and a float positive, but for the dropout rate.

    Attributes:
      kind: name in the registry and in ``model.json``.
      execution_options: fields that change time and memory, never the result; ``to_dict`` leaves them out.
      free_options: fields that may differ between a checkpoint and the run that starts from it, such as the dropout
        rate.
      later_options: fields that ``to_dict`` leaves out at their default, because older descriptions lack them.
      least: the smallest value of an integer field, where it is not 1.
      vocab_size: word pieces in the vocabulary file, V.
      max_length: the longest row that the model reads.
      embedding_size: width of the document embedding, D.
      capabilities: what the module can do in addition to embedding.
      module_class: the Flax module, which has this configuration as its only field.
    """

    __dataclass_fields__: ClassVar[dict[str, Any]]
    kind: ClassVar[str] = ""
    execution_options: ClassVar[tuple[str, ...]] = ()
    free_options: ClassVar[tuple[str, ...]] = ()
    later_options: ClassVar[tuple[str, ...]] = ()
    least: ClassVar[Mapping[str, int]] = {}

    if TYPE_CHECKING:
        module_class: ClassVar[Callable[[Any], nn.Module]]
        vocab_size: int
        max_length: int

        @property
        def embedding_size(self) -> int:
            """Width of the document embedding, D."""
            ...

    @property
    def capabilities(self) -> frozenset[Capability]:
        """What the module can do in addition to embedding."""
        return frozenset()

    @property
    def num_topics(self) -> int:
        """Width of the topic head, T; 0 without one."""
        return 0

    @property
    def dropout_rate(self) -> float:
        """Share of activations dropped in training; 0 where the model has no dropout."""
        return 0.0

    @property
    def dtype(self) -> str:
        """Number type of the activations: float32, bfloat16 or float16."""
        return DTYPES[0]

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            value, expected = getattr(self, field.name), ""
            allowed = (True, False) if field.type is bool else get_args(field.type)
            if field.type is int:
                least = self.least.get(field.name, 1)
                if not isinstance(value, int) or isinstance(value, bool) or value < least:
                    expected = f"an integer of at least {least}"
            elif field.type is float and field.name != "dropout_rate" and not value > 0:
                expected = "a positive number"
            elif (field.type is bool or get_origin(field.type) is Literal) and value not in allowed:
                expected = f"one of {', '.join(map(str, allowed))}"
            self.require(field.name, not expected, expected)
        self.require("dropout_rate", 0 <= self.dropout_rate < 1, "at least 0 and less than 1")
        self.require("dtype", self.dtype in DTYPES, f"one of {', '.join(DTYPES)}")

    def require(self, name: str, holds: bool, expected: str, *, beside: str = "") -> None:
        """Refuses a field unless a condition holds.

        Raises:
          ValueError: naming the class, the field, its value, that of the field `beside`, and what was expected.
        """
        if not holds:
            values = [f"{getattr(self, name)!r}", *([f"{beside} = {getattr(self, beside)}"] if beside else [])]
            raise ValueError(f"{type(self).__name__}.{name}: got {' with '.join(values)}, expected {expected}")

    def module(self) -> "nn.Module":
        """The Flax module."""
        return type(self).module_class(self)

    def portable(self) -> Self:
        """The same model computed by XLA's own kernels only, for exports that run on every platform."""
        return self

    def summary(self) -> str:
        """The size of the model in a few words, such as "12 layers x 768"."""
        return f"{self.kind} x {self.embedding_size}"

    def to_dict(self) -> dict[str, Any]:
        """The model as JSON values without `execution_options`; it identifies the architecture."""
        values = dataclasses.asdict(self)
        defaults = {field.name: field.default for field in dataclasses.fields(self)}
        left_out = {name for name in self.later_options if values[name] == defaults[name]}
        return {name: value for name, value in values.items() if name not in left_out.union(self.execution_options)}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Inverse of `to_dict`; execution options take their defaults unless they are given.

        Raises:
          ValueError: for a key that is not a field, or a value out of range.
        """
        known = [field.name for field in dataclasses.fields(cls)]
        if unknown := sorted(set(values) - set(known)):
            found, expected = ", ".join(unknown), ", ".join(known)
            raise ValueError(f"{cls.__name__}: got the unknown keys {found}, expected some of {expected}")
        return cls(**values)


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


KINDS: Final[dict[str, type[Architecture]]] = {}

_C = TypeVar("_C", bound=type[Architecture])


def register(config_class: _C) -> _C:
    """Adds a configuration class under its ``kind``; usable as a decorator. The same class may be registered again.

    Raises:
      ValueError: if another class has this kind.
    """
    known = KINDS.setdefault(config_class.kind, config_class)
    if known is not config_class:
        raise ValueError(f"the architecture kind {config_class.kind!r} is registered twice: {known} and {config_class}")
    return config_class


def named_kind(config: Architecture) -> str | None:
    """The kind as model folders name it: None for the news encoder, whose folders are older than the registry."""
    return None if config.kind == NEWS_KIND else config.kind


def config_from_dict(values: Mapping[str, Any], kind: str | None = None, *, path: str | None = None) -> Architecture:
    """The configuration that `Architecture.to_dict` wrote.

    Args:
      values: of ``to_dict``.
      kind: of the architecture, from `named_kind`.
      path: the file to name in errors.

    Raises:
      InputError: for a kind that is not registered, unknown keys or values out of range.
    """
    kind = NEWS_KIND if kind is None else kind
    if kind not in KINDS:
        raise InputError(
            f"got the architecture {kind!r}, expected one of {', '.join(sorted(KINDS))}",
            path=path,
            field="kind",
            remedy="Import the module that registers it: newsembed --import MODULE COMMAND …",
        )
    remedy = "Restore the file, or use the version of newsembed that wrote it."
    with refusing("no model description:", ValueError, TypeError, path=path, remedy=remedy):
        return KINDS[kind].from_dict(values)

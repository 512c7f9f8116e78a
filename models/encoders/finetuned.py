"""An encoder with the head of one labelled task, all of which is trained: sentence pairs, words, answers.

The heads are those with which XTREME (Hu et al. 2020) fine-tunes by `transformers`. They read the encoder's states h,
[B, L, H]::

    pair   dropout, a dense layer with tanh, dropout and a linear layer on h of [CLS] (XLM-R's)        [B, C]
    word   dropout and a linear layer on each h                                                        [B, L, C]
    span   a linear layer on each h, for the first and the last token of an answer                     [B, L, 2]

Imported models have one token type: the second text of a pair is known by the [SEP] before it.
"""

import dataclasses
from collections.abc import Mapping
from typing import Any, ClassVar, Literal, Self

import flax.linen as nn
import jax
import jax.numpy as jnp

from ..architecture import NEWS_KIND, Architecture, Capability, config_from_dict, register
from ..blocks import dense

FINETUNED_KIND = "finetuned"
_PART = "encoder"


class Finetuned(nn.Module):
    """The encoder and its head."""

    config: "FinetunedConfig"

    def setup(self) -> None:
        """Declares the encoder and the head."""
        config, encoder = self.config, self.config.architecture
        self.encoder = encoder.module()
        self.dropout = nn.Dropout(config.dropout_rate)
        if config.head == "pair":
            self.head_transform = dense(encoder.hidden_size, ("embed", "embed_out"), jnp.float32)
        self.head_output = dense(config.outputs, ("embed", "labels"), jnp.float32)

    def __call__(self, tokens: jax.Array) -> Any:
        """What the encoder returns, and the logits: touches every parameter."""
        return self.encoder(tokens), self.label_logits(tokens)

    def embed(self, tokens: jax.Array, *, deterministic: bool = True) -> jax.Array:
        """The encoder's embeddings [B, D] of tokens int32 [B, L]."""
        return self.encoder.embed(tokens, deterministic=deterministic)

    def label_logits(self, tokens: jax.Array, *, deterministic: bool = True) -> jax.Array:
        """A logit for each label of rows int32 [B, L]: float32 [B, C] of pairs, [B, L, C] of words and spans."""
        states = self.encoder.encode(tokens, deterministic=deterministic).astype(jnp.float32)
        if self.config.head == "pair":
            states = self.dropout(states[:, 0], deterministic=deterministic)
            states = jnp.tanh(self.head_transform(states))
        if self.config.head != "span":
            states = self.dropout(states, deterministic=deterministic)
        return self.head_output(states)


@register
@dataclasses.dataclass(frozen=True)
class FinetunedConfig(Architecture):
    """An encoder with a head as an `Architecture`.

    Attributes:
      vocab_size: of the encoder.
      architecture: of the encoder, which has `Capability.SEQUENCE`; or what its ``to_dict`` gives with its "kind",
        without "vocab_size" and "dropout_rate".
      head: "pair", "word" or "span", see the module.
      outputs: labels, C; 2 of spans.
      dropout_rate: of the encoder's layers, where it has such an option, and of the head.
    """

    kind: ClassVar[str] = FINETUNED_KIND
    module_class: ClassVar[type[nn.Module]] = Finetuned
    capabilities: ClassVar[frozenset[Capability]] = frozenset({Capability.LABELS, Capability.PARTS})
    free_options: ClassVar[tuple[str, ...]] = ("dropout_rate",)

    vocab_size: int
    architecture: Any = None
    head: Literal["pair", "word", "span"] = "pair"
    outputs: int = 2
    dropout_rate: float = 0.1

    def __post_init__(self) -> None:
        part = self.architecture
        if not isinstance(part, Architecture):
            values = {**(part or {}), "vocab_size": self.vocab_size}
            kind = values.pop("kind", NEWS_KIND)
            part = config_from_dict(values, kind)
        if any(field.name == "dropout_rate" for field in dataclasses.fields(part)):
            part = dataclasses.replace(part, dropout_rate=self.dropout_rate)
        object.__setattr__(self, "architecture", part)
        super().__post_init__()
        self.require("architecture", Capability.SEQUENCE in part.capabilities, "one with contextual vectors of tokens")

    @property
    def max_length(self) -> int:  # type: ignore[override]
        """The longest row that the encoder reads."""
        return int(self.architecture.max_length)

    @property
    def embedding_size(self) -> int:
        """Width of the encoder's embedding."""
        return int(self.architecture.embedding_size)

    @property
    def dtype(self) -> str:
        """Number type of the encoder's activations."""
        return str(self.architecture.dtype)

    @property
    def parts(self) -> Mapping[str, Architecture]:
        """The encoder, by the name of its parameters."""
        return {_PART: self.architecture}

    def portable(self) -> Self:
        """The same model with the encoder's portable kernels."""
        return dataclasses.replace(self, architecture=self.architecture.portable())

    def summary(self) -> str:
        """The encoder and the head."""
        return f"{self.architecture.summary()}, a head of {self.outputs} outputs for each {self.head}"

    def to_dict(self) -> dict[str, Any]:
        """JSON values; those of the encoder are below "architecture"."""
        values = {name: getattr(self, name) for name in ("vocab_size", "head", "outputs", "dropout_rate")}
        part = {name: value for name, value in self.architecture.to_dict().items() if name != "vocab_size"}
        return {**values, "architecture": {**part, "kind": self.architecture.kind}}

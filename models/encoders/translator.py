"""T-MDE: a transformer encoder whose sentence vector alone feeds a decoder of one layer that translates.

Source: Wei Li, "Multilingual document embedding from translation", thesis at HKUST 2021, chapter 4. Three encoders::

    vector   T-MDE     P is the output of the first token, [CLS]; the decoder reads [P; target language]
    pooled   T-MDE_P   P is pooled by learned vectors over the upper layers (section 4.3.3)
    none     T-MDE_F   the decoder reads all outputs of the encoder, without bottleneck; P is as in T-MDE (Table 4.6)

The learned vectors Z (32) query the outputs H4 of layer 4 with layer 4's own weights; the first 16 of the result query
all 32 with layer 5's, and the first 8 of that all 16 with layer 6's. A seventh layer, with H6[0] as its query and
[H6[0] … H1[0]; Z6] as keys, gives P. Equations 4.10 and 4.12 leave the output of the feed-forward layer unused and
number all of them 4; we read that each layer passes on its output and has its own feed-forward layer.

Shapes: B rows, L source tokens, T target tokens, H hidden units, V word pieces.
"""

import dataclasses
from typing import ClassVar, Final, Literal

import flax.linen as nn
import jax
import jax.numpy as jnp

from ..architecture import Architecture, Capability, register
from ..attention import PAD_ID, TYPES
from ..blocks import norm, parameter
from ..decoder import (
    EPSILON,
    EncoderDecoder,
    FeedForward,
    MultiHead,
    OutputTable,
    Reading,
    language_table,
    sinusoids,
    word_table,
)

_QUERIES: Final = (32, 16, 8)  # learned vectors, and how many of them go on from each pooling layer


class Layer(nn.Module):
    """Attention to a memory and a feed-forward layer, each behind a norm and with a residual sum (pre-norm)."""

    config: "TranslatorConfig"

    @nn.compact
    def __call__(
        self, states: jax.Array, memory: jax.Array | None, mask: jax.Array | None, *, deterministic: bool
    ) -> jax.Array:
        """[B, Q, H] over [B, K, H], which gets the same norm as the queries -> [B, Q, H].

        Args:
          states: [B, Q, H], the queries and the residual stream.
          memory: [B, K, H]; None: the states themselves.
          mask: see `MultiHead`.
          deterministic: without dropout.
        """
        config, dtype = self.config, TYPES[self.config.dtype]
        attention_norm = norm(EPSILON, dtype, "attention_norm")
        dropout = nn.Dropout(config.dropout_rate, deterministic=deterministic)
        queries = attention_norm(states)
        keys = queries if memory is None else attention_norm(memory)
        states = states + dropout(MultiHead(config.num_heads, dtype, name="attention")(queries, keys, mask))
        inner = norm(EPSILON, dtype, "mlp_norm")(states)
        return states + dropout(FeedForward(config.mlp_size, dtype, name="mlp")(inner))


class TransformerDecoder(nn.Module):
    """Causal self-attention, attention to a memory and feed-forward layers, behind norms (pre-norm)."""

    config: "TranslatorConfig"

    @nn.compact
    def __call__(
        self, inputs: jax.Array, memory: jax.Array, mask: jax.Array | None, *, deterministic: bool
    ) -> jax.Array:
        """The state before the output table at each target token, [B, T, H]; token t sees the tokens up to t.

        Args:
          inputs: int32 [B, T], the target tokens before those to predict.
          memory: [B, K, M], what the decoder reads of the source.
          mask: bool [B, 1, 1, K], False on padding of the memory; None: all is read.
          deterministic: without dropout.
        """
        config, dtype = self.config, TYPES[self.config.dtype]
        dropout = nn.Dropout(config.dropout_rate, deterministic=deterministic)
        table = word_table(self, "token_embedding", config.vocab_size, config.hidden_size)
        states = table[inputs] * config.hidden_size**0.5 + sinusoids(inputs.shape[1], config.hidden_size)
        states = dropout(states.astype(dtype))
        places = jnp.arange(inputs.shape[1])
        causal = (places[:, None] >= places[None, :])[None, None]
        for number in range(config.decoder_layers):
            name = f"layers_{number}"
            inner = norm(EPSILON, dtype, f"{name}_self_norm")(states)
            own = MultiHead(config.num_heads, dtype, name=f"{name}_self_attention")
            states = states + dropout(own(inner, inner, causal))
            inner = norm(EPSILON, dtype, f"{name}_source_norm")(states)
            source = MultiHead(config.num_heads, dtype, name=f"{name}_source_attention")
            states = states + dropout(source(inner, memory.astype(dtype), mask))
            inner = norm(EPSILON, dtype, f"{name}_mlp_norm")(states)
            states = states + dropout(FeedForward(config.mlp_size, dtype, name=f"{name}_mlp")(inner))
        return norm(EPSILON, dtype, "output_norm")(states)


class Translator(EncoderDecoder):
    """The encoder, and the decoder that trains it."""

    config: "TranslatorConfig"

    def setup(self) -> None:
        """Declares encoder and decoder."""
        config, dtype = self.config, TYPES[self.config.dtype]
        self.token_embedding = word_table(self, "token_embedding", config.vocab_size, config.hidden_size)
        layers = config.num_layers + (config.bottleneck == "pooled")
        self.layers = [Layer(config) for _ in range(layers)]
        self.encoder_norm = norm(EPSILON, dtype, "encoder_norm")
        if config.bottleneck == "pooled":
            shape = (_QUERIES[0], config.hidden_size)
            self.pooling_queries = parameter(
                self, "pooling_queries", nn.initializers.normal(1.0), shape, "position", "embed"
            )
        self.language_embedding = language_table(self, config.num_languages, config.language_size)
        self.decoder = TransformerDecoder(config)
        self.output = OutputTable(config.vocab_size, config.hidden_size)
        self.dropout = nn.Dropout(config.dropout_rate)

    def read(self, tokens: jax.Array, *, deterministic: bool = True) -> Reading:
        """The `Reading` of source texts int32 [B, L]."""
        config = self.config
        is_token = tokens != PAD_ID
        states = self.token_embedding[tokens] * config.hidden_size**0.5 + sinusoids(tokens.shape[1], config.hidden_size)
        states = self.dropout(states.astype(TYPES[config.dtype]), deterministic=deterministic)
        outputs = []
        for layer in self.layers[: config.num_layers]:
            states = layer(states, None, is_token[:, None, None, :], deterministic=deterministic)
            outputs.append(states)
        pooled = states[:, :1]
        if config.bottleneck == "pooled":
            pooled = self._pool(outputs, is_token, deterministic=deterministic)
        sentence = self.encoder_norm(pooled)[:, 0].astype(jnp.float32)
        has_text = jnp.any(is_token, axis=1, keepdims=True)
        return Reading(jnp.where(has_text, sentence, 0.0), self.encoder_norm(states), is_token)

    def _pool(self, outputs: list[jax.Array], is_token: jax.Array, *, deterministic: bool) -> jax.Array:
        """P before the last norm, [B, 1, H], from the outputs [B, L, H] of all layers."""
        rows, last = outputs[0].shape[0], self.config.num_layers
        first = last - len(_QUERIES)
        queries = self.pooling_queries.astype(outputs[0].dtype)
        pooled = jnp.broadcast_to(queries, (rows, *queries.shape))
        memory, mask = outputs[first], is_token[:, None, None, :]
        for number, count in enumerate(_QUERIES):
            pooled = self.layers[first + number](pooled[:, :count], memory, mask, deterministic=deterministic)
            memory, mask = pooled, None
        seen = jnp.concatenate([*(states[:, :1] for states in reversed(outputs)), pooled], axis=1)
        return self.layers[last](outputs[-1][:, :1], seen, None, deterministic=deterministic)

    def write(
        self, reading: Reading, inputs: jax.Array, languages: jax.Array, *, deterministic: bool = True
    ) -> jax.Array:
        """The states before the output table of target tokens int32 [B, T] into languages int32 [B]: [B, T, H]."""
        # [P; embedding of the target language] is a memory of one place.
        read, mask = reading.sentence[:, None], None
        if self.config.bottleneck == "none":
            read, mask = reading.states, reading.is_token[:, None, None, :]
        language = self.language_embedding[languages].astype(read.dtype)[:, None]
        wide = jnp.broadcast_to(language, (*read.shape[:2], language.shape[-1]))
        memory = jnp.concatenate([read, wide], axis=-1)
        return self.decoder(inputs, memory, mask, deterministic=deterministic)


@register
@dataclasses.dataclass(frozen=True)
class TranslatorConfig(Architecture):
    """T-MDE and its variants as an `Architecture`. The defaults are the thesis's (section 4.4 and Table 4.1).

    Attributes:
      vocab_size: word pieces of all languages together, V; source, target and output tables are not tied.
      max_length: the longest row that the model reads. Positions are sinusoidal, so texts may be longer than those of
        the training.
      hidden_size: width, H; a multiple of `num_heads`, and even.
      num_layers: of the encoder; at least 3 where ``bottleneck="pooled"``.
      num_heads: of all attentions.
      mlp_size: units of the feed-forward layers.
      decoder_layers: of the decoder.
      num_languages: target languages, as many as the pivots of the training data.
      language_size: width of the embedding of the target language.
      bottleneck: "vector" (T-MDE), "pooled" (T-MDE_P) or "none" (T-MDE_F), see the module.
      dropout_rate: on embeddings and on the outputs of attentions and feed-forward layers.
      dtype: of activations; parameters stay float32.
    """

    kind: ClassVar[str] = "translator"
    module_class: ClassVar[type[nn.Module]] = Translator
    capabilities: ClassVar[frozenset[Capability]] = frozenset({Capability.TRANSLATION})
    free_options: ClassVar[tuple[str, ...]] = ("dtype", "dropout_rate", "max_length")

    vocab_size: int
    max_length: int = 1024
    hidden_size: int = 1024
    num_layers: int = 6
    num_heads: int = 16
    mlp_size: int = 4096
    decoder_layers: int = 1
    num_languages: int = 2
    language_size: int = 32
    bottleneck: Literal["vector", "pooled", "none"] = "vector"
    dropout_rate: float = 0.3
    dtype: str = "float32"

    def __post_init__(self) -> None:
        super().__post_init__()
        is_even = self.hidden_size % self.num_heads == 0 and self.hidden_size % 2 == 0
        self.require("hidden_size", is_even, f"an even multiple of num_heads = {self.num_heads}")
        enough = self.bottleneck != "pooled" or self.num_layers >= len(_QUERIES)
        self.require("num_layers", enough, f"at least {len(_QUERIES)}, which pool")

    @property
    def embedding_size(self) -> int:
        """Width of the embedding, that of the encoder."""
        return self.hidden_size

    def summary(self) -> str:
        """Layers and width."""
        return f"{self.num_layers} layers x {self.hidden_size}, a decoder of {self.decoder_layers}"

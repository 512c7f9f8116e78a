"""LASER: a bidirectional LSTM whose largest values over a text are its vector, and an LSTM decoder that translates.

Source: Artetxe and Schwenk 2019, "Massively Multilingual Sentence Embeddings for Zero-Shot Cross-Lingual Transfer and
Beyond", as trained again in the thesis of T-MDE (see `translator`), LASER_1 and LASER_6. The decoder reads at each step
the token before, the vector P, the target language and its own output before (input feeding, as in the thesis's code);
its first state is linear in P. The thesis's 209 M parameters need embeddings of 512 units; LASER's own have 320.

Shapes: B rows, L source tokens, T target tokens, P units of the vector, V word pieces.
"""

import dataclasses
from typing import ClassVar

import flax.linen as nn
import jax
import jax.numpy as jnp

from ..architecture import Architecture, Capability, register
from ..attention import PAD_ID, TYPES, largest_of_tokens
from ..decoder import EncoderDecoder, OutputTable, Reading, language_table, linear, word_table
from ..recurrence import Bidirectional, Lstm, Memory, lstm_step, recurrent_kernel


class LstmDecoder(nn.Module):
    """The decoder; see the module."""

    config: "LaserConfig"

    @nn.compact
    def __call__(
        self, sentence: jax.Array, inputs: jax.Array, language: jax.Array, *, deterministic: bool
    ) -> jax.Array:
        """The state at each target token, [B, T, S]; token t sees the tokens up to t.

        Args:
          sentence: P, [B, P].
          inputs: int32 [B, T], the target tokens before those to predict.
          language: embedding of the target language, [B, E].
          deterministic: without dropout.
        """
        config, dtype = self.config, TYPES[self.config.dtype]
        size = config.decoder_size
        dropout = nn.Dropout(config.dropout_rate, deterministic=deterministic)
        table = word_table(self, "token_embedding", config.vocab_size, config.token_size)
        sentence = sentence.astype(dtype)
        constant = jnp.concatenate([sentence, language.astype(dtype)], axis=-1)
        # The part of the inputs that is the same at every step is multiplied once.
        gates = linear(4 * size, ("embed", "mlp"), dtype, "tokens")(dropout(table[inputs].astype(dtype)))
        fixed = nn.Dense(4 * size, use_bias=False, dtype=dtype, name="sentence")(constant)
        kernel = recurrent_kernel(self, "recurrent", size).astype(dtype)
        feeding = recurrent_kernel(self, "feeding", size).astype(dtype)
        # One mask for all steps, so that it need not be drawn inside the loop.
        kept = dropout(jnp.ones((sentence.shape[0], size), dtype))
        start = Memory(
            linear(size, ("embed", "mlp"), dtype, "first_output")(sentence).astype(jnp.float32),
            linear(size, ("embed", "mlp"), dtype, "first_cell")(sentence).astype(jnp.float32),
        )

        def step(carried: tuple[Memory, jax.Array], own: jax.Array) -> tuple[tuple[Memory, jax.Array], jax.Array]:
            memory, before = carried
            sums = own + fixed + memory.output.astype(dtype) @ kernel + before @ feeding
            memory = lstm_step(memory, sums)
            output = memory.output.astype(dtype) * kept
            return (memory, output), output

        none = jnp.zeros((sentence.shape[0], size), dtype)
        _, outputs = jax.lax.scan(step, (start, none), jnp.swapaxes(gates, 0, 1))
        return jnp.swapaxes(outputs, 0, 1)


class Laser(EncoderDecoder):
    """The encoder, and the decoder that trains it."""

    config: "LaserConfig"

    def setup(self) -> None:
        """Declares encoder and decoder."""
        config, dtype = self.config, TYPES[self.config.dtype]
        self.token_embedding = word_table(self, "token_embedding", config.vocab_size, config.token_size)
        self.layers = [Bidirectional(Lstm, config.hidden_size, dtype) for _ in range(config.num_layers)]
        self.language_embedding = language_table(self, config.num_languages, config.language_size)
        self.decoder = LstmDecoder(config)
        self.output = OutputTable(config.vocab_size, config.decoder_size)
        self.dropout = nn.Dropout(config.dropout_rate)

    def read(self, tokens: jax.Array, *, deterministic: bool = True) -> Reading:
        """The `Reading` of source texts int32 [B, L]."""
        is_token = tokens != PAD_ID
        states = self.token_embedding[tokens].astype(TYPES[self.config.dtype])
        for layer in self.layers:
            states = layer(self.dropout(states, deterministic=deterministic), is_token)
        return Reading(largest_of_tokens(states, is_token), states, is_token)

    def write(
        self, reading: Reading, inputs: jax.Array, languages: jax.Array, *, deterministic: bool = True
    ) -> jax.Array:
        """The states before the output table of target tokens int32 [B, T] into languages int32 [B]: [B, T, S]."""
        return self.decoder(reading.sentence, inputs, self.language_embedding[languages], deterministic=deterministic)


@register
@dataclasses.dataclass(frozen=True)
class LaserConfig(Architecture):
    """LASER as an `Architecture`. The defaults are the thesis's LASER_6 (Table 4.1).

    Attributes:
      vocab_size: word pieces of all languages together, V; source, target and output tables are not tied.
      max_length: the longest row that the model reads.
      token_size: width of the embeddings of word pieces.
      hidden_size: of each direction of the encoder; the document embedding is twice as wide.
      num_layers: of the encoder: 1 for LASER_1, 6 for LASER_6.
      decoder_size: of the decoder, S.
      num_languages: target languages, as many as the pivots of the training data.
      language_size: width of the embedding of the target language.
      dropout_rate: on embeddings, between layers and on the outputs of the decoder.
      dtype: of products; states and parameters stay float32.
    """

    kind: ClassVar[str] = "laser"
    module_class: ClassVar[type[nn.Module]] = Laser
    capabilities: ClassVar[frozenset[Capability]] = frozenset({Capability.TRANSLATION})
    free_options: ClassVar[tuple[str, ...]] = ("dtype", "dropout_rate", "max_length")

    vocab_size: int
    max_length: int = 1024
    token_size: int = 512
    hidden_size: int = 512
    num_layers: int = 6
    decoder_size: int = 2048
    num_languages: int = 2
    language_size: int = 32
    dropout_rate: float = 0.1
    dtype: str = "float32"

    @property
    def embedding_size(self) -> int:
        """Width of the embedding, both directions."""
        return 2 * self.hidden_size

    def summary(self) -> str:
        """Layers and width."""
        return f"{self.num_layers} LSTM layers x 2 x {self.hidden_size}, a decoder of {self.decoder_size}"

"""The translator with attention of two recurrent networks: a bidirectional GRU reads, a GRU that looks back writes.

Source: Bahdanau, Cho and Bengio 2015, "Neural Machine Translation by Jointly Learning to Align and Translate", in the
sizes of the two translators below NTDV (Li 2021, chapter 3): GRUs of 1024 units, embeddings of 500, 85,000 words. Where
the thesis is silent: both directions have all units, the first state of the decoder reads the mean of the encoder's,
and the layer before the output table is a tanh as wide as the embeddings (Bahdanau's is a maxout).

The translator translates in one direction, so the decoder reads no target language. Its text vector is the mean of the
encoder's states; it is not what the translator is trained for.

Shapes: B rows, L source tokens, T target tokens, E units of embeddings, H units of a GRU, V word pieces.
"""

import dataclasses
from typing import ClassVar

import flax.linen as nn
import jax
import jax.numpy as jnp

from ..architecture import Capability
from ..attention import PAD_ID, TYPES
from ..blocks import logical
from ..decoder import EncoderDecoder, OutputTable, Reading, word_table
from ..multi_head import linear
from ..recurrence import BiGru, candidate_bias, gru_step, mean_of_tokens, recurrent_kernel
from .fields import FieldsConfig
from .registry import register

__all__ = ["AttentiveConfig", "AttentiveTranslator", "recurrent_flops"]


class AttentiveDecoder(nn.Module):
    """The decoder; see the module.

    At each step it scores the encoder's states by its own state before (additive attention), reads their mean under the
    softmax of the scores together with the token before, and goes on.
    """

    config: "AttentiveConfig"

    @nn.compact
    def __call__(self, states: jax.Array, is_token: jax.Array, inputs: jax.Array, *, deterministic: bool) -> jax.Array:
        """What the output table reads at each target token, [B, T, E]; token t sees the tokens up to t.

        Args:
          states: of the source, [B, L, 2 H].
          is_token: bool [B, L], False on padding.
          inputs: int32 [B, T], the target tokens before those to predict.
          deterministic: without dropout.
        """
        config, dtype = self.config, TYPES[self.config.dtype]
        size = config.hidden_size
        dropout = nn.Dropout(config.dropout_rate, deterministic=deterministic)
        table = self.param("token_embedding", *word_table(config.vocab_size, config.token_size))
        before = dropout(table[inputs].astype(dtype))
        states = states.astype(dtype)
        # The parts that are the same at every step, or that no state enters, are multiplied once.
        keys = linear(size, ("embed", "mlp"), dtype, "keys")(states)
        gates = linear(3 * size, ("embed", "mlp"), dtype, "tokens")(before)
        query = self._kernel("query", size, size).astype(dtype)
        scores = self.param("scores", logical(nn.initializers.normal(size**-0.5), "mlp"), (size,), jnp.float32)
        reads = self._kernel("context", 2 * size, 3 * size).astype(dtype)
        kernel = recurrent_kernel(self, "recurrent", size, gates=3).astype(dtype)
        bias = candidate_bias(self, size)
        first = linear(size, ("embed", "mlp"), dtype, "first_state")(mean_of_tokens(states, is_token).astype(dtype))

        def step(state: jax.Array, own: jax.Array) -> tuple[jax.Array, tuple[jax.Array, jax.Array]]:
            """Reads what the state attends to, and moves it by one token."""
            now = state.astype(dtype)
            alike = jnp.tanh(keys + (now @ query)[:, None]).astype(jnp.float32) @ scores
            # The least number, not -inf: a row without tokens reads zeros.
            weights = jax.nn.softmax(jnp.where(is_token, alike, jnp.finfo(jnp.float32).min), axis=-1)
            context = jnp.einsum("bl,blm->bm", weights.astype(dtype), states)
            new = gru_step(state, own + context @ reads, now @ kernel, bias)
            return new, (new.astype(dtype), context)

        start = jnp.tanh(first.astype(jnp.float32))
        _, seen = jax.lax.scan(step, start, jnp.swapaxes(gates, 0, 1))
        own, contexts = (jnp.swapaxes(values, 0, 1) for values in seen)
        read = jnp.concatenate([own, before, contexts], axis=-1)
        return dropout(jnp.tanh(linear(config.token_size, ("mlp", "embed"), dtype, "readout")(read)))

    def _kernel(self, name: str, rows: int, columns: int) -> jax.Array:
        axes = logical(nn.initializers.xavier_uniform(), "embed", "mlp")
        kernel: jax.Array = self.param(name, axes, (rows, columns), jnp.float32)
        return kernel


class AttentiveTranslator(EncoderDecoder):
    """The encoder, and the decoder that looks back at all of its states."""

    config: "AttentiveConfig"

    def setup(self) -> None:
        """Declares encoder and decoder."""
        config, dtype = self.config, TYPES[self.config.dtype]
        self.token_embedding = self.param("token_embedding", *word_table(config.vocab_size, config.token_size))
        self.encoder = BiGru(config.hidden_size, dtype)
        self.decoder = AttentiveDecoder(config)
        self.output = OutputTable(config.vocab_size, config.token_size)
        self.dropout = nn.Dropout(config.dropout_rate)

    def read(self, tokens: jax.Array, *, deterministic: bool = True) -> Reading:
        """The `Reading` of source texts int32 [B, L]; states are 0 on padding."""
        is_token = tokens != PAD_ID
        words = self.token_embedding[tokens].astype(TYPES[self.config.dtype])
        states = self.encoder(self.dropout(words, deterministic=deterministic), is_token)
        states = jnp.where(is_token[..., None], states, 0)
        return Reading(mean_of_tokens(states, is_token), states, is_token)

    def write(
        self, reading: Reading, inputs: jax.Array, languages: jax.Array, *, deterministic: bool = True
    ) -> jax.Array:
        """The states before the output table of target tokens int32 [B, T]: [B, T, E]; `languages` are not read."""
        del languages  # the translator knows one
        return self.decoder(reading.states, reading.is_token, inputs, deterministic=deterministic)


def recurrent_flops(inputs: int, size: int) -> float:
    """FLOPs of a GRU's step on one token: 6 H (I + H)."""
    return 6.0 * size * (inputs + size)


@register
@dataclasses.dataclass(frozen=True)
class AttentiveConfig(FieldsConfig):
    """The translator as an `Architecture`. The defaults are those of NTDV's two translators.

    Attributes:
      vocab_size: word pieces of both languages together, V; source, target and output tables are not tied.
      max_length: the longest row that the model reads.
      token_size: units of the embeddings, E.
      hidden_size: units of each direction of the encoder, of the decoder and of its attention, H.
      num_languages: as many as the pivots of the training data; the decoder does not read which one it writes.
      dropout_rate: on the embeddings and before the output table.
      dtype: of the products; states and parameters stay float32.
    """

    kind: ClassVar[str] = "attentive"
    capabilities: ClassVar[frozenset[Capability]] = frozenset({Capability.TRANSLATION})
    free_options: ClassVar[tuple[str, ...]] = ("dtype", "dropout_rate", "max_length", "num_languages")

    vocab_size: int
    max_length: int = 1024
    token_size: int = 500
    hidden_size: int = 1024
    num_languages: int = 2
    dropout_rate: float = 0.0
    dtype: str = "float32"

    @property
    def embedding_size(self) -> int:
        """Width of the embedding, both directions of the encoder."""
        return 2 * self.hidden_size

    def module(self) -> nn.Module:
        """The `AttentiveTranslator`."""
        return AttentiveTranslator(self)

    def flops(self, method: str, length: int) -> float:
        """Model FLOPs of one forward pass on one row, of matrix products only.

        For L tokens (a source is taken to be as long as its translation), embeddings E, units H, V word pieces::

            embed    L 12 H (E + H)
            write    L (6 H (E + 3 H) + 2 H^2 + 4 H^2 + 6 L H + 2 E (3 H + E) + 2 E V) + 4 H^2

        Raises:
          ValueError: for another method.
        """
        size, width = self.hidden_size, self.token_size
        if method == "embed":
            return length * 2 * recurrent_flops(width, size)
        if method == "write":
            attention = 2 * size * size + 4 * size * size + 6 * length * size
            readout = 2 * width * (3 * size + width) + 2 * width * self.vocab_size
            return length * (recurrent_flops(width + 2 * size, size) + attention + readout) + 4.0 * size * size
        raise ValueError(f"got the method {method!r}, expected embed or write")

    def summary(self) -> str:
        """Width and what it is."""
        return f"GRUs x {self.hidden_size} with attention"

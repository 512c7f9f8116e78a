"""NTDV: one space for two languages over two frozen translators, and the translators below it.

Sources: Wei Li, "Multilingual document embedding from translation", thesis at HKUST 2021, chapter 3 (NV, cNV_sum and
cNV_con); the translators are those of Bahdanau, Cho and Bengio 2015, "Neural Machine Translation by Jointly Learning to
Align and Translate", in the thesis's sizes: GRUs of 1024 units, embeddings of 500, 85,000 words. Where the thesis is
silent about them: both directions have all units, the first state of the decoder reads the mean of the encoder's, and
the layer before the output table is a tanh as wide as the embeddings (Bahdanau's is a maxout). A translator translates
in one direction, so its decoder reads no target language. Its text vector is the mean of the encoder's states; it is
not what the translator is trained for.

Two translators, of which number k writes language k and reads the other one,
keep their parameters. Three layers between their encoders and decoders are shared by both languages and trained::

    z_t = GRU over the encoder's states
    p_i = mean over t of head i of a self-attention over z, i = 1 … r          P = [p_1 … p_r]
    h_t = linear map of [z_t; p_1 + … + p_r], which the decoder reads instead of the encoder's states

A document is the sum of the p_i (cNV_sum) or all of them side by side (cNV_con). The thesis does not describe the
third layer; the map is our reading, as are a self-attention without an output layer and a GRU in one direction.

The thesis knows the language of a text. Here a text is a row of word pieces, so the model tells the language itself, by
a score of each piece that training learns (the sum over a text is the log odds of language 1). Both translators read
every text, and the one of its language counts.

Shapes: B rows, L source tokens, T target tokens, E units of embeddings, H units of a GRU, D units of a head, R heads, V
word pieces.
"""

import dataclasses
from collections.abc import Mapping
from typing import Any, ClassVar, Literal

import flax.linen as nn
import jax
import jax.numpy as jnp

from ..architecture import Architecture, Capability, register
from ..attention import PAD_ID, TYPES, mean_of_tokens, of_unit_length
from ..blocks import parameter
from ..decoder import EncoderDecoder, OutputTable, Reading, linear, word_table
from ..recurrence import Bidirectional, Gru, gru_step, recurrent_kernel

_PARTS = ("translators_0", "translators_1")


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
        size, glorot = config.hidden_size, nn.initializers.xavier_uniform()
        dropout = nn.Dropout(config.dropout_rate, deterministic=deterministic)
        table = word_table(self, "token_embedding", config.vocab_size, config.token_size)
        before = dropout(table[inputs].astype(dtype))
        states = states.astype(dtype)
        # The parts that are the same at every step, or that no state enters, are multiplied once.
        keys = linear(size, ("embed", "mlp"), dtype, "keys")(states)
        gates = linear(3 * size, ("embed", "mlp"), dtype, "tokens")(before)
        query = parameter(self, "query", glorot, (size, size), "embed", "mlp").astype(dtype)
        scores = parameter(self, "scores", nn.initializers.normal(size**-0.5), (size,), "mlp")
        reads = parameter(self, "context", glorot, (2 * size, 3 * size), "embed", "mlp").astype(dtype)
        kernel = recurrent_kernel(self, "recurrent", size, gates=3).astype(dtype)
        bias = parameter(self, "candidate_bias", nn.initializers.zeros, (size,), "mlp")
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


class AttentiveTranslator(EncoderDecoder):
    """The encoder, and the decoder that looks back at all of its states."""

    config: "AttentiveConfig"

    def setup(self) -> None:
        """Declares encoder and decoder."""
        config, dtype = self.config, TYPES[self.config.dtype]
        self.token_embedding = word_table(self, "token_embedding", config.vocab_size, config.token_size)
        self.encoder = Bidirectional(Gru, config.hidden_size, dtype)
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


@register
@dataclasses.dataclass(frozen=True)
class AttentiveConfig(Architecture):
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
    module_class: ClassVar[type[nn.Module]] = AttentiveTranslator
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

    def summary(self) -> str:
        """Width and what it is."""
        return f"GRUs x {self.hidden_size} with attention"


class Bilingual(nn.Module):
    """Two translators, and the layers that are trained between their encoders and decoders."""

    config: "BilingualConfig"

    def setup(self) -> None:
        """Declares the translators, the shared layers and the scores of the languages."""
        config, dtype = self.config, TYPES[self.config.dtype]
        self.translators = [AttentiveTranslator(config.translator) for _ in _PARTS]
        self.shared_recurrence = Gru(config.vector_size, dtype)
        width = config.num_heads * config.vector_size
        self.shared_heads = linear(3 * width, ("embed", "heads"), dtype, "shared_heads")
        self.shared_states = linear(2 * config.hidden_size, ("embed", "mlp"), dtype, "shared_states")
        zeros = nn.initializers.zeros
        self.language_scores = parameter(self, "language_scores", zeros, (config.vocab_size,), "vocab")

    def __call__(self, tokens: jax.Array) -> Any:
        """The states of the tokens as their own translation, and the tables of logits; touches every parameter."""
        numbers = range(len(_PARTS))
        states = [self.write(self.read(tokens, number), tokens, number) for number in numbers]
        return self.language_logits(tokens), states, list(map(self.target_table, numbers))

    def read(self, tokens: jax.Array, number: int, *, deterministic: bool = True) -> Reading:
        """The `Reading` of texts int32 [B, L] that translator `number` reads, so not of language `number`.

        Its `sentence` is P, [B, R D], head by head, and its `states` are those that the decoder reads.
        """
        config = self.config
        _, states, is_token = self.translators[number].read(tokens, deterministic=deterministic)
        states = self.shared_recurrence(states, is_token)
        shape = (*tokens.shape, 3, config.num_heads, config.vector_size)
        query, key, value = jnp.moveaxis(self.shared_heads(states).reshape(shape), 2, 0)
        heads = jax.nn.dot_product_attention(query, key, value, mask=is_token[:, None, None, :], implementation="xla")
        width = config.num_heads * config.vector_size
        vector = mean_of_tokens(heads.reshape(*tokens.shape, width), is_token)
        total = jnp.broadcast_to(self._total(vector).astype(states.dtype)[:, None], states.shape)
        states = self.shared_states(jnp.concatenate([states, total], axis=-1))
        return Reading(vector, jnp.where(is_token[..., None], states, 0), is_token)

    def write(self, reading: Reading, inputs: jax.Array, number: int, *, deterministic: bool = True) -> jax.Array:
        """The states before the output table of translator `number`, at tokens int32 [B, T]: [B, T, E]."""
        languages = jnp.full(inputs.shape[0], number, jnp.int32)
        return self.translators[number].write(reading, inputs, languages, deterministic=deterministic)

    def target_table(self, number: int) -> tuple[jax.Array, jax.Array]:
        """Table [V, E] and bias [V] of translator `number`."""
        return self.translators[number].target_table()

    def language_logits(self, tokens: jax.Array) -> jax.Array:
        """The log odds that texts int32 [B, L] are in language 1, float32 [B]."""
        return jnp.sum(jnp.where(tokens != PAD_ID, self.language_scores[tokens], 0.0), axis=1)

    def sentence(self, tokens: jax.Array, *, deterministic: bool = True) -> jax.Array:
        """P of texts int32 [B, L] in the language that they seem to be in, not scaled: float32 [B, R D]."""
        is_second = self.language_logits(tokens)[:, None] > 0
        # A translator reads the language that it does not write.
        first, second = (self.read(tokens, number, deterministic=deterministic).sentence for number in (1, 0))
        return jnp.where(is_second, second, first)

    def embed(self, tokens: jax.Array, *, deterministic: bool = True) -> jax.Array:
        """The document scaled to length 1, float32 [B, D] as a sum or [B, R D] side by side."""
        vector = self.sentence(tokens, deterministic=deterministic)
        return of_unit_length(self._total(vector) if self.config.vector == "sum" else vector)

    def _total(self, vector: jax.Array) -> jax.Array:
        """The sum of the heads' parts: [B, R D] -> [B, D]."""
        return jnp.sum(vector.reshape(-1, self.config.num_heads, self.config.vector_size), axis=1)


@register
@dataclasses.dataclass(frozen=True)
class BilingualConfig(Architecture):
    """NTDV as an `Architecture`. The defaults are the thesis's.

    Attributes:
      vocab_size: word pieces of both languages together, V.
      max_length: the longest row that the model reads; the thesis trains on at most 50 words.
      token_size: of both translators, see `AttentiveConfig`.
      hidden_size: of both translators.
      vector_size: units of the shared GRU and of each head, D.
      num_heads: heads of the shared self-attention, R.
      vector: the document: "concatenation" of the heads' means (cNV_con) or their "sum" (cNV_sum). Both have the same
        loss, so that a model of one can be read as the other.
      dropout_rate: of both translators.
      dtype: of the products; states and parameters stay float32.
    """

    kind: ClassVar[str] = "bilingual"
    module_class: ClassVar[type[nn.Module]] = Bilingual
    capabilities: ClassVar[frozenset[Capability]] = frozenset({Capability.BILINGUAL, Capability.PARTS})
    free_options: ClassVar[tuple[str, ...]] = ("dtype", "dropout_rate", "max_length", "vector")
    num_languages: ClassVar[int] = 2

    vocab_size: int
    max_length: int = 1024
    token_size: int = 500
    hidden_size: int = 1024
    vector_size: int = 1024
    num_heads: int = 4
    vector: Literal["concatenation", "sum"] = "concatenation"
    dropout_rate: float = 0.0
    dtype: str = "float32"

    @property
    def translator(self) -> AttentiveConfig:
        """The shape of each translator."""
        names = ("vocab_size", "max_length", "token_size", "hidden_size", "num_languages", "dropout_rate", "dtype")
        return AttentiveConfig(**{name: getattr(self, name) for name in names})

    @property
    def parts(self) -> Mapping[str, Architecture]:
        """The translators, by the name of their parameters; number k writes language k."""
        return dict.fromkeys(_PARTS, self.translator)

    @property
    def embedding_size(self) -> int:
        """Width of the embedding, that of a head or of all."""
        return self.vector_size if self.vector == "sum" else self.num_heads * self.vector_size

    def summary(self) -> str:
        """The translators and the vector."""
        return f"two translators of GRUs x {self.hidden_size}, {self.num_heads} heads x {self.vector_size} between them"

"""The document encoder: BERT with a dense embedding head, a topic head and a tied masked-LM head (paper, section 3).

Pure JAX and Flax linen, no I/O. Shapes use B rows, L tokens, H hidden units, D embedding units, T topics, V word
pieces, K masked positions. Parameters are float32 and carry logical axis names; `learning.partitioning` maps those
names to mesh axes.
"""

import dataclasses
from collections.abc import Sequence
from typing import ClassVar, Final, Self

import flax.linen as nn
import jax
import jax.numpy as jnp

from ..architecture import NEWS_KIND, Capability, register
from ..attention import (
    PAD_ID,
    choose_attention,
    largest_of_pieces,
    largest_of_tokens,
    piece_ends,
    piece_starts,
    term_weights,
    visible,
)
from ..blocks import (
    Block,
    Context,
    Params,
    activate,
    compute_dtype,
    dense,
    layer_norm,
    make_block,
    make_context,
    normal,
    parameter,
    run_blocks,
    run_blocks_observed,
)
from ..transformer import EXECUTION_OPTIONS, TransformerConfig

_EMBEDDING_NORM_FLOOR: Final = 1e-12


class NewsEncoder(nn.Module):
    """The encoder and its three heads.

    Use it through `apply` with a method name::

        NewsEncoder(config).apply({"params": params}, tokens, method="embed")

    Initialise with ``init(key, tokens)``, which touches every head. Where `deterministic` is False a "dropout" key is
    needed.
    """

    config: TransformerConfig

    def setup(self) -> None:
        """Declares the parameters of the body and of all heads."""
        config = self.config
        start, shape = (
            normal(1.0) if config.embedding_init == "t5" else normal(),
            (config.vocab_size, config.hidden_size),
        )
        self.token_embedding = parameter(self, "token_embedding", start, shape, "vocab", "embed")
        if config.positions == "learned":
            shape = (config.position_count, config.hidden_size)
            self.position_embedding = parameter(self, "position_embedding", normal(), shape, "position", "embed")
        self.relative_bias = None
        if config.relative_buckets:
            shape = (config.relative_buckets, config.num_heads)
            self.relative_bias = parameter(self, "relative_bias", normal(), shape, "buckets", "heads")
        self.input_norm = layer_norm(config)
        self.dropout = nn.Dropout(config.dropout_rate)
        self.layers = [make_block(config, layer) for layer in range(config.num_layers)]
        self.output_norm = None if config.norm == "post" else layer_norm(config)
        if config.pooling == "weighted":
            self.pooling_logits = parameter(
                self, "pooling_logits", nn.initializers.zeros, (config.vocab_size,), "vocab"
            )
        self.embedding_head = dense(config.dense_size, ("embed", "embedding"), jnp.float32)
        self.topic_head = dense(config.num_topics, ("embed", "topics"), jnp.float32)
        self.mlm_transform = dense(
            config.hidden_size, ("embed", "embed_out"), compute_dtype(config), use_bias=config.biases
        )
        self.mlm_norm = layer_norm(config)
        self.mlm_bias = parameter(self, "mlm_bias", nn.initializers.zeros, (config.vocab_size,), "vocab")

    def __call__(self, tokens: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
        """Runs all heads once, so that `init` creates all parameters.

        Returns:
          Embeddings [B, D], topic logits [B, T] and the states of masked words [B, 1, H] of the first position.
        """
        hidden = self.encode(tokens)
        topics = self.topic_logits_hidden(hidden, tokens)
        return self.embed_hidden(hidden, tokens), topics, self.mlm_states(hidden[:, :1])

    def encode(
        self,
        tokens: jax.Array,
        segment_ids: jax.Array | None = None,
        positions: jax.Array | None = None,
        *,
        deterministic: bool = True,
    ) -> jax.Array:
        """Contextual vectors of every token.

        Args:
          tokens: int32 [B, L], `PAD_ID` where empty.
          segment_ids: int32 [B, L], 1-based number of the packed piece, 0 on padding; a token attends within its piece
            only. None where a row is one piece.
          positions: int32 [B, L], position inside the piece; None counts from 0 along the row.
          deterministic: False applies dropout.

        Returns:
          [B, L, H] in the configured dtype; vectors at padding have no meaning.

        Raises:
          ValueError: if L exceeds `max_length`, or `window_length` in packed rows, or if the configured attention
            cannot run here.
        """
        config = self.config
        self._check_row(tokens)
        if segment_ids is None and positions is None and self._needs_windows(tokens):
            windows = self.encode(in_windows(tokens, config.position_count), deterministic=deterministic)
            return windows.reshape(tokens.shape[0], -1, windows.shape[-1])[:, : tokens.shape[1]]
        hidden, context = self._embedded(tokens, segment_ids, positions, deterministic=deterministic)
        hidden = self._run(config, self.layers, hidden, context, deterministic=deterministic)
        return hidden if self.output_norm is None else self.output_norm(hidden)

    def encode_observed(self, tokens: jax.Array) -> tuple[jax.Array, jax.Array]:
        """The result of `encode` for one-piece rows, and its attention, for people to look at.

        Args:
          tokens: int32 [B, L], `PAD_ID` where empty.

        Returns:
          [B, L, H], and float32 [layers, B, L]: the attention that each token gets, by layer, as a mean over heads,
          from the tokens that are pooled: the first token (``pooling="cls"``), or the mean of all tokens that are not
          padding, weighted or not. Each row sums to 1.

        Raises:
          ValueError: as `encode`.
        """
        config = self.config
        self._check_row(tokens)
        hidden, context = self._embedded(tokens, None, None, deterministic=True)
        kernel = choose_attention(config, tokens.shape[-1])
        queries = self.pooling_weights(tokens)
        hidden, received = run_blocks_observed(config, _params_of(self.layers), hidden, context, kernel, queries)
        return (hidden if self.output_norm is None else self.output_norm(hidden)), received

    def _embedded(
        self, tokens: jax.Array, segment_ids: jax.Array | None, positions: jax.Array | None, *, deterministic: bool
    ) -> tuple[jax.Array, Context]:
        """The inputs of the first block: the embedded tokens [B, L, H] and which tokens see each other.

        Raises:
          ValueError: if L exceeds the tokens that the layers read at a time.
        """
        config = self.config
        length = tokens.shape[-1]
        if length > config.position_count:
            raise ValueError(
                f"got packed rows of {length} tokens, expected at most window_length = {config.position_count}"
            )
        hidden = self.token_embedding[tokens]
        if config.positions == "learned":
            hidden += (
                self.position_embedding[:length][None] if positions is None else self.position_embedding[positions]
            )
        hidden = hidden.astype(compute_dtype(config))
        if config.norm != "pre":
            hidden = self.input_norm(hidden)
        hidden = self.dropout(hidden, deterministic=deterministic)
        return hidden, make_context(config, visible(tokens, segment_ids), positions, self.relative_bias)

    def _needs_windows(self, tokens: jax.Array) -> bool:
        """Whether a row may be longer than a window; in an export, where the length is a symbol, it may."""
        length, window = tokens.shape[-1], self.config.window_length
        return window > 0 and (not isinstance(length, int) or length > window)

    def _check_row(self, tokens: jax.Array) -> None:
        length, most = tokens.shape[-1], self.config.max_length
        if length > most:
            raise ValueError(f"got rows of {length} tokens, expected at most max_length = {most}")

    def _run(
        self,
        config: TransformerConfig,
        layers: Sequence[Block],
        hidden: jax.Array,
        context: Context,
        *,
        deterministic: bool,
    ) -> jax.Array:
        """A stack of blocks: [B, L, H] -> [B, L, H]."""
        if self.is_initializing():
            for layer in layers:
                hidden = layer(hidden, context, deterministic=deterministic)
            return hidden
        key = None if deterministic or not config.dropout_rate else self.make_rng("dropout")
        return run_blocks(config, _params_of(layers), hidden, context, choose_attention(config, hidden.shape[1]), key)

    def embed(self, tokens: jax.Array, stopped: jax.Array | None = None, *, deterministic: bool = True) -> jax.Array:
        """Document embeddings of one-piece rows: a dense layer on the pooled top vector.

        Args:
          tokens: int32 [B, L].
          stopped: bool [B], rows whose gradient ends below the dense layer; None: no row.
          deterministic: False applies dropout.

        Returns:
          float32 [B, D] of length 1.
        """
        return self.embed_hidden(self.encode(self._context(tokens), deterministic=deterministic), tokens, stopped)

    def _context(self, tokens: jax.Array) -> jax.Array:
        """The tokens that the layers read, the first ones of each row."""
        return tokens

    def embed_hidden(self, hidden: jax.Array, tokens: jax.Array, stopped: jax.Array | None = None) -> jax.Array:
        """Embeddings [B, D] from what `encode` returned, [B, L, H]; `stopped` as in `embed`."""
        vectors = self.embedding_head(stop_rows(self.pool(hidden, tokens), stopped))
        if self.config.embedding_activation == "tanh":
            vectors = jnp.tanh(vectors)
        return vectors / jnp.maximum(jnp.linalg.norm(vectors, axis=-1, keepdims=True), _EMBEDDING_NORM_FLOOR)

    def topic_logits(self, tokens: jax.Array, *, deterministic: bool = True) -> jax.Array:
        """Logits of every topic, float32 [B, T]: a dense layer on the pooled top vector."""
        return self.topic_logits_hidden(self.encode(self._context(tokens), deterministic=deterministic), tokens)

    def topic_logits_hidden(self, hidden: jax.Array, tokens: jax.Array) -> jax.Array:
        """Topic logits [B, T] from what `encode` returned, [B, L, H]."""
        return self.topic_head(self.pool(hidden, tokens))

    def mlm_states(self, hidden: jax.Array) -> jax.Array:
        """The states of positions [B, K, H] that the output table turns into logits, in the configured dtype."""
        states = self.mlm_norm(activate(self.config, self.mlm_transform(hidden)))
        return states * self.config.hidden_size**-0.5 if self.config.embedding_init == "t5" else states

    def output_table(self) -> tuple[jax.Array, jax.Array]:
        """The table [V, H] and bias [V] from those states to the logits, float32."""
        return self.token_embedding, self.mlm_bias

    def pool_pieces(self, hidden: jax.Array, tokens: jax.Array, segment_ids: jax.Array) -> jax.Array:
        """The pooled vector of every piece of packed rows.

        Args:
          hidden: [B, L, H] from `encode`.
          tokens: int32 [B, L], the input of `encode`.
          segment_ids: int32 [B, L], see `encode`.

        Returns:
          float32 [B, L, H]: at each token the pooled vector of its piece.
        """
        if self.config.pooling == "max":
            return largest_of_pieces(hidden.astype(jnp.float32), segment_ids)
        same = (segment_ids[:, :, None] == segment_ids[:, None, :]).astype(jnp.float32)
        same *= self._counts(tokens, segment_ids)[:, None, :]
        return jnp.einsum("blk,bkh->blh", same / jnp.sum(same, axis=-1, keepdims=True), hidden.astype(jnp.float32))

    def pool(self, hidden: jax.Array, tokens: jax.Array) -> jax.Array:
        """The pooled vector of one-piece rows: [B, L, H] -> float32 [B, H]."""
        if self.config.pooling == "cls":
            return hidden[:, 0].astype(jnp.float32)
        if self.config.pooling == "max":
            return largest_of_tokens(hidden, tokens != PAD_ID)
        return jnp.einsum("bl,blh->bh", self.pooling_weights(tokens), hidden.astype(jnp.float32))

    def pooling_weights(self, tokens: jax.Array) -> jax.Array:
        """The weight of each token in `pool`, float32 [B, L]; a row sums to 1, or to 0 where it is padding only.

        Where ``pooling="max"`` no token has one weight for all units: here all count the same.
        """
        weights = (tokens != PAD_ID).astype(jnp.float32)
        weights *= self._counts(tokens, weights)
        total = jnp.sum(weights, axis=1, keepdims=True)
        return weights / jnp.where(total > 0, total, 1.0)

    def _counts(self, tokens: jax.Array, segment_ids: jax.Array) -> jax.Array:
        """What each token counts in the mean of its text, float32 [B, L], before the counts of a text add up to 1."""
        if self.config.pooling == "weighted":
            return self.token_weights(tokens, segment_ids)
        if self.config.pooling in ("cls", "last"):
            is_read = piece_starts if self.config.pooling == "cls" else piece_ends
            return is_read(segment_ids).astype(jnp.float32)
        return jnp.ones(tokens.shape, jnp.float32)

    def token_weights(self, tokens: jax.Array, segment_ids: jax.Array) -> jax.Array:
        """The weight of each token in the weighted mean of its text, float32 [B, L], positive on padding too.

        Only for ``pooling="weighted"``.

        Args:
          tokens: int32 [B, L].
          segment_ids: [B, L], equal along a text, see `encode`.
        """
        config, weights = self.config, jnp.exp(self.pooling_logits[tokens])
        return weights * term_weights(tokens, segment_ids, lead_length=config.lead_length, sublinear=config.sublinear)


def _params_of(layers: Sequence[Block]) -> list[Params]:
    return [nn.unbox(layer.variables["params"]) for layer in layers]


def stop_rows(vectors: jax.Array, stopped: jax.Array | None) -> jax.Array:
    """`vectors` [B, ..., D], without gradient where `stopped`, bool [B]; None stops none."""
    if stopped is None:
        return vectors
    return jnp.where(stopped.reshape(-1, *[1] * (vectors.ndim - 1)), jax.lax.stop_gradient(vectors), vectors)


def in_windows(tokens: jax.Array, window: int) -> jax.Array:
    """Rows [B, L] cut in windows: int32 [B ceil(L / window), window]; B and L may be symbols."""
    rows, length = tokens.shape
    count = (length + window - 1) // window
    padded = jnp.pad(tokens, ((0, 0), (0, count * window - length)), constant_values=PAD_ID)
    whole = padded.reshape(rows * count, window)
    # Attention over nothing has no meaning. No head reads the vectors of an empty window, but they must be finite.
    return whole.at[:, 0].set(jnp.where(whole[:, 0] == PAD_ID, PAD_ID + 1, whole[:, 0]))


@register
@dataclasses.dataclass(frozen=True)
class EncoderConfig(TransformerConfig):
    """The news encoder as an `Architecture`: its shape, see `TransformerConfig`, and what it can do."""

    kind: ClassVar[str] = NEWS_KIND
    module_class: ClassVar[type[nn.Module]] = NewsEncoder
    free_options: ClassVar[tuple[str, ...]] = (*EXECUTION_OPTIONS, "dtype", "dropout_rate", "family")

    @property
    def capabilities(self) -> frozenset[Capability]:
        """What a `NewsEncoder` of this shape can do in addition to embedding."""
        # Of other kinds.
        lacking = {Capability.RECONSTRUCTION, Capability.TRANSLATION, Capability.WORD_VECTORS}
        lacking |= {Capability.BILINGUAL, Capability.PARTS, Capability.LABELS}
        if self.num_layers or self.positions == "learned" or self.pooling != "weighted":
            lacking |= {Capability.STATIC}
        if self.pooling != "weighted":
            lacking |= {Capability.PIECE_WEIGHTS, Capability.LATENT_SEMANTICS}
        elif self.embedding_init != "t5":
            lacking |= {Capability.LATENT_SEMANTICS}
        if self.embedding_activation != "identity":
            lacking |= {Capability.POOLED_PIECES}  # a head before an activation cannot whiten
        if self.window_length:  # transformers knows no windows
            lacking |= {Capability.ATTENTION, Capability.HUGGING_FACE}
        if self.global_tokens or not self.global_every:  # nor a model with one set of parameters for all tokens
            lacking |= {Capability.HUGGING_FACE}
        return frozenset(Capability) - lacking

    def portable(self) -> Self:
        """The same encoder with XLA's attention: kernels of one platform cannot be in an export for several."""
        return dataclasses.replace(self, attention="xla")

    def summary(self) -> str:
        """Layers and width, such as "12 layers x 768"."""
        return f"{self.num_layers} layers x {self.hidden_size}"

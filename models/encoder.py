"""The document encoder: BERT with a dense embedding head, a topic head and a tied masked-LM head (paper, section 3).

Pure JAX and Flax linen, no I/O. Shapes use B rows, L tokens, H hidden units, D embedding units, T topics, V word pieces, K masked positions.
Parameters are float32 and carry logical axis names; `training.partitioning` maps those names to mesh axes.
"""

import dataclasses
from collections.abc import Mapping
from typing import Any, Final, Literal, Self

import flax.linen as nn
import jax
import jax.numpy as jnp

PAD_ID: Final = 0  # the id of [PAD] in every vocabulary; such positions are never attended to

_DTYPES: Final = {"float32": jnp.float32, "bfloat16": jnp.bfloat16, "float16": jnp.float16}
_CHOICES: Final = {"norm": ("post", "pre"), "pooling": ("cls", "mean"), "embedding_init": ("bert", "t5"), "dtype": tuple(_DTYPES)}
_INITIALIZER_STDDEV: Final = 0.02  # BERT's
_LAYER_NORM_EPSILON: Final = 1e-12  # BERT's
_EMBEDDING_NORM_FLOOR: Final = 1e-12


@dataclasses.dataclass(frozen=True)
class EncoderConfig:
    """The shape of a `NewsEncoder`; with the vocabulary it is all that is needed to rebuild one.

    Attributes:
      vocab_size: word pieces in the vocabulary file, V.
      hidden_size: width of the residual stream, H; a multiple of `num_heads`.
      num_layers: transformer blocks.
      num_heads: attention heads per block.
      mlp_size: width of the feed-forward layer.
      max_length: number of learned positions, the longest row the model can read.
      embedding_size: width of the document embedding, D.
      num_topics: width of the topic head, T; the paper has 600.
      dropout_rate: on embeddings and on each block's two outputs. Attention probabilities are not dropped: fused attention has no such option.
      norm: "post" normalises after each residual sum (BERT), "pre" before each sub-layer with one last norm on top.
      pooling: what the heads read: "cls", the top vector of the first token (the paper's), or "mean", the mean over tokens that are not padding.
      embedding_init: how the token embeddings start: "bert", a standard deviation of 0.02, or "t5", 1, with the masked-LM logits divided by
        sqrt(hidden_size). With BERT's, a few hundred steps of pretraining pull all tokens of a narrow encoder into one direction.
      dtype: type of activations, one of float32, bfloat16, float16; parameters stay float32.
    """

    vocab_size: int
    hidden_size: int = 768
    num_layers: int = 12
    num_heads: int = 12
    mlp_size: int = 3072
    max_length: int = 512
    embedding_size: int = 768
    num_topics: int = 600
    dropout_rate: float = 0.1
    norm: Literal["post", "pre"] = "post"
    pooling: Literal["cls", "mean"] = "cls"
    dtype: str = "float32"
    embedding_init: Literal["bert", "t5"] = "bert"

    def __post_init__(self) -> None:
        for name in ("vocab_size", "hidden_size", "num_layers", "num_heads", "mlp_size", "max_length", "embedding_size", "num_topics"):
            value = getattr(self, name)
            if not isinstance(value, int) or isinstance(value, bool) or value < 1:
                raise ValueError(f"EncoderConfig.{name}: got {value!r}, expected a positive integer")
        if self.hidden_size % self.num_heads:
            raise ValueError(f"EncoderConfig.hidden_size: got {self.hidden_size}, expected a multiple of num_heads = {self.num_heads}")
        if not 0.0 <= self.dropout_rate < 1.0:
            raise ValueError(f"EncoderConfig.dropout_rate: got {self.dropout_rate!r}, expected a number in [0, 1)")
        for name, allowed in _CHOICES.items():
            value = getattr(self, name)
            if value not in allowed:
                raise ValueError(f"EncoderConfig.{name}: got {value!r}, expected one of {', '.join(allowed)}")

    def to_dict(self) -> dict[str, Any]:
        """All attributes as JSON values."""
        return dataclasses.asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Inverse of `to_dict`.

        Raises:
          ValueError: for a key that is no attribute, a missing `vocab_size` or a value out of range.
        """
        known = [field.name for field in dataclasses.fields(cls)]
        unknown = sorted(set(values) - set(known))
        if unknown:
            raise ValueError(f"EncoderConfig: got the unknown keys {', '.join(unknown)}, expected some of {', '.join(known)}")
        if "vocab_size" not in values:
            raise ValueError("EncoderConfig: the key vocab_size is missing")
        return cls(**values)


class NewsEncoder(nn.Module):
    """The encoder and its three heads.

    Use it through `apply` with a method name: ``NewsEncoder(config).apply({"params": params}, tokens, method="embed")``.
    Initialise with ``init(key, tokens)``, which touches every head. Where `deterministic` is False a "dropout" key is needed.
    """

    config: EncoderConfig

    def setup(self) -> None:
        """Declares the parameters of the body and of all heads."""
        config = self.config
        self.token_embedding = self.param(
            "token_embedding",
            _logical(_normal(1.0) if config.embedding_init == "t5" else _normal(), "vocab", "embed"),
            (config.vocab_size, config.hidden_size),
            jnp.float32,
        )
        self.position_embedding = self.param(
            "position_embedding", _logical(_normal(), "position", "embed"), (config.max_length, config.hidden_size), jnp.float32
        )
        self.input_norm = _layer_norm(config)
        self.dropout = nn.Dropout(config.dropout_rate)
        self.layers = [Block(config) for _ in range(config.num_layers)]
        self.output_norm = _layer_norm(config) if config.norm == "pre" else None
        self.embedding_head = _dense(config.embedding_size, ("embed", "embedding"), jnp.float32)
        self.topic_head = _dense(config.num_topics, ("embed", "topics"), jnp.float32)
        self.mlm_transform = _dense(config.hidden_size, ("embed", "embed_out"), _dtype(config))
        self.mlm_norm = _layer_norm(config)
        self.mlm_bias = self.param("mlm_bias", _logical(nn.initializers.zeros, "vocab"), (config.vocab_size,), jnp.float32)

    def __call__(self, tokens: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
        """Runs all heads once, so that `init` creates all parameters.

        Returns:
          Embeddings [B, D], topic logits [B, T] and masked-LM logits [B, 1, V] of the first position.
        """
        hidden = self.encode(tokens)
        return self.embed_hidden(hidden, tokens), self.topic_logits_hidden(hidden, tokens), self.mlm_logits(hidden[:, :1])

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
          segment_ids: int32 [B, L], 1-based number of the packed piece, 0 on padding; a token attends within its piece only.
            None where a row is one piece.
          positions: int32 [B, L], position inside the piece; None counts from 0 along the row.
          deterministic: False applies dropout.

        Returns:
          [B, L, H] in the configured dtype; rows at padding hold no meaning.

        Raises:
          ValueError: if L exceeds `max_length`.
        """
        length = tokens.shape[-1]
        if length > self.config.max_length:
            raise ValueError(f"got rows of {length} tokens, expected at most max_length = {self.config.max_length}")
        position_vectors = self.position_embedding[:length][None] if positions is None else self.position_embedding[positions]
        hidden = (self.token_embedding[tokens] + position_vectors).astype(_dtype(self.config))
        if self.config.norm == "post":
            hidden = self.input_norm(hidden)
        hidden = self.dropout(hidden, deterministic=deterministic)
        mask = attention_mask(tokens, segment_ids)
        for layer in self.layers:
            hidden = layer(hidden, mask, deterministic=deterministic)
        return hidden if self.output_norm is None else self.output_norm(hidden)

    def embed(self, tokens: jax.Array, *, deterministic: bool = True) -> jax.Array:
        """Document embeddings of one-piece rows, float32 [B, D] of length 1: a dense layer on the pooled top vector."""
        return self.embed_hidden(self.encode(tokens, deterministic=deterministic), tokens)

    def embed_hidden(self, hidden: jax.Array, tokens: jax.Array) -> jax.Array:
        """Embeddings [B, D] from what `encode` returned, [B, L, H]."""
        vectors = self.embedding_head(self.pool(hidden, tokens))
        return vectors / jnp.maximum(jnp.linalg.norm(vectors, axis=-1, keepdims=True), _EMBEDDING_NORM_FLOOR)

    def topic_logits(self, tokens: jax.Array, *, deterministic: bool = True) -> jax.Array:
        """Logits of every topic, float32 [B, T]: a dense layer on the pooled top vector."""
        return self.topic_logits_hidden(self.encode(tokens, deterministic=deterministic), tokens)

    def topic_logits_hidden(self, hidden: jax.Array, tokens: jax.Array) -> jax.Array:
        """Topic logits [B, T] from what `encode` returned, [B, L, H]."""
        return self.topic_head(self.pool(hidden, tokens))

    def mlm_logits(self, hidden: jax.Array) -> jax.Array:
        """Logits over the vocabulary at the gathered positions only; the output table is the token embedding.

        Args:
          hidden: [B, K, H], `encode`'s output at the masked positions.

        Returns:
          float32 [B, K, V].
        """
        states = self.mlm_states(hidden)
        table = self.token_embedding.astype(states.dtype)
        return jnp.einsum("bkh,vh->bkv", states, table, preferred_element_type=jnp.float32) + self.mlm_bias

    def mlm_states(self, hidden: jax.Array) -> jax.Array:
        """What `mlm_logits` multiplies with the output table: [B, K, H] -> [B, K, H] in the configured dtype."""
        states = self.mlm_norm(nn.gelu(self.mlm_transform(hidden), approximate=False))
        return states * self.config.hidden_size**-0.5 if self.config.embedding_init == "t5" else states

    def output_table(self) -> tuple[jax.Array, jax.Array]:
        """The table [V, H] and bias [V] between those states and the logits, float32."""
        return self.token_embedding, self.mlm_bias

    def pool_pieces(self, hidden: jax.Array, segment_ids: jax.Array) -> jax.Array:
        """What the heads would read of every piece of packed rows.

        Args:
          hidden: [B, L, H] from `encode`.
          segment_ids: int32 [B, L], see `encode`.

        Returns:
          float32 [B, L, H]: at each token the pooled vector of its piece.
        """
        same = (segment_ids[:, :, None] == segment_ids[:, None, :]).astype(jnp.float32)
        if self.config.pooling == "cls":
            same *= piece_starts(segment_ids).astype(jnp.float32)[:, None, :]
        return jnp.einsum("blk,bkh->blh", same / jnp.sum(same, axis=-1, keepdims=True), hidden.astype(jnp.float32))

    def pool(self, hidden: jax.Array, tokens: jax.Array) -> jax.Array:
        """What the heads read of one-piece rows: [B, L, H] -> float32 [B, H]."""
        if self.config.pooling == "cls":
            return hidden[:, 0].astype(jnp.float32)
        weights = (tokens != PAD_ID).astype(jnp.float32)[..., None]
        return jnp.sum(hidden.astype(jnp.float32) * weights, axis=1) / jnp.maximum(jnp.sum(weights, axis=1), 1.0)


class Block(nn.Module):
    """Self-attention and a feed-forward layer, each with a residual sum and a layer norm."""

    config: EncoderConfig

    @nn.compact
    def __call__(self, hidden: jax.Array, mask: jax.Array, *, deterministic: bool) -> jax.Array:
        """[B, L, H] -> [B, L, H], attending where `mask` [B, 1, L or 1, L] is True."""
        config = self.config
        attention = Attention(config, name="attention")
        attention_norm, mlp_norm = _layer_norm(config, "attention_norm"), _layer_norm(config, "mlp_norm")
        mlp_in = _dense(config.mlp_size, ("embed", "mlp"), _dtype(config), "mlp_in")
        mlp_out = _dense(config.hidden_size, ("mlp", "embed"), _dtype(config), "mlp_out")
        dropout = nn.Dropout(config.dropout_rate, deterministic=deterministic)

        def mlp(states: jax.Array) -> jax.Array:
            # As [B x L, H] the gradient of the weights is one plain matrix product, which XLA runs faster on a CPU.
            rows = states.reshape(-1, config.hidden_size)
            return dropout(mlp_out(nn.gelu(mlp_in(rows), approximate=False)).reshape(states.shape))

        if config.norm == "post":
            hidden = attention_norm(hidden + dropout(attention(hidden, mask)))
            return mlp_norm(hidden + mlp(hidden))
        hidden = hidden + dropout(attention(attention_norm(hidden), mask))
        return hidden + mlp(mlp_norm(hidden))


class Attention(nn.Module):
    """Multi-head self-attention by `jax.nn.dot_product_attention`."""

    config: EncoderConfig

    @nn.compact
    def __call__(self, hidden: jax.Array, mask: jax.Array) -> jax.Array:
        """[B, L, H] -> [B, L, H]."""
        config = self.config
        head_size = config.hidden_size // config.num_heads
        # One product for queries, keys and values: three thin ones cost more on every device.
        projected = _project(self, "query_key_value", hidden, ("embed",), (3, config.num_heads, head_size), ("qkv", "heads", "kv"))
        query, key, value = projected[:, :, 0], projected[:, :, 1], projected[:, :, 2]
        context = jax.nn.dot_product_attention(query, key, value, mask=mask)
        return _project(self, "output", context, ("heads", "kv"), (config.hidden_size,), ("embed",))


def _project(
    module: Attention, name: str, inputs: jax.Array, in_axes: tuple[str, ...], out_shape: tuple[int, ...], out_axes: tuple[str, ...]
) -> jax.Array:
    """Dense layer from the last `len(in_axes)` dimensions of [B, L, …] to [B, L, *out_shape], in the type of `inputs`.

    Flax's DenseGeneral would do, but it cannot be initialised with logical axes under axis rules.
    """
    rows, in_shape = inputs.shape[:2], inputs.shape[2:]
    kernel = module.param(f"{name}_kernel", _logical(_normal(), *in_axes, *out_axes), (*in_shape, *out_shape), jnp.float32)
    bias = module.param(f"{name}_bias", _logical(nn.initializers.zeros, *out_axes), out_shape, jnp.float32)
    products = jnp.tensordot(inputs.reshape(-1, *in_shape), kernel.astype(inputs.dtype), axes=len(in_shape))
    return products.reshape(*rows, *out_shape) + bias.astype(inputs.dtype)


def attention_mask(tokens: jax.Array, segment_ids: jax.Array | None) -> jax.Array:
    """Which key each query may see.

    Args:
      tokens: int32 [B, L].
      segment_ids: int32 [B, L] or None, see `NewsEncoder.encode`.

    Returns:
      bool [B, 1, L, L] where rows are packed, else [B, 1, 1, L]. A padded query of a packed row sees the row's padding,
      so that no softmax runs over an empty set; nobody reads what it gets.
    """
    if segment_ids is None:
        return (tokens != PAD_ID)[:, None, None, :]
    return (segment_ids[:, :, None] == segment_ids[:, None, :])[:, None]


def piece_starts(segment_ids: jax.Array) -> jax.Array:
    """Where a piece of a packed row begins, bool [B, L]; padding counts as a piece."""
    before = jnp.pad(segment_ids[:, :-1], ((0, 0), (1, 0)), constant_values=-1)
    return segment_ids != before


def _dtype(config: EncoderConfig) -> Any:
    return _DTYPES[config.dtype]


def _normal(stddev: float = _INITIALIZER_STDDEV) -> Any:
    return nn.initializers.truncated_normal(stddev)


def _logical(initializer: Any, *axes: str) -> Any:
    return nn.with_logical_partitioning(initializer, axes)


def _dense(size: int, axes: tuple[str, str], dtype: Any, name: str | None = None) -> nn.Dense:
    kernel_init, bias_init = _logical(_normal(), *axes), _logical(nn.initializers.zeros, axes[1])
    return nn.Dense(size, dtype=dtype, kernel_init=kernel_init, bias_init=bias_init, name=name)


def _layer_norm(config: EncoderConfig, name: str | None = None) -> nn.LayerNorm:
    return nn.LayerNorm(
        epsilon=_LAYER_NORM_EPSILON,
        dtype=_dtype(config),
        scale_init=_logical(nn.initializers.ones, "embed"),
        bias_init=_logical(nn.initializers.zeros, "embed"),
        name=name,
    )

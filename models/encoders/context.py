"""The context encoder: a static table whose token weights and vectors narrow layers correct by their context.

A static model (`news` without layers) counts each word piece alike in all texts. Here a small transformer reads the
tokens in windows and gives each of them a factor on its weight and a vector that is added to its own::

    pooled = sum_l w_l g_l (t_l + c_l) / sum_l w_l g_l

where t_l is the vector of the piece in the table and w_l its weight by piece, place and copies, as in a static model;
g_l and c_l come from the layers. Their output kernels start at zero, so g = 1 and c = 0: an untrained model *is* the
static model of its table, from which training starts. Layers of 64 units cost a sixtieth of layers as wide
as a table of 512, and factors are not tied to words: what they learn also holds for names in new events.

Shapes as in `news`, and C units of the layers.
"""

import dataclasses
from collections.abc import Mapping
from typing import ClassVar, Final

import flax.linen as nn
import jax
import jax.numpy as jnp

from ..architecture import Capability, register
from ..attention import PAD_ID, visible
from ..blocks import compute_dtype, dense, layer_norm, logical, make_block, make_context
from ..transformer import EXECUTION_OPTIONS, TransformerConfig
from .news import EncoderConfig, NewsEncoder, in_windows

CONTEXT_KIND: Final = "context"
_SMALLEST_WEIGHT: Final = 1e-30


class ContextEncoder(NewsEncoder):
    """A `NewsEncoder` without layers of its own width; its parameters keep their names, those of context are added."""

    config: "ContextConfig"

    def setup(self) -> None:
        """Declares the parameters of the table and of all heads, and of the layers of context."""
        super().setup()
        layers, hidden = self.config.layers, self.config.hidden_size
        dtype = compute_dtype(self.config)
        self.context_token = dense(layers.hidden_size, ("embed", "embed_out"), dtype, use_bias=False)
        self.context_document = dense(layers.hidden_size, ("embed", "embed_out"), dtype)
        self.context_place = dense(layers.hidden_size, ("embed", "embed_out"), dtype, use_bias=False)
        self.context_layers = [make_block(layers, layer) for layer in range(layers.num_layers)]
        self.context_norm = layer_norm(layers)
        self.context_gain = _from_zero(1, dtype)
        self.context_vector = _from_zero(hidden, dtype)

    def encode(
        self,
        tokens: jax.Array,
        segment_ids: jax.Array | None = None,
        positions: jax.Array | None = None,
        *,
        deterministic: bool = True,
    ) -> jax.Array:
        """The vectors g (t + c) of every token, whose weighted mean over a text is its pooled vector; see the module.

        The factors g are scaled so that their weighted mean over a text is 1. Arguments, shapes and errors as
        `NewsEncoder.encode`; the layers read packed rows as a whole.
        """
        table = super().encode(tokens, segment_ids, positions, deterministic=deterministic)
        groups = (tokens != PAD_ID).astype(jnp.int32) if segment_ids is None else segment_ids
        weights = jnp.maximum(self.token_weights(tokens, groups), _SMALLEST_WEIGHT) * (tokens != PAD_ID)
        # One text is one group; of packed texts each has its own sums: which tokens are of one text, [B, L, L].
        same = None if segment_ids is None else (groups[:, :, None] == groups[:, None, :]).astype(jnp.float32)
        states = self._states(table, tokens, weights, same)
        if segment_ids is None:
            states = self._in_context_of_windows(states, tokens, deterministic=deterministic)
        else:
            states = self._in_context(states, tokens, segment_ids, positions, deterministic=deterministic)
        states = self.context_norm(states)
        read = states.shape[1]
        gains = jnp.exp(self.context_gain(states)[..., 0].astype(jnp.float32))
        corrected = table[:, :read] + self.context_vector(states)
        if self.config.context_length:
            gains = jnp.concatenate([gains, jnp.ones_like(weights)[:, read:]], axis=1)
            corrected = jnp.concatenate([corrected, table[:, read:].astype(corrected.dtype)], axis=1)
        scale = _sums(weights, same) / jnp.maximum(_sums(weights * gains, same), _SMALLEST_WEIGHT)
        return corrected * (gains * scale)[..., None].astype(corrected.dtype)

    def _states(self, table: jax.Array, tokens: jax.Array, weights: jax.Array, same: jax.Array | None) -> jax.Array:
        """The input of the layers, [B, R, C]: each token, the text that it is in, how both agree, and its weight."""
        read = self._read(tokens).shape[1]
        totals = jnp.maximum(_sums(weights, same), _SMALLEST_WEIGHT)
        if same is None:
            document = jnp.einsum("bl,blh->bh", weights / totals, table.astype(jnp.float32))[:, None]
        else:
            document = jnp.einsum("blk,bk,bkh->blh", same, weights, table.astype(jnp.float32)) / totals[..., None]
            document = document[:, :read]
        token, document = self.context_token(table[:, :read]), self.context_document(document.astype(table.dtype))
        place = jnp.log(jnp.maximum(weights[:, :read], _SMALLEST_WEIGHT))[..., None].astype(table.dtype)
        return token + document + token * document + self.context_place(place)

    def _in_context_of_windows(self, states: jax.Array, tokens: jax.Array, *, deterministic: bool) -> jax.Array:
        """The output of the layers on one-piece rows, [B, R, C]; each window is a row of its own."""
        rows, read, size = states.shape
        window = self.config.context_window
        if isinstance(read, int):
            window = min(window, read)
        windows = in_windows(self._read(tokens), window)
        padding = (read + window - 1) // window * window - read
        padded = jnp.pad(states, ((0, 0), (0, padding), (0, 0)))
        inputs = padded.reshape(windows.shape[0], window, size)
        outputs = self._in_context(inputs, windows, None, None, deterministic=deterministic)
        return outputs.reshape(rows, -1, size)[:, :read]

    def _in_context(
        self,
        states: jax.Array,
        tokens: jax.Array,
        segment_ids: jax.Array | None,
        positions: jax.Array | None,
        *,
        deterministic: bool,
    ) -> jax.Array:
        layers = self.config.layers
        context = make_context(layers, visible(tokens, segment_ids), positions, None)
        return self._run(layers, self.context_layers, states, context, deterministic=deterministic)

    def _read(self, tokens: jax.Array) -> jax.Array:
        return tokens[:, : self.config.context_length or None]


def _from_zero(size: int, dtype: jnp.dtype) -> nn.Dense:
    return nn.Dense(size, use_bias=False, dtype=dtype, kernel_init=logical(nn.initializers.zeros, "embed", "embed_out"))


def _sums(values: jax.Array, same: jax.Array | None) -> jax.Array:
    """The sum over the text of each token: [B, L], or [B, 1] where a row is one text."""
    if same is None:
        return jnp.sum(values, axis=1, keepdims=True)
    return jnp.einsum("blk,bk->bl", same, values)


@register
@dataclasses.dataclass(frozen=True)
class ContextConfig(EncoderConfig):
    """The context encoder's shape: the `TransformerConfig` of its table (`num_layers` is 0), and its layers.

    Attributes:
      context_layers: transformer blocks that read the context.
      context_size: their width, C; a multiple of `context_heads`.
      context_heads: attention heads of each.
      context_mlp_size: width of their feed-forward layers.
      context_window: tokens that they read at a time, with rotary positions from 0. What a token knows of the rest of
        its text is the text's mean in the table.
      context_length: tokens of a text that they read at all; later ones keep factor 1 and their vector in the table.
        0: all.
    """

    kind: ClassVar[str] = CONTEXT_KIND
    module_class: ClassVar[type[nn.Module]] = ContextEncoder
    free_options: ClassVar[tuple[str, ...]] = (*EncoderConfig.free_options, "context_length")

    least: ClassVar[Mapping[str, int]] = {**EncoderConfig.least, "context_length": 0}

    num_layers: int = 0
    context_layers: int = 2
    context_size: int = 64
    context_heads: int = 4
    context_mlp_size: int = 128
    context_window: int = 64
    context_length: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        expected = {"num_layers": 0, "window_length": 0, "pooling": "weighted", "embedding_activation": "identity"}
        for name, value in expected.items():
            self.require(name, getattr(self, name) == value, repr(value))
        try:
            self.layers  # noqa: B018 - checks their sizes
        except ValueError as error:
            raise ValueError(f"ContextConfig, its layers of context: {error}") from error

    @property
    def layers(self) -> TransformerConfig:
        """The shape of the layers; their execution options, number type and dropout are the model's."""
        same = {name: getattr(self, name) for name in (*EXECUTION_OPTIONS, "dtype", "dropout_rate", "max_length")}
        return TransformerConfig(
            vocab_size=self.vocab_size,
            hidden_size=self.context_size,
            num_layers=self.context_layers,
            num_heads=self.context_heads,
            mlp_size=self.context_mlp_size,
            norm="pre",
            positions="rotary",
            **same,
        )

    @property
    def capabilities(self) -> frozenset[Capability]:
        """What a `NewsEncoder` can do, without the layouts of `transformers` and the view of attention; not static."""
        return super().capabilities - {Capability.HUGGING_FACE, Capability.ATTENTION, Capability.STATIC}

    def summary(self) -> str:
        """The table and its layers, such as "a table of 512, 2 layers x 64 for its context"."""
        return f"a table of {self.hidden_size}, {self.context_layers} layers x {self.context_size} for its context"

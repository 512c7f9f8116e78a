"""Transformer blocks, and a stack of them: unrolled or as a loop, with or without recomputation in the backward pass.

Shapes: B rows, L tokens, H hidden units, N heads, d units a head.
"""

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

import flax.linen as nn
import jax
import jax.numpy as jnp

from .attention import TYPES, Kernel, Visible, attend, attention_probabilities, relative_bias, rotary_tables, rotate
from .transformer import TransformerConfig

_INITIALIZER_STDDEV: Final = 0.02  # BERT's

Params = Mapping[str, Any]
Tables = tuple[jax.Array, jax.Array]


class Context(NamedTuple):
    """The inputs of every block apart from the residual stream; a pytree.

    Attributes:
      seen: which tokens see each other.
      rotary: tables of layers that see the whole row, None where positions are learned.
      local_rotary: tables of local layers, None where there are none.
      bias: of relative positions, [1, N, L, L], None where there is none.
    """

    seen: Visible
    rotary: Tables | None
    local_rotary: Tables | None
    bias: jax.Array | None


def make_context(
    config: TransformerConfig, seen: Visible, positions: jax.Array | None, relative: jax.Array | None
) -> Context:
    """The context of a batch.

    Args:
      config: the model's.
      seen: which tokens see each other.
      positions: int32 [B, L], or None to count along the row.
      relative: the table of `attention.relative_bias`, or None.
    """
    # Pieces are contiguous: the distance in the row is the distance in the piece.
    bias = None if relative is None else relative_bias(relative, seen.groups.shape[1], config.dtype)
    if config.positions == "learned":
        return Context(seen, None, None, bias)
    places = jnp.arange(seen.groups.shape[1])[None] if positions is None else positions
    rotary = functools.partial(rotary_tables, places, config.head_size, dtype=config.dtype)
    local = rotary(theta=config.local_rotary_theta) if config.local_distance else None
    return Context(seen, rotary(theta=config.rotary_theta), local, bias)


class Block(nn.Module):
    """Self-attention and a feed-forward layer, each with a residual sum and a layer norm.

    Attributes:
      config: the model's.
      kernel: computes the attention.
      is_local: whether its tokens see `config.local_distance` only.
      has_attention_norm: see `TransformerConfig.has_attention_norm`.
    """

    config: TransformerConfig
    kernel: Kernel = "xla"
    is_local: bool = False
    has_attention_norm: bool = True

    @nn.compact
    def __call__(self, hidden: jax.Array, context: Context, *, deterministic: bool) -> jax.Array:
        """[B, L, H] -> [B, L, H]."""
        config = self.config
        attention = Attention(config, self.kernel, self.is_local, name="attention")
        attention_norm = layer_norm(config, "attention_norm") if self.has_attention_norm else None
        mlp_norm = layer_norm(config, "mlp_norm")
        linear = functools.partial(dense, dtype=compute_dtype(config), use_bias=config.biases)
        mlp_in = linear(config.mlp_size, ("embed", "mlp"), name="mlp_in")
        mlp_gate = linear(config.mlp_size, ("embed", "mlp"), name="mlp_gate") if config.mlp == "gated" else None
        mlp_out = linear(config.hidden_size, ("mlp", "embed"), name="mlp_out")
        dropout = nn.Dropout(config.dropout_rate, deterministic=deterministic)

        def mlp(states: jax.Array) -> jax.Array:
            # As [B x L, H] the gradient of the weights is one plain matrix product, which XLA runs faster on a CPU.
            rows = states.reshape(-1, config.hidden_size)
            inner = activate(config, mlp_in(rows))
            if mlp_gate is not None:
                inner = inner * mlp_gate(rows)
            return dropout(mlp_out(inner).reshape(states.shape))

        if config.norm == "post":
            assert attention_norm is not None
            hidden = attention_norm(hidden + dropout(attention(hidden, context)))
            return mlp_norm(hidden + mlp(hidden))
        hidden = hidden + dropout(attention(hidden if attention_norm is None else attention_norm(hidden), context))
        return hidden + mlp(mlp_norm(hidden))


class Attention(nn.Module):
    """Multi-head self-attention; for the attributes see `Block`."""

    config: TransformerConfig
    kernel: Kernel = "xla"
    is_local: bool = False

    @nn.compact
    def __call__(self, hidden: jax.Array, context: Context) -> jax.Array:
        """[B, L, H] -> [B, L, H]."""
        config = self.config
        # One product for queries, keys and values: three thin ones cost more on every device.
        out_shape = (3, config.num_heads, config.head_size)
        names, biases = ("qkv", "heads", "kv"), config.biases
        projected = project(self, "query_key_value", hidden, ("embed",), out_shape, names, use_bias=biases)
        query, key, value = projected[:, :, 0], projected[:, :, 1], projected[:, :, 2]
        tables = context.local_rotary if self.is_local else context.rotary
        if tables is not None:
            query, key = rotate(query, tables), rotate(key, tables)
        seen, distance = context.seen, config.local_distance if self.is_local else None
        options: Any = {"distance": distance, "global_tokens": config.global_tokens, "bias": context.bias}
        attended = attend(query, key, value, seen, kernel=self.kernel, **options)
        if self.is_mutable_collection("intermediates"):  # only where somebody asks, see `run_blocks_observed`
            self.sow("intermediates", "probabilities", attention_probabilities(query, key, seen, **options))
        return project(self, "output", attended, ("heads", "kv"), (config.hidden_size,), ("embed",), use_bias=biases)


def make_block(config: TransformerConfig, layer: int, kernel: Kernel = "xla", **options: Any) -> Block:
    """The block of one layer, counted from 0; `options` go to Flax (``parent=None`` for one that is only applied)."""
    return Block(config, kernel, config.is_local(layer), config.has_attention_norm(layer), **options)


def run_blocks(
    config: TransformerConfig,
    params: Sequence[Params],
    hidden: jax.Array,
    context: Context,
    kernel: Kernel,
    key: jax.Array | None,
) -> jax.Array:
    """The whole stack, as `config.remat` and `config.scan_layers` say; the result is the same.

    Args:
      config: the model's.
      params: of every layer, in order.
      hidden: [B, L, H].
      context: of the batch.
      kernel: computes the attention.
      key: of dropout; None: no dropout. Each layer has a key of its own, the same however the stack is run.

    Returns:
      [B, L, H].
    """
    keys = None if key is None else jax.random.split(key, config.num_layers)
    first, period, periods = _loop_of(config)

    def one_by_one(hidden: jax.Array, layers: range) -> jax.Array:
        for layer in layers:
            own = None if keys is None else keys[layer]
            hidden = _applied(config, layer, kernel)(params[layer], hidden, context, own)
        return hidden

    if not config.scan_layers or periods < 2:
        return one_by_one(hidden, range(config.num_layers))
    hidden = one_by_one(hidden, range(first))
    end = first + periods * period
    # Parameters of like layers as one tree whose arrays have a first axis for the layer.
    stacked = [
        jax.tree.map(lambda *arrays: jnp.stack(arrays), *params[first + n : end : period]) for n in range(period)
    ]
    looped = None if keys is None else keys[first:end].reshape(periods, period, *keys.shape[1:])

    def one_period(hidden: jax.Array, own: tuple[Any, Any]) -> tuple[jax.Array, None]:
        """Runs the layers of one period, the body of the scan."""
        own_params, own_keys = own
        for place in range(period):
            run = _applied(config, first + place, kernel, in_loop=True)
            hidden = run(own_params[place], hidden, context, None if own_keys is None else own_keys[place])
        return hidden, None

    hidden, _ = jax.lax.scan(one_period, hidden, (stacked, looped))
    return one_by_one(hidden, range(end, config.num_layers))


def run_blocks_observed(
    config: TransformerConfig,
    params: Sequence[Params],
    hidden: jax.Array,
    context: Context,
    kernel: Kernel,
    queries: jax.Array,
) -> tuple[jax.Array, jax.Array]:
    """Runs the whole stack without dropout, and records its attention.

    Args:
      config: the model's.
      params: of every layer, in order.
      hidden: [B, L, H].
      context: of the batch.
      kernel: computes the attention; the probabilities are computed in addition.
      queries: float32 [B, L], how much each token counts as a query, of sum 1 in each row.

    Returns:
      [B, L, H] as `run_blocks`, and float32 [layers, B, L]: the attention that each token gets from these queries, the
      mean over heads.
    """
    received = []
    for layer in range(config.num_layers):
        block = make_block(config, layer, kernel, parent=None)
        hidden, found = block.apply(
            {"params": params[layer]}, hidden, context, deterministic=True, mutable=["intermediates"]
        )
        (probabilities,) = found["intermediates"]["attention"]["probabilities"]
        received.append(jnp.einsum("bnqk,bq->bk", probabilities, queries) / config.num_heads)
    return hidden, jnp.stack(received) if received else jnp.zeros((0, *queries.shape), jnp.float32)


def _loop_of(config: TransformerConfig) -> tuple[int, int, int]:
    """The part of the stack that repeats: its first layer, the layers of one repetition, the repetitions."""
    first = 0 if config.has_attention_norm(0) else 1
    period = max(config.global_every, 1)
    return first, period, (config.num_layers - first) // period


def _applied(
    config: TransformerConfig, layer: int, kernel: Kernel, *, in_loop: bool = False
) -> Callable[..., jax.Array]:
    """(params, hidden, context, key) -> hidden of one layer."""
    block = make_block(config, layer, kernel, parent=None)

    def apply(params: Params, hidden: jax.Array, context: Context, key: jax.Array | None) -> jax.Array:
        rngs = {} if key is None else {"dropout": key}
        return block.apply({"params": params}, hidden, context, deterministic=key is None, rngs=rngs)

    if config.remat == "none":
        return apply
    policy = jax.checkpoint_policies.dots_with_no_batch_dims_saveable if config.remat == "dots" else None
    # A loop's body cannot be merged with its own recomputation; outside, the compiler must be kept from it.
    return jax.checkpoint(apply, policy=policy, prevent_cse=not in_loop)


def project(
    module: nn.Module,
    name: str,
    inputs: jax.Array,
    in_axes: tuple[str, ...],
    out_shape: tuple[int, ...],
    out_axes: tuple[str, ...],
    *,
    initializer: Any = None,
    use_bias: bool = True,
) -> jax.Array:
    """Dense layer from the last `len(in_axes)` dimensions of [B, L, …] to [B, L, *out_shape], in the type of `inputs`.

    Flax's DenseGeneral would do, but it cannot be initialised with logical axes under axis rules.
    """
    rows, in_shape = inputs.shape[:2], inputs.shape[2:]
    kernel_name, shape = f"{name}_kernel", (*in_shape, *out_shape)
    kernel = parameter(module, kernel_name, initializer or normal(), shape, *in_axes, *out_axes).astype(inputs.dtype)
    products = jnp.tensordot(inputs.reshape(-1, *in_shape), kernel, axes=len(in_shape)).reshape(*rows, *out_shape)
    if not use_bias:
        return products
    bias = parameter(module, f"{name}_bias", nn.initializers.zeros, out_shape, *out_axes)
    return products + bias.astype(inputs.dtype)


def compute_dtype(config: TransformerConfig) -> Any:
    """The type of activations."""
    return TYPES[config.dtype]


def activate(config: TransformerConfig, states: jax.Array) -> jax.Array:
    """The configured GELU (Hendrycks and Gimpel 2016)."""
    return nn.gelu(states, approximate=config.activation == "gelu_tanh")


def normal(stddev: float = _INITIALIZER_STDDEV) -> Any:
    """BERT's initialiser, a normal distribution cut at two standard deviations."""
    return nn.initializers.truncated_normal(stddev)


def logical(initializer: Any, *axes: str) -> Any:
    """An initialiser whose array carries the names of its axes."""
    return nn.with_logical_partitioning(initializer, axes)


def parameter(module: nn.Module, name: str, initializer: Any, shape: tuple[int, ...], *axes: str) -> jax.Array:
    """A float32 parameter of a module; its array carries the names of its axes."""
    return module.param(name, logical(initializer, *axes), shape, jnp.float32)


def dense(
    size: int,
    axes: tuple[str, str],
    dtype: Any,
    name: str | None = None,
    *,
    use_bias: bool = True,
    initializer: Any = None,
) -> nn.Dense:
    """A dense layer with logical axes, by default with BERT's initialiser."""
    kernel_init, bias_init = logical(initializer or normal(), *axes), logical(nn.initializers.zeros, axes[1])
    return nn.Dense(size, dtype=dtype, kernel_init=kernel_init, bias_init=bias_init, use_bias=use_bias, name=name)


def norm(epsilon: float, dtype: Any, name: str | None = None, *, use_bias: bool = True) -> nn.LayerNorm:
    """A layer norm with logical axes."""
    scale, bias = (logical(start, "embed") for start in (nn.initializers.ones, nn.initializers.zeros))
    return nn.LayerNorm(epsilon=epsilon, dtype=dtype, use_bias=use_bias, scale_init=scale, bias_init=bias, name=name)


def layer_norm(config: TransformerConfig, name: str | None = None) -> nn.LayerNorm:
    """The `norm` of a transformer."""
    return norm(config.layer_norm_epsilon, compute_dtype(config), name, use_bias=config.biases)

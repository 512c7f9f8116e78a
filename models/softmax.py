"""The softmax over the vocabulary in chunks: cross entropy whose [N, V] logits never exist at once.

The table is on one device or sharded.

The online form of logsumexp (Milakov and Gimelshein 2018, "Online normalizer calculation for softmax"); the backward
pass computes each chunk's logits again, as FlashAttention and Cut Cross-Entropy do (Wijmans et al. 2024). For 4,096
positions and 500,000 pieces the logits and their gradient would take 16 GB; in chunks they take what the chunk takes.

Shapes use N positions, H hidden units and V pieces. Where the table is sharded over mesh axes ("vocab" in the axis
rules), each device works on its own pieces, and positions stay on the devices that hold them ("batch").

Applies a function to rows in chunks: activations exist for one chunk at a time; value and gradient stay the same.

A loop over rematerialised chunks *is* gradient caching (Gao et al. 2021, "Scaling Deep Contrastive Learning Batch Size
under Memory Limited Setup"): the forward pass keeps each chunk's results only; the backward pass gets the gradient of
all results (of a contrastive loss over the whole batch, say), computes each chunk again with the same keys and adds up
the parameters' gradients.
"""

import functools
from collections.abc import Callable
from typing import Any, Final, NamedTuple

import flax.linen as nn
import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec


def mesh_axes(logical_axis: str) -> tuple[str, ...]:
    """Names of the mesh axes that a logical axis is sharded over, by flax's axis rules and jax's mesh in force.

    Axes of one device are left out; without a mesh, rules, or a rule for the axis there are none.
    """
    mesh = jax.sharding.get_abstract_mesh()
    (found,) = nn.logical_to_mesh_axes((logical_axis,)) or (None,)
    names = () if found is None or mesh.empty else (found,) if isinstance(found, str) else tuple(found)
    return tuple(name for name in names if mesh.shape.get(name, 1) > 1)


def shard_count(logical_axis: str) -> int:
    """The number of shards of a logical axis; 1 where it is not sharded."""
    count = 1
    for name in mesh_axes(logical_axis):
        count *= jax.sharding.get_abstract_mesh().shape[name]
    return count


def map_chunks(function: Callable[[Any, jax.Array], Any], rows: Any, key: jax.Array, chunks: int) -> Any:
    """Applies `function(rows, key)` to chunks of the rows, one after another.

    Chunk c holds the rows c, c + chunks, c + 2 chunks, …: of a batch that is sharded in blocks, every device then works
    on its own rows in every chunk, and nothing moves between devices.

    Args:
      function: rows [R, …] and a PRNG key to results [R, …]; a pytree each. It may close over parameters.
      rows: pytree of [B, …].
      key: PRNG key; chunk c gets the c-th of `jax.random.split(key, chunks)`, and one chunk alone gets `key` itself.
      chunks: divides B, see `chunk_count`.

    Returns:
      The results as a pytree of [B, …], in the order of the rows.
    """
    if chunks == 1:
        return function(rows, key)

    def split(array: jax.Array) -> jax.Array:
        return _keep_sharding(array.reshape(-1, chunks, *array.shape[1:]).swapaxes(0, 1), 1)

    def join(array: jax.Array) -> jax.Array:
        return _keep_sharding(array.swapaxes(0, 1).reshape(-1, *array.shape[2:]), 0)

    # Inside a loop the compiler cannot merge the second computation with the first, so it need not be
    # prevented.
    one_chunk = jax.checkpoint(function, prevent_cse=False)
    results = jax.lax.map(lambda chunk: one_chunk(*chunk), (jax.tree.map(split, rows), jax.random.split(key, chunks)))
    return jax.tree.map(join, results)


def chunk_count(rows: int, most_rows: int) -> int:
    """The smallest number of equal chunks with at most `most_rows` rows, each with as many rows on every device.

    Args:
      rows: in the batch, over all devices.
      most_rows: in a chunk, over all devices.

    Raises:
      ValueError: if even the smallest chunk is larger, or does not divide the number of rows.
    """
    unit = shard_count("batch")
    if rows % unit or most_rows < unit:
        raise ValueError(
            f"got {rows} rows in chunks of at most {most_rows}, expected chunks and rows that hold multiples of {unit}"
        )
    units = rows // unit
    return next(count for count in range(1, units + 1) if units % count == 0 and units // count * unit <= most_rows)


def _keep_sharding(array: jax.Array, axis: int) -> jax.Array:
    axes = mesh_axes("batch")
    return jax.lax.with_sharding_constraint(array, PartitionSpec(*[None] * axis, axes)) if axes else array


# Logits that one device may hold at a time: 256 MiB of float32.
LOGITS_AT_A_TIME: Final = 1 << 26
_CHUNK_MULTIPLE: Final = 1024  # so that a chunk fills the tiles of a matrix unit
_LARGEST_CHUNK: Final = 16 * _CHUNK_MULTIPLE  # a chunk's part of the table and of its gradient takes room, too


class SoftmaxTerms(NamedTuple):
    """The terms of cross entropy and accuracy at every position, each float32 [N].

    Attributes:
      log_normalizer: logsumexp over the vocabulary.
      target: the logit of the right piece.
      largest: the largest logit; carries no gradient.
    """

    log_normalizer: jax.Array
    target: jax.Array
    largest: jax.Array


class _Axes(NamedTuple):
    """Mesh axes that the positions and the table are sharded over."""

    batch: tuple[str, ...] = ()
    vocab: tuple[str, ...] = ()


def automatic_chunk(positions: int, pieces: int) -> int:
    """The pieces at a time that keep a device's logits within `LOGITS_AT_A_TIME`.

    >>> automatic_chunk(1000, 30_000), automatic_chunk(22_528, 500_000), automatic_chunk(1_000_000, 500_000)
    (30000, 2048, 1024)

    Args:
      positions: on one device.
      pieces: of the table on one device.

    Returns:
      `pieces` where all of them fit; else a multiple of 1024 up to 16,384, the least even where it does not fit.
    """
    fits = LOGITS_AT_A_TIME // positions
    if pieces <= fits:
        return pieces
    return min(pieces, _LARGEST_CHUNK, max(_CHUNK_MULTIPLE, fits // _CHUNK_MULTIPLE * _CHUNK_MULTIPLE))


def chunk_of_device(positions: int, pieces: int, chunk: int) -> int:
    """The pieces that a device takes at a time, by the mesh in force.

    Args:
      positions: over all devices.
      pieces: over all devices.
      chunk: what was asked for; 0 leaves it to `automatic_chunk`.

    Returns:
      At most the pieces of one device's table; as many mean that nothing is cut.
    """
    own = -(-pieces // shard_count("vocab"))
    return min(chunk, own) if chunk else automatic_chunk(max(1, positions // shard_count("batch")), own)


def softmax_terms(
    states: jax.Array, table: jax.Array, bias: jax.Array, targets: jax.Array, *, chunk: int
) -> SoftmaxTerms:
    """`SoftmaxTerms` of the logits states @ table.T + bias, of which only [N, chunk] exist at a time.

    Products are taken in the type of `states` and summed in float32. The vocabulary need not be a multiple of the
    chunk: what is left over is a smaller chunk of its own, and nothing is padded or copied.

    Args:
      states: [N, H]; N is a multiple of the devices that share the batch.
      table: [V, H].
      bias: [V].
      targets: int32 [N], in [0, V).
      chunk: pieces at a time on each device, at least 1.
    """
    return _softmax_terms(chunk, _Axes(mesh_axes("batch"), mesh_axes("vocab")), states, table, bias, targets)


@functools.partial(jax.custom_vjp, nondiff_argnums=(0, 1))
def _softmax_terms(
    chunk: int, axes: _Axes, states: jax.Array, table: jax.Array, bias: jax.Array, targets: jax.Array
) -> SoftmaxTerms:
    local = functools.partial(_local_terms, chunk, axes)
    rows, pieces = PartitionSpec(axes.batch or None), PartitionSpec(axes.vocab or None)
    return _on_shards(local, axes, in_specs=(rows, pieces, pieces, rows), out_specs=rows)(states, table, bias, targets)


def _forward(chunk: int, axes: _Axes, *arrays: jax.Array) -> tuple[SoftmaxTerms, Any]:
    terms = _softmax_terms(chunk, axes, *arrays)
    return terms, (*arrays, terms.log_normalizer)


def _backward(
    chunk: int, axes: _Axes, residuals: Any, cotangents: SoftmaxTerms
) -> tuple[jax.Array, jax.Array, jax.Array, None]:
    local = functools.partial(_local_gradients, chunk, axes)
    rows, pieces = PartitionSpec(axes.batch or None), PartitionSpec(axes.vocab or None)
    # The gradient is written out inside, never taken of a shard_map, so that each sum over devices is explicit.
    sharded = _on_shards(
        local, axes, in_specs=(rows, pieces, pieces, rows, rows, (rows, rows)), out_specs=(rows, pieces, pieces)
    )
    return *sharded(*residuals, (cotangents.log_normalizer, cotangents.target)), None


_softmax_terms.defvjp(_forward, _backward)


def _on_shards(function: Callable[..., Any], axes: _Axes, *, in_specs: Any, out_specs: Any) -> Callable[..., Any]:
    if not (axes.batch or axes.vocab):
        return function
    return jax.shard_map(function, in_specs=in_specs, out_specs=out_specs)


def _local_terms(
    chunk: int, axes: _Axes, states: jax.Array, table: jax.Array, bias: jax.Array, targets: jax.Array
) -> SoftmaxTerms:
    """One device's positions against its own pieces, then combined over the devices that share the table."""
    first = _first_piece(axes, table.shape[0])

    def add(
        carry: tuple[jax.Array, jax.Array, jax.Array], start: jax.Array | int, size: int
    ) -> tuple[jax.Array, jax.Array, jax.Array]:
        """Adds a chunk of pieces to the largest logit, the sum of exponentials below it, and the target's logit."""
        largest, total, target = carry
        logits = _logits(states, *_slice(start, size, table, bias))
        place = targets - (first + start)
        found = jnp.take_along_axis(logits, jnp.clip(place, 0, size - 1)[:, None], axis=1)[:, 0]
        target += jnp.where((place >= 0) & (place < size), found, 0.0)
        larger = jnp.maximum(largest, jnp.max(logits, axis=1))
        total = total * jnp.exp(largest - larger) + jnp.sum(jnp.exp(logits - larger[:, None]), axis=1)
        return larger, total, target

    count = targets.shape[0]
    empty = (jnp.full(count, -jnp.inf, jnp.float32), jnp.zeros(count, jnp.float32), jnp.zeros(count, jnp.float32))
    largest, total, target = _over_chunks(add, _varying(empty, axes.batch + axes.vocab), table.shape[0], chunk)
    if axes.vocab:
        own, largest = largest, jax.lax.pmax(largest, axes.vocab)
        total, target = jax.lax.psum((total * jnp.exp(own - largest), target), axes.vocab)
    return SoftmaxTerms(largest + jnp.log(total), target, largest)


def _local_gradients(
    chunk: int,
    axes: _Axes,
    states: jax.Array,
    table: jax.Array,
    bias: jax.Array,
    targets: jax.Array,
    log_normalizer: jax.Array,
    cotangents: tuple[jax.Array, jax.Array],
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Gradients of a device's states, pieces and biases.

    d loss / d logit = g_normalizer softmax + g_target [piece is the target], where `cotangents` are g_normalizer and
    g_target, [N].
    """
    log_normalizer_gradient, target_gradient = cotangents
    first = _first_piece(axes, table.shape[0])

    def add(
        carry: tuple[jax.Array, jax.Array, jax.Array], start: jax.Array | int, size: int
    ) -> tuple[jax.Array, jax.Array, jax.Array]:
        """Adds what a chunk of pieces brings to the gradients of the states, and writes those of its own rows."""
        states_gradient, table_gradient, bias_gradient = carry
        pieces, biases = _slice(start, size, table, bias)
        probabilities = jnp.exp(_logits(states, pieces, biases) - log_normalizer[:, None])
        right = (targets - (first + start))[:, None] == jnp.arange(size)
        logits_gradient = log_normalizer_gradient[:, None] * probabilities + jnp.where(
            right, target_gradient[:, None], 0.0
        )
        narrow = logits_gradient.astype(states.dtype)
        states_gradient += jnp.matmul(narrow, pieces.astype(states.dtype), preferred_element_type=jnp.float32)
        own = jnp.matmul(narrow.T, states, preferred_element_type=jnp.float32), jnp.sum(logits_gradient, axis=0)
        # Summed over the batch chunk by chunk: afterwards it would take a second gradient of the whole table.
        of_pieces, of_biases = jax.lax.psum(own, axes.batch) if axes.batch else own
        table_gradient = jax.lax.dynamic_update_slice_in_dim(table_gradient, of_pieces, start, axis=0)
        bias_gradient = jax.lax.dynamic_update_slice_in_dim(bias_gradient, of_biases, start, axis=0)
        return states_gradient, table_gradient, bias_gradient

    of_states, *of_table = (jnp.zeros(array.shape, jnp.float32) for array in (states, table, bias))
    empty = (_varying(of_states, axes.batch + axes.vocab), *_varying(of_table, axes.vocab))
    states_gradient, table_gradient, bias_gradient = _over_chunks(add, empty, table.shape[0], chunk)
    if axes.vocab:
        states_gradient = jax.lax.psum(states_gradient, axes.vocab)
    return states_gradient.astype(states.dtype), table_gradient.astype(table.dtype), bias_gradient.astype(bias.dtype)


def _over_chunks(add: Callable[[Any, Any, int], Any], carry: Any, pieces: int, chunk: int) -> Any:
    """`add(carry, start, size)` for every chunk: a loop over the whole ones, then what is left over."""
    chunk = min(chunk, pieces)
    whole = pieces // chunk
    carry = jax.lax.fori_loop(0, whole, lambda number, carry: add(carry, number * chunk, chunk), carry)
    rest = pieces - whole * chunk
    return add(carry, whole * chunk, rest) if rest else carry


def _slice(start: jax.Array | int, size: int, table: jax.Array, bias: jax.Array) -> tuple[jax.Array, jax.Array]:
    return jax.lax.dynamic_slice_in_dim(table, start, size), jax.lax.dynamic_slice_in_dim(bias, start, size)


def _logits(states: jax.Array, pieces: jax.Array, biases: jax.Array) -> jax.Array:
    # The pieces change type chunk by chunk: no second table exists in the narrow type.
    return jnp.matmul(states, pieces.astype(states.dtype).T, preferred_element_type=jnp.float32) + biases


def _first_piece(axes: _Axes, own: int) -> jax.Array | int:
    """Id of the first piece of this device's part of the table."""
    return jax.lax.axis_index(axes.vocab) * own if axes.vocab else 0


def _varying(arrays: Any, names: tuple[str, ...]) -> Any:
    """Marks arrays that start equal on every device of these mesh axes and then differ; shard_map asks for it."""
    return jax.lax.pcast(arrays, names, to="varying") if names else arrays

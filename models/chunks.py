"""Applies a function to rows in chunks: activations exist for one chunk at a time; value and gradient stay the same.

A loop over rematerialised chunks *is* gradient caching (Gao et al. 2021, "Scaling Deep Contrastive Learning Batch Size
under Memory Limited Setup"): the forward pass keeps each chunk's results only; the backward pass gets the gradient of
all results (of a contrastive loss over the whole batch, say), computes each chunk again with the same keys and adds up
the parameters' gradients.
"""

from collections.abc import Callable
from typing import Any

import flax.linen as nn
import jax
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

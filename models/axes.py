"""The mesh axes of logical axes while a function is traced, for code that knows nothing else about the devices."""

import flax.linen as nn
import jax


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

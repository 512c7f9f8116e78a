"""The layout over devices for T5X: our mesh and our axis rules."""

import functools
from collections.abc import Sequence
from typing import Any

from t5x import partitioning

from ..learning.partitioning import LOGICAL_AXIS_RULES
from ..learning.partitioning import Partitioner as Layout


class Partitioner(partitioning.PjitPartitioner):
    """T5X's partitioner with the mesh of our trainer, on TPUs, GPUs and CPUs alike.

    T5X's own `PjitPartitioner` works too, with `logical_axis_rules = @partitioner.logical_axis_rules()`. It gives all
    CPU devices to the model axis.

    Args:
      model_parallel: devices that share one copy of the model; the others share the batch.
      rules: (logical axis, mesh axis or None).
    """

    def __init__(self, model_parallel: int = 1, rules: Sequence[tuple[str, str | None]] = LOGICAL_AXIS_RULES) -> None:
        self._layout = Layout(model_parallel, rules)
        super().__init__(num_partitions=model_parallel, logical_axis_rules=rules)

    @functools.cached_property
    def mesh(self) -> Any:
        """The mesh over all devices.

        Raises:
          InputError: if `model_parallel` does not divide their number.
        """
        return self._layout.make_mesh()


def logical_axis_rules() -> tuple[tuple[str, str | None], ...]:
    """Returns the mesh axis of every logical axis of our models."""
    return LOGICAL_AXIS_RULES

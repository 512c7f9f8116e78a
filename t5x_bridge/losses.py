"""The loss of a batch of any task as one function, of which only the part of the batch's own task runs."""

import dataclasses
from collections.abc import Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from ..learning.objectives import Metrics, Objectives
from .layout import BatchLayout


class Loss(NamedTuple):
    """The loss of a batch.

    Attributes:
      value: float32 scalar.
      metrics: what the objectives log, by group; zeros in groups that are not the batch's, or no such groups.
      number: number of the batch's group, int32 scalar.
    """

    value: jax.Array
    metrics: dict[str, Metrics]
    number: jax.Array


def loss_of_batch(
    objectives: Objectives, layout: BatchLayout, params: Any, batch: Mapping[str, jax.Array], key: jax.Array
) -> Loss:
    """Returns the loss of the task that a batch is of.

    The gradient of each task is computed inside its branch. Differentiating the branches from outside would keep what
    every one of them needs for its backward pass.

    Args:
      objectives: of all tasks.
      layout: of the batch.
      params: parameters of the model and the objectives.
      batch: global arrays [B, ...].
      key: PRNG key of this step.

    Raises:
      InputError: for a batch with the features of no group.
    """
    number = layout.number_in(batch)
    branches = _Branches(objectives, layout, batch, key)
    if isinstance(number, int):
        value, metrics = branches.loss(number, params)
        return Loss(value, {layout.groups[number].name: metrics}, jnp.asarray(number))

    @jax.custom_vjp
    def chosen(params: Any) -> Any:
        return jax.lax.switch(number, branches.all(params, with_gradient=False), params)

    def forward(params: Any) -> Any:
        return jax.lax.switch(number, branches.all(params, with_gradient=True), params)

    def backward(gradient: Any, cotangents: Any) -> Any:
        return (jax.tree.map(lambda array: cotangents[0] * array, gradient),)

    chosen.defvjp(forward, backward)
    value, metrics = chosen(params)
    return Loss(value, metrics, number)


@dataclasses.dataclass(frozen=True)
class _Branches:
    """The loss of one batch as that of each group."""

    objectives: Objectives
    layout: BatchLayout
    batch: Mapping[str, jax.Array]
    key: jax.Array

    def loss(self, number: int, params: Any) -> tuple[jax.Array, Metrics]:
        task = self.layout.groups[number].tasks[0]
        return self.objectives.loss(task, params, self.layout.rows_in(self.batch, number), self.key)

    def all(self, params: Any, *, with_gradient: bool) -> list[Any]:
        """One function of the parameters for each group; all return arrays of the same names and shapes."""
        numbers = range(len(self.layout.groups))
        shapes = [jax.eval_shape(lambda params, n=number: self.loss(n, params)[1], params) for number in numbers]
        zeros = {
            group.name: {name: jnp.zeros(value.shape, value.dtype) for name, value in shape.items()}
            for group, shape in zip(self.layout.groups, shapes, strict=True)
        }

        def branch(number: int) -> Any:
            """Returns the loss of one group, with zeros for the metrics of the others."""
            name = self.layout.groups[number].name

            def run(params: Any) -> Any:
                if not with_gradient:
                    value, metrics = self.loss(number, params)
                    return value, zeros | {name: metrics}
                of_params = jax.value_and_grad(lambda params: self.loss(number, params), has_aux=True)
                (value, metrics), gradient = of_params(params)
                return (value, zeros | {name: metrics}), gradient

            return run

        return [branch(number) for number in numbers]

"""The arithmetic of a function, counted in its jaxpr: matrix products only, two FLOPs for each multiply-add."""

import math
from collections.abc import Callable, Iterator
from typing import Any

import jax


def count_flops(function: Callable[..., Any], *arguments: Any) -> float:
    """FLOPs of the matrix products and convolutions of a call, which is traced and never run.

    A loop counts as often as it runs, and of several branches the most expensive one. What is computed again in a
    backward pass, and the kernels of one platform (Pallas, cuDNN), are not in it.

    >>> float(count_flops(lambda a, b: a @ b, jax.ShapeDtypeStruct((2, 3), "float32"), jax.numpy.ones((3, 5))))
    60.0

    Args:
      function: of arrays.
      arguments: pytrees of arrays, or of their shapes (`jax.ShapeDtypeStruct`).
    """
    return _of_jaxpr(jax.make_jaxpr(function)(*arguments).jaxpr)


def _of_jaxpr(jaxpr: Any) -> float:
    return sum(map(_of_equation, jaxpr.eqns), 0.0)


def _of_equation(equation: Any) -> float:
    parameters, name = equation.params, equation.primitive.name
    if name == "dot_general":
        (contracted, _), _ = parameters["dimension_numbers"]
        inner = math.prod(equation.invars[0].aval.shape[axis] for axis in contracted)
        return 2.0 * math.prod(equation.outvars[0].aval.shape) * inner
    if name == "conv_general_dilated":
        kernel, output_axis = equation.invars[1].aval.shape, parameters["dimension_numbers"].rhs_spec[0]
        return 2.0 * math.prod(equation.outvars[0].aval.shape) * math.prod(kernel) / kernel[output_axis]
    parts = [_of_jaxpr(part) for part in _inside(parameters)]
    if name == "cond":
        return max(parts)
    return sum(parts) * parameters.get("length", 1) if name == "scan" else sum(parts)


def _inside(parameters: Any) -> Iterator[Any]:
    """The jaxprs in the parameters of an equation."""
    for value in parameters.values():
        for one in value if isinstance(value, tuple | list) else (value,):
            if hasattr(part := getattr(one, "jaxpr", one), "eqns"):
                yield part

"""Parameters in fewer bits: float16, and int8 with one scale for each row of a table or each output of a matrix.

Only what is stored changes. The numbers become float32 again before they are used, so activations and the time of the
layers stay as they are. Weight-only quantisation with symmetric scales: Jacob et al. 2018, "Quantization and Training
of Neural Networks for Efficient Integer-Arithmetic-Only Inference", section 2, without their zero points.
"""

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ..errors import InputError

PRECISIONS: Final = ("float32", "float16", "int8")
# The least cosine of an embedding to that in float32 on the sample texts of an export.
LEAST_COSINE: Final = {"float16": 0.9999, "int8": 0.99}
_SCALE: Final = ".scale"  # after the name of an int8 array
_LARGEST: Final = 127
_LARGEST_HALF: Final = float(np.finfo(np.float16).max)

Array = npt.NDArray[Any]


def stored(params: Mapping[str, Array], precision: str, *, path: str) -> dict[str, Array]:
    """Parameters as an export holds them.

    Args:
      params: float32 arrays by their dotted names.
      precision: one of `PRECISIONS`. With int8, arrays with fewer than two dimensions stay float32.
      path: of the model, to name in errors.

    Returns:
      Arrays by name; for each int8 array another one, float32, with its scales.

    Raises:
      InputError: if a value is too large for float16, or not finite.
    """
    result = {}
    for name, value in params.items():
        if precision != "float32" and not np.isfinite(value).all():
            raise InputError("holds NaN or infinity", path=path, field=name, remedy="Export another checkpoint.")
        if precision == "float16":
            result[name] = _halved(value, name, path)
        elif precision == "int8" and value.ndim >= 2:
            result[name], result[name + _SCALE] = quantized(value, is_kernel=name.endswith("kernel"))
        else:
            result[name] = value
    return result


def quantized(value: Array, *, is_kernel: bool) -> tuple[Array, Array]:
    """int8 integers q and float32 scales s with value about q s; each error is at most s / 2.

    Args:
      value: float32, two dimensions or more.
      is_kernel: whether the first dimension is what a product sums over, so that each output has one scale; else each
        row of the last dimension has one, as the vector of a word piece.

    Returns:
      q in the shape of `value`, and s in that shape with 1 where a scale is shared.
    """
    largest = np.max(np.abs(value), axis=0 if is_kernel else -1, keepdims=True)
    scales = (np.where(largest > 0, largest, 1.0) / _LARGEST).astype(np.float32)
    return np.rint(value / scales).astype(np.int8), scales


def restored(params: Mapping[str, Any]) -> dict[str, Any]:
    """float32 arrays by name from what `stored` returned, as NumPy or JAX arrays."""
    scales = {name + _SCALE for name, value in params.items() if value.dtype == np.int8}
    return {
        name: value.astype(np.float32) * params[name + _SCALE] if name + _SCALE in scales else value.astype(np.float32)
        for name, value in params.items()
        if name not in scales
    }


def _halved(value: Array, name: str, path: str) -> Array:
    largest = float(np.max(np.abs(value), initial=0.0))
    if largest > _LARGEST_HALF:
        problem = f"got the value {largest:.3g}, the largest float16 is {_LARGEST_HALF:.0f}"
        raise InputError(problem, path=path, field=name, remedy="Export with --precision float32 or int8.")
    return value.astype(np.float16)

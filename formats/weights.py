"""Arrays by name: the nested parameters of a model as dotted names, and safetensors files."""

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ..errors import InputError

Array = npt.NDArray[Any]

_PLAIN_DTYPES: Final[Mapping[str, Any]] = {
    "F64": np.float64,
    "F32": np.float32,
    "F16": np.float16,
    "I64": np.int64,  # old files keep position numbers
    "I32": np.int32,
}


def flatten(params: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Leaves by path, joined with dots and sorted.

    >>> flatten({"b": 1, "a": {"kernel": 2}})
    {'a.kernel': 2, 'b': 1}
    """
    flat: dict[str, Any] = {}
    for name in sorted(params):
        value = params[name]
        flat |= flatten(value, f"{prefix}{name}.") if isinstance(value, Mapping) else {f"{prefix}{name}": value}
    return flat


def unflatten(flat: Mapping[str, Any]) -> dict[str, Any]:
    """Inverse of `flatten`.

    >>> unflatten({"a.kernel": 2, "b": 1})
    {'a': {'kernel': 2}, 'b': 1}
    """
    params: dict[str, Any] = {}
    for path, value in flat.items():
        *parents, name = path.split(".")
        node = params
        for parent in parents:
            node = node.setdefault(parent, {})
        node[name] = value
    return params


def read_safetensors(path: str, *, missing_remedy: str | None = None) -> dict[str, Array]:
    """Arrays by name; bfloat16, which the library's own NumPy reader lacks, by ml_dtypes.

    Args:
      path: the file.
      missing_remedy: what the user can do where there is no such file.

    Raises:
      InputError: if the file is missing or broken, or holds another number type.
    """
    import ml_dtypes
    from safetensors import SafetensorError, deserialize

    dtypes = {**_PLAIN_DTYPES, "BF16": ml_dtypes.bfloat16}
    remedy = "Fetch, save or export the file again."
    try:
        with open(path, "rb") as file:
            arrays = deserialize(file.read())  # type: ignore[no-untyped-call]
    except FileNotFoundError as error:
        raise InputError("there is no such file", path=path, remedy=missing_remedy or remedy) from error
    except (OSError, SafetensorError) as error:
        raise InputError(f"no readable safetensors: {error}", path=path, remedy=remedy) from error
    for name, array in arrays:
        if array["dtype"] not in dtypes:
            problem = f"got the number type {array['dtype']}, expected one of {', '.join(dtypes)}"
            raise InputError(problem, path=path, field=name)
    return {
        name: np.frombuffer(array["data"], dtypes[array["dtype"]]).reshape(array["shape"]) for name, array in arrays
    }


def write_safetensors(path: str, arrays: Mapping[str, Array], metadata: Mapping[str, str]) -> None:
    """Writes arrays by name; they need not be contiguous."""
    from safetensors.numpy import save

    # Not `np.ascontiguousarray`, which makes one dimension of none.
    content = save({name: np.asarray(array, order="C") for name, array in arrays.items()}, dict(metadata))
    with open(path, "wb") as file:  # the library's own files are readable by their owner only
        file.write(content)

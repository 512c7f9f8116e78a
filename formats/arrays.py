"""Named arrays in one npz file: numbers and texts only, never Python objects."""

import io
import tokenize
import zipfile
import zlib
from collections.abc import Mapping
from typing import Any, BinaryIO, Final

import numpy as np

from ..errors import InputError

Array = np.ndarray[Any, np.dtype[Any]]
# What NumPy raises for damaged files: their headers are Python literals, and a wrong shape asks for any memory.
DAMAGE: Final = (
    *(ValueError, TypeError, OSError, EOFError, KeyError, AttributeError, OverflowError, MemoryError, SyntaxError),
    *(NotImplementedError, RecursionError, tokenize.TokenError, zipfile.BadZipFile, zlib.error),
)


def write_arrays(path: str, arrays: Mapping[str, Array]) -> None:
    """Writes an npz file completely or not at all.

    Args:
      path: of the file.
      arrays: by name, of numbers or texts.

    Raises:
      ValueError: for an array of Python objects, which only pickle could hold.
    """
    for name, values in arrays.items():
        if values.dtype.hasobject:
            raise ValueError(f"got an array of Python objects as {name!r}, expected numbers or texts")
    from . import files  # Beam, which a reader of an index may lack

    raw = io.BytesIO()
    named: dict[str, Any] = dict(arrays)
    np.savez(raw, **named)
    files.write_whole(path, raw.getvalue())


def read_arrays(path: str) -> dict[str, Array]:
    """Reads an npz file; arrays of Python objects are refused.

    Raises:
      InputError: if the file is missing, is not an npz file, or has an array of Python objects.
    """
    from . import files  # Beam, which a reader of an index may lack

    with files.open_read(path) as source:
        raw = source.read()
    try:
        with np.load(io.BytesIO(raw), allow_pickle=False) as arrays:
            return {name: _array(name, arrays[name]) for name in arrays.files}
    except DAMAGE as error:
        raise InputError(
            f"not an npz file of numbers: {error}", path=path, remedy="delete it, and run what wrote it again"
        ) from error


def read_npy(source: BinaryIO | str, path: str) -> Array:
    """Reads an npy file; an array of Python objects is refused.

    Args:
      source: the open file, or its path.
      path: named in the error.

    Raises:
      FileNotFoundError: if there is no such file.
      InputError: if it is not an npy file, or has an array of Python objects.
    """
    try:
        return _array(path, np.load(source, allow_pickle=False))
    except FileNotFoundError:
        raise
    except DAMAGE as error:
        raise InputError(f"not an npy file: {error}", path=path, remedy="write it with numpy.save") from error


def _array(name: str, values: Any) -> Array:
    """Returns the values of an entry; NumPy gives the bytes of entries in another format.

    Raises:
      TypeError: for such bytes.
    """
    if not isinstance(values, np.ndarray):
        raise TypeError(f"the entry {name!r} is not an array")
    return values

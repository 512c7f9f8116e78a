"""Reads single files of a Hugging Face folder."""

import json
from typing import Any, Final

from ...errors import InputError
from ..weights import Array, read_safetensors

_REMEDY: Final = "Give a folder that transformers' save_pretrained wrote."


def read_json(path: str) -> dict[str, Any]:
    """The object of a JSON file.

    Raises:
      InputError: if it cannot be read, or holds something else.
    """
    values = read_any_json(path)
    if not isinstance(values, dict):
        raise InputError(f"got a JSON {type(values).__name__}, expected an object", path=path, remedy=_REMEDY)
    return values


def read_any_json(path: str) -> Any:
    """The value of a JSON file.

    Raises:
      InputError: if it cannot be read.
    """
    try:
        with open(path, encoding="utf-8") as file:
            return json.load(file)
    except OSError as error:
        raise InputError(f"cannot be read ({error.strerror})", path=path, remedy=_REMEDY) from error
    except ValueError as error:
        raise InputError("got no JSON", path=path, remedy=_REMEDY) from error


def read_arrays(path: str) -> dict[str, Array]:
    """The arrays of a safetensors file by name.

    Raises:
      InputError: if it is missing or broken.
    """
    remedy = "Save the model with safe_serialization=True; pytorch_model.bin is not read, because it can run code."
    return read_safetensors(path, missing_remedy=remedy)

"""JSON from strangers: whatever it holds, what comes out can be written as UTF-8."""

import json
from typing import Any


def load_json(raw: str | bytes) -> Any:
    r"""Parses JSON; halves of surrogate pairs, which JSON can escape and UTF-8 cannot hold, become U+FFFD.

    >>> load_json('"cut emoji \\ud83d"')
    'cut emoji �'

    Args:
      raw: text, or bytes in UTF-8.

    Raises:
      ValueError: if it is no JSON, no UTF-8, or nested too deep.
    """
    text = raw.decode("utf-8-sig") if isinstance(raw, bytes) else raw  # json itself would guess UTF-16
    try:
        value = json.loads(text, strict=False)
        return _mended(value) if "\\ud" in text or "\\uD" in text else value
    except RecursionError as error:
        raise ValueError("nested too deep") from error


def _mended(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, list):
        return [_mended(item) for item in value]
    if isinstance(value, dict):
        return {_mended(name): _mended(item) for name, item in value.items()}
    return value

"""Reads JSON of other people, as pages and feeds hold it."""

import json
from typing import Any


def load_json(raw: str | bytes) -> Any:
    r"""Returns untrusted JSON; unpaired surrogates, which JSON can escape but UTF-8 cannot encode, become U+FFFD.

    >>> load_json('"cut emoji \\ud83d"')
    'cut emoji �'

    Args:
      raw: text, or bytes in UTF-8.

    Raises:
      ValueError: if the input is not JSON, not UTF-8, or nested too deeply.
    """
    text = raw.decode("utf-8-sig") if isinstance(raw, bytes) else raw  # the json module may detect UTF-16
    try:
        value = json.loads(text, strict=False)
        return _replace_surrogates(value) if "\\ud" in text or "\\uD" in text else value
    except RecursionError as error:
        raise ValueError("nested too deep") from error


def _replace_surrogates(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, list):
        return [_replace_surrogates(item) for item in value]
    if isinstance(value, dict):
        return {_replace_surrogates(name): _replace_surrogates(item) for name, item in value.items()}
    return value

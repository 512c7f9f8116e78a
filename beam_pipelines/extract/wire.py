"""Messages between a shard and the process that reads its pages.

A message is JSON with a fixed set of types, followed by the bytes that it refers to. Nothing in it is run: a page that
took over the reading process could otherwise send code to the shard.
"""

import dataclasses
import datetime
import json
import struct
from collections.abc import Mapping
from typing import Any, Final

from ...formats.records import Rejection
from .feeds import Feed
from .page import ArticlePage, ExtractedPage

_SIZE: Final = struct.Struct("<Q")
_TYPE: Final = "="  # the key that names the type of an object
_CLASSES: Final = {kind.__name__: kind for kind in (ArticlePage, ExtractedPage, Feed)}


def pack(value: Any) -> bytes:
    """Returns a message.

    Args:
      value: ``None``, truth values, numbers, texts, bytes, days, :class:`Feed`, :class:`ExtractedPage`, and tuples,
        lists and mappings with text keys of these. Lists are read as tuples.

    Raises:
      TypeError: for a value of another type.
    """
    blobs: list[bytes] = []

    def described(item: Any) -> dict[str, Any]:
        """Returns the JSON of a value that JSON lacks; bytes follow the text, in the order of their places in it.

        Raises:
          TypeError: for a value of another type.
        """
        if isinstance(item, bytes | bytearray):
            blobs.append(bytes(item))
            return {_TYPE: "bytes", "size": len(item)}
        if isinstance(item, datetime.date) and not isinstance(item, datetime.datetime):
            return {_TYPE: "day", "day": item.isoformat()}
        if type(item).__name__ in _CLASSES:
            return {_TYPE: type(item).__name__} | {
                field.name: getattr(item, field.name) for field in dataclasses.fields(item)
            }
        raise TypeError(f"got a value of type {type(item).__name__}, which a message cannot hold")

    text = json.dumps(value, default=described).encode("ascii")
    return b"".join([_SIZE.pack(len(text)), text, *blobs])


def unpack(raw: bytes) -> Any:
    """Returns the value of a message.

    Raises:
      ValueError: if it is not a message.
    """
    try:
        (size,) = _SIZE.unpack_from(raw)
        place = _SIZE.size + size

        def restored(fields: dict[str, Any]) -> Any:
            """Returns the value of a JSON object; objects end in the order in which their bytes follow."""
            nonlocal place
            kind = fields.pop(_TYPE, None)
            if kind is None:
                return fields
            if kind == "bytes":
                start, place = place, place + int(fields["size"])
                return raw[start:place]
            if kind == "day":
                return datetime.date.fromisoformat(fields["day"])
            return _object(kind, fields)

        value = json.loads(raw[_SIZE.size : place].decode("ascii"), object_hook=restored)
    except (struct.error, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ValueError(f"not a message: {type(error).__name__}: {error}") from error
    return _tuples(value)


def _object(kind: str, fields: Mapping[str, Any]) -> Any:
    values = {name: _tuples(value) for name, value in fields.items()}
    if values.get("rejection") is not None:
        values["rejection"] = Rejection(values["rejection"])
    return _CLASSES[kind](**values)


def _tuples(value: Any) -> Any:
    return tuple(_tuples(item) for item in value) if isinstance(value, list) else value

"""Writes shards of TFRecords through Beam's filesystems."""

from collections.abc import Mapping
from typing import Any, Self

from .. import files
from .example import encode_example
from .framing import frame
from .schema import Schema


class TFRecordShardWriter:
    """Writes framed ``tf.train.Example`` records to one shard. Use as a context manager.

    Args:
      path: the shard; written under a temporary name and moved in on a clean exit.

    Attributes:
      path: as given.
      rows: number of records written so far.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self.rows = 0
        self._sink = files.open_write(f"{path}.tmp")

    def write(self, values: Mapping[str, Any], schema: Schema) -> None:
        """Writes one example.

        Args:
          values: integers, sequences of integers or strings, by feature name.
          schema: the features of the record.

        Raises:
          ValueError: if names, types or fixed shapes differ from the schema.
        """
        self.write_bytes(encode_example(values, schema))

    def write_bytes(self, record: bytes) -> None:
        """Writes one framed record."""
        self._sink.write(frame(record))
        self.rows += 1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, error_type: type[BaseException] | None, *_: object) -> None:
        self._sink.close()
        if error_type is None:
            files.move(f"{self.path}.tmp", self.path)

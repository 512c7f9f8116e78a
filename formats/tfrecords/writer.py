"""Writes shards of TFRecords through Beam's filesystems."""

import contextlib
from collections.abc import Mapping
from typing import Any, Self

from .. import files
from ..digests import HashingSink
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
      sha256: digest of the file, once it is closed.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self.rows = 0
        self.sha256 = ""
        self._temporary = files.temporary_name(path)
        self._sink = HashingSink(files.open_write(self._temporary))

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
        if error_type is not None:
            with contextlib.suppress(Exception):  # the first error counts
                self._sink.close()
            files.delete([self._temporary])
            return
        self._sink.close()
        self.sha256 = self._sink.sha256
        files.move(self._temporary, self.path)

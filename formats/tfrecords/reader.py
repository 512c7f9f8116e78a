"""Reads TFRecord files by position, without TensorFlow."""

import mmap
import os
from typing import Final, Self

import numpy as np

from ...errors import InputError
from .framing import CHECKSUM, HEADER, LENGTH, masked_crc32c

_REMEDY: Final = (
    "The file is damaged or was cut off while it was copied: write it again, or delete it and run the job that made it."
)


class RecordFile:
    """One TFRecord file, memory-mapped, with random access to its records.

    The index is built once, from the record headers only; a record's own checksum is verified each time it is read.

    Args:
      path: a local file.

    Raises:
      InputError: if the file is cut off or a header is damaged; names the file and the byte offset.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        with open(path, "rb") as file:
            size = os.fstat(file.fileno()).st_size
            self._bytes: mmap.mmap | bytes = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) if size else b""
        self._offsets = self._index()

    def __len__(self) -> int:
        return len(self._offsets)

    def __getitem__(self, number: int) -> bytes:
        """The data of record `number`.

        Raises:
          IndexError: if there is no such record.
          InputError: if its checksum does not match.
        """
        if not 0 <= number < len(self):
            raise IndexError(f"record {number} of {self.path}, which holds {len(self)}")
        offset = int(self._offsets[number])
        length, _ = HEADER.unpack_from(self._bytes, offset)
        start = offset + HEADER.size
        data = self._bytes[start : start + length]
        (expected,) = CHECKSUM.unpack_from(self._bytes, start + length)
        if masked_crc32c(data) != expected:
            raise InputError(f"checksum mismatch in record {number} at byte {offset}", path=self.path, remedy=_REMEDY)
        return data

    def __reduce__(self) -> tuple[type[Self], tuple[str]]:
        # A memory map cannot be pickled; a worker process opens its own.
        return type(self), (self.path,)

    def _index(self) -> np.ndarray:
        """int64 byte offset of every record.

        Raises:
          InputError: if the file is cut off or a header is damaged.
        """
        offsets, offset, size = [], 0, len(self._bytes)
        while offset < size:
            if offset + HEADER.size > size:
                raise InputError(
                    f"the file ends inside a record's header at byte {offset}", path=self.path, remedy=_REMEDY
                )
            length, expected = HEADER.unpack_from(self._bytes, offset)
            if masked_crc32c(self._bytes[offset : offset + LENGTH.size]) != expected:
                raise InputError(
                    f"no TFRecord header at byte {offset} (its checksum does not match)", path=self.path, remedy=_REMEDY
                )
            end = offset + HEADER.size + length + CHECKSUM.size
            if end > size:
                raise InputError(f"the file ends inside the record at byte {offset}", path=self.path, remedy=_REMEDY)
            offsets.append(offset)
            offset = end
        return np.asarray(offsets, np.int64)

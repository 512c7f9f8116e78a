"""The framing of TFRecord files.

A record is: length (uint64), masked CRC-32C of those 8 bytes, the data, masked CRC-32C of the data; all little-endian.
"""

import functools
import struct
from collections.abc import Callable
from typing import Final

HEADER: Final = struct.Struct("<QI")  # length, its checksum
CHECKSUM: Final = struct.Struct("<I")
LENGTH: Final = struct.Struct("<Q")
_MASK_DELTA: Final = 0xA282EAD8


def frame(data: bytes) -> bytes:
    """One record as it is in the file."""
    length = LENGTH.pack(len(data))
    return length + CHECKSUM.pack(masked_crc32c(length)) + data + CHECKSUM.pack(masked_crc32c(data))


def masked_crc32c(data: bytes) -> int:
    """CRC-32C of ``data``, rotated and offset as TFRecord files store it."""
    crc = _crc32c()(data)
    return (((crc >> 15) | (crc << 17)) + _MASK_DELTA) & 0xFFFFFFFF


@functools.cache
def _crc32c() -> Callable[[bytes], int]:
    """The checksum from whichever C implementation is installed: google-crc32c, else crcmod."""
    try:
        import google_crc32c
    except ImportError:
        import crcmod.predefined

        return crcmod.predefined.mkPredefinedCrcFun("crc-32c")
    return google_crc32c.value

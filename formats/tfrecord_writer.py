"""Writing TFRecords of the training-data contract (``tasks.features``)."""

import struct
from collections.abc import Mapping, Sequence
from typing import Any, Self

from ..tasks.features import FeatureSpec
from . import files

_MASK_DELTA = 0xA282EAD8


class TFRecordShardWriter:
    """Writes framed ``tf.train.Example`` records to one shard. Use as a context manager.

    Args:
      path: the shard; written under a temporary name and moved in on a clean exit.
    """

    def __init__(self, path: str) -> None:
        import crcmod.predefined

        self.path = path
        self.rows = 0
        self._checksum = crcmod.predefined.mkPredefinedCrcFun("crc-32c")
        self._sink = files.open_write(f"{path}.tmp")

    def write(self, values: Mapping[str, Any], features: Sequence[FeatureSpec]) -> None:
        """Writes one example.

        Args:
          values: integers, sequences of integers or strings, by feature name.
          features: the contract; see :data:`~..tasks.features.FEATURES`.

        Raises:
          ValueError: if names, types or fixed shapes differ from the contract.
        """
        self.write_bytes(serialize_example(values, features))

    def write_bytes(self, record: bytes) -> None:
        """Writes one framed record: length, its masked CRC-32C, the bytes, their masked CRC-32C."""
        length = struct.pack("<Q", len(record))
        self._sink.write(
            length + struct.pack("<I", self._masked(length)) + record + struct.pack("<I", self._masked(record))
        )
        self.rows += 1

    def _masked(self, data: bytes) -> int:
        checksum = self._checksum(data)
        return (((checksum >> 15) | (checksum << 17)) + _MASK_DELTA) & 0xFFFFFFFF

    def __enter__(self) -> Self:
        return self

    def __exit__(self, error_type: type[BaseException] | None, *_: object) -> None:
        self._sink.close()
        if error_type is None:
            files.move(f"{self.path}.tmp", self.path)


def serialize_example(values: Mapping[str, Any], features: Sequence[FeatureSpec]) -> bytes:
    """Serialises one record of the contract, deterministically.

    Raises:
      ValueError: if names, types or fixed shapes differ from the contract.
    """
    import tensorflow as tf

    expected = {spec.name for spec in features}
    if set(values) != expected:
        raise ValueError(f"got the features {sorted(values)}, expected {sorted(expected)}")
    example = tf.train.Example()
    for spec in features:
        feature = example.features.feature[spec.name]
        value = values[spec.name]
        if spec.kind == "bytes":
            feature.bytes_list.value.append(value.encode("utf-8"))
            continue
        numbers = [value] if spec.shape == () else list(value)
        if spec.shape and spec.shape[0] not in (None, len(numbers)):
            raise ValueError(f"{spec.name}: got {len(numbers)} values, expected {spec.shape[0]}")
        feature.int64_list.value.extend(numbers)
    return bytes(example.SerializeToString(deterministic=True))

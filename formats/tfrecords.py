"""TFRecord files of ``tf.train.Example``, without TensorFlow: schema, encoding, framing, files by position, shards.

A record is framed as: length (uint64), masked CRC-32C of those 8 bytes, the data, masked CRC-32C of the data; all
little-endian. The message types are declared here in a descriptor pool of their own, so they do not clash with
TensorFlow's if that is loaded.
"""

import concurrent.futures
import dataclasses
import functools
import mmap
import os
import struct
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, Literal, NamedTuple

import numpy as np

from ..errors import InputError
from .digests import ShardWriter
from .stores import read_range

PIECES: Final = "pieces"  # ids of the word pieces of a vocabulary
TOPICS: Final = "topics"  # ids of topics
LANGUAGES: Final = "languages"  # places of languages in the list of a manifest
LABELS: Final = "labels"  # of texts or words, counted from 1; 0 is no label
BLOCK_RECORDS: Final = 1_024
_REQUESTS: Final = 8  # to an object store at a time
_HEADER: Final = struct.Struct("<QI")  # length, its checksum
_CHECKSUM: Final = struct.Struct("<I")
_PROTOBUF: Final = threading.Lock()  # its C code crashed twice where threads read records at once (6.33)
_LENGTH: Final = struct.Struct("<Q")
_MASK_DELTA: Final = 0xA282EAD8
_KINDS: Final = {"bytes_list": "bytes", "float_list": "float", "int64_list": "int"}
# Field for field as TensorFlow publishes `tf.train.Example`.
_EXAMPLE_PROTO: Final = """
    name: "newsembed/example.proto" package: "newsembed" syntax: "proto3"
    message_type { name: "BytesList" field { name: "value" number: 1 label: LABEL_REPEATED type: TYPE_BYTES } }
    message_type { name: "FloatList" field { name: "value" number: 1 label: LABEL_REPEATED type: TYPE_FLOAT } }
    message_type { name: "Int64List" field { name: "value" number: 1 label: LABEL_REPEATED type: TYPE_INT64 } }
    message_type { name: "Feature" oneof_decl { name: "kind" }
      field { name: "bytes_list" number: 1 type: TYPE_MESSAGE type_name: ".newsembed.BytesList" oneof_index: 0 }
      field { name: "float_list" number: 2 type: TYPE_MESSAGE type_name: ".newsembed.FloatList" oneof_index: 0 }
      field { name: "int64_list" number: 3 type: TYPE_MESSAGE type_name: ".newsembed.Int64List" oneof_index: 0 } }
    message_type { name: "Features"
      nested_type { name: "FeatureEntry" options { map_entry: true }
        field { name: "key" number: 1 type: TYPE_STRING }
        field { name: "value" number: 2 type: TYPE_MESSAGE type_name: ".newsembed.Feature" } }
      field { name: "feature" number: 1 label: LABEL_REPEATED type: TYPE_MESSAGE type_name: "FeatureEntry" } }
    message_type { name: "Example"
      field { name: "features" number: 1 type: TYPE_MESSAGE type_name: ".newsembed.Features" } }
"""
_REMEDY: Final = "Point DATA_DIR at TFRecords of this task, or write them again with the job that makes them."
_DAMAGED: Final = (
    "The file is damaged or was cut off while it was copied: write it again, or delete it and run the job that made it."
)


@dataclasses.dataclass(frozen=True)
class FeatureSpec:
    """One feature of a TFRecord.

    Attributes:
      name: the key in ``tf.train.Example.features``.
      kind: ``"int"`` (stored as int64, read as int32) or ``"bytes"`` (UTF-8).
      shape: fixed shape; ``None`` stands for a length that varies by record, ``()`` for a scalar.
      meaning: one line for error messages and documentation.
      holds: what the integers are ids of, such as `PIECES`, `TOPICS` or `LABELS`; they must be at least 0 and less
        than the number of these. ``""`` for integers without bounds.
      optional: whether records may lack the feature; it is then read as zeros, or as no values where their number
        varies.
    """

    name: str
    kind: Literal["int", "bytes"]
    shape: tuple[int | None, ...]
    meaning: str
    holds: str = ""
    optional: bool = False

    @property
    def is_variable(self) -> bool:
        """Whether the number of values varies by record."""
        return self.shape == (None,)


Schema = Sequence[FeatureSpec]


def decode_example(data: bytes, features: Iterable[FeatureSpec], path: str) -> dict[str, np.ndarray]:
    """One record as arrays.

    Args:
      data: a serialised `tf.train.Example`.
      features: what it must hold, unless they are optional; other features are ignored.
      path: named in errors.

    Returns:
      For every feature name an int32 array, or an object array of bytes, of the feature's rank.

    Raises:
      InputError: if the record is not an Example, a feature is missing, or its kind or shape is not the declared one.
    """
    from google.protobuf import message

    with _PROTOBUF:
        example = _example_class()()
        try:
            example.ParseFromString(data)
        except message.DecodeError as error:
            raise InputError("got a record that is not a tf.train.Example", path=path, remedy=_REMEDY) from error
        found = {spec.name: _feature(example, spec, path) for spec in features}
        del example  # its memory, too, is given back by one thread at a time
    return found


def encode_example(values: Mapping[str, Any], schema: Schema) -> bytes:
    """Serialises one record, deterministically: the same values give the same bytes.

    Args:
      values: integers, sequences of integers or strings, by feature name; optional features may be left out.
      schema: the features of the record.

    Raises:
      ValueError: if names, types or fixed shapes differ from the schema.
    """
    expected, needed = {spec.name for spec in schema}, {spec.name for spec in schema if not spec.optional}
    if not needed <= set(values) <= expected:
        raise ValueError(f"got the features {sorted(values)}, expected {sorted(expected)}")
    with _PROTOBUF:
        example = _example_class()()
        for spec in (spec for spec in schema if spec.name in values):
            feature, value = example.features.feature[spec.name], values[spec.name]
            if spec.kind == "bytes":
                feature.bytes_list.value.append(value.encode("utf-8"))
                continue
            numbers = [value] if spec.shape == () else list(value)
            if spec.shape and spec.shape[0] not in (None, len(numbers)):
                raise ValueError(f"{spec.name}: got {len(numbers)} values, expected {spec.shape[0]}")
            feature.int64_list.value.extend(numbers)
        return bytes(example.SerializeToString(deterministic=True))


def _feature(example: Any, spec: FeatureSpec, path: str) -> np.ndarray:
    def refused(found: str, expected: object) -> InputError:
        problem = f"got {found}, expected {expected} ({spec.meaning})"
        return InputError(problem, path=path, field=spec.name, remedy=_REMEDY)

    if spec.name not in example.features.feature:
        if spec.optional:
            shape = tuple(size or 0 for size in spec.shape)
            return np.zeros(shape, np.int32) if spec.kind == "int" else np.full(shape, b"", object)
        raise refused(f"the features {', '.join(sorted(example.features.feature)) or 'none'}", spec.name)
    feature = example.features.feature[spec.name]
    which = feature.WhichOneof("kind")
    # An empty list loses its kind in some writers; it then counts as the declared one.
    if which is not None and _KINDS[which] != spec.kind:
        raise refused(f"{_KINDS[which]} values", spec.kind)
    values = [] if which is None else getattr(feature, which).value
    array = np.asarray(list(values), object) if spec.kind == "bytes" else np.fromiter(values, np.int64, len(values))
    if spec.kind == "int":
        wide, array = array, array.astype(np.int32)
        if not np.array_equal(array, wide):
            raise refused("a value beyond 32 bits", "int32")
    expected = spec.shape[0] if spec.shape else 1
    if expected is not None and array.size != expected:
        raise refused(f"{array.size} values", expected)
    return array if spec.shape else array.reshape(())


@functools.cache
def _example_class() -> Any:
    """The message class of `tf.train.Example`; for one thread at a time."""
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory, text_format

    pool = descriptor_pool.DescriptorPool()
    pool.Add(text_format.Parse(_EXAMPLE_PROTO, descriptor_pb2.FileDescriptorProto()))
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("newsembed.Example"))


def frame(data: bytes) -> bytes:
    """One record as it is in the file."""
    length = _LENGTH.pack(len(data))
    return length + _CHECKSUM.pack(masked_crc32c(length)) + data + _CHECKSUM.pack(masked_crc32c(data))


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


class Blocks(NamedTuple):
    """Where the records of a file are: every `BLOCK_RECORDS` records begin a block.

    Attributes:
      records: how many the file holds.
      offsets: the byte at which each block begins.
    """

    records: int
    offsets: tuple[int, ...]


class RecordFile:
    """One TFRecord file with random access to its records, which are looked up by block.

    A local file is memory-mapped. Of a file in an object store, blocks are read, each by one request, and the last ones
    are kept. A record's own checksum is verified each time it is read.

    Args:
      path: of the file.
      blocks: where they are; None looks at the header of every record of a local file.
      cache: holds the blocks of a file in an object store.
      size: of a file in an object store, in bytes.
      shown: names a local copy in errors.

    Raises:
      InputError: if the file is cut off or a header is damaged; names the file and the byte offset.
    """

    def __init__(
        self,
        path: str,
        blocks: Blocks | None = None,
        *,
        cache: "BlockCache | None" = None,
        size: int = 0,
        shown: str = "",
    ) -> None:
        self.path, self._cache, self._size = shown or path, cache, size
        self._bytes: mmap.mmap | bytes = b""
        self._known: dict[int, np.ndarray] = {}
        if cache is None:
            with open(path, "rb") as file:
                self._size = os.fstat(file.fileno()).st_size
                self._bytes = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) if self._size else b""
        if blocks is None:
            offsets = self._offsets_in(self._bytes, 0)
            ends = range(BLOCK_RECORDS, len(offsets), BLOCK_RECORDS)
            self._known = dict(enumerate(np.split(offsets, ends)))
            blocks = Blocks(len(offsets), tuple(offsets[::BLOCK_RECORDS].tolist()))
        self.blocks = blocks

    def __len__(self) -> int:
        return self.blocks.records

    def __getitem__(self, number: int) -> bytes:
        """The data of record `number`.

        Raises:
          IndexError: if there is no such record.
          InputError: if its checksum does not match, or its block is damaged.
        """
        if not 0 <= number < len(self):
            raise IndexError(f"record {number} of {self.path}, which holds {len(self)}")
        block, place = divmod(number, BLOCK_RECORDS)
        raw, offsets, begin = self._block(block)
        offset = int(offsets[place]) - begin
        length, _ = _HEADER.unpack_from(raw, offset)
        start = offset + _HEADER.size
        data = raw[start : start + length]
        (expected,) = _CHECKSUM.unpack_from(raw, start + length)
        if masked_crc32c(data) != expected:
            raise self._damaged(f"checksum mismatch in record {number}", offset + begin)
        return data

    def sizes(self) -> list[int]:
        """The number of records of each block."""
        return [min(BLOCK_RECORDS, len(self) - n * BLOCK_RECORDS) for n in range(len(self.blocks.offsets))]

    def fetch(self, block: int) -> None:
        """Begins to read a block of a file in an object store."""
        if self._cache is not None:
            self._cache.begin((self.path, block), lambda: self._read(block))

    def _block(self, block: int) -> tuple[mmap.mmap | bytes, np.ndarray, int]:
        """Bytes that hold a block, the offsets of its records in the file, and that of the first byte."""
        if self._cache is not None:
            raw, offsets = self._cache.get((self.path, block), lambda: self._read(block))
            return raw, offsets, self.blocks.offsets[block]
        if block not in self._known:
            begin, end = self._ends(block)
            self._known[block] = self._checked(self._offsets_in(self._bytes[begin:end], begin), block)
        return self._bytes, self._known[block], 0

    def _ends(self, block: int) -> tuple[int, int]:
        offsets = (*self.blocks.offsets, self._size)
        return offsets[block], offsets[block + 1]

    def _read(self, block: int) -> tuple[bytes, np.ndarray]:
        begin, end = self._ends(block)
        raw = read_range(self.path, begin, end)
        return raw, self._checked(self._offsets_in(raw, begin), block)

    def _checked(self, offsets: np.ndarray, block: int) -> np.ndarray:
        if len(offsets) != (expected := self.sizes()[block]):
            raise self._damaged(f"got {len(offsets)} records in the block, expected {expected}", self._ends(block)[0])
        return offsets

    def _offsets_in(self, raw: mmap.mmap | bytes, begin: int) -> np.ndarray:
        """int64 offset in the file of every record in some bytes, of which the first is at `begin`."""
        offsets, offset, size = [], 0, len(raw)
        while offset < size:
            if offset + _HEADER.size > size:
                raise self._damaged("the file ends inside a record's header", begin + offset)
            length, expected = _HEADER.unpack_from(raw, offset)
            if masked_crc32c(raw[offset : offset + _LENGTH.size]) != expected:
                raise self._damaged("no TFRecord header", begin + offset)
            end = offset + _HEADER.size + length + _CHECKSUM.size
            if end > size:
                raise self._damaged("the file ends inside the record", begin + offset)
            offsets.append(begin + offset)
            offset = end
        return np.asarray(offsets, np.int64)

    def _damaged(self, problem: str, offset: int) -> InputError:
        return InputError(f"{problem} at byte {offset}", path=self.path, remedy=_DAMAGED)


class BlockCache:
    """The blocks that were read last; each is read once, whoever asks for it.

    Args:
      most: blocks that are kept.
    """

    def __init__(self, most: int) -> None:
        self._most, self._lock = most, threading.Lock()
        self._held: dict[Any, concurrent.futures.Future[Any]] = {}
        self._pool = concurrent.futures.ThreadPoolExecutor(_REQUESTS)

    def begin(self, key: Any, read: Callable[[], Any]) -> concurrent.futures.Future[Any]:
        """Begins to read a block that is not there, or returns it."""
        with self._lock:
            found = self._held.pop(key, None)
            if found is None or (found.done() and found.exception() is not None):
                found = self._pool.submit(read)
            self._held[key] = found  # the newest
            while len(self._held) > self._most:
                del self._held[next(iter(self._held))]
        return found

    def get(self, key: Any, read: Callable[[], Any]) -> Any:
        """A block."""
        return self.begin(key, read).result()


class TFRecordShardWriter(ShardWriter):
    """Writes framed ``tf.train.Example`` records to one shard."""

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self._offsets: list[int] = []

    def write(self, values: Mapping[str, Any], schema: Schema) -> None:
        """Writes one example, see `encode_example`."""
        self.write_bytes(encode_example(values, schema))

    def write_bytes(self, record: bytes) -> None:
        """Writes one framed record."""
        if self.rows % BLOCK_RECORDS == 0:
            self._offsets.append(self._sink.tell())
        self._sink.write(frame(record))
        self.rows += 1

    @property
    def blocks(self) -> Blocks:
        """Where the records are."""
        return Blocks(self.rows, tuple(self._offsets))

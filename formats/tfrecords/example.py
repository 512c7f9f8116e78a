"""Encodes and decodes ``tf.train.Example`` records by a schema, without TensorFlow.

The message types are declared here in a descriptor pool of their own, so they do not clash with TensorFlow's if that is
loaded.
"""

import functools
from collections.abc import Iterable, Mapping
from typing import Any, Final

import numpy as np
from google.protobuf import descriptor_pb2, descriptor_pool, message, message_factory

from ...errors import InputError
from .schema import FeatureSpec, Schema

_REMEDY: Final = "Point DATA_DIR at TFRecords of this task, or write them again with the job that makes them."
_KINDS: Final = {"bytes_list": "bytes", "float_list": "float", "int64_list": "int"}


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
    example = _example_class()()
    try:
        example.ParseFromString(data)
    except message.DecodeError as error:
        raise InputError("got a record that is not a tf.train.Example", path=path, remedy=_REMEDY) from error
    return {spec.name: _feature(example, spec, path) for spec in features}


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
    if spec.name not in example.features.feature:
        if spec.optional:
            return _absent(spec)
        names = ", ".join(sorted(example.features.feature)) or "none"
        raise InputError(
            f"got the features {names}, expected {spec.name} ({spec.meaning})",
            path=path,
            field=spec.name,
            remedy=_REMEDY,
        )
    feature = example.features.feature[spec.name]
    which = feature.WhichOneof("kind")
    # An empty list loses its kind in some writers; it then counts as the declared one.
    kind = spec.kind if which is None else _KINDS[which]
    if kind != spec.kind:
        raise InputError(
            f"got {kind} values, expected {spec.kind} ({spec.meaning})", path=path, field=spec.name, remedy=_REMEDY
        )
    values = [] if which is None else getattr(feature, which).value
    if spec.kind == "int":
        wide = np.fromiter(values, np.int64, len(values))
        array = wide.astype(np.int32)
        if not np.array_equal(array, wide):
            raise InputError("got a value beyond 32 bits, expected int32", path=path, field=spec.name, remedy=_REMEDY)
    else:
        array = np.asarray(list(values), dtype=object)
    return _shaped(array, spec, path)


def _absent(spec: FeatureSpec) -> np.ndarray:
    shape = tuple(size or 0 for size in spec.shape)
    return np.zeros(shape, np.int32) if spec.kind == "int" else np.full(shape, b"", object)


def _shaped(array: np.ndarray, spec: FeatureSpec, path: str) -> np.ndarray:
    expected = spec.shape[0] if spec.shape else 1
    if expected is not None and array.size != expected:
        raise InputError(
            f"got {array.size} values, expected {expected} ({spec.meaning})", path=path, field=spec.name, remedy=_REMEDY
        )
    return array if spec.shape else array.reshape(())


@functools.cache
def _example_class() -> Any:
    """The message class of `tf.train.Example`, field for field as TensorFlow publishes it."""
    file = descriptor_pb2.FileDescriptorProto(name="newsembed/example.proto", package="newsembed", syntax="proto3")
    field = descriptor_pb2.FieldDescriptorProto
    for name, kind in (
        ("BytesList", field.TYPE_BYTES),
        ("FloatList", field.TYPE_FLOAT),
        ("Int64List", field.TYPE_INT64),
    ):
        file.message_type.add(name=name).field.add(name="value", number=1, label=field.LABEL_REPEATED, type=kind)
    feature = file.message_type.add(name="Feature")
    feature.oneof_decl.add(name="kind")
    for number, (name, kind) in enumerate(
        (("bytes_list", "BytesList"), ("float_list", "FloatList"), ("int64_list", "Int64List")), 1
    ):
        feature.field.add(
            name=name,
            number=number,
            label=field.LABEL_OPTIONAL,
            type=field.TYPE_MESSAGE,
            type_name=f".newsembed.{kind}",
            oneof_index=0,
        )
    features = file.message_type.add(name="Features")
    entry = features.nested_type.add(name="FeatureEntry")
    entry.options.map_entry = True
    entry.field.add(name="key", number=1, label=field.LABEL_OPTIONAL, type=field.TYPE_STRING)
    entry.field.add(
        name="value", number=2, label=field.LABEL_OPTIONAL, type=field.TYPE_MESSAGE, type_name=".newsembed.Feature"
    )
    features.field.add(
        name="feature",
        number=1,
        label=field.LABEL_REPEATED,
        type=field.TYPE_MESSAGE,
        type_name=".newsembed.Features.FeatureEntry",
    )
    example = file.message_type.add(name="Example")
    example.field.add(
        name="features", number=1, label=field.LABEL_OPTIONAL, type=field.TYPE_MESSAGE, type_name=".newsembed.Features"
    )
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("newsembed.Example"))

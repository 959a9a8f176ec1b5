"""Parses tf.Example and tf.SequenceExample messages without TensorFlow.

The messages are defined here as in tensorflow/core/example/{example,feature}.proto, in a separate pool.
"""

from collections.abc import Sequence
from functools import cache
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message, message_factory

_PACKAGE = "slipway.ingest"
_LISTS = {
    "bytes_list": ("BytesList", "TYPE_BYTES"),
    "float_list": ("FloatList", "TYPE_FLOAT"),
    "int64_list": ("Int64List", "TYPE_INT64"),
}


class SequenceError(Exception):
    """A SequenceExample cannot be converted to lists of values; the message says why."""


def is_example(record: bytes) -> bool:
    """Return True if the bytes are a serialised tf.Example."""
    return parse_example(record) is not None


def find_value(record: bytes, name: str) -> int | float | bytes | None:
    """Return the first value of a feature of a serialised tf.Example; None if it has no value."""
    example = parse_example(record)
    if example is None or name not in example.features.feature:
        return None
    feature = example.features.feature[name]
    kind = feature.WhichOneof("kind")
    values = getattr(feature, kind).value if kind else ()
    return values[0] if values else None


def parse_example(record: bytes) -> Any:
    """Return the message; None if the bytes are not one, or have fields that a tf.Example lacks."""
    return _parsed("Example", record)


def example_of_sequence(record: bytes) -> bytes | None:
    """Convert a tf.SequenceExample to a tf.Example: context features stay, each feature list becomes a list.

    Returns:
        The serialised tf.Example; None if the bytes are not a tf.SequenceExample.

    Raises:
        SequenceError: a step does not have exactly one value, the steps of a list have values of several
            types, or a feature list has the name of a context feature.
    """
    sequence = _parsed("SequenceExample", record)
    if sequence is None:
        return None
    example = _message_class("Example")()
    example.features.CopyFrom(sequence.context)
    features = example.features.feature
    for name, steps in sequence.feature_lists.feature_list.items():
        if name in features:
            raise SequenceError(f"{name!r} is both in the context and a list of steps")
        values = features[name]
        for step in steps.feature:
            kind = step.WhichOneof("kind")
            found: Sequence[object] = getattr(step, kind).value if kind else ()
            if len(found) != 1:
                raise SequenceError(f"a step of {name!r} has {len(found)} values; only one each can be read")
            if values.WhichOneof("kind") not in (None, kind):
                raise SequenceError(f"the steps of {name!r} have values of several types")
            getattr(values, kind).value.append(found[0])
    serialized: bytes = example.SerializeToString(deterministic=True)
    return serialized


def _parsed(name: str, record: bytes) -> Any:
    try:
        found = _message_class(name).FromString(record)
    except message.DecodeError:
        return None
    # Any message can be parsed as any other type: unknown fields are kept along.
    size = found.ByteSize()
    found.DiscardUnknownFields()
    return found if found.ByteSize() == size else None


@cache
def _message_class(name: str) -> Any:
    return message_factory.GetMessageClass(_pool().FindMessageTypeByName(f"{_PACKAGE}.{name}"))


@cache
def _pool() -> descriptor_pool.DescriptorPool:
    file = descriptor_pb2.FileDescriptorProto(name="slipway_example.proto", package=_PACKAGE, syntax="proto3")
    for _, (list_name, kind) in _LISTS.items():
        _add_field(file.message_type.add(name=list_name), "value", 1, kind, is_repeated=True)
    feature = file.message_type.add(name="Feature")
    feature.oneof_decl.add(name="kind")
    for number, (field, (list_name, _)) in enumerate(_LISTS.items(), start=1):
        _add_field(feature, field, number, list_name).oneof_index = 0
    _add_map(file.message_type.add(name="Features"), "feature", "Feature")
    _add_field(file.message_type.add(name="FeatureList"), "feature", 1, "Feature", is_repeated=True)
    _add_map(file.message_type.add(name="FeatureLists"), "feature_list", "FeatureList")
    _add_field(file.message_type.add(name="Example"), "features", 1, "Features")
    sequence = file.message_type.add(name="SequenceExample")
    _add_field(sequence, "context", 1, "Features")
    _add_field(sequence, "feature_lists", 2, "FeatureLists")
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return pool


def _add_map(of: Any, field: str, value: str) -> None:
    """Add a map from strings to messages as field 1, with the entry type that protobuf generates for it."""
    entry = of.nested_type.add(name=f"{value}Entry")
    entry.options.map_entry = True
    _add_field(entry, "key", 1, "TYPE_STRING")
    _add_field(entry, "value", 2, value)
    _add_field(of, field, 1, f"{of.name}.{value}Entry", is_repeated=True)


def _add_field(of: Any, name: str, number: int, kind: str, *, is_repeated: bool = False) -> Any:
    field_type = descriptor_pb2.FieldDescriptorProto
    field = of.field.add(name=name, number=number)
    field.label = field_type.LABEL_REPEATED if is_repeated else field_type.LABEL_OPTIONAL
    if kind.startswith("TYPE_"):
        field.type = field_type.Type.Value(kind)
    else:
        field.type, field.type_name = field_type.TYPE_MESSAGE, f".{_PACKAGE}.{kind}"
    return field

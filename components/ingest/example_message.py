"""tf.Example as a protocol buffer message, described here so that looking into one needs no TensorFlow.

The same as tensorflow/core/example/{example,feature}.proto, in a pool of its own.
"""

from functools import cache
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message, message_factory

_PACKAGE = "slipway.ingest"
_LISTS = {
    "bytes_list": ("BytesList", "TYPE_BYTES"),
    "float_list": ("FloatList", "TYPE_FLOAT"),
    "int64_list": ("Int64List", "TYPE_INT64"),
}


def is_example(record: bytes) -> bool:
    """Whether bytes are a serialised tf.Example."""
    return parse_example(record) is not None


def find_value(record: bytes, name: str) -> int | float | bytes | None:
    """The first value of a feature of a serialised tf.Example; None where it has none."""
    example = parse_example(record)
    if example is None or name not in example.features.feature:
        return None
    feature = example.features.feature[name]
    kind = feature.WhichOneof("kind")
    values = getattr(feature, kind).value if kind else ()
    return values[0] if values else None


def parse_example(record: bytes) -> Any:
    """The message, or None if the bytes are none or have fields that a tf.Example lacks."""
    try:
        example = _message_class().FromString(record)
    except message.DecodeError:
        return None
    # Any message can be read as another one: what it has no field for is carried along.
    size = example.ByteSize()
    example.DiscardUnknownFields()
    return example if example.ByteSize() == size else None


@cache
def _message_class() -> Any:
    file = descriptor_pb2.FileDescriptorProto(name="slipway_example.proto", package=_PACKAGE, syntax="proto3")
    for _, (list_name, kind) in _LISTS.items():
        _add_field(file.message_type.add(name=list_name), "value", 1, kind, is_repeated=True)
    feature = file.message_type.add(name="Feature")
    feature.oneof_decl.add(name="kind")
    for number, (field, (list_name, _)) in enumerate(_LISTS.items(), start=1):
        _add_field(feature, field, number, list_name).oneof_index = 0
    features = file.message_type.add(name="Features")
    entry = features.nested_type.add(name="FeatureEntry")
    entry.options.map_entry = True
    _add_field(entry, "key", 1, "TYPE_STRING")
    _add_field(entry, "value", 2, "Feature")
    _add_field(features, "feature", 1, "Features.FeatureEntry", is_repeated=True)
    _add_field(file.message_type.add(name="Example"), "features", 1, "Features")
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{_PACKAGE}.Example"))


def _add_field(of: Any, name: str, number: int, kind: str, *, is_repeated: bool = False) -> Any:
    field_type = descriptor_pb2.FieldDescriptorProto
    field = of.field.add(name=name, number=number)
    field.label = field_type.LABEL_REPEATED if is_repeated else field_type.LABEL_OPTIONAL
    if kind.startswith("TYPE_"):
        field.type = field_type.Type.Value(kind)
    else:
        field.type, field.type_name = field_type.TYPE_MESSAGE, f".{_PACKAGE}.{kind}"
    return field

"""Makes the classes of protocol buffer messages from a table of their fields, apart from all others. Pure."""

from collections.abc import Mapping
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

Fields = Mapping[str, tuple[int, str]]
"""A message's fields, each with its number and its type: a scalar one of protobuf such as INT64, or another
message. "*" marks a repeated field, "{}" a map from text, "|" a field of the oneof `kind`."""

_TYPES = descriptor_pb2.FieldDescriptorProto


def message_classes(package: str, messages: Mapping[str, Fields]) -> dict[str, Any]:
    """Return the classes of messages, by name."""
    file = descriptor_pb2.FileDescriptorProto(name=f"{package}.proto", package=package, syntax="proto3")
    for name, fields in messages.items():
        described = file.message_type.add(name=name)
        if any(kind.startswith("|") for _, kind in fields.values()):
            described.oneof_decl.add(name="kind")
        for field, (number, kind) in fields.items():
            if kind.startswith("{}"):
                entry = described.nested_type.add(name=f"{field.title().replace('_', '')}Entry")
                entry.options.map_entry = True
                _add_field(entry, "key", 1, "STRING", package)
                _add_field(entry, "value", 2, kind[2:], package)
                kind = f"*{name}.{entry.name}"
            _add_field(described, field, number, kind, package)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    found = ((name, pool.FindMessageTypeByName(f"{package}.{name}")) for name in messages)
    return {name: message_factory.GetMessageClass(descriptor) for name, descriptor in found}


def _add_field(of: Any, name: str, number: int, kind: str, package: str) -> None:
    field = of.field.add(name=name, number=number)
    field.label = _TYPES.LABEL_REPEATED if kind.startswith("*") else _TYPES.LABEL_OPTIONAL
    if kind.startswith("|"):
        field.oneof_index = 0
    kind = kind.lstrip("*|")
    if kind.isupper():
        field.type = _TYPES.Type.Value(f"TYPE_{kind}")
    else:
        field.type, field.type_name = _TYPES.TYPE_MESSAGE, f".{package}.{kind}"

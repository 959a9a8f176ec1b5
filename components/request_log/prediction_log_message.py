"""Defines TensorFlow Serving's PredictionLog as a protocol buffer message, for reading without TensorFlow.

The messages are in a separate descriptor pool, with only the fields that are read. The field numbers are
those of tensorflow_serving/apis/{prediction_log,logging,model,predict}.proto of TensorFlow Serving, and of
tensorflow/core/framework/{tensor,tensor_shape}.proto of TensorFlow.
"""

from collections.abc import Mapping
from functools import cache, lru_cache
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message, message_factory

_PACKAGE = "slipway.request_log"
_LONGEST_KEPT = 64
"""The most bytes of a shape that is kept for the next tensor: those of a dozen dimensions."""

OTHER_KINDS = {
    "classify_log": 2,
    "regress_log": 3,
    "multi_inference_log": 4,
    "session_run_log": 5,
    "predict_streamed_log": 7,
}
"""The kinds of a PredictionLog other than PredictLog, by field number; their content is not parsed."""

# By message, each field with its number and type; "*" marks a repeated field, "{}" a map from text.
_FIELDS: Mapping[str, Mapping[str, tuple[int, str]]] = {
    "Int64Value": {"value": (1, "INT64")},
    "ModelSpec": {"version": (2, "Int64Value")},
    "Dim": {"size": (1, "INT64")},
    "TensorShapeProto": {"dim": (2, "*Dim"), "unknown_rank": (3, "BOOL")},
    "TensorProto": {
        "dtype": (1, "INT32"),  # an enum, which is written as a number
        "tensor_shape": (2, "BYTES"),  # a TensorShapeProto, which `shape_of` parses: most are equal
        "tensor_content": (4, "BYTES"),
        "float_val": (5, "*FLOAT"),
        "double_val": (6, "*DOUBLE"),
        "int_val": (7, "*INT32"),
        "string_val": (8, "*BYTES"),
        "int64_val": (10, "*INT64"),
        "bool_val": (11, "*BOOL"),
    },
    "PredictRequest": {"model_spec": (1, "ModelSpec"), "inputs": (2, "{}TensorProto")},
    "PredictResponse": {"outputs": (1, "{}TensorProto"), "model_spec": (2, "ModelSpec")},
    "PredictLog": {"request": (1, "PredictRequest"), "response": (2, "PredictResponse")},
    "LogMetadata": {"model_spec": (1, "ModelSpec"), "timestamp_secs": (4, "INT64")},
    "PredictionLog": {
        "log_metadata": (1, "LogMetadata"),
        "predict_log": (6, "PredictLog"),
        **{name: (number, "BYTES") for name, number in OTHER_KINDS.items()},
    },
}


def parse_prediction_log(record: bytes) -> Any:
    """Return the message; None if the bytes are not a valid one."""
    try:
        return message_class("PredictionLog").FromString(record)
    except message.DecodeError:
        return None


def shape_of(content: bytes) -> tuple[int, ...] | None:
    """Return the sizes in a serialized TensorShapeProto; None if it is not valid, or of unknown rank."""
    return _known_shape(content) if len(content) <= _LONGEST_KEPT else _shape(content)


@lru_cache(maxsize=4096)
def _known_shape(content: bytes) -> tuple[int, ...] | None:
    return _shape(content)


def _shape(content: bytes) -> tuple[int, ...] | None:
    try:
        shape = message_class("TensorShapeProto").FromString(content)
    except message.DecodeError:
        return None
    return None if shape.unknown_rank else tuple(dim.size for dim in shape.dim)


@cache
def message_class(name: str) -> Any:
    """Return the class of one of the messages."""
    return message_factory.GetMessageClass(_pool().FindMessageTypeByName(f"{_PACKAGE}.{name}"))


@cache
def _pool() -> descriptor_pool.DescriptorPool:
    name = "slipway_prediction_log.proto"
    file = descriptor_pb2.FileDescriptorProto(name=name, package=_PACKAGE, syntax="proto3")
    for message_name, fields in _FIELDS.items():
        described = file.message_type.add(name=message_name)
        for field, (number, kind) in fields.items():
            if kind.startswith("{}"):
                entry = described.nested_type.add(name=f"{field.capitalize()}Entry")
                entry.options.map_entry = True
                _add_field(entry, "key", 1, "STRING")
                _add_field(entry, "value", 2, kind[2:])
                kind = f"*{message_name}.{entry.name}"
            _add_field(described, field, number, kind)
    log = file.message_type[-1]
    log.oneof_decl.add(name="log_type")
    for each in log.field:
        if each.name != "log_metadata":
            each.oneof_index = 0
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return pool


def _add_field(of: Any, name: str, number: int, kind: str) -> None:
    types = descriptor_pb2.FieldDescriptorProto
    field = of.field.add(name=name, number=number)
    field.label = types.LABEL_REPEATED if kind.startswith("*") else types.LABEL_OPTIONAL
    kind = kind.removeprefix("*")
    if kind.isupper():
        field.type = types.Type.Value(f"TYPE_{kind}")
    else:
        field.type, field.type_name = types.TYPE_MESSAGE, f".{_PACKAGE}.{kind}"

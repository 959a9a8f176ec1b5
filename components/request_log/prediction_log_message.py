"""Defines TensorFlow Serving's PredictionLog as a protocol buffer message, for reading without TensorFlow.

The messages have only the fields that are read. The field numbers are those of
tensorflow_serving/apis/{prediction_log,logging,model,predict}.proto of TensorFlow Serving, and of
tensorflow/core/framework/{tensor,tensor_shape}.proto of TensorFlow.
"""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from google.protobuf.message import DecodeError

from slipway.components.message_classes import Fields, message_classes

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

_FIELDS: Mapping[str, Fields] = {
    "Int64Value": {"value": (1, "INT64")},
    "ModelSpec": {"version": (2, "Int64Value"), "signature_name": (3, "STRING")},
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
        "predict_log": (6, "|PredictLog"),
        **{name: (number, "|BYTES") for name, number in OTHER_KINDS.items()},
    },
}
MESSAGES = message_classes("slipway.request_log", _FIELDS)


def parse_prediction_log(record: bytes) -> Any:
    """Return the message; None if the bytes are not a valid one."""
    try:
        return MESSAGES["PredictionLog"].FromString(record)
    except DecodeError:
        return None


def shape_of(content: bytes) -> tuple[int, ...] | None:
    """Return the sizes in a serialized TensorShapeProto; None if it is not valid, or of unknown rank."""
    return _known_shape(content) if len(content) <= _LONGEST_KEPT else _shape(content)


@lru_cache(maxsize=4096)
def _known_shape(content: bytes) -> tuple[int, ...] | None:
    return _shape(content)


def _shape(content: bytes) -> tuple[int, ...] | None:
    try:
        shape = MESSAGES["TensorShapeProto"].FromString(content)
    except DecodeError:
        return None
    return None if shape.unknown_rank else tuple(dim.size for dim in shape.dim)

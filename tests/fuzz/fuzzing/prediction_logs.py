"""Records as TensorFlow Serving logs them, of our own description of its messages."""

import struct

from slipway.components.ingest.example_message import MESSAGES as EXAMPLE_MESSAGES
from slipway.components.request_log.prediction_log_message import MESSAGES

_TYPES = {float: (1, "float_val"), int: (9, "int64_val"), bytes: (7, "string_val")}


def example(**columns):
    """A serialized tf.Example; a column of None has no value."""
    made = EXAMPLE_MESSAGES["Example"]()
    for name, value in columns.items():
        kind = {float: "float_list", int: "int64_list", bytes: "bytes_list"}.get(type(value))
        if kind:
            getattr(made.features.feature[name], kind).value.append(value)
    return made.SerializeToString()


def shape_bytes(*sizes):
    """A serialized TensorShapeProto."""
    made = MESSAGES["TensorShapeProto"]()
    for size in sizes:
        made.dim.add(size=size)
    return made.SerializeToString()


def tensor(of, values, shape):
    """Fills in a TensorProto."""
    of.dtype, field = _TYPES[type(values[0])]
    getattr(of, field).extend(values)
    of.tensor_shape = shape_bytes(*shape)


def prediction_log(inputs, answers, *, version=7, at_s=1_795_305_600):
    """A serialized PredictionLog.

    Args:
        inputs: by name the values of each row; of `examples` serialized tf.Examples.
        answers: one number a row.
    """
    log = MESSAGES["PredictionLog"]()
    log.log_metadata.timestamp_secs = at_s
    for name, values in inputs.items():
        shape = [len(values)] if name == "examples" else [len(values), 1]
        tensor(log.predict_log.request.inputs[name], values, shape)
    if version:
        log.predict_log.response.model_spec.version.value = version
    if answers:
        tensor(log.predict_log.response.outputs["outputs"], answers, [len(answers), 1])
    return log.SerializeToString()


def with_content(numbers):
    """A PredictionLog whose fares are given as bytes, as clients write larger tensors."""
    log = MESSAGES["PredictionLog"]()
    log.predict_log.request.model_spec.version.value = 7
    fare = log.predict_log.request.inputs["fare"]
    fare.dtype, fare.tensor_content = 1, struct.pack(f"<{len(numbers)}f", *numbers)
    fare.tensor_shape = shape_bytes(len(numbers), 1)
    tensor(log.predict_log.response.outputs["outputs"], [0.5], [len(numbers), 1])
    return log.SerializeToString()

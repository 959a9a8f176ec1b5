"""Our reading of TensorFlow Serving's logs against its own messages."""

from collections import Counter

import numpy as np
import pytest

from slipway.components.ingest.blocks import InputFile
from slipway.components.ingest.tfrecord import frame
from slipway.components.request_log.prediction_log import _TYPES, read_predictions
from slipway.components.request_log.prediction_log_message import _FIELDS, MESSAGES

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def theirs():
    from slipway.components.saved_model.quiet_tensorflow import import_tensorflow

    import_tensorflow()
    from google.protobuf import wrappers_pb2
    from tensorflow.core.framework import tensor_pb2, tensor_shape_pb2
    from tensorflow_serving.apis import logging_pb2, model_pb2, predict_pb2, prediction_log_pb2

    return {
        "Int64Value": wrappers_pb2.Int64Value,
        "ModelSpec": model_pb2.ModelSpec,
        "Dim": tensor_shape_pb2.TensorShapeProto.Dim,
        "TensorShapeProto": tensor_shape_pb2.TensorShapeProto,
        "TensorProto": tensor_pb2.TensorProto,
        "PredictRequest": predict_pb2.PredictRequest,
        "PredictResponse": predict_pb2.PredictResponse,
        "PredictLog": prediction_log_pb2.PredictLog,
        "LogMetadata": logging_pb2.LogMetadata,
        "PredictionLog": prediction_log_pb2.PredictionLog,
    }


# An enum, which is written as a number; and a message, which is parsed once for all tensors of that shape.
READ_APART = {("dtype", "INT32"), ("tensor_shape", "BYTES")}


def test_fields_are_those_of_tensorflow_serving(theirs):
    """Each has the number and, but for what is only looked at or an enum, the type."""
    assert theirs.keys() == _FIELDS.keys()
    for name, fields in _FIELDS.items():
        for field, (number, kind) in fields.items():
            their_field = theirs[name].DESCRIPTOR.fields_by_name[field]
            assert their_field.number == number, (name, field)
            own = MESSAGES[name].DESCRIPTOR.fields_by_name[field]
            assert their_field.is_repeated == own.is_repeated, (name, field)
            if (field, kind) not in READ_APART and not (name == "PredictionLog" and kind == "|BYTES"):
                assert their_field.type == own.type, (name, field)


def test_types_are_those_of_tensorflow(theirs):
    from slipway.components.saved_model.quiet_tensorflow import import_tensorflow

    tf = import_tensorflow()
    for number, (_, kind) in _TYPES.items():
        assert np.dtype(tf.as_dtype(number).as_numpy_dtype) == np.dtype(kind)


def test_what_tensorflow_serving_would_write_is_read(theirs, tmp_path):
    from slipway.components.saved_model.quiet_tensorflow import import_tensorflow

    tf = import_tensorflow()
    log = theirs["PredictionLog"]()
    log.log_metadata.timestamp_secs = 1_795_305_600
    log.log_metadata.saved_model_tags.append("serve")
    log.predict_log.request.model_spec.name = "taxi"
    log.predict_log.response.model_spec.version.value = 7
    inputs = {
        "fare": np.float32([[1.5], [2.5]]),
        "company": np.array([[b"A"], [b""]], object),
        "area": np.int64([[8], [9]]),
        "miles": np.float64([[1], [2]]),
        "tags": np.array([[b"a", b"b"], [b"c", b"d"]], object),
    }
    for name, array in inputs.items():
        log.predict_log.request.inputs[name].CopyFrom(tf.make_tensor_proto(array))
    log.predict_log.response.outputs["outputs"].CopyFrom(tf.make_tensor_proto(np.float32([[0.25], [0.5]])))
    (tmp_path / "a").write_bytes(frame([log.SerializeToString()]))
    told = Counter()
    [found] = read_predictions(InputFile("a", tmp_path / "a"), list(inputs), told)
    assert found.rows == [
        {"fare": 1.5, "company": "A", "area": 8, "miles": 1.0, "tags": ["a", "b"]},
        {"fare": 2.5, "company": None, "area": 9, "miles": 2.0, "tags": ["c", "d"]},
    ]
    assert (found.version, found.at_s, found.answers, told) == (7, 1_795_305_600, [[0.25], [0.5]], {})

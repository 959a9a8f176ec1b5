"""Training's columns, features and answers for the rows that the served model is queried with.

Only this module of the package depends on the trainer: the answers must be those of the trained model.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import tensorflow as tf
import tensorflow_transform as tft
from google.protobuf import text_format
from tensorflow_metadata.proto.v0 import schema_pb2

from slipway.components.serving_check.perturbations import Column, Kind
from slipway.components.trainer.model_run import load_trained_model
from slipway.components.trainer.pixels import model_input
from slipway.components.trainer.raw_columns import list_columns, serving_columns
from slipway.components.trainer.saved_model_export import named_answers

_KINDS: dict[Any, Kind] = {tf.string: "text", tf.int64: "integer", tf.float32: "number"}


@dataclass(frozen=True)
class TrainingAnswers:
    """Attributes: `answers`, float64 [rows, outputs]; `features`, the transformed columns by name."""

    answers: np.ndarray
    features: dict[str, np.ndarray]


class TrainingSide:
    """The path of training examples: the Transform node's graph, then the trained weights.

    Args:
        transform_graph: the output folder of Transform.
        model_run: the folder with the Trainer's job and weights.
        apart: the columns that no request contains.
    """

    def __init__(self, *, transform_graph: str, model_run: str, schema: str, apart: Collection[str]) -> None:
        self._transform = tft.TFTransformOutput(transform_graph)
        self._model_run = model_run
        with tf.io.gfile.GFile(schema) as file:
            parsed = text_format.Parse(file.read(), schema_pb2.Schema())
        self._spec = self._transform.raw_feature_spec()
        self._names = serving_columns(parsed, apart)
        self._lists = list_columns(parsed)

    def columns(self) -> list[Column]:
        """Return the columns of a request."""
        return [_column(name, self._spec[name], name in self._lists) for name in sorted(self._names)]

    def arguments(self) -> list[str]:
        """Return the argument names of `serve_raw`."""
        return sorted(self._names)

    def answers(self, rows: Sequence[bytes]) -> TrainingAnswers:
        """Transform serialized tf.Examples with all their columns and predict them, as in training.

        Raises:
            ComponentError: the Trainer's job or the user's model cannot be read.
        """
        layer = self._transform.transform_features_layer()
        transformed = layer(tf.io.parse_example(tf.constant(list(rows)), self._spec))
        job, model = load_trained_model(self._model_run)
        inputs = {
            name: tf.reshape(model_input(transformed[name], feature), [-1, *feature.shape])
            for name, feature in job.inputs.items()
        }
        flat = tf.nest.flatten(named_answers(model(inputs, training=False), job.label))
        answers = np.concatenate([np.asarray(each).reshape(len(rows), -1) for each in flat], axis=1)
        return TrainingAnswers(
            answers=answers.astype(np.float64),
            # Raw images are bytes, not numbers to compare.
            features={
                name: np.asarray(transformed[name])
                for name, feature in job.inputs.items()
                if feature.dtype != "uint8"
            },
        )


def _column(name: str, spec: Any, is_list: bool) -> Column:
    shape = getattr(spec, "shape", ())
    size = int(np.prod([int(each) for each in shape])) if shape else 1
    is_fixed = isinstance(spec, tf.io.FixedLenFeature)
    required = is_fixed and spec.default_value is None
    return Column(name, _KINDS[spec.dtype], max(size, 1), required=required, is_list=is_list)

"""A metric for TFX's own Evaluator that counts predictions against labels; see `prediction_counts.py`.

Our own Evaluator counts the same in `components/evaluator/model_tally.py`.

TFX's Evaluator computes this metric in the same pass over the predictions as all others, so no model predicts
twice.
"""

import json
from collections.abc import Iterable
from typing import Any

import apache_beam as beam
import numpy as np
import tensorflow_model_analysis as tfma

from slipway.components.model_gate.prediction_counts import PredictionCounts

PREDICTION_COUNTS = "answers"
"""Name of the metric. Its value is the JSON of `PredictionCounts.to_json`, as bytes."""


class PredictionCountsMetric(tfma.metrics.Metric):
    """Counts the predictions of each model.

    Args:
        name: required by TensorFlow Model Analysis; the name of the result does not depend on it.
    """

    def __init__(self, name: str = PREDICTION_COUNTS) -> None:
        super().__init__(_computations, name=name)


def _computations(
    name: str = "",  # noqa: ARG001 (TensorFlow Model Analysis passes it)
    model_names: Iterable[str] | None = None,
    output_names: Iterable[str] | None = None,
    **_: Any,
) -> list[Any]:
    computations = []
    for model_name in model_names or [""]:
        for output_name in output_names or [""]:
            key = tfma.metrics.MetricKey(
                name=PREDICTION_COUNTS, model_name=model_name, output_name=output_name
            )
            computations.append(
                tfma.metrics.MetricComputation(
                    keys=[key], preprocessors=None, combiner=_CountPredictions(key)
                )
            )
    return computations


class _CountPredictions(beam.CombineFn):
    """Counts the predictions of one model on a slice."""

    def __init__(self, key: Any) -> None:
        self._key = key

    def create_accumulator(self) -> PredictionCounts:
        return PredictionCounts()

    def add_input(self, predictions: PredictionCounts, element: Any) -> PredictionCounts:
        # TensorFlow Model Analysis' own extraction of labels and predictions takes ten times as long as the
        # counting.
        weights = self._numbers(element.example_weights)
        predictions.add(
            self._numbers(element.labels),
            self._numbers(element.predictions),
            weight=weights[0] if weights else 1.0,
        )
        return predictions

    def merge_accumulators(self, accumulators: Iterable[PredictionCounts]) -> PredictionCounts:
        merged = PredictionCounts()
        for predictions in accumulators:
            merged.merge(predictions)
        return merged

    def extract_output(self, predictions: PredictionCounts) -> dict[Any, bytes]:
        counted = predictions.to_json()
        return {self._key: json.dumps(counted, separators=(",", ":")).encode()} if counted else {}

    def _numbers(self, values: Any) -> list[float]:
        """Return the values of this model and output; none if they are text or of several unnamed outputs."""
        values = of_output(values, self._key.model_name, self._key.output_name)
        if isinstance(values, dict) and len(values) == 1:
            [values] = values.values()
        if isinstance(values, dict) or values is None or np.asarray(values).dtype.kind not in "biuf":
            return []
        found: list[float] = np.asarray(values, np.float64).ravel().tolist()
        return found


def of_output(values: Any, model: str, output: str) -> Any:
    """Return the values of a model and an output, where TensorFlow Model Analysis holds several by name."""
    for name in (model, output):
        if isinstance(values, dict):
            values = values.get(name, values)
    return values

"""A metric for TFX's own Evaluator that counts a model's answers beside the labels; see `answers.py`.

Our own Evaluator counts the same in `components/evaluator/tally.py`.

TFX's Evaluator computes this metric in the same pass over the predictions as all others, so no model predicts
twice.
"""

import json
from collections.abc import Iterable
from typing import Any

import apache_beam as beam
import numpy as np
import tensorflow_model_analysis as tfma

from slipway.components.model_gate.answers import Answers

ANSWERS = "answers"
"""Name of the metric. Its value is the JSON of `Answers.to_json`, as bytes."""


class AnswersMetric(tfma.metrics.Metric):
    """Counts the answers of each model.

    Args:
        name: required by TensorFlow Model Analysis; the name of the result does not depend on it.
    """

    def __init__(self, name: str = ANSWERS) -> None:
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
            key = tfma.metrics.MetricKey(name=ANSWERS, model_name=model_name, output_name=output_name)
            computations.append(
                tfma.metrics.MetricComputation(keys=[key], preprocessors=None, combiner=_CountAnswers(key))
            )
    return computations


class _CountAnswers(beam.CombineFn):
    """Counts the answers of one model on a slice."""

    def __init__(self, key: Any) -> None:
        self._key = key

    def create_accumulator(self) -> Answers:
        return Answers()

    def add_input(self, answers: Answers, element: Any) -> Answers:
        # TensorFlow Model Analysis' own extraction of labels and predictions takes ten times as long as the
        # counting.
        answers.add(self._numbers(element.labels), self._numbers(element.predictions))
        return answers

    def merge_accumulators(self, accumulators: Iterable[Answers]) -> Answers:
        merged = Answers()
        for answers in accumulators:
            merged.merge(answers)
        return merged

    def extract_output(self, answers: Answers) -> dict[Any, bytes]:
        counted = answers.to_json()
        return {self._key: json.dumps(counted, separators=(",", ":")).encode()} if counted else {}

    def _numbers(self, values: Any) -> list[float]:
        """Return the values of this model and output; none if they are text or of several unnamed outputs."""
        for name in (self._key.model_name, self._key.output_name):
            if isinstance(values, dict):
                values = values.get(name, values)
        if isinstance(values, dict) and len(values) == 1:
            [values] = values.values()
        if isinstance(values, dict) or values is None or np.asarray(values).dtype.kind not in "biuf":
            return []
        found: list[float] = np.asarray(values, np.float64).ravel().tolist()
        return found
